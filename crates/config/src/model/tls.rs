//! TLS of `bind` and `server` lines (manual §5.1, §5.2) and of `global` (§3): what the files ask for, in IANA's numbers. The
//! files that are named here are read by the engine.

use super::{CertificateSource, CrtList};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A version of TLS that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl TlsVersion {
    /// Every version, from the lowest.
    pub const ALL: [TlsVersion; 2] = [TlsVersion::Tls12, TlsVersion::Tls13];

    /// Its number in handshakes.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            TlsVersion::Tls12 => 0x0303,
            TlsVersion::Tls13 => 0x0304,
        }
    }
}

/// What is written about versions. Those below TLS 1.2 can be named and are not served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsVersions {
    /// The number of `ssl-min-ver`.
    pub min: Option<u16>,
    /// The number of `ssl-max-ver`.
    pub max: Option<u16>,
    /// Numbers of what `no-tlsv12` and its kin switch off. They count where neither of the others is set.
    pub off: Vec<u16>,
}

impl TlsVersions {
    /// Whether a version may be used.
    #[must_use]
    pub fn allows(&self, version: TlsVersion) -> bool {
        let number = version.number();
        match (self.min, self.max) {
            (None, None) => !self.off.contains(&number),
            (min, max) => {
                min.is_none_or(|min| min <= number) && max.is_none_or(|max| number <= max)
            }
        }
    }

    /// The lowest and the highest version that may be used. None only where an alert was given.
    #[must_use]
    pub fn range(&self) -> Option<(TlsVersion, TlsVersion)> {
        let mut allowed = TlsVersion::ALL
            .into_iter()
            .filter(|version| self.allows(*version));
        let lowest = allowed.next()?;
        Some((lowest, allowed.next_back().unwrap_or(lowest)))
    }
}

/// `verify`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVerify {
    /// The other side is not asked, or whatever it shows is taken.
    None,
    /// A client may show a certificate, which must then be good.
    Optional,
    /// The other side must show a good certificate.
    Required,
}

/// Where authorities come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaFile {
    /// `@system-ca`: the system's.
    System,
    /// A file, or a directory of files named `*.pem`, `*.crt`, `*.cer` and `*.crl`.
    Path(PathBuf),
}

/// What may be said of TLS on `bind` and `server` lines, in the lists of certificates, and by `ssl-default-bind-*` and
/// `ssl-default-server-*`, which are merged into it. None is what the engine does by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `ssl-min-ver`, `ssl-max-ver`, `no-tlsv12`, `force-tlsv13` …
    pub versions: TlsVersions,
    /// Suites of TLS 1.2, the preferred one first.
    pub ciphers: Option<Vec<u16>>,
    /// Suites of TLS 1.3, the preferred one first.
    pub ciphersuites: Option<Vec<u16>>,
    /// `curves`, or `ecdhe` where there are none: named groups (RFC 8446 §4.2.7), the preferred one first.
    pub curves: Option<Vec<u16>>,
    /// Signature schemes (RFC 8446 §4.2.3), the preferred one first.
    pub sigalgs: Option<Vec<u16>>,
    /// Those of client certificates.
    pub client_sigalgs: Option<Vec<u16>>,
    /// The protocols of ALPN in order; none in it is `no-alpn`. None: see [`BindTls::alpn`].
    pub alpn: Option<Vec<Vec<u8>>>,
    /// `tls-tickets` and `no-tls-tickets`.
    pub tickets: Option<bool>,
    /// `verify`
    pub verify: Option<TlsVerify>,
    /// The authorities that certify the other side.
    pub ca_file: Option<CaFile>,
    /// More of them, which clients are not told.
    pub ca_verify_file: Option<CaFile>,
    /// Revoked certificates.
    pub crl_file: Option<PathBuf>,
    /// Clients are not told the authorities.
    pub no_ca_names: bool,
    /// Early data.
    pub allow_0rtt: bool,
}

/// Errors of the verification of a client's certificate that do not end a handshake, by OpenSSL's numbers (`X509_V_ERR_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredErrors {
    /// Every one.
    pub all: bool,
    /// Those.
    pub numbers: Vec<u8>,
}

