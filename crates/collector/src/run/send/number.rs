//! Numbers as Go writes them.

/// A finite number with as few digits as possible, with an exponent below 1e-4 and from
/// `exponent_from` on: 1e21 for `%v`, 1e6 for `strconv`'s format `g`.
pub(super) fn general(value: f64, exponent_from: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-4..exponent_from).contains(&size) {
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
