//! The running configuration: the typed configuration with data prepared for the engine.
//!
//! Immutable and shared by the workers.

mod added;
mod filters;
mod following;
#[cfg(test)]
pub(crate) mod for_tests;
mod h2;
mod log_plan;
mod proc_vars;
mod quic;
mod skips;
mod timeouts;
mod tls;

use config::model::{
    BackendTarget, Config, HttpAction, HttpRule, LogSink, LogTarget, Mode, Proxy, Server,
    ServerAddress, StreamAction, TcpAction, TcpRule,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use net::{Addr, ListenerId};

pub(crate) use self::quic::QuicConfig;
pub(crate) use self::tls::BindAcceptors;
use crate::ids::{BindId, ProxyId};
use crate::shared::{Shared, Step};
pub use added::{AddError, Added, TlsSwitchError};
pub use filters::{Counters, Filter, FilterExport, Logging, Switches};
pub(crate) use filters::{Filters, StreamCounts};
pub(crate) use h2::H2Limits;
pub(crate) use log_plan::{Moments, Plan};
use proc_vars::ProcVars;
pub(crate) use skips::{Skips, adds_forwarding_headers};
pub(crate) use timeouts::{TimeoutsMs, deadline};
pub use tls::{
    CertificateView, Draft, EditError, FileNames as TlsFileNames, ListView, NameView, OcspSubject,
    SectionBind, SectionServer, Status as TlsStatus, Tls, TlsFinding, TrustView, certificate_name,
};

/// The number of a log sink in the configuration, for [`net::Driver::log`].
pub type LogTargetId = usize;

/// A bind line that is bound, by the indexes of its frontend in [`Config::proxies`] and of its line
/// in [`Proxy::binds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundLine {
    /// The number of its listener.
    pub listener: ListenerId,
    /// Its frontend.
    pub frontend: usize,
    /// The line.
    pub bind: usize,
}

/// The sink of a proxy's log target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPlace {
    /// The sink of its messages; of a log backend, the first server's.
    pub sink: LogTargetId,
    /// The number of the target among all targets.
    pub number: usize,
}

/// The running configuration.
#[derive(Debug)]
pub struct RuntimeConfig {
    /// The typed configuration.
    pub config: Config,
    /// The number of this configuration among those of the process: a reload in place increments
    /// it.
    pub generation: u32,
    /// Every bind line of every frontend, by [`net::ListenerId`].
    pub(crate) listeners: Vec<BindId>,
    /// Every sink of log messages by [`LogTargetId`]: the targets, and the servers of log backends.
    pub logs: Vec<LogSink>,
    /// By proxy: its log targets.
    log_places: LogPlaces,
    /// By filter, in the order of [`Config::otel`]: its log targets.
    pub(crate) filter_log_places: LogPlaces,
    /// By section `log-forward`: its log targets.
    forward_log_places: LogPlaces,
    /// The targets of `global`, for messages about no proxy; empty where there are no such
    /// messages.
    global_log_places: Vec<LogPlace>,
    /// By proxy: the moments of its log lines.
    log_plans: Vec<Plan>,
    /// The beginning of the log line for a connection that failed early, up to its frontend.
    pub(crate) session_prefix: Option<sample::LogFormat>,
    limits: http::h1::Limits,
    /// The limits of HTTP/2.
    pub(crate) h2: H2Limits,
    /// See [`QuicConfig`].
    pub(crate) quic: QuicConfig,
    /// By proxy.
    timeouts: Vec<TimeoutsMs>,
    /// A rate is limited or may be.
    pub(crate) paces: bool,
    /// Workers share idle connections to servers.
    pub(crate) shares_idle: bool,
    /// Some clients may send early data (`allow-0rtt`).
    pub(crate) takes_early_data: bool,
    /// There are stick tables.
    pub(crate) has_tables: bool,
    /// Some frontend has statistics for each listener (`option socket-stats`).
    pub(crate) socket_stats: bool,
    /// Some frontends count bytes while they flow (`option contstats`).
    pub(crate) contstats: bool,
    /// Some proxy has `option latency-histograms`.
    pub(crate) measures_latency: bool,
    /// By proxy: whether it has rules that bind requests to servers before balancing.
    binds: Vec<bool>,
    /// By proxy: in TCP, its expressions read an HTTP request in the bytes.
    sniffs_http: Vec<bool>,
    /// By proxy: the load at which servers with a `minconn` reach their `maxconn`.
    fullconn: Vec<u32>,
    /// By proxy: the parts of a request's way that have nothing to do, as frontend and as backend.
    frontend_skips: Vec<Skips>,
    backend_skips: Vec<Skips>,
    /// Variables of scope `proc` (`set-var` of `global`).
    pub(crate) proc_vars: ProcVars,
    /// Backends by name.
    backends: HashMap<Box<[u8]>, ProxyId>,
    /// The reserved places of backends that are added at run time.
    reserve: Vec<ProxyId>,
    /// Whether a proxy compresses messages.
    pub compresses: bool,
    /// `tune.vars` limits the variables of traffic.
    pub(crate) limits_vars: bool,
    /// Filters `opentelemetry`.
    pub(crate) tracing: Filters,
    /// TLS with clients and servers.
    pub tls: Tls,
    /// Facts of the process.
    pub process: Process,
}

