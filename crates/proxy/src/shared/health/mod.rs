//! What is known of the health of servers: the results of checks, why a server is in maintenance, and what it is for that.
//!
//! [`states`] is the state machine: pure, without a clock. It is behind one lock, which checks, agents and commands take; the data path
//! reads what comes of it from [`super::servers`]. [`Herald`] is told what changed, in the order in which it did.

mod check;
mod ejection;
mod message;
mod slow_start;
mod states;
mod status;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use config::model::Config;

use crate::engine::Killed;

pub use check::{CheckOutcome, CheckPlan, Checker};
pub(crate) use ejection::Place;
pub use message::Level;
pub(crate) use slow_start::WHOLE;
pub(crate) use states::HealthCounter;
pub use states::{Admin, Cause, OpState};
pub(crate) use states::{Seen, States, Transition};
pub use view::{BackendView, CheckView, HealthLevel, ServerView};

/// Is told what changes, and does what follows from it outside of the data path. Its calls are made in the order of the changes
/// and must neither wait for long nor change servers.
pub trait Herald: Send + Sync {
    /// Milliseconds of the monotonic clock.
    fn now_ms(&self) -> u64;
    /// The state of a server or of a backend has changed: a message for the logs of the backend, if it has a level, and for standard
    /// error.
    fn tell(&self, news: &News);
    /// Streams are to end: a user says so, their server is down, or a server came up that makes a backup superfluous.
    fn end_streams(&self, which: Killed);
    /// Servers were added or deleted, or are elsewhere: other checks may have to run.
    fn servers_changed(&self);
    /// The time of the next check of a server has changed.
    fn reschedule(&self, backend: usize, server: usize);
}

/// A message about servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The backend, by its place in the configuration.
    pub backend: usize,
    /// The server, by its place; none where it is about the backend.
    pub server: Option<usize>,
    /// How severe it is in logs.
    pub level: Level,
    /// The text in logs.
    pub text: String,
    /// The text on standard error, where it is another one.
    pub shown: Option<String>,
}

/// See the module.
pub(crate) struct Health {
    states: Mutex<States>,
    herald: OnceLock<Arc<dyn Herald>>,
}

impl Health {
    /// As configured.
    pub fn new(config: &Config) -> Health {
        Health {
            states: Mutex::new(States::new(config)),
            herald: OnceLock::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is told; the first one stays.
    pub fn set_herald(&self, herald: Arc<dyn Herald>) {
        self.lock().begin_at(herald.now_ms());
        // There is one process.
        let _ = self.herald.set(herald);
    }

    pub fn herald(&self) -> Option<&dyn Herald> {
        self.herald.get().map(|herald| &**herald)
    }

    pub fn now_ms(&self) -> u64 {
        self.herald().map_or(0, Herald::now_ms)
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}
