//! Exporters.
//!
//! A kind is a file of settings here, which implements [`ExporterSettings`], a file in `run/send`,
//! which implements [`StartExporter`] and usually a target, and an entry of [`ENTRIES`].

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
pub mod prometheus_remote_write;

use std::sync::Arc;

use otlp::Signal;

use super::Entry;
use super::id::ComponentId;
use super::settings::{Erased, Value};
use super::shared::queue::Queue;
use super::shared::retry::Retry;
use crate::config::service::context::Asked;
use crate::run::send::StartExporter;
use dashboard::DashboardExporter;

/// An exporter's settings: what the configuration asks of a kind. [`StartExporter`] is what the run
/// asks.
pub trait ExporterSettings: Value + StartExporter {
    /// What waits before it; none: it has no `sending_queue`.
    fn queue(&self) -> Option<&Queue> {
        None
    }

    /// Treatment of failures; none: data are given up at once.
    fn retry(&self) -> Option<Retry> {
        None
    }

    /// Its queue, or that of each of its backends.
    fn any_queue(&self) -> Option<&Queue> {
        self.queue()
    }

    /// Whether a back end takes the data, which takes time and may fail: a sender waits for that
    /// where nothing else holds the data.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether its data are to keep their order: one batch is sent after the other.
    fn is_ordered(&self) -> bool {
        false
    }

    /// The extension that changes its requests.
    fn auth(&self) -> Option<&ComponentId> {
        None
    }

    /// Whether its requests go over gRPC without TLS.
    fn is_plain_grpc(&self) -> bool {
        false
    }

    /// The extension that checks who asks for what it serves.
    fn server_auth(&self) -> Option<&ComponentId> {
        None
    }

    /// Whether it has an address for a signal, or needs none.
    fn has_address(&self, _signal: Signal) -> bool {
        true
    }

    /// Whether it writes files that no other collector may write at the same time.
    fn writes_files(&self) -> bool {
        false
    }

    /// What the process's trace store is to hold for it.
    fn trace_store(&self) -> Option<DashboardExporter> {
        None
    }

    /// Adds what it reads of the requests that data came with, besides its queue and its extension.
    fn ask(&self, _asked: &mut Asked) {}
}

/// An exporter's settings, of any kind.
pub type Exporter = Erased<dyn ExporterSettings>;

impl Exporter {
    /// Of settings of a kind.
    pub fn new(settings: impl ExporterSettings) -> Exporter {
        Erased::share(Arc::new(settings))
    }

    /// Whether a sender waits until its data is stored, delivered or queued. A remote exporter
    /// without a queue always makes its sender wait, because nothing else holds the data.
    #[must_use]
    pub fn makes_wait(&self) -> bool {
        let waits = |queue: &Queue| queue.makes_wait() || queue.blocks();
        self.is_remote() && self.any_queue().is_none_or(waits)
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
    prometheus_remote_write::ENTRY,
    nop::ENTRY,
    gone::JAEGER,
    gone::OPENCENSUS,
];
