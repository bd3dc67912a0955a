//! `health_check`: an address that tells whether all is well.

use super::Extension;
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An HTTP server for probes.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// The server.
    pub server: HttpServer,
    /// The path that answers, with its slash.
    pub path: String,
    /// Body of the answer while all is well, where it is not the default.
    pub healthy_body: Option<String>,
    /// Body of the answer otherwise.
    pub unhealthy_body: Option<String>,
}

#[rustfmt::skip]
const RESPONSE_BODY: &[Opt] = &[
    opt("healthy", Kind::Text, "", "body while all is well"),
    opt("unhealthy", Kind::Text, "", "body otherwise"),
];
#[rustfmt::skip]
pub(super) const OPTIONS: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:13133", "address to listen on"),
    opt("path", Kind::Text, "/", "the path that answers"),
    opt("response_body", Kind::Maybe(&[RESPONSE_BODY]), "", "bodies of the answers"),
    opt("check_collector_pipeline", Kind::Maybe(&[&[
        opt("enabled", Kind::Flag, "false", "failures of exporters count"),
        opt("interval", Kind::Text, "5m", "time in which they are counted"),
        opt("exporter_failure_threshold", Kind::Int(0, i64::MAX), "5", "how many are too many"),
    ]]), "", "failures of exporters count").no_effect("it never worked in the Collector, and is deprecated there"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("health_check")],
    doc: "an address for probes",
    takes: &[],
    carries: &[],
    options: &[OPTIONS, http::PAGE, http::SERVER],
    parse: Parse::Extension(parse),
};

pub(super) fn parse(section: &Section<'_>) -> Extension {
    let body = section.section("response_body");
    let path = section.text("path");
    if !path.starts_with('/') {
        section.error("path", "must begin with a slash");
    }
    Extension::HealthCheck(Box::new(HealthCheck {
        server: http::server(section),
        path,
        healthy_body: body.text_unless_empty("healthy"),
        unhealthy_body: body.text_unless_empty("unhealthy"),
    }))
}
