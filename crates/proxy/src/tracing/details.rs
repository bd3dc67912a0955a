//! Evaluates the values of lines: attributes, events, links, status, exceptions, baggage, and log
//! records.

use net::Now;
use telemetry::Trace;
use telemetry::context::SpanContext;
use telemetry::program::{Evaluated, EventLines, Exception, LogLine, Program, SpanLine, TextId};
use telemetry::record::{Log, Owner, SpanIndex, Text};

use super::values::Values;

/// Evaluates everything of a span that needs samples. Returns the key of an attribute that failed.
/// `span` is ignored where the values are only recorded on a tape.
pub(super) fn details<V: Values>(
    program: &Program,
    trace: &mut Trace,
    line: &SpanLine,
    span: SpanIndex,
    (values, at): (&mut V, Now),
) -> Option<TextId> {
    let mut fault = None;
    if !V::APPLIES || trace.span(span).is_recorded {
        if V::APPLIES {
            fault = link(trace, line, span, values);
        }
        for list in &line.attributes {
            let Some(value) = values.matching(&mut trace.arena, list) else {
                continue;
            };
            match values.value(value, &mut trace.arena) {
                Some(value) if V::APPLIES => trace.attribute(Owner::Span(span), list.key, value),
                Some(_) => {}
                None => fault = Some(list.key),
            }
        }
        for event in &line.events {
            fault = span_event(trace, event, span, (values, at)).or(fault);
        }
        if let Some(list) = &line.status
            && let Some(status) = values.matching(&mut trace.arena, list)
            && let Some(code) = status.code
        {
            let text = status.description.as_ref();
            let text = text.map_or(Text::EMPTY, |text| values.text(text, &mut trace.arena));
            if V::APPLIES {
                let span = trace.span_mut(span);
                (span.status, span.status_text) = (code, text);
            }
        }
        for exception in &line.exceptions {
            fault = add_exception(program, trace, exception, span, (values, at)).or(fault);
        }
    }
    baggage(trace, line, span, values);
    fault
}

fn baggage<V: Values>(trace: &mut Trace, line: &SpanLine, span: SpanIndex, values: &mut V) {
    for list in &line.baggage {
        let Some(value) = values.matching(&mut trace.arena, list) else {
            continue;
        };
        let text = values.text(value, &mut trace.arena);
        // A pair whose sample has no value is omitted.
        if text.is_empty() || !V::APPLIES {
            continue;
        }
        let old = trace.span(span).baggage;
        let new = trace.arena.edit([old, text], |[old, value], out| {
            telemetry::propagation::baggage::set(old, &list.key, value, out);
        });
        trace.span_mut(span).baggage = new;
    }
}

/// Adds the links of a line that evaluates nothing.
pub(super) fn link_all(trace: &mut Trace, line: &SpanLine, span: SpanIndex) {
    for link in &line.links {
        for to in &link.to {
            if let Some(to) = trace.resolve(*to) {
                trace.link(span, to.context, to.state);
            }
        }
    }
}

fn link<V: Values>(
    trace: &mut Trace,
    line: &SpanLine,
    span: SpanIndex,
    values: &mut V,
) -> Option<TextId> {
    let mut fault = None;
    for link in &line.links {
        if !values.holds(&mut trace.arena, link.condition.as_ref()) {
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
                match values.value(value, &mut trace.arena) {
                    Some(value) => trace.attribute(Owner::Link(place), *key, value),
                    None => fault = Some(*key),
                }
            }
        }
    }
    fault
}

/// Begins an event if spans are changed.
fn begin_event<V: Values>(
    trace: &mut Trace,
    span: SpanIndex,
    name: TextId,
    wall_ns: u64,
) -> Option<u32> {
    if V::APPLIES {
        trace.event(span, name, wall_ns)
    } else {
        None
    }
}

fn span_event<V: Values>(
    trace: &mut Trace,
    event: &EventLines,
    span: SpanIndex,
    (values, at): (&mut V, Now),
) -> Option<TextId> {
    let (mut begun, mut place) = (false, None);
    let mut fault = None;
    for list in &event.attributes {
        let Some(value) = values.matching(&mut trace.arena, list) else {
            continue;
        };
        let Some(value) = values.value(value, &mut trace.arena) else {
            fault = Some(list.key);
            continue;
        };
        if !begun {
            let wall_ns = values.moment(&mut trace.arena, event.time.as_ref());
            place = begin_event::<V>(trace, span, event.name, wall_ns.unwrap_or(at.wall_ns));
            begun = true;
        }
        if let Some(place) = place {
            trace.attribute(Owner::Event(place), list.key, value);
        }
    }
    fault
}

fn add_exception<V: Values>(
    program: &Program,
    trace: &mut Trace,
    exception: &Exception,
    span: SpanIndex,
    (values, at): (&mut V, Now),
) -> Option<TextId> {
    if !values.holds(&mut trace.arena, exception.condition.as_ref()) {
        return None;
    }
    let [name, kind_key, message_key] = program.exception_texts;
    let place = begin_event::<V>(trace, span, name, at.wall_ns);
    let put = |trace: &mut Trace, key: TextId, value: Evaluated| {
        if let Some(place) = place {
            trace.attribute(Owner::Event(place), key, value);
        }
    };
    let kind = values.text(&exception.kind, &mut trace.arena);
    put(trace, kind_key, Evaluated::Text(kind));
    if let Some(message) = &exception.message {
        let message = values.text(message, &mut trace.arena);
        put(trace, message_key, Evaluated::Text(message));
    }
    let mut fault = None;
    for (key, value) in &exception.attributes {
        match values.value(value, &mut trace.arena) {
            Some(value) => put(trace, *key, value),
            None => fault = Some(*key),
        }
    }
    fault
}

/// The result of a log record.
pub(super) struct Logged {
    /// The key of an attribute that failed.
    pub fault: Option<TextId>,
}

/// Creates a log record if its condition holds.
pub(super) fn log<V: Values>(
    trace: &mut Trace,
    line: &LogLine,
    place: (u32, u32),
    (values, at): (&mut V, Now),
) -> Option<Logged> {
    if !values.holds(&mut trace.arena, line.condition.as_ref()) {
        return None;
    }
    let mut fault = None;
    let body = values.text(&line.body, &mut trace.arena);
    let wall_ns = values.moment(&mut trace.arena, line.time.as_ref());
    let wall_ns = wall_ns.unwrap_or(at.wall_ns);
    let log = V::APPLIES.then(|| {
        let span = line.span.and_then(|span| trace.open_span(span));
        let span = span.map_or_else(SpanContext::default, |span| trace.span(span).context);
        trace.log(Log::new(place, wall_ns, at.wall_ns, span, body))
    });
    for (key, value) in &line.attributes {
        match (values.value(value, &mut trace.arena), log.flatten()) {
            (Some(value), Some(log)) => trace.attribute(Owner::Log(log), *key, value),
            (Some(_), None) => {}
            (None, _) => fault = Some(*key),
        }
    }
    Some(Logged { fault })
}
