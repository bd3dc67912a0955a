//! HTTP servers and clients.

use std::time::Duration;

use export::client::{Connections, HttpOptions, Proxy};
use telemetry::settings::{self, Compression, Encoding, OtlpHttp};

use super::address::{self, Listen, TRANSPORTS};
use super::auth;
use super::grpc::{BUFFER_REASON, MIDDLEWARE_REASON};
use super::headers::{self, Headers};
use super::tls::{self, TlsServer};
use crate::config::components::id::ComponentId;
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};

/// An HTTP server.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServer {
    /// Where it listens.
    pub listen: Listen,
    /// TLS, where it is on.
    pub tls: Option<TlsServer>,
    /// What browsers may do, where that is written.
    pub cors: Option<Cors>,
    /// Bytes of a request's body, after decompression.
    pub body_bytes_max: u64,
    /// Fields of each response.
    pub response_headers: Headers,
    /// Codings of bodies that are taken; others are answered with 415.
    pub codings: Vec<Compression>,
    /// A whole request; 0: no bound.
    pub read_timeout_ns: u64,
    /// The head of a request; 0: as `read_timeout_ns`.
    pub read_header_timeout_ns: u64,
    /// A response; 0: no bound.
    pub write_timeout_ns: u64,
    /// Between requests; 0: as `read_timeout_ns`.
    pub idle_timeout_ns: u64,
    /// Whether a connection takes more than one request.
    pub keep_alive: bool,
    /// The extension that tells who sends.
    pub auth: Option<ComponentId>,
    /// Fields of a request go along with its data.
    pub include_metadata: bool,
    /// Parameters of the URL that it sees in the places of fields.
    pub auth_params: Vec<String>,
}

/// `cors` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// Origins, with `*` for any number of characters.
    pub allowed_origins: Vec<String>,
    /// Fields that a request may have; `*`: any.
    pub allowed_headers: Vec<String>,
    /// Fields that a page may read.
    pub exposed_headers: Vec<String>,
    /// Time that a browser may remember it; 0: its default.
    pub max_age_s: u32,
}

/// An HTTP client of OTLP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpClient {
    /// Without the URL, which differs by signal.
    pub otlp: OtlpHttp,
    /// What it has besides; without a proxy the environment's counts.
    pub options: HttpOptions,
    /// The extension that tells who we are.
    pub auth: Option<ComponentId>,
}

/// Bytes of a body where nothing is written.
const BODY_BYTES_DEFAULT: u64 = 20 << 20;

const CODINGS: [(&str, Compression); 9] = [
    ("", Compression::None),
    ("none", Compression::None),
    ("gzip", Compression::Gzip),
    ("zstd", Compression::Zstd),
    ("zlib", Compression::Zlib),
    ("deflate", Compression::Deflate),
    ("snappy", Compression::Snappy),
    ("x-snappy-framed", Compression::SnappyFramed),
    ("lz4", Compression::Lz4),
];
const CODING_WORDS: &[&str] = &[
    "",
    "gzip",
    "zstd",
    "zlib",
    "deflate",
    "snappy",
    "x-snappy-framed",
    "lz4",
    "none",
];

#[rustfmt::skip]
const CORS: &[Opt] = &[
    opt("allowed_origins", Kind::Texts, "", "origins, with `*` for any number of characters"),
    opt("allowed_headers", Kind::Texts, "", "fields that a request may have; `*`: any"),
    opt("exposed_headers", Kind::Texts, "", "fields that a page may read"),
    opt("max_age", Kind::Int(0, u32::MAX as i64), "0", "seconds that a browser may remember it"),
];

impl HttpServer {
    /// One of plain HTTP with the defaults of its options.
    #[must_use]
    pub fn plain(listen: Listen) -> HttpServer {
        HttpServer {
            listen,
            tls: None,
            cors: None,
            body_bytes_max: BODY_BYTES_DEFAULT,
            response_headers: Vec::new(),
            codings: Vec::new(),
            read_timeout_ns: 0,
            read_header_timeout_ns: 0,
            write_timeout_ns: 0,
            idle_timeout_ns: 0,
            keep_alive: true,
            auth: None,
            include_metadata: false,
            auth_params: Vec::new(),
        }
    }
}

