//! A reload in place: a worker goes on with another configuration.
//!
//! Connections, streams and shared counters stay. A stream follows the configuration with which it
//! began to its end; the next request of its client follows the new one. An object of both
//! configurations has the same place in both, so its name is valid for streams of either. A
//! frontend that the new configuration lacks serves its connections by the last configuration that
//! has it, and they end with their next response.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use net::{Driver, ListenerId};

use super::{Engine, RELEASE_RETRY_MS, Turn};
use crate::backend::View;
use crate::ids::{ConnId, ProxyId};
use crate::link::{Named, Role};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;
use crate::stream::Stream;

/// A configuration of a process, and the state that its workers share.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The configuration: the first one, or one that was prepared after its predecessor with
    /// [`crate::prepare_after`].
    pub runtime_config: Arc<RuntimeConfig>,
    /// Its state: [`RuntimeConfig::share`], or [`RuntimeConfig::share_after`].
    pub shared: Arc<Shared>,
}

/// The configuration and the state with which the workers serve now, for other threads.
#[derive(Debug)]
pub struct Current(ArcSwap<Generation>);

impl Current {
    /// A process starts with this configuration.
    #[must_use]
    pub fn new(first: Generation) -> Current {
        Current(ArcSwap::from_pointee(first))
    }

    /// The present one. Counters that a thread adds to the state of an earlier one are lost.
    #[must_use]
    pub fn get(&self) -> Arc<Generation> {
        self.0.load_full()
    }

    /// The workers serve with the next one.
    pub fn set(&self, next: Generation) {
        self.0.store(Arc::new(next));
    }
}

/// The meeting of the workers at which they go on with another configuration together: none works
/// while the state that they share is replaced.
#[derive(Clone, Debug, Default)]
pub struct Renewal(Arc<Meeting>);

#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<MeetingState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct MeetingState {
    waiting: usize,
    /// What the workers go on with; within it none where they keep what they have.
    result: Option<Option<Generation>>,
}

impl Renewal {
    /// Waits until `workers` workers have received [`super::Order::Renew`], at most for `limit`,
    /// and lets them go on with the result of `make`. None if they did not all come in time: they
    /// keep what they have, and `make` is not called.
    pub fn meet(
        &self,
        workers: usize,
        limit: Duration,
        make: impl FnOnce() -> Generation,
    ) -> Option<Generation> {
        let lacks_some = |state: &mut MeetingState| state.waiting < workers;
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.lock(), limit, lacks_some);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_complete = state.waiting >= workers;
        let next = is_complete.then(make);
        state.result = Some(next.clone());
        self.0.changed.notify_all();
        next
    }

    /// A worker waits for the others and for the new state. It is the one place where a worker
    /// blocks; the others arrive within their current rounds.
    fn wait(&self) -> Option<Generation> {
        let mut state = self.lock();
        state.waiting += 1;
        self.0.changed.notify_all();
        let is_open = |state: &mut MeetingState| state.result.is_none();
        let state = self.0.changed.wait_while(state, is_open);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.result.clone().flatten()
    }

    fn lock(&self) -> MutexGuard<'_, MeetingState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Earlier configurations of a worker, in their order.
#[derive(Debug, Default)]
pub(super) struct Older(Vec<Arc<RuntimeConfig>>);

impl Older {
    /// The configuration that a stream follows; `current` is the worker's.
    #[cold]
    #[inline(never)]
    pub fn config_of<'a>(
        &'a self,
        stream: &Stream,
        current: &'a RuntimeConfig,
    ) -> &'a RuntimeConfig {
        if stream.generation == current.generation {
            current
        } else {
            self.of_generation(stream.generation).unwrap_or(current)
        }
    }

    /// A stream has begun on a connection. Where `current` lacks its frontend, it follows the last
    /// configuration that has it, and the connection ends with it.
    #[cold]
    #[inline(never)]
    pub fn begin_left(&self, stream: &mut Stream, current: &RuntimeConfig) {
        if !current.has(stream.frontend)
            && let Some(last) = self.of_frontend(stream.frontend)
        {
            stream.follow(last);
            stream.close_client = true;
        }
    }

    fn of_generation(&self, generation: u32) -> Option<&RuntimeConfig> {
        let mut older = self.0.iter();
        let found = older.find(|older| older.generation == generation);
        found.map(|found| &**found)
    }

    /// The last configuration that has a frontend.
    fn of_frontend(&self, frontend: ProxyId) -> Option<&RuntimeConfig> {
        let mut older = self.0.iter().rev();
        let found = older.find(|older| older.has(frontend));
        found.map(|found| &**found)
    }
}

