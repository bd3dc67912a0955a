//! The records of a stream: spans and log records as plain data, until the stream's end decides
//! whether they are encoded.
//!
//! All records are in a few vectors that are reused for the next stream; texts are in one buffer
//! ([`Arena`]). The records of a stream are bounded, and those beyond the limits are counted.

mod arena;
mod encode;
mod log;
mod outbox;
mod settle;
mod tape;

pub use arena::{Arena, Text};
pub use encode::{Kept, key_value};
pub use log::Log;
pub use outbox::{Counts, Outbox};
pub use tape::{Mark, Run, TAPE_NAMES_MAX, Tape};

use net::Now;

use crate::program::{
    ContextSlot, Direction, Evaluated, Finish, Program, Scope, SpanKind, SpanSlot, StatusCode,
    TextId,
};
use crate::propagation::traceparent;
use crate::sampler::Sampler;
use crate::{Ids, SpanContext, SpanId, TraceId, context::SAMPLED};

/// The most spans of one stream; more are dropped.
pub const SPANS_MAX: usize = 1024;
/// The most attributes, events, links and log records of one stream, taken together; more are
/// dropped.
pub const DETAILS_MAX: usize = 16 * 1024;
/// The number of spans after which a stream hands over finished records, if no decision is made at
/// its end.
pub const SETTLE_SPANS: usize = 256;
/// The most bytes of text of one stream; longer texts become empty.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The index of the next item in a list of a stream's records, plus one; 0 for none.
type Next = u32;

/// The index of a span in its stream.
pub type SpanIndex = usize;

/// A recorded span.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its name.
    pub name: SpanSlot,
    /// A name made at run time that replaces `name`; empty: none.
    pub name_text: Text,
    /// Its role in its trace.
    pub kind: SpanKind,
    /// `status`.
    pub status: StatusCode,
    /// The direction of the event that made it.
    pub direction: Direction,
    /// Its context, as sent to others.
    pub context: SpanContext,
    /// Its parent span; invalid for the first span of a trace.
    pub parent: SpanId,
    /// The parent is in another process.
    pub parent_is_remote: bool,
    /// It is encoded if its stream is kept.
    pub is_recorded: bool,
    /// When it began.
    pub start: Now,
    /// When it ended, monotonic; 0 while open.
    pub end_mono_ns: u64,
    /// The description of the status.
    pub status_text: Text,
    /// `tracestate`.
    pub state: Text,
    /// `baggage`.
    pub baggage: Text,
    first_attribute: Next,
    last_attribute: Next,
    first_event: Next,
    last_event: Next,
    first_link: Next,
    last_link: Next,
    dropped: Dropped,
}

/// The items that a span had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dropped {
    attributes: u16,
    events: u16,
    links: u16,
}

#[derive(Clone, Copy, Debug)]
struct Attribute {
    next: Next,
    key: TextId,
    value: Evaluated,
}

#[derive(Clone, Copy, Debug)]
struct SpanEvent {
    next: Next,
    name: TextId,
    wall_ns: u64,
    first_attribute: Next,
    last_attribute: Next,
    attributes_dropped: u16,
}

#[derive(Clone, Copy, Debug)]
struct SpanLink {
    next: Next,
    to: SpanContext,
    state: Text,
    first_attribute: Next,
    last_attribute: Next,
    attributes_dropped: u16,
}

/// A context received from another process.
#[derive(Clone, Copy, Debug)]
pub struct Extracted {
    /// The span of the context; invalid if it could not be parsed.
    pub context: SpanContext,
    /// `tracestate`.
    pub state: Text,
    /// `baggage`.
    pub baggage: Text,
    /// The direction of the event that extracted it.
    pub direction: Direction,
}

/// The parent of a new span.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// Its identity.
    pub context: SpanContext,
    /// `tracestate`.
    pub state: Text,
    /// `baggage`.
    pub baggage: Text,
}

/// How a span's sampled flag is determined.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Decides at the start of a span, if nothing decides later.
    pub sampler: &'a Sampler,
    /// The threshold of the draw at the end of the stream ([`Program::outcome`]): everything is
    /// recorded until then.
    pub outcome: Option<u64>,
    /// A parent's flag is inherited.
    pub honours_parent: bool,
}

/// What makes spans: the generator of identifiers and how they are sampled, as the tracer of an
/// OpenTelemetry SDK.
#[derive(Debug)]
pub struct Tracer<'a> {
    /// The identifiers of new traces and spans.
    pub ids: &'a mut Ids,
    /// How their sampled flag is determined.
    pub head: Head<'a>,
}

