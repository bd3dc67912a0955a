//! What the codecs read and write in a head: fields by their place in its buffer.

use std::ops::Range;

use super::{Field, Head, Span, field_id, span};
use crate::bytes::trim;
use crate::{Name, target};

impl Head {
    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        &self.buf[span.at as usize..(span.at + span.len) as usize]
    }

    /// Adds a field that has its mark and whose bytes are already in the buffer.
    /// [`Head::count_parsed`] follows the last one.
    #[inline(always)]
    pub(crate) fn push_parsed(&mut self, field: Field) {
        self.present.insert(field.id);
        if field.id == Name::Other {
            self.others |= 1 << field.mark;
        }
        self.fields.push(field);
    }

    /// Counts the fields of [`Head::push_parsed`]. `block`: the part of the buffer that has all of
    /// them in wire form, before an empty line.
    #[inline]
    pub(crate) fn count_parsed(&mut self, block: Option<Range<usize>>) {
        self.live = self.fields.len() as u32;
        match block {
            Some(block) => {
                debug_assert_eq!(block.len(), self.fields.iter().map(Field::wire_bytes).sum());
                self.fields_bytes = block.len();
                self.block = span(block.start, block.len() + 2);
            }
            None => self.fields_bytes = self.fields.iter().map(Field::wire_bytes).sum(),
        }
    }

    /// Adds a field that has its mark and whose bytes are already in the buffer.
    #[inline]
    pub(crate) fn push_marked(&mut self, field: Field) {
        self.count_in(field);
    }

    #[inline]
    pub(super) fn count_in(&mut self, field: Field) {
        self.present.insert(field.id);
        if field.id == Name::Other {
            self.others |= 1 << field.mark;
        }
        self.live += 1;
        self.fields_bytes += field.wire_bytes();
        self.block = Span::default();
        self.fields.push(field);
    }

    /// The start line, the fields and the empty line, if the buffer has them in wire form and in
    /// one piece.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        let Span { at, len } = self.start.line;
        let is_whole = len > 0 && self.block.len > 0 && at + len == self.block.at;
        is_whole.then(|| {
            self.slice(Span {
                at,
                len: len + self.block.len,
            })
        })
    }

    /// Joins a value to that of the last field. The field's line ends at `at`; there another line
    /// begins, whose value is the rest of the buffer without its CRLF.
    pub(crate) fn join_line(&mut self, at: usize, value: usize, separator: [u8; 2]) {
        let Some(field) = self.fields.last_mut() else {
            return;
        };
        debug_assert!(field.line && (field.value.at + field.value.len) as usize + 2 == at);
        self.block = Span::default();
        let len = self.buf.len() - value;
        self.buf[at - 2..at].copy_from_slice(&separator);
        self.buf.copy_within(value.., at);
        self.buf.truncate(at + len);
        // The separator replaces the CRLF between the lines.
        field.value.len += len as u32;
        self.fields_bytes += len;
    }

    /// Records the parts of a target that is already in the buffer.
    pub(crate) fn locate_target(&mut self, target: Span) {
        let parts = target::split(self.slice(target));
        let inside = |at: usize, len: usize| span(target.at as usize + at, len);
        self.start.target = target;
        self.start.authority = inside(parts.authority.start, parts.authority.len());
        self.start.path = inside(parts.path_at, target.len as usize - parts.path_at);
    }

    /// Removes every field of an interned name.
    pub(crate) fn remove_id(&mut self, name: Name) {
        if !self.present.contains(name) {
            return;
        }
        for at in 0..self.fields.len() {
            if self.fields[at].id == name {
                self.take_out(field_id(at));
            }
        }
    }

    /// Gives every live field of a name the same value, which is already in the buffer.
    pub(crate) fn point_values(&mut self, name: Name, value: Span) {
        self.block = Span::default();
        for field in self
            .fields
            .iter_mut()
            .filter(|field| field.id == name && field.live)
        {
            self.fields_bytes -= field.wire_bytes();
            field.line &= field.value == value;
            field.value = value;
            self.fields_bytes += field.wire_bytes();
        }
    }

    /// Removes the elements that `keep` rejects, and empty ones, from the comma-separated lists of
    /// a name; a field that becomes empty is removed.
    pub(crate) fn filter_list(&mut self, name: Name, keep: impl Fn(&[u8]) -> bool) {
        for at in 0..self.fields.len() {
            let Field {
                id,
                live: true,
                value,
                ..
            } = self.fields[at]
            else {
                continue;
            };
            if id != name {
                continue;
            }
            match compact_list(
                &mut self.buf[value.at as usize..(value.at + value.len) as usize],
                &keep,
            ) {
                0 => self.remove(field_id(at)),
                len => {
                    self.block = Span::default();
                    let field = &mut self.fields[at];
                    self.fields_bytes -= field.wire_bytes();
                    field.line &= len == field.value.len as usize;
                    field.value.len = len as u32;
                    self.fields_bytes += field.wire_bytes();
                }
            }
        }
    }
}

/// Moves the kept elements to the front; returns their total length.
fn compact_list(value: &mut [u8], keep: impl Fn(&[u8]) -> bool) -> usize {
    let (mut from, mut len) = (0, 0);
    while from < value.len() {
        let rest = &value[from..];
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        let element = trim(&rest[..comma]);
        let lead = rest[..comma]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if !element.is_empty() && keep(element) {
            let (start, size) = (from + lead, element.len());
            if len > 0 {
                value[len] = b',';
                len += 1;
            }
            value.copy_within(start..start + size, len);
            len += size;
        }
        from += comma + 1;
    }
    len
}
