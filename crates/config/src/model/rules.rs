//! Rules and what they do (manual §4.3, §4.4).

use super::{Amount, OtelGroup, TimeoutKind};
use std::time::Duration;

use http::normalize::Normalizer;
use sample::regex::Regex;
use syntax::octets::Octets;

/// One rule of `http-request`, `http-response` or `http-after-response`.
#[derive(Debug)]
pub struct HttpRule {
    /// What it does.
    pub action: HttpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
    /// Where it stands; none for the `redirect` keywords, which `last_rule_line` does not name.
    pub place: Option<sample::RulePlace>,
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
        /// Fields of these names are removed first.
        set: bool,
        expr: sample::Expr,
        /// Only names that begin so; in lower case, empty for all.
        prefix: Octets,
    },
    DelHeadersBin {
        expr: sample::Expr,
        method: NameMethod,
    },
    NormalizeUri(Normalizer),
    /// What follows in the set: whether a rewrite that does not fit fails the message.
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
    /// Asks for user and password. The realm is the proxy's name where none is written.
    Auth {
        realm: Option<Octets>,
    },
    /// `add-acl`, `del-acl`, `set-map`, `del-map`.
    EditPatterns(PatternEdit),
    /// Until `at_least` bytes or all of the body are here, at most for `time`.
    WaitForBody {
        time: Duration,
        at_least: Option<usize>,
    },
    /// Waits until the handshake is over, where the client sent early data (`allow-0rtt`).
    WaitForHandshake,
    /// Into a slot of [`super::Proxy::capture_request`] in `http-request`, else of [`super::Proxy::capture_response`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
    /// With a log profile: its index in [`super::Config::log_profiles`].
    DoLog {
        profile: Option<usize>,
    },
    /// `otel-group`
    OtelGroup(OtelGroup),
    /// `use-service`: an answer of the process itself.
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
    /// Whether it may end the evaluation of its set.
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

/// What HTTP rules and TCP rules do to a stream, or to a connection before it has one.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StreamAction {
    SetMark(Side, Number),
    SetTos(Side, Number),
    SetLogLevel(LogLevel),
    /// None of them: the highest and the lowest are -2047 and 2047.
    SetPriorityClass(sample::Expr),
    /// Milliseconds.
    SetPriorityOffset(sample::Expr),
    /// `set-src`, `set-src-port`, `set-dst`, `set-dst-port`.
    SetAddress(AddressPart, sample::Expr),
    SetBandwidthLimit(super::BandwidthSwitch),
    /// `track-sc0`, `sc-inc-gpc` and their kin.
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

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's connection.
    Client,
    /// The server's connection, when it is made.
    Server,
}

/// A number that a rule gives.
#[derive(Debug)]
pub enum Number {
    /// Written out.
    Fixed(u32),
    /// Computed; nothing happens where it gives no integer.
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

/// How long `pause` waits.
#[derive(Debug)]
pub enum Pause {
    /// This long.
    Time(Duration),
    /// As many milliseconds; not at all where it gives no integer.
    Computed(sample::Expr),
}

/// Which header fields are meant.
#[derive(Debug)]
pub enum NameMatch {
    /// This name.
    Name(http::FieldName),
    /// By a part of it, in lower case.
    Text(NameMethod, Octets),
    /// By a regular expression, case-sensitive about names in lower case.
    Regex(Regex),
}

/// How a name is compared with a text (`-m`); case does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMethod {
    /// `str`: the same.
    Is,
    /// `beg`: it begins so.
    Begins,
    /// `end`: it ends so.
    Ends,
    /// `sub`: it contains it.
    Contains,
}

/// `replace-header` and `replace-value`.
#[derive(Debug)]
pub struct HeaderRewrite {
    /// The field's name.
    pub name: Octets,
    /// By comma-separated value instead of by line.
    pub by_value: bool,
    /// What is matched, and what stands there then.
    pub with: Rewrite,
}

/// A text that is replaced where a regular expression matches.
#[derive(Debug)]
pub struct Rewrite {
    /// A number among all rewrites of the configuration, dense from 0: where a worker keeps what it needs to match.
    pub id: usize,
    /// What is looked for.
    pub regex: Regex,
    /// What stands there then, with `\0` to `\9` for what was matched.
    pub format: sample::LogFormat,
}

/// The part of a request's target that a rule replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// Up to the query.
    Path,
    /// With the query.
    PathAndQuery,
    /// All of it.
    Whole,
}

/// A change of a pattern set (`set-map` and its kin).
#[derive(Debug)]
pub struct PatternEdit {
    /// What changes.
    pub set: std::sync::Arc<sample::Reference>,
    /// The entry's key.
    pub key: sample::LogFormat,
    /// What is done with it.
    pub change: PatternChange,
}

/// What a [`PatternEdit`] does.
#[derive(Debug)]
pub enum PatternChange {
    /// `add-acl`: the key is there afterwards.
    Add,
    /// `set-map`: the key is there afterwards, with this value.
    Set(sample::LogFormat),
    /// `del-acl`, `del-map`: the first entry of this key is gone.
    Remove,
}

/// A response made here: `http-request return|deny|tarpit`.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<Octets>,
    /// What it carries.
    pub body: ReplyBody,
    /// Further headers.
    pub headers: Vec<(Octets, sample::LogFormat)>,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub enum ReplyBody {
    /// The proxy's own error page of this status.
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
#[derive(Debug, Default)]
pub struct RedirectOptions {
    /// Without the query.
    pub drop_query: bool,
    /// With the query also for `location` (`keep-query`).
    pub keep_query: bool,
    /// With a slash at the end of a path that has none.
    pub append_slash: bool,
    /// Nothing happens when the place is empty.
    pub ignore_empty: bool,
    /// The value of a `Set-Cookie` field.
    pub set_cookie: Option<sample::LogFormat>,
}

/// One rule of the `tcp-request` and `tcp-response` sets.
#[derive(Debug)]
pub struct TcpRule {
    /// What it does.
    pub action: TcpAction,
    /// None is always.
    pub condition: Option<sample::Condition>,
    /// Where it stands.
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
    /// Into a slot of [`super::Proxy::capture_request`].
    Capture {
        expr: sample::Expr,
        slot: usize,
    },
    Stream(StreamAction),
    /// `switch-mode http`: the stream goes on as HTTP, with what protocol is demanded.
    SwitchMode(Option<super::Proto>),
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Var(sample::Assignment),
    SetRetries(Amount),
    Close,
    /// As [`HttpAction::DoLog`].
    DoLog {
        profile: Option<usize>,
    },
    /// `otel-group`
    OtelGroup(OtelGroup),
}

impl TcpAction {
    /// Whether it ends the evaluation of its set.
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
