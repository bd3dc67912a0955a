//! The dynamic table (RFC 7541 §2.3.2, §4), the same for a decoder and an encoder.
//!
//! Its fields lie one after the other in a buffer. New fields are appended. The evicted part at the
//! front is cut off once it is half of the buffer. So adding a field takes amortised linear time,
//! and each field can be copied in one piece.

use std::collections::VecDeque;

use super::Kind;
use crate::Name;

/// What an entry adds to the size of its name and value (RFC 7541 §4.1).
pub(crate) const ENTRY_OVERHEAD_BYTES: usize = 32;

/// The bytes of `: ` and CRLF.
pub(crate) const LINE_EXTRA_BYTES: usize = 4;

/// A field of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// How many bytes were appended before it since the start, modulo 2^32.
    at: u32,
    pub name_len: u32,
    pub value_len: u32,
    pub id: Name,
    pub kind: Kind,
    pub is_bad: bool,
}

/// The table. It has no memory until a field is added.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Each field as `name: value CRLF`.
    bytes: Vec<u8>,
    /// How many bytes were cut off at the front, modulo 2^32.
    cut: u32,
    /// The oldest first.
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    added: u32,
}

impl Entry {
    /// The entry's size as the table counts it.
    pub fn size(&self) -> usize {
        (self.name_len + self.value_len) as usize + ENTRY_OVERHEAD_BYTES
    }

    fn line_len(&self) -> usize {
        (self.name_len + self.value_len) as usize + LINE_EXTRA_BYTES
    }
}

impl Table {
    pub fn new(size_max: usize) -> Table {
        Table {
            size_max,
            ..Table::default()
        }
    }

    /// The maximum size of the table.
    pub fn size_max(&self) -> usize {
        self.size_max
    }

    /// The size of all entries.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many fields were added since the start, modulo 2^32.
    pub fn added(&self) -> u32 {
        self.added
    }

    /// Sets the maximum size, and evicts what exceeds it.
    pub fn set_size_max(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(0);
    }

    /// The entry with this age: 0 is the newest.
    #[inline]
    pub fn get(&self, age: usize) -> Option<&Entry> {
        let at = self.entries.len().checked_sub(age + 1)?;
        self.entries.get(at)
    }

    /// An entry as `name: value CRLF`.
    #[inline]
    pub fn line(&self, entry: &Entry) -> &[u8] {
        let at = entry.at.wrapping_sub(self.cut) as usize;
        &self.bytes[at..at + entry.line_len()]
    }

    /// Adds the field with this line. Evicts older fields to make room; if the field is larger than
    /// the table, all are evicted and it is not added (RFC 7541 §4.4).
    pub fn add(&mut self, line: &[u8], name_len: usize, id: Name, kind: Kind, is_bad: bool) {
        let mut entry = Entry {
            at: 0,
            name_len: name_len as u32,
            value_len: (line.len() - LINE_EXTRA_BYTES - name_len) as u32,
            id,
            kind,
            is_bad,
        };
        self.evict(entry.size());
        if entry.size() > self.size_max {
            return;
        }
        self.cut_front(line.len());
        entry.at = self.cut.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(line);
        self.size += entry.size();
        self.added = self.added.wrapping_add(1);
        self.entries.push_back(entry);
    }

    /// Evicts fields to make room for an entry of this size.
    fn evict(&mut self, more: usize) {
        while self.size + more > self.size_max {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.size -= entry.size();
        }
    }

    /// Cuts off the evicted part, if the buffer would have to grow and at least half of it is free.
    fn cut_front(&mut self, more: usize) {
        let len = self.bytes.len();
        let live = self
            .entries
            .front()
            .map_or(len, |entry| entry.at.wrapping_sub(self.cut) as usize);
        if len + more > self.bytes.capacity() && live >= len / 2 && live > 0 {
            self.bytes.drain(..live);
            self.cut = self.cut.wrapping_add(live as u32);
        }
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        self.bytes.shrink_to_fit();
        self.entries.shrink_to_fit();
    }
}
