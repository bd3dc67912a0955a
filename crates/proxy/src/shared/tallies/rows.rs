//! The counters, the cells of one worker, and their sums.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Declares the cells of a row: gauges, which are never cleared, and counters. Those of HTTP/2 and
/// TLS are the same in all rows. The cells that each request changes are together.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $counter:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum $name {
            // Gauges.
            H2OpenConnections,
            H2OpenStreams,
            $($(#[$doc])* $counter,)*
            /// Bytes of the peer's HTTP/2 streams, received and sent.
            H2BytesIn,
            H2BytesOut,
            /// Frames that were received.
            H2Headers,
            H2Data,
            H2Settings,
            H2Resets,
            H2Goaways,
            /// Errors of the peer that ended a connection, or a stream.
            H2ConnectionErrors,
            H2StreamErrors,
            /// Frames that were sent.
            H2SentResets,
            H2SentGoaways,
            H2Connections,
            H2Streams,
            /// TLS handshakes: completed, resumed, failed.
            TlsSessions,
            TlsResumed,
            TlsFailed,
        }

        impl $name {
            /// The number of its counters and gauges.
            const CELLS: usize = $name::TlsFailed as usize + 1;
        }

        impl OfHttp2 for $name {
            const GAUGES: usize = $name::H2OpenStreams as usize + 1;
            const OPEN_CONNECTIONS: $name = $name::H2OpenConnections;
            const OPEN_STREAMS: $name = $name::H2OpenStreams;
            const CONNECTIONS: $name = $name::H2Connections;

            fn counts(of: &http::h2::Counts) -> [($name, u32); 10] {
                [
                    ($name::H2Headers, of.headers),
                    ($name::H2Data, of.data),
                    ($name::H2Settings, of.settings),
                    ($name::H2Resets, of.resets),
                    ($name::H2Goaways, of.goaways),
                    ($name::H2ConnectionErrors, of.connection_errors),
                    ($name::H2StreamErrors, of.stream_errors),
                    ($name::H2SentResets, of.sent_resets),
                    ($name::H2SentGoaways, of.sent_goaways),
                    ($name::H2Streams, of.streams),
                ]
            }
        }
    };
}

/// The counters of HTTP/2 among those of a row.
pub trait OfHttp2: Copy {
    /// The number of gauges, which are the first cells.
    const GAUGES: usize;
    const OPEN_CONNECTIONS: Self;
    const OPEN_STREAMS: Self;
    const CONNECTIONS: Self;

    /// The counters for what a connection has counted.
    fn counts(of: &http::h2::Counts) -> [(Self, u32); 10];
}

counters! {
/// The counters of a frontend, and of a listener with `option socket-stats`.
FrontCount {
    Connections,
    Sessions,
    /// Sessions over HTTP/1 and over HTTP/2.
    SessionsH1,
    SessionsH2,
    /// Requests, and those of them that came over HTTP/2.
    Requests,
    RequestsH2,
    /// Requests whose streams ended without a response.
    Unanswered,
    BytesFromClients,
    BytesToServers,
    BytesFromServers,
    BytesToClients,
    DeniedConnections,
    DeniedSessions,
    DeniedRequests,
    DeniedResponses,
    /// Requests that were invalid or did not come in time.
    FailedRequests,
    /// Requests that the frontend answered itself.
    Intercepted,
    FailedRewrites,
    InternalErrors,
    /// Compression: bytes before, bytes after, responses.
    CompressedIn,
    CompressedOut,
    Compressed,
    /// By class of the status: others, then 1xx to 5xx.
    ResponsesOther,
    Responses1xx,
    Responses2xx,
    Responses3xx,
    Responses4xx,
    Responses5xx,
}
}

counters! {
/// The counters of a backend and of a server.
BackCount {
    Streams,
    /// Streams whose server was chosen by balancing.
    Balanced,
    BytesFromClients,
    BytesToServers,
    BytesFromServers,
    BytesToClients,
    DeniedRequests,
    DeniedResponses,
    /// Connections to servers: tried, failed, reused.
    Connects,
    FailedConnects,
    Reuses,
    Retries,
    /// Retries that the budget refused.
    RefusedRetries,
    Redispatches,
    FailedResponses,
    ClientAborts,
    ServerAborts,
    FailedRewrites,
    InternalErrors,
    /// Compression: bytes before, bytes after, responses.
    CompressedIn,
    CompressedOut,
    Compressed,
    /// By class of the status: others, then 1xx to 5xx.
    ResponsesOther,
    Responses1xx,
    Responses2xx,
    Responses3xx,
    Responses4xx,
    Responses5xx,
}
}

