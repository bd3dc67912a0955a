//! Counts and rates: each worker writes its own, all threads read them.
//!
//! The cells of one worker are in cache lines of their own. So counting costs a load and a store,
//! and invalidates no other worker's cache.
//!
//! A server has a number among all servers ([`Places::server`]). Servers that are added at run time
//! have the highest numbers, and [`Counts::add_server`] makes room for them. So the cells of
//! servers are behind all others.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use config::model::Config;
use net::WorkerId;

use super::grow::Grow;
use super::rates::{Meter, Reading};
use super::succession::Succession;
use crate::ids::{BindId, ProxyId, ServerId};

/// The objects of counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Client connections of a frontend.
    Frontend(ProxyId),
    /// Streams of a backend.
    Backend(ProxyId),
    /// Streams of a server.
    Server(ServerId),
    /// Connections to a server, idle ones included.
    Connections(ServerId),
    /// Idle connections to a server that any client and any worker may use.
    Idle(ServerId),
    /// Client connections of a bind line.
    Bind(BindId),
    /// Log lines of a frontend, since the start.
    Logged(ProxyId),
}

/// The events of rates, measured over the last second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Connections that a frontend accepted.
    Connections(ProxyId),
    /// Those of them that passed the connection rules.
    Sessions(ProxyId),
    /// HTTP requests of a frontend.
    Requests(ProxyId),
    /// Streams of a backend.
    Streams(ProxyId),
    /// Streams of a server.
    Server(ServerId),
    /// Connections of all frontends.
    ProcessConnections,
    /// Sessions of all frontends: connections that passed the connection rules.
    ProcessSessions,
    /// TLS connections of clients.
    TlsClients,
    /// Full handshakes with clients, which create new keys.
    TlsClientKeys,
    /// Full handshakes with servers.
    TlsServerKeys,
}

/// A cache line, and the adjacent one that the processor prefetches.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T, const N: usize>([T; N]);

impl<T: Default, const N: usize> Default for Line<T, N> {
    fn default() -> Self {
        Line(std::array::from_fn(|_| T::default()))
    }
}

/// Cells in cache lines that hold nothing else.
#[derive(Debug)]
struct Cells<T, const N: usize>(Grow<Line<T, N>>);

impl<T: Default, const N: usize> Cells<T, N> {
    fn new(count: usize) -> Self {
        let lines = (0..count.div_ceil(N)).map(|_| Line::default());
        Cells(Grow::new(lines.collect()))
    }

    /// Makes room for a cell at a place.
    fn reach(&self, place: usize) -> bool {
        self.0.reach(place / N, Line::default)
    }

    #[inline(always)]
    fn get(&self, place: usize) -> &T {
        &self.0.at(place / N).0[place % N]
    }

    fn all(&self) -> impl Iterator<Item = &T> {
        self.0.all().flat_map(|line| &line.0)
    }
}

/// The current count, and the highest count so far.
#[derive(Debug, Default)]
struct Gauge {
    now: AtomicU32,
    most: AtomicU32,
}

/// One worker's counts and rates.
#[derive(Debug)]
struct Own {
    counts: Cells<Gauge, 16>,
    meters: Cells<Meter, 8>,
}

/// The counts and rates of all workers.
#[derive(Debug)]
pub(super) struct Counts {
    workers: Vec<Own>,
    /// By count: the highest total of all workers together.
    most: Grow<AtomicU32>,
    /// By meter: the most events within a second.
    peaks: Grow<AtomicU32>,
    /// When peaks were last cleared, monotonic milliseconds: seconds that began before are ignored.
    cleared_ms: AtomicU64,
    places: Places,
}

/// The places of counts and meters.
#[derive(Debug)]
struct Places {
    proxies: usize,
    /// By proxy: the numbers of its configured servers.
    configured: Vec<Configured>,
    /// By proxy: the number of bind lines of the proxies before it.
    binds_before: Vec<u32>,
    servers: usize,
    binds: usize,
    /// By proxy: the numbers of its added servers.
    added: Vec<Grow<AtomicU32>>,
    /// The number of assigned numbers.
    numbers: AtomicU32,
}

