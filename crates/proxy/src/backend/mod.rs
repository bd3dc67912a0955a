//! Backends from one worker's view: the choice of a server for a request, and idle connections.

pub(crate) mod balance;
mod pool;

use config::model::HashAffinity;
use http::Head;
use sample::Session;

use crate::evaluation::Ambient;
use crate::ids::{ConnId, ProxyId, ServerId};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{BalancingWeights, ServerTables, Shared};
use crate::stream::Stream;
pub(crate) use balance::Observed;
use balance::{Balance, Beginning, Candidates};
use pool::Pool;
pub(crate) use pool::{Keep, Wanted, proven_only};

/// One worker's state of its backends.
#[derive(Debug)]
pub(crate) struct Backends(Vec<Backend>);

/// One worker's state of a backend: data derived from the state of its servers, and idle
/// connections.
#[derive(Debug)]
struct Backend {
    /// The epoch of the derived data.
    epoch: u32,
    balance: Box<dyn Balance>,
    /// A request with a key waits for its server when that is full.
    sticks: bool,
    usable: Vec<bool>,
    /// The places of the first and the last usable server.
    usable_ends: Option<[usize; 2]>,
    /// Whether a usable server may only be probed.
    probes: bool,
    weights: Vec<u32>,
    /// By server.
    idle: Vec<Pool>,
    /// By server: connections that take streams of many clients.
    shared: Vec<Vec<ConnId>>,
}

/// The inputs of a choice: the configuration, the servers and the worker.
pub(crate) struct View<'a> {
    pub runtime_config: &'a RuntimeConfig,
    pub servers: &'a ServerTables,
    pub ambient: &'a Ambient,
}

/// A server for a request, and whether one of its slots was taken for it. Whether requests need
/// slots may change at any time (`set maxconn server`), so this is decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub server: ServerId,
    pub has_slot: bool,
}

impl Placement {
    /// Places a request on a server, with a slot where requests for it need one. None where all its
    /// slots are taken.
    #[inline]
    pub fn of(shared: &Shared, server: ServerId) -> Option<Placement> {
        let has_slot = shared.servers.counts(server);
        (!has_slot || shared.take_slot(server)).then_some(Placement { server, has_slot })
    }
}

/// The result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This server.
    Server(Placement),
    /// All servers are full, or the one that the request is bound to.
    Full(Option<ServerId>),
    /// The server that the request is bound to is full, and so is its queue (`maxqueue`).
    QueueFull,
    /// No server is usable.
    Nobody,
}

impl Backends {
    pub fn new(view: &View<'_>) -> Backends {
        let backend = |place: usize| {
            let id = ProxyId::at(place);
            let places = view.servers.places(id);
            Backend {
                idle: vec![Pool::default(); places],
                shared: vec![Vec::new(); places],
                ..Backend::derive(view, id)
            }
        };
        let proxies = view.runtime_config.config.proxies.len();
        Backends((0..proxies).map(backend).collect())
    }

    /// The server tables have changed: updates the derived data.
    pub fn servers_changed(&mut self, view: &View<'_>) {
        for (place, backend) in self.0.iter_mut().enumerate() {
            let id = ProxyId::at(place);
            let places = view.servers.places(id);
            if places > backend.idle.len() {
                backend.idle.resize(places, Pool::default());
                backend.shared.resize(places, Vec::new());
                backend.follow(view, id);
            }
        }
    }

    /// The worker goes on with another configuration: derives all data again, and keeps the
    /// connections.
    pub fn renew(&mut self, view: &View<'_>) {
        let before = std::mem::replace(self, Backends::new(view));
        for (backend, mut before) in self.0.iter_mut().zip(before.0) {
            let pools = backend.idle.iter_mut().zip(before.idle);
            pools.for_each(|(now, before)| *now = before);
            let lists = backend.shared.iter_mut().zip(before.shared);
            lists.for_each(|(now, before)| *now = before);
            backend.balance.inherit(before.balance.learnt());
        }
    }

