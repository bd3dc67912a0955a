//! Dates: seconds as texts in the form of `strftime`, and the dates of HTTP (RFC 9110 §5.6.7) both ways.

use super::strftime::{Moment, format};
use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::{Date, MONTHS, WEEKDAYS, push_int, push_padded};
use crate::{Bytes, Kind, Scope, Value};

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
            let forms: [fn(&mut Reader<'_>) -> Option<i64>; 3] =
                [imf_fixdate, rfc850_date, asctime_date];
            let seconds = forms
                .iter()
                .find_map(|form| form(&mut Reader { rest: &text }));
            seconds.map(Value::Int)
        },
    ),
];

/// HAProxy keeps dates positive so.
const SECONDS_MASK: i64 = 0x007f_ffff_ffff_ffff;

fn int_of(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

/// Of whole seconds, with the offset argument added. In local time with a scope.
fn whole<'a>(args: &[Arg], value: Value<'a>, local: Option<&Scope<'_>>) -> Option<Value<'a>> {
    let seconds = int_of(&value)? & SECONDS_MASK;
    dated(args, str_at(args, 0), seconds, local)
}

/// Of smaller units: `%N` in the format is the fraction. The offset argument is in seconds all the same, as in HAProxy.
fn divided<'a>(
    args: &[Arg],
    value: Value<'a>,
    local: Option<&Scope<'_>>,
    per_second: i64,
) -> Option<Value<'a>> {
    let number = int_of(&value)?;
    let nanoseconds = number % per_second * (1_000_000_000 / per_second);
    let written = str_at(args, 0);
    if !written.contains(&b'N') {
        return dated(args, written, number / per_second, local);
    }
    let mut format = Bytes::buffer();
    push_fractions(format.as_vec(), written, nanoseconds as u64);
    dated(args, &format, number / per_second, local)
}

fn dated<'a>(
    args: &[Arg],
    form: &[u8],
    seconds: i64,
    local: Option<&Scope<'_>>,
) -> Option<Value<'a>> {
    let seconds = seconds.saturating_add(int_at(args, 1).unwrap_or(0));
    let moment = match local {
        Some(scope) => Moment::local(seconds, scope.world.utc_offset_seconds()),
        None => Moment::utc(seconds),
    };
    written(|out| {
        format(out, form, &moment);
        Some(())
    })
    .map(Value::Str)
}

/// The format with each `%N`, or `%3N`, replaced by so many digits of the fraction.
fn push_fractions(out: &mut Vec<u8>, mut format: &[u8], nanoseconds: u64) {
    while let Some(percent) = memchr::memchr(b'%', format) {
        out.extend_from_slice(&format[..percent]);
        let rest = &format[percent + 1..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if rest.get(digits) != Some(&b'N') {
            out.push(b'%');
            format = rest;
            continue;
        }
        let width = match digits {
            0 => 9,
            _ => usize::try_from(crate::text::read_int(&rest[..digits]).0)
                .map_or(9, |width| width.min(9)),
        };
        // A negative fraction is a large number, of which these are the first digits.
        let start = out.len();
        match nanoseconds {
            0..1_000_000_000 => push_padded(out, nanoseconds, 9),
            _ => crate::text::push_uint(out, nanoseconds),
        }
        out.truncate(start + width);
        format = &rest[digits + 1..];
    }
    out.extend_from_slice(format);
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The offset has the unit of the number. A fraction is written without leading zeros, as HAProxy does.
fn http_date<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let per_second = int_at(args, 1).unwrap_or(1);
    let number = int_of(&value)?.wrapping_add(int_at(args, 0).unwrap_or(0));
    let date = Date::from_unix((number / per_second) & SECONDS_MASK);
    written(|out| {
        out.extend_from_slice(DAYS[date.weekday as usize].as_bytes());
        out.extend_from_slice(b", ");
        push_padded(out, date.day.into(), 2);
        out.push(b' ');
        out.extend_from_slice(MONTHS[date.month as usize - 1].as_bytes());
        out.push(b' ');
        if date.year < 10_000 {
            push_padded(out, date.year as u64, 4);
        } else {
            push_int(out, date.year);
        }
        for (before, part) in [(b' ', date.hour), (b':', date.minute), (b':', date.second)] {
            out.push(before);
            push_padded(out, part.into(), 2);
        }
        if per_second > 1 {
            out.push(b'.');
            push_int(out, number % per_second);
        }
        out.extend_from_slice(b" GMT");
        Some(())
    })
    .map(Value::Str)
}

/// What is left of a date to read.
struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    fn expect(&mut self, text: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// So many decimal digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits.iter().try_fold(0, |sum, digit| {
            Some(sum * 10 + i64::from(char::from(*digit).to_digit(10)?))
        })
    }

    /// The place of the name that comes next.
    fn name(&mut self, names: &[&str]) -> Option<usize> {
        let place = names
            .iter()
            .position(|name| self.rest.starts_with(name.as_bytes()))?;
        self.rest = &self.rest[names[place].len()..];
        Some(place)
    }

    fn month(&mut self) -> Option<i64> {
        self.name(&MONTHS).map(|place| place as i64)
    }

    /// `hh:mm:ss` in seconds. Its numbers are not checked, as HAProxy does not.
    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.expect(b":")?;
        let minute = self.digits(2)?;
        self.expect(b":")?;
        Some(hour * 3_600 + minute * 60 + self.digits(2)?)
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(reader: &mut Reader<'_>) -> Option<i64> {
    reader.name(&DAYS)?;
    reader.expect(b", ")?;
    let day = reader.digits(2)?;
    reader.expect(b" ")?;
    let month = reader.month()?;
    reader.expect(b" ")?;
    let year = reader.digits(4)?;
    reader.expect(b" ")?;
    let time = reader.time()?;
    reader.expect(b" GMT")?;
    Some(seconds_of(year, month, day) + time)
}

