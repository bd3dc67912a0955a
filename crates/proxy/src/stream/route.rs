//! How a request gets to a server: which server, for which reason, and after how many tries.

use net::Labels;
use sample::RulePlace;

use crate::ids::ServerId;

/// The chosen server, the reason for the choice, and the tries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    /// The server chosen.
    pub target: Option<ServerId>,
    /// The server whose slot the stream holds.
    pub slot: Option<ServerId>,
    /// The server at which this stream is counted (`%sc`).
    pub counted: Option<ServerId>,
    /// The server that the next choice skips (redispatch).
    pub avoid: Option<ServerId>,
    /// The place of the `use_backend` rule that chose the backend; none for the default backend.
    pub switched_by: Option<u32>,
    /// The line that answered the request, where `last_rule` does not report it: a `redirect`, the
    /// statistics page.
    pub answered_by: Option<RulePlace>,
    /// The persistence that binds the stream to its server.
    pub persist: Persist,
    /// Connection attempts for this request.
    pub tries: u32,
    /// The request was sent on a reused connection.
    pub on_reused: bool,
    /// A reused connection failed, so only a new one may be used.
    pub fresh_only: bool,
    /// `Early-Data` was added to the request.
    pub is_marked_early: bool,
    /// Whether it is early data of the connection to the server.
    pub early: Early,
    /// When the request was sent, monotonic nanoseconds; kept where the algorithm uses latencies.
    pub asked_ns: u64,
    /// A connection over QUIC is being made, to a server that may be asked over TCP too.
    pub tries_quic: bool,
    /// Another worker was asked for an idle connection.
    pub asked_others: bool,
    /// The server's connection may be kept after this exchange.
    pub keep: bool,
    /// The mark and TOS of packets to the server.
    pub labels: Labels,
}

/// The state of a request that may be sent to its server as early data (RFC 9001 §4.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Early {
    /// It is sent after the handshake.
    #[default]
    No,
    /// It has been sent, and the handshake is not complete.
    Sent,
    /// The server has accepted it.
    Accepted,
    /// It is not sent as early data again.
    Barred,
}

/// The persistence of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persist {
    /// The request named the server; balancing did not choose it.
    pub direct: bool,
    /// How the request named it.
    pub by: Binding,
    /// The index of the `use-server` rule that named it.
    pub rule: Option<u32>,
    /// `force-persist`: a server that is down may be used.
    pub forced: bool,
    /// `ignore-persist`: cookies are not used.
    pub ignored: bool,
    /// When the client was last seen and first seen, from its cookie: seconds of UNIX time, 0 for
    /// unknown.
    pub last_s: u64,
    pub first_s: u64,
}

/// The ways in which a request can name a server before balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Binding {
    /// `use-server`
    #[default]
    UseServer,
    /// A persistence cookie.
    Cookie,
    /// `persist rdp-cookie`
    RdpCookie,
    /// `stick match`, `stick on`
    StickTable,
}

impl Persist {
    /// The index of the `use-server` rule that chose the server; none: something else chose it.
    pub fn rule(&self) -> Option<usize> {
        let is_rule = self.direct && self.by == Binding::UseServer;
        self.rule.filter(|_| is_rule).map(|rule| rule as usize)
    }

    /// Why the request was sent to its server; none: balancing chose it.
    pub fn choice(&self) -> Option<&'static str> {
        self.direct.then_some(match self.by {
            Binding::UseServer => "use-server",
            Binding::Cookie => "cookie",
            Binding::RdpCookie => "rdp-cookie",
            Binding::StickTable => "stick-table",
        })
    }
}

/// Whether a request can be sent again, and the data kept for that.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Only a head that is still here was sent, so another connection may get the request (after a
    /// stale idle one).
    pub resendable: bool,
    /// `retry-on` may send the request again.
    pub retriable: bool,
    /// Sent payload is kept in `body`, because it may have to be sent again.
    pub keeps: bool,
    pub body: Vec<u8>,
    /// `disable-l7-retry`.
    pub never: bool,
}

impl Replay {
    /// Resets it; keeps a little memory.
    pub fn reset(&mut self) {
        let Replay {
            resendable,
            retriable,
            keeps,
            body,
            never,
        } = self;
        for flag in [resendable, retriable, keeps, never] {
            *flag = false;
        }
        super::channel::keep_little(body);
    }

    /// Keeps sent payload. Without enough `room` the request cannot be sent again, and nothing is
    /// kept.
    pub fn keep(&mut self, bytes: &[u8], room: usize) {
        if !self.keeps {
            return;
        }
        if self.body.len() + bytes.len() > room {
            (self.retriable, self.keeps) = (false, false);
            self.body = Vec::new();
        } else {
            self.body.extend_from_slice(bytes);
        }
    }
}
