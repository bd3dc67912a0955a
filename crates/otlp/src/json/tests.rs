//! Against the library's messages: what is written is read back as what was there.

use crate::Signal;
use crate::tests::Random;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{decode, encode, write};

fn any(value: Any) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

fn pair(key: &str, value: Any) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: any(value),
        ..KeyValue::default()
    }
}

fn attributes() -> Vec<KeyValue> {
    let list = vec![
        any(Any::IntValue(-1)).unwrap(),
        any(Any::BoolValue(false)).unwrap(),
    ];
    let pairs = vec![pair("in", Any::StringValue("é€😀".to_owned()))];
    vec![
        pair(
            "text",
            Any::StringValue("a\"b\\c\n\r\t\u{1}\u{7f}/".to_owned()),
        ),
        pair("bool", Any::BoolValue(true)),
        pair("int", Any::IntValue(i64::MIN)),
        pair("double", Any::DoubleValue(1.5e-300)),
        pair("whole", Any::DoubleValue(3.0)),
        pair("list", Any::ArrayValue(ArrayValue { values: list })),
        pair("pairs", Any::KvlistValue(KeyValueList { values: pairs })),
        pair("bytes", Any::BytesValue(vec![0, 255, 62])),
    ]
}

fn resource() -> Option<Resource> {
    Some(Resource {
        attributes: attributes(),
        dropped_attributes_count: 1,
        ..Resource::default()
    })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "s".to_owned(),
        version: "1".to_owned(),
        attributes: attributes(),
        dropped_attributes_count: 2,
    })
}

fn traces() -> Traces {
    let span = Span {
        trace_id: vec![0xab; 16],
        span_id: vec![1; 8],
        trace_state: "a=b".to_owned(),
        parent_span_id: vec![2; 8],
        flags: u32::MAX,
        name: "n".to_owned(),
        kind: 2,
        start_time_unix_nano: u64::MAX,
        end_time_unix_nano: 10,
        attributes: attributes(),
        dropped_attributes_count: 3,
        events: vec![Event {
            time_unix_nano: 9,
            name: "e".to_owned(),
            attributes: attributes(),
            dropped_attributes_count: 4,
        }],
        dropped_events_count: 5,
        links: vec![Link {
            trace_id: vec![3; 16],
            span_id: vec![4; 8],
            trace_state: "c=d".to_owned(),
            attributes: attributes(),
            dropped_attributes_count: 6,
            flags: 1,
        }],
        dropped_links_count: 7,
        status: Some(Status {
            message: "bad".to_owned(),
            code: 2,
        }),
    };
    let scope_spans = ScopeSpans {
        scope: scope(),
        spans: vec![span.clone(), Span::default(), span],
        schema_url: "u".to_owned(),
    };
    Traces {
        resource_spans: vec![ResourceSpans {
            resource: resource(),
            scope_spans: vec![scope_spans; 2],
            schema_url: "v".to_owned(),
        }],
    }
}

