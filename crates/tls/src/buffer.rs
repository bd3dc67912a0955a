//! A buffer that is filled and emptied repeatedly.

use std::ops::Deref;

/// Bytes in transit. Memory is zeroed once, when the buffer grows, and not again for each use.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// Empties the buffer and keeps its memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Drops the bytes after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// The room after its bytes, at least this much.
    fn spare(&mut self, room: usize) -> &mut [u8] {
        let wanted = self.len + room;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.next_power_of_two(), 0);
        }
        &mut self.bytes[self.len..]
    }

    /// Lets `write` put bytes into the room after the buffer's bytes; `write` returns how many.
    pub(crate) fn write_with<E>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let written = write(self.spare(room))?;
        self.len += written;
        Ok(())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn it_holds_what_was_put_in() {
        let mut buffer = Buffer::default();
        buffer.extend_from_slice(b"one");
        let put = buffer.write_with(3, |room| {
            room[..3].copy_from_slice(b"two");
            Ok::<_, ()>(3)
        });
        assert_eq!((put, &buffer[..]), (Ok(()), &b"onetwo"[..]));
        buffer.truncate(3);
        buffer.truncate(9);
        assert_eq!(&buffer[..], b"one");
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.extend_from_slice(b"three");
        assert_eq!(&buffer[..], b"three");
    }
}
