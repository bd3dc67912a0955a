//! Casts between types of samples. The compiler checks which casts are possible.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::Bytes;
use crate::text::{ipv4_prefix, push_int, push_ip, read_int};
use crate::{Kind, Value};

/// The kind of work for a cast from one type to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// The cast is not possible.
    Never,
    /// No work: the value is used as it is.
    Free,
    /// The value is converted, which may fail.
    Work,
}

/// Whether and how `from` becomes `to` (HAProxy's matrix of sample casts).
pub(crate) fn cast_of(from: Kind, to: Kind) -> Cast {
    use Kind::{Addr, Any, Bin, Bool, Int, Ipv4, Ipv6, Method, Str};
    match (from, to) {
        (_, Any)
        | (Bool, Bool | Int)
        | (Int, Bool | Int)
        | (Ipv4, Addr | Ipv4)
        | (Ipv6, Addr | Ipv6)
        | (Str, Str | Bin)
        | (Bin, Bin)
        | (Method, Method) => Cast::Free,
        (Any, _)
        | (Bool, Str | Bin)
        | (Int, Addr | Ipv4 | Ipv6 | Str | Bin)
        | (Addr, Addr | Ipv4 | Ipv6 | Str | Bin)
        | (Ipv4, Int | Ipv6 | Str | Bin)
        | (Ipv6, Ipv4 | Str | Bin)
        | (Str, Bool | Int | Addr | Ipv4 | Ipv6 | Method)
        | (Bin, Str | Method)
        | (Method, Str | Bin) => Cast::Work,
        (Bool, Addr | Ipv4 | Ipv6 | Method)
        | (Int, Method)
        | (Addr, Bool | Int | Method)
        | (Ipv4, Bool | Method)
        | (Ipv6, Bool | Int | Method)
        | (Bin, Bool | Int | Addr | Ipv4 | Ipv6)
        | (Method, Bool | Int | Addr | Ipv4 | Ipv6) => Cast::Never,
    }
}

impl Value<'_> {
    /// The value as an address, or the address in its text.
    #[must_use]
    pub fn into_ip(self) -> Option<IpAddr> {
        match cast(self, Kind::Addr)? {
            Value::Ipv4(ip) => Some(IpAddr::V4(ip)),
            Value::Ipv6(ip) => Some(IpAddr::V6(ip)),
            _ => None,
        }
    }

    /// The value as an integer, or the integer in its text.
    #[must_use]
    pub fn into_int(self) -> Option<i64> {
        match cast(self, Kind::Int)? {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }
}

