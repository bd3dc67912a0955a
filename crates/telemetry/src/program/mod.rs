//! What an `otel.cfg` compiles to: names are numbers, keys are encoded, expressions are programs.
//!
//! Made once by the configuration; run by the engine at the events of a stream. Every list is bounded by the file it came
//! from.

mod event;
pub mod http;
mod value;

pub use event::{Direction, Event};
pub use value::{Evaluated, Value, int};

use std::sync::Arc;

use ::http::FieldName;
use sample::{Assignment, Condition, Expr, VarRef};

use crate::propagation::{Format, tracestate};
use crate::proto;
use crate::record::TAPE_NAMES_MAX;
use crate::sampling::Policy;

/// A name of a span in [`Program::spans`]: a stream has one open span of a name at most.
pub type SpanSlot = u16;
/// A name of an extracted context in [`Program::contexts`].
pub type ContextSlot = u16;
/// An interned text in [`Program::texts`].
pub type TextId = u16;

/// See the module.
#[derive(Debug, Default)]
pub struct Program {
    /// Names of spans.
    pub spans: Vec<Box<str>>,
    /// The same as fields of `Span`, with their keys and lengths.
    pub span_fields: Vec<Box<[u8]>>,
    /// Names of contexts, and where each was carried.
    pub contexts: Vec<ContextName>,
    /// Keys of attributes, names of events: as protobuf fields number 1, with their keys and lengths.
    pub texts: Vec<Box<[u8]>>,
    /// In the order of the file.
    pub scopes: Vec<Scope>,
    /// In the order of the file.
    pub groups: Vec<Group>,
    /// By event: scopes that run then, in the order of the file.
    pub by_event: Vec<Vec<u32>>,
    /// The events with scopes ([`Event::bit`]).
    pub events: u32,
    /// What updates record.
    pub instruments: Vec<crate::metrics::Instrument>,
    /// The period of `on-idle-timeout` in milliseconds.
    pub idle_ms: Option<u64>,
    /// Decides at the end of a stream; none is all that its sampler took.
    pub policies: Vec<Policy>,
    /// A sampled parent from elsewhere is kept whatever the policies say.
    pub honours_parent: bool,
    /// `option require-context`.
    pub require_context: bool,
    /// Each request and each try has a span of its own ([`http`]).
    pub follows_requests: bool,
    /// The route of a request, for those spans: evaluated at its end, where they are kept.
    pub route: Option<Arc<Value>>,
    /// `exception`, `exception.type`, `exception.message`.
    pub exception_texts: [TextId; 3],
    /// Its streams are written down in short until their end decides ([`Program::seal`], [`Tape`]).
    ///
    /// [`Tape`]: crate::record::Tape
    pub is_taped: bool,
}

/// A context that scopes extract.
#[derive(Debug)]
pub struct ContextName {
    /// As written.
    pub name: Box<str>,
    /// What its end removes from the message.
    pub headers: Option<[FieldName; 3]>,
    /// What its end unsets.
    pub vars: Option<[VarRef; 3]>,
}

/// A list of scopes that a rule runs.
#[derive(Debug)]
pub struct Group {
    /// As written.
    pub name: Box<str>,
    /// In the order of the `scopes` lines.
    pub scopes: Vec<u32>,
}

/// An `otel-scope`.
#[derive(Debug, Default)]
pub struct Scope {
    /// As written.
    pub name: Box<str>,
    /// When it runs by itself.
    pub event: Option<Event>,
    /// None is always.
    pub condition: Option<Condition>,
    /// `idle-timeout`.
    pub idle_ms: Option<u64>,
    /// In order.
    pub extracts: Vec<Extract>,
    /// `set-var`, by variable.
    pub set_vars: Vec<FirstMatch<VarRef, Assignment>>,
    /// In order.
    pub spans: Vec<SpanLine>,
    /// `set-var-ctx`, by variable.
    pub set_var_ctx: Vec<FirstMatch<VarRef, ContextField>>,
    /// `instrument update`.
    pub updates: Vec<Update>,
    /// In order.
    pub logs: Vec<LogLine>,
    /// `unset-var`, by variable.
    pub unset_vars: Vec<FirstMatch<VarRef, ()>>,
    /// Spans and contexts that end with it.
    pub finish: Finish,
    /// `otel-stop`: one that holds ends all.
    pub stop: Vec<Option<Condition>>,
    /// It does more than to begin and to end spans ([`Program::seal`]).
    pub does_more: bool,
    /// It begins one span at most, of which nothing is evaluated, and ends spans by their names ([`Program::seal`]).
    pub is_plain: bool,
}

/// Lines about one thing: the first whose condition holds counts.
#[derive(Debug)]
pub struct FirstMatch<K, V> {
    /// What they are about.
    pub key: K,
    /// In order; a condition of none always holds.
    pub lines: Vec<(Option<Condition>, V)>,
}

