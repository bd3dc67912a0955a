//! The data that expressions read and change: a session, its stream, and the state of the worker and
//! of the process.

mod assign;
mod eval;
mod onlooker;
mod vars;
mod world;

use std::sync::Arc;

use config::model::Config;
use net::WorkerId;

use crate::random::Random;
use crate::runtime_config::{Process, RuntimeConfig, Tls};
use crate::shared::Shared;
pub use assign::AssignError;
pub(crate) use eval::Eval;
pub use onlooker::Onlooker;
pub(crate) use world::{Connection, View};

/// The worker's part of every evaluation.
#[derive(Debug)]
pub(crate) struct Ambient {
    pub shared: Arc<Shared>,
    pub worker: WorkerId,
    /// The process accepts no new connections any more.
    pub stopping: bool,
    pub random: Random,
}

impl Ambient {
    /// `seed`: the seed of its random numbers.
    pub fn new(shared: Arc<Shared>, worker: WorkerId, seed: u64) -> Ambient {
        Ambient {
            shared,
            worker,
            stopping: false,
            random: Random::new(seed),
        }
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.random.next()
    }
}

/// Prepares a configuration that follows another one in a running process. Variables of scope
/// `proc` keep their values; `set-var` of `global` sets only those that have none.
#[must_use]
pub fn prepare_after(
    before: &RuntimeConfig,
    config: Config,
    tls: Tls,
    now: net::Now,
) -> RuntimeConfig {
    let runtime_config = RuntimeConfig::after(Some(before), config, tls, before.process.clone());
    let ambient = Ambient::new(
        Arc::new(runtime_config.share(1)),
        WorkerId(0),
        runtime_config.process.started.wall_ns,
    );
    let assignments = runtime_config.config.global.set_var.iter();
    for assignment in assignments.filter(|one| runtime_config.proc_var(one.var.slot).is_none()) {
        runtime_config.assign(assignment, &ambient, now);
    }
    runtime_config
}

/// Prepares a configuration for the engine. Executes `set-var` and `set-var-fmt` of `global` in
/// order; each may read earlier ones.
#[must_use]
pub fn prepare(config: Config, tls: Tls, process: Process) -> RuntimeConfig {
    let runtime_config = RuntimeConfig::new(config, tls, process);
    let started = runtime_config.process.started;
    let ambient = Ambient::new(
        Arc::new(runtime_config.share(1)),
        WorkerId(0),
        started.wall_ns,
    );
    for assignment in &runtime_config.config.global.set_var {
        runtime_config.assign(assignment, &ambient, started);
    }
    runtime_config
}
