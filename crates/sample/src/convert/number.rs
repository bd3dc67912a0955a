//! Arithmetic, bit and boolean operators, dates, address masks.

use super::{Convert, convert, operator};
use crate::args::ArgKind::{Int, Mask4, Mask6, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::embedded_ipv4;
use crate::operator::Operator;
use crate::text::{Date, MONTHS, push_int, push_padded, push_zone};
use crate::{Kind, SAMPLE_BYTES_MAX, Scope, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

const DATE: crate::args::Spec = spec(1, &[Str, Int]);

pub(crate) const CONVERTERS: &[Convert] = &[
    operator("add", "adds, saturating", Operator::Add),
    operator("sub", "subtracts, saturating", Operator::Sub),
    operator("mul", "multiplies, saturating", Operator::Mul),
    operator(
        "div",
        "divides; by 0 it gives the largest integer",
        Operator::Div,
    ),
    operator("mod", "the remainder; by 0 it gives 0", Operator::Mod),
    operator("and", "bitwise and", Operator::And),
    operator("or", "bitwise or", Operator::Or),
    operator("xor", "bitwise exclusive or", Operator::Xor),
    convert(
        "cpl",
        NONE,
        Kind::Int,
        Kind::Int,
        "every bit inverted",
        |_, value, _| map(value, |int| Value::Int(!int)),
    ),
    convert(
        "neg",
        NONE,
        Kind::Int,
        Kind::Int,
        "the opposite number",
        |_, value, _| map(value, |int| Value::Int(int.saturating_neg())),
    ),
    convert(
        "not",
        NONE,
        Kind::Int,
        Kind::Bool,
        "false unless it is 0",
        |_, value, _| map(value, |int| Value::Bool(int == 0)),
    ),
    convert(
        "bool",
        NONE,
        Kind::Int,
        Kind::Bool,
        "true unless it is 0",
        |_, value, _| map(value, |int| Value::Bool(int != 0)),
    ),
    convert(
        "even",
        NONE,
        Kind::Int,
        Kind::Bool,
        "whether it is even",
        |_, value, _| map(value, |int| Value::Bool(int & 1 == 0)),
    ),
    convert(
        "odd",
        NONE,
        Kind::Int,
        Kind::Bool,
        "whether it is odd",
        |_, value, _| map(value, |int| Value::Bool(int & 1 != 0)),
    ),
    convert(
        "iif",
        spec(2, &[Str, Str]),
        Kind::Bool,
        Kind::Str,
        "the first text for true, else the second",
        |args, value, _| match value {
            Value::Bool(value) => Some(Value::text(str_at(args, usize::from(!value)))),
            _ => None,
        },
    ),
    convert(
        "ipmask",
        spec(1, &[Mask4, Mask6]),
        Kind::Addr,
        Kind::Addr,
        "the address under a mask",
        ipmask,
    ),
    convert(
        "ltime",
        DATE,
        Kind::Int,
        Kind::Str,
        "seconds as a local date",
        |args, value, scope| format_date(args, value, 1, scope.world.utc_offset_seconds()),
    )
    .scoped(),
    convert(
        "ms_ltime",
        DATE,
        Kind::Int,
        Kind::Str,
        "milliseconds as a local date",
        |args, value, scope| format_date(args, value, 1_000, scope.world.utc_offset_seconds()),
    )
    .scoped(),
    convert(
        "us_ltime",
        DATE,
        Kind::Int,
        Kind::Str,
        "microseconds as a local date",
        |args, value, scope| format_date(args, value, 1_000_000, scope.world.utc_offset_seconds()),
    )
    .scoped(),
    convert(
        "utime",
        DATE,
        Kind::Int,
        Kind::Str,
        "seconds as a UTC date",
        |args, value, _| format_date(args, value, 1, 0),
    ),
    convert(
        "ms_utime",
        DATE,
        Kind::Int,
        Kind::Str,
        "milliseconds as a UTC date",
        |args, value, _| format_date(args, value, 1_000, 0),
    ),
    convert(
        "us_utime",
        DATE,
        Kind::Int,
        Kind::Str,
        "microseconds as a UTC date",
        |args, value, _| format_date(args, value, 1_000_000, 0),
    ),
];

fn map<'a>(value: Value<'_>, with: impl Fn(i64) -> Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Int(int) => Some(with(int)),
        _ => None,
    }
}

