//! Lists of curves and of signature algorithms in OpenSSL's syntax, applied to those that are
//! available here.

use super::Chosen;

/// Groups by OpenSSL's names (SSL_CTX_set1_groups_list), with their numbers if they are available.
const GROUPS: &[(&[&str], Option<u16>)] = &[
    (&["X25519"], Some(0x001d)),
    (&["P-256", "prime256v1", "secp256r1"], Some(0x0017)),
    (&["P-384", "secp384r1"], Some(0x0018)),
    (&["X25519MLKEM768"], Some(0x11ec)),
    (&["P-521", "secp521r1"], None),
    (&["X448"], None),
    (&["SecP256r1MLKEM768"], None),
    (&["SecP384r1MLKEM1024"], None),
    (&["MLKEM512"], None),
    (&["MLKEM768"], None),
    (&["MLKEM1024"], None),
    (&["P-192", "prime192v1", "secp192r1"], None),
    (&["P-224", "secp224r1"], None),
    (&["secp160k1"], None),
    (&["secp160r1"], None),
    (&["secp160r2"], None),
    (&["secp192k1"], None),
    (&["secp224k1"], None),
    (&["secp256k1"], None),
    (&["sect163k1", "K-163"], None),
    (&["sect163r2", "B-163"], None),
    (&["sect233k1", "K-233"], None),
    (&["sect233r1", "B-233"], None),
    (&["sect283k1", "K-283"], None),
    (&["sect283r1", "B-283"], None),
    (&["sect409k1", "K-409"], None),
    (&["sect409r1", "B-409"], None),
    (&["sect571k1", "K-571"], None),
    (&["sect571r1", "B-571"], None),
    (&["brainpoolP256r1", "brainpoolP256r1tls13"], None),
    (&["brainpoolP384r1", "brainpoolP384r1tls13"], None),
    (&["brainpoolP512r1", "brainpoolP512r1tls13"], None),
    (&["ffdhe2048"], None),
    (&["ffdhe3072"], None),
    (&["ffdhe4096"], None),
    (&["ffdhe6144"], None),
    (&["ffdhe8192"], None),
];

/// Signature schemes by name (RFC 8446 §4.2.3) and by OpenSSL's pairs of a key and a hash
/// (SSL_CTX_set1_sigalgs_list).
const SCHEMES: &[(&[&str], Option<u16>)] = &[
    (
        &["ecdsa_secp256r1_sha256", "ECDSA+SHA256", "EC+SHA256"],
        Some(0x0403),
    ),
    (
        &["ecdsa_secp384r1_sha384", "ECDSA+SHA384", "EC+SHA384"],
        Some(0x0503),
    ),
    (
        &["ecdsa_secp521r1_sha512", "ECDSA+SHA512", "EC+SHA512"],
        Some(0x0603),
    ),
    (&["ed25519"], Some(0x0807)),
    (
        &["rsa_pss_rsae_sha256", "RSA-PSS+SHA256", "PSS+SHA256"],
        Some(0x0804),
    ),
    (
        &["rsa_pss_rsae_sha384", "RSA-PSS+SHA384", "PSS+SHA384"],
        Some(0x0805),
    ),
    (
        &["rsa_pss_rsae_sha512", "RSA-PSS+SHA512", "PSS+SHA512"],
        Some(0x0806),
    ),
    (&["rsa_pkcs1_sha256", "RSA+SHA256"], Some(0x0401)),
    (&["rsa_pkcs1_sha384", "RSA+SHA384"], Some(0x0501)),
    (&["rsa_pkcs1_sha512", "RSA+SHA512"], Some(0x0601)),
    (&["ed448"], None),
    (&["rsa_pss_pss_sha256"], None),
    (&["rsa_pss_pss_sha384"], None),
    (&["rsa_pss_pss_sha512"], None),
    (&["rsa_pkcs1_sha1", "RSA+SHA1"], None),
    (&["rsa_pkcs1_sha224", "RSA+SHA224"], None),
    (&["ecdsa_sha1", "ECDSA+SHA1"], None),
    (&["ecdsa_sha224", "ECDSA+SHA224"], None),
    (&["dsa_sha1", "DSA+SHA1"], None),
    (&["dsa_sha224", "DSA+SHA224"], None),
    (&["dsa_sha256", "DSA+SHA256"], None),
    (&["dsa_sha384", "DSA+SHA384"], None),
    (&["dsa_sha512", "DSA+SHA512"], None),
    (&["ecdsa_brainpoolP256r1tls13_sha256"], None),
    (&["ecdsa_brainpoolP384r1tls13_sha384"], None),
    (&["ecdsa_brainpoolP512r1tls13_sha512"], None),
    (&["mldsa44"], None),
    (&["mldsa65"], None),
    (&["mldsa87"], None),
];

