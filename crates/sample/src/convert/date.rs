//! Dates: seconds as text in a format of `strftime`, and conversions from and to the dates of HTTP
//! (RFC 9110 §5.6.7).

use jiff::fmt::strtime;
use jiff::tz::Offset;

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::push_int;
use crate::zone::Moment;
use crate::{Kind, Scope, Value, Zone};

const FORMAT: crate::args::Spec = spec(1, &[Str, Int]);

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "ltime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "seconds as a local date",
        |args, value, scope| whole(args, value, Some(scope)),
    )
    .scoped(),
    convert(
        "ms_ltime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "milliseconds as a local date",
        |args, value, scope| divided(args, value, Some(scope), 1_000),
    )
    .scoped(),
    convert(
        "us_ltime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "microseconds as a local date",
        |args, value, scope| divided(args, value, Some(scope), 1_000_000),
    )
    .scoped(),
    convert(
        "utime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "seconds as a UTC date",
        |args, value, _| whole(args, value, None),
    ),
    convert(
        "ms_utime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "milliseconds as a UTC date",
        |args, value, _| divided(args, value, None, 1_000),
    ),
    convert(
        "us_utime",
        FORMAT,
        Kind::Int,
        Kind::Str,
        "microseconds as a UTC date",
        |args, value, _| divided(args, value, None, 1_000_000),
    ),
    convert(
        "http_date",
        spec(0, &[Int, Str]),
        Kind::Int,
        Kind::Str,
        "a date for a header of HTTP",
        http_date,
    )
    .checked(|args| {
        let Some(Arg::Str(unit)) = args.get(1) else {
            return Ok(());
        };
        let per_second = match &**unit {
            b"s" | b"" => 1,
            b"ms" => 1_000,
            b"us" => 1_000_000,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("expects 's', 'ms' or 'us', got '{other}'"));
            }
        };
        args[1] = Arg::Int(per_second);
        Ok(())
    }),
    convert(
        "date",
        NONE,
        Kind::Str,
        Kind::Int,
        "seconds of a date of HTTP",
        |_, value, _| {
            let text = bytes_of(value)?;
            seconds_of(form_of(&text), &text).map(Value::Int)
        },
    ),
];

/// HAProxy keeps dates positive with this mask.
const SECONDS_MASK: i64 = 0x007f_ffff_ffff_ffff;

fn int_of(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// Formats whole seconds, after the offset argument is added. In local time if there is a scope.
fn whole<'a>(args: &[Arg], value: Value<'a>, local: Option<&Scope<'_>>) -> Option<Value<'a>> {
    dated(args, int_of(&value)? & SECONDS_MASK, 0, local)
}

/// Formats smaller units: `%N` in the format is the fraction. The offset argument is in seconds in
/// this case too, as in HAProxy.
fn divided<'a>(
    args: &[Arg],
    value: Value<'a>,
    local: Option<&Scope<'_>>,
    per_second: i64,
) -> Option<Value<'a>> {
    let number = int_of(&value)?;
    let nanoseconds = number % per_second * (1_000_000_000 / per_second);
    dated(args, number / per_second, nanoseconds as i32, local)
}

fn dated<'a>(
    args: &[Arg],
    seconds: i64,
    nanoseconds: i32,
    local: Option<&Scope<'_>>,
) -> Option<Value<'a>> {
    let seconds = seconds.saturating_add(int_at(args, 1).unwrap_or(0));
    let zone = local.map_or(Zone::utc(), |scope| scope.world.local_time());
    let moment = Moment {
        seconds,
        nanoseconds,
    };
    written(|out| {
        zone.write_precise(out, moment, str_at(args, 0));
        Some(())
    })
    .map(Value::Str)
}

/// The offset has the unit of the number. As in HAProxy, the fraction is written without leading
/// zeros.
fn http_date<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let per_second = int_at(args, 1).unwrap_or(1);
    let number = int_of(&value)?.wrapping_add(int_at(args, 0).unwrap_or(0));
    let seconds = (number / per_second) & SECONDS_MASK;
    written(|out| {
        Zone::utc().write(out, seconds, "%a, %d %b %Y %H:%M:%S");
        if per_second > 1 {
            out.push(b'.');
            push_int(out, number % per_second);
        }
        out.extend_from_slice(b" GMT");
        Some(())
    })
    .map(Value::Str)
}

/// The format of an HTTP date (RFC 9110 §5.6.7).
fn form_of(text: &[u8]) -> &'static str {
    let is_dash = |byte: &u8| *byte == b'-';
    match text
        .iter()
        .rposition(is_dash)
        .map(|dash| text.get(dash + 3))
    {
        Some(Some(b' ')) => "%A, %d-%b-%y %H:%M:%S GMT",
        // Four-digit years occur in this format too.
        Some(_) => "%A, %d-%b-%Y %H:%M:%S GMT",
        None if text.get(3) == Some(&b',') => "%a, %d %b %Y %H:%M:%S GMT",
        None => "%a %b %e %H:%M:%S %Y",
    }
}

fn seconds_of(form: &str, text: &[u8]) -> Option<i64> {
    let mut date = strtime::parse(form, text).ok()?;
    // The day of the week is not checked.
    date.set_weekday(None);
    let moment = Offset::UTC.to_timestamp(date.to_datetime().ok()?).ok()?;
    Some(moment.as_second())
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn dates_as_texts() {
        for (expr, wanted) in [
            ("int(1795179662),utime('%Y-%m-%d')", "2026-11-20"),
            ("int(0),utime('%H:%M',3600)", "01:00"),
            ("int(1795179662123),ms_utime('%S.%3N')", "02.123"),
            (
                "int(1795179662123456),us_utime('%S.%6N %N')",
                "02.123456 123456000",
            ),
            ("int(1795179662123),ms_utime('%H:%M:%S',3600)", "14:01:02"),
            ("int(-1),utime('%Y')", "9999"),
            ("int(-1),ms_utime('%S.%3N')", "59.999"),
            ("int(-86400000),ms_utime('%F')", "1969-12-31"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    /// The three formats in RFC 9110 §5.6.7 of the same time.
    #[test]
    fn dates_of_http() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(
                convert_text(&format!("str('{text}'),date")),
                "784111777",
                "{text}"
            );
        }
        for (expr, wanted) in [
            ("str('Thu, 01 Jan 1970 00:00:00 GMT'),date", "0"),
            ("str('Thu, 29 Feb 2024 23:59:60 GMT'),date", "1709251199"),
            ("str('Wed, 31 Dec 1969 23:59:59 GMT'),date", "-1"),
            ("int(784111777),http_date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            (
                "int(784111777),http_date(60)",
                "Sun, 06 Nov 1994 08:50:37 GMT",
            ),
            (
                "int(784111777012),http_date(0,ms)",
                "Sun, 06 Nov 1994 08:49:37.12 GMT",
            ),
            (
                "int(784111777000012),http_date(0,us)",
                "Sun, 06 Nov 1994 08:49:37.12 GMT",
            ),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        for text in [
            "",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "sun, 06 nov 1994 08:49:37 gmt",
        ] {
            none(&format!("str('{text}'),date"));
        }
    }
}
