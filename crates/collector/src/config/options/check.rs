//! Whether a tree holds what a table says.

use std::fmt::Display;

use syntax::suggest::closest;

use super::table::{Kind, Opt, Rank, State, Table, all, find};
use super::value;
use crate::config::diagnostic::{At, Notes};
use crate::config::source::{Key, Node, Value, shortened};

/// Notes what is wrong with the options of a map: keys that the table lacks, values that are none,
/// options that do nothing or cannot be honoured. `at` is where what is missing is told.
pub(crate) fn check(node: &Node, table: Table, path: &str, at: At, notes: &Notes) {
    Check { notes }.map(node, table, path, at, Enabled::Unknown);
}

/// Whether a map may say `enabled`.
#[derive(Clone, Copy, PartialEq)]
enum Enabled {
    Known,
    Unknown,
}

struct Check<'a> {
    notes: &'a Notes,
}

impl Check<'_> {
    fn map(&self, node: &Node, table: Table, path: &str, at: At, enabled: Enabled) {
        if !matches!(node.value, Value::Map(_) | Value::Null) {
            let message = format!("{path}: must be a map of options, not {}", node.shown());
            self.notes.error(node.at, message);
            return;
        }
        for (key, value) in node.entries() {
            let path = match path {
                "" => key.text.clone(),
                path => format!("{path}::{}", key.text),
            };
            match find(table, &key.text) {
                Some(opt) => self.option(key, value, opt, &path),
                None if key.text == "enabled" && enabled == Enabled::Known => {
                    self.told(value, &path, value::flag(value).map(drop));
                }
                None => self.unknown(key, table, &path),
            }
        }
        for opt in all(table) {
            if opt.rank == Rank::Required && node.get(opt.name).is_none() {
                let message = format!("{path}: '{}' is missing: {}", opt.name, opt.doc);
                self.notes.error(at, message);
            }
        }
    }

    fn unknown(&self, key: &Key, table: Table, path: &str) {
        let names = all(table).map(|opt| opt.name);
        let hint = match closest(&key.text, names) {
            Some(name) => format!(" (did you mean '{name}'?)"),
            None => String::new(),
        };
        let message = format!("{path}: unknown key{hint}");
        self.notes.error(key.at, message);
    }

    fn option(&self, key: &Key, value: &Node, opt: &Opt, path: &str) {
        if value.is_null() && value.verbatim.is_none() && !matches!(opt.kind, Kind::Maybe(_)) {
            return;
        }
        let is_default = is_default(value, opt);
        match opt.state {
            State::Refused(reason) if !is_default => {
                let message = format!("{path}: not supported: {reason}");
                self.notes.error(key.at, message);
                return;
            }
            State::NoEffect(reason) if !is_default => {
                let message = format!("{path}: has no effect: {reason}");
                self.notes.warn(key.at, message);
            }
            State::Deprecated(instead) => {
                let message = format!("{path}: deprecated: {instead}");
                self.notes.warn(key.at, message);
            }
            State::Works | State::NoEffect(_) | State::Refused(_) => {}
        }
        self.value(key, value, opt.kind, path);
    }

    fn value(&self, key: &Key, node: &Node, kind: Kind, path: &str) {
        let result = match kind {
            Kind::Flag => value::flag(node).map(drop),
            Kind::Int(low, high) => value::int(node).and_then(|value| within(value, low, high)),
            Kind::Ints(low, high) => value::ints(node).map(|values| {
                for (item, value) in values {
                    self.told(item, path, within(value, low, high));
                }
            }),
            Kind::Number(low, high) => value::number(node).and_then(|value| {
                let end = (high < f64::MAX).then_some(high);
                if (low..=high).contains(&value) {
                    Ok(())
                } else {
                    Err(out_of_range(value, low, end))
                }
            }),
            Kind::Duration => value::duration_ns(node).map(drop),
            Kind::Durations => value::durations_ns(node).map(drop),
            Kind::Text => value::text(node).map(drop),
            Kind::Word(words) => value::text(node).and_then(|text| known(text, words)),
            Kind::WordAnyCase(words) => {
                let lower = |text: &str| known(&text.to_ascii_lowercase(), words);
                value::text(node).and_then(lower)
            }
            Kind::Texts => value::texts(node).map(drop),
            Kind::Words(words) => value::texts(node).map(|texts| {
                for (item, text) in texts {
                    self.told(item, path, known(&text, words));
                }
            }),
            Kind::Pairs => value::pairs(node).map(drop),
            Kind::Section(table) => {
                self.map(node, table, path, key.at, Enabled::Unknown);
                Ok(())
            }
            Kind::Maybe(table) => {
                if !is_off(node) {
                    self.map(node, table, path, key.at, Enabled::Known);
                }
                Ok(())
            }
            Kind::Sections(table) => self.sections(node, table, path),
            Kind::Named(table) => self.named(node, table, path),
            Kind::TextsOrSections(_) if are_texts(node) => Ok(()),
            Kind::TextsOrSections(table) => self.sections(node, table, path),
            Kind::Any => Ok(()),
        };
        self.told(node, path, result);
    }

    fn sections(&self, node: &Node, table: Table, path: &str) -> Result<(), String> {
        match &node.value {
            Value::Null => Ok(()),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.map(item, table, &path, item.at, Enabled::Unknown);
                }
                Ok(())
            }
            _ => Err(format!("must be a list of maps, not {}", node.shown())),
        }
    }

    fn named(&self, node: &Node, table: Table, path: &str) -> Result<(), String> {
        if !matches!(node.value, Value::Map(_) | Value::Null) {
            return Err(format!("must be a map of names, not {}", node.shown()));
        }
        for (key, value) in node.entries() {
            let path = format!("{path}[{}]", key.text);
            self.map(value, table, &path, key.at, Enabled::Unknown);
        }
        Ok(())
    }

    fn told(&self, node: &Node, path: &str, result: Result<(), String>) {
        if let Err(reason) = result {
            self.notes.error(node.at, format!("{path}: {reason}"));
        }
    }
}

