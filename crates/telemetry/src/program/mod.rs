//! The compiled form of an `otel.cfg`: names are numbers, keys are encoded, expressions are
//! compiled.
//!
//! The configuration makes a program once; the engine runs it at the events of a stream. The file
//! bounds the size of every list.

mod event;
pub mod http;
mod value;

pub use event::{Direction, Event};
pub use value::{Evaluated, Value, int};

use std::sync::Arc;

use ::http::FieldName;
use sample::{Assignment, Condition, Expr, VarRef};

use crate::propagation::Format;
use crate::record::TAPE_NAMES_MAX;
use crate::sampling::Policy;
use otlp::tracestate;
use otlp::write;

/// The index of a span name in [`Program::spans`]: a stream has at most one open span of a name.
pub type SpanSlot = u16;
/// The index of an extracted context's name in [`Program::contexts`].
pub type ContextSlot = u16;
/// The index of an interned text in [`Program::texts`].
pub type TextId = u16;

/// A compiled `otel.cfg`.
#[derive(Debug, Default)]
pub struct Program {
    /// Names of spans.
    pub spans: Vec<Box<str>>,
    /// The names as encoded fields of `Span`, with their keys and lengths.
    pub span_fields: Vec<Box<[u8]>>,
    /// Names of contexts, and where each is carried.
    pub contexts: Vec<ContextName>,
    /// Keys of attributes and names of events: as protobuf fields number 1, with their keys and
    /// lengths.
    pub texts: Vec<Box<[u8]>>,
    /// In the order of the file.
    pub scopes: Vec<Scope>,
    /// In the order of the file.
    pub groups: Vec<Group>,
    /// By event: the scopes that run at it, in the order of the file.
    pub by_event: Vec<Vec<u32>>,
    /// The events that have scopes ([`Event::bit`]).
    pub events: u32,
    /// The instruments that updates record into.
    pub instruments: Vec<crate::metrics::Instrument>,
    /// The period of `on-idle-timeout` in milliseconds.
    pub idle_ms: Option<u64>,
    /// The policies that decide at the end of a stream; if empty, everything that the sampler chose
    /// is kept.
    pub policies: Vec<Policy>,
    /// A sampled remote parent makes the stream kept whatever the policies say.
    pub honours_parent: bool,
    /// `option require-context`.
    pub require_context: bool,
    /// Each request and each attempt has its own span ([`http`]).
    pub follows_requests: bool,
    /// The route of a request, for those spans: evaluated at the end of kept requests.
    pub route: Option<Arc<Value>>,
    /// `exception`, `exception.type`, `exception.message`.
    pub exception_texts: [TextId; 3],
    /// Streams are taped until their end decides ([`Program::seal`], [`Tape`]).
    ///
    /// [`Tape`]: crate::record::Tape
    pub is_taped: bool,
}

/// A context that scopes extract.
#[derive(Debug)]
pub struct ContextName {
    /// As written.
    pub name: Box<str>,
    /// The fields to remove from the message when the context ends.
    pub headers: Option<[FieldName; 3]>,
    /// The variables to unset when the context ends.
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
    /// The event at which it runs on its own.
    pub event: Option<Event>,
    /// None: always.
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
    /// Spans and contexts that end with the scope.
    pub finish: Finish,
    /// `otel-stop`: if one condition holds, everything ends.
    pub stop: Vec<Option<Condition>>,
    /// It does more than begin and end spans ([`Program::seal`]).
    pub does_more: bool,
    /// It begins at most one span, evaluates nothing for it, and ends spans by name
    /// ([`Program::seal`]).
    pub is_plain: bool,
}

/// Lines with the same key: the first one whose condition holds is used.
#[derive(Debug)]
pub struct FirstMatch<K, V> {
    /// The key of the lines.
    pub key: K,
    /// In order; a condition of `None` always holds.
    pub lines: Vec<(Option<Condition>, V)>,
}

impl<K, V> FirstMatch<K, V> {
    /// The line that is used.
    #[inline]
    pub fn matching(&self, scope: &sample::Scope<'_>) -> Option<&V> {
        let (_, value) = &self.lines[self.place(scope)?];
        Some(value)
    }

    /// The index of the line that is used.
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
    /// The prefix or name of the context there, in lower case.
    pub name: Box<str>,
    /// W3C fields under a prefix: `traceparent`, `tracestate`, `baggage`.
    pub headers: Option<[FieldName; 3]>,
    /// Fields with standard names: the first format that is present is read, all formats are
    /// written.
    pub formats: Vec<Format>,
    /// Variables: `traceparent`, `tracestate`, `baggage`.
    pub vars: Option<[VarRef; 3]>,
}

/// `extract`
#[derive(Debug)]
pub struct Extract {
    /// The name of the context.
    pub context: ContextSlot,
    /// The carrier to read.
    pub from: Carrier,
}

/// A reference to a span or, if no span of that name is open, to an extracted context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ref {
    /// The span with that name.
    pub span: Option<SpanSlot>,
    /// The context with that name.
    pub context: Option<ContextSlot>,
}

/// The role of a span in its trace (`SpanKind` of OTLP).
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

