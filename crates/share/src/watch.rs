//! The keys that are read again after they were touched, because other proxies may count for them.
//!
//! A key is read after one period, then after two more, four more, and so on, until [`WATCH_MS`]
//! after the last touch. So the totals of an entry that was touched a time ago are at most twice as
//! old as this time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// How long after its last touch a key is read, milliseconds.
pub const WATCH_MS: u64 = 10_000;
/// The most keys that are watched; further ones are read only when they are touched.
pub const WATCHED_MAX: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub struct Watch {
    keys: HashMap<Arc<[u8]>, Watched>,
    due: BTreeSet<(u64, Arc<[u8]>)>,
}

/// A key that is watched.
#[derive(Clone, Copy, Debug)]
struct Watched {
    touched_ms: u64,
    due_ms: u64,
}

impl Watch {
    /// A key was touched and its totals were asked for.
    pub fn touched(&mut self, key: &Arc<[u8]>, now_ms: u64, every_ms: u64) {
        let is_known = self.forget(key);
        if !is_known && self.keys.len() >= WATCHED_MAX {
            return;
        }
        self.plan(key, now_ms, now_ms + every_ms);
    }

    /// Takes a key whose totals have to be read; none if none is due.
    pub fn next(&mut self, now_ms: u64, every_ms: u64) -> Option<Arc<[u8]>> {
        let (due_ms, _) = self.due.first()?;
        if *due_ms > now_ms {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        let touched_ms = self.keys.remove(&key)?.touched_ms;
        let idle_ms = now_ms.saturating_sub(touched_ms);
        if idle_ms < WATCH_MS {
            // The last reading is at the end.
            let wait_ms = idle_ms.max(every_ms).min(WATCH_MS - idle_ms);
            self.plan(&key, touched_ms, now_ms + wait_ms);
        }
        Some(key)
    }

    /// When the next key is due.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn plan(&mut self, key: &Arc<[u8]>, touched_ms: u64, due_ms: u64) {
        let watched = Watched { touched_ms, due_ms };
        self.keys.insert(Arc::clone(key), watched);
        self.due.insert((due_ms, Arc::clone(key)));
    }

    /// Returns whether the key was watched.
    fn forget(&mut self, key: &Arc<[u8]>) -> bool {
        let Some(Watched { due_ms, .. }) = self.keys.remove(key) else {
            return false;
        };
        self.due.remove(&(due_ms, Arc::clone(key)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_less_and_less_often() {
        let mut watch = Watch::default();
        let key: Arc<[u8]> = Arc::from(&b"k"[..]);
        watch.touched(&key, 1000, 100);
        let mut times = Vec::new();
        while let Some(due_ms) = watch.due_ms() {
            assert_eq!(watch.next(due_ms - 1, 100), None);
            assert_eq!(watch.next(due_ms, 100), Some(Arc::clone(&key)));
            times.push(due_ms - 1000);
        }
        assert_eq!(times, [100, 200, 400, 800, 1600, 3200, 6400, 10_000]);
        assert!(watch.is_empty());
        // A touch starts from the beginning.
        watch.touched(&key, 20_000, 100);
        watch.next(20_100, 100);
        watch.touched(&key, 20_150, 100);
        assert_eq!((watch.due_ms(), watch.len()), (Some(20_250), 1));
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let mut watch = Watch::default();
        for number in 0..=WATCHED_MAX {
            watch.touched(&Arc::from(number.to_be_bytes()), 0, 100);
        }
        assert_eq!(watch.len(), WATCHED_MAX);
    }
}