/// The value cast to another type; None if it cannot be cast.
pub(crate) fn cast(value: Value<'_>, to: Kind) -> Option<Value<'_>> {
    Some(match (value, to) {
        (value, Kind::Any) => value,
        (Value::Bool(value), Kind::Bool) => Value::Bool(value),
        (Value::Bool(value), Kind::Int) => Value::Int(i64::from(value)),
        (Value::Bool(value), Kind::Str) => Value::Str(if value { "1" } else { "0" }.into()),
        (Value::Bool(value), Kind::Bin) => Value::Bin(written(|out| {
            out.extend_from_slice(&u64::from(value).to_be_bytes())
        })),
        (Value::Int(value), Kind::Int) => Value::Int(value),
        (Value::Int(value), Kind::Bool) => Value::Bool(value != 0),
        (Value::Int(value), Kind::Addr | Kind::Ipv4) => Value::Ipv4(Ipv4Addr::from(value as u32)),
        (Value::Int(value), Kind::Ipv6) => {
            Value::Ipv6(Ipv4Addr::from(value as u32).to_ipv6_mapped())
        }
        (Value::Int(value), Kind::Str) => Value::Str(written(|out| push_int(out, value))),
        (Value::Int(value), Kind::Bin) => {
            Value::Bin(written(|out| out.extend_from_slice(&value.to_be_bytes())))
        }
        (Value::Ipv4(ip), Kind::Addr | Kind::Ipv4) => Value::Ipv4(ip),
        (Value::Ipv4(ip), Kind::Int) => Value::Int(i64::from(u32::from(ip))),
        (Value::Ipv4(ip), Kind::Ipv6) => Value::Ipv6(ip.to_ipv6_mapped()),
        (Value::Ipv4(ip), Kind::Str) => Value::Str(written(|out| push_ip(out, IpAddr::V4(ip)))),
        (Value::Ipv4(ip), Kind::Bin) => {
            Value::Bin(written(|out| out.extend_from_slice(&ip.octets())))
        }
        (Value::Ipv6(ip), Kind::Addr | Kind::Ipv6) => Value::Ipv6(ip),
        (Value::Ipv6(ip), Kind::Ipv4) => Value::Ipv4(embedded_ipv4(ip)?),
        (Value::Ipv6(ip), Kind::Str) => Value::Str(written(|out| push_ip(out, IpAddr::V6(ip)))),
        (Value::Ipv6(ip), Kind::Bin) => {
            Value::Bin(written(|out| out.extend_from_slice(&ip.octets())))
        }
        (Value::Str(text), Kind::Str) => Value::Str(text),
        (Value::Str(text), Kind::Bin) => Value::Bin(text),
        (Value::Str(text), Kind::Int) => Value::Int(int_of(&text)?),
        (Value::Str(text), Kind::Bool) => Value::Bool(int_of(&text)? != 0),
        (Value::Str(text), Kind::Addr) => leading_ip(&text)?.into(),
        (Value::Str(text), Kind::Ipv4) => match leading_ip(&text)? {
            IpAddr::V4(ip) => Value::Ipv4(ip),
            IpAddr::V6(_) => return None,
        },
        (Value::Str(text), Kind::Ipv6) => match leading_ip(&text)? {
            IpAddr::V6(ip) => Value::Ipv6(ip),
            IpAddr::V4(_) => return None,
        },
        (Value::Str(name) | Value::Bin(name), Kind::Method) => {
            Value::Method(method_of(&name), name)
        }
        (Value::Bin(bytes), Kind::Bin) => Value::Bin(bytes),
        (Value::Bin(bytes), Kind::Str) => {
            let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
            Value::Str(bytes.slice(0, end))
        }
        (Value::Method(method, name), Kind::Method) => Value::Method(method, name),
        (Value::Method(_, name), Kind::Str) => Value::Str(name),
        (Value::Method(_, name), Kind::Bin) => Value::Bin(name),
        (Value::Bool(_), Kind::Addr | Kind::Ipv4 | Kind::Ipv6 | Kind::Method)
        | (Value::Int(_), Kind::Method)
        | (Value::Ipv4(_), Kind::Bool | Kind::Method)
        | (Value::Ipv6(_), Kind::Bool | Kind::Int | Kind::Method)
        | (Value::Bin(_), Kind::Bool | Kind::Int | Kind::Addr | Kind::Ipv4 | Kind::Ipv6)
        | (Value::Method(..), Kind::Bool | Kind::Int | Kind::Addr | Kind::Ipv4 | Kind::Ipv6) => {
            return None;
        }
    })
}

/// Appends the value as text, like a cast to a string; nothing if the cast fails.
pub(crate) fn append_text(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push(b'0' + u8::from(*value)),
        Value::Int(value) => push_int(out, *value),
        Value::Ipv4(ip) => push_ip(out, IpAddr::V4(*ip)),
        Value::Ipv6(ip) => push_ip(out, IpAddr::V6(*ip)),
        Value::Str(text) | Value::Method(_, text) => out.extend_from_slice(text),
        Value::Bin(bytes) => out.extend_from_slice(until_nul(bytes)),
    }
}

/// The bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// A recycled buffer that `write` fills.
pub(crate) fn written<'a>(write: impl FnOnce(&mut Vec<u8>)) -> Bytes<'a> {
    let mut buffer = Bytes::buffer();
    write(buffer.as_vec());
    Bytes::Owned(buffer)
}

fn int_of(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        None
    } else {
        Some(read_int(text).0)
    }
}

/// The IPv4 address at the beginning of a text, if no digit or dot follows (but a port or another
/// address may), or an IPv6 address that is the whole text, as in HAProxy's cast.
fn leading_ip(text: &[u8]) -> Option<IpAddr> {
    ipv4_prefix(text)
        .map(|(ip, _)| IpAddr::V4(ip))
        .or_else(|| ip_of(text))
}

