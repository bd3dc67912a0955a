//! Extracts and injects contexts: fields of messages, and variables.

use http::Head;
use otlp::tracestate;
use sample::vars::Change;
use sample::{Bytes, Txn, Value, VarRef};
use syntax::hex;
use telemetry::program::{
    Carrier, ContextField, ContextSlot, Direction, Extract, Field as OfContext, Finish, FirstMatch,
};
use telemetry::propagation::{self, Field, Format, baggage, traceparent};
use telemetry::record::{Extracted, Span, SpanIndex, Text};

use super::worker::{Came, Worker};
use crate::logging::Scene;
use crate::stream::{Attached, Stream};

impl Stream {
    /// The message of a direction.
    fn head_of_side(&mut self, direction: Direction) -> &mut Head {
        match direction {
            Direction::Response => &mut self.response,
            Direction::Request | Direction::Neither => &mut self.request,
        }
    }
}

impl Worker {
    pub(super) fn extract(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        extract: &Extract,
        direction: Direction,
    ) {
        let carrier = &extract.from;
        let found = match &carrier.vars {
            Some(vars) => {
                if stream.txn.assigned.any() {
                    scene.eval.settle_vars(stream);
                }
                from_vars(attached, &stream.txn, vars)
            }
            None => {
                let head = match direction {
                    Direction::Response => &stream.response,
                    Direction::Request | Direction::Neither => &stream.request,
                };
                from_headers(attached, &mut self.came, head, carrier)
            }
        };
        if let Some(mut found) = found {
            // A context that this stream itself injected is not remote.
            let own = |span: &Span| span.context.span_id == found.context.span_id;
            found.context.remote = !attached.trace.spans().iter().rev().any(own);
            found.direction = direction;
            let filter = &scene.eval.runtime_config.tracing.filters[attached.filter];
            if let Some(slot) = filter.asked_context(extract.context) {
                let valid = found.context.is_valid();
                stream.txn.contexts.extracted(slot, valid);
            }
            attached.trace.extracted(extract.context, found);
        }
    }