/// Options of a server; the component gives `endpoint`.
#[rustfmt::skip]
pub(crate) const SERVER: &[Opt] = &[
    opt("transport", Kind::Word(TRANSPORTS), "tcp", "kind of the address; unix: `endpoint` is a path"),
    opt("tls", Kind::Maybe(tls::SERVER), "", "TLS; none where it is not written"),
    opt("cors", Kind::Maybe(&[CORS]), "", "what browsers may do"),
    opt("max_request_body_size", Kind::Int(0, COUNT_MAX), "0", "bytes of a body, after decompression; 0: 20 MiB"),
    opt("response_headers", Kind::Pairs, "", "fields of each response"),
    opt("compression_algorithms", Kind::Words(CODING_WORDS), "", "codings of bodies that are taken; all where it is not written"),
    opt("read_timeout", Kind::Duration, "0s", "a whole request; 0: no bound"),
    opt("read_header_timeout", Kind::Duration, "1m", "the head of a request; 0: as `read_timeout`"),
    opt("write_timeout", Kind::Duration, "30s", "a response; 0: no bound"),
    opt("idle_timeout", Kind::Duration, "1m", "between requests; 0: as `read_timeout`"),
    opt("keep_alives_enabled", Kind::Flag, "true", "a connection takes more than one request"),
    opt("include_metadata", Kind::Flag, "false", "a client's fields go along with its data, for those that read them"),
    opt("dialer", Kind::Any, "", "options of a client").no_effect("a server does not dial"),
    opt("auth", Kind::Maybe(auth::HTTP_SERVER), "", "the extension that tells who is there; nobody asks where it is not written"),
    opt("middlewares", Kind::Any, "", "extensions in the way of a request").refused(MIDDLEWARE_REASON),
];

const NO_BODY_REASON: &str = "bodies of requests are not read";

/// Options of a server of a page, before those of every server.
#[rustfmt::skip]
pub(crate) const PAGE: &[Opt] = &[
    opt("max_request_body_size", Kind::Int(0, COUNT_MAX), "0", "bytes of a body").no_effect(NO_BODY_REASON),
    opt("compression_algorithms", Kind::Words(CODING_WORDS), "", "codings of bodies").no_effect(NO_BODY_REASON),
    opt("write_timeout", Kind::Duration, "30s", "a response").no_effect("a page is there at once"),
    opt("include_metadata", Kind::Flag, "false", "a client's fields").no_effect("nothing is passed on"),
];

#[rustfmt::skip]
pub(crate) const COMPRESSION_PARAMS: &[Opt] = &[opt("level", Kind::Int(-2, 22), "0", "level of the coding; 0: its default")];

const HTTP2_REASON: &str = "connections are HTTP/1.1";

/// Options of a client.
#[rustfmt::skip]
pub(crate) const CLIENT: &[Opt] = &[
    opt("tls", Kind::Section(tls::CLIENT), "", "TLS of `https://` addresses"),
    opt("timeout", Kind::Duration, "30s", "a whole request; 0: no bound"),
    opt("headers", Kind::Pairs, "", "fields of each request"),
    opt("compression", Kind::Word(CODING_WORDS), "gzip", "of bodies"),
    opt("compression_params", Kind::Section(&[COMPRESSION_PARAMS]), "", "how much; little where it is not written"),
    opt("max_conns_per_host", Kind::Int(0, u32::MAX as i64), "0", "connections at a time; 0: no bound"),
    opt("max_idle_conns", Kind::Int(0, u32::MAX as i64), "100", "idle connections that are kept; 0: no bound"),
    opt("max_idle_conns_per_host", Kind::Int(0, u32::MAX as i64), "0", "the same, of one host").no_effect("an exporter has one host: `max_idle_conns` counts"),
    opt("idle_conn_timeout", Kind::Duration, "90s", "an idle connection is closed after this time; 0: never"),
    opt("disable_keep_alives", Kind::Flag, "false", "each request has a connection of its own"),
    opt("force_attempt_http2", Kind::Flag, "true", "HTTP/2 where the server speaks it").no_effect(HTTP2_REASON),
    opt("http2_read_idle_timeout", Kind::Duration, "0s", "pings of HTTP/2").no_effect(HTTP2_REASON),
    opt("http2_ping_timeout", Kind::Duration, "0s", "and their answers").no_effect(HTTP2_REASON),
    opt("read_buffer_size", Kind::Int(0, COUNT_MAX), "0", "bytes of the read buffer").no_effect(BUFFER_REASON),
    opt("write_buffer_size", Kind::Int(0, COUNT_MAX), "524288", "bytes of the write buffer").no_effect(BUFFER_REASON),
    opt("cookies", Kind::Maybe(&[]), "", "cookies of answers are kept and sent back, 50 and 16 KiB at most; none where it is not written"),
    opt("proxy_url", Kind::Text, "", "a proxy in between, `http://host:port` or `http://user:password@host:port`, also with `https`, `socks5` or `socks5h`; where it is not written the environment's counts, if it has one (below)"),
    opt("auth", Kind::Maybe(auth::TABLE), "", "the extension that tells who is there; nobody asks where it is not written"),
    opt("middlewares", Kind::Any, "", "extensions in the way of a request").refused(MIDDLEWARE_REASON),
];

/// A server, from its section.
pub(crate) fn server(section: &Section<'_>) -> HttpServer {
    HttpServer {
        listen: address::listen(section),
        tls: section.maybe_filled("tls").map(|tls| tls::server(&tls)),
        cors: section.maybe_filled("cors").map(|cors| Cors {
            allowed_origins: cors.texts("allowed_origins"),
            allowed_headers: cors.texts("allowed_headers"),
            exposed_headers: cors.texts("exposed_headers"),
            max_age_s: cors.int("max_age"),
        }),
        body_bytes_max: section
            .int_unless_zero("max_request_body_size")
            .unwrap_or(BODY_BYTES_DEFAULT),
        response_headers: headers::headers(section, "response_headers"),
        codings: codings(section),
        read_timeout_ns: section.duration_ns("read_timeout"),
        read_header_timeout_ns: section.duration_ns("read_header_timeout"),
        write_timeout_ns: section.duration_ns("write_timeout"),
        idle_timeout_ns: section.duration_ns("idle_timeout"),
        keep_alive: section.flag("keep_alives_enabled"),
        auth: auth::auth(section),
        include_metadata: section.flag("include_metadata"),
        auth_params: section.section("auth").texts("request_params"),
    }
}

