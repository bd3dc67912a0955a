//! Fills the fields of each kind of row (management guide §9.1).

use config::model::{BindAddress, Mode, Proxy, ServerAddress};
use net::Addr;
use stats::latency::Latency;
use stats::{Column, Kind, Row};

use super::{Selection, View, health, modules};
use crate::ids::{BindId, ProxyId, QuicUser, ServerId};
use crate::shared::{
    BackCount, BackSums, Count, FrontCount, FrontSums, FrontendState, Pace, QuicCount,
    ServerRecord, Times, Whose,
};

/// Counters of features that do not exist here; HAProxy shows 0 where a feature is unused.
const ALWAYS_ZERO: [Column; 1] = [Column::CompByp];
const ZERO_IN_HTTP: [Column; 3] = [
    Column::CacheLookups,
    Column::CacheHits,
    Column::CacheHintHits,
];

/// Counters of frontends and listeners.
pub(super) const FRONT: &[(Column, FrontCount)] = &[
    (Column::Bin, FrontCount::BytesFromClients),
    (Column::Bout, FrontCount::BytesFromServers),
    (Column::ReqIn, FrontCount::BytesFromClients),
    (Column::ReqOut, FrontCount::BytesToServers),
    (Column::ResIn, FrontCount::BytesFromServers),
    (Column::ResOut, FrontCount::BytesToClients),
    (Column::Stot, FrontCount::Sessions),
    (Column::Dreq, FrontCount::DeniedRequests),
    (Column::Dresp, FrontCount::DeniedResponses),
    (Column::Ereq, FrontCount::FailedRequests),
    (Column::ConnTot, FrontCount::Connections),
    (Column::Dcon, FrontCount::DeniedConnections),
    (Column::Dses, FrontCount::DeniedSessions),
    (Column::Wrew, FrontCount::FailedRewrites),
    (Column::Eint, FrontCount::InternalErrors),
];

/// Compression counters of frontends.
const FRONT_COMPRESSION: [(Column, FrontCount); 3] = [
    (Column::CompIn, FrontCount::CompressedIn),
    (Column::CompOut, FrontCount::CompressedOut),
    (Column::CompRsp, FrontCount::Compressed),
];

/// Compression counters of backends.
const BACK_COMPRESSION: [(Column, BackCount); 3] = [
    (Column::CompIn, BackCount::CompressedIn),
    (Column::CompOut, BackCount::CompressedOut),
    (Column::CompRsp, BackCount::Compressed),
];

/// Counters of HTTP frontends.
pub(super) const FRONT_HTTP: &[(Column, FrontCount)] = &[
    (Column::HrspOther, FrontCount::ResponsesOther),
    (Column::Hrsp1xx, FrontCount::Responses1xx),
    (Column::Hrsp2xx, FrontCount::Responses2xx),
    (Column::Hrsp3xx, FrontCount::Responses3xx),
    (Column::Hrsp4xx, FrontCount::Responses4xx),
    (Column::Hrsp5xx, FrontCount::Responses5xx),
    (Column::ReqTot, FrontCount::Requests),
    (Column::Intercepted, FrontCount::Intercepted),
];

/// Counters of backends and servers.
pub(super) const BACK: &[(Column, BackCount)] = &[
    (Column::Stot, BackCount::Streams),
    (Column::Bin, BackCount::BytesFromClients),
    (Column::Bout, BackCount::BytesFromServers),
    (Column::ReqIn, BackCount::BytesFromClients),
    (Column::ReqOut, BackCount::BytesToServers),
    (Column::ResIn, BackCount::BytesFromServers),
    (Column::ResOut, BackCount::BytesToClients),
    (Column::Dresp, BackCount::DeniedResponses),
    (Column::Econ, BackCount::FailedConnects),
    (Column::Eresp, BackCount::FailedResponses),
    (Column::Wretr, BackCount::Retries),
    (Column::Wredis, BackCount::Redispatches),
    (Column::RetrRefused, BackCount::RefusedRetries),
    (Column::Lbtot, BackCount::Balanced),
    (Column::CliAbrt, BackCount::ClientAborts),
    (Column::SrvAbrt, BackCount::ServerAborts),
    (Column::Wrew, BackCount::FailedRewrites),
    (Column::Eint, BackCount::InternalErrors),
    (Column::Connect, BackCount::Connects),
    (Column::Reuse, BackCount::Reuses),
];

/// Counters of HTTP backends: responses, whose sum is the number of requests.
pub(super) const BACK_HTTP: &[(Column, BackCount)] = &[
    (Column::HrspOther, BackCount::ResponsesOther),
    (Column::Hrsp1xx, BackCount::Responses1xx),
    (Column::Hrsp2xx, BackCount::Responses2xx),
    (Column::Hrsp3xx, BackCount::Responses3xx),
    (Column::Hrsp4xx, BackCount::Responses4xx),
    (Column::Hrsp5xx, BackCount::Responses5xx),
];

