//! OTLP as JSON, written while the protobuf is read, and the reverse. No message object is built.
//! So a span costs a third of decoding it with a library and encoding it again, and text that is
//! not UTF-8 loses a character instead of the whole request.
//!
//! The form is that of the OTLP specification ("JSON Protobuf Encoding"): names in lowerCamelCase,
//! identifiers in hexadecimal, enumerations as numbers, 64-bit numbers as strings; absent fields
//! are omitted.

mod decode;
#[cfg(test)]
mod tests;
mod usual;

use std::io::Write;

pub use decode::decode;

use crate::Signal;
use crate::schema::{self, Field, Kind, Message};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use syntax::hex;

use crate::plain::is_plain;
use crate::wire::{Reader, Wire, field};

/// The deepest nesting of messages that is written; deeper content is omitted.
const DEPTH_MAX: usize = 64;

/// An export request of a signal as JSON. Bytes that are not protobuf of that message are omitted;
/// the JSON is always complete.
#[must_use]
pub fn encode(signal: Signal, request: &[u8]) -> Vec<u8> {
    write(signal, request, false)
        .unwrap_or_else(|| write(signal, request, true).unwrap_or_default())
}

/// Writes the request with or without gathering; none if a list is scattered and nothing is
/// gathered.
fn write(signal: Signal, request: &[u8], gathers: bool) -> Option<Vec<u8>> {
    let mut writer = Writer {
        // Measured on spans with four attributes: the JSON is three times as long.
        out: Vec::with_capacity(request.len() * 3),
        fields: Vec::new(),
        gathers,
        scattered: false,
    };
    writer.message(schema::request(signal), request, 0);
    (!writer.scattered).then_some(writer.out)
}

struct Writer<'a> {
    out: Vec<u8>,
    /// The fields of the messages being written, the innermost last.
    fields: Vec<(&'static Field, Wire<'a>)>,
    /// The elements of a list may be scattered: the fields of each message are gathered before it
    /// is written.
    gathers: bool,
    /// Scattered elements were found without gathering: the output is incomplete.
    scattered: bool,
}

impl<'a> Writer<'a> {
    fn message(&mut self, message: &'static Message, bytes: &'a [u8], depth: usize) {
        if self.gathers {
            self.gathered(message, bytes, depth)
        } else {
            self.streamed(message, bytes, depth)
        }
    }

    /// Writes each field as it is read. The elements of a list must follow each other; every known
    /// encoder writes them so.
    fn streamed(&mut self, message: &'static Message, mut bytes: &'a [u8], depth: usize) {
        let is_pair = std::ptr::eq(message, &raw const schema::KEY_VALUE);
        if is_pair && depth + 1 < DEPTH_MAX && self.pair(bytes).is_some() {
            return;
        }
        self.out.push(b'{');
        if depth >= DEPTH_MAX {
            bytes = &[];
        }
        let fields = message.0;
        // The position of the last field, whether a list is open, and which field numbers are
        // written.
        let (mut at, mut open, mut written) = (0, false, 0_u32);
        if std::ptr::eq(message, &raw const schema::SPAN) && depth < DEPTH_MAX {
            (bytes, written) = self.span_head(bytes);
        }
        while let Some((number, wire, rest)) = field(bytes) {
            bytes = rest;
            let Some(found) = find(fields, number, at) else {
                continue;
            };
            let field = &fields[found];
            if open && found == at {
                self.values(field, wire, depth);
                continue;
            }
            if written & 1 << field.number != 0 {
                // For other fields the first one counts.
                self.scattered |= field.many;
                continue;
            }
            if self.scattered {
                return;
            }
            if open {
                self.close_list();
            }
            if written != 0 {
                self.out.push(b',');
            }
            (at, open) = (found, field.many);
            written |= 1 << field.number;
            self.out.extend_from_slice(field.name.as_bytes());
            if field.many {
                self.out.push(b'[');
                self.values(field, wire, depth);
            } else {
                self.value(field, wire, depth);
            }
        }
        if open {
            self.close_list();
        }
        self.out.push(b'}');
    }

    /// Writes the fields in the order in which each first occurs.
    fn gathered(&mut self, message: &'static Message, bytes: &'a [u8], depth: usize) {
        self.out.push(b'{');
        let first = self.fields.len();
        if depth < DEPTH_MAX {
            self.read(message, bytes);
        }
        let end = self.fields.len();
        // Which field numbers are written: no field here has a number above 31.
        let mut written = 0_u32;
        for at in first..end {
            let (field, wire) = self.fields[at];
            if written & 1 << field.number != 0 {
                continue;
            }
            if written != 0 {
                self.out.push(b',');
            }
            written |= 1 << field.number;
            self.out.extend_from_slice(field.name.as_bytes());
            if !field.many {
                self.value(field, wire, depth);
                continue;
            }
            self.out.push(b'[');
            for at in at..end {
                let (other, wire) = self.fields[at];
                if other.number == field.number {
                    self.values(field, wire, depth);
                }
            }
            self.close_list();
        }
        self.fields.truncate(first);
        self.out.push(b'}');
    }

