//! What waits to become batches, by what tells it apart.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bytes::BytesMut;
use tokio::time::{Duration, Instant};

use super::counts::{Counts, Trigger};
use super::rules::Rules;
use crate::config::Signal;
use crate::run::account::Receipt;
use crate::run::consume::Refusal;
use crate::run::data::Batch;
use crate::run::origin::Origin;
use crate::run::storage::{Ending, Pledge};
use otlp::split::split;

/// Bytes that wait at most, for all batches: the oldest is sent from here on.
const BYTES_ALL_MAX: u64 = 256 << 20;
/// Batches that wait at most: the oldest is sent from here on.
pub(super) const WAITING_MAX: usize = 10_000;
/// While the next one has no room, so many made batches are kept before nothing more is taken.
const READY_MAX: usize = 2;

/// What all of a batch came with.
pub(super) type Key = Option<Arc<Origin>>;
/// When a batch began to wait, and a number that no other one has.
type Since = (Instant, u64);

/// See the module.
#[derive(Default)]
pub(super) struct State {
    waiting: HashMap<Key, Waiting>,
    due: BTreeMap<Since, Key>,
    number: u64,
    bytes: u64,
    /// Hashes of the combinations that were taken, where they are bounded.
    taken: HashSet<u64>,
    hasher: RandomState,
    /// Was made, and not handed on yet.
    ready: VecDeque<(Batch, Pledge)>,
    /// Of what was made, that is just being handed on; and promises.
    in_hand: usize,
    /// Why what was made could not be handed on.
    pub why: Option<Arc<str>>,
    pub closing: bool,
}

struct Waiting {
    signal: Signal,
    bytes: BytesMut,
    records: u64,
    receipt: Receipt,
    /// Senders that wait until it is with the next one.
    pledge: Pledge,
    since: Since,
}

impl State {
    /// Why nothing more is taken.
    pub fn busy(&self, after: Duration) -> Refusal {
        let why = self.why.clone();
        let why = why.unwrap_or_else(|| "a batch waits for the next component".into());
        Refusal::busy(after, &why)
    }

    /// Nothing more is taken until something is handed on.
    pub fn is_full(&self) -> bool {
        self.ready.len() >= READY_MAX
    }

    /// Whether there may be a batch of a combination; it counts from now on.
    pub fn admits(&mut self, key: &Key, rules: &Rules) -> bool {
        let Some(max) = rules.combinations_max else {
            return true;
        };
        let hash = self.hasher.hash_one(key);
        let is_known = self.taken.contains(&hash);
        if !is_known && self.taken.len() < max {
            self.taken.insert(hash);
            return true;
        }
        is_known
    }

    /// Combinations that were taken, or that wait where nobody remembers more.
    pub fn combinations(&self, rules: &Rules) -> usize {
        match rules.combinations_max {
            Some(_) => self.taken.len(),
            None => self.waiting.len(),
        }
    }

    /// Takes a batch. Whether it is the first of its kind to wait.
    pub fn add(&mut self, key: Key, mut batch: Batch, (rules, counts): (&Rules, &Counts)) -> bool {
        if !rules.keeps_waiting {
            batch.receipt.custody.let_go();
        }
        let pledge = batch.receipt.custody.pledge();
        self.bytes += batch.bytes.len() as u64;
        let is_first = !self.waiting.contains_key(&key);
        match self.waiting.get_mut(&key) {
            Some(waiting) => {
                waiting.bytes.extend_from_slice(&batch.bytes);
                waiting.records += batch.records;
                waiting.receipt.merge(batch.receipt);
                waiting.pledge.merge(pledge);
            }
            None => self.begin(&key, batch, pledge),
        }
        let is_ready = |one: &Waiting| rules.is_enough(one.bytes.len(), one.records);
        if self.waiting.get(&key).is_some_and(is_ready) {
            self.make(&key, (rules, counts), Trigger::Size);
        }
        while self.bytes > BYTES_ALL_MAX || self.waiting.len() > WAITING_MAX {
            let Some(oldest) = self.due.values().next().cloned() else {
                break;
            };
            self.make(&oldest, (rules, counts), Trigger::Size);
        }
        is_first
    }

    fn begin(&mut self, key: &Key, batch: Batch, pledge: Pledge) {
        self.number += 1;
        let since = (Instant::now(), self.number);
        self.due.insert(since, key.clone());
        let waiting = Waiting {
            signal: batch.signal,
            bytes: BytesMut::from(batch.bytes),
            records: batch.records,
            receipt: batch.receipt,
            pledge,
            since,
        };
        self.waiting.insert(key.clone(), waiting);
    }

    /// What waits becomes batches.
    fn make(&mut self, key: &Key, (rules, counts): (&Rules, &Counts), trigger: Trigger) {
        let Some(waiting) = self.waiting.remove(key) else {
            return;
        };
        self.due.remove(&waiting.since);
        self.bytes -= waiting.bytes.len() as u64;
        let (signal, records) = (waiting.signal, waiting.records);
        for (bytes, records) in split(signal, waiting.bytes.freeze(), records, rules.bound) {
            counts.add(trigger, records);
            let pledge = waiting.receipt.custody.pledge();
            let batch = Batch {
                signal,
                bytes,
                records,
                receipt: waiting.receipt.clone(),
                origin: key.clone(),
            };
            self.ready.push_back((batch, pledge));
        }
        waiting.pledge.end(Ending::Done);
    }

    /// The same of what is due.
    pub fn make_due(&mut self, rules: &Rules, counts: &Counts) {
        let now = Instant::now();
        while let Some((since, key)) = self.due.first_key_value()
            && since.0 + rules.timeout <= now
        {
            let key = key.clone();
            self.make(&key, (rules, counts), Trigger::Timeout);
        }
    }

    /// The same of everything.
    pub fn make_all(&mut self, rules: &Rules, counts: &Counts) {
        while let Some(key) = self.due.values().next().cloned() {
            self.make(&key, (rules, counts), Trigger::Timeout);
        }
    }

    /// Whether something was made, and not taken out yet.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes out what is to be handed on next; [`State::put_back`] or [`State::gone`] follows.
    pub fn take_out(&mut self) -> Option<(Batch, Pledge)> {
        let next = self.ready.pop_front()?;
        self.in_hand += 1;
        Some(next)
    }

    /// It was not taken: it is the next one again.
    pub fn put_back(&mut self, batch: Batch, pledge: Pledge) {
        self.in_hand -= 1;
        self.ready.push_front((batch, pledge));
    }

    /// Something may be added though nothing more is taken; [`State::gone`] follows.
    pub fn promise(&mut self) {
        self.in_hand += 1;
    }

    /// It was taken, or lost.
    pub fn gone(&mut self) {
        self.in_hand -= 1;
    }

    /// All that was made was taken, or is lost.
    pub fn is_over(&self) -> bool {
        self.ready.is_empty() && self.in_hand == 0
    }

    /// All that was made and is in nobody's hand; none as long as some is.
    pub fn take_rest(&mut self) -> Option<VecDeque<(Batch, Pledge)>> {
        (self.in_hand == 0).then(|| std::mem::take(&mut self.ready))
    }

    /// When something is due next.
    pub fn due(&self, rules: &Rules) -> Option<Instant> {
        let (since, _) = self.due.first_key_value()?;
        Some(since.0 + rules.timeout)
    }
}
