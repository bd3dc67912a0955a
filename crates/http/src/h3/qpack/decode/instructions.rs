//! The instructions of the peer's encoder, and those to it (RFC 9204 §4.3, §4.4).

use super::{BAD_INDEX, Decoder, Text, append, kind_of, named, text};
use crate::Name;
use crate::bytes::is_text;
use crate::h2::hpack::Kind;
use crate::h2::hpack::table::{ENTRY_OVERHEAD_BYTES, Entry};
use crate::h3::qpack::statics::TABLE;
use crate::h3::qpack::{Bad, integer};

/// What an instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h3) enum Did {
    Insert,
    /// It copied an entry, which takes little from the peer.
    Duplicate,
    SetCapacity,
}

/// The most bytes of a Huffman code for one byte of text, rounded up.
const HUFFMAN_BYTES_MAX: usize = 4;

const TOO_LARGE: Bad = Bad("an entry larger than the dynamic table");

impl Decoder {
    // ---- instructions to the peer's encoder

    /// Appends the acknowledgement of a section (RFC 9204 §4.4.1); `required` is that of its prefix.
    pub fn acknowledge(&mut self, stream: u64, required: u64, out: &mut Vec<u8>) {
        if required > 0 {
            self.told = self.told.max(required);
            integer::write(0x80, 7, stream, out);
        }
    }

    /// Appends that no more sections of a stream are decoded (RFC 9204 §4.4.2).
    pub fn cancel(&self, stream: u64, out: &mut Vec<u8>) {
        if self.has_table() {
            integer::write(0x40, 6, stream, out);
        }
    }

    /// Appends how many insertions the peer's encoder does not know yet that we have (RFC 9204
    /// §4.4.3).
    pub fn tell_inserted(&mut self, out: &mut Vec<u8>) {
        if self.inserted > self.told {
            integer::write(0, 6, self.inserted - self.told, out);
            self.told = self.inserted;
        }
    }

    // ---- instructions of the peer's encoder

    /// Follows the instruction at the front of `bytes`. Returns its size and what it did; none if it
    /// is not complete.
    pub fn instruction(&mut self, bytes: &[u8]) -> Result<Option<(usize, Did)>, Bad> {
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let mut at = 0;
        let did = if first & 0x80 != 0 {
            let Some(index) = integer::read(bytes, &mut at, 6)? else {
                return Ok(None);
            };
            let Some(value) = self.string(bytes, &mut at, 7)? else {
                return Ok(None);
            };
            self.line.clear();
            let (id, kind, is_bad) = if first & 0x40 != 0 {
                let entry = usize::try_from(index).ok().and_then(|at| TABLE.get(at));
                let entry = entry.ok_or(BAD_INDEX)?;
                self.line.extend_from_slice(entry.name.as_bytes());
                (entry.id, entry.kind, false)
            } else {
                let entry = *self.relative(index).ok_or(BAD_INDEX)?;
                named(&entry, self.table.line(&entry), &mut self.line)
            };
            self.insert(bytes, value, id, kind, is_bad)?;
            Did::Insert
        } else if first & 0x40 != 0 {
            let Some(name) = self.string(bytes, &mut at, 5)? else {
                return Ok(None);
            };
            let Some(value) = self.string(bytes, &mut at, 7)? else {
                return Ok(None);
            };
            self.line.clear();
            append(bytes, name, &mut self.line)?;
            let (id, kind, is_bad) = kind_of(&self.line);
            self.insert(bytes, value, id, kind, is_bad)?;
            Did::Insert
        } else if first & 0x20 != 0 {
            let Some(capacity) = integer::read(bytes, &mut at, 5)? else {
                return Ok(None);
            };
            match usize::try_from(capacity) {
                Ok(capacity) if capacity <= self.capacity_max => self.table.set_size_max(capacity),
                _ => return Err(Bad("a table capacity above the limit")),
            }
            Did::SetCapacity
        } else {
            let Some(index) = integer::read(bytes, &mut at, 5)? else {
                return Ok(None);
            };
            let entry = *self.relative(index).ok_or(BAD_INDEX)?;
            self.line.clear();
            self.line.extend_from_slice(self.table.line(&entry));
            let name_len = entry.name_len as usize;
            self.add(name_len, entry.id, entry.kind, entry.is_bad)?;
            Did::Duplicate
        };
        Ok(Some((at, did)))
    }

    /// The entry with this relative index of an instruction: 0 is the newest (RFC 9204 §3.2.5).
    fn relative(&self, index: u64) -> Option<&Entry> {
        self.table.get(usize::try_from(index).ok()?)
    }

    /// Where a string of an instruction is, if it is complete. A string that no entry could have is
    /// refused before it is complete, so that little is kept of it.
    fn string(&self, bytes: &[u8], at: &mut usize, bits: u32) -> Result<Option<Text>, Bad> {
        let mut end = *at;
        let Some(text) = text(bytes, &mut end, bits)? else {
            return Ok(None);
        };
        let most = if text.is_huffman {
            self.table.size_max().saturating_mul(HUFFMAN_BYTES_MAX)
        } else {
            self.table.size_max()
        };
        if text.range.len() > most {
            return Err(TOO_LARGE);
        }
        if bytes.len() < text.range.end {
            return Ok(None);
        }
        *at = text.range.end;
        Ok(Some(text))
    }

    /// Inserts the field whose name is in `line`.
    fn insert(
        &mut self,
        bytes: &[u8],
        value: Text,
        id: Name,
        kind: Kind,
        mut is_bad: bool,
    ) -> Result<(), Bad> {
        let name_len = self.line.len();
        self.line.extend_from_slice(b": ");
        append(bytes, value, &mut self.line)?;
        is_bad |= !is_text(&self.line[name_len + 2..]);
        self.line.extend_from_slice(b"\r\n");
        self.add(name_len, id, kind, is_bad)
    }

    /// Adds `line` to the table (RFC 9204 §3.2.2).
    fn add(&mut self, name_len: usize, id: Name, kind: Kind, is_bad: bool) -> Result<(), Bad> {
        let size = self.line.len() - b": \r\n".len() + ENTRY_OVERHEAD_BYTES;
        if size > self.table.size_max() {
            return Err(TOO_LARGE);
        }
        self.table.add(&self.line, name_len, id, kind, is_bad);
        self.inserted += 1;
        Ok(())
    }
}
