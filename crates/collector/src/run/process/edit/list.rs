//! The attributes of one record, being changed.

use otlp::scan::{Any, Malformed, attribute};
use otlp::write;

use super::Outcome;
use crate::config::components::processors::action::AttributeValue;
use otlp::wire::{Fields, Value};

/// The attributes of a record. One is kept for all records of a request, with its memory.
#[derive(Debug, Default)]
pub struct List<'a> {
    /// In the order of the record; those that came stand before those that are new.
    slots: Vec<Slot<'a>>,
    /// Values that were made here.
    made: Vec<u8>,
    came: usize,
    changed: bool,
}

/// A value: a message `AnyValue`.
#[derive(Clone, Copy, Debug)]
pub enum Val<'a> {
    /// Of the record, or of the settings.
    Whole(&'a [u8]),
    /// Of the list: from here to there.
    Made(usize, usize),
}

#[derive(Clone, Copy, Debug)]
struct Slot<'a> {
    key: Val<'a>,
    /// It has another name than it came with.
    renamed: bool,
    value: Val<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Same,
    Changed,
    Gone,
    New,
}

impl<'a> List<'a> {
    /// Reads the attributes of a record, which stand under this key.
    ///
    /// # Errors
    /// The record is malformed, or an attribute is.
    pub fn read(&mut self, record: &'a [u8], key: u32) -> Result<(), Malformed> {
        self.slots.clear();
        self.made.clear();
        self.changed = false;
        for field in Fields::new(record) {
            let field = field?;
            match field.value {
                Value::Bytes(message) if field.key == key => {
                    let (name, value) = attribute(message)?;
                    self.slots.push(Slot {
                        key: Val::Whole(name),
                        renamed: false,
                        value: Val::Whole(value),
                        state: State::Same,
                    });
                }
                _ if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
                _ => {}
            }
        }
        self.came = self.slots.len();
        Ok(())
    }

