//! `strftime` of the GNU C library in the C locale, its flags and widths included.

use crate::SAMPLE_BYTES_MAX;
use crate::text::{Date, MONTHS, WEEKDAYS, push_int};

/// A moment in a zone.
pub(super) struct Moment {
    date: Date,
    /// Since the epoch.
    seconds: i64,
    zone_seconds: i32,
    zone: &'static str,
}

/// The moments of which the year fits.
const SECONDS_MAX: i64 = 67_767_976_233_532_799;

impl Moment {
    pub(super) fn utc(seconds: i64) -> Moment {
        Moment::at(seconds, 0, "GMT")
    }

    /// The zone has a name only where it is UTC.
    pub(super) fn local(seconds: i64, zone_seconds: i32) -> Moment {
        let zone = if zone_seconds == 0 { "UTC" } else { "" };
        Moment::at(seconds, zone_seconds, zone)
    }

    fn at(seconds: i64, zone_seconds: i32, zone: &'static str) -> Moment {
        let seconds = seconds.clamp(-SECONDS_MAX, SECONDS_MAX);
        Moment {
            date: Date::from_unix(seconds + i64::from(zone_seconds)),
            seconds,
            zone_seconds,
            zone,
        }
    }
}

/// Appends a moment in a form. Nothing at all is appended where that would be too long.
pub(super) fn format(out: &mut Vec<u8>, form: &[u8], moment: &Moment) {
    let start = out.len();
    if pieces(out, form, moment).is_none() {
        out.truncate(start);
    }
}

/// Flags and width between `%` and the letter.
#[derive(Clone, Copy, Default)]
struct Options {
    /// `0`, `_` or `-`.
    pad: Option<u8>,
    upper: bool,
    swap_case: bool,
    width: usize,
}

fn pieces(out: &mut Vec<u8>, form: &[u8], moment: &Moment) -> Option<()> {
    let mut rest = form;
    while let Some(percent) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..percent]);
        let spec = &rest[percent..];
        let mut options = Options::default();
        let mut at = 1;
        while let Some(&flag) = spec.get(at).filter(|byte| b"_-0^#".contains(byte)) {
            match flag {
                b'^' => options.upper = true,
                b'#' => options.swap_case = true,
                pad => options.pad = Some(pad),
            }
            at += 1;
        }
        while let Some(digit) = spec.get(at).filter(|byte| byte.is_ascii_digit()) {
            let digit = usize::from(digit - b'0');
            options.width = options.width.saturating_mul(10).saturating_add(digit);
            at += 1;
        }
        at += usize::from(matches!(spec.get(at), Some(b'E' | b'O')));
        let before = out.len();
        let known = spec
            .get(at)
            .is_some_and(|letter| piece(out, *letter, options, moment));
        at = spec.len().min(at + 1);
        if !known {
            out.extend_from_slice(&spec[..at]);
        }
        widen(out, before, options)?;
        rest = &spec[at..];
        if out.len() > SAMPLE_BYTES_MAX {
            return None;
        }
    }
    out.extend_from_slice(rest);
    Some(())
}

/// Fills what was appended since `before` up to the width; none where that is too much.
fn widen(out: &mut Vec<u8>, before: usize, options: Options) -> Option<()> {
    let missing = options.width.saturating_sub(out.len() - before);
    if missing > SAMPLE_BYTES_MAX {
        return None;
    }
    let filler = if options.pad == Some(b'0') {
        b'0'
    } else {
        b' '
    };
    out.splice(before..before, std::iter::repeat_n(filler, missing));
    Some(())
}