/// The numbers of a proxy's configured servers.
#[derive(Clone, Copy, Debug)]
struct Configured {
    first: u32,
    count: u32,
}

const COUNTS_OF_A_PROXY: usize = 3;
const COUNTS_OF_A_SERVER: usize = 3;
const METERS_OF_THE_PROCESS: usize = 5;
const METERS_OF_A_PROXY: usize = 4;
const NO_NUMBER: u32 = u32::MAX;

impl Places {
    fn new(config: &Config) -> Places {
        let mut places = Places {
            proxies: config.proxies.len(),
            configured: Vec::new(),
            binds_before: Vec::new(),
            servers: 0,
            binds: 0,
            added: Vec::new(),
            numbers: AtomicU32::new(0),
        };
        for proxy in &config.proxies {
            places.configured.push(Configured {
                first: places.servers as u32,
                count: proxy.servers.len() as u32,
            });
            places.binds_before.push(places.binds as u32);
            places.servers += proxy.servers.len();
            places.binds += proxy.binds.len();
            places.added.push(Grow::new(Box::default()));
        }
        places.numbers = AtomicU32::new(places.servers as u32);
        places
    }

    /// A server's number among all servers.
    #[inline(always)]
    fn server(&self, server: ServerId) -> usize {
        let configured = self.configured[server.backend.place()];
        if server.place() < configured.count as usize {
            configured.first as usize + server.place()
        } else {
            self.added(server)
        }
    }

    #[cold]
    #[inline(never)]
    fn added(&self, server: ServerId) -> usize {
        let backend = server.backend.place();
        let place = server.place() - self.configured[backend].count as usize;
        self.added[backend].at(place).load(Relaxed) as usize
    }

    /// Assigns a number to a server at a new place. None if there are no more places.
    fn add(&self, server: ServerId) -> Option<usize> {
        let backend = server.backend.place();
        let added = server
            .place()
            .checked_sub(self.configured[backend].count as usize)?;
        let numbers = &self.added[backend];
        if !numbers.reach(added, || AtomicU32::new(NO_NUMBER)) {
            return None;
        }
        let number = numbers.at(added);
        if number.load(Relaxed) == NO_NUMBER {
            number.store(self.numbers.fetch_add(1, Relaxed), Relaxed);
        }
        Some(number.load(Relaxed) as usize)
    }

    fn counts(&self) -> usize {
        COUNTS_OF_A_PROXY * self.proxies + self.binds + COUNTS_OF_A_SERVER * self.servers
    }

    // Inlined, because callers know the kind at compile time.
    #[inline(always)]
    fn count(&self, what: Count) -> usize {
        let of_proxies = COUNTS_OF_A_PROXY * self.proxies;
        let of_servers = of_proxies + self.binds;
        match what {
            Count::Frontend(proxy) => COUNTS_OF_A_PROXY * proxy.place(),
            Count::Backend(proxy) => COUNTS_OF_A_PROXY * proxy.place() + 1,
            Count::Logged(proxy) => COUNTS_OF_A_PROXY * proxy.place() + 2,
            Count::Server(server) => of_servers + COUNTS_OF_A_SERVER * self.server(server),
            Count::Connections(server) => of_servers + COUNTS_OF_A_SERVER * self.server(server) + 1,
            Count::Idle(server) => of_servers + COUNTS_OF_A_SERVER * self.server(server) + 2,
            Count::Bind(bind) => {
                let before = self.binds_before[bind.frontend.place()] as usize;
                of_proxies + before + bind.place
            }
        }
    }

    /// Whether a count is a total since the start. Other counts return to zero.
    fn is_total(&self, place: usize) -> bool {
        place < COUNTS_OF_A_PROXY * self.proxies && place % COUNTS_OF_A_PROXY == 2
    }

    fn meters(&self) -> usize {
        METERS_OF_THE_PROCESS + METERS_OF_A_PROXY * self.proxies + self.servers
    }

