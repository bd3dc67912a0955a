//! Values as texts, and texts as numbers, as the Collector makes them (`AsString` of `pdata`; Go's
//! `strconv`).

use std::fmt::Write;

use crate::scan::{Any, Attributes};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// A value as a text: what is no text as JSON writes it, bytes in base64.
#[must_use]
pub fn text_of(value: Any<'_>) -> Vec<u8> {
    let text = match value {
        Any::Text(text) => return text.to_vec(),
        Any::Empty => String::new(),
        Any::Bool(value) => value.to_string(),
        Any::Int(value) => value.to_string(),
        Any::Double(f64::INFINITY) => "Infinity".to_owned(),
        Any::Double(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        Any::Double(value) => double(value),
        Any::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        Any::Array(_) | Any::Map(_) => {
            let mut out = String::new();
            // A number that JSON has not makes the whole text empty.
            match json(value, &mut out) {
                Some(()) => out,
                None => String::new(),
            }
        }
    };
    text.into_bytes()
}

/// A number as JSON has it: exponents for what is very small or large only.
#[must_use]
fn double(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        // Rust writes no sign before an exponent that is not negative.
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{value}")
}

/// What Go calls a number that is none.
fn not_finite(value: f64) -> Option<&'static str> {
    match value {
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        value if value.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// A value as the expressions of `match_type: regexp` see it; lists, maps and bytes are not
/// matched.
#[must_use]
pub fn matched_text(value: Any<'_>) -> Option<Vec<u8>> {
    Some(match value {
        Any::Text(text) => text.to_vec(),
        Any::Bool(value) => value.to_string().into_bytes(),
        Any::Int(value) => value.to_string().into_bytes(),
        Any::Double(value) => match not_finite(value) {
            Some(name) => name.as_bytes().to_vec(),
            None => value.to_string().into_bytes(),
        },
        _ => return None,
    })
}

/// The text of a whole number in decimal.
#[must_use]
pub fn int_of(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The text of a number in decimal, or `inf`, `infinity` or `nan`; one that is too large is none.
#[must_use]
pub fn double_of(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    let is_word = text.bytes().any(|byte| matches!(byte, b'n' | b'N'));
    (value.is_finite() || is_word).then_some(value)
}

/// Appends a value as JSON, keys in their order; none where JSON has no such number. The
/// depth of a value was checked when it was read.
fn json(value: Any<'_>, out: &mut String) -> Option<()> {
    match value {
        Any::Empty => out.push_str("null"),
        Any::Text(text) => quoted(text, out),
        Any::Bool(_) | Any::Int(_) => out.push_str(&String::from_utf8(text_of(value)).ok()?),
        Any::Double(value) if not_finite(value).is_some() => return None,
        Any::Double(value) => out.push_str(&double(value)),
        Any::Bytes(bytes) => quoted(BASE64_STANDARD.encode(bytes).as_bytes(), out),
        Any::Array(items) => {
            out.push('[');
            for (at, item) in Any::items(items).enumerate() {
                if at > 0 {
                    out.push(',');
                }
                json(item, out)?;
            }
            out.push(']');
        }
        Any::Map(map) => {
            let mut entries: Vec<_> = Attributes::of_map(map).collect();
            // Of a key that is there twice the last one counts.
            entries.reverse();
            entries.sort_by_key(|(key, _)| *key);
            entries.dedup_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                quoted(key, out);
                out.push(':');
                json(Any::read(value), out)?;
            }
            out.push('}');
        }
    }
    Some(())
}

fn quoted(text: &[u8], out: &mut String) {
    out.push('"');
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                    // Writing to a text cannot fail.
                    let _ = write!(out, "\\u{:04x}", u32::from(char));
                }
                char => out.push(char),
            }
        }
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Any<'_>) -> String {
        String::from_utf8(text_of(value)).unwrap()
    }

    #[test]
    fn values_are_written_as_go_writes_them() {
        for (value, wanted) in [
            (Any::Empty, ""),
            (Any::Text(b"a"), "a"),
            (Any::Bool(true), "true"),
            (Any::Int(-5), "-5"),
            (Any::Double(1.0), "1"),
            (Any::Double(0.1), "0.1"),
            (Any::Double(-0.0), "-0"),
            (Any::Double(1e20), "100000000000000000000"),
            (Any::Double(1e21), "1e+21"),
            (Any::Double(1.5e-7), "1.5e-7"),
            (Any::Double(f64::NAN), "NaN"),
            (Any::Double(f64::NEG_INFINITY), "-Infinity"),
            (Any::Bytes(b"\x00\xff"), "AP8="),
        ] {
            assert_eq!(text(value), wanted, "{value:?}");
        }
    }

    #[test]
    fn lists_and_maps_are_json() {
        use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
        use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValueList};
        use prost::Message;
        let any = |value| AnyValue { value: Some(value) };
        let shown = |value: V| text(Any::read(&any(value).encode_to_vec()));
        let list = |values: Vec<V>| {
            let values = values.into_iter().map(any).collect();
            V::ArrayValue(ArrayValue { values })
        };
        let odd = V::StringValue("<a>\u{1}\"é".into());
        assert_eq!(
            shown(list(vec![V::IntValue(1), odd, list(vec![])])),
            r#"[1,"<a>\u0001\"é",[]]"#
        );
        let values = vec![
            crate::tests::key_value("b", V::BoolValue(false)),
            crate::tests::key_value("a", V::DoubleValue(1e21)),
            crate::tests::key_value("b", V::IntValue(2)),
        ];
        let map = V::KvlistValue(KeyValueList { values });
        assert_eq!(shown(map), r#"{"a":1e+21,"b":2}"#);
        assert_eq!(shown(list(vec![V::DoubleValue(f64::NAN)])), "");
    }

    #[test]
    fn texts_are_read_as_go_reads_them() {
        assert_eq!(int_of(b"-12"), Some(-12));
        assert_eq!(int_of(b"+12"), Some(12));
        for bad in ["", "1.0", " 1", "0x1", "1_0", "9223372036854775808"] {
            assert_eq!(int_of(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(double_of(b"1e3"), Some(1000.0));
        assert_eq!(double_of(b".5"), Some(0.5));
        assert_eq!(double_of(b"-Inf"), Some(f64::NEG_INFINITY));
        for bad in ["", "1e400", "a", "1 ", "\u{ff}"] {
            assert_eq!(double_of(bad.as_bytes()), None, "{bad}");
        }
    }
}
