//! Fills the fields of HAProxy's modules: HTTP/1, HTTP/2, HTTP/3, QUIC and TLS.

use config::model::Mode;
use stats::{Column, Row};

use super::View;
use super::fill::zero;
use crate::ids::{ProxyId, QuicUser, ServerId};
use crate::shared::{BackCount, BackSums, Count, FrontCount, FrontSums, QuicCount, QuicSums};

/// Counters of TLS, of frontends and listeners.
const FRONT_TLS: [(Column, FrontCount); 3] = [
    (Column::SslSess, FrontCount::TlsSessions),
    (Column::SslReusedSess, FrontCount::TlsResumed),
    (Column::SslFailed, FrontCount::TlsFailed),
];

/// Counters of TLS, of backends and servers.
const BACK_TLS: [(Column, BackCount); 3] = [
    (Column::SslSess, BackCount::TlsSessions),
    (Column::SslReusedSess, BackCount::TlsResumed),
    (Column::SslFailed, BackCount::TlsFailed),
];

/// Counters of HTTP/2, of frontends.
const FRONT_H2: [(Column, FrontCount); 13] = [
    (Column::H2HeadersRcvd, FrontCount::H2Headers),
    (Column::H2DataRcvd, FrontCount::H2Data),
    (Column::H2SettingsRcvd, FrontCount::H2Settings),
    (Column::H2RstStreamRcvd, FrontCount::H2Resets),
    (Column::H2GoawayRcvd, FrontCount::H2Goaways),
    (Column::H2ConnErrors, FrontCount::H2ConnectionErrors),
    (Column::H2StrmErrors, FrontCount::H2StreamErrors),
    (Column::H2RstStreamResp, FrontCount::H2SentResets),
    (Column::H2GoawayResp, FrontCount::H2SentGoaways),
    (Column::H2OpenConn, FrontCount::H2OpenConnections),
    (Column::H2OpenStreams, FrontCount::H2OpenStreams),
    (Column::H2TotalConn, FrontCount::H2Connections),
    (Column::H2TotalStreams, FrontCount::H2Streams),
];

/// Counters of HTTP/2, of backends.
const BACK_H2: [(Column, BackCount); 13] = [
    (Column::H2HeadersRcvd, BackCount::H2Headers),
    (Column::H2DataRcvd, BackCount::H2Data),
    (Column::H2SettingsRcvd, BackCount::H2Settings),
    (Column::H2RstStreamRcvd, BackCount::H2Resets),
    (Column::H2GoawayRcvd, BackCount::H2Goaways),
    (Column::H2ConnErrors, BackCount::H2ConnectionErrors),
    (Column::H2StrmErrors, BackCount::H2StreamErrors),
    (Column::H2RstStreamResp, BackCount::H2SentResets),
    (Column::H2GoawayResp, BackCount::H2SentGoaways),
    (Column::H2OpenConn, BackCount::H2OpenConnections),
    (Column::H2OpenStreams, BackCount::H2OpenStreams),
    (Column::H2TotalConn, BackCount::H2Connections),
    (Column::H2TotalStreams, BackCount::H2Streams),
];

/// Connections, messages and bytes over HTTP/1: those of all versions without those of HTTP/2 and
/// HTTP/3. Each worker counts on its own, so that a difference may lag.
#[derive(Clone, Copy, Debug, Default)]
struct Http1 {
    open_connections: u64,
    open_streams: u64,
    connections: u64,
    streams: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl Http1 {
    fn fill(self, row: &mut Row<'_>) {
        row.set(Column::H1OpenConn, self.open_connections);
        row.set(Column::H1OpenStreams, self.open_streams);
        row.set(Column::H1TotalConn, self.connections);
        row.set(Column::H1TotalStreams, self.streams);
        row.set(Column::H1BytesIn, self.bytes_in);
        row.set(Column::H1BytesOut, self.bytes_out);
        zero(row, &[Column::H1SplicedIn, Column::H1SplicedOut]);
    }
}

/// Fills the TLS fields in the row of a frontend or listener.
pub(super) fn front_tls(row: &mut Row<'_>, sums: &FrontSums) {
    for (column, count) in FRONT_TLS {
        row.set(column, sums.get(count));
    }
}

/// Fills the TLS fields in the row of a backend or server.
pub(super) fn back_tls(row: &mut Row<'_>, sums: &BackSums) {
    for (column, count) in BACK_TLS {
        row.set(column, sums.counts.get(count));
    }
}

impl View<'_> {
    /// Fills the fields of all versions of HTTP, and of QUIC, in the row of a frontend.
    pub(super) fn front_modules(&self, row: &mut Row<'_>, id: ProxyId, sums: &FrontSums) {
        for (column, count) in FRONT_H2 {
            row.set(column, sums.get(count));
        }
        let quic = self.shared.quic_sums(QuicUser::Frontend(id));
        for (column, count) in quic.columns() {
            row.set(column, count);
        }
        self.front_http1(id, sums, &quic).fill(row);
    }

