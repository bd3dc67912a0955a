//! Hexadecimal digits, both ways, by table.

/// Marks what is no digit.
const NONE: u8 = 0xff;

/// The values of the digits `0-9a-f`.
static LOWER: [u8; 256] = values(false);
/// The values of the digits `0-9a-fA-F`.
static ANY: [u8; 256] = values(true);
static PAIRS: [[u8; 2]; 256] = pairs();

const fn values(upper: bool) -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        if upper {
            table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        }
        digit += 1;
    }
    table
}

const fn pairs() -> [[u8; 2]; 256] {
    let digits = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
}

/// Reads exactly `2 * N` digits in lower case.
#[inline]
pub(super) fn read<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut out = [0; N];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut seen = 0;
    for (byte, [high, low]) in out.iter_mut().zip(pairs) {
        let (high, low) = (LOWER[*high as usize], LOWER[*low as usize]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    // One test for all of them: only the mark has these bits.
    (seen < 16).then_some(out)
}

/// Reads 1 to `2 * N` digits of either case, as if zeros were before them.
pub(super) fn read_padded<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let missing = (2 * N).checked_sub(digits.len())?;
    if digits.is_empty() {
        return None;
    }
    let mut out = [0; N];
    for (at, digit) in (missing..).zip(digits) {
        let value = ANY[*digit as usize];
        if value == NONE {
            return None;
        }
        out[at / 2] |= if at % 2 == 0 { value << 4 } else { value };
    }
    Some(out)
}

/// Writes bytes in lower case; `out` has two for each.
#[inline]
pub(super) fn write(out: &mut [u8], bytes: &[u8]) {
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = PAIRS[*byte as usize];
    }
}

/// The value of a digit of either case.
#[inline]
pub(super) fn digit(digit: u8) -> Option<u8> {
    Some(ANY[digit as usize]).filter(|value| *value != NONE)
}

/// The two digits of a byte, in upper case (RFC 3986 §2.1).
#[inline]
pub(super) fn upper(byte: u8) -> [u8; 2] {
    PAIRS[byte as usize].map(|digit| digit.to_ascii_uppercase())
}

/// Without the spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
#[inline]
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