/// The number of cells of a row of a frontend or listener.
pub const FRONT_CELLS: usize = FrontCount::CELLS;
/// The number of cells of a row of a backend or server.
pub const BACK_CELLS: usize = BackCount::CELLS;

/// The counters of rows.
pub trait Counted: OfHttp2 {
    /// The first of the cells of response classes.
    const RESPONSES: usize;
    /// The first of the four cells of bytes, in the order of [`Row::add_bytes`].
    const BYTES: usize;

    fn place(self) -> usize;
}

impl Counted for FrontCount {
    const RESPONSES: usize = FrontCount::ResponsesOther as usize;
    const BYTES: usize = FrontCount::BytesFromClients as usize;

    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

impl Counted for BackCount {
    const RESPONSES: usize = BackCount::ResponsesOther as usize;
    const BYTES: usize = BackCount::BytesFromClients as usize;

    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// One worker's counters of one object.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Row<C, const N: usize> {
    cells: [AtomicU64; N],
    of: PhantomData<fn(C)>,
}

/// The row of a frontend or listener.
pub(crate) type FrontRow = Row<FrontCount, FRONT_CELLS>;
/// The row of a backend or server.
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
pub(super) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl<C: Counted, const N: usize> Row<C, N> {
    /// Adds to a counter. Only the worker that owns the row may call this.
    #[inline(always)]
    pub fn add(&self, what: C, by: u64) {
        bump(&self.cells[what.place()], by);
    }

    /// Decrements a gauge. The sums of several workers wrap as well.
    #[inline(always)]
    pub fn take(&self, what: C) {
        self.add(what, u64::MAX);
    }

    /// Adds bytes from clients, to servers, from servers and to clients.
    #[inline(always)]
    pub fn add_bytes(&self, bytes: [u64; 4]) {
        for (place, by) in bytes.into_iter().enumerate() {
            bump(&self.cells[C::BYTES + place], by);
        }
    }

    /// Adds the counts of an HTTP/2 connection. `opened`: the change in the number of its open
    /// streams.
    pub fn add_h2(&self, counts: &http::h2::Counts, opened: i64) {
        for (what, by) in C::counts(counts) {
            self.add(what, u64::from(by));
        }
        self.add(C::OPEN_STREAMS, opened as u64);
    }

    /// A connection of HTTP/2 begins.
    pub fn begin_h2(&self) {
        self.add(C::CONNECTIONS, 1);
        self.add(C::OPEN_CONNECTIONS, 1);
    }

    /// A connection of HTTP/2 has ended.
    pub fn end_h2(&self) {
        self.take(C::OPEN_CONNECTIONS);
    }

    /// Counts a response of this class.
    #[inline(always)]
    pub fn add_response(&self, class: Class) {
        bump(&self.cells[C::RESPONSES + class.0], 1);
    }
}

/// The index of a status among the classes.
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

/// The sums of all workers for an object, by [`FrontCount`] or [`BackCount`].
#[derive(Clone, Copy, Debug)]
pub struct Sums<C, const N: usize> {
    counts: [u64; N],
    of: PhantomData<fn(C)>,
}

/// The sums of a frontend or listener.
pub type FrontSums = Sums<FrontCount, FRONT_CELLS>;

impl<C: Counted, const N: usize> Sums<C, N> {
    pub(crate) fn add(&mut self, what: C, by: u64) {
        let sum = &mut self.counts[what.place()];
        *sum = sum.wrapping_add(by);
    }

    /// One of the counts.
    #[must_use]
    pub fn get(&self, what: C) -> u64 {
        self.counts[what.place()]
    }
}

impl FrontSums {
    /// The requests whose streams have not ended. The sums must not be corrected: what was cleared
    /// while a stream was open counts at its end only.
    #[must_use]
    pub fn open_requests(&self) -> u64 {
        let classes = FrontCount::ResponsesOther as usize..=FrontCount::Responses5xx as usize;
        let answered: u64 = self.counts[classes].iter().sum();
        let ended = answered + self.get(FrontCount::Unanswered);
        self.get(FrontCount::Requests).saturating_sub(ended)
    }
}

/// The part of an object's counters that all workers share.
#[derive(Debug)]
pub(crate) struct Extra<C, const N: usize> {
    /// Added to the sum over the workers.
    corrections: Row<C, N>,
    /// The most requests that waited at once.
    pub(super) queue_max: AtomicU32,
}

/// The shared part of a frontend or listener.
pub(crate) type FrontExtra = Extra<FrontCount, FRONT_CELLS>;
/// The shared part of a backend or server.
pub(crate) type BackExtra = Extra<BackCount, BACK_CELLS>;

impl<C, const N: usize> Default for Extra<C, N> {
    fn default() -> Self {
        Extra {
            corrections: Row::default(),
            queue_max: AtomicU32::new(0),
        }
    }
}

impl<C: Counted, const N: usize> Extra<C, N> {
    /// The corrected sums of the rows of all workers.
    pub(super) fn sums<'a>(&self, rows: impl Iterator<Item = &'a Row<C, N>>) -> Sums<C, N>
    where
        C: 'a,
    {
        let mut counts = self.corrections.read();
        rows.for_each(|row| row.add_to(&mut counts));
        Sums {
            counts,
            of: PhantomData,
        }
    }

