//! Sessions remembered for clients without tickets (`tune.ssl.cachesize`), and counters of their
//! lookups.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;

use crate::binding::Binding;

/// What one unit of `tune.ssl.cachesize` holds of an encoded session, bytes. A session without a
/// client's certificate fits, as in HAProxy.
const BLOCK_BYTES: usize = 200;

/// The remembered sessions of all listeners of a process. Copies share them.
#[derive(Clone, Default)]
pub struct SessionCache(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// None are remembered if it is 0.
    blocks_max: usize,
    sessions: Mutex<Sessions>,
    lookups: AtomicU64,
    misses: AtomicU64,
}

impl SessionCache {
    /// Remembers sessions in so many blocks; a session needs one block for each 200 bytes. If there
    /// is no room, those are dropped that were not used for the longest time.
    #[must_use]
    pub fn new(blocks_max: usize) -> SessionCache {
        SessionCache(Arc::new(Shared {
            blocks_max,
            ..Shared::default()
        }))
    }

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

    /// Whether it remembers any.
    pub(crate) fn is_on(&self) -> bool {
        self.0.blocks_max > 0
    }

    /// The sessions with a binding.
    pub(crate) fn bound_to(&self, binding: Binding) -> Bound {
        Bound {
            cache: self.clone(),
            binding,
        }
    }

    fn note(&self, found: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.0.lookups.fetch_add(1, Relaxed);
        if found.is_none() {
            self.0.misses.fetch_add(1, Relaxed);
        }
        found
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        let sessions = self.0.sessions.lock();
        sessions.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCache")
            .field("blocks_max", &self.0.blocks_max)
            .finish_non_exhaustive()
    }
}

/// The name of a session: its binding and its identifier.
type Key = (Binding, Arc<[u8]>);

#[derive(Default)]
struct Sessions {
    all: HashMap<Key, Stored>,
    /// The keys in the order of their last use.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    blocks: usize,
}

struct Stored {
    content: Vec<u8>,
    used: u64,
}

impl Stored {
    fn blocks(&self) -> usize {
        self.content.len().div_ceil(BLOCK_BYTES).max(1)
    }
}

impl Sessions {
    /// Returns whether there is room for it.
    fn put(&mut self, key: Key, content: Vec<u8>, blocks_max: usize) -> bool {
        self.take(&key);
        self.uses += 1;
        let new = Stored {
            content,
            used: self.uses,
        };
        let blocks = new.blocks();
        if blocks > blocks_max {
            return false;
        }
        while self.blocks + blocks > blocks_max {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            if let Some(old) = self.all.remove(&oldest) {
                self.blocks -= old.blocks();
            }
        }
        self.blocks += blocks;
        self.by_use.insert(new.used, key.clone());
        self.all.insert(key, new);
        true
    }

    fn get(&mut self, key: &Key) -> Option<Vec<u8>> {
        let found = self.all.get_mut(key)?;
        if let Some(key) = self.by_use.remove(&found.used) {
            self.uses += 1;
            found.used = self.uses;
            self.by_use.insert(self.uses, key);
        }
        Some(found.content.clone())
    }

    fn take(&mut self, key: &Key) -> Option<Vec<u8>> {
        let found = self.all.remove(key)?;
        self.by_use.remove(&found.used);
        self.blocks -= found.blocks();
        Some(found.content)
    }
}

/// The sessions of an acceptor: only acceptors with the same binding find them.
#[derive(Debug)]
pub(crate) struct Bound {
    cache: SessionCache,
    binding: Binding,
}

impl Bound {
    fn key(&self, id: &[u8]) -> Key {
        (self.binding, id.into())
    }
}

impl StoresServerSessions for Bound {
    fn put(&self, id: Vec<u8>, content: Vec<u8>) -> bool {
        let key = self.key(&id);
        let blocks_max = self.cache.0.blocks_max;
        self.cache.sessions().put(key, content, blocks_max)
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        self.cache.sessions().get(&key)
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(id);
        self.cache.sessions().take(&key)
    }

    fn can_cache(&self) -> bool {
        self.cache.is_on()
    }
}

/// A session store whose lookups are counted.
#[derive(Debug)]
pub(crate) struct Counted {
    pub inner: Arc<dyn StoresServerSessions>,
    pub cache: SessionCache,
}

impl StoresServerSessions for Counted {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.note(self.inner.get(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.note(self.inner.take(key))
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offer;

    fn bound(cache: &SessionCache, scope: &str) -> Bound {
        cache.bound_to(Binding::new(scope, &Offer::default(), None))
    }

    fn put(store: &Bound, id: u8, bytes: usize) -> bool {
        store.put(vec![id], vec![id; bytes])
    }

    /// Its counts are those of its sessions.
    fn check(cache: &SessionCache) {
        let sessions = cache.sessions();
        let blocks: usize = sessions.all.values().map(Stored::blocks).sum();
        assert_eq!(sessions.blocks, blocks);
        assert!(blocks <= cache.0.blocks_max);
        assert_eq!(sessions.by_use.len(), sessions.all.len());
        for (used, key) in &sessions.by_use {
            assert_eq!(sessions.all[key].used, *used);
        }
    }

    #[test]
    fn all_acceptors_share_its_blocks_and_none_its_sessions() {
        let cache = SessionCache::new(3);
        let (one, two) = (bound(&cache, "one"), bound(&cache, "two"));
        assert!(put(&one, 1, 50) && put(&one, 2, 50) && put(&two, 3, 50));
        assert_eq!(two.get(&[1]), None);
        // The second was not used for the longest time.
        assert_eq!(one.get(&[1]), Some(vec![1; 50]));
        assert!(put(&two, 1, BLOCK_BYTES));
        assert_eq!(one.get(&[2]), None);
        assert_eq!(one.get(&[1]), Some(vec![1; 50]));
        assert_eq!(two.get(&[1]), Some(vec![1; BLOCK_BYTES]));
        check(&cache);
        // One that needs all blocks, and one that needs more.
        assert!(put(&one, 4, 3 * BLOCK_BYTES));
        assert_eq!(two.get(&[1]), None);
        check(&cache);
        assert!(!put(&one, 5, 3 * BLOCK_BYTES + 1));
        assert_eq!(one.take(&[4]), Some(vec![4; 3 * BLOCK_BYTES]));
        assert_eq!(one.take(&[4]), None);
        check(&cache);
        assert_eq!(cache.sessions().blocks, 0);
        assert!(!put(&bound(&SessionCache::default(), ""), 1, 1));
    }

    #[test]
    fn its_counts_are_right_whatever_happens() {
        let cache = SessionCache::new(20);
        let stores = [bound(&cache, "one"), bound(&cache, "two")];
        let mut state = 7_u32;
        for _ in 0..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (what, id) = (state >> 30, (state >> 20) as u8 & 0x1f);
            let store = &stores[usize::from(id) % 2];
            match what {
                0 => drop(store.get(&[id])),
                1 => drop(store.take(&[id])),
                _ => drop(put(store, id, (state >> 8) as usize % 1500)),
            }
            check(&cache);
        }
    }
}
