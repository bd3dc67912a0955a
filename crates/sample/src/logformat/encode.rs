//! JSON and CBOR in log lines (manual §8.2.6 flags `json`, `cbor` and `bin`; RFC 8949).
//!
//! Without `bin`, CBOR is written in hexadecimal, so that any log target can carry it. As in
//! HAProxy, only quotes and backslashes are escaped in JSON strings.

use crate::text::push_hex;

/// Major types of CBOR (RFC 8949 §3.1), in the upper three bits of the first byte.
pub(super) const BYTES: u8 = 0x40;
pub(super) const TEXT: u8 = 0x60;
const NEGATIVE: u8 = 0x20;

/// Combined with a major type: indefinite length, up to [`BREAK`] (RFC 8949 §3.2).
pub(super) const INDEFINITE: u8 = 0x1f;
pub(super) const BREAK: u8 = 0xff;
pub(super) const MAP: u8 = 0xbf;
pub(super) const ARRAY: u8 = 0x9f;
pub(super) const FALSE: u8 = 0xf4;
pub(super) const TRUE: u8 = 0xf5;
pub(super) const NULL: u8 = 0xf6;

/// Writes CBOR, as bytes or in hexadecimal.
pub(super) struct Cbor<'o> {
    pub out: &'o mut Vec<u8>,
    /// As bytes (`bin`).
    pub binary: bool,
}

impl Cbor<'_> {
    pub fn byte(&mut self, byte: u8) {
        if self.binary {
            self.out.push(byte);
        } else {
            push_hex(self.out, byte);
        }
    }

    /// A major type and its argument, in the fewest possible bytes.
    fn head(&mut self, major: u8, argument: u64) {
        let bytes = argument.to_be_bytes();
        let (short, width) = match argument {
            0..24 => return self.byte(major | argument as u8),
            24..=0xff => (24, 1),
            0x100..=0xffff => (25, 2),
            0x1_0000..=0xffff_ffff => (26, 4),
            _ => (27, 8),
        };
        self.byte(major | short);
        for byte in &bytes[8 - width..] {
            self.byte(*byte);
        }
    }

    pub fn int(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(0, value),
            Err(_) => self.head(NEGATIVE, !(value as u64)),
        }
    }

    /// A whole string, or a chunk of one with indefinite length.
    pub fn string(&mut self, major: u8, bytes: &[u8]) {
        self.head(major, bytes.len() as u64);
        if self.binary {
            self.out.extend_from_slice(bytes);
        } else {
            bytes.iter().for_each(|byte| push_hex(self.out, *byte));
        }
    }
}
