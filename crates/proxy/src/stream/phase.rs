//! How far a stream has come.

use crate::ids::RuleId;
use crate::shared::Ticket;

/// See the module. HAProxy's order; `phases` says what each does and waits for. A phase that waits carries what it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Phase {
    /// The request is not read yet.
    #[default]
    RequestHead,
    FrontendContent(Inspection),
    FrontendBody,
    FrontendRequest(Rules),
    SwitchBackend,
    BackendContent(Inspection),
    BackendBody,
    BackendRequest(Rules),
    AssignServer,
    PrepareRequest,
    SelectServer,
    Queue(Ticket),
    TurnAround,
    Connect,
    /// Another worker is asked for an idle connection.
    TakeOver,
    SendRequest,
    ResponseHead,
    BackendResponse(Rules),
    SendResponse,
    Transfer,
    /// The rule says what it ends with.
    Tarpit(RuleId),
    OpenTunnel,
    Tunnel(Tunnel),
    Done,
}

/// Rules that look at bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// They wait for more, at most until then.
    pub until_ms: Option<u64>,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The rule that waits, and for what: the set goes on with it.
    pub waits: Option<(RuleId, RuleWait)>,
}

/// What a rule waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleWait {
    /// A body, or a part of it.
    Body,
    /// A moment.
    Pause { until_ms: u64 },
    /// The end of the client's handshake, at most until then.
    Handshake { until_ms: u64 },
}

/// Bytes both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tunnel {
    /// `tcp-response content` has yet to let the server's bytes pass.
    pub inspection: Option<Inspection>,
    /// The halves that have ended.
    pub client_ended: bool,
    pub server_ended: bool,
}

/// What a phase came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next phase, which is the stream's now ([`super::Stream::go`]).
    Go,
    /// Something must happen first; the event comes back to this phase.
    Wait,
}

impl Rules {
    /// A rule holds its message until a moment.
    pub fn is_paused(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Pause { .. })))
    }

    /// A rule waits for the end of the client's handshake.
    fn awaits_handshake(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Handshake { .. })))
    }

    /// A rule waits for a body.
    pub fn awaits_body(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Body)))
    }
}

impl Phase {
    /// What a stream does, in one word for `show sess`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::RequestHead => "request",
            Phase::FrontendContent(_) | Phase::BackendContent(_) => "content-rules",
            Phase::FrontendBody | Phase::BackendBody => "body",
            Phase::FrontendRequest(_) | Phase::BackendRequest(_) => "request-rules",
            Phase::SwitchBackend => "switch",
            Phase::AssignServer | Phase::PrepareRequest | Phase::SelectServer => "server",
            Phase::Queue(_) => "queue",
            Phase::TurnAround => "turn-around",
            Phase::Connect | Phase::TakeOver => "connect",
            Phase::SendRequest => "send-request",
            Phase::ResponseHead => "response",
            Phase::BackendResponse(_) => "response-rules",
            Phase::SendResponse | Phase::Transfer => "transfer",
            Phase::Tarpit(_) => "tarpit",
            Phase::OpenTunnel | Phase::Tunnel(_) => "tunnel",
            Phase::Done => "done",
        }
    }

    /// The second character of the termination state (manual §8.5): when it happened. `answered`: all of the response is gone.
    pub fn letter(self, answered: bool) -> u8 {
        match self {
            Phase::RequestHead
            | Phase::FrontendContent(_)
            | Phase::FrontendBody
            | Phase::FrontendRequest(_)
            | Phase::SwitchBackend
            | Phase::BackendContent(_)
            | Phase::BackendBody
            | Phase::BackendRequest(_)
            | Phase::AssignServer
            | Phase::PrepareRequest => b'R',
            Phase::SelectServer | Phase::Queue(_) => b'Q',
            Phase::TurnAround | Phase::Connect | Phase::TakeOver | Phase::SendRequest => b'C',
            Phase::ResponseHead => b'H',
            Phase::Tarpit(_) => b'T',
            // The rest of the request is still awaited.
            Phase::Transfer if answered => b'L',
            Phase::BackendResponse(_)
            | Phase::SendResponse
            | Phase::Transfer
            | Phase::OpenTunnel
            | Phase::Tunnel(_)
            | Phase::Done => b'D',
        }
    }

    /// Its rules are those of the response's way.
    pub fn is_answered(self) -> bool {
        matches!(
            self,
            Phase::ResponseHead
                | Phase::BackendResponse(_)
                | Phase::SendResponse
                | Phase::Transfer
                | Phase::OpenTunnel
                | Phase::Tunnel(_)
                | Phase::Done
        )
    }

    /// A request that waits for more of its body.
    pub fn awaits_upload(self) -> bool {
        match self {
            Phase::FrontendBody | Phase::BackendBody => true,
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => rules.awaits_body(),
            _ => false,
        }
    }

    /// `wait-for-handshake` holds the request.
    pub fn awaits_handshake(self) -> bool {
        match self {
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => {
                rules.awaits_handshake()
            }
            _ => false,
        }
    }

    /// `pause` holds the request.
    pub fn is_request_paused(self) -> bool {
        match self {
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => rules.is_paused(),
            _ => false,
        }
    }

    /// `pause` holds the response.
    pub fn is_response_paused(self) -> bool {
        matches!(self, Phase::BackendResponse(rules) if rules.is_paused())
    }

    /// Rules look at a client's bytes.
    pub fn inspects_request(self) -> bool {
        matches!(self, Phase::FrontendContent(_) | Phase::BackendContent(_))
    }
}
