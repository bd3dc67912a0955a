//! Requests of spans that a connector reads.

use otlp::scan::{Malformed, span};
use otlp::view::View;

use crate::config::Signal;
use crate::run::process::around::AroundBytes;

/// Checks that all spans of a request are well formed, and that reading what is around each span is
/// not too much work; around each event too, if events are read.
///
/// # Errors
/// The request is malformed or too large.
pub fn check(request: &[u8], reads_events: bool) -> Result<(), Malformed> {
    let mut around_bytes = AroundBytes::default();
    for resource in View::request(Signal::Traces, request)?.all("resourceSpans") {
        let len = |view: &View<'_>, name| view.one(name).map_or(0, |one| one.encoded().len());
        let resource_len = len(&resource, "resource");
        for scope in resource.all("scopeSpans") {
            let len = resource_len + len(&scope, "scope");
            for one in scope.all("spans") {
                around_bytes.add(len)?;
                let span = span(one.encoded(), &mut ())?;
                if !(reads_events && span.has_events) {
                    continue;
                }
                for _ in one.all("events") {
                    around_bytes.add(len + one.encoded().len())?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
    use opentelemetry_proto::tonic::trace::v1::span::Event;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
    use prost::Message as _;

    use super::*;

    /// A scope and a name of a span of so many bytes, so many spans, and events of each.
    fn request([scope, name]: [usize; 2], spans: usize, events: usize) -> Vec<u8> {
        let span = Span {
            trace_id: vec![1; 16],
            span_id: vec![1; 8],
            name: "s".repeat(name),
            events: vec![Event::default(); events],
            ..Span::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "s".repeat(scope),
                        ..InstrumentationScope::default()
                    }),
                    spans: vec![span; spans],
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        request.encode_to_vec()
    }

    #[test]
    fn work_around_spans_and_events_is_bounded() {
        let large = 1 << 20;
        let around_spans = |spans| check(&request([large, 0], spans, 0), false);
        assert_eq!(around_spans(500), Ok(()));
        assert_eq!(around_spans(600), Err(Malformed::TooLarge));
        let around_events = |events, reads| check(&request([0, large], 1, events), reads);
        assert_eq!(around_events(500, true), Ok(()));
        assert_eq!(around_events(600, true), Err(Malformed::TooLarge));
        assert_eq!(around_events(600, false), Ok(()));
        assert!(check(b"\x0a", false).is_err());
    }
}
