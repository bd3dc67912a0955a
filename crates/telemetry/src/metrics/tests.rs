use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, KeyValue, any_value::Value as AttributeValue,
};
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use otlp::metric::Data;
use otlp::number_data_point::Value;
use prost::Message;

use super::*;
use crate::Ids;

mod model;

const START: u64 = 1_000;

fn instrument(name: &str, kind: Kind, aggregation: Aggregation) -> Instrument {
    Instrument {
        name: name.to_string(),
        kind,
        description: format!("what {name} is"),
        unit: "ms".to_string(),
        aggregation,
    }
}

fn of(list: Vec<Instrument>) -> Arc<Instruments> {
    Arc::new(Instruments::new(list, 42))
}

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_string(),
        value: Some(AnyValue {
            value: Some(AttributeValue::StringValue(value.to_string())),
        }),
        ..KeyValue::default()
    }
}

/// As recorders are given them.
fn encoded(pairs: &[KeyValue]) -> Vec<u8> {
    let mut out = Vec::new();
    for pair in pairs {
        ::otlp::write::bytes(&mut out, 1, &pair.encode_to_vec());
    }
    out
}

fn set(value: &str) -> Vec<u8> {
    encoded(&[pair("k", value)])
}

/// What is collected, which another encoder would write in the same bytes.
fn collected(shared: &Shared, now: u64) -> Vec<otlp::Metric> {
    let mut bytes = Vec::new();
    let points = shared.collect(now, &mut bytes);
    let scope = otlp::ScopeMetrics::decode(&bytes[..]).unwrap();
    assert_eq!(scope.encode_to_vec(), bytes);
    let count: usize = scope
        .metrics
        .iter()
        .map(|metric| model::points(metric).len())
        .sum();
    assert_eq!(points, count);
    scope.metrics
}

fn sums(metric: &otlp::Metric) -> Vec<(String, i64)> {
    let points = match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => &sum.data_points,
        Data::Gauge(gauge) => &gauge.data_points,
        other => panic!("{other:?}"),
    };
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(AttributeValue::StringValue(text)) => text.clone(),
        other => format!("{}={other:?}", pair.key),
    };
    let value = |point: &otlp::NumberDataPoint| match point.value {
        Some(Value::AsInt(value)) => value,
        other => panic!("{other:?}"),
    };
    points
        .iter()
        .map(|point| (point.attributes.iter().map(text).collect(), value(point)))
        .collect()
}

#[test]
fn a_counter_is_written_whole() {
    let instruments = of(vec![instrument(
        "requests",
        Kind::Counter,
        Aggregation::Default,
    )]);
    let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
    let mut local = Local::new(instruments);
    assert!(local.is_empty() && collected(&shared, 1500).is_empty());
    local.record(0, 2, &set("a"), 0);
    local.record(0, 3, &set("a"), 0);
    local.record(0, 0, b"", 0);
    assert!(!local.is_empty());
    shared.merge(&mut local);
    assert!(local.is_empty());
    let [metric] = &collected(&shared, 2000)[..] else {
        panic!("one metric");
    };
    assert_eq!(metric.name, "requests");
    assert_eq!(metric.description, "what requests is");
    assert_eq!(metric.unit, "ms");
    let Some(Data::Sum(sum)) = &metric.data else {
        panic!("a sum");
    };
    assert!(sum.is_monotonic);
    assert_eq!(
        sum.aggregation_temporality(),
        otlp::AggregationTemporality::Cumulative
    );
    let point = &sum.data_points[0];
    assert_eq!(
        (point.start_time_unix_nano, point.time_unix_nano),
        (START, 2000)
    );
    assert_eq!(point.attributes, [pair("k", "a")]);
    assert_eq!(sums(metric), [("a".to_string(), 5), (String::new(), 0)]);
}

