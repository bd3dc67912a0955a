//! Captures for the logs: the slots of a stream, whose memory the next request reuses, and the
//! captures of the converters `capture-req` and `capture-res`, which are kept until the stream's
//! owner takes them.

use std::cell::{OnceCell, RefCell};

use crate::{Bytes, bytes::Buffer};

/// Identifies a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSlot {
    /// Whether it belongs to the response; otherwise to the request.
    pub of_response: bool,
    /// Its index among those.
    pub index: usize,
}

/// A captured text, or none yet.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    is_set: bool,
    text: Vec<u8>,
}

impl Capture {
    /// The captured text.
    #[must_use]
    pub fn get(&self) -> Option<&[u8]> {
        self.is_set.then_some(&self.text)
    }

    /// Stores a text; replaces an earlier one.
    pub fn set(&mut self, text: &[u8]) {
        self.is_set = true;
        self.text.clear();
        self.text.extend_from_slice(text);
    }

    /// Removes the text and keeps the memory.
    pub fn clear(&mut self) {
        self.is_set = false;
    }
}

/// The captures of a request or of a response, by the numbers of their slots.
#[derive(Clone, Debug, Default)]
pub struct CaptureSlots {
    /// Slots beyond `len` are memory for later use.
    slots: Vec<Capture>,
    len: usize,
}

impl CaptureSlots {
    /// Whether there is no slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text of a slot, if one was captured.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.slots[..self.len].get(index)?.get()
    }

    /// Every slot in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.slots[..self.len].iter().map(Capture::get)
    }

    /// Adds a slot with its captured text.
    pub fn push(&mut self, text: Option<&[u8]>) {
        if self.slots.len() == self.len {
            self.slots.push(Capture::default());
        }
        let slot = &mut self.slots[self.len];
        self.len += 1;
        match text {
            Some(text) => slot.set(text),
            None => slot.clear(),
        }
    }

    /// Stores a text in a slot; replaces an earlier one. Creates missing slots before it.
    pub fn set(&mut self, index: usize, text: &[u8]) {
        while self.len <= index {
            self.push(None);
        }
        self.slots[index].set(text);
    }

    /// Removes all slots and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl<'a> FromIterator<Option<&'a [u8]>> for CaptureSlots {
    fn from_iter<I: IntoIterator<Item = Option<&'a [u8]>>>(texts: I) -> Self {
        let mut slots = CaptureSlots::default();
        texts.into_iter().for_each(|text| slots.push(text));
        slots
    }
}

/// Captures that are not stored in their slots yet. At most one per slot of the frontend.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Created at the first use: hardly any stream needs it.
    waiting: OnceCell<Box<Waiting>>,
}

type Waiting = RefCell<Vec<(CaptureSlot, Text)>>;

/// A captured text.
#[derive(Clone, Default)]
struct Text(Buffer);

impl std::fmt::Debug for Text {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}

impl Captured {
    /// Stores a text for a slot; replaces an earlier one.
    pub(crate) fn put(&self, slot: CaptureSlot, text: &[u8]) {
        let mut buffer = Bytes::buffer();
        buffer.extend(text);
        let mut waiting = self.waiting.get_or_init(Box::default).borrow_mut();
        waiting.retain(|(known, _)| *known != slot);
        waiting.push((slot, Text(buffer)));
    }

    /// The pending text of a slot.
    pub(crate) fn get(&self, slot: CaptureSlot) -> Option<Bytes<'static>> {
        let waiting = self.waiting.get()?.borrow();
        let (_, text) = waiting.iter().find(|(known, _)| *known == slot)?;
        Some(text.0.clone().into())
    }

    /// Passes every pending text to `take`.
    pub(crate) fn settle(&mut self, mut take: impl FnMut(CaptureSlot, &[u8])) {
        if let Some(waiting) = self.waiting.get_mut() {
            for (slot, text) in waiting.get_mut().drain(..) {
                take(slot, &text.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_begin_anew_in_the_same_memory() {
        let mut slots: CaptureSlots = [Some(&b"one"[..]), None].into_iter().collect();
        slots.set(3, b"four");
        slots.set(0, b"1");
        let all: Vec<_> = slots.iter().collect();
        assert_eq!(all, [Some(&b"1"[..]), None, None, Some(b"four")]);
        slots.clear();
        assert!(slots.is_empty() && slots.get(0).is_none());
        slots.set(1, b"");
        assert_eq!(slots.iter().collect::<Vec<_>>(), [None, Some(&b""[..])]);
        assert_eq!(slots.get(3), None);
    }
}
