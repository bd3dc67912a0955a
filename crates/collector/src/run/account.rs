//! Every record is settled once: accepted = exported + dropped + held, at every moment.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::charge::Charge;
use super::storage::{Custody, Fate};

/// Why records were not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A processor dropped them, as it was told to.
    Dropped,
    /// The back end refused them, or could not be reached for as long as was allowed.
    ExportFailed,
    /// The back end took the request without them.
    Rejected,
    /// The collector ended before they were sent.
    Shutdown,
}

/// The records of one signal, by all threads.
#[derive(Debug, Default)]
pub struct Account {
    accepted: AtomicU64,
    refused: AtomicU64,
    malformed: AtomicU64,
    panics: AtomicU64,
    recovered: AtomicU64,
    exported: AtomicU64,
    lost: [AtomicU64; 4],
}

/// What an account says at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Taken by a receiver.
    pub accepted: u64,
    /// Not taken: there was no room.
    pub refused: u64,
    /// Requests that were not understood.
    pub malformed: u64,
    /// Requests that a component panicked on: their records are dropped.
    pub panics: u64,
    /// Of those that were accepted: an earlier process had taken them.
    pub recovered: u64,
    /// Taken by every exporter of their pipelines.
    pub exported: u64,
    /// A processor dropped them.
    pub dropped: u64,
    /// The back end did not take them.
    pub failed: u64,
    /// The back end took the request without them.
    pub rejected: u64,
    /// The collector ended before.
    pub shutdown: u64,
}

impl Account {
    /// A receiver takes records.
    #[must_use]
    pub fn accept(self: &Arc<Account>, records: u64) -> Receipt {
        self.accepted.fetch_add(records, Relaxed);
        self.resume(records)
    }

    /// The same; what they take in memory is charged until all of them are settled.
    #[must_use]
    pub fn accept_charged(self: &Arc<Account>, records: u64, charge: Charge) -> Receipt {
        self.accepted.fetch_add(records, Relaxed);
        let mut held = Held::new(self, records, None);
        held.charge = Some(charge);
        Receipt::of(held)
    }

    /// Of what was accepted, so many records were taken by an earlier process.
    pub fn add_recovered(&self, records: u64) {
        self.recovered.fetch_add(records, Relaxed);
    }

    /// The proxy that runs the collector gives records: of a trace that began there, the root comes
    /// when it is over.
    #[must_use]
    pub fn accept_of_proxy(self: &Arc<Account>, records: u64, charge: Option<Charge>) -> Receipt {
        self.accepted.fetch_add(records, Relaxed);
        let mut held = Held::new(self, records, None);
        held.is_of_proxy = true;
        held.charge = charge;
        Receipt::of(held)
    }

    /// A receipt for records that were accepted before and are held by a processor.
    #[must_use]
    pub fn resume(self: &Arc<Account>, records: u64) -> Receipt {
        self.receipt(records, None)
    }

    /// The same; `settled` is told how many were lost in the end.
    #[must_use]
    pub fn resume_and_tell(
        self: &Arc<Account>,
        records: u64,
        settled: impl FnOnce(u64) + Send + 'static,
    ) -> Receipt {
        self.receipt(records, Some(Box::new(settled)))
    }

    fn receipt(self: &Arc<Account>, records: u64, settled: Option<Settled>) -> Receipt {
        Receipt::of(Held::new(self, records, settled))
    }

    /// Records that a processor holds are lost.
    pub fn lose(&self, records: u64, cause: Loss) {
        self.lost[cause as usize].fetch_add(records, Relaxed);
    }

    /// A request was not understood.
    pub fn add_malformed(&self) {
        self.malformed.fetch_add(1, Relaxed);
    }

    /// A component panicked on a request.
    pub fn add_panic(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// Now. What is settled is read before what was accepted, so that nothing seems to be settled
    /// twice.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let [dropped, failed, rejected, shutdown] = &self.lost;
        let [dropped, failed, rejected, shutdown] =
            [dropped, failed, rejected, shutdown].map(|lost| lost.load(Relaxed));
        Balance {
            dropped,
            failed,
            rejected,
            shutdown,
            exported: self.exported.load(Relaxed),
            refused: self.refused.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            panics: self.panics.load(Relaxed),
            recovered: self.recovered.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
        }
    }
}

impl Balance {
    /// Records that are in the collector: pending, waiting or on their way out.
    #[must_use]
    pub fn held(&self) -> u64 {
        let settled = self.exported + self.dropped + self.failed + self.rejected + self.shutdown;
        self.accepted.saturating_sub(settled)
    }
}

/// Says what becomes of the records of a batch. When the last copy is gone, what nobody said
/// anything about counts as exported: each copy was delivered.
#[derive(Clone, Debug)]
pub struct Receipt {
    held: Vec<Arc<Held>>,
    /// What keeps the records on the disk.
    pub custody: Custody,
}

/// Is told how many records were lost.
type Settled = Box<dyn FnOnce(u64) + Send>;

