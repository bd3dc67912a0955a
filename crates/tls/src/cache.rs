//! Sessions remembered for clients without tickets, and counters of their lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustls::server::StoresServerSessions;

/// Counters of session lookups. Copies share the counters.
#[derive(Clone, Debug, Default)]
pub struct CacheUse(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    lookups: AtomicU64,
    misses: AtomicU64,
}

impl CacheUse {
    /// Lookups of sessions by clients.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.0.lookups.load(Relaxed)
    }

    /// Lookups that found no session, or one that was too old.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.0.misses.load(Relaxed)
    }

    fn note(&self, found: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.0.lookups.fetch_add(1, Relaxed);
        if found.is_none() {
            self.0.misses.fetch_add(1, Relaxed);
        }
        found
    }
}

/// A session store that counts lookups.
#[derive(Debug)]
pub(crate) struct Counted {
    pub inner: Arc<dyn StoresServerSessions>,
    pub counts: CacheUse,
}

impl StoresServerSessions for Counted {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.counts.note(self.inner.get(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.counts.note(self.inner.take(key))
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}
