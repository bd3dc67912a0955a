//! `batch`: requests put behind each other, which OTLP reads as one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::Signal;
use crate::config::components::processors::batch::Batch as Settings;
use crate::run::account::{Loss, Receipt};
use crate::run::consume::{Consumer, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::split::split;

/// Bytes that wait at most; a batch is sent from here on, however few its records are.
const BYTES_MAX: usize = 3 << 20;
/// While the next one has no room, so many times the size of a batch are taken.
const OVERFULL: u64 = 2;
/// Between two attempts to hand a batch on.
const AGAIN: Duration = Duration::from_millis(20);

/// See the module.
pub struct Batcher {
    state: Mutex<State>,
    due: Notify,
    send_size: u64,
    send_size_max: u64,
    timeout: Duration,
    next: Arc<dyn Consumer>,
}

#[derive(Default)]
struct State {
    waiting: Option<Waiting>,
    /// Was made, and not taken yet.
    ready: std::collections::VecDeque<Batch>,
    closing: bool,
}

struct Waiting {
    signal: Signal,
    bytes: BytesMut,
    records: u64,
    receipt: Receipt,
    since: Instant,
}

/// Starts one before `next`. To be called within the runtime.
#[must_use]
pub fn start(settings: &Settings, next: Arc<dyn Consumer>) -> Arc<Batcher> {
    let batcher = Arc::new(Batcher {
        state: Mutex::default(),
        due: Notify::new(),
        send_size: u64::from(settings.send_size).max(1),
        send_size_max: u64::from(settings.send_size_max),
        timeout: Duration::from_nanos(settings.timeout_ns),
        next,
    });
    tokio::spawn(flush(Arc::clone(&batcher)));
    batcher
}

impl Batcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self, waiting: &Waiting) -> bool {
        waiting.records >= self.send_size
            || waiting.bytes.len() >= BYTES_MAX
            || self.timeout.is_zero()
    }

    /// What waits becomes batches.
    fn make(&self, state: &mut State) {
        let Some(waiting) = state.waiting.take() else {
            return;
        };
        let Waiting {
            signal,
            bytes,
            records,
            receipt,
            ..
        } = waiting;
        for (bytes, records) in split(signal, bytes.freeze(), records, self.send_size_max) {
            state.ready.push_back(Batch {
                signal,
                bytes,
                records,
                receipt: receipt.clone(),
                origin: None,
            });
        }
    }

    /// Hands on what is ready; what the next one refuses stays first.
    fn hand_on(&self) -> Result<(), Refusal> {
        loop {
            let Some(batch) = self.state().ready.pop_front() else {
                return Ok(());
            };
            if let Err(given_back) = self.next.consume(batch) {
                let Refused { batch, refusal } = *given_back;
                if let Refusal::Malformed(_) = refusal {
                    batch.receipt.lose(batch.records, Loss::Dropped);
                    continue;
                }
                self.state().ready.push_front(batch);
                return Err(refusal);
            }
        }
    }

    /// Sends what waits, until a time; what is left then is lost.
    pub async fn end(&self, until: Instant) {
        {
            let mut state = self.state();
            state.closing = true;
            self.make(&mut state);
        }
        self.due.notify_waiters();
        while self.hand_on().is_err() && Instant::now() < until {
            tokio::time::sleep(AGAIN).await;
        }
        for batch in self.state().ready.drain(..) {
            batch.receipt.lose(batch.records, Loss::Shutdown);
        }
    }
}

impl Consumer for Batcher {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        let mut state = self.state();
        if state.closing {
            return refused(batch, Refusal::Closing);
        }
        if state.ready.len() as u64 >= OVERFULL {
            return refused(batch, Refusal::Busy(AGAIN));
        }
        let is_first = state.waiting.is_none();
        let waiting = match &mut state.waiting {
            Some(waiting) => {
                waiting.bytes.extend_from_slice(&batch.bytes);
                waiting.records += batch.records;
                waiting.receipt.merge(batch.receipt);
                waiting
            }
            empty => empty.insert(Waiting {
                signal: batch.signal,
                bytes: BytesMut::from(batch.bytes),
                records: batch.records,
                receipt: batch.receipt,
                since: Instant::now(),
            }),
        };
        if self.is_full(waiting) {
            self.make(&mut state);
            drop(state);
            // Taken already: what is not handed on now will be.
            if self.hand_on().is_err() {
                self.due.notify_one();
            }
        } else if is_first {
            drop(state);
            self.due.notify_one();
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Refusal> {
        let state = self.state();
        match (state.closing, state.ready.len() as u64 >= OVERFULL) {
            (true, _) => Err(Refusal::Closing),
            (_, true) => Err(Refusal::Busy(AGAIN)),
            _ => Ok(()),
        }
    }
}

/// Makes batches of what has waited long enough.
async fn flush(batcher: Arc<Batcher>) {
    loop {
        let (due, has_ready) = {
            let state = batcher.state();
            if state.closing {
                return;
            }
            let due = state
                .waiting
                .as_ref()
                .map(|one| one.since + batcher.timeout);
            (due, !state.ready.is_empty())
        };
        let again = has_ready.then(|| Instant::now() + AGAIN);
        match due.into_iter().chain(again).min() {
            None => batcher.due.notified().await,
            Some(due) => tokio::time::sleep_until(due).await,
        }
        {
            let mut state = batcher.state();
            let is_due = |waiting: &Waiting| waiting.since + batcher.timeout <= Instant::now();
            if state.waiting.as_ref().is_some_and(is_due) {
                batcher.make(&mut state);
            }
        }
        // What is refused is tried again above.
        let _ = batcher.hand_on();
    }
}
