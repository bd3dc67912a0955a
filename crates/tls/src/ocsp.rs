//! The status of certificates (RFC 6960): which certificate a response is about, its status, and
//! whether the issuer signed it.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::RawPublicKeyEntity;

use crate::Material;
use crate::der::{
    BIT_STRING, ENUMERATED, FIELD_0, INTEGER, NULL, OBJECT_ID, OCTET_STRING, SEQUENCE, element,
    expect, push, time, whole,
};
use crate::old::parts;

/// 1.3.14.3.2.26, SHA-1: the hash in certificate identifiers of requests (RFC 5019 §2.1.1).
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// 1.3.6.1.5.5.7.48.1.1, a basic response.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// 1.3.6.1.5.5.7.3.9, the purpose of certificates that sign responses for their issuer.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
/// Tags of fields by their number: constructed, or with a plain value.
const FIELD_1: u8 = 0xa1;
const FIELD_2: u8 = 0xa2;
const PLAIN_0: u8 = 0x80;
const PLAIN_2: u8 = 0x82;
/// The most certificates that a response may contain for checking its signature.
const CERTIFICATES_MAX: usize = 8;

/// The tolerated difference between the responder's clock and ours, seconds. A response must also
/// be valid for as long, so that clients do not find it expired.
pub const OCSP_SKEW_S: u64 = 300;

/// The identifier of a certificate in requests and responses: hashes of its issuer's name and key,
/// and its serial number (RFC 6960 §4.1.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertId {
    /// In wire form, with SHA-1.
    der: Vec<u8>,
}

impl CertId {
    /// The identifier of a certificate whose issuer is known.
    #[must_use]
    pub fn of(material: &Material) -> Option<CertId> {
        CertId::new(material.certificate()?, material.issuer()?)
    }

    fn new(certificate: &[u8], issuer: &[u8]) -> Option<CertId> {
        let (certificate, issuer) = (
            CertificateDer::from(certificate),
            CertificateDer::from(issuer),
        );
        let certificate = parts(&certificate)?;
        let issuer = parts(&issuer)?;
        let mut name = Vec::new();
        push(&mut name, SEQUENCE, issuer.subject);
        let (key, _) = expect(issuer.key.as_ref(), SEQUENCE)?;
        let (_, key) = expect(key, SEQUENCE)?;
        let (key, _) = expect(key, BIT_STRING)?;
        let hash = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
        Some(CertId::by_sha1([
            hash(&name).as_ref(),
            hash(key.get(1..)?).as_ref(),
            certificate.serial,
        ]))
    }

    /// An identifier with these parts; the first two are SHA-1 hashes. See [`CertId::parts`].
    #[must_use]
    pub fn by_sha1([name, key, serial]: [&[u8]; 3]) -> CertId {
        let mut algorithm = Vec::new();
        push(&mut algorithm, OBJECT_ID, SHA1);
        push(&mut algorithm, NULL, b"");
        let mut content = Vec::new();
        push(&mut content, SEQUENCE, &algorithm);
        push(&mut content, OCTET_STRING, name);
        push(&mut content, OCTET_STRING, key);
        push(&mut content, INTEGER, serial);
        let mut der = Vec::new();
        push(&mut der, SEQUENCE, &content);
        CertId { der }
    }

    /// Reads the identifier in a response. Responders may omit the parameters of SHA-1 (RFC 3370
    /// §2.1); such identifiers equal ours.
    fn read(der: &[u8]) -> Option<CertId> {
        let read = CertId { der: der.to_vec() };
        let parts = read.parts()?;
        let (content, _) = expect(der, SEQUENCE)?;
        let (algorithm, _) = expect(content, SEQUENCE)?;
        let (algorithm, _) = expect(algorithm, OBJECT_ID)?;
        if algorithm == SHA1 {
            Some(CertId::by_sha1(parts))
        } else {
            Some(read)
        }
    }

    /// In wire form (DER).
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The hash of the issuer's name, that of its key, and the serial number.
    #[must_use]
    pub fn parts(&self) -> Option<[&[u8]; 3]> {
        let (content, _) = expect(&self.der, SEQUENCE)?;
        let (_, rest) = expect(content, SEQUENCE)?;
        let (name, rest) = expect(rest, OCTET_STRING)?;
        let (key, rest) = expect(rest, OCTET_STRING)?;
        let (serial, _) = expect(rest, INTEGER)?;
        Some([name, key, serial])
    }

    /// A request for the certificate's status (RFC 6960 §4.1).
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let mut content = self.der.clone();
        // Wraps it as Request, requestList, TBSRequest, OCSPRequest.
        for _ in 0..4 {
            let mut outer = Vec::new();
            push(&mut outer, SEQUENCE, &content);
            content = outer;
        }
        content
    }
}