fn ipmask<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let mask4 = match args.first()? {
        Arg::Ipv4(mask) => u32::from(*mask),
        _ => return None,
    };
    let masked4 = |ip: Ipv4Addr| Value::Ipv4(Ipv4Addr::from(u32::from(ip) & mask4));
    match value {
        Value::Ipv4(ip) => Some(masked4(ip)),
        Value::Ipv6(ip) => match (embedded_ipv4(ip), args.get(1)) {
            (Some(ip), _) => Some(masked4(ip)),
            (None, Some(Arg::Ipv6(mask))) => Some(Value::Ipv6(Ipv6Addr::from(
                u128::from(ip) & u128::from(*mask),
            ))),
            (None, _) => None,
        },
        _ => None,
    }
}

/// `strftime` with the offset argument added; `%N` with a width gives the fraction of the second.
fn format_date<'a>(
    args: &'a [Arg],
    value: Value<'a>,
    per_second: i64,
    zone_seconds: i32,
) -> Option<Value<'a>> {
    let Value::Int(value) = value else {
        return None;
    };
    // As HAProxy: keeps the date positive and the year in bounds.
    let seconds = (value & 0x007f_ffff_ffff_ffff) / per_second;
    let fraction = ((value & 0x007f_ffff_ffff_ffff) % per_second) as u64;
    let seconds = seconds
        .saturating_add(int_at(args, 1).unwrap_or(0))
        .saturating_add(zone_seconds.into());
    let seconds = seconds.clamp(0, SECONDS_MAX);
    let date = Date::from_unix(seconds);
    let format = str_at(args, 0);
    let mut text = crate::Bytes::buffer();
    let out = text.as_vec();
    let mut at = 0;
    while let Some(&byte) = format.get(at) {
        at += 1;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = format[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
            .min(1);
        let width = if digits == 1 {
            u32::from(format[at] - b'0')
        } else {
            9
        };
        at += digits;
        let Some(&letter) = format.get(at) else { break };
        at += 1;
        if letter == b'N' {
            push_fraction(out, fraction, per_second, width);
        } else {
            push_part(out, &date, letter, seconds, zone_seconds, 0);
        }
        if out.len() > SAMPLE_BYTES_MAX {
            return None;
        }
    }
    Some(Value::Str(text.into()))
}

/// The end of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// The fraction of a second, `width` digits of it.
fn push_fraction(out: &mut Vec<u8>, fraction: u64, per_second: i64, width: u32) {
    let ns = fraction * (1_000_000_000 / per_second as u64);
    push_padded(out, ns / 10_u64.pow(9 - width.min(9)), width.min(9));
}

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTH_ENDS: [&str; 12] = [
    "uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember",
];

/// Conversions that stand for others (C locale).
const COMPOSED: &[(u8, &[u8])] = &[
    (b'c', b"a b e T Y"),
    (b'D', b"m/d/y"),
    (b'F', b"Y-m-d"),
    (b'r', b"I:M:S p"),
    (b'R', b"H:M"),
    (b'T', b"H:M:S"),
    (b'x', b"m/d/y"),
    (b'X', b"H:M:S"),
];

/// One conversion of `strftime` in the C locale. `depth` bounds composed ones.
fn push_part(
    out: &mut Vec<u8>,
    date: &Date,
    letter: u8,
    seconds: i64,
    zone_seconds: i32,
    depth: u32,
) {
    if let Some((_, parts)) = COMPOSED
        .iter()
        .find(|(name, _)| *name == letter)
        .filter(|_| depth < 3)
    {
        for part in *parts {
            match part {
                b' ' | b'/' | b':' | b'-' => out.push(*part),
                part => push_part(out, date, *part, seconds, zone_seconds, depth + 1),
            }
        }
        return;
    }
    let year = date.year.max(0) as u64;
    let hour12 = match date.hour % 12 {
        0 => 12,
        hour => hour,
    };
    let month = MONTHS[date.month as usize - 1];
    let mut two = |number: u32| push_padded(out, number.into(), 2);
    match letter {
        b'd' => two(date.day),
        b'H' => two(date.hour),
        b'I' => two(hour12),
        b'M' => two(date.minute),
        b'm' => two(date.month),
        b'S' => two(date.second),
        b'y' => two((year % 100) as u32),
        b'C' => two((year / 100) as u32),
        b'U' => two((date.yearday + 7 - date.weekday) / 7),
        b'W' => two((date.yearday + 7 - (date.weekday + 6) % 7) / 7),
        b'e' => push_blank_padded(out, date.day),
        b'k' => push_blank_padded(out, date.hour),
        b'l' => push_blank_padded(out, hour12),
        b'j' => push_padded(out, u64::from(date.yearday) + 1, 3),
        b'Y' => push_int(out, date.year),
        b's' => push_int(out, seconds - i64::from(zone_seconds)),
        b'u' => push_int(
            out,
            if date.weekday == 0 {
                7
            } else {
                date.weekday.into()
            },
        ),
        b'w' => push_int(out, date.weekday.into()),
        b'a' => out.extend_from_slice(&WEEKDAYS[date.weekday as usize].as_bytes()[..3]),
        b'A' => out.extend_from_slice(WEEKDAYS[date.weekday as usize].as_bytes()),
        b'b' | b'h' => out.extend_from_slice(month.as_bytes()),
        b'B' => {
            out.extend_from_slice(month.as_bytes());
            out.extend_from_slice(MONTH_ENDS[date.month as usize - 1].as_bytes());
        }
        b'p' => out.extend_from_slice(if date.hour < 12 { b"AM" } else { b"PM" }),
        b'P' => out.extend_from_slice(if date.hour < 12 { b"am" } else { b"pm" }),
        b'z' => push_zone(out, zone_seconds),
        b'Z' => out.extend_from_slice(if zone_seconds == 0 { b"UTC" } else { b"" }),
        b'n' => out.push(b'\n'),
        b't' => out.push(b'\t'),
        b'%' => out.push(b'%'),
        other => out.extend_from_slice(&[b'%', other]),
    }
}

