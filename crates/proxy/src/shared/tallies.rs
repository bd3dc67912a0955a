//! What statistics tell of frontends, listeners, backends and servers since the start: each worker adds to rows of its own, all
//! read.
//!
//! A row lies in cache lines of its own. An addition is one instruction without a lock, since a cell has one writer. What a
//! reader changes (`clear counters`, counters that are loaded from a file) goes to a correction beside the cells, which is added
//! when they are read. What meters count already has no cell that is written here: the reader takes it from there.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use config::model::Config;
use net::WorkerId;

use super::grow::Grow;
use crate::ids::{BindId, ProxyId};

/// What is counted of a frontend, and of a listener with `option socket-stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrontCount {
    Connections,
    Sessions,
    /// Sessions that speak HTTP/1, HTTP/2.
    SessionsH1,
    SessionsH2,
    /// Requests, and those of them that came over HTTP/2.
    Requests,
    RequestsH2,
    BytesFromClients,
    BytesToServers,
    BytesFromServers,
    BytesToClients,
    DeniedConnections,
    DeniedSessions,
    DeniedRequests,
    DeniedResponses,
    /// Requests that were not understood or did not come in time.
    FailedRequests,
    /// Requests that the frontend answered by itself.
    Intercepted,
    FailedRewrites,
    InternalErrors,
    /// By class of the status: others, then 1xx to 5xx.
    ResponsesOther,
    Responses1xx,
    Responses2xx,
    Responses3xx,
    Responses4xx,
    Responses5xx,
}

/// What is counted of a backend and of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BackCount {
    Streams,
    /// Streams whose server balancing chose.
    Balanced,
    BytesFromClients,
    BytesToServers,
    BytesFromServers,
    BytesToClients,
    DeniedRequests,
    DeniedResponses,
    /// Connections to servers: tried, failed, used again.
    Connects,
    FailedConnects,
    Reuses,
    Retries,
    Redispatches,
    FailedResponses,
    ClientAborts,
    ServerAborts,
    FailedRewrites,
    InternalErrors,
    /// By class of the status: others, then 1xx to 5xx.
    ResponsesOther,
    Responses1xx,
    Responses2xx,
    Responses3xx,
    Responses4xx,
    Responses5xx,
}

/// How many cells a row has.
pub const FRONT_CELLS: usize = FrontCount::Responses5xx as usize + 1;
/// The same of backends and servers.
pub const BACK_CELLS: usize = BackCount::Responses5xx as usize + 1;

/// Requests that an average goes back over (HAProxy's `TIME_STATS_SAMPLES`).
const SAMPLES: u64 = 1024;

/// The parts of a stream's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times<T> {
    /// In queues.
    pub queue: T,
    /// Until the connection to the server stood.
    pub connect: T,
    /// From there to the head of the response.
    pub response: T,
    /// Of the whole stream.
    pub total: T,
}

impl<T> Times<T> {
    fn all(&self) -> [&T; 4] {
        [&self.queue, &self.connect, &self.response, &self.total]
    }
}

/// What rows count.
pub(crate) trait Counted: Copy {
    /// The first of the cells of classes of responses.
    const RESPONSES: usize;

    fn place(self) -> usize;
}

impl Counted for FrontCount {
    const RESPONSES: usize = FrontCount::ResponsesOther as usize;

    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

impl Counted for BackCount {
    const RESPONSES: usize = BackCount::ResponsesOther as usize;

    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// One worker's counts of one thing.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Row<C, const N: usize> {
    cells: [AtomicU64; N],
    of: PhantomData<fn(C)>,
}

/// Of a frontend or listener.
pub(crate) type FrontRow = Row<FrontCount, FRONT_CELLS>;
/// Of a backend or server.
pub(crate) type BackRow = Row<BackCount, BACK_CELLS>;

impl<C, const N: usize> Default for Row<C, N> {
    fn default() -> Self {
        Row {
            cells: std::array::from_fn(|_| AtomicU64::new(0)),
            of: PhantomData,
        }
    }
}

/// Adds to a cell that only the calling thread writes.
#[inline(always)]
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl<C: Counted, const N: usize> Row<C, N> {
    /// Only the worker that owns the row may say so.
    #[inline(always)]
    pub fn add(&self, what: C, by: u64) {
        bump(&self.cells[what.place()], by);
    }

    /// A response of this class left.
    #[inline(always)]
    pub fn add_response(&self, class: Class) {
        bump(&self.cells[C::RESPONSES + class.0], 1);
    }
}

/// The place of a status among the classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class(usize);

impl Class {
    #[inline(always)]
    pub fn of(status: u16) -> Class {
        match status {
            100..=599 => Class(usize::from(status / 100)),
            _ => Class(0),
        }
    }
}

/// One worker's counts of a server, with the times of its streams.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ServerRow {
    pub counts: BackRow,
    /// Streams whose times were taken, and the sums of these, milliseconds.
    timed: AtomicU64,
    sums: Times<AtomicU64>,
    longest: Times<AtomicU64>,
    /// The sums as they were when the window of the averages began.
    began: Window,
    /// As they were when half of it was over: where the next one begins.
    middle: Window,
}