    /// A backend with its derived data up to date.
    #[inline]
    fn current(&mut self, view: &View<'_>, backend: ProxyId) -> &mut Backend {
        let state = &mut self.0[backend.place()];
        if state.epoch != view.ambient.shared.servers.epoch(backend) {
            state.follow(view, backend);
        }
        state
    }

    /// Whether new requests go to a server.
    pub fn is_usable(&mut self, view: &View<'_>, server: ServerId) -> bool {
        let backend = self.current(view, server.backend);
        let is_probed = backend.probes && view.ambient.shared.servers.is_probed(server);
        backend.usable[server.place()] && !is_probed
    }

    /// Whether a backend has a usable server other than this one.
    pub fn has_others(&mut self, view: &View<'_>, backend: ProxyId, but: Option<ServerId>) -> bool {
        let but = but.filter(|but| but.backend == backend);
        self.current(view, backend)
            .has_usable_but(but.map(ServerId::place))
    }

    /// Whether requests with a key wait for their server when that is full.
    pub fn sticks(&self, backend: ProxyId) -> bool {
        self.0[backend.place()].sticks
    }

    /// A server has responded or failed.
    pub fn observe(&mut self, server: ServerId, observed: Observed) {
        let balance = &mut self.0[server.backend.place()].balance;
        balance.observe(server.place(), observed);
    }

    /// Chooses a server for a request and takes one of its slots. `key`: the hash of the request's
    /// key.
    #[inline]
    pub fn choose(
        &mut self,
        view: &View<'_>,
        place: ProxyId,
        avoid: Option<ServerId>,
        key: Option<u32>,
        now_ns: u64,
    ) -> Choice {
        let (ambient, shared) = (view.ambient, &view.ambient.shared);
        let backend = self.current(view, place);
        if let Some(server) = backend.only_server(place, key)
            && let Some(placement) = Placement::of(shared, server)
        {
            return Choice::Server(placement);
        }
        let sticks = key.is_some() && backend.sticks;
        let server = |index: usize| ServerId::at(place, index);
        let (probes, now_ms) = (backend.probes, now_ns / 1_000_000);
        let is_usable = |index: usize| {
            backend.usable[index] && (!probes || shared.servers.may_probe(server(index), now_ms))
        };
        let has_others = |avoid: ServerId| {
            if probes {
                (0..backend.usable.len()).any(|index| is_usable(index) && index != avoid.place())
            } else {
                backend.has_usable_but(Some(avoid.place()))
            }
        };
        let avoid = avoid.filter(|avoid| has_others(*avoid));
        let is_candidate = |index: usize| is_usable(index) && avoid != Some(server(index));
        let has_slot = |index: usize| {
            shared.servers.maxconn(server(index)) == 0 || shared.has_slot(server(index))
        };
        let may = |index: usize| is_candidate(index) && (sticks || has_slot(index));
        let stays_out = |index: usize| {
            let has_fixed_limit = !shared.servers.has_growing_limit(server(index));
            !backend.usable[index] || (has_fixed_limit && !has_slot(index))
        };
        let load = |index: usize| shared.servers.held(server(index));
        let candidates = Candidates {
            id: &|index| view.servers.at(server(index)).id,
            weights: &backend.weights,
            joined: &|index| shared.servers.joined(server(index)),
            may: &may,
            stays_out: &stays_out,
            load: &load,
            is_full: &|index| is_full(view, server(index)),
            now_ns,
            turn: shared.servers.turn(place),
            releases: shared.servers.releases(place),
        };
        loop {
            let picked = backend
                .balance
                .pick(&candidates, key, &mut || ambient.random());
            let Some(index) = picked else {
                let has_candidate = if probes {
                    (0..backend.usable.len()).any(is_candidate)
                } else {
                    backend.has_usable_but(avoid.map(ServerId::place))
                };
                return if has_candidate {
                    Choice::Full(None)
                } else {
                    Choice::Nobody
                };
            };
            let server = server(index);
            if let Some(placement) = Placement::of(shared, server) {
                if !probes || shared.servers.take_probe(server, now_ms) {
                    return Choice::Server(placement);
                }
                // Another worker is probing it.
                if placement.has_slot {
                    shared.servers.give(server);
                }
                continue;
            }
            if sticks {
                let most = view.servers.at(server).maxqueue;
                return if most > 0 && shared.servers.waiting(server) >= most {
                    Choice::QueueFull
                } else {
                    Choice::Full(Some(server))
                };
            }
            // Another worker took the slot meanwhile: choose again.
        }
    }
}

