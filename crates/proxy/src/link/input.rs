//! Received bytes of a connection that are not used yet.

use std::ops::Deref;

/// A buffer that is consumed from the front, one request at a time. Consuming is amortised linear,
/// so that many small requests in one large delivery cost no more than one large request.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    taken: usize,
}

impl Input {
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether no bytes wait.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// Takes bytes from the front.
    pub fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            self.clear();
        } else if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Puts bytes before the present ones.
    pub fn put_back(&mut self, bytes: &[u8]) {
        let mut all = bytes.to_vec();
        all.extend_from_slice(self);
        *self = Input {
            bytes: all,
            taken: 0,
        };
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
    }

    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Deref for Input {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_was_not_taken() {
        let mut input = Input::default();
        input.extend_from_slice(b"abcdef");
        for left in [&b"bcdef"[..], b"cdef", b"def", b"ef", b"f", b""] {
            input.take(1);
            assert_eq!(&*input, left);
        }
        input.extend_from_slice(b"xy");
        assert_eq!(&*input, b"xy");
    }
}
