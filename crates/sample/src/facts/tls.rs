//! What TLS of a connection is known to be: filled by the engine, read by expressions and logs. The secrets of a connection are
//! not kept, and so the fetches of them do not exist.

use std::sync::Arc;

use crate::sniff::Sniffed;
use crate::sniff::client_hello::{
    cipher_suites, extension, extensions, kind, list, types, version,
};

/// Facts of a TLS connection, of a client or to a server. One whose handshake has not come so far has zeros and nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// The version in handshakes (`0x0304`).
    pub version: u16,
    /// The suite's registered number.
    pub cipher: u16,
    /// The named group of the key exchange.
    pub group: u16,
    /// The protocol that ALPN came to; empty for none.
    pub alpn: Box<[u8]>,
    /// The name that was asked for.
    pub sni: Option<Box<[u8]>>,
    /// A session was resumed.
    pub resumed: bool,
    /// Early data came and the handshake is not done yet.
    pub has_early: bool,
    /// Early data came at all.
    pub received_early: bool,
    /// The session's id, empty for none.
    pub session_id: Box<[u8]>,
    /// The connection's id (RFC 5929 §3), empty where the TLS library does not tell it.
    pub unique_id: Box<[u8]>,
    /// The number of the last error, 0 for none.
    pub error: u32,
    /// Its text.
    pub error_text: Option<Box<str>>,
    /// The certificate that this side showed (DER).
    pub own: Option<Arc<[u8]>>,
    /// The name of its file or of its place in a store.
    pub own_name: Option<Arc<str>>,
    /// The certificates that the other side showed (DER), its own first.
    pub peer: Arc<[Box<[u8]>]>,
    /// The authority that they were traced to (DER).
    pub root: Option<Arc<[u8]>>,
    /// What the verification came to, by OpenSSL's numbers (`X509_V_*`); 0 is good.
    pub verify: u8,
    /// The first error of the certificate itself, by the same numbers.
    pub crt_error: u8,
    /// The first error of those above it.
    pub ca_error: u8,
    /// How far above it.
    pub ca_error_depth: u8,
    /// What is kept of the client's hello (`tune.ssl.capture-buffer-size`).
    pub hello: Option<Box<HelloFacts>>,
}

/// What is kept of a client's hello: lists as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelloFacts {
    /// The version that it asks for.
    pub version: u16,
    /// Cipher suites.
    pub ciphers: Box<[u8]>,
    /// The hash of all of them, also of those that are not kept.
    pub ciphers_xxh: u64,
    /// The types of its extensions.
    pub extensions: Box<[u8]>,
    /// Groups.
    pub groups: Box<[u8]>,
    /// Formats of points.
    pub formats: Box<[u8]>,
    /// Versions.
    pub versions: Box<[u8]>,
    /// Signature algorithms.
    pub sigalgs: Box<[u8]>,
}

impl TlsFacts {
    /// Whether the handshake came as far as a version and a suite.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.version != 0 && self.cipher != 0
    }

    /// The name of the version, as OpenSSL writes it.
    #[must_use]
    pub fn version_name(&self) -> Option<&'static str> {
        crate::fetch::tls::version(self.version)
    }

    /// The name of the cipher suite, as OpenSSL writes it.
    #[must_use]
    pub fn cipher_name(&self) -> Option<&'static str> {
        crate::fetch::tls::suite(self.cipher)
    }

    /// The certificate of the other side, DER.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.peer.first().map(|der| &**der)
    }
}

impl HelloFacts {
    /// What is kept of a hello, `bytes_max` in all. `records` are the first bytes of
    /// the connection; the hello must be in one record.
    #[must_use]
    pub fn of(records: &[u8], bytes_max: usize) -> Option<HelloFacts> {
        let Sniffed::Found(ciphers) = cipher_suites(records) else {
            return None;
        };
        let Sniffed::Found((major, minor)) = version(records, records.len()) else {
            return None;
        };
        let all = match extensions(records) {
            Sniffed::Found(all) => all,
            Sniffed::More | Sniffed::No => b"",
        };
        let mut left = bytes_max;
        let mut keep = |bytes: &[u8], unit: usize| -> Box<[u8]> {
            let kept = bytes.len().min(left - left % unit);
            left -= kept;
            bytes[..kept].into()
        };
        let listed = |wanted: u16| {
            let content = extension(all, wanted)?;
            list(content, 1)
        };
        // RFC 8422 §5.1.2 and RFC 8446 §4.2.1: the length is one byte.
        let short = |wanted: u16| {
            let (length, rest) = extension(all, wanted)?.split_first()?;
            rest.get(..usize::from(*length))
        };
        Some(HelloFacts {
            version: u16::from_be_bytes([major, minor]),
            ciphers: keep(ciphers, 1),
            ciphers_xxh: xxhash_rust::xxh64::xxh64(ciphers, 0),
            extensions: keep(&types(all).flatten().collect::<Vec<u8>>(), 2),
            groups: keep(listed(kind::GROUPS).unwrap_or_default(), 1),
            formats: keep(short(kind::POINT_FORMATS).unwrap_or_default(), 1),
            versions: keep(short(kind::VERSIONS).unwrap_or_default(), 1),
            sigalgs: keep(listed(kind::SIGNATURES).unwrap_or_default(), 1),
        })
    }
}
