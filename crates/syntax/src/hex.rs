//! Hexadecimal digits: bytes as digits, and digits as bytes.

/// Marks bytes that are not digits.
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

/// The two digits of a byte, in lower case.
#[inline]
#[must_use]
pub fn digits(byte: u8) -> [u8; 2] {
    PAIRS[usize::from(byte)]
}

/// The `M` digits of `N` bytes, twice as many, in lower case. It uses no table, so that all digits
/// can be computed at once.
#[inline]
#[must_use]
pub fn array<const N: usize, const M: usize>(bytes: &[u8; N]) -> [u8; M] {
    let letter = |digit: u8| digit + b'0' + if digit > 9 { b'a' - b'9' - 1 } else { 0 };
    let mut text = [b'0'; M];
    for (place, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *place = [letter(byte >> 4), letter(byte & 15)];
    }
    text
}

/// Writes bytes in lower case; `out` has two places per byte.
#[inline]
pub fn write(out: &mut [u8], bytes: &[u8]) {
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = PAIRS[*byte as usize];
    }
}

/// The value of a digit of either case.
#[inline]
pub fn digit(digit: u8) -> Option<u8> {
    Some(ANY[digit as usize]).filter(|value| *value != NONE)
}

/// The two digits of a byte, in upper case (RFC 3986 §2.1).
#[inline]
pub fn upper(byte: u8) -> [u8; 2] {
    PAIRS[byte as usize].map(|digit| digit.to_ascii_uppercase())
}

/// Appends two digits for each byte, in lower case.
#[inline]
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    // Identifiers of spans and of traces are common.
    if let Ok(id) = <&[u8; 8]>::try_from(bytes) {
        return out.extend_from_slice(&array::<8, 16>(id));
    }
    if let Ok(id) = <&[u8; 16]>::try_from(bytes) {
        return out.extend_from_slice(&array::<16, 32>(id));
    }
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    write(&mut out[start..], bytes);
}

/// Two digits for each byte, in lower case.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| digits(*byte));
    digits.map(char::from).collect()
}

/// Reads exactly `2 * N` lower-case digits, eight at a time.
#[inline]
pub fn read<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut out = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    let (eights, rest) = digits.as_chunks::<8>();
    let (fours, last) = out.as_chunks_mut::<4>();
    let mut bad = 0;
    for (four, eight) in fours.iter_mut().zip(eights) {
        let word = u64::from_le_bytes(*eight);
        bad |= not_digits(word);
        *four = pack(word);
    }
    let mut seen = 0;
    for (byte, [high, low]) in last.iter_mut().zip(rest.as_chunks::<2>().0) {
        let (high, low) = (LOWER[*high as usize], LOWER[*low as usize]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    // One test for all digits: only the mark of a byte that is not a digit has these bits.
    (bad == 0 && seen < 16).then_some(out)
}

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * ONES;

/// Not zero if a byte is not one of `0-9a-f`.
#[inline]
fn not_digits(word: u64) -> u64 {
    // The highest bit of a sum is set if the byte, below 128, is at least the bound.
    let at_least = |byte: u8| (word & !HIGH) + (0x80 - u64::from(byte)) * ONES;
    let digits = at_least(b'0') & !at_least(b'9' + 1);
    let letters = at_least(b'a') & !at_least(b'f' + 1);
    ((digits | letters) & !word & HIGH) ^ HIGH
}

/// Converts eight digits to four bytes.
#[inline]
fn pack(word: u64) -> [u8; 4] {
    // Letters have bit 6 set, and their low half counts from 1.
    let halves = (word & (0x0f * ONES)) + (word >> 6 & ONES) * 9;
    let bytes = (halves << 4 | halves >> 8) & 0x00ff_00ff_00ff_00ff;
    let bytes = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    ((bytes | bytes >> 16) as u32).to_le_bytes()
}

/// Reads 1 to `2 * N` digits of either case, as if padded with leading zeros.
pub fn read_padded<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
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

/// The bytes of hexadecimal digits in either case; None for an odd number of digits, or for other
/// characters.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut pushed = Vec::new();
        push(&mut pushed, &bytes);
        assert_eq!(pushed, text(&bytes).as_bytes());
        assert!(pushed.starts_with(b"000102") && pushed.ends_with(b"fdfeff"));
        assert_eq!(decode(&pushed), Some(bytes.clone()));
        assert_eq!(decode(&pushed.to_ascii_uppercase()), Some(bytes));
        assert_eq!(decode(b""), Some(Vec::new()));
        for wrong in [&b"0"[..], b"0g", b"+1", b"00 ", b"0x00"] {
            assert_eq!(decode(wrong), None);
        }
    }
}