/// The owner of attributes.
#[derive(Clone, Copy, Debug)]
pub enum Owner {
    /// A span.
    Span(SpanIndex),
    /// An event, by the index that [`Trace::event`] returned.
    Event(u32),
    /// A link, by the index that [`Trace::link`] returned.
    Link(u32),
    /// A log record, by the index that [`Trace::log`] returned.
    Log(u32),
}

/// The records of one stream for one filter.
#[derive(Debug, Default)]
pub struct Trace {
    /// Texts.
    pub arena: Arena,
    spans: Vec<Span>,
    attributes: Vec<Attribute>,
    events: Vec<SpanEvent>,
    links: Vec<SpanLink>,
    logs: Vec<Log>,
    /// By name: the index of the open span, plus one.
    open: Vec<u16>,
    contexts: Vec<Option<Extracted>>,
    /// The span whose context was written last, and its `traceparent` ([`Trace::own`]).
    injected: Option<(SpanIndex, [u8; traceparent::BYTES])>,
    /// The identifier of the next trace, if it was set.
    next_trace: Option<TraceId>,
    /// Spans that were dropped because there were too many.
    pub spans_dropped: u32,
    /// Log records that were dropped because there were too many.
    pub logs_dropped: u32,
}

impl Trace {
    /// Clears the records, keeps the memory, and prepares for a stream of this program.
    pub fn begin(&mut self, program: &Program) {
        self.arena.clear();
        self.spans.clear();
        self.attributes.clear();
        self.events.clear();
        self.links.clear();
        self.logs.clear();
        self.open.clear();
        self.open.resize(program.spans.len(), 0);
        self.contexts.clear();
        self.contexts.resize(program.contexts.len(), None);
        self.injected = None;
        self.next_trace = None;
        (self.spans_dropped, self.logs_dropped) = (0, 0);
    }

    /// Its spans, in the order in which they began.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The number of log records.
    #[must_use]
    pub fn log_count(&self) -> usize {
        self.logs.len()
    }

    /// A span of this stream.
    #[must_use]
    pub fn span(&self, span: SpanIndex) -> &Span {
        &self.spans[span]
    }

    /// A span, to change its fields other than lists.
    pub fn span_mut(&mut self, span: SpanIndex) -> &mut Span {
        &mut self.spans[span]
    }

    /// The open span of a name.
    #[must_use]
    #[inline]
    pub fn open_span(&self, name: SpanSlot) -> Option<SpanIndex> {
        match self.open.get(usize::from(name)) {
            Some(0) | None => None,
            Some(place) => Some(usize::from(*place) - 1),
        }
    }

    /// An extracted context.
    #[must_use]
    pub fn context(&self, name: ContextSlot) -> Option<&Extracted> {
        self.contexts.get(usize::from(name))?.as_ref()
    }

    /// Whether any extracted context names a span.
    #[must_use]
    pub fn has_valid_context(&self) -> bool {
        let contexts = self.contexts.iter().flatten();
        contexts.into_iter().any(|found| found.context.is_valid())
    }

    /// Stores an extracted context.
    pub fn extracted(&mut self, name: ContextSlot, found: Extracted) {
        if let Some(place) = self.contexts.get_mut(usize::from(name)) {
            *place = Some(found);
        }
    }

    /// Removes an extracted context; returns whether there was one.
    pub fn forget_context(&mut self, name: ContextSlot) -> bool {
        let place = self.contexts.get_mut(usize::from(name));
        place.and_then(Option::take).is_some()
    }

    /// Records a `traceparent` that was written, because it may be read again.
    pub fn injected(&mut self, span: SpanIndex, traceparent: [u8; traceparent::BYTES]) {
        self.injected = Some((span, traceparent));
    }

    /// The context in the W3C fields, if these equal byte for byte the fields that were written
    /// last. The next scope of a chain reads what the previous scope wrote, and parsing it would
    /// give the same context.
    #[must_use]
    pub fn own(&self, traceparent: &[u8], state: &[u8], baggage: &[u8]) -> Option<Extracted> {
        let (span, text) = self.injected.as_ref()?;
        let span = self.spans.get(*span)?;
        let same = traceparent == text
            && state == self.arena.get(span.state)
            && baggage == self.arena.get(span.baggage);
        same.then_some(Extracted {
            context: span.context,
            state: span.state,
            baggage: span.baggage,
            direction: Direction::Neither,
        })
    }

    /// Sets the identifier of the next trace that begins.
    pub fn name_next_trace(&mut self, id: Option<TraceId>) {
        self.next_trace = id;
    }

