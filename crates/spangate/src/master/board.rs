//! What the master and its runtime interface share: the workers, what became of reloads, and who asked for one.
//!
//! The master forks while threads of the interface run. A child takes none of the locks here, and the threads hold no other one while
//! they do more than wait.

use std::os::fd::RawFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::handover::Channel;

/// A worker process that runs.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub pid: i32,
    /// Leads to it.
    pub channel: Arc<Channel>,
    /// When it was started, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
    /// Reloads since.
    pub reloads: u32,
    /// Another one serves; it finishes what it has.
    pub is_leaving: bool,
}

/// What a reload came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub success: bool,
    /// What was said meanwhile.
    pub messages: String,
}

/// Somebody waits for a reload.
pub(super) struct Asked {
    /// The old worker is not to finish what it has.
    pub hard: bool,
    pub outcome: SyncSender<Outcome>,
}

/// See the module.
pub(super) struct Board(Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    /// The one that serves, then those that leave.
    pub workers: Vec<Worker>,
    pub reloads: u32,
    /// Reloads in a row that failed.
    pub failed_reloads: u32,
    /// Of the last start or reload.
    pub messages: String,
    pub asked: Vec<Asked>,
    /// Descriptors that are the interface's: a worker has no use for them.
    pub descriptors: Vec<RawFd>,
}

impl Board {
    pub fn new() -> Arc<Self> {
        Arc::new(Board(Mutex::default()))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The worker that serves.
    pub fn current(&self) -> Option<&Worker> {
        self.workers.iter().find(|worker| !worker.is_leaving)
    }

    /// A worker serves in place of the one before it.
    pub fn replace(&mut self, pid: i32, channel: Channel, now_ns: u64) {
        for worker in &mut self.workers {
            worker.is_leaving = true;
            worker.reloads += 1;
        }
        let worker = Worker {
            pid,
            channel: Arc::new(channel),
            started_ns: now_ns,
            reloads: 0,
            is_leaving: false,
        };
        self.workers.insert(0, worker);
    }

    /// A process has ended.
    pub fn remove(&mut self, pid: i32) {
        self.workers.retain(|worker| worker.pid != pid);
    }
}