/// A `span` line and the lines that belong to it.
#[derive(Debug, Default)]
pub struct SpanLine {
    /// Its name.
    pub name: SpanSlot,
    /// None: the span starts a trace.
    pub parent: Option<Ref>,
    /// `root`: only documents the intent.
    pub is_root: bool,
    /// The span's kind.
    pub kind: SpanKind,
    /// The line defines the span (with a parent, a link, a kind, or `root`); other lines may only
    /// name it while it is open.
    pub defines: bool,
    /// All are applied.
    pub links: Vec<Link>,
    /// By key.
    pub attributes: Vec<FirstMatch<TextId, Value>>,
    /// In the order of the first line of each name.
    pub events: Vec<EventLines>,
    /// By key: baggage names.
    pub baggage: Vec<FirstMatch<Box<[u8]>, Value>>,
    /// The first line that holds.
    pub status: Option<FirstMatch<(), Status>>,
    /// All are applied.
    pub exceptions: Vec<Exception>,
    /// Where its context is written.
    pub inject: Option<Carrier>,
    /// Something is evaluated for the line ([`Program::seal`]).
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
    /// The targets; those that do not exist are skipped.
    pub to: Vec<Ref>,
    /// Attributes of the link.
    pub attributes: Vec<(TextId, Value)>,
    /// None: always.
    pub condition: Option<Condition>,
}

/// The `event` lines of one name, which make one event of the span.
#[derive(Debug)]
pub struct EventLines {
    /// The event's name.
    pub name: TextId,
    /// `time`, from the first line that has one.
    pub time: Option<Time>,
    /// By key.
    pub attributes: Vec<FirstMatch<TextId, Value>>,
}

/// A time given by a sample.
#[derive(Debug)]
pub struct Time {
    /// Nanoseconds per unit.
    pub unit_ns: u64,
    /// The time since the UNIX epoch, in units.
    pub value: Value,
}

/// `status`
#[derive(Debug)]
pub struct Status {
    /// The status code; none leaves the span's status unchanged (`ignore`).
    pub code: Option<StatusCode>,
    /// The description.
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
    /// Further attributes.
    pub attributes: Vec<(TextId, Value)>,
    /// None: always.
    pub condition: Option<Condition>,
}

/// The part of a span's or context's data that `set-var-ctx` reads.
#[derive(Debug)]
pub struct ContextField {
    /// The span or context.
    pub of: Ref,
    /// The field.
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
    /// The whole baggage, or one member.
    Baggage(Option<Box<[u8]>>),
    /// The whole `tracestate`, or one member.
    Tracestate(Option<Box<[u8]>>),
}

/// `instrument update`
#[derive(Debug)]
pub struct Update {
    /// Its index in [`Program::instruments`].
    pub instrument: u32,
    /// The recorded value: from the `instrument` line of this scope, otherwise from the first.
    pub value: Expr,
    /// In the order of the file.
    pub attributes: Vec<(TextId, Value)>,
    /// None: always.
    pub condition: Option<Condition>,
}

/// `log-record`
#[derive(Debug)]
pub struct LogLine {
    /// `SeverityNumber` of OTLP: 1 to 24.
    pub severity: u8,
    /// `event`.
    pub event: Option<Box<str>>,
    /// The span of the record, if open.
    pub span: Option<SpanSlot>,
    /// When it happened; none: now.
    pub time: Option<Time>,
    /// In the order of the file.
    pub attributes: Vec<(TextId, Value)>,
    /// The text of the record.
    pub body: Value,
    /// None: always.
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
    /// The spans as bits, if the program is taped ([`Program::seal`]).
    pub mask: u64,
}

impl Finish {
    /// Whether it names whole classes.
    #[must_use]
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.all | self.requests | self.responses
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_wide() && self.spans.is_empty() && self.contexts.is_empty()
    }
}

impl Program {
    /// Nothing runs at the events of a direction.
    pub fn leave_out(&mut self, direction: Direction) {
        let events = Event::ALL.iter();
        for event in events.filter(|event| event.direction() == direction) {
            if let Some(scopes) = self.by_event.get_mut(*event as usize) {
                scopes.clear();
            }
            self.events &= !event.bit();
        }
    }

    /// Precomputes what every run needs. Call it when the program is complete.
    pub fn seal(&mut self) {
        self.span_fields = self
            .spans
            .iter()
            .map(|name| {
                let mut field = Vec::new();
                write::bytes(&mut field, 5, name.as_bytes());
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

    /// Whether streams can be taped: their end decides, and nothing needs a span's identity before.
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

    /// The lowest threshold of the probability policies, which sets the sampled flag of a trace
    /// before its end. None if there are no policies.
    #[must_use]
    pub fn outcome(&self) -> Option<u64> {
        if self.policies.is_empty() {
            return None;
        }
        let draws = self.policies.iter().filter_map(|policy| match policy.rule {
            // A draw with a condition is not certain to happen.
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
        field.map_or(b"", |field| write::field_bytes(field))
    }

    /// The scopes of an event.
    #[must_use]
    pub fn scopes_of(&self, event: Event) -> &[u32] {
        self.by_event.get(event as usize).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_that_is_left_out_has_no_scopes() {
        let events = [
            Event::StreamStart,
            Event::HttpEndRequest,
            Event::HttpResponse,
        ];
        let mut program = Program {
            by_event: vec![vec![0]; Event::ALL.len()],
            events: events.iter().fold(0, |bits, event| bits | event.bit()),
            ..Program::default()
        };
        program.leave_out(Direction::Request);
        let left = Event::StreamStart.bit() | Event::HttpResponse.bit();
        assert_eq!(program.events, left);
        assert!(program.by_event[Event::HttpEndRequest as usize].is_empty());
        assert!(!program.by_event[Event::HttpResponse as usize].is_empty());
        program.leave_out(Direction::Response);
        assert_eq!(program.events, Event::StreamStart.bit());
    }
}
