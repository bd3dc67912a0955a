//! The phase of a stream.

use crate::ids::RuleId;
use crate::shared::Ticket;

/// The phases, in HAProxy's order. Module `phases` describes the work and the wait of each. A
/// waiting phase carries the data of its wait.
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
    /// A tarpit; the rule defines the response.
    Tarpit(RuleId),
    OpenTunnel,
    Tunnel(Tunnel),
    Done,
}

/// The state of rules that inspect bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// The rules wait for more bytes, at most until this time.
    pub until_ms: Option<u64>,
}

/// The state of a rule set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The rule that waits, and its reason; the set continues with this rule.
    pub waits: Option<(RuleId, RuleWait)>,
}

/// The reason for which a rule waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleWait {
    /// A body, or a part of it.
    Body,
    /// A time.
    Pause { until_ms: u64 },
    /// The end of the client's TLS handshake, at most until this time.
    Handshake { until_ms: u64 },
}

/// The state of a tunnel: bytes both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tunnel {
    /// `tcp-response content` has not let the server's bytes pass yet.
    pub inspection: Option<Inspection>,
    /// Which sides have ended.
    pub client_ended: bool,
    pub server_ended: bool,
}

/// The result of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Continue with the next phase, which [`super::Stream::go`] has set.
    Go,
    /// Wait for an event, which continues this phase.
    Wait,
}

impl Rules {
    /// Whether a `pause` holds the message.
    pub fn is_paused(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Pause { .. })))
    }

    /// Whether a rule waits for the end of the client's handshake.
    fn awaits_handshake(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Handshake { .. })))
    }

    /// Whether a rule waits for a body.
    pub fn awaits_body(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Body)))
    }
}

impl Phase {
    /// The phase in one word, for `show sess`.
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

    /// The second character of the termination state (manual §8.5): when it happened. `answered`:
    /// the response has been sent completely.
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
            // The rest of the request is still expected.
            Phase::Transfer if answered => b'L',
            Phase::BackendResponse(_)
            | Phase::SendResponse
            | Phase::Transfer
            | Phase::OpenTunnel
            | Phase::Tunnel(_)
            | Phase::Done => b'D',
        }
    }

    /// Whether the current rules are those of the response.
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

    /// Whether a request waits for more of its body.
    pub fn awaits_upload(self) -> bool {
        match self {
            Phase::FrontendBody | Phase::BackendBody => true,
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => rules.awaits_body(),
            _ => false,
        }
    }

    /// Whether `wait-for-handshake` holds the request.
    pub fn awaits_handshake(self) -> bool {
        match self {
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => {
                rules.awaits_handshake()
            }
            _ => false,
        }
    }

    /// Whether `pause` holds the request.
    pub fn is_request_paused(self) -> bool {
        match self {
            Phase::FrontendRequest(rules) | Phase::BackendRequest(rules) => rules.is_paused(),
            _ => false,
        }
    }

    /// Whether `pause` holds the response.
    pub fn is_response_paused(self) -> bool {
        matches!(self, Phase::BackendResponse(rules) if rules.is_paused())
    }

    /// Whether rules inspect a client's bytes.
    pub fn inspects_request(self) -> bool {
        matches!(self, Phase::FrontendContent(_) | Phase::BackendContent(_))
    }
}
