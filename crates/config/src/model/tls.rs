//! TLS of `bind` and `server` lines (manual §5.1, §5.2) and of `global` (§3): the settings in the
//! files, with IANA's numbers. The engine reads the files that are named here.

use super::{CertificateSource, CrtList};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An implemented TLS version.
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

/// The configured versions. Those below TLS 1.2 can be named but are not implemented.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsVersions {
    /// The number of `ssl-min-ver`.
    pub min: Option<u16>,
    /// The number of `ssl-max-ver`.
    pub max: Option<u16>,
    /// Numbers of the versions that `no-tlsv12` and related options disable. They apply if neither
    /// of the other fields is set.
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

    /// The lowest and the highest version that may be used. None only after an alert.
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
    /// No certificate is requested, or any certificate is accepted.
    None,
    /// A client may present a certificate, which must be valid.
    Optional,
    /// The other side must present a valid certificate.
    Required,
}

/// The source of authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaFile {
    /// `@system-ca`: those of the system.
    System,
    /// A file, or a directory of files named `*.pem`, `*.crt`, `*.cer` and `*.crl`.
    Path(PathBuf),
}

/// TLS options of `bind` and `server` lines and of certificate lists, with those of
/// `ssl-default-bind-*` and `ssl-default-server-*` merged. None is the engine's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `ssl-min-ver`, `ssl-max-ver`, `no-tlsv12`, `force-tlsv13` …
    pub versions: TlsVersions,
    /// Suites of TLS 1.2 in order of preference.
    pub ciphers: Option<Vec<u16>>,
    /// Suites of TLS 1.3 in order of preference.
    pub ciphersuites: Option<Vec<u16>>,
    /// `curves`, or `ecdhe` without it: named groups (RFC 8446 §4.2.7) in order of preference.
    pub curves: Option<Vec<u16>>,
    /// Signature schemes (RFC 8446 §4.2.3) in order of preference.
    pub sigalgs: Option<Vec<u16>>,
    /// Signature schemes for client certificates.
    pub client_sigalgs: Option<Vec<u16>>,
    /// The ALPN protocols in order; empty for `no-alpn`. None: see [`BindTls::alpn`].
    pub alpn: Option<Vec<Vec<u8>>>,
    /// `tls-tickets` and `no-tls-tickets`.
    pub tickets: Option<bool>,
    /// `verify`
    pub verify: Option<TlsVerify>,
    /// The authorities that verify the other side.
    pub ca_file: Option<CaFile>,
    /// Further authorities, which are not sent to clients.
    pub ca_verify_file: Option<CaFile>,
    /// Revoked certificates.
    pub crl_file: Option<PathBuf>,
    /// The authorities are not sent to clients.
    pub no_ca_names: bool,
    /// Early data.
    pub allow_0rtt: bool,
}

/// Verification errors of a client's certificate that do not end a handshake, as OpenSSL's numbers
/// (`X509_V_ERR_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredErrors {
    /// All errors.
    pub all: bool,
    /// These errors.
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
    /// The options for certificates without options of their own ([`CertificateSource::options`]).
    pub options: TlsOptions,
    /// `crt`, `default-crt`, `crt-list` and `ssl-f-use` in the order of the line, directories and
    /// bundles expanded.
    pub certificates: Vec<Arc<CertificateSource>>,
    /// The lists of `crt-list`, and the directories of `crt`.
    pub crt_lists: Vec<Arc<CrtList>>,
    /// Unknown server names are refused; there is no default certificate.
    pub strict_sni: bool,
    /// The client's order of suites has priority.
    pub prefer_client_ciphers: bool,
    /// `generate-certificates`: server names without a certificate get a generated one.
    pub generates: bool,
    /// `ca-sign-file`: the authority that signs generated certificates, with its key.
    pub ca_sign_file: Option<PathBuf>,
    /// `ca-sign-pass`: the passphrase of that authority's key.
    pub ca_sign_pass: Option<Passphrase>,
    /// Keys of session tickets, one line of base64 each.
    pub tls_ticket_keys: Option<PathBuf>,
    /// Ignored errors in the certificates of the issuers of the client's certificate.
    pub ca_ignore_err: IgnoredErrors,
    /// Ignored errors in the client's certificate itself.
    pub crt_ignore_err: IgnoredErrors,
    /// `bind ':443' at [file:line]`, for messages at the start.
    pub title: String,
}

