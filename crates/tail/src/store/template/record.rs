//! Where a span's record is written to.

/// Zeros that are written with one instruction.
const FEW: usize = 16;

/// A record in a buffer. What does not fit makes the span be kept as it came, so that the buffer is
/// as long as that.
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
    pub fn written(&self) -> usize {
        self.len
    }

    /// Begins anew.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends bytes; none where there is no room.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.buffer.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    /// Appends zeros; likewise.
    #[inline]
    pub fn zeros(&mut self, count: usize) -> Option<()> {
        let room = self.buffer.get_mut(self.len..)?;
        match room.first_chunk_mut::<FEW>() {
            // More than are asked for: what is appended next is written over them.
            Some(few) if count <= FEW => *few = [0; FEW],
            _ => fill(room, count)?,
        }
        self.len += count;
        Some(())
    }

    /// Appends a byte; likewise.
    #[inline]
    pub fn byte(&mut self, byte: u8) -> Option<()> {
        *self.buffer.get_mut(self.len)? = byte;
        self.len += 1;
        Some(())
    }

    /// Appends a varint; likewise.
    #[inline]
    pub fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80)?;
            value >>= 7;
        }
        self.byte(value as u8)
    }
}

/// Writes zeros. It stands apart, as else both ways would be one call.
#[cold]
#[inline(never)]
fn fill(room: &mut [u8], count: usize) -> Option<()> {
    room.get_mut(..count)?.fill(0);
    Some(())
}
