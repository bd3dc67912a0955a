//! The way from one component to the next.

use std::sync::Arc;
use std::time::Duration;

use super::account::Loss;
use super::data::Batch;

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
pub struct FanOut(Vec<Arc<dyn Consumer>>);

/// Time between two attempts to hand over what one of several consumers could not take.
const AGAIN: Duration = Duration::from_millis(50);

/// One consumer that hands everything to all of these.
#[must_use]
pub fn fan_out(mut consumers: Vec<Arc<dyn Consumer>>) -> Arc<dyn Consumer> {
    match consumers.len() {
        1 => consumers.remove(0),
        _ => Arc::new(FanOut(consumers)),
    }
}

impl Consumer for FanOut {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        if let Err(refusal) = self.room() {
            return refused(batch, refusal);
        }
        let Some((last, others)) = self.0.split_last() else {
            return Ok(());
        };
        let mut taken = false;
        for consumer in others {
            match consumer.consume(batch.shared()) {
                Ok(()) => taken = true,
                // Nobody has it yet.
                Err(given_back) if !taken => return refused(batch, given_back.refusal),
                Err(given_back) => again(Arc::clone(consumer), given_back.batch),
            }
        }
        match last.consume(batch) {
            Err(given_back) if taken => again(Arc::clone(last), given_back.batch),
            outcome => return outcome,
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Refusal> {
        self.0.iter().try_for_each(|consumer| consumer.room())
    }
}

/// Others have the batch: this one gets it when there is room again.
fn again(consumer: Arc<dyn Consumer>, mut batch: Batch) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(AGAIN).await;
            let Err(given_back) = consumer.consume(batch) else {
                return;
            };
            let Refused {
                batch: whole,
                refusal,
            } = *given_back;
            let cause = match refusal {
                Refusal::Busy(_) => {
                    batch = whole;
                    continue;
                }
                Refusal::Closing => Loss::Shutdown,
                Refusal::Malformed(_) => Loss::Dropped,
            };
            return whole.receipt.lose(whole.records, cause);
        }
    });
}