    #[inline]
    fn meter(&self, what: Pace) -> usize {
        let of = |proxy: ProxyId| METERS_OF_THE_PROCESS + METERS_OF_A_PROXY * proxy.place();
        match what {
            Pace::ProcessConnections => 0,
            Pace::ProcessSessions => 1,
            Pace::TlsClients => 2,
            Pace::TlsClientKeys => 3,
            Pace::TlsServerKeys => 4,
            Pace::Sessions(proxy) => of(proxy),
            Pace::Requests(proxy) => of(proxy) + 1,
            Pace::Streams(proxy) => of(proxy) + 2,
            Pace::Connections(proxy) => of(proxy) + 3,
            Pace::Server(server) => {
                METERS_OF_THE_PROCESS + METERS_OF_A_PROXY * self.proxies + self.server(server)
            }
        }
    }
}

fn zeros(count: usize) -> Grow<AtomicU32> {
    Grow::new((0..count).map(|_| AtomicU32::new(0)).collect())
}

impl Counts {
    pub fn new(config: &Config, workers: usize) -> Counts {
        let places = Places::new(config);
        let own = || Own {
            counts: Cells::new(places.counts()),
            meters: Cells::new(places.meters()),
        };
        Counts {
            workers: (0..workers).map(|_| own()).collect(),
            most: zeros(places.counts()),
            peaks: zeros(places.meters()),
            cleared_ms: AtomicU64::new(0),
            places,
        }
    }

    /// Copies the counts of the objects of both configurations.
    pub fn succeed(&self, before: &Counts, both: &Succession<'_>) {
        for proxy in both.proxies.iter().copied() {
            for what in [
                Count::Frontend(proxy),
                Count::Backend(proxy),
                Count::Logged(proxy),
            ] {
                self.copy_count(before, what);
            }
            for pace in [
                Pace::Connections(proxy),
                Pace::Sessions(proxy),
                Pace::Requests(proxy),
                Pace::Streams(proxy),
            ] {
                self.copy_meter(before, pace);
            }
        }
        for server in both.servers.iter().copied() {
            for what in [
                Count::Server(server),
                Count::Connections(server),
                Count::Idle(server),
            ] {
                self.copy_count(before, what);
            }
            self.copy_meter(before, Pace::Server(server));
        }
        for bind in both.binds.iter().copied() {
            self.copy_count(before, Count::Bind(bind));
        }
        for pace in [
            Pace::ProcessConnections,
            Pace::ProcessSessions,
            Pace::TlsClients,
            Pace::TlsClientKeys,
            Pace::TlsServerKeys,
        ] {
            self.copy_meter(before, pace);
        }
        let cleared_ms = before.cleared_ms.load(Relaxed);
        self.cleared_ms.store(cleared_ms, Relaxed);
    }

    fn copy_count(&self, before: &Counts, what: Count) {
        let (to, from) = (self.places.count(what), before.places.count(what));
        for (own, before) in self.workers.iter().zip(&before.workers) {
            let (own, before) = (own.counts.get(to), before.counts.get(from));
            own.now.store(before.now.load(Relaxed), Relaxed);
            own.most.store(before.most.load(Relaxed), Relaxed);
        }
        let most = before.most.at(from).load(Relaxed);
        self.most.at(to).store(most, Relaxed);
    }

    fn copy_meter(&self, before: &Counts, pace: Pace) {
        let (to, from) = (self.places.meter(pace), before.places.meter(pace));
        for (own, before) in self.workers.iter().zip(&before.workers) {
            own.meters.get(to).copy(before.meters.get(from));
        }
        let peak = before.peaks.at(from).load(Relaxed);
        self.peaks.at(to).store(peak, Relaxed);
    }

