//! Turns that all workers take together.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Whose turn it is. A line of the cache of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    /// Whose it is.
    pub fn get(&self) -> usize {
        self.0.load(Relaxed) as usize
    }

    /// Passes it on. False when another worker was faster: whose it is now must be looked at again.
    pub fn pass(&self, from: usize, to: usize) -> bool {
        let exchange = self
            .0
            .compare_exchange(from as u32, to as u32, Relaxed, Relaxed);
        exchange.is_ok()
    }
}
