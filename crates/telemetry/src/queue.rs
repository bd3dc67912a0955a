//! The bounded queue between the workers and one exporter.
//!
//! A worker gives whole batches and gets spare buffers back, so the lock is taken once a batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::{Account, Loss, Signal};

/// Encoded records of one signal.
#[derive(Debug, Default)]
pub struct Batch {
    /// Concatenated fields number 2 of `ScopeSpans` or `ScopeLogs` (one a record), or of `ScopeMetrics` (one a metric):
    /// each with its key and its length.
    pub bytes: Vec<u8>,
    /// How many records they are (spans, log records, data points).
    pub records: u32,
}

/// What a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Records.
    pub records_max: usize,
    /// Bytes of encoded records.
    pub bytes_max: usize,
}

/// Buffers that are kept for use again.
const SPARE_MAX: usize = 64;

/// See the module.
pub struct Queue {
    /// What it carries.
    pub signal: Signal,
    /// What became of everything that was offered.
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
    /// An empty queue; `wake` tells its exporter that a batch has come (see [`Queue::waking_at`]), and must not block.
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

    /// The exporter is woken only by the batch with which so many records, or so many bytes, wait: what is less, it comes for
    /// by its own clock. Not set, every batch wakes it.
    #[must_use]
    pub fn waking_at(mut self, level: QueueLimits) -> Queue {
        self.wake_at = level;
        self
    }

    /// What it may hold.
    #[must_use]
    pub fn limits(&self) -> QueueLimits {
        self.limits
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a batch. What does not fit is dropped whole and counted. Gives an empty buffer for the next batch.
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
        // Reached, and not before: the exporter looks again by itself as long as it finds as much.
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

    /// Gives a buffer back.
    pub fn reuse(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut inner = self.inner();
        if inner.spare.len() < SPARE_MAX {
            inner.spare.push(buffer);
        }
    }

    /// Records that wait, and their bytes.
    #[must_use]
    pub fn depth(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.records, inner.bytes)
    }

    /// From now on everything offered is lost ([`Loss::Shutdown`]); what is inside can still be taken.
    pub fn close(&self) {
        self.inner().closed = true;
    }
}
