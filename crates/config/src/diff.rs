//! Compares two configurations by their effects: what a process that runs the old one has to change
//! to run the new one.
//!
//! Spaces, comments, quotes, the order of lines that do not depend on each other, and the place of
//! a setting (in a proxy, or in the `defaults` from which it starts) do not matter. Files that
//! lines name are not read: only their names are compared. Keywords that have no effect in this
//! program are left out.
//!
//! [`compare`] reads two trees, after environment, conditions and macros were applied. Each proxy
//! becomes its settings and lists of rules ([`proxy`]), with those of its `defaults`
//! ([`inheritance`]). Lists are aligned ([`align`]), lines with options are compared option by
//! option ([`options`], [`servers`], [`listeners`]). The table of [`applies`] says which effects
//! need a restart of the process.

mod align;
mod applies;
mod effect;
mod inheritance;
mod item;
mod listeners;
mod options;
mod proxies;
mod proxy;
mod rules;
mod sections;
mod servers;
mod slots;
#[cfg(test)]
mod tests;

pub use applies::Applies;
pub use effect::{Change, Comparison, Effect, Place, SectionName, Subject, Written};

use crate::tree::Tree;
use item::Item;
use std::collections::BTreeMap;

/// The effects of a change from `old` to `new`: those on `global`, then those on other sections,
/// then those on proxies. In both groups, the sections that go come first, the others in the order
/// of the new files. The same trees always give the same effects. The work grows with the size of
/// the trees, and for long lists as that of sorting.
#[must_use]
pub fn compare(old: &Tree, new: &Tree) -> Comparison {
    let mut effects = sections::compare(old, new);
    effects.extend(proxies::compare(old, new));
    Comparison { effects }
}

/// The names of both sides, sorted.
fn names<'a, A, B>(old: &'a BTreeMap<String, A>, new: &'a BTreeMap<String, B>) -> Vec<&'a str> {
    let only_new = new.keys().filter(|name| !old.contains_key(*name));
    let mut names: Vec<&str> = old.keys().chain(only_new).map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn lines<'a, 't>(of: &'a BTreeMap<String, Vec<Item<'t>>>, name: &str) -> &'a [Item<'t>] {
    of.get(name).map_or(&[], Vec::as_slice)
}
