//! Requests that are counted, read again by the messages of OpenTelemetry.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::*;
use crate::config;

fn rules(options: &str, takes: Signal) -> Rules {
    let connector = config::connector(&format!("count: {{ {options} }}"), takes);
    let settings: &Settings = connector.get().expect("count");
    Rules::new(settings, takes).expect("it compiles")
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn resource(attributes: Vec<KeyValue>) -> Option<Resource> {
    Some(Resource {
        attributes,
        ..Resource::default()
    })
}

fn span(attributes: Vec<KeyValue>, times: [u64; 2]) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        name: "s".into(),
        start_time_unix_nano: times[0],
        end_time_unix_nano: times[1],
        attributes,
        ..Span::default()
    }
}

fn event(name: &str, time_unix_nano: u64) -> Event {
    Event {
        name: name.into(),
        time_unix_nano,
        attributes: vec![text("of", name)],
        ..Event::default()
    }
}

fn traces(resources: Vec<ResourceSpans>) -> Vec<u8> {
    let request = ExportTraceServiceRequest {
        resource_spans: resources,
    };
    request.encode_to_vec()
}

fn of_spans(resource_attributes: Vec<KeyValue>, spans: Vec<Span>) -> ResourceSpans {
    ResourceSpans {
        resource: resource(resource_attributes),
        scope_spans: vec![ScopeSpans {
            scope: Some(InstrumentationScope {
                name: "library".into(),
                attributes: vec![text("both", "scope"), text("scope", "yes")],
                ..InstrumentationScope::default()
            }),
            spans,
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

/// The metrics of a request: what is around them, and each point by its metric and attributes.
struct Read {
    resources: Vec<Vec<KeyValue>>,
    points: BTreeMap<(String, String), i64>,
    times: Vec<(u64, u64)>,
}

fn read(counted: &Counted) -> Read {
    let request = ExportMetricsServiceRequest::decode(&counted.request[..]).expect("a request");
    let mut read = Read {
        resources: Vec::new(),
        points: BTreeMap::new(),
        times: Vec::new(),
    };
    let mut points = 0;
    for one in request.resource_metrics {
        read.resources
            .extend(one.resource.map(|one| one.attributes));
        let [scope] = &one.scope_metrics[..] else {
            panic!("{:?}", one.scope_metrics)
        };
        assert_eq!(scope.scope.as_ref().map(|scope| &*scope.name), Some(SCOPE));
        for metric in &scope.metrics {
            let Some(Data::Sum(sum)) = &metric.data else {
                panic!("{metric:?}")
            };
            assert!(sum.is_monotonic && sum.aggregation_temporality == 1);
            for point in &sum.data_points {
                points += 1;
                let attributes = point.attributes.iter().map(shown);
                let key = (
                    metric.name.clone(),
                    attributes.collect::<Vec<_>>().join(" "),
                );
                let Some(number_data_point::Value::AsInt(count)) = point.value else {
                    panic!("{point:?}")
                };
                *read.points.entry(key).or_default() += count;
                let times = (point.start_time_unix_nano, point.time_unix_nano);
                read.times.push(times);
            }
        }
    }
    assert_eq!(points, counted.points);
    read
}

fn shown(attribute: &KeyValue) -> String {
    let value = attribute.value.as_ref().and_then(|one| one.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => format!("{}='{text}'", attribute.key),
        Some(Value::IntValue(number)) => format!("{}={number}", attribute.key),
        Some(Value::DoubleValue(number)) => format!("{}={number:?}", attribute.key),
        other => panic!("{other:?}"),
    }
}

fn points(counted: &Counted) -> Vec<(String, String, i64)> {
    let points = read(counted).points.into_iter();
    points
        .map(|((metric, attributes), count)| (metric, attributes, count))
        .collect()
}

fn expected(points: &[(&str, &str, i64)]) -> Vec<(String, String, i64)> {
    let owned = |(metric, attributes, count): &(&str, &str, i64)| {
        ((*metric).to_owned(), (*attributes).to_owned(), *count)
    };
    points.iter().map(owned).collect()
}

#[test]
fn spans_and_events_are_counted_for_each_resource() {
    let spans = vec![
        Span {
            events: vec![event("e", 70), event("e", 50)],
            ..span(Vec::new(), [20, 30])
        },
        span(Vec::new(), [10, 25]),
    ];
    let request = traces(vec![
        of_spans(vec![text("service.name", "a")], spans),
        of_spans(Vec::new(), Vec::new()),
        of_spans(
            vec![text("service.name", "b")],
            vec![span(Vec::new(), [0, 0])],
        ),
    ]);
    let counted = rules("", Signal::Traces).count(&request, None).unwrap();
    let found = read(&counted);
    assert_eq!(
        found.resources,
        [
            vec![text("service.name", "a")],
            vec![text("service.name", "b")]
        ],
        "a resource of which nothing is counted is left out"
    );
    assert_eq!(
        points(&counted),
        expected(&[
            ("trace.span.count", "", 3),
            ("trace.span.event.count", "", 2)
        ])
    );
    assert_eq!(found.times[..2], [(10, 30), (50, 70)]);
    let (start, time) = found.times[2];
    assert!(start == time && start > 0, "what has no time is of now");
}

#[test]
fn counts_are_told_apart_by_attributes() {
    let options = "spans: { by: { description: what it is, attributes: [ { key: a, default_value: none }, { key: both } ] }, \
                   number: { attributes: [ { key: n, default_value: 7 } ] }, all: , \
                   scope: { attributes: [ { key: scope } ] }, missing: { attributes: [ { key: nowhere } ] } }";
    let rules = rules(options, Signal::Traces);
    let spans = vec![
        span(vec![text("a", "x"), text("both", "span")], [1, 2]),
        span(vec![text("a", "x")], [1, 2]),
        span(vec![pair("n", Value::IntValue(5))], [1, 2]),
        span(vec![pair("n", Value::DoubleValue(1.5))], [1, 2]),
        span(vec![pair("a", Value::BoolValue(true))], [1, 2]),
    ];
    let around = vec![text("both", "resource")];
    let counted = rules.count(&traces(vec![of_spans(around, spans)]), None);
    let counted = counted.unwrap();
    assert_eq!(
        points(&counted),
        expected(&[
            ("all", "", 5),
            ("by", "a='' both='scope'", 1),
            ("by", "a='none' both='scope'", 2),
            ("by", "a='x' both='scope'", 1),
            ("by", "a='x' both='span'", 1),
            ("number", "n=1.5", 1),
            ("number", "n=5", 1),
            ("number", "n=7", 3),
            ("scope", "scope='yes'", 5),
        ])
    );
    let request = ExportMetricsServiceRequest::decode(&counted.request[..]).unwrap();
    let metric = &request.resource_metrics[0].scope_metrics[0].metrics[0];
    assert_eq!((&*metric.name, &*metric.description), ("by", "what it is"));
}

#[test]
fn counts_are_of_what_any_condition_is_true_of() {
    let options = "spans: { some: { conditions: ['name == \"no\"', 'attributes[\"a\"] == \"x\" and resource.attributes[\"r\"] == \"1\"'] } }, \
                   spanevents: { e: { conditions: ['name == \"e\" and span.attributes[\"a\"] == \"x\"'], attributes: [ { key: of } ] } }";
    let rules = rules(options, Signal::Traces);
    let with_events = |value: &str| Span {
        events: vec![event("e", 1), event("f", 1)],
        ..span(vec![text("a", value)], [1, 2])
    };
    let spans = vec![with_events("x"), with_events("y")];
    let request = traces(vec![
        of_spans(vec![text("r", "1")], spans.clone()),
        of_spans(vec![text("r", "2")], spans),
    ]);
    let counted = rules.count(&request, None).unwrap();
    assert_eq!(
        points(&counted),
        expected(&[("e", "of='e'", 2), ("some", "", 1)])
    );
}

#[test]
fn metrics_and_data_points_of_all_kinds_are_counted() {
    let named = |name: &str, data| Metric {
        name: name.into(),
        data: Some(data),
        ..Metric::default()
    };
    let attributes = || vec![text("a", "x")];
    let number = || NumberDataPoint {
        attributes: attributes(),
        time_unix_nano: 5,
        ..NumberDataPoint::default()
    };
    let metrics = vec![
        named(
            "g",
            Data::Gauge(Gauge {
                data_points: vec![number(), number()],
            }),
        ),
        named(
            "s",
            Data::Sum(Sum {
                data_points: vec![number()],
                ..Sum::default()
            }),
        ),
        named(
            "h",
            Data::Histogram(Histogram {
                data_points: vec![HistogramDataPoint {
                    attributes: attributes(),
                    time_unix_nano: 9,
                    ..HistogramDataPoint::default()
                }],
                ..Histogram::default()
            }),
        ),
        named(
            "e",
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: vec![ExponentialHistogramDataPoint {
                    attributes: attributes(),
                    time_unix_nano: 3,
                    ..ExponentialHistogramDataPoint::default()
                }],
                ..ExponentialHistogram::default()
            }),
        ),
        named(
            "q",
            Data::Summary(Summary {
                data_points: vec![SummaryDataPoint {
                    attributes: attributes(),
                    time_unix_nano: 4,
                    ..SummaryDataPoint::default()
                }],
            }),
        ),
    ];
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![ScopeMetrics {
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    };
    let request = request.encode_to_vec();
    let counted = rules("", Signal::Metrics).count(&request, None).unwrap();
    assert_eq!(
        points(&counted),
        expected(&[("metric.count", "", 5), ("metric.datapoint.count", "", 6)])
    );
    let some = "metrics: { some: { conditions: ['type == METRIC_DATA_TYPE_GAUGE', 'name == \"h\"'] } }, \
                datapoints: { points: { conditions: ['time_unix_nano > 4 and metric.name != \"g\"'] } }";
    let counted = rules(some, Signal::Metrics).count(&request, None).unwrap();
    assert_eq!(
        points(&counted),
        expected(&[("points", "", 2), ("some", "", 2)])
    );
    let options = "metrics: , datapoints: { by: { attributes: [ { key: a } ] } }";
    let counted = rules(options, Signal::Metrics).count(&request, None);
    let counted = counted.unwrap();
    assert_eq!(points(&counted), expected(&[("by", "a='x'", 6)]));
    assert_eq!(read(&counted).times, [(3, 9)]);
    let options = "metrics: { all: }, datapoints: ";
    let counted = rules(options, Signal::Metrics).count(&request, None);
    assert_eq!(points(&counted.unwrap()), expected(&[("all", "", 5)]));
}

#[test]
fn log_records_are_counted() {
    let record = |value: &str, time_unix_nano| LogRecord {
        time_unix_nano,
        attributes: vec![text("level", value)],
        ..LogRecord::default()
    };
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: vec![record("a", 3), record("b", 2), record("a", 0)],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let request = request.encode_to_vec();
    let counted = rules("", Signal::Logs).count(&request, None).unwrap();
    assert_eq!(points(&counted), expected(&[("log.record.count", "", 3)]));
    assert_eq!(read(&counted).times, [(2, 3)]);
    let some =
        "logs: { some: { conditions: ['attributes[\"level\"] == \"b\"', 'time_unix_nano == 0'] } }";
    let counted = rules(some, Signal::Logs).count(&request, None).unwrap();
    assert_eq!(points(&counted), expected(&[("some", "", 2)]));
    let options = "logs: { by: { attributes: [ { key: level } ] } }";
    let counted = rules(options, Signal::Logs).count(&request, None).unwrap();
    assert_eq!(
        points(&counted),
        expected(&[("by", "level='a'", 2), ("by", "level='b'", 1)])
    );
}

#[test]
fn what_cannot_be_counted_is_a_fault() {
    let failing = "spans: { some: { conditions: ['attributes[\"a\"] + 1 == 2'] } }";
    let rules = rules(failing, Signal::Traces);
    let request = traces(vec![of_spans(
        Vec::new(),
        vec![span(vec![text("a", "x")], [1, 2])],
    )]);
    assert!(matches!(rules.count(&request, None), Err(Fault::Ottl(_))));
    let malformed = rules.count(&request[..request.len() - 1], None);
    assert!(matches!(malformed, Err(Fault::Malformed(_))));
}
