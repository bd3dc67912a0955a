//! Counts and rates: each worker writes its own, all read.
//!
//! What one worker writes lies in cache lines of its own, so that counting costs a load and a store and no other worker's cache.
//!
//! A server has a number among all servers ([`Places::server`]). Those that are added while traffic runs have the highest
//! numbers, and [`Counts::add_server`] makes room for them. So what is kept for each server lies behind everything else.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use config::model::Config;
use net::WorkerId;

use super::grow::Grow;
use super::rates::{Meter, Reading};
use crate::ids::{BindId, ProxyId, ServerId};

/// What is counted.
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
    /// Idle connections to a server that any client may have and any worker.
    Idle(ServerId),
    /// Client connections of a bind line.
    Bind(BindId),
    /// Log lines of a frontend, from the start.
    Logged(ProxyId),
}

/// What is measured over the last second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Connections that a frontend accepted.
    Connections(ProxyId),
    /// Those of them that became sessions.
    Sessions(ProxyId),
    /// HTTP requests of a frontend.
    Requests(ProxyId),
    /// Streams that a backend was given.
    Streams(ProxyId),
    /// Streams that a server was given.
    Server(ServerId),
    /// Connections of all frontends.
    ProcessConnections,
    /// Likewise, those that became sessions.
    ProcessSessions,
    /// Those that speak TLS.
    TlsClients,
    /// Full handshakes with clients, which make new keys.
    TlsClientKeys,
    /// The same with servers.
    TlsServerKeys,
}

/// A cache line, and the one that the processor fetches with it.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T, const N: usize>([T; N]);

impl<T: Default, const N: usize> Default for Line<T, N> {
    fn default() -> Self {
        Line(std::array::from_fn(|_| T::default()))
    }
}

/// Cells in lines that nothing else lies in.
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

/// How many there are, and the most that there were at once.
#[derive(Debug, Default)]
struct Gauge {
    now: AtomicU32,
    most: AtomicU32,
}

/// One worker's.
#[derive(Debug)]
struct Own {
    counts: Cells<Gauge, 16>,
    meters: Cells<Meter, 8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Counts {
    workers: Vec<Own>,
    /// By count: the most at once of all workers together.
    most: Grow<AtomicU32>,
    /// By meter: the most events within a second.
    peaks: Grow<AtomicU32>,
    /// When peaks were last forgotten, monotonic milliseconds: seconds that began before are not looked at any more.
    cleared_ms: AtomicU64,
    places: Places,
}

/// Where each count and meter lies.
#[derive(Debug)]
struct Places {
    proxies: usize,
    /// By proxy: its servers of the configuration.
    configured: Vec<Configured>,
    /// By proxy: bind lines of the proxies before it.
    binds_before: Vec<u32>,
    servers: usize,
    binds: usize,
    /// By proxy: the numbers of servers that were added.
    added: Vec<Grow<AtomicU32>>,
    /// How many numbers are given away.
    numbers: AtomicU32,
}

/// The numbers of a proxy's servers that the configuration has.
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

    /// A server's number among all.
    #[inline(always)]
    fn server(&self, server: ServerId) -> usize {
        let configured = self.configured[server.backend.place()];
        match server.place() < configured.count as usize {
            true => configured.first as usize + server.place(),
            false => self.added(server),
        }
    }

    #[cold]
    #[inline(never)]
    fn added(&self, server: ServerId) -> usize {
        let backend = server.backend.place();
        let place = server.place() - self.configured[backend].count as usize;
        self.added[backend].at(place).load(Relaxed) as usize
    }

    /// A server at a new place has a number from now on. None where there are no more places.
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

    // Who asks knows the kind at compile time.
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

    /// The counts that go back to zero: all but those from the start.
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

    /// A server is added, at a new place or at one that was another server's: its counts begin at zero. False where there is no
    /// room for it. Nobody counts for it yet.
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

    /// A server's number among all.
    #[inline(always)]
    pub fn server_number(&self, server: ServerId) -> usize {
        self.places.server(server)
    }

    #[inline(always)]
    fn gauge(&self, worker: WorkerId, place: usize) -> &Gauge {
        self.workers[worker.0 as usize].counts.get(place)
    }

