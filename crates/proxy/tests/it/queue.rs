//! Bytes on their way: in at one end, out at the other.

/// See the module.
#[derive(Debug, Default)]
pub struct Queue {
    bytes: Vec<u8>,
    at: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn peek(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub fn skip(&mut self, count: usize) {
        self.at += count;
        assert!(self.at <= self.bytes.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Moves the first `count` bytes to the end of `to`.
    pub fn take(&mut self, count: usize, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.peek()[..count]);
        self.skip(count);
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }
}
