//! Rules and their actions (manual §4.3, §4.4).

use super::{Amount, OtelGroup, Resolve, TimeoutKind};
use std::time::Duration;

use http::normalize::Normalizer;
use sample::regex::Regex;
use syntax::octets::Octets;

/// One rule of `http-request`, `http-response` or `http-after-response`.
#[derive(Debug)]
pub struct HttpRule {
    /// The action.
    pub action: HttpAction,
    /// None means always.
    pub condition: Option<sample::Condition>,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// The actions of HTTP rules (manual §4.4).
#[allow(missing_docs)]
#[derive(Debug)]
pub enum HttpAction {
    Allow,
    SetHeader {
        name: http::FieldName,
        value: sample::LogFormat,
    },
    AddHeader {
        name: http::FieldName,
        value: sample::LogFormat,
    },
    DelHeader(NameMatch),
    ReplaceHeader(HeaderRewrite),
    ReplaceTarget {
        part: TargetPart,
        with: Rewrite,
    },
    /// `add-headers-bin`, `set-headers-bin`.
    HeadersBin {
        /// Fields with these names are removed first.
        set: bool,
        expr: sample::Expr,
        /// Only names with this prefix, in lower case; empty for all.
        prefix: Octets,
    },
    DelHeadersBin {
        expr: sample::Expr,
        method: NameMethod,
    },
    NormalizeUri(Normalizer),
    /// For the following rules of the set: whether a rewrite that does not fit makes the message
    /// fail.
    StrictMode(bool),
    EarlyHint {
        name: http::FieldName,
        value: sample::LogFormat,
    },
    Pause(Pause),
    Stream(StreamAction),
    SetMethod(sample::LogFormat),
    SetQuery(sample::LogFormat),
    /// `set-path`, `set-pathq`, `set-uri`.
    SetTarget {
        part: TargetPart,
        format: sample::LogFormat,
    },
    SetStatus {
        status: u16,
        reason: Option<Octets>,
    },
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Var(sample::Assignment),
    SetTimeout {
        kind: TimeoutKind,
        amount: Amount,
    },
    SetRetries(Amount),
    DisableL7Retry,
    /// Requests user and password. The default realm is the proxy's name.
    Auth {
        realm: Option<Octets>,
    },
    /// `add-acl`, `del-acl`, `set-map`, `del-map`.
    EditPatterns(PatternEdit),
    /// Waits until `at_least` bytes or the whole body arrived, at most for `time`.
    WaitForBody {
        time: Duration,
        at_least: Option<usize>,
    },
    /// Waits until the handshake is complete, if the client sent early data (`allow-0rtt`).
    WaitForHandshake,
    /// `do-resolve`
    Resolve(Resolve),
    /// Captures into a slot of [`super::Proxy::capture_request`] in `http-request`, otherwise of
    /// [`super::Proxy::capture_response`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
    /// A log profile, by its index in [`super::Config::log_profiles`].
    DoLog {
        profile: Option<usize>,
    },
    /// `otel-group`
    OtelGroup(OtelGroup),
    /// `use-service`: an internal service answers.
    UseService(Service),
    Return(Reply),
    Deny(Reply),
    Tarpit(Reply),
    Reject,
    SilentDrop {
        rst_ttl: Option<u8>,
    },
    Redirect(Redirect),
}

impl HttpAction {
    /// Whether it may end the evaluation of its rule set.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            HttpAction::Allow
                | HttpAction::Auth { .. }
                | HttpAction::Return(_)
                | HttpAction::UseService(_)
                | HttpAction::Deny(_)
                | HttpAction::Tarpit(_)
                | HttpAction::Reject
                | HttpAction::SilentDrop { .. }
                | HttpAction::Redirect(_)
        )
    }
}

/// The services of `use-service`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// `prometheus-exporter`
    PrometheusExporter,
}

/// Actions of HTTP rules and TCP rules on a stream, or on a connection before it has a stream.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StreamAction {
    SetMark(Side, Number),
    SetTos(Side, Number),
    SetLogLevel(LogLevel),
    /// A priority class; results are limited to -2047 and 2047.
    SetPriorityClass(sample::Expr),
    /// Milliseconds.
    SetPriorityOffset(sample::Expr),
    /// `set-src`, `set-src-port`, `set-dst`, `set-dst-port`.
    SetAddress(AddressPart, sample::Expr),
    SetBandwidthLimit(super::BandwidthSwitch),
    /// `track-sc0`, `sc-inc-gpc` and related actions.
    Table(super::TableAction),
}

/// The part of the addresses of a client's connection that a rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AddressPart {
    SourceIp,
    SourcePort,
    DestinationIp,
    DestinationPort,
}

/// A side of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's connection.
    Client,
    /// The server's connection, after it is made.
    Server,
}

/// A number in a rule.
#[derive(Debug)]
pub enum Number {
    /// Literal.
    Fixed(u32),
    /// Computed; without an integer as the result, the action does nothing.
    Computed(sample::Expr),
}

/// The level of a stream's log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// No line at all.
    Silent,
    /// A syslog severity (RFC 5424 §6.2.1).
    Severity(u8),
}