/// Facts of the process for logs and expressions.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// `hostname`.
    pub hostname: String,
    /// The process id.
    pub pid: u32,
    /// The number of workers.
    pub nbthread: u32,
    /// The memory limit (`-m`), bytes; 0 for none.
    pub memory_max_bytes: u64,
    /// The limit of file descriptors.
    pub descriptors: u64,
    /// The limit of server connections; none for no limit.
    pub server_conns_max: Option<u32>,
    /// The local time zone.
    pub local_time: sample::Zone,
    /// The start of the process.
    pub started: net::Now,
    /// Random numbers with which trace identifiers begin.
    pub trace_seed: [u64; 2],
    /// Random bytes that nobody knows: the connections of QUIC are protected by them.
    pub secret: [u8; 32],
    /// Its number among the processes that have followed each other: the connection ids of QUIC
    /// have it.
    pub number: u8,
    /// Where datagrams of connections of earlier processes go.
    pub earlier: Vec<Arc<net::relay::Sender>>,
}

impl AsRef<Config> for RuntimeConfig {
    fn as_ref(&self) -> &Config {
        &self.config
    }
}

impl RuntimeConfig {
    /// Prepares a configuration. Variables of scope `proc` are set later ([`crate::prepare`]).
    pub(crate) fn new(config: Config, tls: Tls, process: Process) -> Self {
        RuntimeConfig::after(None, config, tls, process)
    }

    /// Prepares a configuration that follows another one in a running process. Listeners and log
    /// sinks of both have the same numbers.
    pub(crate) fn after(
        previous: Option<&RuntimeConfig>,
        config: Config,
        tls: Tls,
        process: Process,
    ) -> Self {
        let listeners = listeners(previous, &config);
        let LogSinks {
            sinks: logs,
            places: log_places,
            of_filters: filter_log_places,
            of_global: global_log_places,
            of_forwards: forward_log_places,
        } = log_sinks(previous, &config);
        let proxies = || config.proxies.iter();
        let sniffs_http = |place: usize| {
            config.proxies[place].mode == Mode::Tcp && config.needs.http_request(place as u32)
        };
        let tune = &config.global.tune;
        let head_bytes_max = tune.bufsize_bytes.saturating_sub(tune.maxrewrite_bytes);
        let limits = http::h1::Limits {
            head_bytes_max: head_bytes_max.max(1),
            // The limit includes the start line.
            fields_max: tune.http_maxhdr.saturating_sub(1).max(1),
        };
        let mut runtime_config = RuntimeConfig {
            generation: previous.map_or(0, |previous| previous.generation + 1),
            limits,
            frontend_skips: Vec::new(),
            backend_skips: Vec::new(),
            h2: H2Limits::new(&config.global, limits),
            quic: QuicConfig::after(previous.map(|previous| &previous.quic), &config, &process),
            log_plans: proxies()
                .map(|proxy| Plan::new(proxy, &config.log_profiles))
                .collect(),
            timeouts: proxies()
                .map(|proxy| TimeoutsMs::new(&proxy.timeout))
                .collect(),
            socket_stats: proxies().any(|proxy| proxy.options.socket_stats),
            contstats: proxies().any(|proxy| proxy.options.contstats),
            measures_latency: proxies().any(|proxy| proxy.options.latency_histograms),
            binds: proxies().map(binds).collect(),
            sniffs_http: (0..config.proxies.len()).map(sniffs_http).collect(),
            paces: is_paced(&config),
            shares_idle: config.global.tune.idle_pool_shared,
            takes_early_data: takes_early_data(&config),
            has_tables: !config.tables.is_empty(),
            fullconn: fullconn(&config),
            tracing: Filters::new(&config, previous.map(|previous| &previous.tracing)),
            proc_vars: previous.map_or_else(
                || ProcVars::new(config.slots.proc),
                |previous| previous.proc_vars.grown(config.slots.proc),
            ),
            backends: backends(&config),
            reserve: reserve(&config),
            compresses: proxies().any(|proxy| proxy.compression.is_some()),
            limits_vars: config.global.var_limits.any(),
            listeners,
            logs,
            log_places,
            filter_log_places,
            global_log_places,
            forward_log_places,
            tls,
            session_prefix: sample::Compiler::new()
                .log_format("%ci:%cp [%t] %f", sample::Place::LOG)
                .ok(),
            process,
            config,
        };
        let ids = (0..runtime_config.config.proxies.len()).map(ProxyId::at);
        let skips = |of: fn(&RuntimeConfig, ProxyId) -> Skips| {
            ids.clone().map(|id| of(&runtime_config, id)).collect()
        };
        (runtime_config.frontend_skips, runtime_config.backend_skips) =
            (skips(Skips::of_frontend), skips(Skips::of_backend));
        runtime_config
    }

