//! Server connections of the process, where descriptors limit them. Idle ones make room for new ones: first the worker's own, then,
//! when it asks for it, those of the others.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub(super) struct Room {
    taken: AtomicU32,
    /// 0 for any number.
    max: u32,
    /// How often a worker has asked the others for room.
    asked: AtomicU64,
}

impl Room {
    /// `max`: most connections; none for any number.
    pub fn new(max: Option<u32>) -> Room {
        Room {
            taken: AtomicU32::new(0),
            max: max.unwrap_or(0),
            asked: AtomicU64::new(0),
        }
    }

    /// Whether there are as many connections as there should be. Workers that ask at once may come to have a few more.
    pub fn is_full(&self) -> bool {
        self.max > 0 && self.taken.load(Ordering::Relaxed) >= self.max
    }

    /// One more connection.
    pub fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub fn give(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// The others are to close what is idle.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Release);
    }

    /// Changes when somebody asks.
    #[inline]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Whether all were given back.
    pub fn is_quiet(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}
