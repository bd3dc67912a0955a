//! Rules and what they do (manual §4.3, §4.4).

use super::{Amount, TimeoutKind};
use std::time::Duration;

/// One rule of `http-request`, `http-response` or `http-after-response`.
#[derive(Debug)]
pub struct HttpRule {
    /// What it does.
    pub action: HttpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
}

/// The actions of HTTP rules (manual §4.4).
#[allow(missing_docs)]
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpAction {
    Allow,
    SetHeader {
        name: sample::LogFormat,
        value: sample::LogFormat,
    },
    AddHeader {
        name: sample::LogFormat,
        value: sample::LogFormat,
    },
    DelHeader {
        name: String,
    },
    SetMethod(sample::LogFormat),
    SetPath(sample::LogFormat),
    SetPathq(sample::LogFormat),
    SetQuery(sample::LogFormat),
    SetUri(sample::LogFormat),
    SetStatus {
        status: u16,
        reason: Option<String>,
    },
    SetVar {
        var: sample::VarRef,
        expr: sample::Expr,
    },
    SetVarFmt {
        var: sample::VarRef,
        format: sample::LogFormat,
    },
    UnsetVar(sample::VarRef),
    SetTimeout {
        kind: TimeoutKind,
        amount: Amount,
    },
    SetRetries(Amount),
    DisableL7Retry,
    /// Asks for user and password: what the header of the challenge says.
    Auth {
        challenge: String,
    },
    /// Until `at_least` bytes or all of the body are here, at most for `time`.
    WaitForBody {
        time: Duration,
        at_least: Option<usize>,
    },
    SetSrc(sample::Expr),
    SetSrcPort(sample::Expr),
    SetDst(sample::Expr),
    SetDstPort(sample::Expr),
    /// Into a slot of [`super::Proxy::capture_request`] in `http-request`, else of [`super::Proxy::capture_response`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
    Return(Reply),
    Deny(Reply),
    Tarpit(Reply),
    Reject,
    SilentDrop,
    Redirect(Redirect),
}

/// A response made here: `http-request return|deny|tarpit`.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// What it carries.
    pub body: ReplyBody,
    /// Further headers.
    pub headers: Vec<(String, sample::LogFormat)>,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum ReplyBody {
    /// The proxy's own error page of this status.
    Default,
    /// A complete raw response (`errorfile`).
    Raw(Vec<u8>),
    /// No body.
    Empty,
    /// These bytes.
    Fixed(Vec<u8>),
    /// A formatted string.
    Format(sample::LogFormat),
}

/// A redirect.
#[derive(Debug)]
pub struct Redirect {
    /// Where to.
    pub kind: RedirectKind,
    /// Status code.
    pub code: u16,
    /// Its options.
    pub options: RedirectOptions,
}

/// How a redirect's place is made.
#[derive(Debug)]
pub enum RedirectKind {
    /// The whole place.
    Location(sample::LogFormat),
    /// Before the request's URI.
    Prefix(sample::LogFormat),
    /// Instead of the request's scheme.
    Scheme(sample::LogFormat),
}

/// Options of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedirectOptions {
    /// Without the query.
    pub drop_query: bool,
    /// With the query also for `location` (`keep-query`).
    pub keep_query: bool,
    /// With a slash at the end of a path that has none.
    pub append_slash: bool,
    /// Nothing happens when the place is empty.
    pub ignore_empty: bool,
    /// A cookie to set, `name[=value]`.
    pub set_cookie: Option<String>,
    /// A cookie to clear.
    pub clear_cookie: Option<String>,
}

/// One rule of the `tcp-request` and `tcp-response` sets.
#[derive(Debug)]
pub struct TcpRule {
    /// What it does.
    pub action: TcpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
}

/// The actions of TCP rules (manual §4.4).
#[allow(missing_docs)]
#[derive(Debug)]
#[non_exhaustive]
pub enum TcpAction {
    Accept,
    Reject,
    SilentDrop,
    ExpectProxy,
    SetSrc(sample::Expr),
    SetSrcPort(sample::Expr),
    SetDst(sample::Expr),
    SetDstPort(sample::Expr),
    SetVar {
        var: sample::VarRef,
        expr: sample::Expr,
    },
    SetVarFmt {
        var: sample::VarRef,
        format: sample::LogFormat,
    },
    UnsetVar(sample::VarRef),
    SetRetries(Amount),
    Close,
}
