//! Messages read by the names of their fields, for those who show what is in a request. No field is
//! looked for before it is asked for, so this is short to use and slow.

use std::borrow::Cow;

use crate::Signal;
use crate::scan::{Any, Malformed, VALUE_DEPTH_MAX};
use crate::schema::{self, Field, Kind, Message};
use crate::wire::{Fields, Reader, Value, Wire, field};

/// Levels of messages: attributes are some below their request, and a value has two for each level.
const DEPTH_MAX: u32 = 2 * VALUE_DEPTH_MAX + 16;

/// A message whose structure was checked at every level. Names of fields are those of the JSON
/// form; one that the message does not have gives nothing.
#[derive(Clone, Copy)]
pub struct View<'a> {
    message: &'static Message,
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// An export request of a signal.
    ///
    /// # Errors
    /// What is malformed, at any level.
    pub fn request(signal: Signal, bytes: &'a [u8]) -> Result<View<'a>, Malformed> {
        let message = schema::request(signal);
        check(message, bytes, DEPTH_MAX)?;
        Ok(View { message, bytes })
    }

    /// The values of a field in their order; those of a packed list are one.
    fn wires(&self, name: &str) -> impl Iterator<Item = Wire<'a>> + use<'a> {
        let known = self.message.named(name);
        debug_assert!(known.is_some(), "there is no field {name}");
        let number = known.map_or(0, |known| u64::from(known.number));
        let mut rest = self.bytes;
        let all = std::iter::from_fn(move || {
            let (number, wire, behind) = field(rest)?;
            rest = behind;
            Some((number, wire))
        });
        all.filter_map(move |(own, wire)| (own == number).then_some(wire))
    }

    /// The message as it came, for those who read it another way.
    #[must_use]
    pub fn encoded(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether a field is written.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.wires(name).next().is_some()
    }

    /// Bytes or a text as it came; empty if there is none.
    #[must_use]
    pub fn bytes(&self, name: &str) -> &'a [u8] {
        self.wires(name).last().map_or(b"", bytes_of)
    }

    /// A text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, name: &str) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes(name))
    }

    /// The texts of a list.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        self.wires(name)
            .map(|wire| String::from_utf8_lossy(bytes_of(wire)))
    }

    /// A number that has no sign, an enumeration or a flag; 0 if there is none.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.wires(name).last().map_or(0, number_of)
    }

    /// An `sfixed64` or a `sint32`; 0 if there is none.
    #[must_use]
    pub fn signed(&self, name: &str) -> i64 {
        let number = self.number(name);
        match self.message.named(name).map(|field| &field.kind) {
            // The sign is in the lowest bit.
            Some(Kind::Sint32) => (number >> 1) as i64 ^ -((number & 1) as i64),
            _ => number.cast_signed(),
        }
    }

    /// A `double`, if there is one.
    #[must_use]
    pub fn double(&self, name: &str) -> Option<f64> {
        let last = self.wires(name).last();
        last.map(|wire| f64::from_bits(number_of(wire)))
    }

    /// The numbers of a list, packed or not; of doubles their bits.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let is_varint = matches!(
            self.message.named(name),
            Some(Field {
                kind: Kind::Uint64,
                ..
            })
        );
        let mut numbers = Vec::new();
        for wire in self.wires(name) {
            match wire {
                Wire::Number(number) => numbers.push(number),
                Wire::Bytes(bytes) if is_varint => {
                    let mut reader = Reader::new(bytes);
                    numbers.extend(std::iter::from_fn(|| reader.varint().ok()));
                }
                Wire::Bytes(bytes) => {
                    let eights = bytes.as_chunks::<8>().0.iter();
                    numbers.extend(eights.map(|eight| u64::from_le_bytes(*eight)));
                }
            }
        }
        numbers
    }

    /// The messages of a list.
    pub fn all(&self, name: &str) -> impl Iterator<Item = View<'a>> + use<'a> {
        let message = self.message.named(name).and_then(Field::message);
        let message = message.unwrap_or(self.message);
        self.wires(name).map(move |wire| View {
            message,
            bytes: bytes_of(wire),
        })
    }

    /// A message, if there is one.
    #[must_use]
    pub fn one(&self, name: &str) -> Option<View<'a>> {
        self.all(name).last()
    }

    /// A value (`AnyValue`).
    #[must_use]
    pub fn any(&self, name: &str) -> Any<'a> {
        Any::read(self.bytes(name))
    }

    /// Attributes: keys and values.
    pub fn attributes(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (Cow<'a, str>, Any<'a>)> + use<'a> {
        self.all(name)
            .map(|pair| (pair.text("key"), pair.any("value")))
    }
}

