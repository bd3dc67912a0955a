//! What is captured for the logs: the slots of a stream, whose memory the next request uses again, and what the converters
//! `capture-req` and `capture-res` keep until the stream's owner takes it over.

use std::cell::{OnceCell, RefCell};

use crate::{Bytes, bytes::Buffer};

/// A place of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSlot {
    /// Of the response; else of the request.
    pub of_response: bool,
    /// Its number among those.
    pub index: usize,
}

/// A text that is captured, or none yet.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    is_set: bool,
    text: Vec<u8>,
}

impl Capture {
    /// The text, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<&[u8]> {
        self.is_set.then_some(&self.text)
    }

    /// Takes a text in the place of an earlier one.
    pub fn set(&mut self, text: &[u8]) {
        self.is_set = true;
        self.text.clear();
        self.text.extend_from_slice(text);
    }

    /// Nothing is captured any more. The memory is kept.
    pub fn clear(&mut self) {
        self.is_set = false;
    }
}

/// The captures of a request or of a response, by the numbers of their slots.
#[derive(Clone, Debug, Default)]
pub struct CaptureSlots {
    /// Those beyond `len` are memory for later.
    slots: Vec<Capture>,
    len: usize,
}

impl CaptureSlots {
    /// Whether there is no slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text of a slot, if something was captured there.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.slots[..self.len].get(index)?.get()
    }

    /// Every slot in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.slots[..self.len].iter().map(Capture::get)
    }

    /// One slot more, with what it captured.
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

    /// Puts a text in a slot, in the place of an earlier one. The slots before it are made where they are missing.
    pub fn set(&mut self, index: usize, text: &[u8]) {
        while self.len <= index {
            self.push(None);
        }
        self.slots[index].set(text);
    }

    /// No slot is left. Their memory is kept.
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

/// Captures that wait. Bounded by the number of slots that the frontend has.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Made at the first use: hardly any stream has one.
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
    /// Puts a text in the place of an earlier one of that slot.
    pub(crate) fn put(&self, slot: CaptureSlot, text: &[u8]) {
        let mut buffer = Bytes::buffer();
        buffer.extend(text);
        let mut waiting = self.waiting.get_or_init(Box::default).borrow_mut();
        waiting.retain(|(known, _)| *known != slot);
        waiting.push((slot, Text(buffer)));
    }

    /// The text that waits for a slot.
    pub(crate) fn get(&self, slot: CaptureSlot) -> Option<Bytes<'static>> {
        let waiting = self.waiting.get()?.borrow();
        let (_, text) = waiting.iter().find(|(known, _)| *known == slot)?;
        Some(text.0.clone().into())
    }

    /// Gives every text to `take`.
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
