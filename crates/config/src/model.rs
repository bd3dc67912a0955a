//! The typed configuration: what runs. Immutable once built; names are resolved to indices, `defaults` are folded in,
//! expressions are compiled.

use net::Addr;
use std::net::IpAddr;
use std::time::Duration;

/// Everything one run of the process needs.
#[derive(Debug, Default)]
pub struct Config {
    /// Section `global`.
    pub global: Global,
    /// Frontends, backends and listens in the order of the files. A `listen` is both.
    pub proxies: Vec<Proxy>,
    /// How many variables of each scope the expressions name.
    pub slots: sample::SlotCounts,
}

/// Section `global` (manual §3).
#[derive(Debug, Default)]
pub struct Global {
    /// Worker threads; the number of cores where none.
    pub nbthread: Option<u16>,
    /// Connections of the whole process.
    pub maxconn: Option<u32>,
    /// What `log global` stands for.
    pub log: Vec<LogTarget>,
    /// The program's name in syslog headers.
    pub log_tag: Option<String>,
    /// The host name in syslog headers; empty means the system's.
    pub log_send_hostname: Option<String>,
    /// Longest time of a soft stop.
    pub hard_stop_after: Option<Duration>,
    /// Between a soft stop's signal and the closing of the listeners.
    pub grace: Option<Duration>,
    /// File that gets the process's number.
    pub pidfile: Option<String>,
    /// This machine's name in statistics.
    pub node: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Detach from the terminal.
    pub daemon: bool,
    /// A master process with workers.
    pub master_worker: bool,
    /// As `-dW`.
    pub zero_warning: bool,
    /// User to run as.
    pub uid: Option<u32>,
    /// Group to run as.
    pub gid: Option<u32>,
    /// Directory to confine the process to.
    pub chroot: Option<String>,
    /// File descriptors to ask for.
    pub ulimit_n: Option<u64>,
    /// Upper bound of the file descriptors to ask for.
    pub fd_hard_limit: Option<u64>,
    /// Listeners of the runtime interface.
    pub stats_sockets: Vec<Bind>,
    /// Inactivity after which a connection of the runtime interface is closed.
    pub stats_timeout: Option<Duration>,
    /// Connections of the runtime interface.
    pub stats_maxconn: Option<u32>,
    /// Variables of scope `proc` to set at start, in order.
    pub set_var: Vec<(sample::VarRef, ProcValue)>,
    /// `tune.*`.
    pub tune: Tune,
}

/// What `set-var` and `set-var-fmt` of `global` set a variable to.
#[derive(Debug)]
pub enum ProcValue {
    /// An expression.
    Expr(sample::Expr),
    /// A formatted string.
    Format(sample::LogFormat),
}

/// The `tune.*` keywords that mean something here.
#[derive(Debug)]
pub struct Tune {
    /// Largest head, with the space of [`Tune::maxrewrite_bytes`].
    pub bufsize_bytes: usize,
    /// Space kept for added headers.
    pub maxrewrite_bytes: usize,
    /// Most headers in a message.
    pub http_maxhdr: usize,
    /// Longest request line in a log.
    pub http_logurilen_bytes: usize,
    /// Kernel receive buffer of client connections.
    pub rcvbuf_client_bytes: Option<usize>,
    /// Kernel receive buffer of server connections.
    pub rcvbuf_server_bytes: Option<usize>,
    /// Kernel send buffer of client connections.
    pub sndbuf_client_bytes: Option<usize>,
    /// Kernel send buffer of server connections.
    pub sndbuf_server_bytes: Option<usize>,
    /// Connections accepted at once; none is unlimited.
    pub maxaccept: Option<u32>,
}

impl Default for Tune {
    fn default() -> Self {
        Tune {
            bufsize_bytes: 16384,
            maxrewrite_bytes: 1024,
            http_maxhdr: 101,
            http_logurilen_bytes: 1023,
            rcvbuf_client_bytes: None,
            rcvbuf_server_bytes: None,
            sndbuf_client_bytes: None,
            sndbuf_server_bytes: None,
            maxaccept: None,
        }
    }
}

/// What a proxy understands of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Bytes.
    #[default]
    Tcp,
    /// HTTP.
    Http,
}

