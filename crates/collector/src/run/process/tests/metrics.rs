//! Statements on metrics and data points, with results that are worked out by hand.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryDataPoint, exemplar, exponential_histogram_data_point::Buckets,
    summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use otlp::Signal;
use otlp::scan::Malformed;
use ottl::{Context, Failure};
use prost::Message;
use tail::settings::ErrorMode;

use super::transform::group;
use super::{kv, log_of, text};
use crate::config::components::processors::statements::Group;
use crate::config::components::processors::transform::Transform;
use crate::run::process::failures::{Failures, Fault};
use crate::run::process::transform::{Editor, METRICS_ADDED_MAX};

pub fn request(metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![kv("service.name", text("cart"))],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "lib".into(),
                    ..InstrumentationScope::default()
                }),
                metrics,
                schema_url: "s".into(),
            }],
            schema_url: "r".into(),
        }],
    }
}

pub fn metric(name: &str, data: Data) -> Metric {
    Metric {
        name: name.into(),
        description: "d".into(),
        unit: "s".into(),
        data: Some(data),
        ..Metric::default()
    }
}

pub fn int(attribute: &str, value: i64) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![kv("a", text(attribute))],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        value: Some(NumberValue::AsInt(value)),
        ..NumberDataPoint::default()
    }
}

fn double(attribute: &str, value: f64) -> NumberDataPoint {
    NumberDataPoint {
        value: Some(NumberValue::AsDouble(value)),
        ..int(attribute, 0)
    }
}

pub fn gauge(points: Vec<NumberDataPoint>) -> Data {
    Data::Gauge(Gauge {
        data_points: points,
    })
}

pub fn sum(points: Vec<NumberDataPoint>) -> Data {
    Data::Sum(Sum {
        data_points: points,
        aggregation_temporality: 2,
        is_monotonic: true,
    })
}

fn histogram_point(attribute: &str) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: vec![kv("a", text(attribute))],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 10,
        sum: Some(20.0),
        bucket_counts: vec![2, 3, 5],
        explicit_bounds: vec![1.0, 2.0],
        exemplars: vec![Exemplar {
            value: Some(exemplar::Value::AsDouble(1.5)),
            ..Exemplar::default()
        }],
        min: Some(0.5),
        max: Some(4.0),
        ..HistogramDataPoint::default()
    }
}

pub fn histogram(points: Vec<HistogramDataPoint>) -> Data {
    Data::Histogram(Histogram {
        data_points: points,
        aggregation_temporality: 1,
    })
}

fn exponential_point(attribute: &str) -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        attributes: vec![kv("a", text(attribute))],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 12,
        sum: Some(30.0),
        scale: 0,
        zero_count: 2,
        // From 1 to 2, from 2 to 4, from 4 to 8.
        positive: Some(Buckets {
            offset: 0,
            bucket_counts: vec![3, 4, 3],
        }),
        ..ExponentialHistogramDataPoint::default()
    }
}

fn exponential(points: Vec<ExponentialHistogramDataPoint>) -> Data {
    Data::ExponentialHistogram(ExponentialHistogram {
        data_points: points,
        aggregation_temporality: 2,
    })
}

fn summary_point(attribute: &str) -> SummaryDataPoint {
    SummaryDataPoint {
        attributes: vec![kv("a", text(attribute))],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 10,
        sum: 20.0,
        quantile_values: vec![
            ValueAtQuantile {
                quantile: 0.5,
                value: 2.0,
            },
            ValueAtQuantile {
                quantile: 1.0,
                value: 4.0,
            },
        ],
        ..SummaryDataPoint::default()
    }
}

pub fn summary(points: Vec<SummaryDataPoint>) -> Data {
    Data::Summary(Summary {
        data_points: points,
    })
}

fn editor(groups: Vec<Group>) -> Editor {
    let settings = Transform {
        metrics: groups,
        ..Transform::default()
    };
    Editor::new(&settings, Failures::new("transform", &log_of().0)).unwrap()
}

fn count(metrics: &[Metric]) -> u64 {
    let bytes = request(metrics.to_vec()).encode_to_vec();
    otlp::count::records(Signal::Metrics, &bytes).unwrap()
}