    /// The initial state that the workers of this configuration share.
    #[must_use]
    pub fn share(&self, workers: usize) -> Shared {
        Shared::new(
            &self.config,
            &self.fullconn,
            self.process.server_conns_max,
            workers,
            self.generation,
        )
    }

    /// The state that the workers share when they go on with this configuration after `before`,
    /// whose state is `state`. No thread may change that state until all workers use the new one.
    #[must_use]
    pub fn share_after(&self, before: &RuntimeConfig, state: &Shared) -> Shared {
        let mut shared = self.share(state.workers().count());
        let step = Step {
            config: &self.config,
            generation: self.generation,
            before: &before.config,
        };
        shared.succeed(step, state);
        shared
    }

    /// The TLS state of clients and servers, and its files.
    #[must_use]
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The number of listeners.
    #[must_use]
    pub fn listener_count(&self) -> usize {
        self.bound_lines().count()
    }

    /// The bind lines that are bound.
    pub fn bound_lines(&self) -> impl Iterator<Item = BoundLine> {
        let lines = self.listeners.iter().enumerate();
        let lines = lines.filter(|(_, line)| self.is_bound(**line));
        lines.map(|(number, line)| BoundLine {
            listener: ListenerId(number as u32),
            frontend: line.frontend.place(),
            bind: line.place,
        })
    }

    /// Whether a line that has a number is bound in this configuration.
    pub(crate) fn is_bound(&self, line: BindId) -> bool {
        self.is_bound_at(line.frontend.place(), line.place)
    }

    /// The same for the index of a frontend in the configuration, and that of its bind line.
    #[must_use]
    pub fn is_bound_at(&self, frontend: usize, bind: usize) -> bool {
        let proxy = self.config.proxies.get(frontend);
        let proxy = proxy.filter(|proxy| proxy.is_frontend && !proxy.disabled);
        let bind = proxy.and_then(|proxy| proxy.binds.get(bind));
        let listens = self.config.global.quic.listens;
        bind.is_some_and(|bind| {
            !bind.is_removed
                && (listens || !matches!(bind.address, config::model::BindAddress::Quic(_)))
        })
    }

    /// The address of a line, if this configuration has it and it is one with QUIC.
    pub(crate) fn quic_address(&self, line: BindId) -> Option<std::net::SocketAddr> {
        let proxy = self.config.proxies.get(line.frontend.place())?;
        match proxy.binds.get(line.place)?.address {
            config::model::BindAddress::Quic(address) => Some(address),
            config::model::BindAddress::Addr(_) | config::model::BindAddress::Fd(_) => None,
        }
    }

    /// Whether anything reads the address that a client connected to. If not, the system is not
    /// asked for it.
    #[must_use]
    pub fn reads_client_destinations(&self) -> bool {
        let plans = &self.log_plans;
        self.config.needs.client_destination
            || plans.iter().any(|plan| plan.connect.is_some())
            || self.config.proxies.iter().any(reads_destinations)
    }