/// Sums at a moment.
#[derive(Debug, Default)]
struct Window {
    timed: AtomicU64,
    sums: Times<AtomicU64>,
}

impl ServerRow {
    /// A stream took this long, milliseconds. Most wait for nothing and use a connection that stands.
    #[inline(always)]
    pub fn time(&self, times: Times<u64>) {
        let timed = self.timed.load(Relaxed).wrapping_add(1);
        self.timed.store(timed, Relaxed);
        let (sums, longest) = (&self.sums, &self.longest);
        if times.queue | times.connect != 0 {
            bump(&sums.queue, times.queue);
            bump(&sums.connect, times.connect);
            raise(&longest.queue, times.queue);
            raise(&longest.connect, times.connect);
        }
        bump(&sums.response, times.response);
        bump(&sums.total, times.total);
        raise(&longest.response, times.response);
        raise(&longest.total, times.total);
        if timed.is_multiple_of(SAMPLES) {
            self.next_window(timed);
        }
    }

    /// The second half of the window becomes its first.
    #[cold]
    fn next_window(&self, timed: u64) {
        let moves = |from: &AtomicU64, to: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
        let (began, middle) = (&self.began, &self.middle);
        moves(&middle.timed, &began.timed);
        middle.timed.store(timed, Relaxed);
        let cells = began.sums.all().into_iter().zip(middle.sums.all());
        for ((began, middle), sum) in cells.zip(self.sums.all()) {
            moves(middle, began);
            moves(sum, middle);
        }
    }
}

#[inline(always)]
fn raise(cell: &AtomicU64, to: u64) {
    if to > cell.load(Relaxed) {
        cell.store(to, Relaxed);
    }
}

/// One worker's rows.
#[derive(Debug)]
struct Own {
    fronts: Box<[FrontRow]>,
    /// Of proxies with `option socket-stats`.
    binds: Box<[FrontRow]>,
    backs: Box<[BackRow]>,
    servers: Grow<ServerRow>,
}

/// What all workers together have counted of a frontend or listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontSums {
    /// By [`FrontCount`].
    pub counts: [u64; FRONT_CELLS],
}

impl FrontSums {
    pub(super) fn add(&mut self, what: FrontCount, by: u64) {
        let sum = &mut self.counts[what as usize];
        *sum = sum.wrapping_add(by);
    }

    /// One of the counts.
    #[must_use]
    pub fn get(&self, what: FrontCount) -> u64 {
        self.counts[what as usize]
    }
}

impl BackSums {
    pub(super) fn add(&mut self, what: BackCount, by: u64) {
        let sum = &mut self.counts[what as usize];
        *sum = sum.wrapping_add(by);
    }

    /// One of the counts.
    #[must_use]
    pub fn get(&self, what: BackCount) -> u64 {
        self.counts[what as usize]
    }
}

/// What all workers together have counted of a backend or server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackSums {
    /// By [`BackCount`].
    pub counts: [u64; BACK_CELLS],
    /// Milliseconds.
    pub times: TimeSums,
    /// Streams that waited at once.
    pub queue_max: u32,
}

/// What all workers together know of the times of streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSums {
    streams: u64,
    sums: [u64; 4],
    longest: [u64; 4],
}

impl TimeSums {
    /// Averages over the last 1024 to 2047 streams of each worker and server, milliseconds.
    #[must_use]
    pub fn averages(&self) -> Times<u64> {
        times(self.sums.map(|sum| sum.div_ceil(self.streams.max(1))))
    }

