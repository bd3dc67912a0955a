//! The counters of proxies, listeners, servers and the process: summed over the workers, and reset.

use config::model::{Config, Mode};
use net::WorkerId;

use super::latency::{LatencyRow, Whose};
use super::tallies::{
    BackCount, BackExtra, BackRow, BackSums, FrontCount, FrontRow, FrontSums, QuicCount, QuicRow,
    QuicSums, ServerRow, Tallies,
};
use super::{Count, Pace, Shared};
use crate::ids::{BindId, ProxyId, QuicUser, ServerId};

/// The activity of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Client connections since the start.
    pub connections: u64,
    /// Client connections of the last second.
    pub connection_rate: u32,
    /// The most client connections within a second.
    pub connection_rate_max: u32,
    /// The most sessions within a second.
    pub session_rate_max: u32,
    /// Sessions of the last second: connections that passed the connection rules.
    pub session_rate: u32,
    /// Requests since the start.
    pub requests: u64,
}

impl Shared {
    /// `worker`'s row of a frontend.
    #[inline]
    pub(crate) fn front_row(&self, worker: WorkerId, frontend: ProxyId) -> &FrontRow {
        self.tallies.front(worker, frontend)
    }

    /// `worker`'s row of HTTP/3 and QUIC of a frontend or backend; none if its lines have no QUIC.
    pub(crate) fn quic_row(&self, worker: WorkerId, user: QuicUser) -> Option<&QuicRow> {
        self.tallies.quic(worker, user)
    }

    /// The counters of HTTP/3 and QUIC of a frontend or backend.
    pub(crate) fn quic_sums(&self, user: QuicUser) -> QuicSums {
        self.tallies.quic_sums(user)
    }

    /// `worker`'s row of a listener of a frontend with `option socket-stats`.
    pub(crate) fn bind_row(&self, worker: WorkerId, bind: BindId) -> &FrontRow {
        self.tallies.bind(worker, bind)
    }

    /// `worker`'s row of a backend.
    #[inline]
    pub(crate) fn back_row(&self, worker: WorkerId, backend: ProxyId) -> &BackRow {
        self.tallies.back(worker, backend)
    }

    /// `worker`'s row of a server.
    #[inline]
    pub(crate) fn server_row(&self, worker: WorkerId, server: ServerId) -> &ServerRow {
        self.tallies
            .server(worker, self.counts.server_number(server))
    }

    /// The number of a server among all servers.
    pub(crate) fn server_number(&self, server: ServerId) -> usize {
        self.counts.server_number(server)
    }

    /// `worker`'s histograms of the times of streams.
    pub(crate) fn latency_row(&self, worker: WorkerId, whose: Whose) -> &LatencyRow {
        self.latencies.row(worker, whose)
    }

    /// The sums of the histograms of all workers.
    pub(crate) fn latency(&self, whose: Whose) -> stats::latency::Latency {
        self.latencies.sums(whose)
    }

    /// The counters of a frontend.
    pub(crate) fn front_sums(&self, frontend: ProxyId) -> FrontSums {
        let mut sums = self.tallies.front_sums(frontend);
        let requests = self.counts.total(Pace::Requests(frontend));
        sums.add(FrontCount::Requests, requests);
        sums
    }

    /// The counters of a frontend since the start, whatever was cleared or loaded.
    pub(crate) fn front_sums_uncorrected(&self, frontend: ProxyId) -> FrontSums {
        let mut sums = self.tallies.front_sums_uncorrected(frontend);
        let requests = self.counts.total(Pace::Requests(frontend));
        sums.add(FrontCount::Requests, requests);
        sums
    }

    /// Streams now: the requests whose streams have not ended, and the connections of frontends in
    /// TCP mode.
    #[must_use]
    pub fn streams_now(&self, config: &Config) -> u64 {
        let proxies = config.proxies.iter().enumerate();
        let streams = proxies.map(|(place, proxy)| {
            let id = ProxyId::at(place);
            match proxy.mode {
                Mode::Http => self.front_sums_uncorrected(id).open_requests(),
                Mode::Tcp | Mode::Log => u64::from(self.count(Count::Frontend(id))),
            }
        });
        streams.sum()
    }

    /// Whether the statistics know of no open request, stream or connection.
    pub(crate) fn has_nothing_open(&self) -> bool {
        let mut proxies = (0..self.servers.backends()).map(ProxyId::at);
        proxies.all(|proxy| {
            let front = self.front_sums_uncorrected(proxy);
            let back = self.back_sums(proxy).counts;
            let quics = [QuicUser::Frontend(proxy), QuicUser::Backend(proxy)];
            let [clients, servers] = quics.map(|user| self.quic_sums(user));
            let open = [
                front.open_requests(),
                front.get(FrontCount::H2OpenConnections),
                front.get(FrontCount::H2OpenStreams),
                back.get(BackCount::H2OpenConnections),
                back.get(BackCount::H2OpenStreams),
                clients.get(QuicCount::OpenConnections),
                clients.get(QuicCount::OpenRequests),
                servers.get(QuicCount::OpenConnections),
                servers.get(QuicCount::OpenRequests),
            ];
            open == [0; 9]
        })
    }

    /// The counters of a listener of a frontend with `option socket-stats`.
    pub(crate) fn bind_sums(&self, bind: BindId) -> FrontSums {
        self.tallies.bind_sums(bind)
    }

    /// The counters of a backend.
    pub(crate) fn back_sums(&self, backend: ProxyId) -> BackSums {
        let tables = self.server_tables();
        let servers = tables.of(backend);
        let servers = servers.map(|(server, _)| self.counts.server_number(server));
        let mut sums = self.tallies.back_sums(backend, servers);
        let streams = self.counts.total(Pace::Streams(backend));
        sums.counts.add(BackCount::Streams, streams);
        sums
    }

