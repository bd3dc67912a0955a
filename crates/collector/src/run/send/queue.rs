//! The queue of an exporter.

mod deliver;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use export::client::Outcome;
use export::clock::now_unix_ns;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::room::Share;
use super::target::{Target, TargetView};
use super::{QueueDeps, QueueSettings, stored};
use crate::config::Signal;
use crate::config::components::shared::queue::{Queue, Sizer};
use crate::config::components::shared::retry::Retry;
use crate::run::Log;
use crate::run::account::Loss;
use crate::run::consume::{Consumer, FAILING_AFTER, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::storage::{Ending, Pledge, Stored, Waiting};
use crate::run::tasks;

/// Batches that wait, and requests in flight, where there is no `sending_queue`: who sent them
/// waits, and is better told to come back than left to run out of time.
const QUEUE_NONE: u64 = 64;
const CONSUMERS_NONE: u32 = 64;
/// Batches whose senders wait for room, with `block_on_overflow`; their bytes count towards the
/// queue's.
const BLOCKED_MAX: usize = 1024;
/// When a full queue may have room again.
const ROOM_AFTER: Duration = Duration::from_millis(100);
/// A backend that is gone may still answer for this time.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// Between two attempts, at most, when the process ends.
const END_AGAIN: Duration = Duration::from_millis(500);
/// Failures are told no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The side of a queue where batches come in.
pub struct Sender {
    shared: Arc<Shared>,
}

/// The other side, to be ended.
pub struct SenderEnd {
    /// The exporter's id, and what it sends.
    pub of: (String, Signal),
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    cut: watch::Sender<bool>,
}

pub(super) struct Shared {
    pub name: String,
    target: Arc<dyn TargetView>,
    retry: Option<Retry>,
    sizer: Sizer,
    size_max: u64,
    /// What bytes may wait.
    share: Share,
    state: Mutex<State>,
    pub counts: Counts,
    pub came: Notify,
    stage: watch::Sender<Stage>,
    /// What waits here outlives the process.
    stored: Option<Stored>,
    /// Senders wait for the outcome.
    waits: bool,
    /// Or at least for room.
    blocks: bool,
    pub log: Log,
    /// What is said where it has no room.
    full: Arc<str>,
}

/// Records by what became of them here.
#[derive(Debug, Default)]
pub struct Counts {
    /// The back end took them.
    pub sent: AtomicU64,
    /// It did not, and they are lost.
    pub failed: AtomicU64,
    /// Records that this exporter lost because its queue was full while other exporters accepted
    /// their copies.
    pub passed_by: AtomicU64,
    /// Requests that are being sent, or wait for the next attempt.
    pub in_flight: AtomicU64,
}

/// How long there will be attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Open,
    /// The process ends: nothing waits for long any more.
    Ending,
    /// The target is gone: what waits is for others.
    Leaving,
}

#[derive(Default)]
pub(super) struct State {
    waiting: VecDeque<Waiting>,
    /// What there was no room for yet, while its senders wait.
    blocked: VecDeque<Waiting>,
    /// Batches that have room here, and are not in the queue yet: some are being written.
    pub coming: usize,
    size: u64,
    bytes: u64,
    closing: bool,
    told: Option<Instant>,
    failing: Option<Failing>,
}

/// Attempts fail.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Since then, in nanoseconds of the UNIX epoch.
    pub since_ns: u64,
    since: Instant,
    /// What happened first.
    pub why: String,
}

