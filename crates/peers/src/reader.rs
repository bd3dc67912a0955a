//! Reads the parts of a message that is there completely.

use crate::{Malformed, varint};

/// The rest of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Some bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Four bytes, most significant first.
    pub fn fixed(&mut self) -> Result<u32, Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    /// An integer of variable length.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, length) = varint::get(self.0)?.ok_or(Malformed)?;
        self.0 = &self.0[length..];
        Ok(value)
    }

    /// A length of variable length, and as many bytes.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        self.bytes(length)
    }
}
