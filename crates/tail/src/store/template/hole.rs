//! The values of one attribute of a template: a few that are known by a number, all others are
//! kept.

use super::{Buffer, Learner};
use otlp::scan::Keys;
use otlp::scan::{Spot, attribute, is_short_value};
use otlp::wire::Reader;

/// Values of an attribute that are known by a number, with the first.
pub const FROZEN_MAX: usize = 16;
/// Values that were not among the known ones, more than those that were, from where on they are not
/// looked up any more.
pub const MISSES_MAX: u16 = 64;
/// Spans of a window that may have another value than the first while it counts as one that does
/// not vary.
const OTHERS_MAX: u8 = 4;
/// Bytes that a known value takes beside its own, about.
const FROZEN_BYTES: u64 = 64;

/// A value's code: below, the number of a known one; from here on a length, and so many bytes of
/// the field `value`.
pub const OPAQUE: u8 = FROZEN_MAX as u8;
/// From here on the length of a text, and its bytes.
const TEXT: u8 = OPAQUE + 126;

/// The values of an attribute.
#[derive(Debug)]
pub struct Hole {
    /// The attribute as it was written in the first span.
    first: Box<[u8]>,
    /// Where the field `key` ends in it.
    key_end: u8,
    /// Its place, if a policy names it.
    place: Option<u8>,
    /// The others that are known, as they are written.
    pub frozen: Vec<Box<[u8]>>,
    /// Marks of them and of the first, to find them by.
    marks: Vec<u64>,
    first_mark: u64,
    pub misses: u16,
    /// Spans of the window in which the value was not the first one, and whether they were many in
    /// one.
    others: u8,
    varies: bool,
    /// It was worn when a window ended.
    was_worn: bool,
}

/// Something to find a known attribute by: its last eight bytes and its length.
#[inline]
fn mark(attribute: &[u8]) -> u64 {
    let last = attribute
        .last_chunk()
        .map_or(0, |last| u64::from_le_bytes(*last));
    last ^ (attribute.len() as u64) << 32
}

/// A field `value` that is a text whose length can be told.
#[inline]
fn is_plain_text(value: &[u8]) -> bool {
    matches!(value, [0x12, value_len, 0x0a, len, text @ ..]
        if usize::from(*len) == text.len()
            && usize::from(*value_len) == text.len() + 2
            && text.len() <= usize::from(u8::MAX - TEXT))
}

/// Writes the field `value` of an attribute, which is well formed.
#[inline]
pub fn keep(value: &[u8], out: &mut Buffer<'_>) -> Option<()> {
    let (code, kept) = match value {
        [_, _, _, len, text @ ..] if is_plain_text(value) => (TEXT + len, text),
        // Less than 126 bytes: the key takes two at least, and all of it less than 128.
        _ => (OPAQUE + value.len() as u8, value),
    };
    out.byte(code)?;
    out.bytes(kept)
}

/// Writes the value with this code over that of an attribute; none if it is not as long.
pub fn patch(code: u8, value: &mut [u8], reader: &mut Reader<'_>) -> Option<()> {
    let is_text = code >= TEXT;
    let len = code - if is_text { TEXT } else { OPAQUE };
    let (head, rest) = value.split_at_mut_checked(if is_text { 4 } else { 0 })?;
    if rest.len() != usize::from(len) {
        return None;
    }
    if is_text {
        head.copy_from_slice(&[0x12, len + 2, 0x0a, len]);
    }
    rest.copy_from_slice(reader.take(usize::from(len))?);
    Some(())
}

impl Hole {
    /// One for a field `attributes` as it is written, with all lengths in one byte and its key
    /// first.
    pub fn new(first: &[u8], keys: &Keys) -> Option<Hole> {
        let [0x4a, len @ 0..0x80, message @ ..] = first else {
            return None;
        };
        let [0x0a, key_len @ 0..0x80, ..] = message else {
            return None;
        };
        let (name, _) = attribute(message).ok()?;
        let key_end = 4 + key_len;
        // One with two keys has the name that was written last.
        if message.len() != usize::from(*len) || first.get(4..usize::from(key_end))? != name {
            return None;
        }
        Some(Hole {
            first: first.into(),
            key_end,
            place: keys.find(name),
            frozen: Vec::new(),
            marks: Vec::new(),
            first_mark: mark(first),
            misses: 0,
            others: 0,
            varies: false,
            was_worn: false,
        })
    }

    /// It is looked at alone: it varies, or a policy names it.
    pub fn is_alone(&self) -> bool {
        self.varies || self.place.is_some()
    }

    /// Bytes of the attribute before the field `value`.
    pub fn key_end(&self) -> u8 {
        self.key_end
    }

    /// Its place, if a policy names it.
    pub fn place(&self) -> Option<u8> {
        self.place
    }

    /// Too many of its values were not known: they are not looked up any more.
    pub fn is_worn(&self) -> bool {
        self.misses >= MISSES_MAX
    }

    /// A window of spans ends; true if it is from now on one that varies, or that is worn.
    pub fn end_window(&mut self) -> bool {
        let many = self.others > OTHERS_MAX && !self.varies;
        self.varies |= many;
        self.others = 0;
        let wore = self.is_worn() && !std::mem::replace(&mut self.was_worn, true);
        many || wore
    }

