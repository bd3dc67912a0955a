//! Verifies a peer's certificate as OpenSSL does: builds the path to a trusted authority and
//! collects every error with its depth, in the order in which OpenSSL reports them.
//!
//! An option may ignore errors (`crt-ignore-err`, `ca-ignore-err`). One error must not hide another
//! then, but the library stops at its first one. It does not check the certificate of the trusted
//! authority either (its dates, purposes and path length). A peer is accepted without errors only
//! if the library accepts the same path.

use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{
    CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use webpki::{
    CertRevocationList, EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, KeyUsage,
    OwnedCertRevocationList, RawPublicKeyEntity, RevocationOptionsBuilder,
};

use crate::crl::{List, RSA_SHA1, Validity};
use crate::old::{KEY_CERT_SIGN, NAME_CONSTRAINTS, Parts, old, parts};
use crate::{OfferError, Trusted};

/// The most certificates of a path: the peer's own, six intermediate ones (the library's limit),
/// and the trusted authority.
const PATH_MAX: usize = 8;
/// The most signatures that are checked to choose among authorities of the same name.
const CHOICES_MAX: usize = 32;

/// OpenSSL's numbers of errors (`X509_V_ERR_*`).
pub(crate) mod numbers {
    pub const UNSPECIFIED: u8 = 1;
    pub const NO_ISSUER: u8 = 2;
    pub const NO_LIST: u8 = 3;
    pub const BAD_SIGNATURE: u8 = 7;
    pub const BAD_LIST_SIGNATURE: u8 = 8;
    pub const NOT_YET_VALID: u8 = 9;
    pub const EXPIRED: u8 = 10;
    pub const LIST_NOT_YET_VALID: u8 = 11;
    pub const LIST_EXPIRED: u8 = 12;
    pub const SELF_SIGNED: u8 = 18;
    pub const SELF_SIGNED_IN_CHAIN: u8 = 19;
    pub const NO_ISSUER_LOCALLY: u8 = 20;
    pub const UNVERIFIED_LEAF: u8 = 21;
    pub const TOO_LONG: u8 = 22;
    pub const REVOKED: u8 = 23;
    pub const PATH_LENGTH: u8 = 25;
    pub const PURPOSE: u8 = 26;
    pub const NO_CERT_SIGN: u8 = 32;
    pub const CRITICAL_EXTENSION: u8 = 34;
    pub const NO_LIST_SIGN: u8 = 35;
    pub const NAME_CONSTRAINTS: u8 = 47;
    pub const WEAK_SIGNATURE: u8 = 68;
    pub const INVALID_CA: u8 = 79;
}
use numbers as n;

/// An error in the certificates of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// OpenSSL's number.
    pub number: u8,
    /// The position of the certificate in the path, 0 for the peer's own; none if it is unknown.
    pub depth: Option<u8>,
}

/// What a peer proves with its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Client,
    Server,
}

impl Purpose {
    fn for_library(self) -> KeyUsage {
        match self {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        }
    }
}

/// Checks peers against trusted authorities and revocation lists.
#[derive(Debug)]
pub(crate) struct Judge {
    trusted: Trusted,
    /// The lists that the library can read.
    lists: Vec<Readable>,
    /// For the signatures of certificates.
    algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
    /// For the signatures of lists: these and older ones.
    algorithms_of_lists: Vec<&'static dyn SignatureVerificationAlgorithm>,
}

/// A revocation list as the library reads it.
#[derive(Debug)]
struct Readable {
    list: Arc<List>,
    for_library: CertRevocationList<'static>,
}

/// A certificate of a path.
struct Member<'a> {
    der: &'a CertificateDer<'a>,
    parts: Parts<'a>,
}

/// A path from a peer's certificate upwards.
struct Path<'a> {
    members: Vec<Member<'a>>,
    /// The error at the end of a path that leads to no trusted authority.
    end: Option<Fault>,
}

impl<'a> Member<'a> {
    fn new(der: &'a CertificateDer<'a>) -> Option<Member<'a>> {
        Some(Member {
            der,
            parts: parts(der)?,
        })
    }
}

