//! The way from one component to the next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::account::Loss;
use super::data::Batch;
use super::storage::{Ending, Pledge};
use super::tasks;

/// Why a batch was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no room now.
    Busy(NoRoom),
    /// The collector ends.
    Closing,
    /// It is not what it should be; never send it again.
    Malformed(String),
}

/// There is no room now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Try again after this time.
    pub after: Duration,
    /// What is full, for the operator.
    pub why: Arc<str>,
}

impl Refusal {
    /// There is no room now, for this reason; try again after this time.
    #[must_use]
    pub fn busy(after: Duration, why: &Arc<str>) -> Refusal {
        let why = Arc::clone(why);
        Refusal::Busy(NoRoom { after, why })
    }
}

/// A batch that was not taken, given back whole.
#[derive(Debug)]
pub struct Refused {
    /// It.
    pub batch: Batch,
    /// Why.
    pub refusal: Refusal,
}

/// A component that takes batches.
pub trait Consumer: Send + Sync {
    /// Takes a batch whole, or gives it back whole. Does not wait.
    ///
    /// # Errors
    /// The batch, and why it was not taken.
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>>;

    /// What it hands everything on to at once, where it does nothing else.
    fn next(&self) -> Option<&dyn Consumer> {
        None
    }

    /// Whether a batch would be taken now.
    ///
    /// # Errors
    /// Why not.
    fn room(&self) -> Result<(), Refusal> {
        self.next().map_or(Ok(()), |next| next.room())
    }

    /// Whether no back end behind it has taken anything for [`FAILING_AFTER`]: where it has no room
    /// now, it may have none for long.
    fn is_failing(&self) -> bool {
        self.next().is_some_and(|next| next.is_failing())
    }

    /// Whether it puts requests of several senders together without having looked into them: one
    /// that is malformed would have all of them refused, so that receivers look into what they
    /// take.
    fn mixes(&self) -> bool {
        self.next().is_some_and(|next| next.mixes())
    }

    /// Loses a copy that it has no room for while others have theirs, and counts that where it
    /// would have gone.
    fn pass_by(&self, batch: Batch) {
        match self.next() {
            Some(next) => next.pass_by(batch),
            None => batch.receipt.lose(batch.records, Loss::ExportFailed),
        }
    }
}

/// Attempts that fail for so long make a back end one that others do not wait for.
pub const FAILING_AFTER: Duration = Duration::from_secs(5);

/// Gives a batch back.
pub fn refused(batch: Batch, refusal: Refusal) -> Result<(), Box<Refused>> {
    Err(Box::new(Refused { batch, refusal }))
}

/// All of several consumers: each gets every batch.
///
/// One that is full holds the others up, so that nothing is lost while back ends are slow. One
/// whose back ends take nothing ([`Consumer::is_failing`]) holds nobody up: when it is full, it
/// loses its own copies.
pub struct FanOut {
    consumers: Vec<Arc<dyn Consumer>>,
    /// Batches on their way to consumers that had no room when others had taken them.
    again: Mutex<JoinSet<()>>,
    /// Their bytes.
    again_bytes: Arc<AtomicU64>,
    /// Nobody waits for them any more.
    over: watch::Sender<bool>,
    /// Why nothing more is taken while they have so many.
    full: Arc<str>,
}

/// Time between two attempts to hand over what one of several consumers could not take.
const AGAIN: Duration = Duration::from_millis(50);
/// Nothing more is taken while what is on its way again has so many bytes.
const AGAIN_BYTES_MAX: u64 = 64 << 20;

impl FanOut {
    /// Hands everything to all of these.
    #[must_use]
    pub fn new(consumers: Vec<Arc<dyn Consumer>>) -> FanOut {
        FanOut {
            consumers,
            again: Mutex::default(),
            again_bytes: Arc::default(),
            over: watch::Sender::new(false),
            full:
                "what waits for the slowest of several exporters or pipelines takes too many bytes"
                    .into(),
        }
    }

    /// Hands over what is on its way until a time; what is left then is lost. Nothing comes any
    /// more.
    pub async fn end(&self, until: Instant) {
        let mut again = std::mem::take(&mut *self.again());
        let cut = || {
            self.over.send_replace(true);
        };
        tasks::ended_by(&mut again, until, cut).await;
    }

