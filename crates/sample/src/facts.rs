//! What an expression can see: the facts of a session, its stream and the world, kept by the engine as plain data and lent
//! to each evaluation. A moment that a fact is not known yet at (no response, no server) is `None` or an empty value.

use http::Head;
use http::h1::Framing;
use std::net::IpAddr;

use net::{Addr, CpuOf, Now, TcpInfo};

use crate::captured::{Capture, CaptureSlot, CaptureSlots, Captured};
pub use crate::vars::Vars;
use crate::vars::{Assigned, Change, VarLimits, VarNames};
use crate::{ConnError, LogOrigin, Value};

/// Facts of a client connection, for as long as it lives.
#[derive(Clone, Debug)]
pub struct Session {
    /// When it was accepted.
    pub accepted: Now,
    /// Client's address: what the PROXY protocol or `tcp-request session set-src` say; a stream may have its own ([`Scope::src`]).
    pub src: Addr,
    /// Local address, likewise.
    pub dst: Addr,
    /// Address of the connection itself (`fc_src`), where that of the session is another one; else none.
    pub connection_src: Option<Addr>,
    /// As `connection_src`, for the destination.
    pub connection_dst: Option<Addr>,
    /// The frontend's index in [`World`].
    pub frontend: u32,
    /// The bind line's index in its frontend.
    pub bind: u32,
    /// A PROXY protocol header was received (`fc_rcvd_proxy`).
    pub received_proxy: bool,
    /// Milliseconds that the handshakes took (PROXY, TLS): `%Th`.
    pub handshake_ms: u32,
    /// What `fc_err` says: none unless the connection failed before its first stream.
    pub error: ConnError,
    /// The connection is encrypted: `~` after the frontend in `%ft`.
    pub tls: bool,
    /// TLVs of the PROXY protocol v2 header, as received (type, length, value …); none otherwise.
    pub tlvs: Option<Box<[u8]>>,
    /// Why a log line is being written (`%OG`).
    pub log_origin: LogOrigin,
    /// Variables of scope `sess`, by slot.
    pub vars: Vars,
    /// What converters assigned to them.
    pub assigned: Assigned,
}

impl Session {
    /// A session as it is right after the accept.
    #[must_use]
    pub fn new(accepted: Now, src: Addr, dst: Addr, frontend: u32, bind: u32) -> Session {
        Session {
            accepted,
            src,
            dst,
            connection_src: None,
            connection_dst: None,
            frontend,
            bind,
            received_proxy: false,
            handshake_ms: 0,
            error: ConnError::None,
            tls: false,
            tlvs: None,
            log_origin: LogOrigin::default(),
            vars: Vars::default(),
            assigned: Assigned::default(),
        }
    }

    /// Moves what converters assigned into the variables.
    pub fn settle(&mut self) {
        if self.assigned.any() {
            let Session { assigned, vars, .. } = self;
            assigned.settle(|var, change| vars.change(var.slot, change));
        }
    }

    /// The client's address for a stream.
    #[must_use]
    pub fn src_of<'a>(&'a self, txn: Option<&'a Txn>) -> &'a Addr {
        txn.and_then(|txn| txn.src.as_ref()).unwrap_or(&self.src)
    }

    /// The local address for a stream.
    #[must_use]
    pub fn dst_of<'a>(&'a self, txn: Option<&'a Txn>) -> &'a Addr {
        txn.and_then(|txn| txn.dst.as_ref()).unwrap_or(&self.dst)
    }
}

/// Where a rule stands in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulePlace {
    /// The file, by its number in [`World::file_name`].
    pub file: u32,
    /// The line, counted from 1.
    pub line: u32,
}

/// What a stream waits for (`waiting_entity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// A rule's action goes on later.
    Rule(RulePlace),
    /// `option http-buffer-request`.
    Body,
}

