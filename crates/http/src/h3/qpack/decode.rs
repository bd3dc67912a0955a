//! Decodes field sections and the instructions of the peer's encoder (RFC 9204 §4.3, §4.5).

mod instructions;

use std::ops::Range;

use super::statics::TABLE;
use super::{Bad, integer};
use crate::Name;
use crate::bytes::is_text;
use crate::h2::hpack::table::{ENTRY_OVERHEAD_BYTES, Entry, Table};
use crate::h2::hpack::{Found, Kind, Sink, huffman, is_name, pseudo};
pub(in crate::h3) use instructions::Did;

/// The decoder of a connection.
#[derive(Debug)]
pub(in crate::h3) struct Decoder {
    pub(super) table: Table,
    /// The largest table that the peer may request, as our settings announce it.
    capacity_max: usize,
    /// How many entries have been inserted into the table on this connection. Evicted ones count too.
    inserted: u64,
    /// How many insertions the peer's encoder knows that we have received.
    told: u64,
    /// The line of a field that is inserted.
    line: Vec<u8>,
}

/// The prefix of a field section (RFC 9204 §4.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h3) struct Prefix {
    /// How many insertions the section needs.
    pub required: u64,
    base: u64,
    /// Where the fields begin.
    at: usize,
}

const TRUNCATED: Bad = Bad("a field section that ends within a field");
const BAD_INDEX: Bad = Bad("a reference to an entry that does not exist");
const BAD_HUFFMAN: Bad = Bad("a malformed Huffman code");

impl Decoder {
    /// A decoder whose table may have so many bytes.
    pub fn new(capacity_max: usize) -> Decoder {
        Decoder {
            table: Table::new(0),
            capacity_max,
            inserted: 0,
            told: 0,
            line: Vec::new(),
        }
    }

    /// How many entries have been inserted into the table on this connection. Evicted ones count too.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Whether the peer may use the dynamic table at all.
    pub fn has_table(&self) -> bool {
        self.capacity_max > 0
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        self.table.release_spare();
        self.line = Vec::new();
    }

    /// Reads the prefix of a section. If [`Prefix::required`] is above [`Decoder::inserted`], the
    /// section must wait.
    pub fn prefix(&self, section: &[u8]) -> Result<Prefix, Bad> {
        let mut at = 0;
        let encoded = integer::read(section, &mut at, 8)?.ok_or(TRUNCATED)?;
        let required = self.required(encoded)?;
        let is_negative = section.get(at).is_some_and(|byte| byte & 0x80 != 0);
        let delta = integer::read(section, &mut at, 7)?.ok_or(TRUNCATED)?;
        let base = if is_negative {
            required.checked_sub(delta + 1)
        } else {
            required.checked_add(delta)
        };
        Ok(Prefix {
            required,
            base: base.ok_or(Bad("a base below 0"))?,
            at,
        })
    }

    /// RFC 9204 §4.5.1.1.
    fn required(&self, encoded: u64) -> Result<u64, Bad> {
        const WRONG: Bad = Bad("a wrong Required Insert Count");
        if encoded == 0 {
            return Ok(0);
        }
        let entries_max = (self.capacity_max / ENTRY_OVERHEAD_BYTES) as u64;
        let range = 2 * entries_max;
        if encoded > range {
            return Err(WRONG);
        }
        let most = self.inserted + entries_max;
        let wrapped = most / range * range;
        let mut required = wrapped + encoded - 1;
        if required > most {
            required = required.checked_sub(range).ok_or(WRONG)?;
        }
        if required == 0 {
            Err(WRONG)
        } else {
            Ok(required)
        }
    }

    /// Decodes a whole section, whose prefix was read.
    pub fn decode(&self, prefix: Prefix, section: &[u8], sink: &mut impl Sink) -> Result<(), Bad> {
        let mut at = prefix.at;
        while let Some(&first) = section.get(at) {
            let mut number = |bits| integer::read(section, &mut at, bits)?.ok_or(TRUNCATED);
            if first & 0x80 != 0 {
                let index = number(6)?;
                if first & 0x40 != 0 {
                    indexed_static(index, sink)?;
                } else {
                    self.indexed(prefix, before(prefix, index), sink)?;
                }
            } else if first & 0x40 != 0 {
                let index = number(4)?;
                let name = if first & 0x10 != 0 {
                    NameFrom::Static(index)
                } else {
                    NameFrom::Dynamic(before(prefix, index))
                };
                self.literal(prefix, name, section, &mut at, sink)?;
            } else if first & 0x20 != 0 {
                self.literal(prefix, NameFrom::Section, section, &mut at, sink)?;
            } else if first & 0x10 != 0 {
                let index = number(4)?;
                self.indexed(prefix, prefix.base.checked_add(index), sink)?;
            } else {
                let index = number(3)?;
                let name = NameFrom::Dynamic(prefix.base.checked_add(index));
                self.literal(prefix, name, section, &mut at, sink)?;
            }
        }
        Ok(())
    }

    /// The entry with this absolute index, if the section may refer to it.
    fn entry(&self, prefix: Prefix, index: Option<u64>) -> Result<&Entry, Bad> {
        let index = index.filter(|index| *index < prefix.required);
        let age = index.and_then(|index| self.inserted.checked_sub(index + 1));
        let age = age.and_then(|age| usize::try_from(age).ok());
        age.and_then(|age| self.table.get(age)).ok_or(BAD_INDEX)
    }

