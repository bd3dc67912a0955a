//! Decodes header blocks into fields (RFC 7541 §3, §6).

use super::statics::{STATICS, TABLE};
use super::table::{LINE_EXTRA_BYTES, Table};
use super::{BlockError, Found, Kind, Sink, huffman, integer};
use crate::Name;
use crate::bytes::{TOKEN_LOWER, is_text};

/// The size of the dynamic table before any setting (RFC 9113 §6.5.2).
pub(in crate::h2) const TABLE_BYTES_DEFAULT: usize = 4096;

/// The decoder of a connection. It decodes the blocks of all streams in the order of their arrival.
#[derive(Debug)]
pub(in crate::h2) struct Decoder {
    pub(super) table: Table,
    /// The largest table that the peer may request.
    table_bytes_max: usize,
}

/// How a literal is to be indexed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Add {
    Yes,
    No,
}

impl Decoder {
    /// A decoder with the table size that is valid before our settings are acknowledged.
    pub fn new() -> Decoder {
        Decoder {
            table: Table::new(TABLE_BYTES_DEFAULT),
            table_bytes_max: TABLE_BYTES_DEFAULT,
        }
    }

    /// Our `SETTINGS_HEADER_TABLE_SIZE` is valid from now on. If it is below the size in use, the
    /// next block must begin with a size update (RFC 7541 §4.2).
    pub fn set_table_bytes_max(&mut self, bytes: usize) {
        self.table_bytes_max = bytes;
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        self.table.release_spare();
    }

    /// Decodes a whole block.
    pub fn decode(&mut self, block: &[u8], sink: &mut impl Sink) -> Result<(), BlockError> {
        let mut at = self.size_updates(block)?;
        while let Some(&first) = block.get(at) {
            if first & 0x80 != 0 {
                let index = integer::read(block, &mut at, 7)?;
                self.indexed(index, sink)?;
            } else if first & 0x40 != 0 {
                let index = integer::read(block, &mut at, 6)?;
                self.literal(index, Add::Yes, block, &mut at, sink)?;
            } else if first & 0x20 != 0 {
                return Err(BlockError::BadTableSize);
            } else {
                let index = integer::read(block, &mut at, 4)?;
                self.literal(index, Add::No, block, &mut at, sink)?;
            }
        }
        Ok(())
    }

    /// Applies the size updates at the beginning of a block; returns where its fields begin.
    fn size_updates(&mut self, block: &[u8]) -> Result<usize, BlockError> {
        let mut at = 0;
        while block.get(at).is_some_and(|first| first & 0xe0 == 0x20) {
            let size = integer::read(block, &mut at, 5)?;
            if size > self.table_bytes_max {
                return Err(BlockError::BadTableSize);
            }
            self.table.set_size_max(size);
        }
        if self.table.size_max() > self.table_bytes_max {
            return Err(BlockError::BadTableSize);
        }
        Ok(at)
    }

    /// A field that is in a table.
    #[inline]
    fn indexed(&mut self, index: usize, sink: &mut impl Sink) -> Result<(), BlockError> {
        let is_lost = sink.is_lost();
        let at = sink.buf().len();
        let found = if (1..=STATICS).contains(&index) {
            let entry = &TABLE[index - 1];
            if is_lost {
                return Ok(());
            }
            sink.buf().extend_from_slice(entry.line);
            Found {
                at,
                name_len: entry.name.len(),
                value_len: entry.value.len(),
                id: entry.id,
                kind: entry.kind,
                is_bad: false,
            }
        } else {
            let age = index.checked_sub(STATICS + 1);
            let entry = age.and_then(|age| self.table.get(age));
            let entry = entry.ok_or(BlockError::BadIndex)?;
            if is_lost {
                return Ok(());
            }
            sink.buf().extend_from_slice(self.table.line(entry));
            Found {
                at,
                name_len: entry.name_len as usize,
                value_len: entry.value_len as usize,
                id: entry.id,
                kind: entry.kind,
                is_bad: entry.is_bad,
            }
        };
        sink.field(found);
        Ok(())
    }

    /// A field whose value, and perhaps whose name, is in the block.
    fn literal(
        &mut self,
        index: usize,
        add: Add,
        block: &[u8],
        at: &mut usize,
        sink: &mut impl Sink,
    ) -> Result<(), BlockError> {
        let buf = sink.buf();
        let from = buf.len();
        let (id, kind, mut is_bad) = self.literal_name(index, block, at, buf)?;
        let name_len = buf.len() - from;
        buf.extend_from_slice(b": ");
        let value = buf.len();
        string(block, at, buf)?;
        // RFC 9113 §8.2.1, as for HTTP/1.
        is_bad |= !is_text(&buf[value..]);
        let value_len = buf.len() - value;
        buf.extend_from_slice(b"\r\n");
        debug_assert_eq!(buf.len() - from, name_len + value_len + LINE_EXTRA_BYTES);
        if add == Add::Yes {
            self.table.add(&buf[from..], name_len, id, kind, is_bad);
        }
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

    /// Appends the name of a literal to `buf`. Returns its entry, its kind, and whether it is
    /// malformed.
    #[inline]
    fn literal_name(
        &self,
        index: usize,
        block: &[u8],
        at: &mut usize,
        buf: &mut Vec<u8>,
    ) -> Result<(Name, Kind, bool), BlockError> {
        if index == 0 {
            let from = buf.len();
            string(block, at, buf)?;
            let name = &buf[from..];
            return Ok(match name.strip_prefix(b":") {
                Some(rest) => (Name::Other, pseudo(rest), false),
                None => (Name::from_lower(name), Kind::Field, !is_name(name)),
            });
        }
        if let Some(entry) = TABLE.get(index - 1) {
            buf.extend_from_slice(entry.name.as_bytes());
            return Ok((entry.id, entry.kind, false));
        }
        let entry = self.table.get(index - STATICS - 1);
        let entry = entry.ok_or(BlockError::BadIndex)?;
        let name = &self.table.line(entry)[..entry.name_len as usize];
        buf.extend_from_slice(name);
        // The entry may be malformed only because of its value.
        let is_bad = entry.is_bad && entry.kind == Kind::Field && !is_name(name);
        Ok((entry.id, entry.kind, is_bad))
    }
}

/// Appends the string at `at` (RFC 7541 §5.2).
#[inline]
fn string(block: &[u8], at: &mut usize, buf: &mut Vec<u8>) -> Result<(), BlockError> {
    let is_huffman = block.get(*at).is_some_and(|first| first & 0x80 != 0);
    let len = integer::read(block, at, 7)?;
    let text = block.get(*at..*at + len).ok_or(BlockError::Truncated)?;
    *at += len;
    if is_huffman {
        return huffman::decode(text, buf);
    }
    buf.extend_from_slice(text);
    Ok(())
}

/// Whether a field may have this name (RFC 9113 §8.2): a token without upper case.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_lower = |byte: &u8| *byte != 0 && TOKEN_LOWER[usize::from(*byte)] == *byte;
    !name.is_empty() && name.iter().all(is_lower)
}

/// The kind of a pseudo-header field, by its name without the colon.
pub(crate) fn pseudo(name: &[u8]) -> Kind {
    match name {
        b"method" => Kind::Method,
        b"scheme" => Kind::Scheme,
        b"authority" => Kind::Authority,
        b"path" => Kind::Path,
        b"status" => Kind::Status,
        b"protocol" => Kind::Protocol,
        _ => Kind::UnknownPseudo,
    }
}
