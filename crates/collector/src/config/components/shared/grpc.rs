//! gRPC servers and clients.

use std::time::Duration;

use export::client::{GrpcOptions, Keepalive};
use telemetry::settings::{Compression, Headers, OtlpGrpc};

use super::address::{self, Listen, TRANSPORTS};
use super::auth;
use super::headers;
use super::http::timeout_ms;
use super::tls::{self, TlsServer};
use crate::config::components::id::ComponentId;
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};

/// Options that no component honours, and why.
pub(crate) const MIDDLEWARE_REASON: &str = "there are no middlewares";
pub(crate) const BUFFER_REASON: &str = "buffers grow and shrink with what is read and written";

/// A gRPC server.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcServer {
    /// Where it listens.
    pub listen: Listen,
    /// TLS, where it is on.
    pub tls: Option<TlsServer>,
    /// Bytes of one message.
    pub message_bytes_max: u64,
    /// Streams of one connection at a time; 0: no bound.
    pub streams_max: u32,
    /// Pings, and the age of connections.
    pub keepalive: KeepaliveServer,
    /// The extension that tells who sends.
    pub auth: Option<ComponentId>,
    /// Metadata of a call go along with its data.
    pub include_metadata: bool,
}

/// `keepalive` of a server. A time of 0 is gRPC's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepaliveServer {
    /// A connection without a stream is closed after this time; 0: never.
    pub connection_idle_ns: u64,
    /// A connection is closed at this age; 0: never.
    pub connection_age_ns: u64,
    /// Time for its streams to end then; 0: no bound.
    pub connection_age_grace_ns: u64,
    /// A silent client is pinged after this time; 0: two hours.
    pub ping_ns: u64,
    /// And given up after this one; 0: 20 s.
    pub ping_timeout_ns: u64,
    /// Clients may not ping more often; 0: five minutes.
    pub client_ping_min_ns: u64,
    /// Clients may ping without a stream.
    pub permit_without_stream: bool,
}

/// A gRPC client of OTLP.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcClient {
    /// Its endpoint is a URL of the server: `https` where TLS is on.
    pub otlp: OtlpGrpc,
    /// What it has besides.
    pub options: GrpcOptions,
    /// The extension that tells who we are.
    pub auth: Option<ComponentId>,
}

/// Bytes of one message where nothing is written: gRPC's own default.
const MESSAGE_BYTES_DEFAULT: u64 = 4 << 20;
/// Largest `max_recv_msg_size_mib`: a message has a length of four bytes.
const MESSAGE_MIB_MAX: i64 = 4095;

#[rustfmt::skip]
const SERVER_PARAMETERS: &[Opt] = &[
    opt("max_connection_idle", Kind::Duration, "0s", "a connection without a stream is closed after this time; 0: never"),
    opt("max_connection_age", Kind::Duration, "0s", "a connection is closed at this age; 0: never"),
    opt("max_connection_age_grace", Kind::Duration, "0s", "time for its streams to end; 0: no bound"),
    opt("time", Kind::Duration, "0s", "a silent client is pinged after this time; 0: 2h"),
    opt("timeout", Kind::Duration, "0s", "and given up after this one; 0: 20s"),
];

#[rustfmt::skip]
const ENFORCEMENT_POLICY: &[Opt] = &[
    opt("min_time", Kind::Duration, "0s", "clients may not ping more often; 0: 5m"),
    opt("permit_without_stream", Kind::Flag, "false", "clients may ping without a stream"),
];

#[rustfmt::skip]
const SERVER_KEEPALIVE: &[Opt] = &[
    opt("server_parameters", Kind::Maybe(&[SERVER_PARAMETERS]), "", "pings, and the age of connections"),
    opt("enforcement_policy", Kind::Maybe(&[ENFORCEMENT_POLICY]), "", "pings of clients"),
];

