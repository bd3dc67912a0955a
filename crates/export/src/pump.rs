//! Moves records from a queue to an exporter: one task per pipeline.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use otlp::Signal;
use telemetry::account::Loss;
use telemetry::queue::Queue;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::clock::now_unix_ns;
use crate::health::Health;
use crate::plan::MetricSource;
use crate::request::{Envelope, Piece, Request};
use crate::retry::{End, Retry};
use crate::sink::Sink;

/// The most bytes of a request: gRPC receivers accept 4 MiB by default.
pub(crate) const REQUEST_BYTES_MAX: usize = 7 << 19;

/// A command from the control thread.
pub(crate) enum Command {
    /// Export what is there now, and reply when that has ended.
    Flush(std::sync::mpsc::Sender<()>),
    /// Export what is there, then end; what is left at this time is lost.
    Shutdown(Instant),
}

/// Metrics that a pipeline collects.
pub(crate) struct Collect {
    pub source: Arc<dyn MetricSource>,
    pub pipeline: usize,
}

/// The task of a pipeline.
pub(crate) struct Pump {
    pub queue: Arc<Queue>,
    pub notify: Arc<Notify>,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub sink: Arc<Sink>,
    pub envelope: Envelope,
    pub health: Arc<Health>,
    pub retry: Retry,
    pub collect: Option<Collect>,
    /// The longest time until waiting records are exported, or the time between two collections.
    pub interval: Duration,
    pub limits: Limits,
    pub state: State,
}

/// The limits of a pump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most records per request.
    pub request_records_max: usize,
    /// The most concurrent requests.
    pub requests_max: usize,
    /// The most bytes in flight.
    pub bytes_max: usize,
    /// Records that wait are exported at once when there are this many.
    pub wake_records: usize,
    /// The same limit in bytes.
    pub wake_bytes: usize,
}

/// The state of a pump.
#[derive(Default)]
pub(crate) struct State {
    requests: JoinSet<(u64, usize)>,
    /// Numbers of the requests in flight.
    numbers: BTreeSet<u64>,
    next_number: u64,
    /// Bytes in flight.
    bytes: usize,
    /// Records taken out of the queue that are in no request yet.
    rest: Option<Piece>,
    /// Records taken out of the queue since the start.
    taken: u64,
    /// Records before this count are exported now, even in a request that is not full.
    due: u64,
    flushes: Vec<Flush>,
}

/// A flush in progress: all records up to a count, in requests up to a number.
struct Flush {
    records: u64,
    number: Option<u64>,
    done: std::sync::mpsc::Sender<()>,
}