    /// The counters of a server.
    pub(crate) fn server_sums(&self, server: ServerId) -> BackSums {
        let mut sums = self.tallies.server_sums(self.counts.server_number(server));
        let streams = self.counts.total(Pace::Server(server));
        sums.counts.add(BackCount::Streams, streams);
        sums
    }

    /// Resets the counters of a frontend and its listeners. `all`: all counters, not only the
    /// peaks; and the time. `binds`: the number of listeners with counters of their own.
    pub(crate) fn clear_frontend(
        &self,
        frontend: ProxyId,
        binds: usize,
        (all, now_ms): (bool, u64),
    ) {
        self.counts.clear_most(Count::Frontend(frontend));
        for pace in [
            Pace::Sessions(frontend),
            Pace::Connections(frontend),
            Pace::Requests(frontend),
        ] {
            self.counts.clear_peak(pace, now_ms);
        }
        if all {
            let sums = self.front_sums(frontend);
            self.tallies.front_extra(frontend).subtract(&sums);
            self.tallies.clear_quic(QuicUser::Frontend(frontend));
        }
        for place in 0..binds {
            let bind = BindId { frontend, place };
            self.counts.clear_most(Count::Bind(bind));
            if all {
                let sums = self.bind_sums(bind);
                self.tallies.bind_extra(bind).subtract(&sums);
            }
        }
    }

    /// Resets the counters of a backend, without those of its servers.
    pub(crate) fn clear_backend(&self, backend: ProxyId, (all, now_ms): (bool, u64)) {
        self.counts.clear_most(Count::Backend(backend));
        self.counts.clear_peak(Pace::Streams(backend), now_ms);
        let extra = self.tallies.back_extra(backend);
        extra.clear_peaks();
        if all {
            extra.subtract(&self.back_sums(backend).counts);
            self.tallies.clear_quic(QuicUser::Backend(backend));
        }
    }

    /// Resets the counters of a server.
    pub(crate) fn clear_server(&self, server: ServerId, (all, now_ms): (bool, u64)) {
        self.counts.clear_most(Count::Server(server));
        self.counts.clear_peak(Pace::Server(server), now_ms);
        let number = self.counts.server_number(server);
        let extra = self.tallies.server_extra(number);
        extra.clear_peaks();
        self.tallies.clear_longest(number);
        if all {
            extra.subtract(&self.server_sums(server).counts);
            self.tallies.restart_averages(number);
        }
    }

    /// Resets the peaks of the process.
    pub(crate) fn clear_process(&self, now_ms: u64) {
        for pace in [
            Pace::ProcessConnections,
            Pace::ProcessSessions,
            Pace::TlsClients,
            Pace::TlsClientKeys,
            Pace::TlsServerKeys,
        ] {
            self.counts.clear_peak(pace, now_ms);
        }
    }

    /// The shared part of a server's counters.
    pub(crate) fn server_extra(&self, server: ServerId) -> &BackExtra {
        self.tallies.server_extra(self.counts.server_number(server))
    }

    /// All counters, for adding those of a file.
    pub(crate) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Events since the start, all workers together.
    pub(crate) fn event_total(&self, what: Pace) -> u64 {
        self.counts.total(what)
    }

    /// The highest total, all workers together.
    pub(crate) fn most(&self, what: Count) -> u32 {
        self.counts.most(what)
    }

    /// The most events within a second, all workers together.
    pub(crate) fn peak_rate(&self, what: Pace) -> u32 {
        self.counts.peak(what)
    }

    /// The time of the last event, to the second, monotonic milliseconds.
    pub(crate) fn last_event_ms(&self, what: Pace) -> Option<u64> {
        self.counts.last_ms(what)
    }

    /// Connections that a proxy accepted as a frontend, and streams that it received as a backend,
    /// since the start.
    #[must_use]
    pub fn cumulated(&self, proxy: usize) -> (u64, u64) {
        let proxy = ProxyId::at(proxy);
        let of = |what| self.counts.total(what);
        (of(Pace::Sessions(proxy)), of(Pace::Streams(proxy)))
    }

    /// Current connections of a proxy as a frontend, and streams as a backend.
    #[must_use]
    pub fn current(&self, proxy: usize) -> (u32, u32) {
        let proxy = ProxyId::at(proxy);
        (
            self.count(Count::Frontend(proxy)),
            self.count(Count::Backend(proxy)),
        )
    }

    /// The number of requests that wait for any server of a backend.
    #[must_use]
    pub fn unassigned(&self, backend: usize) -> u32 {
        self.queued(ProxyId::at(backend))
    }

    /// The number of streams of a server since the start; the server is given by the place of its
    /// backend and its own.
    #[must_use]
    pub fn server_streams(&self, backend: usize, server: usize) -> u64 {
        let server = ServerId::at(ProxyId::at(backend), server);
        self.counts.total(Pace::Server(server))
    }

    /// The activity of the process.
    #[must_use]
    pub fn activity(&self, now_ms: u64) -> Activity {
        let proxies = (0..self.servers.backends()).map(ProxyId::at);
        Activity {
            connections: self.counts.total(Pace::ProcessConnections),
            connection_rate: self.rate(Pace::ProcessConnections, now_ms),
            connection_rate_max: self.peak_rate(Pace::ProcessConnections),
            session_rate: self.rate(Pace::ProcessSessions, now_ms),
            session_rate_max: self.peak_rate(Pace::ProcessSessions),
            requests: proxies
                .map(|proxy| self.counts.total(Pace::Requests(proxy)))
                .sum(),
        }
    }
}
