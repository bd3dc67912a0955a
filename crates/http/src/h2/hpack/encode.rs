//! Encodes fields as header blocks (RFC 7541 §6).
//!
//! A field with a known value is sent by its index, any other field as a literal. The second time
//! that the same name and value are sent, the field enters the dynamic table. So values that are
//! sent only once take no memory and evict no other fields.

use super::decode::TABLE_BYTES_DEFAULT;
use super::statics::{
    AUTHORITY, METHOD_GET, METHOD_POST, PATH_ROOT, SCHEME_HTTP, SCHEME_HTTPS, STATICS, STATUS_200,
    index_of,
};
use super::table::{ENTRY_OVERHEAD_BYTES, LINE_EXTRA_BYTES, Table};
use super::{FieldEncoder, Kind, huffman, integer};
use crate::{Method, Name};

/// The number of slots of the cache that finds fields in the table. The hash of a field selects one
/// slot, and the slot holds the last field that was put there. So a search takes one comparison.
const SLOTS: usize = 128;

/// A shorter cookie could be guessed (RFC 7541 §7.1.3), so it never enters a table.
const COOKIE_BYTES_MIN: usize = 20;

/// The encoder of a connection.
#[derive(Debug)]
pub(in crate::h2) struct Encoder {
    /// None until a field was sent twice, and while the table is empty.
    dynamic: Option<Box<Dynamic>>,
    table_bytes_max: usize,
    /// The table size of the peer's decoder.
    told_bytes: usize,
    /// The lowest size since the last block, if the size changed: the next block announces it (RFC
    /// 7541 §4.2).
    size_update: Option<usize>,
}

/// The table and the cache that finds its fields.
#[derive(Debug)]
struct Dynamic {
    table: Table,
    /// By the hash of name and value: [`Table::added`] after the field was added, 0 for none.
    fields: [u32; SLOTS],
    /// By the same hash: other hash bits of the field that was last sent without the table.
    seen: [u16; SLOTS],
}

/// How a value may be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Through the dynamic table.
    Table,
    /// As a literal: the value is unlikely to be repeated.
    Literal,
    /// As a literal that no intermediary may put into a table: it is a secret (RFC 7541 §7.1.3).
    Never,
}

impl Encoder {
    /// An encoder with a table of at most this many bytes.
    pub fn new(table_bytes_max: usize) -> Encoder {
        Encoder {
            dynamic: None,
            table_bytes_max,
            told_bytes: TABLE_BYTES_DEFAULT,
            size_update: None,
        }
    }

    /// Sets the size of the table, which the peer's setting limits. If it changes, the next block
    /// announces it.
    pub fn set_table_bytes(&mut self, bytes: usize) {
        if bytes == self.told_bytes && self.size_update.is_none() {
            return;
        }
        self.table_bytes_max = bytes;
        let lowest = self.size_update.map_or(bytes, |lowest| lowest.min(bytes));
        self.size_update = Some(lowest);
        // Fields evicted at the lowest size do not return.
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.table.set_size_max(bytes);
        }
    }

    /// Frees the memory of the table. The peer need not know: fields are counted from the newest,
    /// and the following fields are new to both sides.
    pub fn release_spare(&mut self) {
        self.dynamic = None;
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(lowest) = self.size_update.take() {
            integer::write(0x20, 5, lowest, out);
            if lowest != self.table_bytes_max {
                integer::write(0x20, 5, self.table_bytes_max, out);
            }
            self.told_bytes = self.table_bytes_max;
        }
    }

    /// Encodes a field that may be in the dynamic table, or enter it. `index` is that of its name
    /// in the static table, or 0.
    fn indexed(&mut self, index: u8, id: Name, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        // A field that takes most of the table would evict all others.
        let size = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if size > self.table_bytes_max / 4 {
            return literal(0, 4, index, name, value, out);
        }
        let hash = hash(id, name, value);
        let (slot, rest) = ((hash >> 57) as usize % SLOTS, (hash >> 32) as u16);
        let table_bytes_max = self.table_bytes_max;
        let dynamic = self.dynamic.get_or_insert_with(|| {
            Box::new(Dynamic {
                table: Table::new(table_bytes_max),
                fields: [0; SLOTS],
                seen: [0; SLOTS],
            })
        });
        if let Some(age) = dynamic.find(slot, id, name, value) {
            integer::write(0x80, 7, STATICS + 1 + age, out);
        } else if dynamic.seen[slot] == rest {
            literal_for_table(index, name, value, out);
            dynamic.add(slot, id, name, value);
        } else {
            dynamic.seen[slot] = rest;
            literal(0, 4, index, name, value, out);
        }
    }
}

impl FieldEncoder for Encoder {
    fn method(&mut self, method: Method, text: &[u8], out: &mut Vec<u8>) {
        match method {
            Method::Get => out.push(0x80 | METHOD_GET),
            Method::Post => out.push(0x80 | METHOD_POST),
            _ => self.indexed(METHOD_GET, Name::Other, b":method", text, out),
        }
    }

    /// Only `http` and `https` have a static index.
    fn scheme(&mut self, scheme: &[u8], out: &mut Vec<u8>) {
        match scheme {
            b"http" => out.push(0x80 | SCHEME_HTTP),
            b"https" => out.push(0x80 | SCHEME_HTTPS),
            _ => self.indexed(SCHEME_HTTP, Name::Other, b":scheme", scheme, out),
        }
    }

