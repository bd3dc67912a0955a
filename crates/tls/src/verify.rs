//! Whether a peer's certificate is trusted.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::identity::{dates_error, has_common_name};
use crate::old::{CLIENT_AUTH, SERVER_AUTH, old, parts};
use crate::signatures::Signatures;
use crate::{ClientCertificates, IgnoredErrors, Offer, OfferError, Trusted};

/// Checks the certificates of clients.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    trusted: Trusted,
    hints: Vec<DistinguishedName>,
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
        let roots = trusted.roots.clone();
        let builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let builder = builder.with_crls(trusted.revoked.iter().cloned());
        let builder = match clients.is_optional {
            true => builder.allow_unauthenticated(),
            false => builder,
        };
        let inner = builder.build();
        Ok(ClientVerifier {
            inner: inner.map_err(|error| OfferError::Refused(error.to_string()))?,
            trusted: trusted.clone(),
            hints: match clients.tells_no_names {
                true => Vec::new(),
                false => clients.hints.as_ref().unwrap_or(trusted).roots.subjects(),
            },
            ignores_errors: clients.ignores_errors(),
            ignored: clients.ignored.clone(),
            ignored_of_issuers: clients.ignored_of_issuers.clone(),
            algorithms: provider.signature_verification_algorithms,
            signatures: Signatures::new(offer.client_signatures.as_deref()),
        })
    }
}

