//! `batch`: requests put behind each other, which OTLP reads as one. Queues put requests together by the same.

mod rules;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::run::account::Loss;
use crate::run::consume::{Consumer, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::storage::Ending;
pub use rules::Rules;
use state::State;

/// Between two attempts to hand a batch on.
const AGAIN: Duration = Duration::from_millis(20);

/// See the module.
pub struct Batcher {
    state: Mutex<State>,
    due: Notify,
    rules: Rules,
    next: Arc<dyn Consumer>,
}

/// Starts one before `next`. To be called within the runtime.
#[must_use]
pub fn start(rules: Rules, next: Arc<dyn Consumer>) -> Arc<Batcher> {
    let batcher = Arc::new(Batcher {
        state: Mutex::default(),
        due: Notify::new(),
        rules,
        next,
    });
    tokio::spawn(flush(Arc::clone(&batcher)));
    batcher
}

impl Batcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Combinations of metadata that have batches of their own; 1 where they are not told apart.
    #[must_use]
    pub fn combinations(&self) -> u64 {
        match self.rules.tells_apart() {
            true => self.state().combinations(&self.rules) as u64,
            false => 1,
        }
    }

    /// Hands on what is ready; what the next one refuses stays first.
    fn hand_on(&self) -> Result<(), Refusal> {
        loop {
            let Some((batch, pledge)) = self.state().ready.pop_front() else {
                return Ok(());
            };
            let Err(given_back) = self.next.consume(batch) else {
                pledge.end(Ending::Done);
                continue;
            };
            let Refused { batch, refusal } = *given_back;
            if let Refusal::Malformed(_) = refusal {
                batch.receipt.lose(batch.records, Loss::Dropped);
                pledge.end(Ending::Never);
                continue;
            }
            self.state().ready.push_front((batch, pledge));
            return Err(refusal);
        }
    }

    /// Sends what waits, until a time; what is left then is lost.
    pub async fn end(&self, until: Instant) {
        {
            let mut state = self.state();
            state.closing = true;
            state.make_all(&self.rules);
        }
        self.due.notify_waiters();
        while self.hand_on().is_err() && Instant::now() < until {
            tokio::time::sleep(AGAIN).await;
        }
        for (batch, _) in self.state().ready.drain(..) {
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
        if state.is_full() {
            return refused(batch, Refusal::Busy(AGAIN));
        }
        let key = self.rules.key(batch.origin.as_deref());
        if !state.admits(&key, &self.rules) {
            let why = "its metadata are of one combination too many";
            return refused(batch, Refusal::Malformed(why.into()));
        }
        let is_first = state.add(key, batch, &self.rules);
        let has_ready = !state.ready.is_empty();
        drop(state);
        // Taken already: what is not handed on now will be.
        let is_late = has_ready && self.hand_on().is_err();
        if is_first || is_late {
            self.due.notify_one();
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Refusal> {
        let state = self.state();
        match (state.closing, state.is_full()) {
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
            (state.due(&batcher.rules), !state.ready.is_empty())
        };
        let again = has_ready.then(|| Instant::now() + AGAIN);
        match due.into_iter().chain(again).min() {
            None => batcher.due.notified().await,
            Some(due) => tokio::time::sleep_until(due).await,
        }
        batcher.state().make_due(&batcher.rules);
        // What is refused is tried again above.
        let _ = batcher.hand_on();
    }
}
