//! The state of servers: what they are told and found to be, their weights and limits, and who works on them.
//!
//! It begins as configured and is changed while traffic runs; nobody reads it from the configuration. Each change moves the
//! epoch of its backend on: workers compare, and build anew what they derived from it.

use std::sync::atomic::{AtomicU32, Ordering};

use config::model::{Balance, Config, Proxy};

use super::turns::Turn;
use crate::ids::{ProxyId, ServerId};

/// A change of a server's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// In maintenance: it gets nothing.
    Maintenance(bool),
    /// Draining: it gets only what is bound to it.
    Drain(bool),
    /// Found to be down.
    Down(bool),
    /// Its weight, from 0 to 256.
    Weight(u32),
    /// Requests at a time; 0 for any number.
    Maxconn(u32),
}

const MAINTENANCE: u32 = 1;
const DRAIN: u32 = 2;
const DOWN: u32 = 4;

/// A server. In cache lines of its own: requests write here.
#[derive(Debug)]
#[repr(align(128))]
struct ServerState {
    /// [`MAINTENANCE`], [`DRAIN`], [`DOWN`].
    flags: AtomicU32,
    weight: AtomicU32,
    initial_weight: u32,
    backup: bool,
    maxconn: AtomicU32,
    minconn: u32,
    /// Requests that hold a slot; counted where there is a limit, or the algorithm asks for the load.
    held: AtomicU32,
    /// Requests that wait for this server only.
    waiting: AtomicU32,
    /// Idle connections of all workers; counted where `pool-max-conn` limits them.
    idle: AtomicU32,
}

impl ServerState {
    fn takes_new(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0 && self.weight.load(Ordering::Relaxed) > 0
    }
}

/// The servers of a backend.
#[derive(Debug)]
struct BackendState {
    epoch: AtomicU32,
    servers: Box<[ServerState]>,
    allbackups: bool,
    /// The load at which servers with a `minconn` reach their `maxconn`.
    full: u32,
    /// The algorithm goes by the load.
    by_load: bool,
    turn: Turn,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Servers(Vec<BackendState>);

impl Servers {
    /// As configured. `full`: by proxy, its `fullconn`.
    pub fn new(config: &Config, full: &[u32]) -> Servers {
        let proxies = config.proxies.iter().zip(full);
        Servers(
            proxies
                .map(|(proxy, full)| BackendState::new(proxy, *full))
                .collect(),
        )
    }

    fn backend(&self, backend: ProxyId) -> &BackendState {
        &self.0[backend.place()]
    }

    fn server(&self, server: ServerId) -> &ServerState {
        &self.backend(server.backend).servers[server.place()]
    }

    /// Grows with each change of one of a backend's servers.
    #[inline]
    pub fn epoch(&self, backend: ProxyId) -> u32 {
        self.backend(backend).epoch.load(Ordering::Acquire)
    }

    /// Whose turn it is in a backend.
    pub fn turn(&self, backend: ProxyId) -> &Turn {
        &self.backend(backend).turn
    }