/// Metrics after groups of statements. Checks the numbers of data points that are told.
fn made_by(groups: Vec<Group>, metrics: Vec<Metric>) -> Result<Vec<Metric>, Fault> {
    let before = request(metrics.clone());
    let edited = editor(groups).edit(Signal::Metrics, &before.encode_to_vec(), None)?;
    let Some(bytes) = edited.bytes else {
        return Ok(metrics);
    };
    let after = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
    let scope = &after.resource_metrics[0].scope_metrics[0];
    assert_eq!(scope.schema_url, "s");
    let left = count(&metrics) - edited.dropped + edited.added;
    assert_eq!(count(&scope.metrics), left);
    Ok(scope.metrics.clone())
}

/// A metric with these data after a statement, and the metrics that it made.
fn made(data: Data, statement: &str) -> Vec<Metric> {
    let groups = vec![group(Context::Metric, &[], &[statement])];
    let made = made_by(groups, vec![metric("m", data)]);
    made.unwrap_or_else(|fault| panic!("{statement}: {fault}"))
}

fn data(metric: &Metric) -> &Data {
    metric.data.as_ref().unwrap()
}

fn failure(data: Data, statement: &str) -> Fault {
    let groups = vec![group(Context::Metric, &[], &[statement])];
    made_by(groups, vec![metric("m", data)]).expect_err(statement)
}

#[test]
fn fields_of_metrics_are_set() {
    let statements = [
        r#"set(name, "n")"#,
        r#"set(metric.description, Concat([unit, name], "-"))"#,
        r#"set(unit, "ms")"#,
        "set(aggregation_temporality, AGGREGATION_TEMPORALITY_DELTA)",
        "set(is_monotonic, false)",
        r#"set(metadata["k"], type)"#,
        // As in the Collector, this does nothing.
        "set(type, METRIC_DATA_TYPE_GAUGE)",
    ];
    let points = vec![int("x", 1), int("y", 2)];
    for (before, after) in [
        (
            sum(points.clone()),
            Data::Sum(Sum {
                data_points: points.clone(),
                aggregation_temporality: 1,
                is_monotonic: false,
            }),
        ),
        (gauge(points.clone()), gauge(points)),
        (
            histogram(vec![histogram_point("x")]),
            histogram(vec![histogram_point("x")]),
        ),
        (
            summary(vec![summary_point("x")]),
            summary(vec![summary_point("x")]),
        ),
    ] {
        let groups = vec![group(Context::Metric, &[], &statements)];
        let made = made_by(groups, vec![metric("m", before)]).unwrap();
        let texts = (&*made[0].name, &*made[0].description, &*made[0].unit);
        assert_eq!(texts, ("n", "s-n", "ms"));
        assert_eq!((made[0].metadata.len(), data(&made[0])), (1, &after));
    }
    let wrong = failure(sum(vec![]), "set(aggregation_temporality, \"delta\")");
    assert_eq!(wrong, Fault::Ottl(Failure::Type));
    assert_eq!(
        failure(sum(vec![]), "set(name, 5)"),
        Fault::Ottl(Failure::Type)
    );
}

/// Data after statements on their data points.
fn points_made(data: Data, statements: &[&str]) -> Data {
    let groups = vec![group(Context::DataPoint, &[], statements)];
    let made = made_by(groups, vec![metric("m", data)]);
    made.unwrap()[0].data.clone().unwrap()
}

#[test]
fn fields_of_number_points_are_set() {
    let after = points_made(
        gauge(vec![int("x", 1), double("y", 2.5)]),
        &[
            "set(start_time_unix_nano, 5)",
            r#"set(time, start_time + Duration("2ns"))"#,
            "set(value_double, 1.5) where value_int == 1",
            "set(value_int, 3) where value_double == 2.5",
            "set(flags, FLAG_NO_RECORDED_VALUE)",
            r#"set(attributes["n"], metric.name)"#,
            r#"delete_key(attributes, "a")"#,
            // A number has none of these.
            "set(count, 1)",
            "set(sum, 1.0)",
            "set(bucket_counts, [1])",
            "set(scale, 1)",
            "set(positive.offset, 1)",
        ],
    );
    let expected = |value| NumberDataPoint {
        attributes: vec![kv("n", text("m"))],
        start_time_unix_nano: 5,
        time_unix_nano: 7,
        flags: 1,
        value: Some(value),
        ..NumberDataPoint::default()
    };
    let points = vec![
        expected(NumberValue::AsDouble(1.5)),
        expected(NumberValue::AsInt(3)),
    ];
    assert_eq!(after, gauge(points));
    let zero = points_made(gauge(vec![int("x", 1)]), &["set(value_int, 0)"]);
    assert_eq!(zero, gauge(vec![int("x", 0)]));
}

