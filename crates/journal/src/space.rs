//! The disk space that journals may use together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A budget of disk space.
#[derive(Debug)]
pub struct Space {
    used_bytes: AtomicU64,
    bytes_max: u64,
}

impl Space {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes_max: u64) -> Space {
        Space {
            used_bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Bytes of all files and of the entries that wait to be written.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// The size of the budget.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Reserves space; false if there is not enough.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let add = |used: u64| {
            let sum = used.checked_add(bytes)?;
            (sum <= self.bytes_max).then_some(sum)
        };
        self.used_bytes.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Takes space, even beyond the budget.
    pub(crate) fn add(&self, bytes: u64) {
        self.used_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used_bytes.fetch_update(Relaxed, Relaxed, less);
    }
}