    /// Begins a span. `parent`: none begins a trace. Returns none if the stream has too many spans.
    #[inline]
    pub fn start_span(
        &mut self,
        name: SpanSlot,
        kind: SpanKind,
        parent: Option<Parent>,
        direction: Direction,
        at: Now,
        tracer: Tracer<'_>,
    ) -> Option<SpanIndex> {
        if self.spans.len() >= SPANS_MAX {
            self.spans_dropped += 1;
            return None;
        }
        let Tracer { ids, head } = tracer;
        let valid = parent.filter(|parent| parent.context.is_valid());
        let trace_id = match &valid {
            Some(parent) => parent.context.trace_id,
            None => self.next_trace.take().unwrap_or_else(|| ids.trace_id()),
        };
        // Baggage is inherited even from a context without a span.
        let baggage = parent.map_or(Text::EMPTY, |parent| parent.baggage);
        let mut state = valid.map_or(Text::EMPTY, |parent| parent.state);
        let sampled = self.is_sampled(valid.as_ref(), &mut state, trace_id, head);
        let place = self.spans.len();
        self.spans.push(Span {
            name,
            name_text: Text::EMPTY,
            kind,
            status: StatusCode::Unset,
            direction,
            context: SpanContext {
                trace_id,
                span_id: ids.span_id(),
                flags: if sampled { SAMPLED } else { 0 },
                remote: false,
            },
            parent: valid.map_or_else(SpanId::default, |parent| parent.context.span_id),
            parent_is_remote: valid.is_some_and(|parent| parent.context.remote),
            is_recorded: sampled || head.outcome.is_some(),
            start: at,
            end_mono_ns: 0,
            status_text: Text::EMPTY,
            state,
            baggage,
            first_attribute: 0,
            last_attribute: 0,
            first_event: 0,
            last_event: 0,
            first_link: 0,
            last_link: 0,
            dropped: Dropped::default(),
        });
        if let Some(open) = self.open.get_mut(usize::from(name)) {
            *open = place as u16 + 1;
        }
        Some(place)
    }

    /// Runs a plain scope ([`Scope::is_plain`]). If the parent of its span does not exist, does
    /// nothing and returns false.
    pub fn run_plain(
        &mut self,
        scope: &Scope,
        direction: Direction,
        at: Now,
        tracer: Tracer<'_>,
    ) -> bool {
        if let Some(line) = scope.spans.first()
            && self.open_span(line.name).is_none()
        {
            let parent = match line.parent {
                None => None,
                Some(of) => match self.resolve(of) {
                    None => return false,
                    parent => parent,
                },
            };
            self.start_span(line.name, line.kind, parent, direction, at, tracer);
        }
        for span in &scope.finish.spans {
            self.finish(*span, at);
        }
        true
    }

    #[inline]
    fn is_sampled(
        &mut self,
        parent: Option<&Parent>,
        state: &mut Text,
        trace_id: TraceId,
        head: Head<'_>,
    ) -> bool {
        let context = parent.map(|parent| &parent.context);
        if let Some(threshold) = head.outcome {
            return match context {
                Some(context) if !context.remote || head.honours_parent => context.is_sampled(),
                _ => trace_id.randomness() >= threshold,
            };
        }
        if matches!(head.sampler, Sampler::AlwaysOn) {
            return true;
        }
        let decision = head
            .sampler
            .decide(context, self.arena.get(*state), trace_id);
        if head.sampler.writes_threshold() {
            *state = self.arena.edit([*state], |[old], out| {
                otlp::tracestate::set_threshold(old, decision.threshold, out);
            });
        }
        decision.sampled
    }

    /// Sets an attribute; replaces one with the same key.
    #[inline]
    pub fn attribute(&mut self, owner: Owner, key: TextId, value: Evaluated) {
        let Trace {
            spans,
            attributes,
            events,
            links,
            logs,
            ..
        } = self;
        let full = attributes.len() + events.len() + links.len() + logs.len() >= DETAILS_MAX;
        let (first, last, dropped) = match owner {
            Owner::Span(span) => {
                let span = &mut spans[span];
                let dropped = &mut span.dropped.attributes;
                (&mut span.first_attribute, &mut span.last_attribute, dropped)
            }
            Owner::Event(event) => {
                let event = &mut events[event as usize];
                let dropped = &mut event.attributes_dropped;
                (
                    &mut event.first_attribute,
                    &mut event.last_attribute,
                    dropped,
                )
            }
            Owner::Link(link) => {
                let link = &mut links[link as usize];
                let dropped = &mut link.attributes_dropped;
                (&mut link.first_attribute, &mut link.last_attribute, dropped)
            }
            Owner::Log(log) => {
                let log = &mut logs[log as usize];
                let dropped = &mut log.attributes_dropped;
                (&mut log.first_attribute, &mut log.last_attribute, dropped)
            }
        };
        let mut next = *first;
        while let Some(place) = next.checked_sub(1) {
            let there = &mut attributes[place as usize];
            if there.key == key {
                there.value = value;
                return;
            }
            next = there.next;
        }
        if full {
            *dropped = dropped.saturating_add(1);
            return;
        }
        attributes.push(Attribute {
            next: 0,
            key,
            value,
        });
        let place = attributes.len() as u32;
        match last.checked_sub(1) {
            Some(before) => attributes[before as usize].next = place,
            None => *first = place,
        }
        *last = place;
    }

