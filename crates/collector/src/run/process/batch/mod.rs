//! `batch`: requests put behind each other, which OTLP reads as one. Queues put requests together
//! by the same.

mod counts;
mod rules;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::components::processors::batch::Batch as Settings;
use crate::run::Log;
use crate::run::account::Loss;
use crate::run::consume::{Consumer, Does, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::part::{Ended, Part, PartName};
use crate::run::process::{ProcessorDeps, StartProcessor};
use crate::run::storage::{Ending, Pledge};
pub use counts::Counts;
pub use rules::Rules;
use state::{Key, State};

/// Between two attempts to hand a batch on.
const AGAIN: Duration = Duration::from_millis(20);

/// See the module.
pub struct Batcher {
    /// Itself, for promises.
    own: Weak<Batcher>,
    state: Mutex<State>,
    due: Arc<Notify>,
    rules: Rules,
    next: Arc<dyn Consumer>,
    /// Batches that were made.
    pub counts: Counts,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let batcher = start(Rules::of_processor(self), next);
        deps.register(Arc::clone(&batcher) as Arc<dyn Part>);
        Ok(batcher)
    }
}

impl Part for Batcher {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        self.counts.describe(self.combinations(), name, sheet);
    }

    fn end<'a>(&'a self, until: Instant, _: &'a Log) -> Ended<'a> {
        Box::pin(self.end(until))
    }
}

/// Starts one before `next`. To be called within the runtime.
#[must_use]
pub fn start(rules: Rules, next: Arc<dyn Consumer>) -> Arc<Batcher> {
    let batcher = Arc::new_cyclic(|own| Batcher {
        own: Weak::clone(own),
        state: Mutex::default(),
        due: Arc::default(),
        rules,
        next,
        counts: Counts::default(),
    });
    tokio::spawn(flush(Arc::downgrade(&batcher), Arc::clone(&batcher.due)));
    batcher
}

impl Batcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Combinations of metadata that have batches of their own; 1 where they are not told apart.
    #[must_use]
    pub fn combinations(&self) -> u64 {
        if self.rules.tells_apart() {
            self.state().combinations(&self.rules) as u64
        } else {
            1
        }
    }

    /// Hands on what is ready; what the next one refuses stays first.
    fn hand_on(&self) -> Result<(), Refusal> {
        loop {
            let Some((batch, pledge)) = self.state().take_out() else {
                return Ok(());
            };
            let ending = match self.next.consume(batch) {
                Ok(()) => Ending::Done,
                Err(given_back) => {
                    let Refused { batch, refusal } = *given_back;
                    let Refusal::Malformed(_) = refusal else {
                        let mut state = self.state();
                        if let Refusal::Busy(no_room) = &refusal {
                            state.why = Some(Arc::clone(&no_room.why));
                        }
                        state.put_back(batch, pledge);
                        return Err(refusal);
                    };
                    batch.receipt.lose(batch.records, Loss::Dropped);
                    Ending::Never
                }
            };
            pledge.end(ending);
            self.state().gone();
        }
    }

    /// When something may be due; never again if it takes nothing more.
    fn next_look(&self) -> Option<Look> {
        let state = self.state();
        if state.closing {
            return None;
        }
        let again = state.has_ready().then(|| Instant::now() + AGAIN);
        let due = state.due(&self.rules).into_iter().chain(again).min();
        Some(due.map_or(Look::Called, Look::At))
    }

    /// Takes nothing more, and makes batches of what waits.
    fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        state.make_all(&self.rules, &self.counts);
        drop(state);
        self.due.notify_waiters();
    }

    /// What was made and is not taken by the next one.
    async fn rest(&self) -> VecDeque<(Batch, Pledge)> {
        loop {
            if let Some(rest) = self.state().take_rest() {
                return rest;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Sends what waits, until a time; what is left then is lost.
    pub async fn end(&self, until: Instant) {
        self.close();
        // What is in another hand may come back.
        while (self.hand_on().is_err() || !self.state().is_over()) && Instant::now() < until {
            tokio::time::sleep(AGAIN).await;
        }
        for (batch, _) in self.rest().await {
            batch.receipt.lose(batch.records, Loss::Shutdown);
        }
    }

    /// Ends without sending what waits; gives it back, with what its senders wait by.
    pub async fn leave(&self) -> VecDeque<(Batch, Pledge)> {
        self.close();
        self.rest().await
    }
}

impl Consumer for Batcher {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let mut state = self.state();
        if state.closing {
            return refused(batch, Refusal::Closing);
        }
        if state.is_full() {
            return refused(batch, state.busy(AGAIN));
        }
        let key = self.rules.key(batch.origin.as_deref());
        if !state.admits(&key, &self.rules) {
            let why = "its metadata are of one combination too many";
            return refused(batch, Refusal::Malformed(why.into()));
        }
        let Some(own) = self.own.upgrade() else {
            return refused(batch, Refusal::Closing);
        };
        state.promise();
        let promise = Promise(own);
        Ok(Does::new(move || promise.keep(key, batch)))
    }

    fn next(&self) -> Option<&dyn Consumer> {
        Some(&*self.next)
    }

    fn mixes(&self) -> bool {
        true
    }

    fn room(&self) -> Result<(), Refusal> {
        let state = self.state();
        match (state.closing, state.is_full()) {
            (true, _) => Err(Refusal::Closing),
            (_, true) => Err(state.busy(AGAIN)),
            _ => Ok(()),
        }
    }
}

/// Something more may come, though the batcher be closed meanwhile.
struct Promise(Arc<Batcher>);

impl Promise {
    /// Puts a batch behind others.
    fn keep(self, key: Key, batch: Batch) {
        let batcher = &self.0;
        let mut state = batcher.state();
        let is_first = state.add(key, batch, (&batcher.rules, &batcher.counts));
        if state.closing {
            state.make_all(&batcher.rules, &batcher.counts);
        }
        let has_ready = state.has_ready();
        drop(state);
        // Taken already: what is not handed on now will be.
        let is_late = has_ready && batcher.hand_on().is_err();
        if is_first || is_late {
            batcher.due.notify_one();
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.state().gone();
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.due.notify_one();
    }
}

/// Makes batches of what has waited long enough. It ends with the batcher, also with one that was
/// never closed because something else of its configuration did not start.
async fn flush(batcher: Weak<Batcher>, due: Arc<Notify>) {
    while let Some(next) = batcher.upgrade().and_then(|batcher| batcher.next_look()) {
        match next {
            Look::Called => due.notified().await,
            Look::At(time) => tokio::time::sleep_until(time).await,
        }
        if let Some(batcher) = batcher.upgrade() {
            batcher.state().make_due(&batcher.rules, &batcher.counts);
            // What is refused is tried again above.
            let _ = batcher.hand_on();
        }
    }
}

/// When there may be something to do.
enum Look {
    /// When somebody tells.
    Called,
    At(Instant),
}
