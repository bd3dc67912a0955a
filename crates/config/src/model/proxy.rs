//! Frontends, backends and their settings (manual §4).

use super::{
    BackendCheck, Balance, Bind, CaptureCookie, Cookie, EmailAlert, HashAffinity, HashType,
    HttpAction, HttpRule, LogTarget, PersistRule, Reply, RetryBudget, RetryOn, Server, Source,
    StickRule, TcpAction, TcpRule, UseServer,
};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// How a proxy interprets the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Raw bytes.
    #[default]
    Tcp,
    /// HTTP.
    Http,
    /// Log messages: a backend that is the target of `log backend@<name>`.
    Log,
}

/// The source of the initial states of a backend's servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFrom {
    /// None.
    #[default]
    Nowhere,
    /// The file of all backends, `server-state-file`.
    Global,
    /// A separate file, [`Proxy::state_file_name`].
    Local,
}

/// A frontend, a backend or both. All proxies that start from the same `defaults` section share its
/// rules, which precede their own.
#[derive(Debug, Default)]
pub struct Proxy {
    /// Its name as written.
    pub name: super::ProxyName,
    /// For a reserved place of a backend that can be added at run time: the index of its `defaults`
    /// in [`super::Config::defaults`].
    pub reserve_of: Option<usize>,
    /// It accepts connections.
    pub is_frontend: bool,
    /// It has servers.
    pub is_backend: bool,
    /// Not started.
    pub disabled: bool,
    /// Only a previous configuration of the process has it: it keeps the place for streams that
    /// still run. It is disabled too.
    pub is_removed: bool,
    /// `be-unpublished`: rules that select a backend treat it like [`Proxy::disabled`].
    pub unpublished: bool,
    /// Rules or expressions name it as a backend, so it cannot be deleted.
    pub is_named: bool,
    /// The id in statistics.
    pub id: u32,
    /// `load-server-state-from-file`
    pub state_from: StateFrom,
    /// `server-state-file-name`; None: the name of the backend.
    pub state_file_name: Option<PathBuf>,
    /// A permanent name (`guid`).
    pub guid: Option<String>,
    /// Free text.
    pub description: Option<Octets>,
    /// `mode`.
    pub mode: Mode,
    /// `file:line` of the section's header.
    pub origin: String,
    // ---- frontend side
    /// One entry per address. In a process that has read its configuration again, some may be
    /// [`Bind::is_removed`].
    pub binds: Vec<Bind>,
    /// Most connections of the frontend.
    pub maxconn: Option<u32>,
    /// `max-session-srv-conns`: most idle server connections that one client connection keeps for
    /// itself.
    pub session_srv_conns_max: u32,
    /// `rate-limit sessions`: most new connections per second.
    pub rate_limit_sessions: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Evaluated in order.
    pub use_backend: Vec<UseBackend>,
    /// Index in [`super::Config::proxies`]. A `listen` without one uses itself.
    pub default_backend: Option<usize>,
    /// The place of that setting.
    pub default_backend_place: Option<sample::RulePlace>,
    /// A path whose requests are answered with 200 directly.
    pub monitor_uri: Option<Octets>,
    /// The place of `monitor-uri`.
    pub monitor_uri_place: Option<sample::RulePlace>,
    /// `monitor fail`: if one of the conditions holds, the monitor's response is 503.
    pub monitor_fail: Vec<sample::Condition>,
    /// `force-be-switch`: if one of the conditions holds, disabled and unpublished backends can be
    /// selected.
    pub force_be_switch: Vec<sample::Condition>,
    /// `capture cookie`.
    pub capture_cookie: Option<CaptureCookie>,
    // ---- backend side
    /// In the order of the file. In a process that has read its configuration again, previous ones
    /// keep their places, and some may be [`Server::is_removed`].
    pub servers: Vec<Arc<Server>>,
    /// Its `default-server` lines and those of its `defaults`, in words: the defaults of servers
    /// that are added later.
    pub default_server_lines: Vec<Arc<[Octets]>>,
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash_type: HashType,
    /// `hash-preserve-affinity`
    pub hash_affinity: HashAffinity,
    /// `hash-balance-factor`: the highest load of a server, in percent of the average; 0 for no
    /// limit.
    pub hash_balance_factor: u32,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// Attempts after the first one; the default is 3.
    pub retries: u32,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudget>,
    /// `cookie`.
    pub cookie: Option<Cookie>,
    /// `dynamic-cookie-key`.
    pub dynamic_cookie_key: Option<Octets>,
    /// Evaluated in order.
    pub use_server: Vec<UseServer>,
    /// `force-persist` and `ignore-persist`: the first rule that applies decides.
    pub persist_rules: Vec<PersistRule>,
    /// `stick on|match|store-request`, in order.
    pub stick_request: Vec<StickRule>,
    /// `stick store-response`, in order.
    pub stick_response: Vec<StickRule>,
    /// `persist rdp-cookie`: the cookie's name.
    pub rdp_cookie: Option<Octets>,
    /// `http-send-name-header`: the header that carries the server's name.
    pub send_name_header: Option<Octets>,
    /// Most requests that wait for the previous server of their client; None means no limit
    /// (`max-keep-alive-queue`).
    pub max_keep_alive_queue: Option<u32>,
    /// The load at which servers reach their `maxconn`.
    pub fullconn: Option<u32>,
    /// How the servers are checked; None for a frontend.
    pub check: Option<BackendCheck>,
    /// `email-alert`: the recipient of mails about the state of servers.
    pub email_alert: Option<EmailAlert>,
    /// The source address of connections to servers.
    pub source: Option<Source>,
    // ---- both
    /// `timeout …`.
    pub timeout: Timeouts,
    /// `option …`.
    pub options: Options,
    /// Keep-alive or close.
    pub connection_mode: ConnectionMode,
    /// `option forwardfor`.
    pub forwardfor: Option<ForwardFor>,
    /// `option originalto`.
    pub originalto: Option<ForwardFor>,
    /// `option forwarded`.
    pub forwarded: Option<Forwarded>,
    /// Own targets, and the global ones if `log global` is set.
    pub log: Vec<LogTarget>,
    /// None: HAProxy's default format (manual §8.2.1).
    pub log_format: Option<sample::LogFormat>,
    /// Structured data of RFC 5424 lines.
    pub log_format_sd: Option<sample::LogFormat>,
    /// `log-steps`: the steps of a stream that write a line each. None: one line per stream.
    pub log_steps: Option<Vec<sample::LogOrigin>>,
    /// The format for connections that fail before a stream exists.
    pub error_log_format: Option<sample::LogFormat>,
    /// The program's name in syslog headers.
    pub log_tag: Option<Octets>,
    /// The format of a request's identifier.
    pub unique_id_format: Option<sample::LogFormat>,
    /// The header that carries it to servers.
    pub unique_id_header: Option<Octets>,
    /// `stats …`: the statistics page; None if it has none.
    pub stats: Option<Arc<super::StatsPage>>,
    /// `stick-table`
    pub table: Option<Arc<tables::Table>>,
    /// By status code: a whole response, or the redirect of `errorloc*`.
    pub error_pages: Vec<(u16, ErrorPage)>,
    /// `compression`; None if it is not configured.
    pub compression: Option<Arc<super::Compression>>,
    /// Filters `bwlim-in` and `bwlim-out`, in order.
    pub bandwidth_limits: Vec<super::BandwidthLimit>,
    /// Filters `opentelemetry`: the indices in [`super::Config::otel`].
    pub otel: Vec<usize>,
    /// Evaluated in order.
    pub http_request: Vec<Arc<HttpRule>>,
    /// Evaluated in order.
    pub http_response: Vec<Arc<HttpRule>>,
    /// Evaluated in order.
    pub http_after_response: Vec<Arc<HttpRule>>,
    /// `redirect` keywords: evaluated after all of [`Proxy::http_request`].
    pub redirects: Vec<Arc<HttpRule>>,
    /// Evaluated in order.
    pub quic_initial: Vec<Arc<super::QuicRule>>,
    /// Evaluated in order.
    pub tcp_request_connection: Vec<Arc<TcpRule>>,
    /// Evaluated in order.
    pub tcp_request_session: Vec<Arc<TcpRule>>,
    /// Evaluated in order.
    pub tcp_request_content: Vec<Arc<TcpRule>>,
    /// Evaluated in order.
    pub tcp_response_content: Vec<Arc<TcpRule>>,
    /// How long request rules may wait for data.
    pub tcp_request_inspect_delay: Option<Duration>,
    /// How long response rules may wait for data.
    pub tcp_response_inspect_delay: Option<Duration>,
    /// Slots of `capture request header` and `declare capture request`.
    pub capture_request: Vec<Capture>,
    /// Slots of `capture response header` and `declare capture response`.
    pub capture_response: Vec<Capture>,
}

