//! Messages as statements leave them.

use std::borrow::Cow;

use otlp::write;

use super::super::super::edit::{Outcome, SCHEMA_URL, replace_field};

/// A message as it is now.
#[derive(Debug, Default)]
pub struct Held<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub changed: bool,
}

impl<'a> Held<'a> {
    pub fn new(bytes: Cow<'a, [u8]>) -> Held<'a> {
        Held {
            bytes,
            changed: false,
        }
    }

    /// What a record becomes, to be written into `out`.
    pub fn write(&self, out: &mut Vec<u8>) -> Outcome {
        if !self.changed {
            return Outcome::Same;
        }
        out.extend_from_slice(&self.bytes);
        Outcome::Changed
    }

    /// If the held value changed, replaces the field `number` of the current message with it. The
    /// current message is `out[start..]`, or `message` if nothing is written yet. An empty
    /// `schema_url` is left out.
    pub fn write_into(
        &self,
        number: u32,
        message: &[u8],
        outcome: Outcome,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if !self.changed {
            return outcome;
        }
        let written = out.split_off(start);
        let base = match outcome {
            Outcome::Changed => &written,
            Outcome::Same | Outcome::Gone => message,
        };
        replace_field(base, number, out, |out| {
            if number != SCHEMA_URL || !self.bytes.is_empty() {
                write::bytes(out, number, &self.bytes);
            }
        });
        Outcome::Changed
    }
}
