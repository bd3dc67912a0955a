//! The state of the exchange between a table and its store, without I/O and clock.
//!
//! The owner calls [`Exchange::begin_round`] every period, then sends what [`Exchange::request`]
//! returns and passes each answer to [`Exchange::answered`], until there is no request. At most one
//! request is on its way. After a failure it calls [`Exchange::failed`], and goes on when it has a
//! connection again.

use std::collections::VecDeque;
use std::sync::Arc;

use redis::Cmd;
use tables::ShareLog;

use crate::answer::{Answer, Nonsense};
use crate::batch::{Batch, Item, Names, PROCESS_KEPT_MS};
use crate::view::Counters;
use crate::watch::Watch;

/// The most items of a batch.
pub const BATCH_ITEMS_MAX: usize = 256;
/// The most keys that a round reads without changes of their own. Others wait for the next round.
pub const READS_A_ROUND_MAX: usize = 4096;
/// The most items of batches that are kept after they were sent, for a store that loses them.
pub const KEPT_ITEMS_MAX: usize = 4096;
/// How long batches are kept after they were sent, milliseconds.
pub const KEPT_MS: u64 = 60_000;
/// The shortest time between two attempts to send everything again, milliseconds.
pub const RESEND_PAUSE_MS: u64 = 1000;
/// The time after which something is sent even if there is nothing to tell, milliseconds: it shows
/// whether the store still has its data.
pub const HEARTBEAT_MS: u64 = 5000;

/// See the module.
pub struct Exchange {
    log: ShareLog,
    names: Names,
    every_ms: u64,
    random: fn() -> u64,
    /// The name of this process in the store. A new one after the store lost its data.
    process: u64,
    /// The number of the last batch with changes.
    last: u64,
    /// The number of the last batch that the store is known to have.
    after: u64,
    /// Batches with changes, by number: kept ones, then those that the store may not have.
    batches: VecDeque<Batch>,
    kept_items: usize,
    /// A batch without changes that is on its way.
    reading: Option<Batch>,
    /// The last answer named another batch to go on from.
    was_corrected: bool,
    /// When everything was last sent again.
    resent_ms: Option<u64>,
    /// Notes of the log that this round still takes.
    notes_left: usize,
    /// Keys that this round may still read.
    reads_left: usize,
    watch: Watch,
    asked_ms: u64,
    answered_ms: Option<u64>,
    answer_ms: u64,
    counters: Counters,
    /// Why the store refused an entry last.
    refused: String,
}

/// A batch to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// The name of this process in the store.
    pub process: u64,
    /// The number of the last batch that the store is known to have.
    pub after: u64,
    names: &'a Names,
    now_ms: u64,
}

impl Request<'_> {
    /// The command that runs the script, whose digest is `sha`.
    #[must_use]
    pub fn command(&self, sha: &str) -> Cmd {
        self.batch
            .command(sha, self.names, self.process, self.after, self.now_ms)
    }
}

/// An answer that does not fit what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl From<Nonsense> for Refused {
    fn from(_: Nonsense) -> Refused {
        Refused
    }
}

impl Exchange {
    /// An exchange for the table of a log; none if its counters are not shared. `random`: the names
    /// of processes.
    #[must_use]
    pub fn new(log: ShareLog, random: fn() -> u64) -> Option<Exchange> {
        let definition = log.table().definition();
        let names = Names::of(definition)?;
        let every_ms = definition.share()?.every_ms.into();
        Some(Exchange {
            log,
            names,
            every_ms,
            random,
            process: random(),
            last: 0,
            after: 0,
            batches: VecDeque::new(),
            kept_items: 0,
            reading: None,
            was_corrected: false,
            resent_ms: None,
            notes_left: 0,
            reads_left: 0,
            watch: Watch::default(),
            asked_ms: 0,
            answered_ms: None,
            answer_ms: 0,
            counters: Counters::default(),
            refused: String::new(),
        })
    }

    /// The log of the table.
    #[must_use]
    pub fn log(&self) -> &ShareLog {
        &self.log
    }

