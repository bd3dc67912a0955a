//! The reference of the language, generated from the keyword table.

use crate::keywords::{Group, Row, Sections, State, groups};
use std::fmt::Write as _;

/// The text of `docs/configuration.md`.
#[must_use]
pub fn configuration_markdown() -> String {
    let mut out = String::from(HEADER);
    let groups = groups();
    summary(&mut out, &groups);
    for group in &groups {
        table(&mut out, group);
    }
    out
}

const HEADER: &str = "\
# Configuration

<!-- Generated from the keyword table of crates/config. Do not edit: run `UPDATE_DOCS=1 cargo test -p spangate-config --test docs`. -->

Spangate reads HAProxy 3.5's configuration language. Every keyword of it is in the tables below, with what a use of it
means here:

| state | meaning |
|---|---|
| yes | It does what HAProxy's manual says. |
| not yet | Known, and refused with an error that says so. |
| no effect | Accepted; it tunes something that does not exist here. `-dD` tells each use and the reason. |
| removed | Refused by HAProxy too; the error names the replacement. |

A word that is in no table is an error, with the nearest keyword as a suggestion. Nothing is silently ignored.

";

fn summary(out: &mut String, groups: &[Group]) {
    let _ = writeln!(
        out,
        "| part | yes | not yet | no effect | removed |\n|---|---|---|---|---|"
    );
    for group in groups {
        let count = |wanted: &str| {
            group
                .rows
                .iter()
                .filter(|row| state(row).0 == wanted)
                .count()
        };
        let [yes, not_yet, moot, removed] = ["yes", "not yet", "no effect", "removed"].map(count);
        let _ = writeln!(
            out,
            "| {} | {yes} | {not_yet} | {moot} | {removed} |",
            group.title
        );
    }
}

fn table(out: &mut String, group: &Group) {
    let _ = writeln!(out, "\n## {}\n", group.title);
    let _ = writeln!(
        out,
        "{}",
        if group.by_section {
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
            format!("{} {}", row.doc, sentence(remark))
        };
        let doc = doc.replace('|', "\\|");
        let _ = match group.by_section {
            true => writeln!(
                out,
                "| `{name}` | {} | {state} | {doc} |",
                sections(row.sections)
            ),
            false => writeln!(out, "| `{name}` | {state} | {doc} |"),
        };
    }
}

fn state(row: &Row) -> (&'static str, &'static str) {
    match row.state {
        State::Supported(()) => ("yes", ""),
        State::NotYet => ("not yet", ""),
        State::NoMeaning(reason) => ("no effect", reason),
        State::Removed(_) => ("removed", ""),
    }
}

/// A reason as a sentence of its own.
fn sentence(reason: &str) -> String {
    let mut chars = reason.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), chars.as_str())
    })
}

fn sections(sections: Sections) -> String {
    let names = [
        (Sections::DEFAULTS, "defaults"),
        (Sections::NAMED_DEFAULTS, "named defaults"),
        (Sections::FRONTEND, "frontend"),
        (Sections::BACKEND, "backend"),
    ];
    let names: Vec<&str> = names
        .into_iter()
        .filter(|(set, _)| sections.intersects(*set))
        .map(|(_, name)| name)
        .collect();
    names.join(", ")
}