    /// Adds the value that another process had counted.
    pub fn preload(&self, what: C, value: u64) {
        self.corrections.cells[what.place()].fetch_add(value, Relaxed);
    }

    /// Subtracts these sums from the counters, but not from the gauges.
    pub fn subtract(&self, sums: &Sums<C, N>) {
        let counters = self.corrections.cells.iter().zip(&sums.counts);
        for (cell, sum) in counters.skip(C::GAUGES) {
            cell.fetch_sub(*sum, Relaxed);
        }
    }

    /// Copies another object's.
    pub(super) fn copy(&self, from: &Extra<C, N>) {
        self.corrections.copy(&from.corrections);
        let queue_max = from.queue_max.load(Relaxed);
        self.queue_max.store(queue_max, Relaxed);
    }

    /// Updates the peak of waiting requests.
    pub(super) fn queue_peak(&self, waiting: u32) {
        self.queue_max.fetch_max(waiting, Relaxed);
    }

    /// Resets the peak of waiting requests.
    pub fn clear_peaks(&self) {
        self.queue_max.store(0, Relaxed);
    }
}

impl<C, const N: usize> Row<C, N> {
    /// Copies another row. No thread may count in either at the same time.
    pub(super) fn copy(&self, from: &Row<C, N>) {
        for (to, from) in self.cells.iter().zip(&from.cells) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    fn add_to(&self, sums: &mut [u64; N]) {
        for (sum, cell) in sums.iter_mut().zip(&self.cells) {
            *sum = sum.wrapping_add(cell.load(Relaxed));
        }
    }

    fn read(&self) -> [u64; N] {
        std::array::from_fn(|place| self.cells[place].load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_statuses() {
        let row = BackRow::default();
        for status in [0, 99, 101, 200, 204, 301, 404, 599, 600, 999] {
            row.add_response(Class::of(status));
        }
        let sums = BackExtra::default().sums([&row].into_iter());
        let classes = BackCount::ResponsesOther as usize;
        assert_eq!(sums.counts[classes..classes + 6], [4, 1, 2, 1, 1, 1]);
    }

    #[test]
    fn clearing_and_loading_correct_the_sums_and_leave_the_cells() {
        let (row, extra) = (BackRow::default(), BackExtra::default());
        let sums = || extra.sums([&row].into_iter());
        let streams = || sums().get(BackCount::Streams);
        row.add(BackCount::Streams, 5);
        extra.preload(BackCount::Streams, 1024);
        assert_eq!(streams(), 1029);
        extra.subtract(&sums());
        assert_eq!(streams(), 0);
        row.add(BackCount::Streams, 2);
        assert_eq!(streams(), 2);
    }

    #[test]
    fn gauges_are_not_cleared_and_fall_across_workers() {
        let (one, other, extra) = (
            FrontRow::default(),
            FrontRow::default(),
            FrontExtra::default(),
        );
        let sums = || extra.sums([&one, &other].into_iter());
        let counted = http::h2::Counts {
            headers: 3,
            ..http::h2::Counts::default()
        };
        one.begin_h2();
        one.add_h2(&counted, 3);
        extra.subtract(&sums());
        assert_eq!(sums().get(FrontCount::H2Headers), 0);
        assert_eq!(sums().get(FrontCount::H2OpenStreams), 3);
        other.begin_h2();
        other.add_h2(&counted, 1);
        one.add_h2(&counted, -2);
        one.end_h2();
        let open = [FrontCount::H2OpenConnections, FrontCount::H2OpenStreams];
        assert_eq!(open.map(|what| sums().get(what)), [1, 2]);
        assert_eq!(sums().get(FrontCount::H2Headers), 6);
    }
}
