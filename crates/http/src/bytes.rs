//! Byte classes, and scans that process eight bytes at a time.
//!
//! A scan reads up to [`PAD`] bytes beyond the byte where it stops, so the caller pads its buffer
//! with that many zeros; a zero belongs to no class and stops every scan.

/// Zero bytes that pad a buffer to be scanned.
pub(crate) const PAD: usize = WINDOW_BYTES;
/// The bytes that [`short_name`] looks at.
const WINDOW_BYTES: usize = 24;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The lower-case form of a token character (RFC 9110 §5.6.2), 0 for any other byte.
pub(crate) static TOKEN_LOWER: [u8; 256] = token_lower();

/// Whether the bytes are a token (RFC 9110 §5.6.2): at least one character, all of them token
/// characters.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| TOKEN_LOWER[byte as usize] != 0)
}

/// Replaces with spaces the bytes that end a field's value or that parsers interpret in different
/// ways: CR, LF, NUL (RFC 9110 §5.5).
#[inline]
pub fn plain_text(text: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = memchr::memchr3(b'\r', b'\n', 0, &text[from..]) {
        text[from + at] = b' ';
        from += at + 1;
    }
}

/// The value of a hexadecimal digit of either case.
#[must_use]
pub fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The byte that two hexadecimal digits encode.
#[must_use]
pub fn hex_byte(high: u8, low: u8) -> Option<u8> {
    Some(hex_digit(high)? << 4 | hex_digit(low)?)
}

/// The first byte from `at` on that is a control character (below 0x20, or DEL); `buf` is padded.
#[inline]
pub(crate) fn skip_text(buf: &[u8], mut at: usize) -> usize {
    while let Some(word) = load(buf, at) {
        let stops = below(word, 0x20) | equal(word, 0x7f);
        if stops != 0 {
            return at + first(stops);
        }
        at += 8;
    }
    at
}

/// The first byte from `at` on that is not a visible ASCII character, or is `#`; `buf` is padded.
#[inline]
pub(crate) fn skip_target(buf: &[u8], mut at: usize) -> usize {
    while let Some(word) = load(buf, at) {
        let stops = below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#') | (word & HIGH);
        if stops != 0 {
            return at + first(stops);
        }
        at += 8;
    }
    at
}

/// Whether no byte is a control character other than a tab.
#[inline]
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let is_plain = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        below(word, 0x20) | equal(word, 0x7f) == 0
    };
    let is_control = |byte: &u8| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f;
    (words.iter().all(is_plain) && !rest.iter().any(is_control)) || !bytes.iter().any(is_control)
}

/// Whether all bytes are visible ASCII characters other than `#`.
#[inline]
pub(crate) fn is_target(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let is_plain = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#') | (word & HIGH) == 0
    };
    let is_visible = |byte: &u8| (0x21..0x7f).contains(byte) && *byte != b'#';
    words.iter().all(is_plain) && rest.iter().all(is_visible)
}

/// Removes the spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The trimmed elements of a comma-separated list, including empty ones.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// A decimal number of at least one digit and nothing else; none if it does not fit.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// Lower-cases letters from `at` on, up to the first byte that is neither a letter nor a hyphen,
/// and returns that byte's position. The byte may still be a token character; `buf` is padded.
#[inline]
pub(crate) fn lower_name(buf: &mut [u8], mut at: usize) -> usize {
    while let Some(word) = load(buf, at) {
        // Additions within seven bits carry into the eighth bit unless the byte is below a bound.
        let low = word & !HIGH;
        let upper = above(low, b'A') & !above(low, b'Z' + 1);
        let lower = word | (upper & !word & HIGH) >> 2;
        let low = lower & !HIGH;
        let letters = above(low, b'a') & !above(low, b'z' + 1);
        let hyphens = !above(low ^ (ONES * b'-' as u64), 1);
        let stops = (!(letters | hyphens) | word) & HIGH;
        if stops == 0 {
            buf[at..at + 8].copy_from_slice(&lower.to_le_bytes());
            at += 8;
            continue;
        }
        let before = (stops & stops.wrapping_neg()) - 1;
        buf[at..at + 8].copy_from_slice(&(lower & before | word & !before).to_le_bytes());
        return at + first(stops);
    }
    at
}

/// The name before the first colon from `at` on, if it has at most 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortName {
    pub len: usize,
    /// Its first and last eight bytes, little-endian; of a shorter name all bytes, padded with
    /// zeros.
    pub first: u64,
    pub last: u64,
    /// The bits of `first` that belong to the name.
    pub present: u64,
}

