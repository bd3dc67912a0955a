//! The way of a request to a server: which one, by what, how often tried.

use net::Labels;

use crate::ids::ServerId;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    /// The server chosen.
    pub target: Option<ServerId>,
    /// One of its slots is held.
    pub slot: Option<ServerId>,
    /// The server at which this stream is counted (`%sc`).
    pub counted: Option<ServerId>,
    /// A server that the next choice passes over (redispatch).
    pub avoid: Option<ServerId>,
    /// The `use_backend` that chose the backend, by its place among those of the frontend; none: it was the default.
    pub switched_by: Option<u32>,
    /// What binds it to its server.
    pub persist: Persist,
    /// Connections tried for this request.
    pub tries: u32,
    /// The request went out on a connection that had served before.
    pub on_reused: bool,
    /// A reused connection failed: only a fresh one will do.
    pub fresh_only: bool,
    /// `Early-Data` was added to the request.
    pub is_marked_early: bool,
    /// When the request left, monotonic nanoseconds; kept where the algorithm goes by latencies.
    pub asked_ns: u64,
    /// Another worker was asked for an idle connection.
    pub asked_others: bool,
    /// The server's connection may go on after this exchange.
    pub keep: bool,
    /// What packets to the server carry.
    pub labels: Labels,
}

/// What a stream knows of its persistence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persist {
    /// The server was named by the request, not found by balancing.
    pub direct: bool,
    /// By what, where it was.
    pub by: Binding,
    /// `force-persist`: a server that is down is as good as any.
    pub forced: bool,
    /// `ignore-persist`: cookies bind to nothing.
    pub ignored: bool,
    /// When the client was last seen and first seen, as its cookie has it: seconds of UNIX time, 0 for unknown.
    pub last_s: u64,
    pub first_s: u64,
}

/// What names a server before balancing.
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
    /// Why the request went to its server; none: it was balanced.
    pub fn choice(&self) -> Option<&'static str> {
        self.direct.then_some(match self.by {
            Binding::UseServer => "use-server",
            Binding::Cookie => "cookie",
            Binding::RdpCookie => "rdp-cookie",
            Binding::StickTable => "stick-table",
        })
    }
}

/// Whether a request can be sent again, and what is kept for it.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Nothing of it was sent beside a head that is still here: another connection may have it (a stale idle one).
    pub resendable: bool,
    /// `retry-on` may send it again.
    pub retriable: bool,
    /// The payload that has left is kept in `body`: it may have to leave again.
    pub keeps: bool,
    pub body: Vec<u8>,
    /// `disable-l7-retry`.
    pub never: bool,
}

impl Replay {
    /// Back to a fresh state, a little memory kept.
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

    /// Keeps payload that left; as far as `room` goes, else none can be sent again.
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
