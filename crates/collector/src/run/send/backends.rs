//! Exporters that spread their data over back ends, each with a queue of its own.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Attempts, Sender};
use crate::config::Signal;
use crate::run::consume::Consumer;
use crate::run::metrics::Sheet;
use crate::run::part::Ended;

/// An exporter with several back ends, as the collector sees it besides its data.
pub trait Backends: Consumer {
    /// Its back ends, sorted by their addresses.
    fn view(&self) -> Vec<BackendView>;

    /// Its back ends whose attempts fail, if any does. One without a back end fails too.
    fn failing(&self) -> Option<FailingBackends>;

    /// Adds its metrics besides those of its queues. `exporter` is its id.
    fn describe(&self, exporter: &str, sheet: &mut Sheet);

    /// Sends what waits until a time; what is left then is lost, and counted.
    fn end(&self, until: Instant) -> Ended<'_>;

    /// Ends without sending what waits: that goes to the exporter of the same id of the collector
    /// that follows, as there is room. What has none until a time is lost.
    fn hand_to(&self, heir: Arc<dyn Backends>, until: Instant) -> Ended<'_>;
}

/// A back end as its metrics tell of it.
pub struct BackendView {
    /// Its address.
    pub endpoint: String,
    /// The exporter that metrics of its queue name.
    pub exporter: String,
    /// What it gets.
    pub signal: Signal,
    /// Its queue.
    pub sender: Arc<Sender>,
    /// What became of what was sent to it.
    pub attempts: Arc<Attempts>,
}

/// Back ends of an exporter whose attempts fail.
pub struct FailingBackends {
    /// Time of the latest start of a failure, in nanoseconds since the UNIX epoch.
    pub since_ns: u64,
    /// The failure of one of them, and how many there are.
    pub why: String,
    /// Whether all back ends fail.
    pub are_all: bool,
}
