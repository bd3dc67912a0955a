//! The byte budget: what all shards of a collector may hold together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that are held, and how many may be. Shared by all shards; each charges what it holds,
/// which is exact: segments, pages of the trace table, its index, headers, the memory of decisions,
/// and output until it is settled.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicU64,
    bytes_max: u64,
}

/// There is no room. The sender keeps its spans and tries again (gRPC `RESOURCE_EXHAUSTED` with
/// `RetryInfo`, HTTP 429 with `Retry-After`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When there will be room, from now: the expiry of the oldest segment where that is known.
    pub retry_after_ns: u64,
    /// What is full.
    pub full: Full,
}

/// What has no room for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The bytes that waiting traces may take.
    Budget,
    /// The number of waiting traces (`num_traces`), which are not decided early.
    Traces,
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes_max: u64) -> Budget {
        Budget {
            used_bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Bytes that are held or reserved.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Bytes that may be held.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Takes so many bytes, all or none: for the body of a request before it is read. Give them
    /// back with [`Budget::release`] once the request is accepted or refused.
    #[must_use]
    pub fn reserve(&self, bytes: u64) -> bool {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used_bytes.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Gives back what was reserved.
    pub fn release(&self, bytes: u64) {
        let before = self.used_bytes.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "no more is released than was held");
    }

    /// What is held changed from `before` to `after`; it is held already, so that no bound applies.
    pub fn adjust(&self, before: u64, after: u64) {
        if after >= before {
            self.used_bytes.fetch_add(after - before, Relaxed);
        } else {
            self.release(before - after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_nothing() {
        let budget = Budget::new(100);
        assert!(budget.reserve(60));
        assert!(!budget.reserve(41));
        assert_eq!(budget.used_bytes(), 60);
        assert!(budget.reserve(40));
        budget.release(100);
        assert!(!budget.reserve(u64::MAX));
        assert!(budget.reserve(100));
    }
}
