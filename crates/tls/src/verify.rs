//! Whether a peer's certificate is trusted.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

use crate::chain::{Fault, Judge, Purpose, numbers as n};
use crate::connector::no_name;
use crate::identity::has_common_name;
use crate::old::{old, parts};
use crate::signatures::Signatures;
use crate::{ClientCertificates, IgnoredErrors, Offer, OfferError, Trusted, Verdict};

/// Checks the certificates of clients.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    judge: Judge,
    trusted: Trusted,
    hints: Vec<DistinguishedName>,
    is_optional: bool,
    ignored: IgnoredErrors,
    ignored_of_issuers: IgnoredErrors,
    /// Some errors are ignored.
    ignores_errors: bool,
    algorithms: WebPkiSupportedAlgorithms,
    signatures: Signatures,
}

impl ClientVerifier {
    pub fn new(
        clients: &ClientCertificates,
        offer: &Offer,
        provider: &Arc<CryptoProvider>,
    ) -> Result<ClientVerifier, OfferError> {
        let trusted = &clients.trusted;
        let algorithms = provider.signature_verification_algorithms;
        Ok(ClientVerifier {
            judge: Judge::new(trusted, algorithms)?,
            trusted: trusted.clone(),
            hints: if clients.tells_no_names {
                Vec::new()
            } else {
                clients.hints.as_ref().unwrap_or(trusted).roots.subjects()
            },
            is_optional: clients.is_optional,
            ignores_errors: clients.ignores_errors(),
            ignored: clients.ignored.clone(),
            ignored_of_issuers: clients.ignored_of_issuers.clone(),
            algorithms,
            signatures: Signatures::new(offer.client_signatures.as_deref()),
        })
    }
}

impl ClientVerifier {
    /// The errors in a client's certificates that were ignored. A resumed session (`is_resumed`)
    /// keeps only the last one.
    pub fn verdict(&self, chain: &[CertificateDer<'_>], is_resumed: bool) -> Verdict {
        let Some((leaf, rest)) = chain.split_first() else {
            return Verdict::default();
        };
        // Without ignored errors, the handshake would have failed.
        if !self.ignores_errors {
            return Verdict::default();
        }
        let now = UnixTime::now();
        let faults = self.judge.faults(leaf, rest, Purpose::Client, now);
        let verdict = verdict_of(&faults);
        if is_resumed {
            return Verdict {
                last: verdict.last,
                ..Verdict::default()
            };
        }
        verdict
    }

    /// The authority at the end of a chain, as far as trusted authorities reach.
    pub fn root_of(&self, chain: &[CertificateDer<'_>]) -> Option<Arc<[u8]>> {
        let all = &self.trusted.certificates;
        let issuer_of = |certificate: &CertificateDer<'_>| {
            let issuer = parts(certificate)?.issuer.to_vec();
            let mut fitting = all.iter();
            fitting.find(|each| parts(each).is_some_and(|each| each.subject == issuer))
        };
        let mut root = chain.iter().rev().find_map(issuer_of)?;
        // One authority may have issued another.
        for _ in 0..all.len() {
            match issuer_of(root) {
                Some(issuer) if issuer != root => root = issuer,
                _ => break,
            }
        }
        Some(root.as_ref().into())
    }

    /// Whether an error is ignored. One of unknown depth may be in any certificate.
    fn ignores(&self, fault: &Fault) -> bool {
        let of_own = self.ignored.contains(fault.number);
        let of_issuers = self.ignored_of_issuers.contains(fault.number);
        match fault.depth {
            Some(0) => of_own,
            Some(_) => of_issuers,
            None => of_own && of_issuers,
        }
    }
}

/// Whether an error is in a certificate above the peer's own.
fn is_of_issuer(fault: &Fault) -> bool {
    fault.depth.is_some_and(|depth| depth > 0)
}

fn verdict_of(faults: &[Fault]) -> Verdict {
    let of_issuer = faults.iter().find(|fault| is_of_issuer(fault));
    let own = faults.iter().find(|fault| !is_of_issuer(fault));
    Verdict {
        last: faults.last().map_or(0, |fault| fault.number),
        own: own.map_or(0, |fault| fault.number),
        issuer: of_issuer.map_or(0, |fault| fault.number),
        issuer_depth: of_issuer.and_then(|fault| fault.depth).unwrap_or(0),
    }
}

/// A client whose certificates were refused.
#[derive(Debug)]
pub(crate) struct RefusedClient {
    /// The errors up to the one that decided.
    pub verdict: Verdict,
    /// The error that decided is in a certificate above the client's own.
    pub is_for_issuer: bool,
    /// The client's certificate and the chain it sent, DER.
    pub peer: Vec<Box<[u8]>>,
}

thread_local! {
    /// The client that the verifier refused in the call of the library that is running: the
    /// library returns neither the errors nor the certificates.
    static REFUSED: RefCell<Option<Box<RefusedClient>>> = const { RefCell::new(None) };
}

/// The client that was just refused on this thread.
pub(crate) fn take_refused() -> Option<Box<RefusedClient>> {
    REFUSED.take()
}

/// Checks that the key of a certificate signed a handshake message.
fn verify_signature(
    message: &[u8],
    leaf: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    is_tls13: bool,
) -> Result<HandshakeSignatureValid, Error> {
    match old(leaf) {
        Some(old) => old.check_signature(message, signed, algorithms, is_tls13),
        None if is_tls13 => verify_tls13_signature(message, leaf, signed, algorithms),
        None => verify_tls12_signature(message, leaf, signed, algorithms),
    }
}

/// The library's error with the alert that OpenSSL sends for an error (RFC 8446 §6.2).
fn refusal(fault: Fault) -> Error {
    Error::InvalidCertificate(match fault.number {
        n::EXPIRED => CertificateError::Expired,
        n::NOT_YET_VALID => CertificateError::NotValidYet,
        n::REVOKED => CertificateError::Revoked,
        n::BAD_SIGNATURE => CertificateError::BadSignature,
        n::PURPOSE => CertificateError::InvalidPurpose,
        n::NO_LIST => CertificateError::UnknownRevocationStatus,
        n::LIST_EXPIRED => CertificateError::ExpiredRevocationList,
        n::NO_ISSUER
        | n::NO_ISSUER_LOCALLY
        | n::SELF_SIGNED
        | n::SELF_SIGNED_IN_CHAIN
        | n::UNVERIFIED_LEAF
        | n::INVALID_CA
        | n::PATH_LENGTH
        | n::TOO_LONG => CertificateError::UnknownIssuer,
        _ => CertificateError::Other(OtherError(Arc::new(Refused(fault)))),
    })
}

/// An error that the library has no name for.
#[derive(Debug)]
struct Refused(Fault);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "verification error {}", self.0.number)?;
        match self.0.depth {
            Some(depth) => write!(f, " at depth {depth}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        !self.is_optional
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let faults = self.judge.faults(leaf, chain, Purpose::Client, now);
        let Some(place) = faults.iter().position(|fault| !self.ignores(fault)) else {
            return Ok(ClientCertVerified::assertion());
        };
        let fault = faults[place];
        let all = std::iter::once(leaf).chain(chain);
        REFUSED.set(Some(Box::new(RefusedClient {
            verdict: verdict_of(&faults[..=place]),
            is_for_issuer: is_of_issuer(&fault),
            peer: all.map(|each| each.as_ref().into()).collect(),
        })));
        Err(refusal(fault))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, leaf, signed, &self.algorithms, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, leaf, signed, &self.algorithms, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.of(self.algorithms.supported_schemes())
    }
}