/// The status of a certificate in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertStatus {
    /// The certificate is not revoked.
    Good,
    /// The certificate is revoked since this time (seconds after the UNIX epoch), with a reason of
    /// RFC 5280 §5.3.1 if given.
    Revoked(u64, Option<u8>),
    /// The responder does not know the certificate.
    Unknown,
}

/// The signer of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Responder {
    /// Its name (DER).
    Name(Vec<u8>),
    /// The hash of its key.
    Key(Vec<u8>),
}

/// A response about one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspResponse {
    /// The certificate.
    pub id: CertId,
    /// Its status.
    pub status: CertStatus,
    /// The signer.
    pub responder: Responder,
    /// When the response was made, seconds after the UNIX epoch.
    pub produced_s: u64,
    /// When the status was last known to be correct.
    pub this_update_s: u64,
    /// When a newer status will be available; none if one is available at any time.
    pub next_update_s: Option<u64>,
    /// The signed data, the algorithm, and the signature.
    signed: [Vec<u8>; 3],
    /// The certificates in the response (DER).
    certificates: Vec<Vec<u8>>,
}

/// Why a response cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspError {
    /// The bytes are not a response.
    Malformed,
    /// The responder returned an error (RFC 6960 §4.2.1 OCSPResponseStatus).
    Refused(u8),
    /// The response covers no certificate or several.
    NotOne,
    /// Neither the issuer nor a signer that it authorised signed the response.
    Signature,
}

impl fmt::Display for OcspError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OcspError::Malformed => f.write_str("Unable to parse OCSP response"),
            OcspError::Refused(_) => f.write_str("OCSP response status not successful"),
            OcspError::NotOne => {
                f.write_str("OCSP response ignored because contains multiple single responses")
            }
            OcspError::Signature => f.write_str("OCSP basic response verify failed"),
        }
    }
}

impl std::error::Error for OcspError {}

impl OcspResponse {
    /// Reads a response in DER. Does not check its signature ([`OcspResponse::check_signature`]).
    ///
    /// # Errors
    /// See [`OcspError`].
    pub fn parse(der: &[u8]) -> Result<OcspResponse, OcspError> {
        let malformed = OcspError::Malformed;
        let (response, _) = expect(der, SEQUENCE).ok_or(malformed)?;
        let (status, rest) = expect(response, ENUMERATED).ok_or(malformed)?;
        match status {
            [0] => {}
            [status] => return Err(OcspError::Refused(*status)),
            _ => return Err(malformed),
        }
        let basic = basic(rest).ok_or(malformed)?;
        let (tbs, rest) = whole(basic, SEQUENCE).ok_or(malformed)?;
        let (algorithm, rest) = expect(rest, SEQUENCE).ok_or(malformed)?;
        let (signature, rest) = expect(rest, BIT_STRING).ok_or(malformed)?;
        let Some((0, signature)) = signature.split_first() else {
            return Err(malformed);
        };
        let (data, _) = expect(tbs, SEQUENCE).ok_or(malformed)?;
        let (responder, produced_s, singles) = header(data).ok_or(malformed)?;
        let (single, others) = expect(singles, SEQUENCE).ok_or(OcspError::NotOne)?;
        if !others.is_empty() {
            return Err(OcspError::NotOne);
        }
        let single = single_response(single).ok_or(malformed)?;
        Ok(OcspResponse {
            id: single.id,
            status: single.status,
            responder,
            produced_s,
            this_update_s: single.this_update_s,
            next_update_s: single.next_update_s,
            signed: [tbs.to_vec(), algorithm.to_vec(), signature.to_vec()],
            certificates: certificates(rest).unwrap_or_default(),
        })
    }

    /// When it is not stapled any more, seconds since the UNIX epoch: [`OCSP_SKEW_S`] before its
    /// `nextUpdate`. None if it does not name that time; then it is never stapled.
    #[must_use]
    pub fn expires_s(&self) -> Option<u64> {
        Some(self.next_update_s?.saturating_sub(OCSP_SKEW_S))
    }

