//! Encodes field sections, and gives instructions to the peer's decoder (RFC 9204 §2.1, §4.3, §4.5).
//!
//! As in HPACK, a field enters the dynamic table the second time that it is sent. A section refers
//! only to entries that the peer has acknowledged, so it never has to wait at the peer. An entry
//! that a section in flight refers to is not evicted. An entry that will be evicted soon is inserted
//! again instead of referred to.

mod fields;

use std::collections::VecDeque;

use super::{Bad, integer};
use crate::Name;
use crate::h2::hpack::table::{ENTRY_OVERHEAD_BYTES, Table};
use crate::h2::hpack::{Kind, hash, huffman};

/// The number of slots of the cache that finds fields in the table; see [`crate::h2::hpack`].
const SLOTS: usize = 128;

/// The most sections with references that the peer has not acknowledged. Further sections refer to
/// nothing.
pub(super) const SECTIONS_MAX: usize = 256;

/// The encoder of a connection.
#[derive(Debug)]
pub(in crate::h3) struct Encoder {
    /// None until a field was sent twice, and while the table is empty.
    dynamic: Option<Box<Dynamic>>,
    /// The largest table that the peer permits; sections count in units of it.
    capacity_max: u64,
    /// The table that we use.
    capacity: usize,
    /// The peer's table has the capacity that we use.
    has_capacity: bool,
    /// How many entries have been inserted into the table on this connection. Evicted ones count too.
    inserted: u64,
    /// How many insertions the peer has acknowledged.
    pub(super) known: u64,
    /// The sections with references that are not acknowledged, in the order in which they were sent.
    sections: VecDeque<Section>,
    /// The section that is being encoded refers to entries below this absolute index, which is its
    /// base: those that the peer has acknowledged.
    base: u64,
    /// What the section that is being encoded refers to.
    current: References,
    /// The section that is being encoded may insert entries.
    may_insert: bool,
    /// Instructions that were not sent yet.
    instructions: Vec<u8>,
    /// How many sections with references were acknowledged.
    #[cfg(test)]
    pub acknowledged: u64,
    /// Sections refer to entries that the peer has not acknowledged: they may have to wait.
    #[cfg(test)]
    pub is_bold: bool,
}

/// The table and the cache that finds its fields.
#[derive(Debug)]
struct Dynamic {
    table: Table,
    /// By the hash of name and value: the absolute index of the field plus 1, 0 for none.
    fields: [u64; SLOTS],
    /// By the same hash: other hash bits of the field that was last sent without the table.
    seen: [u16; SLOTS],
}

/// A section that refers to the table.
#[derive(Clone, Copy, Debug)]
struct Section {
    stream: u64,
    references: References,
}

/// The entries that a section refers to.
#[derive(Clone, Copy, Debug)]
struct References {
    /// The lowest absolute index.
    first: u64,
    /// The highest absolute index plus 1: the Required Insert Count; 0 for none.
    required: u64,
}

const NO_REFERENCES: References = References {
    first: u64::MAX,
    required: 0,
};

impl Encoder {
    /// An encoder without a table.
    pub fn new() -> Encoder {
        Encoder {
            dynamic: None,
            capacity_max: 0,
            capacity: 0,
            has_capacity: false,
            inserted: 0,
            known: 0,
            sections: VecDeque::new(),
            base: 0,
            current: NO_REFERENCES,
            may_insert: false,
            instructions: Vec::new(),
            #[cfg(test)]
            acknowledged: 0,
            #[cfg(test)]
            is_bold: false,
        }
    }

    /// The peer permits a table of `capacity_max` bytes, of which we use at most `most`. Called once
    /// at most.
    pub fn set_capacity(&mut self, capacity_max: u64, most: usize) {
        self.capacity_max = capacity_max;
        self.capacity = usize::try_from(capacity_max).map_or(most, |bytes| bytes.min(most));
    }

    /// Frees the memory of the table, unless sections refer to it or the peer does not have all of
    /// it. Its entries are never referred to again; the next insertion evicts them.
    pub fn release_spare(&mut self) {
        if self.sections.is_empty() && self.known == self.inserted {
            self.dynamic = None;
            self.has_capacity = false;
            self.sections = VecDeque::new();
        }
        self.instructions.shrink_to_fit();
    }

