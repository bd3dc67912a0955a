//! The way from one component to the next.

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
    /// There is no room now; try again after this time.
    Busy(Duration),
    /// The collector ends.
    Closing,
    /// It is not what it should be; never send it again.
    Malformed(String),
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

    /// Whether a batch would be taken now.
    ///
    /// # Errors
    /// Why not.
    fn room(&self) -> Result<(), Refusal>;
}

/// Gives a batch back.
pub fn refused(batch: Batch, refusal: Refusal) -> Result<(), Box<Refused>> {
    Err(Box::new(Refused { batch, refusal }))
}

/// All of several consumers: each gets every batch.
pub struct FanOut {
    consumers: Vec<Arc<dyn Consumer>>,
    /// Batches on their way to consumers that had no room when others had taken them.
    again: Mutex<JoinSet<()>>,
    /// Nobody waits for them any more.
    over: watch::Sender<bool>,
}

/// Time between two attempts to hand over what one of several consumers could not take.
const AGAIN: Duration = Duration::from_millis(50);

impl FanOut {
    /// Hands everything to all of these.
    #[must_use]
    pub fn new(consumers: Vec<Arc<dyn Consumer>>) -> FanOut {
        FanOut {
            consumers,
            again: Mutex::default(),
            over: watch::Sender::new(false),
        }
    }

    /// Hands over what is on its way until a time; what is left then is lost. Nothing comes any more.
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
        // Whoever waits goes on waiting.
        let pledge = batch.receipt.custody.pledge();
        again.spawn(hand_over(
            Arc::clone(consumer),
            (batch, pledge),
            self.over.subscribe(),
        ));
    }
}

impl Consumer for FanOut {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        if let Err(refusal) = self.room() {
            return refused(batch, refusal);
        }
        let Some((last, others)) = self.consumers.split_last() else {
            return Ok(());
        };
        let mut taken = false;
        for consumer in others {
            match consumer.consume(batch.shared()) {
                Ok(()) => taken = true,
                // Nobody has it yet.
                Err(given_back) if !taken => return refused(batch, given_back.refusal),
                Err(given_back) => self.later(consumer, given_back.batch),
            }
        }
        match last.consume(batch) {
            Err(given_back) if taken => self.later(last, given_back.batch),
            outcome => return outcome,
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Refusal> {
        self.consumers
            .iter()
            .try_for_each(|consumer| consumer.room())
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
                Ok(_) => refused(batch, Refusal::Busy(AGAIN)),
                Err(_) => Ok(()),
            }
        }

        fn room(&self) -> Result<(), Refusal> {
            Ok(())
        }
    }

    /// What becomes of ten records that one of two has no room for, when all ends after so long.
    async fn ends(attempts: usize, after: Duration) -> Balance {
        let account = Arc::<Account>::default();
        let both = FanOut::new(vec![
            Arc::new(Full(AtomicUsize::new(0))),
            Arc::new(Full(AtomicUsize::new(attempts))),
        ]);
        let batch = Batch {
            signal: Signal::Traces,
            bytes: Bytes::new(),
            records: 10,
            receipt: account.accept(10),
            origin: None,
        };
        both.consume(batch).expect("one has room");
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
}
