//! A table: its shards, and the operations on entries by key.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::data::Data;
use crate::definition::Definition;
use crate::entry::{Entry, StoredValue};
use crate::entry_ref::EntryRef;
use crate::log::Feed;
use crate::shard::Shard;

/// The part of a table's `size`, in entries, for which it gets a shard.
const ENTRIES_PER_SHARD: u32 = 1024;
/// The most shards of a table.
const SHARDS_MAX: u32 = 64;
/// The most server names that a table remembers; further ones are not remembered.
const NAMES_MAX: usize = 65_536;

/// A stick table, shared by all workers.
#[derive(Debug)]
pub struct Table {
    definition: Definition,
    shards: Box<[Mutex<Shard>]>,
    /// Entries, including expired ones that were not removed yet.
    used: AtomicU32,
    /// Number of touches; wraps.
    updates: AtomicU32,
    /// Random, because clients choose keys.
    seed: u64,
    names: Mutex<Names>,
    /// The log of updates for other processes; none if no other process shares the table.
    feed: OnceLock<Feed>,
}

/// Names of servers, by numbers from 1.
#[derive(Debug, Default)]
struct Names {
    by_number: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// An update of an entry from another process.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Values; those that the table does not store are ignored.
    pub values: &'a [StoredValue],
    /// The name of a server, for `server_key`.
    pub server: Option<&'a str>,
    /// When the entry expires, milliseconds; none: after the table's `expire`.
    pub expires_in_ms: Option<u64>,
}

/// The place of an entry, for listings and commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub(crate) shard: u32,
    pub(crate) at: u32,
}

/// The result of removing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The entry is removed.
    Removed,
    /// There was no entry.
    Absent,
    /// The entry is held.
    InUse,
}

impl Place {
    /// A number for the place, shown as a pointer.
    #[must_use]
    pub fn pointer(self) -> u64 {
        (u64::from(self.shard) + 1) << 36 | u64::from(self.at) << 4
    }

    /// The place with this pointer.
    #[must_use]
    pub fn of_pointer(pointer: u64) -> Option<Place> {
        let shard = u32::try_from(pointer >> 36).ok()?.checked_sub(1)?;
        let at = (pointer >> 4) as u32;
        (pointer & 15 == 0).then_some(Place { shard, at })
    }
}