    /// The filters, by the index in [`Config::otel`].
    #[must_use]
    pub fn filters(&self) -> &[crate::Filter] {
        &self.tracing.filters
    }

    /// Sets the destinations of a filter's records; before that, records are dropped.
    pub fn export_filter(&mut self, filter: usize, export: crate::FilterExport) {
        self.tracing.filters[filter].export = Arc::new(export);
    }

    /// The backend of this name, if the stream can be sent to it: HTTP streams need an HTTP
    /// backend. A backend that was added at run time may have the name of a deleted one.
    pub(crate) fn backend_named(
        &self,
        name: &[u8],
        is_http: bool,
        is_deleted: impl Fn(ProxyId) -> bool,
    ) -> Option<ProxyId> {
        let configured = self.backends.get(name).copied();
        let configured = configured.filter(|backend| !is_deleted(*backend));
        let backend = configured.or_else(|| {
            let mut added = self.reserve.iter().copied();
            added.find(|id| self.proxy(*id).name.as_bytes() == name && !is_deleted(*id))
        })?;
        (!is_http || self.is_http(backend)).then_some(backend)
    }

    #[inline]
    pub(crate) fn proxy(&self, proxy: ProxyId) -> &Proxy {
        &self.config.proxies[proxy.place()]
    }

    /// The value of a variable of scope `proc`, by its slot.
    #[must_use]
    pub fn proc_var(&self, slot: u32) -> Option<sample::Value<'static>> {
        self.proc_vars.get(slot)
    }

    pub(crate) fn bind(&self, bind: BindId) -> &config::model::Bind {
        &self.proxy(bind.frontend).binds[bind.place]
    }

    pub(crate) fn is_http(&self, proxy: ProxyId) -> bool {
        self.proxy(proxy).mode == Mode::Http
    }

    #[inline]
    pub(crate) fn timeouts(&self, proxy: ProxyId) -> &TimeoutsMs {
        &self.timeouts[proxy.place()]
    }

    /// The parts that streams of a frontend skip.
    #[inline]
    pub(crate) fn frontend_skips(&self, frontend: ProxyId) -> Skips {
        self.frontend_skips[frontend.place()]
    }

    /// The parts that streams of a backend skip.
    #[inline]
    pub(crate) fn backend_skips(&self, backend: ProxyId) -> Skips {
        self.backend_skips[backend.place()]
    }

    /// The load at which servers of a backend with a `minconn` reach their `maxconn`.
    pub(crate) fn fullconn(&self, backend: ProxyId) -> u32 {
        self.fullconn[backend.place()]
    }

    /// The moments of a proxy's log lines.
    pub(crate) fn log_plan(&self, proxy: ProxyId) -> &Plan {
        &self.log_plans[proxy.place()]
    }

    /// The sinks of the log targets of a section `log-forward`.
    pub(crate) fn forward_log_places(&self, section: usize) -> &[LogPlace] {
        &self.forward_log_places[section]
    }

    /// The log targets of `global`.
    pub(crate) fn global_log_places(&self) -> &[LogPlace] {
        &self.global_log_places
    }

    /// The log targets of a proxy.
    pub(crate) fn log_places(&self, proxy: ProxyId) -> &[LogPlace] {
        &self.log_places[proxy.place()]
    }

    /// Whether a backend has rules that bind requests to servers.
    pub(crate) fn binds(&self, backend: ProxyId) -> bool {
        self.binds[backend.place()]
    }

    pub(crate) fn sniffs_http(&self, proxy: ProxyId) -> bool {
        self.sniffs_http[proxy.place()]
    }

    /// Size of a buffer (`tune.bufsize`), bytes.
    #[inline]
    pub(crate) fn bufsize(&self) -> usize {
        self.config.global.tune.bufsize_bytes
    }

    /// The spelling of field names towards a peer whose proxy has `h1-case-adjust-bogus-client` or
    /// `-server`.
    #[inline]
    pub(crate) fn spelling(&self, is_bogus: bool) -> Spelling<'_> {
        let names = &self.config.global.h1_case;
        (is_bogus && !names.is_empty()).then_some(names)
    }

    /// The limits of a message's head (`tune.bufsize` less `tune.maxrewrite`).
    pub(crate) fn limits(&self) -> http::h1::Limits {
        self.limits
    }
}

/// The spelling of field names towards an HTTP/1 peer that needs it (`h1-case-adjust`): the names
/// in lower case, and how they are written. None where names are written as they are.
pub(crate) type Spelling<'a> = Option<&'a HashMap<Box<[u8]>, Box<[u8]>>>;

