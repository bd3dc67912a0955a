//! The bytes of a segment.
//!
//! A file begins with [`MAGIC`], a version and the segment's number. An entry is a head of 24 bytes
//! and a payload. The head consists of the payload's length (4 bytes; all numbers are
//! little-endian), its kind (1), zeros (3), the payload's checksum (8) and the checksum of these 16
//! bytes (8). Both checksums are XXH3 with a seed of the segment's number and the entry's position,
//! so that an entry is valid only where it was written.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"spgjrnl\x01";
/// Bytes before the first entry.
pub const START_BYTES: usize = 16;
/// Bytes of an entry before its payload.
pub const HEAD_BYTES: usize = 24;
/// The most bytes of a payload.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data: must be read again unless it is marked as done.
    Data,
    /// Marks an entry of data as done: its segment (8 bytes) and its position there (8).
    Done,
    /// A note of the caller.
    Note,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Data, Kind::Done, Kind::Note]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// The first bytes of a segment's file.
#[must_use]
pub fn start(number: u64) -> [u8; START_BYTES] {
    let mut start = [0; START_BYTES];
    start[..8].copy_from_slice(&MAGIC);
    start[8..].copy_from_slice(&number.to_le_bytes());
    start
}

/// The head of an entry at a position of a segment, for a payload of these parts.
#[must_use]
pub fn head(number: u64, at: u64, kind: Kind, parts: [&[u8]; 2]) -> [u8; HEAD_BYTES] {
    let seed = seed(number, at);
    let mut hash = Xxh3::with_seed(seed);
    parts.iter().for_each(|part| hash.update(part));
    let len: usize = parts.iter().map(|part| part.len()).sum();
    debug_assert!(len <= ENTRY_BYTES_MAX, "larger ones were refused");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(len as u32).to_le_bytes());
    head[4] = kind as u8;
    head[8..16].copy_from_slice(&hash.digest().to_le_bytes());
    let check = xxh3_64_with_seed(&head[..16], seed);
    head[16..].copy_from_slice(&check.to_le_bytes());
    head
}

fn seed(number: u64, at: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ at
}

fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The payload of [`Kind::Done`].
#[must_use]
pub fn done(segment: u64, at: u64) -> [u8; 16] {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&segment.to_le_bytes());
    payload[8..].copy_from_slice(&at.to_le_bytes());
    payload
}

/// Parses the payload of [`Kind::Done`]: the segment, and the position there.
#[must_use]
pub fn read_done(payload: &[u8]) -> Option<(u64, u64)> {
    Some((number_at(payload, 0)?, number_at(payload, 8)?))
}

/// Whether a file begins like the file of this segment.
#[must_use]
pub fn has_start(number: u64, file: &[u8]) -> bool {
    file.starts_with(&start(number))
}

/// Whether the end of a segment's file, from a position on, is the first part of an entry: a process
/// ended within the write, so that the entry was not acknowledged.
#[must_use]
pub fn is_cut_entry(number: u64, file: &[u8], at: usize) -> bool {
    let items = Items { file, number, at };
    let bytes = file.len().saturating_sub(at);
    bytes < HEAD_BYTES
        || items
            .head(at)
            .is_some_and(|head| bytes - HEAD_BYTES < head.len)
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An entry.
    Entry {
        /// Its position in the file.
        at: u64,
        /// Its kind.
        kind: Kind,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Bytes that are no valid entry: their position and their number.
    Damaged(u64, u64),
}

/// The entries of a segment's file, in order. Damage is skipped: an entry with a wrong payload is
/// left out, and after an invalid head the search continues to the next valid one. The work is
/// linear in the bytes, whatever they are.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    file: &'a [u8],
    number: u64,
    at: usize,
}

/// A parsed, valid head.
struct Head {
    len: usize,
    kind: Kind,
    check: u64,
}

impl<'a> Items<'a> {
    /// The entries of a segment's file, which begins as [`start`] writes it.
    #[must_use]
    pub fn new(number: u64, file: &'a [u8]) -> Items<'a> {
        Items {
            file,
            number,
            at: START_BYTES.min(file.len()),
        }
    }

    fn head(&self, at: usize) -> Option<Head> {
        let head = self.file.get(at..)?.first_chunk::<HEAD_BYTES>()?;
        let seed = seed(self.number, at as u64);
        if number_at(head, 16)? != xxh3_64_with_seed(&head[..16], seed) {
            return None;
        }
        let len = u32::from_le_bytes(*head.first_chunk()?) as usize;
        Some(Head {
            len,
            kind: Kind::of(head[4]).filter(|_| len <= ENTRY_BYTES_MAX)?,
            check: number_at(head, 8)?,
        })
    }

    fn damaged(&mut self, to: usize) -> Item<'a> {
        let from = std::mem::replace(&mut self.at, to);
        Item::Damaged(from as u64, (to - from) as u64)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let end = self.file.len();
        if self.at >= end {
            return None;
        }
        let Some(head) = self.head(self.at) else {
            let next = (self.at + 1..end).find(|at| self.head(*at).is_some());
            return Some(self.damaged(next.unwrap_or(end)));
        };
        let from = self.at + HEAD_BYTES;
        let Some(payload) = self.file.get(from..from + head.len) else {
            // Nothing can follow: the entry was cut off.
            return Some(self.damaged(end));
        };
        let at = self.at as u64;
        if xxh3_64_with_seed(payload, seed(self.number, at)) != head.check {
            return Some(self.damaged(from + head.len));
        }
        self.at = from + head.len;
        Some(Item::Entry {
            at,
            kind: head.kind,
            payload,
        })
    }
}
