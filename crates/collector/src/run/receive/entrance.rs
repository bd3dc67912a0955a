//! One transport of a receiver: what came in by it, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::Signal;

/// See the module.
#[derive(Debug, Default)]
pub struct Entrance {
    /// The receiver's id; empty where nothing is received.
    pub receiver: String,
    /// `grpc`, `http`, `udp` or `proxy`.
    pub transport: &'static str,
    accepted: [AtomicU64; 3],
    refused: [AtomicU64; 3],
    failed: [AtomicU64; 3],
}

/// What became of records at an entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Accepted,
    Refused,
    /// A component panicked on them.
    Failed,
}

impl Entrance {
    /// Of a receiver by its id.
    #[must_use]
    pub fn new(receiver: &str, transport: &'static str) -> Entrance {
        Entrance {
            receiver: receiver.to_owned(),
            transport,
            ..Entrance::default()
        }
    }

    /// Records were handed on, or were not.
    pub(super) fn count(&self, signal: Signal, records: u64, fate: Fate) {
        let counts = match fate {
            Fate::Accepted => &self.accepted,
            Fate::Refused => &self.refused,
            Fate::Failed => &self.failed,
        };
        counts[signal as usize].fetch_add(records, Relaxed);
    }

    /// Records of a signal that were taken.
    #[must_use]
    pub fn accepted(&self, signal: Signal) -> u64 {
        self.accepted[signal as usize].load(Relaxed)
    }

    /// And that were not.
    #[must_use]
    pub fn refused(&self, signal: Signal) -> u64 {
        self.refused[signal as usize].load(Relaxed)
    }

    /// And that were lost to a fault of a component.
    #[must_use]
    pub fn failed(&self, signal: Signal) -> u64 {
        self.failed[signal as usize].load(Relaxed)
    }
}
