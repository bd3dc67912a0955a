//! What a recording is: lists in lists.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span};

use super::super::{Kept, Owner, SpanIndex, TEXT_BYTES_MAX};
use crate::program::{ContextSlot, Direction, Ref, SpanSlot};
use crate::{SpanContext, TraceId};
use net::Now;
use otlp::tracestate;

/// A value as it was given.
#[derive(Clone)]
pub enum Tell {
    Bool(bool),
    Int(i64),
    Text(Vec<u8>),
}

/// How it is decided whether a span is sampled.
#[derive(Clone, Copy)]
pub struct Decided {
    pub always: bool,
    pub outcome: Option<u64>,
    pub honours_parent: bool,
}

/// What a span may be a part of.
#[derive(Clone)]
pub struct Known {
    pub context: SpanContext,
    pub state: Vec<u8>,
    pub baggage: Vec<u8>,
}

struct Recorded {
    span: Span,
    context: SpanContext,
    state: Vec<u8>,
    baggage: Vec<u8>,
    direction: Direction,
    start: Now,
    end_mono_ns: Option<u64>,
    is_recorded: bool,
}

/// See the module.
pub struct Model {
    spans: Vec<Recorded>,
    logs: Vec<LogRecord>,
    /// Where each event and each link is: its span, and its place there.
    events: Vec<(SpanIndex, usize)>,
    links: Vec<(SpanIndex, usize)>,
    open: Vec<Option<SpanIndex>>,
    contexts: Vec<Option<Known>>,
    text_bytes: usize,
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

pub fn pair(key: &str, value: &Tell) -> KeyValue {
    let value = match value {
        Tell::Bool(value) => any_value::Value::BoolValue(*value),
        Tell::Int(value) => any_value::Value::IntValue(*value),
        Tell::Text(text) => any_value::Value::StringValue(shown(text)),
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

impl Model {
    pub fn new(names: usize, contexts: usize) -> Model {
        Model {
            spans: Vec::new(),
            logs: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            open: vec![None; names],
            contexts: vec![None; contexts],
            text_bytes: 0,
        }
    }

    /// A text as it is kept: one that is too much is empty.
    pub fn keep(&mut self, text: &[u8]) -> Vec<u8> {
        if self.text_bytes + text.len() > TEXT_BYTES_MAX {
            return Vec::new();
        }
        self.text_bytes += text.len();
        text.to_vec()
    }

    pub fn resolve(&self, of: Ref) -> Option<Known> {
        let open = of.span.and_then(|name| self.open[usize::from(name)]);
        if let Some(place) = open {
            let span = &self.spans[place];
            return Some(Known {
                context: span.context,
                state: span.state.clone(),
                baggage: span.baggage.clone(),
            });
        }
        self.contexts[usize::from(of.context?)].clone()
    }

    #[expect(clippy::too_many_arguments, reason = "all that a span begins with")]
    pub fn start(
        &mut self,
        name: SpanSlot,
        kind: i32,
        parent: Option<Known>,
        direction: Direction,
        start: Now,
        made: Option<SpanContext>,
        decided: Decided,
    ) {
        let context = made.expect("there is room");
        let known = |span: &Recorded| span.context.span_id == context.span_id;
        assert!(context.is_valid() && !context.remote && !self.spans.iter().any(known));
        let baggage = parent
            .as_ref()
            .map_or(Vec::new(), |one| one.baggage.clone());
        let parent = parent.filter(|parent| parent.context.is_valid());
        if let Some(parent) = &parent {
            assert_eq!(context.trace_id, parent.context.trace_id);
        }
        let (sampled, is_recorded) = match decided.outcome {
            None => (decided.always, decided.always),
            Some(threshold) => (outcome(&parent, context.trace_id, threshold, decided), true),
        };
        assert_eq!(context.flags, u8::from(sampled));
        let remote = parent.as_ref().is_some_and(|parent| parent.context.remote);
        self.open[usize::from(name)] = Some(self.spans.len());
        self.spans.push(Recorded {
            span: Span {
                trace_id: context.trace_id.0.to_vec(),
                span_id: context.span_id.0.to_vec(),
                parent_span_id: parent
                    .as_ref()
                    .map_or(Vec::new(), |parent| parent.context.span_id.0.to_vec()),
                flags: u32::from(sampled) | 0x100 | if remote { 0x200 } else { 0 },
                name: super::NAMES[usize::from(name)].to_owned(),
                kind,
                start_time_unix_nano: start.wall_ns,
                ..Span::default()
            },
            context,
            state: parent.map_or(Vec::new(), |parent| parent.state),
            baggage,
            direction,
            start,
            end_mono_ns: None,
            is_recorded,
        });
    }

    pub fn finish(&mut self, name: SpanSlot, at: Now) -> bool {
        let Some(place) = self.open[usize::from(name)].take() else {
            return false;
        };
        self.spans[place].end_mono_ns = Some(at.mono_ns);
        true
    }

    pub fn finish_where(&mut self, direction: Option<Direction>, at: Now) {
        for name in 0..self.open.len() {
            let fits = |place: SpanIndex| {
                direction.is_none_or(|direction| self.spans[place].direction == direction)
            };
            if self.open[name].is_some_and(fits) {
                self.finish(name as SpanSlot, at);
            }
        }
    }

    pub fn extracted(&mut self, name: ContextSlot, found: (SpanContext, Vec<u8>, Vec<u8>)) {
        let (context, state, baggage) = found;
        self.contexts[usize::from(name)] = Some(Known {
            context,
            state,
            baggage,
        });
    }

    pub fn forget(&mut self, name: ContextSlot) -> bool {
        self.contexts[usize::from(name)].take().is_some()
    }

    pub fn has_valid_context(&self) -> bool {
        let mut contexts = self.contexts.iter().flatten();
        contexts.any(|known| known.context.is_valid())
    }

    pub fn event(&mut self, span: SpanIndex, name: &str, wall_ns: u64, made: bool) {
        assert!(made);
        let events = &mut self.spans[span].span.events;
        self.events.push((span, events.len()));
        events.push(span::Event {
            time_unix_nano: wall_ns,
            name: name.to_owned(),
            ..span::Event::default()
        });
    }

    pub fn link(&mut self, span: SpanIndex, to: SpanContext, state: Vec<u8>, made: bool) {
        assert!(made);
        let links = &mut self.spans[span].span.links;
        self.links.push((span, links.len()));
        links.push(span::Link {
            trace_id: to.trace_id.0.to_vec(),
            span_id: to.span_id.0.to_vec(),
            trace_state: shown(&state),
            flags: u32::from(to.flags) | 0x100 | if to.remote { 0x200 } else { 0 },
            ..span::Link::default()
        });
    }

    pub fn status(&mut self, span: SpanIndex, code: i32, text: Vec<u8>) {
        let message = shown(&text);
        let said = code != 0 || !message.is_empty();
        self.spans[span].span.status = said.then_some(Status { message, code });
    }

    pub fn baggage(&mut self, span: SpanIndex, baggage: Vec<u8>) {
        self.spans[span].baggage = baggage;
    }

    pub fn log(
        &mut self,
        severity: u8,
        at: u64,
        observed: u64,
        span: SpanContext,
        body: Vec<u8>,
        made: bool,
    ) {
        assert!(made);
        let name = super::super::encode::severity_text(severity);
        let body = any_value::Value::StringValue(shown(&body));
        let valid = span.is_valid();
        let id = |bytes: &[u8]| if valid { bytes.to_vec() } else { Vec::new() };
        self.logs.push(LogRecord {
            time_unix_nano: at,
            observed_time_unix_nano: observed,
            severity_number: i32::from(severity),
            severity_text: name.to_owned(),
            body: Some(AnyValue { value: Some(body) }),
            flags: u32::from(span.flags),
            trace_id: id(&span.trace_id.0),
            span_id: id(&span.span_id.0),
            event_name: match severity % 2 {
                0 => format!("event {severity}"),
                _ => String::new(),
            },
            ..LogRecord::default()
        });
    }

    pub fn attribute(&mut self, owner: Owner, key: &str, value: Tell) {
        let list = match owner {
            Owner::Span(span) => &mut self.spans[span].span.attributes,
            Owner::Event(event) => {
                let (span, place) = self.events[event as usize];
                &mut self.spans[span].span.events[place].attributes
            }
            Owner::Link(link) => {
                let (span, place) = self.links[link as usize];
                &mut self.spans[span].span.links[place].attributes
            }
            Owner::Log(log) => &mut self.logs[log as usize].attributes,
        };
        let new = pair(key, &value);
        match list.iter_mut().find(|there| there.key == key) {
            Some(there) => *there = new,
            None => list.push(new),
        }
    }

    /// What is encoded of the spans.
    pub fn spans(&self, kept: Kept<'_>, end_mono_ns: u64) -> Vec<Span> {
        let recorded = self.spans.iter().filter(|one| one.is_recorded);
        recorded
            .map(|one| {
                let mut span = one.span.clone();
                let end = one.end_mono_ns.map_or(end_mono_ns, |end| end.max(1));
                let lasted = end.saturating_sub(one.start.mono_ns);
                span.end_time_unix_nano = one.start.wall_ns + lasted;
                let mut state = one.state.clone();
                if kept.threshold.is_some() {
                    state.clear();
                    tracestate::set_threshold(&one.state, kept.threshold, &mut state);
                }
                span.trace_state = shown(&state);
                if kept.policy.is_some() {
                    let policy = Tell::Text(b"errors".to_vec());
                    span.attributes.push(pair("tailsampling.policy", &policy));
                }
                span
            })
            .collect()
    }

    /// What is encoded of the log records.
    pub fn logs(&self) -> Vec<LogRecord> {
        self.logs.clone()
    }
}

/// The flag of a span before the policies are asked.
fn outcome(parent: &Option<Known>, trace: TraceId, threshold: u64, decided: Decided) -> bool {
    match parent {
        Some(parent) if !parent.context.remote || decided.honours_parent => {
            parent.context.flags & 1 == 1
        }
        _ => trace.randomness() >= threshold,
    }
}