impl ClientVerifier {
    /// The error in a client's certificate, by OpenSSL's numbers; 0 for none, or if there is no certificate.
    pub fn verdict(&self, chain: &[CertificateDer<'_>]) -> u8 {
        let Some((leaf, rest)) = chain.split_first() else {
            return 0;
        };
        // Without ignored errors, the handshake would have failed.
        if !self.ignores_errors {
            return 0;
        }
        match self.check(leaf, rest, UnixTime::now()) {
            Ok(()) => 0,
            Err(error) => number_of(&error),
        }
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

    fn check(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let checked = match old(leaf) {
            Some(old) => old.check(&self.trusted, &self.algorithms, now),
            None => {
                let checked = self.inner.verify_client_cert(leaf, chain, now);
                checked.map(|_| ())
            }
        };
        match checked {
            Err(error) if !self.trusted.excuses(leaf, &error, CLIENT_AUTH) => Err(error),
            _ => check_lists(&self.trusted, leaf, chain),
        }
    }

    /// Whether an error is ignored.
    fn ignores(
        &self,
        error: &Error,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        let number = number_of(error);
        let (of_leaf, of_issuers) = (&self.ignored, &self.ignored_of_issuers);
        let is_alone = chain.is_empty() || old(leaf).is_some();
        match number {
            // The library reports errors in the leaf's dates before all others.
            EXPIRED | NOT_YET_VALID if is_badly_dated(leaf, now) => of_leaf.contains(number),
            EXPIRED | NOT_YET_VALID => of_issuers.contains(number),
            // OpenSSL attributes this error to the certificate whose issuer is missing.
            UNKNOWN_ISSUER if is_alone => of_leaf.contains(number),
            UNKNOWN_ISSUER => of_issuers.contains(number),
            _ if is_alone => of_leaf.contains(number),
            // It is unknown which certificate has the error.
            _ => of_leaf.contains(number) && of_issuers.contains(number),
        }
    }
}

/// Checks the revocation lists. The library does not read lists of version 1, and checks no list for a certificate that
/// [`Trusted::excuses`] accepts.
fn check_lists(
    trusted: &Trusted,
    leaf: &CertificateDer<'_>,
    chain: &[CertificateDer<'_>],
) -> Result<(), Error> {
    let lists = &trusted.lists;
    match lists.has_any(std::slice::from_ref(leaf)) || lists.has_any(chain) {
        true => Err(Error::InvalidCertificate(CertificateError::Revoked)),
        false => Ok(()),
    }
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

const UNSPECIFIED: u8 = 1;
const BAD_SIGNATURE: u8 = 7;
const NOT_YET_VALID: u8 = 9;
const EXPIRED: u8 = 10;
const UNKNOWN_ISSUER: u8 = 20;
const REVOKED: u8 = 23;

/// OpenSSL's number for a verification error.
fn number_of(error: &Error) -> u8 {
    let Error::InvalidCertificate(why) = error else {
        return UNSPECIFIED;
    };
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => EXPIRED,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            NOT_YET_VALID
        }
        CertificateError::UnknownIssuer => UNKNOWN_ISSUER,
        CertificateError::Revoked => REVOKED,
        CertificateError::BadSignature => BAD_SIGNATURE,
        _ => UNSPECIFIED,
    }
}

/// Whether a certificate has expired or is not valid yet.
fn is_badly_dated(leaf: &CertificateDer<'_>, now: UnixTime) -> bool {
    // A version 1 certificate has no chain.
    if old(leaf).is_some() {
        return true;
    }
    use webpki::Error::{CertExpired, CertNotValidYet};
    let error = dates_error(leaf, now);
    matches!(error, Some(CertExpired { .. } | CertNotValidYet { .. }))
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
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
        match self.check(leaf, chain, now) {
            Ok(()) => Ok(ClientCertVerified::assertion()),
            Err(error) if self.ignores(&error, leaf, chain, now) => {
                Ok(ClientCertVerified::assertion())
            }
            Err(error) => Err(error),
        }
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
        self.signatures.of(self.inner.supported_verify_schemes())
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
    inner: Arc<WebPkiServerVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
    trusted: Trusted,
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
        let roots = trusted.roots.clone();
        let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
        let inner = builder.with_crls(trusted.revoked.iter().cloned()).build();
        Ok(ServerVerifier {
            checks: Some(Checks {
                inner: inner.map_err(|error| OfferError::Refused(error.to_string()))?,
                algorithms: provider.signature_verification_algorithms,
                trusted: trusted.clone(),
                name,
            }),
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
        (ocsp, now): (&[u8], UnixTime),
    ) -> Result<(), Error> {
        // The library checks the chain first, then the name.
        let name = match asked {
            ServerName::DnsName(_) => Some(asked),
            // An address means that the connection requests no name.
            _ => self.name.as_ref(),
        };
        if let Some(old) = old(leaf) {
            match old.check(&self.trusted, &self.algorithms, now) {
                Err(error) if !self.trusted.excuses(leaf, &error, SERVER_AUTH) => {
                    return Err(error);
                }
                _ => check_lists(&self.trusted, leaf, chain)?,
            }
            return match name {
                Some(name) if !has_common_name(leaf, &name.to_str()) => {
                    Err(Error::InvalidCertificate(CertificateError::NotValidForName))
                }
                _ => Ok(()),
            };
        }
        check_lists(&self.trusted, leaf, chain)?;
        let verified = self
            .inner
            .verify_server_cert(leaf, chain, name.unwrap_or(asked), ocsp, now);
        let wrong_name = match verified {
            Ok(_) => return Ok(()),
            Err(Error::InvalidCertificate(
                why @ (CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. }),
            )) => why,
            Err(error) if self.trusted.excuses(leaf, &error, SERVER_AUTH) => {
                match (name, webpki::EndEntityCert::try_from(leaf)) {
                    (Some(name), Ok(parsed)) => match parsed.verify_is_valid_for_subject_name(name)
                    {
                        Ok(()) => return Ok(()),
                        Err(_) => CertificateError::NotValidForName,
                    },
                    _ => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        };
        match name {
            None => Ok(()),
            Some(name) if has_common_name(leaf, &name.to_str()) => Ok(()),
            Some(_) => Err(Error::InvalidCertificate(wrong_name)),
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(checks) = &self.checks {
            checks.check(leaf, chain, asked, (ocsp, now))?;
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
