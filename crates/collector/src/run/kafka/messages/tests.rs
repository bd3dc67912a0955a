use std::collections::HashSet;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::*;
use crate::run::account::Account;
use crate::run::kafka::settings::exporter;

/// A batch of two resources with so many spans each, three of a trace.
fn batch(spans: u64, fields: &[(&str, &str)]) -> Batch {
    let attribute = |value: &str| KeyValue {
        key: "topic".into(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.into())),
        }),
        ..KeyValue::default()
    };
    let span = |number: u64| Span {
        trace_id: u128::from(number / 3 + 1).to_be_bytes().to_vec(),
        span_id: number.to_be_bytes().to_vec(),
        name: format!("span {number}"),
        ..Span::default()
    };
    let resource = |attributes: Vec<KeyValue>| ResourceSpans {
        resource: Some(Resource {
            attributes,
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans: (0..spans).map(span).collect(),
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![resource(Vec::new()), resource(vec![attribute("named")])],
    };
    let origin = Origin::with_fields(fields);
    Batch {
        signal: Signal::Traces,
        bytes: request.encode_to_vec().into(),
        records: 2 * spans,
        receipt: Arc::<Account>::default().accept(2 * spans),
        origin: (!fields.is_empty()).then(|| Arc::new(origin)),
    }
}

/// The identifiers of the traces that a value has spans of, and how many.
fn spans(value: &[u8]) -> (HashSet<Vec<u8>>, u64) {
    let request = ExportTraceServiceRequest::decode(value).expect("a request");
    let scopes = request
        .resource_spans
        .into_iter()
        .flat_map(|one| one.scope_spans);
    let spans: Vec<_> = scopes.flat_map(|scope| scope.spans).collect();
    let count = spans.len() as u64;
    (spans.into_iter().map(|span| span.trace_id).collect(), count)
}

fn made(options: &str, batch: &Batch) -> Vec<Message> {
    messages(&exporter(options), batch).expect("messages")
}

#[test]
fn a_batch_is_a_message_and_goes_as_it_came() {
    let batch = batch(30, &[]);
    let all = made("", &batch);
    let whole = Message {
        topic: "otlp_spans".into(),
        key: None,
        value: batch.bytes.clone(),
        spans: 60,
    };
    assert_eq!(all, [whole]);
    assert_eq!(made("topic: old", &batch)[0].topic, "old");
    assert_eq!(made("traces: { topic: new }", &batch)[0].topic, "new");
    let json = made("traces: { encoding: otlp_json }", &batch);
    assert!(json.len() == 1 && json[0].value.starts_with(b"{\"resourceSpans\":"));
    let old = made("encoding: otlp_json", &batch);
    assert_eq!(json, old);
}

#[test]
fn each_trace_is_a_message_of_its_own_with_its_identifier_as_key() {
    let batch = batch(30, &[]);
    let all = made("partition_traces_by_id: true", &batch);
    assert_eq!(all.len(), 10);
    for message in all {
        let (traces, count) = spans(&message.value);
        assert_eq!((count, message.spans), (6, 6));
        let traces: Vec<_> = traces.into_iter().collect();
        let [id] = &traces[..] else {
            panic!("{traces:?}")
        };
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(message.key.as_deref(), Some(digits.as_bytes()));
    }
}

#[test]
fn no_message_is_larger_than_is_allowed() {
    let batch = batch(300, &[]);
    for options in [
        "",
        ", encoding: otlp_json",
        ", partition_traces_by_id: true",
    ] {
        let options = format!("producer: {{ max_message_bytes: 2000 }}{options}");
        let all = made(&options, &batch);
        assert!(all.len() > 5, "{options}");
        assert_eq!(all.iter().map(|one| one.spans).sum::<u64>(), 600);
        assert!(all.iter().all(|one| one.value.len() < 2000), "{options}");
    }
}

#[test]
fn a_topic_may_be_named_by_what_is_sent() {
    let batch = batch(3, &[("x-topic", "asked"), ("x-key", "k"), ("tenant", "t")]);
    let by_attribute = "topic_from_attribute: topic";
    assert_eq!(made(by_attribute, &batch)[0].topic, "named");
    assert_eq!(
        made("topic_from_attribute: absent", &batch)[0].topic,
        "otlp_spans"
    );
    let by_metadata = format!("{by_attribute}, traces: {{ topic_from_metadata_key: X-Topic }}");
    assert_eq!(made(&by_metadata, &batch)[0].topic, "asked");
    let keyed = made("traces: { message_key_from_metadata_key: X-Key }", &batch);
    assert_eq!(keyed[0].key.as_deref(), Some(&b"k"[..]));
    let settings = exporter("include_metadata_keys: [Tenant, absent], record_headers: { a: b }");
    let all = headers(&settings, batch.origin.as_deref());
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    assert_eq!(all, [header("a", "b"), header("tenant", "t")]);
}

#[test]
fn resources_are_not_repeated_without_end() {
    let mut large = batch(1, &[]);
    let settings = exporter("partition_traces_by_id: true");
    large.records = REPEATED_BYTES_MAX;
    let fault = messages(&settings, &large).expect_err("it is too much");
    assert!(fault.contains("more than"), "{fault}");
}

#[test]
fn what_is_malformed_is_refused_and_nothing_worse() {
    let whole = batch(3, &[]);
    for options in ["partition_traces_by_id: true", "encoding: otlp_json"] {
        let settings = exporter(&format!("topic_from_attribute: topic, {options}"));
        for place in 0..whole.bytes.len() {
            let mut changed = whole.shared();
            let mut bytes = whole.bytes.to_vec();
            bytes[place] = 0xff;
            changed.bytes = bytes.into();
            let _ = messages(&settings, &changed);
            changed.bytes = whole.bytes.slice(..place);
            let _ = messages(&settings, &changed);
        }
    }
}
