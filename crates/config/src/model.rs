//! The typed configuration: what runs. Immutable once built; names are resolved to indices, `defaults` are folded in,
//! expressions are compiled.

use net::Addr;
use std::time::Duration;

/// Everything one run of the process needs.
#[derive(Debug, Default)]
pub struct Config {
    pub global: Global,
    /// Frontends, backends and listens in the order of the files. A `listen` is both.
    pub proxies: Vec<Proxy>,
}

/// Section `global` (manual §3).
#[derive(Debug, Default)]
pub struct Global {
    pub nbthread: Option<u16>,
    pub maxconn: Option<u32>,
    pub log: Vec<LogTarget>,
    pub log_tag: Option<String>,
    pub log_send_hostname: Option<String>,
    pub hard_stop_after: Option<Duration>,
    pub grace: Option<Duration>,
    pub pidfile: Option<String>,
    pub node: Option<String>,
    pub daemon: bool,
    pub master_worker: bool,
    pub stats_sockets: Vec<Bind>,
    pub tune: Tune,
    // … user, group, chroot, ulimit-n, default-path, …
}

/// The `tune.*` keywords that mean something here.
#[derive(Debug)]
pub struct Tune {
    pub bufsize_bytes: usize,
    pub maxrewrite_bytes: usize,
    pub http_maxhdr: usize,
    pub http_logurilen_bytes: usize,
    pub idle_pool_shared: bool,
    pub rcvbuf_client_bytes: Option<usize>,
    pub rcvbuf_server_bytes: Option<usize>,
    pub sndbuf_client_bytes: Option<usize>,
    pub sndbuf_server_bytes: Option<usize>,
    pub maxaccept: Option<u32>,
    pub idletimer_ms: u64,
}