/// A frontend, a backend or both.
#[derive(Debug, Default)]
pub struct Proxy {
    /// As written.
    pub name: String,
    /// Takes connections.
    pub is_frontend: bool,
    /// Has servers.
    pub is_backend: bool,
    /// Not started.
    pub disabled: bool,
    /// Number in statistics.
    pub id: u32,
    /// Free text.
    pub description: Option<String>,
    /// `mode`.
    pub mode: Mode,
    /// `file:line` of the section's header.
    pub origin: String,
    // ---- frontend side
    /// One entry an address.
    pub binds: Vec<Bind>,
    /// Connections of the frontend.
    pub maxconn: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Tried in order.
    pub use_backend: Vec<UseBackend>,
    /// Index in [`Config::proxies`]. A `listen` without one uses itself.
    pub default_backend: Option<usize>,
    /// A path that is answered with 200 at once.
    pub monitor_uri: Option<String>,
    /// `monitor fail`: one that holds makes the monitor's answer 503.
    pub monitor_fail: Vec<sample::Condition>,
    // ---- backend side
    /// In the order of the file.
    pub servers: Vec<Server>,
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash_type: HashType,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// Attempts after the first one; 3 where nothing is said.
    pub retries: u32,
    /// Load at which servers reach their `maxconn`.
    pub fullconn: Option<u32>,
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
    /// For connections that fail before a stream stands.
    pub error_log_format: Option<sample::LogFormat>,
    /// The program's name in syslog headers.
    pub log_tag: Option<String>,
    /// How a request's identifier is made.
    pub unique_id_format: Option<sample::LogFormat>,
    /// The header that carries it to servers.
    pub unique_id_header: Option<String>,
    /// By status code: the whole response, or the redirect of `errorloc*`.
    pub error_pages: Vec<(u16, ErrorPage)>,
    /// In order.
    pub http_request: Vec<HttpRule>,
    /// In order.
    pub http_response: Vec<HttpRule>,
    /// In order.
    pub http_after_response: Vec<HttpRule>,
    /// `redirect` keywords: evaluated after all of [`Proxy::http_request`].
    pub redirects: Vec<HttpRule>,
    /// In order.
    pub tcp_request_connection: Vec<TcpRule>,
    /// In order.
    pub tcp_request_session: Vec<TcpRule>,
    /// In order.
    pub tcp_request_content: Vec<TcpRule>,
    /// In order.
    pub tcp_response_content: Vec<TcpRule>,
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
}

/// Where a `use_backend` rule leads.
#[derive(Debug)]
pub enum BackendTarget {
    /// Index in [`Config::proxies`].
    Static(usize),
    /// A name made at run time; the next rule where no backend has it.
    Dynamic(sample::LogFormat),
}

/// An own response in place of an error.
#[derive(Clone, Debug)]
pub enum ErrorPage {
    /// `http-error`.
    Reply(std::sync::Arc<Reply>),
    /// A complete raw response.
    Raw(Vec<u8>),
    /// `errorloc*`.
    Redirect {
        /// 302 or 303.
        status: u16,
        /// The header `Location`.
        location: String,
    },
}

/// A capture slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The header that fills it; empty for `declare capture`.
    pub header: String,
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
    /// `Some(-1)` is the default number: before the last retry.
    pub redispatch: Option<i32>,
    pub nolinger: bool,
    pub clitcpka: bool,
    pub srvtcpka: bool,
    pub http_buffer_request: bool,
    pub http_ignore_probes: bool,
    pub http_pretend_keepalive: bool,
    pub accept_unsafe_violations_in_http_request: bool,
    pub accept_unsafe_violations_in_http_response: bool,
    pub prefer_last_server: bool,
    pub allbackups: bool,
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
    pub header: String,
    /// Addresses for which nothing is added.
    pub except: Option<(IpAddr, u8)>,
    /// Only when the header is not there yet.
    pub if_none: bool,
}

/// `option forwarded` (RFC 7239).
#[derive(Debug)]
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
#[derive(Debug)]
pub enum ForwardedHost {
    /// The request's host.
    Default,
    /// An expression.
    Expr(sample::Expr),
}

/// A node or port of `option forwarded`.
#[derive(Debug)]
pub enum ForwardedNode {
    /// The connection's address or port.
    Default,
    /// An expression.
    Expr(sample::Expr),
}

