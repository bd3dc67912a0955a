//! The state of servers: administrative and operational state, weights, limits, and requests in
//! progress.
//!
//! It starts as configured and changes at run time; the data path reads it here and not from the
//! configuration. Each change increments the epoch of its backend: workers compare it, and rebuild
//! the data that they derived.
//!
//! A server that is added at run time gets a place that is no longer referred to, or a new one
//! ([`super::tables`]).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use config::model::{Balance, Config, Mode, Observe, Proxy, Server};

use super::grow::Grow;
use super::health::{Checker, OpState, Seen, WHOLE};
use super::outlier::{Latencies, Verdict, Watch};
use super::reach::Reach;
use super::releases::Releases;
use super::succession::Succession;
use super::turns::Turn;
use crate::ids::{ProxyId, ServerId};

/// A change of a server's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// In maintenance: it gets no requests.
    Maintenance(bool),
    /// Draining: it gets only requests that are bound to it.
    Drain(bool),
    /// Down or up, as reported by the process.
    Down(bool),
    /// The result of its checks.
    Health(Checker, OpState),
    /// Whether checks of a kind run.
    Checks(Checker, bool),
    /// In maintenance because its name has no address.
    Unresolved(bool),
    /// Its weight, from 0 to 256.
    Weight(u32),
    /// The most requests at a time; 0 for no limit.
    Maxconn(u32),
}

pub(super) const MAINTENANCE: u32 = 1;
pub(super) const DRAIN: u32 = 2;
pub(super) const DOWN: u32 = 4;
/// It is ejected (`outlier-ejection`).
pub(super) const EJECTED: u32 = 8;
/// Its ejection has ended, and it gets one request as a probe.
pub(super) const PROBED: u32 = 16;

/// A server with one of these flags is not up, and no request stays bound to it.
const OUT: u32 = MAINTENANCE | DOWN | EJECTED | PROBED;

/// The units of a weight of 1 while a server of the backend starts slowly.
const SLOW_START_UNITS: u32 = 16;

/// The state of a server, in cache lines of its own, because requests write it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ServerState {
    /// [`MAINTENANCE`], [`DRAIN`], [`DOWN`], [`EJECTED`], [`PROBED`].
    flags: AtomicU32,
    weight: AtomicU32,
    /// Its place in the order in which the servers of its backend became available; 0 while it is
    /// not. Kept for `balance sticky`.
    joined: AtomicU32,
    /// The effective part of its weight, in units of 1/[`WHOLE`] (`slowstart`).
    share: AtomicU32,
    initial_weight: AtomicU32,
    backup: AtomicBool,
    maxconn: AtomicU32,
    minconn: AtomicU32,
    /// Requests that hold a slot; counted where there is a limit, or the algorithm uses the load.
    held: AtomicU32,
    /// Requests that wait for this server only.
    waiting: AtomicU32,
    /// Idle connections of all workers; counted where `pool-max-conn` limits them.
    idle: AtomicU32,
    /// `observe` as a number; 0 for off.
    observe: AtomicU32,
    /// `error-limit`
    error_limit: AtomicU32,
    /// Consecutive observed errors.
    errors: AtomicU32,
    /// `outlier-ejection`
    watch: Watch,
    /// Where connections may be made over QUIC and over TCP.
    reach: Reach,
}

impl ServerState {
    fn new(line: &Server) -> ServerState {
        let state = ServerState::default();
        state.begin(line, line.disabled);
        state
    }

    /// Sets the initial state. No request may use or wait for the server.
    fn begin(&self, line: &Server, in_maintenance: bool) {
        let flags = if in_maintenance { MAINTENANCE } else { 0 };
        self.flags.store(flags, Ordering::Relaxed);
        self.weight.store(line.weight, Ordering::Relaxed);
        self.initial_weight.store(line.weight, Ordering::Relaxed);
        self.backup.store(line.backup, Ordering::Relaxed);
        self.maxconn.store(line.maxconn, Ordering::SeqCst);
        self.minconn.store(line.minconn, Ordering::Relaxed);
        self.share.store(WHOLE, Ordering::Relaxed);
        let observe = line.checks.observe as u32;
        self.observe.store(observe, Ordering::Relaxed);
        let limit = line.checks.error_limit;
        self.error_limit.store(limit, Ordering::Relaxed);
        self.errors.store(0, Ordering::Relaxed);
        self.watch.begin(line);
        self.reach.stands();
    }

