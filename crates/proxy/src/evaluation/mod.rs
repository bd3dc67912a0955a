//! The data that expressions read and change: the facts of a session and its stream, and the state
//! around them.

mod assign;
mod eval;
mod onlooker;
mod vars;
mod world;

use std::cell::Cell;
use std::sync::Arc;

use config::model::Config;
use net::WorkerId;

use crate::runtime_config::{Process, RuntimeConfig, Tls};
use crate::shared::Shared;
pub use assign::AssignError;
pub(crate) use eval::Eval;
pub use onlooker::Onlooker;
use world::View;

/// The worker's part of every evaluation.
#[derive(Debug)]
pub(crate) struct Ambient {
    pub shared: Arc<Shared>,
    pub worker: WorkerId,
    /// The process accepts no new connections any more.
    pub stopping: bool,
    pub random: Cell<u64>,
}

impl Ambient {
    /// SplitMix64: the engine's random numbers come from a seed that the driver's owner gives.
    pub fn random(&self) -> u64 {
        let seed = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(seed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Prepares a configuration for the engine. Executes `set-var` and `set-var-fmt` of `global` in
/// order; each may read earlier ones.
#[must_use]
pub fn prepare(config: Config, tls: Tls, process: Process) -> RuntimeConfig {
    let runtime_config = RuntimeConfig::new(config, tls, process);
    let started = runtime_config.process.started;
    let ambient = Ambient {
        shared: Arc::new(runtime_config.share(1)),
        worker: WorkerId(0),
        stopping: false,
        random: Cell::new(started.wall_ns),
    };
    for assignment in &runtime_config.config.global.set_var {
        runtime_config.assign(assignment, &ambient, started);
    }
    runtime_config
}
