//! Spans that are counted; the metrics are read again by the messages of OpenTelemetry.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::*;
use crate::config;

const MS: u64 = 1_000_000;
const START_NS: u64 = 1000;
const LATER_NS: u64 = 2000;

fn gathered(options: &str) -> Gathered {
    let connector = config::connector(&format!("span_metrics: {{ {options} }}"), Signal::Traces);
    let settings: &Settings = connector.get().expect("span_metrics");
    Gathered::new(settings, "me", START_NS)
}

/// Without the attributes that all spans have but their name.
const BARE: &str =
    "exclude_dimensions: [service.name, span.kind, status.code, collector.instance.id]";

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

/// A span of so many milliseconds.
fn span(name: &str, duration_ms: u64) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![0, 0, 0, 0, 0, 0, 0, 2],
        name: name.into(),
        start_time_unix_nano: 5 * MS,
        end_time_unix_nano: (5 + duration_ms) * MS,
        ..Span::default()
    }
}

fn request(resource: Vec<KeyValue>, spans: Vec<Span>) -> Vec<u8> {
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource,
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "library".into(),
                    version: "1".into(),
                    ..InstrumentationScope::default()
                }),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

fn service(name: &str) -> Vec<KeyValue> {
    vec![text("service.name", name)]
}

/// The series of a flush, each by its resource, metric and attributes.
#[derive(Debug, Default)]
struct Read {
    counts: BTreeMap<String, i64>,
    /// Bounds of the first and counts.
    buckets: BTreeMap<String, (Vec<f64>, Vec<u64>)>,
    units: BTreeMap<String, String>,
    times: Vec<(u64, u64)>,
    temporalities: Vec<i32>,
    exemplars: usize,
    resources: Vec<String>,
}