fn push_blank_padded(out: &mut Vec<u8>, number: u32) {
    if number < 10 {
        out.push(b' ');
    }
    push_int(out, number.into());
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn arithmetic_saturates_and_never_divides_by_zero() {
        for (expr, wanted) in [
            ("int(3),add(4)", "7"),
            ("int(9223372036854775807),add(1)", "9223372036854775807"),
            ("int(-9223372036854775808),sub(1)", "-9223372036854775808"),
            ("int(4611686018427387904),mul(2)", "9223372036854775807"),
            ("int(7),div(2)", "3"),
            ("int(7),div(0)", "9223372036854775807"),
            ("int(-9223372036854775808),div(-1)", "9223372036854775807"),
            ("int(7),mod(4)", "3"),
            ("int(7),mod(0)", "0"),
            ("int(6),and(3)", "2"),
            ("int(6),or(1)", "7"),
            ("int(6),xor(2)", "4"),
            ("int(6),cpl", "-7"),
            ("int(6),neg", "-6"),
            ("int(6),not", "0"),
            ("int(6),bool", "1"),
            ("int(6),even", "1"),
            ("int(6),odd", "0"),
            ("bool(true),iif(yes,no)", "yes"),
            ("bool(false),iif(yes,no)", "no"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    #[test]
    fn addresses_under_masks() {
        for (expr, wanted) in [
            ("ipv4(192.168.3.4),ipmask(24)", "192.168.3.0"),
            ("ipv4(192.168.3.4),ipmask(255.255.0.0)", "192.168.0.0"),
            ("ipv6(2001:db8:1:2::3),ipmask(24,32)", "2001:db8::"),
            ("ipv6(::ffff:10.1.2.3),ipmask(8)", "10.0.0.0"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        none("ipv6(2001:db8::1),ipmask(24)");
    }

    #[test]
    fn dates_are_formatted_as_strftime_does() {
        for (format, wanted) in [
            ("%Y-%m-%d %H:%M:%S", "2026-11-20 13:01:02"),
            (
                "%a %A %b %B %e %j %y %C",
                "Fri Friday Nov November 20 324 26 20",
            ),
            (
                "%I %l %p %D %F %T %R",
                "01  1 PM 11/20/26 2026-11-20 13:01:02 13:01",
            ),
            ("%U %W %u %w %z %s %% %Q", "46 46 5 5 +0000 1795179662 % %Q"),
            ("%c", "Fri Nov 20 13:01:02 2026"),
        ] {
            assert_eq!(
                convert_text(&format!("int(1795179662),utime('{format}')")),
                wanted
            );
        }
        assert_eq!(
            convert_text("int(1795179662123),ms_utime('%S.%3N')"),
            "02.123"
        );
        assert_eq!(
            convert_text("int(1795179662123456),us_utime('%S.%6N')"),
            "02.123456"
        );
        assert_eq!(convert_text("int(0),utime('%H:%M',3600)"), "01:00");
        assert_eq!(convert_text("int(-1),utime('%Y')"), "9999");
    }
}
