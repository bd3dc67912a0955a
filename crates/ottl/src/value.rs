//! Values, and how they compare (OTTL, "Comparison Rules").

use super::{Failure, Zone};
use otlp::scan::{Any, Attributes, VALUE_DEPTH_MAX, attribute};
use otlp::write;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Bytes of a value that is made.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// The field key of `KeyValueList.values` and `ArrayValue.values`.
pub const ENTRIES: u32 = 1 << 3 | 2;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// A flag.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text: perhaps no UTF-8.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Nanoseconds since 1970.
    Time(i64),
    /// The same, in a time zone that is not UTC.
    Zoned(i64, Zone),
    /// Nanoseconds.
    Duration(i64),
    /// The attributes of a message, with their field key.
    Map(Cow<'a, [u8]>, u32),
    /// The message `ArrayValue`.
    List(Cow<'a, [u8]>),
    /// The repeated messages under a field key of a message: a span's events or links. An attribute
    /// cannot hold them.
    Messages(Cow<'a, [u8]>, u32),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl<'a> From<Any<'a>> for Value<'a> {
    fn from(any: Any<'a>) -> Value<'a> {
        match any {
            Any::Empty => Value::Nil,
            Any::Text(text) => Value::Text(text.into()),
            Any::Bool(value) => Value::Bool(value),
            Any::Int(value) => Value::Int(value),
            Any::Double(value) => Value::Float(value),
            Any::Array(message) => Value::List(message.into()),
            Any::Map(message) => Value::Map(message.into(), ENTRIES),
            Any::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}

impl<'a> Value<'a> {
    /// A text that was made.
    pub fn text(text: impl Into<Vec<u8>>) -> Value<'a> {
        Value::Text(Cow::Owned(text.into()))
    }

    /// A time in a zone; none is UTC.
    pub(crate) fn time(ns: i64, zone: Option<Zone>) -> Value<'a> {
        match zone {
            None => Value::Time(ns),
            Some(zone) => Value::Zoned(ns, zone),
        }
    }

    /// The same value, borrowed.
    pub fn borrow(&self) -> Value<'_> {
        match self {
            Value::Text(text) => Value::Text((&**text).into()),
            Value::Bytes(bytes) => Value::Bytes((&**bytes).into()),
            Value::Map(message, key) => Value::Map((&**message).into(), *key),
            Value::List(message) => Value::List((&**message).into()),
            Value::Messages(message, key) => Value::Messages((&**message).into(), *key),
            other => other.clone(),
        }
    }

    /// The same value with bytes of its own.
    pub fn into_owned<'b>(self) -> Value<'b> {
        let owned = |bytes: Cow<'a, [u8]>| Cow::Owned(bytes.into_owned());
        match self {
            Value::Text(text) => Value::Text(owned(text)),
            Value::Bytes(bytes) => Value::Bytes(owned(bytes)),
            Value::Map(message, key) => Value::Map(owned(message), key),
            Value::List(message) => Value::List(owned(message)),
            Value::Messages(message, key) => Value::Messages(owned(message), key),
            Value::Nil => Value::Nil,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Float(value) => Value::Float(value),
            Value::Time(value) => Value::Time(value),
            Value::Zoned(value, zone) => Value::Zoned(value, zone),
            Value::Duration(value) => Value::Duration(value),
        }
    }

    /// Appends the value as an `AnyValue`.
    ///
    /// # Errors
    /// Attributes have no such value (a time, a duration, events), or it is too large.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        match self {
            Value::Nil => {}
            Value::Bool(value) => write::uint(out, 2, u64::from(*value)),
            Value::Int(value) => write::uint(out, 3, *value as u64),
            Value::Float(value) => write::double(out, 4, *value),
            Value::Text(text) => write::bytes(out, 1, text),
            Value::Bytes(bytes) => write::bytes(out, 7, bytes),
            Value::List(message) => write::bytes(out, 5, message),
            Value::Map(message, ENTRIES) => write::bytes(out, 6, message),
            Value::Map(..) => write::message(out, 6, |out| {
                for (key, value) in self.entries() {
                    entry(out, key, value);
                }
            }),
            Value::Time(_) | Value::Zoned(..) | Value::Duration(_) | Value::Messages(..) => {
                return Err(Failure::Type);
            }
        }
        if out.len() - start > VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
        Ok(())
    }

    /// The entries of a map: names, and values for [`Any::read`]. Of another value: none.
    pub fn entries(&self) -> Attributes<'_> {
        match self {
            Value::Map(message, key) => Attributes::new(message, *key),
            _ => Attributes::new(b"", ENTRIES),
        }
    }

    /// The number of messages; 0 for other values.
    pub fn messages(&self) -> usize {
        match self {
            Value::Messages(message, key) => otlp::wire::fields(message)
                .filter(|field| field.key == *key)
                .count(),
            _ => 0,
        }
    }

    /// The items of a list. Of another value: none.
    pub fn items(&self) -> impl Iterator<Item = Any<'_>> {
        let message: &[u8] = match self {
            Value::List(message) => message,
            _ => b"",
        };
        Any::items(message)
    }
}

