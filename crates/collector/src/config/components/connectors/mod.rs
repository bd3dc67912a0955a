//! Connectors.
//!
//! A kind is a file of settings here, which implements [`ConnectorSettings`], a file in
//! `run/connect`, which implements [`StartConnector`], and an entry of [`ENTRIES`].

pub mod count;
pub mod dimension;
pub mod exceptions;
pub mod forward;
pub mod round_robin;
pub mod service_graph;
pub mod span_metrics;

use std::sync::Arc;

use otlp::Signal;

use super::id::ComponentId;
use super::settings::{Erased, Value};
use super::{Entry, Parse, Role};
use crate::config::service::context::Asked;
use crate::run::connect::StartConnector;

/// A connector's settings: what the configuration asks of a kind. [`StartConnector`] is what the run
/// asks.
pub trait ConnectorSettings: Value + StartConnector {
    /// Adds what it reads of the requests that data came with.
    fn ask(&self, _asked: &mut Asked) {}
}

/// A connector's settings, of any kind.
pub type Connector = Erased<dyn ConnectorSettings>;

impl Connector {
    /// Of settings of a kind.
    pub fn new(settings: impl ConnectorSettings) -> Connector {
        Erased::share(Arc::new(settings))
    }
}

/// A signal that a connector takes from the pipeline that it ends, and the signal that it then gives
/// to the pipeline that it begins.
pub type Pair = (Signal, Signal);

/// Each signal to itself.
pub(crate) const SAME: &[Pair] = &[
    (Signal::Traces, Signal::Traces),
    (Signal::Metrics, Signal::Metrics),
    (Signal::Logs, Signal::Logs),
];

/// Pairs of the connector with an id; none where there is no such kind.
#[must_use]
pub fn pairs(id: &ComponentId) -> &'static [Pair] {
    match Role::Connector.entry(&id.kind).map(|entry| &entry.parse) {
        Some(Parse::Connector { pairs, .. }) => pairs,
        _ => &[],
    }
}

/// Whether the connector with an id makes data of the signal `gives` of data of the signal `takes`.
#[must_use]
pub fn joins(id: &ComponentId, takes: Signal, gives: Signal) -> bool {
    pairs(id).contains(&(takes, gives))
}

/// Connectors that make metrics of traces.
pub(crate) const TRACES_TO_METRICS: &[Pair] = &[(Signal::Traces, Signal::Metrics)];

pub(crate) const ENTRIES: &[Entry] = &[
    forward::ENTRY,
    count::ENTRY,
    span_metrics::ENTRY,
    exceptions::ENTRY,
    service_graph::ENTRY,
    round_robin::ENTRY,
];
