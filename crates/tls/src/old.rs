//! The fields of certificates that the library does not show, and certificates of version 1 (RFC
//! 5280 §4.1.2.1), which it does not read. `openssl x509 -req` makes such certificates when it gets
//! no extensions.
//!
//! No intermediate authority has a version 1 certificate. A peer with such a certificate is refused
//! below an authority with name constraints, which only the library checks.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use webpki::RawPublicKeyEntity;

use crate::der::{
    BIT_STRING, BOOLEAN, EXTENSIONS, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, VERSION, element,
    expect, time, whole,
};

/// The extensions of RFC 5280 §4.2.1 that are read.
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
pub(crate) const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x1e];
const CRL_DISTRIBUTION_POINTS: &[u8] = &[0x55, 0x1d, 0x1f];
pub(crate) const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// The extensions that are processed here or by the library, so that they may be critical.
const PROCESSED: [&[u8]; 6] = [
    KEY_USAGE,
    SUBJECT_ALT_NAME,
    BASIC_CONSTRAINTS,
    NAME_CONSTRAINTS,
    CRL_DISTRIBUTION_POINTS,
    EXTENDED_KEY_USAGE,
];
/// Bits of KeyUsage (RFC 5280 §4.2.1.3) in its first byte.
pub(crate) const DIGITAL_SIGNATURE: u8 = 0x80;
pub(crate) const KEY_ENCIPHERMENT: u8 = 0x20;
pub(crate) const KEY_AGREEMENT: u8 = 0x08;
pub(crate) const KEY_CERT_SIGN: u8 = 0x04;
pub(crate) const CRL_SIGN: u8 = 0x02;
/// The key identifier and the serial number in AuthorityKeyIdentifier (RFC 5280 §4.2.1.1).
pub(crate) const KEY_ID: u8 = 0x80;
const AUTHORITY_SERIAL: u8 = 0x82;
/// The purposes of authentication of servers and of clients.
pub(crate) const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
pub(crate) const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// The fields of a certificate of any version.
pub(crate) struct Parts<'a> {
    is_old: bool,
    /// The signed part.
    pub signed: &'a [u8],
    pub algorithm: &'a [u8],
    pub signature: &'a [u8],
    pub serial: &'a [u8],
    pub issuer: &'a [u8],
    not_before: u64,
    not_after: u64,
    pub subject: &'a [u8],
    pub key: SubjectPublicKeyInfoDer<'a>,
    /// The bytes after the key.
    rest: &'a [u8],
}

/// Parses a certificate.
pub(crate) fn parts<'a>(certificate: &'a CertificateDer<'_>) -> Option<Parts<'a>> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (signed, rest) = whole(certificate, SEQUENCE)?;
    let (algorithm, rest) = expect(rest, SEQUENCE)?;
    let (signature, _) = expect(rest, BIT_STRING)?;
    let (unused_bits, signature) = signature.split_first()?;
    let (rest, _) = expect(signed, SEQUENCE)?;
    let (is_old, rest) = match expect(rest, VERSION) {
        Some((_, rest)) => (false, rest),
        None => (true, rest),
    };
    let (serial, rest) = expect(rest, INTEGER)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (issuer, rest) = expect(rest, SEQUENCE)?;
    let (validity, rest) = expect(rest, SEQUENCE)?;
    let (not_before, validity) = time(validity)?;
    let (not_after, _) = time(validity)?;
    let (subject, rest) = expect(rest, SEQUENCE)?;
    let (key, rest) = whole(rest, SEQUENCE)?;
    (*unused_bits == 0).then_some(Parts {
        is_old,
        signed,
        algorithm,
        signature,
        serial,
        issuer,
        not_before,
        not_after,
        subject,
        key: SubjectPublicKeyInfoDer::from(key),
        rest,
    })
}

