//! Certificates as text.

use std::fmt::Write as _;

/// The text of a certificate (DER).
pub(super) fn certificate(der: &[u8]) -> String {
    let Some(shown) = sample::shown_certificate(der) else {
        return String::new();
    };
    let mut out = String::new();
    for (title, value) in [
        ("Serial", &shown.serial),
        ("notBefore", &shown.not_before),
        ("notAfter", &shown.not_after),
        ("Subject Alternative Name", &shown.names),
        ("Algorithm", &shown.algorithm),
        ("SHA1 FingerPrint", &upper_hex(&tls::sha1(der))),
        ("Subject", &shown.subject),
        ("Issuer", &shown.issuer),
    ] {
        let _ = writeln!(out, "{title}: {value}");
    }
    out
}

/// The text of a certificate of a chain.
pub(super) fn of_chain(der: &[u8]) -> String {
    let shown = sample::shown_certificate(der);
    shown.map_or_else(String::new, |shown| {
        format!(
            "Chain Subject: {}\nChain Issuer: {}\n",
            shown.subject, shown.issuer
        )
    })
}

/// The text of a list of revoked certificates.
pub(super) fn revocations(der: &[u8]) -> String {
    let Some(shown) = sample::shown_revocations(der) else {
        return String::new();
    };
    let mut out = format!(
        "Version {}\nSignature Algorithm: {}\nIssuer: {}\nLast Update: {}\nNext Update: {}\n",
        shown.version,
        shown.algorithm,
        shown.issuer,
        shown.last_update,
        shown.next_update.as_deref().unwrap_or("NONE")
    );
    out += if shown.revoked.is_empty() {
        "No Revoked Certificates.\n"
    } else {
        "Revoked Certificates:\n"
    };
    for (serial, since) in shown.revoked {
        let _ = writeln!(
            out,
            "    Serial Number: {serial}\n        Revocation Date: {since}"
        );
    }
    out
}

pub(super) fn upper_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

pub(super) fn lower_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