    /// Copies the use of a server; `has_maxconn`: its limit too.
    fn succeed(&self, before: &ServerState, has_maxconn: bool) {
        for (to, from) in [
            (&self.joined, &before.joined),
            (&self.held, &before.held),
            (&self.waiting, &before.waiting),
            (&self.idle, &before.idle),
            (&self.errors, &before.errors),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        if has_maxconn {
            let maxconn = before.maxconn.load(Ordering::Relaxed);
            self.maxconn.store(maxconn, Ordering::SeqCst);
        }
    }

    fn is_backup(&self) -> bool {
        self.backup.load(Ordering::Relaxed)
    }

    /// Counts an outcome of an observed server.
    fn count(&self, observe: u32, seen: Seen) -> Option<u32> {
        let observe = match observe {
            1 => Observe::Layer4,
            _ => Observe::Layer7,
        };
        if seen.is_error(observe)? {
            let errors = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
            let is_limit = errors >= self.error_limit.load(Ordering::Relaxed);
            is_limit.then(|| {
                self.errors.store(0, Ordering::Relaxed);
                errors
            })
        } else {
            self.errors.store(0, Ordering::Relaxed);
            None
        }
    }

    /// Whether no request uses or waits for it.
    fn is_quiet(&self) -> bool {
        let is_zero = |cell: &AtomicU32| cell.load(Ordering::SeqCst) == 0;
        is_zero(&self.held) && is_zero(&self.waiting)
    }

    /// Puts it at the end of the order if it has become available.
    fn join(&self, last: &AtomicU32) {
        if !self.takes_new() {
            self.joined.store(0, Ordering::Relaxed);
        } else if self.joined.load(Ordering::Relaxed) == 0 {
            let place = last.fetch_add(1, Ordering::Relaxed) + 1;
            self.joined.store(place, Ordering::Relaxed);
        }
    }

    fn takes_new(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0 && self.weight.load(Ordering::Relaxed) > 0
    }
}

/// The weights of servers for balancing.
pub(crate) struct BalancingWeights {
    /// The units of a weight of 1: more than one while a server starts slowly, so that a part of a
    /// weight of 1 can be expressed.
    pub units: u32,
    /// By server.
    pub weights: Vec<u32>,
}

/// The servers of a backend.
#[derive(Debug)]
struct BackendState {
    epoch: AtomicU32,
    /// A server is observed.
    observes: AtomicBool,
    /// The layer of traffic that `outlier-ejection` counts.
    layer: Observe,
    servers: Grow<ServerState>,
    /// The number of places that are or were in use.
    places: AtomicUsize,
    allbackups: bool,
    /// The load at which servers with a `minconn` reach their `maxconn`.
    full: u32,
    /// The algorithm uses the load.
    by_load: bool,
    /// The last place in the order in which servers became available, where the algorithm needs it.
    last_joined: Option<AtomicU32>,
    turn: Turn,
    releases: Releases,
}

/// The state of the servers of all backends.
#[derive(Debug)]
pub(crate) struct Servers(Vec<BackendState>);

impl Servers {
    /// The configured state. `full`: the `fullconn` of each proxy.
    pub fn new(config: &Config, full: &[u32]) -> Servers {
        let proxies = config.proxies.iter().zip(full);
        Servers(
            proxies
                .map(|(proxy, full)| BackendState::new(proxy, *full))
                .collect(),
        )
    }

    /// Copies the use of the servers of both configurations, and the limits that were set at run
    /// time.
    pub(super) fn succeed(&self, before: &Servers, both: &Succession<'_>) {
        for proxy in &both.proxies {
            let (now, then) = (self.backend(*proxy), before.backend(*proxy));
            if let (Some(to), Some(from)) = (&now.last_joined, &then.last_joined) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let servers = now.servers.all();
            servers.for_each(|server| server.joined.store(0, Ordering::Relaxed));
        }
        for server in &both.servers {
            let [line, line_before] = both.lines(*server);
            let has_maxconn = line.maxconn == line_before.maxconn && both.is_server_kept(*server);
            self.server(*server)
                .succeed(before.server(*server), has_maxconn);
        }
    }

    fn backend(&self, backend: ProxyId) -> &BackendState {
        &self.0[backend.place()]
    }

    #[inline(always)]
    fn server(&self, server: ServerId) -> &ServerState {
        self.backend(server.backend).servers.at(server.place())
    }

    /// Assigns a place to a new server, in maintenance. False if the backend cannot have that many
    /// places.
    pub fn begin(&self, server: ServerId, line: &Server) -> bool {
        let backend = self.backend(server.backend);
        if !backend.servers.reach(server.place(), ServerState::default) {
            return false;
        }
        self.server(server).begin(line, true);
        if is_observed(line) {
            backend.observes.store(true, Ordering::Relaxed);
        }
        backend
            .places
            .fetch_max(server.place() + 1, Ordering::AcqRel);
        true
    }

