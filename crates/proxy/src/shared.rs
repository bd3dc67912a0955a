//! What the workers share: counters that one worker writes and all read, and the slots of servers with a `maxconn`.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::rates::{Meter, Reading};
use crate::running::Running;

/// See the module. Everything is atomic; nothing is locked.
#[derive(Debug)]
pub struct Shared {
    workers: Vec<Counters>,
    /// By backend and server: requests that hold one of the server's `maxconn` slots, all workers together.
    slots: Vec<Vec<AtomicU32>>,
    /// By backend and server: requests that wait for that server only.
    queues: Vec<Vec<AtomicU32>>,
    /// By backend: whose turn it is in a round robin of equals.
    turns: Vec<Turn>,
    /// Requests that wait for a slot anywhere.
    waiting: AtomicU32,
    /// Listeners that do not accept because a `maxconn` is reached, all workers together.
    full_listeners: AtomicU32,
    /// Streams since the start, all workers together: the source of [`sample::Txn::id`].
    streams: AtomicU64,
    /// Bytes of all variables; kept only where `tune.vars` limits them for the process.
    var_bytes: AtomicUsize,
}

/// A turn that all workers take together. A line of the cache of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    /// Whose it is.
    pub fn get(&self) -> usize {
        self.0.load(Relaxed) as usize
    }

    /// Passes it on. False when another worker was faster: whose it is now must be looked at again.
    pub fn pass(&self, from: usize, to: usize) -> bool {
        let exchange = self
            .0
            .compare_exchange(from as u32, to as u32, Relaxed, Relaxed);
        exchange.is_ok()
    }
}

/// One worker's counts; only it writes them. A line of the cache of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Counters {
    process: AtomicU32,
    frontends: Vec<AtomicU32>,
    backends: Vec<AtomicU32>,
    servers: Vec<Vec<AtomicU32>>,
    binds: Vec<Vec<AtomicU32>>,
    queued: Vec<AtomicU32>,
    logged: Vec<AtomicU32>,
    connection_rate: Meter,
    session_rate: Meter,
    /// By proxy.
    rates: Vec<ProxyRates>,
}

/// What is measured of a proxy, by one worker.
#[derive(Debug)]
struct ProxyRates {
    sessions: Meter,
    requests: Meter,
    streams: Meter,
    servers: Vec<Meter>,
}

/// What is measured over the last second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Connections of a frontend.
    Sessions(usize),
    /// HTTP requests of a frontend.
    Requests(usize),
    /// Streams that a backend was given.
    Streams(usize),
    /// Streams that a server was given.
    Server(usize, usize),
    /// Connections of all frontends; measured where one of the rates is limited.
    ProcessConnections,
    /// Likewise, those that became sessions.
    ProcessSessions,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Process,
    Frontend(usize),
    Backend(usize),
    Server(usize, usize),
    Bind(usize, usize),
    /// Requests in a backend's queue.
    Queued(usize),
    /// Log lines of a frontend, from the start.
    Logged(usize),
}

