//! Conversions worked by hand, as the Collector does them.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint};
use prost::Message;

use super::*;
use crate::run::process::tests::streams::{
    CUMULATIVE, DELTA, buckets, exponential, exponents, histogram, number, request, sum,
};
use crate::run::process::tests::{kv, text};

/// When the collector of the tests began.
const BEGUN_NS: u64 = 100;

fn settings(initial_value: InitialValue) -> Settings {
    Settings {
        include: MetricMatch::default(),
        exclude: MetricMatch::default(),
        max_staleness_ns: 0,
        initial_value,
    }
}

fn editor(initial_value: InitialValue) -> Editor {
    Editor::new(&settings(initial_value), BEGUN_NS).unwrap()
}

/// Converts a request and keeps its changes. Returns the metrics and the counts.
fn converted(editor: &Editor, metrics: Vec<Metric>) -> (Vec<Metric>, Tally) {
    let before = request("s", metrics);
    let bytes = before.encode_to_vec();
    let converted = editor.edit(&bytes).unwrap();
    let tally = converted.tally.clone();
    let edited = converted.keep();
    let records = otlp::count::records(otlp::Signal::Metrics, &bytes).unwrap();
    let bytes = edited.bytes.unwrap_or(bytes);
    let left = otlp::count::records(otlp::Signal::Metrics, &bytes).unwrap();
    assert_eq!(records, left + edited.dropped);
    let after = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
    let Some(resource) = after.resource_metrics.into_iter().next() else {
        return (vec![], tally);
    };
    assert_eq!(resource.resource, before.resource_metrics[0].resource);
    (resource.scope_metrics[0].metrics.clone(), tally)
}

/// The metrics that each of several requests becomes.
fn each(editor: &Editor, requests: Vec<Metric>) -> Vec<Option<Metric>> {
    let one = |metric| converted(editor, vec![metric]).0.pop();
    requests.into_iter().map(one).collect()
}

fn ints(series: &str, start: u64, points: &[(u64, i64)]) -> Vec<NumberDataPoint> {
    let point = |(time, value): &(u64, i64)| number(series, start, *time, Value::AsInt(*value));
    points.iter().map(point).collect()
}

#[test]
fn sums_become_the_difference_to_the_point_before() {
    let editor = editor(InitialValue::Drop);
    let before = |points: &[(u64, i64)]| sum("m", CUMULATIVE, ints("a", 1, points));
    let after = |start, time, value| {
        let point = number("a", start, time, Value::AsInt(value));
        Some(sum("m", DELTA, vec![point]))
    };
    let made = each(
        &editor,
        vec![before(&[(10, 5)]), before(&[(20, 7)]), before(&[(30, 7)])],
    );
    assert_eq!(made, [None, after(10, 20, 2), after(20, 30, 0)]);
    // A lesser value is a reset: the next point counts from there.
    let made = each(&editor, vec![before(&[(40, 3)]), before(&[(50, 4)])]);
    assert_eq!(made, [None, after(40, 50, 1)]);
    // Several points of one request, and another series.
    let mut points = ints("a", 1, &[(60, 5), (70, 8)]);
    points.extend(ints("b", 1, &[(70, 1)]));
    let (made, tally) = converted(&editor, vec![sum("m", CUMULATIVE, points)]);
    let points = vec![
        number("a", 50, 60, Value::AsInt(1)),
        number("a", 60, 70, Value::AsInt(3)),
    ];
    assert_eq!(made, [sum("m", DELTA, points)]);
    assert_eq!(
        (tally.converted, tally.dropped[0]),
        ([2, 0, 0], [1, 0, 0, 0, 0])
    );
    assert_eq!(editor.streams.lock().count(), 2);
}

