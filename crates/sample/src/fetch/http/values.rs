//! Splits fields: their lines, and the comma-separated values in them (RFC 9110 §5.6.1).

use ::http::{Head, Name};

/// Whole values of the fields with an interned name, without surrounding blanks.
pub(super) fn lines(head: &Head, name: Name) -> impl Iterator<Item = &[u8]> {
    head.get_all(name).map(|(_, value)| trim(value))
}

/// A value without surrounding blanks.
#[must_use]
pub fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = value {
        value = rest;
    }
    value
}

/// The comma-separated values of a field; commas in quoted strings do not separate (RFC 9110
/// §5.6.1).
pub(super) struct Values<'a> {
    pub(super) line: &'a [u8],
    /// The position of the next value; beyond the end if there is none.
    pub(super) at: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(line: &'a [u8]) -> Values<'a> {
        Values { line, at: 0 }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.line.get(self.at..)?;
        let length = value_end(rest);
        self.at += length + 1;
        Some(trim(&rest[..length]))
    }
}

/// The end of a value: the first comma outside of quotes, or the end of the text.
#[must_use]
pub fn value_end(bytes: &[u8]) -> usize {
    let Some(first) = memchr::memchr2(b',', b'"', bytes) else {
        return bytes.len();
    };
    if bytes[first] == b',' {
        return first;
    }
    let mut quoted = false;
    let mut escaped = false;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return index,
            _ => {}
        }
    }
    bytes.len()
}