#[test]
fn negative_values_of_what_only_grows_are_rejected() {
    let kinds = [
        Kind::Counter,
        Kind::Histogram,
        Kind::UpDownCounter,
        Kind::Gauge,
    ];
    let list = kinds.map(|kind| instrument("i", kind, Aggregation::Default));
    let instruments = of(list.to_vec());
    let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
    let mut local = Local::new(instruments);
    for at in 0..5 {
        local.record(at, -1, b"", 7);
    }
    shared.merge(&mut local);
    shared.merge(&mut local);
    assert_eq!(shared.rejected(), 2);
    let metrics = collected(&shared, 2000);
    assert_eq!(metrics.len(), 2);
    assert_eq!(sums(&metrics[0]), [(String::new(), -1)]);
    assert_eq!(sums(&metrics[1]), [(String::new(), -1)]);
}

#[test]
fn the_last_value_is_the_last_by_time() {
    let instruments = of(vec![instrument("level", Kind::Gauge, Aggregation::Default)]);
    let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
    let mut locals = [(); 3].map(|()| Local::new(instruments.clone()));
    locals[0].record(0, 1, b"", 30);
    locals[1].record(0, 2, b"", 50);
    locals[1].record(0, 3, b"", 40);
    locals[2].record(0, 4, b"", 20);
    locals.iter_mut().for_each(|local| shared.merge(local));
    assert_eq!(sums(&collected(&shared, 2000)[0]), [(String::new(), 2)]);
    locals[0].record(0, 5, b"", 60);
    assert!(shared.try_merge(&mut locals[0]));
    for _ in 0..2 {
        assert_eq!(sums(&collected(&shared, 3000)[0]), [(String::new(), 5)]);
    }
}

#[test]
fn deltas_begin_where_the_last_ended() {
    let instruments = of(vec![
        instrument("requests", Kind::Counter, Aggregation::Default),
        instrument("open", Kind::UpDownCounter, Aggregation::Default),
    ]);
    let shared = Shared::new(instruments.clone(), Temporality::Delta, START);
    let mut local = Local::new(instruments);
    let times = |metric: &otlp::Metric| match &metric.data {
        Some(Data::Sum(sum)) => {
            let point = &sum.data_points[0];
            (
                sum.aggregation_temporality,
                point.start_time_unix_nano,
                point.time_unix_nano,
            )
        }
        other => panic!("{other:?}"),
    };
    for (now, from) in [(2000, START), (3000, 2000), (2500, 3000)] {
        local.record(0, 4, b"", 0);
        local.record(1, 1, b"", 0);
        shared.merge(&mut local);
        let metrics = collected(&shared, now);
        assert_eq!(times(&metrics[0]), (1, from, now.max(from)));
        assert_eq!(times(&metrics[1]), (2, START, now));
        assert_eq!(sums(&metrics[0]), [(String::new(), 4)]);
    }
    let metrics = collected(&shared, 4000);
    assert_eq!(metrics.len(), 1);
    assert_eq!(sums(&metrics[0]), [(String::new(), 3)]);
}

#[test]
fn what_is_too_much_overflows() {
    let instruments = of(vec![instrument(
        "requests",
        Kind::Counter,
        Aggregation::Default,
    )]);
    let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
    let mut locals = [(); 2].map(|()| Local::new(instruments.clone()));
    for (at, local) in locals.iter_mut().enumerate() {
        for value in 0..2500 {
            local.record(0, 1, &set(&format!("{}", value + 1500 * at)), 0);
        }
        // Looked up again, none of them takes another place.
        local.record(0, 1, &set(&format!("{}", 1500 * at)), 0);
        local.record(0, 1, &set(&"x".repeat(ATTRIBUTES_BYTES_MAX)), 0);
        shared.merge(local);
    }
    let metrics = collected(&shared, 2000);
    let sums = sums(&metrics[0]);
    assert_eq!(sums.len(), SERIES_MAX);
    assert_eq!(sums.iter().map(|(_, value)| value).sum::<i64>(), 5004);
    let (name, value) = &sums[SERIES_MAX - 1];
    assert_eq!(name, "otel.metric.overflow=Some(BoolValue(true))");
    // 501 and 1 of the first worker and of the second 501, 1, and those that it alone had a place
    // for.
    assert_eq!(*value, 2 * 502 + 1500);
}

