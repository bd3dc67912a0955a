//! Times, sizes, numbers and user names (manual §2.5, §2.6).

use crate::model::Proto;
use std::time::Duration;
use syntax::octets::{Readable, first_character};

/// The largest time: HAProxy stores it in 31 bits of its unit.
const MAX_UNITS: u64 = i32::MAX as u64;

/// Why a text is not a time or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It is empty, or this character is not valid there.
    Character(char),
    /// It exceeds the range of the unit.
    Overflow,
    /// It is not zero, but less than one unit.
    Underflow,
}

/// Units of time with their microseconds. Of units with the same beginning, the longer one comes
/// first.
const UNITS: [(&str, u64); 6] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Parses a time with an optional unit (`us ms s m h d`), `ms` by default, to whole milliseconds.
/// Characters after the unit are ignored: see [`after_time`].
pub fn time(text: &str) -> Result<Duration, Bad> {
    time_in(text, "ms", 1000)
}

/// Parses a time, by default in seconds, to whole seconds, rounded up.
pub fn seconds(text: &str) -> Result<u32, Bad> {
    let time = match time_in(text, "s", 1_000_000) {
        Err(Bad::Underflow) => time_in(text, "s", 1000).map(|_| Duration::from_secs(1))?,
        time => time?,
    };
    u32::try_from(time.as_secs()).map_err(|_| Bad::Overflow)
}

/// Like [`time`], but nothing may follow the unit.
pub fn whole_time(text: &str) -> Result<Duration, Bad> {
    match after_time(text) {
        Some(extra) => Err(Bad::Character(extra)),
        None => time(text),
    }
}

/// Parses a time whose default unit is `default`; it is zero or at least `resolution_us`.
pub fn time_in(text: &str, default: &str, resolution_us: u64) -> Result<Duration, Bad> {
    let (value, rest) = number_and_rest(text)?;
    let unit = if rest.is_empty() { default } else { rest };
    let known = UNITS.iter().find(|(name, _)| unit.starts_with(name));
    let Some((_, unit_us)) = known else {
        return Err(Bad::Character(rest.chars().next().unwrap_or(' ')));
    };
    let us = value.checked_mul(*unit_us).ok_or(Bad::Overflow)?;
    match us {
        _ if us / resolution_us > MAX_UNITS => Err(Bad::Overflow),
        1.. if us < resolution_us => Err(Bad::Underflow),
        _ => Ok(Duration::from_micros(
            us.div_ceil(resolution_us) * resolution_us,
        )),
    }
}

/// The character after the unit of a time, such as `2` in `1d2h`. HAProxy reads this as one day and
/// warns.
pub fn after_time(text: &str) -> Option<char> {
    let (_, rest) = number_and_rest(text).ok()?;
    let unit = UNITS.iter().find(|(name, _)| rest.starts_with(name));
    unit.and_then(|(name, _)| rest[name.len()..].chars().next())
}

/// Whether a time without a unit is so small that it may be meant in seconds instead of
/// milliseconds.
pub fn is_suspicious_time(text: &str) -> bool {
    matches!(number_and_rest(text), Ok((1..100, "")))
}

/// A permanent name of an object (`guid`), in the characters that HAProxy accepts.
///
/// # Errors
/// It is too long or has an invalid character.
pub fn guid(cursor: &mut super::line::Cursor<'_>) -> super::line::Parse<String> {
    /// Its maximum length.
    const BYTES_MAX: usize = 127;
    let name = cursor.last();
    let guid = cursor.value("a name")?;
    let text = cursor.line.bytes(cursor.at - 1);
    if text.len() > BYTES_MAX {
        return Err(cursor.fault(format!("'{name}' : UID too big")));
    }
    match bad_name_character(text) {
        Some(bad) => Err(cursor.fault(format!("'{name}' : invalid character '{bad}'"))),
        None => Ok(guid.to_owned()),
    }
}

/// Parses a size in bytes with an optional unit (`k m g`).
pub fn size(text: &str) -> Result<usize, Bad> {
    let (value, unit) = number_and_rest(text)?;
    let shift = match unit {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return Err(Bad::Character(unit.chars().next().unwrap_or(' '))),
    };
    let bytes = value.checked_mul(1 << shift).ok_or(Bad::Overflow)?;
    if bytes > u64::from(u32::MAX) {
        Err(Bad::Overflow)
    } else {
        usize::try_from(bytes).map_err(|_| Bad::Overflow)
    }
}

fn number_and_rest(text: &str) -> Result<(u64, &str), Bad> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(Bad::Character(text.chars().next().unwrap_or(' ')));
    }
    let value = text[..digits].parse().map_err(|_| Bad::Overflow)?;
    Ok((value, &text[digits..]))
}

