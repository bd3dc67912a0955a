//! OTLP in JSON, written while the protobuf is read, and the other way round: no message is built, so a span costs a third of what it does to decode
//! it with a library and to encode it again, and text that is no UTF-8 costs a character, not a request.
//!
//! The form is that of the OTLP specification ("JSON Protobuf Encoding"): names in lowerCamelCase, identifiers in hexadecimal,
//! enumerations as numbers, 64 bits as strings; what is not there is left out.

mod decode;
mod schema;
#[cfg(test)]
mod tests;

use std::io::Write;

pub use decode::decode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::{Field, Kind, Message};
use syntax::hex;
use telemetry::settings::Signal;

use crate::request::varint;

/// Messages within each other that are written; within deeper ones everything is left out.
const DEPTH_MAX: usize = 64;

/// An export request of a signal in JSON. What is no protobuf of that message is left out; the JSON is whole in any case.
#[must_use]
pub fn encode(signal: Signal, request: &[u8]) -> Vec<u8> {
    let mut writer = Writer {
        // Measured on spans of four attributes: three times as long.
        out: Vec::with_capacity(request.len() * 3),
        fields: Vec::new(),
    };
    let message = match signal {
        Signal::Traces => &schema::TRACES,
        Signal::Metrics => &schema::METRICS,
        Signal::Logs => &schema::LOGS,
    };
    writer.message(message, request, 0);
    writer.out
}

struct Writer<'a> {
    out: Vec<u8>,
    /// Fields of the messages that are being written, the innermost last.
    fields: Vec<(&'static Field, Wire<'a>)>,
}

/// A value as it stands in protobuf.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Writer<'a> {
    fn message(&mut self, message: &'static Message, bytes: &'a [u8], depth: usize) {
        self.out.push(b'{');
        let first = self.fields.len();
        if depth < DEPTH_MAX {
            self.read(message, bytes);
        }
        let end = self.fields.len();
        // Of each number, whether it is written: no field here has a number above 31.
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

    /// Puts the known fields of a message on the stack, up to the first byte that cannot be.
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

    /// Elements of a list, each with a comma behind it.
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
            (Kind::Uint64, Wire::Bytes(mut bytes)) => {
                while let Some((number, len)) = varint(bytes) {
                    bytes = &bytes[len..];
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
                // Zigzag: the sign stands in the lowest bit.
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
            // Not as the schema has it.
            _ => self.out.extend_from_slice(b"null"),
        }
    }

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
            // Its shortest form that is read as the same number. Writing to a vector cannot fail.
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

/// The first field: its number, its value, and what is behind it.
fn field(bytes: &[u8]) -> Option<(u64, Wire<'_>, &[u8])> {
    let (key, len) = varint(bytes)?;
    let rest = &bytes[len..];
    let (wire, rest) = match key & 7 {
        0 => {
            let (number, len) = varint(rest)?;
            (Wire::Number(number), &rest[len..])
        }
        1 => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            (Wire::Number(u64::from_le_bytes(*number)), rest)
        }
        2 => {
            let (size, len) = varint(rest)?;
            let (bytes, rest) = rest[len..].split_at_checked(usize::try_from(size).ok()?)?;
            (Wire::Bytes(bytes), rest)
        }
        5 => {
            let (number, rest) = rest.split_first_chunk::<4>()?;
            (Wire::Number(u64::from(u32::from_le_bytes(*number))), rest)
        }
        _ => return None,
    };
    Some((key >> 3, wire, rest))
}
