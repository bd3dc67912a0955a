//! The member `ot` and its values `th` and `rv` (OpenTelemetry: TraceState handling; probability
//! sampling).

use super::{MEMBERS_MAX, VALUE_BYTES_MAX, get, push, shorten, split, whole_members};
use syntax::hex;

/// One more than the largest threshold: a trace is kept if its 56 random bits are at least the
/// threshold.
pub const THRESHOLD_MAX: u64 = 1 << 56;

/// Hexadecimal digits of 56 bits.
pub const DIGITS: usize = 14;

/// The threshold that keeps this share of all traces, rounded to 56 bits; none if the share rounds
/// to 0. NaN keeps all traces.
#[must_use]
pub fn threshold_of(probability: f64) -> Option<u64> {
    // The conversion saturates and is exact below 2^56.
    let kept = (probability.clamp(0.0, 1.0) * THRESHOLD_MAX as f64).round() as u64;
    let kept = if probability.is_nan() {
        THRESHOLD_MAX
    } else {
        kept
    };
    (kept > 0).then(|| THRESHOLD_MAX - kept)
}

/// The threshold with which the trace was sampled.
#[must_use]
pub fn threshold(state: &[u8]) -> Option<u64> {
    sub_key(get(state, b"ot")?, b"th").and_then(threshold_of_digits)
}

/// The randomness that all samplers of the trace use, if it is not in the trace identifier.
#[must_use]
pub fn randomness(state: &[u8]) -> Option<u64> {
    sub_key(get(state, b"ot")?, b"rv").and_then(randomness_of_digits)
}

/// 1 to 14 digits of either case as a threshold: trailing zeros are omitted.
#[must_use]
pub fn threshold_of_digits(digits: &[u8]) -> Option<u64> {
    let shift = 4 * DIGITS.checked_sub(digits.len())?;
    (!digits.is_empty())
        .then(|| number(digits))?
        .map(|bits| bits << shift)
}

/// 14 digits of either case as randomness.
#[must_use]
pub fn randomness_of_digits(digits: &[u8]) -> Option<u64> {
    (digits.len() == DIGITS).then(|| number(digits))?
}

/// Appends the list with this threshold (below [`THRESHOLD_MAX`]) in its member `ot`, or without a
/// threshold. Other values of `ot` are kept, and `ot` becomes the first member, because it changed
/// last. If the list would be too long, other members are left out as in [`super::read`].
pub fn set_threshold(state: &[u8], threshold: Option<u64>, out: &mut Vec<u8>) {
    let start = out.len();
    write_ot(get(state, b"ot").unwrap_or_default(), threshold, out);
    let ot = out.len();
    let others =
        whole_members(state).filter(|member| split(member).is_some_and(|(key, _)| key != b"ot"));
    for member in others.take(MEMBERS_MAX - usize::from(ot > start)) {
        push(member, start, out);
    }
    shorten(out, start, ot);
}

/// Appends the member `ot`, unless it would be empty.
fn write_ot(old: &[u8], threshold: Option<u64>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"ot=");
    let value = out.len();
    for pair in old
        .split(|byte| *byte == b';')
        .filter(|pair| !pair.is_empty() && !pair.starts_with(b"th:"))
    {
        if out.len() > value {
            out.push(b';');
        }
        out.extend_from_slice(pair);
    }
    if let Some(threshold) = threshold {
        let (digits, len) = threshold_digits(threshold);
        // A value that does not fit is omitted, as if it were unknown.
        if out.len() - value + 4 + len <= VALUE_BYTES_MAX {
            if out.len() > value {
                out.push(b';');
            }
            out.extend_from_slice(b"th:");
            out.extend_from_slice(&digits[..len]);
        }
    }
    if out.len() == value {
        out.truncate(start);
    }
}

/// The digits of a threshold, and how many are needed: at least one, without trailing zeros.
#[must_use]
pub fn threshold_digits(threshold: u64) -> ([u8; DIGITS], usize) {
    let mut digits = [0; DIGITS];
    hex::write(&mut digits, &threshold.to_be_bytes()[1..]);
    let zeros = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    (digits, (DIGITS - zeros).max(1))
}