#[test]
fn streams_are_told_apart() {
    let editor = editor(InitialValue::Drop);
    let value = || Value::AsDouble(5.0);
    let mut request = request(
        "s",
        vec![sum("m", CUMULATIVE, vec![number("a", 1, 10, value())])],
    );
    let edit = |request: &ExportMetricsServiceRequest| {
        let converted = editor.edit(&request.encode_to_vec()).unwrap();
        let count = converted.tally.converted[0];
        let _ = converted.keep();
        (editor.streams.lock().count(), count)
    };
    assert_eq!(edit(&request), (1, 0));
    assert_eq!(edit(&request), (1, 1));
    // Attributes in another order are the same.
    let point = |request: &mut ExportMetricsServiceRequest,
                 change: &dyn Fn(&mut NumberDataPoint)| {
        let metric = &mut request.resource_metrics[0].scope_metrics[0].metrics[0];
        let Some(Data::Sum(sum)) = &mut metric.data else {
            panic!("a sum");
        };
        change(&mut sum.data_points[0]);
    };
    point(&mut request, &|point| {
        point.attributes.push(kv("b", text("c")))
    });
    assert_eq!(edit(&request), (2, 0));
    point(&mut request, &|point| point.attributes.reverse());
    assert_eq!(edit(&request), (2, 1));
    point(&mut request, &|point| point.start_time_unix_nano = 2);
    assert_eq!(edit(&request), (3, 0));
    point(&mut request, &|point| point.value = Some(Value::AsInt(5)));
    assert_eq!(edit(&request), (4, 0));
    request.resource_metrics[0].scope_metrics[0].metrics[0].unit = "s".into();
    assert_eq!(edit(&request), (5, 0));
    let scope = &mut request.resource_metrics[0].scope_metrics[0];
    scope.scope.as_mut().unwrap().version = "2".into();
    assert_eq!(edit(&request), (6, 0));
    request.resource_metrics[0].resource = None;
    assert_eq!(edit(&request), (7, 0));
    assert_eq!(edit(&request), (7, 1));
}

#[test]
fn the_first_point_is_kept_or_dropped_as_the_settings_say() {
    for (initial_value, start, time, kept) in [
        (InitialValue::Keep, 1, 200, Some(0)),
        (InitialValue::Drop, 150, 200, None),
        (InitialValue::Auto, 150, 200, Some(150)),
        (InitialValue::Auto, BEGUN_NS, 200, Some(BEGUN_NS)),
        (InitialValue::Auto, BEGUN_NS - 1, 200, None),
        (InitialValue::Auto, 200, 200, None),
    ] {
        let editor = editor(initial_value);
        let points = vec![number("a", start, time, Value::AsDouble(1.5))];
        let (made, _) = converted(&editor, vec![sum("m", CUMULATIVE, points)]);
        let wanted = kept.map(|start| {
            let point = number("a", start, time, Value::AsDouble(1.5));
            sum("m", DELTA, vec![point])
        });
        assert_eq!(made, Vec::from_iter(wanted), "{initial_value:?} {start}");
        let points = vec![number("a", start, time + 1, Value::AsDouble(2.0))];
        let (made, _) = converted(&editor, vec![sum("m", CUMULATIVE, points)]);
        let points = vec![number("a", time, time + 1, Value::AsDouble(0.5))];
        assert_eq!(made, [sum("m", DELTA, points)]);
    }
}

