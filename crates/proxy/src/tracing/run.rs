//! One run of a scope, in HAProxy's order.

use net::{Driver, Now};
use sample::Scope;
use telemetry::context::SpanContext;
use telemetry::program::{
    Direction, Evaluated, EventLines, Finish, LogLine, Program, SpanLine, TextId, Time,
};
use telemetry::record::{Arena, Log, Owner, SpanIndex, Text, key_value};

use super::Attached;
use super::fault::Cause;
use crate::engine::{Core, Cx};
use crate::stream::Stream;

/// The moment and the side of a run.
pub(super) type Moment = (Direction, Now);

impl Core {
    pub(super) fn trace_scope<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        scope: u32,
        moment: Moment,
    ) {
        if attached.stopped {
            return;
        }
        let program = &cx.running.config.otel[attached.filter].program;
        let number = scope;
        let scope = &program.scopes[scope as usize];
        if let Some(condition) = &scope.condition
            && !self.holds(cx, stream, condition)
        {
            return;
        }
        if !scope.does_more {
            for line in &scope.spans {
                self.trace_span(cx, stream, attached, line, moment);
            }
            if !attached.stopped {
                self.trace_finish(cx, stream, attached, &scope.finish, moment);
            }
            return;
        }
        let (direction, at) = moment;
        for extract in &scope.extracts {
            if attached.trace.context(extract.context).is_none() {
                self.extract(cx, stream, attached, extract, direction);
            }
        }
        if program.require_context && !attached.trace.has_valid_context() {
            // A scope that looked for one and found none: nobody upstream follows this stream.
            if !scope.extracts.is_empty() {
                attached.stopped = true;
                self.count_stream(cx, attached.filter, |streams| &mut streams.stopped);
            }
            return;
        }
        for list in &scope.set_vars {
            let line = self.with_scope(cx, stream, true, |facts| list.matching(facts));
            if let Some(assignment) = line.flatten() {
                self.assign(cx, stream, assignment, None);
            }
        }
        for line in &scope.spans {
            self.trace_span(cx, stream, attached, line, moment);
            if attached.stopped {
                return;
            }
        }
        for list in &scope.set_var_ctx {
            self.set_var_ctx(cx, stream, attached, list);
        }
        if !scope.updates.is_empty() {
            self.trace_updates(cx, stream, attached, &scope.updates);
        }
        if !scope.logs.is_empty() {
            self.with_scope(cx, stream, true, |facts| {
                let least = cx.running.tracing.filters[attached.filter]
                    .export
                    .severity_min;
                for (place, line) in scope.logs.iter().enumerate() {
                    if line.severity >= least {
                        log(attached, facts, line, (number, place as u32), at);
                    }
                }
            });
        }
        for list in &scope.unset_vars {
            let holds = self.with_scope(cx, stream, true, |facts| list.matching(facts).is_some());
            if holds == Some(true) {
                self.change(cx, stream, list.key, Some(sample::vars::Change::Unset));
            }
        }
        self.trace_finish(cx, stream, attached, &scope.finish, moment);
        let stops = scope.stop.iter().any(|condition| {
            let condition = condition.as_ref();
            condition.is_none_or(|condition| self.holds(cx, stream, condition))
        });
        if stops {
            attached.trace.finish_where(None, at);
            let all = Finish {
                all: true,
                ..Finish::default()
            };
            self.finish_contexts(cx, stream, attached, &all, direction);
            attached.stopped = true;
            self.count_stream(cx, attached.filter, |streams| &mut streams.stopped);
        }
    }

    fn trace_span<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        line: &SpanLine,
        (direction, at): Moment,
    ) {
        let trace = &mut attached.trace;
        let span = match trace.open_span(line.name) {
            Some(span) => span,
            None => {
                let parent = line.parent.map(|of| trace.resolve(of));
                if matches!(parent, Some(None)) {
                    let cause = Cause::NoParent {
                        span: line.name,
                        parent: line.parent.unwrap_or_default(),
                    };
                    return self.trace_fault(cx, stream, attached, cause);
                }
                let head = cx.running.tracing.filters[attached.filter].head();
                let ids = &mut self.tracing.ids;
                let started = trace.start_span(
                    line.name,
                    line.kind,
                    parent.flatten(),
                    direction,
                    at,
                    (ids, head),
                );
                match started {
                    Some(span) => span,
                    None => return,
                }
            }
        };
        if !line.evaluates {
            link_all(attached, line, span);
        } else {
            let program = &cx.running.config.otel[attached.filter].program;
            let fault = self.with_scope(cx, stream, true, |facts| {
                details(program, attached, line, span, (facts, at))
            });
            if let Some(key) = fault.flatten() {
                let cause = Cause::Attribute {
                    span: line.name,
                    key,
                };
                self.trace_fault(cx, stream, attached, cause);
            }
        }
        if let Some(inject) = &line.inject
            && !attached.stopped
        {
            self.inject(cx, stream, attached, inject, (span, direction));
        }
    }

    fn trace_updates<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        attached: &mut Attached,
        updates: &[telemetry::program::Update],
    ) {
        let program = &cx.running.config.otel[attached.filter].program;
        let filter = attached.filter;
        let now = cx.now();
        let mut tables = std::mem::take(&mut self.tracing.tables);
        let mut encoded = std::mem::take(&mut self.text);
        let mut faults: Vec<Cause> = Vec::new();
        self.with_scope(cx, stream, true, |facts| {
            for update in updates {
                let condition = update.condition.as_ref();
                if condition.is_some_and(|condition| !condition.matches(facts)) {
                    continue;
                }
                encoded.clear();
                let arena = &mut attached.trace.arena;
                let failed = update.attributes.iter().find(|(key, value)| {
                    let value = value.eval(facts, arena);
                    value
                        .map(|value| {
                            let name = &program.texts[usize::from(*key)];
                            key_value(&mut encoded, 1, name, (value, arena));
                        })
                        .is_none()
                });
                let instrument = update.instrument;
                let value = telemetry::program::int(&update.value, facts);
                match (value, failed) {
                    (Some(value), None) => {
                        tables.record(filter, instrument, value, &encoded, now);
                    }
                    (None, _) => faults.push(Cause::NoNumber { instrument }),
                    (_, Some((key, _))) => faults.push(Cause::MeasuredAttribute {
                        instrument,
                        key: *key,
                    }),
                }
            }
        });
        encoded.clear();
        self.text = encoded;
        self.tracing.tables = tables;
        for cause in faults {
            self.trace_fault(cx, stream, attached, cause);
        }
    }

    fn trace_finish<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        finish: &Finish,
        (direction, at): Moment,
    ) {
        let trace = &mut attached.trace;
        for span in &finish.spans {
            trace.finish(*span, at);
        }
        for context in &finish.contexts {
            self.finish_context(cx, stream, attached, *context, direction);
        }
        if !finish.is_wide() {
            return;
        }
        let trace = &mut attached.trace;
        if finish.all {
            trace.finish_where(None, at);
        }
        if finish.requests {
            trace.finish_where(Some(Direction::Request), at);
        }
        if finish.responses {
            trace.finish_where(Some(Direction::Response), at);
        }
        self.finish_contexts(cx, stream, attached, finish, direction);
    }
}