/// The value of a sub-key of `ot`: `key:value;key:value`. One with capital letters is not valid.
fn sub_key<'a>(ot: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    ot.split(|byte| *byte == b';')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix(b":"))
        .filter(|value| !value.iter().any(u8::is_ascii_uppercase))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | u64::from(hex::digit(*digit)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(state: &str, threshold: Option<u64>) -> String {
        let mut out = b"x".to_vec();
        set_threshold(state.as_bytes(), threshold, &mut out);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[test]
    fn thresholds_are_those_of_the_specification() {
        let written = |probability| set("", threshold_of(probability));
        assert_eq!(written(1.0), "ot=th:0");
        assert_eq!(written(0.5), "ot=th:8");
        assert_eq!(written(0.25), "ot=th:c");
        assert_eq!(written(0.0625), "ot=th:f");
        assert!(written(1.0 / 3.0).starts_with("ot=th:aaaaaaaa"));
        assert!(written(0.1).starts_with("ot=th:e6666666"));
        assert!(written(0.01).starts_with("ot=th:fd70a3d7"));
        assert_eq!(threshold_of(0.0), None);
        assert_eq!(threshold_of(-1.0), None);
        assert_eq!(threshold_of(2.0), Some(0));
        assert_eq!(threshold_of(f64::NAN), Some(0));
        assert_eq!(threshold_of(2f64.powi(-56)), Some(THRESHOLD_MAX - 1));
        assert_eq!(threshold_of(2f64.powi(-58)), None);
    }

    #[test]
    fn values_are_read() {
        assert_eq!(
            threshold(b"a=b,ot=p:8;th:c;rv:0123456789abcd"),
            Some(0xc << 52)
        );
        assert_eq!(
            randomness(b"a=b,ot=p:8;th:c;rv:0123456789abcd"),
            Some(0x01_2345_6789_abcd)
        );
        for bad in [
            "",
            "ot=th:",
            "ot=th:g",
            "ot=th:C",
            "ot=th:012345678901234",
            "ot=xth:1",
            "a=th:1",
        ] {
            assert_eq!(threshold(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(randomness(b"ot=rv:0123456789abc"), None);
        assert_eq!(threshold(b"ot=th:00000000000001"), Some(1));
    }

    #[test]
    fn what_else_is_there_is_kept() {
        let eighth = threshold_of(0.125);
        assert_eq!(set("a=1,b=2", eighth), "ot=th:e,a=1,b=2");
        assert_eq!(
            set("a=1,ot=p:8;th:1;rv:0123456789abcd,b=2", eighth),
            "ot=p:8;rv:0123456789abcd;th:e,a=1,b=2"
        );
        assert_eq!(set("a=1,ot=th:1;p:8,b=2", None), "ot=p:8,a=1,b=2");
        assert_eq!(set("a=1,ot=th:1,b=2", None), "a=1,b=2");
        assert_eq!(set("ot=th:1", None), "");
        assert_eq!(set("bad,A=1,c=2", eighth), "ot=th:e,c=2");
    }

    #[test]
    fn a_list_that_is_full_loses_long_members_then_the_last() {
        let many: Vec<_> = (0..32).map(|at| format!("k{at}=v")).collect();
        assert_eq!(
            set(&many.join(","), Some(0)),
            format!("ot=th:0,{}", many[..31].join(","))
        );
        let long = format!("a={},b={},c=d", "v".repeat(200), "v".repeat(302 - 50));
        assert_eq!(
            set(&format!("{long},e={}", "v".repeat(42)), Some(0)),
            format!("ot=th:0,a={},c=d,e={}", "v".repeat(200), "v".repeat(42))
        );
        let short: Vec<_> = (0..5)
            .map(|at| format!("k{at}={}", "v".repeat(98)))
            .collect();
        assert_eq!(
            set(&short.join(","), Some(0)),
            format!("ot=th:0,{}", short[..4].join(","))
        );
        let full = format!("ot=x:{}", "v".repeat(254));
        assert_eq!(set(&full, Some(1)), full);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut random = crate::tests::Random::new(5);
        for turn in 0..1000 {
            // Of all lengths.
            let value = random.next() >> 8 >> (turn % 56) << (turn / 7 % 40) & (THRESHOLD_MAX - 1);
            assert_eq!(threshold(set("a=b", Some(value)).as_bytes()), Some(value));
        }
    }

    #[test]
    fn digits_are_read() {
        assert_eq!(threshold_of_digits(b"8"), Some(1 << 55));
        assert_eq!(threshold_of_digits(b"C"), Some(3 << 54));
        assert_eq!(randomness_of_digits(b"000000000000ff"), Some(255));
        for bad in ["", "g", "012345678901234", "+1", "é"] {
            assert_eq!(threshold_of_digits(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(randomness_of_digits(b"ff"), None);
    }
}
