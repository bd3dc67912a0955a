//! Integers with a prefix (RFC 9204 §4.1.1, RFC 7541 §5.1), up to 62 bits.

use super::Bad;

/// The most bytes after the prefix of an integer of 62 bits.
const MORE_BYTES_MAX: u32 = 9;

pub(super) const TOO_LARGE: Bad = Bad("an integer that is too large");

/// Reads an integer whose prefix is the low `bits` of the byte at `at`, and moves `at` past it; none
/// if it is not complete.
#[inline]
pub(super) fn read(bytes: &[u8], at: &mut usize, bits: u32) -> Result<Option<u64>, Bad> {
    let mask = u8::MAX >> (8 - bits);
    let Some(first) = bytes.get(*at) else {
        return Ok(None);
    };
    let prefix = u64::from(first & mask);
    if prefix < u64::from(mask) {
        *at += 1;
        return Ok(Some(prefix));
    }
    let mut value = prefix;
    for place in 0..MORE_BYTES_MAX {
        let Some(byte) = bytes.get(*at + 1 + place as usize) else {
            return Ok(None);
        };
        value += u64::from(byte & 0x7f) << (7 * place);
        if value >= 1 << 62 {
            return Err(TOO_LARGE);
        }
        if byte & 0x80 == 0 {
            *at += 2 + place as usize;
            return Ok(Some(value));
        }
    }
    Err(TOO_LARGE)
}

/// Appends an integer; `first` holds the bits above the prefix.
#[inline]
pub(super) fn write(first: u8, bits: u32, value: u64, out: &mut Vec<u8>) {
    let mask = (1u64 << bits) - 1;
    if value < mask {
        out.push(first | value as u8);
        return;
    }
    out.push(first | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        for bits in 1..=8 {
            let most = (1 << 62) - 1;
            for value in [
                0,
                1,
                2,
                6,
                7,
                8,
                126,
                127,
                128,
                255,
                256,
                1337,
                1 << 28,
                most,
            ] {
                let mut out = Vec::new();
                write(0, bits, value, &mut out);
                let mut at = 0;
                assert_eq!(read(&out, &mut at, bits), Ok(Some(value)));
                assert_eq!(at, out.len());
                for cut in 0..out.len() {
                    let mut at = 0;
                    assert_eq!(read(&out[..cut], &mut at, bits), Ok(None));
                    assert_eq!(at, 0);
                }
            }
        }
        let mut out = Vec::new();
        write(0, 3, 1 << 62, &mut out);
        assert_eq!(read(&out, &mut 0, 3), Err(TOO_LARGE));
        assert_eq!(read(&[0xff; 20], &mut 0, 3), Err(TOO_LARGE));
    }
}
