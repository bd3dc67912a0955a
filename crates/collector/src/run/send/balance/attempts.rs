//! What became of what was sent to a backend, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::run::buckets::Buckets;

/// Upper bounds of the times of attempts, as the Collector has them.
const BOUNDS_MS: &[u64] = &[5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/// See the module.
#[derive(Debug)]
pub struct Attempts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// How long they took, in milliseconds.
    pub(in crate::run) times_ms: Buckets,
}

impl Default for Attempts {
    fn default() -> Attempts {
        Attempts {
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            times_ms: Buckets::new(BOUNDS_MS),
        }
    }
}

impl Attempts {
    /// One more.
    pub fn add(&self, took: Duration, is_success: bool) {
        self.times_ms.add(took.as_millis() as u64);
        let outcome = if is_success {
            &self.succeeded
        } else {
            &self.failed
        };
        outcome.fetch_add(1, Relaxed);
    }

    /// Taken by the backend.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.succeeded.load(Relaxed)
    }

    /// Not taken.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }
}