impl BindTls {
    /// The default ALPN protocols of a frontend in mode HTTP (manual §5.1 `alpn`).
    pub const HTTP_ALPN: [&'static [u8]; 2] = [b"h2", b"http/1.1"];

    /// The default ALPN protocol of a line with QUIC.
    pub const QUIC_ALPN: [&'static [u8]; 1] = [b"h3"];

    /// The ALPN protocols of a line with `options`, in order.
    #[must_use]
    pub fn alpn(options: &TlsOptions, is_http: bool, is_quic: bool) -> Vec<&[u8]> {
        match &options.alpn {
            Some(protocols) => protocols.iter().map(Vec::as_slice).collect(),
            None if is_quic => BindTls::QUIC_ALPN.to_vec(),
            None if is_http => BindTls::HTTP_ALPN.to_vec(),
            None => Vec::new(),
        }
    }
}

/// TLS of a `server` line, applied to the settings of `default-server`.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// Connections for traffic use TLS (`ssl`). Without it, only health checks may
    /// ([`ServerTls::check`]).
    pub ssl: bool,
    /// They are those of QUIC.
    pub is_quic: bool,
    /// `no-ssl` was written.
    pub is_refused: bool,
    /// `no-ssl` follows an `ssl`: a command may enable TLS (`set server … ssl on`).
    pub may_turn_on: bool,
    /// Shared with `bind`.
    pub options: TlsOptions,
    /// The requested server name, evaluated for each connection.
    pub sni: Option<sample::Expr>,
    /// Without `sni`, HTTP connections request the host of the request without its port. This does
    /// not apply to TCP.
    pub sni_auto: bool,
    /// The name that the certificate must have if no server name is requested.
    pub verifyhost: Option<String>,
    /// The certificate that is presented to the server.
    pub certificate: Option<Arc<CertificateSource>>,
    /// Sessions are resumed.
    pub reuses_sessions: bool,
    /// TLS of health checks.
    pub check: CheckTls,
}

impl ServerTls {
    /// The protocols of a server over QUIC for connections over TCP, which are made where QUIC does not
    /// get through (`alpn h3,h2`); empty: none are made.
    pub fn alpn_of_tcp(&self) -> Vec<&[u8]> {
        let protocols = self.options.alpn.iter().flatten().map(Vec::as_slice);
        let of_tcp = |protocol: &&[u8]| matches!(*protocol, b"h2" | b"http/1.1");
        protocols
            .filter(|one| self.is_quic && of_tcp(one))
            .collect()
    }
}

impl Default for ServerTls {
    fn default() -> Self {
        ServerTls {
            ssl: false,
            is_quic: false,
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
    /// Whether the server's certificate is verified. This is the default, unless `verify none` or
    /// `ssl-server-verify none` is set.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.options.verify != Some(TlsVerify::None)
    }
}

/// TLS of a server's health checks.
#[derive(Clone, Debug, Default)]
pub struct CheckTls {
    /// `check-ssl` and `no-check-ssl`. None: like the traffic, unless the check has an address or a
    /// port of its own.
    pub ssl: Option<bool>,
    /// `check-sni`
    pub sni: Option<String>,
    /// `no-check-sni-auto` was written.
    pub no_sni_auto: bool,
    /// `check-alpn`; None: the server's.
    pub alpn: Option<Vec<Vec<u8>>>,
}

/// `ocsp-update.…`: when and how the status of certificates is requested (manual §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspUpdates {
    /// `ocsp-update.mode`: the default for certificates without a setting.
    pub is_default: bool,
    /// `ocsp-update.disable`: no automatic requests.
    pub is_off: bool,
    /// `ocsp-update.mindelay`: the least seconds before an existing status is requested again.
    pub delay_min_s: u32,
    /// `ocsp-update.maxdelay`: the most seconds before an existing status is requested again.
    pub delay_max_s: u32,
    /// `ocsp-update.httpproxy`: requests go through this proxy.
    pub http_proxy: Option<net::Addr>,
}

impl Default for OcspUpdates {
    fn default() -> Self {
        OcspUpdates {
            is_default: false,
            is_off: false,
            // HAProxy's defaults.
            delay_min_s: 300,
            delay_max_s: 3600,
            http_proxy: None,
        }
    }
}

impl OcspUpdates {
    /// Whether the status of a certificate with this setting is requested.
    #[must_use]
    pub fn are_on(&self, own: Option<bool>) -> bool {
        own.unwrap_or(self.is_default)
    }
}

/// TLS settings in `global` for all lines. Defaults of options are merged into the lines.
#[derive(Clone, Debug)]
pub struct TlsGlobal {
    /// `ca-base`: the base directory of relative names of authorities.
    pub ca_base: Option<PathBuf>,
    /// `crt-base`: the base directory of relative names of certificates.
    pub crt_base: Option<PathBuf>,
    /// The certificates of the sections `crt-store` that verify tokens.
    pub for_jwt: Vec<Arc<CertificateSource>>,
    /// `ocsp-update.…`
    pub ocsp: OcspUpdates,
    /// `ssl-load-extra-del-ext`: the certificate's `.crt` is removed before the names of its other
    /// files are built.
    pub takes_off_crt: bool,
    /// `ssl-skip-self-issued-ca`: a self-signed authority is not sent.
    pub skips_self_issued_ca: bool,
    /// `issuers-chain-path`: the directory of issuers that complete chains.
    pub issuers_chain_path: Option<PathBuf>,
    /// `maxsslconn`: most TLS connections of the whole process.
    pub maxsslconn: Option<u32>,
    /// `maxsslrate`: most handshakes per second of the whole process.
    pub maxsslrate: Option<u32>,
    /// `tune.ssl.cachesize`: blocks of cached sessions; 0 means none.
    pub cache_blocks: u32,
    /// `tune.ssl.ssl-ctx-cache-size`: most generated certificates that each line caches; 0 means
    /// none.
    pub cache_made: u32,
    /// `tune.ssl.lifetime`: the time during which a session may be resumed.
    pub lifetime: Duration,
    /// `tune.ssl.hard-maxrecord`: most bytes of a record; None: the maximum of the protocol.
    pub hard_maxrecord_bytes: Option<u32>,
    /// `tune.ssl.maxrecord`: most payload bytes of a record at the beginning of a transfer; None:
    /// no separate limit.
    pub maxrecord_bytes: Option<u32>,
    /// `tune.idletimer`: after a pause of this length, a transfer counts as new.
    pub idletimer: Duration,
    /// `tune.ssl.capture-buffer-size`: bytes of a client hello that are kept for fetches; 0 means
    /// none.
    pub capture_bytes: u32,
    /// `tune.ssl.keylog`: the secrets of sessions are kept for fetches.
    pub keylog: bool,
    /// `ssl-passphrase-cmd`: the program that prints the passphrases of keys.
    pub passphrase_cmd: Option<PassphraseCommand>,
}

/// The passphrase of a key. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(pub Vec<u8>);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passphrase").finish_non_exhaustive()
    }
}

/// A program that prints the passphrase of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassphraseCommand {
    /// The program.
    pub program: OsString,
    /// The arguments that follow the name of the key's file.
    pub arguments: Vec<OsString>,
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
            // HAProxy's defaults.
            cache_blocks: 20_000,
            cache_made: 1000,
            lifetime: Duration::from_secs(300),
            hard_maxrecord_bytes: None,
            maxrecord_bytes: None,
            idletimer: Duration::from_secs(1),
            capture_bytes: 0,
            keylog: false,
            passphrase_cmd: None,
        }
    }
}
