//! A worker's state for its filters, and the hand-over of records to exporters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use net::Now;
use net::timers::NEVER_MS;
use telemetry::account::Loss;
use telemetry::metrics::Local;
use telemetry::queue::{Batch, Queue};
use telemetry::record::Outbox;
use telemetry::{Ids, TraceId};

use super::fault::Limiter;
use crate::ids::StreamId;
use crate::logging::Scene;
use crate::runtime_config::{Filter, RuntimeConfig, StreamCounts};
use crate::stream::{Attached, Stream};

/// Encoded bytes that a worker collects before it hands them over.
const BATCH_BYTES: usize = 64 * 1024;
/// Spare records that are kept for later streams.
const SPARE_MAX: usize = 1024;
/// How long a measurement may wait in a worker, milliseconds.
const METRICS_DELAY_MS: u64 = 100;

/// How long counts of streams may wait in a worker, milliseconds.
const STREAMS_DELAY_MS: u64 = 1000;

/// A worker's state for its filters.
#[derive(Debug)]
pub(crate) struct Worker {
    pub ids: Ids,
    #[expect(clippy::vec_box, reason = "a box moves between here and a stream")]
    pub spare: Vec<Box<Attached>>,
    /// One per filter.
    pub outboxes: Vec<Outbox>,
    pub tables: Tables,
    /// By filter: the limiter of logged faults.
    pub limiters: Vec<Limiter>,
    /// By filter: counts of streams that are not yet added to the shared counters.
    pub streams: Vec<StreamCounts>,
    /// Scratch buffers for the fields of a message.
    pub came: Came,
    /// The trace of the last ended stream, if it is kept.
    pub kept: Option<TraceId>,
    /// The latest time for handing records over, milliseconds.
    pub flush_at_ms: u64,
    /// `on-idle-timeout`: its next time, the stream, and the filter.
    idle: BinaryHeap<Reverse<(u64, u32, u64, usize)>>,
}

/// `tracestate` and `baggage` of a message.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub state: Vec<u8>,
    pub baggage: Vec<u8>,
}

/// Measurements that are not yet handed over.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// By filter, one for each receiver.
    pub locals: Vec<Vec<Local>>,
    dirty: bool,
}

impl Tables {
    pub fn record(
        &mut self,
        filter: usize,
        instrument: u32,
        value: i64,
        attributes: &[u8],
        now: Now,
    ) {
        self.dirty = true;
        for local in &mut self.locals[filter] {
            local.record(instrument as usize, value, attributes, now.wall_ns);
        }
    }
}

impl Worker {
    pub fn new(runtime_config: &RuntimeConfig, worker: usize, seed: u64) -> Worker {
        let process = runtime_config.process.trace_seed;
        let mixed = seed.rotate_left(17) ^ 0x9e37_79b9_7f4a_7c15;
        let filters = &runtime_config.config.otel;
        Worker {
            ids: Ids::new([process[0], process[1], seed, mixed ^ worker as u64]),
            spare: Vec::new(),
            outboxes: filters.iter().map(|_| Outbox::default()).collect(),
            tables: Tables {
                locals: runtime_config.tracing.filters.iter().map(locals).collect(),
                dirty: false,
            },
            limiters: filters.iter().map(|_| Limiter::default()).collect(),
            streams: vec![StreamCounts::default(); filters.len()],
            came: Came::default(),
            kept: None,
            flush_at_ms: NEVER_MS,
            idle: BinaryHeap::new(),
        }
    }

    /// Schedules `on-idle-timeout` for a stream.
    pub fn watch(&mut self, at_ms: u64, stream: &Stream, filter: usize) {
        self.idle
            .push(Reverse((at_ms, stream.id.0, stream.txn.id, filter)));
    }

    /// The time of the next action, milliseconds.
    pub fn next_ms(&self) -> u64 {
        let idle = self.idle.peek().map_or(NEVER_MS, |Reverse(first)| first.0);
        self.flush_at_ms.min(idle)
    }

    pub fn recycle(&mut self, attached: Box<Attached>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(attached);
        }
    }
}

impl Worker {
    /// The next stream for which `on-idle-timeout` is due, its number, and the filter.
    pub fn next_idle(&mut self, now_ms: u64) -> Option<(StreamId, u64, usize)> {
        let Reverse((at_ms, ..)) = self.idle.peek()?;
        if *at_ms > now_ms {
            return None;
        }
        let Reverse((_, stream, number, filter)) = self.idle.pop()?;
        Some((StreamId(stream), number, filter))
    }

