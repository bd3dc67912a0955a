//! Data that a connector makes of a batch, on their way to the next pipeline.

use std::sync::Arc;

use crate::config::Signal;
use crate::run::account::{Account, Receipt};
use crate::run::consume::{Consumer, Does, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;

/// Makes a request of another.
pub trait Make: Send + Sync {
    /// What becomes of a batch: a request, and its records. None: nothing does.
    ///
    /// # Errors
    /// Why it never becomes anything.
    fn make(&self, batch: &Batch) -> Result<Option<(Vec<u8>, u64)>, String>;
}

/// Hands on what is made of each batch.
pub struct Maker<T> {
    /// Makes it.
    pub make: T,
    /// Its signal.
    pub signal: Signal,
    /// The account of the signal.
    pub account: Arc<Account>,
    /// Gets it.
    pub next: Arc<dyn Consumer>,
}

impl<T: Make> Maker<T> {
    fn made(&self, batch: &Batch) -> Result<Option<Batch>, String> {
        let made = self.make.make(batch)?;
        Ok(made.map(|(request, records)| Batch {
            signal: self.signal,
            bytes: request.into(),
            records,
            receipt: self.account.accept(records),
            origin: batch.origin.clone(),
        }))
    }
}

impl<T: Make> Consumer for Maker<T> {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        match self.made(&batch) {
            Ok(Some(made)) => hand_on(&*self.next, made, batch),
            Ok(None) => Ok(Does::new(move || drop(batch))),
            Err(why) => refused(batch, Refusal::Malformed(why)),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        self.next.room()
    }

    fn is_failing(&self) -> bool {
        self.next.is_failing()
    }

    /// What is made is lost. The records that it was made of are not: other exporters have them.
    fn pass_by(&self, batch: Batch) {
        if let Ok(Some(made)) = self.made(&batch) {
            self.next.pass_by(made);
        }
    }
}

/// Room in the next pipeline for data that were made of a batch. Sent, the batch is done: what it
/// was kept by goes along with the made data. Dropped, nothing was made.
struct Made {
    permit: Option<Box<dyn Permit>>,
    /// Of the made data.
    receipt: Option<Receipt>,
    _source: Batch,
}

/// Makes room for `made` in the next pipeline. Its custody is that of `source` from now on: journals
/// keep the requests of the source, and their senders wait, until what was made of them is
/// delivered.
///
/// # Errors
/// The source, and why what was made of it is not taken.
fn hand_on(
    next: &dyn Consumer,
    mut made: Batch,
    source: Batch,
) -> Result<Box<dyn Permit>, Box<Refused>> {
    made.receipt.custody = source.receipt.custody.clone();
    let receipt = made.receipt.clone();
    match next.reserve(made) {
        Ok(permit) => Ok(Box::new(Made {
            permit: Some(permit),
            receipt: Some(receipt),
            _source: source,
        })),
        Err(given_back) => {
            let Refused { batch, refusal } = *given_back;
            batch.receipt.refuse();
            refused(source, refusal)
        }
    }
}

impl Permit for Made {
    fn send(mut self: Box<Self>) {
        self.receipt = None;
        if let Some(permit) = self.permit.take() {
            permit.send();
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.permit = None;
        // Nobody has the made data: they do not count as delivered.
        if let Some(receipt) = self.receipt.take() {
            receipt.refuse();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;

    /// Takes what it has room for, and keeps nothing.
    #[derive(Default)]
    struct Next(AtomicBool);

    impl Consumer for Next {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            if self.0.load(Relaxed) {
                return refused(batch, Refusal::busy(Duration::ZERO, &"full".into()));
            }
            Ok(Does::new(move || drop(batch)))
        }
    }

    fn batch(account: &Arc<Account>, signal: Signal, records: u64) -> Batch {
        Batch {
            signal,
            bytes: Default::default(),
            records,
            receipt: account.accept(records),
            origin: None,
        }
    }

    #[test]
    fn made_data_count_as_delivered_only_if_they_were_taken() {
        let (traces, metrics) = (Arc::<Account>::default(), Arc::<Account>::default());
        let next = Next::default();
        let source = batch(&traces, Signal::Traces, 10);
        let made = || batch(&metrics, Signal::Metrics, 2);
        let copy = source.shared();
        let permit = hand_on(&next, made(), copy).expect("it has room");
        drop(permit);
        assert_eq!(
            (metrics.balance().exported, metrics.balance().held()),
            (0, 0)
        );
        assert_eq!(metrics.balance().refused, 2);

        next.0.store(true, Relaxed);
        let Err(given_back) = hand_on(&next, made(), source.shared()) else {
            panic!("it has no room")
        };
        drop(given_back);
        assert_eq!(
            (metrics.balance().exported, metrics.balance().held()),
            (0, 0)
        );
        assert_eq!(traces.balance().held(), 10, "the sender has it");

        next.0.store(false, Relaxed);
        let permit = hand_on(&next, made(), source).expect("it has room");
        permit.send();
        assert_eq!(
            (metrics.balance().exported, metrics.balance().held()),
            (2, 0)
        );
        assert_eq!(
            (traces.balance().exported, traces.balance().held()),
            (10, 0)
        );
    }
}
