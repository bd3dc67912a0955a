//! 32-bit cyclic redundancy checks for the PROXY protocol and the converters.

/// A polynomial, as its table of remainders.
#[derive(Debug)]
pub struct Crc32([u32; 256]);

/// CRC-32 of IEEE 802.3.
pub static IEEE: Crc32 = Crc32::new(0xedb8_8320);

/// CRC-32C (RFC 9260 Appendix A).
pub static CASTAGNOLI: Crc32 = Crc32::new(0x82f6_3b78);

impl Crc32 {
    /// The table of a polynomial, its bits reversed.
    const fn new(polynomial: u32) -> Crc32 {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ polynomial
                } else {
                    crc >> 1
                };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        Crc32(table)
    }

    /// The checksum of the concatenated parts.
    #[must_use]
    pub fn of(&self, parts: &[&[u8]]) -> u32 {
        let mut crc = u32::MAX;
        for part in parts {
            for byte in *part {
                crc = (crc >> 8) ^ self.0[usize::from(crc as u8 ^ byte)];
            }
        }
        !crc
    }
}

#[cfg(test)]
mod tests {
    use super::{CASTAGNOLI, IEEE};

    #[test]
    fn known_checksums() {
        assert_eq!(CASTAGNOLI.of(&[]), 0);
        assert_eq!(CASTAGNOLI.of(&[b"1234", b"56789"]), 0xe306_9283);
        assert_eq!(CASTAGNOLI.of(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(IEEE.of(&[b"1234", b"56789"]), 0xcbf4_3926);
    }
}