impl Pump {
    /// Runs until it receives a shutdown, or the command channel closes.
    pub(crate) async fn run(mut self) {
        let mut tick = Instant::now() + self.interval;
        let end = loop {
            self.fill();
            let notify = Arc::clone(&self.notify);
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Flush(done)) => self.flush(done),
                    Some(Command::Shutdown(end)) => break end,
                    None => break Instant::now(),
                },
                Some(ended) = self.state.requests.join_next() => self.ended(ended.ok()),
                () = notify.notified() => {}
                () = sleep_until(tick) => {
                    tick = Instant::now() + self.interval;
                    self.collect();
                    self.all_due();
                }
            }
        };
        self.finish(end).await;
    }

    /// Exports what is there until a time; the rest is lost.
    async fn finish(mut self, end: Instant) {
        if end > Instant::now() {
            self.collect();
        }
        self.queue.close();
        self.all_due();
        while Instant::now() < end {
            self.fill();
            if self.state.requests.is_empty() {
                break;
            }
            tokio::select! {
                Some(ended) = self.state.requests.join_next() => self.ended(ended.ok()),
                () = sleep_until(end) => {}
            }
        }
        // Each task counts its records when it is dropped.
        self.state.requests.shutdown().await;
        let rest = self.state.rest.take();
        if let Some(piece) = rest {
            drop(Flight::new(&self.queue, piece.records));
        }
        while let Some(batch) = self.queue.take() {
            drop(Flight::new(&self.queue, batch.records as usize));
        }
    }

    fn flush(&mut self, done: std::sync::mpsc::Sender<()>) {
        self.collect();
        self.all_due();
        self.state.flushes.push(Flush {
            records: self.state.due,
            number: None,
            done,
        });
    }

    /// Marks everything that waits for immediate export.
    fn all_due(&mut self) {
        let (records, _) = self.queue.depth();
        self.state.due = self.state.taken + records as u64;
    }

    /// Collects the current data points into the queue.
    fn collect(&mut self) {
        let Some(collect) = &self.collect else {
            return;
        };
        let batch = collect.source.collect(collect.pipeline, now_unix_ns());
        if batch.records > 0 {
            let account = &self.queue.account;
            account.add_started(u64::from(batch.records));
            self.queue.reuse(self.queue.offer(batch));
        }
    }

    fn ended(&mut self, ended: Option<(u64, usize)>) {
        // A task that panicked returns nothing; its records were counted when it unwound.
        if let Some((number, bytes)) = ended {
            self.state.numbers.remove(&number);
            self.state.bytes -= bytes;
        } else if self.state.requests.is_empty() {
            self.state.numbers.clear();
            self.state.bytes = 0;
        }
    }

    /// Starts requests as far as the limits allow.
    fn fill(&mut self) {
        while self.state.requests.len() < self.limits.requests_max
            && self.state.bytes < self.limits.bytes_max
            && self.wants_request()
        {
            let Some(request) = self.next_request() else {
                break;
            };
            self.start(request);
        }
        self.answer_flushes();
    }

    fn wants_request(&self) -> bool {
        let (records, bytes) = self.queue.depth();
        self.state.rest.is_some()
            || records > 0
                && (self.state.taken < self.state.due
                    || records >= self.limits.wake_records
                    || bytes >= self.limits.wake_bytes)
    }

    /// The next request, with as many batches as fit.
    fn next_request(&mut self) -> Option<Request> {
        let (mut records, mut bytes) = (0, 0);
        let mut pieces = Vec::new();
        while let Some(mut piece) = self.next_piece() {
            let fits = records + piece.records <= self.limits.request_records_max
                && bytes + piece.bytes.len() <= REQUEST_BYTES_MAX;
            if !fits {
                if !pieces.is_empty() {
                    self.state.rest = Some(piece);
                    break;
                }
                // Metrics cannot be split: the count is of data points, which are inside them.
                if self.queue.signal != Signal::Metrics {
                    let first = piece.split(self.limits.request_records_max, REQUEST_BYTES_MAX);
                    let rest = std::mem::replace(&mut piece, first);
                    self.state.rest = (!rest.bytes.is_empty()).then_some(rest);
                }
                pieces.push(piece);
                break;
            }
            records += piece.records;
            bytes += piece.bytes.len();
            pieces.push(piece);
        }
        (!pieces.is_empty()).then(|| self.envelope.request(&pieces))
    }

    fn next_piece(&mut self) -> Option<Piece> {
        if let Some(piece) = self.state.rest.take() {
            return Some(piece);
        }
        let batch = self.queue.take()?;
        self.state.taken += u64::from(batch.records);
        Some(Piece::new(batch, &self.queue))
    }

    fn start(&mut self, request: Request) {
        let number = self.state.next_number;
        let (bytes, records) = (request.bytes, request.records);
        self.state.next_number += 1;
        self.state.numbers.insert(number);
        self.state.bytes += bytes;
        let flight = Flight::new(&self.queue, records);
        let (sink, health, retry) = (Arc::clone(&self.sink), Arc::clone(&self.health), self.retry);
        self.state.requests.spawn(async move {
            match sink.prepare(request) {
                Ok(request) => {
                    let end = retry.deliver(|| sink.send(&request), &health).await;
                    flight.end(end);
                }
                Err(why) => {
                    health.failed(&why);
                    flight.end(End::Failed);
                }
            }
            (number, bytes)
        });
    }

    /// Replies to flushes whose records have all been exported or lost.
    fn answer_flushes(&mut self) {
        let state = &mut self.state;
        let (taken, rest) = (state.taken, state.rest.is_some());
        let (next, oldest) = (state.next_number, state.numbers.first().copied());
        state.flushes.retain_mut(|flush| {
            if flush.number.is_none() && taken >= flush.records && !rest {
                flush.number = Some(next);
            }
            let waits = match (flush.number, oldest) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(number), Some(oldest)) => oldest < number,
            };
            if !waits {
                // The requester may be gone.
                let _ = flush.done.send(());
            }
            waits
        });
    }
}

/// The records of a request in flight: however it ends, they are counted once.
struct Flight {
    queue: Arc<Queue>,
    records: u64,
}

impl Flight {
    fn new(queue: &Arc<Queue>, records: usize) -> Flight {
        Flight {
            queue: Arc::clone(queue),
            records: records as u64,
        }
    }

    fn end(mut self, end: End) {
        let records = std::mem::take(&mut self.records);
        let account = &self.queue.account;
        match end {
            End::Taken { rejected } => {
                let rejected = rejected.min(records);
                account.add_exported(records - rejected);
                account.add_lost(Loss::Rejected, rejected);
            }
            End::Failed => account.add_lost(Loss::ExportFailed, records),
        }
        account.end_flight(records);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.records > 0 {
            self.queue.account.add_lost(Loss::Shutdown, self.records);
            self.queue.account.end_flight(self.records);
        }
    }
}
