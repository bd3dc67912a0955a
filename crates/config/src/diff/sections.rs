//! The effects on sections other than proxies: `global` by its settings, the others line by line.

use super::align;
use super::item::Item;
use super::proxies::name_of;
use super::rules::ListOf;
use super::{Change, Effect, SectionName, Subject, applies};
use crate::build::names::is_proxy;
use crate::keywords::{self, State, global, other};
use crate::tree::{Prefix, Section, Statement, Tree};
use std::collections::BTreeMap;

/// Keywords of `global` of which each line counts, in order.
const GLOBAL_LISTS: &[&str] = &[
    "h1-case-adjust",
    "http-err-codes",
    "http-fail-codes",
    "log",
    "resetenv",
    "set-var",
    "set-var-fmt",
    "setcap",
    "stats socket",
    "unix-bind",
    "unsetenv",
];

/// Keywords of `global` whose first argument is a part of the setting's name.
const GLOBAL_FAMILIES: &[&str] = &["presetenv", "setenv", "stats"];

/// Sections whose lines depend on the lines before them, so that their whole order counts. In
/// others, the order counts among the lines of a keyword.
const ORDERED: &[&str] = &["crt-store", "healthcheck", "log-forward", "peers", "ring"];

/// The effects on `global` and on the other sections, those that go first.
pub(super) fn compare(old: &Tree, new: &Tree) -> Vec<Effect> {
    let mut effects = global(old, new);
    let (old, new) = (merged(old), merged(new));
    let names = |sections: &[Merged<'_>]| {
        let names = sections.iter().map(|section| section.name.clone());
        names.collect::<Vec<_>>()
    };
    let partners = align::partners(&names(&old), &names(&new));
    let mut of_new = vec![None; new.len()];
    for (section, partner) in old.iter().zip(&partners) {
        match partner.and_then(|partner| of_new.get_mut(partner)) {
            Some(slot) => *slot = Some(section),
            None => {
                let change = Change::Removed(Item::own(section.header).written());
                effects.push(section.whole(change));
            }
        }
    }
    for (section, before) in new.iter().zip(of_new) {
        match before {
            None => {
                let change = Change::Added(Item::own(section.header).written());
                effects.push(section.whole(change));
            }
            Some(before) => effects.extend(section.lines_since(before)),
        }
    }
    effects
}

/// All sections of a kind and a name.
struct Merged<'t> {
    name: SectionName,
    header: &'t Statement,
    lines: Vec<Item<'t>>,
}

/// The sections that have an effect, other than `global` and proxies. Sections with the same name
/// are one.
fn merged(tree: &Tree) -> Vec<Merged<'_>> {
    let mut all: Vec<Merged<'_>> = Vec::new();
    let mut places: BTreeMap<SectionName, usize> = BTreeMap::new();
    for section in tree.sections.iter().filter(|section| is_other(section)) {
        let name = name_of(section);
        let at = *places.entry(name.clone()).or_insert(all.len());
        if at == all.len() {
            all.push(Merged {
                name,
                header: &section.header,
                lines: Vec::new(),
            });
        }
        all[at]
            .lines
            .extend(section.statements.iter().map(Item::own));
    }
    all
}

fn is_other(section: &Section) -> bool {
    let known = keywords::find(other::SECTIONS, section.kind());
    !matches!(section.kind(), "global" | "defaults")
        && !is_proxy(section)
        && known.is_none_or(|known| !matches!(known.state, State::NoEffect(_)))
}

