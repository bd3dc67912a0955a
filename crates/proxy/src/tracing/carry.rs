//! Contexts in and out: fields of messages and variables.

use http::Head;
use net::Driver;
use sample::vars::Change;
use sample::{Bytes, Scope, Value, VarRef};
use telemetry::program::{
    Carrier, ContextField, ContextSlot, Direction, Extract, Field as OfContext, Finish, FirstMatch,
};
use telemetry::propagation::{self, Field, Format, baggage, traceparent, tracestate};
use telemetry::record::{Extracted, SpanIndex};

use super::Attached;
use super::worker::Came;
use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Stream {
    /// The message of a side.
    fn head_of_side(&mut self, direction: Direction) -> &mut Head {
        match direction {
            Direction::Response => &mut self.response,
            Direction::Request | Direction::Neither => &mut self.request,
        }
    }
}

impl Core {
    pub(super) fn extract<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        attached: &mut Attached,
        extract: &Extract,
        direction: Direction,
    ) {
        let carrier = &extract.from;
        let mut came = std::mem::take(&mut self.tracing.came);
        let found = match &carrier.vars {
            Some(vars) => self
                .with_scope(cx, stream, true, |facts| {
                    from_vars(attached, &mut came, facts, vars)
                })
                .flatten(),
            None => {
                let head = match direction {
                    Direction::Response => &stream.response,
                    Direction::Request | Direction::Neither => &stream.request,
                };
                from_headers(attached, &mut came, head, carrier)
            }
        };
        self.tracing.came = came;
        if let Some(mut found) = found {
            found.direction = direction;
            attached.trace.extracted(extract.context, found);
        }
    }

    pub(super) fn inject<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &Attached,
        carrier: &Carrier,
        (span, direction): (SpanIndex, Direction),
    ) {
        let trace = &attached.trace;
        let span = trace.span(span);
        let traceparent = traceparent::write(&span.context);
        let state = trace.arena.get(span.state);
        let baggage = trace.arena.get(span.baggage);
        let parts: [&[u8]; 3] = [&traceparent, state, baggage];
        if let Some(vars) = &carrier.vars {
            for (var, text) in vars.iter().zip(parts) {
                let change = match text {
                    [] => Change::Unset,
                    text => Change::Set(owned(text)),
                };
                self.change(cx, stream, *var, Some(change));
            }
        }
        let head = stream.head_of_side(direction);
        if let Some(names) = &carrier.headers {
            for (name, text) in names.iter().zip(parts) {
                head.remove_named(name);
                if !text.is_empty() {
                    head.append_named(name, text);
                }
            }
        }
        for format in &carrier.formats {
            for field in format.writes() {
                head.remove_all(field.name().as_bytes());
            }
            propagation::inject(*format, &span.context, state, baggage, |field, value| {
                head.append(field.name().as_bytes(), value);
            });
        }
    }

    pub(super) fn finish_context<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        context: ContextSlot,
        direction: Direction,
    ) {
        if !attached.trace.forget_context(context) {
            return;
        }
        let program = &cx.running.config.otel[attached.filter].program;
        let name = &program.contexts[usize::from(context)];
        if let Some(prefix) = &name.header_prefix {
            let prefix = prefix.as_bytes();
            let head = stream.head_of_side(direction);
            head.remove_where(|name| name.starts_with(prefix));
        }
        for var in name.vars.iter().flatten() {
            self.change(cx, stream, *var, Some(Change::Unset));
        }
    }

    pub(super) fn finish_contexts<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        finish: &Finish,
        direction: Direction,
    ) {
        let program = &cx.running.config.otel[attached.filter].program;
        for slot in 0..program.contexts.len() as ContextSlot {
            let Some(context) = attached.trace.context(slot) else {
                continue;
            };
            let meant = finish.all
                || (finish.requests && context.direction == Direction::Request)
                || (finish.responses && context.direction == Direction::Response);
            if meant {
                self.finish_context(cx, stream, attached, slot, direction);
            }
        }
    }

    /// `set-var-ctx`
    pub(super) fn set_var_ctx<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &Attached,
        list: &FirstMatch<VarRef, ContextField>,
    ) {
        let line = self.with_scope(cx, stream, true, |facts| list.matching(facts));
        let Some(line) = line.flatten() else { return };
        let Some(of) = attached.trace.resolve(line.of) else {
            return;
        };
        let arena = &attached.trace.arena;
        let mut out = Bytes::buffer();
        let context = &of.context;
        match &line.field {
            OfContext::TraceId => hex(&context.trace_id.0, out.as_vec()),
            OfContext::SpanId => hex(&context.span_id.0, out.as_vec()),
            OfContext::TraceFlags => hex(&[context.flags], out.as_vec()),
            OfContext::Traceparent => out.extend(&traceparent::write(context)),
            OfContext::Sampled => out.push(b'0' + u8::from(context.is_sampled())),
            OfContext::Valid => out.push(b'0' + u8::from(context.is_valid())),
            OfContext::Remote => out.push(b'0' + u8::from(context.remote)),
            OfContext::Baggage(None) => out.extend(arena.get(of.baggage)),
            OfContext::Baggage(Some(key)) => {
                baggage::get(arena.get(of.baggage), key, out.as_vec());
            }
            OfContext::Tracestate(None) => out.extend(arena.get(of.state)),
            OfContext::Tracestate(Some(key)) => {
                if let Some(value) = tracestate::get(arena.get(of.state), key) {
                    out.extend(value);
                }
            }
        }
        let value = Value::Str(Bytes::Owned(out));
        self.change(cx, stream, list.key, Some(Change::Set(value)));
    }

    /// `sess.otel.uuid`: a random identifier of the stream (RFC 9562 §5.4).
    pub(super) fn set_uuid<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream, var: VarRef) {
        let mut bytes = self.tracing.ids.trace_id().0;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut out = Bytes::buffer();
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            hex(&[*byte], out.as_vec());
        }
        let value = Value::Str(Bytes::Owned(out));
        self.change(cx, stream, var, Some(Change::Set(value)));
    }
}

