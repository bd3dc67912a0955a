//! What all workers have recorded, for one reader.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::instrument::Kind;
use super::table::Table;
use super::{Instruments, Local, encode};

/// Since when values count (OpenTelemetry: Metrics data model, temporality).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// Since the process started.
    #[default]
    Cumulative,
    /// Since the last collection; up-down counters since the start all the same, as their values say nothing otherwise
    /// (OpenTelemetry: OTLP metrics exporter, temporality preference).
    Delta,
}

/// See the module.
#[derive(Debug)]
pub struct Shared {
    instruments: Arc<Instruments>,
    temporality: Temporality,
    start: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    tables: Box<[Table]>,
    rejected: u64,
    /// When it was last collected.
    last: u64,
}

impl Shared {
    /// Of nothing yet. `start` is the time of the process's start (wall clock, nanoseconds).
    #[must_use]
    pub fn new(instruments: Arc<Instruments>, temporality: Temporality, start: u64) -> Shared {
        let inner = Inner {
            tables: instruments
                .streams
                .iter()
                .map(|_| Table::default())
                .collect(),
            rejected: 0,
            last: start,
        };
        Shared {
            instruments,
            temporality,
            start,
            inner: Mutex::new(inner),
        }
    }

    /// Takes what a worker has recorded since the last time, which leaves its storage. Of other instruments than these
    /// nothing is taken.
    pub fn merge(&self, local: &mut Local) {
        self.take(&mut self.inner(), local);
    }

    /// As [`Shared::merge`], unless someone else is at it or collects: then false, and nothing is done.
    pub fn try_merge(&self, local: &mut Local) -> bool {
        let mut inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.take(&mut inner, local);
        true
    }

    fn take(&self, inner: &mut Inner, local: &mut Local) {
        if !Arc::ptr_eq(&self.instruments, &local.instruments) {
            return;
        }
        inner.rejected += std::mem::take(&mut local.rejected);
        let tables = inner.tables.iter_mut().zip(&mut local.tables);
        for (stream, (into, from)) in self.instruments.streams.iter().zip(tables) {
            if !from.touched {
                continue;
            }
            let plan = &stream.plan;
            for series in from.series.iter_mut().filter(|series| series.touched) {
                let into = into.touch(series.hash, &series.attributes, plan);
                into.point.merge(plan, &series.point);
                series.point.reset(plan);
            }
            if let Some(overflow) = from.overflow.as_mut().filter(|overflow| overflow.touched) {
                let into = into.overflow_series(plan);
                into.touched = true;
                into.point.merge(plan, &overflow.point);
                overflow.point.reset(plan);
            }
            from.settle();
        }
    }

    /// Appends all metrics that have a value, each as a field number 2 of `ScopeMetrics`
    /// (opentelemetry/proto/metrics/v1/metrics.proto) at the time `now` (wall clock, nanoseconds), and tells how many data
    /// points they have.
    pub fn collect(&self, now: u64, out: &mut Vec<u8>) -> usize {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let mut points = 0;
        for (stream, table) in self.instruments.streams.iter().zip(&mut inner.tables) {
            let delta = self.temporality == Temporality::Delta
                && stream.instrument.kind != Kind::UpDownCounter;
            let (temporality, start) = if delta {
                (Temporality::Delta, inner.last)
            } else {
                (Temporality::Cumulative, self.start)
            };
            let times = encode::Times {
                start,
                now: now.max(start),
            };
            points += encode::metric(stream, table, temporality, times, out);
            if delta {
                table.restart(&stream.plan);
            }
        }
        // A clock that was set back would make intervals overlap.
        inner.last = inner.last.max(now);
        points
    }

    /// Values that meant nothing: negative ones of what only grows.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.inner().rejected
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
