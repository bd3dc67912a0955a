//! Bytes behind their length, a little-endian number of so many bytes.

/// Writes bytes behind their length, which must fit in `width` bytes.
pub fn put(out: &mut Vec<u8>, width: usize, bytes: &[u8]) {
    out.extend(&bytes.len().to_le_bytes()[..width]);
    out.extend(bytes);
}

/// Takes a number of `width` bytes; none where they are not there.
pub fn number(rest: &mut &[u8], width: usize) -> Option<usize> {
    let (number, behind) = rest.split_at_checked(width)?;
    *rest = behind;
    let digits = number.iter().rev();
    Some(digits.fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// Takes bytes behind their length; none where they are not there.
pub fn take<'a>(rest: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let len = number(rest, width)?;
    let (bytes, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(bytes)
}