#[test]
fn fields_of_histograms_and_summaries_are_set() {
    let after = points_made(
        histogram(vec![histogram_point("x")]),
        &[
            "set(count, 11)",
            "set(sum, 2.5)",
            "set(explicit_bounds, [0.5])",
            "set(bucket_counts, [4, 7])",
            r#"set(attributes["a"], "z")"#,
            "set(value_int, 1)",
            "set(flags, 1)",
        ],
    );
    let expected = HistogramDataPoint {
        attributes: vec![kv("a", text("z"))],
        count: 11,
        sum: Some(2.5),
        explicit_bounds: vec![0.5],
        bucket_counts: vec![4, 7],
        flags: 1,
        ..histogram_point("x")
    };
    assert_eq!(after, histogram(vec![expected]));
    let after = points_made(
        exponential(vec![exponential_point("x")]),
        &[
            "set(count, 1)",
            "set(sum, 0.0)",
            "set(scale, -3)",
            "set(zero_count, 7)",
            "set(positive.offset, -4)",
            "set(positive.bucket_counts, [1, 300])",
            "set(negative.offset, 5)",
            "set(negative.bucket_counts, positive.bucket_counts)",
            r#"set(attributes["b"], scale)"#,
        ],
    );
    let expected = ExponentialHistogramDataPoint {
        attributes: vec![kv("a", text("x")), kv("b", V::IntValue(-3))],
        count: 1,
        sum: Some(0.0),
        scale: -3,
        zero_count: 7,
        positive: Some(Buckets {
            offset: -4,
            bucket_counts: vec![1, 300],
        }),
        negative: Some(Buckets {
            offset: 5,
            bucket_counts: vec![1, 300],
        }),
        ..exponential_point("x")
    };
    assert_eq!(after, exponential(vec![expected]));
    let after = points_made(
        summary(vec![summary_point("x")]),
        &["set(count, 1)", "set(sum, 2.5)", "set(time_unix_nano, 9)"],
    );
    let expected = SummaryDataPoint {
        count: 1,
        sum: 2.5,
        time_unix_nano: 9,
        ..summary_point("x")
    };
    assert_eq!(after, summary(vec![expected]));
    for (data, statement) in [
        (histogram(vec![histogram_point("x")]), "set(sum, 1)"),
        (
            histogram(vec![histogram_point("x")]),
            "set(bucket_counts, [1.5])",
        ),
        (
            histogram(vec![histogram_point("x")]),
            "set(explicit_bounds, 1.5)",
        ),
        (gauge(vec![int("x", 1)]), "set(value_double, 1)"),
    ] {
        let groups = vec![group(Context::DataPoint, &[], &[statement])];
        let failed = made_by(groups, vec![metric("m", data)]);
        assert_eq!(failed, Err(Fault::Ottl(Failure::Type)), "{statement}");
    }
}

#[test]
fn points_change_their_metric_and_what_is_around() {
    let points = vec![int("x", 1), int("y", 2), int("z", 3)];
    let groups = vec![group(
        Context::DataPoint,
        &[],
        &[
            r#"set(metric.name, Concat([metric.name, attributes["a"]], ""))"#,
            r#"set(attributes["seen"], metric.name)"#,
            r#"convert_sum_to_gauge() where value_int == 2"#,
            r#"set(value_int, metric.type)"#,
        ],
    )];
    let made = made_by(groups, vec![metric("m", sum(points))]).unwrap();
    let point = |attribute: &str, seen: &str, kind| {
        let mut point = int(attribute, kind);
        point.attributes.push(kv("seen", text(seen)));
        point
    };
    let expected = vec![
        point("x", "mx", 2),
        point("y", "mxy", 1),
        point("z", "mxyz", 1),
    ];
    assert_eq!((&*made[0].name, data(&made[0])), ("mxyz", &gauge(expected)));
}

