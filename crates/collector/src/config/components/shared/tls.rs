//! TLS of servers and clients.

use std::time::Duration;

use telemetry::settings::{Pem, Tls, TlsMore, TlsVersion};

use crate::config::options::{Kind, Opt, Section, opt};

/// TLS of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsServer {
    /// Own certificate and key, and what is spoken.
    pub common: Tls,
    /// `client_ca_file`: a client needs a certificate of one of these authorities.
    pub client_ca_file: Option<String>,
    /// `client_ca_file_reload`: it is read again when it changes.
    pub client_ca_reload: bool,
}

#[rustfmt::skip]
const VERSIONS: &[&str] = &["", "1.0", "1.1", "1.2", "1.3"];
#[rustfmt::skip]
const SUITES: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];
#[rustfmt::skip]
const CURVES: &[&str] = &["X25519MLKEM768", "X25519", "P256", "P384"];

#[rustfmt::skip]
const COMMON: &[Opt] = &[
    opt("ca_file", Kind::Text, "", "file of authorities for the other side's certificate"),
    opt("ca_pem", Kind::Text, "", "the same as text"),
    opt("include_system_ca_certs_pool", Kind::Flag, "false", "the system's authorities too"),
    opt("cert_file", Kind::Text, "", "file of the own certificate"),
    opt("cert_pem", Kind::Text, "", "the same as text"),
    opt("key_file", Kind::Text, "", "file of the own key"),
    opt("key_pem", Kind::Text, "", "the same as text"),
    opt("min_version", Kind::Word(VERSIONS), "", "oldest version; 1.2 where it is not written"),
    opt("max_version", Kind::Word(VERSIONS), "", "newest version; 1.3 where it is not written"),
    opt("cipher_suites", Kind::Words(SUITES), "", "suites of TLS 1.2 that may be used"),
    opt("curve_preferences", Kind::Words(CURVES), "", "key exchanges, the preferred one first"),
    opt("reload_interval", Kind::Duration, "0s", "certificate and key are read again after this time; 0: never"),
    opt("include_insecure_cipher_suites", Kind::Flag, "false", "suites that are known to be weak")
        .no_effect("there are none here"),
    opt("tpm", Kind::Any, "", "keys in a trusted platform module")
        .refused("keys are read from files and texts only"),
];

const SERVER_CA_REASON: &str = "certificates of clients are checked by 'client_ca_file'";

/// Options of a server.
#[rustfmt::skip]
pub(crate) const SERVER: &[&[Opt]] = &[
    &[
        opt("ca_file", Kind::Text, "", "file of authorities").no_effect(SERVER_CA_REASON),
        opt("ca_pem", Kind::Text, "", "the same as text").no_effect(SERVER_CA_REASON),
    ],
    COMMON,
    &[
        opt("client_ca_file", Kind::Text, "", "authorities of which each client needs a certificate"),
        opt("client_ca_file_reload", Kind::Flag, "false", "that file is read again, once a second at most"),
    ],
];

/// Options of a client.
#[rustfmt::skip]
pub(crate) const CLIENT: &[&[Opt]] = &[
    COMMON,
    &[
        opt("insecure", Kind::Flag, "false", "no TLS"),
        opt("insecure_skip_verify", Kind::Flag, "false", "the server's certificate is not checked"),
        opt("server_name_override", Kind::Text, "", "name that the server's certificate must have"),
    ],
];

/// TLS of a server, from its section.
pub(crate) fn server(section: &Section<'_>) -> TlsServer {
    let common = common(section);
    // One without the other is told there.
    if common.certificate.is_none() && common.key.is_none() {
        section.fault("a server needs 'cert_file' and 'key_file'");
    }
    TlsServer {
        common,
        client_ca_file: section.text_unless_empty("client_ca_file"),
        client_ca_reload: section.flag("client_ca_file_reload"),
    }
}

/// TLS of a client, from its section. Whether it is on is said by `insecure`, which the caller
/// reads.
pub(crate) fn client(section: &Section<'_>) -> Tls {
    let mut tls = common(section);
    tls.verify = !section.flag("insecure_skip_verify");
    tls.more.server_name = section.text_unless_empty("server_name_override");
    tls
}

fn common(section: &Section<'_>) -> Tls {
    let reload_every = Duration::from_nanos(section.duration_ns("reload_interval"));
    let tls = Tls {
        verify: true,
        ca: pem(section, "ca_file", "ca_pem"),
        certificate: pem(section, "cert_file", "cert_pem"),
        key: pem(section, "key_file", "key_pem"),
        version_min: min_version(section),
        version_max: max_version(section),
        more: TlsMore {
            system_authorities: section.flag("include_system_ca_certs_pool"),
            server_name: None,
            suites: section.texts("cipher_suites"),
            key_exchanges: section.texts("curve_preferences"),
            reload_every: (!reload_every.is_zero()).then_some(reload_every),
        },
    };
    if tls.certificate.is_some() != tls.key.is_some() {
        section.fault("a certificate and its key come together: one of the two is missing");
    }
    if tls.version_min > tls.version_max {
        section.error("min_version", "is newer than 'max_version'");
    }
    tls
}

fn pem(section: &Section<'_>, file: &str, text: &str) -> Option<Pem> {
    let path = section.text_unless_empty(file);
    let pem = section.text_unless_empty(text);
    if path.is_some() && pem.is_some() {
        section.error(
            text,
            &format!("'{file}' is there too: one of the two is enough"),
        );
    }
    path.map(Pem::Path).or(pem.map(Pem::Text))
}

fn min_version(section: &Section<'_>) -> TlsVersion {
    match section.text("min_version").as_str() {
        "1.3" => TlsVersion::V13,
        "1.0" | "1.1" => {
            section.warn(
                "min_version",
                "versions below 1.2 are not spoken: 1.2 counts",
            );
            TlsVersion::V12
        }
        _ => TlsVersion::V12,
    }
}

fn max_version(section: &Section<'_>) -> TlsVersion {
    match section.text("max_version").as_str() {
        "1.2" => TlsVersion::V12,
        "1.0" | "1.1" => {
            section.error("max_version", "versions below 1.2 are not spoken");
            TlsVersion::V12
        }
        _ => TlsVersion::V13,
    }
}