/// Whether all that a list holds are texts.
fn are_texts(node: &Node) -> bool {
    node.items().iter().all(|item| item.text().is_some()) && !node.items().is_empty()
}

/// `enabled: false`: what else the map says does not matter.
pub(super) fn is_off(node: &Node) -> bool {
    let enabled = node.get("enabled");
    enabled.is_some_and(|enabled| enabled.value == Value::Bool(false))
}

fn within(value: i128, low: i64, high: i64) -> Result<(), String> {
    let range = i128::from(low)..=i128::from(high);
    let end = (high < i64::MAX).then_some(high);
    if range.contains(&value) {
        Ok(())
    } else {
        Err(out_of_range(value, low, end))
    }
}

/// The error of a number that is out of a range; `high` is what can be told of its end.
fn out_of_range(value: impl Display, low: impl Display, high: Option<impl Display>) -> String {
    match high {
        Some(high) => format!("must be from {low} to {high}, not {value}"),
        None => format!("must be at least {low}, not {value}"),
    }
}

fn known(text: &str, words: &[&str]) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    let hint = match closest(text, words.iter().copied()) {
        Some(word) => format!(" (did you mean '{word}'?)"),
        None => String::new(),
    };
    let words = words.iter().filter(|word| !word.is_empty());
    let words: Vec<&str> = words.copied().collect();
    Err(format!(
        "must be one of {}, not '{}'{hint}",
        words.join(", "),
        shortened(text)
    ))
}

/// Whether what is written says no more than the default does.
fn is_default(node: &Node, opt: &Opt) -> bool {
    match opt.kind {
        Kind::Flag | Kind::Int(..) | Kind::Number(..) | Kind::Duration => {
            node.shown().trim_matches('\'') == opt.default
        }
        Kind::Text | Kind::Word(_) | Kind::WordAnyCase(_) => node.text() == Some(opt.default),
        Kind::Texts | Kind::Words(_) => value::texts(node).is_ok_and(|texts| {
            let texts = texts.iter().map(|(_, text)| text.as_str());
            let default = opt.default.split(',').filter(|text| !text.is_empty());
            texts.eq(default)
        }),
        Kind::Sections(_) | Kind::TextsOrSections(_) | Kind::Ints(..) | Kind::Durations => {
            matches!(&node.value, Value::List(items) if items.is_empty())
        }
        Kind::Pairs | Kind::Section(_) | Kind::Named(_) => {
            node.entries().is_empty() && node.items().is_empty()
        }
        Kind::Maybe(_) => is_off(node) || node.is_null(),
        Kind::Any => node.is_null(),
    }
}