#[test]
fn exemplars_are_changed_with_what_is_around() {
    let exemplar = |value| Exemplar {
        filtered_attributes: vec![kv("user", text("u")), kv("n", V::IntValue(1))],
        time_unix_nano: 1,
        span_id: vec![1; 8],
        trace_id: vec![2; 16],
        value: Some(value),
    };
    let mut point = int("x", 1);
    point.exemplars = vec![
        exemplar(exemplar::Value::AsInt(5)),
        exemplar(exemplar::Value::AsDouble(1.5)),
    ];
    let groups = vec![group(
        Context::Exemplar,
        &[],
        &[
            r#"keep_keys(filtered_attributes, ["n"])"#,
            "set(trace_id, TraceID(0x00000000000000000000000000000000))",
            r#"set(span_id.string, "0102030405060708")"#,
            "set(time_unix_nano, 7)",
            "set(double_value, 2.5) where int_value == 5",
            r#"set(datapoint.attributes["seen"], double_value)"#,
            r#"set(metric.unit, datapoint.attributes["a"])"#,
        ],
    )];
    let before = vec![
        metric("m", sum(vec![point.clone()])),
        metric("s", summary(vec![])),
    ];
    let made = made_by(groups, before).unwrap();
    let expected = |value| Exemplar {
        filtered_attributes: vec![kv("n", V::IntValue(1))],
        time_unix_nano: 7,
        span_id: (1..9).collect(),
        trace_id: vec![0; 16],
        value: Some(exemplar::Value::AsDouble(value)),
    };
    point.exemplars = vec![expected(2.5), expected(1.5)];
    point.attributes.push(kv("seen", V::DoubleValue(1.5)));
    assert_eq!((&*made[0].unit, data(&made[0])), ("x", &sum(vec![point])));
    assert_eq!(made[1], metric("s", summary(vec![])));
}