impl Judge {
    /// A judge with these authorities and lists.
    ///
    /// # Errors
    /// A revocation list cannot be used.
    pub fn new(
        trusted: &Trusted,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Judge, OfferError> {
        let mut lists = Vec::new();
        for list in trusted.lists.iter().filter(|list| !list.is_old) {
            let read = OwnedCertRevocationList::from_der(&list.der)
                .map_err(|error| OfferError::Refused(format!("invalid CRL: {error}")))?;
            lists.push(Readable {
                list: list.clone(),
                for_library: read.into(),
            });
        }
        Ok(Judge {
            trusted: trusted.clone(),
            lists,
            algorithms: algorithms.all,
            algorithms_of_lists: [algorithms.all, &[RSA_SHA1]].concat(),
        })
    }

    /// Every error in the certificates of a peer, which sent `sent` after its own; empty if it is
    /// trusted.
    pub fn faults(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
    ) -> Vec<Fault> {
        let Some(first) = Member::new(leaf) else {
            return vec![Fault {
                number: n::UNSPECIFIED,
                depth: Some(0),
            }];
        };
        let path = self.path(first, sent, now.as_secs());
        let is_old = old(leaf).is_some();
        let is_for_library = path.members.len() > 1 && !is_old;
        let mut refused = None;
        if is_for_library && self.check(&path, purpose, now.as_secs(), false).is_empty() {
            match self.ask_library(&path, Some(purpose), now) {
                Ok(()) => return Vec::new(),
                Err(error) => refused = Some(error),
            }
        }
        let mut faults = self.check(&path, purpose, now.as_secs(), true);
        let of_unknown_depth = |number| Fault {
            number,
            depth: None,
        };
        match refused {
            // OpenSSL accepts an authority's certificate as a peer's own. All else was checked
            // here, except the scope of lists.
            Some(webpki::Error::CaUsedAsEndEntity) if self.lists.is_empty() => {}
            Some(error) if faults.is_empty() => faults.push(of_unknown_depth(number_of(&error))),
            _ => {}
        }
        faults.extend(self.name_constraints(&path).map(of_unknown_depth));
        faults
    }

    /// The path from a certificate to a trusted authority. As in OpenSSL, trusted authorities are
    /// preferred to sent ones, and only self-signed authorities are trusted.
    fn path<'a>(
        &'a self,
        leaf: Member<'a>,
        sent: &'a [CertificateDer<'a>],
        now_s: u64,
    ) -> Path<'a> {
        let mut members = vec![leaf];
        let mut choices = CHOICES_MAX;
        let mut sent_count = 1;
        let mut is_trusted = false;
        loop {
            let Member { der, parts: top } = &members[members.len() - 1];
            if top.is_self_signed() {
                is_trusted = self.trusted.certificates.iter().any(|each| each == *der);
                break;
            }
            if members.len() == PATH_MAX {
                break;
            }
            let trusted = self.trusted.certificates.iter();
            let found = self.issuer(top, trusted, now_s, &mut choices);
            if let Some(found) = found {
                members.push(found);
                continue;
            }
            if members.len() > sent_count {
                // Authorities above a trusted one must be trusted as well.
                break;
            }
            let unused = sent
                .iter()
                .filter(|each| members.iter().all(|member| member.der != *each));
            let Some(found) = self.issuer(top, unused, now_s, &mut choices) else {
                break;
            };
            members.push(found);
            sent_count += 1;
        }
        let is_root = members[members.len() - 1].parts.is_self_signed();
        let number = match members.len() {
            PATH_MAX if !is_root => n::TOO_LONG,
            1 if is_root => n::SELF_SIGNED,
            _ if is_root => n::SELF_SIGNED_IN_CHAIN,
            len if len > sent_count => n::NO_ISSUER,
            _ => n::NO_ISSUER_LOCALLY,
        };
        let end = (!is_trusted).then(|| at(members.len() - 1, number));
        Path { members, end }
    }

    /// The issuer of a certificate among candidates. Of several with its name, one that signed it
    /// is preferred, then one that is valid now, then the one that is valid longest.
    fn issuer<'a>(
        &self,
        of: &Parts<'_>,
        candidates: impl Iterator<Item = &'a CertificateDer<'a>>,
        now_s: u64,
        choices: &mut usize,
    ) -> Option<Member<'a>> {
        let fitting = candidates.filter_map(Member::new);
        let mut fitting = fitting.filter(|each| each.parts.may_have_issued(of));
        let first = fitting.next()?;
        let der = first.der;
        let mut others = fitting.filter(|each| each.der != der).peekable();
        if others.peek().is_none() {
            return Some(first);
        }
        std::iter::once(first).chain(others).max_by_key(|each| {
            let has_signed = *choices > 0 && {
                *choices -= 1;
                signature(self.algorithms, &each.parts.key, signed_parts(of)) == Signature::Good
            };
            (has_signed, each.parts.is_at(now_s), each.parts.ends_s())
        })
    }

    /// Checks the certificates of a path in OpenSSL's order. Signatures that the library checks as
    /// well are checked only if `checks_signatures`.
    fn check(
        &self,
        path: &Path<'_>,
        purpose: Purpose,
        now_s: u64,
        checks_signatures: bool,
    ) -> Vec<Fault> {
        let mut faults = Vec::new();
        faults.extend(path.end);
        let members = &path.members;
        let mut length = 0;
        for (depth, Member { parts, .. }) in members.iter().enumerate() {
            let mut add = |number| faults.push(at(depth, number));
            let is_issuer = depth > 0;
            if parts.has_unknown_critical_extension() {
                add(n::CRITICAL_EXTENSION);
            }
            if is_issuer && !parts.is_authority() {
                add(n::INVALID_CA);
            }
            if !serves(parts, purpose, is_issuer) {
                add(n::PURPOSE);
            }
            if depth > 1 && parts.path_length().is_some_and(|most| length > most) {
                add(n::PATH_LENGTH);
            }
            if is_issuer && parts.subject != parts.issuer {
                length += 1;
            }
        }
        for (depth, pair) in members.windows(2).enumerate() {
            let of_issued = signed_parts(&pair[0].parts);
            if fitting(self.algorithms, of_issued.algorithm)
                .next()
                .is_none()
            {
                faults.push(at(depth, n::WEAK_SIGNATURE));
            }
        }
        if !self.trusted.lists.is_empty() {
            for (depth, member) in members.iter().enumerate() {
                let is_root = member.parts.is_self_signed().then_some(member);
                let issuer = members.get(depth + 1).or(is_root);
                let issuer = issuer.map(|issuer| &issuer.parts);
                let numbers = self.check_lists(&member.parts, issuer, now_s, checks_signatures);
                faults.extend(numbers.into_iter().map(|number| at(depth, number)));
            }
        }
        // The dates of an authority whose issuer is missing do not count, except at the peer's own
        // certificate.
        let top = members.len() - 1;
        let is_complete = members[top].parts.is_self_signed();
        let checked = match top {
            _ if is_complete => top,
            0 => {
                faults.push(at(0, n::UNVERIFIED_LEAF));
                0
            }
            _ => top - 1,
        };
        for depth in (0..=checked).rev() {
            let parts = &members[depth].parts;
            if let Some(issuer) = members.get(depth + 1) {
                if !issuer.parts.may_sign(KEY_CERT_SIGN) {
                    faults.push(at(depth + 1, n::NO_CERT_SIGN));
                }
                if checks_signatures
                    && signature(self.algorithms, &issuer.parts.key, signed_parts(parts))
                        == Signature::Bad
                {
                    faults.push(at(depth, n::BAD_SIGNATURE));
                }
            }
            if now_s < parts.begins_s() {
                faults.push(at(depth, n::NOT_YET_VALID));
            }
            if now_s > parts.ends_s() {
                faults.push(at(depth, n::EXPIRED));
            }
        }
        faults
    }

    /// The errors that the revocation lists show for a certificate. `issuer`: of the certificate,
    /// and so of its lists.
    fn check_lists(
        &self,
        parts: &Parts<'_>,
        issuer: Option<&Parts<'_>>,
        now_s: u64,
        checks_signatures: bool,
    ) -> Vec<u8> {
        let mut numbers = Vec::new();
        let Some(issuer) = issuer else {
            return vec![n::NO_LIST];
        };
        let lists = self.trusted.lists.iter();
        let lists: Vec<_> = lists.filter(|list| list.is_of(issuer)).collect();
        if lists.is_empty() {
            return vec![n::NO_LIST];
        }
        if !issuer.may_sign(crate::old::CRL_SIGN) {
            numbers.push(n::NO_LIST_SIGN);
        }
        // An expired list is not used if the issuer has a newer one.
        let has = |validity| lists.iter().any(|list| list.validity(now_s) == validity);
        if !has(Validity::Current) {
            numbers.push(if has(Validity::Expired) {
                n::LIST_EXPIRED
            } else {
                n::LIST_NOT_YET_VALID
            });
        }
        // The library checks no lists of version 1.
        let is_bad = |list: &&Arc<List>| {
            (checks_signatures || list.is_old)
                && list.signed_parts().is_none_or(|signed| {
                    let signature = signature(&self.algorithms_of_lists, &issuer.key, signed);
                    signature != Signature::Good
                })
        };
        if lists.iter().any(is_bad) {
            numbers.push(n::BAD_LIST_SIGNATURE);
        }
        if lists.iter().any(|list| list.revokes(parts.serial)) {
            numbers.push(n::REVOKED);
        }
        numbers
    }

    /// The library's verdict on exactly this path, for a purpose or for any. It checks the
    /// revocation lists only at the present time, for a purpose.
    fn ask_library(
        &self,
        path: &Path<'_>,
        purpose: Option<Purpose>,
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let [leaf, between @ .., root] = &path.members[..] else {
            return Err(webpki::Error::UnknownIssuer);
        };
        let leaf = EndEntityCert::try_from(leaf.der)?;
        let anchors = [webpki::anchor_from_trusted_cert(root.der)?];
        let between: Vec<_> = between.iter().map(|each| each.der.clone()).collect();
        let Some(purpose) = purpose else {
            let verified = leaf.verify_for_usage(
                self.algorithms,
                &anchors,
                &between,
                now,
                AnyPurpose,
                None,
                None,
            );
            return verified.map(|_| ());
        };
        let is_of_path = |list: &List| path.members.iter().any(|each| list.is_of(&each.parts));
        let is_current = |list: &List| list.validity(now.as_secs()) == Validity::Current;
        let lists = self.lists.iter();
        let lists = lists.filter(|each| is_of_path(&each.list) && is_current(&each.list));
        let lists: Vec<_> = lists.map(|each| &each.for_library).collect();
        // Without a list, `check` has found an error.
        let builder = RevocationOptionsBuilder::new(&lists).ok();
        let revocation = builder.map(RevocationOptionsBuilder::build);
        let usage = purpose.for_library();
        // `check` has found that the certificates are signed with algorithms for certificates.
        let algorithms = &self.algorithms_of_lists;
        let verified =
            leaf.verify_for_usage(algorithms, &anchors, &between, now, usage, revocation, None);
        verified.map(|_| ())
    }

    /// The error in the name constraints of a path that has other errors. Only the library checks
    /// name constraints: it is asked about a time at which the certificates are valid. Without such
    /// a time, the constraints count as violated, and so they do for a certificate of version 1,
    /// which the library does not read.
    fn name_constraints(&self, path: &Path<'_>) -> Option<u8> {
        let [issued @ .., _] = &path.members[..] else {
            return None;
        };
        let mut issuers = path.members.iter().skip(1);
        issuers.find(|each| each.parts.extension(NAME_CONSTRAINTS).is_some())?;
        let starts = issued.iter().map(|each| each.parts.begins_s()).max()?;
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(starts));
        self.ask_library(path, None, at)
            .err()
            .map(|_| n::NAME_CONSTRAINTS)
    }
}

