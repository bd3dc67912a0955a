//! The running configuration: the typed configuration with what the engine wants ready-made.
//!
//! Immutable and shared by the workers.

use config::model::{
    BackendTarget, Config, LogSink, LogTarget, Mode, Proxy, Server, ServerAddress, Timeouts,
};
use std::cell::Cell;
use std::collections::HashMap;

use net::Addr;
use net::timers::NEVER_MS;
use sample::{Scope, Session};

use crate::logging::Plan;
use crate::proc_vars::ProcVars;
use crate::shared::Shared;
use crate::world::View;

/// A log target's number among all of the configuration: what [`net::Driver::log`] takes.
pub type LogTargetId = usize;

/// A log target of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPlace {
    /// Where its messages go; of a log backend, the first server's.
    pub sink: LogTargetId,
    /// Its number among all targets.
    pub number: usize,
}

/// A listener: which bind line of which frontend it is. Its [`net::ListenerId`] is its place in [`Running::listeners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerInfo {
    /// The frontend's index.
    pub frontend: usize,
    /// The bind line's index in it.
    pub bind: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Running {
    /// What was configured.
    pub config: Config,
    /// Every bind line of every frontend.
    pub listeners: Vec<ListenerInfo>,
    /// Every place that log messages go to, by [`LogTargetId`]: the targets, and the servers of log backends.
    pub logs: Vec<LogSink>,
    /// By proxy: its log targets.
    pub(crate) log_places: Vec<Vec<LogPlace>>,
    /// By filter, in the order of [`Config::otel`]: its log targets.
    pub(crate) filter_log_places: Vec<Vec<LogPlace>>,
    /// By proxy: when its lines are written.
    pub(crate) log_plans: Vec<Plan>,
    /// What the line of a connection that failed early begins with, up to its frontend.
    pub(crate) session_prefix: Option<sample::LogFormat>,
    /// By proxy.
    pub(crate) timeouts: Vec<TimeoutsMs>,
    /// Some rate is limited.
    pub(crate) paces: bool,
    /// By proxy: whether it binds requests to servers before balancing.
    pub(crate) binds: Vec<bool>,
    /// By proxy: in TCP, its expressions look for an HTTP request in the bytes.
    pub(crate) sniffs_http: Vec<bool>,
    /// By proxy: the load at which servers with a `minconn` reach their `maxconn`.
    pub(crate) fullconn: Vec<u32>,
    /// Variables of scope `proc` (`set-var` of `global`).
    pub(crate) proc_vars: ProcVars,
    /// Backends by name.
    backends: HashMap<Box<[u8]>, usize>,
    /// `tune.vars` limits what traffic sets.
    pub(crate) limits_vars: bool,
    /// Filters `opentelemetry`.
    pub(crate) tracing: crate::tracing::Filters,
    /// Facts of the process.
    pub process: Process,
}

/// Facts of the process that logs and expressions name.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// `hostname`.
    pub hostname: String,
    /// The process' number.
    pub pid: u32,
    /// Workers.
    pub nbthread: u32,
    /// Local time.
    pub local_time: sample::Zone,
    /// When the process started.
    pub started: net::Now,
    /// Random numbers: what identifiers of traces begin with.
    pub trace_seed: [u64; 2],
}

impl Running {
    /// Prepares a configuration.
    #[must_use]
    pub fn new(config: Config, process: Process) -> Self {
        let mut listeners = Vec::new();
        for (frontend, proxy) in config.proxies.iter().enumerate() {
            if proxy.is_frontend && !proxy.disabled {
                listeners
                    .extend((0..proxy.binds.len()).map(|bind| ListenerInfo { frontend, bind }));
            }
        }
        let (logs, log_places, filter_log_places) = log_sinks(&config);
        let plan = |proxy| Plan::new(proxy, &config.log_profiles);
        let log_plans = config.proxies.iter().map(plan).collect();
        let timeouts = config
            .proxies
            .iter()
            .map(|proxy| TimeoutsMs::new(&proxy.timeout))
            .collect();
        let binds = config.proxies.iter().map(crate::persist::binds).collect();
        let sniffs_http = (0..config.proxies.len())
            .map(|index| {
                config.proxies[index].mode == Mode::Tcp && config.needs.http_request(index as u32)
            })
            .collect();
        let slots = config.slots;
        let paces = crate::pace::is_limited(&config);
        let fullconn = fullconn(&config);
        let tracing = crate::tracing::Filters::new(&config);
        let mut running = Running {
            tracing,
            proc_vars: ProcVars::new(slots.proc),
            backends: backends(&config),
            limits_vars: config.global.var_limits.any(),
            config,
            listeners,
            logs,
            log_places,
            filter_log_places,
            log_plans,
            session_prefix: sample::Compiler::new()
                .log_format("%ci:%cp [%t] %f", sample::Place::LOG)
                .ok(),
            timeouts,
            paces,
            binds,
            sniffs_http,
            fullconn,
            process,
        };
        running.set_proc_vars();
        running
    }

    /// The filters, by the index in [`Config::otel`].
    #[must_use]
    pub fn filters(&self) -> &[crate::Filter] {
        &self.tracing.filters
    }

    /// Says where a filter's records go; until then they are dropped.
    pub fn export_filter(&mut self, filter: usize, export: crate::FilterExport) {
        self.tracing.filters[filter].export = export;
    }

