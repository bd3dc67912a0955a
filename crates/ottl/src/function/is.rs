//! What is true or false of a value.

use super::text::{text, text_like};
use super::{Build, Function, eval};
use crate::eval::Failure;
use crate::value::{Op, Value, compare};
use std::net::IpAddr;

pub const FUNCTIONS: &[Function] = &[
    eval("IsBool", &["value"], |args| {
        is(matches!(args[0], Value::Bool(_)))
    }),
    eval("IsDouble", &["value"], |args| {
        is(matches!(args[0], Value::Float(_)))
    }),
    eval("IsInt", &["value"], |args| {
        is(matches!(args[0], Value::Int(_)))
    }),
    eval("IsList", &["value"], |args| {
        is(matches!(args[0], Value::List(_) | Value::Messages(..)))
    }),
    eval("IsMap", &["value"], |args| {
        is(matches!(args[0], Value::Map(..)))
    }),
    eval("IsString", &["value"], |args| {
        is(matches!(args[0], Value::Text(_)))
    }),
    eval("IsEmpty", &["value"], |args| is(is_empty(&args[0]))),
    eval("HasPrefix", &["value", "prefix"], |args| {
        is(text(&args[0])?.starts_with(text(&args[1])?))
    }),
    eval("HasSuffix", &["value", "suffix"], |args| {
        is(text(&args[0])?.ends_with(text(&args[1])?))
    }),
    eval("ContainsValue", &["target", "item"], |args| {
        match &args[0] {
            Value::List(_) => is(args[0]
                .items()
                .any(|item| compare(Op::Eq, &item.into(), &args[1]))),
            _ => Err(Failure::Type),
        }
    }),
    eval("IsValidLuhn", &["value"], |args| match &args[0] {
        Value::Text(text) => is(is_luhn(text)),
        Value::Int(value) => is(is_luhn(value.to_string().as_bytes())),
        _ => Err(Failure::Type),
    }),
    eval("IsInCIDR", &["target", "networks"], |args| {
        is_in_cidr(&args[0], &args[1])
    }),
    Function {
        name: "IsMatch",
        params: &["target", "pattern"],
        build: Build::Regex(|regex, value| {
            let text = text_like(value)?;
            is(text.is_some_and(|text| regex.is_match(&*text)))
        }),
    },
    Function {
        name: "IsRootSpan",
        params: &[],
        build: Build::Root,
    },
];

fn is<'a>(value: bool) -> Result<Value<'a>, Failure> {
    Ok(Value::Bool(value))
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Nil => true,
        Value::Bool(value) => !value,
        Value::Int(value)
        | Value::Time(value)
        | Value::Zoned(value, _)
        | Value::Duration(value) => *value == 0,
        Value::Float(value) => *value == 0.0,
        Value::Text(text) => text.is_empty(),
        // An identifier of zeros is none.
        Value::Bytes(bytes) => bytes.iter().all(|byte| *byte == 0),
        Value::Map(..) => value.entries().next().is_none(),
        Value::List(_) => value.items().next().is_none(),
        Value::Messages(..) => value.messages() == 0,
    }
}

/// Digits whose check digit is right (Luhn's formula).
fn is_luhn(digits: &[u8]) -> bool {
    let mut sum = 0_u64;
    for (at, digit) in digits.iter().rev().enumerate() {
        if !digit.is_ascii_digit() {
            return false;
        }
        let digit = u64::from(digit - b'0') << (at & 1);
        sum += if digit > 9 { digit - 9 } else { digit };
    }
    !digits.is_empty() && sum.is_multiple_of(10)
}

fn is_in_cidr<'a>(target: &Value<'_>, networks: &Value<'_>) -> Result<Value<'a>, Failure> {
    let parse = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<IpAddr>().ok();
    let address = parse(text(target)?).ok_or(Failure::Syntax)?;
    if !matches!(networks, Value::List(_)) {
        return Err(Failure::Type);
    }
    for network in networks.items() {
        let network = Value::from(network);
        let words = std::str::from_utf8(text(&network)?).map_err(|_| Failure::Syntax)?;
        let (net, bits) = words.split_once('/').ok_or(Failure::Syntax)?;
        let net = parse(net.as_bytes()).ok_or(Failure::Syntax)?;
        let bits: u32 = bits.parse().map_err(|_| Failure::Syntax)?;
        if is_within(address, net, bits)? {
            return is(true);
        }
    }
    is(false)
}

fn is_within(address: IpAddr, net: IpAddr, bits: u32) -> Result<bool, Failure> {
    let (address, net, width) = match (address.to_canonical(), net) {
        (IpAddr::V4(address), IpAddr::V4(net)) => {
            (u128::from(address.to_bits()), u128::from(net.to_bits()), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(net)) => (address.to_bits(), net.to_bits(), 128),
        _ => return Ok(false),
    };
    let rest = u32::checked_sub(width, bits).ok_or(Failure::Syntax)?;
    let first = |bits: u128| bits.checked_shr(rest).unwrap_or(0);
    Ok(first(address) == first(net))
}