struct Held {
    account: Arc<Account>,
    /// Not settled yet.
    records: AtomicU64,
    lost: AtomicU64,
    settled: Mutex<Option<Settled>>,
    /// See [`Account::accept_of_proxy`].
    is_of_proxy: bool,
    /// What they take in memory.
    charge: Option<Charge>,
}

impl fmt::Debug for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Held({:?})", self.records)
    }
}

impl Receipt {
    fn of(held: Held) -> Receipt {
        Receipt {
            held: vec![Arc::new(held)],
            custody: Custody::default(),
        }
    }

    /// Adds the records of another batch.
    pub fn merge(&mut self, mut other: Receipt) {
        self.held.append(&mut other.held);
        self.custody.merge(std::mem::take(&mut other.custody));
    }

    /// All of the records are the proxy's ([`Account::accept_of_proxy`]).
    #[must_use]
    pub fn is_of_proxy(&self) -> bool {
        self.held.iter().all(|held| held.is_of_proxy)
    }

    /// So many of the records are lost; no more than there are.
    pub fn lose(&self, records: u64, cause: Loss) {
        match cause {
            // Where they are kept, the next process has them.
            Loss::Shutdown => self.custody.stay(),
            Loss::ExportFailed => self.custody.fail(Fate::Failed),
            Loss::Rejected => self.custody.fail(Fate::Refused),
            Loss::Dropped => {}
        }
        let mut left = records;
        for held in &self.held {
            let taken = held.take(left);
            held.lost.fetch_add(taken, Relaxed);
            held.account.lose(taken, cause);
            left -= taken;
        }
    }

    /// A processor holds so many of the records from now on: it settles them. Whoever held them
    /// before has nothing to do with them any more; what else the receipt is for stays with others.
    /// What keeps them on the disk goes to the processor.
    pub fn hold(mut self, records: u64) -> Custody {
        let mut left = records;
        for held in &self.held {
            left -= held.take(left);
        }
        std::mem::take(&mut self.custody)
    }

    /// They were not taken after all: the sender keeps them.
    pub fn refuse(self) {
        for held in &self.held {
            let records = held.take(u64::MAX);
            // In this order nothing seems to be held that is not.
            held.account.refused.fetch_add(records, Relaxed);
            held.account.accepted.fetch_sub(records, Relaxed);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        // Its batch was delivered to nobody.
        if std::thread::panicking() {
            self.lose(u64::MAX, Loss::Dropped);
        }
    }
}

impl Held {
    fn new(account: &Arc<Account>, records: u64, settled: Option<Settled>) -> Held {
        Held {
            account: Arc::clone(account),
            records: AtomicU64::new(records),
            lost: AtomicU64::new(0),
            settled: Mutex::new(settled),
            is_of_proxy: false,
            charge: None,
        }
    }

    /// Takes out records that are settled another way; how many.
    fn take(&self, records: u64) -> u64 {
        let less = |held: u64| Some(held.saturating_sub(records));
        let before = self.records.fetch_update(Relaxed, Relaxed, less);
        before.unwrap_or_default().min(records)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (records, lost) = (*self.records.get_mut(), *self.lost.get_mut());
        if records > 0 {
            self.account.exported.fetch_add(records, Relaxed);
        }
        let settled = self.settled.get_mut();
        if let Some(settled) = settled.unwrap_or_else(PoisonError::into_inner).take() {
            settled(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_settled_once() {
        let account = Arc::new(Account::default());
        let receipt = account.accept(10);
        assert_eq!(account.balance().held(), 10);
        let copy = receipt.clone();
        drop(receipt);
        assert_eq!(account.balance().exported, 0);
        copy.lose(3, Loss::Rejected);
        drop(copy);
        let balance = account.balance();
        assert_eq!(
            (balance.exported, balance.rejected, balance.held()),
            (7, 3, 0)
        );

        let _ = account.accept(5).hold(5);
        assert_eq!(account.balance().held(), 5);
        account.lose(1, Loss::Dropped);
        let told = Arc::new(AtomicU64::new(9));
        let tell = Arc::clone(&told);
        let mut receipt = account.resume_and_tell(3, move |lost| tell.store(lost, Relaxed));
        receipt.merge(account.resume(1));
        receipt.lose(2, Loss::Dropped);
        drop(receipt);
        assert_eq!(told.load(Relaxed), 2);
        let balance = account.balance();
        assert_eq!(
            (balance.exported, balance.dropped, balance.held()),
            (9, 3, 0)
        );

        account.accept(6).refuse();
        let balance = account.balance();
        assert_eq!(
            (balance.accepted, balance.refused, balance.held()),
            (15, 6, 0)
        );
        let mut receipt = account.accept_of_proxy(1, None);
        assert!(receipt.is_of_proxy() && receipt.clone().is_of_proxy());
        receipt.merge(account.accept_of_proxy(1, None));
        assert!(receipt.is_of_proxy());
        receipt.merge(account.accept(1));
        assert!(!receipt.is_of_proxy(), "not all of it is");
        receipt.refuse();

        let receipt = account.accept(2);
        receipt.lose(9, Loss::ExportFailed);
        drop(receipt);
        assert_eq!((account.balance().failed, account.balance().held()), (2, 0));
    }
}