/// Facts of a stream (one request and its answer, or one TCP session).
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// Since the start of the process, for `%rt` and the default `unique-id`.
    pub id: u64,
    /// The line is written before the end (`option logasap`): `+` before `%Ta`, `%Tt`, `%B`.
    pub log_early: bool,
    /// The frontend or backend works in mode HTTP.
    pub is_http: bool,
    /// The request takes us for a proxy, and `option http-use-proxy-header` heeds it: credentials are those for a proxy.
    pub is_proxied: bool,
    /// First request of its client connection (`http_first_req`).
    pub first_request: bool,
    /// Method of the request line as received.
    pub method: http::Method,
    /// Request line as received, for `%r`: method, URI, version, one space between. Empty before, and for a request
    /// that was not understood (`<BADREQ>`).
    pub request_line: Vec<u8>,
    /// Status sent to the client, 0 before.
    pub status: u16,
    /// Status received from the server, 0 before (`server_status`).
    pub server_status: u16,
    /// Backend's index in [`World`]; none before the switch.
    pub backend: Option<u32>,
    /// Server's index in its backend.
    pub server: Option<u32>,
    /// Name of the internal service that answered instead of a server (`STATS`): `<STATS>` in `%s`.
    pub service: Option<&'static str>,
    /// Address that the server side connects from.
    pub server_src: Option<Addr>,
    /// The client's address for this stream alone, where a rule of it set one.
    pub src: Option<Addr>,
    /// The local address, likewise.
    pub dst: Option<Addr>,
    /// Address that the server side connects to.
    pub server_dst: Option<Addr>,
    /// The server connection was a reused one (`bc_reused`).
    pub server_reused: bool,
    /// Why the last attempt to connect failed (`bc_err`).
    pub server_error: ConnError,
    /// Bytes to the client (`%B`).
    pub bytes_out: u64,
    /// Bytes from the client (`%U`).
    pub bytes_in: u64,
    /// Bytes sent to the server (`req.bytes_out`).
    pub bytes_to_server: u64,
    /// Bytes received from the server (`res.bytes_in`).
    pub bytes_from_server: u64,
    /// Connection retries.
    pub retries: u32,
    /// Another server was taken after the retries: `+` before `%rc`.
    pub redispatched: bool,
    /// Position in the server's queue when it waited (`%sq`).
    pub server_queue: u32,
    /// Position in the backend's queue when it waited (`%bq`).
    pub backend_queue: u32,
    /// The termination state of `%ts`/`%tsc`: who ended it and when, two characters each. NUL bytes are written as `-`.
    pub termination: [u8; 4],
    /// The final rule that decided last (`last_rule_file`, `last_rule_line`).
    pub last_rule: Option<RulePlace>,
    /// What it waits for, or waited for when its time was over.
    pub waits: Option<Waits>,
    /// Class in the queues, the lowest first (`prio_class`, `set-priority-class`); from -2047 to 2047.
    pub prio_class: i16,
    /// Milliseconds by which it came later, as the queues see it (`prio_offset`); from -524287 to 524287.
    pub prio_offset: i32,
    /// Captured request headers, in the order of their slots.
    pub captured_request: CaptureSlots,
    /// Captured response headers, in the order of their slots.
    pub captured_response: CaptureSlots,
    /// What converters captured: settled into the slots by [`Txn::settle`].
    pub captured: Captured,
    /// `capture cookie` of the request (`%CC`).
    pub captured_request_cookie: Capture,
    /// `capture cookie` of the response (`%CS`).
    pub captured_response_cookie: Capture,
    /// The unique id, once it was made (`%ID`, `unique-id`).
    pub unique_id: crate::UniqueId,
    /// What rules set of the stream's timeouts (`set-timeout`).
    pub timeouts: Timeouts,
    /// The number of retries that a rule set (`set-retries`), in place of the backend's.
    pub retries_max: Option<u32>,
    /// How the request's body is framed: what of [`Scope::request_data`] is its body, and in which form.
    pub request_framing: Framing,
    /// The same of the response.
    pub response_framing: Framing,
    /// In TCP: the bytes at hand are no HTTP request, and no more of them will make one.
    pub never_http: bool,
    /// Times that the engine has worked on this stream (`cpu_calls`).
    pub turns: u32,
    /// `set-priority-class` and `set-priority-offset`.
    pub priority: (i32, i32),
    /// Moments of the stream.
    pub timing: Timing,
    /// Variables of scope `txn`.
    pub txn_vars: Vars,
    /// Variables of scope `req`.
    pub req_vars: Vars,
    /// Variables of scope `res`.
    pub res_vars: Vars,
    /// What converters assigned to them.
    pub assigned: Assigned,
    /// A server is being connected to, or an answer was made here: from now on there are variables of scope `res` instead
    /// of `req` ([`Txn::end_request_vars`]).
    pub responding: bool,
}