    /// Checks that the certificate's issuer signed it, or a signer that the issuer authorised (RFC
    /// 6960 §4.2.2.2).
    ///
    /// # Errors
    /// [`OcspError::Signature`]
    pub fn check_signature(
        &self,
        issuer: &[u8],
        now: std::time::Duration,
    ) -> Result<(), OcspError> {
        let issuer = CertificateDer::from(issuer);
        let Some(by) = parts(&issuer) else {
            return Err(OcspError::Signature);
        };
        let [signed, algorithm, signature] = &self.signed;
        if verify(by.key.as_ref(), signed, algorithm, signature) {
            return Ok(());
        }
        let now_s = UnixTime::since_unix_epoch(now).as_secs();
        let delegated = self.certificates.iter().any(|certificate| {
            let certificate = CertificateDer::from(certificate.as_slice());
            let Some(found) = parts(&certificate) else {
                return false;
            };
            found.issuer == by.subject
                && found.is_at(now_s)
                && found.names_purpose(OCSP_SIGNING) == Some(true)
                && verify(
                    by.key.as_ref(),
                    found.signed,
                    found.algorithm,
                    found.signature,
                )
                && verify(found.key.as_ref(), signed, algorithm, signature)
        });
        if delegated {
            Ok(())
        } else {
            Err(OcspError::Signature)
        }
    }
}

fn verify(key: &[u8], signed: &[u8], algorithm: &[u8], signature: &[u8]) -> bool {
    let key = rustls::pki_types::SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else {
        return false;
    };
    let algorithms = webpki::ALL_VERIFICATION_ALGS.iter();
    let mut fitting = algorithms.filter(|each| each.signature_alg_id().as_ref() == algorithm);
    fitting.any(|each| key.verify_signature(*each, signed, signature).is_ok())
}

/// The basic response of `responseBytes`.
fn basic(bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, _) = expect(bytes, FIELD_0)?;
    let (bytes, _) = expect(bytes, SEQUENCE)?;
    let (kind, bytes) = expect(bytes, OBJECT_ID)?;
    let (response, _) = expect(bytes, OCTET_STRING)?;
    let (response, _) = expect(response, SEQUENCE)?;
    (kind == BASIC).then_some(response)
}

/// The responder, the time of the response, and the single responses.
fn header(data: &[u8]) -> Option<(Responder, u64, &[u8])> {
    let data = match expect(data, FIELD_0) {
        Some((_, rest)) => rest,
        None => data,
    };
    let (responder, rest) = match element(data)? {
        (FIELD_1, name, rest) => (Responder::Name(name.to_vec()), rest),
        (FIELD_2, key, rest) => {
            let (key, _) = expect(key, OCTET_STRING)?;
            (Responder::Key(key.to_vec()), rest)
        }
        _ => return None,
    };
    let (produced_s, rest) = time(rest)?;
    let (singles, _) = expect(rest, SEQUENCE)?;
    Some((responder, produced_s, singles))
}

struct Single {
    id: CertId,
    status: CertStatus,
    this_update_s: u64,
    next_update_s: Option<u64>,
}

fn single_response(single: &[u8]) -> Option<Single> {
    let (id, rest) = whole(single, SEQUENCE)?;
    let (status, rest) = match element(rest)? {
        (PLAIN_0, _, rest) => (CertStatus::Good, rest),
        (FIELD_1, revoked, rest) => {
            let (since, reason) = time(revoked)?;
            let reason = expect(reason, FIELD_0).and_then(|(reason, _)| expect(reason, ENUMERATED));
            let reason = reason.and_then(|(reason, _)| reason.first().copied());
            (CertStatus::Revoked(since, reason), rest)
        }
        (PLAIN_2, _, rest) => (CertStatus::Unknown, rest),
        _ => return None,
    };
    let (this_update_s, rest) = time(rest)?;
    let next = expect(rest, FIELD_0).and_then(|(next, _)| time(next));
    let id = CertId::read(id)?;
    Some(Single {
        id,
        status,
        this_update_s,
        next_update_s: next.map(|(next, _)| next),
    })
}

fn certificates(rest: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (list, _) = expect(rest, FIELD_0)?;
    let (mut list, _) = expect(list, SEQUENCE)?;
    let mut all = Vec::new();
    while !list.is_empty() && all.len() < CERTIFICATES_MAX {
        let (certificate, rest) = whole(list, SEQUENCE)?;
        all.push(certificate.to_vec());
        list = rest;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_without_the_parameters_of_sha1_are_the_same() {
        let ours = CertId::by_sha1([&[1; 20], &[2; 20], &[3]]);
        let (mut algorithm, mut content, mut der) = (Vec::new(), Vec::new(), Vec::new());
        push(&mut algorithm, OBJECT_ID, SHA1);
        push(&mut content, SEQUENCE, &algorithm);
        push(&mut content, OCTET_STRING, &[1; 20]);
        push(&mut content, OCTET_STRING, &[2; 20]);
        push(&mut content, INTEGER, &[3]);
        push(&mut der, SEQUENCE, &content);
        assert_ne!(ours.der(), der);
        assert_eq!(CertId::read(&der), Some(ours.clone()));
        assert_eq!(CertId::read(ours.der()), Some(ours));
        assert_eq!(CertId::read(&der[..der.len() - 1]), None);
    }
}