    /// Fills the fields of all versions of HTTP, and of QUIC, in the row of a backend.
    pub(super) fn back_modules(&self, row: &mut Row<'_>, id: ProxyId, sums: &BackSums) {
        for (column, count) in BACK_H2 {
            row.set(column, sums.counts.get(count));
        }
        let quic = self.shared.quic_sums(QuicUser::Backend(id));
        for (column, count) in quic.columns() {
            row.set(column, count);
        }
        self.back_http1(id, sums, &quic).fill(row);
    }

    /// HTTP/1 of a frontend's clients.
    fn front_http1(&self, id: ProxyId, sums: &FrontSums, quic: &QuicSums) -> Http1 {
        if self.runtime_config.proxy(id).mode != Mode::Http {
            return Http1::default();
        }
        let of = |what| sums.get(what);
        // What is open now does not depend on what was cleared.
        let since_start = self.shared.front_sums_uncorrected(id);
        let open = since_start.open_requests();
        let open_others = of(FrontCount::H2OpenStreams) + quic.get(QuicCount::OpenRequests);
        let connections = u64::from(self.shared.count(Count::Frontend(id)));
        let connections_others =
            of(FrontCount::H2OpenConnections) + quic.get(QuicCount::OpenConnections);
        let without = |all, h2, h3| {
            let others = of(h2) + quic.get(h3);
            of(all).saturating_sub(others)
        };
        Http1 {
            open_connections: connections.saturating_sub(connections_others),
            open_streams: open.saturating_sub(open_others),
            connections: without(
                FrontCount::Sessions,
                FrontCount::H2Connections,
                QuicCount::Sessions,
            ),
            streams: without(
                FrontCount::Requests,
                FrontCount::RequestsH2,
                QuicCount::Requests,
            ),
            bytes_in: without(
                FrontCount::BytesFromClients,
                FrontCount::H2BytesIn,
                QuicCount::BytesIn,
            ),
            bytes_out: without(
                FrontCount::BytesToClients,
                FrontCount::H2BytesOut,
                QuicCount::BytesOut,
            ),
        }
    }

    /// HTTP/1 of a backend's servers.
    fn back_http1(&self, id: ProxyId, sums: &BackSums, quic: &QuicSums) -> Http1 {
        if self.runtime_config.proxy(id).mode != Mode::Http {
            return Http1::default();
        }
        let of = |what| sums.counts.get(what);
        let count = |what: fn(ServerId) -> Count| {
            let servers = self.servers.of(id);
            let counts = servers.map(|(server, _)| u64::from(self.shared.count(what(server))));
            counts.sum::<u64>()
        };
        let without = |all, h2, h3| of(all).saturating_sub(of(h2) + quic.get(h3));
        let open_connections =
            of(BackCount::H2OpenConnections) + quic.get(QuicCount::OpenConnections);
        let open_streams = of(BackCount::H2OpenStreams) + quic.get(QuicCount::OpenRequests);
        let shared_streams = of(BackCount::H2Streams) + quic.get(QuicCount::Requests);
        let connections = count(Count::Connections);
        let streams = count(Count::Server);
        // Each attempt to connect is for a request.
        let requests = of(BackCount::Connects) + of(BackCount::Reuses);
        Http1 {
            open_connections: connections.saturating_sub(open_connections),
            open_streams: streams.saturating_sub(open_streams),
            connections: without(
                BackCount::Connects,
                BackCount::H2Connections,
                QuicCount::Sessions,
            ),
            streams: requests.saturating_sub(shared_streams),
            bytes_in: without(
                BackCount::BytesFromServers,
                BackCount::H2BytesIn,
                QuicCount::BytesIn,
            ),
            bytes_out: without(
                BackCount::BytesToServers,
                BackCount::H2BytesOut,
                QuicCount::BytesOut,
            ),
        }
    }
}
