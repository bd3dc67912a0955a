//! Facts of the process that are not counted per worker: its start, its limit of connections, and
//! what its operator did.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The time from the start until it served, milliseconds.
    pub ms: u32,
    /// The warnings that it printed.
    pub warnings: u32,
}

/// A reason why the process may behave unlike its documentation, with HAProxy's numbers (`Tainted`
/// in `show info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Taint {
    /// A command of the runtime interface that needs `expert-mode on` was used.
    ExpertCommand = 0x4,
    /// The same for `experimental-mode on`.
    ExperimentalCommand = 0x8,
    /// An internal error was contained.
    Panic = 0x20,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ProcessFacts {
    boot_ms: AtomicU32,
    warnings: AtomicU32,
    maxconn_reached: AtomicU32,
    debug_commands: AtomicU32,
    taints: AtomicU32,
}

impl ProcessFacts {
    pub fn set_boot(&self, boot: Boot) {
        self.boot_ms.store(boot.ms, Relaxed);
        self.warnings.store(boot.warnings, Relaxed);
    }

    pub fn boot(&self) -> Boot {
        Boot {
            ms: self.boot_ms.load(Relaxed),
            warnings: self.warnings.load(Relaxed),
        }
    }

    pub fn reached_maxconn(&self) {
        self.maxconn_reached.fetch_add(1, Relaxed);
    }

    pub fn maxconn_reached(&self) -> u32 {
        self.maxconn_reached.load(Relaxed)
    }

    pub fn count_debug_command(&self) {
        self.debug_commands.fetch_add(1, Relaxed);
    }

    pub fn debug_commands(&self) -> u32 {
        self.debug_commands.load(Relaxed)
    }

    pub fn taint(&self, taint: Taint) {
        self.taints.fetch_or(taint as u32, Relaxed);
    }

    pub fn taints(&self) -> u32 {
        self.taints.load(Relaxed)
    }
}
