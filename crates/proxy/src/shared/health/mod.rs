//! The health of servers: the results of checks, maintenance and its reasons, and the resulting
//! states.
//!
//! [`states`] is the state machine: pure, without a clock. It is behind one lock, which checks,
//! agents and commands take; the data path reads the results from [`super::servers`].
//! [`ServerEventSink`] is told the changes in their order.

mod check;
mod ejection;
mod message;
mod slow_start;
mod states;
mod status;
mod succession;
#[cfg(test)]
pub(super) mod tests;
mod view;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use config::model::Config;

use super::killed::Killed;
use super::succession::Succession;

pub use check::{CheckOutcome, CheckPlan, Checker};
pub(crate) use ejection::Place;
pub use message::Level;
pub(crate) use slow_start::WHOLE;
pub(crate) use states::HealthCounter;
pub use states::{Admin, Cause, OpState};
pub(crate) use states::{Seen, States, Transition};
pub use view::{BackendView, CheckView, HealthLevel, ServerView};

/// Receives changes and acts on them outside of the data path. It is called in the order of the
/// changes. Its methods must not block for long and must not change servers.
pub trait ServerEventSink: Send + Sync {
    /// The monotonic clock, milliseconds.
    fn now_ms(&self) -> u64;
    /// The state of a server or of a backend has changed. The message is for the logs of the
    /// backend, if it has a level, and for standard error.
    fn tell(&self, news: &ServerEvent);
    /// Streams have to end: a user asks for it, their server is down, or a server came up that
    /// replaces a backup.
    fn end_streams(&self, which: Killed);
    /// Servers were added, deleted or moved: other checks may have to run.
    fn servers_changed(&self);
    /// The name of a server may have another address: a connection of a check timed out.
    fn resolve_again(&self, backend: usize, server: usize);
    /// The time of the next check of a server has changed.
    fn reschedule(&self, backend: usize, server: usize);
}

/// A message about servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// The place of the backend in the configuration.
    pub backend: usize,
    /// The place of the server; none where the message is about the backend.
    pub server: Option<usize>,
    /// The severity in logs.
    pub level: Level,
    /// The text in logs.
    pub text: String,
    /// The text on standard error, if it differs.
    pub shown: Option<String>,
}

/// The health of all servers, and the receiver of changes.
pub(crate) struct Health {
    states: Mutex<States>,
    event_sink: OnceLock<Arc<dyn ServerEventSink>>,
}

impl Health {
    /// As configured.
    pub fn new(config: &Config) -> Health {
        Health {
            states: Mutex::new(States::new(config)),
            event_sink: OnceLock::new(),
        }
    }

    /// Takes the health of the servers of both configurations over. The receiver of changes is set
    /// anew.
    pub fn succeed(&self, before: &Health, both: &Succession<'_>) {
        self.lock().succeed(&before.lock(), both);
    }

    pub fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the receiver of changes; a second call has no effect.
    pub fn set_event_sink(&self, event_sink: Arc<dyn ServerEventSink>) {
        self.lock().begin_at(event_sink.now_ms());
        // There is one process, so this is called once.
        let _ = self.event_sink.set(event_sink);
    }

    pub fn event_sink(&self) -> Option<&dyn ServerEventSink> {
        self.event_sink.get().map(|event_sink| &**event_sink)
    }

    pub fn now_ms(&self) -> u64 {
        self.event_sink().map_or(0, ServerEventSink::now_ms)
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}
