//! OpenSSL's names of cipher suites, which logs and rules show.

/// Supported suites: IANA number, OpenSSL's name, bits of the key.
const SUITES: [(u16, &str, u32); 9] = [
    (0x1301, "TLS_AES_128_GCM_SHA256", 128),
    (0x1302, "TLS_AES_256_GCM_SHA384", 256),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256", 256),
    (0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256", 128),
    (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384", 256),
    (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256", 128),
    (0xc030, "ECDHE-RSA-AES256-GCM-SHA384", 256),
    (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305", 256),
    (0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305", 256),
];

fn row(number: u16) -> Option<&'static (u16, &'static str, u32)> {
    SUITES.iter().find(|row| row.0 == number)
}

/// OpenSSL's name of a suite, by its IANA number.
#[must_use]
pub fn cipher_name(number: u16) -> Option<&'static str> {
    row(number).map(|row| row.1)
}

/// The bits of a suite's key.
#[must_use]
pub fn cipher_bits(number: u16) -> Option<u32> {
    row(number).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_suite_that_can_be_had_has_a_name() {
        for suite in rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES {
            let number = u16::from(suite.suite());
            assert!(super::cipher_name(number).is_some(), "{suite:?}");
        }
        assert!(super::SUITES.iter().all(|row| crate::has_suite(row.0)));
    }
}
