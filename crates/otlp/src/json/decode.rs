//! OTLP in JSON as protobuf, written while the JSON is read. Besides the two forms of a request,
//! only one text at a time is in memory.
//!
//! Names may also be those of the protobuf definition (`trace_id`), 64-bit numbers may be numbers
//! or strings, and null means absent (ProtoJSON). Unknown names are ignored.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use crate::Signal;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use syntax::hex;

use crate::schema::{self, Field, Kind, Message};
use crate::wire::{FIXED32, FIXED64, VARINT};
use crate::write;

/// Base64 with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The protobuf of an export request in JSON.
///
/// # Errors
/// The JSON is invalid, or the protobuf would be larger than `bytes_max`.
pub fn decode(signal: Signal, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut out = Out {
        bytes: Vec::new(),
        bytes_max,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = Fields(schema::request(signal), &mut out).deserialize(&mut json);
    let read = read.and_then(|()| json.end());
    read.map_err(|error| error.to_string())?;
    Ok(out.bytes)
}

struct Out {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Out {
    /// Writes a message field, whose content `inside` writes.
    fn nested<E: Error>(
        &mut self,
        field: &Field,
        inside: impl FnOnce(&mut Out) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        let mut bytes = mem::take(&mut self.bytes);
        write::message(&mut bytes, field.number, |bytes| {
            mem::swap(bytes, &mut self.bytes);
            outcome = inside(self);
            mem::swap(bytes, &mut self.bytes);
        });
        self.bytes = bytes;
        outcome?;
        self.bounded()
    }

    fn bounded<E: Error>(&self) -> Result<(), E> {
        if self.bytes.len() > self.bytes_max {
            Err(E::custom(format!(
                "it is larger than {} bytes",
                self.bytes_max
            )))
        } else {
            Ok(())
        }
    }
}

/// Writes the fields of a message.
struct Fields<'a>(&'static Message, &'a mut Out);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Fields(message, out) = self;
        while let Some(Known(field)) = map.next_key_seed(Name(message))? {
            match field {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(field) => map.next_value_seed(FieldValue {
                    field,
                    // For fields of this message, presence is significant.
                    keeps_default: std::ptr::eq(message, &raw const schema::ANY_VALUE),
                    out,
                })?,
            }
        }
        Ok(())
    }
}

/// The name of a message's field.
struct Name(&'static Message);

/// The field with a name; none: the name is unknown.
struct Known(Option<&'static Field>);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Known;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Known, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Known;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Known, E> {
        let name = camel(name);
        Ok(Known(self.0.named(&name)))
    }
}

/// Converts `trace_id` to `traceId`.
fn camel(name: &str) -> Cow<'_, str> {
    if !name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut parts = name.split('_');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut chars = part.chars();
        whole.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        whole.push_str(chars.as_str());
    }
    Cow::Owned(whole)
}

/// The value of a field, or its values.
struct FieldValue<'a> {
    field: &'static Field,
    /// A value that equals the default is written too.
    keeps_default: bool,
    out: &'a mut Out,
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        if self.field.many {
            json.deserialize_option(List(self))
        } else {
            json.deserialize_any(One {
                field: self.field,
                form: if self.keeps_default {
                    Form::Always
                } else {
                    Form::UnlessDefault
                },
                out: self.out,
            })
        }
    }
}

/// The values of a list.
struct List<'a>(FieldValue<'a>);

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let FieldValue { field, out, .. } = self.0;
        let is_packed = !matches!(
            field.kind,
            Kind::Message(_) | Kind::Text | Kind::Hex | Kind::Base64
        );
        let mut write = |out: &mut Out, form: Form| {
            while items.next_element_seed(One { field, form, out })?.is_some() {}
            Ok(())
        };
        if is_packed {
            out.nested(field, |out| write(out, Form::Packed))
        } else {
            write(out, Form::Always)
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Always,
    UnlessDefault,
    /// Without the key.
    Packed,
}