impl RuntimeConfig {
    /// Whether it has a proxy and starts it.
    fn has(&self, proxy: ProxyId) -> bool {
        let proxy = self.config.proxies.get(proxy.place());
        proxy.is_some_and(|proxy| !proxy.disabled)
    }
}

impl Engine {
    /// Meets the other workers and goes on with the result.
    #[cold]
    pub(super) fn meet<D: Driver>(&mut self, driver: &mut D, renewal: &Renewal) {
        if let Some(next) = renewal.wait() {
            self.renew(driver, next);
        }
    }

    /// Goes on with another configuration. All workers that share a state must do so before any of
    /// them works on.
    pub fn renew<D: Driver>(&mut self, driver: &mut D, next: Generation) {
        // Filters count by the configuration that created them.
        self.core.tracing.flush_records(&self.runtime_config);
        let Generation {
            runtime_config,
            shared,
        } = next;
        let before = std::mem::replace(&mut self.runtime_config, runtime_config);
        self.older.0.push(before);
        self.state.has_older = true;
        let servers = shared.server_tables();
        let servers_before = std::mem::replace(&mut self.servers, servers);
        self.core.ambient.shared = shared;
        let view = View {
            runtime_config: &self.runtime_config,
            servers: &self.servers,
            ambient: &self.core.ambient,
        };
        self.core.backends.renew(&view);
        self.core
            .logging
            .renew(&self.runtime_config, &self.core.ambient);
        let changed = self.servers.changed_since(&servers_before);
        self.enter(driver, None, |turn| {
            turn.close_idle_of(&changed);
            turn.leave_removed_frontends();
            turn.reopen_listeners();
        });
        let now_ms = driver.now_ms();
        self.release_servers(now_ms);
        self.release_older(now_ms);
    }

    /// Drops the earlier configurations that nothing uses any longer, and reports those that are
    /// left.
    pub(super) fn release_older(&mut self, now_ms: u64) {
        if self.older.0.is_empty() {
            return;
        }
        let mut used: Vec<u32> = self.streams.all().map(|stream| stream.generation).collect();
        for (_, link) in self.core.links.iter() {
            if let Role::Client(client) = &link.role
                && !self.runtime_config.has(client.frontend())
                && let Some(last) = self.older.of_frontend(client.frontend())
            {
                used.push(last.generation);
            }
        }
        self.older
            .0
            .retain(|older| used.contains(&older.generation));
        let older = self.older.0.iter().map(|older| older.generation);
        let ambient = &self.core.ambient;
        ambient.shared.set_older(ambient.worker, older.collect());
        self.state.has_older = !self.older.0.is_empty();
        if self.state.has_older {
            let again_ms = now_ms.saturating_add(RELEASE_RETRY_MS);
            self.state.release_at_ms = self.state.release_at_ms.min(again_ms);
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Closes the listeners that the configuration lacks, and lets the connections of its lost
    /// frontends end.
    fn leave_removed_frontends(&mut self) {
        let runtime_config = self.cx.runtime_config;
        for (listener, bind) in runtime_config.listeners.iter().enumerate() {
            if !runtime_config.is_bound(*bind) {
                let listener = ListenerId(listener as u32);
                self.state.resting.retain(|resting| *resting != listener);
                self.cx.io.unlisten(listener);
            }
        }
        for slot in 0..self.cx.core.links.slots() {
            let links = &self.cx.core.links;
            let Some(Named::Conn(conn)) = links.at(slot).and_then(|link| links.name(link)) else {
                continue;
            };
            if self.is_of_lost_frontend(conn) {
                self.cx.hurry_idle_client(conn);
            }
        }
    }

    fn is_of_lost_frontend(&self, conn: ConnId) -> bool {
        let client = self.cx.core.links.client(conn);
        client.is_some_and(|client| !self.cx.runtime_config.has(client.frontend()))
    }
}