/// Whether a value can be that of an attribute: it is not nested too deeply.
///
/// # Errors
/// It is.
pub fn check_depth(any_value: &[u8]) -> Result<(), Failure> {
    // What has neither lists nor maps needs no look.
    if !matches!(Any::read(any_value), Any::Array(_) | Any::Map(_)) {
        return Ok(());
    }
    let mut message = Vec::with_capacity(any_value.len() + 8);
    write::bytes(&mut message, 2, any_value);
    attribute(&message).map(drop).map_err(|_| Failure::Depth)
}

/// Appends a `KeyValue` to a map; `value` is an `AnyValue`.
pub fn entry(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    write::message(out, 1, |out| {
        write::bytes(out, 1, key);
        write::bytes(out, 2, value);
    });
}

/// A list of these values.
///
/// # Errors
/// As [`Value::encode`].
pub fn list<'a, 'v>(values: impl IntoIterator<Item = Value<'v>>) -> Result<Value<'a>, Failure> {
    let mut out = Vec::new();
    for value in values {
        let mut outcome = Ok(());
        write::message(&mut out, 1, |out| outcome = value.encode(out));
        outcome?;
        if out.len() > VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    check_list_depth(&out)?;
    Ok(Value::List(out.into()))
}

fn check_list_depth(array: &[u8]) -> Result<(), Failure> {
    let nested = Any::items(array).any(|item| matches!(item, Any::Array(_) | Any::Map(_)));
    if !nested {
        return Ok(());
    }
    let mut any = Vec::with_capacity(array.len() + 8);
    write::bytes(&mut any, 5, array);
    check_depth(&any)
}

/// Compares: integers and floats with each other, all else with its like; nil is equal to nil
/// alone. What cannot be compared is unequal, and neither less nor greater.
#[must_use]
pub fn compare(op: Op, left: &Value<'_>, right: &Value<'_>) -> bool {
    let ordering = match (left, right) {
        (Value::Nil, Value::Nil) => Some(Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right))
        | (
            Value::Time(left) | Value::Zoned(left, _),
            Value::Time(right) | Value::Zoned(right, _),
        )
        | (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Float(right)) => (*left as f64).partial_cmp(right),
        (Value::Float(left), Value::Int(right)) => left.partial_cmp(&(*right as f64)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) | (Value::Bytes(left), Value::Bytes(right)) => {
            Some(left.cmp(right))
        }
        (Value::Map(..), Value::Map(..)) | (Value::List(_), Value::List(_)) => {
            // They have no order.
            return match op {
                Op::Eq => is_same(left, right, VALUE_DEPTH_MAX),
                Op::Ne => !is_same(left, right, VALUE_DEPTH_MAX),
                _ => false,
            };
        }
        _ => None,
    };
    let Some(ordering) = ordering else {
        return op == Op::Ne;
    };
    match op {
        Op::Eq => ordering.is_eq(),
        Op::Ne => ordering.is_ne(),
        Op::Lt => ordering.is_lt(),
        Op::Le => ordering.is_le(),
        Op::Gt => ordering.is_gt(),
        Op::Ge => ordering.is_ge(),
    }
}

/// Whether two lists have the same items, or two maps the same entries in whatever order.
fn is_same(left: &Value<'_>, right: &Value<'_>, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    match (left, right) {
        (Value::List(_), Value::List(_)) => {
            let (mut left, mut right) = (left.items(), right.items());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if is_same(&left.into(), &right.into(), depth) => {}
                    _ => return false,
                }
            }
        }
        (Value::Map(..), Value::Map(..)) => {
            let (left, right) = (sorted(left), sorted(right));
            left.len() == right.len()
                && left.iter().zip(&right).all(|(left, right)| {
                    let value = |bytes| Value::from(Any::read(bytes));
                    left.0 == right.0 && is_same(&value(left.1), &value(right.1), depth)
                })
        }
        _ => compare(Op::Eq, left, right),
    }
}

/// The entries of a map by their names; of a name that is there twice the first one stands first.
pub fn sorted<'v>(map: &'v Value<'_>) -> Vec<(&'v [u8], &'v [u8])> {
    let mut entries: Vec<_> = map.entries().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}
