//! The data that an expression can read: facts of a session, its stream and the world. The engine
//! keeps them as plain data and lends them to each evaluation. A fact that is not known yet (no
//! response, no server) is `None` or empty.

mod tls;
mod world;

use std::sync::Arc;

use http::Head;
use http::h1::Framing;

use net::{Addr, Now};
use tables::{EntryRef, Tracked};

use crate::captured::{Capture, CaptureSlots, Captured};
use crate::vars::Assigned;
pub use crate::vars::Vars;
use crate::{ConnError, LogOrigin};
pub use tls::{HelloFacts, TlsFacts, TlsSecrets};
pub use world::{
    BindFacts, Nowhere, ProxyFacts, ProxySide, ProxyTimeouts, Rate, ServerFacts, Side, World,
};

/// Facts of a client connection, valid while it lives.
#[derive(Clone, Debug)]
pub struct Session {
    /// The time of the accept.
    pub accepted: Now,
    /// The client's address: from the PROXY protocol or `tcp-request session set-src`. A stream may
    /// have its own ([`Scope::src`]).
    pub src: Addr,
    /// The local address, from the same sources.
    pub dst: Addr,
    /// The address of the connection itself (`fc_src`), if it differs from that of the session.
    /// Boxed, because few connections have it: an idle connection must be small.
    pub connection_src: Option<Box<Addr>>,
    /// Like `connection_src`, for the destination.
    pub connection_dst: Option<Box<Addr>>,
    /// The frontend's index in [`World`].
    pub frontend: u32,
    /// The bind line's index in its frontend.
    pub bind: u32,
    /// A PROXY protocol header was received (`fc_rcvd_proxy`).
    pub received_proxy: bool,
    /// Duration of the handshakes in milliseconds (PROXY, TLS): `%Th`.
    pub handshake_ms: u32,
    /// Protocol anomalies of the client's HTTP/2 so far (`fc_glitches`).
    pub glitches: u32,
    /// The value of `fc_err`: none unless the connection failed before its first stream.
    pub error: ConnError,
    /// Facts about the connection's TLS; None without TLS. With TLS, `%ft` has `~` after the
    /// frontend.
    pub tls: Option<Arc<TlsFacts>>,
    /// TLVs of the PROXY protocol v2 header as received (type, length, value …).
    pub tlvs: Option<Box<[u8]>>,
    /// Why a log line is being written (`%OG`).
    pub log_origin: LogOrigin,
    /// Variables of scope `sess`, by slot.
    pub vars: Vars,
    /// Assignments by converters that are not in `vars` yet.
    pub assigned: Assigned,
    /// Entries of stick tables that rules of connections and sessions track.
    pub tracked: Tracked,
}

impl Session {
    /// A session directly after the accept.
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
            tls: None,
            glitches: 0,
            tlvs: None,
            log_origin: LogOrigin::default(),
            vars: Vars::default(),
            assigned: Assigned::default(),
            tracked: Tracked::default(),
        }
    }

    /// The first TLV of this type of the PROXY header from a byte position on, and the position
    /// after it.
    #[must_use]
    pub fn tlv(&self, kind: u8, from: usize) -> Option<(&[u8], usize)> {
        let bytes = self.tlvs.as_deref()?;
        let mut at = from;
        loop {
            let (&[found, high, low], _) = bytes.get(at..)?.split_first_chunk()?;
            let start = at + 3;
            let end = start + usize::from(u16::from_be_bytes([high, low]));
            let value = bytes.get(start..end)?;
            if found == kind {
                return Some((value, end));
            }
            at = end;
        }
    }

    /// Moves the assignments by converters into the variables.
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

/// The place of a rule in the configuration.
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
    /// The action of a rule, which continues later.
    Rule(RulePlace),
    /// `option http-buffer-request`.
    Body,
}

/// The contexts that a filter has extracted from this stream, among those that expressions read
/// (`otel.context`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextFacts {
    known: u64,
    valid: u64,
}

impl ContextFacts {
    /// Most contexts of a configuration.
    pub const MAX: usize = u64::BITS as usize;

    /// Records that a context was extracted, and whether it is valid.
    pub fn extracted(&mut self, slot: u8, valid: bool) {
        self.forget(slot);
        self.known |= bit(slot);
        if valid {
            self.valid |= bit(slot);
        }
    }

