//! Exporters.

pub mod dashboard;
pub mod debug;
pub mod file;
mod gone;
pub mod kafka;
pub mod load_balancing;
pub mod nop;
pub mod otlp_grpc;
pub mod otlp_http;
pub mod prometheus;

use super::Entry;
use super::id::ComponentId;
use super::shared::queue::Queue;

/// An exporter's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Exporter {
    /// `otlp_grpc`, `otlp`
    OtlpGrpc(Box<otlp_grpc::OtlpGrpcExporter>),
    /// `otlp_http`, `otlphttp`
    OtlpHttp(Box<otlp_http::OtlpHttpExporter>),
    /// `debug`, `logging`
    Debug(debug::DebugExporter),
    /// `file`
    File(file::FileExporter),
    /// `load_balancing`, `loadbalancing`
    LoadBalancing(Box<load_balancing::LoadBalancingExporter>),
    /// `kafka`
    Kafka(Box<kafka::KafkaExporter>),
    /// `dashboard`
    Dashboard(dashboard::DashboardExporter),
    /// `prometheus`
    Prometheus(Box<prometheus::PrometheusExporter>),
    /// `nop`: everything ends here.
    Nop,
}

impl Exporter {
    /// What waits before it, where it has a queue.
    #[must_use]
    pub fn queue(&self) -> Option<&Queue> {
        match self {
            Exporter::OtlpGrpc(exporter) => exporter.queue.as_ref(),
            Exporter::OtlpHttp(exporter) => exporter.queue.as_ref(),
            Exporter::Kafka(exporter) => exporter.queue.as_ref(),
            // Each backend has one of its own besides.
            Exporter::LoadBalancing(exporter) => exporter.own.as_ref()?.queue.as_ref(),
            Exporter::Debug(_)
            | Exporter::File(_)
            | Exporter::Dashboard(_)
            | Exporter::Prometheus(_)
            | Exporter::Nop => None,
        }
    }

    /// The extension that changes its requests.
    #[must_use]
    pub fn auth(&self) -> Option<&ComponentId> {
        match self {
            Exporter::OtlpGrpc(exporter) => exporter.client.auth.as_ref(),
            Exporter::OtlpHttp(exporter) => exporter.client.auth.as_ref(),
            Exporter::LoadBalancing(exporter) => exporter.otlp.client.auth.as_ref(),
            Exporter::Kafka(_)
            | Exporter::Debug(_)
            | Exporter::File(_)
            | Exporter::Dashboard(_)
            | Exporter::Prometheus(_)
            | Exporter::Nop => None,
        }
    }

    /// Its queue, or that of each of its backends.
    #[must_use]
    pub fn any_queue(&self) -> Option<&Queue> {
        match self {
            Exporter::LoadBalancing(exporter) if exporter.own.is_none() => {
                exporter.otlp.queue.as_ref()
            }
            other => other.queue(),
        }
    }

    /// Whether a sender waits until its data is stored, delivered or queued. An exporter without a
    /// queue always makes its sender wait, because nothing else holds the data.
    #[must_use]
    pub fn makes_wait(&self) -> bool {
        match self {
            Exporter::Debug(_)
            | Exporter::File(_)
            | Exporter::Dashboard(_)
            | Exporter::Prometheus(_)
            | Exporter::Nop => false,
            other => {
                let waits = |queue: &Queue| queue.makes_wait() || queue.blocks();
                other.any_queue().is_none_or(waits)
            }
        }
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    otlp_grpc::ENTRY,
    otlp_http::ENTRY,
    load_balancing::ENTRY,
    kafka::ENTRY,
    debug::ENTRY,
    file::ENTRY,
    dashboard::ENTRY,
    prometheus::ENTRY,
    nop::ENTRY,
    gone::JAEGER,
    gone::OPENCENSUS,
];
