//! Tests, eight bytes at a time, whether text can be written unchanged; most text can.

/// Each byte of a word 1.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each byte of a word.
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Not 0 if a byte of `word` is below `end`, which is at most 128, or above 127.
#[inline]
fn outside(word: u64, end: u8) -> u64 {
    (word.wrapping_sub(ONES * u64::from(end)) & !word | word) & HIGHS
}

/// Not 0 if a byte of `word` is `byte`.
#[inline]
fn has(word: u64, byte: u8) -> u64 {
    let word = word ^ (ONES * u64::from(byte));
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Whether text is ASCII that JSON writes unchanged.
#[inline]
pub fn is_plain(text: &[u8]) -> bool {
    none(text, |word| {
        outside(word, b' ') | has(word, b'"') | has(word, b'\\')
    })
}

/// Whether text is visible ASCII without a space.
#[inline]
pub fn is_graphic(text: &[u8]) -> bool {
    none(text, |word| outside(word, b'!') | has(word, 0x7f))
}

/// Whether `find` returns 0 for all bytes, eight at a time.
#[inline(always)]
fn none(text: &[u8], find: impl Fn(u64) -> u64) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let found = words
        .iter()
        .fold(0, |any, word| any | find(u64::from_ne_bytes(*word)));
    if found != 0 {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    // The last eight bytes, some of them a second time; if there are fewer, padded with a harmless
    // byte.
    let last = text.last_chunk::<8>().copied().unwrap_or_else(|| {
        let mut word = [b'a'; 8];
        for (place, byte) in word.iter_mut().zip(rest) {
            *place = *byte;
        }
        word
    });
    find(u64::from_ne_bytes(last)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_told() {
        for length in 0..20 {
            for place in 0..length {
                for byte in 0..=255_u8 {
                    let mut text = vec![b'x'; length];
                    text[place] = byte;
                    let plain = (0x20..0x80).contains(&byte) && byte != b'"' && byte != b'\\';
                    assert_eq!(is_plain(&text), plain, "{text:?}");
                    assert_eq!(is_graphic(&text), byte.is_ascii_graphic(), "{text:?}");
                }
            }
        }
        assert!(is_plain(b"") && is_graphic(b""));
    }
}
