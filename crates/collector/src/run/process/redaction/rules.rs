//! The compiled settings, and what they make of attributes.

use std::borrow::Cow;
use std::collections::HashSet;

use otlp::scan::{Any, Malformed};
use regex_automata::meta::Regex;

use super::super::edit::List;
use super::super::edit::text::text_of;
use super::mask::{Mask, MaskedBytes};
use super::summary::{BODY, Fate, Found, RECORD, Summary};
use crate::config::components::processors::redaction::Redaction as Settings;
use crate::config::pattern;

/// See the module.
#[derive(Debug)]
pub struct Rules {
    /// Keys that stay; none: all do.
    allowed_keys: Option<HashSet<Vec<u8>>>,
    ignored_keys: HashSet<Vec<u8>>,
    ignored_key_patterns: Vec<Regex>,
    blocked_key_patterns: Vec<Regex>,
    blocked_values: Vec<Regex>,
    allowed_values: Vec<Regex>,
    reads_all_types: bool,
    mask: Mask,
    /// Level of detail of the summary attributes.
    pub summary: Summary,
}

/// Decision by the key of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFate {
    /// The attribute stays, whatever its value.
    Ignored,
    /// The attribute is removed.
    Removed,
    /// The whole value is masked.
    Masked,
    /// The value decides.
    Allowed,
}

/// Decision by the value of an attribute.
#[derive(Debug)]
pub enum ValueFate {
    /// An expression allows it.
    Allowed,
    /// The value becomes this text.
    Masked(Vec<u8>),
    /// Nothing is to be masked in it.
    Same,
}

impl Rules {
    /// Compiles the settings.
    ///
    /// # Errors
    /// An expression cannot be compiled; the text names it.
    pub fn new(settings: &Settings) -> Result<Rules, String> {
        let keys = |keys: &[String]| -> HashSet<Vec<u8>> {
            keys.iter().map(|key| key.as_bytes().to_vec()).collect()
        };
        let compile = |texts: &[String]| -> Result<Vec<Regex>, String> {
            texts.iter().map(|text| pattern::compile(text)).collect()
        };
        let mut allowed_keys = keys(&settings.allowed_keys);
        // A second processor of this kind leaves what the first one told.
        for names in [&RECORD, &BODY] {
            allowed_keys.extend(names.keys().map(|key| key.as_bytes().to_vec()));
        }
        Ok(Rules {
            allowed_keys: (!settings.allows_all_keys).then_some(allowed_keys),
            ignored_keys: keys(&settings.ignored_keys),
            ignored_key_patterns: compile(&settings.ignored_key_patterns)?,
            blocked_key_patterns: compile(&settings.blocked_key_patterns)?,
            blocked_values: compile(&settings.blocked_values)?,
            allowed_values: compile(&settings.allowed_values)?,
            reads_all_types: settings.reads_all_types,
            mask: Mask::new(&settings.mask)?,
            summary: settings.summary,
        })
    }

    /// Decides by the key of an attribute.
    pub fn key(&self, key: &[u8]) -> KeyFate {
        let matches = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(key));
        if self.ignored_keys.contains(key) || matches(&self.ignored_key_patterns) {
            return KeyFate::Ignored;
        }
        if matches!(&self.allowed_keys, Some(allowed) if !allowed.contains(key)) {
            return KeyFate::Removed;
        }
        if matches(&self.blocked_key_patterns) {
            KeyFate::Masked
        } else {
            KeyFate::Allowed
        }
    }

    /// Decision by the value of an attribute.
    ///
    /// # Errors
    /// Masking makes too much.
    pub fn value(&self, text: &[u8], masked: &MaskedBytes) -> Result<ValueFate, Malformed> {
        if self.allows(text) {
            return Ok(ValueFate::Allowed);
        }
        let mut now = Cow::Borrowed(text);
        for regex in &self.blocked_values {
            if let Some(next) = self.mask.matches(regex, &now, masked)? {
                now = Cow::Owned(next);
            }
        }
        Ok(match now {
            Cow::Owned(now) if now != text => ValueFate::Masked(now),
            _ => ValueFate::Same,
        })
    }

    fn allows(&self, text: &[u8]) -> bool {
        self.allowed_values
            .iter()
            .any(|pattern| pattern.is_match(text))
    }

    /// A whole value masked; of one that is no text, none of it is read.
    ///
    /// # Errors
    /// Masking makes too much.
    pub fn masked_whole(&self, text: &[u8], masked: &MaskedBytes) -> Result<Vec<u8>, Malformed> {
        self.mask.whole(text, masked)
    }

    /// Redacts attributes.
    ///
    /// # Errors
    /// Masking makes too much.
    pub fn attributes(
        &self,
        list: &mut List<'_>,
        found: &mut Found,
        masked: &MaskedBytes,
    ) -> Result<(), Malformed> {
        for place in list.places() {
            let Some(key) = list.name(place) else {
                continue;
            };
            let of_key = self.key(key);
            match of_key {
                KeyFate::Ignored => found.note(Fate::Ignored, key),
                KeyFate::Removed => {
                    found.note(Fate::Redacted, key);
                    list.remove(place);
                }
                KeyFate::Masked | KeyFate::Allowed => {
                    let text = self.text(list.any(place));
                    let fate = match of_key {
                        KeyFate::Masked if !self.allows(&text) => {
                            ValueFate::Masked(self.masked_whole(&text, masked)?)
                        }
                        _ => self.value(&text, masked)?,
                    };
                    match fate {
                        ValueFate::Allowed => found.note(Fate::Allowed, key),
                        ValueFate::Masked(text) => {
                            found.note(Fate::Masked, key);
                            let value = list.make_text(&text);
                            list.set(place, value);
                        }
                        ValueFate::Same => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The text of an attribute that is looked at; as in the Collector an empty one where other
    /// types are not looked at.
    fn text<'v>(&self, value: Any<'v>) -> Cow<'v, [u8]> {
        match value {
            Any::Text(text) => Cow::Borrowed(text),
            other if self.reads_all_types => Cow::Owned(text_of(other)),
            _ => Cow::Borrowed(b""),
        }
    }
}
