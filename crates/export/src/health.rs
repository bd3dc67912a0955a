//! How a pipeline does: counts for metrics and status, and a line where that changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::plan::Log;

/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 300;

/// How a pipeline does.
pub struct Health {
    /// Which pipeline it is.
    name: String,
    log: Log,
    taken: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    failing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_taken: Option<Instant>,
    last_error: String,
}

impl std::fmt::Debug for Health {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Health")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Health {
    pub(crate) fn new(name: String, log: Log) -> Health {
        Health {
            name,
            log,
            taken: AtomicU64::default(),
            failed: AtomicU64::default(),
            retried: AtomicU64::default(),
            failing: AtomicBool::default(),
            state: Mutex::default(),
        }
    }

    /// Signal, exporter and where it goes, as in `traces otlp_http http://localhost:4318/v1/traces`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests that the receiver took.
    #[must_use]
    pub fn requests_taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Requests that were given up.
    #[must_use]
    pub fn requests_failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Attempts after a first one.
    #[must_use]
    pub fn attempts_again(&self) -> u64 {
        self.retried.load(Relaxed)
    }

    /// Time since the receiver took something; `None` where it never did.
    #[must_use]
    pub fn since_taken(&self) -> Option<Duration> {
        self.state().last_taken.map(|at| at.elapsed())
    }

    /// The last thing that went wrong; empty where nothing ever did.
    #[must_use]
    pub fn last_error(&self) -> String {
        self.state().last_error.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn taken(&self, rejected: u64, message: &str) {
        self.taken.fetch_add(1, Relaxed);
        self.state().last_taken = Some(Instant::now());
        if rejected > 0 || !message.is_empty() {
            self.state().last_error = cut(&format!("{rejected} records rejected: {message}"));
        }
        if self.failing.swap(false, Relaxed) {
            (self.log)(&format!("export of {} works again", self.name));
        }
    }

    pub(crate) fn failed(&self, why: &str) {
        self.failed.fetch_add(1, Relaxed);
        self.wrong(why);
    }

    pub(crate) fn again(&self, why: &str) {
        self.retried.fetch_add(1, Relaxed);
        self.wrong(why);
    }

    fn wrong(&self, why: &str) {
        let why = cut(why);
        if !self.failing.swap(true, Relaxed) {
            (self.log)(&format!("export of {} fails: {why}", self.name));
        }
        self.state().last_error = why;
    }
}

/// What a receiver says is foreign: its beginning, without control characters.
fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(ERROR_CHARS_MAX).map(plain).collect()
}
