//! Health checks and agent checks of servers (manual §5.2 check, agent-check; §4.2 option httpchk
//! and its kin).
//!
//! One thread with its own runtime, and one small task per check of a server. [`watch`] schedules
//! checks and reports their outcomes, [`run`] runs a check's script over a [`conn`], [`expect`]
//! evaluates replies, [`external`] runs a program. [`proxy::Shared`] decides what an outcome means
//! for the server; [`warm_up`] raises the weights of servers during their slow start.
//!
//! The same thread requests the status of certificates ([`ocsp`]).
//!
//! Bytes from servers are bounded by `tune.bufsize`, time by `inter` and `timeout check`.
#![forbid(unsafe_code)]

mod agent;
mod conn;
mod custom;
mod expect;
mod external;
mod http;
mod ocsp;
mod outcome;
mod quic;
mod run;
mod state_header;
mod target;
mod text;
mod warm_up;
mod watch;

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub use ocsp::{OcspOutcome, OcspRefusal, OcspUpdate, OcspUpdates};

use net::WorkerId;
use proxy::{Onlooker, RuntimeConfig, Shared};
use tokio::sync::{Notify, Semaphore};

/// The stack size of the thread.
const STACK_BYTES: usize = 1 << 20;

/// What the checks need.
pub struct Setup {
    /// The configuration.
    pub runtime_config: Arc<RuntimeConfig>,
    /// The state shared by the workers.
    pub shared: Arc<Shared>,
    /// Wakes workers.
    pub wake: Wake,
    /// The seed of random numbers.
    pub seed: u64,
    /// Wakes checks whose schedule has changed.
    pub bells: Arc<Bells>,
    /// The certificates whose status is updated.
    pub ocsp: Arc<OcspUpdates>,
    /// Writes a message about the process to the logs, as a notice.
    pub tell: Tell,
}

/// Wakes the checks of servers early.
#[derive(Debug, Default)]
pub struct Bells {
    servers: Mutex<HashMap<(usize, usize), Arc<Notify>>>,
    /// The set of servers, or a server, has changed.
    pub(crate) changes: Notify,
    /// A server may begin its slow start.
    pub(crate) starts: Notify,
    pub(crate) stop: Notify,
}

impl Bells {
    /// Reports that the schedule of a server's checks has changed.
    pub fn ring(&self, backend: usize, server: usize) {
        self.of(backend, server).notify_waiters();
        self.starts.notify_one();
    }

    /// Reports that servers were added, deleted or changed.
    pub fn ring_all(&self) {
        self.changes.notify_one();
    }

    pub(crate) fn of(&self, backend: usize, server: usize) -> Arc<Notify> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry((backend, server)).or_default())
    }
}

/// Running checks.
pub struct Checks {
    thread: JoinHandle<()>,
    bells: Arc<Bells>,
}

/// Wakes workers.
pub type Wake = Box<dyn Fn(&[WorkerId]) + Send>;

/// Writes a message.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// The state that all checks share.
pub(crate) struct Control {
    pub runtime_config: Arc<RuntimeConfig>,
    pub shared: Arc<Shared>,
    pub wake: Wake,
    pub onlooker: Onlooker,
    pub bells: Arc<Bells>,
    pub ocsp: Arc<OcspUpdates>,
    pub tell: Tell,
    /// Limits how many checks run at once; none: no limit.
    pub places: Option<Semaphore>,
    /// The process is stopping.
    pub stopping: Cell<bool>,
}

impl Checks {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime cannot be created.
    pub fn start(setup: Setup) -> io::Result<Checks> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let bells = Arc::clone(&setup.bells);
        let thread = std::thread::Builder::new()
            .name("checks".to_owned())
            .stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, watch::all(Rc::new(Control::new(setup))));
        })?;
        Ok(Checks { thread, bells })
    }

    /// Ends all checks.
    pub fn stop(self) {
        self.bells.stop.notify_one();
        // The panic hook has already reported a panic of the thread.
        let _ = self.thread.join();
    }
}

impl Control {
    fn new(setup: Setup) -> Control {
        let Setup {
            runtime_config,
            shared,
            wake,
            seed,
            bells,
            ocsp,
            tell,
        } = setup;
        let places = match runtime_config.config.global.checks.at_once_max {
            0 => None,
            max => Some(Semaphore::new(max as usize)),
        };
        Control {
            onlooker: Onlooker::new(Arc::clone(&runtime_config), Arc::clone(&shared), seed),
            runtime_config,
            shared,
            wake,
            bells,
            ocsp,
            tell,
            places,
            stopping: Cell::new(false),
        }
    }

    /// Wakes workers.
    pub fn wake(&self, workers: &[WorkerId]) {
        if !workers.is_empty() {
            (self.wake)(workers);
        }
    }
}
