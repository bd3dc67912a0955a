//! Exceptions of spans; what becomes of them is read again by the messages of OpenTelemetry.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exemplar;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::*;
use crate::config;

const NOW_NS: u64 = 1000;

fn settings(options: &str) -> Settings {
    let connector = config::connector(&format!("exceptions: {{ {options} }}"), Signal::Traces);
    connector.get::<Settings>().expect("exceptions").clone()
}

fn counted(options: &str) -> Counted {
    let settings = settings(options);
    let attributed = Attributed::plain(&settings.dimensions);
    Counted::new(attributed, settings.has_exemplars)
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

fn event(name: &str, attributes: &[(&str, &str)]) -> Event {
    Event {
        name: name.into(),
        time_unix_nano: 7,
        attributes: attributes
            .iter()
            .map(|(key, value)| text(key, value))
            .collect(),
        ..Event::default()
    }
}

fn exception(kind: &str) -> Event {
    let attributes = [
        ("exception.type", kind),
        ("exception.message", "it failed"),
        ("exception.stacktrace", "at line 1"),
        ("of", "event"),
    ];
    event("exception", &attributes)
}

fn span(attributes: &[(&str, &str)], events: Vec<Event>) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "s".into(),
        kind: 3,
        status: Some(Status {
            code: 2,
            ..Status::default()
        }),
        attributes: attributes
            .iter()
            .map(|(key, value)| text(key, value))
            .collect(),
        events,
        ..Span::default()
    }
}

fn scope(name: &str, spans: Vec<Span>) -> ScopeSpans {
    ScopeSpans {
        scope: Some(InstrumentationScope {
            name: name.into(),
            ..InstrumentationScope::default()
        }),
        spans,
        ..ScopeSpans::default()
    }
}

fn request(resource: &[(&str, &str)], scope_spans: Vec<ScopeSpans>) -> Vec<u8> {
    let attributes = resource.iter().map(|(key, value)| text(key, value));
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: attributes.collect(),
                ..Resource::default()
            }),
            scope_spans,
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

/// Two exceptions of one type, one of another, and an event that is none.
fn some() -> Vec<u8> {
    let events = vec![exception("A"), event("other", &[]), exception("A")];
    let spans = vec![
        span(
            &[("of", "span"), ("exception.type", "span")],
            vec![exception("B")],
        ),
        span(&[("own", "x")], events),
    ];
    request(
        &[("service.name", "shop"), ("host", "h")],
        vec![
            scope("none", vec![span(&[], Vec::new())]),
            scope("library", spans),
        ],
    )
}

