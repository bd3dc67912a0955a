//! Sums worked by hand, as the Collector makes them.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, Metric};
use prost::Message;

use super::*;
use crate::run::process::tests::streams::{
    CUMULATIVE as TOTAL, DELTA as PART, buckets, exponential, exponents, histogram, number,
    request, sum,
};

fn editor(streams_max: usize) -> Editor {
    Editor::new(&Settings {
        max_stale_ns: 1,
        streams_max,
    })
}

/// Converts a metric and keeps its changes. Returns the metric and the counts.
fn converted(editor: &Editor, metric: Metric) -> (Option<Metric>, Tally) {
    let bytes = request("s", vec![metric]).encode_to_vec();
    let converted = editor.edit(&bytes).unwrap();
    let tally = converted.tally.clone();
    let edited = converted.keep();
    let records = |bytes: &[u8]| otlp::count::records(otlp::Signal::Metrics, bytes).unwrap();
    let after = edited.bytes.unwrap_or(bytes.clone());
    assert_eq!(records(&bytes), records(&after) + edited.dropped);
    let after = ExportMetricsServiceRequest::decode(&after[..]).unwrap();
    let resource = after.resource_metrics.first();
    let metric = resource.map(|resource| resource.scope_metrics[0].metrics[0].clone());
    (metric, tally)
}

/// The metrics that each of several requests becomes.
fn each(editor: &Editor, requests: Vec<Metric>) -> Vec<Option<Metric>> {
    let one = |metric| converted(editor, metric).0;
    requests.into_iter().map(one).collect()
}

fn ints(temporality: i32, points: &[(&str, u64, u64, i64)]) -> Metric {
    let point = |(series, start, time, value): &(&str, u64, u64, i64)| {
        number(series, *start, *time, Value::AsInt(*value))
    };
    sum("m", temporality, points.iter().map(point).collect())
}

#[test]
fn deltas_are_added_up_by_stream() {
    let editor = editor(10);
    let made = each(
        &editor,
        vec![
            ints(PART, &[("a", 5, 10, 3), ("b", 5, 10, 1)]),
            ints(
                PART,
                &[("a", 10, 20, 4), ("a", 20, 30, -2), ("b", 10, 20, 0)],
            ),
        ],
    );
    let wanted = [
        ints(TOTAL, &[("a", 5, 10, 3), ("b", 5, 10, 1)]),
        ints(TOTAL, &[("a", 5, 20, 7), ("a", 5, 30, 5), ("b", 5, 20, 1)]),
    ];
    assert_eq!(made, wanted.map(Some));
    assert_eq!(editor.streams.lock().count(), 2);
    // Exemplars and whatever else a point has are its own.
    let mut point = number("a", 30, 40, Value::AsDouble(0.5));
    point.exemplars = vec![Exemplar {
        time_unix_nano: 35,
        ..Exemplar::default()
    }];
    let made = each(&editor, vec![sum("m", PART, vec![point.clone()])]);
    (point.start_time_unix_nano, point.value) = (5, Some(Value::AsDouble(5.5)));
    assert_eq!(made, [Some(sum("m", TOTAL, vec![point]))]);
}

#[test]
fn points_that_cannot_be_added_are_dropped() {
    let editor = editor(2);
    let (_, tally) = converted(&editor, ints(PART, &[("a", 5, 10, 3), ("b", 5, 10, 1)]));
    assert_eq!((tally.added, tally.dropped), (2, [0, 0, 0]));
    let points = [
        ("a", 5, 10, 1),
        ("a", 4, 20, 1),
        ("c", 5, 20, 1),
        ("a", 10, 20, 1),
    ];
    let (made, tally) = converted(&editor, ints(PART, &points));
    assert_eq!(made, Some(ints(TOTAL, &[("a", 5, 20, 4)])));
    assert_eq!((tally.added, tally.dropped), (1, [1, 1, 1]));
    let (made, _) = converted(&editor, ints(PART, &points[..1]));
    assert_eq!(made, None);
}

#[test]
fn what_is_no_delta_stays() {
    let editor = editor(10);
    let total = ints(TOTAL, &[("a", 5, 10, 3)]);
    assert_eq!(converted(&editor, total.clone()).0, Some(total));
    let mut falls = ints(PART, &[("a", 5, 10, 3)]);
    if let Some(Data::Sum(sum)) = &mut falls.data {
        sum.is_monotonic = false;
    }
    let (made, _) = converted(&editor, falls.clone());
    if let Some(Data::Sum(sum)) = &mut falls.data {
        sum.aggregation_temporality = TOTAL;
    }
    assert_eq!(made, Some(falls), "sums that fall are added up too");
}

#[test]
fn histograms_are_added_up() {
    let editor = editor(10);
    let of = |temporality, point| histogram("m", temporality, vec![point]);
    let with =
        |mut point: opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint, min, max| {
            (point.min, point.max) = (min, max);
            point
        };
    let first = with(buckets(5, 10, 2.0, &[1, 0, 1]), Some(0.0), Some(3.0));
    let second = with(buckets(10, 20, 5.0, &[1, 2, 0]), Some(-1.0), Some(2.0));
    let third = buckets(20, 30, 1.0, &[0, 0, 1]);
    let other = buckets(30, 40, 1.0, &[4, 1]);
    let made = each(
        &editor,
        vec![
            of(PART, first.clone()),
            of(PART, second),
            of(PART, third),
            of(PART, other),
        ],
    );
    let wanted = [
        first,
        with(buckets(5, 20, 7.0, &[2, 2, 1]), Some(-1.0), Some(3.0)),
        buckets(5, 30, 8.0, &[2, 2, 2]),
        // Other bounds begin a stream.
        buckets(30, 40, 1.0, &[4, 1]),
    ];
    assert_eq!(made, wanted.map(|point| Some(of(TOTAL, point))));
}

#[test]
fn exponential_histograms_are_added_up() {
    let editor = editor(10);
    let of = |temporality, point| exponential("m", temporality, vec![point]);
    let mut first = exponents(5, 10, 2, (-2, &[1, 0, 2]));
    (first.min, first.max, first.zero_count) = (Some(0.5), Some(1.0), 1);
    let mut second = exponents(10, 20, 1, (0, &[1]));
    (second.min, second.max) = (Some(1.5), Some(1.5));
    let made = each(&editor, vec![of(PART, first.clone()), of(PART, second)]);
    let mut wanted = exponents(5, 20, 1, (-1, &[1, 3]));
    (wanted.min, wanted.max, wanted.zero_count) = (Some(0.5), Some(1.5), 1);
    // The helper's count is that of its buckets.
    assert_eq!((first.count, wanted.count), (3, 4));
    assert_eq!(made, [Some(of(TOTAL, first)), Some(of(TOTAL, wanted))]);
}

#[test]
fn a_request_that_is_not_taken_is_not_added() {
    let editor = editor(10);
    let _ = converted(&editor, ints(PART, &[("a", 5, 10, 3)]));
    let second = ints(PART, &[("a", 10, 20, 4)]);
    let bytes = request("s", vec![second.clone()]).encode_to_vec();
    drop(editor.edit(&bytes).unwrap());
    let mut cut = bytes.clone();
    cut.extend_from_slice(b"\x0a\x05\x12\x03\x12\x09\x00");
    assert_eq!(editor.edit(&cut).map(drop), Err(Malformed::Truncated));
    let (made, _) = converted(&editor, second);
    assert_eq!(made, Some(ints(TOTAL, &[("a", 5, 20, 7)])));
}