impl Txn {
    /// Back to a fresh state, the memory of texts and variables kept. Every field is named, so that a new one cannot be
    /// forgotten.
    pub fn reset(&mut self) {
        let Txn {
            id,
            log_early,
            is_http,
            is_proxied,
            first_request,
            method,
            request_line,
            status,
            server_status,
            backend,
            server,
            service,
            server_src,
            src,
            dst,
            server_dst,
            server_reused,
            server_error,
            bytes_out,
            bytes_in,
            bytes_to_server,
            bytes_from_server,
            retries,
            redispatched,
            server_queue,
            backend_queue,
            termination,
            last_rule,
            waits,
            prio_class,
            prio_offset,
            captured_request,
            captured_response,
            captured,
            captured_request_cookie,
            captured_response_cookie,
            unique_id,
            timeouts,
            retries_max,
            request_framing,
            response_framing,
            never_http,
            turns,
            priority,
            timing,
            txn_vars,
            req_vars,
            res_vars,
            assigned,
            responding,
        } = self;
        (*id, *bytes_out, *bytes_in) = (0, 0, 0);
        (*bytes_to_server, *bytes_from_server) = (0, 0);
        (*retries, *server_queue, *backend_queue) = (0, 0, 0);
        (*status, *server_status) = (0, 0);
        for flag in [
            log_early,
            is_http,
            is_proxied,
            first_request,
            server_reused,
            redispatched,
            responding,
            never_http,
        ] {
            *flag = false;
        }
        *method = http::Method::default();
        request_line.clear();
        (*backend, *server, *service) = (None, None, None);
        (*src, *dst) = (None, None);
        (*server_src, *server_dst) = (None, None);
        *server_error = ConnError::None;
        *termination = [0; 4];
        (*last_rule, *waits) = (None, None);
        (*prio_class, *prio_offset) = (0, 0);
        captured_request.clear();
        captured_response.clear();
        captured.settle(|_, _| {});
        captured_request_cookie.clear();
        captured_response_cookie.clear();
        *unique_id = crate::UniqueId::default();
        *timeouts = Timeouts::default();
        *retries_max = None;
        (*request_framing, *response_framing) = (Framing::default(), Framing::default());
        (*turns, *priority) = (0, (0, 0));
        *timing = Timing::default();
        txn_vars.clear();
        req_vars.clear();
        res_vars.clear();
        assigned.settle(|_, _| {});
    }

    /// Variables of scope `req` end. Set [`Txn::responding`] with it.
    pub fn end_request_vars(&mut self) {
        self.settle();
        self.req_vars.clear();
    }

    /// Moves what converters assigned into the variables, and what they captured into the slots.
    pub fn settle(&mut self) {
        let Txn {
            captured,
            captured_request,
            captured_response,
            ..
        } = self;
        captured.settle(|slot, text| {
            let slots = if slot.of_response {
                &mut *captured_response
            } else {
                &mut *captured_request
            };
            slots.set(slot.index, text);
        });
        if !self.assigned.any() {
            return;
        }
        let Txn {
            assigned,
            txn_vars,
            req_vars,
            res_vars,
            ..
        } = self;
        assigned.settle(|var, change| match var.scope {
            crate::VarScope::Txn => txn_vars.change(var.slot, change),
            crate::VarScope::Req => req_vars.change(var.slot, change),
            crate::VarScope::Res => res_vars.change(var.slot, change),
            _ => {}
        });
    }

    /// What the variables of the stream count in [`VarLimits`].
    #[must_use]
    pub fn var_bytes(&self) -> usize {
        self.txn_vars.bytes() + self.req_vars.bytes() + self.res_vars.bytes()
    }
}

/// Timeouts of a stream in place of those of its proxies, in milliseconds; 0 is none at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Inactivity of the client.
    pub client: Option<u32>,
    /// A connection to a server.
    pub connect: Option<u32>,
    /// A place in a queue.
    pub queue: Option<u32>,
    /// Inactivity of the server.
    pub server: Option<u32>,
    /// A tarpitted request.
    pub tarpit: Option<u32>,
    /// Inactivity of a tunnel.
    pub tunnel: Option<u32>,
}

/// Moments of a stream in monotonic milliseconds; none where it did not come that far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The first byte of the request: wall clock for `%tr`, monotonic for what counts from it.
    pub request_start: Option<Now>,
    /// Start of the stream: the accept with its handshakes done, or, on a kept-alive connection, the end of the previous
    /// request. `%Ti`, `%Tq` and `%Tt` count from it.
    pub start: Now,
    /// The request's head was complete.
    pub request_complete_ms: Option<u64>,
    /// It left the queue, a server connection was about to be made.
    pub queued_ms: Option<u64>,
    /// The server connection stood.
    pub connected_ms: Option<u64>,
    /// The response's head was complete.
    pub response_start_ms: Option<u64>,
    /// The last byte was sent.
    pub data_end_ms: Option<u64>,
}