fn shown(attributes: &[KeyValue]) -> String {
    let one = |one: &KeyValue| match one.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => format!("{}={text}", one.key),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Points in the order of their attributes: these, the count, and the values of the exemplars.
fn flush(counted: &mut Counted, now_ns: u64) -> Vec<(String, i64, Vec<f64>)> {
    let mut all = Vec::new();
    for (request, points) in counted.requests(now_ns) {
        let request = ExportMetricsServiceRequest::decode(&request[..]).expect("a request");
        let scope = &request.resource_metrics[0].scope_metrics[0];
        assert_eq!(
            scope.scope.as_ref().expect("it").name,
            "exceptionsconnector"
        );
        let [metric] = &scope.metrics[..] else {
            panic!("{:?}", scope.metrics)
        };
        assert_eq!(metric.name, "exceptions");
        let Some(Data::Sum(sum)) = &metric.data else {
            panic!("{metric:?}")
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        assert_eq!(sum.data_points.len() as u64, points);
        for point in &sum.data_points {
            let Some(number_data_point::Value::AsInt(count)) = point.value else {
                panic!("{point:?}")
            };
            assert_eq!(
                (point.start_time_unix_nano, point.time_unix_nano),
                (NOW_NS, now_ns)
            );
            let exemplars = point.exemplars.iter().map(|exemplar| {
                assert_eq!(
                    (&exemplar.trace_id, &exemplar.span_id),
                    (&vec![1; 16], &vec![2; 8])
                );
                match exemplar.value {
                    Some(exemplar::Value::AsDouble(value)) => value,
                    other => panic!("{other:?}"),
                }
            });
            all.push((shown(&point.attributes), count, exemplars.collect()));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

const OF_SPAN: &str =
    "service.name=shop span.name=s span.kind=SPAN_KIND_CLIENT status.code=STATUS_CODE_ERROR";

#[test]
fn exceptions_are_counted_by_their_attributes() {
    let mut counts = counted("");
    assert_eq!(flush(&mut counts, NOW_NS), [], "no spans");
    counts.add(&some(), NOW_NS).unwrap();
    let nobody = request(
        &[("host", "h")],
        vec![scope("", vec![span(&[], vec![exception("A")])])],
    );
    counts.add(&nobody, NOW_NS).unwrap();
    let point = |kind: &str, count| {
        let attributes = format!("{OF_SPAN} exception.type={kind} exception.message=it failed");
        (attributes, count, Vec::new())
    };
    assert!(counts.repeats());
    assert_eq!(
        flush(&mut counts, NOW_NS + 1),
        [point("A", 2), point("span", 1)]
    );
    assert!(!counts.repeats());
    assert_eq!(flush(&mut counts, NOW_NS + 2), [], "no spans since then");
    counts.add(&nobody, NOW_NS + 3).unwrap();
    let all = flush(&mut counts, NOW_NS + 4);
    assert_eq!(
        all,
        [point("A", 2), point("span", 1)],
        "as soon as there are spans"
    );
}

#[test]
fn dimensions_and_exemplars_are_those_of_the_settings() {
    let dimensions = "dimensions: [ { name: of }, { name: host }, { name: absent }, { name: no, default: '-' } ]";
    let mut counts = counted(&format!("{dimensions}, exemplars: {{ enabled: true }}"));
    counts.add(&some(), NOW_NS).unwrap();
    let point = |of: &str, exemplars: &[f64]| {
        let attributes = format!("{OF_SPAN} of={of} host=h no=-");
        (attributes, exemplars.len() as i64, exemplars.to_vec())
    };
    assert_eq!(
        flush(&mut counts, NOW_NS + 1),
        [point("event", &[1.0, 2.0]), point("span", &[1.0])]
    );
    counts.add(&some(), NOW_NS + 2).unwrap();
    let again = flush(&mut counts, NOW_NS + 3);
    assert_eq!((again[0].1, &again[0].2), (4, &vec![3.0, 4.0]));
    assert_eq!(counts.room.exemplars, 0);

    let mut counts = counted("dimensions: []");
    counts.add(&some(), NOW_NS).unwrap();
    assert_eq!(
        flush(&mut counts, NOW_NS + 1),
        [(OF_SPAN.to_owned(), 3, Vec::new())]
    );
}

fn logs(options: &str) -> Logs {
    Logs {
        attributed: Attributed::plain(&settings(options).dimensions),
    }
}

#[test]
fn exceptions_become_log_records() {
    let (request, records) = logs("").logs(&some()).unwrap();
    let request = ExportLogsServiceRequest::decode(&request[..]).expect("a request");
    let [resource] = &request.resource_logs[..] else {
        panic!("{request:?}")
    };
    assert_eq!(resource.resource, None);
    let scope = &resource.scope_logs[0];
    assert_eq!(scope.scope.as_ref().expect("it").name, "library");
    assert_eq!(scope.log_records.len() as u64, records);
    let attributes: Vec<_> = scope
        .log_records
        .iter()
        .map(|record| {
            assert_eq!((record.time_unix_nano, record.severity_number), (7, 17));
            assert_eq!(record.severity_text, "ERROR");
            assert_eq!(
                (&record.trace_id, &record.span_id),
                (&vec![1; 16], &vec![2; 8])
            );
            shown(&record.attributes)
        })
        .collect();
    let record = |of_span: &str, kind: &str| {
        format!(
            "{of_span} {OF_SPAN} exception.type={kind} exception.message=it failed exception.stacktrace=at line 1"
        )
    };
    assert_eq!(
        attributes,
        [
            record("of=span", "span"),
            record("own=x", "A"),
            record("own=x", "A")
        ]
    );
}

#[test]
fn log_records_of_a_request_are_bounded() {
    let long = "x".repeat(1 << 20);
    let of = |exceptions| {
        let events = (0..exceptions).map(|_| event("exception", &[])).collect();
        let spans = vec![span(&[("long", &long)], events)];
        request(&[("service.name", "s")], vec![scope("", spans)])
    };
    assert_eq!(logs("").logs(&of(3)).map(|(_, records)| records), Ok(3));
    let fits = LOGS_BYTES_MAX / long.len();
    assert_eq!(logs("").logs(&of(fits)), Err(Malformed::TooLarge));
}