    fn authority(&mut self, authority: &[u8], out: &mut Vec<u8>) {
        self.indexed(AUTHORITY, Name::Other, b":authority", authority, out);
    }

    fn path(&mut self, path: &[u8], out: &mut Vec<u8>) {
        match path {
            b"/" => out.push(0x80 | PATH_ROOT),
            _ => self.indexed(PATH_ROOT, Name::Other, b":path", path, out),
        }
    }

    fn protocol(&mut self, protocol: &[u8], out: &mut Vec<u8>) {
        self.indexed(0, Name::Other, b":protocol", protocol, out);
    }

    fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let place = match status {
            200 => 0,
            204 => 1,
            206 => 2,
            304 => 3,
            400 => 4,
            404 => 5,
            500 => 6,
            _ => {
                let digit = |of: u16| b'0' + (status / of % 10) as u8;
                let digits = [digit(100), digit(10), digit(1)];
                return self.indexed(STATUS_200, Name::Other, b":status", &digits, out);
            }
        };
        out.push(0x80 | (STATUS_200 + place));
    }

    #[inline]
    fn field(&mut self, id: Name, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let index = index_of(id);
        match policy(id, value) {
            Policy::Table => self.indexed(index, id, name, value, out),
            Policy::Literal => literal(0, 4, index, name, value, out),
            Policy::Never => literal(0x10, 4, index, name, value, out),
        }
    }
}

impl Dynamic {
    /// The age of this field in the table.
    #[inline]
    fn find(&self, slot: usize, id: Name, name: &[u8], value: &[u8]) -> Option<usize> {
        let added = self.fields[slot];
        if added == 0 {
            return None;
        }
        let age = self.table.added().wrapping_sub(added) as usize;
        let entry = self.table.get(age)?;
        let line = self.table.line(entry);
        let name_len = entry.name_len as usize;
        let is_same = entry.id == id
            && name_len == name.len()
            && (id != Name::Other || line[..name_len] == *name)
            && line[name_len + 2..line.len() - 2] == *value;
        is_same.then_some(age)
    }

    fn add(&mut self, slot: usize, id: Name, name: &[u8], value: &[u8]) {
        let mut line = Vec::with_capacity(name.len() + value.len() + LINE_EXTRA_BYTES);
        for part in [name, b": ", value, b"\r\n"] {
            line.extend_from_slice(part);
        }
        self.table.add(&line, name.len(), id, Kind::Field, false);
        self.fields[slot] = self.table.added();
    }
}

/// Writes a literal without indexing, or one that is never indexed.
#[inline]
fn literal(first: u8, bits: u32, index: u8, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    integer::write(first, bits, usize::from(index), out);
    if index == 0 {
        integer::write(0, 7, name.len(), out);
        out.extend_from_slice(name);
    }
    integer::write(0, 7, value.len(), out);
    out.extend_from_slice(value);
}

/// Writes a literal that enters the table.
fn literal_for_table(index: u8, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    integer::write(0x40, 6, usize::from(index), out);
    if index == 0 {
        short_string(name, out);
    }
    short_string(value, out);
}

/// Writes a string, in the Huffman code if that is shorter.
fn short_string(text: &[u8], out: &mut Vec<u8>) {
    let len = huffman::encoded_len(text);
    if len < text.len() {
        integer::write(0x80, 7, len, out);
        huffman::encode(text, out);
    } else {
        integer::write(0, 7, text.len(), out);
        out.extend_from_slice(text);
    }
}

/// How the fields of a name are sent.
#[inline]
pub(crate) fn policy(id: Name, value: &[u8]) -> Policy {
    match id {
        Name::Authorization | Name::ProxyAuthorization | Name::SetCookie => Policy::Never,
        Name::Cookie if value.len() < COOKIE_BYTES_MIN => Policy::Never,
        Name::Age
        | Name::Baggage
        | Name::ContentLength
        | Name::ContentRange
        | Name::Etag
        | Name::IfMatch
        | Name::IfModifiedSince
        | Name::IfNoneMatch
        | Name::IfRange
        | Name::IfUnmodifiedSince
        | Name::LastModified
        | Name::Location
        | Name::Range
        | Name::Traceparent
        | Name::Tracestate
        | Name::XRequestId => Policy::Literal,
        _ => Policy::Table,
    }
}

/// A hash of a name and a value. Collisions cost bytes on the wire but no time.
#[inline]
pub(crate) fn hash(id: Name, name: &[u8], value: &[u8]) -> u64 {
    let seed = match id {
        Name::Other => mix(0x51, name),
        id => id as u64,
    };
    let hash = mix(seed, value);
    (hash ^ (hash >> 29)).wrapping_mul(MULTIPLIER)
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(seed: u64, text: &[u8]) -> u64 {
    let step = |hash: u64, word: [u8; 8]| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER)
    };
    let (words, rest) = text.as_chunks();
    let hash = words
        .iter()
        .fold(seed ^ text.len() as u64, |hash, word| step(hash, *word));
    match text.last_chunk() {
        Some(last) => step(hash, *last),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            step(hash, word)
        }
    }
}
