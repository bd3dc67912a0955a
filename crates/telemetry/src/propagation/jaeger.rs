//! `uber-trace-id` (Jaeger's client libraries: propagation format).

use crate::context::SAMPLED;
use crate::{SpanContext, SpanId, TraceId};
use otlp::tracestate::trim;
use syntax::hex;

/// Size of the field as written.
pub const BYTES: usize = 53;

/// The flags: a sampled trace, and a debug trace, which is kept whatever samplers say.
const DEBUG: u8 = 2;

/// Reads `trace:span:parent:flags`. The colons may be percent-encoded, and numbers may lack leading
/// zeros. The context is remote.
#[must_use]
pub fn parse(value: &[u8]) -> Option<SpanContext> {
    let (trace, rest) = cut(trim(value))?;
    let (span, rest) = cut(rest)?;
    // The parent is no longer used.
    let (_, flags) = cut(rest)?;
    let [flags] = hex::read_padded(flags)?;
    let context = SpanContext {
        trace_id: TraceId(hex::read_padded(trace)?),
        span_id: SpanId(hex::read_padded(span)?),
        flags: if flags & (SAMPLED | DEBUG) != 0 {
            SAMPLED
        } else {
            0
        },
        remote: true,
    };
    context.is_valid().then_some(context)
}

/// The value of the field; the parent is 0, because it is deprecated.
#[must_use]
pub fn write(context: &SpanContext) -> [u8; BYTES] {
    let mut out = [b':'; BYTES];
    hex::write(&mut out[..32], &context.trace_id.0);
    hex::write(&mut out[33..49], &context.span_id.0);
    out[50] = b'0';
    out[52] = b'0' + u8::from(context.is_sampled());
    out
}

/// The text before the first colon, and the text after it.
fn cut(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| matches!(byte, b':' | b'%'))?;
    let (before, rest) = text.split_at(at);
    match rest {
        [b':', after @ ..] | [b'%', b'3', b'A' | b'a', after @ ..] => Some((before, after)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ids;

    #[test]
    fn a_field_is_read() {
        let whole = parse(b"80f198ee56343ba864fe8b2a57d3eff7:e457b5a2e4d86bd1:0:1").unwrap();
        assert!(whole.is_sampled() && whole.remote);
        let encoded =
            parse(b"80f198ee56343ba864fe8b2a57d3eff7%3Ae457b5a2e4d86bd1%3a05e3ac9a4f6e3b90%3A01");
        assert_eq!(encoded, Some(whole));
        let short = parse(b"abc:1:0:0").unwrap();
        assert_eq!(short.trace_id.0[14..], [0x0a, 0xbc]);
        assert_eq!(short.span_id.0[7], 1);
        assert!(!short.is_sampled());
        assert!(parse(b"a:1:0:2").unwrap().is_sampled());
        assert!(!parse(b"a:1:0:4").unwrap().is_sampled());
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for bad in [
            "",
            "a",
            "a:1",
            "a:1:0",
            "a:1:0:",
            "0:1:0:1",
            "a:0:0:1",
            "g:1:0:1",
            "a%3B1:0:1",
            "a:1:0:111",
            ":1:0:1",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(format!("{}:1:0:1", "1".repeat(33)).as_bytes()), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut ids = Ids::new([1, 7, 2, 3]);
        for turn in 0..=255 {
            let context = SpanContext {
                trace_id: ids.trace_id(),
                span_id: ids.span_id(),
                flags: turn & SAMPLED,
                remote: true,
            };
            assert_eq!(parse(&write(&context)), Some(context));
        }
    }
}
