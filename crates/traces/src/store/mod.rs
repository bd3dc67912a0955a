//! The store: its public interface, behind one lock.
//!
//! A request is parsed before the lock is taken. Answers that take long are built after it is
//! released. So a sender never waits for more than one scan of the traces.

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

/// Most times that a slice yields to senders.
const GIVE_WAY_MAX: usize = 1000;
/// The minimum size of a store in bytes.
pub const BYTES_MIN: u64 = 1 << 20;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in memory; at least [`BYTES_MIN`].
    pub bytes_max: u64,
    /// The maximum age of a trace, from the arrival of its first span.
    pub age_max_ms: u64,
}

impl Limits {
    /// The larger of both limits.
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

/// The place in a pipeline where spans were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before a sampler: it is not known yet whether they are kept.
    Seen,
    /// At the end: they are kept.
    Kept,
}

/// The decision of a sampler on a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The trace.
    pub id: [u8; 16],
    /// Whether it is kept.
    pub kept: bool,
    /// The policy that decided, if there was one.
    pub policy: Option<&'a str>,
}

/// The trace store of a process.
#[derive(Debug)]
pub struct Store {
    held: Mutex<Held>,
    /// The number of senders that wait for the lock.
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

    /// Sets other limits.
    pub fn limit(&self, limits: Limits, now_ms: u64) {
        let mut held = self.held();
        held.limit(limits);
        held.expire(now_ms);
    }

    /// Lowers the limit of bytes to this, if it is higher.
    pub fn cap_bytes(&self, bytes_max: u64, now_ms: u64) {
        let mut held = self.held();
        held.cap_bytes(bytes_max);
        held.expire(now_ms);
    }

    /// Adds the spans of an `ExportTraceServiceRequest`. Spans that are stored already are not
    /// added again. Spans that cannot be parsed are counted.
    pub fn add(&self, request: &[u8], stage: Stage, now_ms: u64) {
        let notes = read::read(request);
        self.held_by_sender().add(notes, stage, now_ms);
    }

    /// Records a sampler's decisions. A kept trace that is not stored yet is created: its spans
    /// will follow.
    pub fn decided<'a>(&self, decisions: impl IntoIterator<Item = Decision<'a>>, now_ms: u64) {
        let mut held = self.held_by_sender();
        for decision in decisions {
            held.decided(&decision, now_ms);
        }
        held.expire(now_ms);
    }

    /// Bytes of the content, as of the last change.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_by_sender().bytes()
    }

    /// The size of the content.
    #[must_use]
    pub fn held_now(&self, now_ms: u64) -> HeldNow {
        let mut held = self.held();
        held.expire(now_ms);
        held.now()
    }

    /// The traces that match a query, newest first.
    #[must_use]
    pub fn list(&self, query: &TraceQuery, now_ms: u64) -> TraceList {
        let mut held = self.held();
        held.expire(now_ms);
        held.list(query)
    }

    /// A trace with all its data.
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

    /// Values for the search fields.
    #[must_use]
    pub fn services(&self, now_ms: u64) -> Services {
        let mut held = self.held();
        held.expire(now_ms);
        services::services(&held)
    }

    /// Evaluates other policies on the traces of the last [`WINDOW_MS`], as if each were decided at
    /// its end.
    ///
    /// It reads the traces in slices, releases the lock between them, and ends after [`SPANS_MAX`]
    /// spans.
    ///
    /// [`WINDOW_MS`]: crate::dry_run::WINDOW_MS
    /// [`SPANS_MAX`]: crate::dry_run::SPANS_MAX
    ///
    /// # Errors
    /// Which policy cannot be compiled, and why.
    pub fn dry_run(&self, settings: &TailSampling, now_ms: u64) -> Result<DryRun, Refusal> {
        dry_run::dry_run(self, settings, now_ms)
    }

    /// Counts everything again and compares it with the counters: for tests and fuzzing.
    ///
    /// # Panics
    /// A count differs.
    pub fn check(&self) {
        self.held().check();
    }

    /// The lock for a sender, which has priority over slices of long answers.
    fn held_by_sender(&self) -> MutexGuard<'_, Held> {
        self.senders.fetch_add(1, Relaxed);
        let held = self.held();
        self.senders.fetch_sub(1, Relaxed);
        held
    }

    /// Lets senders take the lock first: otherwise, the thread that released it would take it again
    /// before they wake up.
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
