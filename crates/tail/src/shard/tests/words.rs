//! Policies that ask more than a word has bits.

use super::limits::settings;
use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

/// Each trace is sampled by its own policy alone, whichever word has its bits.
#[test]
fn more_is_asked_than_a_word_has_bits() {
    const POLICIES: u64 = 200;
    let text = |key: &str, number: u64| {
        named(
            "text",
            PolicyKind::StringAttribute {
                key: key.to_owned(),
                values: vec![format!("v{number}")],
                regex: false,
                invert: false,
            },
        )
    };
    let policy = |number: u64| {
        let window = PolicyKind::Latency {
            threshold_ms: number * 10,
            upper_threshold_ms: number * 10 + 10,
        };
        let condition = PolicyKind::OttlCondition {
            span: vec![format!("attributes[\"b\"] == \"v{number}\"")],
            span_event: Vec::new(),
            error_mode: crate::settings::ErrorMode::Propagate,
        };
        let all = vec![
            text("a", number),
            named("latency", window),
            text("r", number),
            named("condition", condition),
        ];
        named(&format!("p{number}"), PolicyKind::And(all))
    };
    for shards in [1, 3] {
        let settings = TailSampling {
            shards,
            ..settings((0..POLICIES).map(policy).collect())
        };
        let mut all: Vec<_> = (0..shards).map(|_| shard(&settings)).collect();
        // Every trace has what its policy asks in spans of two requests; every other one lacks the
        // last part.
        for part in 0..2 {
            let request = many_attributes(POLICIES, part);
            match shards {
                1 => {
                    all[0].accept(&request, 0).unwrap();
                }
                _ => {
                    let mut splitter = Splitter::tail_sampling(&settings, &options()).unwrap();
                    let mut chunks = Vec::new();
                    splitter.split(&request, &mut chunks).unwrap();
                    for (shard, chunk) in all.iter_mut().zip(&mut chunks) {
                        shard.reserve_chunk(chunk, 0).unwrap();
                        shard.accept_chunk(chunk, 0);
                    }
                }
            }
        }
        let mut kept = 0;
        let mut sampled = vec![0; POLICIES as usize];
        for shard in &mut all {
            kept += tick(shard, SECOND_NS).len();
            for (sum, (_, votes)) in sampled.iter_mut().zip(shard.program().unwrap().votes()) {
                *sum += votes.sampled.traces;
            }
        }
        assert_eq!(kept as u64, POLICIES, "two spans of each second trace");
        for (number, count) in sampled.into_iter().enumerate() {
            assert_eq!(
                count,
                u64::from(number % 2 == 0),
                "policy {number}, {shards} shards"
            );
        }
    }
}

/// A span of each trace, in a resource of its own, which has a part of what its policy asks.
fn many_attributes(traces: u64, part: u64) -> Vec<u8> {
    let text = |key: &str, value: String| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value)),
        }),
        ..KeyValue::default()
    };
    let resource_spans = (0..traces).map(|number| {
        let start = 1 + part * (number * 10 + 5) * MS;
        let attributes = match part {
            0 => vec![text("a", format!("v{number}"))],
            _ if number % 2 == 0 => vec![text("b", format!("v{number}"))],
            _ => Vec::new(),
        };
        let span = Span {
            trace_id: [&[9; 8][..], &number.to_be_bytes()].concat(),
            span_id: vec![1 + part as u8; 8],
            start_time_unix_nano: start,
            end_time_unix_nano: start,
            attributes,
            ..Span::default()
        };
        ResourceSpans {
            resource: Some(Resource {
                attributes: vec![text("r", format!("v{number}"))],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }
    });
    ExportTraceServiceRequest {
        resource_spans: resource_spans.collect(),
    }
    .encode_to_vec()
}
