//! How values are written into a line: quoted, escaped, in hexadecimal, or `-` for nothing.

use net::Addr;
use std::net::IpAddr;

use crate::text::{push_hex, push_hex_number, push_int, push_ip, push_uint};

/// Flags of an item (manual §8.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// `M`: `-` for nothing.
    pub const MANDATORY: Flags = Flags(1);
    /// `Q`: in quotes.
    pub const QUOTE: Flags = Flags(2);
    /// `X`: in hexadecimal.
    pub const HEX: Flags = Flags(4);
    /// `E`: `"`, `\` and `]` escaped with a backslash.
    pub const ESCAPE: Flags = Flags(8);
    /// `bin`: bytes stay as they are.
    pub const BIN: Flags = Flags(16);

    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub fn with(self, flag: Flags, on: bool) -> Flags {
        if on {
            Flags(self.0 | flag.0)
        } else {
            Flags(self.0 & !flag.0)
        }
    }

    /// Text is written as it is.
    pub fn is_plain(self) -> bool {
        !self.has(Flags::QUOTE) && !self.has(Flags::ESCAPE)
    }
}

/// A set of bytes.
pub(crate) type ByteSet = [bool; 256];

const fn byte_set(controls: bool, high: bool, others: &[u8]) -> ByteSet {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        set[byte] = (controls && byte < 32) || (high && byte >= 127);
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        set[others[index] as usize] = true;
        index += 1;
    }
    set
}

/// What a captured header may not show.
pub(crate) static HEADER_UNSAFE: ByteSet = byte_set(true, true, b"\"#{|}");
/// What a request line may not show.
pub(crate) static URL_UNSAFE: ByteSet = byte_set(true, true, b"\"#");
/// What an HTTP field may not have: controls without the tab, and DEL.
pub(crate) static HTTP_UNSAFE: ByteSet = {
    let mut set = byte_set(true, false, b"\x7f");
    set[b'\t' as usize] = false;
    set
};

/// The first byte of a set. Nearly always there is none: eight are looked at for one branch.
fn position(bytes: &[u8], set: &ByteSet) -> Option<usize> {
    let hit = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(false, |hit, byte| hit | set[usize::from(*byte)])
    };
    let (chunks, _) = bytes.as_chunks::<8>();
    let clean = chunks.iter().take_while(|chunk| !hit(*chunk)).count() * 8;
    bytes[clean..]
        .iter()
        .position(|byte| set[usize::from(*byte)])
        .map(|at| clean + at)
}

/// An item's value on its way into the line.
pub(crate) struct Writer<'o> {
    pub out: &'o mut Vec<u8>,
    pub flags: Flags,
}

impl Writer<'_> {
    /// Text: quoted, escaped, `-` for nothing.
    pub fn text(&mut self, text: &[u8]) {
        let quoted = self.flags.has(Flags::QUOTE);
        if text.is_empty() && !quoted && self.flags.has(Flags::MANDATORY) {
            self.out.push(b'-');
            return;
        }
        self.quote();
        self.raw(text);
        self.quote();
    }

    /// Text that is never quoted.
    pub fn raw(&mut self, text: &[u8]) {
        if !self.flags.has(Flags::ESCAPE) {
            self.out.extend_from_slice(text);
            return;
        }
        for byte in text {
            if matches!(byte, b'"' | b'\\' | b']') {
                self.out.push(b'\\');
            }
            self.out.push(*byte);
        }
    }

    /// A quote where they are wanted.
    pub fn quote(&mut self) {
        if self.flags.has(Flags::QUOTE) {
            self.out.push(b'"');
        }
    }

    /// Text with the unsafe bytes as `#XX` (or another sign), from its beginning to the first NUL byte.
    pub fn encoded(&mut self, text: &[u8], sign: u8, is_unsafe: &ByteSet) {
        let mut rest = text;
        while let Some(at) = position(rest, is_unsafe) {
            self.raw(&rest[..at]);
            self.out.push(sign);
            push_hex(self.out, rest[at]);
            rest = &rest[at + 1..];
        }
        self.raw(rest);
    }

    /// As [`Writer::encoded`], in quotes where they are wanted.
    pub fn quoted_encoded(&mut self, text: &[u8], is_unsafe: &ByteSet) {
        self.quote();
        self.encoded(text, b'#', is_unsafe);
        self.quote();
    }

    /// A number.
    pub fn int(&mut self, value: i64) {
        push_int(self.out, value);
    }

    /// A number that is never negative.
    pub fn uint(&mut self, value: u64) {
        push_uint(self.out, value);
    }

    /// A number; with `X` in hexadecimal of at least this width.
    pub fn hex_or_uint(&mut self, value: u64, width: u32) {
        if self.flags.has(Flags::HEX) {
            push_hex_number(self.out, value, width);
        } else {
            self.uint(value);
        }
    }

    /// The IP address of an address.
    pub fn ip(&mut self, addr: Option<&Addr>) {
        match addr.map(|addr| (addr, addr.ip())) {
            None => self.text(b""),
            Some((_, None)) => self.text(b"unix"),
            Some((_, Some(ip))) if self.flags.has(Flags::HEX) => match ip {
                IpAddr::V4(ip) => ip
                    .octets()
                    .iter()
                    .for_each(|byte| push_hex(self.out, *byte)),
                IpAddr::V6(ip) => ip
                    .octets()
                    .iter()
                    .for_each(|byte| push_hex(self.out, *byte)),
            },
            Some((_, Some(ip))) => {
                self.quote();
                push_ip(self.out, ip);
                self.quote();
            }
        }
    }

    /// The port of an address; `unix` is what stands for one of a UNIX socket.
    pub fn port(&mut self, addr: Option<&Addr>, unix: impl FnOnce() -> u32) {
        match addr {
            None => self.text(b""),
            Some(addr) if addr.is_unix() => self.uint(unix().into()),
            Some(addr) => self.hex_or_uint(addr.port().into(), 4),
        }
    }
}