impl IgnoredErrors {
    /// Whether an error is ignored.
    #[must_use]
    pub fn contains(&self, number: u8) -> bool {
        self.all || self.numbers.contains(&number)
    }
}

/// `bind … ssl`
#[derive(Clone, Debug, Default)]
pub struct BindTls {
    /// What a certificate's own options ([`CertificateSource::options`]) replace.
    pub options: TlsOptions,
    /// `crt`, `default-crt`, `crt-list` and `ssl-f-use` in the order of the line, directories and bundles expanded.
    pub certificates: Vec<Arc<CertificateSource>>,
    /// The lists of `crt-list`, and the directories of `crt`.
    pub crt_lists: Vec<Arc<CrtList>>,
    /// Names without a certificate are refused; there is no default certificate.
    pub strict_sni: bool,
    /// The client's order of suites counts.
    pub prefer_client_ciphers: bool,
    /// `generate-certificates`: names that no certificate has get one of their own.
    pub generates: bool,
    /// `ca-sign-file`: the authority that signs those, with its key.
    pub ca_sign_file: Option<PathBuf>,
    /// Keys of session tickets, a line of base64 each.
    pub tls_ticket_keys: Option<PathBuf>,
    /// Errors in the certificates of the issuers of the client's certificate.
    pub ca_ignore_err: IgnoredErrors,
    /// Errors of the client's certificate itself.
    pub crt_ignore_err: IgnoredErrors,
    /// `bind ':443' at [file:line]`, for messages at start.
    pub title: String,
}

impl BindTls {
    /// What ALPN offers where nothing is said, on a frontend in HTTP mode (manual §5.1 `alpn`).
    pub const HTTP_ALPN: [&'static [u8]; 2] = [b"h2", b"http/1.1"];

    /// The protocols of ALPN that `options` come to on this line, in order.
    #[must_use]
    pub fn alpn(options: &TlsOptions, is_http: bool) -> Vec<&[u8]> {
        match &options.alpn {
            Some(protocols) => protocols.iter().map(Vec::as_slice).collect(),
            None if is_http => BindTls::HTTP_ALPN.to_vec(),
            None => Vec::new(),
        }
    }
}

/// TLS of a `server` line, over what `default-server` says.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// Connections for traffic use TLS (`ssl`). Without it only health checks do ([`ServerTls::check`]).
    pub ssl: bool,
    /// `no-ssl` was written.
    pub is_refused: bool,
    /// `no-ssl` stands behind an `ssl`: a command may turn it on (`set server … ssl on`).
    pub may_turn_on: bool,
    /// Shared with `bind`.
    pub options: TlsOptions,
    /// The name that is asked for, evaluated for each connection.
    pub sni: Option<sample::Expr>,
    /// Where there is no `sni`: HTTP connections ask for the request's host without its port. Only for these, not for TCP.
    pub sni_auto: bool,
    /// The name that the certificate must have where no name is asked for.
    pub verifyhost: Option<String>,
    /// The certificate that is shown to the server.
    pub certificate: Option<Arc<CertificateSource>>,
    /// Sessions are resumed.
    pub reuses_sessions: bool,
    /// TLS of health checks.
    pub check: CheckTls,
}

impl Default for ServerTls {
    fn default() -> Self {
        ServerTls {
            ssl: false,
            is_refused: false,
            may_turn_on: false,
            options: TlsOptions::default(),
            sni: None,
            sni_auto: true,
            verifyhost: None,
            certificate: None,
            reuses_sessions: true,
            check: CheckTls::default(),
        }
    }
}

impl ServerTls {
    /// Whether the server's certificate is verified: it is, unless `verify none` or `ssl-server-verify none` says otherwise.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.options.verify != Some(TlsVerify::None)
    }
}

/// TLS of a server's health checks.
#[derive(Clone, Debug, Default)]
pub struct CheckTls {
    /// `check-ssl` and `no-check-ssl`. None: as the traffic, unless the check has an address or a port of its own.
    pub ssl: Option<bool>,
    /// `check-sni`
    pub sni: Option<String>,
    /// `no-check-sni-auto` was written.
    pub no_sni_auto: bool,
    /// `check-alpn`; none is the server's.
    pub alpn: Option<Vec<Vec<u8>>>,
}

