//! State that the master and its runtime interface share: the workers, the results of reloads, and
//! the clients that wait for one.
//!
//! The master forks while threads of the runtime interface run. A child takes none of the locks
//! here, and those threads hold no other lock while they do anything but wait.

use std::os::fd::RawFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::handover::Channel;

/// A worker process that runs.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub pid: i32,
    /// The channel to the worker.
    pub channel: Arc<Channel>,
    /// The time of its start, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
    /// The number of reloads since its start.
    pub reloads: u32,
    /// Another worker serves; this one finishes its connections.
    pub is_leaving: bool,
}

/// The result of a reload.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub success: bool,
    /// The messages that the reload printed.
    pub messages: String,
}

/// A client that waits for a reload.
#[derive(Clone)]
pub(super) struct Asked {
    /// The old worker ends at once, without finishing its connections.
    pub hard: bool,
    pub outcome: SyncSender<Outcome>,
}

/// See the module.
pub(super) struct Board(Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    /// The serving worker, then the leaving ones.
    pub workers: Vec<Worker>,
    pub reloads: u32,
    /// The number of failed reloads in a row.
    pub failed_reloads: u32,
    /// The messages of the last start or reload.
    pub messages: String,
    pub asked: Vec<Asked>,
    /// Descriptors of the runtime interface, which a worker does not need.
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
    /// The serving worker.
    pub fn current(&self) -> Option<&Worker> {
        self.workers.iter().find(|worker| !worker.is_leaving)
    }

    /// Adds a worker that replaces the previous one.
    pub fn replace(&mut self, pid: i32, channel: Arc<Channel>, now_ns: u64) {
        for worker in &mut self.workers {
            worker.is_leaving = true;
            worker.reloads += 1;
        }
        let worker = Worker {
            pid,
            channel,
            started_ns: now_ns,
            reloads: 0,
            is_leaving: false,
        };
        self.workers.insert(0, worker);
    }

    /// Removes a process that has ended.
    pub fn remove(&mut self, pid: i32) {
        self.workers.retain(|worker| worker.pid != pid);
    }
}
