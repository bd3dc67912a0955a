//! Attributes and their values (`common.proto`).

use super::{Malformed, VALUE_DEPTH_MAX};
use crate::wire::{Reader, Value};

/// `KeyValue.key`, also `AnyValue.string_value`.
const KEY: u32 = 1 << 3 | 2;
/// `KeyValue.value`
const VALUE: u32 = 2 << 3 | 2;
const BOOL: u32 = 2 << 3;
const INT: u32 = 3 << 3;
const DOUBLE: u32 = 4 << 3 | 1;
const ARRAY: u32 = 5 << 3 | 2;
const MAP: u32 = 6 << 3 | 2;
const BINARY: u32 = 7 << 3 | 2;

/// A value (`AnyValue`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Any<'a> {
    /// None of its kinds is set.
    Empty,
    /// `string_value`, as it came: perhaps no UTF-8.
    Text(&'a [u8]),
    /// `bool_value`
    Bool(bool),
    /// `int_value`
    Int(i64),
    /// `double_value`
    Double(f64),
    /// `array_value`: the message `ArrayValue`.
    Array(&'a [u8]),
    /// `kvlist_value`: the message `KeyValueList`, which [`Attributes`] reads with key 1.
    Map(&'a [u8]),
    /// `bytes_value`
    Bytes(&'a [u8]),
}

impl<'a> Any<'a> {
    /// Reads a message `AnyValue` that was checked. The last kind that is set counts.
    #[inline]
    #[must_use]
    pub fn read(message: &'a [u8]) -> Any<'a> {
        match message {
            [0x0a, len @ 0..0x80, text @ ..] if text.len() == usize::from(*len) => Any::Text(text),
            // As ports and the statuses of HTTP are written.
            [0x18, low @ 0x80..=0xff, high @ 0..0x80] => {
                Any::Int(i64::from(low & 0x7f) | i64::from(*high) << 7)
            }
            _ => Any::read_slowly(message),
        }
    }

    fn read_slowly(message: &'a [u8]) -> Any<'a> {
        let mut any = Any::Empty;
        let mut reader = Reader::new(message);
        while let Ok(Some(field)) = reader.field() {
            any = match (field.key, field.value) {
                (KEY, Value::Bytes(text)) => Any::Text(text),
                (BOOL, Value::Varint(value)) => Any::Bool(value != 0),
                (INT, Value::Varint(value)) => Any::Int(value as i64),
                (DOUBLE, Value::Fixed64(value)) => Any::Double(f64::from_bits(value)),
                (ARRAY, Value::Bytes(message)) => Any::Array(message),
                (MAP, Value::Bytes(message)) => Any::Map(message),
                (BINARY, Value::Bytes(bytes)) => Any::Bytes(bytes),
                _ => any,
            };
        }
        any
    }

    /// The values of an [`Any::Array`].
    pub fn items(array: &'a [u8]) -> impl Iterator<Item = Any<'a>> + 'a {
        crate::wire::fields(array).filter_map(|field| match (field.key, field.value) {
            (KEY, Value::Bytes(message)) => Some(Any::read(message)),
            _ => None,
        })
    }
}

/// The attributes of a checked message: keys, and messages for [`Any::read`].
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    reader: Reader<'a>,
    key: u32,
}

impl<'a> Attributes<'a> {
    /// Those of a message whose attributes have this field key.
    #[inline]
    #[must_use]
    pub fn new(message: &'a [u8], key: u32) -> Attributes<'a> {
        Attributes {
            reader: Reader::new(message),
            key,
        }
    }

    /// Those of an [`Any::Map`].
    #[must_use]
    pub fn of_map(map: &'a [u8]) -> Attributes<'a> {
        Attributes::new(map, KEY)
    }

    /// The value of the first attribute with this name, as the Collector looks it up.
    #[must_use]
    pub fn get(mut self, name: &[u8]) -> Option<Any<'a>> {
        self.find(|(key, _)| *key == name)
            .map(|(_, value)| Any::read(value))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let field = self.reader.field().ok()??;
            if let Value::Bytes(message) = field.value
                && field.key == self.key
            {
                return attribute(message).ok();
            }
        }
    }
}

/// A `KeyValue`: its key, and its value for [`Any::read`].
///
/// # Errors
/// What is wrong with it or with what is inside it.
#[inline]
pub fn attribute(message: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    key_value(message, VALUE_DEPTH_MAX)
}

#[inline]
fn key_value(message: &[u8], depth: u32) -> Result<(&[u8], &[u8]), Malformed> {
    // As every encoder writes it: key, value, and both short.
    if let [0x0a, key_len @ 0..0x80, rest @ ..] = message
        && let Some((key, [0x12, value_len @ 0..0x80, value @ ..])) =
            rest.split_at_checked(usize::from(*key_len))
        && value.len() == usize::from(*value_len)
    {
        any_value(value, depth)?;
        return Ok((key, value));
    }
    slow_key_value(message, depth)
}

fn slow_key_value(message: &[u8], depth: u32) -> Result<(&[u8], &[u8]), Malformed> {
    let (mut key, mut value): (&[u8], &[u8]) = (b"", b"");
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (KEY, Value::Bytes(text)) => key = text,
            (VALUE, Value::Bytes(message)) => {
                any_value(message, depth)?;
                value = message;
            }
            (key, _) if key >> 3 <= 2 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok((key, value))
}

/// Checks an `AnyValue`.
#[inline]
pub(super) fn any_value(message: &[u8], depth: u32) -> Result<(), Malformed> {
    match message {
        // A short text, or a small number.
        [0x0a, len @ 0..0x80, rest @ ..] if rest.len() == usize::from(*len) => Ok(()),
        [0x10 | 0x18, 0..0x80] | [] => Ok(()),
        _ => slow_any_value(message, depth),
    }
}

fn slow_any_value(message: &[u8], depth: u32) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (ARRAY | MAP, Value::Bytes(message)) => {
                let depth = depth.checked_sub(1).ok_or(Malformed::TooDeep)?;
                list(message, field.key == MAP, depth)?;
            }
            (KEY | BOOL | INT | DOUBLE | BINARY, _) => {}
            (key, _) if key >> 3 <= 7 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

/// Checks an `ArrayValue` or a `KeyValueList`.
fn list(message: &[u8], map: bool, depth: u32) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (KEY, Value::Bytes(message)) if map => drop(key_value(message, depth)?),
            (KEY, Value::Bytes(message)) => any_value(message, depth)?,
            (key, _) if key >> 3 == 1 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}