/// The IP address that is the whole text.
pub(crate) fn ip_of(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The IPv4 address inside a mapped or compatible (RFC 4291 §2.5.5) or a 6to4 (RFC 3056) address.
pub(crate) fn embedded_ipv4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = u128::from(ip);
    match (bits >> 32, bits >> 112) {
        (0 | 0xffff, _) => Some(Ipv4Addr::from(bits as u32)),
        (_, 0x2002) => Some(Ipv4Addr::from((bits >> 80) as u32)),
        _ => None,
    }
}

/// The method of this name.
pub(crate) fn method_of(name: &[u8]) -> http::Method {
    match name {
        b"GET" => http::Method::Get,
        b"HEAD" => http::Method::Head,
        b"POST" => http::Method::Post,
        b"PUT" => http::Method::Put,
        b"DELETE" => http::Method::Delete,
        b"CONNECT" => http::Method::Connect,
        b"OPTIONS" => http::Method::Options,
        b"TRACE" => http::Method::Trace,
        b"PATCH" => http::Method::Patch,
        _ => http::Method::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 9] = [
        Kind::Any,
        Kind::Bool,
        Kind::Int,
        Kind::Addr,
        Kind::Ipv4,
        Kind::Ipv6,
        Kind::Str,
        Kind::Bin,
        Kind::Method,
    ];

    fn values() -> Vec<Value<'static>> {
        vec![
            Value::Bool(true),
            Value::Int(-5),
            Value::Ipv4(Ipv4Addr::new(10, 1, 2, 3)),
            Value::Ipv6("2001:db8::1".parse().expect("ip")),
            Value::text("12"),
            Value::Bin(Bytes::from("a\0b")),
            Value::Method(http::Method::Post, "POST".into()),
        ]
    }

    #[test]
    fn what_the_matrix_forbids_gives_no_value() {
        for value in values() {
            for to in KINDS {
                let from = value.kind();
                let cast = cast(value.clone(), to);
                match cast_of(from, to) {
                    Cast::Never => assert_eq!(cast, None, "{from:?} to {to:?}"),
                    Cast::Free => assert!(cast.is_some(), "{from:?} to {to:?}"),
                    Cast::Work => {}
                }
            }
        }
    }

    #[test]
    fn texts_of_values() {
        let texts: Vec<_> = values()
            .into_iter()
            .map(|value| cast(value, Kind::Str))
            .collect();
        let wanted = ["1", "-5", "10.1.2.3", "2001:db8::1", "12", "a", "POST"];
        assert_eq!(texts, wanted.map(|text| Some(Value::text(text))));
        for value in values() {
            let mut out = Vec::new();
            append_text(&value, &mut out);
            assert_eq!(Some(Value::text(&out[..])), cast(value.borrow(), Kind::Str));
        }
    }

    #[test]
    fn texts_become_numbers_and_addresses() {
        assert_eq!(cast(Value::text("42x"), Kind::Int), Some(Value::Int(42)));
        assert_eq!(cast(Value::text(""), Kind::Int), None);
        assert_eq!(
            cast(Value::text("10.0.0.1"), Kind::Addr),
            Some(Value::Ipv4(Ipv4Addr::new(10, 0, 0, 1)))
        );
        for (text, wanted) in [
            ("10.0.0.1:80", Some([10, 0, 0, 1])),
            ("010.0.0.001, 10.0.0.2", Some([10, 0, 0, 1])),
            ("10.0.0.1.", None),
            ("10.0..1", None),
            ("10.0.0", None),
            ("10.0.0.256", None),
            (".10.0.0.1", None),
        ] {
            let wanted = wanted.map(|octets| Value::Ipv4(octets.into()));
            assert_eq!(cast(Value::text(text), Kind::Addr), wanted, "{text}");
        }
        assert_eq!(cast(Value::text("10.0.0.1"), Kind::Ipv6), None);
        assert_eq!(cast(Value::text("nowhere"), Kind::Addr), None);
    }
}