/// A server as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id (`srv_id`).
    pub id: u32,
    /// Established connections (`srv_conn`, `%sc`).
    pub connections: u32,
    /// Its `maxconn`, 0 for none.
    pub maxconn: u32,
    /// Requests in its queue.
    pub queue: u32,
    /// Its `maxqueue`, 0 for none.
    pub maxqueue: u32,
    /// It can take traffic.
    pub is_up: bool,
    /// It is given traffic now: a backup server only where no other is up.
    pub takes_traffic: bool,
    /// The weight that its user set last (`srv_uweight`).
    pub user_weight: u32,
    /// Current weight (`srv_weight`).
    pub weight: u32,
    /// Configured weight (`srv_iweight`).
    pub initial_weight: u32,
}

/// A frontend or backend as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id (`fe_id`, `be_id`).
    pub id: u32,
    /// Works in mode HTTP.
    pub is_http: bool,
    /// Connections of its frontend side (`fe_conn`, `%fc`).
    pub frontend_connections: u32,
    /// Connections of its backend side (`be_conn`, `%bc`).
    pub backend_connections: u32,
    /// Requests in all queues of the backend (`queue`).
    pub queue: u32,
    /// Usable servers (`nbsrv`).
    pub usable_servers: u32,
    /// Number of servers.
    pub servers: u32,
    /// Name of the default backend, empty for none (`fe_defbe`).
    pub default_backend: &'a str,
}

/// Which side of a proxy is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxySide {
    /// It takes connections.
    Frontend,
    /// It has servers.
    Backend,
}

/// A bind line as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BindFacts<'a> {
    /// Its name, empty for none.
    pub name: &'a str,
    /// Its id (`so_id`).
    pub id: u32,
    /// Connections on it (`dst_conn`).
    pub connections: u32,
}

/// How often something happened in the last second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Connections of a frontend (`fe_sess_rate`).
    FrontendSessions(u32),
    /// HTTP requests of a frontend (`fe_req_rate`).
    FrontendRequests(u32),
    /// Streams that a backend was given (`be_sess_rate`).
    BackendSessions(u32),
    /// Streams that a server of a backend was given (`srv_sess_rate`).
    ServerSessions(u32, u32),
}

/// One of the two connections of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    Client,
    /// The server's.
    Server,
}

/// The timeouts of a proxy in milliseconds, 0 for none, and its retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProxyTimeouts {
    pub client_ms: u64,
    pub connect_ms: u64,
    pub queue_ms: u64,
    pub server_ms: u64,
    pub tarpit_ms: u64,
    pub tunnel_ms: u64,
    pub retries: u32,
}

