//! Version 1 certificates and revocation lists (RFC 5280 §4.1.2.1, §5.1.2.1), which the library does not read. `openssl x509
//! -req` makes such certificates when it gets no extensions.
//!
//! A version 1 certificate is trusted only if an authority issued it directly: there are no intermediate certificates of version
//! 1.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use webpki::RawPublicKeyEntity;

use crate::Trusted;
use crate::der::{
    BIT_STRING, BOOLEAN, EXTENSIONS, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, VERSION, element,
    expect, time, whole,
};

/// The extension for key purposes, and two purposes: authentication of servers and of clients.
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
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

/// Whether a certificate may be used for the purpose `id`: it names this purpose, or no purposes at all (RFC 5280 §4.2.1.12).
pub(crate) fn serves(certificate: &CertificateDer<'_>, id: &[u8]) -> bool {
    parts(certificate).is_some_and(|parts| parts.names_purpose(id).unwrap_or(true))
}

impl Parts<'_> {
    /// Whether it names a purpose; none if it names no purposes at all.
    pub fn names_purpose(&self, id: &[u8]) -> Option<bool> {
        let value = self.extension(EXTENDED_KEY_USAGE)?;
        Some(names_purpose(value, id).unwrap_or(false))
    }

    /// The value of an extension; empty where it is malformed.
    pub fn extension(&self, wanted: &[u8]) -> Option<&[u8]> {
        let mut rest = self.rest;
        // Unique identifiers may precede the extensions.
        while let Some((tag, content, after)) = element(rest) {
            rest = after;
            let extensions = (tag == EXTENSIONS).then(|| expect(content, SEQUENCE));
            let mut extensions = extensions.flatten().map_or(&[][..], |(list, _)| list);
            while let Some((extension, after)) = expect(extensions, SEQUENCE) {
                extensions = after;
                if let Some((id, value)) = expect(extension, OBJECT_ID)
                    && id == wanted
                {
                    let value = expect(value, BOOLEAN).map_or(value, |(_, value)| value);
                    return Some(expect(value, OCTET_STRING).map_or(b"", |(value, _)| value));
                }
            }
        }
        None
    }
}

impl Parts<'_> {
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
    /// Checks that an authority issued it, that its dates are valid, and that it is not revoked.
    pub fn check(
        &self,
        trusted: &Trusted,
        algorithms: &WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Result<(), Error> {
        let now = now.as_secs();
        let is_issuer = |authority: &CertificateDer<'_>| {
            let authority = parts(authority);
            authority.is_some_and(|authority| {
                authority.subject == self.issuer && self.is_signed_by(&authority.key, algorithms)
            })
        };
        let why = if now < self.not_before {
            CertificateError::NotValidYet
        } else if now > self.not_after {
            CertificateError::Expired
        } else if !trusted.certificates.iter().any(is_issuer) {
            CertificateError::UnknownIssuer
        } else {
            match trusted.lists.status(self) {
                Status::Good => return Ok(()),
                Status::Revoked => CertificateError::Revoked,
                Status::Unknown if trusted.lists.0.is_empty() => return Ok(()),
                Status::Unknown => CertificateError::UnknownRevocationStatus,
            }
        };
        Err(Error::InvalidCertificate(why))
    }

    fn is_signed_by(
        &self,
        key: &SubjectPublicKeyInfoDer<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> bool {
        let Ok(key) = RawPublicKeyEntity::try_from(key) else {
            return false;
        };
        let mut fitting = algorithms
            .all
            .iter()
            .filter(|algorithm| algorithm.signature_alg_id().as_ref() == self.algorithm);
        fitting.any(|algorithm| {
            key.verify_signature(*algorithm, self.signed, self.signature)
                .is_ok()
        })
    }

    /// Checks that a handshake message was signed with the key of this certificate. In TLS 1.3 (`is_tls13`) only the first algorithm
    /// of a signature scheme may be used.
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
        match is_good {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(bad),
        }
    }
}

/// The status of a certificate in revocation lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Good,
    Revoked,
    /// The certificate's issuer has no list.
    Unknown,
}

/// Revocation lists. They come from files of the configuration, so their signatures are not checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists(Vec<List>);

#[derive(Clone, Debug)]
struct List {
    issuer: Vec<u8>,
    serials: Vec<Vec<u8>>,
}

impl Lists {
    /// Adds a list. Returns whether it is of version 1; none if it is not a list.
    pub fn add(&mut self, list: &[u8]) -> Option<bool> {
        let (list, _) = expect(list, SEQUENCE)?;
        let (rest, _) = expect(list, SEQUENCE)?;
        let (is_old, rest) = match expect(rest, INTEGER) {
            Some((_, rest)) => (false, rest),
            None => (true, rest),
        };
        let (_, rest) = expect(rest, SEQUENCE)?;
        let (issuer, rest) = expect(rest, SEQUENCE)?;
        let (_, rest) = time(rest)?;
        let rest = time(rest).map_or(rest, |(_, rest)| rest);
        let mut entries = expect(rest, SEQUENCE).map_or(&[][..], |(entries, _)| entries);
        let mut serials = Vec::new();
        while !entries.is_empty() {
            let (entry, rest) = expect(entries, SEQUENCE)?;
            serials.push(expect(entry, INTEGER)?.0.to_vec());
            entries = rest;
        }
        serials.sort();
        self.0.push(List {
            issuer: issuer.to_vec(),
            serials,
        });
        Some(is_old)
    }

    /// The status of a certificate.
    pub fn status(&self, certificate: &Parts<'_>) -> Status {
        let of_issuer = |list: &&List| list.issuer == certificate.issuer;
        let mut status = Status::Unknown;
        for list in self.0.iter().filter(of_issuer) {
            let serial = |known: &Vec<u8>| known.as_slice().cmp(certificate.serial);
            if list.serials.binary_search_by(serial).is_ok() {
                return Status::Revoked;
            }
            status = Status::Good;
        }
        status
    }

    /// Whether one of these certificates is revoked.
    pub fn has_any(&self, chain: &[CertificateDer<'_>]) -> bool {
        let is_revoked = |certificate: &CertificateDer<'_>| {
            parts(certificate).is_some_and(|parts| self.status(&parts) == Status::Revoked)
        };
        !self.0.is_empty() && chain.iter().any(is_revoked)
    }
}
