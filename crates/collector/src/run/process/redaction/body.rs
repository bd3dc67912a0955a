//! The bodies of log records: texts, and maps and lists of any depth.

use otlp::scan::{Any, Malformed, attribute};
use otlp::write;

use super::super::edit::text::text_of;
use super::super::edit::{FIRST, Outcome, edit_fields, encoded_text, replace_field};
use super::mask::MaskedBytes;
use super::rules::{KeyFate, Rules, ValueFate};
use super::summary::{Fate, Found};

/// `AnyValue.array_value`, `AnyValue.kvlist_value`
const ARRAY: u32 = 5;
const MAP: u32 = 6;
/// `KeyValue.value`
const VALUE: u32 = 2;

/// Redacts a body: an `AnyValue` that was checked, empty where there is none. `None`: it stays as it
/// came.
///
/// # Errors
/// Masking makes too much.
pub fn redact(
    rules: &Rules,
    body: &[u8],
    found: &mut Found,
    masked: &MaskedBytes,
) -> Result<Option<Vec<u8>>, Malformed> {
    let mut redacting = Redacting {
        rules,
        found,
        masked,
        path: Vec::new(),
    };
    let mut out = Vec::new();
    let outcome = match Any::read(body) {
        value @ (Any::Map(_) | Any::Array(_)) => redacting.value(value, Level::Top, &mut out)?,
        value => {
            // As in the Collector, a whole body that is allowed is not told.
            match rules.value(&text_of(value), redacting.masked)? {
                ValueFate::Allowed | ValueFate::Same => Outcome::Same,
                ValueFate::Masked(text) => {
                    redacting.found.note(Fate::Masked, b"body");
                    encoded_text(&text, &mut out);
                    Outcome::Changed
                }
            }
        }
    };
    Ok((outcome == Outcome::Changed).then_some(out))
}

/// Position of a value in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The body itself.
    Top,
    /// A value within the body.
    Inner,
}

struct Redacting<'r> {
    rules: &'r Rules,
    found: &'r mut Found,
    masked: &'r MaskedBytes,
    /// The keys and indexes of the value that is looked at, as the summary names it.
    path: Vec<u8>,
}

impl Redacting<'_> {
    /// Writes what a value becomes. The depth of values was checked.
    fn value(
        &mut self,
        value: Any<'_>,
        level: Level,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        match value {
            Any::Map(map) => within(out, MAP, |out| {
                edit_fields(map, FIRST, out, &mut |entry, out| {
                    let (key, value) = attribute(entry)?;
                    let before = self.enter(key, level);
                    let outcome = self.entry(entry, key, Any::read(value), out);
                    self.path.truncate(before);
                    outcome
                })
            }),
            Any::Array(array) => within(out, ARRAY, |out| {
                let mut index = 0_usize;
                edit_fields(array, FIRST, out, &mut |item, out| {
                    let before = self.enter(format!("[{index}]").as_bytes(), level);
                    index += 1;
                    let outcome = self.value(Any::read(item), Level::Inner, out);
                    self.path.truncate(before);
                    outcome
                })
            }),
            value => {
                let fate = self.rules.value(&text_of(value), self.masked)?;
                match fate {
                    ValueFate::Allowed => self.found.note(Fate::Allowed, &self.path),
                    ValueFate::Same => {}
                    ValueFate::Masked(text) => {
                        self.found.note(Fate::Masked, &self.path);
                        encoded_text(&text, out);
                        return Ok(Outcome::Changed);
                    }
                }
                Ok(Outcome::Same)
            }
        }
    }

    /// Writes what an entry of a map becomes.
    fn entry(
        &mut self,
        entry: &[u8],
        key: &[u8],
        value: Any<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let mut made = Vec::new();
        match self.rules.key(key) {
            KeyFate::Ignored => {
                self.found.note(Fate::Ignored, &self.path);
                return Ok(Outcome::Same);
            }
            KeyFate::Removed => {
                self.found.note(Fate::Redacted, &self.path);
                return Ok(Outcome::Gone);
            }
            KeyFate::Masked => {
                self.found.note(Fate::Masked, &self.path);
                let text = match value {
                    Any::Text(text) => text,
                    _ => b"",
                };
                encoded_text(&self.rules.masked_whole(text, self.masked)?, &mut made);
            }
            KeyFate::Allowed => {
                if self.value(value, Level::Inner, &mut made)? == Outcome::Same {
                    return Ok(Outcome::Same);
                }
            }
        }
        replace_field(entry, VALUE, out, |out| write::bytes(out, VALUE, &made));
        Ok(Outcome::Changed)
    }

    /// Adds a key or an index to the path; gives the length that the path had.
    fn enter(&mut self, part: &[u8], level: Level) -> usize {
        let before = self.path.len();
        if level == Level::Inner {
            self.path.push(b'.');
        }
        self.path.extend_from_slice(part);
        before
    }
}

/// Writes a list of values as a field. A list that loses all of its entries is an empty one.
fn within(
    out: &mut Vec<u8>,
    number: u32,
    edit: impl FnOnce(&mut Vec<u8>) -> Result<Outcome, Malformed>,
) -> Result<Outcome, Malformed> {
    let mut outcome = Ok(Outcome::Same);
    write::message(out, number, |out| outcome = edit(out));
    Ok(match outcome? {
        Outcome::Same => Outcome::Same,
        Outcome::Changed | Outcome::Gone => Outcome::Changed,
    })
}