    /// Milliseconds.
    #[must_use]
    pub fn longest(&self) -> Times<u64> {
        times(self.longest)
    }

    fn add(&mut self, other: &TimeSums) {
        self.streams += other.streams;
        for place in 0..self.sums.len() {
            self.sums[place] += other.sums[place];
            self.longest[place] = self.longest[place].max(other.longest[place]);
        }
    }

    fn of(row: &ServerRow) -> TimeSums {
        let read = |times: &Times<AtomicU64>| times.all().map(|cell| cell.load(Relaxed));
        let (sums, began) = (read(&row.sums), read(&row.began.sums));
        let timed = row.timed.load(Relaxed);
        TimeSums {
            streams: timed.saturating_sub(row.began.timed.load(Relaxed)),
            sums: std::array::from_fn(|place| sums[place].saturating_sub(began[place])),
            longest: read(&row.longest),
        }
    }
}

/// What all workers have in common.
#[derive(Debug)]
struct Extra<C, const N: usize> {
    /// Added to the sum over the workers.
    corrections: Row<C, N>,
    /// The most that waited at once.
    queue_max: AtomicU32,
}

impl<C, const N: usize> Default for Extra<C, N> {
    fn default() -> Self {
        Extra {
            corrections: Row::default(),
            queue_max: AtomicU32::new(0),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tallies {
    workers: Vec<Own>,
    /// By proxy: bind lines of the proxies before it.
    binds_before: Vec<u32>,
    front_extras: Box<[Extra<FrontCount, FRONT_CELLS>]>,
    bind_extras: Box<[Extra<FrontCount, FRONT_CELLS>]>,
    back_extras: Box<[Extra<BackCount, BACK_CELLS>]>,
    server_extras: Grow<Extra<BackCount, BACK_CELLS>>,
}

fn rows<T: Default>(count: usize) -> Box<[T]> {
    (0..count).map(|_| T::default()).collect()
}

impl Tallies {
    pub fn new(config: &Config, workers: usize) -> Tallies {
        let proxies = config.proxies.len();
        let mut binds_before = Vec::new();
        let (mut servers, mut binds) = (0, 0);
        for proxy in &config.proxies {
            binds_before.push(binds as u32);
            servers += proxy.servers.len();
            if proxy.options.socket_stats {
                binds += proxy.binds.len();
            }
        }
        let own = || Own {
            fronts: rows(proxies),
            binds: rows(binds),
            backs: rows(proxies),
            servers: Grow::new(rows(servers)),
        };
        Tallies {
            workers: (0..workers).map(|_| own()).collect(),
            binds_before,
            front_extras: rows(proxies),
            bind_extras: rows(binds),
            back_extras: rows(proxies),
            server_extras: Grow::new(rows(servers)),
        }
    }

    fn bind_place(&self, bind: BindId) -> usize {
        self.binds_before[bind.frontend.place()] as usize + bind.place
    }

    // ---- the rows of a worker

    /// A frontend's.
    #[inline]
    pub fn front(&self, worker: WorkerId, proxy: ProxyId) -> &FrontRow {
        &self.workers[worker.0 as usize].fronts[proxy.place()]
    }

    /// That of a listener of a frontend with `option socket-stats`.
    pub fn bind(&self, worker: WorkerId, bind: BindId) -> &FrontRow {
        &self.workers[worker.0 as usize].binds[self.bind_place(bind)]
    }

    /// A backend's.
    #[inline]
    pub fn back(&self, worker: WorkerId, proxy: ProxyId) -> &BackRow {
        &self.workers[worker.0 as usize].backs[proxy.place()]
    }

    /// A server's, by its number among all.
    #[inline]
    pub fn server(&self, worker: WorkerId, server: usize) -> &ServerRow {
        self.workers[worker.0 as usize].servers.at(server)
    }

    /// Makes room for a server with this number; false where there is none.
    pub fn reach_server(&self, server: usize) -> bool {
        let mut workers = self.workers.iter();
        workers.all(|own| own.servers.reach(server, ServerRow::default))
            && self.server_extras.reach(server, Extra::default)
    }

    /// So many wait in a backend now, and of them so many for this server.
    pub fn queue_peak(&self, proxy: ProxyId, all: u32, server: Option<(usize, u32)>) {
        self.back_extras[proxy.place()]
            .queue_max
            .fetch_max(all, Relaxed);
        if let Some((server, waiting)) = server {
            self.server_extras
                .at(server)
                .queue_max
                .fetch_max(waiting, Relaxed);
        }
    }

    // ---- sums

    fn sum<'a, C: Counted + 'a, const N: usize>(
        rows: impl Iterator<Item = &'a Row<C, N>>,
        extra: &Extra<C, N>,
    ) -> [u64; N] {
        let mut sums = extra.corrections.read();
        rows.for_each(|row| row.add_to(&mut sums));
        sums
    }

    /// A frontend's.
    pub fn front_sums(&self, proxy: ProxyId) -> FrontSums {
        let place = proxy.place();
        let rows = self.workers.iter().map(|own| &own.fronts[place]);
        FrontSums {
            counts: Self::sum(rows, &self.front_extras[place]),
        }
    }

    /// Those of a listener of a frontend with `option socket-stats`.
    pub fn bind_sums(&self, bind: BindId) -> FrontSums {
        let place = self.bind_place(bind);
        let rows = self.workers.iter().map(|own| &own.binds[place]);
        FrontSums {
            counts: Self::sum(rows, &self.bind_extras[place]),
        }
    }

    /// A backend's; its times are those of its servers.
    pub fn back_sums(&self, proxy: ProxyId, servers: impl Iterator<Item = usize>) -> BackSums {
        let place = proxy.place();
        let rows = self.workers.iter().map(|own| &own.backs[place]);
        let extra = &self.back_extras[place];
        let mut times = TimeSums::default();
        for server in servers {
            let rows = self.workers.iter().map(|own| own.servers.at(server));
            rows.for_each(|row| times.add(&TimeSums::of(row)));
        }
        BackSums {
            counts: Self::sum(rows, extra),
            queue_max: extra.queue_max.load(Relaxed),
            times,
        }
    }

    /// A server's.
    pub fn server_sums(&self, server: usize) -> BackSums {
        let rows = || self.workers.iter().map(|own| own.servers.at(server));
        let extra = self.server_extras.at(server);
        let mut times = TimeSums::default();
        rows().for_each(|row| times.add(&TimeSums::of(row)));
        BackSums {
            counts: Self::sum(rows().map(|row| &row.counts), extra),
            queue_max: extra.queue_max.load(Relaxed),
            times,
        }
    }

    // ---- what readers change

    /// Adds to what a frontend has counted: what another process had.
    pub fn preload_front(&self, proxy: ProxyId, what: FrontCount, value: u64) {
        let cell = &self.front_extras[proxy.place()].corrections.cells[what as usize];
        cell.fetch_add(value, Relaxed);
    }

    /// The same of a listener of a frontend with `option socket-stats`.
    pub fn preload_bind(&self, bind: BindId, what: FrontCount, value: u64) {
        let place = self.bind_place(bind);
        let cell = &self.bind_extras[place].corrections.cells[what as usize];
        cell.fetch_add(value, Relaxed);
    }

    /// The same of a backend.
    pub fn preload_back(&self, proxy: ProxyId, what: BackCount, value: u64) {
        let cell = &self.back_extras[proxy.place()].corrections.cells[what as usize];
        cell.fetch_add(value, Relaxed);
    }

    /// The same of a server.
    pub fn preload_server(&self, server: usize, what: BackCount, value: u64) {
        let cell = &self.server_extras.at(server).corrections.cells[what as usize];
        cell.fetch_add(value, Relaxed);
    }

    /// Takes these sums off what a frontend has counted.
    pub fn subtract_front(&self, proxy: ProxyId, sums: &FrontSums) {
        let extra = &self.front_extras[proxy.place()];
        extra.corrections.subtract(&sums.counts);
    }

    /// The same of a listener of a frontend with `option socket-stats`.
    pub fn subtract_bind(&self, bind: BindId, sums: &FrontSums) {
        let extra = &self.bind_extras[self.bind_place(bind)];
        extra.corrections.subtract(&sums.counts);
    }

    /// The same of a backend.
    pub fn subtract_back(&self, proxy: ProxyId, sums: &BackSums) {
        let extra = &self.back_extras[proxy.place()];
        extra.corrections.subtract(&sums.counts);
    }

    /// The same of a server, whose averages begin anew.
    pub fn subtract_server(&self, server: usize, sums: &BackSums) {
        self.server_extras
            .at(server)
            .corrections
            .subtract(&sums.counts);
        for own in &self.workers {
            own.servers.at(server).restart_averages();
        }
    }

    /// Forgets how many waited in a backend at once.
    pub fn clear_back_peaks(&self, proxy: ProxyId) {
        self.back_extras[proxy.place()].queue_max.store(0, Relaxed);
    }

    /// The same of a server, with the longest times.
    pub fn clear_server_peaks(&self, server: usize) {
        self.server_extras.at(server).queue_max.store(0, Relaxed);
        for own in &self.workers {
            let longest = own.servers.at(server).longest.all();
            longest.into_iter().for_each(|cell| cell.store(0, Relaxed));
        }
    }
}

impl ServerRow {
    /// A reader has averages begin here. Where its worker begins a window at the same moment, that one counts.
    fn restart_averages(&self) {
        let timed = self.timed.load(Relaxed);
        for window in [&self.began, &self.middle] {
            window.timed.store(timed, Relaxed);
            for (to, from) in window.sums.all().into_iter().zip(self.sums.all()) {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
    }
}

fn times([queue, connect, response, total]: [u64; 4]) -> Times<u64> {
    Times {
        queue,
        connect,
        response,
        total,
    }
}

impl<C, const N: usize> Row<C, N> {
    fn add_to(&self, sums: &mut [u64; N]) {
        for (sum, cell) in sums.iter_mut().zip(&self.cells) {
            *sum = sum.wrapping_add(cell.load(Relaxed));
        }
    }

    fn read(&self) -> [u64; N] {
        std::array::from_fn(|place| self.cells[place].load(Relaxed))
    }

    fn subtract(&self, sums: &[u64; N]) {
        for (cell, sum) in self.cells.iter().zip(sums) {
            cell.fetch_sub(*sum, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_with(times: &[u64]) -> ServerRow {
        let row = ServerRow::default();
        for ms in times {
            row.time(Times {
                total: *ms,
                ..Times::default()
            });
        }
        row
    }

    fn average(rows: &[ServerRow]) -> (u64, u64) {
        let mut sums = TimeSums::default();
        rows.iter().for_each(|row| sums.add(&TimeSums::of(row)));
        (sums.averages().total, sums.longest().total)
    }

    #[test]
    fn averages_go_back_over_at_least_1024_streams() {
        assert_eq!(average(&[row_with(&[])]), (0, 0));
        assert_eq!(average(&[row_with(&[10, 20])]), (15, 20));
        // Workers count by how many streams they had.
        assert_eq!(
            average(&[row_with(&[10, 10, 10]), row_with(&[50])]),
            (20, 50)
        );
        let mut many = vec![1000; 1024];
        assert_eq!(average(&[row_with(&many)]), (1000, 1000));
        many.extend(vec![0; 1023]);
        assert_eq!(average(&[row_with(&many)]).0, 501);
        many.extend(vec![0; 1025]);
        assert_eq!(average(&[row_with(&many)]), (0, 1000));
    }

    #[test]
    fn averages_begin_anew() {
        let row = row_with(&[1000; 10]);
        row.restart_averages();
        assert_eq!(average(&[row]).0, 0);
        let row = row_with(&[1000; 10]);
        row.restart_averages();
        row.time(Times {
            total: 4,
            ..Times::default()
        });
        assert_eq!(average(&[row]).0, 4);
    }

    #[test]
    fn classes_of_statuses() {
        let row = BackRow::default();
        for status in [0, 99, 101, 200, 204, 301, 404, 599, 600, 999] {
            row.add_response(Class::of(status));
        }
        let counts = Tallies::sum([&row].into_iter(), &Extra::default());
        let classes = BackCount::ResponsesOther as usize;
        assert_eq!(counts[classes..], [4, 1, 2, 1, 1, 1]);
    }

    #[test]
    fn clearing_and_loading_correct_the_sums_and_leave_the_cells() {
        let (row, extra) = (BackRow::default(), Extra::default());
        let sums = || Tallies::sum([&row].into_iter(), &extra);
        let streams = || sums()[BackCount::Streams as usize];
        row.add(BackCount::Streams, 5);
        extra.corrections.cells[BackCount::Streams as usize].fetch_add(1024, Relaxed);
        assert_eq!(streams(), 1029);
        extra.corrections.subtract(&sums());
        assert_eq!(streams(), 0);
        row.add(BackCount::Streams, 2);
        assert_eq!(streams(), 2);
    }
}