    /// Changes a server.
    pub fn change(&self, server: ServerId, change: ServerChange) {
        let state = self.server(server);
        let flag = |flag: u32, on: bool| {
            match on {
                true => state.flags.fetch_or(flag, Ordering::Relaxed),
                false => state.flags.fetch_and(!flag, Ordering::Relaxed),
            };
        };
        match change {
            ServerChange::Maintenance(on) => flag(MAINTENANCE, on),
            ServerChange::Drain(on) => flag(DRAIN, on),
            ServerChange::Down(on) => flag(DOWN, on),
            ServerChange::Weight(weight) => state.weight.store(weight, Ordering::Relaxed),
            ServerChange::Maxconn(maxconn) => state.maxconn.store(maxconn, Ordering::SeqCst),
        }
        let epoch = &self.backend(server.backend).epoch;
        epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it answers, as far as is known.
    pub fn is_up(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & (MAINTENANCE | DOWN) == 0
    }

    /// Whether it is in maintenance.
    pub fn is_in_maintenance(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & MAINTENANCE != 0
    }

    /// Whether it only gets what is bound to it.
    pub fn is_draining(&self, server: ServerId) -> bool {
        self.server(server).flags.load(Ordering::Relaxed) & DRAIN != 0
    }

    /// Whether it is up and has a weight; of a backup, whether or not it is its turn.
    pub fn takes_new(&self, server: ServerId) -> bool {
        self.server(server).takes_new()
    }

    /// Its weight now.
    pub fn weight(&self, server: ServerId) -> u32 {
        self.server(server).weight.load(Ordering::Relaxed)
    }

    /// Its weight as configured.
    pub fn initial_weight(&self, server: ServerId) -> u32 {
        self.server(server).initial_weight
    }

    /// Its `maxconn` now; 0 for none.
    pub fn maxconn(&self, server: ServerId) -> u32 {
        self.server(server).maxconn.load(Ordering::Relaxed)
    }

    /// By server of a backend: whether new requests go there. Backups only where there is no other, and of those the first
    /// alone, unless `option allbackups` takes them all.
    pub fn usable(&self, backend: ProxyId) -> Vec<bool> {
        self.of(backend)
            .map(|server| self.is_usable(server))
            .collect()
    }

    /// Whether new requests go to a server.
    pub fn is_usable(&self, server: ServerId) -> bool {
        let backend = self.backend(server.backend);
        let state = &backend.servers[server.place()];
        if !state.takes_new() || !state.backup {
            return state.takes_new();
        }
        let before = &backend.servers[..server.place()];
        let is_active = |other: &ServerState| !other.backup && other.takes_new();
        let is_backup = |other: &ServerState| other.backup && other.takes_new();
        !backend.servers.iter().any(is_active)
            && (backend.allbackups || !before.iter().any(is_backup))
    }

    /// Whether requests for this server take a slot.
    #[inline]
    pub fn counts(&self, server: ServerId) -> bool {
        self.backend(server.backend).by_load || self.maxconn(server) > 0
    }

    /// How many requests a server may work on now; 0 is any number. With `minconn` it grows with the backend's `load` until
    /// `fullconn` (manual §5.2 minconn).
    pub fn limit(&self, server: ServerId, load: impl FnOnce() -> u32) -> u32 {
        let state = self.server(server);
        let maxconn = state.maxconn.load(Ordering::SeqCst);
        if state.minconn == 0 || maxconn == 0 {
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
        state.minconn.min(maxconn).max(share)
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

    /// Gives a slot back.
    pub fn give(&self, server: ServerId) {
        self.server(server).held.fetch_sub(1, Ordering::SeqCst);
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
        match one_more {
            true => waiting.fetch_add(1, Ordering::Relaxed),
            false => waiting.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// Counts one more idle connection, unless there are `max` already.
    pub fn enter_pool(&self, server: ServerId, max: u32) -> bool {
        let more = |idle: u32| (idle < max).then_some(idle + 1);
        self.server(server)
            .idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Counts one less.
    pub fn leave_pool(&self, server: ServerId) {
        self.server(server).idle.fetch_sub(1, Ordering::Relaxed);
    }

    /// All proxies, with servers or not.
    pub fn backends(&self) -> usize {
        self.0.len()
    }

    /// The servers of a backend.
    pub fn of(&self, backend: ProxyId) -> impl Iterator<Item = ServerId> + use<> {
        let count = self.backend(backend).servers.len();
        (0..count).map(move |place| ServerId::at(backend, place))
    }

    /// Whether nobody works or waits anywhere.
    pub fn is_quiet(&self) -> bool {
        let mut servers = self.0.iter().flat_map(|backend| &backend.servers);
        let is_zero = |cell: &AtomicU32| cell.load(Ordering::Relaxed) == 0;
        servers.all(|server| is_zero(&server.held) && is_zero(&server.waiting))
    }
}

impl BackendState {
    fn new(proxy: &Proxy, full: u32) -> BackendState {
        let state = |line: &config::model::Server| ServerState {
            flags: AtomicU32::new(if line.disabled { MAINTENANCE } else { 0 }),
            weight: AtomicU32::new(line.weight),
            initial_weight: line.weight,
            backup: line.backup,
            maxconn: AtomicU32::new(line.maxconn),
            minconn: line.minconn,
            held: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            idle: AtomicU32::new(0),
        };
        BackendState {
            epoch: AtomicU32::new(0),
            servers: proxy.servers.iter().map(state).collect(),
            allbackups: proxy.options.allbackups,
            full,
            by_load: matches!(proxy.balance, Balance::LeastConn | Balance::Random { .. }),
            turn: Turn::default(),
        }
    }
}