fn codings(section: &Section<'_>) -> Vec<Compression> {
    let of = |word: &str| CODINGS.iter().find(|(name, _)| *name == word);
    let written = section.texts("compression_algorithms");
    let words = match section.written("compression_algorithms") {
        Some(_) => written.iter().map(String::as_str).collect(),
        None => CODING_WORDS.to_vec(),
    };
    let mut codings = Vec::new();
    for (_, coding) in words.into_iter().filter_map(of) {
        if !codings.contains(coding) {
            codings.push(*coding);
        }
    }
    codings
}

/// A client, from its section.
pub(crate) fn client(section: &Section<'_>, encoding: Encoding) -> HttpClient {
    let compression = section.choice("compression", &CODINGS);
    HttpClient {
        otlp: OtlpHttp {
            endpoint: String::new(),
            encoding,
            headers: settings::Headers(headers::headers(section, "headers")),
            timeout_ms: timeout_ms(section),
            requests_max: 0,
            compression,
            tls: tls::client(&section.section("tls")),
        },
        options: HttpOptions {
            level: level(&section.section("compression_params"), compression),
            connections: connections(section),
            keeps_cookies: section.maybe_filled("cookies").is_some(),
            proxy: proxy(section),
        },
        auth: auth::auth(section),
    }
}

/// Time for a request where there is no bound.
const TIMEOUT_MAX_MS: u32 = 3_600_000;

/// The option `timeout` of a client.
pub(crate) fn timeout_ms(section: &Section<'_>) -> u32 {
    match section.duration_ns("timeout") {
        0 => TIMEOUT_MAX_MS,
        ns => u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(TIMEOUT_MAX_MS),
    }
}

fn connections(section: &Section<'_>) -> Connections {
    let idle_timeout = Duration::from_nanos(section.duration_ns("idle_conn_timeout"));
    Connections {
        max: section.int_unless_zero("max_conns_per_host"),
        idle_max: if section.flag("disable_keep_alives") {
            0
        } else {
            section
                .int_unless_zero("max_idle_conns")
                .unwrap_or(usize::MAX)
        },
        idle_timeout: (!idle_timeout.is_zero()).then_some(idle_timeout),
    }
}

/// A proxy. Its user and password are the only ones that may stand in a URL.
fn proxy(section: &Section<'_>) -> Option<Proxy> {
    let proxy = Proxy::parse(&section.text_unless_empty("proxy_url")?);
    // Whatever is wrong with it, a password is not shown.
    proxy.map_err(|why| section.error("proxy_url", &why)).ok()
}

fn level(section: &Section<'_>, compression: Compression) -> Option<i32> {
    let level = section.int_unless_zero("level")?;
    let range = match compression {
        Compression::Gzip | Compression::Deflate | Compression::Zlib => -2..=9,
        Compression::Zstd => 1..=22,
        _ => {
            section.error("level", "this coding has no levels");
            return None;
        }
    };
    if !range.contains(&level) {
        let (low, high) = range.into_inner();
        section.error(
            "level",
            &format!("must be from {low} to {high} for this coding"),
        );
    }
    Some(level)
}

/// How an endpoint ends that is OTLP over gRPC, most likely.
const GRPC_PORT: &str = ":4317";
const GRPC_HINT: &str = "4317 is the port of OTLP over gRPC: over HTTP it is 4318, over gRPC the exporter is 'otlp_grpc'";

/// A URL with `http` or `https`, a host and perhaps a path, without a slash at its end. Errors are
/// noted.
pub(crate) fn url(section: &Section<'_>, name: &str) -> Option<String> {
    let text = section.text_unless_empty(name)?;
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else {
        let mut message = format!("'{text}' must begin with http:// or https://");
        if text.ends_with(GRPC_PORT) {
            message.push_str(&format!("; {GRPC_HINT}"));
        }
        section.error(name, &message);
        return None;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = match authority.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port,
        _ => "80",
    };
    let graphic = |c: char| !c.is_whitespace() && !c.is_control();
    if authority.is_empty() || authority.starts_with(':') || !text.chars().all(graphic) {
        section.error(name, &format!("'{text}' must name a host"));
    } else if authority.contains('@') {
        section.error(
            name,
            "a user in a URL is not supported: write a header field",
        );
    } else if port.parse::<u16>().is_err() {
        section.error(name, &format!("'{text}' has no port from 0 to 65535"));
    } else if authority.ends_with(GRPC_PORT) {
        section.warn(name, &format!("'{text}': {GRPC_HINT}"));
    }
    Some(text)
}
