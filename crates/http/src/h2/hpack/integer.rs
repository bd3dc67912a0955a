//! Integers with a prefix (RFC 7541 §5.1).

use super::BlockError;

/// The most bytes after the prefix of an integer; lengths and indexes fit in 28 bits.
const MORE_BYTES_MAX: u32 = 4;

/// Reads an integer whose prefix is the low `bits` of the byte at `at`; moves `at` past it.
#[inline]
pub(super) fn read(block: &[u8], at: &mut usize, bits: u32) -> Result<usize, BlockError> {
    let mask = (1u8 << bits) - 1;
    let prefix = block.get(*at).ok_or(BlockError::Truncated)? & mask;
    *at += 1;
    if prefix < mask {
        return Ok(usize::from(prefix));
    }
    read_more(block, at, usize::from(prefix))
}

fn read_more(block: &[u8], at: &mut usize, prefix: usize) -> Result<usize, BlockError> {
    let mut value = prefix;
    for place in 0..MORE_BYTES_MAX {
        let byte = *block.get(*at).ok_or(BlockError::Truncated)?;
        *at += 1;
        value += usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BlockError::BadInteger)
}

/// Appends an integer; `first` holds the bits above the prefix.
#[inline]
pub(super) fn write(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let mask = (1usize << bits) - 1;
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
