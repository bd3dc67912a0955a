//! Fast paths for the usual layout of messages, written at once instead of field by field.

use syntax::hex;

use super::Writer;
use crate::plain::is_plain;
use crate::wire::{Wire, field};

impl<'a> Writer<'a> {
    /// Writes the first fields of a `Span`, as long as they are those of nearly all spans, in their
    /// order. Returns the remaining fields, and the bits of the field numbers that are written.
    #[inline]
    pub(super) fn span_head(&mut self, bytes: &'a [u8]) -> (&'a [u8], u32) {
        let (Some(trace_id), Some(span_id)) = (
            fixed::<0x0a, 16>(bytes),
            fixed::<0x12, 8>(bytes.get(18..).unwrap_or_default()),
        ) else {
            return (bytes, 0);
        };
        let (mut rest, mut written) = (&bytes[28..], 1 << 1 | 1 << 2);
        self.out.extend_from_slice(b"\"traceId\":\"");
        self.out.extend_from_slice(&hex::array::<16, 32>(trace_id));
        self.out.extend_from_slice(b"\",\"spanId\":\"");
        self.out.extend_from_slice(&hex::array::<8, 16>(span_id));
        self.out.push(b'"');
        if let Some(parent) = fixed::<0x22, 8>(rest) {
            (rest, written) = (&rest[10..], written | 1 << 4);
            self.out.extend_from_slice(b",\"parentSpanId\":\"");
            self.out.extend_from_slice(&hex::array::<8, 16>(parent));
            self.out.push(b'"');
        }
        let Some((5, Wire::Bytes(name), behind)) = field(rest) else {
            return (rest, written);
        };
        if !is_plain(name) {
            return (rest, written);
        }
        (rest, written) = (behind, written | 1 << 5);
        self.out.extend_from_slice(b",\"name\":\"");
        self.out.extend_from_slice(name);
        self.out.push(b'"');
        let [0x30, kind @ 0..10, 0x39, start @ ..] = rest else {
            return (rest, written);
        };
        let Some((start, [0x41, end @ ..])) = start.split_first_chunk::<8>() else {
            return (rest, written);
        };
        let Some((end, behind)) = end.split_first_chunk::<8>() else {
            return (rest, written);
        };
        self.out.extend_from_slice(b",\"kind\":");
        self.out.push(b'0' + kind);
        self.out.extend_from_slice(b",\"startTimeUnixNano\":\"");
        self.decimal(u64::from_le_bytes(*start));
        self.out.extend_from_slice(b"\",\"endTimeUnixNano\":\"");
        self.decimal(u64::from_le_bytes(*end));
        self.out.push(b'"');
        written |= 1 << 6 | 1 << 7 | 1 << 8;
        // In a span without attributes, events and links only the flags remain.
        if let [0x85, 0x01, flags @ ..] = behind
            && let Ok(flags) = <[u8; 4]>::try_from(flags)
        {
            self.out.extend_from_slice(b",\"flags\":");
            self.decimal(u64::from(u32::from_le_bytes(flags)));
            return (&[], written | 1 << 16);
        }
        (behind, written)
    }

    /// Writes a `KeyValue` of a key and a text, an integer or a bool, the usual form. Writes
    /// nothing for any other form.
    #[inline]
    pub(super) fn pair(&mut self, bytes: &[u8]) -> Option<()> {
        let (1, Wire::Bytes(key), rest) = field(bytes)? else {
            return None;
        };
        let (2, Wire::Bytes(any), []) = field(rest)? else {
            return None;
        };
        let (number, wire, []) = field(any)? else {
            return None;
        };
        let mut buffer = itoa::Buffer::new();
        let (before, value, after) = match (number, wire) {
            (1, Wire::Bytes(text)) if is_plain(text) => ("stringValue\":\"", text, "\"}}"),
            (2, Wire::Number(0)) => ("boolValue\":", &b"false"[..], "}}"),
            (2, Wire::Number(_)) => ("boolValue\":", &b"true"[..], "}}"),
            (3, Wire::Number(number)) => {
                let text = buffer.format(number.cast_signed());
                ("intValue\":\"", text.as_bytes(), "\"}}")
            }
            _ => return None,
        };
        if !is_plain(key) {
            return None;
        }
        self.out.extend_from_slice(b"{\"key\":\"");
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(b"\",\"value\":{\"");
        self.out.extend_from_slice(before.as_bytes());
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(after.as_bytes());
        Some(())
    }
}

/// The content of a field with key `KEY` and `N` bytes.
#[inline]
fn fixed<const KEY: u8, const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    match bytes {
        [key, length, rest @ ..] if *key == KEY && usize::from(*length) == N => rest.first_chunk(),
        _ => None,
    }
}
