//! What keeps records on the disk, and who waits for them to be there, or to be sent; both go along
//! with a receipt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::sync::Notify;

use super::{Fate, Hold};

/// See the module. It is empty where nothing is kept.
#[derive(Clone, Debug, Default)]
pub struct Custody {
    holds: Vec<Hold>,
    commits: Vec<Arc<Commit>>,
}

impl Custody {
    /// These records are in a segment of a journal, or in messages.
    pub fn add(&mut self, hold: impl Into<Hold>) {
        let hold = hold.into();
        // There are few segments, and the last one is the likely one.
        if !self.holds.iter().rev().any(|other| other.is_same(&hold)) {
            self.holds.push(hold);
        }
    }

    /// Somebody waits until the records are where they are kept, or sent.
    pub fn wait(&mut self, commit: Arc<Commit>) {
        self.commits.push(commit);
    }

    /// Adds those of other records.
    pub fn merge(&mut self, other: Custody) {
        other.holds.into_iter().for_each(|hold| self.add(hold));
        self.commits.extend(other.commits);
    }

    /// An exporter did not get rid of the records.
    pub fn fail(&self, fate: Fate) {
        self.holds.iter().for_each(|hold| hold.fail(fate));
    }

    /// What was written stays for the next process, and so do messages.
    pub fn stay(&self) {
        self.holds.iter().for_each(Hold::stay);
    }

    /// One that keeps this, each once.
    #[must_use]
    pub fn of(holds: Vec<Hold>) -> Custody {
        Custody {
            holds,
            commits: Vec::new(),
        }
    }

    /// What keeps the records.
    pub fn into_holds(self) -> Vec<Hold> {
        self.holds
    }

    /// Whether anybody waits.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Those who wait do so until this comes to its end.
    #[must_use]
    pub fn pledge(&self) -> Pledge {
        self.commits.iter().for_each(|commit| commit.begin());
        Pledge(self.commits.clone())
    }

    /// Those who wait need not wait for what becomes of these records.
    pub fn let_go(&mut self) {
        self.commits.clear();
    }
}

/// How what a request waits for came to its end; the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ending {
    /// It was written, or sent.
    Done,
    /// It was not; it may go well another time.
    Failed,
    /// It never will.
    Never,
}

/// What one request waits for.
#[derive(Debug, Default)]
pub struct Commit {
    pending: AtomicU64,
    /// The worst of all [`Ending`]s.
    worst: AtomicU8,
    over: Notify,
}

impl Commit {
    fn begin(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }

    fn end(&self, ending: Ending) {
        self.worst.fetch_max(ending as u8, Ordering::AcqRel);
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_waiters();
        }
    }

    /// All that began came to its end: how.
    pub async fn outcome(&self) -> Ending {
        loop {
            let over = self.over.notified();
            if self.pending.load(Ordering::Acquire) == 0 {
                return match self.worst.load(Ordering::Acquire) {
                    0 => Ending::Done,
                    1 => Ending::Failed,
                    _ => Ending::Never,
                };
            }
            over.await;
        }
    }
}

/// Requests wait until this comes to its end. Where it is dropped, what they wait for failed.
#[derive(Debug, Default)]
pub struct Pledge(Vec<Arc<Commit>>);

impl Pledge {
    /// More of them wait.
    pub fn merge(&mut self, mut other: Pledge) {
        self.0.append(&mut other.0);
    }

    /// They hear of it.
    pub fn end(mut self, ending: Ending) {
        self.0.drain(..).for_each(|commit| commit.end(ending));
    }
}

impl Drop for Pledge {
    fn drop(&mut self) {
        self.0
            .drain(..)
            .for_each(|commit| commit.end(Ending::Failed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_worst_ending_counts_once_all_have_come() {
        let commit = Arc::new(Commit::default());
        let mut custody = Custody::default();
        assert_eq!(commit.outcome().await, Ending::Done, "nobody began");
        custody.wait(Arc::clone(&commit));
        let mut first = custody.pledge();
        first.merge(custody.clone().pledge());
        let last = custody.pledge();
        first.end(Ending::Never);
        let outcome = commit.outcome();
        tokio::pin!(outcome);
        let early = std::future::poll_fn(|context| {
            std::task::Poll::Ready(outcome.as_mut().poll(context).is_ready())
        });
        assert!(!early.await, "one is left");
        last.end(Ending::Done);
        assert_eq!(outcome.await, Ending::Never);

        let commit = Arc::new(Commit::default());
        let mut custody = Custody::default();
        custody.wait(Arc::clone(&commit));
        drop(custody.pledge());
        assert_eq!(commit.outcome().await, Ending::Failed);
        custody.let_go();
        assert!(custody.pledge().0.is_empty());
    }
}