    /// Runs `on-idle-timeout` for a stream, and schedules it again.
    pub fn idle(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, filter: usize) {
        self.trace_idle(scene, stream, filter);
        let period = scene.eval.runtime_config.config.otel[filter]
            .program
            .idle_ms;
        if let Some(period_ms) = period {
            let at_ms = scene.eval.now.ms().saturating_add(period_ms);
            self.watch(at_ms, stream, filter);
        }
    }

    /// Hands records over if their time has come.
    pub fn flush_due(&mut self, runtime_config: &RuntimeConfig, now_ms: u64) {
        if self.flush_at_ms <= now_ms {
            self.flush_records(runtime_config);
        }
    }

    /// Hands over all records and counts.
    pub fn flush_records(&mut self, runtime_config: &RuntimeConfig) {
        self.flush_at_ms = NEVER_MS;
        let filters = runtime_config.tracing.filters.iter();
        for (outbox, filter) in self.outboxes.iter_mut().zip(filters.clone()) {
            flush(outbox, filter);
        }
        for (streams, filter) in self.streams.iter_mut().zip(filters) {
            filter.counters.add(std::mem::take(streams));
        }
        self.flush_measurements(runtime_config);
    }

    fn flush_measurements(&mut self, runtime_config: &RuntimeConfig) {
        if !std::mem::take(&mut self.tables.dirty) {
            return;
        }
        let filters = runtime_config.tracing.filters.iter();
        for (locals, filter) in self.tables.locals.iter_mut().zip(filters) {
            for (local, shared) in locals.iter_mut().zip(&filter.export.metrics) {
                shared.merge(local);
            }
        }
    }

    /// Counts a stream at a filter; the shared counters are updated within [`STREAMS_DELAY_MS`].
    pub(super) fn count_stream(
        &mut self,
        scene: &Scene<'_>,
        filter: usize,
        count: impl FnOnce(&mut StreamCounts) -> &mut u64,
    ) {
        *count(&mut self.streams[filter]) += 1;
        let at_ms = scene.eval.now.ms().saturating_add(STREAMS_DELAY_MS);
        self.flush_at_ms = self.flush_at_ms.min(at_ms);
    }

    /// Schedules the hand-over after a stream's records were added to an outbox, or a measurement
    /// was taken.
    pub(super) fn schedule_flush(&mut self, scene: &Scene<'_>, index: usize) {
        let filter = &scene.eval.runtime_config.tracing.filters[index];
        let outbox = &mut self.outboxes[index];
        let full = |batch: &Batch| {
            batch.bytes.len() >= BATCH_BYTES || batch.records >= filter.export.batch_records
        };
        if full(&outbox.spans) || full(&outbox.logs) {
            flush(outbox, filter);
        }
        let mut delay_ms = NEVER_MS;
        if !outbox.is_empty() {
            delay_ms = filter.export.delay_ms;
        }
        if self.tables.dirty {
            delay_ms = delay_ms.min(METRICS_DELAY_MS);
        }
        let at_ms = scene.eval.now.ms().saturating_add(delay_ms);
        self.flush_at_ms = self.flush_at_ms.min(at_ms);
    }
}

/// Measurements of a filter, for each receiver.
fn locals(filter: &Filter) -> Vec<Local> {
    let local = || Local::new(Arc::clone(&filter.export.instruments));
    filter.export.metrics.iter().map(|_| local()).collect()
}

fn flush(outbox: &mut Outbox, filter: &Filter) {
    let export = &filter.export;
    let counts = std::mem::take(&mut outbox.counts);
    for queue in &export.spans {
        queue.account.add_started(counts.spans_started);
        queue
            .account
            .add_lost(Loss::SampledOut, counts.spans_sampled_out);
        queue
            .account
            .add_lost(Loss::StreamLimit, counts.spans_over_limit);
    }
    for queue in &export.logs {
        queue.account.add_started(counts.logs_started);
        queue
            .account
            .add_lost(Loss::SampledOut, counts.logs_sampled_out);
        queue
            .account
            .add_lost(Loss::StreamLimit, counts.logs_over_limit);
    }
    hand_over(&mut outbox.spans, &export.spans);
    hand_over(&mut outbox.logs, &export.logs);
}

fn hand_over(batch: &mut Batch, queues: &[Arc<Queue>]) {
    let records = std::mem::take(&mut batch.records);
    let bytes = std::mem::take(&mut batch.bytes);
    if bytes.is_empty() {
        batch.bytes = bytes;
        return;
    }
    let Some((last, others)) = queues.split_last() else {
        batch.bytes = bytes;
        batch.bytes.clear();
        return;
    };
    for queue in others {
        queue.offer(Batch {
            bytes: bytes.clone(),
            records,
        });
    }
    batch.bytes = last.offer(Batch { bytes, records });
}