/// Everything of a span that samples make; the key of something that failed.
fn details(
    program: &Program,
    attached: &mut Attached,
    line: &SpanLine,
    span: SpanIndex,
    (facts, at): (&Scope<'_>, Now),
) -> Option<TextId> {
    let mut fault = None;
    let trace = &mut attached.trace;
    if trace.span(span).is_recorded {
        link(attached, line, span, facts);
        let trace = &mut attached.trace;
        for list in &line.attributes {
            let Some(value) = list.matching(facts) else {
                continue;
            };
            match value.eval(facts, &mut trace.arena) {
                Some(value) => trace.attribute(Owner::Span(span), list.key, value),
                None => fault = Some(list.key),
            }
        }
        for event in &line.events {
            fault = span_event(attached, event, span, (facts, at)).or(fault);
        }
        if let Some(status) = line.status.as_ref().and_then(|list| list.matching(facts))
            && let Some(code) = status.code
        {
            let trace = &mut attached.trace;
            let text = status.description.as_ref();
            let text = text.map_or(Text::EMPTY, |text| text.text(facts, &mut trace.arena));
            let span = trace.span_mut(span);
            (span.status, span.status_text) = (code, text);
        }
        for exception in &line.exceptions {
            fault = add_exception(program, attached, exception, span, (facts, at)).or(fault);
        }
    }
    baggage(attached, line, span, facts);
    fault
}

fn baggage(attached: &mut Attached, line: &SpanLine, span: SpanIndex, facts: &Scope<'_>) {
    let trace = &mut attached.trace;
    for list in &line.baggage {
        let Some(value) = list.matching(facts) else {
            continue;
        };
        let text = value.text(facts, &mut trace.arena);
        // A pair whose sample yields nothing is left out.
        if text.is_empty() {
            continue;
        }
        let old = trace.span(span).baggage;
        let new = trace.arena.edit([old, text], |[old, value], out| {
            telemetry::propagation::baggage::set(old, &list.key, value, out);
        });
        trace.span_mut(span).baggage = new;
    }
}

/// The links of a line that evaluates nothing.
fn link_all(attached: &mut Attached, line: &SpanLine, span: SpanIndex) {
    for link in &line.links {
        for to in &link.to {
            if let Some(to) = attached.trace.resolve(*to) {
                attached.trace.link(span, to.context, to.state);
            }
        }
    }
}

fn link(attached: &mut Attached, line: &SpanLine, span: SpanIndex, facts: &Scope<'_>) {
    let trace = &mut attached.trace;
    for link in &line.links {
        if link
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.matches(facts))
        {
            continue;
        }
        for to in &link.to {
            let Some(to) = trace.resolve(*to) else {
                continue;
            };
            let Some(place) = trace.link(span, to.context, to.state) else {
                continue;
            };
            for (key, value) in &link.attributes {
                if let Some(value) = value.eval(facts, &mut trace.arena) {
                    trace.attribute(Owner::Link(place), *key, value);
                }
            }
        }
    }
}

