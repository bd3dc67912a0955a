//! The phase of a stream.

use net::timers::NEVER_MS;

use super::Until;
use crate::ids::RuleId;
use crate::shared::Ticket;

/// The phases, in HAProxy's order. Module `phases` describes the work and the wait of each. A
/// waiting phase carries the data of its wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The request is not read yet.
    RequestHead(Until),
    FrontendContent(Inspection),
    FrontendBody(Until),
    FrontendRequest(Rules),
    SwitchBackend,
    BackendContent(Inspection),
    BackendBody(Until),
    BackendRequest(Rules),
    AssignServer,
    PrepareRequest,
    SelectServer,
    Queue(Queue),
    TurnAround(Until),
    Connect(Until),
    /// Another worker is asked for an idle connection.
    TakeOver(Until),
    SendRequest,
    ResponseHead,
    BackendResponse(Rules),
    SendResponse,
    Transfer,
    Tarpit(Tarpit),
    OpenTunnel,
    Tunnel(Tunnel),
    Done,
}

impl Default for Phase {
    fn default() -> Self {
        Phase::RequestHead(Until::default())
    }
}

/// The state of a stream in a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queue {
    pub ticket: Ticket,
    pub until: Until,
}

/// The state of a tarpit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tarpit {
    /// It defines the response.
    pub rule: RuleId,
    pub until: Until,
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
    /// A body, or a part of it, at most until this time.
    Body { until_ms: u64 },
    /// A time.
    Pause { until_ms: u64 },
    /// The end of the client's TLS handshake, at most until this time.
    Handshake { until_ms: u64 },
    /// The address of a name; the resolver ends the wait.
    Name,
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

impl Inspection {
    /// When its wait ends, monotonic milliseconds.
    fn ends_ms(self) -> u64 {
        self.until_ms.unwrap_or(NEVER_MS)
    }
}

impl RuleWait {
    /// When it ends, monotonic milliseconds.
    fn ends_ms(self) -> u64 {
        match self {
            RuleWait::Body { until_ms }
            | RuleWait::Pause { until_ms }
            | RuleWait::Handshake { until_ms } => until_ms,
            RuleWait::Name => NEVER_MS,
        }
    }
}

impl Rules {
    /// When their wait ends, monotonic milliseconds.
    fn ends_ms(self) -> u64 {
        self.waits.map_or(NEVER_MS, |(_, wait)| wait.ends_ms())
    }

    /// Whether a `pause` or a `do-resolve` holds the message.
    pub fn is_paused(self) -> bool {
        let reason = self.waits.map(|(_, wait)| wait);
        matches!(reason, Some(RuleWait::Pause { .. } | RuleWait::Name))
    }

    /// Whether a rule waits for the end of the client's handshake.
    fn awaits_handshake(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Handshake { .. })))
    }

    /// Whether a rule waits for a body.
    pub fn awaits_body(self) -> bool {
        matches!(self.waits, Some((_, RuleWait::Body { .. })))
    }
}

impl Phase {
    /// When the wait of the phase ends, monotonic milliseconds; [`NEVER_MS`] if it has no end.
    #[inline]
    pub fn ends_ms(self) -> u64 {
        match self {
            Phase::RequestHead(until)
            | Phase::FrontendBody(until)
            | Phase::BackendBody(until)
            | Phase::TurnAround(until)
            | Phase::Connect(until)
            | Phase::TakeOver(until) => until.0,
            Phase::Queue(queue) => queue.until.0,
            Phase::Tarpit(tarpit) => tarpit.until.0,
            Phase::FrontendContent(inspection) | Phase::BackendContent(inspection) => {
                inspection.ends_ms()
            }
            Phase::FrontendRequest(rules)
            | Phase::BackendRequest(rules)
            | Phase::BackendResponse(rules) => rules.ends_ms(),
            Phase::Tunnel(tunnel) => tunnel.inspection.map_or(NEVER_MS, Inspection::ends_ms),
            Phase::SwitchBackend
            | Phase::AssignServer
            | Phase::PrepareRequest
            | Phase::SelectServer
            | Phase::SendRequest
            | Phase::ResponseHead
            | Phase::SendResponse
            | Phase::Transfer
            | Phase::OpenTunnel
            | Phase::Done => NEVER_MS,
        }
    }

    /// The phase in one word, for `show sess`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::RequestHead(_) => "request",
            Phase::FrontendContent(_) | Phase::BackendContent(_) => "content-rules",
            Phase::FrontendBody(_) | Phase::BackendBody(_) => "body",
            Phase::FrontendRequest(_) | Phase::BackendRequest(_) => "request-rules",
            Phase::SwitchBackend => "switch",
            Phase::AssignServer | Phase::PrepareRequest | Phase::SelectServer => "server",
            Phase::Queue(_) => "queue",
            Phase::TurnAround(_) => "turn-around",
            Phase::Connect(_) | Phase::TakeOver(_) => "connect",
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
            Phase::RequestHead(_)
            | Phase::FrontendContent(_)
            | Phase::FrontendBody(_)
            | Phase::FrontendRequest(_)
            | Phase::SwitchBackend
            | Phase::BackendContent(_)
            | Phase::BackendBody(_)
            | Phase::BackendRequest(_)
            | Phase::AssignServer
            | Phase::PrepareRequest => b'R',
            Phase::SelectServer | Phase::Queue(_) => b'Q',
            Phase::TurnAround(_) | Phase::Connect(_) | Phase::TakeOver(_) | Phase::SendRequest => {
                b'C'
            }
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
            Phase::FrontendBody(_) | Phase::BackendBody(_) => true,
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

    /// Whether `pause` or `do-resolve` holds the request.
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