/// The duration of `pause`.
#[derive(Debug)]
pub enum Pause {
    /// A fixed time.
    Time(Duration),
    /// A computed number of milliseconds; without an integer as the result, there is no pause.
    Computed(sample::Expr),
}

/// Selects header fields by name.
#[derive(Debug)]
pub enum NameMatch {
    /// This name.
    Name(http::FieldName),
    /// By a part of the name, in lower case.
    Text(NameMethod, Octets),
    /// By a regular expression, which is compared case-sensitively with names in lower case.
    Regex(Regex),
}

/// How a name is compared with a text (`-m`); case is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMethod {
    /// `str`: equal.
    Is,
    /// `beg`: the name begins with the text.
    Begins,
    /// `end`: the name ends with the text.
    Ends,
    /// `sub`: the name contains the text.
    Contains,
}

/// `replace-header` and `replace-value`.
#[derive(Debug)]
pub struct HeaderRewrite {
    /// The field's name.
    pub name: Octets,
    /// By comma-separated value instead of by line.
    pub by_value: bool,
    /// The pattern and the replacement.
    pub with: Rewrite,
}

/// A replacement by a regular expression.
#[derive(Debug)]
pub struct Rewrite {
    /// An index among all rewrites of the configuration, without gaps from 0: it selects the
    /// worker's state for matching.
    pub id: usize,
    /// The pattern.
    pub regex: Regex,
    /// The replacement, with `\0` to `\9` for the matched groups.
    pub format: sample::LogFormat,
}

/// The part of a request's target that a rule replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// The path without the query.
    Path,
    /// The path with the query.
    PathAndQuery,
    /// The whole target.
    Whole,
}

/// A change of a pattern set (`set-map` and related actions).
#[derive(Debug)]
pub struct PatternEdit {
    /// The set.
    pub set: std::sync::Arc<sample::Reference>,
    /// The entry's key.
    pub key: sample::LogFormat,
    /// The change.
    pub change: PatternChange,
}

/// The change of a [`PatternEdit`].
#[derive(Debug)]
pub enum PatternChange {
    /// `add-acl`: adds the key if it does not exist.
    Add,
    /// `set-map`: sets the value of the key; adds the key if it does not exist.
    Set(sample::LogFormat),
    /// `del-acl`, `del-map`: removes the first entry with this key.
    Remove,
}

/// A response generated by Spangate: `http-request return|deny|tarpit`.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<Octets>,
    /// The body.
    pub body: ReplyBody,
    /// Further headers.
    pub headers: Vec<(Octets, sample::LogFormat)>,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum ReplyBody {
    /// The proxy's error page for this status.
    Default,
    /// A complete raw response (`errorfile`).
    Raw(std::sync::Arc<[u8]>),
    /// No body.
    Empty,
    /// These bytes.
    Fixed(std::sync::Arc<[u8]>),
    /// A formatted string.
    Format(sample::LogFormat),
}

/// A redirect.
#[derive(Debug)]
pub struct Redirect {
    /// The target.
    pub kind: RedirectKind,
    /// Status code.
    pub code: u16,
    /// Its options.
    pub options: RedirectOptions,
}

/// How the target of a redirect is built.
#[derive(Debug)]
pub enum RedirectKind {
    /// The whole target.
    Location(sample::LogFormat),
    /// A prefix of the request's URI.
    Prefix(sample::LogFormat),
    /// Replaces the request's scheme.
    Scheme(sample::LogFormat),
}

/// Options of a redirect.
#[derive(Debug, Default)]
pub struct RedirectOptions {
    /// Removes the query.
    pub drop_query: bool,
    /// Keeps the query for `location` too (`keep-query`).
    pub keep_query: bool,
    /// Adds a slash to a path without one at its end.
    pub append_slash: bool,
    /// No redirect if the target is empty.
    pub ignore_empty: bool,
    /// The value of a `Set-Cookie` field.
    pub set_cookie: Option<sample::LogFormat>,
}

/// One rule of the `tcp-request` and `tcp-response` sets.
#[derive(Debug)]
pub struct TcpRule {
    /// The action.
    pub action: TcpAction,
    /// None means always.
    pub condition: Option<sample::Condition>,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// The actions of TCP rules (manual §4.4).
#[allow(missing_docs)]
#[derive(Debug)]
pub enum TcpAction {
    Accept,
    Reject,
    SilentDrop {
        rst_ttl: Option<u8>,
    },
    ExpectProxy,
    /// Captures into a slot of [`super::Proxy::capture_request`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
    Stream(StreamAction),
    /// `switch-mode http`: the stream continues as HTTP, with the given protocol.
    SwitchMode(Option<super::Proto>),
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Var(sample::Assignment),
    SetRetries(Amount),
    /// `do-resolve`
    Resolve(Resolve),
    Close,
    /// Like [`HttpAction::DoLog`].
    DoLog {
        profile: Option<usize>,
    },
    /// `otel-group`
    OtelGroup(OtelGroup),
}

impl TcpAction {
    /// Whether it ends the evaluation of its rule set.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            TcpAction::Accept
                | TcpAction::Reject
                | TcpAction::SilentDrop { .. }
                | TcpAction::SwitchMode(_)
                | TcpAction::Close
        )
    }
}