impl Default for Tune {
    fn default() -> Self {
        Tune {
            bufsize_bytes: 16384,
            maxrewrite_bytes: 1024,
            http_maxhdr: 101,
            http_logurilen_bytes: 1024,
            idle_pool_shared: true,
            rcvbuf_client_bytes: None,
            rcvbuf_server_bytes: None,
            sndbuf_client_bytes: None,
            sndbuf_server_bytes: None,
            maxaccept: None,
            idletimer_ms: 1000,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Tcp,
    Http,
}

/// A frontend, a backend or both.
#[derive(Debug, Default)]
pub struct Proxy {
    pub name: String,
    pub is_frontend: bool,
    pub is_backend: bool,
    pub disabled: bool,
    pub id: u32,
    pub description: Option<String>,
    pub mode: Mode,
    // ---- frontend side
    pub binds: Vec<Bind>,
    pub maxconn: Option<u32>,
    pub backlog: Option<u32>,
    /// Tried in order.
    pub use_backend: Vec<UseBackend>,
    /// Index in [`Config::proxies`]. A `listen` without one uses itself.
    pub default_backend: Option<usize>,
    pub monitor_uri: Option<String>,
    // ---- backend side
    pub servers: Vec<Server>,
    pub balance: Balance,
    pub http_reuse: HttpReuse,
    pub retries: u32,
    pub fullconn: Option<u32>,
    pub source: Option<Source>,
    // ---- both
    pub timeout: Timeouts,
    pub options: Options,
    pub connection_mode: ConnectionMode,
    pub forwardfor: Option<ForwardFor>,
    pub originalto: Option<ForwardFor>,
    pub forwarded: Option<Forwarded>,
    pub log: Vec<LogTarget>,
    pub log_format: Option<sample::LogFormat>,
    pub error_log_format: Option<sample::LogFormat>,
    pub log_tag: Option<String>,
    pub unique_id_format: Option<sample::LogFormat>,
    pub unique_id_header: Option<String>,
    /// By status code: the whole response, or the redirect of `errorloc*`.
    pub error_pages: Vec<(u16, ErrorPage)>,
    pub http_request: Vec<HttpRule>,
    pub http_response: Vec<HttpRule>,
    pub http_after_response: Vec<HttpRule>,
    pub tcp_request_connection: Vec<TcpRule>,
    pub tcp_request_session: Vec<TcpRule>,
    pub tcp_request_content: Vec<TcpRule>,
    pub tcp_response_content: Vec<TcpRule>,
    pub tcp_request_inspect_delay: Option<Duration>,
    pub tcp_response_inspect_delay: Option<Duration>,
    pub capture_request: Vec<Capture>,
    pub capture_response: Vec<Capture>,
}

#[derive(Debug)]
pub struct UseBackend {
    pub target: BackendTarget,
    pub condition: Option<sample::Condition>,
}

#[derive(Debug)]
pub enum BackendTarget {
    Static(usize),
    Dynamic(sample::LogFormat),
}

#[derive(Debug)]
pub enum ErrorPage {
    Raw(Vec<u8>),
    Redirect { status: u16, location: String },
}

#[derive(Debug)]
pub struct Capture {
    pub header: String,
    pub len: usize,
}

/// Every `timeout` keyword; none is unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeouts {
    pub client: Option<Duration>,
    pub server: Option<Duration>,
    pub connect: Option<Duration>,
    pub http_request: Option<Duration>,
    pub http_keep_alive: Option<Duration>,
    pub queue: Option<Duration>,
    pub tunnel: Option<Duration>,
    pub client_fin: Option<Duration>,
    pub server_fin: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub check: Option<Duration>,
    pub client_hs: Option<Duration>,
}

/// Boolean options; the name in the configuration with `_` for `-`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub dontlog_normal: bool,
    pub dontlognull: bool,
    pub log_separate_errors: bool,
    pub logasap: bool,
    pub abortonclose: bool,
    pub redispatch: Option<i32>,
    pub nolinger: bool,
    pub clitcpka: bool,
    pub srvtcpka: bool,
    pub tcp_smart_accept: bool,
    pub tcp_smart_connect: bool,
    pub http_buffer_request: bool,
    pub http_ignore_probes: bool,
    pub http_no_delay: bool,
    pub http_use_proxy_header: bool,
    pub http_pretend_keepalive: bool,
    pub accept_unsafe_violations_in_http_request: bool,
    pub accept_unsafe_violations_in_http_response: bool,
    pub independent_streams: bool,
    pub prefer_last_server: bool,
    pub allbackups: bool,
    pub splice_auto: bool,
    pub splice_request: bool,
    pub splice_response: bool,
    pub contstats: bool,
    pub socket_stats: bool,
    pub transparent: bool,
    pub httplog_clf: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionMode {
    #[default]
    KeepAlive,
    ServerClose,
    Close,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpReuse {
    Never,
    #[default]
    Safe,
    Aggressive,
    Always,
}

/// `option forwardfor`/`originalto`.
#[derive(Clone, Debug)]
pub struct ForwardFor {
    pub header: String,
    pub except: Option<(std::net::IpAddr, u8)>,
    pub if_none: bool,
}

/// `option forwarded` (RFC 7239).
#[derive(Debug)]
pub struct Forwarded {
    pub proto: bool,
    pub host: Option<ForwardedHost>,
    pub by: Option<ForwardedNode>,
    pub by_port: Option<ForwardedNode>,
    pub for_: Option<ForwardedNode>,
    pub for_port: Option<ForwardedNode>,
}
#[derive(Debug)]
pub enum ForwardedHost {
    Default,
    Expr(sample::Expr),
}
#[derive(Debug)]
pub enum ForwardedNode {
    Default,
    Expr(sample::Expr),
}

/// `balance` (manual §4.2). `hash_type consistent` is later work and refused with that answer.
#[derive(Debug, Default)]
pub enum Balance {
    #[default]
    RoundRobin,
    StaticRr,
    LeastConn,
    First,
    Random {
        draws: u32,
    },
    Source,
    Uri {
        whole: bool,
        len: Option<usize>,
        depth: Option<usize>,
        path_only: bool,
    },
    UrlParam {
        name: String,
        check_post: Option<usize>,
    },
    Hdr {
        name: String,
        use_domain_only: bool,
    },
    Hash(sample::Expr),
}

/// A `bind` line; one entry per address (port ranges and comma lists are expanded).
#[derive(Debug)]
pub struct Bind {
    pub address: BindAddress,
    pub name: Option<String>,
    pub id: u32,
    pub maxconn: Option<u32>,
    pub backlog: Option<u32>,
    pub accept_proxy: bool,
    pub v4v6: bool,
    pub v6only: bool,
    pub interface: Option<String>,
    pub tfo: bool,
    pub defer_accept: bool,
    pub transparent: bool,
    pub mss: Option<i32>,
    pub mode: Option<u32>,
    pub level: Option<String>,
    /// `file:line` for start-up errors.
    pub origin: String,
}

#[derive(Clone, Debug)]
pub enum BindAddress {
    Addr(Addr),
    Fd(i32),
}

/// A `server` line.
#[derive(Debug)]
pub struct Server {
    pub name: String,
    pub id: u32,
    pub address: ServerAddress,
    pub weight: u32,
    pub maxconn: u32,
    pub minconn: u32,
    pub maxqueue: u32,
    pub backup: bool,
    pub disabled: bool,
    pub send_proxy: SendProxy,
    pub source: Option<Source>,
    pub pool_max_conn: Option<u32>,
    pub pool_low_conn: u32,
    pub pool_purge_delay: Duration,
    pub max_reuse: Option<u32>,
    pub cookie: Option<String>,
}

/// Where a server is. `port_offset`: the address has no fixed port but `+N`/`-N` from the client's destination port.
#[derive(Clone, Debug)]
pub enum ServerAddress {
    Fixed(Addr),
    PortOffset { ip: std::net::IpAddr, offset: i32 },
}

#[derive(Debug, Default)]
pub enum SendProxy {
    #[default]
    No,
    V1,
    /// With `proxy-v2-options` and `set-proxy-v2-tlv-fmt`.
    V2 {
        unique_id: bool,
        crc32c: bool,
        authority: bool,
        tlvs: Vec<(u8, sample::LogFormat)>,
    },
}

/// `source` of a backend or server.
#[derive(Clone, Debug)]
pub struct Source {
    pub addr: Addr,
    pub interface: Option<String>,
    pub port_range: Option<(u16, u16)>,
}

/// A `log` line.
#[derive(Clone, Debug)]
pub struct LogTarget {
    pub to: LogSink,
    pub len: usize,
    pub format: LogWire,
    pub facility: u8,
    pub level_max: u8,
    pub level_min: u8,
    /// `sample <ranges>:<size>`
    pub sample: Option<LogSample>,
}
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    pub ranges: Vec<(u32, u32)>,
    pub size: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LogSink {
    Udp(Addr),
    Fd(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWire {
    Rfc3164,
    Rfc5424,
    Local,
    Priority,
    Short,
    Timed,
    Iso,
    Raw,
}

/// One rule of `http-request`, `http-response` or `http-after-response`.
#[derive(Debug)]
pub struct HttpRule {
    pub action: HttpAction,
    pub condition: Option<sample::Condition>,
}

#[derive(Debug)]
#[non_exhaustive]
pub enum HttpAction {
    Allow,
    SetHeader {
        name: sample::LogFormat,
        value: sample::LogFormat,
    },
    AddHeader {
        name: sample::LogFormat,
        value: sample::LogFormat,
    },
    DelHeader {
        name: String,
    },
    SetMethod(sample::LogFormat),
    SetPath(sample::LogFormat),
    SetPathq(sample::LogFormat),
    SetQuery(sample::LogFormat),
    SetUri(sample::LogFormat),
    SetStatus {
        status: u16,
        reason: Option<String>,
    },
    SetVar {
        var: sample::VarRef,
        expr: sample::Expr,
    },
    SetVarFmt {
        var: sample::VarRef,
        format: sample::LogFormat,
    },
    UnsetVar(sample::VarRef),
    Return(Reply),
    Deny(Reply),
    Tarpit(Reply),
    Reject,
    SilentDrop,
    Redirect(Redirect),
}

/// A response made here: `http-request return|deny|tarpit`.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: ReplyBody,
    pub headers: Vec<(String, sample::LogFormat)>,
}
#[derive(Debug)]
pub enum ReplyBody {
    /// The proxy's own error page of this status.
    Default,
    /// A complete raw response (`errorfile`).
    Raw(Vec<u8>),
    Empty,
    Fixed(Vec<u8>),
    Format(sample::LogFormat),
}

#[derive(Debug)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub code: u16,
    pub options: RedirectOptions,
}
#[derive(Debug)]
pub enum RedirectKind {
    Location(sample::LogFormat),
    Prefix(sample::LogFormat),
    Scheme(sample::LogFormat),
}
#[derive(Debug, Default)]
pub struct RedirectOptions {
    pub drop_query: bool,
    pub append_slash: bool,
    pub ignore_empty: bool,
    pub set_cookie: Option<String>,
    pub clear_cookie: Option<String>,
}

/// One rule of the `tcp-request` and `tcp-response` sets.
#[derive(Debug)]
pub struct TcpRule {
    pub action: TcpAction,
    pub condition: Option<sample::Condition>,
}
#[derive(Debug)]
#[non_exhaustive]
pub enum TcpAction {
    Accept,
    Reject,
    SilentDrop,
    ExpectProxy,
    SetSrc(sample::Expr),
    SetSrcPort(sample::Expr),
    SetDst(sample::Expr),
    SetDstPort(sample::Expr),
    SetVar {
        var: sample::VarRef,
        expr: sample::Expr,
    },
    UnsetVar(sample::VarRef),
    Close,
}
