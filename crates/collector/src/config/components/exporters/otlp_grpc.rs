//! `otlp_grpc`: OTLP over gRPC.

use super::{Exporter, ExporterSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::grpc::{self, GrpcClient};
use crate::config::components::shared::queue::{self, Queue};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An exporter of OTLP over gRPC.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpcExporter {
    /// The server, and how it is spoken to.
    pub client: GrpcClient,
    /// What waits before it.
    pub queue: Option<Queue>,
    /// Treatment of failures.
    pub retry: Option<Retry>,
}

impl ExporterSettings for OtlpGrpcExporter {
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

    fn is_plain_grpc(&self) -> bool {
        !self.client.is_tls()
    }
}

/// Options besides those of the client.
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Opt] = &[
    opt("timeout", Kind::Duration, "5s", "one call; 0: no bound"),
    opt("sending_queue", Kind::Section(queue::TABLE), "", "what waits before it"),
    opt("retry_on_failure", Kind::Section(retry::TABLE), "", "what becomes of failures"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("otlp_grpc"), name("otlp")],
    doc: "OTLP over gRPC",
    takes: EVERY,
    carries: EVERY,
    options: &[grpc::CLIENT, OPTIONS],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    Exporter::new(of(section, grpc::client(section)))
}

/// An exporter with this client, from its section.
pub(crate) fn of(section: &Section<'_>, client: GrpcClient) -> OtlpGrpcExporter {
    OtlpGrpcExporter {
        client,
        queue: queue::queue(&section.section("sending_queue")),
        retry: retry::retry(&section.section("retry_on_failure")),
    }
}