/// Options of a server; the component gives `endpoint`.
#[rustfmt::skip]
pub(crate) const SERVER: &[Opt] = &[
    opt("transport", Kind::Word(TRANSPORTS), "tcp", "kind of the address; unix: `endpoint` is a path"),
    opt("tls", Kind::Maybe(tls::SERVER), "", "TLS; none where it is not written"),
    opt("max_recv_msg_size_mib", Kind::Int(0, MESSAGE_MIB_MAX), "0", "MiB of one message; 0: 4"),
    opt("max_concurrent_streams", Kind::Int(0, u32::MAX as i64), "0", "streams of one connection at a time; 0: 100"),
    opt("keepalive", Kind::Maybe(&[SERVER_KEEPALIVE]), "", "pings, and the age of connections"),
    opt("read_buffer_size", Kind::Int(0, COUNT_MAX), "524288", "bytes of the read buffer").no_effect(BUFFER_REASON),
    opt("write_buffer_size", Kind::Int(0, COUNT_MAX), "0", "bytes of the write buffer").no_effect(BUFFER_REASON),
    opt("include_metadata", Kind::Flag, "false", "a client's metadata go along with its data, for those that read them"),
    opt("dialer", Kind::Any, "", "options of a client").no_effect("a server does not dial"),
    opt("auth", Kind::Maybe(auth::TABLE), "", "the extension that tells who is there; nobody asks where it is not written"),
    opt("middlewares", Kind::Any, "", "extensions in the way of a request").refused(MIDDLEWARE_REASON),
];

#[rustfmt::skip]
const CLIENT_KEEPALIVE: &[Opt] = &[
    opt("time", Kind::Duration, "10s", "a silent server is pinged after this time"),
    opt("timeout", Kind::Duration, "10s", "and given up after this one"),
    opt("permit_without_stream", Kind::Flag, "false", "also without a call in flight"),
];

#[rustfmt::skip]
const COMPRESSIONS: &[&str] = &["gzip", "zstd", "none", "", "snappy"];

/// Options of a client.
#[rustfmt::skip]
pub(crate) const CLIENT: &[Opt] = &[
    opt("endpoint", Kind::Text, "", "`host:port`, also after `dns:///`, `http://` or `https://`; or `unix:///path` (required)"),
    opt("tls", Kind::Section(tls::CLIENT), "", "TLS, which is on unless `insecure: true`"),
    opt("compression", Kind::Word(COMPRESSIONS), "gzip", "of messages; snappy is refused"),
    opt("headers", Kind::Pairs, "", "metadata of each call"),
    opt("authority", Kind::Text, "", "what stands in `:authority`, and whose certificate the server must have"),
    opt("user_agent", Kind::Text, "", "what stands in `user-agent`"),
    opt("balancer_name", Kind::Word(&["round_robin", "pick_first"]), "round_robin", "which of a name's addresses are used: `round_robin` all in turn, 256 at most (the name is asked for again every 30 s, an address that fails is left out for a while), `pick_first` the first that answers"),
    opt("keepalive", Kind::Maybe(&[CLIENT_KEEPALIVE]), "", "pings; none where it is not written"),
    opt("wait_for_ready", Kind::Flag, "false", "calls wait for a connection").no_effect("a call that finds no connection is tried again by retry_on_failure"),
    opt("read_buffer_size", Kind::Int(0, COUNT_MAX), "0", "bytes of the read buffer").no_effect(BUFFER_REASON),
    opt("write_buffer_size", Kind::Int(0, COUNT_MAX), "524288", "bytes of the write buffer").no_effect(BUFFER_REASON),
    opt("auth", Kind::Maybe(auth::TABLE), "", "the extension that tells who is there; nobody asks where it is not written"),
    opt("middlewares", Kind::Any, "", "extensions in the way of a call").refused(MIDDLEWARE_REASON),
    opt("insecure", Kind::Any, "", "gone since 0.38").refused("write `tls: { insecure: true }`"),
    opt("ca_file", Kind::Any, "", "gone since 0.38").refused("write `tls: { ca_file: … }`"),
    opt("per_rpc_auth", Kind::Any, "", "gone since 0.38").refused("write a header field"),
];

/// A server, from its section.
pub(crate) fn server(section: &Section<'_>) -> GrpcServer {
    let mib: u64 = section.int("max_recv_msg_size_mib");
    GrpcServer {
        listen: address::listen(section),
        tls: section.maybe_filled("tls").map(|tls| tls::server(&tls)),
        message_bytes_max: match mib {
            0 => MESSAGE_BYTES_DEFAULT,
            mib => mib << 20,
        },
        streams_max: section.int("max_concurrent_streams"),
        keepalive: keepalive(&section.section("keepalive")),
        auth: auth::auth(section),
        include_metadata: section.flag("include_metadata"),
    }
}

