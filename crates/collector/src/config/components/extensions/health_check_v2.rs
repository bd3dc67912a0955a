//! `healthcheckv2`: an address that tells how the collector, its pipelines and its components are.

use super::Extension;
use super::health_check;
use crate::config::components::id::ComponentId;
use crate::config::components::shared::grpc::{self, GrpcServer};
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Servers for probes that look closer: one at least.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheckV2 {
    /// Over HTTP.
    pub http: Option<HealthPage>,
    /// gRPC's health service.
    pub grpc: Option<GrpcServer>,
    /// Whether an exporter that fails counts, once it has for this time.
    pub recovery_ns: Option<u64>,
}

/// `http`
#[derive(Clone, Debug, PartialEq)]
pub struct HealthPage {
    /// The server.
    pub server: HttpServer,
    /// The path of the status, with its slash.
    pub status_path: String,
}

impl HealthCheckV2 {
    /// The extensions that ask who is there.
    pub fn auth(&self) -> impl Iterator<Item = &ComponentId> {
        let http = self
            .http
            .as_ref()
            .and_then(|http| http.server.auth.as_ref());
        let grpc = self.grpc.as_ref().and_then(|grpc| grpc.auth.as_ref());
        http.into_iter().chain(grpc)
    }
}

#[rustfmt::skip]
const STATUS: &[Opt] = &[opt("path", Kind::Text, "/status", "its path")];
#[rustfmt::skip]
const HTTP: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:13133", "address to listen on"),
    opt("status", Kind::Maybe(&[STATUS]), "", "the status; on unless `enabled: false`"),
    opt("config", Kind::Maybe(&[&[opt("path", Kind::Text, "/config", "its path")]]), "", "the configuration").refused("it may hold secrets, and is not shown"),
];
#[rustfmt::skip]
const GRPC: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:13132", "address to listen on"),
    opt("max_recv_msg_size_mib", Kind::Int(0, 4095), "0", "MiB of one message").no_effect("all questions at a time have 1 MiB at most"),
    opt("include_metadata", Kind::Flag, "false", "a client's metadata").no_effect("nothing is passed on"),
];
#[rustfmt::skip]
const COMPONENT_HEALTH: &[Opt] = &[
    opt("include_permanent_errors", Kind::Flag, "false", "what fails for good counts").no_effect("no component here fails for good: exporters try on"),
    opt("include_recoverable_errors", Kind::Flag, "false", "exporters that fail count, and load balancers whose backends all do"),
    opt("recovery_duration", Kind::Duration, "1m", "once they have for this time"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("use_v2", Kind::Flag, "false", "`http`, `grpc` and `component_health` count; else the options of health_check"),
    opt("http", Kind::Maybe(&[HTTP, http::PAGE, http::SERVER]), "", "an HTTP server"),
    opt("grpc", Kind::Maybe(&[GRPC, grpc::SERVER]), "", "gRPC's health service (`Check` and `Watch`): of the collector, or of the pipeline that is asked for"),
    opt("component_health", Kind::Maybe(&[COMPONENT_HEALTH]), "", "which faults count"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("healthcheckv2"), name("health_checkv2")],
    doc: "an address for probes that look closer",
    takes: &[],
    carries: &[],
    options: &[OPTIONS, health_check::OPTIONS, http::PAGE, http::SERVER],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    if !section.flag("use_v2") {
        return health_check::parse(section);
    }
    let http = section.maybe("http").map(|http| page(&http));
    let grpc = section.maybe("grpc").map(|grpc| grpc::server(&grpc));
    if http.is_none() && grpc.is_none() {
        section.error("http", "or 'grpc' must be there");
    }
    let health = section.section("component_health");
    let counts = health.flag("include_recoverable_errors");
    Extension::HealthCheckV2(Box::new(HealthCheckV2 {
        http,
        grpc,
        recovery_ns: counts.then(|| health.duration_ns("recovery_duration")),
    }))
}

fn page(http: &Section<'_>) -> HealthPage {
    let status = http.section("status");
    if http.written("status").is_some() && http.maybe("status").is_none() {
        http.error("status", "must be on: there is nothing else on the page");
    }
    let path = status.text("path");
    if !path.starts_with('/') {
        status.error("path", "must begin with a slash");
    }
    HealthPage {
        server: http::server(http),
        status_path: path,
    }
}
