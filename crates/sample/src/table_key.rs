//! Converts samples to keys of stick tables, and keys to samples (manual §11.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use tables::{Definition, KeyType};

use crate::cast::{Cast, cast, cast_of, written};
use crate::{Expr, Kind, Value};

/// The type to which a sample is cast.
fn kind_of(key: KeyType) -> Kind {
    match key {
        KeyType::Ip => Kind::Ipv4,
        KeyType::Ipv6 => Kind::Ipv6,
        KeyType::Integer => Kind::Int,
        KeyType::String => Kind::Str,
        KeyType::Binary => Kind::Bin,
    }
}

/// Whether the result of an expression can be a key of a table.
#[must_use]
pub fn is_compatible(expr: &Expr, key: KeyType) -> bool {
    cast_of(expr.kind(), kind_of(key)) != Cast::Never
}

/// Calls `work` with the bytes of a sample as a key; None if it cannot be a key.
pub fn with_key<R>(
    value: Value<'_>,
    table: &Definition,
    work: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    Some(match cast(value, kind_of(table.key))? {
        Value::Ipv4(ip) => work(&ip.octets()),
        Value::Ipv6(ip) => work(&ip.octets()),
        Value::Int(number) => work(&(number as u32).to_be_bytes()),
        Value::Str(bytes) | Value::Bin(bytes) => work(&bytes),
        Value::Bool(_) | Value::Method(..) => return None,
    })
}

/// A stored key as a sample.
#[must_use]
pub fn sample_of(key: &[u8], table: &Definition) -> Option<Value<'static>> {
    Some(match table.key {
        KeyType::Ip => Value::Ipv4(Ipv4Addr::from(*key.first_chunk::<4>()?)),
        KeyType::Ipv6 => Value::Ipv6(Ipv6Addr::from(*key.first_chunk::<16>()?)),
        KeyType::Integer => Value::Int(u32::from_be_bytes(*key.first_chunk()?).into()),
        KeyType::String => Value::Str(written(|out| out.extend_from_slice(key))),
        KeyType::Binary => Value::Bin(written(|out| {
            out.extend_from_slice(&table.shown(key));
        })),
    })
}
