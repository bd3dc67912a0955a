//! Values as the Collector's texts have them.

use jiff::Timestamp;
use otlp::scan::Any;
use otlp::view::View;
use syntax::hex;

use crate::run::send::number::general;

pub(super) use crate::run::log::Shown;

/// A value without its type.
pub(super) fn value(value: Any<'_>) -> String {
    let text = otlp::text::text_of(value);
    Shown(&String::from_utf8_lossy(&text)).to_string()
}

/// A value with its type.
pub(super) fn typed(value: Any<'_>) -> String {
    let kind = match value {
        Any::Empty => "Empty",
        Any::Text(_) => "Str",
        Any::Bool(_) => "Bool",
        Any::Int(_) => "Int",
        Any::Double(_) => "Double",
        Any::Array(_) => "Slice",
        Any::Map(_) => "Map",
        Any::Bytes(_) => "Bytes",
    };
    format!("{kind}({})", self::value(value))
}

/// `key=value` of all attributes, with something between.
pub(super) fn pairs(message: &View<'_>, between: &str) -> String {
    let pairs = message.attributes("attributes");
    let pairs: Vec<_> = pairs
        .map(|(key, own)| format!("{}={}", Shown(&key), value(own)))
        .collect();
    pairs.join(between)
}

/// An identifier; nothing where it is all zeros.
pub(super) fn id(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| *byte == 0) {
        String::new()
    } else {
        hex::text(bytes)
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
    if !value.is_finite() {
        return not_finite(value);
    }
    general(value, 1e21)
}

/// A number as Go's `%f` writes it.
pub(super) fn fixed(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.6}")
    } else {
        not_finite(value)
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
