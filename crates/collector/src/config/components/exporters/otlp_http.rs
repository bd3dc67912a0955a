//! `otlp_http`: OTLP over HTTP.

use otlp::Signal;
use telemetry::settings::Encoding;

use super::{Exporter, ExporterSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::http::{self, HttpClient};
use crate::config::components::shared::queue::{self, Queue};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An exporter of OTLP over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpExporter {
    /// URL of traces, with the path; none: there is no address for them.
    pub traces_url: Option<String>,
    /// URL of metrics.
    pub metrics_url: Option<String>,
    /// URL of logs.
    pub logs_url: Option<String>,
    /// How the server is spoken to.
    pub client: HttpClient,
    /// What waits before it.
    pub queue: Option<Queue>,
    /// Treatment of failures.
    pub retry: Option<Retry>,
}

impl OtlpHttpExporter {
    /// The URL of a signal.
    #[must_use]
    pub fn url(&self, signal: Signal) -> Option<&String> {
        match signal {
            Signal::Traces => self.traces_url.as_ref(),
            Signal::Metrics => self.metrics_url.as_ref(),
            Signal::Logs => self.logs_url.as_ref(),
        }
    }
}

impl ExporterSettings for OtlpHttpExporter {
    fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    fn retry(&self) -> Option<Retry> {
        self.retry
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn auth(&self) -> Option<&ComponentId> {
        self.client.auth.as_ref()
    }

    /// One that names no address at all was refused where it was read.
    fn has_address(&self, signal: Signal) -> bool {
        let mut signals = Signal::ALL.into_iter();
        self.url(signal).is_some() || signals.all(|other| self.url(other).is_none())
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("endpoint", Kind::Text, "", "URL; `/v1/traces` and the like follow it"),
    opt("traces_endpoint", Kind::Text, "", "whole URL of traces"),
    opt("metrics_endpoint", Kind::Text, "", "whole URL of metrics"),
    opt("logs_endpoint", Kind::Text, "", "whole URL of logs"),
    opt("profiles_endpoint", Kind::Text, "", "whole URL of profiles").no_effect("profiles are not carried"),
    opt("encoding", Kind::Word(&["proto", "json"]), "proto", "what bodies are"),
    opt("sending_queue", Kind::Section(queue::TABLE), "", "what waits before it"),
    opt("retry_on_failure", Kind::Section(retry::TABLE), "", "what becomes of failures"),
    opt("insecure", Kind::Any, "", "gone since 0.38").refused("an `http://` endpoint is plain text; TLS has `tls: { … }`"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("otlp_http"), name("otlphttp")],
    doc: "OTLP over HTTP",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS, http::CLIENT],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let base = http::url(section, "endpoint");
    let url = |name: &str, path: &str| {
        let joined = |base: &String| format!("{}{path}", base.trim_end_matches('/'));
        http::url(section, name).or_else(|| base.as_ref().map(joined))
    };
    let encodings = [("proto", Encoding::Protobuf), ("json", Encoding::Json)];
    let encoding = section.choice("encoding", &encodings);
    let exporter = OtlpHttpExporter {
        traces_url: url("traces_endpoint", "/v1/traces"),
        metrics_url: url("metrics_endpoint", "/v1/metrics"),
        logs_url: url("logs_endpoint", "/v1/logs"),
        client: http::client(section, encoding),
        queue: queue::queue(&section.section("sending_queue")),
        retry: retry::retry(&section.section("retry_on_failure")),
    };
    let names = [
        "endpoint",
        "traces_endpoint",
        "metrics_endpoint",
        "logs_endpoint",
    ];
    if names.iter().all(|name| section.text(name).is_empty()) {
        section.error("endpoint", "is missing: the URL of the server");
    }
    Exporter::new(exporter)
}
