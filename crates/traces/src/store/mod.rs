//! The store: what is called from outside, behind one lock.
//!
//! A request is read before the lock is taken, and answers are made after it is released where they take long, so that
//! whoever feeds the store never waits for more than one walk over the traces.

mod held;
mod trace;

pub(crate) use held::Held;
pub(crate) use trace::{Fate, Trace};

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tail::policy::Refusal;
use tail::settings::TailSampling;

use crate::answer::{DryRun, HeatMap, HeldNow, Services, TraceDetail, TraceList};
use crate::query::{HeatMapQuery, TraceQuery};
use crate::{detail, dry_run, heat_map, read, services};

/// Turns of others that a slice waits for senders to have theirs.
const GIVE_WAY_MAX: usize = 1000;
/// Bytes that a store has at least.
pub const BYTES_MIN: u64 = 1 << 20;

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in memory; less than [`BYTES_MIN`] counts as that.
    pub bytes_max: u64,
    /// The greatest age of a trace, from its first span's arrival on.
    pub age_max_ms: u64,
}

impl Limits {
    /// As much as either allows.
    #[must_use]
    pub fn largest(self, other: Limits) -> Limits {
        Limits {
            bytes_max: self.bytes_max.max(other.bytes_max),
            age_max_ms: self.age_max_ms.max(other.age_max_ms),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes_max: 64 << 20,
            age_max_ms: 60 * 60 * 1000,
        }
    }
}

/// Where in a pipeline spans were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before a sampler: whether they are kept is not known yet.
    Seen,
    /// Where they leave: they are kept.
    Kept,
}

/// What a sampler decided about a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The trace.
    pub id: [u8; 16],
    /// It is kept.
    pub kept: bool,
    /// The policy that decided, where one did.
    pub policy: Option<&'a str>,
}

/// The trace store of a process.
#[derive(Debug)]
pub struct Store {
    held: Mutex<Held>,
    /// Senders that want the lock.
    senders: AtomicUsize,
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Limits) -> Store {
        Store {
            held: Mutex::new(Held::new(limits)),
            senders: AtomicUsize::new(0),
        }
    }

    /// Other limits from now on.
    pub fn limit(&self, limits: Limits, now_ms: u64) {
        let mut held = self.held();
        held.limit(limits);
        held.expire(now_ms);
    }

    /// Adds the spans of an `ExportTraceServiceRequest`. Spans that are held already are not held twice; what cannot be
    /// read is counted.
    pub fn add(&self, request: &[u8], stage: Stage, now_ms: u64) {
        let notes = read::read(request);
        self.held_by_sender().add(notes, stage, now_ms);
    }

    /// Notes what a sampler decided. A trace that is kept and not held is remembered: its spans are to come.
    pub fn decided<'a>(&self, decisions: impl IntoIterator<Item = Decision<'a>>, now_ms: u64) {
        let mut held = self.held_by_sender();
        for decision in decisions {
            held.decided(&decision, now_ms);
        }
        held.expire(now_ms);
    }

    /// Bytes that are held, as of the last change.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_by_sender().bytes()
    }

    /// What is held.
    #[must_use]
    pub fn held_now(&self, now_ms: u64) -> HeldNow {
        let mut held = self.held();
        held.expire(now_ms);
        held.now()
    }

    /// Traces that a query matches, the newest first.
    #[must_use]
    pub fn list(&self, query: &TraceQuery, now_ms: u64) -> TraceList {
        let mut held = self.held();
        held.expire(now_ms);
        held.list(query)
    }

    /// A trace with all that is known of it.
    #[must_use]
    pub fn trace(&self, id: &[u8; 16]) -> Option<TraceDetail> {
        let copy = self.held().copy(id)?;
        Some(detail::detail(&copy))
    }

    /// Latency over time.
    #[must_use]
    pub fn heat_map(&self, query: &HeatMapQuery, now_ms: u64) -> HeatMap {
        let points = {
            let mut held = self.held();
            held.expire(now_ms);
            heat_map::points(&held, &query.filter)
        };
        heat_map::heat_map(query, &points, now_ms)
    }

    /// Words for the search fields.
    #[must_use]
    pub fn services(&self, now_ms: u64) -> Services {
        let mut held = self.held();
        held.expire(now_ms);
        services::services(&held)
    }

    /// What policies would have kept of the traces of the last [`WINDOW_MS`], as if each were decided at its end.
    ///
    /// It goes over the traces in slices between which others get the lock, and ends after [`SPANS_MAX`] spans.
    ///
    /// [`WINDOW_MS`]: crate::dry_run::WINDOW_MS
    /// [`SPANS_MAX`]: crate::dry_run::SPANS_MAX
    ///
    /// # Errors
    /// Which policy cannot be compiled, and why.
    pub fn dry_run(&self, settings: &TailSampling, now_ms: u64) -> Result<DryRun, Refusal> {
        dry_run::dry_run(self, settings, now_ms)
    }

    /// Counts everything anew, and compares it with what was counted: for tests, and for fuzzing.
    ///
    /// # Panics
    /// Where they differ.
    pub fn check(&self) {
        self.held().check();
    }

    /// The lock for a sender, before whom slices of long answers give way.
    fn held_by_sender(&self) -> MutexGuard<'_, Held> {
        self.senders.fetch_add(1, Relaxed);
        let held = self.held();
        self.senders.fetch_sub(1, Relaxed);
        held
    }

    /// Lets senders have the lock before it is taken again: who releases a lock would have it again before they wake up.
    pub(crate) fn give_way(&self) {
        for _ in 0..GIVE_WAY_MAX {
            if self.senders.load(Relaxed) == 0 {
                return;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