/// Appends what a letter stands for; whether it stands for something.
fn piece(out: &mut Vec<u8>, letter: u8, options: Options, moment: &Moment) -> bool {
    let date = &moment.date;
    if options.width > SAMPLE_BYTES_MAX {
        return true;
    }
    if let Some((digits, pad, number)) = numeric(letter, moment) {
        push_number(out, number, digits, options, pad);
        return true;
    }
    let start = out.len();
    if let Some((_, form)) = COMPOSED.iter().find(|(name, _)| *name == letter) {
        // Composed ones stand for simple ones: this ends.
        if pieces(out, form, moment).is_none() {
            return false;
        }
        if options.upper {
            out[start..].make_ascii_uppercase();
        }
        return true;
    }
    let text = match letter {
        b'a' => &WEEKDAYS[date.weekday as usize][..3],
        b'A' => WEEKDAYS[date.weekday as usize],
        b'b' | b'h' => MONTHS[date.month as usize - 1],
        b'B' => LONG_MONTHS[date.month as usize - 1],
        b'p' | b'P' if date.hour < 12 => "AM",
        b'p' | b'P' => "PM",
        b'Z' => moment.zone,
        b'z' => {
            out.push(if moment.zone_seconds < 0 { b'-' } else { b'+' });
            if widen(out, start, options).is_none() {
                return true;
            }
            let minutes = i64::from(moment.zone_seconds.unsigned_abs() / 60);
            push_number(out, minutes / 60 * 100 + minutes % 60, 4, options, b'0');
            return true;
        }
        b'n' => "\n",
        b't' => "\t",
        b'%' => "%",
        _ => return false,
    };
    out.extend_from_slice(text.as_bytes());
    let text = &mut out[start..];
    match letter {
        b'P' => text.make_ascii_lowercase(),
        b'p' | b'Z' if options.swap_case => text.make_ascii_lowercase(),
        _ if options.upper || options.swap_case => text.make_ascii_uppercase(),
        _ => {}
    }
    true
}

/// Letters that stand for a number: its least digits, how it is filled up, and it.
fn numeric(letter: u8, moment: &Moment) -> Option<(usize, u8, i64)> {
    let date = &moment.date;
    let hour12 = match date.hour % 12 {
        0 => 12,
        hour => hour,
    };
    let (digits, pad, number) = match letter {
        b'd' => (2, b'0', date.day),
        b'e' => (2, b'_', date.day),
        b'H' => (2, b'0', date.hour),
        b'k' => (2, b'_', date.hour),
        b'I' => (2, b'0', hour12),
        b'l' => (2, b'_', hour12),
        b'j' => (3, b'0', date.yearday + 1),
        b'M' => (2, b'0', date.minute),
        b'm' => (2, b'0', date.month),
        b'S' => (2, b'0', date.second),
        b'U' => (2, b'0', (date.yearday + 7 - date.weekday) / 7),
        b'u' => (1, b'0', (date.weekday + 6) % 7 + 1),
        b'V' => (2, b'0', iso_week(date).1),
        b'W' => (2, b'0', (date.yearday + 7 - (date.weekday + 6) % 7) / 7),
        b'w' => (1, b'0', date.weekday),
        b'C' => return Some((1, b'0', date.year.div_euclid(100))),
        b'G' => return Some((1, b'0', iso_week(date).0)),
        b'g' => return Some((2, b'0', iso_week(date).0.rem_euclid(100))),
        b's' => return Some((1, b'0', moment.seconds)),
        b'Y' => return Some((1, b'0', date.year)),
        b'y' => return Some((2, b'0', date.year.rem_euclid(100))),
        _ => return None,
    };
    Some((digits, pad, number.into()))
}

/// A number with at least so many digits, or as many as the width says; a `-` flag leaves out what fills it up.
fn push_number(out: &mut Vec<u8>, number: i64, digits: usize, options: Options, pad: u8) {
    let start = out.len();
    push_int(out, number);
    let missing = digits.max(options.width).saturating_sub(out.len() - start);
    let (at, filler) = match options.pad.unwrap_or(pad) {
        b'-' => return,
        b'_' => (start, b' '),
        _ => (start + usize::from(number < 0), b'0'),
    };
    out.splice(at..at, std::iter::repeat_n(filler, missing));
}