#[test]
fn sums_and_gauges_are_converted() {
    let points = vec![int("x", 1), double("y", 2.5)];
    let made_gauge = made(sum(points.clone()), "convert_sum_to_gauge()");
    assert_eq!(made_gauge, [metric("m", gauge(points.clone()))]);
    let made_sum = made(
        gauge(points.clone()),
        r#"convert_gauge_to_sum("cumulative", true)"#,
    );
    assert_eq!(made_sum, [metric("m", sum(points.clone()))]);
    // Other kinds stay.
    let other = made(gauge(points.clone()), "convert_sum_to_gauge()");
    assert_eq!(other, [metric("m", gauge(points))]);
    let other = made(summary(vec![]), r#"convert_gauge_to_sum("delta", true)"#);
    assert_eq!(other, [metric("m", summary(vec![]))]);
}

/// A sum that was made of another metric.
fn extracted(name: &str, unit: &str, temporality: i32, points: Vec<NumberDataPoint>) -> Metric {
    Metric {
        unit: unit.into(),
        ..metric(
            name,
            Data::Sum(Sum {
                data_points: points,
                aggregation_temporality: temporality,
                is_monotonic: true,
            }),
        )
    }
}

#[test]
fn counts_and_sums_are_extracted() {
    for (data, temporality, count, total) in [
        (
            histogram(vec![histogram_point("x"), histogram_point("y")]),
            1,
            10,
            20.0,
        ),
        (
            exponential(vec![exponential_point("x"), exponential_point("y")]),
            2,
            12,
            30.0,
        ),
        (
            summary(vec![summary_point("x"), summary_point("y")]),
            2,
            10,
            20.0,
        ),
    ] {
        let counts = vec![int("x", count), int("y", count)];
        let after = made(
            data.clone(),
            r#"extract_count_metric(true) where name == "m""#,
        );
        let expected = extracted("m_count", "1", temporality, counts);
        assert_eq!(after, [metric("m", data.clone()), expected]);
        let sums = vec![double("x", total), double("y", total)];
        let after = made(
            data.clone(),
            r#"extract_sum_metric(true, ".sum") where name == "m""#,
        );
        let expected = extracted("m.sum", "s", temporality, sums);
        assert_eq!(after, [metric("m", data), expected]);
    }
    let without_sum = HistogramDataPoint {
        sum: None,
        ..histogram_point("x")
    };
    let after = made(
        histogram(vec![without_sum]),
        "extract_sum_metric(true) where type == 3",
    );
    assert_eq!(after.len(), 1);
    assert_eq!(
        made(histogram(vec![]), "extract_count_metric(true)").len(),
        1
    );
    assert_eq!(
        failure(gauge(vec![]), "extract_count_metric(true)"),
        Fault::Ottl(Failure::Type)
    );
}

#[test]
fn summaries_become_sums_and_gauges() {
    let data = summary(vec![summary_point("x"), summary_point("y")]);
    for context in [Context::Metric, Context::DataPoint] {
        let groups = vec![group(
            context,
            &[],
            &[
                r#"convert_summary_count_val_to_sum("delta", true)"#,
                r#"convert_summary_sum_val_to_sum("cumulative", true, ".sum")"#,
            ],
        )];
        let after = made_by(groups, vec![metric("m", data.clone())]).unwrap();
        let counts = vec![int("x", 10), int("y", 10)];
        let sums = vec![double("x", 20.0), double("y", 20.0)];
        let expected = [
            metric("m", data.clone()),
            extracted("m_count", "s", 1, counts),
            extracted("m.sum", "s", 2, sums),
        ];
        assert_eq!(after, expected, "{context}");
    }
    let after = made(
        data.clone(),
        r#"convert_summary_quantile_val_to_gauge("q")"#,
    );
    let point = |attribute: &str, quantile: &str, value| {
        let mut point = double(attribute, value);
        point.attributes.push(kv("q", text(quantile)));
        point
    };
    let points = vec![
        point("x", "0.50", 2.0),
        point("x", "1", 4.0),
        point("y", "0.50", 2.0),
        point("y", "1", 4.0),
    ];
    assert_eq!(
        after,
        [metric("m", data), metric("m.quantiles", gauge(points))]
    );
    let other = made(gauge(vec![]), "convert_summary_quantile_val_to_gauge()");
    assert_eq!(other.len(), 1);
}

#[test]
fn percentiles_are_extracted() {
    let value = |data: Data, statement: &str| {
        let after = made(data, statement);
        match data_points(&after[1])[0].value {
            Some(NumberValue::AsDouble(value)) => (after[1].name.clone(), value),
            other => panic!("{other:?}"),
        }
    };
    let of_histogram = |statement| value(histogram(vec![histogram_point("x")]), statement);
    // The fifth of ten values is the last of the second bucket, from 1 to 2.
    assert_eq!(
        of_histogram("extract_percentile_metric(50)"),
        ("m_p50".into(), 2.0)
    );
    // The first is halfway through the first bucket, from the least value 0.5 to 1.
    let first = of_histogram(r#"extract_percentile_metric(10.0, "_low")"#);
    assert_eq!(first, ("m_low".into(), 0.75));
    // The tenth is at the greatest value.
    assert_eq!(
        of_histogram("extract_percentile_metric(99.9)"),
        ("m_p99.9".into(), 4.0)
    );
    // Twelve values: two zeros, three up to 2, four up to 4: the sixth is a quarter on.
    let (_, median) = value(
        exponential(vec![exponential_point("x")]),
        "extract_percentile_metric(50)",
    );
    assert!((median - 2.0 * 2_f64.powf(0.25)).abs() < 1e-9, "{median}");
    let empty = HistogramDataPoint {
        count: 0,
        ..histogram_point("x")
    };
    assert!(
        value(histogram(vec![empty]), "extract_percentile_metric(50)")
            .1
            .is_nan()
    );
    let short = HistogramDataPoint {
        count: 100,
        ..histogram_point("x")
    };
    let failed = failure(histogram(vec![short]), "extract_percentile_metric(99)");
    assert_eq!(failed, Fault::Ottl(Failure::Math));
}

fn data_points(metric: &Metric) -> &[NumberDataPoint] {
    match data(metric) {
        Data::Gauge(gauge) => &gauge.data_points,
        Data::Sum(sum) => &sum.data_points,
        other => panic!("{other:?}"),
    }
}

#[test]
fn metrics_are_copied_and_the_copies_are_seen() {
    let data = gauge(vec![int("x", 1)]);
    let groups = vec![group(
        Context::Metric,
        &[],
        &[
            r#"copy_metric(name="copy", desc="e", unit="ms") where name == "m""#,
            r#"set(description, Concat([description, "seen"], "-"))"#,
        ],
    )];
    let after = made_by(
        groups,
        vec![metric("m", data.clone()), metric("n", data.clone())],
    );
    let names: Vec<_> = after
        .unwrap()
        .into_iter()
        .map(|one| (one.name, one.description))
        .collect();
    let expected = [("m", "d-seen"), ("n", "d-seen"), ("copy", "e-seen")];
    assert_eq!(
        names,
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );
    // A copy that is copied again ends at a limit.
    let group = Group {
        error_mode: ErrorMode::Ignore,
        ..group(Context::Metric, &[], &["copy_metric()"])
    };
    let small = Metric {
        data: Some(gauge(vec![])),
        ..Metric::default()
    };
    let after = made_by(vec![group], vec![small]).unwrap();
    assert_eq!(after.len(), METRICS_ADDED_MAX + 1);
}

#[test]
fn metrics_are_scaled() {
    let after = made(
        gauge(vec![int("x", 15), double("y", 2.5)]),
        r#"scale_metric(0.1, "kWh")"#,
    );
    let expected = gauge(vec![int("x", 1), double("y", 0.25)]);
    assert_eq!((data(&after[0]), &*after[0].unit), (&expected, "kWh"));
    let after = made(histogram(vec![histogram_point("x")]), "scale_metric(2)");
    let mut point = histogram_point("x");
    point.sum = Some(40.0);
    (point.min, point.max) = (Some(1.0), Some(8.0));
    point.explicit_bounds = vec![2.0, 4.0];
    point.exemplars[0].value = Some(exemplar::Value::AsDouble(3.0));
    assert_eq!(after, [metric("m", histogram(vec![point]))]);
    let after = made(summary(vec![summary_point("x")]), "scale_metric(10.0)");
    let mut point = summary_point("x");
    point.sum = 200.0;
    point.quantile_values[0].value = 20.0;
    point.quantile_values[1].value = 40.0;
    assert_eq!(after, [metric("m", summary(vec![point]))]);
    let failed = failure(exponential(vec![]), "scale_metric(2)");
    assert_eq!(failed, Fault::Ottl(Failure::Type));
}

#[test]
fn points_are_aggregated() {
    let points = || {
        let mut late = int("x", 5);
        (late.start_time_unix_nano, late.attributes) = (0, vec![kv("b", V::IntValue(1))]);
        late.attributes.push(kv("a", text("x")));
        vec![int("x", 4), int("y", 10), int("x", 7), late]
    };
    for (function, expected) in [
        ("sum", 26),
        ("max", 10),
        ("min", 4),
        ("mean", 6),
        ("median", 6),
        ("count", 4),
    ] {
        let after = made(
            sum(points()),
            &format!(r#"aggregate_on_attributes("{function}", [])"#),
        );
        let mut point = int("x", expected);
        (point.start_time_unix_nano, point.attributes) = (0, vec![]);
        assert_eq!(after, [metric("m", sum(vec![point]))], "{function}");
    }
    let after = made(sum(points()), r#"aggregate_on_attributes("sum", ["a"])"#);
    let mut first = int("x", 16);
    first.start_time_unix_nano = 0;
    assert_eq!(after, [metric("m", sum(vec![first, int("y", 10)]))]);
    // All attributes stay.
    let after = made(sum(points()), r#"aggregate_on_attributes("sum")"#);
    assert_eq!(data_points(&after[0]).len(), 3);
    let after = made(
        gauge(vec![double("x", 1.0), double("x", 2.5), double("x", 4.0)]),
        r#"aggregate_on_attributes("median")"#,
    );
    assert_eq!(after, [metric("m", gauge(vec![double("x", 2.5)]))]);
    let after = made(
        sum(points()),
        r#"aggregate_on_attribute_value("max", "a", ["x", "y"], "z")"#,
    );
    let values: Vec<_> = data_points(&after[0])
        .iter()
        .map(|point| point.value)
        .collect();
    assert_eq!(
        values,
        [Some(NumberValue::AsInt(10)), Some(NumberValue::AsInt(5))]
    );
    assert_eq!(data_points(&after[0])[0].attributes, [kv("a", text("z"))]);
    let failed = failure(summary(vec![]), r#"aggregate_on_attributes("sum")"#);
    assert_eq!(failed, Fault::Ottl(Failure::Type));
    // Deltas of other beginnings stay apart.
    let mut later = histogram_point("x");
    later.start_time_unix_nano = 2;
    let apart = made(
        histogram(vec![histogram_point("x"), later]),
        r#"aggregate_on_attributes("sum")"#,
    );
    assert_eq!(count(&apart), 2);
}

#[test]
fn histograms_are_aggregated() {
    let mut other = histogram_point("y");
    (other.min, other.max) = (Some(0.25), Some(3.0));
    let after = made(
        histogram(vec![histogram_point("x"), other]),
        r#"aggregate_on_attributes("sum", [])"#,
    );
    let mut point = histogram_point("x");
    point.attributes = vec![];
    (point.count, point.sum) = (20, Some(40.0));
    point.bucket_counts = vec![4, 6, 10];
    (point.min, point.max) = (Some(0.25), Some(4.0));
    point.exemplars.push(point.exemplars[0].clone());
    assert_eq!(after, [metric("m", histogram(vec![point]))]);
    let after = made(
        exponential(vec![exponential_point("x"), exponential_point("y")]),
        r#"aggregate_on_attributes("sum", [])"#,
    );
    let mut point = exponential_point("x");
    point.attributes = vec![];
    (point.count, point.sum, point.zero_count) = (24, Some(60.0), 4);
    point.positive = Some(Buckets {
        offset: 0,
        bucket_counts: vec![6, 8, 6],
    });
    point.negative = Some(Buckets::default());
    assert_eq!(after, [metric("m", exponential(vec![point]))]);
}

#[test]
fn exponential_histograms_become_explicit() {
    let counts = |distribution: &str, bounds: &str| {
        let statement =
            format!("convert_exponential_histogram_to_histogram(\"{distribution}\", {bounds})");
        let after = made(exponential(vec![exponential_point("x")]), &statement);
        let Data::Histogram(histogram) = data(&after[0]) else {
            panic!("{after:?}");
        };
        assert_eq!(histogram.aggregation_temporality, 2);
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum, point.min), (12, Some(30.0), None));
        assert_eq!(point.attributes, [kv("a", text("x"))]);
        point.bucket_counts.clone()
    };
    // Buckets end at 2, 4 and 8; their middles are 1.5, 3 and 6.
    assert_eq!(counts("upper", "[2.0, 4.0]"), [3, 4, 3]);
    assert_eq!(counts("upper", "[0.0, 3.0]"), [2, 3, 7]);
    assert_eq!(counts("midpoint", "[2.0, 5.0, 6.0]"), [3, 4, 3, 0]);
    // The second has the bounds 2, 3 and 4 within it: two, one and one.
    assert_eq!(counts("uniform", "[2.0, 3.0, 4.0, 100.0]"), [5, 1, 3, 1, 0]);
    let random = counts("random", "[2.0, 3.0, 4.0, 100.0]");
    assert_eq!(random.iter().sum::<u64>(), 10, "{random:?}");
    let other = made(
        gauge(vec![]),
        r#"convert_exponential_histogram_to_histogram("upper", [1])"#,
    );
    assert_eq!(other, [metric("m", gauge(vec![]))]);
}

#[test]
fn metrics_that_become_too_large_stay() {
    let bounds: Vec<String> = (0..1000).map(|bound| bound.to_string()).collect();
    let statement = format!(
        "convert_exponential_histogram_to_histogram(\"upper\", [{}])",
        bounds.join(",")
    );
    let points = vec![ExponentialHistogramDataPoint::default(); 10_000];
    assert_eq!(
        failure(exponential(points), &statement),
        Fault::Ottl(Failure::Size)
    );
    let mut point = summary_point(&"x".repeat(100_000));
    point.quantile_values = vec![ValueAtQuantile::default(); 1000];
    let failed = failure(
        summary(vec![point]),
        "convert_summary_quantile_val_to_gauge()",
    );
    assert_eq!(failed, Fault::Ottl(Failure::Size));
}

#[test]
fn buckets_are_merged() {
    let point = |bounds: &[f64], counts: &[u64]| HistogramDataPoint {
        explicit_bounds: bounds.to_vec(),
        bucket_counts: counts.to_vec(),
        ..HistogramDataPoint::default()
    };
    let eight = [0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
    let nine = [80, 4, 6, 120, 3, 2, 40, 10, 1];
    for (statement, before, after) in [
        (
            "merge_histogram_buckets(0.5)",
            point(&[0.1, 0.5, 1.0], &[5, 8, 3, 1]),
            point(&[0.1, 1.0], &[5, 11, 1]),
        ),
        (
            "merge_histogram_buckets(0.7)",
            point(&[0.1, 0.5], &[5, 8, 3]),
            point(&[0.1, 0.5], &[5, 8, 3]),
        ),
        // Not one bucket more than bounds.
        (
            "merge_histogram_buckets(0.5)",
            point(&[0.1, 0.5], &[5, 8]),
            point(&[0.1, 0.5], &[5, 8]),
        ),
        (
            r#"merge_histogram_buckets(5, method="limit_buckets")"#,
            point(&eight, &nine),
            point(&[0.2, 1.0, 5.0, 30.0], &[84, 126, 5, 50, 1]),
        ),
        (
            r#"merge_histogram_buckets(9, "limit_buckets")"#,
            point(&eight, &nine),
            point(&eight, &nine),
        ),
        (
            r#"merge_histogram_buckets(1, "limit_buckets")"#,
            point(&[1.0, 2.0], &[1, 2, 3]),
            point(&[], &[6]),
        ),
    ] {
        for context in [Context::Metric, Context::DataPoint] {
            let groups = vec![group(context, &[], &[statement])];
            let made = made_by(groups, vec![metric("m", histogram(vec![before.clone()]))]);
            let expected = metric("m", histogram(vec![after.clone()]));
            assert_eq!(made, Ok(vec![expected]), "{statement} {context}");
        }
    }
}

#[test]
fn metrics_that_nothing_is_done_to_stay_as_they_came() {
    let metrics = vec![
        metric("m", sum(vec![int("x", 1)])),
        metric("n", summary(vec![])),
    ];
    let bytes = request(metrics).encode_to_vec();
    for (context, statement) in [
        (Context::Metric, r#"set(name, "y") where name == "z""#),
        (Context::DataPoint, "set(value_int, value_int)"),
        (Context::DataPoint, "merge_histogram_buckets(1)"),
        (Context::Metric, r#"convert_gauge_to_sum("delta", true)"#),
    ] {
        let groups = vec![group(context, &[], &[statement])];
        let edited = editor(groups).edit(Signal::Metrics, &bytes, None).unwrap();
        assert_eq!(edited.bytes, None, "{statement}");
    }
}

/// A message with a field that no version of OTLP has, and the field.
fn with_unknown(message: &impl Message, number: u32) -> Vec<u8> {
    let mut bytes = message.encode_to_vec();
    otlp::write::bytes(&mut bytes, number, b"unknown");
    bytes
}

#[test]
fn unknown_fields_of_metrics_and_points_are_kept() {
    use otlp::write::bytes;
    let mut point = with_unknown(&int("x", 1), 90);
    bytes(&mut point, 5, &with_unknown(&Exemplar::default(), 91));
    let mut data = Vec::new();
    bytes(&mut data, 1, &point);
    bytes(&mut data, 92, b"unknown");
    let named = Metric {
        name: "m".into(),
        ..Metric::default()
    };
    let mut metric = with_unknown(&named, 93);
    bytes(&mut metric, 7, &data);
    let (mut scope, mut resource, mut request) = (Vec::new(), Vec::new(), Vec::new());
    bytes(&mut scope, 2, &metric);
    bytes(&mut resource, 2, &scope);
    bytes(&mut request, 1, &resource);
    let mut unknown = Vec::new();
    (90..94).for_each(|number| bytes(&mut unknown, number, b"unknown"));
    for (context, statement) in [
        (Context::Metric, r#"set(name, "n")"#),
        (Context::Metric, "scale_metric(2)"),
        (Context::Metric, r#"aggregate_on_attributes("sum")"#),
        (Context::DataPoint, "set(value_int, 5)"),
        (Context::DataPoint, r#"set(metric.name, "n")"#),
        (Context::Exemplar, "set(int_value, 5)"),
        (Context::Exemplar, "set(datapoint.value_int, 5)"),
        (Context::Exemplar, r#"set(metric.unit, "ms")"#),
    ] {
        let groups = vec![group(context, &[], &[statement])];
        let edited = editor(groups)
            .edit(Signal::Metrics, &request, None)
            .unwrap();
        let after = edited.bytes.unwrap_or_else(|| request.clone());
        for field in unknown.chunks(unknown.len() / 4) {
            let is_there = after.windows(field.len()).any(|window| window == field);
            assert!(is_there, "{statement}: {field:?}");
        }
    }
}

#[test]
fn malformed_metrics_are_refused_and_nothing_is_lost() {
    let mut point = int("x", 1);
    point.exemplars.push(Exemplar {
        span_id: vec![1; 3],
        ..Exemplar::default()
    });
    let bytes = request(vec![metric("m", sum(vec![point]))]).encode_to_vec();
    for context in [Context::Metric, Context::DataPoint] {
        let groups = vec![group(context, &[], &[r#"set(metric.name, "y")"#])];
        let refused = editor(groups)
            .edit(Signal::Metrics, &bytes, None)
            .unwrap_err();
        assert_eq!(refused, Fault::Malformed(Malformed::SpanId), "{context}");
    }
}