    /// Removes a context.
    pub fn forget(&mut self, slot: u8) {
        self.known &= !bit(slot);
        self.valid &= !bit(slot);
    }

    /// Whether a context is valid; None if it was not extracted.
    #[must_use]
    pub fn get(self, slot: u8) -> Option<bool> {
        (self.known & bit(slot) != 0).then_some(self.valid & bit(slot) != 0)
    }
}

fn bit(slot: u8) -> u64 {
    1_u64.checked_shl(u32::from(slot)).unwrap_or(0)
}

/// Facts about a body other than its available bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// How its length is announced.
    pub framing: Framing,
    /// No more bytes will arrive.
    pub is_whole: bool,
    /// Announced bytes of the current chunk that have not arrived yet.
    pub announced: u64,
}

/// A connection that several streams share (HTTP/2, HTTP/3), when the stream began on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuxFacts {
    /// The number of the stream on it (`fs.id`, `bs.id`).
    pub stream: u64,
    /// What it speaks (`fc_http_major`, `bc_http_major`, `req.ver`).
    pub version: http::Version,
    /// How many streams were open on it, this one included (`fc_nb_streams`, `bc_nb_streams`).
    pub streams: u16,
    /// How many it allows at a time (`fc_settings_streams_limit`, `bc_settings_streams_limit`).
    pub streams_max: u16,
}

/// Facts of a stream (one request and its response, or one TCP session).
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// The number since the start of the process, for `%rt` and the default `unique-id`.
    pub id: u64,
    /// The line is written before the end (`option logasap`): `+` before `%Ta`, `%Tt`, `%B`.
    pub log_early: bool,
    /// It ended before its request was read. HAProxy has no stream in this case, so there is no
    /// status and no unique id.
    pub unread: bool,
    /// The frontend or backend works in mode HTTP.
    pub is_http: bool,
    /// The request addresses a proxy, and `option http-use-proxy-header` is set: the credentials
    /// are those for a proxy.
    pub is_proxied: bool,
    /// First request of its client connection (`http_first_req`).
    pub first_request: bool,
    /// Method of the request line as received.
    pub method: http::Method,
    /// The request line as received, for `%r`: method, URI, version, separated by one space. Empty
    /// before it is known, and for a request that is not valid (`<BADREQ>`).
    pub request_line: Vec<u8>,
    /// Status sent to the client; 0 before.
    pub status: u16,
    /// Status received from the server; 0 before (`server_status`).
    pub server_status: u16,
    /// The backend's index in [`World`]; None before it is chosen.
    pub backend: Option<u32>,
    /// Server's index in its backend.
    pub server: Option<u32>,
    /// Name of the internal service that answered instead of a server (`STATS`): `<STATS>` in `%s`.
    pub service: Option<&'static str>,
    /// The source address of the server connection.
    pub server_src: Option<Addr>,
    /// The client's address for this stream alone, if one of its rules set one.
    pub src: Option<Addr>,
    /// The local address, in the same case.
    pub dst: Option<Addr>,
    /// The destination address of the server connection. Of a reused one it is set only if the
    /// configuration reads it ([`crate::Needs::server_destination`]).
    pub server_dst: Option<Addr>,
    /// The server connection was reused (`bc_reused`).
    pub server_reused: bool,
    /// Facts about TLS of the server connection; None without TLS.
    pub server_tls: Option<Arc<TlsFacts>>,
    /// Protocol anomalies of the server connection's HTTP/2 so far (`bc_glitches`).
    pub server_glitches: u32,
    /// The client's connection, if several streams share it.
    pub client_mux: Option<MuxFacts>,
    /// The server's connection, likewise.
    pub server_mux: Option<MuxFacts>,
    /// The compression algorithm of the response (`res.comp_algo`).
    pub compressed: Option<&'static str>,
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
    /// Another server was used after the retries: `+` before `%rc`.
    pub redispatched: bool,
    /// Position in the server's queue, if it waited there (`%sq`).
    pub server_queue: u32,
    /// Position in the backend's queue, if it waited there (`%bq`).
    pub backend_queue: u32,
    /// The termination state of `%ts`/`%tsc`: cause and phase, then two characters for cookies. NUL
    /// bytes are written as `-`.
    pub termination: [u8; 4],
    /// The final rule that decided last (`last_rule_file`, `last_rule_line`).
    pub last_rule: Option<RulePlace>,
    /// What it waits for, or what it waited for when its timeout expired.
    pub waits: Option<Waits>,
    /// Class in the queues, lowest first (`prio_class`, `set-priority-class`); from -2047 to 2047.
    pub prio_class: i16,
    /// Offset in milliseconds that the queues add to its arrival time (`prio_offset`); from -524287
    /// to 524287.
    pub prio_offset: i32,
    /// Captured request headers, in the order of their slots.
    pub captured_request: CaptureSlots,
    /// Captured response headers, in the order of their slots.
    pub captured_response: CaptureSlots,
    /// Captures by converters; [`Txn::settle`] moves them into the slots.
    pub captured: Captured,
    /// `capture cookie` of the request (`%CC`).
    pub captured_request_cookie: Capture,
    /// `capture cookie` of the response (`%CS`).
    pub captured_response_cookie: Capture,
    /// The unique id, after it was made (`%ID`, `unique-id`).
    pub unique_id: crate::UniqueId,
    /// Timeouts that rules set for the stream (`set-timeout`).
    pub timeouts: Timeouts,
    /// The number of retries that a rule set (`set-retries`), instead of the backend's.
    pub retries_max: Option<u32>,
    /// Facts about the request's body, other than the bytes in [`Scope::request_data`].
    pub request_body: BodyFacts,
    /// The same for the response.
    pub response_body: BodyFacts,
    /// In mode TCP: the received bytes are not an HTTP request and cannot become one.
    pub never_http: bool,
    /// The number of times that the engine has worked on this stream (`cpu_calls`).
    pub turns: u32,
    /// `set-priority-class` and `set-priority-offset`.
    pub priority: (i32, i32),
    /// Times of the stream's phases.
    pub timing: Timing,
    /// Variables of scope `txn`.
    pub txn_vars: Vars,
    /// Variables of scope `req`.
    pub req_vars: Vars,
    /// Variables of scope `res`.
    pub res_vars: Vars,
    /// Variables of scope `check`; None for a stream.
    pub check_vars: Option<Box<Vars>>,
    /// Assignments by converters that are not in these variables yet.
    pub assigned: Assigned,
    /// A server connection or a local response was started: from now on, variables of scope `res`
    /// exist instead of `req` ([`Txn::end_request_vars`]).
    pub responding: bool,
    /// Trace contexts that arrived with it (`otel.context`).
    pub contexts: ContextFacts,
    /// Entries of stick tables that its own rules track.
    pub tracked: Tracked,
}