impl Proxy {
    /// Its servers with their places, without removed ones.
    pub fn live_servers(&self) -> impl Iterator<Item = (usize, &Arc<Server>)> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| !server.is_removed)
    }

    /// Its bind lines with their places, without removed ones.
    pub fn live_binds(&self) -> impl Iterator<Item = (usize, &Bind)> {
        let binds = self.binds.iter().enumerate();
        binds.filter(|(_, bind)| !bind.is_removed)
    }

    /// The place of the server with this name.
    #[must_use]
    pub fn server_named(&self, name: &str) -> Option<usize> {
        let mut servers = self.live_servers();
        servers
            .find(|(_, server)| server.name == name)
            .map(|(place, _)| place)
    }

    /// Whether a request is aborted if its client closes before a server has it (manual §4.2 option
    /// abortonclose).
    #[must_use]
    pub fn aborts_on_close(&self) -> bool {
        self.options.abortonclose.unwrap_or(self.mode == Mode::Http)
    }

    /// Whether a rule resolves names (`do-resolve`).
    #[must_use]
    pub fn resolves_names(&self) -> bool {
        let is_http = |rule: &Arc<HttpRule>| matches!(rule.action, HttpAction::Resolve(_));
        let is_tcp = |rule: &Arc<TcpRule>| matches!(rule.action, TcpAction::Resolve(_));
        self.http_request.iter().any(is_http) || self.tcp_request_content.iter().any(is_tcp)
    }
}

