//! Evaluations outside of the data path, such as those of health checks.

use std::fmt;
use std::sync::Arc;

use net::{Now, WorkerId};
use sample::World;

use super::{Ambient, View};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;

/// Gives expressions access to the state of the process without a connection. Used by one thread.
pub struct Onlooker {
    runtime_config: Arc<RuntimeConfig>,
    ambient: Ambient,
}

impl Onlooker {
    /// `seed`: the seed of its random numbers.
    #[must_use]
    pub fn new(runtime_config: Arc<RuntimeConfig>, shared: Arc<Shared>, seed: u64) -> Onlooker {
        Onlooker {
            runtime_config,
            ambient: Ambient::new(shared, WorkerId(0), seed),
        }
    }

    /// Runs work with the current state.
    pub fn look<R>(&self, now: Now, work: impl FnOnce(&dyn World) -> R) -> R {
        let servers = self.ambient.shared.server_tables();
        work(&View::without_stream(
            &self.runtime_config,
            &servers,
            &self.ambient,
            now,
        ))
    }

    /// A random number.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.ambient.random()
    }
}

impl fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onlooker").finish_non_exhaustive()
    }
}
