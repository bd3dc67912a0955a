//! Version numbers of HAProxy and OpenSSL, in a form that can be compared.

/// Parses `1.2.10.1-dev3-abcdef-20`: its four numbers, the kind of release (1 `dev`, 2 `rc`/`pre`,
/// 3 final), its number and the number of commits. A missing part counts as zero. None if an
/// invalid character follows a number.
pub(super) fn haproxy(version: &str) -> Option<[u32; 7]> {
    let mut value = [0, 0, 0, 0, 3, 0, 0];
    let mut rest = version;
    if rest.is_empty() {
        return None;
    }
    for (index, part) in value[..4].iter_mut().enumerate() {
        let (number, after) = decimal(rest);
        *part = number as u32;
        match after.chars().next() {
            None => return Some(value),
            Some('.') if index < 3 => rest = &after[1..],
            Some('-') => {
                rest = &after[1..];
                break;
            }
            Some(_) => return None,
        }
    }
    if let Some((kind, after)) = release_kind(rest) {
        let (number, after) = decimal(after);
        value[4] = kind;
        value[5] = number as u32;
        match after.strip_prefix('-') {
            Some(commits) => rest = commits,
            None if after.is_empty() => return Some(value),
            None => return None,
        }
    }
    let commits = rest.rsplit('-').next().unwrap_or_default();
    if commits.is_empty() && rest.contains('-') {
        return None;
    }
    value[6] = match decimal(commits) {
        (number, "") => number as u32,
        _ => 0,
    };
    Some(value)
}

fn release_kind(text: &str) -> Option<(u32, &str)> {
    [("dev", 1), ("rc", 2), ("pre", 2)]
        .iter()
        .find_map(|(tag, kind)| Some((*kind, text.strip_prefix(tag)?)))
}

/// Parses `major.minor.fix`, then nothing, letters (`1.1.1w`) or `-beta1`/`-dev`. The result is a
/// number that grows with the version.
pub(super) fn openssl(version: &str) -> Option<u64> {
    let (major, rest) = decimal(version);
    let (minor, rest) = decimal(rest.strip_prefix('.')?);
    let (fix, rest) = decimal(rest.strip_prefix('.')?);
    let in_range =
        (0..=0xf).contains(&major) && (0..=0xff).contains(&minor) && (0..=0xff).contains(&fix);
    const FINAL: i64 = 0xf;
    let (patch, status) = match rest.strip_prefix('-') {
        _ if rest.is_empty() => (0, FINAL),
        Some(tag) => (
            0,
            tag.strip_prefix("beta")
                .map_or(0, |number| decimal(number).0),
        ),
        None => (letters(rest)?, FINAL),
    };
    let packed = major << 28 | minor << 20 | fix << 12 | patch << 4 | status;
    (in_range && (0..=FINAL).contains(&status) && packed != 0).then_some(packed as u64)
}

/// The value of letters: `a` is 1, `b` is 2; several letters add up.
fn letters(text: &str) -> Option<i64> {
    let sum: i64 = text
        .bytes()
        .map(|byte| i64::from(byte.to_ascii_uppercase().wrapping_sub(b'A')))
        .sum();
    let valid = text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    valid.then_some(sum + 1)
}

/// C's `strtol` in base 10: the number at the start of `text` (0 if there is none) and the rest.
fn decimal(text: &str) -> (i64, &str) {
    let digits_at = text.len() - strip_sign(text).len();
    let digits = text[digits_at..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        return (0, text);
    }
    let end = digits_at + digits;
    let magnitude = text[digits_at..end].parse::<i64>().unwrap_or(i64::MAX);
    (
        if text[..digits_at].contains('-') {
            -magnitude
        } else {
            magnitude
        },
        &text[end..],
    )
}

/// C's `strtol` in base 0: whether the number at the start of `text` is not zero, and its length.
/// None: no number.
pub(super) fn number_prefix(text: &str) -> Option<(bool, usize)> {
    let unsigned = strip_sign(text);
    let sign = text.len() - unsigned.len();
    let digits = |from: usize, radix: u32| {
        unsigned[from..]
            .chars()
            .take_while(|c| c.is_digit(radix))
            .count()
    };
    let hexadecimal = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let (from, len) = match unsigned.as_bytes().first()? {
        _ if hexadecimal && digits(2, 16) > 0 => (2, digits(2, 16)),
        b'0' => (0, digits(0, 8)),
        _ => (0, digits(0, 10)),
    };
    let non_zero = unsigned[from..from + len]
        .bytes()
        .any(|digit| digit != b'0');
    (len > 0).then_some((non_zero, sign + from + len))
}

fn strip_sign(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    text.strip_prefix(['+', '-']).unwrap_or(text)
}