fn keepalive(section: &Section<'_>) -> KeepaliveServer {
    let parameters = section.section("server_parameters");
    let policy = section.section("enforcement_policy");
    KeepaliveServer {
        connection_idle_ns: parameters.duration_ns("max_connection_idle"),
        connection_age_ns: parameters.duration_ns("max_connection_age"),
        connection_age_grace_ns: parameters.duration_ns("max_connection_age_grace"),
        ping_ns: parameters.duration_ns("time"),
        ping_timeout_ns: parameters.duration_ns("timeout"),
        client_ping_min_ns: policy.duration_ns("min_time"),
        permit_without_stream: policy.flag("permit_without_stream"),
    }
}

/// A client, from its section.
pub(crate) fn client(section: &Section<'_>) -> GrpcClient {
    client_of(section, target(section))
}

/// A client whose server is told by something else ([`GrpcClient::to`]), from its section.
pub(crate) fn client_of_any(section: &Section<'_>) -> GrpcClient {
    client_of(section, (String::new(), false))
}

impl GrpcClient {
    /// The same, of another server: `host:port`.
    #[must_use]
    pub fn to(&self, target: &str) -> GrpcClient {
        let mut client = self.clone();
        client.otlp.endpoint = url(target, self.is_tls());
        client
    }

    /// Whether TLS is on.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.otlp.endpoint.starts_with("https:")
    }

    /// The server as `host:port`.
    #[must_use]
    pub fn target(&self) -> &str {
        let parts = self.otlp.endpoint.split_once("://");
        parts.map_or("", |(_, target)| target)
    }
}

fn url(target: &str, is_tls: bool) -> String {
    format!("{}://{target}", if is_tls { "https" } else { "http" })
}

fn client_of(section: &Section<'_>, (target, is_https): (String, bool)) -> GrpcClient {
    let options = section.section("tls");
    let tls = tls::client(&options);
    // As in the Collector: authorities or `https://` ask for TLS even so.
    let is_tls = !options.flag("insecure") || tls.ca.is_some() || is_https;
    // As in gRPC: whom a Unix socket leads to is this machine.
    let unix = target.strip_prefix("unix:");
    GrpcClient {
        otlp: OtlpGrpc {
            endpoint: url(unix.map_or(&*target, |_| "localhost"), is_tls),
            headers: Headers(headers::headers(section, "headers")),
            timeout_ms: timeout_ms(section),
            requests_max: 0,
            compression: compression(section),
            user_agent: section.text_unless_empty("user_agent"),
            tls,
        },
        options: GrpcOptions {
            authority: section.text_unless_empty("authority"),
            unix: unix.map(str::to_owned),
            keepalive: section.maybe_filled("keepalive").map(|keepalive| {
                let time = |name| Duration::from_nanos(keepalive.duration_ns(name));
                Keepalive {
                    after: time("time"),
                    timeout: time("timeout"),
                    while_idle: keepalive.flag("permit_without_stream"),
                }
            }),
            proxy: None,
            is_balanced: section.text("balancer_name") == "round_robin",
        },
        auth: auth::auth(section),
    }
}

/// The address of `endpoint`, and whether it says `https`.
fn target(section: &Section<'_>) -> (String, bool) {
    let endpoint = section.text("endpoint");
    if endpoint.is_empty() {
        section.error("endpoint", "is missing: host:port of the server");
        return (endpoint, false);
    }
    if let Some(path) = endpoint.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            section.error("endpoint", "must be the path of a socket");
        }
        return (format!("unix:{path}"), false);
    }
    let is_https = endpoint.starts_with("https://");
    let prefixes = ["https://", "http://", "dns:///", "dns://"];
    let found = prefixes
        .iter()
        .find_map(|prefix| endpoint.strip_prefix(prefix));
    let address = found.unwrap_or(&endpoint).trim_end_matches('/');
    match address::host_port(address) {
        Ok((host, _)) if host.is_empty() => section.error("endpoint", "must name a host"),
        Ok(_) => {}
        Err(reason) => section.error("endpoint", &format!("'{endpoint}' {reason}")),
    }
    (address.to_owned(), is_https)
}

fn compression(section: &Section<'_>) -> Compression {
    match section.text("compression").as_str() {
        "gzip" => Compression::Gzip,
        "zstd" => Compression::Zstd,
        "snappy" => {
            section.error(
                "compression",
                "snappy is not built in: gzip, zstd and none are",
            );
            Compression::None
        }
        _ => Compression::None,
    }
}