/// Checks the certificate of a server.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    /// None: any server certificate is accepted.
    checks: Option<Checks>,
    signatures: Signatures,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Checks {
    judge: Judge,
    /// The name that the certificate must be valid for if none was requested.
    name: Option<ServerName<'static>>,
}

impl ServerVerifier {
    /// A verifier that accepts any server certificate.
    pub fn nothing(offer: &Offer, provider: Arc<CryptoProvider>) -> ServerVerifier {
        ServerVerifier {
            checks: None,
            signatures: Signatures::new(offer.signatures.as_deref()),
            provider,
        }
    }

    pub fn new(
        trusted: &Trusted,
        name: Option<ServerName<'static>>,
        offer: &Offer,
        provider: Arc<CryptoProvider>,
    ) -> Result<ServerVerifier, OfferError> {
        let judge = Judge::new(trusted, provider.signature_verification_algorithms)?;
        Ok(ServerVerifier {
            checks: Some(Checks { judge, name }),
            signatures: Signatures::new(offer.signatures.as_deref()),
            provider,
        })
    }
}

impl Checks {
    fn check(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        // The chain first, then the name.
        let faults = self.judge.faults(leaf, chain, Purpose::Server, now);
        if let Some(fault) = faults.first() {
            return Err(refusal(*fault));
        }
        let name = if *asked == no_name() {
            self.name.as_ref()
        } else {
            Some(asked)
        };
        let is_for = |name: &ServerName<'_>| {
            let parsed = webpki::EndEntityCert::try_from(leaf);
            parsed.is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(name).is_ok())
                || has_common_name(leaf, &name.to_str())
        };
        match name {
            Some(name) if !is_for(name) => {
                Err(Error::InvalidCertificate(CertificateError::NotValidForName))
            }
            _ => Ok(()),
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(checks) = &self.checks {
            checks.check(leaf, chain, asked, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_signature(message, leaf, signed, algorithms, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_signature(message, leaf, signed, algorithms, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.signatures.of(algorithms.supported_schemes())
    }
}