/// The groups that a list selects: names separated by colons. As in OpenSSL 3.5, a list can have
/// tuples (`/`), optional names (`?`) and names for which a key share is sent (`*`). The error is
/// OpenSSL's reason to refuse it.
pub fn curves(list: &str) -> Result<Chosen, &'static str> {
    let mut chosen = Chosen::default();
    for element in list.split([':', '/']) {
        let name = element.trim_start_matches(['?', '*']);
        let marks = &element[..element.len() - name.len()];
        if let Some(name) = name.strip_prefix('-') {
            let removed = find(GROUPS, name).flatten();
            chosen.numbers.retain(|number| Some(*number) != removed);
            continue;
        }
        match find(GROUPS, name) {
            Some(Some(number)) => chosen.push(number),
            Some(None) => chosen.dropped.push(name.to_owned()),
            None if marks.contains('?') => {}
            None => return Err("it has an unknown name"),
        }
    }
    Ok(chosen)
}

/// The signature schemes that a list selects. The error is OpenSSL's reason to refuse it.
pub fn sigalgs(list: &str) -> Result<Chosen, &'static str> {
    let mut chosen = Chosen::default();
    for element in list.split(':') {
        let name = element.trim_start_matches('?');
        match find(SCHEMES, name) {
            Some(Some(number)) => chosen.push(number),
            Some(None) => chosen.dropped.push(name.to_owned()),
            None if name.len() < element.len() => {}
            None => return Err("it has an unknown name"),
        }
    }
    Ok(chosen)
}

fn find(table: &[(&[&str], Option<u16>)], name: &str) -> Option<Option<u16>> {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    let mut rows = table.iter();
    rows.find(|(names, _)| names.iter().any(is_it))
        .map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_several_names() {
        let cases: &[(&str, &[u16], &[&str])] = &[
            ("X25519:P-256", &[0x1d, 0x17], &[]),
            (
                "secp384r1:prime256v1:X25519:P-384",
                &[0x18, 0x17, 0x1d],
                &[],
            ),
            (
                "X25519MLKEM768:x25519:secp521r1",
                &[0x11ec, 0x1d],
                &["secp521r1"],
            ),
            ("?no:*X25519MLKEM768/X25519:-X25519", &[0x11ec], &[]),
            ("X448", &[], &["X448"]),
        ];
        for (list, numbers, dropped) in cases {
            let chosen = curves(list).expect("a list");
            assert_eq!(chosen.numbers, *numbers, "{list}");
            assert_eq!(chosen.dropped, *dropped, "{list}");
        }
        for bad in ["foo", "X25519:foo", "", "X25519:"] {
            assert!(curves(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn schemes_have_pairs_and_names() {
        let chosen = sigalgs("ECDSA+SHA256:RSA-PSS+SHA256:rsa_pkcs1_sha512:RSA+SHA1:ed25519")
            .expect("a list");
        assert_eq!(chosen.numbers, [0x0403, 0x0804, 0x0601, 0x0807]);
        assert_eq!(chosen.dropped, ["RSA+SHA1"]);
        assert!(sigalgs("foo:RSA+SHA256").is_err());
    }
}