/// Starts the queue of a signal before its target.
pub(super) fn start<T: Target>(
    name: &str,
    (target, signal): (T, Signal),
    settings: QueueSettings,
    deps: QueueDeps<'_>,
) -> (Arc<Sender>, SenderEnd) {
    let (sizer, size_max, consumers) = match &settings.queue {
        Some(queue) => (queue.sizer, queue.size_max, queue.consumers),
        None => (Sizer::Requests, QUEUE_NONE, CONSUMERS_NONE),
    };
    let consumers = if settings.is_ordered {
        1
    } else {
        consumers.max(1)
    };
    let blocks = settings.queue.as_ref().is_some_and(Queue::blocks);
    let queue = settings.queue.as_ref();
    let waits = settings.is_remote && queue.is_none_or(|queue| queue.wait_for_result);
    let target = Arc::new(target);
    let (stored, left) = deps.stored.unzip();
    let shared = Arc::new(Shared {
        name: name.to_owned(),
        target: Arc::clone(&target) as Arc<dyn TargetView>,
        retry: settings.retry,
        sizer,
        size_max,
        share: deps.common.room.share(),
        state: Mutex::default(),
        counts: Counts::default(),
        came: Notify::new(),
        stage: watch::Sender::new(Stage::Open),
        stored,
        waits,
        blocks,
        log: deps.common.log.clone(),
        full: format!("exporter '{name}': its queue is full").into(),
    });
    let (cut, cut_off) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for _ in 0..consumers {
        let delivery = deliver::consume(Arc::clone(&shared), Arc::clone(&target), cut_off.clone());
        tasks.spawn(delivery);
    }
    if let Some(left) = left.filter(|left| !left.is_empty()) {
        let account = Arc::clone(&deps.common.account);
        tasks.spawn(stored::again(Arc::clone(&shared), signal, account, left));
    }
    let sender = Sender {
        shared: Arc::clone(&shared),
    };
    let end = SenderEnd {
        of: (name.to_owned(), signal),
        shared,
        tasks,
        cut,
    };
    (Arc::new(sender), end)
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn size(&self, batch: &Batch) -> u64 {
        match self.sizer {
            Sizer::Requests => 1,
            Sizer::Items => batch.records,
            Sizer::Bytes => batch.bytes.len() as u64,
        }
    }

    fn pop(&self) -> Option<Waiting> {
        let mut state = self.state();
        let waiting = state.waiting.pop_front()?;
        self.leave(&mut state, &waiting.batch);
        self.unblock(&mut state);
        Some(waiting)
    }

    /// Whether the sender of a batch waits for room, which is not there; its bytes count from then
    /// on.
    fn may_block(&self, state: &mut State, batch: &Batch) -> bool {
        let bytes = state.bytes + batch.held_bytes();
        let fits = state.blocked.len() < BLOCKED_MAX && bytes <= self.share.bytes_max();
        let may_block = self.blocks && fits && batch.receipt.custody.is_awaited();
        if may_block {
            state.bytes = bytes;
        }
        may_block
    }

    /// A batch that is kept in memory comes into the queue.
    fn take_in(&self, batch: Batch, is_blocked: bool) {
        let pledge = if self.waits || is_blocked {
            batch.receipt.custody.pledge()
        } else {
            Pledge::default()
        };
        let waiting = Waiting {
            batch,
            place: None,
            pledge,
        };
        let mut state = self.state();
        state.coming -= 1;
        if is_blocked {
            state.blocked.push_back(waiting);
            // There may be room since it was looked for.
            self.unblock(&mut state);
            drop(state);
            self.came.notify_one();
        } else {
            self.push(state, waiting);
        }
    }

    /// What has room now waits as all others do; whose it is need not wait for that any more.
    fn unblock(&self, state: &mut State) {
        while let Some(mut next) = state.blocked.pop_front() {
            let size = state.size + self.size(&next.batch);
            if size > self.size_max && !state.waiting.is_empty() {
                return state.blocked.push_front(next);
            }
            state.size = size;
            if !self.waits {
                std::mem::take(&mut next.pledge).end(Ending::Done);
            }
            state.waiting.push_back(next);
        }
    }

    /// Takes the room for a batch; false where there is none.
    fn enter(&self, state: &mut State, batch: &Batch) -> bool {
        let size = self.size(batch);
        let bytes = state.bytes + batch.held_bytes();
        let fits = state.size + size <= self.size_max && bytes <= self.share.bytes_max();
        // What is larger than the whole queue is taken when nothing waits.
        let is_empty = state.waiting.is_empty() && state.coming == 0;
        if fits || is_empty {
            state.size += size;
            state.bytes = bytes;
        }
        fits || is_empty
    }

    pub fn leave(&self, state: &mut State, batch: &Batch) {
        state.size -= self.size(batch);
        state.bytes -= batch.held_bytes();
    }

    /// Puts a batch in the queue if there is room.
    pub fn offer(&self, waiting: &mut Option<Waiting>) -> Result<(), Refusal> {
        let mut state = self.state();
        if state.closing {
            return Err(Refusal::Closing);
        }
        if let Some(one) = waiting.take_if(|one| self.enter(&mut state, &one.batch)) {
            self.push(state, one);
        }
        match waiting {
            Some(_) => Err(Refusal::busy(ROOM_AFTER, &self.full)),
            None => Ok(()),
        }
    }

    /// A batch waits from now on; room was taken for it.
    pub fn push(&self, mut state: MutexGuard<'_, State>, waiting: Waiting) {
        state.waiting.push_back(waiting);
        drop(state);
        self.came.notify_one();
    }

    fn is_leaving(&self) -> bool {
        *self.stage.borrow() == Stage::Leaving
    }

    /// Waits before the next attempt; false if there is none. When the process ends there is one at
    /// once, and then one every [`END_AGAIN`]: what is not taken by then is lost.
    async fn pause(&self, wait: Duration) -> bool {
        let (mut stage, now) = (self.stage.subscribe(), Instant::now());
        let (mut until, is_open) = (now + wait, *stage.borrow() == Stage::Open);
        if !is_open {
            until = until.min(now + END_AGAIN);
        }
        let other =
            stage.wait_for(|stage| *stage == Stage::Leaving || is_open && *stage != Stage::Open);
        match tokio::time::timeout_at(until, other).await {
            Ok(stage) => stage.is_ok_and(|stage| *stage == Stage::Ending),
            Err(_) => true,
        }
    }

    /// Nothing more comes.
    fn is_over(&self) -> bool {
        let state = self.state();
        state.closing && state.coming == 0
    }

    /// A batch that was on its way waits again.
    fn put_back(&self, waiting: Waiting) {
        let mut state = self.state();
        state.size += self.size(&waiting.batch);
        state.bytes += waiting.batch.held_bytes();
        state.waiting.push_front(waiting);
    }

    /// What the last attempt came to.
    fn came_to(&self, outcome: &Outcome) {
        let mut state = self.state();
        match outcome {
            Outcome::Taken { .. } => state.failing = None,
            Outcome::Busy { why, .. } | Outcome::Refused(why) => {
                state.failing.get_or_insert_with(|| Failing {
                    since_ns: now_unix_ns(),
                    since: Instant::now(),
                    why: why.clone(),
                });
            }
        }
    }

    /// Says what happened, but not every time.
    fn tell(&self, what: &str) {
        let mut state = self.state();
        let now = Instant::now();
        if state.told.is_none_or(|told| now - told >= TELL_EVERY) {
            state.told = Some(now);
            drop(state);
            self.log.warn(&format!("exporter {}: {what}", self.name));
        }
    }
}

