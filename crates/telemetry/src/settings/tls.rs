//! TLS options for connections to a receiver.

use std::fmt;
use std::time::Duration;

use super::read::Options;

/// The TLS options of an exporter.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Whether the receiver's certificate is checked; off with `ssl_insecure_skip_verify`.
    pub verify: bool,
    /// Trusted authorities; by default the system's.
    pub ca: Option<Pem>,
    /// Our certificate with its chain.
    pub certificate: Option<Pem>,
    /// Our key.
    pub key: Option<Pem>,
    /// The oldest version.
    pub version_min: TlsVersion,
    /// The newest version.
    pub version_max: TlsVersion,
    /// Options that the proxy's language does not have.
    pub more: TlsMore,
}

/// TLS options that only a collector has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsMore {
    /// Whether the system's authorities are trusted in addition to those of `ca`.
    pub system_authorities: bool,
    /// The name that the receiver's certificate must have, if not that of the endpoint.
    pub server_name: Option<String>,
    /// Permitted suites of TLS 1.2, by IANA's names; empty: all. Those of TLS 1.3 are always
    /// permitted.
    pub suites: Vec<String>,
    /// Key exchanges, the preferred one first, by Go's names (`X25519MLKEM768`, `X25519`, `P256`,
    /// `P384`); empty: the default.
    pub key_exchanges: Vec<String>,
    /// Our certificate and key are reread after this time; none: never.
    pub reload_every: Option<Duration>,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            verify: true,
            ca: None,
            certificate: None,
            key: None,
            version_min: TlsVersion::V12,
            version_max: TlsVersion::V13,
            more: TlsMore::default(),
        }
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2
    V12,
    /// 1.3
    V13,
}

/// Certificates or a key in PEM form.
#[derive(Clone, PartialEq)]
pub enum Pem {
    /// In a file.
    Path(String),
    /// In the settings.
    Text(String),
}

impl fmt::Debug for Pem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::Path(path) => out.debug_tuple("Path").field(path).finish(),
            // The text may contain a key.
            Pem::Text(_) => out.write_str("Text"),
        }
    }
}

impl Tls {
    /// The options of `otlp_http`.
    pub(super) fn http(options: &Options<'_>) -> Tls {
        // The oldest supported version is 1.2, which an older minimum permits.
        let oldest = [
            ("1.0", TlsVersion::V12),
            ("1.1", TlsVersion::V12),
            ("1.2", TlsVersion::V12),
            ("1.3", TlsVersion::V13),
        ];
        let default = Tls::default();
        let tls = Tls {
            verify: options.flag("ssl_insecure_skip_verify") != Some(true),
            ca: pem(options, "ssl_ca_cert_path", "ssl_ca_cert_string"),
            certificate: pem(options, "ssl_client_cert_path", "ssl_client_cert_string"),
            key: pem(options, "ssl_client_key_path", "ssl_client_key_string"),
            version_min: options
                .choice("ssl_min_tls", &oldest)
                .unwrap_or(default.version_min),
            version_max: options
                .choice("ssl_max_tls", &oldest[2..])
                .unwrap_or(default.version_max),
            more: default.more,
        };
        if tls.version_min > tls.version_max
            && let Some((_, at)) = options.text_at("ssl_min_tls")
        {
            options.error(at, "ssl_min_tls is above ssl_max_tls");
        }
        for key in ["ssl_cipher", "ssl_cipher_suite"] {
            if let Some((_, at)) = options.text_at(key) {
                let message = format!("{key} is ignored: only suites of today are offered");
                options.warn(at, message);
            }
        }
        tls.pair(options)
    }

    /// The options of `otlp_grpc`.
    pub(super) fn grpc(options: &Options<'_>) -> Tls {
        let tls = Tls {
            ca: pem(
                options,
                "ssl_credentials_cacert_path",
                "ssl_credentials_cacert_as_string",
            ),
            certificate: pem(options, "ssl_client_cert_path", "ssl_client_cert_string"),
            key: pem(options, "ssl_client_key_path", "ssl_client_key_string"),
            ..Tls::default()
        };
        tls.pair(options)
    }

    /// Checks that a certificate and its key are given together.
    fn pair(self, options: &Options<'_>) -> Tls {
        if self.certificate.is_some() != self.key.is_some() {
            let message = format!(
                "{}: ssl_client_cert_* and ssl_client_key_* need each other",
                options.what
            );
            options.error(options.node.at, message);
        }
        self
    }
}

/// A PEM from a file, else from the settings.
fn pem(options: &Options<'_>, path: &str, text: &str) -> Option<Pem> {
    // Unlike other long texts it is not cut off, which would invalidate the PEM.
    let text = options.whole_text(text).map(|(text, _)| text.to_owned());
    options.text(path).map(Pem::Path).or(text.map(Pem::Text))
}