    fn again(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Others have the batch: this one gets it when there is room again.
    fn later(&self, consumer: &Arc<dyn Consumer>, batch: Batch) {
        let mut again = self.again();
        while again.try_join_next().is_some() {}
        let held = Held::of(&batch, &self.again_bytes);
        // Whoever waits goes on waiting.
        let pledge = batch.receipt.custody.pledge();
        let consumer = Arc::clone(consumer);
        let over = self.over.subscribe();
        again.spawn(async move {
            hand_over(consumer, (batch, pledge), over).await;
            drop(held);
        });
    }
}

impl Consumer for FanOut {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        if let Err(refusal) = self.room() {
            return refused(batch, refusal);
        }
        let mut taken = false;
        let mut passed_by = Vec::new();
        let mut last = None;
        for consumer in &self.consumers {
            let Err(given_back) = consumer.consume(batch.shared()) else {
                taken = true;
                continue;
            };
            let Refused {
                batch: copy,
                refusal,
            } = *given_back;
            match refusal {
                refusal @ Refusal::Busy(_) if consumer.is_failing() => {
                    passed_by.push((consumer, copy));
                    last = Some(refusal);
                }
                _ if taken => self.later(consumer, copy),
                // Nobody has it yet.
                refusal => return refused(batch, refusal),
            }
        }
        if let (false, Some(refusal)) = (taken, last) {
            return refused(batch, refusal);
        }
        for (consumer, copy) in passed_by {
            // Whoever waits for the outcome hears of it.
            drop(copy.receipt.custody.pledge());
            consumer.pass_by(copy);
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Refusal> {
        if self.again_bytes.load(Relaxed) >= AGAIN_BYTES_MAX {
            return Err(Refusal::busy(AGAIN, &self.full));
        }
        let mut passed_by = Ok(());
        let mut has_taker = self.consumers.is_empty();
        for consumer in &self.consumers {
            match consumer.room() {
                Ok(()) => has_taker = true,
                Err(refusal @ Refusal::Busy(_)) if consumer.is_failing() => {
                    passed_by = Err(refusal);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        if has_taker { Ok(()) } else { passed_by }
    }

    fn is_failing(&self) -> bool {
        !self.consumers.is_empty() && self.consumers.iter().all(|each| each.is_failing())
    }

    fn mixes(&self) -> bool {
        self.consumers.iter().any(|each| each.mixes())
    }

    fn pass_by(&self, batch: Batch) {
        for consumer in &self.consumers {
            consumer.pass_by(batch.shared());
        }
    }
}

/// Bytes of a batch, counted as long as this is there.
struct Held {
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl Held {
    fn of(batch: &Batch, all: &Arc<AtomicU64>) -> Held {
        let bytes = batch.held_bytes();
        all.fetch_add(bytes, Relaxed);
        Held {
            bytes,
            all: Arc::clone(all),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

/// Hands a batch over as soon as there is room, or until that is over.
async fn hand_over(
    consumer: Arc<dyn Consumer>,
    (mut batch, pledge): (Batch, Pledge),
    mut over: watch::Receiver<bool>,
) {
    loop {
        let is_over = over.wait_for(|is_over| *is_over);
        let is_over = tokio::time::timeout(AGAIN, is_over).await.is_ok();
        let Err(given_back) = consumer.consume(batch) else {
            // It has made a promise of its own.
            return pledge.end(Ending::Done);
        };
        let Refused {
            batch: whole,
            refusal,
        } = *given_back;
        let cause = match refusal {
            Refusal::Busy(_) if !is_over => {
                batch = whole;
                continue;
            }
            Refusal::Busy(_) | Refusal::Closing => Loss::Shutdown,
            Refusal::Malformed(_) => Loss::Dropped,
        };
        return whole.receipt.lose(whole.records, cause);
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::{Account, Balance};
    use super::*;
    use crate::config::Signal;
    use bytes::Bytes;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// Has no room for so many attempts after the question whether it has.
    struct Full(AtomicUsize);

    impl Consumer for Full {
        fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
            let left = |left: usize| left.checked_sub(1);
            match self.0.fetch_update(SeqCst, SeqCst, left) {
                Ok(_) => refused(batch, Refusal::busy(AGAIN, &"full".into())),
                Err(_) => Ok(()),
            }
        }

        fn room(&self) -> Result<(), Refusal> {
            Ok(())
        }
    }

    fn batch(account: &Arc<Account>, records: u64, bytes: Bytes) -> Batch {
        Batch {
            signal: Signal::Traces,
            bytes,
            records,
            receipt: account.accept(records),
            origin: None,
        }
    }

    /// What becomes of ten records that one of two has no room for, when all ends after so long.
    async fn ends(attempts: usize, after: Duration) -> Balance {
        let account = Arc::<Account>::default();
        let both = FanOut::new(vec![
            Arc::new(Full(AtomicUsize::new(0))),
            Arc::new(Full(AtomicUsize::new(attempts))),
        ]);
        both.consume(batch(&account, 10, Bytes::new()))
            .expect("one has room");
        assert_eq!(account.balance().held(), 10);
        both.end(Instant::now() + after).await;
        account.balance()
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_of_two_had_no_room_for_is_handed_over_or_said_to_be_lost() {
        let balance = ends(5, AGAIN * 10).await;
        assert_eq!((balance.exported, balance.held()), (10, 0));
        let balance = ends(usize::MAX, AGAIN * 10).await;
        assert_eq!((balance.shutdown, balance.exported), (10, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_one_of_two_is_bounded() {
        const BYTES: usize = 1 << 20;
        let account = Arc::<Account>::default();
        let both = FanOut::new(vec![
            Arc::new(Full(AtomicUsize::new(0))),
            Arc::new(Full(AtomicUsize::new(usize::MAX))),
        ]);
        let bytes = Bytes::from(vec![0; BYTES]);
        let mut taken = 0;
        let refused = loop {
            match both.consume(batch(&account, 1, bytes.clone())) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.refusal, Refusal::busy(AGAIN, &both.full));
        assert_eq!(taken, AGAIN_BYTES_MAX / BYTES as u64);
        refused.batch.receipt.refuse();
        both.end(Instant::now() + AGAIN).await;
        assert_eq!(account.balance().shutdown, taken);
    }
}