    /// A field that is in the dynamic table.
    fn indexed(&self, prefix: Prefix, index: Option<u64>, sink: &mut impl Sink) -> Result<(), Bad> {
        let entry = self.entry(prefix, index)?;
        if sink.is_lost() {
            return Ok(());
        }
        let at = sink.buf().len();
        sink.buf().extend_from_slice(self.table.line(entry));
        sink.field(Found {
            at,
            name_len: entry.name_len as usize,
            value_len: entry.value_len as usize,
            id: entry.id,
            kind: entry.kind,
            is_bad: entry.is_bad,
        });
        Ok(())
    }

    /// A field whose value, and perhaps whose name, is in the section.
    fn literal(
        &self,
        prefix: Prefix,
        name: NameFrom,
        section: &[u8],
        at: &mut usize,
        sink: &mut impl Sink,
    ) -> Result<(), Bad> {
        let buf = sink.buf();
        let from = buf.len();
        let (id, kind, mut is_bad) = match name {
            NameFrom::Static(index) => {
                let entry = usize::try_from(index).ok().and_then(|at| TABLE.get(at));
                let entry = entry.ok_or(BAD_INDEX)?;
                buf.extend_from_slice(entry.name.as_bytes());
                (entry.id, entry.kind, false)
            }
            NameFrom::Dynamic(index) => {
                let entry = self.entry(prefix, index)?;
                named(entry, self.table.line(entry), buf)
            }
            NameFrom::Section => {
                whole_string(section, at, 3, buf)?;
                kind_of(&buf[from..])
            }
        };
        let name_len = buf.len() - from;
        buf.extend_from_slice(b": ");
        let value = buf.len();
        whole_string(section, at, 7, buf)?;
        // RFC 9114 §4.2, as for HTTP/1.
        is_bad |= !is_text(&buf[value..]);
        let value_len = buf.len() - value;
        buf.extend_from_slice(b"\r\n");
        sink.field(Found {
            at: from,
            name_len,
            value_len,
            id,
            kind,
            is_bad,
        });
        Ok(())
    }
}

/// Where the name of a literal comes from.
#[derive(Clone, Copy)]
enum NameFrom {
    Static(u64),
    /// The absolute index; none if it would be below 0.
    Dynamic(Option<u64>),
    Section,
}

/// A string literal, which may not be complete.
struct Text {
    range: Range<usize>,
    is_huffman: bool,
}

/// Reads the length of a string whose prefix has so many bits (RFC 9204 §4.1.2); none if it is not
/// complete.
fn text(bytes: &[u8], at: &mut usize, bits: u32) -> Result<Option<Text>, Bad> {
    let is_huffman = bytes.get(*at).is_some_and(|first| first & 1 << bits != 0);
    let Some(len) = integer::read(bytes, at, bits)? else {
        return Ok(None);
    };
    let len = u32::try_from(len).map_err(|_| integer::TOO_LARGE)? as usize;
    let range = *at..*at + len;
    Ok(Some(Text { range, is_huffman }))
}

/// Appends a string that is complete.
fn append(bytes: &[u8], text: Text, out: &mut Vec<u8>) -> Result<(), Bad> {
    let string = bytes.get(text.range).ok_or(TRUNCATED)?;
    if text.is_huffman {
        return huffman::decode(string, out).map_err(|_| BAD_HUFFMAN);
    }
    out.extend_from_slice(string);
    Ok(())
}

/// Appends the string of a section.
#[inline]
fn whole_string(section: &[u8], at: &mut usize, bits: u32, out: &mut Vec<u8>) -> Result<(), Bad> {
    let text = text(section, at, bits)?.ok_or(TRUNCATED)?;
    *at = text.range.end;
    append(section, text, out)
}

/// The absolute index of an index relative to the base (RFC 9204 §3.2.5).
fn before(prefix: Prefix, index: u64) -> Option<u64> {
    prefix.base.checked_sub(index + 1)
}

/// Appends the name of an entry. Returns its properties, and whether the name is malformed: the
/// entry may be only because of its value.
fn named(entry: &Entry, line: &[u8], out: &mut Vec<u8>) -> (Name, Kind, bool) {
    let name = &line[..entry.name_len as usize];
    out.extend_from_slice(name);
    let is_bad = entry.is_bad && entry.kind == Kind::Field && !is_name(name);
    (entry.id, entry.kind, is_bad)
}

/// The properties of a literal name, and whether it is malformed.
fn kind_of(name: &[u8]) -> (Name, Kind, bool) {
    match name.strip_prefix(b":") {
        Some(rest) => (Name::Other, pseudo(rest), false),
        None => (Name::from_lower(name), Kind::Field, !is_name(name)),
    }
}

/// A field that is in the static table.
#[inline]
fn indexed_static(index: u64, sink: &mut impl Sink) -> Result<(), Bad> {
    let entry = usize::try_from(index).ok().and_then(|at| TABLE.get(at));
    let entry = entry.ok_or(BAD_INDEX)?;
    if sink.is_lost() {
        return Ok(());
    }
    let at = sink.buf().len();
    sink.buf().extend_from_slice(entry.line);
    sink.field(Found {
        at,
        name_len: entry.name.len(),
        value_len: entry.value.len(),
        id: entry.id,
        kind: entry.kind,
        is_bad: false,
    });
    Ok(())
}
