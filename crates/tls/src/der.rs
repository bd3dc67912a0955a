//! The parts of DER (X.690) in certificates that the library does not read.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const ENUMERATED: u8 = 0x0a;
/// The version of a certificate; 1 if absent (RFC 5280 §4.1).
pub(crate) const VERSION: u8 = 0xa0;
/// The extensions of a certificate.
pub(crate) const EXTENSIONS: u8 = 0xa3;

/// A constructed field with the number 0.
pub(crate) const FIELD_0: u8 = 0xa0;

/// One element: its tag, its content, and the bytes after it (X.690 §8.1). None if it is truncated
/// or not DER.
pub(crate) fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let count = usize::from(first & 0x7f);
            let (digits, rest) = rest.split_at_checked(count)?;
            let value = digits
                .iter()
                .fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (value, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

/// Writes an element: its tag, its length, its content.
pub(crate) fn push(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    match content.len() {
        short @ 0..=0x7f => out.push(short as u8),
        len => {
            let digits = len.to_be_bytes();
            let zeros = digits.iter().take_while(|digit| **digit == 0).count();
            out.push(0x80 | (digits.len() - zeros) as u8);
            out.extend_from_slice(&digits[zeros..]);
        }
    }
    out.extend_from_slice(content);
}

/// The content of the first element, which must have this tag, and the bytes after it.
pub(crate) fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// The first element including its tag and length, which must have this tag, and the bytes after
/// it.
pub(crate) fn whole(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (_, rest) = expect(bytes, tag)?;
    Some((&bytes[..bytes.len() - rest.len()], rest))
}

/// The first element, which must be a time (RFC 5280 §4.1.2.5), as seconds since 1970, and the
/// bytes after it.
pub(crate) fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (tag, text, rest) = element(bytes)?;
    let text = text.strip_suffix(b"Z")?;
    let (year, text) = match (tag, text.len()) {
        (UTC_TIME, 12) => match number(&text[..2])? {
            short @ 50.. => (1900 + short, &text[2..]),
            short => (2000 + short, &text[2..]),
        },
        (GENERALIZED_TIME, 14) => (number(&text[..4])?, &text[4..]),
        _ => return None,
    };
    let mut parts = [0; 5];
    for (part, digits) in parts.iter_mut().zip(text.chunks(2)) {
        *part = number(digits)?;
    }
    let [
        month @ 1..=12,
        day @ 1..=31,
        hour @ 0..=23,
        minute @ 0..=59,
        second @ 0..=59,
    ] = parts
    else {
        return None;
    };
    let days = days_before(year, month).checked_sub(days_before(1970, 1))? + day - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second, rest))
}

/// Writes a time, seconds after the UNIX epoch, in the form required for its year (RFC 5280
/// §4.1.2.5). The year must be before 10000.
pub(crate) fn push_time(out: &mut Vec<u8>, seconds: u64) {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + days_before(1970, 1);
    // A lower bound: 366 days are at least a year.
    let mut year = days / 366;
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while days_before(year, month) > days {
        month -= 1;
    }
    let day = days - days_before(year, month) + 1;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let behind = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    let (tag, text) = match year {
        1950..=2049 => (UTC_TIME, format!("{:02}{behind}", year % 100)),
        _ => (GENERALIZED_TIME, format!("{year:04}{behind}")),
    };
    push(out, tag, text.as_bytes());
}

fn number(digits: &[u8]) -> Option<u64> {
    let all = digits.iter().all(u8::is_ascii_digit);
    all.then(|| {
        digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
    })
}

/// Days from the year 0 to the beginning of a month, in the Gregorian calendar.
fn days_before(year: u64, month: u64) -> u64 {
    const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leaps = |years: u64| years / 4 - years / 100 + years / 400;
    let before = leaps(year.saturating_sub(1));
    let is_leap = leaps(year) > before;
    let of_months: u64 = DAYS[..month as usize - 1].iter().sum();
    let leap_day = u64::from(is_leap && month > 2);
    year * 365 + before + of_months + leap_day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        // The first and last seconds of days around leap days, years and the two forms.
        for day in (0..40_000_u64).step_by(61).chain([
            0, 789, 11_016, 11_017, 19_782, 29_219, 29_220, 47_540, 47_541,
        ]) {
            for seconds in [day * 86_400, day * 86_400 + 86_399] {
                let mut out = Vec::new();
                push_time(&mut out, seconds);
                assert_eq!(time(&out), Some((seconds, &b""[..])));
            }
        }
    }

    #[test]
    fn times() {
        let of = |tag: u8, text: &str| {
            let mut bytes = vec![tag, text.len() as u8];
            bytes.extend(text.bytes());
            time(&bytes).map(|(seconds, _)| seconds)
        };
        for (tag, text, seconds) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229000001Z", Some(951_782_401)),
            (UTC_TIME, "000301000000Z", Some(951_868_800)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", None),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "21000301000000Z", Some(4_107_542_400)),
            (GENERALIZED_TIME, "20501301000000Z", None),
            (GENERALIZED_TIME, "20500101000000", None),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "7001010000x0Z", None),
        ] {
            assert_eq!(of(tag, text), seconds, "{text}");
        }
    }
}
