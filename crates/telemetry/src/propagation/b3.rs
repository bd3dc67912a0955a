//! B3 (the repository `openzipkin/b3-propagation`): a single field, or one field per value.

use super::{Incoming, Sampling};
use crate::context::SAMPLED;
use crate::{SpanContext, SpanId, TraceId};
use otlp::tracestate::trim;
use syntax::hex;

/// Size of the single field as written: both identifiers and the decision.
pub const BYTES: usize = 51;

/// Reads the single field: `trace-span`, `trace-span-decision`, `trace-span-decision-parent`, or a
/// decision alone. [`Incoming::default`] if it is malformed.
#[must_use]
pub fn parse(value: &[u8]) -> Incoming {
    try_parse(trim(value)).unwrap_or_default()
}

fn try_parse(value: &[u8]) -> Option<Incoming> {
    let mut parts = value.splitn(5, |byte| *byte == b'-');
    let first = parts.next()?;
    let Some(span) = parts.next() else {
        let sampling = decision(first)?;
        return Some(Incoming {
            context: None,
            sampling,
        });
    };
    let sampling = parts.next().map_or(Some(Sampling::Deferred), decision)?;
    let parent = parts.next().map_or(Some([0; 8]), hex::read_padded::<8>);
    if parent.is_none() || parts.next().is_some() {
        return None;
    }
    Some(incoming(first, span, sampling))
}

/// Reads the separate fields; the parent field is not used. `flags` is `1` for a debug trace, which
/// overrides `sampled`. If the identifiers are malformed, only the decision is used.
#[must_use]
pub fn parse_multi(
    trace: Option<&[u8]>,
    span: Option<&[u8]>,
    sampled: Option<&[u8]>,
    flags: Option<&[u8]>,
) -> Incoming {
    let sampling = if flags.is_some_and(|flags| trim(flags) == b"1") {
        Sampling::Debug
    } else {
        let decision = sampled.and_then(|sampled| decision(trim(sampled)));
        decision.unwrap_or_default()
    };
    match (trace, span) {
        (Some(trace), Some(span)) => incoming(trim(trace), trim(span), sampling),
        _ => Incoming {
            context: None,
            sampling,
        },
    }
}

/// The value of the single field. A context does not say whether its trace is a debug trace, so
/// that is written as sampled.
#[must_use]
pub fn write(context: &SpanContext) -> [u8; BYTES] {
    let mut out = [b'-'; BYTES];
    hex::write(&mut out[..32], &context.trace_id.0);
    hex::write(&mut out[33..49], &context.span_id.0);
    out[50] = b'0' + u8::from(context.is_sampled());
    out
}

fn decision(text: &[u8]) -> Option<Sampling> {
    match text {
        b"0" => Some(Sampling::Deny),
        b"1" => Some(Sampling::Accept),
        b"d" => Some(Sampling::Debug),
        // The spelling of old libraries.
        _ if text.eq_ignore_ascii_case(b"false") => Some(Sampling::Deny),
        _ if text.eq_ignore_ascii_case(b"true") => Some(Sampling::Accept),
        _ => None,
    }
}

fn incoming(trace: &[u8], span: &[u8], sampling: Sampling) -> Incoming {
    let kept = matches!(sampling, Sampling::Accept | Sampling::Debug);
    let context = ids(trace, span).map(|(trace_id, span_id)| SpanContext {
        trace_id,
        span_id,
        flags: if kept { SAMPLED } else { 0 },
        remote: true,
    });
    Incoming { context, sampling }
}

/// Reads the identifiers. A trace identifier has 64 or 128 bits.
fn ids(trace: &[u8], span: &[u8]) -> Option<(TraceId, SpanId)> {
    if !matches!(trace.len(), 16 | 32) || span.len() != 16 {
        return None;
    }
    let (trace, span) = (
        TraceId(hex::read_padded(trace)?),
        SpanId(hex::read_padded(span)?),
    );
    (trace.is_valid() && span.is_valid()).then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ids;

    const TRACE: &str = "80f198ee56343ba864fe8b2a57d3eff7";
    const SPAN: &str = "e457b5a2e4d86bd1";

    #[test]
    fn one_field_is_read() {
        let read = |end: &str| parse(format!("{TRACE}-{SPAN}{end}").as_bytes());
        for (end, sampling, flags) in [
            ("", Sampling::Deferred, 0),
            ("-0", Sampling::Deny, 0),
            ("-1", Sampling::Accept, 1),
            ("-d", Sampling::Debug, 1),
            ("-1-05e3ac9a4f6e3b90", Sampling::Accept, 1),
        ] {
            let incoming = read(end);
            let context = incoming.context.unwrap();
            assert_eq!(
                (incoming.sampling, context.flags),
                (sampling, flags),
                "{end}"
            );
            assert_eq!(context.trace_id.0[0], 0x80);
            assert!(context.remote);
        }
        for bad in [
            "-",
            "-2",
            "-1-",
            "-1-x",
            "-1-1-1",
            "--1",
            "-1-05e3ac9a4f6e3b900",
        ] {
            assert_eq!(read(bad), Incoming::default(), "{bad}");
        }
    }

    #[test]
    fn a_decision_may_come_alone() {
        for (text, sampling) in [
            ("0", Sampling::Deny),
            (" 1 ", Sampling::Accept),
            ("d", Sampling::Debug),
        ] {
            assert_eq!(
                parse(text.as_bytes()),
                Incoming {
                    context: None,
                    sampling
                }
            );
        }
        assert_eq!(parse(b""), Incoming::default());
        assert_eq!(parse(b"x"), Incoming::default());
    }

    #[test]
    fn short_traces_are_padded_and_zeros_refused() {
        let short = parse(format!("{}-{SPAN}-1", &TRACE[16..]).as_bytes())
            .context
            .unwrap();
        assert_eq!(short.trace_id.0[..8], [0; 8]);
        assert_eq!(short.trace_id.0[8], 0x64);
        let zeros = format!("{}-{SPAN}-1", "0".repeat(32));
        assert_eq!(parse(zeros.as_bytes()).context, None);
        assert_eq!(
            parse(format!("{}-{SPAN}-1", &TRACE[1..]).as_bytes()).context,
            None
        );
    }

    #[test]
    fn many_fields_are_read() {
        let read = |sampled, flags| {
            parse_multi(
                Some(TRACE.as_bytes()),
                Some(SPAN.as_bytes()),
                sampled,
                flags,
            )
        };
        assert_eq!(read(None, None).sampling, Sampling::Deferred);
        assert_eq!(read(Some(b"True"), None).sampling, Sampling::Accept);
        assert_eq!(read(Some(b"0"), None).sampling, Sampling::Deny);
        assert_eq!(read(Some(b"0"), Some(b"1")).sampling, Sampling::Debug);
        assert!(read(None, Some(b"1")).context.unwrap().is_sampled());
        let alone = parse_multi(None, Some(SPAN.as_bytes()), Some(b"0"), None);
        assert_eq!(
            alone,
            Incoming {
                context: None,
                sampling: Sampling::Deny
            }
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut ids = Ids::new([7, 1, 2, 3]);
        for turn in 0..=255 {
            let context = SpanContext {
                trace_id: ids.trace_id(),
                span_id: ids.span_id(),
                flags: turn & SAMPLED,
                remote: true,
            };
            assert_eq!(parse(&write(&context)).context, Some(context));
        }
    }
}