/// A locked shard. When the lock ends, entries removed under it are subtracted from the table's
/// count.
struct Locked<'a> {
    table: &'a Table,
    shard: MutexGuard<'a, Shard>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let removed = self.shard.take_removed();
        if removed > 0 {
            self.table.used.fetch_sub(removed, Ordering::Relaxed);
        }
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(definition: Definition) -> Table {
        let shards = (definition.size / ENTRIES_PER_SHARD).clamp(1, SHARDS_MAX);
        let shards = 1_u32 << shards.ilog2();
        Table {
            definition,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            used: AtomicU32::new(0),
            updates: AtomicU32::new(0),
            seed: RandomState::new().hash_one(0),
            names: Mutex::default(),
            feed: OnceLock::new(),
        }
    }

    /// The definition of the table.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The current number of entries. Removes expired ones first.
    #[must_use]
    pub fn used(&self, now_ms: u64) -> u32 {
        if self.definition.expire_ms.is_some() {
            for shard in 0..self.shards.len() {
                let mut locked = self.lock(shard as u32);
                locked.shard.purge(&self.definition, now_ms, u32::MAX);
            }
        }
        self.used.load(Ordering::Relaxed)
    }

    /// The number of touches; wraps.
    #[must_use]
    pub fn updates(&self) -> u32 {
        self.updates.load(Ordering::Relaxed)
    }

    /// Calls `work` with the entry of a key; none if there is no entry.
    pub fn with<R>(
        &self,
        key: &[u8],
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> Option<R> {
        self.find(key, now_ms, |_, entry| work(entry))
    }

    /// As [`Table::with`], and passes the place of the entry.
    pub fn find<R>(
        &self,
        key: &[u8],
        now_ms: u64,
        work: impl FnOnce(Place, &mut Entry<'_>) -> R,
    ) -> Option<R> {
        let key = self.definition.comparable(key);
        let (shard, hash) = self.hash(key);
        let mut locked = self.lock(shard);
        let at = locked.shard.find(&self.definition, hash, key, now_ms)?;
        let place = Place { shard, at };
        Some(self.work(&mut locked, at, now_ms, |entry| work(place, entry)))
    }

    /// As [`Table::with`]; makes the entry if there is none. None if the table is full.
    pub fn with_new<R>(
        &self,
        key: &[u8],
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> Option<R> {
        let (mut locked, _, at) = self.obtain(key, now_ms)?;
        Some(self.work(&mut locked, at, now_ms, work))
    }

    /// Holds the entry of a key; makes it if there is none. None if the table is full.
    #[must_use]
    pub fn hold(self: &Arc<Table>, key: &[u8], now_ms: u64) -> Option<EntryRef> {
        let (mut locked, shard, at) = self.obtain(key, now_ms)?;
        locked.shard.hold(at);
        drop(locked);
        Some(EntryRef::new(Arc::clone(self), Place { shard, at }))
    }

    /// Calls `work` with a name that [`Table::store_server`] stored; none if the entry has none.
    pub fn server_name(&self, entry: &Entry<'_>) -> Option<Arc<str>> {
        let number = entry.name(Data::ServerKey).checked_sub(1)?;
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.by_number.get(number as usize).map(Arc::clone)
    }

    /// Stores a server, by its number and its name or address, in the entry of a key; makes the
    /// entry if there is none.
    pub fn store_server(&self, key: &[u8], now_ms: u64, id: u32, name: &str) {
        let number = self.number(name);
        self.with_new(key, now_ms, |entry| {
            entry.set(Data::ServerId, 0, i64::from(id));
            if let Some(number) = number {
                entry.set_name(Data::ServerKey, number);
            }
            entry.touch();
        });
    }

    /// Merges an update from another process into the entry of a key; makes the entry if there is
    /// none. Returns whether there was room.
    pub fn merge(&self, key: &[u8], now_ms: u64, update: &Update<'_>) -> bool {
        let number = update.server.and_then(|name| self.number(name));
        let merged = self.with_new(key, now_ms, |entry| {
            for value in update.values {
                entry.restore(*value);
            }
            if let Some(number) = number {
                entry.set_name(Data::ServerKey, number);
            }
            if let Some(ms) = update.expires_in_ms.or(self.definition.expire_ms) {
                entry.expire_in(ms);
            }
        });
        merged.is_some()
    }

    /// Removes the entry of a key.
    pub fn remove(&self, key: &[u8], now_ms: u64) -> Removal {
        let key = self.definition.comparable(key);
        let (shard, hash) = self.hash(key);
        let mut locked = self.lock(shard);
        let found = locked.shard.find(&self.definition, hash, key, now_ms);
        remove(&mut locked.shard, found)
    }

    /// Removes the entry at a place.
    pub fn remove_at(&self, place: Place, now_ms: u64) -> Removal {
        let Some(mut locked) = self.lock_at(place) else {
            return Removal::Absent;
        };
        let next = locked.shard.next_used(&self.definition, place.at, now_ms);
        remove(&mut locked.shard, next.filter(|at| *at == place.at))
    }

    /// Calls `work` with the entry at a place; none if there is none.
    pub fn at<R>(
        &self,
        place: Place,
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> Option<R> {
        let mut locked = self.lock_at(place)?;
        let next = locked.shard.next_used(&self.definition, place.at, now_ms);
        next.filter(|at| *at == place.at)?;
        Some(self.work(&mut locked, place.at, now_ms, work))
    }

    /// Lists entries from a place on, each with its place, until `show` returns false. Returns the
    /// place to continue from; none when all were listed. Entries that are added or removed
    /// meanwhile may be listed or not. One shard is locked at a time.
    pub fn list(
        &self,
        from: Place,
        now_ms: u64,
        mut show: impl FnMut(Place, &mut Entry<'_>) -> bool,
    ) -> Option<Place> {
        let mut place = from;
        while let Some(mut locked) = self.lock_at(place) {
            while let Some(at) = locked.shard.next_used(&self.definition, place.at, now_ms) {
                place.at = at + 1;
                let here = Place { at, ..place };
                let goes_on = self.work(&mut locked, at, now_ms, |entry| show(here, entry));
                if !goes_on {
                    return Some(place);
                }
            }
            place = Place {
                shard: place.shard + 1,
                at: 0,
            };
        }
        None
    }

    // ---- for `UpdateLog`

    pub(crate) fn feed(&self) -> &OnceLock<Feed> {
        &self.feed
    }

    /// The number of entries, with expired ones.
    pub(crate) fn entries(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn shards(&self) -> u32 {
        self.shards.len() as u32
    }

    /// Calls `work` with a locked shard.
    pub(crate) fn with_shard<R>(&self, shard: u32, work: impl FnOnce(&mut Shard) -> R) -> R {
        work(&mut self.lock(shard).shard)
    }

    /// Calls `work` with the entry at a place if its last update has this number and it has not
    /// expired.
    pub(crate) fn at_update<R>(
        &self,
        place: Place,
        number: u32,
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> Option<R> {
        let mut locked = self.lock(place.shard);
        let is_it = locked.shard.update(place.at) == Some(number)
            && !locked.shard.is_over(&self.definition, place.at, now_ms);
        is_it.then(|| self.work(&mut locked, place.at, now_ms, work))
    }

    // ---- for `EntryRef`

    pub(crate) fn work_at<R>(
        &self,
        place: Place,
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> R {
        let mut locked = self.lock(place.shard);
        self.work(&mut locked, place.at, now_ms, work)
    }

    pub(crate) fn hold_again(&self, place: Place) {
        self.lock(place.shard).shard.hold(place.at);
    }

    /// `now_ms`: if known, an expired entry is removed at once.
    pub(crate) fn let_go(&self, place: Place, now_ms: Option<u64>) {
        let mut locked = self.lock(place.shard);
        locked.shard.let_go(place.at);
        if let Some(now_ms) = now_ms
            && locked.shard.is_over(&self.definition, place.at, now_ms)
        {
            locked.shard.remove(place.at);
        }
    }

    // ---- inside

    fn hash(&self, key: &[u8]) -> (u32, u32) {
        let hash = xxh3_64_with_seed(key, self.seed);
        let shard = (hash >> 32) as u32 & (self.shards.len() as u32 - 1);
        (shard, hash as u32)
    }

    fn lock(&self, shard: u32) -> Locked<'_> {
        let shard = &self.shards[shard as usize];
        Locked {
            table: self,
            shard: shard.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lock_at(&self, place: Place) -> Option<Locked<'_>> {
        ((place.shard as usize) < self.shards.len()).then(|| self.lock(place.shard))
    }

    fn work<R>(
        &self,
        locked: &mut Locked<'_>,
        at: u32,
        now_ms: u64,
        work: impl FnOnce(&mut Entry<'_>) -> R,
    ) -> R {
        let mut entry = locked.shard.entry(&self.definition, at, now_ms);
        let result = work(&mut entry);
        if entry.was_touched {
            self.updates.fetch_add(1, Ordering::Relaxed);
            if let Some(feed) = self.feed.get() {
                locked.shard.note_update(at);
                feed.ring();
            }
        }
        result
    }

    /// The entry of a key, made if there is none: its locked shard and its place.
    fn obtain(&self, key: &[u8], now_ms: u64) -> Option<(Locked<'_>, u32, u32)> {
        let of = &self.definition;
        let key = of.comparable(key);
        let (number, hash) = self.hash(key);
        let mut locked = self.lock(number);
        if let Some(at) = locked.shard.find(of, hash, key, now_ms) {
            return Some((locked, number, at));
        }
        locked.shard.purge_some(of, now_ms);
        let removed = locked.shard.take_removed();
        self.used.fetch_sub(removed, Ordering::Relaxed);
        if self.used.fetch_add(1, Ordering::Relaxed) >= of.size
            && !self.make_room(number, &mut locked.shard, now_ms)
        {
            self.used.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let at = locked.shard.insert(of, hash, key, now_ms);
        Some((locked, number, at))
    }

    /// Removes an entry of a full table: the oldest of this shard, or of another one that is not
    /// locked. With `nopurge`, only an expired one.
    #[cold]
    fn make_room(&self, number: u32, shard: &mut Shard, now_ms: u64) -> bool {
        if self.clear_one(shard, now_ms) {
            return true;
        }
        let others =
            (1..self.shards.len()).map(|step| (number as usize + step) % self.shards.len());
        for other in others {
            // A locked shard is skipped: its owner may wait for our lock.
            if let Ok(shard) = self.shards[other].try_lock() {
                let mut locked = Locked { table: self, shard };
                if self.clear_one(&mut locked.shard, now_ms) {
                    return true;
                }
            }
        }
        false
    }

    fn clear_one(&self, shard: &mut Shard, now_ms: u64) -> bool {
        if !self.definition.no_purge {
            return shard.evict();
        }
        shard.purge(&self.definition, now_ms, 1);
        let removed = shard.take_removed();
        self.used.fetch_sub(removed, Ordering::Relaxed);
        removed > 0
    }

    /// The number of a name, assigned when it is first seen.
    fn number(&self, name: &str) -> Option<u32> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = names.numbers.get(name) {
            return Some(*number);
        }
        if names.by_number.len() >= NAMES_MAX {
            return None;
        }
        let name: Arc<str> = name.into();
        names.by_number.push(Arc::clone(&name));
        let number = names.by_number.len() as u32;
        names.numbers.insert(name, number);
        Some(number)
    }
}

fn remove(shard: &mut Shard, at: Option<u32>) -> Removal {
    match at {
        None => Removal::Absent,
        Some(at) if shard.is_held(at) => Removal::InUse,
        Some(at) => {
            shard.remove(at);
            Removal::Removed
        }
    }
}
