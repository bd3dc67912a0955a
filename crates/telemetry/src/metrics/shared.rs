//! The merged metrics of all workers, for one reader.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::instrument::Kind;
use super::table::Table;
use super::{Instruments, Local, encode};

/// The start of the period that values cover (OpenTelemetry: Metrics data model, temporality).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// Since the process started.
    #[default]
    Cumulative,
    /// Since the last collection. Up-down counters still count since the start, because their
    /// values would mean nothing otherwise (OpenTelemetry: OTLP metrics exporter, temporality
    /// preference).
    Delta,
}

/// The merged metrics of all workers.
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
    /// The time of the last collection.
    last: u64,
}

impl Shared {
    /// Empty metrics. `start` is the start time of the process (wall clock, nanoseconds).
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

    /// Takes what a worker has recorded since the last merge; the worker keeps its memory. Takes
    /// nothing if the instruments differ.
    pub fn merge(&self, local: &mut Local) {
        self.take(&mut self.inner(), local);
    }

    /// As [`Shared::merge`], unless another thread is merging or collecting: then returns false and
    /// does nothing.
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
    /// (opentelemetry/proto/metrics/v1/metrics.proto), at the time `now` (wall clock, nanoseconds).
    /// Returns the number of data points.
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
        // If the clock was set back, intervals must not overlap.
        inner.last = inner.last.max(now);
        points
    }

    /// The number of rejected values: negative values of instruments that only grow.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.inner().rejected
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
