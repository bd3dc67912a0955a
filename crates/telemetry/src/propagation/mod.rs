//! Propagation of contexts in the fields of a message: W3C Trace Context, B3 and Jaeger, each
//! together with W3C Baggage.
//!
//! This module does no I/O: [`extract`] requests the lines of a field, [`inject`] passes the fields
//! to be written, and both name fields by [`Field`], so that a caller can look up its own names
//! once (with a prefix, or as variables).

pub mod b3;
pub mod baggage;
pub mod jaeger;
pub mod traceparent;

use crate::SpanContext;
use otlp::tracestate::{self, trim};

/// The fields that carry a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `traceparent` and `tracestate`.
    #[default]
    W3c,
    /// `b3`.
    B3Single,
    /// `x-b3-traceid` and related fields.
    B3Multi,
    /// `uber-trace-id`.
    Jaeger,
}

/// A field of one of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `traceparent`.
    Traceparent,
    /// `tracestate`.
    Tracestate,
    /// `baggage`.
    Baggage,
    /// `b3`.
    B3,
    /// `x-b3-traceid`.
    B3TraceId,
    /// `x-b3-spanid`.
    B3SpanId,
    /// `x-b3-sampled`.
    B3Sampled,
    /// `x-b3-flags`.
    B3Flags,
    /// `uber-trace-id`.
    UberTraceId,
}

impl Field {
    /// All fields, in the order of their declaration: `Field::ALL[field as usize]` is `field`.
    pub const ALL: [Field; 9] = [
        Field::Traceparent,
        Field::Tracestate,
        Field::Baggage,
        Field::B3,
        Field::B3TraceId,
        Field::B3SpanId,
        Field::B3Sampled,
        Field::B3Flags,
        Field::UberTraceId,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Field::Traceparent => "traceparent",
            Field::Tracestate => "tracestate",
            Field::Baggage => "baggage",
            Field::B3 => "b3",
            Field::B3TraceId => "x-b3-traceid",
            Field::B3SpanId => "x-b3-spanid",
            Field::B3Sampled => "x-b3-sampled",
            Field::B3Flags => "x-b3-flags",
            Field::UberTraceId => "uber-trace-id",
        }
    }
}

impl Format {
    /// The fields that [`extract`] reads. Both forms of B3 read both (OpenTelemetry: B3 extract).
    #[must_use]
    pub const fn reads(self) -> &'static [Field] {
        use Field::*;
        match self {
            Format::W3c => &[Traceparent, Tracestate, Baggage],
            Format::B3Single | Format::B3Multi => {
                &[B3, B3TraceId, B3SpanId, B3Sampled, B3Flags, Baggage]
            }
            Format::Jaeger => &[UberTraceId, Baggage],
        }
    }

    /// The fields that [`inject`] may write; a caller that forwards a message removes them first.
    #[must_use]
    pub const fn writes(self) -> &'static [Field] {
        use Field::*;
        match self {
            Format::W3c => &[Traceparent, Tracestate, Baggage],
            Format::B3Single => &[B3, Baggage],
            Format::B3Multi => &[B3TraceId, B3SpanId, B3Sampled, Baggage],
            Format::Jaeger => &[UberTraceId, Baggage],
        }
    }
}

/// The sender's decision about recording the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// No decision: the receiver decides (only B3 can express this).
    #[default]
    Deferred,
    /// Do not record.
    Deny,
    /// Record.
    Accept,
    /// Record, whatever samplers say.
    Debug,
}

/// The context of a received message. A decision may come without a span (B3); it then applies to
/// the trace that begins here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// The sender's span; its sampled flag is that of [`Incoming::sampling`].
    pub context: Option<SpanContext>,
    /// The sender's decision.
    pub sampling: Sampling,
}

impl From<Option<SpanContext>> for Incoming {
    fn from(context: Option<SpanContext>) -> Incoming {
        let sampling = match context {
            None => Sampling::Deferred,
            Some(context) if context.is_sampled() => Sampling::Accept,
            Some(_) => Sampling::Deny,
        };
        Incoming { context, sampling }
    }
}