/// By proxy or filter: its log targets.
type LogPlaces = Vec<Vec<LogPlace>>;

/// All log sinks, and the targets of proxies and filters.
struct LogSinks {
    sinks: Vec<LogSink>,
    /// By proxy.
    places: LogPlaces,
    /// By filter.
    of_filters: LogPlaces,
    of_global: Vec<LogPlace>,
    /// By section `log-forward`.
    of_forwards: LogPlaces,
}

/// The sinks of a configuration. Those of the previous one keep their numbers, because its streams
/// still write to them; sinks that are gone stay without messages.
fn log_sinks(previous: Option<&RuntimeConfig>, config: &Config) -> LogSinks {
    let mut sinks = previous.map_or_else(Vec::new, |previous| previous.logs.clone());
    let mut first_servers = Vec::new();
    for proxy in &config.proxies {
        let servers = || {
            proxy
                .servers
                .iter()
                .filter_map(|server| server_sink(server))
        };
        if proxy.mode == Mode::Log {
            let servers: Vec<LogSink> = servers().collect();
            let mut known = sinks.windows(servers.len().max(1));
            let known = known.position(|window| window == servers);
            first_servers.push(known.unwrap_or(sinks.len()));
            if known.is_none() {
                sinks.extend(servers);
            }
        } else {
            first_servers.push(sinks.len());
        }
    }
    let mut number = 0;
    let mut place = |target: &LogTarget| {
        number += 1;
        let sink = match &target.to {
            LogSink::Backend(backend) => first_servers[*backend],
            sink @ (LogSink::Udp(_) | LogSink::Tcp { .. } | LogSink::Fd(_) | LogSink::Ring(_)) => {
                let known = sinks.iter().position(|known| known == sink);
                known.unwrap_or_else(|| {
                    sinks.push(sink.clone());
                    sinks.len() - 1
                })
            }
        };
        LogPlace {
            sink,
            number: number - 1,
        }
    };
    let places = config
        .proxies
        .iter()
        .map(|proxy| proxy.log.iter().map(&mut place).collect())
        .collect();
    let of_filters = config
        .otel
        .iter()
        .map(|filter| filter.log.iter().map(&mut place).collect())
        .collect();
    let of_forwards = config
        .log_forwards
        .iter()
        .map(|forward| forward.log.iter().map(&mut place).collect())
        .collect();
    let of_global = config.global.log.iter().map(&mut place).collect();
    LogSinks {
        sinks,
        places,
        of_filters,
        of_global,
        of_forwards,
    }
}

/// The sink of messages for a server of a log backend.
fn server_sink(server: &Server) -> Option<LogSink> {
    match (&server.address, server.takes_datagrams) {
        (ServerAddress::Fixed(addr), true) => Some(LogSink::Udp(addr.clone())),
        (ServerAddress::Fixed(Addr::Inet(addr)), false) => Some(LogSink::Tcp {
            address: *addr,
            options: server.options.log_stream,
        }),
        // The configuration does not allow such servers.
        (ServerAddress::Fixed(_) | ServerAddress::PortOffset { .. }, _) => None,
    }
}

/// `fullconn`, or else a tenth of the connections that the frontends of a backend may have (manual
/// §4.2 fullconn).
fn fullconn(config: &Config) -> Vec<u32> {
    let mut sums = vec![0_u64; config.proxies.len()];
    for (index, proxy) in config.proxies.iter().enumerate() {
        if !proxy.is_frontend || proxy.disabled {
            continue;
        }
        let own = proxy.is_backend.then_some(index);
        let mut targets: Vec<usize> = proxy.default_backend.or(own).into_iter().collect();
        targets.extend(
            proxy
                .use_backend
                .iter()
                .filter_map(|rule| match rule.target {
                    BackendTarget::Static(backend) => Some(backend),
                    BackendTarget::Dynamic(_) => None,
                }),
        );
        targets.sort_unstable();
        targets.dedup();
        let maxconn = proxy.maxconn.or(config.global.maxconn).unwrap_or(0);
        for target in targets {
            sums[target] += u64::from(maxconn);
        }
    }
    let default = |sum: u64| u32::try_from(sum.div_ceil(10)).unwrap_or(u32::MAX).max(1);
    let pairs = config.proxies.iter().zip(sums);
    pairs
        .map(|(proxy, sum)| {
            proxy
                .fullconn
                .filter(|full| *full > 0)
                .unwrap_or(default(sum))
        })
        .collect()
}