fn logs() -> Logs {
    let record = LogRecord {
        time_unix_nano: 1,
        observed_time_unix_nano: 2,
        severity_number: 24,
        severity_text: "t".to_owned(),
        body: any(Any::StringValue("b".to_owned())),
        attributes: attributes(),
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: vec![5; 16],
        span_id: vec![6; 8],
        event_name: "e".to_owned(),
    };
    Logs {
        resource_logs: vec![ResourceLogs {
            resource: resource(),
            scope_logs: vec![ScopeLogs {
                scope: scope(),
                log_records: vec![record],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

fn metrics() -> Metrics {
    let exemplars = vec![Exemplar {
        filtered_attributes: attributes(),
        time_unix_nano: 1,
        span_id: vec![1; 8],
        trace_id: vec![2; 16],
        value: Some(exemplar::Value::AsInt(-7)),
    }];
    let number = |value| NumberDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: exemplars.clone(),
        flags: 1,
        value: Some(value),
    };
    let histogram = HistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: u64::MAX,
        sum: Some(0.1),
        bucket_counts: vec![1, 0, u64::MAX],
        explicit_bounds: vec![0.5, 1e21],
        exemplars: exemplars.clone(),
        flags: 1,
        min: Some(-0.0),
        max: Some(f64::MAX),
    };
    let exponential = ExponentialHistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(1.0),
        scale: -5,
        zero_count: 4,
        positive: Some(Buckets {
            offset: i32::MIN,
            bucket_counts: vec![0, 1, u64::MAX],
        }),
        negative: Some(Buckets::default()),
        flags: 1,
        exemplars: exemplars.clone(),
        min: Some(0.0),
        max: Some(2.0),
        zero_threshold: 0.25,
    };
    let all = [
        Data::Gauge(Gauge {
            data_points: vec![
                number(Number::AsInt(i64::MAX)),
                number(Number::AsDouble(0.5)),
            ],
        }),
        Data::Sum(Sum {
            data_points: vec![number(Number::AsInt(-1))],
            aggregation_temporality: 2,
            is_monotonic: true,
        }),
        Data::Histogram(Histogram {
            data_points: vec![histogram],
            aggregation_temporality: 1,
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![exponential],
            aggregation_temporality: 2,
        }),
    ];
    let metrics = all.into_iter().map(|data| Metric {
        name: "m".to_owned(),
        description: "d".to_owned(),
        unit: "s".to_owned(),
        metadata: attributes(),
        data: Some(data),
    });
    Metrics {
        resource_metrics: vec![ResourceMetrics {
            resource: resource(),
            scope_metrics: vec![ScopeMetrics {
                scope: scope(),
                metrics: metrics.collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

#[track_caller]
fn read_back<T: Message + Default + DeserializeOwned + PartialEq + std::fmt::Debug>(
    signal: Signal,
    request: &T,
) {
    let json = encode(signal, &request.encode_to_vec());
    let text = std::str::from_utf8(&json).unwrap();
    let back: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(back == *request, "{back:?}\n{request:?}");
}

#[test]
fn all_messages() {
    read_back(Signal::Traces, &traces());
    read_back(Signal::Logs, &logs());
    read_back(Signal::Metrics, &metrics());
    assert_eq!(encode(Signal::Traces, &[]), b"{}");
}

#[test]
fn fields_in_any_order() {
    let fields = |span: Span| span.encode_to_vec();
    let with = |attribute: KeyValue| Span {
        attributes: vec![attribute],
        ..Span::default()
    };
    let event = Span {
        events: vec![Event {
            name: "e".to_owned(),
            ..Event::default()
        }],
        ..Span::default()
    };
    let name = Span {
        name: "n".to_owned(),
        ..Span::default()
    };
    let list = |values| Any::ArrayValue(ArrayValue { values });
    let inner = list(vec![any(Any::IntValue(1)).unwrap()]);
    // A list in pieces, and the name behind it; before and behind a span that is in order.
    let odd = [
        fields(with(pair("a", inner))),
        fields(event),
        fields(with(pair("b", Any::BoolValue(true)))),
        fields(name),
    ]
    .concat();
    let even = traces().resource_spans[0].scope_spans[0].spans[0].encode_to_vec();
    let mut spans = Vec::new();
    for span in [&even, &odd, &even] {
        crate::write::bytes(&mut spans, 2, span);
    }
    let mut request = Vec::new();
    crate::write::message(&mut request, 1, |out| crate::write::bytes(out, 2, &spans));
    let decoded = Traces::decode(&request[..]).unwrap();
    let spans = &decoded.resource_spans[0].scope_spans[0].spans;
    assert_eq!(
        (
            spans.len(),
            spans[1].attributes.len(),
            spans[1].name.as_str()
        ),
        (3, 2, "n")
    );
    assert_eq!(write(Signal::Traces, &request, false), None);
    let json = encode(Signal::Traces, &request);
    let back: Traces = serde_json::from_slice(&json).unwrap();
    assert!(back == decoded, "{}", String::from_utf8_lossy(&json));
}

#[test]
fn forms_that_the_library_does_not_read() {
    let mut request = traces();
    let span = &mut request.resource_spans[0].scope_spans[0].spans[0];
    span.attributes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
        .map(|double| pair("d", Any::DoubleValue(double)))
        .to_vec();
    span.attributes
        .push(pair("text", Any::StringValue("XXX".to_owned())));
    let mut bytes = request.encode_to_vec();
    let at = bytes.windows(3).position(|three| three == b"XXX").unwrap();
    bytes[at + 1] = 0xff;
    let json: Value = serde_json::from_slice(&encode(Signal::Traces, &bytes)).unwrap();
    let attributes = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"];
    for (at, word) in ["NaN", "Infinity", "-Infinity"].iter().enumerate() {
        assert_eq!(attributes[at]["value"], json!({ "doubleValue": word }));
    }
    assert_eq!(
        attributes[3]["value"],
        json!({ "stringValue": "X\u{fffd}X" })
    );
}

#[test]
fn nesting_has_a_bound() {
    // Made by hand, outwards: the library recurses.
    let mut value = any(Any::IntValue(1)).unwrap().encode_to_vec();
    for _ in 0..5000 {
        // AnyValue.array_value, ArrayValue.values
        for number in [1, 5] {
            let mut outer = Vec::new();
            crate::write::bytes(&mut outer, number, &value);
            value = outer;
        }
    }
    // KeyValue.value, Resource.attributes, ResourceSpans.resource,
    // ExportTraceServiceRequest.resource_spans
    for number in [2, 1, 1, 1] {
        let mut outer = Vec::new();
        crate::write::bytes(&mut outer, number, &value);
        value = outer;
    }
    let json = encode(Signal::Traces, &value);
    assert!(json.len() < 5000);
    assert!(serde_json::from_slice::<Value>(&json).is_ok());
}

#[test]
fn any_bytes_give_whole_json() {
    // As nearly all spans are.
    let mut usual = traces();
    for span in &mut usual.resource_spans[0].scope_spans[0].spans {
        span.trace_state.clear();
    }
    let last = &mut usual.resource_spans[0].scope_spans[1].spans[2];
    *last = Span {
        trace_id: vec![7; 16],
        span_id: vec![8; 8],
        name: "plain".to_owned(),
        kind: 3,
        start_time_unix_nano: 1,
        end_time_unix_nano: 2,
        flags: 0x101,
        ..Span::default()
    };
    let seeds = [
        (Signal::Traces, usual.encode_to_vec()),
        (Signal::Traces, traces().encode_to_vec()),
        (Signal::Logs, logs().encode_to_vec()),
        (Signal::Metrics, metrics().encode_to_vec()),
    ];
    let mut random = Random::new(1);
    let mut random = move |below: usize| random.below(below as u64) as usize;
    for run in 0..6000 {
        let (signal, seed) = &seeds[run % seeds.len()];
        let mut bytes = seed.clone();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes.truncate(at + 1),
                _ => drop(bytes.drain(at..(at + 1 + random(9)).min(bytes.len()))),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let json = encode(*signal, &bytes);
        // Both ways write the same.
        assert_eq!(
            write(*signal, &bytes, true).as_ref(),
            Some(&json),
            "run {run}"
        );
        let read: Result<Value, _> = serde_json::from_slice(&json);
        assert!(
            read.is_ok(),
            "run {run}: {}",
            String::from_utf8_lossy(&json)
        );
    }
}

/// What the library reads of the protobuf that is made of some JSON.
fn read<M: Message + Default>(signal: Signal, json: &str) -> M {
    let bytes = decode(signal, json.as_bytes(), usize::MAX);
    let bytes = bytes.unwrap_or_else(|why| panic!("{why}: {json}"));
    M::decode(&*bytes).expect("a message")
}

#[test]
fn what_was_written_is_read_back() {
    fn both<M: Message + Default + PartialEq + std::fmt::Debug>(signal: Signal, message: &M) {
        let bytes = message.encode_to_vec();
        let json = encode(signal, &bytes);
        let again = decode(signal, &json, usize::MAX).expect("a request");
        assert_eq!(M::decode(&*again).expect("a message"), *message);
        // What is the default is left out, as the library leaves it out.
        assert_eq!(again.len(), bytes.len());
        assert!(decode(signal, &json, bytes.len()).is_ok());
        assert!(decode(signal, &json, bytes.len() - 1).is_err());
    }
    both(Signal::Traces, &traces());
    both(Signal::Metrics, &metrics());
    both(Signal::Logs, &logs());
}

#[test]
fn a_summary_and_references_to_entities_are_kept() {
    use opentelemetry_proto::tonic::common::v1::EntityRef;
    use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
    use opentelemetry_proto::tonic::metrics::v1::{Summary, SummaryDataPoint};
    let point = SummaryDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: 0.0,
        quantile_values: vec![ValueAtQuantile {
            quantile: 0.5,
            value: 1.25,
        }],
        flags: 1,
    };
    let metric = Metric {
        name: "s".to_owned(),
        data: Some(Data::Summary(Summary {
            data_points: vec![point],
        })),
        ..Metric::default()
    };
    let mut resource = resource().expect("one");
    resource.entity_refs = vec![EntityRef {
        schema_url: "u".to_owned(),
        r#type: "host".to_owned(),
        id_keys: vec!["a".to_owned(), "b".to_owned()],
        description_keys: vec!["c".to_owned()],
    }];
    let request = Metrics {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                metrics: vec![metric],
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    };
    let json = encode(Signal::Metrics, &request.encode_to_vec());
    let json = String::from_utf8(json).expect("JSON");
    assert_eq!(read::<Metrics>(Signal::Metrics, &json), request);
}

#[test]
fn json_is_read_as_others_write_it() {
    let strange = r#"{"resource_spans":[null,{"unknown":[{"a":{}}],"resource":null,"scopeSpans":[{"spans":[
        {"trace_id":"ABcd","spanId":"","kind":"3","startTimeUnixNano":5,"end_time_unix_nano":"6","flags":257,
         "name":null,"status":{"code":2},"attributes":[
          {"key":"t","value":{"stringValue":""}},{"key":"i","value":{"intValue":7}},
          {"key":"d","value":{"doubleValue":"-Infinity"}},{"key":"w","value":{"doubleValue":3}},
          {"key":"b","value":{"bytesValue":"AQI"}},{"key":"f","value":{"boolValue":false}},
          {"key":"l","value":{"arrayValue":{"values":[{},{"stringValue":"x"}]}}},{"key":"n","value":{}},{"key":"none"}]}]}]}]}"#;
    let request: Traces = read(Signal::Traces, strange);
    assert_eq!(request.resource_spans.len(), 2);
    let span = &request.resource_spans[1].scope_spans[0].spans[0];
    assert_eq!((&*span.trace_id, span.kind), (&[0xab, 0xcd][..], 3));
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (5, 6));
    assert_eq!((span.flags, &*span.name), (257, ""));
    let value = |at: usize| {
        let value = span.attributes[at].value.as_ref();
        value.and_then(|value| value.value.clone())
    };
    assert_eq!(value(0), Some(Any::StringValue(String::new())));
    assert_eq!(value(1), Some(Any::IntValue(7)));
    assert_eq!(value(2), Some(Any::DoubleValue(f64::NEG_INFINITY)));
    assert_eq!(value(3), Some(Any::DoubleValue(3.0)));
    assert_eq!(value(4), Some(Any::BytesValue(vec![1, 2])));
    assert_eq!(value(5), Some(Any::BoolValue(false)));
    assert_eq!((value(7), value(8)), (None, None));
    assert!(span.attributes[7].value.is_some() && span.attributes[8].value.is_none());
    for wrong in [
        "",
        "[]",
        "{",
        r#"{"resourceSpans":{}}"#,
        r#"{"resourceSpans":[5]}"#,
        r#"{"resourceSpans":[{"schemaUrl":5}]}"#,
        r#"{"resourceSpans":[{"resource":{"droppedAttributesCount":-5000000000}}]}"#,
        r#"{"resourceSpans":[{"resource":{"droppedAttributesCount":1.5}}]}"#,
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xy"}]}]}]}"#,
        r#"{"resourceSpans":[]} 5"#,
    ] {
        assert!(
            decode(Signal::Traces, wrong.as_bytes(), 1000).is_err(),
            "{wrong}"
        );
    }
    // Values within each other have a bound.
    let deep = r#"{"arrayValue":{"values":["#.repeat(200);
    let deep = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{deep}"#);
    let why = decode(Signal::Logs, deep.as_bytes(), 1 << 20).unwrap_err();
    assert!(why.contains("recursion"), "{why}");
}

#[test]
fn what_is_small_in_json_is_smaller_in_protobuf() {
    for (signal, begin, item, end) in [
        (Signal::Traces, r#"{"resourceSpans":["#, "{},", "{}]}"),
        (
            Signal::Traces,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#,
            "{},",
            "{}]}]}]}",
        ),
    ] {
        let json = format!("{begin}{}{end}", item.repeat(100_000));
        let bytes = decode(signal, json.as_bytes(), json.len()).expect("it fits");
        assert!(bytes.capacity() <= json.len());
    }
}
