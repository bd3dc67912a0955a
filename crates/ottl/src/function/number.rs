//! Numbers, flags, and what is written as text for them.

use super::text::{optional, text, utf8};
use super::{Build, Function, eval};
use crate::eval::Failure;
use crate::value::Value;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use syntax::hex;

pub const FUNCTIONS: &[Function] = &[
    eval("Bool", &["value"], |args| Ok(bool(&args[0]))),
    eval("Double", &["value"], |args| {
        Ok(double(&args[0]).map_or(Value::Nil, Value::Float))
    }),
    eval("Int", &["value"], |args| int(&args[0])),
    eval("Log", &["value"], |args| match double(&args[0]) {
        Some(value) if value > 0.0 => Ok(Value::Float(value.ln())),
        _ => Err(Failure::Type),
    }),
    eval("ParseInt", &["target", "base"], |args| {
        parse_int(utf8(&args[0])?, &args[1])
    }),
    eval("Hex", &["value"], |args| Ok(as_hex(&args[0]))),
    eval("Base64Encode", &["value", "?variant"], |args| {
        let engine = engine(optional(&args[1], "base64")?).ok_or(Failure::Syntax)?;
        Ok(Value::text(engine.encode(text(&args[0])?)))
    }),
    eval("Base64Decode", &["value"], |args| {
        decoded(text(&args[0])?, "base64")
    }),
    eval("Decode", &["value", "encoding"], |args| match &args[0] {
        Value::Text(text) | Value::Bytes(text) => decoded(text, utf8(&args[1])?),
        _ => Err(Failure::Type),
    }),
    Function {
        name: "SpanID",
        params: &["bytes"],
        build: Build::Const(|value| id(value, 8)),
    },
    Function {
        name: "ProfileID",
        params: &["bytes"],
        build: Build::Const(|value| id(value, 16)),
    },
    Function {
        name: "TraceID",
        params: &["bytes"],
        build: Build::Const(|value| id(value, 16)),
    },
];

fn bool<'a>(value: &Value<'_>) -> Value<'a> {
    match value {
        Value::Bool(value) => Value::Bool(*value),
        Value::Int(value) => Value::Bool(*value != 0),
        Value::Float(value) => Value::Bool(*value != 0.0),
        Value::Text(text) => match &**text {
            b"1" | b"t" | b"T" | b"true" | b"TRUE" | b"True" => Value::Bool(true),
            b"0" | b"f" | b"F" | b"false" | b"FALSE" | b"False" => Value::Bool(false),
            _ => Value::Nil,
        },
        _ => Value::Nil,
    }
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Text(text) => otlp::text::double_of(text),
        _ => None,
    }
}

fn int<'a>(value: &Value<'_>) -> Result<Value<'a>, Failure> {
    Ok(match value {
        Value::Int(value) => Value::Int(*value),
        Value::Float(value) => Value::Int(*value as i64),
        Value::Bool(value) => Value::Int(i64::from(*value)),
        Value::Text(text) => otlp::text::int_of(text).map_or(Value::Nil, Value::Int),
        Value::Nil => Value::Nil,
        _ => return Err(Failure::Type),
    })
}

/// The base is 2 to 36, or 0 for that of a prefix `0x`, `0o` or `0b`.
fn parse_int<'a>(text: &str, base: &Value<'_>) -> Result<Value<'a>, Failure> {
    let Value::Int(base @ (0 | 2..=36)) = base else {
        return Err(Failure::Type);
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match (*base, digits.get(..2)) {
        (0, Some("0x" | "0X")) => (16, &digits[2..]),
        (0, Some("0o" | "0O")) => (8, &digits[2..]),
        (0, Some("0b" | "0B")) => (2, &digits[2..]),
        (0, _) => (10, digits),
        (base, _) => (base as u32, digits),
    };
    if digits.starts_with(['+', '-']) {
        return Err(Failure::Syntax);
    }
    let value = i64::from_str_radix(&format!("{sign}{digits}"), base);
    value.map(Value::Int).map_err(|_| Failure::Syntax)
}

fn as_hex<'a>(value: &Value<'_>) -> Value<'a> {
    Value::text(match value {
        Value::Text(bytes) | Value::Bytes(bytes) => hex::text(bytes),
        Value::Bool(value) => hex::text(&[u8::from(*value)]),
        Value::Int(value) => hex::text(&value.to_be_bytes()),
        Value::Float(value) => hex::text(&value.to_be_bytes()),
        _ => return Value::Nil,
    })
}

fn engine(name: &str) -> Option<&'static base64::engine::GeneralPurpose> {
    Some(match name {
        "base64" => &STANDARD,
        "base64-raw" => &STANDARD_NO_PAD,
        "base64-url" => &URL_SAFE,
        "base64-raw-url" => &URL_SAFE_NO_PAD,
        _ => return None,
    })
}

const UTF8: &[&str] = &["utf-8", "utf8"];
const ASCII: &[&str] = &["us-ascii", "ascii"];

/// Whether there is an encoding of this name.
pub fn is_encoding(name: &str) -> bool {
    let mut texts = UTF8.iter().chain(ASCII);
    engine(name).is_some() || texts.any(|known| known.eq_ignore_ascii_case(name))
}

fn decoded<'a>(bytes: &[u8], encoding: &str) -> Result<Value<'a>, Failure> {
    if let Some(engine) = engine(encoding) {
        let decoded = engine.decode(bytes).map_err(|_| Failure::Syntax)?;
        return Ok(Value::text(decoded));
    }
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(encoding));
    let is_right = match () {
        () if is(UTF8) => std::str::from_utf8(bytes).is_ok(),
        () if is(ASCII) => bytes.is_ascii(),
        () => false,
    };
    if is_right {
        Ok(Value::text(bytes))
    } else {
        Err(Failure::Syntax)
    }
}

/// An identifier of so many bytes: these, or hexadecimal digits for them.
fn id(value: &Value<'_>, len: usize) -> Result<Value<'static>, Failure> {
    let bytes = match value {
        Value::Bytes(bytes) => bytes.to_vec(),
        Value::Text(text) => hex::decode(text).ok_or(Failure::Syntax)?,
        _ => return Err(Failure::Type),
    };
    if bytes.len() == len {
        Ok(Value::Bytes(bytes.into()))
    } else {
        Err(Failure::Syntax)
    }
}