/// The backends by name.
fn backends(config: &Config) -> HashMap<Box<[u8]>, ProxyId> {
    let proxies = config.proxies.iter().enumerate();
    proxies
        .filter(|(_, proxy)| proxy.is_backend && proxy.reserve_of.is_none() && !proxy.is_removed)
        .map(|(place, proxy)| (proxy.name.as_bytes().into(), ProxyId::at(place)))
        .collect()
}

/// The reserved places of backends that are added at run time.
fn reserve(config: &Config) -> Vec<ProxyId> {
    let proxies = config.proxies.iter().enumerate();
    let reserved = proxies.filter(|(_, proxy)| proxy.reserve_of.is_some());
    reserved.map(|(place, _)| ProxyId::at(place)).collect()
}

/// Every bind line that is bound, by the number of its listener. A line that the previous
/// configuration has keeps its number; the numbers of lines that are gone stay unused.
fn listeners(previous: Option<&RuntimeConfig>, config: &Config) -> Vec<BindId> {
    let mut listeners = previous.map_or_else(Vec::new, |previous| previous.listeners.clone());
    let known: HashSet<BindId> = listeners.iter().copied().collect();
    for (place, proxy) in config.proxies.iter().enumerate() {
        if !proxy.is_frontend || proxy.disabled {
            continue;
        }
        let frontend = ProxyId::at(place);
        let lines = proxy.binds.iter().enumerate();
        let lines = lines.filter(|(_, bind)| !bind.is_removed);
        let lines = lines.map(|(place, _)| BindId { frontend, place });
        listeners.extend(lines.filter(|line| !known.contains(line)));
    }
    listeners
}

fn binds(proxy: &Proxy) -> bool {
    let cookie = proxy.cookie.is_some() && proxy.mode == Mode::Http;
    cookie || !proxy.use_server.is_empty() || proxy.rdp_cookie.is_some()
}

/// Whether a client may send early data (`allow-0rtt`). Also true with a `crt-list`: a line added
/// at run time may allow it.
fn takes_early_data(config: &Config) -> bool {
    let binds = config.proxies.iter().flat_map(|proxy| &proxy.binds);
    binds.filter_map(|bind| bind.tls.as_deref()).any(|tls| {
        let of_certificates = tls.certificates.iter();
        let mut of_certificates = of_certificates.filter_map(|each| each.options.as_deref());
        tls.options.allow_0rtt
            || !tls.crt_lists.is_empty()
            || of_certificates.any(|options| options.allow_0rtt)
    })
}

/// Whether rates may be limited.
fn is_paced(config: &Config) -> bool {
    let global = &config.global;
    let mut proxies = config.proxies.iter();
    // A command may set a limit.
    !global.stats_sockets.is_empty()
        || global.maxconnrate.is_some()
        || global.maxsessrate.is_some()
        || global.tls.maxsslrate.is_some()
        || proxies.any(|proxy| proxy.rate_limit_sessions.is_some())
}

/// Whether a part of a proxy other than expressions reads the address that clients connected to.
fn reads_destinations(proxy: &Proxy) -> bool {
    let is_set = |action: &StreamAction| matches!(action, StreamAction::SetAddress(..));
    let is_set_in_http =
        |rule: &Arc<HttpRule>| matches!(&rule.action, HttpAction::Stream(action) if is_set(action));
    let is_set_in_tcp =
        |rule: &Arc<TcpRule>| matches!(&rule.action, TcpAction::Stream(action) if is_set(action));
    let mut servers = proxy.servers.iter();
    proxy.originalto.is_some()
        || proxy
            .forwarded
            .as_ref()
            .is_some_and(|option| option.by.is_some())
        || servers.any(|server| {
            let follows = match &server.address {
                ServerAddress::Fixed(addr) => addr.is_unspecified(),
                ServerAddress::PortOffset { .. } => true,
            };
            server.send_proxy.is_on() || follows
        })
        || proxy.http_request.iter().any(is_set_in_http)
        || [
            &proxy.tcp_request_connection,
            &proxy.tcp_request_session,
            &proxy.tcp_request_content,
        ]
        .into_iter()
        .flatten()
        .any(is_set_in_tcp)
}