    /// Begins a section. `may_insert`: the table may be changed.
    pub fn begin(&mut self, may_insert: bool) {
        self.current = NO_REFERENCES;
        self.may_insert = may_insert;
        self.base = self.known;
        #[cfg(test)]
        if self.is_bold {
            self.base = self.inserted;
        }
    }

    /// Ends the section, which is sent on this stream. Appends its prefix (RFC 9204 §4.5.1).
    pub fn finish(&mut self, stream: u64, prefix: &mut Vec<u8>) {
        let references = std::mem::replace(&mut self.current, NO_REFERENCES);
        if references.required == 0 {
            prefix.extend_from_slice(&[0, 0]);
            return;
        }
        self.sections.push_back(Section { stream, references });
        let range = 2 * (self.capacity_max / ENTRY_OVERHEAD_BYTES as u64);
        integer::write(0, 8, references.required % range + 1, prefix);
        integer::write(0, 7, self.base - references.required, prefix);
    }

    /// The bytes for the encoder stream. Send them before the field section that was encoded last,
    /// which may refer to the entries that they insert.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    // ---- instructions of the peer's decoder

    /// Follows the instruction at the front of `bytes` (RFC 9204 §4.4). Returns its size; none if it
    /// is not complete.
    pub fn acknowledgement(&mut self, bytes: &[u8]) -> Result<Option<usize>, Bad> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let mut at = 0;
        if first & 0x80 != 0 {
            let Some(stream) = integer::read(bytes, &mut at, 7)? else {
                return Ok(None);
            };
            let place = self
                .sections
                .iter()
                .position(|section| section.stream == stream);
            let section = place.and_then(|place| self.sections.remove(place));
            let section = section.ok_or(Bad("an acknowledgement of no section"))?;
            self.known = self.known.max(section.references.required);
            #[cfg(test)]
            {
                self.acknowledged += 1;
            }
        } else if first & 0x40 != 0 {
            let Some(stream) = integer::read(bytes, &mut at, 6)? else {
                return Ok(None);
            };
            self.sections.retain(|section| section.stream != stream);
        } else {
            let Some(more) = integer::read(bytes, &mut at, 6)? else {
                return Ok(None);
            };
            if more == 0 || more > self.inserted - self.known {
                return Err(Bad("a wrong Insert Count Increment"));
            }
            self.known += more;
        }
        Ok(Some(at))
    }

    // ---- fields

    /// Encodes a field that may be in the dynamic table, or enter it. `index` is that of its name
    /// in the static table.
    fn indexed(
        &mut self,
        index: Option<u8>,
        id: Name,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        // A field that takes most of the table would evict all others.
        let size = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if size > self.capacity / 4 {
            return literal(false, index, name, value, out);
        }
        let hash = hash(id, name, value);
        let (slot, rest) = ((hash >> 57) as usize % SLOTS, (hash >> 32) as u16);
        let capacity = self.capacity;
        let dynamic = self.dynamic.get_or_insert_with(|| {
            Box::new(Dynamic {
                table: Table::new(capacity),
                fields: [0; SLOTS],
                seen: [0; SLOTS],
            })
        });
        let seen = std::mem::replace(&mut dynamic.seen[slot], rest) == rest;
        let Some(at) = dynamic.find(self.inserted, slot, id, name, value) else {
            if seen && self.may_insert && self.has_room(size) {
                self.insert(index, slot, id, name, value);
            }
            return literal(false, index, name, value, out);
        };
        if at >= self.base || self.sections.len() >= SECTIONS_MAX {
            return literal(false, index, name, value, out);
        }
        if self.is_draining(at) && self.may_insert && self.has_room(size) {
            self.duplicate(at, slot);
            return literal(false, index, name, value, out);
        }
        self.current.first = self.current.first.min(at);
        self.current.required = self.current.required.max(at + 1);
        integer::write(0x80, 6, self.base - 1 - at, out);
    }

    /// Whether an entry of this size can be inserted: only entries are evicted that the peer has and
    /// no section in flight refers to (RFC 9204 §2.1.1).
    fn has_room(&self, size: usize) -> bool {
        let Some(dynamic) = &self.dynamic else {
            return false;
        };
        let table = &dynamic.table;
        let mut free = table.size_max() - table.size();
        if free >= size {
            return true;
        }
        let sections = self.sections.iter().map(|section| section.references.first);
        let pinned = sections.min().unwrap_or(u64::MAX).min(self.current.first);
        let evictable = pinned.min(self.known);
        let oldest = self.inserted - table.len() as u64;
        for (nth, age) in (0..table.len()).rev().enumerate() {
            if oldest + nth as u64 >= evictable {
                return false;
            }
            free += table.get(age).map_or(0, |entry| entry.size());
            if free >= size {
                return true;
            }
        }
        false
    }

    /// Whether an entry will be evicted soon: it is in the oldest quarter of a table that is nearly
    /// full.
    fn is_draining(&self, at: u64) -> bool {
        self.dynamic.as_ref().is_some_and(|dynamic| {
            let table = &dynamic.table;
            let entries = table.len() as u64;
            let nth = at + entries - self.inserted;
            nth < entries / 4 && table.size() > table.size_max() / 4 * 3
        })
    }

    /// Inserts a field for which there is room.
    fn insert(&mut self, index: Option<u8>, slot: usize, id: Name, name: &[u8], value: &[u8]) {
        self.tell_capacity();
        match index {
            Some(index) => integer::write(0xc0, 6, u64::from(index), &mut self.instructions),
            None => short_string(0x40, 5, name, &mut self.instructions),
        }
        short_string(0, 7, value, &mut self.instructions);
        let line = [name, b": ", value, b"\r\n"].concat();
        self.add(&line, name.len(), id, slot);
    }

    /// Inserts an entry again.
    fn duplicate(&mut self, at: u64, slot: usize) {
        let age = self.inserted - 1 - at;
        let Some(dynamic) = &self.dynamic else {
            return;
        };
        let Some(entry) = dynamic.table.get(age as usize).copied() else {
            return;
        };
        let line = dynamic.table.line(&entry).to_vec();
        integer::write(0, 5, age, &mut self.instructions);
        self.add(&line, entry.name_len as usize, entry.id, slot);
    }

    fn add(&mut self, line: &[u8], name_len: usize, id: Name, slot: usize) {
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.table.add(line, name_len, id, Kind::Field, false);
            self.inserted += 1;
            dynamic.fields[slot] = self.inserted;
        }
    }

    /// Sets the capacity of the peer's table. Setting it to 0 first evicts entries that we have
    /// forgotten.
    fn tell_capacity(&mut self) {
        if !std::mem::replace(&mut self.has_capacity, true) {
            if self.inserted > 0 {
                integer::write(0x20, 5, 0, &mut self.instructions);
            }
            integer::write(0x20, 5, self.capacity as u64, &mut self.instructions);
        }
    }
}

