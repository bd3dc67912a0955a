//! The bounded queue between the workers and one exporter.
//!
//! A worker hands over whole batches and gets empty buffers back, so the lock is taken once per
//! batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::{Account, Loss, Signal};

/// Encoded records of one signal.
#[derive(Debug, Default)]
pub struct Batch {
    /// Concatenated fields number 2 of `ScopeSpans` or `ScopeLogs` (one per record), or of
    /// `ScopeMetrics` (one per metric): each with its key and its length.
    pub bytes: Vec<u8>,
    /// The number of records (spans, log records, data points).
    pub records: u32,
}

/// The limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Records.
    pub records_max: usize,
    /// Bytes of encoded records.
    pub bytes_max: usize,
}

/// Buffers that are kept for reuse.
const SPARE_MAX: usize = 64;

/// The queue of one exporter.
pub struct Queue {
    /// The signal of its records.
    pub signal: Signal,
    /// Counts what became of all records offered.
    pub account: Arc<Account>,
    limits: QueueLimits,
    wake_at: QueueLimits,
    inner: Mutex<Inner>,
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Inner {
    batches: VecDeque<Batch>,
    records: usize,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue")
            .field("signal", &self.signal)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// An empty queue; `wake` tells its exporter that a batch has arrived (see
    /// [`Queue::waking_at`]), and must not block.
    pub fn new(
        signal: Signal,
        limits: QueueLimits,
        account: Arc<Account>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Queue {
        Queue {
            signal,
            account,
            limits,
            wake_at: QueueLimits {
                records_max: 0,
                bytes_max: 0,
            },
            inner: Mutex::default(),
            wake: Box::new(wake),
        }
    }

    /// Wakes the exporter only with the batch that makes this many records, or this many bytes,
    /// wait; smaller amounts are left to its timer. Without this, every batch wakes it.
    #[must_use]
    pub fn waking_at(mut self, level: QueueLimits) -> Queue {
        self.wake_at = level;
        self
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> QueueLimits {
        self.limits
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch. A batch that does not fit is dropped whole and counted. Returns an empty
    /// buffer for the next batch.
    pub fn offer(&self, batch: Batch) -> Vec<u8> {
        let mut inner = self.inner();
        let records = inner.records + batch.records as usize;
        let bytes = inner.bytes + batch.bytes.len();
        if inner.closed || records > self.limits.records_max || bytes > self.limits.bytes_max {
            let why = if inner.closed {
                Loss::Shutdown
            } else {
                Loss::QueueFull
            };
            drop(inner);
            self.account.add_lost(why, u64::from(batch.records));
            let mut bytes = batch.bytes;
            bytes.clear();
            return bytes;
        }
        // Only the batch that reaches the limit wakes the exporter: while more waits, the exporter
        // continues on its own.
        let reached = inner.records < self.wake_at.records_max
            && records >= self.wake_at.records_max
            || inner.bytes < self.wake_at.bytes_max && bytes >= self.wake_at.bytes_max;
        let each = self.wake_at.records_max == 0;
        (inner.records, inner.bytes) = (records, bytes);
        inner.batches.push_back(batch);
        let spare = inner.spare.pop();
        drop(inner);
        if reached || each {
            (self.wake)();
        }
        spare.unwrap_or_default()
    }

    /// Takes the oldest batch; its records are in flight until [`Account::end_flight`].
    pub fn take(&self) -> Option<Batch> {
        let mut inner = self.inner();
        let batch = inner.batches.pop_front()?;
        inner.records -= batch.records as usize;
        inner.bytes -= batch.bytes.len();
        self.account.add_in_flight(u64::from(batch.records));
        Some(batch)
    }

    /// Returns a buffer for reuse.
    pub fn reuse(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut inner = self.inner();
        if inner.spare.len() < SPARE_MAX {
            inner.spare.push(buffer);
        }
    }

    /// Waiting records, and their bytes.
    #[must_use]
    pub fn depth(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.records, inner.bytes)
    }

    /// Closes the queue: everything offered from now on is lost ([`Loss::Shutdown`]); waiting
    /// batches can still be taken.
    pub fn close(&self) {
        self.inner().closed = true;
    }
}