/// `balance` (manual §4.2).
#[derive(Debug, Default)]
pub enum Balance {
    /// In turn, weights may change.
    #[default]
    RoundRobin,
    /// In turn, weights are fixed.
    StaticRr,
    /// The fewest connections.
    LeastConn,
    /// The first one with a free slot.
    First,
    /// The least loaded of some drawn by lot.
    Random {
        /// How many are drawn.
        draws: u32,
    },
    /// A hash of the client's address.
    Source,
    /// A hash of the URI.
    Uri {
        /// The query too.
        whole: bool,
        /// Bytes that count.
        len: Option<usize>,
        /// Directories that count.
        depth: Option<usize>,
        /// Without scheme and authority.
        path_only: bool,
    },
    /// A hash of a query parameter.
    UrlParam {
        /// Its name.
        name: String,
    },
    /// A hash of a header.
    Hdr {
        /// Its name.
        name: String,
        /// Only the middle part of a host name.
        use_domain_only: bool,
    },
    /// A hash of an expression.
    Hash(sample::Expr),
}

/// `hash-type`. `consistent` is later work and refused with that answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashType {
    /// The function.
    pub function: HashFunction,
    /// Mixes the hash once more.
    pub avalanche: bool,
}

/// The functions of `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashFunction {
    /// `sdbm`.
    #[default]
    Sdbm,
    /// `djb2`.
    Djb2,
    /// `wt6`.
    Wt6,
    /// `crc32`.
    Crc32,
    /// `none`: the key is the number.
    None,
}

/// A `bind` line; one entry per address (port ranges and comma lists are expanded).
#[derive(Clone, Debug)]
pub struct Bind {
    /// Where to listen.
    pub address: BindAddress,
    /// In statistics and logs.
    pub name: Option<String>,
    /// Number in statistics.
    pub id: u32,
    /// Connections of this listener.
    pub maxconn: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Expect a PROXY protocol header.
    pub accept_proxy: bool,
    /// IPv6 takes IPv4 too.
    pub v4v6: bool,
    /// IPv6 does not take IPv4.
    pub v6only: bool,
    /// Network interface.
    pub interface: Option<String>,
    /// TCP Fast Open.
    pub tfo: bool,
    /// Accept only when data is there.
    pub defer_accept: bool,
    /// Largest TCP segment.
    pub mss: Option<i32>,
    /// Rights of a UNIX socket's file.
    pub mode: Option<u32>,
    /// Owner of a UNIX socket's file.
    pub uid: Option<u32>,
    /// Group of a UNIX socket's file.
    pub gid: Option<u32>,
    /// Rights of the runtime interface.
    pub level: Option<String>,
    /// How the runtime interface shows severities.
    pub severity_output: Option<String>,
    /// `file:line` for start-up errors.
    pub origin: String,
}

/// Where a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// To be bound.
    Addr(Addr),
    /// Inherited, bound already.
    Fd(i32),
}

/// A `server` line.
#[derive(Debug)]
pub struct Server {
    /// As written.
    pub name: String,
    /// Number in statistics.
    pub id: u32,
    /// Where it is.
    pub address: ServerAddress,
    /// Share of the load, 0 to 256.
    pub weight: u32,
    /// Connections; 0 is unlimited.
    pub maxconn: u32,
    /// Lower bound of a dynamic `maxconn`; 0 is none.
    pub minconn: u32,
    /// Length of the queue; 0 is unlimited.
    pub maxqueue: u32,
    /// Used only when no other server is.
    pub backup: bool,
    /// In maintenance.
    pub disabled: bool,
    /// PROXY protocol.
    pub send_proxy: SendProxy,
    /// Where connections come from; before the backend's.
    pub source: Option<Source>,
    /// Idle connections that are kept; none is unlimited.
    pub pool_max_conn: Option<u32>,
    /// Time after which unused idle connections are closed.
    pub pool_purge_delay: Duration,
    /// Requests on one connection after the first one; none is unlimited.
    pub max_reuse: Option<u32>,
    /// `file:line`.
    pub origin: String,
}

/// Where a server is. `PortOffset`: the address has no fixed port but `+N`/`-N` from the client's destination port.
/// The unspecified address means the client's destination address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A whole address.
    Fixed(Addr),
    /// The port follows the client's.
    PortOffset {
        /// The address.
        ip: IpAddr,
        /// Added to the port that the client connected to.
        offset: i32,
    },
}

