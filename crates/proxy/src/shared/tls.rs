//! TLS connections, those with clients and those with servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many there are, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct TlsConnections {
    now: AtomicU32,
    total: AtomicU64,
}

/// A connection's place among them, until it is dropped.
#[derive(Debug)]
pub(crate) struct TlsPlace(Arc<TlsConnections>);

impl TlsConnections {
    /// One more. Any worker may drop its place: connections move between them.
    pub fn enter(self: &Arc<Self>) -> TlsPlace {
        self.now.fetch_add(1, Relaxed);
        self.total.fetch_add(1, Relaxed);
        TlsPlace(Arc::clone(self))
    }

    /// Those that there are now.
    pub fn now(&self) -> u32 {
        self.now.load(Relaxed)
    }

    /// Those since the start.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }
}

impl Drop for TlsPlace {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Relaxed);
    }
}
