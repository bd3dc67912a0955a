//! Values as the Collector's texts have them.

use jiff::Timestamp;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use otlp::scan::Any;
use prost::Message;
use syntax::hex;

pub(super) use crate::run::log::Shown;

/// A value without its type.
pub(super) fn value(value: &AnyValue) -> String {
    let text = otlp::text::text_of(Any::read(&value.encode_to_vec()));
    Shown(&String::from_utf8_lossy(&text)).to_string()
}

/// The same of one that may be missing.
pub(super) fn value_of(value: Option<&AnyValue>) -> String {
    value.map(self::value).unwrap_or_default()
}

/// A value with its type.
pub(super) fn typed(value: Option<&AnyValue>) -> String {
    let kind = match value.and_then(|value| value.value.as_ref()) {
        None => "Empty",
        Some(Value::StringValue(_)) => "Str",
        Some(Value::BoolValue(_)) => "Bool",
        Some(Value::IntValue(_)) => "Int",
        Some(Value::DoubleValue(_)) => "Double",
        Some(Value::ArrayValue(_)) => "Slice",
        Some(Value::KvlistValue(_)) => "Map",
        Some(Value::BytesValue(_)) => "Bytes",
        // An index into a dictionary of profiles, which these signals have not.
        Some(_) => "Empty",
    };
    format!("{kind}({})", value_of(value))
}

/// `key=value`, with something between.
pub(super) fn pairs(attributes: &[KeyValue], between: &str) -> String {
    let pair = |one: &KeyValue| format!("{}={}", Shown(&one.key), value_of(one.value.as_ref()));
    let pairs: Vec<_> = attributes.iter().map(pair).collect();
    pairs.join(between)
}

/// An identifier; nothing where it is all zeros.
pub(super) fn id(bytes: &[u8]) -> String {
    match bytes.iter().all(|byte| *byte == 0) {
        true => String::new(),
        false => hex::text(bytes),
    }
}

/// Nanoseconds of the UNIX epoch, as Go writes a time.
pub(super) fn time(ns: u64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(ns.cast_signed()));
    let time = time.unwrap_or_default();
    format!("{} +0000 UTC", time.strftime("%Y-%m-%d %H:%M:%S%.f"))
}

/// A number as Go's `%v` writes it.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return not_finite(value);
    }
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A number as Go's `%f` writes it.
pub(super) fn fixed(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value:.6}"),
        false => not_finite(value),
    }
}

fn not_finite(value: f64) -> String {
    let name = match value {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, v, f) in [
            (0.0, "0", "0.000000"),
            (3.0, "3", "3.000000"),
            (1e-5, "1e-05", "0.000010"),
            (2.5e100, "2.5e+100", ""),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!(number(value), v);
            assert!(f.is_empty() || fixed(value) == f, "{value}");
        }
    }

    #[test]
    fn text_from_outside_stays_on_its_line() {
        assert_eq!(Shown("a\n\x1b[2Jé\t").to_string(), "a\\n\\u{1b}[2Jé\\t");
        assert_eq!(time(u64::MAX), "1969-12-31 23:59:59.999999999 +0000 UTC");
    }
}
