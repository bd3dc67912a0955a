//! QUIC's integers of variable length (RFC 9000 §16).

/// The largest number.
pub(super) const MAX: u64 = (1 << 62) - 1;
/// The most bytes of a number.
pub(super) const BYTES_MAX: usize = 8;

/// The number at the front of `bytes` and its size; none if it is not complete.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let len = 1usize << (first >> 6);
    let rest = bytes.get(1..len)?;
    let number = rest.iter().fold(u64::from(first & 0x3f), |number, byte| {
        number << 8 | u64::from(*byte)
    });
    Some((number, len))
}

/// Appends a number in its shortest form.
#[inline]
pub(super) fn write(number: u64, out: &mut Vec<u8>) {
    debug_assert!(number <= MAX);
    match number {
        0..0x40 => out.push(number as u8),
        0x40..0x4000 => out.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => {
            out.extend_from_slice(&(number as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => out.extend_from_slice(&(number & MAX | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// The size of a number in its shortest form.
#[inline]
pub(super) const fn len(number: u64) -> usize {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 §A.1.
    #[test]
    fn examples() {
        for (bytes, number) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15293),
            (&[0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((number, bytes.len())));
            let mut out = Vec::new();
            write(number, &mut out);
            assert_eq!((&out[..], len(number)), (bytes, bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), None);
            }
        }
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)));
        for number in [0, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, MAX] {
            let mut out = Vec::new();
            write(number, &mut out);
            assert_eq!(read(&out), Some((number, len(number))));
        }
    }
}