/// Reads the context of a message. `lines` is called for each of [`Format::reads`] and passes every
/// line of that field, in order. The well-formed parts of `tracestate` and `baggage` are appended
/// to the arguments of these names.
pub fn extract(
    format: Format,
    mut lines: impl FnMut(Field, &mut dyn FnMut(&[u8])),
    tracestate: &mut Vec<u8>,
    baggage: &mut Vec<u8>,
) -> Incoming {
    let (start, mut count) = (baggage.len(), 0);
    lines(Field::Baggage, &mut |line| {
        baggage::append(line, start, &mut count, baggage);
    });
    match format {
        Format::W3c => {
            let context = only(&mut lines, Field::Traceparent, traceparent::parse).flatten();
            // `tracestate` without a valid parent is ignored (W3C Trace Context, processing model).
            if context.is_some() {
                let mut reader = tracestate::Reader::new(tracestate);
                lines(Field::Tracestate, &mut |line| reader.line(line));
                reader.end();
            }
            context.into()
        }
        Format::B3Single | Format::B3Multi => extract_b3(&mut lines),
        Format::Jaeger => only(&mut lines, Field::UberTraceId, jaeger::parse)
            .flatten()
            .into(),
    }
}

/// A valid single field takes precedence over the separate ones (OpenTelemetry: B3 extract).
fn extract_b3(lines: &mut impl FnMut(Field, &mut dyn FnMut(&[u8]))) -> Incoming {
    let single = only(lines, Field::B3, b3::parse).unwrap_or_default();
    if single != Incoming::default() {
        return single;
    }
    // The longest valid value of these fields.
    let mut values = [[0; 32]; 4];
    let fields = [
        Field::B3TraceId,
        Field::B3SpanId,
        Field::B3Sampled,
        Field::B3Flags,
    ];
    let mut parts: [Option<&[u8]>; 4] = [None; 4];
    for ((field, value), part) in fields.into_iter().zip(&mut values).zip(&mut parts) {
        let len = only(lines, field, |line| {
            let line = trim(line);
            value.get_mut(..line.len())?.copy_from_slice(line);
            Some(line.len())
        });
        *part = len.flatten().map(|len| &value[..len]);
    }
    b3::parse_multi(parts[0], parts[1], parts[2], parts[3])
}

/// Applies `read` to the only line of a field; the default if there are several (two parents are
/// invalid).
fn only<T>(
    lines: &mut impl FnMut(Field, &mut dyn FnMut(&[u8])),
    field: Field,
    mut read: impl FnMut(&[u8]) -> T,
) -> Option<T> {
    let (mut found, mut count) = (None, 0_usize);
    lines(field, &mut |line| {
        count += 1;
        if count == 1 {
            found = Some(read(line));
        }
    });
    found.filter(|_| count == 1)
}

/// Passes the fields that carry a valid context, its state and its baggage; `tracestate` and
/// `baggage` are omitted if they are empty or the format does not carry them.
pub fn inject(
    format: Format,
    context: &SpanContext,
    tracestate: &[u8],
    baggage: &[u8],
    mut put: impl FnMut(Field, &[u8]),
) {
    match format {
        Format::W3c => {
            put(Field::Traceparent, &traceparent::write(context));
            if !tracestate.is_empty() {
                put(Field::Tracestate, tracestate);
            }
        }
        Format::B3Single => put(Field::B3, &b3::write(context)),
        Format::B3Multi => {
            let one = b3::write(context);
            put(Field::B3TraceId, &one[..32]);
            put(Field::B3SpanId, &one[33..49]);
            put(Field::B3Sampled, &one[50..]);
        }
        Format::Jaeger => put(Field::UberTraceId, &jaeger::write(context)),
    }
    if !baggage.is_empty() {
        put(Field::Baggage, baggage);
    }
}

#[cfg(test)]
mod tests;
