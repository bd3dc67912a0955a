use std::sync::Arc;

use prost::Message;

use super::*;
use crate::run::send::prometheus::labels::Labels;
use crate::run::send::prometheus::store::Metric;

/// `MetricFamily` of `metrics.proto`, as far as these tests look at it.
#[derive(Clone, PartialEq, Message)]
struct Family {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<OneMetric>,
}

#[derive(Clone, PartialEq, Message)]
struct OneMetric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Pair>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Counter>,
    #[prost(int64, tag = "6")]
    timestamp_ms: i64,
    #[prost(message, optional, tag = "7")]
    histogram: Option<OneHistogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Counter {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(message, optional, tag = "3")]
    created: Option<Stamp>,
}

#[derive(Clone, PartialEq, Message)]
struct Stamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct OneHistogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    span: Vec<Span>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "2")]
    bound: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Span {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

fn written(kind: Kind, value: Value) -> Family {
    let view = View {
        metric: Metric {
            name: "a.b".into(),
            kind,
            help: "c".into(),
            unit: None,
        },
        series: vec![Sample {
            labels: Arc::new(Labels::from_pairs(&[("l", "v")])),
            point: Arc::new(Point {
                start_ns: 2_000_000_003,
                time_ns: 5_000_000,
                value,
                exemplars: Vec::new(),
            }),
        }],
        has_times: true,
    };
    let bytes = write(&[view], Escaping::Underscores);
    Family::decode_length_delimited(&*bytes).expect("a message")
}

#[test]
fn counters_say_when_they_began() {
    let family = written(Kind::Counter, Value::Int(7));
    assert_eq!(
        (family.name.as_str(), family.help.as_str(), family.kind),
        ("a_b", "c", 0)
    );
    let metric = &family.metric[0];
    assert_eq!(
        (metric.label[0].name.as_str(), metric.timestamp_ms),
        ("l", 5)
    );
    let created = Some(Stamp {
        seconds: 2,
        nanos: 3,
    });
    assert_eq!(
        metric.counter,
        Some(Counter {
            value: 7.0,
            created
        })
    );
}

#[test]
fn classic_histograms_have_cumulative_buckets() {
    let family = written(
        Kind::Histogram,
        Value::Histogram(Histogram {
            count: 6,
            sum: 7.5,
            bounds: vec![0.5, 1.0],
            counts: vec![1, 2],
        }),
    );
    let histogram = family.metric[0].histogram.clone().expect("a histogram");
    let buckets = histogram.bucket.iter().map(|one| (one.bound, one.count));
    let buckets: Vec<_> = buckets.collect();
    assert_eq!(buckets, [(0.5, 1), (1.0, 3), (f64::INFINITY, 6)]);
}

#[test]
fn exponential_histograms_have_spans_and_deltas() {
    let family = written(
        Kind::Histogram,
        Value::Native(Native {
            count: 15,
            sum: 1.0,
            scale: 3,
            zero_count: 1,
            zero_threshold: 0.0,
            positive: Buckets {
                offset: -4,
                counts: vec![0, 4, 0, 0, 6, 0, 0, 0, 4, 0],
            },
            negative: Buckets::default(),
        }),
    );
    let histogram = family.metric[0].histogram.clone().expect("a histogram");
    assert_eq!(
        (
            histogram.schema,
            histogram.zero_count,
            histogram.zero_threshold
        ),
        (3, 1, 1e-128)
    );
    let spans: Vec<_> = histogram
        .span
        .iter()
        .map(|one| (one.offset, one.length))
        .collect();
    // Places -2 to 1, and 5.
    assert_eq!(spans, [(-2, 4), (3, 1)]);
    assert_eq!(histogram.delta, [4, -4, 0, 6, -2]);
}