    /// Resets the counts of an added server, whose place is new or was another server's. False if
    /// there is no room for it. No thread may count for this server at the same time.
    pub fn add_server(&self, server: ServerId) -> bool {
        let configured = self.places.configured[server.backend.place()].count as usize;
        if server.place() >= configured && self.places.add(server).is_none() {
            return false;
        }
        let count = self.places.count(Count::Idle(server));
        let meter = self.places.meter(Pace::Server(server));
        let reached = self
            .workers
            .iter()
            .all(|own| own.counts.reach(count) && own.meters.reach(meter))
            && self.most.reach(count, || AtomicU32::new(0))
            && self.peaks.reach(meter, || AtomicU32::new(0));
        if reached {
            for own in &self.workers {
                own.meters.get(meter).reset();
            }
        }
        reached
    }

    /// A server's number among all servers.
    #[inline(always)]
    pub fn server_number(&self, server: ServerId) -> usize {
        self.places.server(server)
    }

    #[inline(always)]
    fn gauge(&self, worker: WorkerId, place: usize) -> &Gauge {
        self.workers[worker.0 as usize].counts.get(place)
    }

    /// Increments a count. Only `worker` itself may call this.
    #[inline(always)]
    pub fn add(&self, worker: WorkerId, what: Count) {
        let place = self.places.count(what);
        let gauge = self.gauge(worker, place);
        // The cell has one writer, so a load and a store need no locked instruction.
        let now = gauge.now.load(Relaxed).wrapping_add(1);
        gauge.now.store(now, Relaxed);
        if now > gauge.most.load(Relaxed) {
            gauge.most.store(now, Relaxed);
            self.note_most(place);
        }
    }

    /// A worker has reached a new maximum, so all workers together may have too.
    #[cold]
    fn note_most(&self, place: usize) {
        self.most.at(place).fetch_max(self.sum_at(place), Relaxed);
    }

    /// The highest total of all workers together. With several workers it may miss a moment at
    /// which no worker exceeded its own previous maximum.
    pub fn most(&self, what: Count) -> u32 {
        self.most.at(self.places.count(what)).load(Relaxed)
    }

    /// Resets the highest value of a count.
    pub fn clear_most(&self, what: Count) {
        let place = self.places.count(what);
        self.most.at(place).store(0, Relaxed);
        for own in &self.workers {
            own.counts.get(place).most.store(0, Relaxed);
        }
    }