    /// Pushes the known fields of a message on the stack, up to the first invalid byte.
    fn read(&mut self, message: &'static Message, mut bytes: &'a [u8]) {
        while let Some((number, wire, rest)) = field(bytes) {
            bytes = rest;
            let known = message
                .0
                .iter()
                .find(|field| u64::from(field.number) == number);
            if let Some(known) = known {
                self.fields.push((known, wire));
            }
        }
    }

    /// Writes the elements of a list, each followed by a comma.
    fn values(&mut self, field: &'static Field, wire: Wire<'a>, depth: usize) {
        let packed = match (&field.kind, wire) {
            (Kind::Fixed64 | Kind::Double, Wire::Bytes(bytes)) => {
                for chunk in bytes.as_chunks::<8>().0 {
                    let number = Wire::Number(u64::from_le_bytes(*chunk));
                    self.value(field, number, depth);
                    self.out.push(b',');
                }
                true
            }
            (Kind::Uint64, Wire::Bytes(bytes)) => {
                let mut reader = Reader::new(bytes);
                while let Ok(number) = reader.varint() {
                    self.value(field, Wire::Number(number), depth);
                    self.out.push(b',');
                }
                true
            }
            _ => false,
        };
        if !packed {
            self.value(field, wire, depth);
            self.out.push(b',');
        }
    }

    fn close_list(&mut self) {
        match self.out.last_mut() {
            Some(last @ b',') => *last = b']',
            _ => self.out.push(b']'),
        }
    }

    fn value(&mut self, field: &'static Field, wire: Wire<'a>, depth: usize) {
        match (&field.kind, wire) {
            (Kind::Message(message), Wire::Bytes(bytes)) => {
                self.message(message(), bytes, depth + 1);
            }
            (Kind::Text, Wire::Bytes(bytes)) if is_plain(bytes) => {
                self.quoted(|writer| writer.out.extend_from_slice(bytes));
            }
            (Kind::Text, Wire::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => self.text(text.as_bytes()),
                Err(_) => self.text(String::from_utf8_lossy(bytes).as_bytes()),
            },
            (Kind::Hex, Wire::Bytes(bytes)) => self.hex(bytes),
            (Kind::Base64, Wire::Bytes(bytes)) => {
                let text = STANDARD.encode(bytes);
                self.text(text.as_bytes());
            }
            (Kind::Bool, Wire::Number(number)) => {
                let word = if number == 0 { "false" } else { "true" };
                self.out.extend_from_slice(word.as_bytes());
            }
            (Kind::Uint32 | Kind::Fixed32, Wire::Number(number)) => {
                self.decimal(u64::from(number as u32))
            }
            (Kind::Sint32, Wire::Number(number)) => {
                // Zigzag: the sign is in the lowest bit.
                let number = number as u32;
                let number = (number >> 1) as i32 ^ -((number & 1) as i32);
                self.signed(i64::from(number));
            }
            (Kind::Fixed64 | Kind::Uint64, Wire::Number(number)) => self.quoted(|writer| {
                writer.decimal(number);
            }),
            (Kind::Int64 | Kind::Sfixed64, Wire::Number(number)) => self.quoted(|writer| {
                writer.signed(number as i64);
            }),
            (Kind::Double, Wire::Number(number)) => self.double(f64::from_bits(number)),
            // The wire type does not match the schema.
            _ => self.out.extend_from_slice(b"null"),
        }
    }

    #[inline]
    fn quoted(&mut self, write: impl FnOnce(&mut Self)) {
        self.out.push(b'"');
        write(self);
        self.out.push(b'"');
    }

    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut rest = text;
        let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
        while let Some(at) = rest.iter().position(special) {
            self.out.extend_from_slice(&rest[..at]);
            match rest[at] {
                byte @ (b'"' | b'\\') => self.out.extend_from_slice(&[b'\\', byte]),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                byte => {
                    self.out.extend_from_slice(b"\\u00");
                    self.out.extend_from_slice(&hex::digits(byte));
                }
            }
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
    }

    fn hex(&mut self, bytes: &[u8]) {
        self.quoted(|writer| hex::push(&mut writer.out, bytes));
    }

    fn signed(&mut self, number: i64) {
        if number < 0 {
            self.out.push(b'-');
        }
        self.decimal(number.unsigned_abs());
    }

    fn decimal(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        self.out.extend_from_slice(buffer.format(number).as_bytes());
    }

    fn double(&mut self, number: f64) {
        if number.is_finite() {
            // The shortest text that parses to the same number. Writing to a vector cannot fail.
            let _ = write!(self.out, "{number:?}");
            return;
        }
        let word = match number {
            f64::INFINITY => "\"Infinity\"",
            f64::NEG_INFINITY => "\"-Infinity\"",
            _ => "\"NaN\"",
        };
        self.out.extend_from_slice(word.as_bytes());
    }
}

/// The index of a field number. The search starts at the index of the last field, because fields
/// usually follow each other.
#[inline]
fn find(fields: &[Field], number: u64, from: usize) -> Option<usize> {
    let is = |field: &Field| u64::from(field.number) == number;
    let behind = fields.get(from..)?.iter().position(is);
    behind
        .map(|place| from + place)
        .or_else(|| fields[..from].iter().position(is))
}
