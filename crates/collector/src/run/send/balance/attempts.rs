//! What became of what was sent to a backend, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the times of attempts, as the Collector has them.
pub const BOUNDS_MS: [u64; 10] = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/// See the module.
#[derive(Debug, Default)]
pub struct Attempts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// By [`BOUNDS_MS`], and the rest.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_ms: AtomicU64,
}

/// What attempts say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Taken by the backend.
    pub succeeded: u64,
    /// Not taken.
    pub failed: u64,
    /// By [`BOUNDS_MS`], and the rest.
    pub counts: [u64; BOUNDS_MS.len() + 1],
    /// Of their times.
    pub sum_ms: u64,
}

impl Attempts {
    /// One more.
    pub fn add(&self, took: Duration, is_success: bool) {
        let took_ms = took.as_millis() as u64;
        let place = BOUNDS_MS.iter().position(|bound| took_ms <= *bound);
        self.counts[place.unwrap_or(BOUNDS_MS.len())].fetch_add(1, Relaxed);
        self.sum_ms.fetch_add(took_ms, Relaxed);
        let outcome = match is_success {
            true => &self.succeeded,
            false => &self.failed,
        };
        outcome.fetch_add(1, Relaxed);
    }

    /// Now.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            succeeded: self.succeeded.load(Relaxed),
            failed: self.failed.load(Relaxed),
            counts: self.counts.each_ref().map(|count| count.load(Relaxed)),
            sum_ms: self.sum_ms.load(Relaxed),
        }
    }
}
