//! Where a span's record is written to, or nowhere.

/// What is written of a span.
pub trait Out {
    /// It is kept: values are worth a number.
    const KEEPS: bool;

    /// Begins anew.
    fn clear(&mut self);

    /// Appends bytes; none where there is no room.
    fn bytes(&mut self, bytes: &[u8]) -> Option<()>;

    /// Appends a byte.
    fn byte(&mut self, byte: u8) -> Option<()>;

    /// Appends a varint.
    fn varint(&mut self, value: u64) -> Option<()>;
}

/// A record in a buffer. What does not fit makes the span be kept as it came, so that the buffer is as long as that.
#[derive(Debug)]
pub struct Buffer<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Buffer<'b> {
    /// One that fits in a buffer.
    pub fn new(buffer: &'b mut [u8]) -> Buffer<'b> {
        Buffer { buffer, len: 0 }
    }

    /// Bytes that were written.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Out for Buffer<'_> {
    const KEEPS: bool = true;

    #[inline]
    fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.buffer.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        *self.buffer.get_mut(self.len)? = byte;
        self.len += 1;
        Some(())
    }

    #[inline]
    fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80)?;
            value >>= 7;
        }
        self.byte(value as u8)
    }
}

/// Nowhere: the span is only read.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Out for Nowhere {
    const KEEPS: bool = false;

    #[inline]
    fn clear(&mut self) {}

    #[inline]
    fn bytes(&mut self, _: &[u8]) -> Option<()> {
        Some(())
    }

    #[inline]
    fn byte(&mut self, _: u8) -> Option<()> {
        Some(())
    }

    #[inline]
    fn varint(&mut self, _: u64) -> Option<()> {
        Some(())
    }
}
