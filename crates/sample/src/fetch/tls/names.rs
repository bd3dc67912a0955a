//! OpenSSL's names of suites, versions and groups.

/// The cipher suites that clients offer today, in the order of their numbers.
#[rustfmt::skip]
const SUITES: &[(u16, &str)] = &[
    (0x002f, "AES128-SHA"),
    (0x0032, "DHE-DSS-AES128-SHA"),
    (0x0033, "DHE-RSA-AES128-SHA"),
    (0x0035, "AES256-SHA"),
    (0x0038, "DHE-DSS-AES256-SHA"),
    (0x0039, "DHE-RSA-AES256-SHA"),
    (0x003c, "AES128-SHA256"),
    (0x003d, "AES256-SHA256"),
    (0x0040, "DHE-DSS-AES128-SHA256"),
    (0x0067, "DHE-RSA-AES128-SHA256"),
    (0x006a, "DHE-DSS-AES256-SHA256"),
    (0x006b, "DHE-RSA-AES256-SHA256"),
    (0x009c, "AES128-GCM-SHA256"),
    (0x009d, "AES256-GCM-SHA384"),
    (0x009e, "DHE-RSA-AES128-GCM-SHA256"),
    (0x009f, "DHE-RSA-AES256-GCM-SHA384"),
    (0x00a2, "DHE-DSS-AES128-GCM-SHA256"),
    (0x00a3, "DHE-DSS-AES256-GCM-SHA384"),
    (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"),
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0x5600, "TLS_FALLBACK_SCSV"),
    (0xc009, "ECDHE-ECDSA-AES128-SHA"),
    (0xc00a, "ECDHE-ECDSA-AES256-SHA"),
    (0xc013, "ECDHE-RSA-AES128-SHA"),
    (0xc014, "ECDHE-RSA-AES256-SHA"),
    (0xc023, "ECDHE-ECDSA-AES128-SHA256"),
    (0xc024, "ECDHE-ECDSA-AES256-SHA384"),
    (0xc027, "ECDHE-RSA-AES128-SHA256"),
    (0xc028, "ECDHE-RSA-AES256-SHA384"),
    (0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"),
    (0xc030, "ECDHE-RSA-AES256-GCM-SHA384"),
    (0xc09c, "AES128-CCM"),
    (0xc09d, "AES256-CCM"),
    (0xc09e, "DHE-RSA-AES128-CCM"),
    (0xc09f, "DHE-RSA-AES256-CCM"),
    (0xc0ac, "ECDHE-ECDSA-AES128-CCM"),
    (0xc0ad, "ECDHE-ECDSA-AES256-CCM"),
    (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"),
    (0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (0xccaa, "DHE-RSA-CHACHA20-POLY1305"),
];

/// The name of a suite.
pub(crate) fn suite(number: u16) -> Option<&'static str> {
    let at = SUITES.binary_search_by_key(&number, |(number, _)| *number);
    at.ok().map(|at| SUITES[at].1)
}

/// Bits of a suite's key.
pub(crate) fn key_bits(number: u16) -> Option<i64> {
    let name = suite(number)?;
    match () {
        () if name.contains("256-") || name.contains("_256_") || name.contains("CHACHA20") => {
            Some(256)
        }
        () if name.contains("128") => Some(128),
        () => None,
    }
}

/// The name of a version.
pub(crate) fn version(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0300 => "SSLv3",
        0x0301 => "TLSv1",
        0x0302 => "TLSv1.1",
        0x0303 => "TLSv1.2",
        0x0304 => "TLSv1.3",
        _ => return None,
    })
}

/// The name of a group.
pub(crate) fn group(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0017 => "prime256v1",
        0x0018 => "secp384r1",
        0x0019 => "secp521r1",
        0x001d => "X25519",
        0x001e => "X448",
        0x11ec => "X25519MLKEM768",
        _ => return None,
    })
}

/// Whether two bytes of a hello are a reserved value that must be ignored (RFC 8701).
pub(crate) fn is_grease(pair: [u8; 2]) -> bool {
    pair[0] == pair[1] && pair[0] & 0x0f == 0x0a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_in_order_and_have_keys() {
        assert!(SUITES.is_sorted_by(|one, next| one.0 < next.0));
        for (number, name, bits) in [
            (0x1301, "TLS_AES_128_GCM_SHA256", Some(128)),
            (0x1302, "TLS_AES_256_GCM_SHA384", Some(256)),
            (0x1303, "TLS_CHACHA20_POLY1305_SHA256", Some(256)),
            (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384", Some(256)),
            (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256", Some(128)),
            (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305", Some(256)),
            (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", None),
        ] {
            assert_eq!(suite(number), Some(name));
            assert_eq!(key_bits(number), bits, "{name}");
        }
        assert_eq!(suite(0x0a0a), None);
    }
}
