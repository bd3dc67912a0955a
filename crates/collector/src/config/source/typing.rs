//! What a plain scalar means: YAML's core schema as the Collector's YAML library reads it.

use super::tree::Value;

/// The value of a plain scalar.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    int(text)
        .map(Value::Int)
        .or_else(|| float(text).map(Value::Float))
        .unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Decimal, `0x`, `0o`, `0b`, or octal after a `0`; `_` may stand between digits.
fn int(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let digits = digits.replace('_', "");
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits.as_str(), 10),
    };
    // A second sign is no digit.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

fn float(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    // Rust also takes words such as `inf` and `nan`.
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE_".contains(&byte);
    if !text.bytes().all(is_number) || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars() {
        let cases = [
            ("", Value::Null),
            ("~", Value::Null),
            ("TRUE", Value::Bool(true)),
            ("yes", Value::Text("yes".to_owned())),
            ("100_000", Value::Int(100_000)),
            ("-12", Value::Int(-12)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("017", Value::Int(15)),
            ("0b101", Value::Int(5)),
            ("08", Value::Float(8.0)),
            ("1.5", Value::Float(1.5)),
            ("1e3", Value::Float(1000.0)),
            (".5", Value::Float(0.5)),
            ("inf", Value::Text("inf".to_owned())),
            ("10s", Value::Text("10s".to_owned())),
            ("--1", Value::Text("--1".to_owned())),
            ("-", Value::Text("-".to_owned())),
            ("localhost:4317", Value::Text("localhost:4317".to_owned())),
            ("2001-12-14", Value::Text("2001-12-14".to_owned())),
        ];
        for (text, value) in cases {
            assert_eq!(plain(text), value, "{text}");
        }
    }
}