/// Room in a queue, and the batch that it is for until that is in the queue.
struct Place {
    shared: Arc<Shared>,
    batch: Option<Batch>,
    /// There is no room yet: the sender waits until there is.
    is_blocked: bool,
}

impl Permit for Place {
    fn send(mut self: Box<Self>) {
        let Some(batch) = self.batch.take() else {
            return;
        };
        let shared = &self.shared;
        match &shared.stored {
            Some(stored) if !self.is_blocked => stored::write(shared, stored, batch),
            _ => shared.take_in(batch, self.is_blocked),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(batch) = &self.batch else {
            return;
        };
        let mut state = self.shared.state();
        state.coming -= 1;
        if self.is_blocked {
            state.bytes -= batch.held_bytes();
        } else {
            self.shared.leave(&mut state, batch);
            self.shared.unblock(&mut state);
        }
        drop(state);
        self.shared.came.notify_one();
    }
}

impl Consumer for Sender {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let shared = &self.shared;
        let mut state = shared.state();
        if state.closing {
            return refused(batch, Refusal::Closing);
        }
        // Nobody overtakes those who wait.
        let is_blocked = !state.blocked.is_empty() || !shared.enter(&mut state, &batch);
        if is_blocked && !shared.may_block(&mut state, &batch) {
            return refused(batch, Refusal::busy(ROOM_AFTER, &shared.full));
        }
        state.coming += 1;
        drop(state);
        Ok(Box::new(Place {
            shared: Arc::clone(shared),
            batch: Some(batch),
            is_blocked,
        }))
    }

