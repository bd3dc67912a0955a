//! Where the batches of a queue end: what each kind of exporter implements.

use export::client::Outcome;

use crate::config::components::exporters::ExporterSettings;
use crate::config::components::shared::queue::Queue;
use crate::config::components::shared::retry::Retry;
use crate::run::data::Batch;
use crate::run::metrics::Sheet;

/// Takes batches one attempt at a time. The queue before it counts, retries and gives up.
pub trait Target: Send + Sync + 'static {
    /// The work of the first attempt to send a batch, kept for the next.
    type Prepared: Default + Send;

    /// Sends a batch once.
    fn send(
        &self,
        batch: &Batch,
        prepared: &mut Self::Prepared,
    ) -> impl Future<Output = Outcome> + Send;

    /// Records of a batch that nobody has taken yet.
    fn records_left(batch: &Batch, _prepared: &Self::Prepared) -> u64 {
        batch.records
    }

    /// The host and port that it sends to, where it has some.
    fn server(&self) -> Option<&(String, String)> {
        None
    }

    /// Adds its metrics besides those of all exporters. `exporter` is its id.
    fn describe(&self, _exporter: &str, _sheet: &mut Sheet) {}
}

/// What a queue tells of its target.
pub(super) trait TargetView: Send + Sync {
    /// [`Target::server`]
    fn server(&self) -> Option<&(String, String)>;

    /// [`Target::describe`]
    fn describe(&self, exporter: &str, sheet: &mut Sheet);
}

impl<T: Target> TargetView for T {
    fn server(&self) -> Option<&(String, String)> {
        Target::server(self)
    }

    fn describe(&self, exporter: &str, sheet: &mut Sheet) {
        Target::describe(self, exporter, sheet);
    }
}

/// The answer of a target that cannot fail.
pub(super) const TAKEN: Outcome = Outcome::Taken {
    rejected: 0,
    message: String::new(),
};

/// How batches wait for a target.
pub struct QueueSettings {
    /// `sending_queue`; none: senders wait for the outcome, if the target is remote.
    pub queue: Option<Queue>,
    /// Treatment of failures; none: data are given up at once.
    pub retry: Option<Retry>,
    /// [`ExporterSettings::is_remote`]
    pub is_remote: bool,
    /// [`ExporterSettings::is_ordered`]
    pub is_ordered: bool,
}

impl QueueSettings {
    /// Those of an exporter.
    pub fn of(exporter: &impl ExporterSettings) -> QueueSettings {
        QueueSettings {
            queue: exporter.queue().cloned(),
            retry: exporter.retry(),
            is_remote: exporter.is_remote(),
            is_ordered: exporter.is_ordered(),
        }
    }
}