/// One value.
struct One<'a> {
    field: &'static Field,
    form: Form,
    out: &'a mut Out,
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl One<'_> {
    /// Writes the bits of a number of this wire type.
    fn number<E: Error>(self, wire: u32, bits: u64) -> Result<(), E> {
        let out = &mut self.out.bytes;
        if self.form != Form::Packed {
            write::key(out, self.field.number, wire);
        }
        match wire {
            VARINT => write::varint(out, bits),
            FIXED32 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
            _ => out.extend_from_slice(&bits.to_le_bytes()),
        }
        self.out.bounded()
    }

    fn is_left_out(&self, is_default: bool) -> bool {
        is_default && self.form == Form::UnlessDefault
    }

    fn wrong<E: Error>(&self, what: impl fmt::Display) -> E {
        let name = self.field.json_name();
        E::custom(format!("{name}: {what}"))
    }

    /// Writes an integer.
    fn whole<E: Error>(self, value: i128) -> Result<(), E> {
        if self.is_left_out(value == 0) {
            return Ok(());
        }
        let unsigned = u64::try_from(value).ok();
        let signed = i64::try_from(value).ok().map(|value| value as u64);
        let short = i32::try_from(value).ok();
        let (wire, bits) = match self.field.kind {
            Kind::Uint32 => {
                // An enumeration may be negative, which is an unknown value.
                let low = short.map(|value| i64::from(value) as u64);
                let high = u32::try_from(value).ok().map(u64::from);
                (VARINT, low.or(high))
            }
            Kind::Fixed32 => (FIXED32, u32::try_from(value).ok().map(u64::from)),
            // Zigzag: the sign is in the lowest bit.
            Kind::Sint32 => {
                let zigzag = |value: i32| u64::from((value << 1 ^ value >> 31) as u32);
                (VARINT, short.map(zigzag))
            }
            Kind::Int64 => (VARINT, signed),
            Kind::Uint64 => (VARINT, unsigned),
            Kind::Sfixed64 => (FIXED64, signed),
            Kind::Fixed64 => (FIXED64, unsigned),
            Kind::Double => return self.double(value as f64),
            _ => return Err(self.wrong("is a number")),
        };
        match bits {
            Some(bits) => self.number(wire, bits),
            None => Err(self.wrong(format!("{value} is out of range"))),
        }
    }

    fn double<E: Error>(self, value: f64) -> Result<(), E> {
        if matches!(self.field.kind, Kind::Double) {
            return self.number(FIXED64, value.to_bits());
        }
        if value.fract() == 0.0 && value.abs() < 1e19 {
            self.whole(value as i128)
        } else {
            Err(self.wrong(format!("{value} is no whole number")))
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        write::bytes(&mut self.out.bytes, self.field.number, bytes);
    }

    fn text<E: Error>(mut self, text: &str) -> Result<(), E> {
        if matches!(self.field.kind, Kind::Text | Kind::Hex | Kind::Base64)
            && self.is_left_out(text.is_empty())
        {
            return Ok(());
        }
        match self.field.kind {
            Kind::Text => self.bytes(text.as_bytes()),
            Kind::Hex => match hex::decode(text.as_bytes()) {
                Some(bytes) => self.bytes(&bytes),
                None => return Err(self.wrong("is not hexadecimal")),
            },
            Kind::Base64 => match BASE64.decode(text) {
                Ok(bytes) => self.bytes(&bytes),
                Err(error) => return Err(self.wrong(format!("is no base64: {error}"))),
            },
            Kind::Double => {
                // As strings, only these are not JSON numbers.
                let value = match text {
                    "Infinity" => Some(f64::INFINITY),
                    "-Infinity" => Some(f64::NEG_INFINITY),
                    "NaN" => Some(f64::NAN),
                    text => text.parse().ok().filter(|value: &f64| value.is_finite()),
                };
                return match value {
                    Some(value) => self.double(value),
                    None => Err(self.wrong("is no number")),
                };
            }
            Kind::Message(_) | Kind::Bool => return Err(self.wrong("is a text")),
            _ => {
                return match text.parse() {
                    Ok(value) => self.whole(value),
                    Err(_) => Err(self.wrong("is no whole number")),
                };
            }
        }
        self.out.bounded()
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.field.kind {
            Kind::Message(_) => "an object",
            Kind::Text | Kind::Hex | Kind::Base64 => "a text",
            Kind::Bool => "true or false",
            _ => "a number",
        })
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        // A list must not lose elements: a missing message becomes one without fields.
        if let (Kind::Message(_), Form::Always) = (&self.field.kind, self.form)
            && self.field.many
        {
            self.bytes(b"");
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        match self.field.kind {
            Kind::Message(message) => self
                .out
                .nested(self.field, |out| Fields(message(), out).visit_map(map)),
            _ => Err(self.wrong("is an object")),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.field.kind {
            Kind::Bool if self.is_left_out(!value) => Ok(()),
            Kind::Bool => self.number(VARINT, value.into()),
            _ => Err(self.wrong("is a truth value")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.double(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.text(text)
    }
}
