//! A stream: one request and its answer, or one TCP session.

mod bodies;
mod buffering;
pub(crate) mod finish;
mod limits;
pub(crate) mod phases;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod retry;
pub(crate) mod transfer;
pub(crate) mod tunnel;

use crate::logging::Moments;
use http::Head;
use http::h1::{Framing, Parsed, Resume};
use net::ConnId;
use sample::Txn;

use crate::persist::Persist;
use transfer::Transfer;

/// A stream's place in [`Streams`].
pub(crate) type StreamId = u32;

/// How far a stream has come; HAProxy's order. [`phases`] says what each does and waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    RequestHead,
    FrontendContent,
    FrontendBody,
    FrontendRequest,
    SwitchBackend,
    BackendContent,
    BackendBody,
    BackendRequest,
    AssignServer,
    PrepareRequest,
    SelectServer,
    Queue,
    TurnAround,
    Connect,
    SendRequest,
    ResponseHead,
    BackendResponse,
    SendResponse,
    Transfer,
    Tarpit,
    OpenTunnel,
    Tunnel,
    Done,
}

/// See the module. Boxed and used again: its buffers keep their memory.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub phase: Phase,
    pub client: Option<ConnId>,
    pub server: Option<ConnId>,
    pub frontend: usize,
    pub backend: usize,
    /// The server chosen, and whether one of its `maxconn` slots is held.
    pub target: Option<usize>,
    pub slot_held: bool,
    /// The server was counted (`%sc`).
    pub server_counted: bool,
    pub backend_counted: bool,
    pub queued: bool,
    /// The only server that it waits for.
    pub queued_for: Option<usize>,
    /// What binds it to its server.
    pub persist: Persist,
    /// A server that the next choice passes over (redispatch).
    pub avoid: Option<usize>,
    pub txn: Txn,
    pub request: Head,
    pub response: Head,
    pub trailers: Head,
    /// What the request's parser saw.
    pub parsed: Parsed,
    /// A head came in parts; `resume` tells when it is worth parsing again.
    pub head_in_parts: bool,
    pub resume: Resume,
    /// Connections tried for this request.
    pub tries: u32,
    /// The request went out on a connection that had served before.
    pub on_reused: bool,
    /// A reused connection failed: only a fresh one will do.
    pub fresh_only: bool,
    /// Something of the response has reached the client.
    pub answered: bool,
    /// The request that was sent, as long as it can be sent again.
    pub sent: Vec<u8>,
    /// `sent` holds a head that has not left: it waits for the first bytes of its body.
    pub head_waits: bool,
    /// All of the request is in `sent`.
    pub resendable: bool,
    /// `retry-on` may send the request again: its body is in `kept`, as it left.
    pub retriable: bool,
    pub kept: Vec<u8>,
    /// `disable-l7-retry`.
    pub retried_never: bool,
    pub upload: Transfer,
    pub download: Transfer,
    /// The client connection outlives this stream.
    pub keep_client: bool,
    /// It does not, and the client, which may still send, learns it from the answer.
    pub lingers: bool,
    /// The server connection outlives this stream.
    pub keep_server: bool,
    /// The bytes of a `maxconn` queue wait, a tarpit or an `inspect-delay` end then.
    pub wait_until_ms: u64,
    /// Inspection began.
    pub inspecting: bool,
    /// A rule that waits for a body: its proxy and its place in the set.
    pub waiting_rule: Option<(usize, usize)>,
    /// How the body of the server's response is framed.
    pub answer_framing: Framing,
    /// The client's end came while the rest of a body was awaited.
    pub body_cut: bool,
    pub logged: bool,
    /// When its frontend writes a line.
    pub log_moments: Moments,
    /// The request asked for another protocol (`Upgrade`, CONNECT).
    pub wants_tunnel: bool,
    /// The tunnel's TCP half-closes, in order: client's end seen, server's end seen.
    pub client_ended: bool,
    pub server_ended: bool,
    /// The client speaks HTTP/1.0.
    pub old_client: bool,
    /// `tcp-response content` let the server's bytes pass.
    pub response_passed: bool,
    /// In TCP: the bytes at hand begin with an HTTP request, which `request` holds.
    pub http_in_tcp: bool,
    /// What a tarpit ends with.
    pub tarpit: Option<(usize, usize)>,
    /// The rule that asks for credentials: its proxy and its place in the set.
    pub challenge: Option<(usize, usize)>,
    /// Where a TCP stream that became HTTP goes on once its head is read.
    pub after_head: Option<Phase>,
    /// `pause` waits until `wait_until_ms`.
    pub paused: bool,
    /// `strict-mode off`, in the rule set at hand.
    pub soft_rewrites: bool,
    /// `http-after-response` rules failed: no more of them run.
    pub rules_failed: bool,
    /// What the head being ruled took, and how much of its body came with it.
    pub head_read: usize,
    pub body_read: usize,
    /// What packets to the server carry.
    pub labels: net::Labels,
    /// The log line's level, where a rule set it.
    pub log_level: Option<config::model::LogLevel>,
    /// What filters record of it.
    pub tracing: crate::tracing::Tracing,
}

