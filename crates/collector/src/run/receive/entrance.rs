//! One transport of a receiver: what came in by it, for the metrics, and what was refused, for the
//! log.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::status::Fault;
use crate::config::Signal;
use crate::run::Log;
use crate::run::log::Shown;

/// Refusals of one kind are told no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub struct Entrance {
    /// The receiver's id; empty where nothing is received.
    pub receiver: String,
    /// `grpc`, `http`, `udp` or `proxy`.
    pub transport: &'static str,
    accepted: [AtomicU64; 3],
    refused: [AtomicU64; 3],
    failed: [AtomicU64; 3],
    /// Where refusals are told.
    log: Option<Log>,
    /// By the kinds of faults.
    told: [Mutex<Told>; Fault::KINDS],
}

/// What was told of one kind of refusals.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    /// Refusals since then.
    untold: u64,
}

/// What became of records at an entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Accepted,
    Refused,
    /// A component panicked on them.
    Failed,
}

impl Entrance {
    /// Of a receiver by its id.
    #[must_use]
    pub fn new(receiver: &str, transport: &'static str, log: &Log) -> Entrance {
        Entrance {
            receiver: receiver.to_owned(),
            transport,
            log: Some(log.clone()),
            ..Entrance::default()
        }
    }

    /// Tells that a request is refused, and why, but not every time.
    pub(super) fn tell(&self, fault: &Fault) {
        // At the end senders are told to come again, and that was told.
        let (Some(log), Some(kind)) = (&self.log, fault.kind()) else {
            return;
        };
        let mut told = self.told[kind]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if told.last.is_some_and(|last| now - last < TELL_EVERY) {
            told.untold += 1;
            return;
        }
        let untold = match std::mem::take(&mut told.untold) {
            0 => String::new(),
            untold => format!("; {untold} more since this was told last"),
        };
        told.last = Some(now);
        drop(told);
        let Entrance {
            receiver,
            transport,
            ..
        } = self;
        let why = fault.reason();
        log.warn(&format!(
            "receiver '{receiver}' ({transport}): a request is refused: {}{untold}",
            Shown(&why)
        ));
    }

    /// Records were handed on, or were not.
    pub(super) fn count(&self, signal: Signal, records: u64, fate: Fate) {
        let counts = match fate {
            Fate::Accepted => &self.accepted,
            Fate::Refused => &self.refused,
            Fate::Failed => &self.failed,
        };
        counts[signal as usize].fetch_add(records, Relaxed);
    }

    /// Records of a signal that were taken.
    #[must_use]
    pub fn accepted(&self, signal: Signal) -> u64 {
        self.accepted[signal as usize].load(Relaxed)
    }

    /// And that were not.
    #[must_use]
    pub fn refused(&self, signal: Signal) -> u64 {
        self.refused[signal as usize].load(Relaxed)
    }

    /// And that were lost to a fault of a component.
    #[must_use]
    pub fn failed(&self, signal: Signal) -> u64 {
        self.failed[signal as usize].load(Relaxed)
    }
}
