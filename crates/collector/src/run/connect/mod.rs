//! Connectors: the exporter of one pipeline is the receiver of another, of the same signal or of
//! another one.

mod attributes;
mod count;
mod exceptions;
mod flush;
mod forward;
mod made;
mod round_robin;
mod series;
mod service_graph;
mod span_metrics;
mod spans;

use std::sync::Arc;

use crate::config::Signal;
use crate::run::Log;
use crate::run::account::Account;
use crate::run::consume::Consumer;
use crate::run::part::Part;

use made::{Make, Maker};

/// Settings that a connector is started from.
pub trait StartConnector {
    /// Starts the connector for one signal that it takes and one that it gives. What comes back gets
    /// each batch of the pipelines that it ends. Called within the runtime.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String>;
}

/// Dependencies of a connector that is started.
pub struct ConnectorDeps<'a> {
    /// Its id.
    pub id: &'a str,
    /// The signal of the pipelines that it ends.
    pub takes: Signal,
    /// The signal of those that it begins.
    pub gives: Signal,
    /// Where its lines go.
    pub log: &'a Log,
    /// The identifier of this collector (`service.instance.id` of its own metrics).
    pub instance_id: &'a str,
    /// The account of the signal that it gives. Records that it makes are accepted there.
    pub account: &'a Arc<Account>,
    /// The pipelines that it begins, in the order of the files; at least one.
    pub next: Vec<Arc<dyn Consumer>>,
    pub(in crate::run) parts: &'a mut Vec<Arc<dyn Part>>,
}