/// Finds the name before the first colon from `at` on; `buf` is padded. None if it is empty or
/// longer than 16 bytes.
#[inline(always)]
pub(crate) fn short_name(buf: &[u8], at: usize) -> Option<ShortName> {
    let window: &[u8; WINDOW_BYTES] = buf.get(at..)?.first_chunk()?;
    let first = u64::from_le_bytes(*window.first_chunk()?);
    let colons = equal(first, b':');
    if colons != 0 {
        let lowest = colons & colons.wrapping_neg();
        let present = (lowest >> 7) - 1;
        let word = first & present;
        let len = lowest.trailing_zeros() as usize / 8;
        return (len > 0).then_some(ShortName {
            len,
            first: word,
            last: word,
            present,
        });
    }
    let second = u64::from_le_bytes(*window[8..].first_chunk()?);
    let colons = equal(second, b':');
    if colons == 0 {
        return (window[16] == b':').then_some(ShortName {
            len: 16,
            first,
            last: second,
            present: u64::MAX,
        });
    }
    let bits = (colons & colons.wrapping_neg()).trailing_zeros() - 7;
    Some(ShortName {
        len: 8 + bits as usize / 8,
        first,
        // The bytes before the colon, and those of `first` that make them eight.
        last: (u128::from(first) | u128::from(second) << 64).wrapping_shr(bits) as u64,
        present: u64::MAX,
    })
}

/// Writes a name of which `first` and `last` are the first and the last eight bytes, or the whole
/// name if it is shorter, at `at`; `buf` is padded.
#[inline(always)]
pub(crate) fn store_short_name(buf: &mut [u8], at: usize, name: ShortName) {
    let ShortName {
        len, first, last, ..
    } = name;
    let window = buf
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<WINDOW_BYTES>());
    let Some(window) = window else { return };
    if len < 8 {
        let old = u64::from_le_bytes(window[..8].try_into().unwrap_or_default());
        let word = old & (u64::MAX << (8 * len)) | first;
        window[..8].copy_from_slice(&word.to_le_bytes());
    } else {
        window[..8].copy_from_slice(&first.to_le_bytes());
        // At most 16, which the compiler does not know.
        let last_at = (len - 8) & 15;
        window[last_at..last_at + 8].copy_from_slice(&last.to_le_bytes());
    }
}

/// Whether all bytes are letters, digits, hyphens or periods, as in most host names; false also for
/// some that are.
#[inline]
pub(crate) fn is_plain_host(text: &[u8]) -> bool {
    let is_plain = |word: u64| {
        let low = word & !HIGH;
        let folded = low | (ONES * 0x20);
        let letters = above(folded, b'a') & !above(folded, b'z' + 1);
        // The range from the hyphen to 9 has one more character, the slash.
        let others =
            above(low, b'-') & !above(low, b'9' + 1) & above(low ^ (ONES * b'/' as u64), 1);
        !(letters | others) & HIGH | word & HIGH == 0
    };
    let (words, rest) = text.as_chunks();
    if !words.iter().all(|word| is_plain(u64::from_le_bytes(*word))) {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    match text.last_chunk() {
        Some(last) => is_plain(u64::from_le_bytes(*last)),
        None => {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            rest.iter().all(is_plain)
        }
    }
}

/// The first and the last eight bytes of the text at `at`, in the form that
/// [`crate::Name::from_words`] takes; `buf` is padded.
#[inline]
pub(crate) fn words(buf: &[u8], at: usize, len: usize) -> (u64, u64) {
    let first = load(buf, at).unwrap_or(0);
    if len < 8 {
        let first = first & ((1 << (8 * len)) - 1);
        return (first, first);
    }
    (first, load(buf, at + len - 8).unwrap_or(0))
}

/// Sets the high bit of each byte (of seven bits) that is at least `bound`.
#[inline]
const fn above(word: u64, bound: u8) -> u64 {
    word + ONES * (0x80 - bound) as u64
}

#[inline]
pub(crate) fn load(buf: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*buf.get(at..)?.first_chunk()?))
}

/// The four bytes at `at`.
#[inline]
pub(crate) fn load_four(buf: &[u8], at: usize) -> Option<[u8; 4]> {
    buf.get(at..at.wrapping_add(4))?.try_into().ok()
}

/// Sets the high bit of each byte below `limit` (at most 0x80). Bits above the first one may be
/// false positives.
#[inline]
const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & HIGH
}

/// Sets the high bit of each byte equal to `byte`. Bits above the first one may be false positives.
#[inline]
const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * byte as u64), 1)
}

/// The index of the first byte that a mask marks.
#[inline]
const fn first(mask: u64) -> usize {
    (mask.trailing_zeros() / 8) as usize
}

