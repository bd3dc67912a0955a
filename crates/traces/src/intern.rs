//! Texts that many traces share: each is stored once, while a trace refers to it.

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of an entry in memory in addition to its text: its slot, its place in the index and its
/// counts.
pub(crate) const ENTRY_BYTES: u64 = 96;

/// A table of reference-counted texts, which have numbers.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashMap<Arc<[u8]>, u32>,
    bytes: u64,
}

#[derive(Debug)]
struct Slot {
    /// None: the slot is free.
    text: Option<Arc<[u8]>>,
    holders: u32,
}

impl Interned {
    /// The number of a stored text.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.index.get(text).copied()
    }

    /// The number of a text; adds a reference.
    pub fn hold(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.find(text) {
            self.slots[number as usize].holders += 1;
            return number;
        }
        let text: Arc<[u8]> = text.into();
        self.bytes += text.len() as u64 + ENTRY_BYTES;
        let slot = Slot {
            text: Some(Arc::clone(&text)),
            holders: 1,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(text, number);
        number
    }

    /// Removes a reference; removing the last one drops the text.
    pub fn release(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize) else {
            debug_assert!(false, "what is released was held");
            return;
        };
        slot.holders = slot.holders.saturating_sub(1);
        if slot.holders == 0
            && let Some(text) = slot.text.take()
        {
            self.bytes -= text.len() as u64 + ENTRY_BYTES;
            self.index.remove(&text);
            self.free.push(number);
        }
    }

    /// The text with a number; empty if there is none.
    pub fn text(&self, number: u32) -> &[u8] {
        let slot = self.slots.get(number as usize);
        slot.and_then(|slot| slot.text.as_deref())
            .unwrap_or_default()
    }

    /// All texts and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(number, slot)| Some((number, slot.text.as_deref()?)))
    }

    /// All numbers are below this.
    pub fn end(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of references of each text, after a check of all counts.
    ///
    /// # Panics
    /// A count is wrong.
    pub fn holders(&self) -> HashMap<u32, u32> {
        let counted: u64 = self.iter().map(|(_, t)| t.len() as u64 + ENTRY_BYTES).sum();
        assert_eq!(counted, self.bytes);
        let held = self.iter().map(|(number, text)| {
            assert_eq!(self.find(text), Some(number));
            (number, self.slots[number as usize].holders)
        });
        held.collect()
    }
}

/// Joins texts into `out`, so that [`part`] finds each again.
pub(crate) fn join(parts: &[&[u8]], out: &mut Vec<u8>) {
    out.clear();
    for part in parts {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
}

/// One of the joined texts; empty if there is none.
pub(crate) fn part(mut joined: &[u8], at: usize) -> &[u8] {
    for left in (0..=at).rev() {
        let Some((len, rest)) = joined.split_first_chunk::<4>() else {
            break;
        };
        let Some((part, rest)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            break;
        };
        if left == 0 {
            return part;
        }
        joined = rest;
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_with_its_last_holder() {
        let mut texts = Interned::default();
        let (a, b) = (texts.hold(b"a"), texts.hold(b"b"));
        assert_eq!((texts.hold(b"a"), texts.find(b"b")), (a, Some(b)));
        texts.release(a);
        assert_eq!(
            (texts.text(a), texts.bytes()),
            (&b"a"[..], 2 + 2 * ENTRY_BYTES)
        );
        texts.release(a);
        assert_eq!((texts.text(a), texts.find(b"a")), (&b""[..], None));
        assert_eq!(texts.hold(b"c"), a, "its number is free");
        assert_eq!(texts.iter().count(), 2);
    }

    #[test]
    fn parts_are_found_again() {
        let mut out = Vec::new();
        join(&[b"one", b"", b"three"], &mut out);
        let parts = [0, 1, 2, 3].map(|at| part(&out, at));
        assert_eq!(parts, [&b"one"[..], b"", b"three", b""]);
        assert_eq!(part(&out[..5], 0), b"");
    }
}