    fn room(&self) -> Result<(), Refusal> {
        let state = self.shared.state();
        if state.closing {
            return Err(Refusal::Closing);
        }
        let is_full =
            state.size >= self.shared.size_max || state.bytes >= self.shared.share.bytes_max();
        // Whether anyone waits is not known yet.
        let may_block = self.shared.blocks && state.blocked.len() < BLOCKED_MAX;
        if is_full && !may_block && !state.waiting.is_empty() {
            Err(Refusal::busy(ROOM_AFTER, &self.shared.full))
        } else {
            Ok(())
        }
    }

    fn is_failing(&self) -> bool {
        let state = self.shared.state();
        let since = state.failing.as_ref().map(|failing| failing.since);
        since.is_some_and(|since| since.elapsed() >= FAILING_AFTER)
    }

    fn pass_by(&self, batch: Batch) {
        let Batch {
            records, receipt, ..
        } = batch;
        self.shared.counts.passed_by.fetch_add(records, Relaxed);
        receipt.lose(records, Loss::ExportFailed);
        let what = "records lost: the queue is full, and other exporters do not wait for this one";
        self.shared.tell(&format!("{records} {what}"));
    }
}

impl Sender {
    /// Records by what became of them.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// The host and port that it sends to, where it has some.
    #[must_use]
    pub fn server(&self) -> Option<&(String, String)> {
        self.shared.target.server()
    }

    /// Adds the metrics of its target. `exporter` is the exporter's id.
    pub(in crate::run) fn describe(&self, exporter: &str, sheet: &mut Sheet) {
        self.shared.target.describe(exporter, sheet);
    }

    /// Batches and bytes that wait.
    #[must_use]
    pub fn depth(&self) -> (usize, u64) {
        let state = self.shared.state();
        (state.waiting.len(), state.bytes)
    }

    /// The size that [`Sender::depth`] counts towards, by the sizer of the settings: what waits,
    /// and the most.
    #[must_use]
    pub fn fill(&self) -> (u64, u64) {
        (self.shared.state().size, self.shared.size_max)
    }
}

impl Sender {
    /// Whether attempts fail.
    #[must_use]
    pub fn failing(&self) -> Option<Failing> {
        self.shared.state().failing.clone()
    }
}

impl SenderEnd {
    /// Sends what waits until a time; what is left then is lost.
    pub async fn end(mut self, until: Instant) {
        self.shared.state().closing = true;
        self.shared.stage.send_replace(Stage::Ending);
        self.shared.came.notify_waiters();
        // Attempts end; what they had is lost, and says so.
        let cut = || {
            self.cut.send_replace(true);
        };
        tasks::ended_by(&mut self.tasks, until, cut).await;
        while let Some(waiting) = self.shared.pop() {
            stored::leave_behind(waiting);
        }
    }

    /// Ends without sending what waits: that goes to another exporter, as there is room. What has
    /// none until a time is lost.
    pub async fn hand_to(self, other: Arc<Sender>, until: Instant) {
        for (batch, pledge) in self.leave().await {
            super::hand_over(&*other, batch, pledge, Some(until)).await;
        }
    }

    /// Ends without sending what waits; gives it back, with what is on its way and was not taken
    /// within `LEAVE_MAX`. Senders that wait go on waiting by what is given back beside each.
    pub async fn leave(mut self) -> Vec<(Batch, Pledge)> {
        self.shared.state().closing = true;
        self.shared.stage.send_replace(Stage::Leaving);
        self.shared.came.notify_waiters();
        let cut = || {
            self.cut.send_replace(true);
        };
        tasks::ended_by(&mut self.tasks, Instant::now() + LEAVE_MAX, cut).await;
        let left = std::iter::from_fn(|| self.shared.pop());
        left.map(|waiting| (waiting.batch, waiting.pledge))
            .collect()
    }
}