const fn token_lower() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte < 128 {
        let token = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        if token {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of a padded buffer, against the plain loop.
    fn check(skip: impl Fn(&[u8], usize) -> usize, stops: impl Fn(u8) -> bool) {
        for place in 0..20 {
            for byte in 0..=255u8 {
                let mut buf = vec![b'a'; 24];
                buf[place] = byte;
                if place > 0 {
                    buf[place - 1] = byte.wrapping_add(1);
                }
                buf.extend([0; PAD]);
                let plain = buf.iter().position(|&byte| stops(byte)).unwrap();
                assert_eq!(skip(&buf, 0), plain, "{byte:#x} at {place}");
            }
        }
    }

    #[test]
    fn scans_stop_where_a_plain_loop_does() {
        check(skip_text, |byte| byte < 0x20 || byte == 0x7f);
        check(skip_target, |byte| {
            !(0x21..0x7f).contains(&byte) || byte == b'#'
        });
    }

    #[test]
    fn texts() {
        for place in 0..20 {
            for byte in 0..=255u8 {
                let mut text = [b'a'; 20];
                text[place] = byte;
                let plain = byte == b'\t' || (byte >= 0x20 && byte != 0x7f);
                assert_eq!(is_text(&text), plain, "{byte:#x} at {place}");
                let visible = (0x21..0x7f).contains(&byte) && byte != b'#';
                assert_eq!(is_target(&text), visible, "{byte:#x} at {place}");
            }
        }
        assert!(is_text(b""));
    }

    #[test]
    fn names_become_lower_case() {
        for place in 0..20 {
            for byte in 0..=255u8 {
                let mut buf = b"AbCdEfGhIjKl-MnOpQrStUvWXZ".to_vec();
                buf[place] = byte;
                let mut plain = buf.clone();
                buf.extend([0; PAD]);
                let end = lower_name(&mut buf, 0);
                let stop = plain
                    .iter()
                    .position(|byte| !byte.is_ascii_alphabetic() && *byte != b'-');
                assert_eq!(end, stop.unwrap_or(plain.len()), "{byte:#x} at {place}");
                plain[..end].make_ascii_lowercase();
                assert_eq!(&buf[..plain.len()], plain, "{byte:#x} at {place}");
                let (name, (first, last)) = (&plain[..end], words(&buf, 0, end));
                assert_eq!(
                    crate::Name::from_words(first, last, name),
                    crate::Name::Other
                );
            }
        }
    }

    /// Names of every length, with a byte of every value at every place.
    #[test]
    fn short_names_end_at_the_first_colon() {
        for len in 0..20 {
            for place in 0..len.max(1) {
                for byte in (0..=255u8).filter(|byte| *byte != b':') {
                    let mut buf = vec![b'N'; len];
                    if let Some(at) = buf.get_mut(place) {
                        *at = byte;
                    }
                    let plain = buf.clone();
                    buf.extend(b": a:b");
                    buf.extend([0; PAD]);
                    let Some(mut found) = short_name(&buf, 0) else {
                        assert!(len == 0 || len > 16, "{plain:?}");
                        continue;
                    };
                    assert_eq!(found.len, plain.len());
                    assert_eq!((found.first, found.last), words(&buf, 0, len));
                    found.first ^= 0x20;
                    let mut other = buf.clone();
                    if len < 8 {
                        found.last = found.first;
                    }
                    store_short_name(&mut other, 0, found);
                    buf[0] ^= 0x20;
                    // Up to eight bytes, both words contain the first byte.
                    if len > 8 {
                        assert_eq!(other, buf);
                    }
                    assert_eq!(other[len..], buf[len..], "the rest stays");
                }
            }
        }
    }

    #[test]
    fn plain_hosts() {
        for len in 1..20 {
            for place in 0..len {
                for byte in 0..=255u8 {
                    let mut host = vec![b'h'; len];
                    host[place] = byte;
                    let is_plain = byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
                    assert_eq!(
                        is_plain_host(&host),
                        is_plain,
                        "{byte:#x} at {place} of {len}"
                    );
                }
            }
        }
        assert!(is_plain_host(b""));
    }

    #[test]
    fn tokens() {
        assert!(is_token(b"GET") && is_token(b"x!#$%&'*+-.^_`|~9"));
        for bad in [
            &b""[..],
            b"a b",
            b"a:",
            b"\x7f",
            b"a\0",
            b"\xe9",
            b"(",
            b"@",
        ] {
            assert!(!is_token(bad), "{bad:?}");
        }
    }

    #[test]
    fn lists_and_numbers() {
        assert_eq!(
            list(b" a ,b,, c\t").collect::<Vec<_>>(),
            [&b"a"[..], b"b", b"", b"c"]
        );
        assert_eq!(decimal(b"018446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"+1", b"1 ", b"0x1", b"18446744073709551616"] {
            assert_eq!(decimal(bad), None, "{bad:?}");
        }
    }
}