/// A `use_backend` rule.
#[derive(Debug)]
pub struct UseBackend {
    /// The backend.
    pub target: BackendTarget,
    /// None means always.
    pub condition: Option<sample::Condition>,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// The backend that a `use_backend` rule selects.
#[derive(Debug)]
pub enum BackendTarget {
    /// Index in [`super::Config::proxies`].
    Static(usize),
    /// A name computed at run time. If no backend has it, the next rule is evaluated.
    Dynamic(sample::LogFormat),
}

/// A custom response for an error.
#[derive(Clone, Debug)]
pub enum ErrorPage {
    /// `http-error`.
    Reply(Arc<Reply>),
    /// A complete raw response.
    Raw(Arc<[u8]>),
    /// `errorloc*`.
    Redirect {
        /// 302 or 303.
        status: u16,
        /// The header `Location`.
        location: Octets,
    },
}

/// A capture slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The header that fills it; empty for `declare capture`.
    pub header: Octets,
    /// Bytes kept.
    pub len: usize,
}

/// Every `timeout` keyword; none is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Inactivity of the client.
    pub client: Option<Duration>,
    /// Inactivity of the server.
    pub server: Option<Duration>,
    /// Connecting to a server.
    pub connect: Option<Duration>,
    /// Receiving a complete request head.
    pub http_request: Option<Duration>,
    /// An idle client connection.
    pub http_keep_alive: Option<Duration>,
    /// Waiting in a queue.
    pub queue: Option<Duration>,
    /// Inactivity of a tunnel.
    pub tunnel: Option<Duration>,
    /// Inactivity of a half-closed client connection.
    pub client_fin: Option<Duration>,
    /// Inactivity of a half-closed server connection.
    pub server_fin: Option<Duration>,
    /// Holding a tarpitted request.
    pub tarpit: Option<Duration>,
    /// A health check, after it connected.
    pub check: Option<Duration>,
    /// A handshake with the client.
    pub client_hs: Option<Duration>,
}

