//! The counters of HTTP/3 and QUIC. Only frontends with lines of QUIC and backends with servers of
//! QUIC have them, because they are many.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use config::model::{Bind, BindAddress, Proxy};
use stats::Column;

use super::rows::bump;
use crate::ids::{ProxyId, QuicUser};

/// The first and the last of the fields that have a cell.
const FIRST: Column = Column::H3Data;
const LAST: Column = Column::QuicNcbufGapLimit;
const COLUMNS: usize = LAST as usize - FIRST as usize + 1;
/// The cells of fields, and of [`QuicCount`].
const CELLS: usize = COLUMNS + QuicCount::BytesOut as usize + 1;

/// What HTTP/3 is to other fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicCount {
    /// A gauge.
    OpenConnections,
    /// A gauge.
    OpenRequests,
    /// Connections and requests.
    Sessions,
    Requests,
    /// Bytes of messages.
    BytesIn,
    BytesOut,
}

/// One worker's counters of HTTP/3 and QUIC of a side of a proxy.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct QuicRow([AtomicU64; CELLS]);

impl Default for QuicRow {
    fn default() -> Self {
        QuicRow(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// The two sides of a proxy.
pub(super) fn users(proxy: ProxyId) -> [QuicUser; 2] {
    [QuicUser::Frontend(proxy), QuicUser::Backend(proxy)]
}

/// Whether the clients and the servers of a proxy have such counters.
pub(super) fn has_quic(proxy: &Proxy) -> [bool; 2] {
    let is_quic = |bind: &Bind| matches!(bind.address, BindAddress::Quic(_));
    [
        proxy.binds.iter().any(is_quic),
        proxy.servers.iter().any(|server| server.is_quic),
    ]
}

/// The place of a field among the cells.
fn place(column: Column) -> Option<usize> {
    let place = (column as usize).checked_sub(FIRST as usize)?;
    (place < COLUMNS).then_some(place)
}

/// Whether a cell is a gauge. `clear counters` does not reset gauges.
fn is_gauge(at: usize) -> bool {
    let gauges = [QuicCount::OpenConnections, QuicCount::OpenRequests];
    place(Column::QuicHalfOpenConn) == Some(at)
        || gauges.iter().any(|gauge| COLUMNS + *gauge as usize == at)
}

/// The field that counts a peer's code for the end of a connection (RFC 9114 §8.1, RFC 9204 §6).
fn field_of_h3(code: u64) -> Option<Column> {
    let (first, place) = match code {
        0x100..=0x110 => (Column::H3NoError, code - 0x100),
        0x200..=0x202 => (Column::QpackDecompressionFailed, code - 0x200),
        _ => return None,
    };
    first.after(place as usize)
}

/// The same for codes of the transport (RFC 9000 §20.1).
fn field_of_transport(code: u64) -> Option<Column> {
    match code {
        0..=0x10 => Column::QuicErrNoError.after(code as usize),
        0x100..=0x1ff => Some(Column::QuicErrCryptoError),
        _ => Some(Column::QuicErrUnknownError),
    }
}

impl QuicRow {
    /// Adds to a field of HTTP/3 or QUIC. Only the worker that owns the row may call this and the
    /// other methods that change it.
    pub fn tell(&self, column: Column, by: u64) {
        debug_assert!(place(column).is_some(), "{column:?} has a cell");
        if let Some(at) = place(column) {
            bump(&self.0[at], by);
        }
    }

    /// Decrements the gauge of connections whose clients have not shown their address.
    pub fn end_half_open(&self) {
        self.tell(Column::QuicHalfOpenConn, u64::MAX);
    }

    /// Adds to a count.
    pub fn add(&self, what: QuicCount, by: u64) {
        bump(&self.0[COLUMNS + what as usize], by);
    }

    /// Decrements a gauge.
    pub fn take(&self, what: QuicCount) {
        self.add(what, u64::MAX);
    }

    /// A connection of HTTP/3 begins.
    pub fn begin(&self) {
        self.add(QuicCount::Sessions, 1);
        self.add(QuicCount::OpenConnections, 1);
    }

    /// Adds the counts of a connection of HTTP/3 to a server, whose open requests have changed by
    /// `opened`. Requests of clients are counted one by one.
    pub fn tell_requests(&self, counts: &http::h2::Counts, opened: i64) {
        self.tell_frames(counts);
        self.add(QuicCount::Requests, u64::from(counts.streams));
        self.add(QuicCount::OpenRequests, opened as u64);
    }

    /// Adds the counts of a connection of HTTP/3.
    pub fn tell_frames(&self, counts: &http::h2::Counts) {
        for (column, by) in [
            (Column::H3Data, counts.data),
            (Column::H3Headers, counts.headers),
            (Column::H3CancelPush, counts.cancelled_pushes),
            (Column::H3MaxPushId, counts.push_limits),
            (Column::H3Goaway, counts.goaways),
            (Column::H3Settings, counts.settings),
        ] {
            self.tell(column, u64::from(by));
        }
    }

    /// A peer has closed a connection with a code of HTTP/3.
    pub fn tell_h3_end(&self, code: u64) {
        if let Some(column) = field_of_h3(code) {
            self.tell(column, 1);
        }
    }

    /// A peer has ended a connection with a code of the transport.
    pub fn tell_transport_end(&self, code: u64) {
        if let Some(column) = field_of_transport(code) {
            self.tell(column, 1);
        }
    }

    /// Copies another row. No thread may count in either at the same time.
    pub(super) fn copy(&self, from: &QuicRow) {
        for (to, from) in self.0.iter().zip(&from.0) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// Subtracts these sums from the counters, but not from the gauges.
    pub(super) fn subtract(&self, sums: &QuicSums) {
        for (at, (cell, sum)) in self.0.iter().zip(&sums.0).enumerate() {
            if !is_gauge(at) {
                cell.fetch_sub(*sum, Relaxed);
            }
        }
    }
}

/// The sums of all workers for a side of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuicSums([u64; CELLS]);

impl Default for QuicSums {
    fn default() -> Self {
        QuicSums([0; CELLS])
    }
}

impl QuicSums {
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a QuicRow>) -> QuicSums {
        let mut sums = QuicSums::default();
        for row in rows {
            for (sum, cell) in sums.0.iter_mut().zip(&row.0) {
                *sum = sum.wrapping_add(cell.load(Relaxed));
            }
        }
        sums
    }

    /// The fields with their sums.
    pub fn columns(&self) -> impl Iterator<Item = (Column, u64)> {
        let columns = Column::ALL[FIRST as usize..=LAST as usize].iter();
        columns.copied().zip(self.0)
    }

    /// A count.
    pub fn get(&self, what: QuicCount) -> u64 {
        self.0[COLUMNS + what as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(row: &QuicRow, column: Column) -> u64 {
        let sums = QuicSums::of([row].into_iter());
        let found = sums.columns().find(|(of, _)| *of == column);
        found.expect("a cell").1
    }

    #[test]
    fn codes_are_counted_by_their_names() {
        let row = QuicRow::default();
        for (code, name) in [
            (0x100, "h3_no_error"),
            (0x10c, "h3_request_cancelled"),
            (0x110, "h3_version_fallback"),
            (0x200, "pack_decompression_failed"),
            (0x202, "qpack_decoder_stream_error"),
        ] {
            row.tell_h3_end(code);
            assert_eq!(sum(&row, Column::named(name).expect(name)), 1, "{name}");
        }
        for code in [0, 0xff, 0x111, 0x203, u64::MAX] {
            row.tell_h3_end(code);
        }
        for (code, name) in [
            (0, "quic_transp_err_no_error"),
            (2, "quic_transp_err_connection_refused"),
            (0xa, "quic_transp_err_protocol_violation_error"),
            (0x10, "quic_transp_err_no_viable_path"),
            (0x128, "quic_transp_err_crypto_error"),
            (0x11, "quic_transp_err_unknown_error"),
        ] {
            row.tell_transport_end(code);
            assert_eq!(sum(&row, Column::named(name).expect(name)), 1, "{name}");
        }
        let all = QuicSums::of([&row].into_iter());
        let total: u64 = all.columns().map(|(_, count)| count).sum();
        assert_eq!(total, 11);
    }

    #[test]
    fn clearing_leaves_the_gauges() {
        let (row, correction) = (QuicRow::default(), QuicRow::default());
        let sums = || QuicSums::of([&row, &correction].into_iter());
        row.tell(Column::QuicHalfOpenConn, 2);
        row.tell(Column::QuicSentPkt, 9);
        row.add(QuicCount::OpenConnections, 3);
        row.add(QuicCount::Sessions, 3);
        correction.subtract(&sums());
        let found = |column| {
            let sums = sums();
            sums.columns()
                .find(|(of, _)| *of == column)
                .map(|one| one.1)
        };
        assert_eq!(found(Column::QuicHalfOpenConn), Some(2));
        assert_eq!(found(Column::QuicSentPkt), Some(0));
        assert_eq!(sums().get(QuicCount::OpenConnections), 3);
        assert_eq!(sums().get(QuicCount::Sessions), 0);
        row.end_half_open();
        row.take(QuicCount::OpenConnections);
        assert_eq!(found(Column::QuicHalfOpenConn), Some(1));
        assert_eq!(sums().get(QuicCount::OpenConnections), 2);
    }
}