/// The message for a bad time, as the argument of `name`.
pub fn time_message(bad: Bad, text: &str, name: &str) -> String {
    match bad {
        Bad::Character(c) => format!("unexpected character '{c}' in '{name}'."),
        Bad::Overflow => {
            format!(
                "timer overflow in argument '{text}' to '{name}' (maximum value is 2147483647 ms or ~24.8 days)."
            )
        }
        Bad::Underflow => format!(
            "timer underflow in argument '{text}' to '{name}' (minimum non-null value is 1 ms)."
        ),
    }
}

/// The message for a bad size.
pub fn size_message(bad: Bad, text: &str, name: &str) -> String {
    match bad {
        Bad::Character(c) => format!("unexpected '{c}' after size passed to '{name}'."),
        Bad::Overflow | Bad::Underflow => {
            format!("size overflow in argument '{text}' to '{name}'.")
        }
    }
}

/// `proto`: the protocol that is used without negotiation. None: `quic`, which the address says already.
///
/// # Errors
/// It is unknown, or not implemented.
pub fn proto(cursor: &mut super::line::Cursor<'_>) -> super::line::Parse<Option<Proto>> {
    match cursor.value("a protocol")? {
        "none" => Ok(Some(Proto::Tcp)),
        "h1" => Ok(Some(Proto::H1)),
        "h2" => Ok(Some(Proto::H2)),
        "quic" => Ok(None),
        word @ ("fcgi" | "spop") => Err(cursor.fault(super::not_yet(&format!("proto {word}")))),
        word => Err(cursor.fault(format!("'proto' : unknown MUX protocol '{word}'."))),
    }
}

/// Most bytes that are read of the system's files of users and groups.
const USERS_BYTES_MAX: u64 = 64 << 20;

/// The id of a user in the system's user file.
pub fn user_id(name: &str) -> Option<u32> {
    id_in(&users("/etc/passwd")?, name)
}

/// The id of a group in the system's group file.
pub fn group_id(name: &str) -> Option<u32> {
    id_in(&users("/etc/group")?, name)
}

/// The text of a file of users or groups.
fn users(path: &str) -> Option<String> {
    let text = files::read(path, USERS_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The third field of the line whose first field is `name`; both files have the id there.
fn id_in(file: &str, name: &str) -> Option<u32> {
    let line = file
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}

/// The first character that is invalid in the name of a proxy, server or variable.
pub fn bad_name_character(name: &[u8]) -> Option<Readable<'_>> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:.-".contains(byte);
    let at = name.iter().position(|byte| !allowed(byte))?;
    Some(first_character(&name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let cases = [
            ("0", Ok(0)),
            ("5", Ok(5)),
            ("5s", Ok(5_000)),
            ("2m", Ok(120_000)),
            ("1h", Ok(3_600_000)),
            ("1d", Ok(86_400_000)),
            ("1500us", Ok(2)),
            ("100us", Err(Bad::Underflow)),
            ("25d", Err(Bad::Overflow)),
            ("99999999999999999999", Err(Bad::Overflow)),
            ("5x", Err(Bad::Character('x'))),
            ("5 s", Err(Bad::Character(' '))),
            ("1d2h", Ok(86_400_000)),
            ("2msec", Ok(2)),
            ("s", Err(Bad::Character('s'))),
            ("", Err(Bad::Character(' '))),
            ("-1", Err(Bad::Character('-'))),
        ];
        for (text, expected) in cases {
            assert_eq!(time(text), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn what_follows_a_time_is_found() {
        for (text, extra) in [
            ("1d2h", Some('2')),
            ("5sec", Some('e')),
            ("5s", None),
            ("5", None),
            ("5x", None),
            ("x", None),
        ] {
            assert_eq!(after_time(text), extra, "{text}");
            let refused = extra.or((text.ends_with('x')).then_some('x'));
            assert_eq!(
                whole_time(text).err(),
                refused.map(Bad::Character),
                "{text}"
            );
        }
        let suspicious = ["1", "99", "0", "100", "5s", "x"].map(is_suspicious_time);
        assert_eq!(suspicious, [true, true, false, false, false, false]);
    }

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("16384", Ok(16384)),
            ("16k", Ok(16384)),
            ("1m", Ok(1 << 20)),
            ("4g", Err(Bad::Overflow)),
            ("1t", Err(Bad::Character('t'))),
        ];
        for (text, expected) in cases {
            assert_eq!(size(text), expected, "{text}");
        }
    }

    #[test]
    fn ids_come_from_the_third_field() {
        let file = "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:101:102::/:/bin/false\nbad:x\n";
        assert_eq!(id_in(file, "haproxy"), Some(101));
        assert_eq!(id_in(file, "root"), Some(0));
        assert_eq!(id_in(file, "bad"), None);
        assert_eq!(id_in(file, "hap"), None);
    }
}
