//! What workers tell each other: the ends of waits, and that a listener may accept again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
pub(super) struct Mail {
    boxes: Vec<Mailbox>,
    /// Workers with listeners that rest.
    resting: AtomicU32,
}

impl Mail {
    pub fn new(workers: usize) -> Mail {
        Mail {
            boxes: (0..workers).map(|_| Mailbox::default()).collect(),
            resting: AtomicU32::new(0),
        }
    }

    /// How many have one.
    pub fn workers(&self) -> u32 {
        self.boxes.len() as u32
    }

    /// Leaves a grant for the worker of its stream.
    pub fn post(&self, grant: Grant) {
        let to = &self.boxes[grant.stream.worker.0 as usize];
        let mut grants = to.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.push(grant);
        to.has_mail.store(true, Ordering::Release);
    }

    /// Whether something came for a worker.
    #[inline]
    pub fn has_mail(&self, worker: WorkerId) -> bool {
        self.boxes[worker.0 as usize]
            .has_mail
            .load(Ordering::Acquire)
    }

    /// Takes what came, in the order that it came.
    pub fn collect(&self, worker: WorkerId, into: &mut Vec<Grant>) {
        let own = &self.boxes[worker.0 as usize];
        let mut grants = own.grants.lock().unwrap_or_else(PoisonError::into_inner);
        own.has_mail.store(false, Ordering::Release);
        into.append(&mut grants);
    }

    /// A worker has listeners that rest, or none any more.
    pub fn set_rests(&self, worker: WorkerId, rests: bool) {
        let own = &self.boxes[worker.0 as usize];
        match (own.rests.swap(rests, Ordering::SeqCst), rests) {
            (false, true) => self.resting.fetch_add(1, Ordering::SeqCst),
            (true, false) => self.resting.fetch_sub(1, Ordering::SeqCst),
            _ => return,
        };
    }

    /// Another worker whose listeners rest: the next one, so that each has its turn.
    pub fn next_resting(&self, after: WorkerId) -> Option<WorkerId> {
        if self.resting.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let count = self.boxes.len();
        let after = after.0 as usize;
        (after + 1..after + count)
            .map(|worker| worker % count)
            .find(|worker| self.boxes[*worker].rests.load(Ordering::SeqCst))
            .map(|worker| WorkerId(worker as u32))
    }

    /// Whether nothing waits to be collected.
    pub fn is_quiet(&self) -> bool {
        let is_empty = |mailbox: &Mailbox| !mailbox.has_mail.load(Ordering::Relaxed);
        self.boxes.iter().all(is_empty)
    }
}