    /// The first attribute with this name, as the Collector looks it up.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let there =
            |slot: &Slot<'a>| !matches!(slot.state, State::Gone) && self.bytes(slot.key) == name;
        self.slots.iter().position(there)
    }

    /// Places of attributes, whether they are still there or not.
    #[must_use]
    pub fn places(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }

    /// The name of an attribute that is still there.
    #[must_use]
    pub fn name(&self, place: usize) -> Option<&[u8]> {
        let slot = self.slots.get(place)?;
        (!matches!(slot.state, State::Gone)).then(|| self.bytes(slot.key))
    }

    /// The value at a place that [`List::find`] told.
    #[must_use]
    pub fn val(&self, place: usize) -> Val<'a> {
        let slot = self.slots.get(place);
        slot.map_or(Val::Whole(b""), |slot| slot.value)
    }

    /// The same as the bytes of an `AnyValue`.
    #[must_use]
    pub fn any_bytes(&self, place: usize) -> &[u8] {
        self.bytes(self.val(place))
    }

    /// The same, read.
    #[must_use]
    pub fn any(&self, place: usize) -> Any<'_> {
        Any::read(self.bytes(self.val(place)))
    }

    /// The value of the first attribute with this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Any<'_>> {
        self.find(name).map(|place| self.any(place))
    }

    fn bytes(&self, value: Val<'a>) -> &[u8] {
        match value {
            Val::Whole(bytes) => bytes,
            Val::Made(from, to) => self.made.get(from..to).unwrap_or_default(),
        }
    }

    /// A value that `write` appends.
    pub fn make(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Val<'a> {
        let from = self.made.len();
        write(&mut self.made);
        Val::Made(from, self.made.len())
    }

    /// A text as a value.
    pub fn make_text(&mut self, text: &[u8]) -> Val<'a> {
        self.make(|out| encoded_text(text, out))
    }

    /// Another value for the attribute at a place.
    pub fn set(&mut self, place: usize, value: Val<'a>) {
        if self.bytes(self.val(place)) == self.bytes(value) {
            return;
        }
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        if let State::Same = slot.state {
            slot.state = State::Changed;
        }
        slot.value = value;
        self.changed = true;
    }

    /// Sets the first attribute with this name, or adds one.
    pub fn put(&mut self, name: &[u8], value: Val<'a>) {
        if let Some(place) = self.find(name) {
            return self.set(place, value);
        }
        let key = self.make(|out| out.extend_from_slice(name));
        self.slots.push(Slot {
            key,
            renamed: false,
            value,
            state: State::New,
        });
        self.changed = true;
    }

    /// Another name for the attribute at a place.
    pub fn rename(&mut self, place: usize, name: &[u8]) {
        if self.name(place).is_none_or(|old| old == name) {
            return;
        }
        let key = self.make(|out| out.extend_from_slice(name));
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        if let State::Same = slot.state {
            slot.state = State::Changed;
        }
        (slot.key, slot.renamed) = (key, true);
        self.changed = true;
    }

    /// Takes the attribute at a place out.
    pub fn remove(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.state = State::Gone;
            self.changed = true;
        }
    }

    /// Writes the record with the attributes as they are now, where they are not as they came.
    pub fn write(&self, record: &'a [u8], key: u32, out: &mut Vec<u8>) -> Outcome {
        if !self.changed {
            return Outcome::Same;
        }
        let start = out.len();
        self.write_fields(record, key, out);
        // Something may have been done and undone.
        if out.get(start..) == Some(record) {
            Outcome::Same
        } else {
            Outcome::Changed
        }
    }

    fn write_fields(&self, record: &'a [u8], key: u32, out: &mut Vec<u8>) {
        let (came, new) = self.slots.split_at(self.came);
        let mut came_slots = came.iter();
        let mut left = came.len();
        for field in Fields::new(record).map_while(Result::ok) {
            let Value::Bytes(message) = field.value else {
                out.extend_from_slice(field.whole);
                continue;
            };
            let slot = (field.key == key).then(|| came_slots.next()).flatten();
            match slot.map(|slot| (slot, slot.state)) {
                None | Some((_, State::Same)) => out.extend_from_slice(field.whole),
                Some((slot, State::Changed)) => {
                    write::message(out, key >> 3, |out| self.write_changed(slot, message, out));
                }
                Some((_, State::Gone | State::New)) => {}
            }
            if slot.is_some() {
                left -= 1;
                if left == 0 {
                    self.write_new(new, key, out);
                }
            }
        }
        if came.is_empty() {
            self.write_new(new, key, out);
        }
    }

    /// A `KeyValue` with another value: its name, and what else it has, stay.
    fn write_changed(&self, slot: &Slot<'a>, message: &[u8], out: &mut Vec<u8>) {
        if slot.renamed {
            write::bytes(out, 1, self.bytes(slot.key));
        }
        for field in Fields::new(message).map_while(Result::ok) {
            match field.key >> 3 {
                2 => {}
                1 if slot.renamed => {}
                _ => out.extend_from_slice(field.whole),
            }
        }
        write::bytes(out, 2, self.bytes(slot.value));
    }

    fn write_new(&self, new: &[Slot<'a>], key: u32, out: &mut Vec<u8>) {
        let new = new.iter().filter(|slot| matches!(slot.state, State::New));
        for slot in new {
            write::message(out, key >> 3, |out| {
                write::bytes(out, 1, self.bytes(slot.key));
                write::bytes(out, 2, self.bytes(slot.value));
            });
        }
    }
}

/// Appends a value of the settings as an `AnyValue`.
pub fn encode(value: &AttributeValue, out: &mut Vec<u8>) {
    match value {
        AttributeValue::Text(text) => encoded_text(text.as_bytes(), out),
        AttributeValue::Bool(value) => write::uint(out, 2, u64::from(*value)),
        AttributeValue::Int(value) => write::uint(out, 3, *value as u64),
        AttributeValue::Double(value) => write::double(out, 4, *value),
        AttributeValue::List(items) => write::message(out, 5, |out| {
            for item in items {
                write::message(out, 1, |out| encode(item, out));
            }
        }),
        AttributeValue::Map(entries) => write::message(out, 6, |out| {
            for (key, value) in entries {
                write::key_value(out, 1, key.as_bytes(), |out| encode(value, out));
            }
        }),
    }
}

/// Appends a text as an `AnyValue`.
pub fn encoded_text(text: &[u8], out: &mut Vec<u8>) {
    write::bytes(out, 1, text);
}
