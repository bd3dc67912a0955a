//! When batches are made, and of what.

use std::sync::Arc;
use std::time::Duration;

use crate::config::components::processors::batch::Batch as Settings;
use crate::config::components::shared::queue::{Queue, Sizer};
use crate::run::origin::Origin;
use otlp::split::Bound;

/// Bytes that wait for one batch at most where they are not what is counted: it is sent from here
/// on, however few its records are.
const BYTES_MAX: usize = 3 << 20;

/// See the module.
#[derive(Debug)]
pub struct Rules {
    /// The age at which what waits is sent.
    pub timeout: Duration,
    /// The size at which it is sent at once.
    size: u64,
    /// What that counts.
    sizer: Sizer,
    /// A batch is no larger.
    pub bound: Bound,
    /// What has the same values of these fields goes together, by their names in small letters;
    /// empty: everything.
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
            sizer: Sizer::Items,
            bound: Bound::Records(settings.send_size_max.into()),
            keys: names(&settings.metadata_keys),
            combinations_max: is_lasting.then_some(settings.cardinality_limit as usize),
            keeps_waiting: false,
        }
    }

    /// Those of a queue; none where it puts nothing together.
    #[must_use]
    pub fn of_queue(queue: &Queue) -> Option<Rules> {
        let settings = queue.batch.as_ref()?;
        Some(Rules {
            timeout: Duration::from_nanos(settings.flush_timeout_ns),
            size: settings.size_min,
            sizer: settings.sizer,
            bound: match settings.sizer {
                Sizer::Bytes => Bound::Bytes(settings.size_max),
                Sizer::Items | Sizer::Requests => Bound::Records(settings.size_max),
            },
            keys: names(&settings.metadata_keys),
            combinations_max: None,
            keeps_waiting: queue.makes_wait(),
        })
    }

    /// Whether so much is enough for a batch.
    #[must_use]
    pub fn is_enough(&self, bytes: usize, records: u64) -> bool {
        let is_large = match self.sizer {
            Sizer::Bytes => bytes as u64 >= self.size,
            Sizer::Items | Sizer::Requests => records >= self.size.max(1) || bytes >= BYTES_MAX,
        };
        is_large || self.timeout.is_zero()
    }

    /// Whether data are told apart at all.
    #[must_use]
    pub fn tells_apart(&self) -> bool {
        !self.keys.is_empty()
    }

    /// What tells the data of an origin apart from others, and is known of their batch.
    #[must_use]
    pub fn key(&self, origin: Option<&Origin>) -> Option<Arc<Origin>> {
        if self.keys.is_empty() {
            None
        } else {
            origin?.only(&self.keys).map(Arc::new)
        }
    }
}

fn names(keys: &[String]) -> Vec<Arc<str>> {
    keys.iter().map(|key| Arc::from(&**key)).collect()
}
