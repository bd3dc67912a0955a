//! Typed samples: the output of fetches and converters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Bytes;

/// The type of a sample (manual §7.3, HAProxy's `SMP_T_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The type is known only at evaluation (`var`), or any type is accepted.
    Any,
    /// A boolean.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// IPv4 or IPv6; known at evaluation.
    Addr,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// Text.
    Str,
    /// Bytes; converted to text as hexadecimal.
    Bin,
    /// A request method.
    Method,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text in any encoding.
    Str(Bytes<'a>),
    /// Binary data.
    Bin(Bytes<'a>),
    /// A request method and its name as received.
    Method(http::Method, Bytes<'a>),
}

impl<'a> Value<'a> {
    /// Text from anything that can be read as bytes.
    pub fn text(bytes: impl Into<Bytes<'a>>) -> Value<'a> {
        Value::Str(bytes.into())
    }

    /// Appends the value as text, like HAProxy's cast to a string.
    pub fn append_text(&self, out: &mut Vec<u8>) {
        crate::cast::append_text(self, out);
    }

    /// The type of this value; never [`Kind::Any`] or [`Kind::Addr`].
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Ipv4(_) => Kind::Ipv4,
            Value::Ipv6(_) => Kind::Ipv6,
            Value::Str(_) => Kind::Str,
            Value::Bin(_) => Kind::Bin,
            Value::Method(..) => Kind::Method,
        }
    }

    /// The length of its text; 0 for numbers and addresses.
    #[must_use]
    #[inline]
    pub fn text_len(&self) -> usize {
        match self {
            Value::Str(bytes) | Value::Bin(bytes) | Value::Method(_, bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// The same value without a borrow, to be kept in [`crate::Vars`] or across a change of the
    /// facts.
    #[must_use]
    pub fn detach(self) -> Value<'static> {
        match self {
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Ipv4(value) => Value::Ipv4(value),
            Value::Ipv6(value) => Value::Ipv6(value),
            Value::Str(bytes) => Value::Str(bytes.detach()),
            Value::Bin(bytes) => Value::Bin(bytes.detach()),
            Value::Method(method, name) => Value::Method(method, name.detach()),
        }
    }

    /// A cheap copy that borrows this value's bytes.
    #[must_use]
    pub fn borrow(&self) -> Value<'_> {
        match self {
            Value::Bool(value) => Value::Bool(*value),
            Value::Int(value) => Value::Int(*value),
            Value::Ipv4(value) => Value::Ipv4(*value),
            Value::Ipv6(value) => Value::Ipv6(*value),
            Value::Str(bytes) => Value::Str(Bytes::Borrowed(bytes)),
            Value::Bin(bytes) => Value::Bin(Bytes::Borrowed(bytes)),
            Value::Method(method, name) => Value::Method(*method, Bytes::Borrowed(name)),
        }
    }
}

impl From<IpAddr> for Value<'_> {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Value::Ipv4(ip),
            IpAddr::V6(ip) => Value::Ipv6(ip),
        }
    }
}
