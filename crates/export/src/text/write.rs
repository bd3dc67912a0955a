//! Writes parts of a record as text, without allocation.

use std::fmt::Write as _;
use std::io::Write as _;

use jiff::Timestamp;
use syntax::hex;

use crate::zipkin::value;
use otlp::plain::{is_graphic, is_plain};
use otlp::scan::Malformed;
use otlp::wire::{Wire, field};

/// Nanoseconds per second.
const SECOND_NS: u64 = 1_000_000_000;
/// The number of seconds whose text is cached: the records of a request fall into few seconds.
const SECONDS_KEPT: usize = 8;
/// The size of a second's text, such as `2023-11-14T22:13:20`.
const SECOND_BYTES: usize = 19;
/// Below this limit a quotient by 1000 has at most 15 digits, which every `f64` distinguishes: the
/// shortest text that parses to the quotient is then its digits.
const EXACT_NS_MAX: u64 = 1_000_000_000_000_000;

/// The output, and caches of recent texts.
pub(super) struct Writer {
    pub out: Vec<u8>,
    /// The last trace ID, in hexadecimal.
    trace_id: [u8; 16],
    trace_text: [u8; 32],
    /// Cached seconds since the epoch with their texts, indexed by the lowest bits.
    seconds: [(u64, [u8; SECOND_BYTES]); SECONDS_KEPT],
    scratch: String,
}

impl Writer {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            trace_id: [0; 16],
            trace_text: [b'0'; 32],
            // A value that no second in 64-bit nanoseconds reaches.
            seconds: [(u64::MAX, [0; SECOND_BYTES]); SECONDS_KEPT],
            scratch: String::new(),
        }
    }

    #[inline]
    pub(super) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes text in quotes, as JSON does. Bytes that are not UTF-8 are replaced.
    #[inline]
    pub(super) fn quoted(&mut self, text: &[u8]) {
        if is_plain(text) {
            self.out.reserve(text.len() + 2);
            self.out.push(b'"');
            self.out.extend_from_slice(text);
            self.out.push(b'"');
        } else {
            self.escaped(text);
        }
    }

    #[cold]
    fn escaped(&mut self, text: &[u8]) {
        // Writing into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, &String::from_utf8_lossy(text));
    }

    /// Writes an attribute's name, unquoted if it cannot be misread.
    #[inline]
    pub(super) fn key(&mut self, key: &[u8]) {
        if is_graphic(key) {
            self.out.extend_from_slice(key);
        } else {
            self.escaped(key);
        }
    }

    #[inline]
    pub(super) fn hex(&mut self, bytes: &[u8]) {
        hex::push(&mut self.out, bytes);
    }

    /// Writes a trace ID; consecutive spans usually have the same one.
    #[inline]
    pub(super) fn trace_id(&mut self, id: &[u8]) {
        if *id != self.trace_id {
            let Ok(whole) = <[u8; 16]>::try_from(id) else {
                return self.hex(id);
            };
            self.trace_id = whole;
            self.trace_text = hex::array(&whole);
        }
        self.out.extend_from_slice(&self.trace_text);
    }

    /// Writes a time in RFC 3339, as short as exactness permits.
    #[inline]
    pub(super) fn time(&mut self, unix_ns: u64) {
        let (second, rest) = (unix_ns / SECOND_NS, unix_ns % SECOND_NS);
        let place = second as usize % SECONDS_KEPT;
        if self.seconds[place].0 != second {
            self.seconds[place] = (second, self.second(second));
        }
        self.out.extend_from_slice(&self.seconds[place].1);
        if rest > 0 {
            // Adding one second puts a digit before those of the fraction; the decimal point
            // replaces it.
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(SECOND_NS + rest).trim_end_matches('0');
            self.out.push(b'.');
            self.raw(&digits[1..]);
        }
        self.out.push(b'Z');
    }

    #[cold]
    fn second(&mut self, second: u64) -> [u8; SECOND_BYTES] {
        let mut text = [b'?'; SECOND_BYTES];
        let at = i64::try_from(second).ok();
        if let Some(at) = at.and_then(|second| Timestamp::from_second(second).ok()) {
            self.scratch.clear();
            let _ = write!(self.scratch, "{at}");
            if let Some(begin) = self.scratch.as_bytes().first_chunk() {
                text = *begin;
            }
        }
        text
    }

    /// Writes nanoseconds as microseconds.
    #[inline]
    pub(super) fn microseconds(&mut self, ns: u64) {
        if ns >= EXACT_NS_MAX {
            let _ = write!(self.out, "{}", ns as f64 / 1000.0);
            return;
        }
        self.number(ns / 1000);
        let rest = ns % 1000;
        if rest > 0 {
            let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
            let zeros = digits.iter().rev().take_while(|digit| **digit == b'0');
            let count = 3 - zeros.count();
            self.out.push(b'.');
            self.out.extend_from_slice(&digits[..count]);
        }
    }

    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        self.out.extend_from_slice(buffer.format(number).as_bytes());
    }

    /// Writes an `AnyValue` as JSON.
    #[inline]
    pub(super) fn value(&mut self, any: &[u8]) -> Result<(), Malformed> {
        match field(any) {
            Some((1, Wire::Bytes(text), [])) => self.quoted(text),
            Some((2, Wire::Number(flag), [])) => self.raw(if flag == 0 { "false" } else { "true" }),
            Some((3, Wire::Number(number), [])) => {
                let mut buffer = itoa::Buffer::new();
                let text = buffer.format(number.cast_signed());
                self.out.extend_from_slice(text.as_bytes());
            }
            _ => self.other(any)?,
        }
        Ok(())
    }

    /// Handles values that the filter does not make.
    #[cold]
    fn other(&mut self, any: &[u8]) -> Result<(), Malformed> {
        let any = otlp::view::value(any)?;
        let _ = serde_json::to_writer(&mut self.out, &value(any));
        Ok(())
    }

    /// Writes `key=value` after a given prefix.
    #[inline]
    pub(super) fn pair(&mut self, before: &str, pair: &[u8]) -> Result<(), Malformed> {
        let (mut key, mut any) = (&b""[..], None);
        let mut rest = pair;
        while !rest.is_empty() {
            let (number, wire, behind) = field(rest).ok_or(Malformed::Truncated)?;
            rest = behind;
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => key = bytes,
                (2, Wire::Bytes(bytes)) => any = Some(bytes),
                (1 | 2, Wire::Number(_)) => return Err(Malformed::WireType),
                _ => {}
            }
        }
        self.raw(before);
        self.key(key);
        self.out.push(b'=');
        match any {
            Some(any) => self.value(any),
            None => {
                self.raw("null");
                Ok(())
            }
        }
    }
}