fn zeros(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

impl Shared {
    /// Whose turn it is in a backend.
    pub(crate) fn turn(&self, backend: usize) -> &Turn {
        &self.turns[backend]
    }

    /// Counters for these workers of this configuration, all zero.
    #[must_use]
    pub fn new(running: &Running, workers: usize) -> Self {
        let proxies = &running.config.proxies;
        let counters = || Counters {
            process: AtomicU32::new(0),
            frontends: zeros(proxies.len()),
            backends: zeros(proxies.len()),
            servers: proxies
                .iter()
                .map(|proxy| zeros(proxy.servers.len()))
                .collect(),
            binds: proxies
                .iter()
                .map(|proxy| zeros(proxy.binds.len()))
                .collect(),
            queued: zeros(proxies.len()),
            logged: zeros(proxies.len()),
            connection_rate: Meter::default(),
            session_rate: Meter::default(),
            rates: proxies
                .iter()
                .map(|proxy| ProxyRates {
                    sessions: Meter::default(),
                    requests: Meter::default(),
                    streams: Meter::default(),
                    servers: proxy.servers.iter().map(|_| Meter::default()).collect(),
                })
                .collect(),
        };
        Shared {
            workers: (0..workers).map(|_| counters()).collect(),
            slots: proxies
                .iter()
                .map(|proxy| zeros(proxy.servers.len()))
                .collect(),
            queues: proxies
                .iter()
                .map(|proxy| zeros(proxy.servers.len()))
                .collect(),
            turns: proxies.iter().map(|_| Turn::default()).collect(),
            waiting: AtomicU32::new(0),
            full_listeners: AtomicU32::new(0),
            streams: AtomicU64::new(0),
            var_bytes: AtomicUsize::new(0),
        }
    }

    fn cell(&self, worker: usize, what: Count) -> &AtomicU32 {
        let counters = &self.workers[worker];
        match what {
            Count::Process => &counters.process,
            Count::Frontend(proxy) => &counters.frontends[proxy],
            Count::Backend(proxy) => &counters.backends[proxy],
            Count::Server(proxy, server) => &counters.servers[proxy][server],
            Count::Bind(proxy, bind) => &counters.binds[proxy][bind],
            Count::Queued(proxy) => &counters.queued[proxy],
            Count::Logged(proxy) => &counters.logged[proxy],
        }
    }

    pub(crate) fn add(&self, worker: usize, what: Count) {
        let cell = self.cell(worker, what);
        // One writer: a load and a store, no locked instruction.
        cell.store(cell.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(crate) fn sub(&self, worker: usize, what: Count) {
        let cell = self.cell(worker, what);
        debug_assert!(cell.load(Relaxed) > 0, "{what:?} below zero");
        cell.store(cell.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// The sum over the workers.
    pub(crate) fn count(&self, what: Count) -> u32 {
        (0..self.workers.len()).fold(0, |sum, worker| {
            sum.wrapping_add(self.cell(worker, what).load(Relaxed))
        })
    }

    #[inline(always)]
    fn meter(&self, worker: usize, what: Pace) -> &Meter {
        let counters = &self.workers[worker];
        let rates = &counters.rates;
        match what {
            Pace::ProcessConnections => &counters.connection_rate,
            Pace::ProcessSessions => &counters.session_rate,
            Pace::Sessions(proxy) => &rates[proxy].sessions,
            Pace::Requests(proxy) => &rates[proxy].requests,
            Pace::Streams(proxy) => &rates[proxy].streams,
            Pace::Server(proxy, server) => &rates[proxy].servers[server],
        }
    }

    /// One event of a rate.
    #[inline(always)]
    pub(crate) fn mark(&self, worker: usize, what: Pace, now_ms: u64) {
        self.meter(worker, what).count(now_ms);
    }

    /// Events of the last second, all workers together.
    pub(crate) fn rate(&self, what: Pace, now_ms: u64) -> u32 {
        let mut sum = Reading::default();
        for worker in 0..self.workers.len() {
            self.meter(worker, what).read(now_ms, &mut sum);
        }
        sum.per_second()
    }

    /// Connections that a proxy took as a frontend, and streams that it was given as a backend, since the start.
    #[must_use]
    pub fn cumulated(&self, proxy: usize) -> (u64, u64) {
        self.workers.iter().fold((0, 0), |(front, back), worker| {
            let rates = &worker.rates[proxy];
            (front + rates.sessions.total(), back + rates.streams.total())
        })
    }

    /// One worker's part of a count.
    pub(crate) fn own_count(&self, worker: usize, what: Count) -> u32 {
        self.cell(worker, what).load(Relaxed)
    }

    /// Takes one of a server's `max` slots.
    pub(crate) fn take_slot(&self, backend: usize, server: usize, max: u32) -> bool {
        let cell = &self.slots[backend][server];
        cell.fetch_update(Relaxed, Relaxed, |held| (held < max).then_some(held + 1))
            .is_ok()
    }

    pub(crate) fn slot_is_free(&self, backend: usize, server: usize, max: u32) -> bool {
        self.slots[backend][server].load(Relaxed) < max
    }

    pub(crate) fn give_slot(&self, backend: usize, server: usize) {
        self.slots[backend][server].fetch_sub(1, Relaxed);
    }

    /// Requests that wait for this server only.
    pub(crate) fn queued_for(&self, backend: usize, server: usize) -> u32 {
        self.queues[backend][server].load(Relaxed)
    }

    pub(crate) fn queue_for(&self, backend: usize, server: usize) {
        self.queues[backend][server].fetch_add(1, Relaxed);
    }

    pub(crate) fn unqueue_for(&self, backend: usize, server: usize) {
        self.queues[backend][server].fetch_sub(1, Relaxed);
    }

    pub(crate) fn waiting_add(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(crate) fn waiting_sub(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub(crate) fn listener_is_full(&self) {
        self.full_listeners.fetch_add(1, Relaxed);
    }

    pub(crate) fn listener_has_room(&self) {
        self.full_listeners.fetch_sub(1, Relaxed);
    }

    pub(crate) fn any_listener_is_full(&self) -> bool {
        self.full_listeners.load(Relaxed) > 0
    }

    pub(crate) fn anyone_waits(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// A block of stream numbers for one worker, so that a stream costs no shared write.
    pub(crate) fn stream_ids(&self, block: u64) -> u64 {
        self.streams.fetch_add(block, Relaxed)
    }

    /// Variables took `before` bytes and take `after` now.
    pub(crate) fn var_bytes_change(&self, before: usize, after: usize) {
        self.var_bytes
            .fetch_add(after.wrapping_sub(before), Relaxed);
    }

    pub(crate) fn var_bytes(&self) -> usize {
        self.var_bytes.load(Relaxed)
    }

    /// Whether every count is back at zero: nothing leaked.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let zero = |cells: &[AtomicU32]| cells.iter().all(|cell| cell.load(Relaxed) == 0);
        let worker_is_quiet = |counters: &Counters| {
            counters.process.load(Relaxed) == 0
                && zero(&counters.frontends)
                && zero(&counters.backends)
                && zero(&counters.queued)
                && counters
                    .servers
                    .iter()
                    .chain(&counters.binds)
                    .all(|cells| zero(cells))
        };
        self.workers.iter().all(worker_is_quiet)
            && self
                .slots
                .iter()
                .chain(&self.queues)
                .all(|cells| zero(cells))
            && self.waiting.load(Relaxed) == 0
    }
}