    /// The names of the table in the store.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Begins a round: it tells of all entries that were touched until now.
    pub fn begin_round(&mut self) {
        self.notes_left = self.log.noted();
        self.reads_left = READS_A_ROUND_MAX;
    }

    /// The next batch to send; none when the round is over. The same one until it is answered.
    pub fn request(&mut self, now_ms: u64) -> Option<Request<'_>> {
        let waits = self.batches.iter().any(|batch| batch.number > self.after);
        if !waits && self.reading.is_none() && !self.fill(now_ms) {
            return None;
        }
        self.asked_ms = now_ms;
        let after = self.after;
        let mut batches = self.batches.iter();
        let batch = batches.find(|batch| batch.number > after);
        let batch = batch.or(self.reading.as_ref())?;
        Some(Request {
            batch,
            process: self.process,
            after,
            names: &self.names,
            now_ms,
        })
    }

    /// Makes the next batch; returns false if there is nothing to send.
    fn fill(&mut self, now_ms: u64) -> bool {
        let mut items = Vec::new();
        while self.notes_left > 0 && items.len() < BATCH_ITEMS_MAX {
            let most = self.notes_left.min(BATCH_ITEMS_MAX - items.len());
            let taken = self.log.take(most, now_ms, |entry| {
                let mut changes = Vec::new();
                if !entry.take_changes(&mut changes) {
                    changes.clear();
                }
                let key = Arc::from(entry.key());
                items.push(Item {
                    key,
                    changes,
                    is_read: false,
                });
            });
            self.notes_left -= taken;
            if taken < most {
                self.notes_left = 0;
            }
        }
        for item in &items {
            self.watch.touched(&item.key, now_ms, self.every_ms);
        }
        while items.len() < BATCH_ITEMS_MAX && self.reads_left > 0 {
            let Some(key) = self.watch.next(now_ms, self.every_ms) else {
                break;
            };
            self.reads_left -= 1;
            items.push(Item::read(key));
        }
        let changed = items.iter().filter(|item| !item.changes.is_empty());
        let changed = changed.count();
        let silent_ms = now_ms.saturating_sub(self.answered_ms.unwrap_or(0));
        if items.is_empty() && silent_ms < HEARTBEAT_MS {
            return false;
        }
        let mut batch = Batch {
            number: self.after,
            taken_ms: now_ms,
            items,
        };
        if changed == 0 {
            self.reading = Some(batch);
        } else {
            self.last += 1;
            batch.number = self.last;
            self.counters.sent += changed as u64;
            self.kept_items += batch.items.len();
            self.batches.push_back(batch);
        }
        true
    }

    /// Takes the answer to the last request.
    ///
    /// # Errors
    /// The answer does not fit: the connection is of no use.
    pub fn answered(&mut self, value: redis::Value, now_ms: u64) -> Result<(), Refused> {
        let after = self.after;
        let mut batches = self.batches.iter();
        let written = batches.position(|batch| batch.number > after);
        let batch = match written {
            Some(at) => &self.batches[at],
            None => self.reading.as_ref().ok_or(Refused)?,
        };
        match Answer::read(value, &self.names, batch.items.len())? {
            Answer::Totals(totals) => {
                self.was_corrected = false;
                // A batch that is sent again is followed by others, which its totals do not have.
                if written.is_none_or(|at| at + 1 == self.batches.len()) {
                    for (item, totals) in batch.items.iter().zip(totals) {
                        let totals = match totals {
                            Ok(totals) => totals.unwrap_or_default(),
                            Err(why) => {
                                self.counters.refused += 1;
                                self.refused = why;
                                continue;
                            }
                        };
                        let merged = self.log.merge(&item.key, now_ms, &totals);
                        self.counters.merged += u64::from(merged && !totals.is_empty());
                    }
                }
                if written.is_some() {
                    self.after = batch.number;
                } else {
                    self.reading = None;
                }
            }
            Answer::Last(last) => {
                if last == after || last > self.last || self.was_corrected {
                    return Err(Refused);
                }
                self.was_corrected = true;
                self.go_on_from(last);
            }
            Answer::Lost => {
                let too_soon = |at| now_ms < at + RESEND_PAUSE_MS;
                if after == 0 || self.resent_ms.is_some_and(too_soon) {
                    return Err(Refused);
                }
                self.resent_ms = Some(now_ms);
                self.begin_again(now_ms);
            }
        }
        self.counters.answers += 1;
        self.answered_ms = Some(now_ms);
        self.answer_ms = now_ms.saturating_sub(self.asked_ms);
        self.drop_old(now_ms);
        Ok(())
    }

    /// The request has no answer. What it has to tell is sent again.
    pub fn failed(&mut self) {
        self.reading = None;
        self.was_corrected = false;
        self.counters.failures += 1;
    }

    /// A connection was opened.
    pub fn connected(&mut self) {
        self.counters.connections += 1;
    }

    /// Whether the store has all changes until now.
    #[must_use]
    pub fn is_told(&self) -> bool {
        let mut batches = self.batches.iter();
        batches.all(|batch| batch.number <= self.after) && self.log.noted() == 0
    }

    /// When there is something to do even if no entry is touched.
    #[must_use]
    pub fn due_ms(&self) -> u64 {
        let heartbeat_ms = self.answered_ms.map_or(0, |at| at + HEARTBEAT_MS);
        self.watch
            .due_ms()
            .map_or(heartbeat_ms, |at| at.min(heartbeat_ms))
    }

    /// The numbers since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            removed_unsent: self.log.removed_unsent(),
            ..self.counters
        }
    }

    /// Why the store refused an entry last; empty if it never did.
    #[must_use]
    pub fn refused(&self) -> &str {
        &self.refused
    }

    /// When the last answer came, milliseconds; none before the first one.
    #[must_use]
    pub fn answered_ms(&self) -> Option<u64> {
        self.answered_ms
    }

    /// The time that the last answer took, milliseconds.
    #[must_use]
    pub fn answer_ms(&self) -> u64 {
        self.answer_ms
    }

    /// The number of entries whose changes the store does not have.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let sent = self
            .batches
            .iter()
            .filter(|batch| batch.number > self.after);
        let sent: usize = sent.map(|batch| batch.items.len()).sum();
        sent + self.log.noted()
    }

    /// The number of keys that are read again.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.watch.len()
    }

    /// The store has the batches up to `last`: those that follow are sent again.
    fn go_on_from(&mut self, last: u64) {
        self.reading = None;
        let first_kept = self
            .batches
            .front()
            .map_or(self.last + 1, |batch| batch.number);
        let lost = first_kept.saturating_sub(last + 1);
        self.counters.lost_batches += lost;
        self.after = last;
    }

    /// The store is empty: everything that this process counted is to be sent, under a new name.
    fn begin_again(&mut self, now_ms: u64) {
        self.reading = None;
        let was_heard = self.answered_ms.unwrap_or(0) + PROCESS_KEPT_MS / 2 > now_ms;
        if was_heard {
            // The changes of all batches are among those of the entries.
            self.batches.clear();
            self.log.forget_exchanges(now_ms);
            self.notes_left = self.log.noted();
            self.counters.resends += 1;
        } else {
            // The store forgot this process, and not the counters.
            let after = self.after;
            self.batches.retain(|batch| batch.number > after);
        }
        self.process = (self.random)();
        self.after = 0;
        self.last = self.batches.len() as u64;
        for (batch, number) in self.batches.iter_mut().zip(1..) {
            batch.number = number;
        }
        self.kept_items = self.batches.iter().map(|batch| batch.items.len()).sum();
    }

    /// Drops batches that the store has and that are not kept any longer.
    fn drop_old(&mut self, now_ms: u64) {
        while let Some(oldest) = self.batches.front() {
            let is_old = now_ms.saturating_sub(oldest.taken_ms) > KEPT_MS;
            let may_go =
                oldest.number <= self.after && (self.kept_items > KEPT_ITEMS_MAX || is_old);
            if !may_go {
                break;
            }
            self.kept_items -= oldest.items.len();
            self.batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