const fn mode(proxy: &Proxy) -> &'static str {
    match proxy.mode {
        Mode::Tcp => "tcp",
        Mode::Http => "http",
        Mode::Log => "syslog",
    }
}

fn address(addr: &Addr) -> String {
    match addr {
        Addr::Inet(addr) => addr.to_string(),
        Addr::Unix(_) => "unix".to_owned(),
    }
}

pub(super) fn zero(row: &mut Row<'_>, columns: &[Column]) {
    for column in columns {
        row.set(*column, 0_u64);
    }
}

impl<'a> View<'a> {
    fn row(&self, kind: Kind, proxy: &'a Proxy, name: &'a str, sid: u32) -> Row<'a> {
        let mut row = Row::new(kind);
        row.set(Column::Pxname, proxy.name.as_str());
        row.set(Column::Svname, name);
        row.set(Column::Pid, 1_u32);
        row.set(Column::Iid, proxy.id);
        row.set(Column::Sid, sid);
        row.set(Column::Mode, mode(proxy));
        row
    }

    /// Fills the common fields of frontends and listeners.
    fn front(row: &mut Row<'_>, sums: &FrontSums) {
        for (column, count) in FRONT {
            row.set(*column, sums.get(*count));
        }
        modules::front_tls(row, sums);
    }

    /// The histograms of a proxy's streams, or of one of its servers, if they are measured.
    fn latency(&self, proxy: &Proxy, whose: Whose) -> Option<Box<Latency>> {
        let measures = proxy.options.latency_histograms;
        measures.then(|| Box::new(self.shared.latency(whose)))
    }

    /// A frontend's row.
    pub(crate) fn frontend(&self, id: ProxyId) -> Row<'a> {
        let proxy = self.runtime_config.proxy(id);
        let sums = self.shared.front_sums(id);
        let mut row = self.row(Kind::Frontend, proxy, "FRONTEND", 0);
        Self::front(&mut row, &sums);
        row.latency = self.latency(proxy, Whose::Frontend(id));
        let now_ms = self.now.ms();
        let rate = |pace| self.shared.rate(pace, now_ms);
        let peak = |pace| self.shared.peak_rate(pace);
        row.set(Column::Scur, self.shared.count(Count::Frontend(id)));
        row.set(Column::Smax, self.shared.most(Count::Frontend(id)));
        self.front_modules(&mut row, id, &sums);
        let own_max = self.shared.frontend_maxconn(id.place());
        let max = if own_max > 0 {
            own_max
        } else {
            self.shared.maxconn()
        };
        row.set(Column::Slim, max);
        let status = match self.shared.frontend_state(id.place()) {
            FrontendState::Open => "OPEN",
            FrontendState::Paused => "PAUSED",
            FrontendState::Closed => "STOP",
        };
        row.set(Column::Status, status);
        row.set(Column::Rate, rate(Pace::Sessions(id)));
        row.set(Column::RateLim, proxy.rate_limit_sessions.unwrap_or(0));
        row.set(Column::RateMax, peak(Pace::Sessions(id)));
        row.set(Column::ConnRate, rate(Pace::Connections(id)));
        row.set(Column::ConnRateMax, peak(Pace::Connections(id)));
        row.set(Column::ReqRate, rate(Pace::Requests(id)));
        row.set(Column::ReqRateMax, peak(Pace::Requests(id)));
        zero(&mut row, &ALWAYS_ZERO);
        for (column, count) in FRONT_COMPRESSION {
            row.set(column, sums.get(count));
        }
        row.set(Column::ReqTot, sums.get(FrontCount::Requests));
        if proxy.mode == Mode::Http {
            for (column, count) in FRONT_HTTP {
                row.set(*column, sums.get(*count));
            }
            zero(&mut row, &ZERO_IN_HTTP);
        }
        let (h1, h2) = (
            sums.get(FrontCount::SessionsH1),
            sums.get(FrontCount::SessionsH2),
        );
        row.set(Column::H1sess, h1);
        row.set(Column::H2sess, h2);
        let quic = self.shared.quic_sums(QuicUser::Frontend(id));
        let h3 = quic.get(QuicCount::Sessions);
        row.set(Column::H3sess, h3);
        row.set(
            Column::SessOther,
            sums.get(FrontCount::Sessions).saturating_sub(h1 + h2 + h3),
        );
        let requests_h2 = sums.get(FrontCount::RequestsH2);
        let requests_h3 = quic.get(QuicCount::Requests);
        let requests = sums.get(FrontCount::Requests);
        row.set(
            Column::H1req,
            requests.saturating_sub(requests_h2 + requests_h3),
        );
        row.set(Column::H2req, requests_h2);
        row.set(Column::H3req, requests_h3);
        row.set(Column::ReqOther, 0_u64);
        row
    }

    /// The row of a listener of a frontend with `option socket-stats`.
    pub(crate) fn listener(&self, id: BindId) -> Row<'a> {
        let proxy = self.runtime_config.proxy(id.frontend);
        let bind = self.runtime_config.bind(id);
        let mut row = self.row(Kind::Listener, proxy, "", bind.id);
        match &bind.name {
            Some(name) => row.set(Column::Svname, name.to_string()),
            None => row.set(Column::Svname, format!("sock-{}", id.place + 1)),
        }
        Self::front(&mut row, &self.shared.bind_sums(id));
        row.set(Column::Scur, self.shared.count(Count::Bind(id)));
        row.set(Column::Smax, self.shared.most(Count::Bind(id)));
        row.set(Column::Slim, bind.maxconn.unwrap_or(0));
        let status = if self.shared.is_full(id) {
            "FULL"
        } else {
            "OPEN"
        };
        row.set(Column::Status, status);
        let (proto, shown) = match &bind.address {
            BindAddress::Addr(addr @ Addr::Inet(inet)) => {
                if inet.is_ipv4() {
                    ("tcpv4", address(addr))
                } else {
                    ("tcpv6", address(addr))
                }
            }
            BindAddress::Addr(addr @ Addr::Unix(_)) => ("unix_stream", address(addr)),
            BindAddress::Quic(inet) if inet.is_ipv4() => ("quic4", address(&Addr::Inet(*inet))),
            BindAddress::Quic(inet) => ("quic6", address(&Addr::Inet(*inet))),
            BindAddress::Fd(_) => ("tcpv4", String::new()),
        };
        row.set(Column::Proto, proto);
        if self.legends && !shown.is_empty() {
            row.set(Column::Addr, shown);
        }
        row
    }

    /// Fills the common fields of backends and servers.
    fn back(&self, row: &mut Row<'_>, proxy: &Proxy, sums: &BackSums, pace: Pace) {
        for (column, count) in BACK {
            row.set(*column, sums.counts.get(*count));
        }
        modules::back_tls(row, sums);
        if proxy.mode == Mode::Http {
            let mut requests = 0;
            for (column, count) in BACK_HTTP {
                row.set(*column, sums.counts.get(*count));
                requests += sums.counts.get(*count);
            }
            row.set(Column::ReqTot, requests);
        }
        let now_ms = self.now.ms();
        row.set(Column::Qmax, sums.queue_max);
        row.set(Column::Rate, self.shared.rate(pace, now_ms));
        row.set(Column::RateMax, self.shared.peak_rate(pace));
        let idle_s = self.shared.last_event_ms(pace).map(|last_ms| {
            let idle_ms = now_ms.saturating_sub(last_ms);
            i32::try_from(idle_ms / 1000).unwrap_or(i32::MAX)
        });
        row.set(Column::Lastsess, stats::Value::S32(idle_s.unwrap_or(-1)));
        let Times {
            queue,
            connect,
            response,
            total,
        } = sums.times.averages();
        let columns = [Column::Qtime, Column::Ctime, Column::Rtime, Column::Ttime];
        for (column, ms) in columns.into_iter().zip([queue, connect, response, total]) {
            row.set(column, u32::try_from(ms).unwrap_or(u32::MAX));
        }
        let longest = sums.times.longest();
        let all = [
            longest.queue,
            longest.connect,
            longest.response,
            longest.total,
        ];
        let columns = [Column::QtMax, Column::CtMax, Column::RtMax, Column::TtMax];
        for (column, ms) in columns.into_iter().zip(all) {
            row.set(column, u32::try_from(ms).unwrap_or(u32::MAX));
        }
    }

    /// A server's row.
    pub(crate) fn server(&self, id: ServerId, line: &'a ServerRecord) -> Row<'a> {
        let proxy = self.runtime_config.proxy(id.backend);
        let servers = &self.shared.servers;
        let sums = self.shared.server_sums(id);
        let mut row = self.row(Kind::Server, proxy, &line.name, line.id);
        self.back(&mut row, proxy, &sums, Pace::Server(id));
        row.latency = self.latency(proxy, Whose::Server(self.shared.server_number(id)));
        let used = self.shared.count(Count::Server(id));
        row.set(Column::Qcur, servers.waiting(id));
        row.set(Column::Scur, used);
        row.set(Column::Smax, self.shared.most(Count::Server(id)));
        row.set_some(
            Column::Slim,
            Some(servers.maxconn(id)).filter(|max| *max > 0),
        );
        row.set_some(Column::Qlimit, Some(line.maxqueue).filter(|max| *max > 0));
        row.set(Column::Weight, servers.effective_weight(id));
        row.set(Column::Uweight, servers.weight(id));
        row.set(Column::Act, u32::from(!line.backup));
        row.set(Column::Bck, u32::from(line.backup));
        let view = self.shared.server_view(id.backend.place(), id.place());
        let tracked = view.tracked.map(|(backend, place)| {
            let tracked = ServerId::at(ProxyId::at(backend), place);
            let backend = &self.runtime_config.proxy(tracked.backend).name;
            let name = self.servers.find(tracked).map(|record| &record.name);
            format!("{backend}/{}", name.map_or("", String::as_str))
        });
        row.set_some(Column::Tracked, tracked);
        health::fill(&mut row, view);
        let idle = self
            .shared
            .count(Count::Connections(id))
            .saturating_sub(used);
        row.set(Column::SrvIcur, idle);
        row.set_some(Column::SrvIlim, line.pool_max_conn);
        row.set(Column::IdleConnCur, idle);
        row.set(Column::SafeConnCur, 0_u32);
        row.set(Column::UsedConnCur, used);
        row.set(Column::NeedConnEst, self.shared.most(Count::Server(id)));
        row.set(Column::PrivIdleCur, 0_u32);
        row.set(Column::Srid, 0_u32);
        // As in HAProxy, a name without an address shows none.
        if self.legends && !line.lacks_address() {
            row.set(
                Column::Addr,
                match &line.address {
                    ServerAddress::Fixed(addr) => address(addr),
                    ServerAddress::PortOffset { ip, offset } => {
                        if ip.is_ipv4() {
                            format!("{ip}:{offset}")
                        } else {
                            format!("[{ip}]:{offset}")
                        }
                    }
                },
            );
        }
        if self.legends {
            let cookie = line.cookie.as_ref();
            row.set_some(Column::Cookie, cookie.map(ToString::to_string));
        }
        row
    }

    /// A backend's row.
    pub(crate) fn backend(&self, id: ProxyId, selection: &Selection) -> Row<'a> {
        let proxy = self.runtime_config.proxy(id);
        let servers = &self.shared.servers;
        let sums = self.shared.back_sums(id);
        let mut row = self.row(Kind::Backend, proxy, "BACKEND", 0);
        self.back(&mut row, proxy, &sums, Pace::Streams(id));
        row.latency = self.latency(proxy, Whose::Backend(id));
        row.set(Column::Dreq, sums.counts.get(BackCount::DeniedRequests));
        self.back_modules(&mut row, id, &sums);
        zero(&mut row, &ALWAYS_ZERO);
        for (column, count) in BACK_COMPRESSION {
            row.set(column, sums.counts.get(count));
        }
        if proxy.mode == Mode::Http {
            zero(&mut row, &ZERO_IN_HTTP);
        }
        row.set(Column::Qcur, self.shared.queued(id));
        row.set(Column::Scur, self.shared.count(Count::Backend(id)));
        row.set(Column::Smax, self.shared.most(Count::Backend(id)));
        row.set(Column::Slim, self.runtime_config.fullconn(id));
        let (mut up, mut all) = (0_u32, 0_u32);
        let (mut weight, mut effective_weight) = (0_u32, 0_u32);
        for (server, line) in self.servers.of(id) {
            if line.is_deleted {
                continue;
            }
            all += 1;
            up += u32::from(servers.is_up(server));
            if servers.is_usable(server) {
                weight += servers.weight(server);
                effective_weight += servers.effective_weight(server);
            }
        }
        let is_up = weight > 0 || all == 0;
        let mut status = if is_up { "UP" } else { "DOWN" }.to_owned();
        if !self.shared.is_published(id) {
            status.push_str(" (UNPUB)");
        }
        if selection.hides_down || selection.hides_maintenance {
            status.push_str(&format!(" ({up}/{all})"));
        }
        row.set(Column::Status, status);
        row.set(Column::Weight, effective_weight);
        row.set(Column::Uweight, weight);
        let view = self.shared.backend_view(id.place());
        row.set(Column::Act, view.active);
        row.set(Column::Bck, view.backup);
        row.set(Column::Chkdown, view.down_transitions);
        row.set(Column::Lastchg, health::seconds(view.since_change));
        if all > 0 {
            row.set(Column::Downtime, health::seconds(view.down_time));
        }
        for column in [
            Column::AggSrvStatus,
            Column::AggSrvCheckStatus,
            Column::AggCheckStatus,
        ] {
            row.set(column, 0_u32);
        }
        if self.legends {
            row.set(Column::Algo, proxy.balance.facts().name);
            let cookie = proxy.cookie.as_ref();
            row.set_some(Column::Cookie, cookie.map(|cookie| cookie.name.to_string()));
        }
        row
    }
}