#[test]
fn a_full_worker_forgets_series_that_it_no_longer_uses() {
    let instruments = of(vec![instrument(
        "requests",
        Kind::Counter,
        Aggregation::Default,
    )]);
    let shared = Shared::new(instruments.clone(), Temporality::Delta, START);
    let mut local = Local::new(instruments);
    for round in 0..10 {
        for value in 0..SERIES_MAX - 1 {
            local.record(0, 1, &set(&format!("{round} {value}")), 0);
        }
        shared.merge(&mut local);
        let sums = sums(&collected(&shared, 2000 + round)[0]);
        assert_eq!(sums.len(), SERIES_MAX - 1);
        assert!(sums.iter().all(|(_, value)| *value == 1));
        assert!(local.tables[0].overflow.is_none());
    }
}

#[test]
fn aggregations_suit_their_kinds() {
    let data = |kind, aggregation| {
        let instruments = of(vec![instrument("i", kind, aggregation)]);
        let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
        let mut local = Local::new(instruments);
        local.record(0, 5, b"", 9);
        shared.merge(&mut local);
        match collected(&shared, 2000).pop()?.data? {
            Data::Gauge(_) => Some("gauge"),
            Data::Sum(sum) => Some(if sum.is_monotonic {
                "growing sum"
            } else {
                "sum"
            }),
            Data::Histogram(_) => Some("histogram"),
            Data::ExponentialHistogram(_) => Some("exponential"),
            Data::Summary(_) => Some("summary"),
        }
    };
    let bounds = || Aggregation::ExplicitHistogram(vec![1.0]);
    let exponential = || Aggregation::ExponentialHistogram {
        max_size: 160,
        max_scale: 20,
    };
    for (kind, default, sum, last) in [
        (Kind::Counter, "growing sum", "growing sum", "growing sum"),
        (Kind::UpDownCounter, "sum", "sum", "sum"),
        (Kind::Histogram, "histogram", "growing sum", "histogram"),
        (Kind::Gauge, "gauge", "gauge", "gauge"),
    ] {
        assert_eq!(data(kind, Aggregation::Default), Some(default), "{kind:?}");
        assert_eq!(data(kind, Aggregation::Sum), Some(sum), "{kind:?}");
        assert_eq!(data(kind, Aggregation::LastValue), Some(last), "{kind:?}");
        assert_eq!(data(kind, bounds()), Some("histogram"), "{kind:?}");
        assert_eq!(data(kind, exponential()), Some("exponential"), "{kind:?}");
        assert_eq!(data(kind, Aggregation::Drop), None, "{kind:?}");
    }
}

#[test]
fn bounds_are_put_in_order() {
    let odd = vec![10.5, f64::NAN, 0.0, f64::INFINITY, 10.5, -3.0, 1e300];
    let instruments = of(vec![instrument(
        "h",
        Kind::Histogram,
        Aggregation::ExplicitHistogram(odd),
    )]);
    let shared = Shared::new(instruments.clone(), Temporality::Cumulative, START);
    let mut local = Local::new(instruments);
    for value in [0, 1, 10, 11, i64::MAX] {
        local.record(0, value, b"", 0);
    }
    shared.merge(&mut local);
    let Some(Data::Histogram(histogram)) = &collected(&shared, 2000)[0].data else {
        panic!("a histogram");
    };
    let point = &histogram.data_points[0];
    assert_eq!(point.explicit_bounds, [-3.0, 0.0, 10.5, 1e300]);
    assert_eq!(point.bucket_counts, [0, 1, 2, 2, 0]);
    assert_eq!((point.min, point.max), (Some(0.0), Some(i64::MAX as f64)));
}
