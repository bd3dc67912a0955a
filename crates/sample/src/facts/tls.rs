//! Facts about the TLS of a connection. The engine fills them; expressions and logs read them.

use std::fmt;
use std::sync::Arc;

use crate::sniff::Sniffed;
use crate::sniff::client_hello::{
    cipher_suites_of, extension, extensions_of, kind, list, types, version_of,
};

/// Facts of a TLS connection, to a client or to a server. Values that the handshake has not
/// determined yet are zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// The protocol version in handshake encoding (`0x0304`).
    pub version: u16,
    /// The registered number of the cipher suite.
    pub cipher: u16,
    /// The named group of the key exchange.
    pub group: u16,
    /// The protocol that ALPN selected; empty for none.
    pub alpn: Box<[u8]>,
    /// The server name that the client requested.
    pub sni: Option<Box<[u8]>>,
    /// A session was resumed.
    pub resumed: bool,
    /// Early data arrived and the handshake is not complete yet.
    pub has_early: bool,
    /// Early data arrived.
    pub received_early: bool,
    /// The session id; empty for none.
    pub session_id: Box<[u8]>,
    /// The connection's id (RFC 5929 §3); empty if the TLS library does not provide it.
    pub unique_id: Box<[u8]>,
    /// The handshake has failed: there is no verification result, and the other values are what was
    /// known before.
    pub has_failed: bool,
    /// The number of the last error; 0 for none.
    pub error: u32,
    /// The text of the last error.
    pub error_text: Option<Box<str>>,
    /// The certificate that this side presented (DER).
    pub own: Option<Arc<[u8]>>,
    /// The name of its file or of its entry in a store.
    pub own_name: Option<Arc<str>>,
    /// The certificates that the other side presented (DER), its own first.
    pub peer: Arc<[Box<[u8]>]>,
    /// The root authority of the verified chain (DER).
    pub root: Option<Arc<[u8]>>,
    /// The verification result, as OpenSSL's number (`X509_V_*`); 0 is success.
    pub verify: u8,
    /// The first error of the certificate itself, with the same numbers.
    pub crt_error: u8,
    /// The first error of an authority above it.
    pub ca_error: u8,
    /// The depth of that authority.
    pub ca_error_depth: u8,
    /// The captured parts of the client's hello (`tune.ssl.capture-buffer-size`).
    pub hello: Option<Box<HelloFacts>>,
    /// Its secrets, if they are kept.
    pub secrets: Option<Box<TlsSecrets>>,
}

/// The secrets of a connection, which decrypt its captured traffic. Those that it does not have are
/// empty. Secrets of TLS 1.3 are lowercase hexadecimal, as in a key log file, and kept with
/// `tune.ssl.keylog` only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsSecrets {
    /// The random value of the client's hello.
    pub client_random: Box<[u8]>,
    /// The random value of the server's hello.
    pub server_random: Box<[u8]>,
    /// The master secret of TLS 1.2.
    pub session_key: Box<[u8]>,
    /// `CLIENT_EARLY_TRAFFIC_SECRET`
    pub client_early_traffic: Box<[u8]>,
    /// `CLIENT_HANDSHAKE_TRAFFIC_SECRET`
    pub client_handshake_traffic: Box<[u8]>,
    /// `SERVER_HANDSHAKE_TRAFFIC_SECRET`
    pub server_handshake_traffic: Box<[u8]>,
    /// `CLIENT_TRAFFIC_SECRET_0`
    pub client_traffic: Box<[u8]>,
    /// `SERVER_TRAFFIC_SECRET_0`
    pub server_traffic: Box<[u8]>,
    /// `EXPORTER_SECRET`
    pub exporter: Box<[u8]>,
}

impl fmt::Debug for TlsSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSecrets").finish_non_exhaustive()
    }
}

/// Captured parts of a client's hello: lists as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelloFacts {
    /// The requested version.
    pub version: u16,
    /// Cipher suites.
    pub ciphers: Box<[u8]>,
    /// The hash of all cipher suites, including those that did not fit.
    pub ciphers_xxh: u64,
    /// The types of the extensions.
    pub extensions: Box<[u8]>,
    /// Named groups.
    pub groups: Box<[u8]>,
    /// Point formats.
    pub formats: Box<[u8]>,
    /// Supported versions.
    pub versions: Box<[u8]>,
    /// Signature algorithms.
    pub sigalgs: Box<[u8]>,
}

impl TlsFacts {
    /// Whether the handshake has determined a version and a cipher suite.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.version != 0 && self.cipher != 0
    }

    /// The name of the version in OpenSSL.
    #[must_use]
    pub fn version_name(&self) -> Option<&'static str> {
        crate::fetch::tls::version(self.version)
    }

    /// The name of the cipher suite in OpenSSL.
    #[must_use]
    pub fn cipher_name(&self) -> Option<&'static str> {
        crate::fetch::tls::suite(self.cipher)
    }

    /// The certificate of the other side, in DER.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.peer.first().map(|der| &**der)
    }
}

impl HelloFacts {
    /// The captured parts of a hello, at most `bytes_max` bytes in all. `message` is the handshake
    /// message, without the headers of its records. None if it is not a hello.
    #[must_use]
    pub fn of(message: &[u8], bytes_max: usize) -> Option<HelloFacts> {
        let Sniffed::Found(ciphers) = cipher_suites_of(message) else {
            return None;
        };
        let (major, minor) = version_of(message)?;
        let all = match extensions_of(message) {
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
        // These lists have a one-byte length (RFC 8422 §5.1.2 and RFC 8446 §4.2.1).
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