/// Names and live counters that expressions and logs name (`%f`, `%b`, `%s`, `%ac`, `nbsrv`, …).
/// A reading is a snapshot; none for an index that does not exist.
pub trait World {
    /// A frontend or backend.
    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>>;
    /// A bind line of a frontend.
    fn bind(&self, frontend: u32, bind: u32) -> Option<BindFacts<'_>>;
    /// A server of a backend.
    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>>;
    /// A proxy's name alone; a log line asks for nothing more of most. Empty for an index that does not exist.
    fn proxy_name(&self, proxy: u32) -> &str {
        self.proxy(proxy).map_or("", |proxy| proxy.name)
    }
    /// Bytes that a capture of a frontend has room for; none for a slot that it does not have.
    fn capture_len(&self, _frontend: u32, _slot: CaptureSlot) -> Option<usize> {
        None
    }
    /// The proxy of this name that has this side (`nbsrv`, `fe_exists`).
    fn proxy_named(&self, _name: &[u8], _side: ProxySide) -> Option<u32> {
        None
    }
    /// The server of this name in a backend (`srv_is_up`).
    fn server_named(&self, _backend: u32, _name: &[u8]) -> Option<u32> {
        None
    }
    /// [`ProxyFacts::frontend_connections`] alone.
    fn frontend_connections(&self, proxy: u32) -> u32 {
        self.proxy(proxy)
            .map_or(0, |proxy| proxy.frontend_connections)
    }
    /// [`ProxyFacts::backend_connections`] alone.
    fn backend_connections(&self, proxy: u32) -> u32 {
        self.proxy(proxy)
            .map_or(0, |proxy| proxy.backend_connections)
    }
    /// A server's name alone.
    fn server_name(&self, backend: u32, server: u32) -> Option<&str> {
        self.server(backend, server).map(|server| server.name)
    }
    /// [`ServerFacts::connections`] alone.
    fn server_connections(&self, backend: u32, server: u32) -> u32 {
        self.server(backend, server)
            .map_or(0, |server| server.connections)
    }
    /// A file of the configuration, by its number in [`RulePlace`]; empty for one that does not exist.
    fn file_name(&self, _file: u32) -> &str {
        ""
    }
    /// Log lines of a frontend so far (`%lc`).
    fn logged(&self, _frontend: u32) -> u32 {
        0
    }
    /// `hostname`.
    fn hostname(&self) -> &str;
    /// `pid`.
    fn pid(&self) -> u32;
    /// This worker, from 0.
    fn thread(&self) -> u32;
    /// Number of workers.
    fn nbthread(&self) -> u32;
    /// Connections of the whole process (`%ac`, `act_conn`).
    fn actconn(&self) -> u32;
    /// The process is draining.
    fn stopping(&self) -> bool;
    /// Seconds since the process started.
    fn uptime_seconds(&self) -> u64;
    /// Seconds that local time is ahead of UTC, read once at the start (`%t`, `ltime`).
    fn utc_offset_seconds(&self) -> i32;
    /// A random number (`rand`, `uuid`); the simulation gives it from its seed.
    fn random(&self) -> u64;
    /// What a frontend's unique ids are made of.
    fn unique_id_format(&self, _frontend: u32) -> Option<&crate::LogFormat> {
        None
    }
    /// A rate; the reading sums what the workers count.
    fn rate(&self, _of: Rate) -> u32 {
        0
    }
    /// The timeouts of a proxy; none for an index that does not exist.
    fn timeouts(&self, _proxy: u32) -> Option<ProxyTimeouts> {
        None
    }
    /// What the kernel knows of a connection of this stream; none without one, and for what is no TCP.
    fn tcp_info(&self, _side: Side) -> Option<TcpInfo> {
        None
    }
    /// Appends the packet that opened the client's connection; whether its connection is one that may have it.
    fn saved_syn(&self, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// The address that a connection of this stream has on this machine.
    fn local_addr(&self, _side: Side) -> Option<Addr> {
        None
    }
    /// Whether an address is one of this machine's; none when the system does not say.
    fn is_local(&self, _ip: IpAddr) -> Option<bool> {
        None
    }
    /// Processor time in percent, between 0 and 100, on average of the threads.
    fn cpu_usage(&self, _of: CpuOf) -> u32 {
        0
    }
    /// A variable of scope `proc`.
    fn proc_var(&self, _slot: u32) -> Option<Value<'static>> {
        None
    }
    /// Changes a variable of scope `proc`, for all workers.
    fn change_proc_var(&self, _slot: u32, _change: Change) {}
    /// The names of all variables (`dump_all_vars`).
    fn var_names(&self) -> Option<&VarNames> {
        None
    }
    /// What limits the memory of variables; none for nothing.
    fn var_limits(&self) -> Option<&VarLimits> {
        None
    }
    /// What the variables of the whole process count in [`VarLimits`]; known when a limit asks for it.
    fn var_bytes(&self) -> usize {
        0
    }
}

impl<'a> Scope<'a> {
    /// The client's address (`src`): the stream's own, else the session's.
    #[must_use]
    pub fn src(&self) -> &'a Addr {
        self.session.src_of(self.txn)
    }

    /// The address that the client connected to (`dst`), likewise.
    #[must_use]
    pub fn dst(&self) -> &'a Addr {
        self.session.dst_of(self.txn)
    }
}

/// Everything one evaluation may look at. Cheap to make for each; all of it is borrowed.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The time of this round.
    pub now: Now,
    /// Names and counters.
    pub world: &'a dyn World,
    /// The client connection.
    pub session: &'a Session,
    /// The stream; none in `tcp-request connection|session`.
    pub txn: Option<&'a Txn>,
    /// The request's head, when there is one.
    pub request: Option<&'a Head>,
    /// The response's head, when there is one.
    pub response: Option<&'a Head>,
    /// Raw bytes waiting in the request channel (`req.len`, `req.payload`); in HTTP, the body so far (`req.body`).
    pub request_data: &'a [u8],
    /// The same of the response channel.
    pub response_data: &'a [u8],
    /// The expression stands on the response's way: what `hdr` and `payload` mean without saying it.
    pub from_server: bool,
    /// No more data will come before the rule must decide: what is missing now stays missing
    /// (`wait_end`; [`crate::Condition::test`] then never answers `Wait`).
    pub last_chance: bool,
}
