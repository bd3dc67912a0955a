//! What the converters `capture-req` and `capture-res` keep for the logs, until the stream's owner takes it over.

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