fn owned(text: &[u8]) -> Value<'static> {
    let mut buffer = Bytes::buffer();
    buffer.extend(text);
    Value::Str(Bytes::Owned(buffer))
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Reads a context; none where nothing came. `lines` is as in [`propagation::extract`].
fn read(
    attached: &mut Attached,
    came: &mut Came,
    format: Format,
    mut lines: impl FnMut(Field, &mut dyn FnMut(&[u8])),
) -> Option<Extracted> {
    came.state.clear();
    came.baggage.clear();
    let mut any = false;
    let mut heard = |field: Field, take: &mut dyn FnMut(&[u8])| {
        lines(field, &mut |line| {
            any = true;
            take(line);
        });
    };
    let Came { state, baggage } = came;
    let incoming = propagation::extract(format, &mut heard, state, baggage);
    if !any {
        return None;
    }
    let arena = &mut attached.trace.arena;
    Some(Extracted {
        context: incoming.context.unwrap_or_default(),
        state: arena.text(state),
        baggage: arena.text(baggage),
        direction: Direction::Neither,
    })
}

/// The place of a field among those of W3C.
fn place(field: Field) -> Option<usize> {
    match field {
        Field::Traceparent => Some(0),
        Field::Tracestate => Some(1),
        Field::Baggage => Some(2),
        _ => None,
    }
}

fn from_vars(
    attached: &mut Attached,
    came: &mut Came,
    facts: &Scope<'_>,
    vars: &[VarRef; 3],
) -> Option<Extracted> {
    let txn = facts.txn?;
    read(attached, came, Format::W3c, |field, take| {
        let Some(place) = place(field) else { return };
        if let Some(Value::Str(text)) = txn.txn_vars.get(vars[place].slot) {
            take(text);
        }
    })
}

fn from_headers(
    attached: &mut Attached,
    came: &mut Came,
    head: &Head,
    carrier: &Carrier,
) -> Option<Extracted> {
    if let Some(names) = &carrier.headers {
        let found = read(attached, came, Format::W3c, |field, take| {
            let Some(place) = place(field) else { return };
            let mut at = 0;
            while let Some((found, value)) = head.next_named(&names[place], at) {
                take(value);
                at = found + 1;
            }
        });
        if found.is_some() {
            return found;
        }
    }
    carrier.formats.iter().find_map(|format| {
        read(attached, came, *format, |field, take| {
            for (_, value) in head.find(field.name().as_bytes()) {
                take(value);
            }
        })
    })
}
