//! Lists of rules, and the conditions that they use.

use super::align::{Pair, Step, align};
use super::item::Item;
use super::slots;
use super::{Applies, Change, Effect, SectionName, Subject};
use crate::tree::Statement;
use std::collections::HashMap;

/// The rules that use each condition, by the condition's name.
pub(super) type Users<'t> = HashMap<&'t str, Vec<Item<'t>>>;

/// The rules of lists that use each condition.
pub(super) fn used_by<'a, 't: 'a>(rules: impl Iterator<Item = &'a Item<'t>>) -> Users<'t> {
    let mut users = Users::new();
    for rule in rules {
        let mut names = names_of(rule.statement);
        names.sort_unstable();
        names.dedup();
        for name in names {
            users.entry(name).or_default().push(*rule);
        }
    }
    users
}

/// The names of conditions in a rule: after `if` or `unless`, outside of braces, and in the fetch
/// `acl()`.
fn names_of(statement: &Statement) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_condition = false;
    let mut is_anonymous = false;
    for word in statement.args() {
        let word: &str = &word.text;
        if let Some((_, arguments)) = word.split_once("acl(") {
            let arguments = arguments.split(')').next().unwrap_or_default();
            names.extend(
                arguments
                    .split(',')
                    .map(|name| name.trim_start_matches('!')),
            );
        }
        match word {
            "if" | "unless" => is_condition = true,
            "{" | "!{" => is_anonymous = true,
            "}" => is_anonymous = false,
            _ if is_condition && !is_anonymous => names.push(word.trim_start_matches('!')),
            _ => {}
        }
    }
    names
}

/// A list of a section on both sides.
pub(super) struct ListOf<'a, 't> {
    pub section: &'a SectionName,
    /// Its name.
    pub list: &'a str,
    pub old: &'a [Item<'t>],
    pub new: &'a [Item<'t>],
}

impl ListOf<'_, '_> {
    /// The effects on the list. `applies` says whether a line needs a restart.
    pub fn compare(&self, applies: impl Fn(&Item<'_>) -> Applies) -> Vec<Effect> {
        let is_unordered = slots::is_unordered(self.list);
        let changes = self.changes().into_iter();
        let changes = changes.filter(|change| !(is_unordered && matches!(change, Step::Moved(_))));
        let effects = changes.filter_map(|step| {
            let found = Found::new(step, self.old, self.new)?;
            let subject = Subject::Rule {
                list: self.list.to_owned(),
            };
            let applied = found.items().map(&applies);
            let applied = applied.fold(Applies::InPlace, Applies::and);
            Some(Effect::new(self.section, subject, found.change()?, applied))
        });
        effects.collect()
    }

    /// One line on each side is the same one, whatever its words.
    fn changes(&self) -> Vec<Step> {
        match (self.old, self.new) {
            ([old], [new]) if old.key() != new.key() => {
                vec![Step::Changed(Pair { old: 0, new: 0 })]
            }
            (old, new) => align(old, new),
        }
    }
}

/// The lines of a step.
struct Found<'a, 't> {
    step: Step,
    old: Option<&'a Item<'t>>,
    new: Option<&'a Item<'t>>,
}

impl<'a, 't> Found<'a, 't> {
    fn new(step: Step, old: &'a [Item<'t>], new: &'a [Item<'t>]) -> Option<Self> {
        let (old, new) = match step {
            Step::Added(at) => (None, Some(new.get(at)?)),
            Step::Removed(at) => (Some(old.get(at)?), None),
            Step::Changed(pair) | Step::Moved(pair) => {
                (Some(old.get(pair.old)?), Some(new.get(pair.new)?))
            }
        };
        Some(Found { step, old, new })
    }

    fn items(&self) -> impl Iterator<Item = &'a Item<'t>> + use<'a, 't> {
        self.old.into_iter().chain(self.new)
    }

    fn change(&self) -> Option<Change> {
        match (self.old.map(Item::written), self.new.map(Item::written)) {
            (Some(old), Some(new)) if matches!(self.step, Step::Moved(_)) => {
                Some(Change::Moved { old, new })
            }
            (old, new) => Change::between(old, new),
        }
    }
}

/// The lines of a condition, and the rules that use it.
pub(super) struct Acl<'a, 't> {
    pub name: &'a str,
    pub old: &'a [Item<'t>],
    pub new: &'a [Item<'t>],
    pub users: &'a [Item<'t>],
}

impl Acl<'_, '_> {
    /// The effects on the condition. The order of its lines does not matter.
    pub fn compare(&self, section: &SectionName) -> Vec<Effect> {
        let list = ListOf {
            section,
            list: "acl",
            old: self.old,
            new: self.new,
        };
        let steps = list.changes().into_iter();
        let steps = steps.filter(|step| !matches!(step, Step::Moved(_)));
        let changes = steps.filter_map(|step| Found::new(step, self.old, self.new)?.change());
        let mut effects: Vec<Effect> = changes
            .map(|change| {
                let acl = self.name.to_owned();
                Effect::new(section, Subject::Acl { acl }, change, Applies::InPlace)
            })
            .collect();
        // Once, at the last effect on the condition.
        if let Some(last) = effects.last_mut() {
            last.used_by = self.users.iter().map(Item::written).collect();
        }
        effects
    }
}
