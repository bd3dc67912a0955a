//! What binds requests to servers, and what a stream may change of its time and its tries (manual §4.2, §4.4).

use sample::{Condition, Expr, LogFormat};
use syntax::octets::Octets;

/// `cookie` of a backend: how a cookie binds a client to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Its name; names of cookies have case.
    pub name: Octets,
    /// Who writes it.
    pub mode: CookieMode,
    /// The server never sees it, and a client that has it gets it no more.
    pub indirect: bool,
    /// A response that it is put in is marked as private.
    pub nocache: bool,
    /// Put in answers to POST only.
    pub postonly: bool,
    /// A server that sets it itself has its way.
    pub preserve: bool,
    /// Seconds without a visit after which it counts no more; 0 is never.
    pub maxidle_s: u32,
    /// Seconds after the first visit, likewise.
    pub maxlife_s: u32,
    /// Servers without a value of their own have one made of their address.
    pub dynamic: bool,
    /// What follows `; path=/` where it is inserted, each attribute with `; ` before it.
    pub attributes: Octets,
}

impl Cookie {
    /// Whether it has a mode, so that log lines tell of it (`%tsc`).
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.indirect || self.mode != CookieMode::Passive
    }
}

/// Who writes a persistence cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieMode {
    /// The servers; it is only read.
    #[default]
    Passive,
    /// The servers; its value is replaced.
    Rewrite,
    /// The proxy.
    Insert,
    /// The servers; the proxy puts a prefix before its value.
    Prefix,
}

/// `capture cookie`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureCookie {
    /// What its name, with `=` after it, begins with.
    pub prefix: Octets,
    /// Bytes kept of name and value.
    pub len: usize,
}

/// A `use-server` rule.
#[derive(Debug)]
pub struct UseServer {
    /// Which one.
    pub target: ServerTarget,
    /// When.
    pub condition: Condition,
    /// Where it stands.
    pub place: sample::RulePlace,
}

/// The server that a `use-server` rule means.
#[derive(Debug)]
pub enum ServerTarget {
    /// Index in [`super::Proxy::servers`].
    Static(usize),
    /// A name made at run time; where no server has it, balancing goes on.
    Dynamic(LogFormat),
}

/// `force-persist` and `ignore-persist`.
#[derive(Debug)]
pub struct PersistRule {
    /// Servers count as usable although they are not; else persistence does not count.
    pub force: bool,
    /// When.
    pub condition: Condition,
}

/// `retry-on`: what a request is sent again after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// No connection stood.
    pub conn_failure: bool,
    /// The connection ended without an answer.
    pub empty_response: bool,
    /// What came is no HTTP.
    pub junk_response: bool,
    /// No answer in time.
    pub response_timeout: bool,
    /// Answers with these statuses.
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
    /// Whether a request that went out may go out again, so that it must be kept.
    #[must_use]
    pub fn keeps_requests(&self) -> bool {
        self.empty_response
            || self.junk_response
            || self.response_timeout
            || !self.statuses.is_empty()
    }
}

/// A number of `set-timeout` (milliseconds) or `set-retries`.
#[derive(Debug)]
pub enum Amount {
    /// As written.
    Fixed(u32),
    /// Made at run time.
    Expr(Expr),
}

/// The timeouts that `set-timeout` can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Inactivity of the client.
    Client,
    /// A connection to a server.
    Connect,
    /// A place in a queue.
    Queue,
    /// Inactivity of the server.
    Server,
    /// A tarpitted request.
    Tarpit,
    /// Inactivity of a tunnel.
    Tunnel,
}