/// Boolean options; the name in the configuration with `_` for `-`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub dontlog_normal: bool,
    pub dontlognull: bool,
    pub log_separate_errors: bool,
    pub logasap: bool,
    /// None: the default of the mode, see [`Proxy::aborts_on_close`].
    pub abortonclose: Option<bool>,
    pub idle_close_on_response: bool,
    pub independent_streams: bool,
    /// The first bytes of an HTTP/1 connection do not change it to HTTP/2.
    pub disable_h2_upgrade: bool,
    /// `Some(-1)` is the default: before the last retry.
    pub redispatch: Option<i32>,
    pub nolinger: bool,
    pub persist: bool,
    pub checkcache: bool,
    pub clitcpka: bool,
    pub srvtcpka: bool,
    pub client_keepalive: net::Keepalive,
    pub server_keepalive: net::Keepalive,
    pub http_buffer_request: bool,
    pub http_ignore_probes: bool,
    pub http_pretend_keepalive: bool,
    pub http_use_proxy_header: bool,
    pub http_drop_request_trailers: bool,
    pub http_drop_response_trailers: bool,
    pub http_restrict_req_hdr_names: NamePolicy,
    pub h1_case_adjust_bogus_client: bool,
    pub h1_case_adjust_bogus_server: bool,
    pub accept_unsafe_violations_in_http_request: bool,
    pub accept_unsafe_violations_in_http_response: bool,
    pub prefer_last_server: bool,
    pub allbackups: bool,
    pub socket_stats: bool,
    /// Bytes count while they flow, not at the end of a stream.
    pub contstats: bool,
    /// `option latency-histograms`
    pub latency_histograms: bool,
    pub log_health_checks: bool,
}

/// `option http-restrict-req-hdr-names`: the treatment of request headers whose names have
/// characters other than letters, digits and hyphens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamePolicy {
    /// They are forwarded.
    #[default]
    Preserve,
    /// They are removed.
    Delete,
    /// The request is refused.
    Reject,
}

/// What happens to the connections after a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionMode {
    /// Both sides stay open.
    #[default]
    KeepAlive,
    /// The connection to the server is closed.
    ServerClose,
    /// Both connections are closed.
    Close,
}

/// `http-reuse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpReuse {
    /// Connections are private.
    Never,
    /// Not for the first request of a client connection.
    #[default]
    Safe,
    /// For the first request too, on connections that have been reused before.
    Aggressive,
    /// Always.
    Always,
}

/// `option forwardfor`/`originalto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardFor {
    /// Name of the header.
    pub header: Octets,
    /// Addresses for which nothing is added.
    pub except: Option<(IpAddr, u8)>,
    /// Only if the header does not exist yet.
    pub if_none: bool,
}

/// `option forwarded` (RFC 7239).
#[derive(Clone, Debug)]
pub struct Forwarded {
    /// `proto`.
    pub proto: bool,
    /// `host`.
    pub host: Option<ForwardedHost>,
    /// `by`.
    pub by: Option<ForwardedNode>,
    /// The port of `by`.
    pub by_port: Option<ForwardedNode>,
    /// `for`.
    pub for_: Option<ForwardedNode>,
    /// The port of `for`.
    pub for_port: Option<ForwardedNode>,
}

/// The parameter `host` of `option forwarded`.
#[derive(Clone, Debug)]
pub enum ForwardedHost {
    /// The request's host.
    Default,
    /// An expression.
    Expr(sample::Expr),
}

/// A node or port of `option forwarded`.
#[derive(Clone, Debug)]
pub enum ForwardedNode {
    /// The connection's address or port.
    Default,
    /// An expression.
    Expr(sample::Expr),
}
