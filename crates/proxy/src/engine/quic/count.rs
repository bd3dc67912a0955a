//! The counters of QUIC (`quic_*`, and the codes of `h3_*`). What a connection counts of itself is
//! added when it has ended.

use quic::Lost;
use stats::Column;

use crate::evaluation::Ambient;
use crate::ids::QuicUser;
use crate::link::QuicLink;
use crate::shared::QuicRow;

/// The counters that a connection adds to; none of a backend whose servers of QUIC were all added
/// at run time.
fn row_of(ambient: &Ambient, user: QuicUser) -> Option<&QuicRow> {
    ambient.shared.quic_row(ambient.worker, user)
}

/// Adds to a field.
pub(super) fn tell(ambient: &Ambient, user: QuicUser, column: Column, by: u64) {
    if let Some(row) = row_of(ambient, user) {
        row.tell(column, by);
    }
}

/// The client of a half-open connection has shown its address, or the connection has ended: lowers
/// the gauge.
pub(super) fn end_half_open(ambient: &Ambient, quic: &mut QuicLink) {
    if std::mem::take(&mut quic.is_half_open)
        && let Some(row) = row_of(ambient, quic.user)
    {
        row.end_half_open();
    }
}

/// A connection has ended.
pub(super) fn tell_end(ambient: &Ambient, quic: &mut QuicLink) {
    end_half_open(ambient, quic);
    let Some(row) = row_of(ambient, quic.user) else {
        return;
    };
    let report = quic.connection.report();
    for (column, by) in [
        (Column::QuicSocketFull, quic.without_room),
        (Column::QuicSentPkt, report.sent_packets),
        (Column::QuicLostPkt, report.lost_packets),
        (Column::QuicConnMigrationDone, report.migrations),
        (Column::QuicDataBlocked, report.blocked.data),
        (Column::QuicStreamDataBlocked, report.blocked.stream_data),
        (Column::QuicStreamsBlockedBidi, report.blocked.streams_bidi),
        (Column::QuicStreamsBlockedUni, report.blocked.streams_uni),
    ] {
        row.tell(column, by);
    }
    match quic.connection.lost() {
        Some(Lost::Closed(code)) => row.tell_h3_end(*code),
        Some(Lost::Ended(code)) => row.tell_transport_end(*code),
        Some(Lost::ClosedHere | Lost::TimedOut | Lost::Reset | Lost::Failed(_)) | None => {}
    }
}
