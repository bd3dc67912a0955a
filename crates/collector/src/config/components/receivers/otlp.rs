//! `otlp`: OTLP over gRPC and HTTP.

use super::{ProxyRole, Receiver, ReceiverSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::grpc::{self, GrpcServer};
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt, required};
use crate::config::source::{Key, Node};

/// `protocols` of the receiver; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpReceiver {
    /// `grpc`
    pub grpc: Option<GrpcServer>,
    /// `http`
    pub http: Option<OtlpHttpServer>,
}

impl ReceiverSettings for OtlpReceiver {
    fn server_auths(&self) -> Vec<&ComponentId> {
        let grpc = self.grpc.iter().filter_map(|grpc| grpc.auth.as_ref());
        let http = self.http.iter();
        let http = http.filter_map(|http| http.server.auth.as_ref());
        grpc.chain(http).collect()
    }

    fn proxy_role(&self) -> ProxyRole {
        ProxyRole::Default
    }
}

/// `http`: the server, and the paths of the signals.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpServer {
    /// The server.
    pub server: HttpServer,
    /// Path of traces, with its slash.
    pub traces_path: String,
    /// Path of metrics.
    pub metrics_path: String,
    /// Path of logs.
    pub logs_path: String,
}

#[rustfmt::skip]
const GRPC: &[Opt] = &[opt("endpoint", Kind::Text, "localhost:4317", "address to listen on")];
#[rustfmt::skip]
const HTTP: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:4318", "address to listen on"),
    opt("traces_url_path", Kind::Text, "/v1/traces", "path of traces"),
    opt("metrics_url_path", Kind::Text, "/v1/metrics", "path of metrics"),
    opt("logs_url_path", Kind::Text, "/v1/logs", "path of logs"),
    opt("read_header_timeout", Kind::Duration, "0s", "the head of a request; 0: as `read_timeout`"),
    opt("write_timeout", Kind::Duration, "0s", "a response; 0: no bound"),
    opt("idle_timeout", Kind::Duration, "0s", "between requests; 0: as `read_timeout`"),
];
#[rustfmt::skip]
const PROTOCOLS: &[Opt] = &[
    opt("grpc", Kind::Maybe(&[GRPC, grpc::SERVER]), "", "OTLP over gRPC; off where it is not written"),
    opt("http", Kind::Maybe(&[HTTP, http::SERVER]), "", "OTLP over HTTP, protobuf and JSON; off where it is not written"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("otlp")],
    doc: "OTLP over gRPC and HTTP",
    takes: EVERY,
    carries: EVERY,
    options: &[&[required(
        "protocols",
        Kind::Section(&[PROTOCOLS]),
        "`grpc`, `http` or both",
    )]],
    parse: Parse::Receiver(parse),
};

fn parse(section: &Section<'_>) -> Receiver {
    let protocols = section.section("protocols");
    let receiver = OtlpReceiver {
        grpc: protocols.maybe("grpc").map(|grpc| grpc::server(&grpc)),
        http: protocols.maybe("http").map(|http| http_server(&http)),
    };
    // A protocol that there is not was told as that.
    let known = |(key, _): &(Key, Node)| protocols.knows(&key.text);
    let written = section.written("protocols");
    let is_none = receiver.grpc.is_none() && receiver.http.is_none();
    if is_none && written.is_some_and(|node| node.entries().iter().all(known)) {
        section.error("protocols", "must have 'grpc' or 'http'");
    }
    Receiver::new(receiver)
}

fn http_server(section: &Section<'_>) -> OtlpHttpServer {
    let server = OtlpHttpServer {
        server: http::server(section),
        traces_path: path(section, "traces_url_path"),
        metrics_path: path(section, "metrics_url_path"),
        logs_path: path(section, "logs_url_path"),
    };
    let (traces, metrics, logs) = (&server.traces_path, &server.metrics_path, &server.logs_path);
    if traces == metrics || traces == logs || metrics == logs {
        section.fault("two signals have one path");
    }
    server
}

fn path(section: &Section<'_>, name: &str) -> String {
    let path = section.text(name);
    if path.contains(['?', '#']) || path.contains(char::is_whitespace) {
        section.error(name, &format!("'{path}' is no path"));
    }
    if path.starts_with('/') {
        path
    } else {
        format!("/{path}")
    }
}