impl Stream {
    /// Back to a fresh state, the memory kept. Every field is named, so that a new one cannot be forgotten; each is a
    /// plain store, where assigning a whole new stream would copy two kilobytes a request.
    fn reset(&mut self) {
        let Stream {
            id: _,
            phase,
            client,
            server,
            frontend,
            backend,
            target,
            slot_held,
            server_counted,
            backend_counted,
            queued,
            queued_for,
            persist,
            avoid,
            txn,
            request,
            response,
            trailers,
            parsed,
            head_in_parts,
            resume,
            tries,
            on_reused,
            fresh_only,
            answered,
            sent,
            head_waits,
            resendable,
            retriable,
            kept,
            retried_never,
            upload,
            download,
            keep_client,
            lingers,
            keep_server,
            wait_until_ms,
            inspecting,
            waiting_rule,
            answer_framing,
            body_cut,
            logged,
            log_moments,
            wants_tunnel,
            client_ended,
            server_ended,
            old_client,
            response_passed,
            http_in_tcp,
            tarpit,
            challenge,
            after_head,
            paused,
            soft_rewrites,
            rules_failed,
            head_read,
            body_read,
            labels,
            log_level,
            tracing,
        } = self;
        *phase = Phase::RequestHead;
        (*client, *server, *target, *avoid, *tarpit) = (None, None, None, None, None);
        (*queued_for, *after_head, *challenge) = (None, None, None);
        (*frontend, *backend, *tries, *wait_until_ms) = (0, 0, 0, 0);
        for flag in [
            slot_held,
            server_counted,
            backend_counted,
            queued,
            head_in_parts,
            on_reused,
            fresh_only,
            answered,
            head_waits,
            resendable,
            retriable,
            retried_never,
            keep_client,
            lingers,
            keep_server,
            inspecting,
            body_cut,
            logged,
            wants_tunnel,
            client_ended,
            server_ended,
            old_client,
            response_passed,
            http_in_tcp,
            paused,
            soft_rewrites,
            rules_failed,
        ] {
            *flag = false;
        }
        (*head_read, *body_read) = (0, 0);
        *labels = net::Labels::default();
        *log_level = None;
        tracing.reset();
        txn.reset();
        *log_moments = Moments::default();
        request.clear();
        response.clear();
        trailers.clear();
        sent.clear();
        kept.clear();
        *persist = Persist::default();
        *waiting_rule = None;
        *answer_framing = Framing::default();
        *parsed = Parsed::default();
        *resume = Resume::default();
        *upload = Transfer::default();
        *download = Transfer::default();
    }

    /// Its rules are those of the response's way.
    pub fn is_answered(&self) -> bool {
        use Phase::{
            BackendResponse, Done, OpenTunnel, ResponseHead, SendResponse, Transfer, Tunnel,
        };
        matches!(
            self.phase,
            ResponseHead | BackendResponse | SendResponse | Transfer | OpenTunnel | Tunnel | Done
        )
    }

    /// Marks who ended it and when; the first mark stays.
    pub fn ended_by(&mut self, who: u8, when: u8) {
        if self.txn.termination[0] == 0 {
            self.txn.termination[0] = who;
            self.txn.termination[1] = when;
        }
    }
}

/// Streams in use, by their id, and spare ones.
///
/// A stream is taken out while the engine works on it, so that both can be changed, and put back after.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    entries: Vec<Option<Box<Stream>>>,
    #[expect(clippy::vec_box, reason = "a box moves between here and `entries`")]
    spare: Vec<Box<Stream>>,
    in_use: usize,
}

impl Streams {
    /// A fresh stream, taken out.
    pub fn begin(&mut self) -> Box<Stream> {
        self.in_use += 1;
        if let Some(stream) = self.spare.pop() {
            return stream;
        }
        let id = self.entries.len() as StreamId;
        self.entries.push(None);
        Box::new(Stream {
            id,
            ..Stream::default()
        })
    }

    /// Takes a stream out; none when it ended or is being worked on.
    pub fn take(&mut self, id: StreamId) -> Option<Box<Stream>> {
        self.entries.get_mut(id as usize)?.take()
    }

    /// Puts it back, or makes it a spare one once it is done.
    pub fn put(&mut self, mut stream: Box<Stream>) {
        if stream.phase == Phase::Done {
            self.in_use -= 1;
            stream.reset();
            self.spare.push(stream);
        } else {
            let id = stream.id as usize;
            debug_assert!(self.entries[id].is_none());
            self.entries[id] = Some(stream);
        }
    }

    /// Looks at a stream; none when it ended or is being worked on.
    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        self.entries.get(id as usize)?.as_deref()
    }

    /// The streams in use that nobody works on.
    pub fn all(&self) -> impl Iterator<Item = &Stream> {
        self.entries.iter().filter_map(Option::as_deref)
    }

    /// Of all that there are, in use or not.
    pub fn ids(&self) -> std::ops::Range<StreamId> {
        0..self.entries.len() as StreamId
    }

    pub fn in_use(&self) -> usize {
        self.in_use
    }
}
