//! How values are written into a line: quoted, escaped, in hexadecimal, or `-` for nothing.

use net::Addr;
use std::net::IpAddr;

use super::encode::{self, Cbor};
use crate::text::{
    hex_digits, push_hex, push_hex_number, push_int, push_ip, push_padded, push_uint,
};

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
    /// `json`
    pub const JSON: Flags = Flags(32);
    /// `cbor`
    pub const CBOR: Flags = Flags(64);
    /// For HTTP: what a header may not have as `%XX`. Set by the style, not by the text.
    pub const HTTP: Flags = Flags(128);
    /// Either encoding.
    pub const ENCODING: Flags = Flags(32 | 64);
    /// What puts something before and behind a text.
    const FRAMING: Flags = Flags(2 | 32 | 64);
    /// What changes a text itself.
    const ALTERING: Flags = Flags(8 | 32 | 64);

    /// Whether it has any of these flags.
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

    /// The flags that both have.
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// These flags of the other one, the rest as they are.
    pub fn taking(self, flags: Flags, other: Flags) -> Flags {
        Flags(self.0 & !flags.0 | other.0 & flags.0)
    }

    /// Text is written as it is.
    pub fn is_plain(self) -> bool {
        !self.has(Flags(2 | 8 | 32 | 64))
    }
}

/// The type that an item's name asks for: `%(name:type)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Typed {
    /// As it comes.
    #[default]
    Same,
    Str,
    Int,
    Bool,
    /// Its bytes, without quotes or escapes.
    Raw,
}

/// How an item is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Output {
    pub flags: Flags,
    pub typed: Typed,
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

/// What `E` escapes (RFC 5424 §6.3.3).
static SD_ESCAPED: ByteSet = byte_set(false, false, b"\"\\]");
/// What a JSON string escapes in HAProxy.
static JSON_ESCAPED: ByteSet = byte_set(false, false, b"\"\\");

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
    pub typed: Typed,
    /// Between [`Writer::begin`] and [`Writer::end`]: pieces make one text.
    in_text: bool,
    /// Where its value begins in `out`.
    start: usize,
}