    fn is_full(&self) -> bool {
        let details =
            self.attributes.len() + self.events.len() + self.links.len() + self.logs.len();
        details >= DETAILS_MAX
    }

    /// Adds an event to a span.
    pub fn event(&mut self, span: SpanIndex, name: TextId, wall_ns: u64) -> Option<u32> {
        if self.is_full() {
            let dropped = &mut self.spans[span].dropped.events;
            *dropped = dropped.saturating_add(1);
            return None;
        }
        self.events.push(SpanEvent {
            next: 0,
            name,
            wall_ns,
            first_attribute: 0,
            last_attribute: 0,
            attributes_dropped: 0,
        });
        let place = self.events.len() as u32;
        let span = &mut self.spans[span];
        match span.last_event.checked_sub(1) {
            Some(before) => self.events[before as usize].next = place,
            None => span.first_event = place,
        }
        span.last_event = place;
        Some(place - 1)
    }

    /// Links a span to another one.
    pub fn link(&mut self, span: SpanIndex, to: SpanContext, state: Text) -> Option<u32> {
        if self.is_full() {
            let dropped = &mut self.spans[span].dropped.links;
            *dropped = dropped.saturating_add(1);
            return None;
        }
        self.links.push(SpanLink {
            next: 0,
            to,
            state,
            first_attribute: 0,
            last_attribute: 0,
            attributes_dropped: 0,
        });
        let place = self.links.len() as u32;
        let span = &mut self.spans[span];
        match span.last_link.checked_sub(1) {
            Some(before) => self.links[before as usize].next = place,
            None => span.first_link = place,
        }
        span.last_link = place;
        Some(place - 1)
    }

    /// Adds a log record.
    pub fn log(&mut self, log: Log) -> Option<u32> {
        if self.is_full() {
            self.logs_dropped += 1;
            return None;
        }
        self.logs.push(log);
        Some(self.logs.len() as u32 - 1)
    }

    /// Ends the open span of a name; returns whether there was one.
    #[inline]
    pub fn finish(&mut self, name: SpanSlot, at: Now) -> bool {
        let Some(place) = self.open_span(name) else {
            return false;
        };
        self.open[usize::from(name)] = 0;
        self.spans[place].end_mono_ns = at.mono_ns.max(1);
        true
    }

    /// Ends the spans that a scope ends.
    #[inline]
    pub fn end_spans(&mut self, finish: &Finish, at: Now) {
        for span in &finish.spans {
            self.finish(*span, at);
        }
        if finish.is_wide() {
            if finish.all {
                self.finish_where(None, at);
            }
            if finish.requests {
                self.finish_where(Some(Direction::Request), at);
            }
            if finish.responses {
                self.finish_where(Some(Direction::Response), at);
            }
        }
    }

    /// Ends every open span of `direction`, or all if that is none.
    pub fn finish_where(&mut self, direction: Option<Direction>, at: Now) {
        for open in &mut self.open {
            let Some(place) = usize::from(*open).checked_sub(1) else {
                continue;
            };
            let span = &mut self.spans[place];
            if direction.is_none_or(|direction| span.direction == direction) {
                span.end_mono_ns = at.mono_ns.max(1);
                *open = 0;
            }
        }
    }

    /// A span as a parent or, if it is not open, an extracted context.
    #[must_use]
    pub fn resolve(&self, of: crate::program::Ref) -> Option<Parent> {
        if let Some(span) = of.span.and_then(|name| self.open_span(name)) {
            let span = &self.spans[span];
            return Some(Parent {
                context: span.context,
                state: span.state,
                baggage: span.baggage,
            });
        }
        let found = self.context(of.context?)?;
        Some(Parent {
            context: found.context,
            state: found.state,
            baggage: found.baggage,
        })
    }
}

#[cfg(test)]
mod tests;