/// `ocsp-update.…`: when the status of certificates is asked for, and how (manual §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspUpdates {
    /// `ocsp-update.mode`: it is asked for where nothing else is said.
    pub is_default: bool,
    /// `ocsp-update.disable`: it is not asked for at all by itself.
    pub is_off: bool,
    /// `ocsp-update.mindelay`: seconds until a status that is there is asked for again, at least.
    pub delay_min_s: u32,
    /// `ocsp-update.maxdelay`: the same, at most.
    pub delay_max_s: u32,
    /// `ocsp-update.httpproxy`: requests go through this proxy.
    pub http_proxy: Option<net::Addr>,
}

impl Default for OcspUpdates {
    fn default() -> Self {
        OcspUpdates {
            is_default: false,
            is_off: false,
            // As HAProxy.
            delay_min_s: 300,
            delay_max_s: 3600,
            http_proxy: None,
        }
    }
}

impl OcspUpdates {
    /// Whether the status of a certificate is asked for, of which this is said.
    #[must_use]
    pub fn are_on(&self, own: Option<bool>) -> bool {
        own.unwrap_or(self.is_default)
    }
}

/// `global`: what is said of TLS for all lines. Defaults of options are merged into the lines.
#[derive(Clone, Debug)]
pub struct TlsGlobal {
    /// `ca-base`: where relative names of authorities count from.
    pub ca_base: Option<PathBuf>,
    /// `crt-base`: the same of certificates.
    pub crt_base: Option<PathBuf>,
    /// The certificates of the sections `crt-store` that tokens are verified by.
    pub for_jwt: Vec<Arc<CertificateSource>>,
    /// `ocsp-update.…`
    pub ocsp: OcspUpdates,
    /// `ssl-load-extra-del-ext`: the certificate's `.crt` is taken off before the names of its other files are made.
    pub takes_off_crt: bool,
    /// `ssl-skip-self-issued-ca`: an authority that signed itself is not sent.
    pub skips_self_issued_ca: bool,
    /// `issuers-chain-path`: the directory of issuers that complete chains.
    pub issuers_chain_path: Option<PathBuf>,
    /// `maxsslconn`: TLS connections of the whole process.
    pub maxsslconn: Option<u32>,
    /// `maxsslrate`: handshakes a second of the whole process.
    pub maxsslrate: Option<u32>,
    /// `tune.ssl.cachesize`: sessions that are kept; 0 is none.
    pub cache_sessions: u32,
    /// `tune.ssl.ssl-ctx-cache-size`: certificates that were made and are kept, of each line; 0 is none.
    pub cache_made: u32,
    /// `tune.ssl.lifetime`: how long a session may be resumed.
    pub lifetime: Duration,
    /// `tune.ssl.hard-maxrecord`: bytes of a record; none is the largest of the protocol.
    pub hard_maxrecord_bytes: Option<u32>,
    /// `tune.ssl.maxrecord`: payload bytes of a record at the beginning of a transfer; none is no limit of its own.
    pub maxrecord_bytes: Option<u32>,
    /// `tune.idletimer`: a pause after which a transfer begins anew.
    pub idletimer: Duration,
    /// `tune.ssl.capture-buffer-size`: bytes of a client hello that are kept for fetches; 0 is none.
    pub capture_bytes: u32,
}

impl Default for TlsGlobal {
    fn default() -> Self {
        TlsGlobal {
            ca_base: None,
            crt_base: None,
            takes_off_crt: false,
            ocsp: OcspUpdates::default(),
            for_jwt: Vec::new(),
            skips_self_issued_ca: false,
            issuers_chain_path: None,
            maxsslconn: None,
            maxsslrate: None,
            // As HAProxy.
            cache_sessions: 20_000,
            cache_made: 1000,
            lifetime: Duration::from_secs(300),
            hard_maxrecord_bytes: None,
            maxrecord_bytes: None,
            idletimer: Duration::from_secs(1),
            capture_bytes: 0,
        }
    }
}