impl Backend {
    /// Derives a backend from the current state of its servers, without idle connections.
    fn derive(view: &View<'_>, backend: ProxyId) -> Backend {
        let servers = &view.ambient.shared.servers;
        let epoch = servers.epoch(backend);
        // Places that the worker's tables do not have yet come with the next tables.
        let places = || (0..view.servers.places(backend)).map(|place| ServerId::at(backend, place));
        let probes = places().any(|server| servers.is_probed(server));
        let usable: Vec<bool> = places()
            .map(|server| servers.is_usable(server) || (probes && servers.is_probed(server)))
            .collect();
        let is_usable = |usable: &bool| *usable;
        let first = usable.iter().position(is_usable);
        let last = usable.iter().rposition(is_usable);
        let usable_ends = first.zip(last).map(|(first, last)| [first, last]);
        let proxy = view.runtime_config.proxy(backend);
        let BalancingWeights { units, weights } =
            servers.balancing_weights(&places().collect::<Vec<_>>());
        let worker = view.ambient.worker.0 as usize;
        Backend {
            epoch,
            balance: balance::new(&Beginning {
                proxy,
                weights: &weights,
                weight_units: units,
                usable: &usable,
                ring_key: &|place| {
                    let record = view.servers.at(ServerId::at(backend, place));
                    balance::ring_key(record, &record.address)
                },
                worker,
            }),
            sticks: proxy.balance.facts().is_keyed,
            usable_ends,
            usable,
            probes,
            weights,
            idle: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// The server of a backend with only one, if it is usable: every algorithm chooses it for a
    /// request without a key.
    #[inline]
    fn only_server(&self, id: ProxyId, key: Option<u32>) -> Option<ServerId> {
        let [true] = self.usable[..] else { return None };
        let is_chosen = key.is_none() && !self.probes && self.weights[0] > 0;
        is_chosen.then(|| ServerId::at(id, 0))
    }

    /// Whether it has a usable or probed server other than this one.
    fn has_usable_but(&self, but: Option<usize>) -> bool {
        self.usable_ends
            .is_some_and(|ends| ends.iter().any(|place| Some(*place) != but))
    }

    #[cold]
    fn follow(&mut self, view: &View<'_>, backend: ProxyId) {
        let learnt = self.balance.learnt();
        let idle = std::mem::take(&mut self.idle);
        let shared = std::mem::take(&mut self.shared);
        *self = Backend {
            idle,
            shared,
            ..Backend::derive(view, backend)
        };
        self.balance.inherit(learnt);
    }
}

/// Whether hashing skips a server (manual §4.2 hash-preserve-affinity).
fn is_full(view: &View<'_>, server: ServerId) -> bool {
    let shared = &view.ambient.shared;
    if shared.servers.maxconn(server) == 0 {
        return false;
    }
    match view.runtime_config.proxy(server.backend).hash_affinity {
        HashAffinity::Always => false,
        HashAffinity::Maxconn => !shared.has_slot(server),
        HashAffinity::Maxqueue => {
            let most = view.servers.at(server).maxqueue;
            let waiting = shared.servers.waiting(server);
            most > 0 && !shared.has_slot(server) && waiting >= most
        }
    }
}

/// The hash of a request's key.
pub(crate) fn hash_key(
    runtime_config: &RuntimeConfig,
    stream: &Stream,
    session: &Session,
    expression: impl FnOnce(&sample::Expr, &mut Vec<u8>) -> bool,
) -> Option<u32> {
    let proxy = runtime_config.proxy(stream.backend);
    let request: Option<&Head> = stream.has_request().then_some(&stream.request);
    let body = &stream.up.waiting;
    balance::key(proxy, session, &stream.txn, request, body, expression)
}