/// Year and week of ISO 8601: the first week has the year's first Thursday.
fn iso_week(date: &Date) -> (i64, u32) {
    let yearday = i64::from(date.yearday);
    // The week's Thursday decides.
    let thursday = yearday + 3 - i64::from((date.weekday + 6) % 7);
    let days_in =
        |year: i64| 365 + i64::from((year % 4 == 0 && year % 100 != 0) || year % 400 == 0);
    if thursday < 0 {
        let year = date.year - 1;
        return (year, ((thursday + days_in(year)) / 7 + 1) as u32);
    }
    if thursday >= days_in(date.year) {
        return (date.year + 1, 1);
    }
    (date.year, (thursday / 7 + 1) as u32)
}

const LONG_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Letters that stand for others (C locale).
const COMPOSED: &[(u8, &[u8])] = &[
    (b'c', b"%a %b %e %H:%M:%S %Y"),
    (b'D', b"%m/%d/%y"),
    (b'F', b"%Y-%m-%d"),
    (b'r', b"%I:%M:%S %p"),
    (b'R', b"%H:%M"),
    (b'T', b"%H:%M:%S"),
    (b'x', b"%m/%d/%y"),
    (b'X', b"%H:%M:%S"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: i64, form: &str) -> String {
        let mut out = Vec::new();
        format(&mut out, form.as_bytes(), &Moment::utc(seconds));
        String::from_utf8(out).expect("text")
    }

    /// As the GNU C library's `date -u` prints them.
    #[test]
    fn letters_flags_and_widths() {
        for (form, wanted) in [
            ("%Y-%m-%d %H:%M:%S", "2026-11-20 13:01:02"),
            (
                "%a %A %b %B %h %e %j %y %C",
                "Fri Friday Nov November Nov 20 324 26 20",
            ),
            (
                "%I %l %p %P %D %F %T %R %r",
                "01  1 PM pm 11/20/26 2026-11-20 13:01:02 13:01 01:01:02 PM",
            ),
            (
                "%U %W %V %G %g %u %w %z %Z %s",
                "46 46 47 2026 26 5 5 +0000 GMT 1795179662",
            ),
            (
                "%c|%x|%X|%n%t%%",
                "Fri Nov 20 13:01:02 2026|11/20/26|13:01:02|\n\t%",
            ),
            ("%-M %_M %0e %-I", "1  1 20 1"),
            ("%^a %#b %#p %^B", "FRI NOV pm NOVEMBER"),
            (
                "%5d|%05d|%10a|%-5M|%_5M",
                "00020|00020|       Fri|    1|    1",
            ),
            ("%10z|%-z|%_z|%5e", "         +0000000000|+0|+   0|   20"),
            ("%Ey %Od", "26 20"),
            ("%Q %E %5Q %", "%Q %E   %5Q %"),
        ] {
            assert_eq!(text(1_795_179_662, form), wanted, "{form}");
        }
    }

    #[test]
    fn weeks_of_iso_8601() {
        for (seconds, wanted) in [
            // 2021-01-03, 2021-01-04, 2024-12-30, 2020-12-31, 2016-01-01.
            (1_609_632_000, "2020 53"),
            (1_609_718_400, "2021 01"),
            (1_735_516_800, "2025 01"),
            (1_609_372_800, "2020 53"),
            (1_451_606_400, "2015 53"),
        ] {
            assert_eq!(text(seconds, "%G %V"), wanted, "{seconds}");
        }
    }

    #[test]
    fn too_wide_is_nothing() {
        assert_eq!(text(0, "a%99999999999999999999d"), "");
        assert_eq!(text(0, &"%9999d".repeat(3)), "");
        assert_eq!(text(i64::MAX, "%Y"), "2147483647");
        assert_eq!(text(i64::MIN, "%Y"), "-2147479708");
    }
}
