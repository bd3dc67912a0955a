//! What workers tell each other: the ends of waits, idle connections that they ask for and hand over, and that a listener may
//! accept again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use net::{Parcel, WorkerId};

use super::queue::{Grant, StreamRef};
use crate::ids::ServerId;

/// A connection that a worker asks another one for.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Who waits for it.
    pub stream: StreamRef,
    pub server: ServerId,
    /// It has to have proved that its server keeps connections alive.
    pub proven_only: bool,
    /// What tells it from other idle ones.
    pub name: Box<[u8]>,
}

/// What a worker tells another one about idle connections.
#[derive(Debug)]
pub(crate) enum Letter {
    /// One is asked for.
    Wish(Wish),
    /// The answer: an idle connection to the server, or that there is none any more.
    Answer {
        stream: StreamRef,
        connection: Option<Parcel>,
    },
}

/// One worker's mail. In cache lines of its own: it is looked at every round.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mailbox {
    has_mail: AtomicBool,
    grants: Mutex<Vec<Grant>>,
    letters: Mutex<Vec<Letter>>,
    /// The worker has listeners that rest because a limit is reached.
    rests: AtomicBool,
}

/// What came for a worker.
#[derive(Debug)]
pub(crate) struct Received {
    pub grants: Vec<Grant>,
    pub letters: Vec<Letter>,
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

    /// Leaves a letter for a worker.
    pub fn post_letter(&self, worker: WorkerId, letter: Letter) {
        let to = &self.boxes[worker.0 as usize];
        let mut letters = to.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(letter);
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
    pub fn collect(&self, worker: WorkerId) -> Received {
        let own = &self.boxes[worker.0 as usize];
        // What comes from here on sets it again.
        own.has_mail.store(false, Ordering::SeqCst);
        let mut grants = own.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut letters = own.letters.lock().unwrap_or_else(PoisonError::into_inner);
        Received {
            grants: std::mem::take(&mut *grants),
            letters: std::mem::take(&mut *letters),
        }
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
