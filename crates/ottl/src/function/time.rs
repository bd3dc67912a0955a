//! Times and durations.

use super::layout::{Format, Moment};
use super::text::utf8;
use super::{Function, eval, outside, prepare, prepared};
use crate::eval::Failure;
use crate::value::Value;
use crate::zone::Zone;

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
pub const SECOND: i64 = 1_000_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

pub const FUNCTIONS: &[Function] = &[
    eval("Duration", &["duration"], |args| {
        let duration = duration_ns(utf8(&args[0])?);
        duration.map(Value::Duration).ok_or(Failure::Syntax)
    }),
    eval("Hours", &["value"], |args| parts(&args[0], HOUR)),
    eval("Minutes", &["value"], |args| parts(&args[0], MINUTE)),
    eval("Seconds", &["value"], |args| parts(&args[0], SECOND)),
    eval("Milliseconds", &["value"], |args| whole(&args[0], MILLI)),
    eval("Microseconds", &["value"], |args| whole(&args[0], MICRO)),
    eval("Nanoseconds", &["value"], |args| whole(&args[0], 1)),
    eval("Unix", &["seconds", "?nanoseconds"], |args| {
        unix(&args[0], &args[1])
    }),
    eval("UnixMicro", &["value"], |args| {
        time(&args[0]).map(|ns| Value::Int(ns.div_euclid(MICRO)))
    }),
    eval("UnixMilli", &["value"], |args| {
        time(&args[0]).map(|ns| Value::Int(ns.div_euclid(MILLI)))
    }),
    eval("UnixNano", &["value"], |args| {
        time(&args[0]).map(Value::Int)
    }),
    eval("UnixSeconds", &["value"], |args| {
        time(&args[0]).map(|ns| Value::Int(ns.div_euclid(SECOND)))
    }),
    eval("Year", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(date(ns).0))
    }),
    eval("Month", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(date(ns).1))
    }),
    eval("Day", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(date(ns).2))
    }),
    // 1970 began on a Thursday, which is day 4 of a week.
    eval("Weekday", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int((ns.div_euclid(DAY) + 4).rem_euclid(7)))
    }),
    eval("Hour", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(ns.rem_euclid(DAY) / HOUR))
    }),
    eval("Minute", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(ns.rem_euclid(HOUR) / MINUTE))
    }),
    eval("Second", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(ns.rem_euclid(MINUTE) / SECOND))
    }),
    eval("Nanosecond", &["value"], |args| {
        wall(&args[0]).map(|ns| Value::Int(ns.rem_euclid(SECOND)))
    }),
    outside("Now", |outside| outside.now().map(Value::Time)),
    prepare("FormatTime", &["time", "format"], |written| {
        let format = Format::new("FormatTime", written.text(1)?.unwrap_or_default())?;
        prepared(move |args, _| {
            let zone = match &args[0] {
                Value::Zoned(_, zone) => Some(zone),
                _ => None,
            };
            let moment = Moment {
                ns: time(&args[0])?,
                wall_ns: wall(&args[0])?,
                zone,
            };
            Ok(Value::text(format.print(&moment)))
        })
    }),
    prepare(
        "Time",
        &["time", "format", "?location", "?locale"],
        |written| {
            let text = written.text(1)?.unwrap_or_default();
            let format = Format::new("Time", text)?;
            let zone = zone(written.text(2)?.unwrap_or_default(), text)?;
            let locale = written.text(3)?.unwrap_or_default();
            if !matches!(locale.split(['-', '_']).next(), Some("" | "en")) {
                return Err(format!(
                    "Time reads names in English: the locale {locale} is not supported"
                ));
            }
            prepared(move |args, outside| {
                format.read(utf8(&args[0])?, zone.as_ref(), || outside.now())
            })
        },
    ),
    eval("TruncateTime", &["time", "duration"], |args| {
        truncated(&args[0], &args[1])
    }),
];

