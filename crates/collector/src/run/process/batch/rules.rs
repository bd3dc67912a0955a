//! When batches are made, and of what.

use std::sync::Arc;
use std::time::Duration;

use crate::config::components::processors::batch::Batch as Settings;
use crate::config::components::shared::queue::QueueBatch;
use crate::run::origin::Origin;

/// See the module.
#[derive(Debug)]
pub struct Rules {
    /// The age at which what waits is sent.
    pub timeout: Duration,
    /// The size at which it is sent at once.
    pub size: u64,
    /// A batch is no larger; 0: no bound.
    pub size_max: u64,
    /// What has the same values of these fields goes together, by their names in small letters; empty: everything.
    keys: Vec<Arc<str>>,
    /// Combinations of values that are taken; none: they are forgotten once they are sent.
    pub combinations_max: Option<usize>,
    /// Senders that wait for the next one wait for the batch too.
    pub keeps_waiting: bool,
}

impl Rules {
    /// Those of the processor.
    #[must_use]
    pub fn of_processor(settings: &Settings) -> Rules {
        let is_lasting = settings.cardinality_limit > 0 && !settings.metadata_keys.is_empty();
        Rules {
            timeout: Duration::from_nanos(settings.timeout_ns),
            size: u64::from(settings.send_size),
            size_max: u64::from(settings.send_size_max),
            keys: names(&settings.metadata_keys),
            combinations_max: is_lasting.then_some(settings.cardinality_limit as usize),
            keeps_waiting: false,
        }
    }

    /// Those of a queue, which senders may wait for.
    #[must_use]
    pub fn of_queue(settings: &QueueBatch, keeps_waiting: bool) -> Rules {
        Rules {
            timeout: Duration::from_nanos(settings.flush_timeout_ns),
            size: settings.size_min,
            size_max: settings.size_max,
            keys: names(&settings.metadata_keys),
            combinations_max: None,
            keeps_waiting,
        }
    }

    /// Whether data are told apart at all.
    #[must_use]
    pub fn tells_apart(&self) -> bool {
        !self.keys.is_empty()
    }

    /// What tells the data of an origin apart from others, and is known of their batch.
    #[must_use]
    pub fn key(&self, origin: Option<&Origin>) -> Option<Arc<Origin>> {
        match self.keys.is_empty() {
            true => None,
            false => origin?.only(&self.keys).map(Arc::new),
        }
    }
}

fn names(keys: &[String]) -> Vec<Arc<str>> {
    keys.iter().map(|key| Arc::from(&**key)).collect()
}