impl Parts<'_> {
    /// Whether it names a purpose; none if it names no purposes at all.
    pub fn names_purpose(&self, id: &[u8]) -> Option<bool> {
        let value = self.extension(EXTENDED_KEY_USAGE)?;
        Some(names_purpose(value, id).unwrap_or(false))
    }

    /// The value of an extension; empty where it is malformed.
    pub fn extension(&self, wanted: &[u8]) -> Option<&[u8]> {
        let mut extensions = self.extensions();
        let found = extensions.find(|extension| extension.id == wanted)?;
        Some(found.value)
    }

    /// Its extensions.
    fn extensions(&self) -> impl Iterator<Item = Extension<'_>> {
        let mut rest = self.rest;
        let mut list: &[u8] = &[];
        // Unique identifiers may precede the extensions.
        while let Some((tag, content, after)) = element(rest) {
            rest = after;
            if tag == EXTENSIONS
                && let Some((content, _)) = expect(content, SEQUENCE)
            {
                list = content;
            }
        }
        extensions(list)
    }

    /// Whether it has a critical extension that is not processed (RFC 5280 §4.2).
    pub fn has_unknown_critical_extension(&self) -> bool {
        let mut extensions = self.extensions();
        extensions.any(|each| each.is_critical && !PROCESSED.contains(&each.id))
    }

    /// Whether its issuer has its own name, and its own key as far as it says.
    pub fn is_self_signed(&self) -> bool {
        self.may_have_issued(self)
    }

    /// Whether it may be the issuer of a certificate, by its name, and by its key and serial number
    /// if the certificate names them (RFC 5280 §4.2.1.1). The signature is not checked.
    pub fn may_have_issued(&self, issued: &Parts<'_>) -> bool {
        if issued.issuer != self.subject {
            return false;
        }
        let Some(value) = issued.extension(AUTHORITY_KEY_ID) else {
            return true;
        };
        let mut rest = expect(value, SEQUENCE).map_or(&[][..], |(content, _)| content);
        while let Some((tag, content, after)) = element(rest) {
            rest = after;
            let is_other = match tag {
                KEY_ID => self.key_id().is_some_and(|own| own != content),
                AUTHORITY_SERIAL => self.serial != content,
                _ => false,
            };
            if is_other {
                return false;
            }
        }
        true
    }

    /// The identifier of its key, if it names one (RFC 5280 §4.2.1.2).
    pub fn key_id(&self) -> Option<&[u8]> {
        let value = self.extension(SUBJECT_KEY_ID)?;
        Some(expect(value, OCTET_STRING)?.0)
    }

    /// Whether it may be used in one of these ways, bits of KeyUsage; without that extension in all
    /// (RFC 5280 §4.2.1.3).
    pub fn may_sign(&self, ways: u8) -> bool {
        let Some(value) = self.extension(KEY_USAGE) else {
            return true;
        };
        let bits = expect(value, BIT_STRING).and_then(|(bits, _)| bits.get(1).copied());
        bits.unwrap_or(0) & ways != 0
    }

    /// Whether it may issue certificates: BasicConstraints says so. Without that extension, a
    /// self-signed certificate of version 1 may, and one whose KeyUsage says so (as in OpenSSL).
    pub fn is_authority(&self) -> bool {
        if !self.may_sign(KEY_CERT_SIGN) {
            return false;
        }
        match self.basic_constraints() {
            Some(constraints) => constraints.is_authority,
            None if self.is_old => self.is_self_signed(),
            None => self.extension(KEY_USAGE).is_some(),
        }
    }

    /// How many intermediate certificates may follow it.
    pub fn path_length(&self) -> Option<u64> {
        self.basic_constraints()?.path_length
    }

    fn basic_constraints(&self) -> Option<BasicConstraints> {
        let value = self.extension(BASIC_CONSTRAINTS)?;
        let content = expect(value, SEQUENCE).map_or(&[][..], |(content, _)| content);
        let (is_authority, rest) = match expect(content, BOOLEAN) {
            Some((flag, rest)) => (flag == [0xff], rest),
            None => (false, content),
        };
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().map(|byte| u64::from(*byte));
            digits.fold(0_u64, |sum, digit| sum.saturating_mul(1 << 8) | digit)
        };
        Some(BasicConstraints {
            is_authority,
            path_length: expect(rest, INTEGER).map(|(bytes, _)| number(bytes)),
        })
    }
}

/// BasicConstraints (RFC 5280 §4.2.1.9).
struct BasicConstraints {
    is_authority: bool,
    path_length: Option<u64>,
}

/// An extension (RFC 5280 §4.1.2.9).
pub(crate) struct Extension<'a> {
    pub id: &'a [u8],
    is_critical: bool,
    /// Empty where it is malformed.
    pub value: &'a [u8],
}

/// The extensions of a certificate or a revocation list, from the content of their sequence.
pub(crate) fn extensions(mut list: &[u8]) -> impl Iterator<Item = Extension<'_>> {
    std::iter::from_fn(move || {
        let (extension, after) = expect(list, SEQUENCE)?;
        list = after;
        Some(Extension::read(extension))
    })
}

impl<'a> Extension<'a> {
    fn read(content: &'a [u8]) -> Extension<'a> {
        let (id, rest) = expect(content, OBJECT_ID).unwrap_or_default();
        let (is_critical, rest) = match expect(rest, BOOLEAN) {
            Some((flag, rest)) => (flag != [0], rest),
            None => (false, rest),
        };
        Extension {
            id,
            is_critical,
            value: expect(rest, OCTET_STRING).map_or(b"", |(value, _)| value),
        }
    }
}

impl Parts<'_> {
    /// The beginning of its validity, seconds after the UNIX epoch.
    pub fn begins_s(&self) -> u64 {
        self.not_before
    }

    /// The end of its validity, seconds after the UNIX epoch.
    pub fn ends_s(&self) -> u64 {
        self.not_after
    }

    /// Whether it is valid at a time, seconds after the UNIX epoch.
    pub fn is_at(&self, now_s: u64) -> bool {
        (self.not_before..=self.not_after).contains(&now_s)
    }
}

fn names_purpose(value: &[u8], id: &[u8]) -> Option<bool> {
    let (mut purposes, _) = expect(value, SEQUENCE)?;
    while !purposes.is_empty() {
        let (purpose, after) = expect(purposes, OBJECT_ID)?;
        purposes = after;
        if purpose == id {
            return Some(true);
        }
    }
    Some(false)
}

/// The fields of a version 1 certificate; none for other versions.
pub(crate) fn old<'a>(certificate: &'a CertificateDer<'_>) -> Option<Parts<'a>> {
    parts(certificate).filter(|parts| parts.is_old)
}

impl Parts<'_> {
    /// Checks that a handshake message was signed with the key of this certificate. In TLS 1.3
    /// (`is_tls13`) only the first algorithm of a signature scheme may be used.
    pub fn check_signature(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = Error::InvalidCertificate(CertificateError::BadSignature);
        let key = RawPublicKeyEntity::try_from(&self.key)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let mut schemes = algorithms.mapping.iter();
        let found = schemes.find(|(scheme, _)| *scheme == signed.scheme);
        let (_, fitting) = found.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let count = if is_tls13 { 1 } else { fitting.len() };
        let mut fitting = fitting.iter().take(count);
        let is_good = fitting.any(|algorithm| {
            key.verify_signature(*algorithm, message, signed.signature())
                .is_ok()
        });
        if is_good {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(bad)
        }
    }
}
