//! Attributes, times and identifiers as JSON.

use otlp::scan::{Any, Attributes};
use serde_json::{Map, Number, Value};
use syntax::hex;

/// Larger integers are written as text: JavaScript cannot represent them exactly.
const EXACT_MAX: i64 = 1 << 53;

/// A time in nanoseconds as milliseconds, exact to the microsecond, like a JSON number.
pub(crate) fn time_ms(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1000.0
}

/// Milliseconds of a duration in nanoseconds.
pub(crate) fn duration_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Milliseconds from one time to another, which may be earlier.
pub(crate) fn between_ms(from_ns: u64, to_ns: u64) -> f64 {
    match to_ns.checked_sub(from_ns) {
        Some(ns) => duration_ms(ns),
        None => -duration_ms(from_ns - to_ns),
    }
}

/// Bytes as text; they may not be UTF-8.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Attributes by name; the first of several with the same name counts.
pub(crate) fn attributes(attributes: Attributes<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    for (key, value) in attributes {
        map.entry(text(key))
            .or_insert_with(|| json(Any::read(value)));
    }
    map
}

/// A value as JSON. Bytes are hexadecimal. The scanner limits the depth.
fn json(value: Any<'_>) -> Value {
    match value {
        Any::Empty => Value::Null,
        Any::Text(bytes) => Value::String(text(bytes)),
        Any::Bool(value) => Value::Bool(value),
        Any::Int(value) if value.unsigned_abs() <= EXACT_MAX as u64 => value.into(),
        Any::Int(value) => Value::String(value.to_string()),
        Any::Double(value) => {
            let number = Number::from_f64(value);
            number.map_or_else(|| Value::String(value.to_string()), Value::Number)
        }
        Any::Array(array) => Value::Array(Any::items(array).map(json).collect()),
        Any::Map(map) => Value::Object(attributes(Attributes::of_map(map))),
        Any::Bytes(bytes) => Value::String(hex::text(bytes)),
    }
}