impl Txn {
    /// Whether a connection to a server was attempted or reused.
    #[must_use]
    pub fn had_server(&self) -> bool {
        self.server.is_some() || self.server_dst.is_some()
    }

    /// Resets all fields and keeps the memory of texts and variables. Every field is named, so that
    /// a new one cannot be forgotten.
    pub fn reset(&mut self) {
        let Txn {
            id,
            log_early,
            unread,
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
            server_tls,
            server_glitches,
            client_mux,
            server_mux,
            compressed,
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
            request_body,
            response_body,
            never_http,
            turns,
            priority,
            timing,
            txn_vars,
            req_vars,
            res_vars,
            check_vars,
            assigned,
            responding,
            contexts,
            tracked,
        } = self;
        debug_assert!(!tracked.any(), "what a stream tracks ends with it");
        *check_vars = None;
        *contexts = ContextFacts::default();
        (*id, *bytes_out, *bytes_in) = (0, 0, 0);
        (*bytes_to_server, *bytes_from_server) = (0, 0);
        (*retries, *server_queue, *backend_queue) = (0, 0, 0);
        (*status, *server_status) = (0, 0);
        for flag in [
            log_early,
            unread,
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
        (*server_src, *server_dst, *server_tls) = (None, None, None);
        *server_error = ConnError::None;
        *server_glitches = 0;
        (*client_mux, *server_mux) = (None, None);
        *compressed = None;
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
        (*request_body, *response_body) = (BodyFacts::default(), BodyFacts::default());
        (*turns, *priority) = (0, (0, 0));
        *timing = Timing::default();
        txn_vars.clear();
        req_vars.clear();
        res_vars.clear();
        assigned.settle(|_, _| {});
    }

    /// Ends the variables of scope `req`. Set [`Txn::responding`] as well.
    pub fn end_request_vars(&mut self) {
        self.settle();
        self.req_vars.clear();
    }

    /// Moves assignments by converters into the variables, and their captures into the slots.
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
            check_vars,
            ..
        } = self;
        assigned.settle(|var, change| match var.scope {
            crate::VarScope::Txn => txn_vars.change(var.slot, change),
            crate::VarScope::Req => req_vars.change(var.slot, change),
            crate::VarScope::Res => res_vars.change(var.slot, change),
            crate::VarScope::Check => {
                if let Some(vars) = check_vars {
                    vars.change(var.slot, change);
                }
            }
            _ => {}
        });
    }

    /// The size of the stream's variables for [`VarLimits`](crate::vars::VarLimits).
    #[must_use]
    pub fn var_bytes(&self) -> usize {
        self.txn_vars.bytes() + self.req_vars.bytes() + self.res_vars.bytes()
    }
}