/// What a server is sent before the data.
#[derive(Debug, Default)]
pub enum SendProxy {
    /// Nothing.
    #[default]
    No,
    /// The text header.
    V1,
    /// With `proxy-v2-options` and `set-proxy-v2-tlv-fmt`.
    V2 {
        /// TLV `unique-id`.
        unique_id: bool,
        /// TLV `crc32c`.
        crc32c: bool,
        /// TLV `authority`.
        authority: bool,
        /// Own TLVs.
        tlvs: Vec<(u8, sample::LogFormat)>,
    },
}

/// `source` of a backend or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Address, with port 0 where none is written.
    pub addr: Addr,
    /// Network interface.
    pub interface: Option<String>,
}

/// A `log` line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogTarget {
    /// Where to.
    pub to: LogSink,
    /// Longest line in bytes.
    pub len: usize,
    /// How a message is wrapped.
    pub format: LogWire,
    /// Syslog facility.
    pub facility: u8,
    /// Least severe level that is sent (7 is debug).
    pub level_max: u8,
    /// Levels more severe than this are sent as this.
    pub level_min: u8,
    /// `sample <ranges>:<size>`
    pub sample: Option<LogSample>,
}

/// Which messages of a window are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    /// First and last, counted from 1.
    pub ranges: Vec<(u32, u32)>,
    /// Length of the window.
    pub size: u32,
}

/// Where logs go.
#[derive(Clone, Debug, PartialEq)]
pub enum LogSink {
    /// A datagram socket, UDP or UNIX.
    Udp(Addr),
    /// A descriptor.
    Fd(i32),
}

/// How a log message is wrapped (manual §4.2, `log … format`).
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWire {
    /// Where nothing is said: as `Rfc3164`, with a host name only where `log-send-hostname` asks for one.
    Default,
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
    /// What it does.
    pub action: HttpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
}

/// The actions of HTTP rules (manual §4.4).
#[allow(missing_docs)]
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
    /// Until `at_least` bytes or all of the body are here, at most for `time`.
    WaitForBody {
        time: Duration,
        at_least: Option<usize>,
    },
    SetSrc(sample::Expr),
    SetSrcPort(sample::Expr),
    SetDst(sample::Expr),
    SetDstPort(sample::Expr),
    /// Into a slot of [`Proxy::capture_request`] in `http-request`, else of [`Proxy::capture_response`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
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
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// What it carries.
    pub body: ReplyBody,
    /// Further headers.
    pub headers: Vec<(String, sample::LogFormat)>,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum ReplyBody {
    /// The proxy's own error page of this status.
    Default,
    /// A complete raw response (`errorfile`).
    Raw(Vec<u8>),
    /// No body.
    Empty,
    /// These bytes.
    Fixed(Vec<u8>),
    /// A formatted string.
    Format(sample::LogFormat),
}

/// A redirect.
#[derive(Debug)]
pub struct Redirect {
    /// Where to.
    pub kind: RedirectKind,
    /// Status code.
    pub code: u16,
    /// Its options.
    pub options: RedirectOptions,
}

/// How a redirect's place is made.
#[derive(Debug)]
pub enum RedirectKind {
    /// The whole place.
    Location(sample::LogFormat),
    /// Before the request's URI.
    Prefix(sample::LogFormat),
    /// Instead of the request's scheme.
    Scheme(sample::LogFormat),
}

/// Options of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedirectOptions {
    /// Without the query.
    pub drop_query: bool,
    /// With the query also for `location` (`keep-query`).
    pub keep_query: bool,
    /// With a slash at the end of a path that has none.
    pub append_slash: bool,
    /// Nothing happens when the place is empty.
    pub ignore_empty: bool,
    /// A cookie to set, `name[=value]`.
    pub set_cookie: Option<String>,
    /// A cookie to clear.
    pub clear_cookie: Option<String>,
}

/// One rule of the `tcp-request` and `tcp-response` sets.
#[derive(Debug)]
pub struct TcpRule {
    /// What it does.
    pub action: TcpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
}

/// The actions of TCP rules (manual §4.4).
#[allow(missing_docs)]
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
    SetVarFmt {
        var: sample::VarRef,
        format: sample::LogFormat,
    },
    UnsetVar(sample::VarRef),
    Close,
}