    /// One more. Only `worker` itself may say so.
    #[inline(always)]
    pub fn add(&self, worker: WorkerId, what: Count) {
        let place = self.places.count(what);
        let gauge = self.gauge(worker, place);
        // One writer: a load and a store, no locked instruction.
        let now = gauge.now.load(Relaxed).wrapping_add(1);
        gauge.now.store(now, Relaxed);
        if now > gauge.most.load(Relaxed) {
            gauge.most.store(now, Relaxed);
            self.note_most(place);
        }
    }

    /// A worker has more than ever: so may all together.
    #[cold]
    fn note_most(&self, place: usize) {
        self.most.at(place).fetch_max(self.sum_at(place), Relaxed);
    }

    /// The most at once, all workers together. With several workers it may miss a moment at which none of them had more than it
    /// ever had.
    pub fn most(&self, what: Count) -> u32 {
        self.most.at(self.places.count(what)).load(Relaxed)
    }

    /// Forgets the most at once of one of them.
    pub fn clear_most(&self, what: Count) {
        let place = self.places.count(what);
        self.most.at(place).store(0, Relaxed);
        for own in &self.workers {
            own.counts.get(place).most.store(0, Relaxed);
        }
    }

    /// One less, likewise.
    #[inline(always)]
    pub fn sub(&self, worker: WorkerId, what: Count) {
        let now = &self.gauge(worker, self.places.count(what)).now;
        debug_assert!(now.load(Relaxed) > 0, "{what:?} below zero");
        now.store(now.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// The count of one worker.
    pub fn of(&self, worker: WorkerId, what: Count) -> u32 {
        self.gauge(worker, self.places.count(what))
            .now
            .load(Relaxed)
    }

    /// Those of each worker.
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

    /// One event of a rate, of `worker` itself.
    #[inline(always)]
    pub fn mark(&self, worker: WorkerId, what: Pace, now_ms: u64) {
        let place = self.places.meter(what);
        let meter = self.workers[worker.0 as usize].meters.get(place);
        if !meter.count(now_ms) {
            self.next_second(meter, place, now_ms);
        }
    }

    /// An event that is the first of a worker's second: the one before is over.
    #[cold]
    fn next_second(&self, meter: &Meter, place: usize, now_ms: u64) {
        if let Some(end_ms) = self.second_end_ms(meter) {
            let rate = self.reading(place, end_ms).per_second();
            self.peaks.at(place).fetch_max(rate, Relaxed);
        }
        meter.next_second(now_ms);
    }

    /// When the second of a meter's last event ends; none where it began before peaks were forgotten.
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

    /// The most events within a second, all workers together; the seconds that are not over count as far as they go.
    pub fn peak(&self, what: Pace) -> u32 {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        let ends = meters.filter_map(|meter| self.second_end_ms(meter));
        let open = ends.map(|end_ms| self.reading(place, end_ms).per_second());
        let open = open.max().unwrap_or(0);
        open.max(self.peaks.at(place).load(Relaxed))
    }

    /// Forgets the peak of one of them.
    pub fn clear_peak(&self, what: Pace, now_ms: u64) {
        self.cleared_ms.store(now_ms, Relaxed);
        self.peaks.at(self.places.meter(what)).store(0, Relaxed);
    }

    /// When the last event was, to the second, monotonic milliseconds; none where there was none.
    pub fn last_ms(&self, what: Pace) -> Option<u64> {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        meters.filter_map(Meter::last_ms).max()
    }

    /// Events of the last second, all workers together.
    pub fn rate(&self, what: Pace, now_ms: u64) -> u32 {
        self.reading(self.places.meter(what), now_ms).per_second()
    }

    /// The same with its fraction.
    pub fn exact_rate(&self, what: Pace, now_ms: u64) -> f64 {
        self.reading(self.places.meter(what), now_ms).exact()
    }

    /// Events since the start, all workers together.
    pub fn total(&self, what: Pace) -> u64 {
        let place = self.places.meter(what);
        let meters = self.workers.iter().map(|own| own.meters.get(place));
        meters.map(Meter::total).sum()
    }

    /// Whether everything that is counted in was counted out.
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
