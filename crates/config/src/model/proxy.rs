//! Frontends, backends and what is theirs (manual §4).

use super::{
    BackendCheck, Balance, Bind, CaptureCookie, Cookie, EmailAlert, HashAffinity, HashType,
    HttpRule, LogTarget, PersistRule, Reply, RetryBudget, RetryOn, Server, Source, StickRule,
    TcpRule, UseServer,
};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// What a proxy understands of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Bytes.
    #[default]
    Tcp,
    /// HTTP.
    Http,
    /// Log messages: a backend that `log backend@<name>` sends to.
    Log,
}

/// Where the states of a backend's servers are read from at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFrom {
    /// Nowhere.
    #[default]
    Nowhere,
    /// The file of all backends, `server-state-file`.
    Global,
    /// A file of its own, [`Proxy::state_file_name`].
    Local,
}

/// A frontend, a backend or both. Rules of a `defaults` section are shared by all proxies that start from it, and come before their
/// own.
#[derive(Debug, Default)]
pub struct Proxy {
    /// As written.
    pub name: super::ProxyName,
    /// A place for a backend that is added while traffic runs: the `defaults` that it starts from, by its place in
    /// [`super::Config::defaults`].
    pub reserve_of: Option<usize>,
    /// Takes connections.
    pub is_frontend: bool,
    /// Has servers.
    pub is_backend: bool,
    /// Not started.
    pub disabled: bool,
    /// `be-unpublished`: as [`Proxy::disabled`] for those who choose a backend.
    pub unpublished: bool,
    /// Rules or expressions name it as a backend, so that it stays.
    pub is_named: bool,
    /// Number in statistics.
    pub id: u32,
    /// `load-server-state-from-file`
    pub state_from: StateFrom,
    /// `server-state-file-name`; none is the backend's name.
    pub state_file_name: Option<PathBuf>,
    /// A name that identifies it for ever (`guid`).
    pub guid: Option<String>,
    /// Free text.
    pub description: Option<Octets>,
    /// `mode`.
    pub mode: Mode,
    /// `file:line` of the section's header.
    pub origin: String,
    // ---- frontend side
    /// One entry an address.
    pub binds: Vec<Bind>,
    /// Connections of the frontend.
    pub maxconn: Option<u32>,
    /// `max-session-srv-conns`: idle server connections that one client connection keeps for itself.
    pub session_srv_conns_max: u32,
    /// `rate-limit sessions`: new connections a second.
    pub rate_limit_sessions: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Tried in order.
    pub use_backend: Vec<UseBackend>,
    /// Index in [`super::Config::proxies`]. A `listen` without one uses itself.
    pub default_backend: Option<usize>,
    /// Where that stands.
    pub default_backend_place: Option<sample::RulePlace>,
    /// A path that is answered with 200 at once.
    pub monitor_uri: Option<Octets>,
    /// `monitor fail`: one that holds makes the monitor's answer 503.
    pub monitor_fail: Vec<sample::Condition>,
    /// `force-be-switch`: one that holds makes backends that are disabled or unpublished eligible.
    pub force_be_switch: Vec<sample::Condition>,
    /// `capture cookie`.
    pub capture_cookie: Option<CaptureCookie>,
    // ---- backend side
    /// In the order of the file.
    pub servers: Vec<Arc<Server>>,
    /// Its `default-server` lines and those of its `defaults`, in words: what servers that are added later may start from.
    pub default_server_lines: Vec<Arc<[Octets]>>,
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash_type: HashType,
    /// `hash-preserve-affinity`
    pub hash_affinity: HashAffinity,
    /// `hash-balance-factor`: the most load of a server, per cent of the average; 0 for any.
    pub hash_balance_factor: u32,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// Attempts after the first one; 3 where nothing is said.
    pub retries: u32,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudget>,
    /// `cookie`.
    pub cookie: Option<Cookie>,
    /// `dynamic-cookie-key`.
    pub dynamic_cookie_key: Option<Octets>,
    /// Tried in order.
    pub use_server: Vec<UseServer>,
    /// `force-persist` and `ignore-persist`: the first that holds counts.
    pub persist_rules: Vec<PersistRule>,
    /// `stick on|match|store-request`, in order.
    pub stick_request: Vec<StickRule>,
    /// `stick store-response`, in order.
    pub stick_response: Vec<StickRule>,
    /// `persist rdp-cookie`: the cookie's name.
    pub rdp_cookie: Option<Octets>,
    /// `http-send-name-header`: the header that tells a server its name.
    pub send_name_header: Option<Octets>,
    /// Requests that may wait for the server of the client's last one; none is any number (`max-keep-alive-queue`).
    pub max_keep_alive_queue: Option<u32>,
    /// Load at which servers reach their `maxconn`.
    pub fullconn: Option<u32>,
    /// What checks the servers; none of a frontend.
    pub check: Option<BackendCheck>,
    /// `email-alert`: who is mailed about the state of servers.
    pub email_alert: Option<EmailAlert>,
    /// Where connections to servers come from.
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
    /// Own targets and, where `log global` stands, the global ones.
    pub log: Vec<LogTarget>,
    /// None is HAProxy's default format (manual §8.2.1).
    pub log_format: Option<sample::LogFormat>,
    /// Structured data of RFC 5424 lines.
    pub log_format_sd: Option<sample::LogFormat>,
    /// `log-steps`: the moments of a stream that have a line each. None is one line a stream.
    pub log_steps: Option<Vec<sample::LogOrigin>>,
    /// For connections that fail before a stream stands.
    pub error_log_format: Option<sample::LogFormat>,
    /// The program's name in syslog headers.
    pub log_tag: Option<Octets>,
    /// How a request's identifier is made.
    pub unique_id_format: Option<sample::LogFormat>,
    /// The header that carries it to servers.
    pub unique_id_header: Option<Octets>,
    /// `stats …`: the statistics page; none where it has none.
    pub stats: Option<Arc<super::StatsPage>>,
    /// `stick-table`
    pub table: Option<Arc<tables::Table>>,
    /// By status code: the whole response, or the redirect of `errorloc*`.
    pub error_pages: Vec<(u16, ErrorPage)>,
    /// `compression`; none where nothing is said of it.
    pub compression: Option<Arc<super::Compression>>,
    /// Filters `bwlim-in` and `bwlim-out`, in order.
    pub bandwidth_limits: Vec<super::BandwidthLimit>,
    /// Filters `opentelemetry`: the indices in [`super::Config::otel`].
    pub otel: Vec<usize>,
    /// In order.
    pub http_request: Vec<Arc<HttpRule>>,
    /// In order.
    pub http_response: Vec<Arc<HttpRule>>,
    /// In order.
    pub http_after_response: Vec<Arc<HttpRule>>,
    /// `redirect` keywords: evaluated after all of [`Proxy::http_request`].
    pub redirects: Vec<Arc<HttpRule>>,
    /// In order.
    pub tcp_request_connection: Vec<Arc<TcpRule>>,
    /// In order.
    pub tcp_request_session: Vec<Arc<TcpRule>>,
    /// In order.
    pub tcp_request_content: Vec<Arc<TcpRule>>,
    /// In order.
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
    /// Whether a request is given up when its client closes before a server has it (manual §4.2 option abortonclose).
    #[must_use]
    pub fn aborts_on_close(&self) -> bool {
        self.options.abortonclose.unwrap_or(self.mode == Mode::Http)
    }
}

