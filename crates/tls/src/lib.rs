//! TLS on slices: bytes from the wire go in, plain bytes and bytes for the wire come out. There are
//! no sockets, and the only clock is the one for checking certificates.
//!
//! [`Identity`] is a certificate with its key, [`Acceptor`] makes the sessions of a listener,
//! [`Connector`] those with a server, and [`Session`] is one connection. The library behind it is
//! rustls with AWS-LC; only this crate uses it.
//!
//! [`stream`] puts a session over a stream of tokio, for threads that are off the data path.
#![forbid(unsafe_code)]

mod acceptor;
mod binding;
mod buffer;
mod cache;
mod chain;
mod connector;
mod crl;
mod der;
mod encrypted;
mod failure;
mod hello;
mod identity;
mod lifetime;
mod maker;
mod names;
mod ocsp;
mod old;
#[cfg(feature = "quic")]
pub mod quic;
mod resolver;
mod secrets;
mod session;
mod signatures;
#[cfg(feature = "stream")]
pub mod stream;
mod tickets;
mod trust;
mod verify;

pub use acceptor::{Acceptor, AcceptorOptions, ClientCertificates, IgnoredErrors};
pub use buffer::Buffer;
pub use cache::SessionCache;
pub use connector::{Connector, ConnectorOptions, Verification};
pub use encrypted::Passphrases;
pub use failure::{Failure, FailureKind, Reason};
pub use hello::requested_name;
pub use identity::{Chains, Files, Identity, IdentityError, KeyForm, KeyKind, Material};
pub use maker::CaSigner;
pub use names::{cipher_bits, cipher_name};
pub use ocsp::{CertId, CertStatus, OCSP_SKEW_S, OcspError, OcspResponse, Responder};
pub use resolver::{Certificate, Certificates};
pub use secrets::{RANDOM_BYTES, Secret, Secrets, SecretsKept};
pub use session::{Facts, Progress, Session, Verdict};
pub use tickets::{TICKET_KEY_BYTES, TicketKeys};
pub use trust::{Authorities, Revocations, TrustError, Trusted};

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{CipherSuite, NamedGroup, SupportedCipherSuite, SupportedProtocolVersion};

/// A supported version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    fn number(self) -> rustls::ProtocolVersion {
        match self {
            Version::Tls12 => rustls::ProtocolVersion::TLSv1_2,
            Version::Tls13 => rustls::ProtocolVersion::TLSv1_3,
        }
    }

    /// Its name as OpenSSL writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }
}

/// What may be negotiated for a connection. None and empty lists keep the library's preference; a
/// list that is given is not empty.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The lowest version.
    pub lowest: Option<Version>,
    /// The highest version.
    pub highest: Option<Version>,
    /// Cipher suites of TLS 1.2 by their IANA numbers, the preferred ones first.
    pub suites12: Option<Vec<u16>>,
    /// Cipher suites of TLS 1.3 by their IANA numbers, the preferred ones first.
    pub suites13: Option<Vec<u16>>,
    /// Groups of the key exchange by their IANA numbers, the preferred ones first.
    pub groups: Vec<u16>,
    /// Signature algorithms by their IANA numbers, the preferred ones first: those that a listener
    /// signs with, or that a server may sign with.
    pub signatures: Option<Vec<u16>>,
    /// The same for the certificates of clients, or for ours if we are the client.
    pub client_signatures: Option<Vec<u16>>,
    /// Application protocols (ALPN), the preferred ones first.
    pub protocols: Vec<Vec<u8>>,
}

/// Why an [`Offer`] is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferError {
    /// There is no version between the lowest and the highest one.
    NoVersion,
    /// No allowed version has a cipher suite.
    NoSuite,
    /// No group is allowed.
    NoGroup,
    /// The library refuses it.
    Refused(String),
}

impl std::fmt::Display for OfferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OfferError::NoVersion => f.write_str("no version of TLS that is allowed exists here"),
            OfferError::NoSuite => f.write_str("no cipher suite that is allowed exists here"),
            OfferError::NoGroup => f.write_str("no group that is allowed exists here"),
            OfferError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OfferError {}

static VERSIONS: [(Version, &SupportedProtocolVersion); 2] = [
    (Version::Tls13, &rustls::version::TLS13),
    (Version::Tls12, &rustls::version::TLS12),
];

