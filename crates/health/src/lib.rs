//! Health checks and agent checks of servers (manual §5.2 check, agent-check; §4.2 option httpchk and its kin).
//!
//! One thread with a runtime of its own, one small task for each check of a server: [`watch`] says when a check runs and what becomes
//! of its outcome, [`run`] follows its script over a [`conn`], [`expect`] judges answers, [`external`] asks a program. What an outcome means
//! for the server is decided in [`proxy::Shared`]; [`warm_up`] lets the shares of servers grow that start slowly.
//!
//! The same thread asks for the status of certificates ([`ocsp`]).
//!
//! Bytes of servers are bounded by `tune.bufsize`, time by `inter` and `timeout check`.
#![forbid(unsafe_code)]

mod agent;
mod conn;
mod custom;
mod expect;
mod external;
mod http;
mod ocsp;
mod outcome;
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
use proxy::{Onlooker, Running, Shared};
use tokio::sync::{Notify, Semaphore};

/// The stack of the thread.
const STACK_BYTES: usize = 1 << 20;

/// What checks work with.
pub struct Setup {
    /// The configuration.
    pub running: Arc<Running>,
    /// What the workers share.
    pub shared: Arc<Shared>,
    /// Gives workers a round.
    pub wake: Wake,
    /// What random numbers come from.
    pub seed: u64,
    /// Wakes checks whose time has changed.
    pub bells: Arc<Bells>,
    /// The certificates whose status is asked for.
    pub ocsp: Arc<OcspUpdates>,
    /// Writes a message about the process to the logs, as a notice.
    pub tell: Tell,
}

/// Wakes the checks of servers before their time.
#[derive(Debug, Default)]
pub struct Bells {
    servers: Mutex<HashMap<(usize, usize), Arc<Notify>>>,
    /// The servers themselves have changed.
    pub(crate) changes: Notify,
    /// A server may start slowly.
    pub(crate) starts: Notify,
    pub(crate) stop: Notify,
}

impl Bells {
    /// The plan of a server's checks has changed.
    pub fn ring(&self, backend: usize, server: usize) {
        self.of(backend, server).notify_waiters();
        self.starts.notify_one();
    }

    /// Servers were added, deleted or changed.
    pub fn ring_all(&self) {
        self.changes.notify_one();
    }

    pub(crate) fn of(&self, backend: usize, server: usize) -> Arc<Notify> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry((backend, server)).or_default())
    }
}

/// Checks that run.
pub struct Checks {
    thread: JoinHandle<()>,
    bells: Arc<Bells>,
}

/// Gives workers a round.
pub type Wake = Box<dyn Fn(&[WorkerId]) + Send>;

/// Writes a message.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// What all checks share.
pub(crate) struct Control {
    pub running: Arc<Running>,
    pub shared: Arc<Shared>,
    pub wake: Wake,
    pub onlooker: Onlooker,
    pub bells: Arc<Bells>,
    pub ocsp: Arc<OcspUpdates>,
    pub tell: Tell,
    /// How many may run at once; none is any number.
    pub places: Option<Semaphore>,
    /// The process stops.
    pub stopping: Cell<bool>,
}

impl Checks {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread, or no runtime.
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
        // A panic there was told by the hook.
        let _ = self.thread.join();
    }
}

impl Control {
    fn new(setup: Setup) -> Control {
        let Setup {
            running,
            shared,
            wake,
            seed,
            bells,
            ocsp,
            tell,
        } = setup;
        let places = match running.config.global.checks.at_once_max {
            0 => None,
            max => Some(Semaphore::new(max as usize)),
        };
        Control {
            onlooker: Onlooker::new(Arc::clone(&running), Arc::clone(&shared), seed),
            running,
            shared,
            wake,
            bells,
            ocsp,
            tell,
            places,
            stopping: Cell::new(false),
        }
    }

    /// Gives workers a round.
    pub fn wake(&self, workers: &[WorkerId]) {
        if !workers.is_empty() {
            (self.wake)(workers);
        }
    }
}