fn span_event(
    attached: &mut Attached,
    event: &EventLines,
    span: SpanIndex,
    (facts, at): (&Scope<'_>, Now),
) -> Option<TextId> {
    let trace = &mut attached.trace;
    let mut place = None;
    let mut fault = None;
    for list in &event.attributes {
        let Some(value) = list.matching(facts) else {
            continue;
        };
        let Some(value) = value.eval(facts, &mut trace.arena) else {
            fault = Some(list.key);
            continue;
        };
        if place.is_none() {
            let wall_ns = event.time.as_ref().and_then(|time| moment(time, facts));
            place = trace.event(span, event.name, wall_ns.unwrap_or(at.wall_ns));
        }
        if let Some(place) = place {
            trace.attribute(Owner::Event(place), list.key, value);
        }
    }
    fault
}

/// A moment that a sample tells, in nanoseconds since the UNIX epoch; none where it tells none.
fn moment(time: &Time, facts: &Scope<'_>) -> Option<u64> {
    let number = u64::try_from(time.value.int(facts)?).ok()?;
    number.checked_mul(time.unit_ns)
}

fn add_exception(
    program: &Program,
    attached: &mut Attached,
    exception: &telemetry::program::Exception,
    span: SpanIndex,
    (facts, at): (&Scope<'_>, Now),
) -> Option<TextId> {
    let condition = exception.condition.as_ref();
    if condition.is_some_and(|condition| !condition.matches(facts)) {
        return None;
    }
    let trace = &mut attached.trace;
    let [name, kind_key, message_key] = program.exception_texts;
    let place = trace.event(span, name, at.wall_ns)?;
    let owner = Owner::Event(place);
    let text = |value: &telemetry::program::Value, arena: &mut Arena| {
        Evaluated::Text(value.text(facts, arena))
    };
    let kind = text(&exception.kind, &mut trace.arena);
    trace.attribute(owner, kind_key, kind);
    if let Some(message) = &exception.message {
        let message = text(message, &mut trace.arena);
        trace.attribute(owner, message_key, message);
    }
    let mut fault = None;
    for (key, value) in &exception.attributes {
        match value.eval(facts, &mut trace.arena) {
            Some(value) => trace.attribute(owner, *key, value),
            None => fault = Some(*key),
        }
    }
    fault
}

fn log(attached: &mut Attached, facts: &Scope<'_>, line: &LogLine, place: (u32, u32), at: Now) {
    let condition = line.condition.as_ref();
    if condition.is_some_and(|condition| !condition.matches(facts)) {
        return;
    }
    let trace = &mut attached.trace;
    let body = line.body.text(facts, &mut trace.arena);
    let wall_ns = line.time.as_ref().and_then(|time| moment(time, facts));
    let span = line.span.and_then(|span| trace.open_span(span));
    let span = span.map_or_else(SpanContext::default, |span| trace.span(span).context);
    let wall_ns = wall_ns.unwrap_or(at.wall_ns);
    let Some(log) = trace.log(Log::new(place, wall_ns, at.wall_ns, span, body)) else {
        return;
    };
    for (key, value) in &line.attributes {
        if let Some(value) = value.eval(facts, &mut trace.arena) {
            trace.attribute(Owner::Log(log), *key, value);
        }
    }
}