/// A `use_backend` rule.
#[derive(Debug)]
pub struct UseBackend {
    /// Where to.
    pub target: BackendTarget,
    /// None is always.
    pub condition: Option<sample::Condition>,
    /// Where it stands.
    pub place: sample::RulePlace,
}

/// Where a `use_backend` rule leads.
#[derive(Debug)]
pub enum BackendTarget {
    /// Index in [`super::Config::proxies`].
    Static(usize),
    /// A name made at run time; the next rule where no backend has it.
    Dynamic(sample::LogFormat),
}

/// An own response in place of an error.
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
    /// A connection to a server.
    pub connect: Option<Duration>,
    /// A complete request head.
    pub http_request: Option<Duration>,
    /// An idle client connection.
    pub http_keep_alive: Option<Duration>,
    /// A place in a queue.
    pub queue: Option<Duration>,
    /// Inactivity of a tunnel.
    pub tunnel: Option<Duration>,
    /// Inactivity of a half-closed client connection.
    pub client_fin: Option<Duration>,
    /// Inactivity of a half-closed server connection.
    pub server_fin: Option<Duration>,
    /// A tarpitted request.
    pub tarpit: Option<Duration>,
    /// A health check, once connected.
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
    /// None is the mode's default: see [`Proxy::aborts_on_close`].
    pub abortonclose: Option<bool>,
    pub idle_close_on_response: bool,
    pub independent_streams: bool,
    /// A connection of HTTP/1 does not become one of HTTP/2 by its first bytes.
    pub disable_h2_upgrade: bool,
    /// `Some(-1)` is the default number: before the last retry.
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
    /// `option latency-histograms`
    pub latency_histograms: bool,
    pub log_health_checks: bool,
}

/// `option http-restrict-req-hdr-names`: what becomes of request headers whose names have other characters than letters,
/// digits and hyphens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamePolicy {
    /// They pass.
    #[default]
    Preserve,
    /// They are removed.
    Delete,
    /// Their request is refused.
    Reject,
}

/// What happens to connections after a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionMode {
    /// Both sides stay open.
    #[default]
    KeepAlive,
    /// The server's side is closed.
    ServerClose,
    /// Both sides are closed.
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
    /// For the first request too, on connections that were reused before.
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
    /// Only when the header is not there yet.
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
