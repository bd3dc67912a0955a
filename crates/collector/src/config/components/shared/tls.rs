//! TLS of servers and clients.

use crate::config::options::{Kind, Opt, Section, opt};

/// PEM text, or the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// Path of a file.
    File(String),
    /// The text itself.
    Text(String),
}

/// Versions of TLS that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// RFC 5246
    V12,
    /// RFC 8446
    V13,
}

/// What servers and clients both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsCommon {
    /// Authorities that the other side's certificate is checked against; none: the system's (clients).
    pub ca: Option<Pem>,
    /// `include_system_ca_certs_pool`: the system's authorities too.
    pub system_cas: bool,
    /// Own certificate, leaf first.
    pub cert: Option<Pem>,
    /// Own key.
    pub key: Option<Pem>,
    /// Oldest version.
    pub min_version: TlsVersion,
    /// Newest version.
    pub max_version: TlsVersion,
    /// Suites of TLS 1.2 that may be used, by their names in Go; empty: all.
    pub cipher_suites: Vec<String>,
    /// Key exchanges by preference, by their names in Go; empty: the default.
    pub curves: Vec<String>,
    /// Files are read again after this time; 0: never.
    pub reload_interval_ns: u64,
}

/// TLS of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServer {
    /// Own certificate and key, and what is spoken.
    pub common: TlsCommon,
    /// `client_ca_file`: a client needs a certificate of one of these authorities.
    pub client_ca_file: Option<String>,
    /// `client_ca_file_reload`: it is read again when it changes.
    pub client_ca_reload: bool,
}

/// TLS of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClient {
    /// Authorities, own certificate, and what is spoken.
    pub common: TlsCommon,
    /// `insecure`: no TLS at all.
    pub insecure: bool,
    /// `insecure_skip_verify`: any certificate will do.
    pub skip_verify: bool,
    /// `server_name_override`
    pub server_name: Option<String>,
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
    if common.cert.is_none() && common.key.is_none() {
        section.fault("a server needs 'cert_file' and 'key_file'");
    }
    TlsServer {
        common,
        client_ca_file: section.text_unless_empty("client_ca_file"),
        client_ca_reload: section.flag("client_ca_file_reload"),
    }
}

/// TLS of a client, from its section.
pub(crate) fn client(section: &Section<'_>) -> TlsClient {
    TlsClient {
        common: common(section),
        insecure: section.flag("insecure"),
        skip_verify: section.flag("insecure_skip_verify"),
        server_name: section.text_unless_empty("server_name_override"),
    }
}

fn common(section: &Section<'_>) -> TlsCommon {
    let common = TlsCommon {
        ca: pem(section, "ca_file", "ca_pem"),
        system_cas: section.flag("include_system_ca_certs_pool"),
        cert: pem(section, "cert_file", "cert_pem"),
        key: pem(section, "key_file", "key_pem"),
        min_version: min_version(section),
        max_version: max_version(section),
        cipher_suites: section.texts("cipher_suites"),
        curves: section.texts("curve_preferences"),
        reload_interval_ns: section.duration_ns("reload_interval"),
    };
    if common.cert.is_some() != common.key.is_some() {
        section.fault("a certificate and its key come together: one of the two is missing");
    }
    if common.min_version > common.max_version {
        section.error("min_version", "is newer than 'max_version'");
    }
    common
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
    path.map(Pem::File).or(pem.map(Pem::Text))
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