impl Offer {
    fn allows(&self, version: Version) -> bool {
        self.lowest.is_none_or(|lowest| version >= lowest)
            && self.highest.is_none_or(|highest| version <= highest)
    }

    /// The offer as the library's provider.
    fn provider(&self) -> Result<Arc<CryptoProvider>, OfferError> {
        let base = base_provider();
        let has_suites = self.suites12.is_some()
            || self.suites13.is_some()
            || !VERSIONS.iter().all(|row| self.allows(row.0));
        if !has_suites && self.groups.is_empty() {
            return Ok(base.clone());
        }
        let mut provider = (**base).clone();
        if has_suites {
            let of = |version: Version, chosen: &Option<Vec<u16>>| {
                if !self.allows(version) {
                    // A suite for a version that is not offered would mislead the peer.
                    return Vec::new();
                }
                let number = version.number();
                let all = base
                    .cipher_suites
                    .iter()
                    .filter(move |suite| suite.version().version == number);
                match chosen {
                    None => all.copied().collect::<Vec<_>>(),
                    Some(numbers) => {
                        let find =
                            |number: &u16| all.clone().find(|suite| number_of(suite) == *number);
                        numbers.iter().filter_map(find).copied().collect()
                    }
                }
            };
            provider.cipher_suites = of(Version::Tls13, &self.suites13);
            provider
                .cipher_suites
                .extend(of(Version::Tls12, &self.suites12));
            if provider.cipher_suites.is_empty() {
                return Err(OfferError::NoSuite);
            }
        }
        if !self.groups.is_empty() {
            let find = |number: &u16| group(NamedGroup::from(*number));
            provider.kx_groups = self.groups.iter().filter_map(find).collect();
            if provider.kx_groups.is_empty() {
                return Err(OfferError::NoGroup);
            }
        }
        Ok(Arc::new(provider))
    }

    fn versions(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Vec<&'static SupportedProtocolVersion>, OfferError> {
        let allowed: Vec<_> = VERSIONS.iter().filter(|row| self.allows(row.0)).collect();
        if allowed.is_empty() {
            return Err(OfferError::NoVersion);
        }
        let has_suite = |row: &&&(Version, &'static SupportedProtocolVersion)| {
            let mut suites = provider.cipher_suites.iter();
            suites.any(|suite| suite.version().version == row.1.version)
        };
        let versions: Vec<_> = allowed.iter().filter(has_suite).map(|row| row.1).collect();
        if versions.is_empty() {
            Err(OfferError::NoSuite)
        } else {
            Ok(versions)
        }
    }
}

/// The SHA-1 of bytes, as fingerprint of certificates.
#[must_use]
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    let digest = rustls_digest(bytes);
    let mut out = [0; 20];
    out.copy_from_slice(digest.as_ref());
    out
}

fn rustls_digest(bytes: &[u8]) -> ::aws_lc_rs::digest::Digest {
    ::aws_lc_rs::digest::digest(&::aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

fn number_of(suite: &SupportedCipherSuite) -> u16 {
    u16::from(suite.suite())
}

fn group(name: NamedGroup) -> Option<&'static dyn SupportedKxGroup> {
    let all = aws_lc_rs::ALL_KX_GROUPS;
    all.iter().find(|group| group.name() == name).copied()
}

/// Whether a cipher suite is supported, by its IANA number.
#[must_use]
pub fn has_suite(number: u16) -> bool {
    let suite = CipherSuite::from(number);
    let all = aws_lc_rs::ALL_CIPHER_SUITES;
    all.iter().any(|known| known.suite() == suite)
}

/// Whether a key exchange group is supported, by its IANA number.
#[must_use]
pub fn has_group(number: u16) -> bool {
    group(NamedGroup::from(number)).is_some()
}

/// The suites and groups of a connection without configuration.
fn base_provider() -> &'static Arc<CryptoProvider> {
    static BASE: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    BASE.get_or_init(|| {
        let mut provider = aws_lc_rs::default_provider();
        // Among equals, the suite with the shorter key comes first: it costs less and is not broken
        // either.
        provider.cipher_suites.sort_by_key(|suite| {
            let is_aes128 = names::cipher_bits(number_of(suite)) == Some(128);
            let is_tls13 = suite.version().version == rustls::ProtocolVersion::TLSv1_3;
            (!is_tls13, !is_aes128)
        });
        Arc::new(provider)
    })
}
