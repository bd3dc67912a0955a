//! One name under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Origin, QueryKey, RequestId, Status};
use crate::message::{Answer, Kind};
use crate::name::Name;
use crate::records::{Kept, Records};
use crate::section::{Family, Hold, Section};

/// The least time between two steps of a resolution, so that timeouts of 0 do not loop.
const PAUSE_MS_MIN: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ResolutionId(pub u64);

/// Subscriptions and questions with the same key share a resolution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub name: Name,
    /// The type that is asked for first.
    pub kind: Kind,
    pub manner: Manner,
}

/// How nameservers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Manner {
    /// All at once; after errors for the other address family too. This is HAProxy's way.
    AllAtOnce,
    /// One after the other, for one type. A negative answer is final. This is the way of
    /// resolv.conf(5).
    InTurn,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Requester {
    /// It is told of each completion.
    Subscriber,
    /// It is told an address once.
    Once { prefer: Family },
    /// It is told all records once.
    Lookup,
}

#[derive(Debug)]
pub(super) enum State {
    /// Until the next resolution, or until a cached answer expires.
    Waiting,
    /// Answers are awaited.
    Running(Run),
}

/// The attempts of a resolution.
#[derive(Debug)]
pub(super) struct Run {
    /// The type asked for now: the preferred one or, after errors, the other one.
    pub kind: Kind,
    /// How many attempts with the preferred type are left; those that ask nameservers in turn have
    /// one attempt per nameserver.
    pub tries_left: u32,
    /// The nameserver of the current attempt, if they are asked in turn.
    pub nameserver: usize,
    /// When the current attempt was sent.
    pub sent_ms: u64,
    /// How many nameservers were asked in the current attempt.
    pub sent: usize,
    /// How many of them answered with an error.
    pub failed: usize,
    /// The last error.
    pub status: Status,
    /// All queries of all attempts: an answer to an earlier one is as good.
    pub queries: Vec<QueryKey>,
    /// A truncated answer, for when the whole one cannot be had.
    pub partial: Option<Partial>,
}

#[derive(Debug)]
pub(super) struct Partial {
    pub nameserver: usize,
    pub answer: Answer,
}

#[derive(Debug)]
pub(super) struct Resolution {
    pub key: Key,
    pub origin: Origin,
    pub requesters: BTreeMap<RequestId, Requester>,
    pub state: State,
    /// The deadline under which the resolver has it.
    pub due_ms: u64,
    /// When the last resolution completed; none: the next one is due now.
    pub completed_ms: Option<u64>,
    /// How the last resolution ended; none before the first one.
    pub last: Option<Result<(), Status>>,
    /// The last valid answer, or the beginning: hold periods count from there.
    pub valid_ms: u64,
    pub kept: Kept,
    pub records: Arc<Records>,
    /// Where the next question's address is looked for.
    pub turn: usize,
}

impl Resolution {
    pub fn new(key: Key, origin: Origin, now_ms: u64) -> Resolution {
        Resolution {
            key,
            origin,
            requesters: BTreeMap::new(),
            state: State::Waiting,
            due_ms: now_ms,
            completed_ms: None,
            last: None,
            valid_ms: now_ms,
            kept: Kept::default(),
            records: Arc::default(),
            turn: 0,
        }
    }

    pub fn is_valid(&self) -> bool {
        self.last == Some(Ok(()))
    }

    /// Whether the last resolution succeeded and is not older than `hold valid`.
    pub fn is_fresh(&self, hold_ms: u64, now_ms: u64) -> bool {
        self.is_valid() && self.is_recent(hold_ms, now_ms)
    }

    /// Whether the last outcome still serves requests: a valid answer or, if nameservers are asked
    /// in turn, a negative one.
    pub fn is_cached(&self, hold_ms: u64, now_ms: u64) -> bool {
        let is_usable = match (self.last, self.key.manner) {
            (None, _) => false,
            (Some(Ok(())), _) => true,
            (Some(Err(status)), Manner::InTurn) => status.is_negative(),
            (Some(Err(_)), Manner::AllAtOnce) => false,
        };
        is_usable && self.is_recent(hold_ms, now_ms)
    }

    /// Whether the last resolution completed less than this time ago.
    fn is_recent(&self, hold_ms: u64, now_ms: u64) -> bool {
        let expires_ms = self.completed_ms.map(|at_ms| at_ms.saturating_add(hold_ms));
        expires_ms.is_some_and(|at_ms| now_ms < at_ms)
    }

    /// The time of its next action; none: now.
    pub fn deadline_ms(&self, section: &Section) -> Option<u64> {
        let (from_ms, pause_ms) = match &self.state {
            State::Running(run) => (run.sent_ms, section.timeout_retry_ms),
            State::Waiting if self.requesters.is_empty() => {
                (self.completed_ms?, section.hold.valid_ms)
            }
            State::Waiting => (self.completed_ms?, section.timeout_resolve_ms),
        };
        Some(from_ms.saturating_add(pause_ms.max(PAUSE_MS_MIN)))
    }

    /// Whether an error of this kind is still ignored.
    pub fn is_held(&self, status: Status, hold: &Hold, now_ms: u64) -> bool {
        let hold_ms = match status {
            Status::Nx => hold.nx_ms,
            Status::Refused => hold.refused_ms,
            Status::Timeout => hold.timeout_ms,
            Status::NoData | Status::Invalid | Status::Other => hold.other_ms,
        };
        now_ms < self.valid_ms.saturating_add(hold_ms)
    }
}