    /// Reads the attribute at the beginning of these bytes, and writes its value; gives the bytes
    /// after it. None if it is not of this key, or not well formed.
    #[inline(always)]
    pub fn read<'a>(
        &mut self,
        rest: &'a [u8],
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<&'a [u8]> {
        let [0x4a, len @ 0..0x80, ..] = rest else {
            return None;
        };
        let (attribute, after) = rest.split_at_checked(usize::from(*len) + 2)?;
        let mark = mark(attribute);
        if mark == self.first_mark && *attribute == *self.first {
            out.byte(0)?;
        } else {
            self.others = self.others.saturating_add(1);
            if self.is_worn() {
                self.keep_checked(attribute, out)?
            } else {
                self.look_up(attribute, mark, learn, out)?
            }
        }
        if let Some(place) = self.place {
            spot.put(place, self.value(attribute)?);
        }
        Some(after)
    }

    /// Writes an attribute of this key that is well formed and not the first one.
    pub fn write_other(
        &mut self,
        attribute: &[u8],
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<()> {
        self.others = self.others.saturating_add(1);
        if self.is_worn() {
            keep(attribute.get(usize::from(self.key_end)..)?, out)
        } else {
            self.look_up(attribute, mark(attribute), learn, out)
        }
    }

    /// Clears the bits of a mask that may differ in an attribute of the same length that is well
    /// formed; none if that cannot be said.
    pub fn mask(&self, mask: &mut [u8]) -> Option<()> {
        let from = usize::from(self.key_end);
        let (value, mask) = (self.first.get(from..)?, mask.get_mut(from..)?);
        let is_whole = |len: u8, message: &[u8]| usize::from(len) == message.len();
        let (head, free) = match value {
            [0x12, len, message @ ..] if !is_whole(*len, message) => return None,
            // A text or bytes.
            [0x12, _, 0x0a | 0x3a, len, text @ ..] if is_whole(*len, text) => (4, 0),
            // A number: which of its bytes is the last stays as it is.
            [0x12, _, 0x10 | 0x18, ..] if is_short_value(value) => (3, 0x80),
            [0x12, 9, 0x21, ..] => (3, 0),
            _ => return None,
        };
        mask.get_mut(head..)?.fill(free);
        Some(())
    }

    /// The value of an attribute of this key, for [`otlp::scan::Any::read`].
    #[inline]
    fn value<'a>(&self, field: &'a [u8]) -> Option<&'a [u8]> {
        match field.get(usize::from(self.key_end)..)? {
            [0x12, len @ 0..0x80, value @ ..] if value.len() == usize::from(*len) => Some(value),
            _ => attribute(field.get(2..)?).ok().map(|(_, value)| value),
        }
    }

    /// Writes the number of a known attribute, or its value.
    #[inline(never)]
    fn look_up(
        &mut self,
        attribute: &[u8],
        mark: u64,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<()> {
        for (at, known) in self.marks.iter().enumerate() {
            if *known == mark
                && self
                    .frozen
                    .get(at)
                    .is_some_and(|known| **known == *attribute)
            {
                self.misses = self.misses.saturating_sub(1);
                return out.byte(at as u8 + 1);
            }
        }
        self.keep_checked(attribute, out)?;
        self.miss(attribute, mark, learn);
        Some(())
    }

    /// A value was not known: from now on it is, if there is room.
    #[cold]
    fn miss(&mut self, attribute: &[u8], mark: u64, learn: &mut Learner) {
        if self.frozen.len() + 1 == FROZEN_MAX {
            self.misses += 1;
        } else if learn.take(attribute.len() as u64 + FROZEN_BYTES) {
            self.marks.push(mark);
            self.frozen.push(attribute.into());
        }
    }

    /// The field `key` of all attributes.
    fn key(&self) -> Option<&[u8]> {
        self.first.get(2..usize::from(self.key_end))
    }

    /// Writes the value of an attribute; none if it is not of this key or not well formed.
    fn keep_checked(&self, attribute: &[u8], out: &mut Buffer<'_>) -> Option<()> {
        let value = attribute.get(2..)?.strip_prefix(self.key()?)?;
        if !is_plain_text(value) && !is_short_value(value) {
            self.check(attribute)?;
        }
        keep(value, out)
    }

    #[cold]
    fn check(&self, field: &[u8]) -> Option<()> {
        let (name, _) = attribute(field.get(2..)?).ok()?;
        (self.first.get(4..usize::from(self.key_end))? == name).then_some(())
    }

    /// Appends the attribute that was written so.
    pub fn decode(&self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Option<()> {
        let code = reader.byte()?;
        if code == 0 {
            out.extend_from_slice(&self.first);
            return Some(());
        }
        if code < OPAQUE {
            out.extend_from_slice(self.frozen.get(usize::from(code) - 1)?);
            return Some(());
        }
        let text = code >= TEXT;
        let len = code - if text { TEXT } else { OPAQUE };
        let value = reader.take(usize::from(len))?;
        let key = self.key()?;
        let value_len = len + if text { 4 } else { 0 };
        out.extend_from_slice(&[0x4a, key.len() as u8 + value_len]);
        out.extend_from_slice(key);
        if text {
            out.extend_from_slice(&[0x12, len + 2, 0x0a, len]);
        }
        out.extend_from_slice(value);
        Some(())
    }
}
