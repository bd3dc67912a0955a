//! Values, and how they compare (OTTL, "Comparison Rules").

use crate::scan::Any;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, [u8]>),
    Bytes(Cow<'a, [u8]>),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Nanoseconds.
    Duration(i64),
    /// The attributes of a message, with their field key.
    Map(&'a [u8], u32),
    /// The message `ArrayValue`.
    List(&'a [u8]),
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
            Any::Array(message) => Value::List(message),
            // `KeyValueList.values`
            Any::Map(message) => Value::Map(message, 1 << 3 | 2),
            Any::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}

/// Compares: integers and floats with each other, all else with its like; nil is equal to nil alone. What cannot be
/// compared is unequal, and neither less nor greater.
#[must_use]
pub fn compare(op: Op, left: &Value<'_>, right: &Value<'_>) -> bool {
    let ordering = match (left, right) {
        (Value::Nil, Value::Nil) => Some(Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right))
        | (Value::Time(left), Value::Time(right))
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
                Op::Eq => left == right,
                Op::Ne => left != right,
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
