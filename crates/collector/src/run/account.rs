//! Every record is settled once: accepted = exported + dropped + held, at every moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
        Receipt(Arc::new(Held {
            account: Arc::clone(self),
            records: AtomicU64::new(records),
        }))
    }

    /// A receipt for records that were accepted before and are held by a processor.
    #[must_use]
    pub fn resume(self: &Arc<Account>, records: u64) -> Receipt {
        Receipt(Arc::new(Held {
            account: Arc::clone(self),
            records: AtomicU64::new(records),
        }))
    }

    /// Records that a processor holds are lost.
    pub fn lose(&self, records: u64, cause: Loss) {
        self.lost[cause as usize].fetch_add(records, Relaxed);
    }

    /// A request was not understood.
    pub fn add_malformed(&self) {
        self.malformed.fetch_add(1, Relaxed);
    }

    /// Now. What is settled is read before what was accepted, so that nothing seems to be settled twice.
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
            accepted: self.accepted.load(Relaxed),
        }
    }
}

impl Balance {
    /// Records that are in the collector: pending, waiting or on their way out.
    #[must_use]
    pub fn held(&self) -> u64 {
        let settled =
            self.exported + self.dropped + self.failed + self.rejected + self.shutdown;
        self.accepted.saturating_sub(settled)
    }
}

/// Says what becomes of the records of a batch. When the last copy is gone, what nobody said anything about counts as
/// exported: each copy was delivered.
#[derive(Clone, Debug)]
pub struct Receipt(Arc<Held>);

#[derive(Debug)]
struct Held {
    account: Arc<Account>,
    records: AtomicU64,
}

impl Receipt {
    /// Takes out records that are settled another way, or held by somebody else; no more than there are. How many.
    fn take(&self, records: u64) -> u64 {
        let less = |held: u64| Some(held.saturating_sub(records));
        let before = self.0.records.fetch_update(Relaxed, Relaxed, less);
        before.unwrap_or_default().min(records)
    }

    /// So many of the records are lost.
    pub fn lose(&self, records: u64, cause: Loss) {
        let taken = self.take(records);
        self.0.account.lose(taken, cause);
    }

    /// A processor holds the records from now on: it settles them.
    pub fn hold(self) -> (Arc<Account>, u64) {
        let records = self.take(u64::MAX);
        (Arc::clone(&self.0.account), records)
    }

    /// They were not taken after all: the sender keeps them.
    pub fn refuse(self) {
        let records = self.take(u64::MAX);
        // In this order nothing seems to be held that is not.
        self.0.account.refused.fetch_add(records, Relaxed);
        self.0.account.accepted.fetch_sub(records, Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let records = *self.records.get_mut();
        if records > 0 {
            self.account.exported.fetch_add(records, Relaxed);
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
        assert_eq!((balance.exported, balance.rejected, balance.held()), (7, 3, 0));

        let (holder, records) = account.accept(5).hold();
        assert_eq!((records, account.balance().held()), (5, 5));
        holder.lose(1, Loss::Dropped);
        drop(holder.resume(4));
        let balance = account.balance();
        assert_eq!((balance.exported, balance.dropped, balance.held()), (11, 1, 0));

        account.accept(6).refuse();
        let balance = account.balance();
        assert_eq!((balance.accepted, balance.refused, balance.held()), (15, 6, 0));
        let receipt = account.accept(2);
        receipt.lose(9, Loss::ExportFailed);
        drop(receipt);
        assert_eq!((account.balance().failed, account.balance().held()), (2, 0));
    }
}