/// Default zone of a time without one: the `location` argument, else UTC if the format ends in `Z`,
/// else the zone of the process.
fn zone(location: &str, format: &str) -> Result<Option<Zone>, String> {
    if !location.is_empty() {
        let zone = Zone::named(location);
        return zone.ok_or_else(|| format!("Time: there is no time zone {location}"));
    }
    if format.ends_with('Z') && !format.ends_with("%Z") {
        return Ok(None);
    }
    Ok(Zone::system())
}

fn time(value: &Value<'_>) -> Result<i64, Failure> {
    match value {
        Value::Time(ns) | Value::Zoned(ns, _) => Ok(*ns),
        _ => Err(Failure::Type),
    }
}

/// Local date and time at an instant, as nanoseconds computed as if the zone were UTC.
fn wall(value: &Value<'_>) -> Result<i64, Failure> {
    match value {
        Value::Zoned(ns, zone) => {
            let wall = ns.checked_add(i64::from(zone.offset_s(*ns)) * SECOND);
            wall.ok_or(Failure::Math)
        }
        value => time(value),
    }
}

/// Another time in the zone of a value.
fn in_zone<'a>(ns: i64, value: &Value<'_>) -> Value<'a> {
    match value {
        Value::Zoned(_, zone) => Value::Zoned(ns, zone.clone()),
        _ => Value::Time(ns),
    }
}

fn duration(value: &Value<'_>) -> Result<i64, Failure> {
    match value {
        Value::Duration(ns) => Ok(*ns),
        _ => Err(Failure::Type),
    }
}

fn parts<'a>(value: &Value<'_>, unit: i64) -> Result<Value<'a>, Failure> {
    let ns = duration(value)?;
    // Whole units first, so that a long duration loses no precision.
    Ok(Value::Float(
        (ns / unit) as f64 + (ns % unit) as f64 / unit as f64,
    ))
}

fn whole<'a>(value: &Value<'_>, unit: i64) -> Result<Value<'a>, Failure> {
    duration(value).map(|ns| Value::Int(ns / unit))
}

fn unix<'a>(seconds: &Value<'_>, nanoseconds: &Value<'_>) -> Result<Value<'a>, Failure> {
    let (Value::Int(seconds), Value::Int(more)) = (
        seconds,
        match nanoseconds {
            Value::Nil => &Value::Int(0),
            more => more,
        },
    ) else {
        return Err(Failure::Type);
    };
    let ns = seconds
        .checked_mul(SECOND)
        .and_then(|ns| ns.checked_add(*more));
    ns.map(Value::Time).ok_or(Failure::Math)
}

/// The nearest time before it that is a multiple of a duration since the year 1, as Go reckons.
fn truncated<'a>(value: &Value<'a>, unit: &Value<'_>) -> Result<Value<'a>, Failure> {
    /// Seconds from the year 1 to 1970.
    const BEFORE_1970_S: i128 = 62_135_596_800;
    let (ns, unit) = (time(value)?, duration(unit)?);
    if unit <= 0 {
        return Ok(value.clone());
    }
    let since = i128::from(ns) + BEFORE_1970_S * i128::from(SECOND);
    let over = since.rem_euclid(i128::from(unit)) as i64;
    let ns = ns.checked_sub(over).ok_or(Failure::Math)?;
    Ok(in_zone(ns, value))
}

/// Year, month and day of a time (the proleptic Gregorian calendar, reckoned from 1 March in eras
/// of 400 years).
pub fn date(ns: i64) -> (i64, i64, i64) {
    let days = ns.div_euclid(DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A duration as Go writes it: numbers with units, such as `1h30m` or `-1.5s`.
fn duration_ns(text: &str) -> Option<i64> {
    const UNITS: &[(&str, f64)] = &[
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit() || c == '.');
        let unit_end = unit_end.map_or(rest.len(), |len| end + len);
        let (_, unit) = UNITS
            .iter()
            .find(|(unit, _)| *unit == &rest[end..unit_end])?;
        sum += number * unit;
        rest = &rest[unit_end..];
    }
    (sum < i64::MAX as f64).then_some(if negative { -(sum as i64) } else { sum as i64 })
}
