//! Integers of variable length (peers protocol 2.1, "Encoding"): below 240 one byte, else a byte
//! with four bits of the rest, then seven bits a byte.

use crate::Malformed;

/// The lowest number that takes more than one byte.
const LONG_MIN: u64 = 0xf0;
/// Bits of the first byte's rest.
const FIRST_BITS: u32 = 4;
/// Bits of each further byte; a byte from here on is followed by another one.
const MORE: u64 = 0x80;
const MORE_BITS: u32 = 7;

/// The most bytes of an integer.
pub const BYTES_MAX: usize = 10;

/// Appends an integer.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    if value < LONG_MIN {
        out.push(value as u8);
        return;
    }
    out.push((value | LONG_MIN) as u8);
    value = (value - LONG_MIN) >> FIRST_BITS;
    while value >= MORE {
        out.push((value | MORE) as u8);
        value = (value - MORE) >> MORE_BITS;
    }
    out.push(value as u8);
}

/// The integer at the start of `bytes` and its length; none if its end is missing.
///
/// # Errors
/// It is longer than [`BYTES_MAX`].
pub fn get(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let Some(&first) = bytes.first() else {
        return Ok(None);
    };
    let mut value = u64::from(first);
    if value < LONG_MIN {
        return Ok(Some((value, 1)));
    }
    let mut shift = FIRST_BITS;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        if at >= BYTES_MAX {
            return Err(Malformed);
        }
        value = value.wrapping_add(u64::from(byte) << shift);
        shift += MORE_BITS;
        if u64::from(byte) < MORE {
            return Ok(Some((value, at + 1)));
        }
    }
    if bytes.len() >= BYTES_MAX {
        return Err(Malformed);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let edges = [
            0, 0xef, 0xf0, 2287, 2288, 264_431, 264_432, 33_818_863, 33_818_864,
        ];
        let powers = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1]
        });
        for value in edges.into_iter().chain(powers).chain([u64::MAX]) {
            let mut out = Vec::new();
            put(&mut out, value);
            assert!(out.len() <= BYTES_MAX);
            assert_eq!(get(&out), Ok(Some((value, out.len()))), "{value}");
            for end in 0..out.len() {
                assert_eq!(get(&out[..end]), Ok(None));
            }
        }
    }

    /// The example of the protocol's description, and the lengths of its table.
    #[test]
    fn known_encodings() {
        let encoded = |value| {
            let mut out = Vec::new();
            put(&mut out, value);
            out
        };
        assert_eq!(encoded(0x1234), [0xf4, 0x94, 0x01]);
        assert_eq!(
            [239, 240, 2287, 2288].map(|value| encoded(value).len()),
            [1, 2, 2, 3]
        );
    }

    #[test]
    fn endless_numbers_are_refused() {
        assert_eq!(get(&[0xff; 11]), Err(Malformed));
        assert_eq!(get(&[0xff; 10]), Err(Malformed));
        assert_eq!(get(&[0xff; 9]), Ok(None));
    }
}
