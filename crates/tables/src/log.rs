//! The updates of a shared table in their order, so that other processes can be told of them.
//!
//! A table notes which entries were touched, each at most once until [`UpdateLog::collect`] takes
//! the notes and gives numbers to the updates. The log has one owner, on a thread of its own. An
//! entry's last update is the one that counts: earlier ones of the same entry are skipped, and
//! dropped when they are more than half of the log. So the log has at most about twice as many
//! records as the table has entries.
//!
//! Cost: a touch of an entry of a shared table sets a mark under the lock that it has anyway, and
//! may call the function that wakes the owner. A table without a log pays one branch per touch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::entry::Entry;
use crate::table::{Place, Table};

/// The most notes that are taken from a shard under one lock.
const NOTES_A_LOCK: usize = 256;
/// Records that a log keeps without a check for superfluous ones.
const RECORDS_MIN: usize = 1024;

/// The number of an update of a table: larger for later ones, never 0. Other processes see the low
/// 32 bits.
pub type UpdateId = u64;

/// What a table tells of updates.
pub(crate) struct Feed {
    /// The owner of the log knows that there may be notes.
    is_awake: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Feed {
    /// A feed whose owner is awake.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Feed {
        Feed {
            is_awake: AtomicBool::new(true),
            wake: Box::new(wake),
        }
    }

    /// The owner goes to sleep: from now on [`Feed::ring`] wakes it. Returns false if there are notes
    /// to read. In this case the owner stays awake.
    pub fn sleep(&self, has_notes: impl FnOnce() -> bool) -> bool {
        self.is_awake.store(false, Ordering::Release);
        if has_notes() {
            self.is_awake.store(true, Ordering::Release);
            return false;
        }
        true
    }

    /// Wakes the owner of the log, unless it is awake.
    #[inline]
    pub fn ring(&self) {
        if !self.is_awake.load(Ordering::Acquire) && !self.is_awake.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}

/// One update.
#[derive(Clone, Copy, Debug)]
struct Record {
    id: UpdateId,
    place: Place,
}

/// See the module.
#[derive(Debug)]
pub struct UpdateLog {
    table: Arc<Table>,
    /// In the order of their numbers.
    records: VecDeque<Record>,
    last: UpdateId,
}

impl UpdateLog {
    /// Starts to note the updates of a table; none if it has a log already. `wake` is called by any
    /// thread, also under a lock of the table, after the first update that follows
    /// [`UpdateLog::sleep`].
    #[must_use]
    pub fn open(table: Arc<Table>, wake: impl Fn() + Send + Sync + 'static) -> Option<UpdateLog> {
        table.feed().set(Feed::new(wake)).ok()?;
        Some(UpdateLog {
            table,
            records: VecDeque::new(),
            last: 0,
        })
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The number of the last update; 0 before the first one.
    #[must_use]
    pub fn last(&self) -> UpdateId {
        self.last
    }

    /// The number of records, with superfluous ones.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Takes the table's notes. An entry whose last update has a number above `told` keeps this
    /// number: nobody knows of that update yet. Returns whether there was any note.
    pub fn collect(&mut self, told: UpdateId) -> bool {
        let mut any = false;
        for shard in 0..self.table.shards() {
            // The notes of this moment: with more to come all the time, others have their turn.
            let mut left = self.table.with_shard(shard, |shard| shard.updates());
            while left > 0 {
                any = true;
                let count = left.min(NOTES_A_LOCK);
                self.take_notes(shard, count, told);
                left -= count;
            }
        }
        self.compact();
        any
    }

    fn take_notes(&mut self, number: u32, count: usize, told: UpdateId) {
        let (records, last) = (&mut self.records, &mut self.last);
        self.table.with_shard(number, |shard| {
            for _ in 0..count {
                let Some(at) = shard.take_update() else {
                    return;
                };
                let Some(known) = shard.update(at) else {
                    continue;
                };
                if known != 0 && full(*last, known) > told {
                    continue;
                }
                *last += 1;
                if *last as u32 == 0 {
                    *last += 1;
                }
                shard.set_update(at, *last as u32);
                let place = Place { shard: number, at };
                records.push_back(Record { id: *last, place });
            }
        });
    }

    /// Drops superfluous records when they are too many.
    fn compact(&mut self) {
        let used = self.table.entries() as usize;
        if self.records.len() <= 2 * used + RECORDS_MIN {
            return;
        }
        let table = &self.table;
        self.records.retain(|record| {
            table.with_shard(record.place.shard, |shard| {
                shard.update(record.place.at) == Some(record.id as u32)
            })
        });
    }

    /// Has the table call `wake` again at the next update. Returns false if there are notes
    /// already; the table then does not call it.
    #[must_use]
    pub fn sleep(&self) -> bool {
        let Some(feed) = self.table.feed().get() else {
            return true;
        };
        let mut shards = 0..self.table.shards();
        feed.sleep(|| shards.any(|shard| self.table.with_shard(shard, |shard| shard.updates() > 0)))
    }

    /// Calls `work` with the first entry whose last update has a number above `after`, and its
    /// number; none if there is none. Entries that have gone are skipped; `after` becomes the
    /// number of the last update that was looked at.
    pub fn next<R>(
        &self,
        after: &mut UpdateId,
        now_ms: u64,
        work: impl FnOnce(UpdateId, &mut Entry<'_>) -> R,
    ) -> Option<R> {
        let start = self.records.partition_point(|record| record.id <= *after);
        let mut work = Some(work);
        for record in self.records.range(start..) {
            *after = record.id;
            let found = self
                .table
                .at_update(record.place, record.id as u32, now_ms, |entry| {
                    work.take().map(|work| work(record.id, entry))
                });
            if let Some(found) = found {
                return found;
            }
        }
        *after = (*after).max(self.last);
        None
    }

    /// The low bits of the number of the last update of an entry that [`Table::list`] lends; 0 if
    /// it has none.
    #[must_use]
    pub fn id_of(entry: &Entry<'_>) -> u32 {
        entry.update
    }

    /// The number that another process means by its low 32 bits, if it is from `from` on.
    #[must_use]
    pub fn meant(&self, low: u32, from: UpdateId) -> Option<UpdateId> {
        let id = full(self.last, low);
        (id <= self.last && id >= from).then_some(id)
    }
}

/// The last number up to `last` with these low bits; 0 if there was none.
fn full(last: UpdateId, low: u32) -> UpdateId {
    last.saturating_sub((last as u32).wrapping_sub(low).into())
}

#[cfg(test)]
mod tests;
