//! Byte strings of samples: borrowed from the message where possible, otherwise in a recycled
//! buffer.
//!
//! Each thread keeps a few buffers. A dropped buffer returns there, so converters allocate nothing
//! in the steady state. A buffer is never handed out twice: exactly one [`Bytes`] owns it.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;

/// The longest byte string that an expression makes. A converter whose result would be longer has
/// no value.
pub const SAMPLE_BYTES_MAX: usize = 16 * 1024;

/// Buffers that a thread keeps for reuse.
const POOL_BUFFERS_MAX: usize = 32;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes of a sample. Reads as a slice.
pub enum Bytes<'a> {
    /// Part of a message, a fact or the configuration.
    Borrowed(&'a [u8]),
    /// Made by a converter, or copied from a borrowed value.
    Owned(Buffer),
}

impl<'a> Bytes<'a> {
    /// An empty buffer to fill, taken from the thread's recycled ones.
    #[must_use]
    pub fn buffer() -> Buffer {
        let bytes = POOL
            .try_with(|pool| pool.borrow_mut().pop())
            .ok()
            .flatten()
            .unwrap_or_default();
        Buffer { bytes, start: 0 }
    }

    /// The part from `start` to `end`, without copying. Positions beyond the end count as the end.
    #[must_use]
    pub fn slice(self, start: usize, end: usize) -> Bytes<'a> {
        match self {
            Bytes::Borrowed(bytes) => {
                let end = end.min(bytes.len());
                Bytes::Borrowed(&bytes[start.min(end)..end])
            }
            Bytes::Owned(mut buffer) => {
                let end = end.min(buffer.len());
                buffer.bytes.truncate(buffer.start + end);
                buffer.start += start.min(end);
                Bytes::Owned(buffer)
            }
        }
    }

    /// The same bytes in an owned buffer, which may be changed.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        match self {
            Bytes::Owned(buffer) => buffer,
            Bytes::Borrowed(bytes) => {
                let mut buffer = Bytes::buffer();
                buffer.extend(bytes);
                buffer
            }
        }
    }

    /// The same bytes without a borrow.
    #[must_use]
    pub fn detach(self) -> Bytes<'static> {
        Bytes::Owned(self.into_buffer())
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(buffer) => buffer,
        }
    }
}

impl Clone for Bytes<'_> {
    fn clone(&self) -> Self {
        match self {
            Bytes::Borrowed(bytes) => Bytes::Borrowed(bytes),
            Bytes::Owned(buffer) => Bytes::Owned(buffer.clone()),
        }
    }
}

impl PartialEq for Bytes<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes<'_> {}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.escape_ascii())
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Bytes::Borrowed(bytes)
    }
}

impl<'a> From<&'a str> for Bytes<'a> {
    fn from(text: &'a str) -> Self {
        Bytes::Borrowed(text.as_bytes())
    }
}

impl From<Buffer> for Bytes<'_> {
    fn from(buffer: Buffer) -> Self {
        Bytes::Owned(buffer)
    }
}

/// A recycled buffer. Reads as the slice of its bytes.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Appends one byte.
    pub fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The underlying vector, for functions that append to a vector.
    pub fn as_vec(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    /// Whether it is longer than [`SAMPLE_BYTES_MAX`].
    #[must_use]
    pub fn too_long(&self) -> bool {
        self.len() > SAMPLE_BYTES_MAX
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Bytes::buffer();
        copy.extend(self);
        copy
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() == 0 || bytes.capacity() > 2 * SAMPLE_BYTES_MAX {
            return;
        }
        bytes.clear();
        // A thread that is ending has no pool any more; then the buffer is freed.
        let _ = POOL.try_with(|pool| {
            if let Ok(mut pool) = pool.try_borrow_mut()
                && pool.len() < POOL_BUFFERS_MAX
            {
                pool.push(bytes);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_owned_and_borrowed_bytes_are_the_same() {
        for (start, end) in [(0, 5), (1, 3), (3, 3), (4, 99), (7, 2), (9, 9)] {
            let borrowed = Bytes::from("hello").slice(start, end);
            let owned = Bytes::from("hello").detach().slice(start, end);
            assert_eq!(borrowed, owned, "{start}..{end}");
        }
        assert_eq!(
            &*Bytes::from("hello").detach().slice(1, 4).slice(1, 2),
            b"l"
        );
    }

    #[test]
    fn a_dropped_buffer_comes_back_empty() {
        let mut buffer = Bytes::buffer();
        buffer.extend(b"secret");
        drop(Bytes::Owned(buffer).slice(2, 4));
        let again = Bytes::buffer();
        assert!(again.is_empty());
        assert!(again.bytes.capacity() >= 6);
    }
}
