//! Builders of requests for tests.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

/// The start of the tests, in milliseconds.
pub const NOW_MS: u64 = 1_700_000_000_000;

pub fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

pub fn string(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

pub fn id(number: u64) -> [u8; 16] {
    // The first half is as random as real identifiers are.
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(random) << 64 | u128::from(number + 1)).to_be_bytes()
}

/// A span of a trace: its number, its parent's (0: it is the root), its start relative to
/// [`NOW_MS`], and its duration.
pub fn span(trace: u64, number: u64, parent: u64, start_ms: u64, duration_ms: u64) -> Span {
    let start_ns = (NOW_MS + start_ms) * 1_000_000;
    Span {
        trace_id: id(trace).to_vec(),
        span_id: (trace << 32 | number).to_be_bytes().to_vec(),
        parent_span_id: match parent {
            0 => Vec::new(),
            parent => (trace << 32 | parent).to_be_bytes().to_vec(),
        },
        name: format!("span {number}"),
        kind: if parent == 0 { 2 } else { 3 },
        start_time_unix_nano: start_ns,
        end_time_unix_nano: start_ns + duration_ms * 1_000_000,
        ..Span::default()
    }
}

pub fn failed(mut span: Span) -> Span {
    span.status = Some(Status {
        code: 2,
        message: "it broke".to_owned(),
    });
    span
}

/// An HTTP root span.
pub fn http(mut span: Span, route: &str, status: i64) -> Span {
    span.name = format!("GET {route}");
    span.attributes = vec![
        string("http.route", route),
        attribute("http.response.status_code", Value::IntValue(status)),
    ];
    span
}

/// Spans of one service as a request.
pub fn request(service: &str, spans: Vec<Span>) -> Vec<u8> {
    let scope = ScopeSpans {
        scope: Some(InstrumentationScope {
            name: "tests".to_owned(),
            version: "1".to_owned(),
            ..InstrumentationScope::default()
        }),
        spans,
        ..ScopeSpans::default()
    };
    let resource = ResourceSpans {
        resource: Some(Resource {
            attributes: vec![string("service.name", service)],
            ..Resource::default()
        }),
        scope_spans: vec![scope],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![resource],
    };
    request.encode_to_vec()
}
