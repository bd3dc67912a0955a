//! How servers are asked, of targets and of lists of targets.

use std::fmt;

use telemetry::settings::{Pem, Tls, TlsVersion};

use crate::config::options::{Kind, Opt, Section, opt};

/// A client of HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpClient {
    /// What tells who we are.
    pub credentials: Credentials,
    /// TLS of `https`.
    pub tls: Tls,
}

/// What tells who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    None,
    /// `basic_auth`
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// `authorization`, with a scheme such as `Bearer`.
    Scheme {
        /// The scheme.
        scheme: String,
        /// What follows it.
        credentials: Secret,
    },
}

/// A secret, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The secret itself.
    Text(String),
    /// A file that holds it, which is read for each request.
    File(String),
}

impl fmt::Debug for Secret {
    /// A secret is not shown.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Text(_) => out.write_str("***"),
            Secret::File(path) => out.write_str(path),
        }
    }
}

#[rustfmt::skip]
const BASIC: &[Opt] = &[
    opt("username", Kind::Text, "", "the user"),
    opt("password", Kind::Text, "", "the password"),
    opt("password_file", Kind::Text, "", "a file that holds it, read for each request"),
    opt("username_file", Kind::Text, "", "a file that holds the user").refused("the user is a text"),
];
#[rustfmt::skip]
const AUTHORIZATION: &[Opt] = &[
    opt("type", Kind::Text, "Bearer", "the scheme"),
    opt("credentials", Kind::Text, "", "what follows it"),
    opt("credentials_file", Kind::Text, "", "a file that holds that, read for each request"),
];
#[rustfmt::skip]
const VERSIONS: &[&str] = &["", "TLS10", "TLS11", "TLS12", "TLS13"];
#[rustfmt::skip]
const TLS: &[Opt] = &[
    opt("ca_file", Kind::Text, "", "file of authorities for the server's certificate"),
    opt("ca", Kind::Text, "", "the same as text"),
    opt("cert_file", Kind::Text, "", "file of the own certificate"),
    opt("cert", Kind::Text, "", "the same as text"),
    opt("key_file", Kind::Text, "", "file of the own key"),
    opt("key", Kind::Text, "", "the same as text"),
    opt("server_name", Kind::Text, "", "name that the server's certificate must have"),
    opt("insecure_skip_verify", Kind::Flag, "false", "the server's certificate is not checked"),
    opt("min_version", Kind::Word(VERSIONS), "", "oldest version; TLS12 where it is not written"),
    opt("max_version", Kind::Word(VERSIONS), "", "newest version; TLS13 where it is not written"),
];

const OTHERS: &str = "write 'basic_auth' or 'authorization'";
const NO_PROXY: &str = "targets are asked without a proxy";

/// Options of a client.
#[rustfmt::skip]
pub(super) const OPTIONS: &[Opt] = &[
    opt("basic_auth", Kind::Section(&[BASIC]), "", "user and password"),
    opt("authorization", Kind::Section(&[AUTHORIZATION]), "", "another scheme"),
    opt("bearer_token", Kind::Text, "", "a token").deprecated("write 'authorization'"),
    opt("bearer_token_file", Kind::Text, "", "a file that holds it").deprecated("write 'authorization'"),
    opt("oauth2", Kind::Any, "", "OAuth 2.0").refused(OTHERS),
    opt("http_headers", Kind::Any, "", "fields of requests").refused(OTHERS),
    opt("tls_config", Kind::Section(&[TLS]), "", "TLS of `https`"),
    opt("proxy_url", Kind::Text, "", "a proxy").refused(NO_PROXY),
    opt("proxy_from_environment", Kind::Flag, "false", "the environment's proxy").refused(NO_PROXY),
    opt("no_proxy", Kind::Text, "", "hosts without a proxy").no_effect(NO_PROXY),
    opt("proxy_connect_header", Kind::Any, "", "fields for a proxy").no_effect(NO_PROXY),
    opt("follow_redirects", Kind::Flag, "false", "redirects are followed").no_effect("a redirect is an answer like any other: the scrape fails"),
    opt("enable_http2", Kind::Flag, "false", "HTTP/2").no_effect("connections are HTTP/1.1"),
];

/// A client, from its section.
pub(super) fn client(section: &Section<'_>) -> HttpClient {
    let mut found = Vec::new();
    if section.has("basic_auth") {
        let basic = section.section("basic_auth");
        found.push(Credentials::Basic {
            user: basic.text("username"),
            password: secret(&basic, "password", "password_file"),
        });
    }
    if section.has("authorization") {
        let own = section.section("authorization");
        let scheme = own.text("type");
        if scheme.eq_ignore_ascii_case("basic") {
            let message =
                "authorization type cannot be set to \"basic\", use \"basic_auth\" instead";
            section.error("authorization", message);
        }
        found.push(Credentials::Scheme {
            scheme,
            credentials: secret(&own, "credentials", "credentials_file"),
        });
    }
    if section.has("bearer_token") || section.has("bearer_token_file") {
        found.push(Credentials::Scheme {
            scheme: "Bearer".to_owned(),
            credentials: secret(section, "bearer_token", "bearer_token_file"),
        });
    }
    if found.len() > 1 {
        section.fault("at most one of basic_auth, oauth2 & authorization must be configured");
    }
    HttpClient {
        credentials: found.pop().unwrap_or(Credentials::None),
        tls: tls(&section.section("tls_config")),
    }
}

fn secret(section: &Section<'_>, text: &str, file: &str) -> Secret {
    match section.text_unless_empty(file) {
        Some(path) => {
            if section.text_unless_empty(text).is_some() {
                section.error(
                    file,
                    &format!("at most one of {text} & {file} must be configured"),
                );
            }
            Secret::File(path)
        }
        None => Secret::Text(section.text(text)),
    }
}

fn tls(section: &Section<'_>) -> Tls {
    let pem = |file: &str, text: &str| {
        let file = section.text_unless_empty(file).map(Pem::Path);
        file.or_else(|| section.text_unless_empty(text).map(Pem::Text))
    };
    let version = |name: &str, default: TlsVersion| match section.text(name).as_str() {
        "TLS12" => TlsVersion::V12,
        "TLS13" => TlsVersion::V13,
        "TLS10" | "TLS11" => {
            section.error(name, "TLS 1.2 is the oldest version that is spoken");
            default
        }
        _ => default,
    };
    let mut tls = Tls {
        verify: !section.flag("insecure_skip_verify"),
        ca: pem("ca_file", "ca"),
        certificate: pem("cert_file", "cert"),
        key: pem("key_file", "key"),
        version_min: version("min_version", TlsVersion::V12),
        version_max: version("max_version", TlsVersion::V13),
        ..Tls::default()
    };
    tls.more.server_name = section.text_unless_empty("server_name");
    if tls.certificate.is_some() != tls.key.is_some() {
        section.fault("a certificate needs its key, and a key its certificate");
    }
    tls
}