impl<'o> Writer<'o> {
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, output: Output) -> Writer<'o> {
        let start = out.len();
        Writer {
            out,
            flags: output.flags,
            typed: output.typed,
            in_text: false,
            start,
        }
    }

    /// Nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.out.len() == self.start
    }

    /// Ends the value: an encoding has a word for none.
    #[inline]
    pub fn finish(&mut self) {
        if self.flags.has(Flags::ENCODING) && self.is_empty() {
            self.nothing();
        }
    }

    fn nothing(&mut self) {
        if self.flags.has(Flags::JSON) {
            self.out.extend_from_slice(b"null");
        } else {
            self.cbor().byte(encode::NULL);
        }
    }

    fn cbor(&mut self) -> Cbor<'_> {
        Cbor {
            binary: self.flags.has(Flags::BIN),
            out: self.out,
        }
    }

    /// Text: quoted, escaped, `-` for nothing.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        if self.flags.is_plain() && !text.is_empty() {
            return self.out.extend_from_slice(text);
        }
        if self.flags.has(Flags::QUOTE.with(Flags::JSON, true)) {
            self.out.push(b'"');
            self.piece(text);
            self.out.push(b'"');
        } else if !text.is_empty() {
            self.piece(text);
        } else if self.flags.has(Flags::MANDATORY) && !self.flags.has(Flags::CBOR) {
            self.out.push(b'-');
        }
    }

    /// Text that is never quoted, unless its encoding asks for it.
    #[inline]
    pub fn raw(&mut self, text: &[u8]) {
        if self.flags.has(Flags::JSON) && !self.in_text {
            self.text(text);
        } else {
            self.piece(text);
        }
    }

    /// As [`Writer::raw`], of text that needs no escapes.
    pub fn short(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.flags.has(Flags::ENCODING) {
            return write(self.out);
        }
        // The value is at most a date or an address: written behind the line, then put into its place.
        let end = self.out.len();
        write(self.out);
        let mut text = [0; SHORT_BYTES_MAX];
        let length = (self.out.len() - end).min(SHORT_BYTES_MAX);
        text[..length].copy_from_slice(&self.out[end..end + length]);
        self.out.truncate(end);
        self.raw(&text[..length]);
    }

    /// Text without quotes.
    #[inline]
    fn piece(&mut self, text: &[u8]) {
        if self.flags.has(Flags::ALTERING) {
            self.altered(text);
        } else {
            self.out.extend_from_slice(text);
        }
    }

    fn altered(&mut self, text: &[u8]) {
        match self.flags {
            flags if flags.has(Flags::JSON) => self.escaped(text, &JSON_ESCAPED),
            flags if flags.has(Flags::CBOR) => {
                if !text.is_empty() {
                    self.cbor().string(encode::TEXT, text);
                }
            }
            _ => self.escaped(text, &SD_ESCAPED),
        }
    }

    fn escaped(&mut self, text: &[u8], set: &ByteSet) {
        let mut rest = text;
        while let Some(at) = position(rest, set) {
            self.out.extend_from_slice(&rest[..at]);
            self.out.extend_from_slice(&[b'\\', rest[at]]);
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
    }

    /// Begins a text that is made of pieces.
    #[inline]
    pub fn begin(&mut self) {
        self.in_text = true;
        if self.flags.has(Flags::FRAMING) {
            self.open();
        }
    }

    fn open(&mut self) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().byte(encode::TEXT | encode::INDEFINITE);
        } else if self.flags.has(Flags::QUOTE.with(Flags::JSON, true)) {
            self.out.push(b'"');
        }
    }

    /// Ends it.
    #[inline]
    pub fn end(&mut self) {
        self.in_text = false;
        if self.flags.has(Flags::FRAMING) {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().byte(encode::BREAK);
        } else if self.flags.has(Flags::QUOTE.with(Flags::JSON, true)) {
            self.out.push(b'"');
        }
    }

    /// A byte of a text that is made of pieces.
    #[inline]
    pub fn mark(&mut self, byte: u8) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().string(encode::TEXT, &[byte]);
        } else {
            self.out.push(byte);
        }
    }

    /// A sign that is no part of the value: an encoding leaves it out.
    #[inline]
    pub fn remark(&mut self, byte: u8) {
        if !self.flags.has(Flags::ENCODING) {
            self.out.push(byte);
        }
    }

    /// A piece of a text, with the unsafe bytes as `#XX` (or another sign).
    pub fn encoded(&mut self, text: &[u8], sign: u8, is_unsafe: &ByteSet) {
        let mut rest = text;
        while let Some(at) = position(rest, is_unsafe) {
            self.chunk(&rest[..at]);
            let [high, low] = hex_digits(rest[at]);
            let sign = [sign, high, low];
            match self.flags.has(Flags::CBOR) {
                true => self.chunk(&sign),
                false => self.out.extend_from_slice(&sign),
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.chunk(rest);
        }
    }

    /// As [`Writer::piece`], and in CBOR also when it is empty.
    #[inline]
    fn chunk(&mut self, text: &[u8]) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().string(encode::TEXT, text);
        } else {
            self.piece(text);
        }
    }

    /// A whole text by [`Writer::encoded`].
    pub fn quoted_encoded(&mut self, text: &[u8], is_unsafe: &ByteSet) {
        self.begin();
        self.encoded(text, b'#', is_unsafe);
        self.end();
    }

    /// Bytes that stay what they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.flags.has(Flags::CBOR) {
            let mut cbor = self.cbor();
            cbor.byte(encode::BYTES | encode::INDEFINITE);
            if !bytes.is_empty() {
                cbor.string(encode::BYTES, bytes);
            }
            cbor.byte(encode::BREAK);
        } else {
            self.piece(bytes);
        }
    }

    /// A list of texts: this before, [`Writer::next`] between, [`Writer::end_list`] behind them.
    pub fn begin_list(&mut self) {
        if self.flags.has(Flags::JSON) {
            self.out.push(b'[');
        } else if self.flags.has(Flags::CBOR) {
            self.cbor().byte(encode::ARRAY);
        }
    }

    pub fn next(&mut self) {
        if self.flags.has(Flags::JSON) {
            self.out.extend_from_slice(b", ");
        } else if !self.flags.has(Flags::CBOR) {
            self.out.push(b' ');
        }
    }

    pub fn end_list(&mut self) {
        if self.flags.has(Flags::JSON) {
            self.out.push(b']');
        } else if self.flags.has(Flags::CBOR) {
            self.cbor().byte(encode::BREAK);
        }
    }

    /// A number.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if self.flags.has(Flags::ENCODING) {
            self.encoded_int(value);
        } else {
            push_int(self.out, value);
        }
    }

    fn encoded_int(&mut self, value: i64) {
        if self.typed == Typed::Bool {
            self.bool(value != 0);
        } else if self.flags.has(Flags::CBOR) {
            self.cbor().int(value);
        } else {
            // As text, for readers whose numbers are not that long.
            let quoted = self.typed == Typed::Str;
            self.out.extend(quoted.then_some(b'"'));
            push_int(self.out, value);
            self.out.extend(quoted.then_some(b'"'));
        }
    }

    /// A number that is never negative.
    #[inline]
    pub fn uint(&mut self, value: u64) {
        if self.flags.has(Flags::ENCODING) {
            self.encoded_int(i64::try_from(value).unwrap_or(i64::MAX));
        } else {
            push_uint(self.out, value);
        }
    }

    /// A truth of an encoding.
    pub fn bool(&mut self, value: bool) {
        match (self.flags.has(Flags::CBOR), value) {
            (true, true) => self.cbor().byte(encode::TRUE),
            (true, false) => self.cbor().byte(encode::FALSE),
            (false, true) => self.out.extend_from_slice(b"true"),
            (false, false) => self.out.extend_from_slice(b"false"),
        }
    }

    /// A number of at least this width.
    pub fn padded(&mut self, value: u64, width: u32) {
        if self.flags.has(Flags::ENCODING) {
            self.uint(value);
        } else {
            push_padded(self.out, value, width);
        }
    }

    /// A number in hexadecimal of at least this width.
    pub fn hex(&mut self, value: u64, width: u32) {
        self.short(|out| push_hex_number(out, value, width));
    }

    /// A number; with `X` in hexadecimal of at least this width.
    #[inline]
    pub fn hex_or_uint(&mut self, value: u64, width: u32) {
        if self.flags.has(Flags::HEX) {
            self.hex(value, width);
        } else {
            self.uint(value);
        }
    }

    /// The IP address of an address.
    pub fn ip(&mut self, addr: Option<&Addr>) {
        match addr.map(|addr| (addr, addr.ip())) {
            None => self.text(b""),
            Some((_, None)) => self.text(b"unix"),
            Some((_, Some(ip))) if self.flags.has(Flags::HEX) => self.short(|out| match ip {
                IpAddr::V4(ip) => ip.octets().iter().for_each(|byte| push_hex(out, *byte)),
                IpAddr::V6(ip) => ip.octets().iter().for_each(|byte| push_hex(out, *byte)),
            }),
            Some((_, Some(ip))) => {
                let quoted = self.flags.has(Flags::QUOTE) && !self.flags.has(Flags::ENCODING);
                self.out.extend(quoted.then_some(b'"'));
                self.short(|out| push_ip(out, ip));
                self.out.extend(quoted.then_some(b'"'));
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

/// The longest value that [`Writer::short`] takes: an IPv6 address.
const SHORT_BYTES_MAX: usize = 46;