    pub(super) fn inject(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        carrier: &Carrier,
        (span, direction): (SpanIndex, Direction),
    ) {
        let traceparent = traceparent::write(&attached.trace.span(span).context);
        attached.trace.injected(span, traceparent);
        let trace = &attached.trace;
        let span = trace.span(span);
        let state = trace.arena.get(span.state);
        let baggage = trace.arena.get(span.baggage);
        let parts: [&[u8]; 3] = [&traceparent, state, baggage];
        if let Some(vars) = &carrier.vars {
            let changes = std::array::from_fn(|place| (vars[place], parts[place]));
            scene.eval.change_txn_vars(stream, changes);
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

    pub(super) fn finish_context(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        context: ContextSlot,
        direction: Direction,
    ) {
        if !attached.trace.forget_context(context) {
            return;
        }
        let filter = &scene.eval.runtime_config.tracing.filters[attached.filter];
        if let Some(slot) = filter.asked_context(context) {
            stream.txn.contexts.forget(slot);
        }
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let name = &program.contexts[usize::from(context)];
        if let Some(names) = &name.headers {
            let head = stream.head_of_side(direction);
            for name in names {
                head.remove_named(name);
            }
        }
        if let Some(vars) = &name.vars {
            scene
                .eval
                .change_txn_vars(stream, vars.map(|var| (var, &b""[..])));
        }
    }

    pub(super) fn finish_contexts(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        finish: &Finish,
        direction: Direction,
    ) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        for slot in 0..program.contexts.len() as ContextSlot {
            let Some(context) = attached.trace.context(slot) else {
                continue;
            };
            let meant = finish.all
                || (finish.requests && context.direction == Direction::Request)
                || (finish.responses && context.direction == Direction::Response);
            if meant {
                self.finish_context(scene, stream, attached, slot, direction);
            }
        }
    }

    /// `set-var-ctx`
    pub(super) fn set_var_ctx(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &Attached,
        list: &FirstMatch<VarRef, ContextField>,
    ) {
        let line = scene
            .eval
            .with_scope(stream, true, |facts| list.matching(facts));
        let Some(line) = line else { return };
        let Some(of) = attached.trace.resolve(line.of) else {
            return;
        };
        let arena = &attached.trace.arena;
        let mut out = Bytes::buffer();
        let context = &of.context;
        match &line.field {
            OfContext::TraceId => hex::push(out.as_vec(), &context.trace_id.0),
            OfContext::SpanId => hex::push(out.as_vec(), &context.span_id.0),
            OfContext::TraceFlags => hex::push(out.as_vec(), &[context.flags]),
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
        scene.eval.change(stream, list.key, Change::Set(value));
    }

    /// `sess.otel.uuid`: a random identifier of the stream (RFC 9562 §5.4).
    pub(super) fn set_uuid(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, var: VarRef) {
        let mut bytes = self.ids.trace_id().0;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut out = Bytes::buffer();
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            hex::push(out.as_vec(), &[*byte]);
        }
        let value = Value::Str(Bytes::Owned(out));
        scene.eval.change(stream, var, Change::Set(value));
    }
}

/// Reads a context; none if no field is present. `lines` is as in [`propagation::extract`].
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

/// The index of a W3C field.
fn place(field: Field) -> Option<usize> {
    match field {
        Field::Traceparent => Some(0),
        Field::Tracestate => Some(1),
        Field::Baggage => Some(2),
        _ => None,
    }
}

fn from_vars(attached: &mut Attached, txn: &Txn, vars: &[VarRef; 3]) -> Option<Extracted> {
    let text = |var: &VarRef| match txn.txn_vars.get(var.slot) {
        Some(Value::Str(text)) => Some(&text[..]),
        _ => None,
    };
    read_w3c(attached, [text(&vars[0]), text(&vars[1]), text(&vars[2])])
}

/// Reads a context as [`read`] does, where no W3C field occurs more than once.
fn read_w3c(attached: &mut Attached, fields: [Option<&[u8]>; 3]) -> Option<Extracted> {
    let [parent, state, carried] = fields;
    if let Some(parent) = parent {
        let (state, carried) = (state.unwrap_or_default(), carried.unwrap_or_default());
        let own = attached.trace.own(parent, state, carried);
        if own.is_some() {
            return own;
        }
    }
    if fields.iter().all(Option::is_none) {
        return None;
    }
    let arena = &mut attached.trace.arena;
    let context = parent.and_then(traceparent::parse).unwrap_or_default();
    let state = match state.filter(|_| context.is_valid()) {
        // A malformed `tracestate` is discarded completely.
        Some(state) => arena.write(|out| {
            tracestate::read([state], out);
        }),
        None => Text::EMPTY,
    };
    let baggage = match carried {
        Some(carried) => arena.write(|out| baggage::read([carried], out)),
        None => Text::EMPTY,
    };
    Some(Extracted {
        context,
        state,
        baggage,
        direction: Direction::Neither,
    })
}

fn from_headers(
    attached: &mut Attached,
    came: &mut Came,
    head: &Head,
    carrier: &Carrier,
) -> Option<Extracted> {
    if let Some(names) = &carrier.headers {
        let first = |place: usize| head.next_named(&names[place], 0);
        let fields = [first(0), first(1), first(2)];
        let again = |place: usize| {
            let (at, _) = fields[place]?;
            head.next_named(&names[place], at + 1)
        };
        let repeats = (0..fields.len()).any(|place| again(place).is_some());
        let found = if repeats {
            read(attached, came, Format::W3c, |field, take| {
                let Some(place) = place(field) else { return };
                let mut at = 0;
                while let Some((found, value)) = head.next_named(&names[place], at) {
                    take(value);
                    at = found + 1;
                }
            })
        } else {
            read_w3c(attached, fields.map(|field| Some(field?.1)))
        };
        if found.is_some() {
            return found;
        }
    }
    let mut formats = carrier.formats.iter();
    formats.find_map(|format| from_format(attached, came, head, *format))
}

/// Reads a context from the fields of a message in this format.
pub(super) fn from_format(
    attached: &mut Attached,
    came: &mut Came,
    head: &Head,
    format: Format,
) -> Option<Extracted> {
    read(attached, came, format, |field, take| {
        for (_, value) in head.find(field.name().as_bytes()) {
            take(value);
        }
    })
}
