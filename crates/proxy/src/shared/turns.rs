//! Turns that all workers share.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The next turn, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    /// The place whose turn it is.
    pub fn get(&self) -> usize {
        self.0.load(Relaxed) as usize
    }

    /// Passes the turn on. False if another worker was faster: the caller must read the turn again.
    pub fn pass(&self, from: usize, to: usize) -> bool {
        let exchange = self
            .0
            .compare_exchange(from as u32, to as u32, Relaxed, Relaxed);
        exchange.is_ok()
    }
}
