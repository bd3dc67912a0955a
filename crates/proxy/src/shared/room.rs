//! Server connections of the process, where descriptors limit them. Idle connections make room for
//! new ones: first the worker's own, then, at its request, those of other workers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of server connections and its limit.
#[derive(Debug)]
pub(super) struct Room {
    taken: AtomicU32,
    /// 0 for no limit.
    max: u32,
    /// How often a worker has asked the others for room.
    asked: AtomicU64,
}

impl Room {
    /// `max`: the most connections; none for no limit.
    pub fn new(max: Option<u32>) -> Room {
        Room {
            taken: AtomicU32::new(0),
            max: max.unwrap_or(0),
            asked: AtomicU64::new(0),
        }
    }

    /// Takes the connections of another state over.
    pub fn succeed(&mut self, before: &Room) {
        self.taken = before.taken.load(Ordering::Relaxed).into();
        self.asked = before.asked.load(Ordering::Relaxed).into();
    }

    /// Whether the limit is reached. Workers that check at the same time may exceed it slightly.
    pub fn is_full(&self) -> bool {
        self.max > 0 && self.taken.load(Ordering::Relaxed) >= self.max
    }

    /// Counts one more connection.
    pub fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one connection less.
    pub fn give(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asks the other workers to close idle connections.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Release);
    }

    /// A counter that changes with each such request.
    #[inline]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Whether no connection is counted.
    pub fn is_quiet(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}
