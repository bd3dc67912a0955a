//! A reload in place: a worker goes on with another configuration.
//!
//! Connections, streams and shared counters stay. A stream follows the configuration with which it
//! began to its end; the next request of its client follows the new one. An object of both
//! configurations has the same place in both, so its name is valid for streams of either. A
//! connection whose bind line is gone, or admits other clients now, follows the configuration before
//! and ends with its next response.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use config::model::{BindTls, TlsOptions};
use net::{Driver, ListenerId};

use super::{Engine, RELEASE_RETRY_MS, Turn};
use crate::backend::View;
use crate::ids::{BindId, ConnId};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;
use crate::stream::Stream;

/// A configuration of a process, and the state that its workers share.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The configuration. That of a reload is made with [`crate::prepare_after`].
    pub runtime_config: Arc<RuntimeConfig>,
    /// Its state. That of the first configuration is made with [`RuntimeConfig::share`], that of a
    /// reload with [`RuntimeConfig::share_after`].
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

/// How long an idle connection that follows an earlier configuration stays open, milliseconds: its
/// client may have sent a request.
const LEFT_IDLE_MS: u64 = 1000;

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

    /// A stream has begun on a connection that follows an earlier configuration, if it does: so
    /// does the stream, and the connection ends with it.
    #[cold]
    #[inline(never)]
    pub fn begin_left(&self, stream: &mut Stream, follows: Option<u32>) {
        if let Some(earlier) = follows.and_then(|generation| self.of_generation(generation)) {
            stream.follow(earlier);
            stream.close_client = true;
        }
    }

    fn of_generation(&self, generation: u32) -> Option<&RuntimeConfig> {
        let mut older = self.0.iter();
        let found = older.find(|older| older.generation == generation);
        found.map(|found| &**found)
    }
}

impl RuntimeConfig {
    /// Whether a bind line admits the same clients as in the configuration before, so that its
    /// connections may go on.
    fn admits_alike(&self, line: BindId, before: &RuntimeConfig) -> bool {
        if !self.is_bound(line) || !before.is_bound(line) {
            return false;
        }
        let [now, then] = [self, before].map(|config| config.bind(line));
        if now.accept_proxy != then.accept_proxy {
            return false;
        }
        match (now.tls.as_deref(), then.tls.as_deref()) {
            (None, None) => true,
            (Some(now), Some(then)) => admit_alike(now, then),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

fn admit_alike(now: &BindTls, then: &BindTls) -> bool {
    fn own(tls: &BindTls) -> impl Iterator<Item = &TlsOptions> {
        let certificates = tls.certificates.iter();
        certificates.filter_map(|certificate| certificate.options.as_deref())
    }
    now.options == then.options
        && now.strict_sni == then.strict_sni
        && now.ca_ignore_err == then.ca_ignore_err
        && now.crt_ignore_err == then.crt_ignore_err
        && own(now).eq(own(then))
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
        let left = self.leave_changed_lines(&before);
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
            turn.close_lost_listeners();
            left.into_iter().for_each(|conn| turn.hurry(conn));
            turn.reopen_listeners();
            turn.serve_queues();
        });
        let now_ms = driver.now_ms();
        self.release_servers(now_ms);
        self.release_older(now_ms);
    }

    /// Drops the earlier configurations that no stream and no client connection follows. Reports
    /// which are left.
    pub(super) fn release_older(&mut self, now_ms: u64) {
        if self.older.0.is_empty() {
            return;
        }
        let mut used: Vec<u32> = self.streams.all().map(|stream| stream.generation).collect();
        let clients = self.core.links.clients();
        used.extend(clients.filter_map(|(_, client)| client.follows));
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

impl Engine {
    /// Lets the connections whose lines do not admit the same clients any longer follow the
    /// configuration before. Returns them.
    fn leave_changed_lines(&mut self, before: &RuntimeConfig) -> Vec<ConnId> {
        let clients = self.core.links.clients();
        let left = clients.filter(|(_, client)| {
            client.follows.is_none() && !self.runtime_config.admits_alike(client.bind, before)
        });
        let left: Vec<ConnId> = left.map(|(conn, _)| conn).collect();
        for conn in &left {
            if let Some(client) = self.core.links.client_mut(*conn) {
                client.follows = Some(before.generation);
            }
        }
        left
    }

    /// The connections that follow an earlier configuration and can serve many requests, a while
    /// after the reload.
    fn lasting(&self) -> Vec<ConnId> {
        let links = &self.core.links;
        let left = links.clients().filter(|(conn, client)| {
            client.follows.is_some() && links.multiplexes(*conn) && !links.is_ending(*conn)
        });
        left.map(|(conn, _)| conn).collect()
    }

    /// A client that goes on with new requests after it was told to stop is served no further.
    pub(super) fn end_lasting<D: Driver>(&mut self, driver: &mut D) {
        let lasting = self.lasting();
        self.enter(driver, None, |turn| {
            for conn in lasting {
                let cx = &mut turn.cx;
                cx.core.links.send_goaway(cx.io, conn);
                cx.core.links.stop_exchanges(conn);
                if cx.core.links.get(conn).is_some_and(|link| link.is_free()) {
                    cx.close_client(conn);
                }
            }
        });
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Closes the listeners that the configuration lacks.
    fn close_lost_listeners(&mut self) {
        let runtime_config = self.cx.runtime_config;
        self.open_returned_quics();
        for (listener, bind) in runtime_config.listeners.iter().enumerate() {
            if !runtime_config.is_bound(*bind) {
                let listener = ListenerId(listener as u32);
                self.state.resting.retain(|resting| *resting != listener);
                if !self.close_lost_quic(listener) {
                    self.cx.io.abandon(listener);
                }
            }
        }
    }

    /// Ends a connection soon that follows an earlier configuration.
    fn hurry(&mut self, conn: ConnId) {
        if self.cx.take_no_more_exchanges(conn) {
            return;
        }
        if self.cx.core.links.is_between_requests(conn) {
            let end_ms = self.cx.now_ms().saturating_add(LEFT_IDLE_MS);
            self.cx.set_link_deadline(conn, end_ms);
        }
    }

    /// Limits of servers may be higher now.
    fn serve_queues(&mut self) {
        let shared = Arc::clone(&self.cx.core.ambient.shared);
        shared.review_queues(&mut |worker| self.cx.io.wake(worker));
    }
}