impl<K, V> FirstMatch<K, V> {
    /// The line that counts.
    #[inline]
    pub fn matching(&self, scope: &sample::Scope<'_>) -> Option<&V> {
        let (_, value) = &self.lines[self.place(scope)?];
        Some(value)
    }

    /// Its place among the lines.
    #[inline]
    pub fn place(&self, scope: &sample::Scope<'_>) -> Option<usize> {
        let holds = |condition: &Option<Condition>| {
            condition
                .as_ref()
                .is_none_or(|condition| condition.matches(scope))
        };
        self.lines
            .iter()
            .position(|(condition, _)| holds(condition))
    }
}

/// Where a context is read from or written to.
#[derive(Debug)]
pub struct Carrier {
    /// What the context is called there, in lower case.
    pub name: Box<str>,
    /// Fields of W3C, under a prefix: `traceparent`, `tracestate`, `baggage`.
    pub headers: Option<[FieldName; 3]>,
    /// Fields with the names that everyone knows; the first of which there is one is read, all are written.
    pub formats: Vec<Format>,
    /// Variables: `traceparent`, `tracestate`, `baggage`.
    pub vars: Option<[VarRef; 3]>,
}

/// `extract`
#[derive(Debug)]
pub struct Extract {
    /// What it is called.
    pub context: ContextSlot,
    /// Where it comes from.
    pub from: Carrier,
}

/// A reference to a span, or to an extracted context where no such span is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ref {
    /// The span of that name.
    pub span: Option<SpanSlot>,
    /// The context of that name.
    pub context: Option<ContextSlot>,
}

/// What a span is to its trace (`SpanKind` of OTLP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum SpanKind {
    Internal = 1,
    #[default]
    Server = 2,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

/// A `span` line and what belongs to it.
#[derive(Debug, Default)]
pub struct SpanLine {
    /// Its name.
    pub name: SpanSlot,
    /// None starts a trace.
    pub parent: Option<Ref>,
    /// `root`: said for the reader of the file.
    pub is_root: bool,
    /// See there.
    pub kind: SpanKind,
    /// The span is defined here (a parent, a link, a kind, `root`): one that is open may only be named by others.
    pub defines: bool,
    /// Applied all.
    pub links: Vec<Link>,
    /// By key.
    pub attributes: Vec<FirstMatch<TextId, Value>>,
    /// In the order of the first line of each name.
    pub events: Vec<EventLines>,
    /// By key: names of baggage.
    pub baggage: Vec<FirstMatch<Box<[u8]>, Value>>,
    /// The first that holds.
    pub status: Option<FirstMatch<(), Status>>,
    /// Applied all.
    pub exceptions: Vec<Exception>,
    /// Where its context goes.
    pub inject: Option<Carrier>,
    /// Something is evaluated for it ([`Program::seal`]).
    pub evaluates: bool,
}

impl SpanLine {
    fn evaluates(&self) -> bool {
        let plain = |link: &Link| link.condition.is_none() && link.attributes.is_empty();
        !(self.attributes.is_empty()
            && self.events.is_empty()
            && self.baggage.is_empty()
            && self.status.is_none()
            && self.exceptions.is_empty()
            && self.links.iter().all(plain))
    }
}

/// `link`
#[derive(Debug)]
pub struct Link {
    /// What is linked; what is not there is passed over.
    pub to: Vec<Ref>,
    /// Of the link.
    pub attributes: Vec<(TextId, Value)>,
    /// None is always.
    pub condition: Option<Condition>,
}

/// The `event` lines of one name: one event of the span.
#[derive(Debug)]
pub struct EventLines {
    /// The event's name.
    pub name: TextId,
    /// `time`, of the first line that says one.
    pub time: Option<Time>,
    /// By key.
    pub attributes: Vec<FirstMatch<TextId, Value>>,
}

/// A moment that a sample tells.
#[derive(Debug)]
pub struct Time {
    /// Nanoseconds of its unit.
    pub unit_ns: u64,
    /// Since the UNIX epoch.
    pub value: Value,
}

/// `status`
#[derive(Debug)]
pub struct Status {
    /// See there; none leaves the span as it is (`ignore`).
    pub code: Option<StatusCode>,
    /// What is said about it.
    pub description: Option<Value>,
}

/// `Status.StatusCode` of OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum StatusCode {
    #[default]
    Unset = 0,
    Ok = 1,
    Error = 2,
}

/// `exception`
#[derive(Debug)]
pub struct Exception {
    /// `exception.type`.
    pub kind: Value,
    /// `exception.message`.
    pub message: Option<Value>,
    /// Further ones.
    pub attributes: Vec<(TextId, Value)>,
    /// None is always.
    pub condition: Option<Condition>,
}

/// What `set-var-ctx` reads of a span or a context.
#[derive(Debug)]
pub struct ContextField {
    /// Whose.
    pub of: Ref,
    /// Which.
    pub field: Field,
}