/// Two digits above it are a year of the last century.
const PIVOT_YEAR: i64 = 60;

/// `Sunday, 06-Nov-94 08:49:37 GMT`; the year may have four digits.
fn rfc850_date(reader: &mut Reader<'_>) -> Option<i64> {
    reader.name(&WEEKDAYS)?;
    reader.expect(b", ")?;
    let day = reader.digits(2)?;
    reader.expect(b"-")?;
    let month = reader.month()?;
    reader.expect(b"-")?;
    let year = match reader.digits(2)? {
        century if !reader.rest.starts_with(b" ") => century * 100 + reader.digits(2)?,
        year @ ..=PIVOT_YEAR => 2000 + year,
        year => 1900 + year,
    };
    reader.expect(b" ")?;
    let time = reader.time()?;
    reader.expect(b" GMT")?;
    Some(seconds_of(year, month, day) + time)
}

/// `Sun Nov  6 08:49:37 1994`.
fn asctime_date(reader: &mut Reader<'_>) -> Option<i64> {
    reader.name(&DAYS)?;
    reader.expect(b" ")?;
    let month = reader.month()?;
    reader.expect(b" ")?;
    let day = match reader.expect(b" ") {
        Some(()) => reader.digits(1)?,
        None => reader.digits(2)?,
    };
    reader.expect(b" ")?;
    let time = reader.time()?;
    reader.expect(b" ")?;
    Some(seconds_of(reader.digits(4)?, month, day) + time)
}

/// Seconds at the beginning of a day of the Gregorian calendar; months from 0. A day that the month does not have counts on.
fn seconds_of(year: i64, month: i64, day: i64) -> i64 {
    // From 1 March on, so that the leap day is the last of its year.
    let (year, from_march) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leap_days + (from_march * 153 + 2) / 5 + day - 1;
    (days - 719_468) * 86_400
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
            ("int(1795179662),utime('%3N')", "%3N"),
            ("int(-1),utime('%Y')", "1141709097"),
            ("int(-1),ms_utime('%Y')", "1970"),
            ("int(-86400000),ms_utime('%F')", "1969-12-31"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    /// RFC 9110 §5.6.7 has the three forms of the same moment.
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
            ("str('Thu, 29 Feb 2024 23:59:60 GMT'),date", "1709251200"),
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
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "sun, 06 nov 1994 08:49:37 gmt",
        ] {
            none(&format!("str('{text}'),date"));
        }
    }
}
