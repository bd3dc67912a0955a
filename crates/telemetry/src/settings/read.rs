//! Reads typed options from a map. Errors are collected, so that one run reports all of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

use super::Error;
use syntax::yaml::{At, Node, Value};

/// The most bytes of a text; the rest is cut off.
pub(super) const TEXT_BYTES_MAX: usize = 4095;

/// Errors and warnings found so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub errors: Vec<Error>,
    pub warnings: Vec<(At, String)>,
}

impl Notes {
    /// Reports an error once: several signals may name one definition.
    pub(super) fn error(&mut self, at: At, message: impl Into<String>) {
        let error = Error::from(at.error(message));
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn warn(&mut self, at: At, message: impl Into<String>) {
        let warning = (at, message.into());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A map whose keys are read one by one; [`Options::end`] warns of keys that were not read.
pub(super) struct Options<'a> {
    /// What the map describes, for messages.
    pub what: String,
    pub node: &'a Node,
    /// Each key of the map, and whether it was read.
    keys: RefCell<HashMap<&'a str, bool>>,
    notes: &'a RefCell<Notes>,
}

impl<'a> Options<'a> {
    pub(super) fn new(what: String, node: &'a Node, notes: &'a RefCell<Notes>) -> Options<'a> {
        if !node.is_map() {
            notes
                .borrow_mut()
                .error(node.at, format!("{what} must be a map of options"));
        }
        let keys = node.entries().iter();
        let keys = keys.map(|(key, _)| (key.text.as_str(), false)).collect();
        Options {
            what,
            node,
            keys: RefCell::new(keys),
            notes,
        }
    }

    pub(super) fn error(&self, at: At, message: impl Into<String>) {
        self.notes.borrow_mut().error(at, message);
    }

    pub(super) fn warn(&self, at: At, message: impl Into<String>) {
        self.notes.borrow_mut().warn(at, message);
    }

    /// The value of a key as written.
    pub(super) fn node(&self, key: &str) -> Option<&'a Rc<Node>> {
        if let Some(asked) = self.keys.borrow_mut().get_mut(key) {
            *asked = true;
        }
        self.node.get(key)
    }

    /// A text of any length, and its position.
    pub(super) fn whole_text(&self, key: &str) -> Option<(&'a str, At)> {
        let node = self.node(key)?;
        if let Value::Text(text) = &node.value {
            return Some((text, node.at));
        }
        self.error(node.at, format!("'{key}' must be a single value"));
        None
    }

    /// A text, and its position.
    pub(super) fn text_at(&self, key: &str) -> Option<(&'a str, At)> {
        let (text, at) = self.whole_text(key)?;
        if text.len() <= TEXT_BYTES_MAX {
            return Some((text, at));
        }
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        let message = format!("'{key}' is cut off after {TEXT_BYTES_MAX} bytes");
        self.warn(at, message);
        Some((&text[..end], at))
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.text_at(key).map(|(text, _)| text.to_owned())
    }

    /// `true`, `false`, `1` or `0`.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.choice(
            key,
            &[("true", true), ("false", false), ("1", true), ("0", false)],
        )
    }

    /// One of several words, in any case.
    pub(super) fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let (text, at) = self.text_at(key)?;
        let found = words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text));
        if let Some((_, value)) = found {
            return Some(*value);
        }
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("'{key}' is '{text}', must be one of: {}", words.join(", "));
        self.error(at, message);
        None
    }

    /// An integer: decimal, `0x` hexadecimal, or octal with a leading `0`.
    pub(super) fn int(&self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let (text, at) = self.text_at(key)?;
        match int(text) {
            Some(value) if range.contains(&value) => Some(value),
            Some(value) => {
                let (low, high) = (range.start(), range.end());
                self.error(at, format!("'{key}' is {value}, must be {low}..{high}"));
                None
            }
            None => {
                self.error(at, format!("'{key}' is '{text}', must be a whole number"));
                None
            }
        }
    }

    /// An integer in a range.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<u32>, default: u32) -> u32 {
        let wide = i64::from(*range.start())..=i64::from(*range.end());
        let value = self.int(key, wide);
        value.map_or(default, |value| u32::try_from(value).unwrap_or(default))
    }

    /// A number from 0 to 1.
    pub(super) fn ratio(&self, key: &str) -> Option<f64> {
        let (text, at) = self.text_at(key)?;
        match text.parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) => Some(value),
            _ => {
                let message = format!("'{key}' is '{text}', must be a number from 0 to 1");
                self.error(at, message);
                None
            }
        }
    }

    /// The texts of a list, or one text; each with its position. Also returns whether it was a
    /// list.
    pub(super) fn names(&self, key: &str) -> Option<(Vec<(&'a str, At)>, bool)> {
        let node = self.node(key)?;
        let Value::List(items) = &node.value else {
            return Some((vec![self.text_at(key)?], false));
        };
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::Text(text) => names.push((text.as_str(), item.at)),
                _ => self.error(item.at, format!("'{key}' must be a list of names")),
            }
        }
        Some((names, true))
    }

    /// Pairs: a list of maps or of `key:value` texts, or one map.
    pub(super) fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        if let Some(node) = self.node(key) {
            match &node.value {
                Value::List(items) => {
                    for item in items {
                        self.pair(key, item, &mut pairs);
                    }
                }
                _ => self.pair(key, node, &mut pairs),
            }
        }
        pairs
    }

    fn pair(&self, key: &str, node: &Node, pairs: &mut Vec<(String, String)>) {
        if let Value::Text(text) = &node.value
            && let Some((name, value)) = text.split_once(':')
        {
            pairs.push((name.trim().to_owned(), value.trim().to_owned()));
            return;
        }
        if !node.is_map() {
            let message = format!("'{key}' must be a list of pairs 'name: value'");
            self.error(node.at, message);
        }
        for (name, value) in node.entries() {
            match &value.value {
                Value::Text(text) => pairs.push((name.text.clone(), text.clone())),
                Value::Absent => pairs.push((name.text.clone(), String::new())),
                _ => self.error(value.at, format!("'{}' must be a single value", name.text)),
            }
        }
    }

    /// Marks keys that have no effect here as read, so that they cause no warning.
    pub(super) fn ignore(&self, keys: &[&str]) {
        for key in keys {
            self.node(key);
        }
    }

    /// Warns of keys that were not read.
    pub(super) fn end(&self) {
        for (key, _) in self.node.entries() {
            if self.keys.borrow().get(key.text.as_str()) == Some(&false) {
                let message = format!("{}: unknown key '{}' is ignored", self.what, key.text);
                self.warn(key.at, message);
            }
        }
    }
}

fn int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => (&digits[2..], 8),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}
