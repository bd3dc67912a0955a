//! The room on a disk that journals may take together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module.
#[derive(Debug)]
pub struct Space {
    used_bytes: AtomicU64,
    bytes_max: u64,
}

impl Space {
    /// So many bytes.
    #[must_use]
    pub fn new(bytes_max: u64) -> Space {
        Space {
            used_bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Bytes of all files, and of what waits to be written.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// The most.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Takes room; false where there is none.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let add = |used: u64| {
            let sum = used.checked_add(bytes)?;
            (sum <= self.bytes_max).then_some(sum)
        };
        self.used_bytes.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// Takes room that must be had.
    pub(crate) fn add(&self, bytes: u64) {
        self.used_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used_bytes.fetch_update(Relaxed, Relaxed, less);
    }
}