#[test]
fn histograms_become_the_difference_of_their_buckets() {
    let editor = editor(InitialValue::Drop);
    let of = |temporality, point| histogram("m", temporality, vec![point]);
    let mut second = buckets(1, 20, 9.0, &[2, 1, 4]);
    (second.min, second.max) = (Some(0.0), Some(9.0));
    let mut odd = buckets(1, 30, f64::NAN, &[3, 1, 4]);
    odd.flags = 0;
    let made = each(
        &editor,
        vec![
            of(CUMULATIVE, buckets(1, 10, 5.0, &[1, 1, 2])),
            of(CUMULATIVE, second),
            of(CUMULATIVE, odd),
            of(CUMULATIVE, buckets(1, 40, 10.0, &[3, 2, 4])),
        ],
    );
    let wanted = buckets(10, 20, 4.0, &[1, 0, 2]);
    assert_eq!(made[0], None);
    assert_eq!(made[1], Some(of(DELTA, wanted)));
    // A sum that is no number stays; the next one is the difference to the last that is one.
    let Some(Data::Histogram(data)) = made[2].clone().and_then(|metric| metric.data) else {
        panic!("{made:?}");
    };
    let point = &data.data_points[0];
    assert!(point.sum.is_some_and(f64::is_nan));
    assert_eq!((point.count, &point.bucket_counts[..]), (1, &[1, 0, 0][..]));
    let wanted = buckets(30, 40, 1.0, &[0, 1, 0]);
    assert_eq!(made[3], Some(of(DELTA, wanted)));
    // After a reset all of it came since; other buckets say nothing.
    let made = each(
        &editor,
        vec![
            of(CUMULATIVE, buckets(1, 50, 2.0, &[1, 1, 0])),
            of(CUMULATIVE, buckets(1, 60, 2.0, &[1, 1])),
            of(CUMULATIVE, buckets(1, 70, 3.0, &[1, 2])),
        ],
    );
    let reset = buckets(40, 50, 2.0, &[1, 1, 0]);
    let after = buckets(60, 70, 1.0, &[0, 1]);
    let wanted = [Some(of(DELTA, reset)), None, Some(of(DELTA, after))];
    assert_eq!(made, wanted);
}

#[test]
fn exponential_histograms_become_the_difference_of_their_buckets() {
    let editor = editor(InitialValue::Drop);
    let of = |temporality, point| exponential("m", temporality, vec![point]);
    let mut second = exponents(1, 20, 2, (-2, &[2, 0, 5]));
    (second.min, second.max) = (Some(0.0), Some(9.0));
    let made = each(
        &editor,
        vec![
            of(CUMULATIVE, exponents(1, 10, 2, (-2, &[1, 0, 2]))),
            of(CUMULATIVE, second),
            of(CUMULATIVE, exponents(1, 30, 1, (-1, &[2, 6]))),
            of(CUMULATIVE, exponents(1, 40, 1, (-1, &[1]))),
            of(CUMULATIVE, exponents(1, 50, 1, (-1, &[2]))),
        ],
    );
    let wanted = |start, time, scale, buckets| {
        let mut point = exponents(start, time, scale, buckets);
        point.negative = None;
        Some(of(DELTA, point))
    };
    assert_eq!(made[0], None);
    assert_eq!(made[1], wanted(10, 20, 2, (-2, &[1, 0, 3])));
    assert_eq!(made[2], wanted(20, 30, 1, (0, &[1])));
    assert_eq!(made[3], None, "it was reset");
    assert_eq!(made[4], wanted(40, 50, 1, (-1, &[1])));
    let mut zeros = exponents(1, 60, 1, (-1, &[2]));
    (zeros.zero_count, zeros.count) = (3, 5);
    zeros.negative = Some(Buckets {
        offset: 7,
        bucket_counts: vec![1],
    });
    let made = each(&editor, vec![of(CUMULATIVE, zeros)]);
    let Some(Data::ExponentialHistogram(data)) = made[0].clone().and_then(|metric| metric.data)
    else {
        panic!("{made:?}");
    };
    let point = &data.data_points[0];
    assert_eq!((point.zero_count, point.count), (3, 3));
    assert_eq!(point.positive, None);
    let negative = point.negative.as_ref().unwrap();
    assert_eq!(
        (negative.offset, &negative.bucket_counts[..]),
        (7, &[1][..])
    );
}

