//! Persistence of clients on servers, and changes of a stream's timeouts and retries (manual §4.2,
//! §4.4).

use sample::{Condition, Expr, LogFormat};
use syntax::octets::Octets;

/// `cookie` of a backend: how a cookie binds a client to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Its name, which is case-sensitive.
    pub name: Octets,
    /// Which side writes it.
    pub mode: CookieMode,
    /// It is removed from requests to the server, and a client that sent it does not get it again.
    pub indirect: bool,
    /// A response with the cookie is marked as private.
    pub nocache: bool,
    /// It is inserted only in responses to POST.
    pub postonly: bool,
    /// A cookie that the server sets itself is kept.
    pub preserve: bool,
    /// The cookie expires after this many seconds without a visit; 0 means never.
    pub maxidle_s: u32,
    /// The cookie expires this many seconds after the first visit; 0 means never.
    pub maxlife_s: u32,
    /// Servers without a value get one computed from their address.
    pub dynamic: bool,
    /// The attributes after `; path=/` of an inserted cookie, each with `; ` before it.
    pub attributes: Octets,
}

impl Cookie {
    /// Whether it has a mode, so that log lines include its state (`%tsc`).
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.indirect || self.mode != CookieMode::Passive
    }
}

/// Which side writes a persistence cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieMode {
    /// The servers; the proxy only reads it.
    #[default]
    Passive,
    /// The servers; the proxy replaces the value.
    Rewrite,
    /// The proxy.
    Insert,
    /// The servers; the proxy adds a prefix to the value.
    Prefix,
}

/// `capture cookie`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureCookie {
    /// The text with which the cookie's name, followed by `=`, must begin.
    pub prefix: Octets,
    /// Bytes kept of name and value.
    pub len: usize,
}

/// A `use-server` rule.
#[derive(Debug)]
pub struct UseServer {
    /// The server.
    pub target: ServerTarget,
    /// The condition.
    pub condition: Condition,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// The server that a `use-server` rule selects.
#[derive(Debug)]
pub enum ServerTarget {
    /// Index in [`super::Proxy::servers`].
    Static(usize),
    /// A name computed at run time. If no server has it, the balance algorithm chooses.
    Dynamic(LogFormat),
}

/// `force-persist` and `ignore-persist`.
#[derive(Debug)]
pub struct PersistRule {
    /// If set, servers count as usable although they are not; otherwise, persistence is ignored.
    pub force: bool,
    /// The condition.
    pub condition: Condition,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// `retry-on`: the failures after which a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection was established.
    pub conn_failure: bool,
    /// The connection ended without a response.
    pub empty_response: bool,
    /// The response is not HTTP.
    pub junk_response: bool,
    /// No response arrived in time.
    pub response_timeout: bool,
    /// Responses with these statuses.
    pub statuses: Vec<u16>,
}

impl Default for RetryOn {
    fn default() -> Self {
        RetryOn {
            conn_failure: true,
            empty_response: false,
            junk_response: false,
            response_timeout: false,
            statuses: Vec::new(),
        }
    }
}

impl RetryOn {
    /// Whether a request may be sent again after it was sent, so that it must be kept.
    #[must_use]
    pub fn keeps_requests(&self) -> bool {
        self.empty_response
            || self.junk_response
            || self.response_timeout
            || !self.statuses.is_empty()
    }
}

/// A value of `set-timeout` (milliseconds) or `set-retries`.
#[derive(Debug)]
pub enum Amount {
    /// As written.
    Fixed(u32),
    /// Computed at run time.
    Expr(Expr),
}

/// The timeouts that `set-timeout` can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Inactivity of the client.
    Client,
    /// Connecting to a server.
    Connect,
    /// Waiting in a queue.
    Queue,
    /// Inactivity of the server.
    Server,
    /// Holding a tarpitted request.
    Tarpit,
    /// Inactivity of a tunnel.
    Tunnel,
}