/// Timeouts of a stream that replace those of its proxies, in milliseconds; 0 means no timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Inactivity of the client.
    pub client: Option<u32>,
    /// Connecting to a server.
    pub connect: Option<u32>,
    /// Waiting in a queue.
    pub queue: Option<u32>,
    /// Inactivity of the server.
    pub server: Option<u32>,
    /// Holding a tarpitted request.
    pub tarpit: Option<u32>,
    /// Inactivity of a tunnel.
    pub tunnel: Option<u32>,
}

/// Times of a stream's phases in monotonic milliseconds; None for a phase that was not reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The first byte of the request: wall clock for `%tr`, monotonic for durations.
    pub request_start: Option<Now>,
    /// Start of the stream: the end of the handshakes after the accept, or the end of the previous
    /// request on a kept-alive connection. `%Ti`, `%Tq` and `%Tt` count from it.
    pub start: Now,
    /// The request's head is complete.
    pub request_complete_ms: Option<u64>,
    /// The stream left the queue, before the server connection was started.
    pub queued_ms: Option<u64>,
    /// The server connection is established.
    pub connected_ms: Option<u64>,
    /// The response's head is complete.
    pub response_start_ms: Option<u64>,
    /// The last byte is sent.
    pub data_end_ms: Option<u64>,
}

/// All data that one evaluation may read. Cheap to create; everything is borrowed.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The time of this round of the event loop.
    pub now: Now,
    /// Names and counters.
    pub world: &'a dyn World,
    /// The client connection.
    pub session: &'a Session,
    /// The stream; None in `tcp-request connection|session`.
    pub txn: Option<&'a Txn>,
    /// The request's head, if there is one.
    pub request: Option<&'a Head>,
    /// The response's head, if there is one.
    pub response: Option<&'a Head>,
    /// Bytes in the request channel (`req.len`, `req.payload`); in mode HTTP, the body received so
    /// far (`req.body`).
    pub request_data: &'a [u8],
    /// The same for the response channel.
    pub response_data: &'a [u8],
    /// The expression is evaluated for the response: this is the default direction of `hdr` and
    /// `payload`.
    pub from_server: bool,
    /// No more data will arrive before the rule must decide: missing data stays missing
    /// (`wait_end`; [`crate::Condition::test`] then never returns `Wait`).
    pub last_chance: bool,
}

impl<'a> Scope<'a> {
    /// The scope of a session without a stream, and without received bytes.
    #[must_use]
    #[inline]
    pub fn without_stream(now: Now, world: &'a dyn World, session: &'a Session) -> Scope<'a> {
        Scope {
            now,
            world,
            session,
            txn: None,
            request: None,
            response: None,
            request_data: &[],
            response_data: &[],
            from_server: false,
            last_chance: true,
        }
    }

    /// The entry that a counter tracks (`sc0_…`): the stream's own, otherwise the session's.
    #[must_use]
    pub fn tracked(&self, counter: usize) -> Option<&'a EntryRef> {
        let own = self.txn.and_then(|txn| txn.tracked.get(counter));
        own.or_else(|| self.session.tracked.get(counter))
    }

    /// The client's address (`src`): the stream's own, otherwise the session's.
    #[must_use]
    pub fn src(&self) -> &'a Addr {
        self.session.src_of(self.txn)
    }

    /// The address that the client connected to (`dst`): the stream's own, otherwise the session's.
    #[must_use]
    pub fn dst(&self) -> &'a Addr {
        self.session.dst_of(self.txn)
    }
}