fn flush(gathered: &mut Gathered, now_ns: u64) -> Read {
    let mut read = Read::default();
    for (request, points) in gathered.requests(now_ns) {
        let request = ExportMetricsServiceRequest::decode(&request[..]).expect("a request");
        let mut all = 0;
        for one in request.resource_metrics {
            let attributes = one.resource.map(|one| one.attributes).unwrap_or_default();
            read.resources.push(shown(&attributes));
            assert_eq!(one.scope_metrics[0].scope.as_ref().expect("it").name, SCOPE);
            for metric in &one.scope_metrics[0].metrics {
                read.units.insert(metric.name.clone(), metric.unit.clone());
                let key = |attributes: &[KeyValue]| {
                    let name = metric.name.trim_start_matches("traces.span.metrics.");
                    format!("{name} {}", shown(attributes))
                };
                match metric.data.as_ref().expect("data") {
                    Data::Sum(sum) => {
                        assert!(sum.is_monotonic);
                        read.temporalities.push(sum.aggregation_temporality);
                        all += sum.data_points.len();
                        for point in &sum.data_points {
                            let Some(number_data_point::Value::AsInt(count)) = point.value else {
                                panic!("{point:?}")
                            };
                            *read.counts.entry(key(&point.attributes)).or_default() += count;
                            let times = (point.start_time_unix_nano, point.time_unix_nano);
                            read.times.push(times);
                            read.exemplars += point.exemplars.len();
                        }
                    }
                    Data::Histogram(histogram) => {
                        read.temporalities.push(histogram.aggregation_temporality);
                        all += histogram.data_points.len();
                        for point in &histogram.data_points {
                            assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
                            let buckets =
                                (point.explicit_bounds.clone(), point.bucket_counts.clone());
                            read.buckets.insert(key(&point.attributes), buckets);
                            read.exemplars += point.exemplars.len();
                        }
                    }
                    Data::ExponentialHistogram(histogram) => {
                        all += histogram.data_points.len();
                        for point in &histogram.data_points {
                            let positive = point.positive.clone().expect("buckets");
                            let numbers = vec![
                                f64::from(point.scale),
                                f64::from(positive.offset),
                                point.zero_count as f64,
                                point.sum.expect("a sum"),
                                point.min.expect("a minimum"),
                                point.max.expect("a maximum"),
                            ];
                            let buckets = (numbers, positive.bucket_counts);
                            read.buckets.insert(key(&point.attributes), buckets);
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(all as u64, points);
    }
    read.resources.sort();
    read
}

fn shown(attributes: &[KeyValue]) -> String {
    let one = |one: &KeyValue| {
        let value = one.value.as_ref().and_then(|value| value.value.clone());
        match value {
            Some(Value::StringValue(text)) => format!("{}={text}", one.key),
            Some(Value::IntValue(number)) => format!("{}={number}", one.key),
            Some(Value::BoolValue(flag)) => format!("{}={flag}", one.key),
            other => panic!("{other:?}"),
        }
    };
    attributes.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn counts(read: &Read) -> Vec<(&str, i64)> {
    let counts = read.counts.iter();
    counts.map(|(key, count)| (key.as_str(), *count)).collect()
}

#[test]
fn spans_are_counted_and_measured_by_their_service_name_kind_and_status() {
    let mut gathered = gathered("");
    let failed = Span {
        kind: 2,
        status: Some(Status {
            code: 2,
            ..Status::default()
        }),
        ..span("a", 300)
    };
    let mut resource = service("shop");
    resource.push(text("host", "h"));
    let spans = vec![span("a", 2), span("a", 3), failed, span("b", 0)];
    gathered.add(&request(resource, spans), START_NS).unwrap();
    let nobody = request(vec![text("host", "h")], vec![span("a", 2)]);
    gathered.add(&nobody, START_NS).unwrap();
    let read = flush(&mut gathered, LATER_NS);
    let of = |name: &str, kind: &str, status: &str| {
        format!(
            "service.name=shop span.name={name} span.kind=SPAN_KIND_{kind} status.code=STATUS_CODE_{status} collector.instance.id=me"
        )
    };
    let [fine, failed, other] = [
        of("a", "UNSPECIFIED", "UNSET"),
        of("a", "SERVER", "ERROR"),
        of("b", "UNSPECIFIED", "UNSET"),
    ];
    let calls = |of: &str| read.counts[&format!("calls {of}")];
    assert_eq!((calls(&fine), calls(&failed), calls(&other)), (2, 1, 1));
    let buckets = |of: &str| {
        let (bounds, counts) = &read.buckets[&format!("duration {of}")];
        let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let filled = filled.map(|(place, count)| (bounds[place], *count));
        filled.collect::<Vec<_>>()
    };
    assert_eq!(buckets(&fine), [(2.0, 1), (4.0, 1)]);
    assert_eq!(buckets(&failed), [(400.0, 1)]);
    assert_eq!(buckets(&other), [(2.0, 1)]);
    let names = ["traces.span.metrics.calls", "traces.span.metrics.duration"];
    let units = names.map(|name| read.units[name].as_str());
    assert_eq!(units, ["", "ms"]);
    assert_eq!(read.resources, ["service.name=shop host=h"]);
    assert!(
        read.times
            .iter()
            .all(|times| *times == (START_NS, LATER_NS))
    );
    assert_eq!(read.exemplars, 0);
    // Sums go on.
    let again = request(service("shop"), vec![span("b", 1)]);
    gathered.add(&again, LATER_NS).unwrap();
    let read = flush(&mut gathered, LATER_NS + 1);
    assert_eq!(read.resources.len(), 2, "another resource");
    assert_eq!(read.counts[&format!("calls {fine}")], 2);
    assert_eq!(read.counts[&format!("calls {other}")], 2);
    assert!(
        read.temporalities
            .iter()
            .all(|temporality| *temporality == 2)
    );
}

#[test]
fn attributes_are_those_of_the_settings() {
    let options = "namespace: '', dimensions: [ { name: both }, { name: absent }, { name: n, default: none } ], \
                   calls_dimensions: [ { name: c } ], histogram: { dimensions: [ { name: d } ] }, \
                   include_instrumentation_scope: [library], \
                   events: { enabled: true, dimensions: [ { name: e } ] }";
    let mut gathered = gathered(&format!("{options}, {BARE}"));
    let mut resource = service("shop");
    resource.push(text("both", "resource"));
    let one = Span {
        attributes: vec![
            text("both", "span"),
            pair("c", Value::IntValue(7)),
            text("d", "x"),
        ],
        events: vec![Event {
            attributes: vec![text("e", "y"), text("both", "event"), text("n", "event")],
            ..Event::default()
        }],
        ..span("a", 1)
    };
    let spans = vec![one, span("a", 1)];
    gathered.add(&request(resource, spans), START_NS).unwrap();
    let read = flush(&mut gathered, LATER_NS);
    let names: Vec<_> = read.units.keys().collect();
    assert_eq!(names, ["calls", "duration", "events"]);
    const SCOPED: &str =
        "span.instrumentation.scope.name=library span.instrumentation.scope.version=1";
    let expected = [
        (
            format!("calls span.name=a {SCOPED} both=resource n=none"),
            1,
        ),
        (
            format!("calls span.name=a {SCOPED} both=span n=none c=7"),
            1,
        ),
        (
            format!("events span.name=a {SCOPED} both=span n=event e=y"),
            1,
        ),
    ];
    let expected: Vec<_> = { expected.iter() }
        .map(|(key, count)| (key.as_str(), *count))
        .collect();
    assert_eq!(counts(&read), expected);
    let durations: Vec<_> = read.buckets.keys().collect();
    assert_eq!(
        durations,
        [
            &format!("duration span.name=a {SCOPED} both=resource n=none"),
            &format!("duration span.name=a {SCOPED} both=span n=none d=x")
        ]
    );
}

#[test]
fn histograms_are_those_of_the_settings() {
    let spans = || {
        request(
            service("s"),
            vec![span("a", 0), span("a", 1500), span("a", 3000)],
        )
    };
    let buckets = |histogram: &str| {
        let mut gathered = gathered(&format!("histogram: {{ {histogram} }}, {BARE}"));
        gathered.add(&spans(), START_NS).unwrap();
        let read = flush(&mut gathered, LATER_NS);
        let unit = read.units.get("traces.span.metrics.duration").cloned();
        let buckets = read.buckets.get("duration span.name=a").cloned();
        (unit, buckets)
    };
    let (unit, found) = buckets("unit: s, explicit: { buckets: [1s, 2s] }");
    assert_eq!(unit.as_deref(), Some("s"));
    assert_eq!(found, Some((vec![1.0, 2.0], vec![1, 1, 1])));
    let (_, found) = buckets("explicit: { buckets: [100us, 1500ms] }");
    assert_eq!(found, Some((vec![0.1, 1500.0], vec![1, 1, 1])));
    let (_, found) = buckets("unit: s, exponential: { max_size: 2 }");
    assert_eq!(
        found,
        Some((vec![0.0, 0.0, 1.0, 4.5, 0.0, 3.0], vec![1, 1]))
    );
    let (_, found) = buckets("unit: s, exponential:");
    let (numbers, _) = found.expect("buckets");
    assert!(numbers[0] > 6.0, "160 buckets are finer: {numbers:?}");
    assert_eq!(buckets("disable: true"), (None, None));
}

#[test]
fn deltas_are_what_came_since_the_last_flush() {
    let temporality = "aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA";
    let mut gathered = gathered(&format!("{temporality}, {BARE}"));
    let two = request(service("s"), vec![span("a", 1), span("a", 1)]);
    gathered.add(&two, START_NS + 1).unwrap();
    let read = flush(&mut gathered, LATER_NS);
    assert_eq!(counts(&read), [("calls span.name=a", 2)]);
    assert_eq!(read.times, [(START_NS, LATER_NS)]);
    assert!(
        read.temporalities
            .iter()
            .all(|temporality| *temporality == 1)
    );
    assert_eq!(flush(&mut gathered, LATER_NS + 1).counts.len(), 0);
    gathered.add(&two, LATER_NS + 2).unwrap();
    let read = flush(&mut gathered, LATER_NS + 3);
    assert_eq!(counts(&read), [("calls span.name=a", 2)]);
    assert_eq!(read.times, [(LATER_NS + 1, LATER_NS + 3)], "without a gap");
    assert_eq!((gathered.room.series, gathered.room.bytes), (0, 0));
}

#[test]
fn exemplars_are_the_first_spans_of_a_flush() {
    let options = "exemplars: { enabled: true, max_per_data_point: 2 }";
    let mut measured = gathered(&format!("{options}, {BARE}"));
    let untraced = Span {
        trace_id: Vec::new(),
        ..span("b", 1)
    };
    let spans = vec![span("a", 1), span("a", 1), span("a", 1), untraced];
    measured
        .add(&request(service("s"), spans), START_NS)
        .unwrap();
    assert_eq!(
        flush(&mut measured, LATER_NS).exemplars,
        4,
        "calls, durations"
    );
    assert_eq!(flush(&mut measured, LATER_NS + 1).exemplars, 0);
    let mut measured = gathered(&format!("exemplars: {{ enabled: true }}, {BARE}"));
    let spans = (0..9).map(|_| span("a", 1)).collect();
    measured
        .add(&request(service("s"), spans), START_NS)
        .unwrap();
    assert_eq!(measured.room.exemplars, 10);
    assert_eq!(flush(&mut measured, LATER_NS).exemplars, 10);
    assert_eq!(measured.room.exemplars, 0);
}

#[test]
fn a_sampled_span_counts_for_those_that_were_not_sampled() {
    let options = format!("enable_metrics_sampling_method: true, {BARE}");
    let mut gathered = gathered(&options);
    let sampled = |state: &str| Span {
        trace_state: state.into(),
        ..span("a", 1)
    };
    let spans = vec![
        sampled("ot=th:c"),
        sampled("ot=th:8"),
        sampled("other=1"),
        span("a", 1),
    ];
    gathered
        .add(&request(service("s"), spans), START_NS)
        .unwrap();
    let read = flush(&mut gathered, LATER_NS);
    assert_eq!(
        counts(&read),
        [
            ("calls span.name=a sampling.method=counted", 2),
            ("calls span.name=a sampling.method=extrapolated", 6)
        ]
    );
    let (_, buckets) = &read.buckets["duration span.name=a sampling.method=extrapolated"];
    assert_eq!(buckets.iter().sum::<u64>(), 6);
    // Counts end at the largest number there is.
    let rare = (0..300).map(|_| sampled("ot=th:ffffffffffffff")).collect();
    gathered
        .add(&request(service("s"), rare), START_NS)
        .unwrap();
    let read = flush(&mut gathered, LATER_NS);
    let key = "calls span.name=a sampling.method=extrapolated";
    assert_eq!(read.counts[key], i64::MAX);
    // One of three: mostly once, else twice.
    let threshold = THRESHOLD_MAX / 3;
    let all: u64 = (0..3000_u64)
        .map(|id| {
            times(
                threshold,
                &(id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes(),
            )
        })
        .sum();
    assert!((4400..4600).contains(&all), "{all}");
}

#[test]
fn further_series_are_counted_together() {
    let mut gathered = gathered(&format!("aggregation_cardinality_limit: 2, {BARE}"));
    let spans = ["a", "b", "c", "d", "a"].map(|name| span(name, 1));
    gathered
        .add(&request(service("s"), spans.to_vec()), START_NS)
        .unwrap();
    let read = flush(&mut gathered, LATER_NS);
    assert_eq!(
        counts(&read),
        [
            ("calls otel.metric.overflow=true", 2),
            ("calls span.name=a", 2),
            ("calls span.name=b", 1)
        ]
    );
    let (_, buckets) = &read.buckets["duration otel.metric.overflow=true"];
    assert_eq!(buckets.iter().sum::<u64>(), 2);
}

#[test]
fn what_is_silent_is_forgotten() {
    let add = |gathered: &mut Gathered, service_name: &str, name: &str, now_ns: u64| {
        let one = request(service(service_name), vec![span(name, 1)]);
        gathered.add(&one, now_ns).unwrap();
    };
    let mut by_resource = gathered(&format!("metrics_expiration: 1us, {BARE}"));
    add(&mut by_resource, "one", "a", START_NS);
    add(&mut by_resource, "two", "a", START_NS + 600);
    assert_eq!(flush(&mut by_resource, START_NS + 999).resources.len(), 2);
    // At its end it was silent for long enough; so it was told for the last time.
    assert_eq!(flush(&mut by_resource, START_NS + 1000).resources.len(), 2);
    let left = flush(&mut by_resource, START_NS + 1001);
    assert_eq!(left.resources, ["service.name=two"]);

    let mut by_series = gathered(&format!("series_expiration: 1us, {BARE}"));
    add(&mut by_series, "one", "a", START_NS);
    add(&mut by_series, "one", "b", START_NS + 600);
    assert_eq!(flush(&mut by_series, START_NS + 1000).counts.len(), 2);
    let left = flush(&mut by_series, START_NS + 1001);
    assert_eq!(counts(&left), [("calls span.name=b", 1)]);
}

#[test]
fn resources_are_as_many_and_as_different_as_the_settings_say() {
    let mut few = gathered(&format!("resource_metrics_cache_size: 2, {BARE}"));
    for name in ["one", "two", "one", "three"] {
        let one = request(service(name), vec![span("a", 1)]);
        few.add(&one, START_NS).unwrap();
    }
    let all = ["one", "three", "two"].map(|name| format!("service.name={name}"));
    assert_eq!(
        flush(&mut few, LATER_NS).resources,
        all,
        "the oldest once more"
    );
    let left = flush(&mut few, LATER_NS + 1).resources;
    assert_eq!(left, [all[0].clone(), all[1].clone()]);

    let of_process = |id: &str| {
        let mut resource = service("s");
        resource.push(text("process", id));
        request(resource, vec![span("a", 1)])
    };
    let mut all = gathered(BARE);
    let keys = "resource_metrics_key_attributes: [service.name]";
    let mut by_service = gathered(&format!("{keys}, {BARE}"));
    for gathered in [&mut all, &mut by_service] {
        gathered.add(&of_process("1"), START_NS).unwrap();
        gathered.add(&of_process("2"), START_NS).unwrap();
    }
    assert_eq!(flush(&mut all, LATER_NS).resources.len(), 2);
    let read = flush(&mut by_service, LATER_NS);
    assert_eq!(read.resources, ["service.name=s process=1"]);
    assert_eq!(counts(&read), [("calls span.name=a", 2)]);
}
