//! The threshold that a span was sampled with, in its tracestate (OpenTelemetry: TraceState handling, `ot=th`).

use super::output::copy_fields;
use otlp::tracestate;
use otlp::wire::last_bytes;
use otlp::write;

/// `Span.trace_state`
const TRACE_STATE: u32 = 3 << 3 | 2;

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It was written again, with the threshold.
    Changed,
    /// It says so already, or it was sampled by something stricter.
    Kept,
    /// Its tracestate is malformed, and stays so.
    Unparseable,
}

/// Writes a span again with a threshold, into `out`; only [`Written::Changed`] leaves anything there.
pub fn write(span: &[u8], threshold: u64, out: &mut Vec<u8>) -> Written {
    out.clear();
    let state = last_bytes(span, TRACE_STATE);
    let stricter = tracestate::threshold(state).is_some_and(|before| before >= threshold);
    if stricter || threshold >= tracestate::THRESHOLD_MAX {
        return Written::Kept;
    }
    let mut read = Vec::new();
    if !tracestate::read([state], &mut read) {
        return Written::Unparseable;
    }
    let mut state = Vec::new();
    tracestate::set_threshold(&read, Some(threshold), &mut state);
    copy_fields(span, out, |key, _| key != TRACE_STATE);
    write::bytes(out, TRACE_STATE >> 3, &state);
    Written::Changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use prost::Message;

    const HALF: u64 = 1 << 55;

    fn written(state: &str, threshold: u64) -> Result<String, Written> {
        let span = Span {
            trace_id: vec![1; 16],
            trace_state: state.to_owned(),
            name: "name".to_owned(),
            ..Span::default()
        };
        let mut out = Vec::new();
        match write(&span.encode_to_vec(), threshold, &mut out) {
            Written::Changed => {
                let changed = Span::decode(&out[..]).unwrap();
                assert_eq!(
                    (&changed.trace_id, &changed.name),
                    (&span.trace_id, &span.name)
                );
                Ok(changed.trace_state)
            }
            other => Err(other),
        }
    }

    #[test]
    fn the_strictest_threshold_stays() {
        assert_eq!(written("", HALF), Ok("ot=th:8".to_owned()));
        assert_eq!(written("", 0), Ok("ot=th:0".to_owned()));
        assert_eq!(
            written("a=b,ot=rv:12345678901234;th:4", HALF),
            Ok("ot=rv:12345678901234;th:8,a=b".to_owned())
        );
        assert_eq!(written("ot=th:c", HALF), Err(Written::Kept));
        assert_eq!(written("ot=th:8", HALF), Err(Written::Kept));
        assert_eq!(written("no state", HALF), Err(Written::Unparseable));
    }
}
