//! What an expression can see: the facts of a session, its stream and the world, kept by the engine as plain data and lent
//! to each evaluation. A moment that a fact is not known yet at (no response, no server) is `None` or an empty value.

use http::Head;
use net::{Addr, Now};

/// Facts of a client connection, for as long as it lives.
#[derive(Clone, Debug)]
pub struct Session {
    /// When it was accepted.
    pub accepted: Now,
    /// Client's address (`src`): changed by PROXY protocol and `set-src`.
    pub src: Addr,
    /// Local address (`dst`).
    pub dst: Addr,
    /// The frontend's index in [`World::proxies`].
    pub frontend: u32,
    /// The bind line's index in its frontend (`so_id` - 1).
    pub bind: u32,
    /// TLVs of the PROXY protocol v2 header, as received (type, length, value …); empty otherwise.
    pub tlvs: Option<Box<[u8]>>,
    /// Variables of scope `sess`, by slot.
    pub vars: Vars,
}

/// Values of the variables of one scope, by the slot that the compiler gave each name.
#[derive(Clone, Debug, Default)]
pub struct Vars {}

/// Facts of a stream (one request and its answer, or one TCP session).
#[derive(Clone, Debug, Default)]
pub struct Txn {
    /// Since the start of the process, for `%rt` and the default `unique-id`.
    pub id: u64,
    /// First request of its client connection (`http_first_req`).
    pub first_request: bool,
    /// Request line as received, for `%r` and after the head was rewritten: method, uri, version.
    pub method: http::Method,
    pub request_line: Vec<u8>,
    /// Status sent to the client, 0 before.
    pub status: u16,
    /// Backend's index in [`World::proxies`]; none before the switch.
    pub backend: Option<u32>,
    /// Server's index in its backend.
    pub server: Option<u32>,
    /// Address of the server side: source and destination.
    pub server_src: Option<Addr>,
    pub server_dst: Option<Addr>,
    /// Bytes to the client (`%B`) and from it (`%U`).
    pub bytes_out: u64,
    pub bytes_in: u64,
    /// Connection retries; `redispatched` puts `+` before it in `%rc`.
    pub retries: u32,
    pub redispatched: bool,
    /// Position in the server's and the backend's queue when it waited (`%sq`, `%bq`).
    pub server_queue: u32,
    pub backend_queue: u32,
    /// The termination state of `%ts`/`%tsc`: who ended it and when, two characters each.
    pub termination: [u8; 4],
    /// Captured headers, in the order of their slots.
    pub captured_request: Vec<Option<Box<[u8]>>>,
    pub captured_response: Vec<Option<Box<[u8]>>>,
    pub unique_id: Option<Box<[u8]>>,
    pub timing: Timing,
    pub txn_vars: Vars,
    pub req_vars: Vars,
    pub res_vars: Vars,
}

/// Moments of a stream in monotonic milliseconds; none where it did not come that far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Wall clock of the first byte of the request (`%tr`), and of the accept (`%t`) in [`Session::accepted`].
    pub request_start: Option<Now>,
    /// Start of the session or, on a kept-alive connection, the end of the previous request: `%Ti`/`%Tq`/`%Tt` count from it.
    pub start: Now,
    pub request_complete_ms: Option<u64>,
    pub queued_ms: Option<u64>,
    pub connected_ms: Option<u64>,
    pub response_start_ms: Option<u64>,
    pub data_end_ms: Option<u64>,
}

/// Names and live counters that expressions and logs name (`%f`, `%b`, `%s`, `%ac`, `nbsrv`, …).
pub trait World {
    // the engine implements what fetches need: proxy name by index, server name, connection counts, …
}

/// Everything one evaluation may look at.
pub struct Scope<'a> {
    pub now: Now,
    pub session: &'a Session,
    pub txn: Option<&'a Txn>,
    pub request: Option<&'a Head>,
    pub response: Option<&'a Head>,
    /// Raw bytes waiting in the request or response channel (`req.len`, `req.payload`).
    pub request_data: &'a [u8],
    pub response_data: &'a [u8],
}
