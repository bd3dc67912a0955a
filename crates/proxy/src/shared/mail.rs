//! Messages between workers: the ends of waits, requests for idle connections and the connections
//! themselves, and that a listener may accept again.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use net::{ListenerId, Parcel, WorkerId};

use super::queue::{Grant, StreamRef};
use crate::ids::ServerId;

/// A request to another worker for an idle connection.
#[derive(Debug)]
pub(crate) struct IdleConnRequest {
    /// The stream that waits for it.
    pub stream: StreamRef,
    pub server: ServerId,
    /// The connection must have proved that its server keeps connections alive.
    pub proven_only: bool,
    /// The name that distinguishes it from other idle connections.
    pub name: Box<[u8]>,
}

/// A message to a worker: from another one about idle connections, or from the resolvers.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// A request for a connection.
    IdleConnRequest(IdleConnRequest),
    /// The answer: an idle connection to the server, or none.
    Answer {
        stream: StreamRef,
        connection: Option<Parcel>,
    },
    /// The address for which a rule of a stream waits.
    Name {
        stream: StreamRef,
        ip: Option<IpAddr>,
    },
    /// A datagram of one of the worker's QUIC connections, which another worker has received.
    Datagram(Box<Forwarded>),
}

/// A datagram on its way to another worker.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub listener: ListenerId,
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
    pub ecn: u8,
    pub bytes: Box<[u8]>,
}

/// How many messages may wait for a worker before datagrams to it are dropped.
const WAITING_MAX: usize = 4096;

/// One worker's mailbox, in cache lines of its own, because it is read every round.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mailbox {
    has_mail: AtomicBool,
    grants: Mutex<Vec<Grant>>,
    messages: Mutex<Vec<WorkerMessage>>,
    /// The worker has listeners that are paused because a limit is reached.
    rests: AtomicBool,
}

/// The received messages of a worker.
#[derive(Debug)]
pub(crate) struct Received {
    pub grants: Vec<Grant>,
    pub messages: Vec<WorkerMessage>,
}

/// The mailboxes of all workers.
#[derive(Debug)]
pub(super) struct Mail {
    boxes: Vec<Mailbox>,
    /// The number of workers with paused listeners.
    resting: AtomicU32,
}

impl Mail {
    pub fn new(workers: usize) -> Mail {
        Mail {
            boxes: (0..workers).map(|_| Mailbox::default()).collect(),
            resting: AtomicU32::new(0),
        }
    }

    /// Takes the messages of another state over.
    pub fn succeed(&mut self, before: &Mail) {
        for (to, from) in self.boxes.iter_mut().zip(&before.boxes) {
            let mut grants = from.grants.lock().unwrap_or_else(PoisonError::into_inner);
            let mut messages = from.messages.lock().unwrap_or_else(PoisonError::into_inner);
            *to = Mailbox {
                has_mail: from.has_mail.load(Ordering::SeqCst).into(),
                grants: Mutex::new(std::mem::take(&mut *grants)),
                messages: Mutex::new(std::mem::take(&mut *messages)),
                rests: from.rests.load(Ordering::SeqCst).into(),
            };
        }
        self.resting = before.resting.load(Ordering::SeqCst).into();
    }

    /// The number of workers.
    pub fn workers(&self) -> u32 {
        self.boxes.len() as u32
    }

    /// Posts a grant to the worker of its stream.
    pub fn post(&self, grant: Grant) {
        let to = &self.boxes[grant.stream.worker.0 as usize];
        let mut grants = to.grants.lock().unwrap_or_else(PoisonError::into_inner);
        grants.push(grant);
        to.has_mail.store(true, Ordering::Release);
    }

    /// Posts a letter to a worker.
    pub fn post_letter(&self, worker: WorkerId, letter: WorkerMessage) {
        let to = &self.boxes[worker.0 as usize];
        let mut messages = to.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(letter);
        to.has_mail.store(true, Ordering::Release);
    }

    /// Posts a datagram to a worker, which is lost if too much waits there.
    pub fn post_datagram(&self, worker: WorkerId, datagram: Box<Forwarded>) {
        let to = &self.boxes[worker.0 as usize];
        let mut messages = to.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < WAITING_MAX {
            messages.push(WorkerMessage::Datagram(datagram));
            to.has_mail.store(true, Ordering::Release);
        }
    }

    /// Whether a worker has messages.
    #[inline]
    pub fn has_mail(&self, worker: WorkerId) -> bool {
        self.boxes[worker.0 as usize]
            .has_mail
            .load(Ordering::Acquire)
    }

    /// Takes the messages in their order.
    pub fn collect(&self, worker: WorkerId) -> Received {
        let own = &self.boxes[worker.0 as usize];
        // Messages that are posted from here on set it again.
        own.has_mail.store(false, Ordering::SeqCst);
        let mut grants = own.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut messages = own.messages.lock().unwrap_or_else(PoisonError::into_inner);
        Received {
            grants: std::mem::take(&mut *grants),
            messages: std::mem::take(&mut *messages),
        }
    }

    /// Notes whether a worker has paused listeners.
    pub fn set_rests(&self, worker: WorkerId, rests: bool) {
        let own = &self.boxes[worker.0 as usize];
        match (own.rests.swap(rests, Ordering::SeqCst), rests) {
            (false, true) => self.resting.fetch_add(1, Ordering::SeqCst),
            (true, false) => self.resting.fetch_sub(1, Ordering::SeqCst),
            _ => return,
        };
    }

    /// Another worker with paused listeners: the next one, so that all get their turn.
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

    /// Whether no messages wait.
    pub fn is_quiet(&self) -> bool {
        let is_empty = |mailbox: &Mailbox| !mailbox.has_mail.load(Ordering::Relaxed);
        self.boxes.iter().all(is_empty)
    }
}