#[test]
fn what_is_no_cumulative_total_stays() {
    let editor = editor(InitialValue::Drop);
    let points = || ints("a", 1, &[(10, 5)]);
    let mut falls = sum("falls", CUMULATIVE, points());
    if let Some(Data::Sum(sum)) = &mut falls.data {
        sum.is_monotonic = false;
    }
    let gauge = Metric {
        name: "gauge".into(),
        data: Some(Data::Gauge(Gauge {
            data_points: points(),
        })),
        ..Metric::default()
    };
    let metrics = vec![
        sum("delta", DELTA, points()),
        sum("none", CUMULATIVE, vec![]),
        falls,
        gauge,
        Metric::default(),
    ];
    let (made, tally) = converted(&editor, metrics.clone());
    assert_eq!((made, tally), (metrics, Tally::default()));
    // A stale series: no number stays, and what has no value goes.
    let mut stale = number("b", 1, 10, Value::AsDouble(f64::NAN));
    let (made, _) = converted(&editor, vec![sum("m", CUMULATIVE, vec![stale.clone()])]);
    assert_eq!(made.len(), 1);
    stale.flags = 1;
    let (made, tally) = converted(&editor, vec![sum("m", CUMULATIVE, vec![stale])]);
    assert_eq!(made, []);
    assert_eq!(tally.dropped[0], [0, 0, 0, 1, 0]);
}

#[test]
fn metrics_are_chosen_by_their_names_and_types() {
    let by = |names: &[&str], regex, kinds: &[MetricKind]| MetricMatch {
        regex,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        kinds: kinds.to_vec(),
    };
    let none = || MetricMatch::default();
    let all = ["sum.a", "sum.b", "histogram", "exponential"];
    for (include, exclude, wanted) in [
        (none(), none(), &all[..]),
        (by(&["sum.a"], false, &[]), none(), &all[..1]),
        (
            by(&["^sum", "l$"], true, &[]),
            none(),
            &["sum.a", "sum.b", "exponential"],
        ),
        (by(&[], false, &[MetricKind::Histogram]), none(), &all[2..3]),
        (
            by(&["."], true, &[MetricKind::Sum]),
            by(&["b"], true, &[]),
            &all[..1],
        ),
        (
            none(),
            by(&["sum.a"], false, &[MetricKind::Exponential]),
            &all[1..3],
        ),
    ] {
        let settings = Settings {
            include,
            exclude,
            ..settings(InitialValue::Keep)
        };
        let editor = Editor::new(&settings, BEGUN_NS).unwrap();
        let metrics = vec![
            sum("sum.a", CUMULATIVE, ints("a", 1, &[(10, 5)])),
            sum("sum.b", CUMULATIVE, ints("a", 1, &[(10, 5)])),
            histogram("histogram", CUMULATIVE, vec![buckets(1, 10, 1.0, &[1])]),
            exponential(
                "exponential",
                CUMULATIVE,
                vec![exponents(1, 10, 0, (0, &[1]))],
            ),
        ];
        let (made, _) = converted(&editor, metrics);
        let is_delta = |metric: &&Metric| match &metric.data {
            Some(Data::Sum(data)) => data.aggregation_temporality == DELTA,
            Some(Data::Histogram(data)) => data.aggregation_temporality == DELTA,
            Some(Data::ExponentialHistogram(data)) => data.aggregation_temporality == DELTA,
            _ => false,
        };
        let deltas = made.iter().filter(is_delta).map(|metric| &*metric.name);
        assert_eq!(deltas.collect::<Vec<_>>(), wanted, "{settings:?}");
    }
}

#[test]
fn a_request_that_is_malformed_changes_nothing() {
    let editor = editor(InitialValue::Drop);
    let first = sum("m", CUMULATIVE, ints("a", 1, &[(10, 5)]));
    let mut bytes = request("s", vec![first.clone()]).encode_to_vec();
    // A second resource that ends too early.
    bytes.extend_from_slice(b"\x0a\x05\x12\x03\x12\x09\x00");
    let edited = editor.edit(&bytes);
    assert_eq!(edited.map(drop), Err(Malformed::Truncated));
    assert_eq!(editor.streams.lock().count(), 0);
    // Nor does one that is not taken.
    let bytes = request("s", vec![first]).encode_to_vec();
    let converted = editor.edit(&bytes).unwrap();
    assert_eq!(editor.streams.lock().count(), 1);
    drop(converted);
    assert_eq!(editor.streams.lock().count(), 0);
}