/// A field of a context.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Field {
    TraceId,
    SpanId,
    TraceFlags,
    Traceparent,
    Sampled,
    Valid,
    Remote,
    /// All of it, or one member.
    Baggage(Option<Box<[u8]>>),
    /// All of it, or one member.
    Tracestate(Option<Box<[u8]>>),
}

/// `instrument update`
#[derive(Debug)]
pub struct Update {
    /// Its place in [`Program::instruments`].
    pub instrument: u32,
    /// What is recorded: of the `instrument` line of this scope, else of the first.
    pub value: Expr,
    /// In the order of the file.
    pub attributes: Vec<(TextId, Value)>,
    /// None is always.
    pub condition: Option<Condition>,
}

/// `log-record`
#[derive(Debug)]
pub struct LogLine {
    /// `SeverityNumber` of OTLP: 1 to 24.
    pub severity: u8,
    /// `event`.
    pub event: Option<Box<str>>,
    /// Whose it is, where that is open.
    pub span: Option<SpanSlot>,
    /// When it happened; none is now.
    pub time: Option<Time>,
    /// In the order of the file.
    pub attributes: Vec<(TextId, Value)>,
    /// Its text.
    pub body: Value,
    /// None is always.
    pub condition: Option<Condition>,
}

/// `finish`
#[derive(Debug, Default)]
pub struct Finish {
    /// `*`
    pub all: bool,
    /// `*req*`
    pub requests: bool,
    /// `*res*`
    pub responses: bool,
    /// By name.
    pub spans: Vec<SpanSlot>,
    /// By name.
    pub contexts: Vec<ContextSlot>,
    /// The spans as bits, where the program is taped ([`Program::seal`]).
    pub mask: u64,
}

impl Finish {
    /// It names whole classes.
    #[must_use]
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.all | self.requests | self.responses
    }

    /// It names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_wide() && self.spans.is_empty() && self.contexts.is_empty()
    }
}

impl Program {
    /// All of it is known: what a run asks again and again is answered once.
    pub fn seal(&mut self) {
        self.span_fields = self
            .spans
            .iter()
            .map(|name| {
                let mut field = Vec::new();
                proto::bytes(&mut field, 5, name.as_bytes());
                field.into()
            })
            .collect();
        let asks = self.require_context;
        for scope in &mut self.scopes {
            for line in &mut scope.spans {
                line.evaluates = line.evaluates();
            }
            scope.does_more = asks
                || !(scope.extracts.is_empty()
                    && scope.set_vars.is_empty()
                    && scope.set_var_ctx.is_empty()
                    && scope.updates.is_empty()
                    && scope.logs.is_empty()
                    && scope.unset_vars.is_empty()
                    && scope.stop.is_empty());
            let bare =
                |line: &SpanLine| !line.evaluates && line.inject.is_none() && line.links.is_empty();
            scope.is_plain = !scope.does_more
                && scope.condition.is_none()
                && scope.spans.len() <= 1
                && scope.spans.iter().all(bare)
                && !scope.finish.is_wide()
                && scope.finish.contexts.is_empty();
        }
        self.is_taped = self.can_be_taped();
        if self.is_taped {
            for scope in &mut self.scopes {
                let bits = scope.finish.spans.iter().map(|name| 1 << name);
                scope.finish.mask = bits.fold(0, |mask, bit: u64| mask | bit);
            }
        }
    }

    /// Its end decides, and nothing asks for the identity of a span before.
    fn can_be_taped(&self) -> bool {
        let plain = |link: &Link| link.condition.is_none() && link.attributes.is_empty();
        let silent = |line: &SpanLine| line.inject.is_none() && line.links.iter().all(plain);
        let unasked =
            |scope: &Scope| scope.set_var_ctx.is_empty() && scope.spans.iter().all(silent);
        !self.policies.is_empty()
            && !self.follows_requests
            && !self.require_context
            && self.contexts.is_empty()
            && self.spans.len() <= TAPE_NAMES_MAX
            && self.scopes.iter().all(unasked)
    }

    /// The least threshold of its draws: what a trace's flag says before its end. None where no policy decides.
    #[must_use]
    pub fn outcome(&self) -> Option<u64> {
        if self.policies.is_empty() {
            return None;
        }
        let draws = self.policies.iter().filter_map(|policy| match policy.rule {
            // A draw that a condition may forbid promises nothing.
            crate::sampling::Rule::Probability(threshold) if policy.condition.is_none() => {
                Some(threshold)
            }
            _ => None,
        });
        Some(draws.min().unwrap_or(tracestate::THRESHOLD_MAX))
    }

    /// A text as it was written.
    #[must_use]
    pub fn text(&self, text: TextId) -> &[u8] {
        let field = self.texts.get(usize::from(text));
        field.map_or(b"", |field| proto::field_bytes(field))
    }

    /// The scopes of an event.
    #[must_use]
    pub fn scopes_of(&self, event: Event) -> &[u32] {
        self.by_event.get(event as usize).map_or(&[], Vec::as_slice)
    }
}
