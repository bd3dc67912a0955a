//! What keeps records on the disk, and who waits for them to be there; both go along with a receipt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use journal::Hold;
use tokio::sync::Notify;

/// See the module. It is empty where nothing is kept.
#[derive(Clone, Debug, Default)]
pub struct Custody {
    holds: Vec<Hold>,
    commits: Vec<Arc<Commit>>,
}

impl Custody {
    /// These records are in a segment of a journal.
    pub fn add(&mut self, hold: Hold) {
        // There are few segments, and the last one is the likely one.
        if !self.holds.iter().rev().any(|other| other.is_same(&hold)) {
            self.holds.push(hold);
        }
    }

    /// Somebody waits until the records are where they are kept.
    pub fn wait(&mut self, commit: Arc<Commit>) {
        self.commits.push(commit);
    }

    /// Adds those of other records.
    pub fn merge(&mut self, other: Custody) {
        other.holds.into_iter().for_each(|hold| self.add(hold));
        self.commits.extend(other.commits);
    }

    /// What was written stays for the next process.
    pub fn stay(&self) {
        self.holds.iter().for_each(Hold::stay);
    }

    /// The segments.
    pub fn into_holds(self) -> Vec<Hold> {
        self.holds
    }

    /// Those who wait, who are told by the one that asks.
    pub fn take_commits(&mut self) -> Vec<Arc<Commit>> {
        std::mem::take(&mut self.commits)
    }
}

/// Writes that one request waits for.
#[derive(Debug, Default)]
pub struct Commit {
    pending: AtomicU64,
    failed: AtomicBool,
    over: Notify,
}

impl Commit {
    /// One more.
    pub fn begin(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }

    /// One came to its end.
    pub fn end(&self, is_written: bool) {
        if !is_written {
            self.failed.store(true, Ordering::Release);
        }
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_waiters();
        }
    }

    /// All those that began came to their end; whether all were written.
    pub async fn is_written(&self) -> bool {
        loop {
            let over = self.over.notified();
            if self.pending.load(Ordering::Acquire) == 0 {
                return !self.failed.load(Ordering::Acquire);
            }
            over.await;
        }
    }
}