/// Reads an `AnyValue` whose structure was not checked yet.
///
/// # Errors
/// What is malformed, at any level.
pub fn value(bytes: &[u8]) -> Result<Any<'_>, Malformed> {
    check(&schema::ANY_VALUE, bytes, DEPTH_MAX)?;
    Ok(Any::read(bytes))
}

fn check(message: &'static Message, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let depth = depth.checked_sub(1).ok_or(Malformed::TooDeep)?;
    for field in Fields::new(bytes) {
        let field = field?;
        let known = message
            .0
            .iter()
            .find(|known| known.number == field.key >> 3);
        match (known.and_then(Field::message), field.value) {
            (Some(inner), Value::Bytes(bytes)) => check(inner, bytes, depth)?,
            (Some(_), _) => return Err(Malformed::WireType),
            (None, _) => {}
        }
    }
    Ok(())
}

fn bytes_of(wire: Wire<'_>) -> &[u8] {
    wire.message().unwrap_or_default()
}

fn number_of(wire: Wire<'_>) -> u64 {
    wire.number().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::tests::{Model, request};

    #[test]
    fn fields_are_those_that_a_decoder_finds() {
        let mut model = Model::new(7);
        let mut spans = 0;
        for _ in 0..50 {
            let decoded = request(&mut model);
            let bytes = decoded.encode_to_vec();
            let view = View::request(Signal::Traces, &bytes).unwrap();
            let resources = view.all("resourceSpans").zip(&decoded.resource_spans);
            let scopes = resources.flat_map(|(view, decoded)| {
                let scopes = view.all("scopeSpans");
                scopes.zip(&decoded.scope_spans)
            });
            for (scope, expected) in scopes {
                assert_eq!(scope.has("scope"), expected.scope.is_some());
                for (span, expected) in scope.all("spans").zip(&expected.spans) {
                    spans += 1;
                    assert_eq!(span.bytes("traceId"), expected.trace_id);
                    assert_eq!(span.text("name"), expected.name);
                    assert_eq!(span.number("kind"), expected.kind as u64);
                    assert_eq!(span.number("endTimeUnixNano"), expected.end_time_unix_nano);
                    let keys: Vec<_> = span.attributes("attributes").map(|(key, _)| key).collect();
                    let expected = expected.attributes.iter().map(|pair| pair.key.as_str());
                    assert!(keys.into_iter().eq(expected));
                }
            }
        }
        assert!(spans > 0);
    }

    #[test]
    fn what_is_malformed_is_told() {
        let fault = |bytes: &[u8]| View::request(Signal::Traces, bytes).err();
        assert_eq!(fault(b""), None);
        assert_eq!(fault(b"\x0a\x05abcd"), Some(Malformed::Truncated));
        assert_eq!(fault(b"\x08\x01"), Some(Malformed::WireType));
        assert_eq!(fault(b"\x0a\x02\x12\x07"), Some(Malformed::Truncated));
        let mut deep = Vec::new();
        for _ in 0..200 {
            let mut outer = Vec::new();
            crate::write::message(&mut outer, 5, |out| crate::write::bytes(out, 1, &deep));
            deep = outer;
        }
        assert_eq!(value(&deep).err(), Some(Malformed::TooDeep));
    }
}
