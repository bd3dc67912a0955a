//! What workers tell each other: the ends of waits, and that a listener may accept again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use net::WorkerId;

use super::queue::Grant;

/// One worker's mail. In cache lines of its own: it is looked at every round.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mailbox {
    has_mail: AtomicBool,
    grants: Mutex<Vec<Grant>>,
    /// The worker has listeners that rest because a limit is reached.
    rests: AtomicBool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Mail(Vec<Mailbox>);

impl Mail {
    pub fn new(workers: usize) -> Mail {
        Mail((0..workers).map(|_| Mailbox::default()).collect())
    }

    /// How many have one.
    pub fn workers(&self) -> u32 {
        self.0.len() as u32
    }

    /// Leaves a grant for the worker of its stream.
    pub fn post(&self, grant: Grant) {
        let to = &self.0[grant.stream.worker.0 as usize];
        let mut grants = to.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.push(grant);
        to.has_mail.store(true, Ordering::Release);
    }

    /// Whether something came for a worker.
    #[inline]
    pub fn has_mail(&self, worker: WorkerId) -> bool {
        self.0[worker.0 as usize].has_mail.load(Ordering::Acquire)
    }

    /// Takes what came, in the order that it came.
    pub fn collect(&self, worker: WorkerId, into: &mut Vec<Grant>) {
        let own = &self.0[worker.0 as usize];
        let mut grants = own.grants.lock().unwrap_or_else(PoisonError::into_inner);
        own.has_mail.store(false, Ordering::Release);
        into.append(&mut grants);
    }

    /// A worker has listeners that rest, or none any more.
    pub fn set_rests(&self, worker: WorkerId, rests: bool) {
        self.0[worker.0 as usize]
            .rests
            .store(rests, Ordering::SeqCst);
    }

    /// Another worker whose listeners rest: the next one, so that each has its turn.
    pub fn next_resting(&self, after: WorkerId) -> Option<WorkerId> {
        let count = self.0.len();
        let after = after.0 as usize;
        (after + 1..after + count)
            .map(|worker| worker % count)
            .find(|worker| self.0[*worker].rests.load(Ordering::SeqCst))
            .map(|worker| WorkerId(worker as u32))
    }

    /// Whether nothing waits to be collected.
    pub fn is_quiet(&self) -> bool {
        let is_empty = |mailbox: &Mailbox| !mailbox.has_mail.load(Ordering::Relaxed);
        self.0.iter().all(is_empty)
    }
}
