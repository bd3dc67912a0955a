//! Identifiers and values as Zipkin writes them.

use std::borrow::Cow;

use crate::run::translate::span::{Any, Attributes};

/// An identifier of up to 64 bits in hexadecimal, not zero.
pub fn id(text: &str) -> Result<[u8; 8], String> {
    match number(text) {
        Some(0) | None => Err(format!("'{}' is no identifier of a span", short(text))),
        Some(id) => Ok(id.to_be_bytes()),
    }
}

/// A trace's identifier: up to 128 bits in hexadecimal, not zero.
pub fn trace_id(text: &str) -> Result<[u8; 16], String> {
    let parts = match text.len().checked_sub(16) {
        None | Some(0) => Some(("0", text)),
        Some(high) => text.split_at_checked(high),
    };
    let id = parts.and_then(|(high, low)| {
        let (high, low) = (number(high)?, number(low)?);
        Some(u128::from(high) << 64 | u128::from(low))
    });
    match id {
        Some(0) | None => Err(format!("'{}' is no identifier of a trace", short(text))),
        Some(id) => Ok(id.to_be_bytes()),
    }
}

fn number(text: &str) -> Option<u64> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// What of a text is told in an error.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A tag's value: a number or a truth value where it looks like one and that is asked for.
pub fn value(text: Cow<'_, str>, parse: bool) -> Any<'_> {
    if !parse {
        return Any::Text(text);
    }
    match &*text {
        "true" => return Any::Bool(true),
        "false" => return Any::Bool(false),
        _ => {}
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(&text);
    let number = match unsigned.split_once('.') {
        None if digits(unsigned) => text.parse().ok().map(Any::Int),
        Some((whole, part)) if digits(whole) && digits(part) => text.parse().ok().map(Any::Double),
        _ => None,
    };
    number.unwrap_or(Any::Text(text))
}

/// Attributes in JSON, as the Collector's exporter writes them into texts.
pub fn attributes(json: &str) -> Option<Attributes<'static>> {
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).ok()?;
    let mut attributes = Attributes::default();
    for (key, value) in map {
        let value = match value {
            serde_json::Value::String(text) => Any::Text(text.into()),
            serde_json::Value::Bool(flag) => Any::Bool(flag),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Any::Int(int),
                // What is whole is an integer, as in the Collector.
                (None, Some(double)) if double.fract() == 0.0 && double.abs() < 9e15 => {
                    Any::Int(double as i64)
                }
                (None, Some(double)) => Any::Double(double),
                (None, None) => continue,
            },
            _ => continue,
        };
        attributes.add(key, value);
    }
    Some(attributes)
}

/// The attributes and the count at the end of a text: `…|attributes|count`; the attributes may hold
/// `|`.
pub fn attributes_and_count(text: &str) -> Option<(Attributes<'static>, u32)> {
    let (json, count) = text.rsplit_once('|')?;
    Some((attributes(json)?, count.parse().ok()?))
}