impl Dynamic {
    /// The absolute index of this field in the table.
    #[inline]
    fn find(&self, inserted: u64, slot: usize, id: Name, name: &[u8], value: &[u8]) -> Option<u64> {
        let at = self.fields[slot].checked_sub(1)?;
        let age = usize::try_from(inserted - 1 - at).ok()?;
        let entry = self.table.get(age)?;
        let line = self.table.line(entry);
        let name_len = entry.name_len as usize;
        let is_same = entry.id == id
            && name_len == name.len()
            && (id != Name::Other || line[..name_len] == *name)
            && line[name_len + 2..line.len() - 2] == *value;
        is_same.then_some(at)
    }
}

/// Writes a field of the static table.
#[inline]
fn indexed_static(index: u8, out: &mut Vec<u8>) {
    integer::write(0xc0, 6, u64::from(index), out);
}

/// Writes a literal whose name may be in the static table. `never`: no intermediary may put it into
/// a table, because it is a secret (RFC 9204 §7.1.3).
#[inline]
fn literal(never: bool, index: Option<u8>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match index {
        Some(index) => {
            let first = if never { 0x70 } else { 0x50 };
            integer::write(first, 4, u64::from(index), out);
        }
        None => {
            let first = if never { 0x30 } else { 0x20 };
            integer::write(first, 3, name.len() as u64, out);
            out.extend_from_slice(name);
        }
    }
    integer::write(0, 7, value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Writes a string whose prefix has so many bits, in the Huffman code if that is shorter; `first`
/// holds the bits above.
fn short_string(first: u8, bits: u32, text: &[u8], out: &mut Vec<u8>) {
    let len = huffman::encoded_len(text);
    if len < text.len() {
        integer::write(first | 1 << bits, bits, len as u64, out);
        huffman::encode(text, out);
    } else {
        integer::write(first, bits, text.len() as u64, out);
        out.extend_from_slice(text);
    }
}