/// The result of checking a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signature {
    Good,
    Bad,
    /// The algorithm is not supported.
    Unknown,
}

/// A signature and the bytes that it covers.
#[derive(Clone, Copy)]
pub(crate) struct SignedParts<'a> {
    pub signed: &'a [u8],
    pub algorithm: &'a [u8],
    pub signature: &'a [u8],
}

/// The algorithms with this identifier.
fn fitting<'a>(
    algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
    id: &'a [u8],
) -> impl Iterator<Item = &'static dyn SignatureVerificationAlgorithm> + 'a {
    let all = algorithms.iter().copied();
    all.filter(move |each| each.signature_alg_id().as_ref() == id)
}

/// Checks a signature with one of these algorithms.
fn signature(
    algorithms: &[&'static dyn SignatureVerificationAlgorithm],
    key: &SubjectPublicKeyInfoDer<'_>,
    of: SignedParts<'_>,
) -> Signature {
    let Ok(key) = RawPublicKeyEntity::try_from(key) else {
        return Signature::Bad;
    };
    let mut result = Signature::Unknown;
    for algorithm in fitting(algorithms, of.algorithm) {
        result = Signature::Bad;
        let verified = key.verify_signature(algorithm, of.signed, of.signature);
        if verified.is_ok() {
            return Signature::Good;
        }
    }
    result
}

fn signed_parts<'a>(of: &Parts<'a>) -> SignedParts<'a> {
    SignedParts {
        signed: of.signed,
        algorithm: of.algorithm,
        signature: of.signature,
    }
}

