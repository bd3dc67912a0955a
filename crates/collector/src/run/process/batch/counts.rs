//! Batches that were made, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::run::buckets::Buckets;

/// Upper bounds of the records of a batch, as the Collector has them.
const BOUNDS: &[u64] = &[
    10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000,
    10_000, 20_000, 30_000, 50_000, 100_000,
];

/// Why a batch was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// It was large enough, or there was no room for more.
    Size,
    /// It had waited for long enough, or the process ends.
    Timeout,
}

/// See the module.
#[derive(Debug)]
pub struct Counts {
    by_size: AtomicU64,
    by_timeout: AtomicU64,
    sizes: Buckets,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            by_size: AtomicU64::new(0),
            by_timeout: AtomicU64::new(0),
            sizes: Buckets::new(BOUNDS),
        }
    }
}

impl Counts {
    /// A batch of so many records.
    pub(super) fn add(&self, trigger: Trigger, records: u64) {
        let count = match trigger {
            Trigger::Size => &self.by_size,
            Trigger::Timeout => &self.by_timeout,
        };
        count.fetch_add(1, Relaxed);
        self.sizes.add(records);
    }

    /// Batches that were made because of their size.
    #[must_use]
    pub fn by_size(&self) -> u64 {
        self.by_size.load(Relaxed)
    }

    /// Batches that were made because of their age.
    #[must_use]
    pub fn by_timeout(&self) -> u64 {
        self.by_timeout.load(Relaxed)
    }

    /// Records of each.
    #[must_use]
    pub fn sizes(&self) -> &Buckets {
        &self.sizes
    }
}
