//! Running components beside the way of their data: each tells its metrics and its status, and ends
//! itself.

use std::pin::Pin;
use std::sync::Arc;

use tokio::time::Instant;

use super::Log;
use super::metrics::Sheet;

/// The end of a component, to be awaited.
pub type Ended<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A running component that has more to say than its data. All methods have a default, for
/// components that have nothing to say.
pub trait Part: Send + Sync {
    /// Adds its metrics to a sheet.
    fn describe(&self, _name: &PartName, _sheet: &mut Sheet) {}

    /// Records that wait for a decision; none of a component that decides nothing.
    fn pending(&self) -> Option<Pending> {
        None
    }

    /// Its policies and what they decided, for the dashboard.
    fn sampling(&self) -> Option<Sampling> {
        None
    }

    /// Stops decisions, or resumes them: during the recovery of a journal the other spans of a trace
    /// may still come.
    fn pause(&self, _is_paused: bool) {}

    /// Takes nothing more, and hands on what it holds until a time; what is left then is lost. The
    /// components before it have ended.
    fn end<'a>(&'a self, _until: Instant, _log: &'a Log) -> Ended<'a> {
        Box::pin(async {})
    }
}

/// Traces that wait for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Traces.
    pub traces: u64,
    /// Their spans.
    pub spans: u64,
}

/// Decisions of a sampler, and its policies.
pub struct Sampling {
    pub(crate) sum: super::process::tail::Sum,
    /// The policies as YAML.
    pub yaml: String,
}

/// The place of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartName {
    /// The pipeline's id.
    pub pipeline: String,
    /// The component's id.
    pub id: String,
}

impl PartName {
    /// The labels of its metrics, those of a processor in the Collector.
    #[must_use]
    pub fn labels(&self) -> [(&str, &str); 2] {
        [("pipeline", &self.pipeline), ("processor", &self.id)]
    }
}

/// A running component and its place.
#[derive(Clone)]
pub struct Running {
    /// Its place.
    pub name: PartName,
    /// The component.
    pub part: Arc<dyn Part>,
}
