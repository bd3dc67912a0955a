//! Bytes as hexadecimal digits, and back.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The two digits of a byte, in lower case.
#[inline]
#[must_use]
pub fn digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}

/// The `M` digits of `N` bytes, twice as many, in lower case. It uses no table, so that all digits can be computed at once.
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
    let (places, _) = out[start..].as_chunks_mut::<2>();
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = digits(*byte);
    }
}

/// Two digits for each byte, in lower case.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| digits(*byte));
    digits.map(char::from).collect()
}

/// The bytes of hexadecimal digits in either case; None for an odd number of digits, or for other characters.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
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
