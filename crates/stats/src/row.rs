//! The values of one frontend, listener, server or backend.

use std::borrow::Cow;
use std::fmt;

use crate::column::{COUNT, Column};
use crate::latency::Latency;

/// The object of a row. The number is the value of the field `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Frontend,
    Backend,
    Server,
    Listener,
}

impl Kind {
    /// Its letter in typed lines.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Kind::Frontend => 'F',
            Kind::Backend => 'B',
            Kind::Server => 'S',
            Kind::Listener => 'L',
        }
    }

    /// Its word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Frontend => "Frontend",
            Kind::Backend => "Backend",
            Kind::Server => "Server",
            Kind::Listener => "Listener",
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Text(Cow<'a, str>),
    U32(u32),
    S32(i32),
    U64(u64),
    Float(f64),
}

impl Value<'_> {
    /// Its type in typed lines and JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "str",
            Value::U32(_) => "u32",
            Value::S32(_) => "s32",
            Value::U64(_) => "u64",
            Value::Float(_) => "flt",
        }
    }

    /// The value as a number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Text(_) => None,
            Value::U32(number) => Some(f64::from(*number)),
            Value::S32(number) => Some(f64::from(*number)),
            Value::U64(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => out.write_str(text),
            Value::U32(number) => number.fmt(out),
            Value::S32(number) => number.fmt(out),
            Value::U64(number) => number.fmt(out),
            Value::Float(number) => write!(out, "{number:.6}"),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::U32(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::U64(number)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The kind of its object.
    pub kind: Kind,
    /// The histograms of its streams' times, if they are measured.
    pub latency: Option<Box<Latency>>,
    values: [Option<Value<'a>>; COUNT],
}

impl<'a> Row<'a> {
    /// A row with only its type set.
    #[must_use]
    pub fn new(kind: Kind) -> Row<'a> {
        let mut row = Row {
            kind,
            latency: None,
            values: [const { None }; COUNT],
        };
        row.set(Column::Type, kind as u32);
        row
    }

    /// Sets a field.
    pub fn set(&mut self, column: Column, value: impl Into<Value<'a>>) {
        self.values[column as usize] = Some(value.into());
    }

    /// Sets a field, if there is a value.
    pub fn set_some(&mut self, column: Column, value: Option<impl Into<Value<'a>>>) {
        self.values[column as usize] = value.map(Into::into);
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, column: Column) -> Option<&Value<'a>> {
        self.values[column as usize].as_ref()
    }

    /// The number in a field; 0 if it has none.
    #[must_use]
    pub fn number(&self, column: Column) -> f64 {
        self.get(column).and_then(Value::number).unwrap_or(0.0)
    }

    /// The text in a field; empty if it has none.
    #[must_use]
    pub fn text(&self, column: Column) -> &str {
        match self.get(column) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// All fields that have a value.
    pub fn filled(&self) -> impl Iterator<Item = (Column, &Value<'a>)> {
        let pairs = Column::ALL.iter().zip(&self.values);
        pairs.filter_map(|(column, value)| Some((*column, value.as_ref()?)))
    }
}