/// Accepts every purpose.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        Ok(())
    }
}

fn at(depth: usize, number: u8) -> Fault {
    Fault {
        number,
        // A path is never longer than PATH_MAX.
        depth: u8::try_from(depth).ok(),
    }
}

/// Whether a certificate, or one of an authority (`is_issuer`), may be used for a purpose (RFC 5280
/// §4.2.1.3, §4.2.1.12).
fn serves(parts: &Parts<'_>, purpose: Purpose, is_issuer: bool) -> bool {
    use crate::old::{
        CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_AGREEMENT, KEY_ENCIPHERMENT, SERVER_AUTH,
    };
    let (id, usage) = match purpose {
        Purpose::Client => (CLIENT_AUTH, DIGITAL_SIGNATURE | KEY_AGREEMENT),
        Purpose::Server => (
            SERVER_AUTH,
            DIGITAL_SIGNATURE | KEY_ENCIPHERMENT | KEY_AGREEMENT,
        ),
    };
    if parts.names_purpose(id) == Some(false) {
        return false;
    }
    if is_issuer {
        parts.is_authority()
    } else {
        parts.may_sign(usage)
    }
}

/// OpenSSL's number for an error of the library.
fn number_of(error: &webpki::Error) -> u8 {
    use webpki::Error as E;
    match error {
        E::CertExpired { .. } => n::EXPIRED,
        E::CertNotValidYet { .. } => n::NOT_YET_VALID,
        E::UnknownIssuer => n::NO_ISSUER_LOCALLY,
        E::CertRevoked => n::REVOKED,
        E::UnknownRevocationStatus => n::NO_LIST,
        E::InvalidSignatureForPublicKey => n::BAD_SIGNATURE,
        E::InvalidCrlSignatureForPublicKey => n::BAD_LIST_SIGNATURE,
        E::IssuerNotCrlSigner => n::NO_LIST_SIGN,
        E::PathLenConstraintViolated => n::PATH_LENGTH,
        E::MaximumPathDepthExceeded => n::TOO_LONG,
        E::NameConstraintViolation => n::NAME_CONSTRAINTS,
        E::UnsupportedCriticalExtension => n::CRITICAL_EXTENSION,
        E::EndEntityUsedAsCa => n::INVALID_CA,
        _ => n::UNSPECIFIED,
    }
}
