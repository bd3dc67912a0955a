//! `traceparent` (W3C Trace Context level 2 §3.2).

use crate::context::SAMPLED;
use crate::{SpanContext, SpanId, TraceId};
use otlp::tracestate::trim;
use syntax::hex;

/// Size of a `traceparent` of version 00.
pub const BYTES: usize = 55;

/// The flag of a trace with a random identifier (W3C Trace Context level 2 §3.2.2.5.2).
pub const RANDOM: u8 = 2;

/// The defined flags; all others are neither read nor written (W3C Trace Context §3.2.2.5.3).
const KNOWN: u8 = SAMPLED | RANDOM;

/// Reads a field's value; the context is remote. None if the recipient must start a new trace: a
/// malformed value, an identifier of zeros, upper-case digits, version ff. Of a later version, the
/// part that version 00 defines is read.
#[must_use]
pub fn parse(value: &[u8]) -> Option<SpanContext> {
    let value = trim(value);
    let (fixed, rest) = value.split_first_chunk::<BYTES>()?;
    let [version] = hex::read(&fixed[..2])?;
    match version {
        0 if !rest.is_empty() => return None,
        0xff => return None,
        _ if !rest.is_empty() && rest[0] != b'-' => return None,
        _ => {}
    }
    if fixed[2] != b'-' || fixed[35] != b'-' || fixed[52] != b'-' {
        return None;
    }
    let [flags] = hex::read(&fixed[53..])?;
    let context = SpanContext {
        trace_id: TraceId(hex::read(&fixed[3..35])?),
        span_id: SpanId(hex::read(&fixed[36..52])?),
        flags: flags & KNOWN,
        remote: true,
    };
    context.is_valid().then_some(context)
}

/// The value of the field, in version 00.
#[must_use]
#[inline]
pub fn write(context: &SpanContext) -> [u8; BYTES] {
    let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
    hex::write(&mut out[3..35], &context.trace_id.0);
    hex::write(&mut out[36..52], &context.span_id.0);
    hex::write(&mut out[53..], &[context.flags & KNOWN]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ids;

    const VALUE: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let context = parse(VALUE).unwrap();
        assert_eq!(context.trace_id.0[..3], [0x4b, 0xf9, 0x2f]);
        assert_eq!(
            context.span_id.0,
            [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 2, 0xb7]
        );
        assert!(context.is_sampled() && context.remote);
        assert_eq!(write(&context), VALUE);
        let blanks = [b" \t", VALUE, b"\t "].concat();
        assert_eq!(parse(&blanks), Some(context));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let with = |at: usize, byte: u8| {
            let mut value = VALUE.to_vec();
            value[at] = byte;
            parse(&value)
        };
        for at in 0..BYTES {
            assert_eq!(with(at, b'x'), None, "at {at}");
            assert_eq!(with(at, b'A'), None, "at {at}");
            assert_eq!(with(at, b' '), None, "at {at}");
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(&VALUE[..54]), None);
        let zeros: [&[u8]; 2] = [
            b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ];
        for zeros in zeros {
            assert_eq!(parse(zeros), None);
        }
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let with = |version: &[u8], end: &[u8]| parse(&[version, &VALUE[2..], end].concat());
        assert!(with(b"00", b"").is_some());
        assert!(with(b"00", b"-").is_none());
        assert!(with(b"01", b"").is_some());
        assert!(with(b"cc", b"-what the future holds").is_some());
        assert!(with(b"cc", b".what").is_none());
        assert!(with(b"ff", b"").is_none());
        assert_eq!(with(b"01", b"-ff").unwrap().flags, 1);
    }

    #[test]
    fn unknown_flags_are_not_passed_on() {
        let value = [&VALUE[..53], b"ff"].concat();
        let context = parse(&value).unwrap();
        assert_eq!(context.flags, SAMPLED | RANDOM);
        let all = SpanContext {
            flags: 0xff,
            ..context
        };
        assert!(write(&all).ends_with(b"-03"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut ids = Ids::new([7, 1, 2, 3]);
        for turn in 0..1000 {
            let context = SpanContext {
                trace_id: ids.trace_id(),
                span_id: ids.span_id(),
                flags: turn as u8 & KNOWN,
                remote: true,
            };
            assert_eq!(parse(&write(&context)), Some(context));
        }
    }
}