    /// Whether no request holds a slot of a server or waits for it.
    pub fn is_unused(&self, server: ServerId) -> bool {
        self.server(server).is_quiet()
    }

    /// Whether a connection to a server that may be asked over TCP too is made over QUIC now.
    pub fn uses_quic(&self, server: ServerId, now_ms: u64) -> bool {
        self.server(server).reach.uses_quic(now_ms)
    }

    /// A server has another address, of which nothing is known.
    pub fn has_moved(&self, server: ServerId) {
        self.server(server).reach.stands();
    }

    /// Such a connection over QUIC was established, or was not.
    pub fn told_of_quic(&self, server: ServerId, is_established: bool, now_ms: u64) {
        let reach = &self.server(server).reach;
        if is_established {
            reach.stands();
        } else {
            reach.failed(now_ms);
        }
    }

    /// Whether a server is in maintenance.
    pub fn is_in_maintenance(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & MAINTENANCE != 0
    }

    /// Increments the epoch of a backend: the data that workers derived from its servers is
    /// outdated.
    pub fn touch(&self, backend: ProxyId) {
        let state = self.backend(backend);
        state.order();
        state.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// The place of a server in the order in which the servers of its backend became available.
    pub fn joined(&self, server: ServerId) -> u32 {
        self.server(server).joined.load(Ordering::Relaxed)
    }

    /// The epoch of a backend, which grows with each change of one of its servers.
    #[inline]
    pub fn epoch(&self, backend: ProxyId) -> u32 {
        self.backend(backend).epoch.load(Ordering::Acquire)
    }

    /// The shared turn of a backend.
    pub fn turn(&self, backend: ProxyId) -> &Turn {
        &self.backend(backend).turn
    }

    /// The servers of a backend that released slots.
    pub fn releases(&self, backend: ProxyId) -> &Releases {
        &self.backend(backend).releases
    }

    /// Sets the state of a server for new requests: [`MAINTENANCE`], [`DRAIN`], [`DOWN`], its
    /// weight, and the effective part of it.
    pub fn set(&self, server: ServerId, flags: u32, weight: u32, share: u32) {
        let state = self.server(server);
        state.flags.store(flags, Ordering::Relaxed);
        state.weight.store(weight, Ordering::Relaxed);
        state.share.store(share, Ordering::Relaxed);
        self.touch(server.backend);
    }

    /// Sets how many requests a server may have in progress; 0 for no limit.
    pub fn set_maxconn(&self, server: ServerId, maxconn: u32) {
        let state = self.server(server);
        state.maxconn.store(maxconn, Ordering::SeqCst);
        self.touch(server.backend);
    }

    /// The current weights of servers for balancing.
    pub fn balancing_weights(&self, servers: &[ServerId]) -> BalancingWeights {
        let share = |server: ServerId| self.server(server).share.load(Ordering::Relaxed);
        let servers = || servers.iter().copied();
        if servers().all(|server| share(server) == WHOLE) {
            return BalancingWeights {
                units: 1,
                weights: servers().map(|server| self.weight(server)).collect(),
            };
        }
        let part = |server: ServerId| {
            let weight = self.weight(server) * SLOW_START_UNITS;
            (weight * share(server)).div_ceil(WHOLE)
        };
        BalancingWeights {
            units: SLOW_START_UNITS,
            weights: servers().map(part).collect(),
        }
    }

    /// A check has passed: resets the count of errors.
    pub fn forget_errors(&self, server: ServerId) {
        self.server(server).errors.store(0, Ordering::Relaxed);
    }

    /// Whether a server of a backend is observed.
    #[inline]
    pub fn observes(&self, backend: ProxyId) -> bool {
        self.backend(backend).observes.load(Ordering::Relaxed)
    }

    /// Counts an outcome of traffic with a server. Returns the number of consecutive errors if it
    /// reaches the server's limit.
    pub fn observed(&self, server: ServerId, seen: Seen) -> Option<u32> {
        let state = self.server(server);
        match state.observe.load(Ordering::Relaxed) {
            0 => None,
            observe => state.count(observe, seen),
        }
    }

    /// Whether the outcome of a request is a failure for `outlier-ejection`; none where it does not
    /// count.
    pub fn is_failure(&self, server: ServerId, seen: Seen) -> Option<bool> {
        let is_on = self.server(server).watch.is_on();
        let layer = self.backend(server.backend).layer;
        is_on.then(|| seen.is_error(layer)).flatten()
    }

    /// Counts a request that failed, or its latency in microseconds.
    pub fn judge(&self, server: ServerId, latency_us: Option<u64>, now_ms: u64) -> Option<Verdict> {
        let others = || {
            let others = self.of(server.backend).filter(|other| *other != server);
            let latencies = others.map(|other| self.server(other).watch.latencies());
            latencies.fold(Latencies::default(), Latencies::and)
        };
        self.server(server).watch.count(latency_us, now_ms, others)
    }

    /// Whether a server is ejected.
    pub fn is_ejected(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & EJECTED != 0
    }

    /// Whether a server gets one request as a probe.
    pub fn is_probed(&self, server: ServerId) -> bool {
        let state = self.server(server);
        let is_probed = state.flags.load(Ordering::Relaxed) == PROBED;
        is_probed && state.weight.load(Ordering::Relaxed) > 0
    }

    /// Whether a request may be sent to a server that is usable or probed.
    pub fn may_probe(&self, server: ServerId, now_ms: u64) -> bool {
        !self.is_probed(server) || self.server(server).watch.may_probe(now_ms)
    }

    /// Like [`Servers::may_probe`], and makes this request the probe.
    pub fn take_probe(&self, server: ServerId, now_ms: u64) -> bool {
        !self.is_probed(server) || self.server(server).watch.take_probe(now_ms)
    }

    /// Allows another probe of a server at once.
    pub fn allow_probe(&self, server: ServerId) {
        self.server(server).watch.allow_probe();
    }

    /// Whether a server is up, as far as is known.
    pub fn is_up(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & OUT == 0
    }

    /// Its current weight.
    pub fn weight(&self, server: ServerId) -> u32 {
        self.server(server).weight.load(Ordering::Relaxed)
    }

    /// Its current effective weight, which is lower while it starts slowly.
    pub fn effective_weight(&self, server: ServerId) -> u32 {
        let share = self.server(server).share.load(Ordering::Relaxed);
        (self.weight(server) * share).div_ceil(WHOLE)
    }

    /// Its configured weight.
    pub fn initial_weight(&self, server: ServerId) -> u32 {
        self.server(server).initial_weight.load(Ordering::Relaxed)
    }

    /// Its current `maxconn`; 0 for none.
    pub fn maxconn(&self, server: ServerId) -> u32 {
        self.server(server).maxconn.load(Ordering::Relaxed)
    }

    /// For each server of a backend: whether new requests may be sent to it. Backups are used only
    /// if there is no other server: the first one alone, or all of them with `option allbackups`.
    pub fn usable(&self, backend: ProxyId) -> Vec<bool> {
        self.of(backend)
            .map(|server| self.is_usable(server))
            .collect()
    }

    /// Whether new requests may be sent to a server.
    pub fn is_usable(&self, server: ServerId) -> bool {
        let backend = self.backend(server.backend);
        let state = backend.servers.at(server.place());
        if !state.takes_new() || !state.is_backup() {
            return state.takes_new();
        }
        let places = backend.places.load(Ordering::Acquire);
        let mut before = backend.servers.all().take(server.place());
        let is_active = |other: &ServerState| !other.is_backup() && other.takes_new();
        let is_backup = |other: &ServerState| other.is_backup() && other.takes_new();
        !backend.servers.all().take(places).any(is_active)
            && (backend.allbackups || !before.any(is_backup))
    }

    /// Whether requests for this server take a slot.
    #[inline]
    pub fn counts(&self, server: ServerId) -> bool {
        self.backend(server.backend).by_load || self.maxconn(server) > 0
    }

    /// How many requests a server may have in progress; 0 for no limit. With `minconn` it grows
    /// with the backend's `load` up to `fullconn` (manual §5.2 minconn).
    pub fn limit(&self, server: ServerId, load: impl FnOnce() -> u32) -> u32 {
        let state = self.server(server);
        let maxconn = state.maxconn.load(Ordering::SeqCst);
        let minconn = state.minconn.load(Ordering::Relaxed);
        if minconn == 0 || maxconn == 0 {
            return maxconn;
        }
        let (load, full) = (
            u64::from(load()),
            u64::from(self.backend(server.backend).full.max(1)),
        );
        if load >= full {
            return maxconn;
        }
        let share = (load * u64::from(maxconn) / full) as u32;
        minconn.min(maxconn).max(share)
    }

    /// Whether the limit of a server depends on the load of its backend (`minconn`).
    pub fn has_growing_limit(&self, server: ServerId) -> bool {
        self.server(server).minconn.load(Ordering::Relaxed) > 0
    }

    /// Takes one of a server's `limit` slots.
    pub fn take(&self, server: ServerId, limit: u32) -> bool {
        let held = &self.server(server).held;
        if limit == 0 {
            held.fetch_add(1, Ordering::SeqCst);
            return true;
        }
        let more = |held: u32| (held < limit).then_some(held + 1);
        held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    /// Whether one of `limit` slots is free.
    pub fn has_free(&self, server: ServerId, limit: u32) -> bool {
        limit == 0 || self.server(server).held.load(Ordering::SeqCst) < limit
    }

    /// Releases a slot.
    pub fn give(&self, server: ServerId) {
        let backend = self.backend(server.backend);
        let state = backend.servers.at(server.place());
        state.held.fetch_sub(1, Ordering::SeqCst);
        backend.releases.record(server.place());
    }

    /// Requests that hold a slot.
    #[inline]
    pub fn held(&self, server: ServerId) -> u32 {
        self.server(server).held.load(Ordering::Relaxed)
    }

    /// Requests that wait for this server only.
    pub fn waiting(&self, server: ServerId) -> u32 {
        self.server(server).waiting.load(Ordering::Relaxed)
    }

    pub(super) fn count_waiting(&self, server: ServerId, one_more: bool) {
        let waiting = &self.server(server).waiting;
        if one_more {
            waiting.fetch_add(1, Ordering::Relaxed)
        } else {
            waiting.fetch_sub(1, Ordering::Relaxed)
        };
    }

    /// Counts one more idle connection; false if there are `max` already.
    pub fn enter_pool(&self, server: ServerId, max: u32) -> bool {
        let more = |idle: u32| (idle < max).then_some(idle + 1);
        self.server(server)
            .idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Idle connections; counted where `pool-max-conn` limits them.
    pub fn idle(&self, server: ServerId) -> u32 {
        self.server(server).idle.load(Ordering::Relaxed)
    }

    /// Whether a server has as many connections as its `maxconn` allows, including idle ones. A
    /// request that is about to connect counts too. Idle connections are counted where
    /// `strict-maxconn` is set.
    pub fn is_full_of_conns(&self, server: ServerId) -> bool {
        let maxconn = self.maxconn(server);
        maxconn > 0 && self.held(server).saturating_add(self.idle(server)) > maxconn
    }

    /// Counts one idle connection less.
    pub fn leave_pool(&self, server: ServerId) {
        self.server(server).idle.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of all proxies, with servers or not.
    pub fn backends(&self) -> usize {
        self.0.len()
    }

    /// The servers of a backend, including deleted ones, which are in maintenance.
    pub fn of(&self, backend: ProxyId) -> impl ExactSizeIterator<Item = ServerId> + use<> {
        let places = self.backend(backend).places.load(Ordering::Acquire);
        (0..places).map(move |place| ServerId::at(backend, place))
    }

    /// Whether no request is in progress or waits.
    pub fn is_quiet(&self) -> bool {
        let mut servers = self.0.iter().flat_map(|backend| backend.servers.all());
        servers.all(ServerState::is_quiet)
    }
}

fn is_observed(line: &Server) -> bool {
    line.checks.observe != Observe::Nothing || line.checks.ejection.is_some()
}

impl BackendState {
    fn new(proxy: &Proxy, full: u32) -> BackendState {
        let state = BackendState {
            epoch: AtomicU32::new(0),
            layer: match proxy.mode {
                Mode::Http => Observe::Layer7,
                Mode::Tcp | Mode::Log => Observe::Layer4,
            },
            observes: AtomicBool::new(proxy.servers.iter().any(|line| is_observed(line))),
            servers: Grow::new(
                proxy
                    .servers
                    .iter()
                    .map(|line| ServerState::new(line))
                    .collect(),
            ),
            places: AtomicUsize::new(proxy.servers.len()),
            allbackups: proxy.options.allbackups,
            full,
            by_load: proxy.hash_balance_factor > 0 || proxy.balance.facts().uses_load,
            last_joined: matches!(proxy.balance, Balance::Sticky).then(AtomicU32::default),
            turn: Turn::default(),
            releases: Releases::default(),
        };
        state.order();
        state
    }

    /// Updates the order in which servers became available.
    fn order(&self) {
        if let Some(last) = &self.last_joined {
            for place in 0..self.places.load(Ordering::Acquire) {
                self.servers.at(place).join(last);
            }
        }
    }
}