impl Merged<'_> {
    fn whole(&self, change: Change) -> Effect {
        Effect::new(
            &self.name,
            Subject::Section,
            change,
            applies::section(&self.name.kind),
        )
    }

    /// The effects on the lines of a section on both sides.
    fn lines_since(&self, before: &Merged<'_>) -> Vec<Effect> {
        let is_ordered = ORDERED.contains(&&*self.name.kind);
        let mut effects = Vec::new();
        if Item::own(before.header).key() != Item::own(self.header).key() {
            effects.push(self.whole(Change::Changed {
                old: Item::own(before.header).written(),
                new: Item::own(self.header).written(),
            }));
        }
        let old = by_keyword(&before.lines, is_ordered);
        let new = by_keyword(&self.lines, is_ordered);
        for keyword in super::names(&old, &new) {
            let list = ListOf {
                section: &self.name,
                list: keyword,
                old: super::lines(&old, keyword),
                new: super::lines(&new, keyword),
            };
            effects.extend(list.compare(|_| applies::section(&self.name.kind)));
        }
        for effect in &mut effects {
            // The name of the list is that of the line.
            if let (Subject::Rule { list }, Some(line)) = (
                &mut effect.subject,
                effect.change.after().or(effect.change.before()),
            ) && list.is_empty()
            {
                *list = line.text.split(' ').next().unwrap_or_default().to_owned();
            }
        }
        effects
    }
}

/// The lines by their keyword; all of them without one if their whole order counts.
fn by_keyword<'t>(lines: &[Item<'t>], is_ordered: bool) -> BTreeMap<String, Vec<Item<'t>>> {
    let mut lists: BTreeMap<String, Vec<Item<'t>>> = BTreeMap::new();
    for line in lines {
        let name = if is_ordered {
            ""
        } else {
            line.statement.keyword()
        };
        lists.entry(name.to_owned()).or_default().push(*line);
    }
    lists
}

/// The lines of all sections `global`.
#[derive(Default)]
struct Global<'t> {
    settings: BTreeMap<String, Vec<Item<'t>>>,
}

impl<'t> Global<'t> {
    fn new(tree: &'t Tree) -> Self {
        let mut global = Global::default();
        let sections = tree.sections.iter();
        let sections = sections.filter(|section| section.kind() == "global");
        for statement in sections.flat_map(|section| &section.statements) {
            global.add(statement);
        }
        global
    }

    fn add(&mut self, statement: &'t Statement) {
        let keyword = statement.keyword();
        let known = keywords::find(global::KEYWORDS, keyword);
        if known.is_some_and(|known| matches!(known.state, State::NoEffect(_))) {
            return;
        }
        let longer = format!("{keyword} {}", statement.arg(1));
        let name = if GLOBAL_FAMILIES.contains(&keyword) {
            longer
        } else {
            keyword.to_owned()
        };
        let lines = self.settings.entry(name).or_default();
        let is_list =
            GLOBAL_LISTS.contains(&keyword) || keyword == "stats" && statement.arg(1) == "socket";
        if !is_list || statement.prefix != Prefix::None {
            lines.clear();
        }
        if statement.prefix == Prefix::None {
            lines.push(Item::own(statement));
        }
    }
}

/// The effects on `global`, sorted by setting.
fn global(old: &Tree, new: &Tree) -> Vec<Effect> {
    let section = SectionName {
        kind: "global".to_owned(),
        name: String::new(),
    };
    let (old, new) = (Global::new(old), Global::new(new));
    let mut effects = Vec::new();
    for name in super::names(&old.settings, &new.settings) {
        let list = ListOf {
            section: &section,
            list: name,
            old: super::lines(&old.settings, name),
            new: super::lines(&new.settings, name),
        };
        let keyword = name.split(' ').next().unwrap_or_default();
        let mut found = list.compare(|_| applies::global(keyword));
        if !GLOBAL_LISTS.contains(&name) {
            for effect in &mut found {
                effect.subject = Subject::Setting {
                    setting: name.to_owned(),
                };
            }
        }
        effects.extend(found);
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_keyword() {
        for name in GLOBAL_LISTS.iter().chain(GLOBAL_FAMILIES) {
            let keyword = name.split(' ').next().unwrap_or_default();
            assert!(
                keywords::find(global::KEYWORDS, keyword).is_some(),
                "{name}"
            );
        }
        for name in ORDERED {
            assert!(keywords::find(other::SECTIONS, name).is_some(), "{name}");
        }
    }
}
