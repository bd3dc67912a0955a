//! The texts of one stream, in one buffer.

use super::TEXT_BYTES_MAX;

/// A text of an [`Arena`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    start: u32,
    len: u32,
}

impl Text {
    /// No bytes.
    pub const EMPTY: Text = Text { start: 0, len: 0 };

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Its bytes.
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }
}

/// The texts of a stream.
#[derive(Debug, Default)]
pub struct Arena {
    bytes: Vec<u8>,
    /// Holds texts that are read while another is written.
    read: Vec<u8>,
    is_cut: bool,
}

/// The most memory that an arena keeps between streams, bytes.
const KEPT_BYTES_MAX: usize = 64 * 1024;

impl Arena {
    /// Removes all texts.
    pub fn clear(&mut self) {
        self.is_cut = false;
        self.bytes.clear();
        for kept in [&mut self.bytes, &mut self.read] {
            if kept.capacity() > KEPT_BYTES_MAX {
                *kept = Vec::new();
            }
        }
    }

    /// Whether a text exceeded the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// A text's bytes.
    #[must_use]
    #[inline]
    pub fn get(&self, text: Text) -> &[u8] {
        let start = text.start as usize;
        self.bytes
            .get(start..start + text.len())
            .unwrap_or_default()
    }

    /// Stores a text; one that exceeds the limit becomes empty.
    #[inline]
    pub fn text(&mut self, text: &[u8]) -> Text {
        if self.bytes.len() + text.len() > TEXT_BYTES_MAX {
            self.is_cut = true;
            return Text::EMPTY;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text);
        Text {
            start,
            len: text.len() as u32,
        }
    }

    /// Stores the text that `write` appends; one that exceeds the limit becomes empty.
    #[inline]
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Text {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let len = self.bytes.len().saturating_sub(start);
        if self.bytes.len() > TEXT_BYTES_MAX {
            self.bytes.truncate(start);
            self.is_cut = true;
            return Text::EMPTY;
        }
        Text {
            start: start as u32,
            len: len as u32,
        }
    }

    /// Stores the text that `write` makes from stored texts.
    pub fn edit<const N: usize>(
        &mut self,
        old: [Text; N],
        write: impl FnOnce([&[u8]; N], &mut Vec<u8>),
    ) -> Text {
        // The stored texts are read while the new one is written after them.
        let mut read = std::mem::take(&mut self.read);
        read.clear();
        for text in old {
            read.extend_from_slice(self.get(text));
        }
        let mut rest = &read[..];
        let texts = old.map(|text| {
            let (text, others) = rest.split_at(self.get(text).len());
            rest = others;
            text
        });
        let new = self.write(|out| write(texts, out));
        self.read = read;
        new
    }
}