    /// Decrements a count. Only `worker` itself may call this.
    #[inline(always)]
    pub fn sub(&self, worker: WorkerId, what: Count) {
        let now = &self.gauge(worker, self.places.count(what)).now;
        debug_assert!(now.load(Relaxed) > 0, "{what:?} below zero");
        now.store(now.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// The count of one worker.
    #[inline(always)]
    pub fn of(&self, worker: WorkerId, what: Count) -> u32 {
        self.gauge(worker, self.places.count(what))
            .now
            .load(Relaxed)
    }

    /// The counts of each worker.
    pub fn each(&self, what: Count) -> impl Iterator<Item = u32> {
        let place = self.places.count(what);
        let gauges = self.workers.iter().map(move |own| own.counts.get(place));
        gauges.map(|gauge| gauge.now.load(Relaxed))
    }

    /// The sum over the workers.
    pub fn sum(&self, what: Count) -> u32 {
        self.sum_at(self.places.count(what))
    }

    fn sum_at(&self, place: usize) -> u32 {
        let gauges = self.workers.iter().map(|own| own.counts.get(place));
        gauges.fold(0, |sum, gauge| sum.wrapping_add(gauge.now.load(Relaxed)))
    }

    /// Counts an event of a rate. Only `worker` itself may call this.
    #[inline(always)]
    pub fn mark(&self, worker: WorkerId, what: Pace, now_ms: u64) {
        let place = self.places.meter(what);
        let meter = self.workers[worker.0 as usize].meters.get(place);
        if !meter.count(now_ms) {
            self.next_second(meter, place, now_ms);
        }
    }

    /// Counts the first event of a worker's second: the previous second is over, and its rate may
    /// be a new peak.
    #[cold]
    fn next_second(&self, meter: &Meter, place: usize, now_ms: u64) {
        if let Some(end_ms) = self.second_end_ms(meter) {
            let rate = self.reading(place, end_ms).per_second();
            self.peaks.at(place).fetch_max(rate, Relaxed);
        }
        meter.next_second(now_ms);
    }

    /// The end of the second of a meter's last event; none if that second began before peaks were
    /// cleared.
    fn second_end_ms(&self, meter: &Meter) -> Option<u64> {
        let cleared_ms = self.cleared_ms.load(Relaxed);
        let began_ms = meter.last_ms().filter(|began_ms| *began_ms > cleared_ms)?;
        Some(began_ms + super::rates::PERIOD_MS)
    }

    fn reading(&self, place: usize, now_ms: u64) -> Reading {
        let mut sum = Reading::default();
        for own in &self.workers {
            own.meters.get(place).read(now_ms, &mut sum);
        }
        sum
    }

    /// The most events within a second, all workers together. Unfinished seconds count with their
    /// events so far.
    pub fn peak(&self, what: Pace) -> u32 {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        let ends = meters.filter_map(|meter| self.second_end_ms(meter));
        let open = ends.map(|end_ms| self.reading(place, end_ms).per_second());
        let open = open.max().unwrap_or(0);
        open.max(self.peaks.at(place).load(Relaxed))
    }

    /// Clears the peak of a rate.
    pub fn clear_peak(&self, what: Pace, now_ms: u64) {
        self.cleared_ms.store(now_ms, Relaxed);
        self.peaks.at(self.places.meter(what)).store(0, Relaxed);
    }

    /// The time of the last event, to the second, monotonic milliseconds; none if there was none.
    pub fn last_ms(&self, what: Pace) -> Option<u64> {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        meters.filter_map(Meter::last_ms).max()
    }

    /// Events of the last second, of all workers together.
    pub fn rate(&self, what: Pace, now_ms: u64) -> u32 {
        self.reading(self.places.meter(what), now_ms).per_second()
    }

    /// Events of the last second with a fraction.
    pub fn exact_rate(&self, what: Pace, now_ms: u64) -> f64 {
        self.reading(self.places.meter(what), now_ms).exact()
    }

    /// Events since the start, of all workers together.
    pub fn total(&self, what: Pace) -> u64 {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        meters.map(Meter::total).sum()
    }

    /// Whether every count that is not a total is zero.
    pub fn is_quiet(&self) -> bool {
        self.workers.iter().all(|own| {
            let mut cells = own.counts.all().enumerate();
            cells.all(|(place, gauge)| self.places.is_total(place) || gauge.now.load(Relaxed) == 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(workers: usize) -> Counts {
        let mut config = Config::default();
        config.proxies.push(config::model::Proxy::default());
        Counts::new(&config, workers)
    }

    #[test]
    fn the_most_within_a_second_outlasts_it() {
        let counts = counts(2);
        let pace = Pace::Requests(ProxyId::at(0));
        assert_eq!(counts.peak(pace), 0);
        for (worker, events) in [(0, 3), (1, 2)] {
            (0..events).for_each(|_| counts.mark(WorkerId(worker), pace, 10_000));
        }
        assert_eq!(counts.peak(pace), 5);
        counts.mark(WorkerId(0), pace, 20_000);
        assert_eq!(counts.rate(pace, 20_000), 1);
        assert_eq!(counts.peak(pace), 5);
        counts.clear_peak(pace, 20_500);
        assert_eq!(counts.peak(pace), 0);
        counts.mark(WorkerId(1), pace, 21_000);
        assert_eq!(counts.peak(pace), 1);
    }

    #[test]
    fn the_most_at_once_is_that_of_all_workers() {
        let counts = counts(2);
        let what = Count::Backend(ProxyId::at(0));
        counts.add(WorkerId(0), what);
        counts.add(WorkerId(1), what);
        counts.add(WorkerId(1), what);
        (0..2).for_each(|_| counts.sub(WorkerId(1), what));
        counts.sub(WorkerId(0), what);
        assert_eq!((counts.sum(what), counts.most(what)), (0, 3));
        counts.clear_most(what);
        counts.add(WorkerId(0), what);
        assert_eq!(counts.most(what), 1);
        counts.sub(WorkerId(0), what);
    }
}
