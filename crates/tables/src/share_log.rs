//! The entries of a shared table that were touched since the last exchange with the store.
//!
//! The table notes each touched entry once, as for [`crate::UpdateLog`]. The notes are all that
//! waits while the store is away: the changes are in the entries ([`crate::Entry::take_changes`]).

use std::sync::Arc;

use crate::entry::Entry;
use crate::log::Feed;
use crate::shard::Shard;
use crate::table::{Place, Table};

/// The most entries that are looked at under one lock.
const ENTRIES_A_LOCK: u32 = 256;

/// See the module. It has one owner, on a thread of its own.
#[derive(Debug)]
pub struct ShareLog {
    table: Arc<Table>,
    /// The shard whose notes are taken next.
    shard: u32,
    removed_unsent: u64,
}

impl ShareLog {
    /// Starts to note the touched entries of a table, with those that it has already; none if it
    /// has a log already. `wake` is
    /// called by any thread, also under a lock of the table, after the first touch that follows
    /// [`ShareLog::sleep`].
    #[must_use]
    pub fn open(table: Arc<Table>, wake: impl Fn() + Send + Sync + 'static) -> Option<ShareLog> {
        table.feed().set(Feed::new(wake)).ok()?;
        let log = ShareLog {
            table,
            shard: 0,
            removed_unsent: 0,
        };
        log.note_entries(0, |_| true);
        Some(log)
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The number of notes.
    #[must_use]
    pub fn noted(&self) -> usize {
        let shards = 0..self.table.shards();
        let notes = shards.map(|shard| self.table.with_shard(shard, |shard| shard.updates()));
        notes.sum()
    }

    /// Entries that were removed before their changes were taken.
    #[must_use]
    pub fn removed_unsent(&self) -> u64 {
        let shards = 0..self.table.shards();
        let untaken = shards.map(|shard| {
            let count = |shard: &mut Shard| shard.removed_unsent();
            u64::from(self.table.with_shard(shard, count))
        });
        self.removed_unsent + untaken.sum::<u64>()
    }

    /// Takes at most `most` notes and calls `work` with their entries. Returns how many were taken;
    /// fewer than `most` only if there are no more.
    pub fn take(
        &mut self,
        most: usize,
        now_ms: u64,
        mut work: impl FnMut(&mut Entry<'_>),
    ) -> usize {
        let mut taken = 0;
        for _ in 0..self.table.shards() {
            let number = self.shard;
            while taken < most {
                let count = (most - taken).min(ENTRIES_A_LOCK as usize);
                let found = self.take_some(number, count, now_ms, &mut work);
                taken += found;
                if found < count {
                    break;
                }
            }
            if taken >= most {
                break;
            }
            self.shard = (number + 1) % self.table.shards();
        }
        taken
    }

    fn take_some(
        &mut self,
        number: u32,
        count: usize,
        now_ms: u64,
        work: &mut impl FnMut(&mut Entry<'_>),
    ) -> usize {
        let definition = self.table.definition();
        let removed_unsent = &mut self.removed_unsent;
        self.table.with_shard(number, |shard| {
            *removed_unsent += u64::from(shard.take_removed_unsent());
            for taken in 0..count {
                let Some(at) = shard.take_update() else {
                    return taken;
                };
                // An entry that was removed has no changes any more.
                if shard.update(at).is_some() {
                    work(&mut shard.entry(definition, at, now_ms));
                }
            }
            count
        })
    }

    /// The store has lost its data: all changes of this process are to be sent again.
    pub fn forget_exchanges(&mut self, now_ms: u64) {
        self.note_entries(now_ms, |entry| entry.forget_exchanges());
    }

    /// Notes the entries for which `choose` returns true. One part of a shard is locked at a time.
    fn note_entries(&self, now_ms: u64, choose: impl Fn(&mut Entry<'_>) -> bool) {
        let definition = self.table.definition();
        for number in 0..self.table.shards() {
            let mut next = Some(0);
            while let Some(from) = next {
                next = self.table.with_shard(number, |shard| {
                    let mut at = from;
                    for _ in 0..ENTRIES_A_LOCK {
                        let found = shard.next_used(definition, at, now_ms)?;
                        if choose(&mut shard.entry(definition, found, now_ms)) {
                            shard.note_update(found);
                        }
                        at = found + 1;
                    }
                    Some(at)
                });
            }
        }
    }

    /// Has the table call `wake` again at the next touch. Returns false if there are notes already;
    /// the table then does not call it.
    #[must_use]
    pub fn sleep(&self) -> bool {
        let Some(feed) = self.table.feed().get() else {
            return true;
        };
        feed.sleep(|| self.noted() > 0)
    }

    /// Merges the totals of a key, if its entry is here.
    pub fn merge(&self, key: &[u8], now_ms: u64, totals: &[crate::Total]) -> bool {
        let merged = |_: Place, entry: &mut Entry<'_>| entry.merge_totals(totals);
        self.table.find(key, now_ms, merged).is_some()
    }
}

#[cfg(test)]
mod tests;
