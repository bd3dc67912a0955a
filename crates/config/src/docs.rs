//! The reference of the language, generated from the keyword table.

use crate::keywords::{Group, Places, Row, State, Why, groups};
use sample::reference::{self, Entry, kind_name};
use std::fmt::Write as _;

/// The text of `docs/configuration.md`.
#[must_use]
pub fn configuration_markdown() -> String {
    let mut out = String::from(HEADER);
    let groups = groups();
    let expressions = expressions();
    summary(&mut out, &groups, &expressions);
    for group in &groups {
        table(&mut out, group);
    }
    for part in &expressions {
        part.write(&mut out);
    }
    out
}

const HEADER: &str = "\
# Configuration

<!-- Generated from the keyword tables of crates/config and crates/sample. Do not edit: run `UPDATE_DOCS=1 cargo test -p spangate-config --test it docs`. -->

Spangate reads HAProxy 3.5's configuration language. Every keyword of it is in the tables below, with what a use of it
means here. `-dKall` lists the same for programs, in HAProxy's form.

| state | meaning |
|---|---|
| yes | It does what HAProxy's manual says. |
| partly | The same, except for what the row names, which is refused as not implemented. |
| not yet | Known, and refused with an error that says so. |
| no effect yet | It tunes a feature that this version does not have. Its arguments are checked, a notice says that it does nothing. |
| no effect | It tunes something that exists in HAProxy only. Likewise; `-dD` tells each use and the reason. |
| removed | Refused by HAProxy too; the error names the replacement. |

A word that is in no table is an error, with the nearest keyword as a suggestion. Nothing is silently ignored.

";

/// A table of the expression language: rows of cells; one cell is the state.
struct Part {
    title: &'static str,
    columns: &'static str,
    rows: Vec<(bool, String)>,
}

impl Part {
    fn write(&self, out: &mut String) {
        let columns = self.columns.matches('|').count() - 1;
        let _ = writeln!(
            out,
            "\n## {}\n\n{}\n{}|",
            self.title,
            self.columns,
            "|---".repeat(columns)
        );
        for (_, row) in &self.rows {
            let _ = writeln!(out, "{row}");
        }
    }
}

fn yes_or_not(is_served: bool) -> &'static str {
    if is_served { "yes" } else { "not yet" }
}

/// Sample fetches, converters, ACL keywords and log aliases.
fn expressions() -> Vec<Part> {
    let call = |entry: &Entry| match entry.args.as_str() {
        "" => entry.name.to_owned(),
        args => format!("{}({args})", entry.name),
    };
    let cell = |text: &str| text.replace('|', "\\|");
    let sorted = |mut rows: Vec<(&'static str, bool, String)>| {
        rows.sort();
        rows.into_iter()
            .map(|(_, is_served, row)| (is_served, row))
            .collect()
    };
    let mut fetches: Vec<(&str, bool, String)> = reference::fetches()
        .map(|entry| {
            let (name, kind) = (call(&entry), kind_name(entry.to));
            let row = format!("| `{name}` | {kind} | yes | {} |", cell(entry.doc));
            (entry.name, true, row)
        })
        .collect();
    fetches.extend(
        reference::missing_fetches()
            .map(|name| (name, false, format!("| `{name}` | | not yet | |"))),
    );
    let mut converters: Vec<(&str, bool, String)> = reference::converters()
        .map(|entry| {
            let (from, to) = (entry.from.map_or("", kind_name), kind_name(entry.to));
            let row = format!(
                "| `{}` | {from} | {to} | yes | {} |",
                call(&entry),
                cell(entry.doc)
            );
            (entry.name, true, row)
        })
        .collect();
    converters.extend(
        reference::missing_converters()
            .map(|name| (name, false, format!("| `{name}` | | | not yet | |"))),
    );
    let acls = reference::acl_keywords().map(|keyword| {
        let state = yes_or_not(keyword.is_served);
        let row = format!(
            "| `{}` | {state} | `{} -m {}` |",
            keyword.name, keyword.fetch, keyword.method
        );
        (keyword.name, keyword.is_served, row)
    });
    let aliases = reference::aliases()
        .map(|(name, doc)| (name, true, format!("| `%{name}` | yes | {} |", cell(doc))))
        .chain([(
            "o",
            true,
            "| `%o` | yes | flags of all items that follow |".to_owned(),
        )]);
    vec![
        Part {
            title: "Sample fetches",
            columns: "| fetch | type | state | |",
            rows: sorted(fetches),
        },
        Part {
            title: "Converters",
            columns: "| converter | takes | gives | state | |",
            rows: sorted(converters),
        },
        Part {
            title: "ACL keywords",
            columns: "| keyword | state | stands for |",
            rows: sorted(acls.collect()),
        },
        Part {
            title: "Aliases of log formats",
            columns: "| alias | state | |",
            rows: sorted(aliases.collect()),
        },
    ]
}

fn summary(out: &mut String, groups: &[Group], expressions: &[Part]) {
    let _ = writeln!(
        out,
        "| part | yes | partly | not yet | no effect yet | no effect | removed |\n|---|---|---|---|---|---|---|"
    );
    for group in groups {
        let count = |wanted: &str| {
            group
                .rows
                .iter()
                .filter(|row| state(row).0 == wanted)
                .count()
        };
        let states = [
            "yes",
            "partly",
            "not yet",
            "no effect yet",
            "no effect",
            "removed",
        ];
        let counts = states.map(|state| count(state).to_string()).join(" | ");
        let _ = writeln!(out, "| {} | {counts} |", group.title);
    }
    for part in expressions {
        let yes = part.rows.iter().filter(|(is_served, _)| *is_served).count();
        let not_yet = part.rows.len() - yes;
        let _ = writeln!(
            out,
            "| {} | {yes} | 0 | {not_yet} | 0 | 0 | 0 |",
            part.title
        );
    }
}

fn table(out: &mut String, group: &Group) {
    let _ = writeln!(out, "\n## {}\n", group.title);
    let _ = writeln!(
        out,
        "{}",
        if group.by_place {
            "| keyword | in | state | |\n|---|---|---|---|"
        } else {
            "| keyword | state | |\n|---|---|---|"
        }
    );
    for row in &group.rows {
        let name = row.name.replace('*', "(…)");
        let (state, remark) = state(row);
        let doc = if remark.is_empty() {
            row.doc.to_owned()
        } else {
            format!("{} {}", row.doc, sentence(&remark))
        };
        let doc = doc.replace('|', "\\|");
        let _ = if group.by_place {
            writeln!(
                out,
                "| `{name}` | {} | {state} | {doc} |",
                places(row.places)
            )
        } else {
            writeln!(out, "| `{name}` | {state} | {doc} |")
        };
    }
}

fn state(row: &Row) -> (&'static str, String) {
    match row.state {
        State::Supported(()) => ("yes", String::new()),
        State::Partly((), missing) => ("partly", format!("without {missing}")),
        State::NotYet => ("not yet", String::new()),
        State::NoEffect(Why::Absent(feature)) => ("no effect yet", feature.is_absent().to_owned()),
        State::NoEffect(Why::Foreign(reason)) => ("no effect", reason.to_owned()),
        State::Removed(_) => ("removed", String::new()),
    }
}

/// A reason as a separate sentence.
fn sentence(reason: &str) -> String {
    let mut chars = reason.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), chars.as_str())
    })
}

fn places(places: Places) -> String {
    let names = Places::NAMES.iter();
    let names = names.filter(|(place, _)| places.intersects(*place));
    names
        .map(|(_, name)| *name)
        .collect::<Vec<&str>>()
        .join(", ")
}
