//! `healthcheckv2`: an address that tells how the collector, its pipelines and its components are.

use super::Extension;
use super::health_check;
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An HTTP server for probes that look closer.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheckV2 {
    /// The server.
    pub server: HttpServer,
    /// The path of the status, with its slash.
    pub status_path: String,
    /// Whether an exporter that fails counts, once it has for this time.
    pub recovery_ns: Option<u64>,
}

const GRPC_REASON: &str = "not yet: probes come over 'http'";

#[rustfmt::skip]
const STATUS: &[Opt] = &[opt("path", Kind::Text, "/status", "its path")];
#[rustfmt::skip]
const HTTP: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:13133", "address to listen on"),
    opt("status", Kind::Maybe(&[STATUS]), "", "the status; on unless `enabled: false`"),
    opt("config", Kind::Maybe(&[&[opt("path", Kind::Text, "/config", "its path")]]), "", "the configuration").refused("it may hold secrets, and is not shown"),
];
#[rustfmt::skip]
const COMPONENT_HEALTH: &[Opt] = &[
    opt("include_permanent_errors", Kind::Flag, "false", "what fails for good counts").no_effect("no component here fails for good: exporters try on"),
    opt("include_recoverable_errors", Kind::Flag, "false", "exporters that fail count"),
    opt("recovery_duration", Kind::Duration, "1m", "once they have for this time"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("use_v2", Kind::Flag, "false", "`http` and `component_health` count; else the options of health_check"),
    opt("http", Kind::Maybe(&[HTTP, http::SERVER]), "", "an HTTP server"),
    opt("grpc", Kind::Any, "", "gRPC's health service").refused(GRPC_REASON),
    opt("component_health", Kind::Maybe(&[COMPONENT_HEALTH]), "", "which faults count"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("healthcheckv2"), name("health_checkv2")],
    doc: "an address for probes that look closer",
    takes: &[],
    carries: &[],
    options: &[OPTIONS, health_check::OPTIONS, http::SERVER],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    if !section.flag("use_v2") {
        return health_check::parse(section);
    }
    let http = section.section("http");
    let status = http.section("status");
    let is_on = section.maybe("http").is_some();
    let is_told = http.written("status").is_none() || http.maybe("status").is_some();
    if !is_on || !is_told {
        section.error("http", "must be there with its 'status'");
    }
    let path = status.text("path");
    if !path.starts_with('/') {
        status.error("path", "must begin with a slash");
    }
    let health = section.section("component_health");
    let counts = health.flag("include_recoverable_errors");
    Extension::HealthCheckV2(Box::new(HealthCheckV2 {
        server: http::server(&http),
        status_path: path,
        recovery_ns: counts.then(|| health.duration_ns("recovery_duration")),
    }))
}