    /// The backend of this name, if a stream can go there: what is HTTP stays so.
    pub(crate) fn backend_named(&self, name: &[u8], is_http: bool) -> Option<usize> {
        let backend = *self.backends.get(name)?;
        (!is_http || self.proxy(backend).mode == Mode::Http).then_some(backend)
    }

    /// `set-var` and `set-var-fmt` of `global`, in order: each may read those before it.
    fn set_proc_vars(&mut self) {
        let shared = Shared::new(self, 1);
        let nobody = Addr::Unix(Vec::new().into());
        let session = Session::new(self.process.started, nobody.clone(), nobody, u32::MAX, 0);
        for index in 0..self.config.global.set_var.len() {
            let assignment = &self.config.global.set_var[index];
            let random = Cell::new(self.process.started.wall_ns);
            let view = View {
                running: self,
                shared: &shared,
                worker: 0,
                stopping: false,
                now_ms: self.process.started.ms(),
                random: &random,
                sockets: None,
                client: None,
                server: None,
            };
            let scope = Scope {
                now: self.process.started,
                world: &view,
                session: &session,
                txn: None,
                request: None,
                response: None,
                request_data: &[],
                response_data: &[],
                from_server: false,
                last_chance: true,
            };
            let change = assignment.eval(&scope, &mut Vec::new());
            self.proc_vars.change(assignment.var.slot, change);
        }
    }

    pub(crate) fn proxy(&self, index: usize) -> &Proxy {
        &self.config.proxies[index]
    }

    pub(crate) fn is_http(&self, index: usize) -> bool {
        self.config.proxies[index].mode == Mode::Http
    }

    /// Where the head of a message must end (`tune.bufsize` less `tune.maxrewrite`).
    pub(crate) fn limits(&self) -> http::h1::Limits {
        let tune = &self.config.global.tune;
        http::h1::Limits {
            head_bytes_max: tune
                .bufsize_bytes
                .saturating_sub(tune.maxrewrite_bytes)
                .max(1),
            // The start line counts too.
            fields_max: tune.http_maxhdr.saturating_sub(1).max(1),
        }
    }
}

/// Of each proxy or filter: where its targets are.
type LogPlaces = Vec<Vec<LogPlace>>;

/// Where log messages go, and which of it the targets of each proxy are, and those of each filter.
fn log_sinks(config: &Config) -> (Vec<LogSink>, LogPlaces, LogPlaces) {
    let mut sinks = Vec::new();
    let mut first_servers = Vec::new();
    for proxy in &config.proxies {
        first_servers.push(sinks.len());
        if proxy.mode == Mode::Log {
            sinks.extend(proxy.servers.iter().filter_map(server_sink));
        }
    }
    let mut number = 0;
    let mut place = |target: &LogTarget| {
        number += 1;
        let sink = match &target.to {
            LogSink::Backend(backend) => first_servers[*backend],
            sink => {
                sinks.push(sink.clone());
                sinks.len() - 1
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
    (sinks, places, of_filters)
}

/// Where the messages for a server of a log backend go.
fn server_sink(server: &Server) -> Option<LogSink> {
    match (&server.address, server.takes_datagrams) {
        (ServerAddress::Fixed(addr), true) => Some(LogSink::Udp(addr.clone())),
        (ServerAddress::Fixed(Addr::Inet(addr)), false) => Some(LogSink::Tcp(*addr)),
        // The configuration has none such.
        (ServerAddress::Fixed(_) | ServerAddress::PortOffset { .. }, _) => None,
    }
}

/// `fullconn`, else a tenth of what the frontends before a backend may bring (manual §4.2 fullconn).
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

/// The timeouts of a proxy in milliseconds; [`NEVER_MS`] for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutsMs {
    pub client: u64,
    pub server: u64,
    pub connect: u64,
    pub http_request: u64,
    pub http_keep_alive: u64,
    pub queue: u64,
    pub tunnel: u64,
    pub client_fin: u64,
    pub server_fin: u64,
    pub tarpit: u64,
    pub client_hs: u64,
}

impl TimeoutsMs {
    fn new(timeouts: &Timeouts) -> Self {
        let ms = |value: Option<std::time::Duration>| {
            value.map_or(NEVER_MS, |value| value.as_millis() as u64)
        };
        let first = |one: Option<_>, other: Option<_>| ms(one.or(other));
        TimeoutsMs {
            client: ms(timeouts.client),
            server: ms(timeouts.server),
            connect: ms(timeouts.connect),
            http_request: first(timeouts.http_request, timeouts.client),
            // manual §4.2 timeout http-keep-alive: without it, that of the request, then that of the client
            http_keep_alive: first(
                timeouts.http_keep_alive,
                timeouts.http_request.or(timeouts.client),
            ),
            queue: first(timeouts.queue, timeouts.connect),
            tunnel: ms(timeouts.tunnel),
            client_fin: ms(timeouts.client_fin),
            server_fin: ms(timeouts.server_fin),
            tarpit: first(timeouts.tarpit, timeouts.connect),
            client_hs: first(timeouts.client_hs, timeouts.client),
        }
    }
}

/// The moment `timeout_ms` from now.
pub(crate) fn deadline(now: net::Now, timeout_ms: u64) -> u64 {
    now.ms().saturating_add(timeout_ms)
}

/// The backends by name.
fn backends(config: &Config) -> HashMap<Box<[u8]>, usize> {
    let proxies = config.proxies.iter().enumerate();
    proxies
        .filter(|(_, proxy)| proxy.is_backend)
        .map(|(index, proxy)| (proxy.name.as_bytes().into(), index))
        .collect()
}
