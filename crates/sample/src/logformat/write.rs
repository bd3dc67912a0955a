//! How values are written into a line: quoted, escaped, in hexadecimal, or `-` for an empty value.

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
    /// `M`: `-` for an empty value.
    pub const MANDATORY: Flags = Flags(1);
    /// `Q`: in quotes.
    pub const QUOTE: Flags = Flags(2);
    /// `X`: in hexadecimal.
    pub const HEX: Flags = Flags(4);
    /// `E`: `"`, `\` and `]` escaped with a backslash.
    pub const ESCAPE: Flags = Flags(8);
    /// `bin`: bytes are written unchanged.
    pub const BIN: Flags = Flags(16);
    /// `json`
    pub const JSON: Flags = Flags(32);
    /// `cbor`
    pub const CBOR: Flags = Flags(64);
    /// For HTTP: bytes that are invalid in a header become `%XX`. Set by the style, not by the
    /// text.
    pub const HTTP: Flags = Flags(128);
    /// Either encoding.
    pub const ENCODING: Flags = Flags(32 | 64);
    /// Flags that add text before and after a value.
    const FRAMING: Flags = Flags(2 | 32 | 64);
    /// Flags that change the value's text.
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

    /// The flags that both sets have.
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// This set, with `flags` taken from the other set.
    pub fn taking(self, flags: Flags, other: Flags) -> Flags {
        Flags(self.0 & !flags.0 | other.0 & flags.0)
    }

    /// Whether text is written unchanged.
    pub fn is_plain(self) -> bool {
        !self.has(Flags(2 | 8 | 32 | 64))
    }
}

/// The type that an item's name specifies: `%(name:type)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The value's own type.
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

/// Bytes that are unsafe in a captured header.
pub(crate) static HEADER_UNSAFE: ByteSet = byte_set(true, true, b"\"#{|}");
/// Bytes that are unsafe in a request line.
pub(crate) static URL_UNSAFE: ByteSet = byte_set(true, true, b"\"#");
/// Bytes that are invalid in an HTTP field: control characters except the tab, and DEL.
pub(crate) static HTTP_UNSAFE: ByteSet = {
    let mut set = byte_set(true, false, b"\x7f");
    set[b'\t' as usize] = false;
    set
};

/// Bytes that `E` escapes (RFC 5424 §6.3.3).
static SD_ESCAPED: ByteSet = byte_set(false, false, b"\"\\]");
/// Bytes that HAProxy escapes in a JSON string.
static JSON_ESCAPED: ByteSet = byte_set(false, false, b"\"\\");

/// The position of the first byte in a set. Nearly always there is none, so eight bytes are checked
/// per branch.
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

/// Writes the value of an item into the line.
pub(crate) struct Writer<'o> {
    pub out: &'o mut Vec<u8>,
    pub flags: Flags,
    pub typed: Typed,
    /// Set between [`Writer::begin`] and [`Writer::end`]: pieces form one text.
    in_text: bool,
    /// The start of the value in `out`.
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

    /// Begins the next value.
    #[inline]
    pub fn next_value(&mut self, output: Output) {
        (self.flags, self.typed) = (output.flags, output.typed);
        self.start = self.out.len();
    }

    /// Whether nothing was written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.out.len() == self.start
    }

    /// Ends the value. An encoding has a token for an empty one.
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

    /// Writes text: quoted, escaped, `-` if it is empty.
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

    /// Writes text that is not quoted, unless the encoding requires it.
    #[inline]
    pub fn raw(&mut self, text: &[u8]) {
        if self.flags.has(Flags::JSON) && !self.in_text {
            self.text(text);
        } else {
            self.piece(text);
        }
    }

    /// Like [`Writer::raw`], for text that needs no escapes.
    pub fn short(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.flags.has(Flags::ENCODING) {
            return write(self.out);
        }
        // The value is at most a date or an address. It is written at the end of the line, then
        // moved to its place.
        let end = self.out.len();
        write(self.out);
        let mut text = [0; SHORT_BYTES_MAX];
        let length = (self.out.len() - end).min(SHORT_BYTES_MAX);
        text[..length].copy_from_slice(&self.out[end..end + length]);
        self.out.truncate(end);
        self.raw(&text[..length]);
    }

    /// Writes text without quotes.
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

    /// Begins a text that consists of pieces.
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

    /// Ends the text.
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

    /// Writes a byte of a text that consists of pieces.
    #[inline]
    pub fn mark(&mut self, byte: u8) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().string(encode::TEXT, &[byte]);
        } else {
            self.out.push(byte);
        }
    }

    /// Writes a sign that is not part of the value; an encoding omits it.
    #[inline]
    pub fn remark(&mut self, byte: u8) {
        if !self.flags.has(Flags::ENCODING) {
            self.out.push(byte);
        }
    }

    /// Writes a piece of a text, with unsafe bytes as `#XX` (or with another sign).
    pub fn encoded(&mut self, text: &[u8], sign: u8, is_unsafe: &ByteSet) {
        let mut rest = text;
        while let Some(at) = position(rest, is_unsafe) {
            self.chunk(&rest[..at]);
            let [high, low] = hex_digits(rest[at]);
            let sign = [sign, high, low];
            if self.flags.has(Flags::CBOR) {
                self.chunk(&sign)
            } else {
                self.out.extend_from_slice(&sign)
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.chunk(rest);
        }
    }

    /// Like [`Writer::piece`]; in CBOR, an empty piece is written too.
    #[inline]
    fn chunk(&mut self, text: &[u8]) {
        if self.flags.has(Flags::CBOR) {
            self.cbor().string(encode::TEXT, text);
        } else {
            self.piece(text);
        }
    }

    /// Writes a whole text with [`Writer::encoded`].
    pub fn quoted_encoded(&mut self, text: &[u8], is_unsafe: &ByteSet) {
        self.begin();
        self.encoded(text, b'#', is_unsafe);
        self.end();
    }

    /// Writes bytes unchanged.
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

    /// Begins a list of texts. [`Writer::next`] separates them, and [`Writer::end_list`] ends the
    /// list.
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
            // Written as text, for readers that cannot parse numbers of this size.
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

    /// Writes a boolean of an encoding.
    pub fn bool(&mut self, value: bool) {
        match (self.flags.has(Flags::CBOR), value) {
            (true, true) => self.cbor().byte(encode::TRUE),
            (true, false) => self.cbor().byte(encode::FALSE),
            (false, true) => self.out.extend_from_slice(b"true"),
            (false, false) => self.out.extend_from_slice(b"false"),
        }
    }

    /// Writes a number with at least this width.
    pub fn padded(&mut self, value: u64, width: u32) {
        if self.flags.has(Flags::ENCODING) {
            self.uint(value);
        } else {
            push_padded(self.out, value, width);
        }
    }

    /// Writes a number in hexadecimal with at least this width.
    pub fn hex(&mut self, value: u64, width: u32) {
        self.short(|out| push_hex_number(out, value, width));
    }

    /// Writes a number; with `X` in hexadecimal with at least this width.
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

    /// The port of an address; `unix` gives the value for a UNIX socket.
    pub fn port(&mut self, addr: Option<&Addr>, unix: impl FnOnce() -> u32) {
        match addr {
            None => self.text(b""),
            Some(addr) if addr.is_unix() => self.uint(unix().into()),
            Some(addr) => self.hex_or_uint(addr.port().into(), 4),
        }
    }
}

/// The longest value that [`Writer::short`] accepts: an IPv6 address.
const SHORT_BYTES_MAX: usize = 46;
