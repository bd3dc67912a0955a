//! Conditions and what they say of log records, metrics and data points.

use super::super::*;
use super::{key_value, text};
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::ExponentialHistogram;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, Sum, Summary, SummaryDataPoint, exemplar,
    exponential_histogram_data_point::Buckets, summary_data_point::ValueAtQuantile,
};
use otlp::scan::{Around, PointKind, Span};
use otlp::scan::{log, metric, point};
use prost::Message;

fn subject<'a, 's>(span: &'s Span<'a>, record: Record<'a, 's>) -> Subject<'a, 's, 's> {
    Subject {
        span,
        slots: None,
        around: Around::default(),
        schemas: Schemas::default(),
        event: None,
        record,
        cache: b"",
        client: None,
        outside: Outside::default(),
    }
}

fn said(condition: &str, context: Context, record: Record<'_, '_>) -> Result<bool, Failure> {
    let parsed = Condition::parse(condition, context, &mut Keys::default());
    let parsed = parsed.unwrap_or_else(|error| panic!("{condition}: {error}"));
    parsed.is_true(&subject(&Span::new(b"", [0; 16]), record))
}

fn holds(context: Context, record: Record<'_, '_>, conditions: &[&str]) {
    for condition in conditions {
        assert_eq!(said(condition, context, record), Ok(true), "{condition}");
    }
}

fn body(value: V) -> LogRecord {
    LogRecord {
        body: Some(AnyValue { value: Some(value) }),
        ..LogRecord::default()
    }
}

fn of_log(record: &LogRecord, conditions: &[&str]) {
    let bytes = record.encode_to_vec();
    holds(Context::Log, Record::Log(&log(&bytes).unwrap()), conditions);
}

#[test]
fn log_records_are_read() {
    let record = LogRecord {
        time_unix_nano: 5,
        observed_time_unix_nano: 6,
        severity_number: 17,
        severity_text: "ERROR".into(),
        attributes: vec![key_value("a", V::IntValue(1)), key_value("m", text("x"))],
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: vec![0xab; 16],
        span_id: vec![0xcd; 8],
        event_name: "login".into(),
        ..body(text("request failed"))
    };
    of_log(
        &record,
        &[
            r#"attributes["a"] == 1 and log.attributes["m"] == "x" and attributes["none"] == nil"#,
            "Len(attributes) == 2",
            "time_unix_nano == 5 and observed_time_unix_nano == 6",
            "UnixNano(time) == 5 and UnixNano(log.observed_time) == 6",
            "severity_number == SEVERITY_NUMBER_ERROR and severity_number > SEVERITY_NUMBER_WARN4",
            r#"severity_text == "ERROR""#,
            r#"body == "request failed" and log.body.string == "request failed""#,
            r#"IsString(body) and IsMatch(body, "\\sfailed$")"#,
            "dropped_attributes_count == 3 and flags == 1",
            r#"trace_id.string == "abababababababababababababababab""#,
            "trace_id == TraceID(0xabababababababababababababababab)",
            r#"span_id.string == "cdcdcdcdcdcdcdcd" and span_id == SpanID(0xcdcdcdcdcdcdcdcd)"#,
            r#"event_name == "login""#,
            r#"cache["a"] == nil"#,
        ],
    );
    of_log(
        &LogRecord::default(),
        &[
            r#"body == nil and body.string == "" and trace_id.string == "" and event_name == """#,
            "severity_number == SEVERITY_NUMBER_UNSPECIFIED and time_unix_nano == 0",
            "span_id == SpanID(0x0000000000000000)",
        ],
    );
}

#[test]
fn bodies_are_of_any_type() {
    let map = V::KvlistValue(KeyValueList {
        values: vec![
            key_value("k", text("v")),
            key_value(
                "in",
                V::KvlistValue(KeyValueList {
                    values: vec![key_value("n", V::IntValue(2))],
                }),
            ),
        ],
    });
    of_log(
        &body(map),
        &[
            r#"IsMap(body) and body["k"] == "v" and body["none"] == nil"#,
            r#"body["in"]["n"] == 2 and body["none"]["n"] == nil"#,
            r#"body.string == "{\"in\":{\"n\":2},\"k\":\"v\"}""#,
        ],
    );
    of_log(
        &body(V::IntValue(5)),
        &[r#"body == 5 and body.string == "5""#, "IsInt(body)"],
    );
    of_log(
        &body(V::BytesValue(vec![1, 255])),
        &["body == 0x01ff", r#"body.string == "Af8=""#],
    );
    let list = V::ArrayValue(opentelemetry_proto::tonic::common::v1::ArrayValue {
        values: vec![AnyValue {
            value: Some(text("x")),
        }],
    });
    of_log(&body(list), &[r#"body[0] == "x" and IsList(body)"#]);
    // Only maps and lists have keys, and lists no others than they have.
    for (record, condition, failure) in [
        (body(text("a")), r#"body["k"] == nil"#, Failure::Type),
        (LogRecord::default(), r#"body["k"] == nil"#, Failure::Type),
        (body(text("a")), "body[0] == nil", Failure::Type),
    ] {
        let bytes = record.encode_to_vec();
        let record = log(&bytes).unwrap();
        let said = said(condition, Context::Log, Record::Log(&record));
        assert_eq!(said, Err(failure), "{condition}");
    }
}

#[test]
fn severities_have_their_numbers() {
    let names = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
    for (place, name) in names.iter().enumerate() {
        for step in 0..4 {
            let step_text = if step == 0 {
                String::new()
            } else {
                (step + 1).to_string()
            };
            let condition = format!(
                "SEVERITY_NUMBER_{name}{step_text} == {}",
                4 * place + step + 1
            );
            of_log(&LogRecord::default(), &[&condition]);
        }
    }
}

fn number(value: NumberValue) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![key_value("a", text("x"))],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: vec![Exemplar::default(), Exemplar::default()],
        flags: 1,
        value: Some(value),
    }
}

fn of_metric(data: Option<Data>, conditions: &[&str]) {
    let bytes = Metric {
        name: "n".into(),
        description: "d".into(),
        unit: "s".into(),
        metadata: vec![key_value("k", text("v"))],
        data,
    }
    .encode_to_vec();
    let metric = metric(&bytes).unwrap();
    holds(Context::Metric, Record::Metric(&metric), conditions);
}

#[test]
fn metrics_of_all_kinds_are_read() {
    let points = vec![number(NumberValue::AsInt(1)), number(NumberValue::AsInt(2))];
    of_metric(
        Some(Data::Sum(Sum {
            data_points: points.clone(),
            aggregation_temporality: 2,
            is_monotonic: true,
        })),
        &[
            r#"name == "n" and metric.description == "d" and unit == "s""#,
            "type == METRIC_DATA_TYPE_SUM and type == 2",
            "aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE",
            "is_monotonic == true",
            "Len(data_points) == 2 and data_points != nil",
            r#"metadata["k"] == "v" and Len(metadata) == 1"#,
            r#"HasAttrKeyOnDatapoint("a") and not HasAttrKeyOnDatapoint("b")"#,
            r#"HasAttrOnDatapoint("a", "x") and not HasAttrOnDatapoint("a", "y")"#,
            r#"cache["a"] == nil and type != "Sum""#,
        ],
    );
    of_metric(
        Some(Data::Gauge(Gauge {
            data_points: points,
        })),
        &[
            "type == METRIC_DATA_TYPE_GAUGE",
            "aggregation_temporality == nil and is_monotonic == nil",
        ],
    );
    of_metric(
        Some(Data::Histogram(Histogram {
            data_points: vec![],
            aggregation_temporality: 1,
        })),
        &[
            "type == METRIC_DATA_TYPE_HISTOGRAM and is_monotonic == nil",
            "aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA",
            r#"Len(data_points) == 0 and not HasAttrKeyOnDatapoint("a")"#,
        ],
    );
    of_metric(
        Some(Data::ExponentialHistogram(ExponentialHistogram::default())),
        &[
            "type == METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM",
            "aggregation_temporality == AGGREGATION_TEMPORALITY_UNSPECIFIED",
        ],
    );
    of_metric(
        Some(Data::Summary(Summary::default())),
        &["type == METRIC_DATA_TYPE_SUMMARY and aggregation_temporality == nil"],
    );
    of_metric(
        None,
        &["type == METRIC_DATA_TYPE_NONE and data_points == nil"],
    );
}

fn of_point(kind: PointKind, message: &impl Message, conditions: &[&str]) {
    let bytes = message.encode_to_vec();
    let frame = Metric {
        name: "n".into(),
        ..Metric::default()
    }
    .encode_to_vec();
    let (metric, point) = (metric(&frame).unwrap(), point(kind, &bytes).unwrap());
    holds(
        Context::DataPoint,
        Record::Point(&metric, &point),
        conditions,
    );
}

#[test]
fn points_of_all_kinds_are_read() {
    let others = "count == nil and sum == nil and bucket_counts == nil and explicit_bounds == nil \
        and scale == nil and zero_count == nil and positive.offset == nil \
        and positive.bucket_counts == nil and negative.offset == nil \
        and negative.bucket_counts == nil and quantile_values == nil";
    of_point(
        PointKind::Number,
        &number(NumberValue::AsInt(7)),
        &[
            r#"attributes["a"] == "x" and datapoint.attributes["b"] == nil"#,
            "start_time_unix_nano == 1 and time_unix_nano == 2",
            "UnixNano(start_time) == 1 and UnixNano(datapoint.time) == 2",
            "value_int == 7 and value_double == 0.0",
            "flags == FLAG_NO_RECORDED_VALUE and flags != FLAG_NONE",
            "Len(exemplars) == 2",
            r#"metric.name == "n" and cache["a"] == nil"#,
            others,
        ],
    );
    of_point(
        PointKind::Number,
        &number(NumberValue::AsDouble(1.5)),
        &["value_double == 1.5 and value_int == 0"],
    );
    of_point(
        PointKind::Histogram,
        &HistogramDataPoint {
            attributes: vec![key_value("a", text("x"))],
            count: 6,
            sum: Some(2.5),
            bucket_counts: vec![1, 2, 3],
            explicit_bounds: vec![0.5, 1.5],
            ..HistogramDataPoint::default()
        },
        &[
            r#"attributes["a"] == "x" and count == 6 and sum == 2.5"#,
            "bucket_counts == [1, 2, 3] and explicit_bounds == [0.5, 1.5]",
            "Len(bucket_counts) == 3 and value_int == nil and value_double == nil",
            "scale == nil and positive.offset == nil and quantile_values == nil",
        ],
    );
    of_point(
        PointKind::Exponential,
        &ExponentialHistogramDataPoint {
            attributes: vec![key_value("a", text("x"))],
            count: 6,
            scale: -2,
            zero_count: 4,
            positive: Some(Buckets {
                offset: -1,
                bucket_counts: vec![1, 2],
            }),
            ..ExponentialHistogramDataPoint::default()
        },
        &[
            r#"attributes["a"] == "x" and count == 6 and sum == 0.0"#,
            "scale == -2 and zero_count == 4",
            "positive.offset == -1 and positive.bucket_counts == [1, 2]",
            "negative.offset == 0 and negative.bucket_counts == []",
            "bucket_counts == nil and explicit_bounds == nil and value_int == nil",
        ],
    );
    of_point(
        PointKind::Summary,
        &SummaryDataPoint {
            attributes: vec![key_value("a", text("x"))],
            count: 6,
            sum: 2.5,
            quantile_values: vec![ValueAtQuantile::default()],
            flags: 1,
            ..SummaryDataPoint::default()
        },
        &[
            r#"attributes["a"] == "x" and count == 6 and sum == 2.5 and flags == 1"#,
            "Len(quantile_values) == 1 and exemplars == nil",
            "bucket_counts == nil and scale == nil and value_int == nil",
        ],
    );
}

#[test]
fn exemplars_are_read() {
    let bytes = Exemplar {
        filtered_attributes: vec![key_value("f", text("x"))],
        time_unix_nano: 5,
        span_id: vec![0xcd; 8],
        trace_id: vec![0xab; 16],
        value: Some(exemplar::Value::AsDouble(1.5)),
    }
    .encode_to_vec();
    let point_bytes = number(NumberValue::AsInt(7)).encode_to_vec();
    let frame = Metric {
        name: "n".into(),
        ..Metric::default()
    }
    .encode_to_vec();
    let metric = metric(&frame).unwrap();
    let point = point(PointKind::Number, &point_bytes).unwrap();
    let exemplar = otlp::scan::exemplar(&bytes).unwrap();
    holds(
        Context::Exemplar,
        Record::Exemplar(&metric, &point, &exemplar),
        &[
            r#"filtered_attributes["f"] == "x" and exemplar.filtered_attributes["g"] == nil"#,
            "time_unix_nano == 5 and UnixNano(time) == 5",
            "double_value == 1.5 and int_value == 0",
            r#"trace_id.string == "abababababababababababababababab""#,
            "trace_id == TraceID(0xabababababababababababababababab)",
            r#"span_id.string == "cdcdcdcdcdcdcdcd" and span_id == SpanID(0xcdcdcdcdcdcdcdcd)"#,
            r#"datapoint.value_int == 7 and metric.name == "n" and cache["a"] == nil"#,
        ],
    );
}

#[test]
fn a_context_sees_what_is_around_it() {
    let why = |condition: &str, context| {
        let parsed = Condition::parse(condition, context, &mut Keys::default());
        parsed.err().map(|error| error.why).unwrap_or_default()
    };
    for context in Context::ALL {
        assert_eq!(why(r#"resource.attributes["a"] == 1"#, context), "");
    }
    for (condition, context, expected) in [
        (
            "datapoint.flags == 1",
            Context::Metric,
            "datapoint.flags is not supported with the context metric",
        ),
        (
            "log.flags == 1",
            Context::DataPoint,
            "log.flags is not supported with the context datapoint",
        ),
        (
            r#"span.name == "a""#,
            Context::Log,
            "span.name is not supported with the context log",
        ),
        (
            r#"metric.name == "a""#,
            Context::Span,
            "metric.name is not supported with the context span",
        ),
        ("IsRootSpan()", Context::Log, "asks about a span"),
        (
            r#"HasAttrKeyOnDatapoint("a")"#,
            Context::DataPoint,
            "it is of the context metric",
        ),
        ("positive == nil", Context::DataPoint, "name a part of it"),
        (r#"name["a"] == 1"#, Context::Metric, "has no such key"),
        ("attributes[0] == 1", Context::Log, "has no such key"),
        (
            "exemplar.int_value == 1",
            Context::DataPoint,
            "exemplar.int_value is not supported with the context datapoint",
        ),
    ] {
        let said = why(condition, context);
        assert!(said.contains(expected), "{condition}: {said}");
    }
    for signal in otlp::Signal::ALL {
        let contexts = Context::of(signal);
        assert_eq!(contexts[..2], [Context::Resource, Context::Scope]);
        assert!(contexts.windows(2).all(|pair| pair[1].sees(pair[0])));
    }
}

#[test]
fn editors_of_metrics_are_read() {
    for statement in [
        "convert_sum_to_gauge()",
        r#"convert_gauge_to_sum("cumulative", false)"#,
        r#"convert_gauge_to_sum(aggregation_temporality="delta", is_monotonic=true)"#,
        "extract_count_metric(true)",
        r#"extract_count_metric(false, ".count")"#,
        r#"extract_sum_metric(monotonic=true, suffix=".sum")"#,
        "extract_percentile_metric(50.0)",
        r#"extract_percentile_metric(99.9, "_p") where metric.name == "a""#,
        r#"convert_summary_count_val_to_sum("delta", true, ".count")"#,
        r#"convert_summary_sum_val_to_sum("cumulative", false)"#,
        "convert_summary_quantile_val_to_gauge()",
        r#"convert_summary_quantile_val_to_gauge("q", "s")"#,
        r#"copy_metric(name="http.request.status_code", unit="s") where name == "http.status_code""#,
        r#"copy_metric(desc="new desc") where description == "old desc""#,
        "copy_metric()",
        "scale_metric(0.1)",
        r#"scale_metric(10, "kWh")"#,
        r#"aggregate_on_attributes("sum", ["attr1", "attr2"]) where name == "a""#,
        r#"aggregate_on_attributes("max")"#,
        r#"aggregate_on_attributes("median", [])"#,
        r#"aggregate_on_attribute_value("sum", "attr1", ["val1", "val2"], "new_val")"#,
        r#"convert_exponential_histogram_to_histogram("random", [0.0, 10.0, 100])"#,
        "merge_histogram_buckets(0.5)",
        r#"merge_histogram_buckets(5, method="limit_buckets")"#,
    ] {
        let parsed = Statement::parse(statement, Context::Metric, false);
        assert!(parsed.is_ok_and(|one| one.is_of_metrics()), "{statement}");
    }
    for (statement, why) in [
        (
            r#"convert_gauge_to_sum("both", false)"#,
            r#""both" is not one of "delta", "cumulative""#,
        ),
        (r#"convert_gauge_to_sum("delta", 1)"#, "true or false"),
        ("extract_count_metric()", "takes 1 to 2 arguments"),
        ("extract_percentile_metric(100)", "above 0 and below 100"),
        (
            r#"aggregate_on_attributes("avg")"#,
            r#""avg" is not one of "sum""#,
        ),
        (r#"aggregate_on_attributes("sum", [1])"#, "a list of texts"),
        (
            r#"convert_exponential_histogram_to_histogram("upper", [])"#,
            "no explicit bounds",
        ),
        (
            r#"convert_exponential_histogram_to_histogram("upper", [2, 1])"#,
            "not in ascending order",
        ),
        (
            r#"convert_exponential_histogram_to_histogram("lower", [1])"#,
            r#"is not one of "upper""#,
        ),
        (
            r#"merge_histogram_buckets(0.5, "limit_buckets")"#,
            "a whole number from 1",
        ),
        (r#"merge_histogram_buckets(1, "other")"#, "the method is"),
        ("scale_metric(unit)", "a number is expected"),
        ("set(data_points, nil)", "cannot be written"),
    ] {
        let error = Statement::parse(statement, Context::Metric, false).expect_err(statement);
        assert!(error.why.contains(why), "{statement}: {error}");
    }
    for (context, is_taken) in [
        (Context::Metric, true),
        (Context::DataPoint, true),
        (Context::Exemplar, false),
        (Context::Log, false),
        (Context::Span, false),
        (Context::Resource, false),
    ] {
        let parsed = Statement::parse("convert_sum_to_gauge()", context, false);
        assert_eq!(parsed.is_ok(), is_taken, "{context}");
    }
}

#[test]
fn span_names_are_of_versions_of_the_conventions() {
    let fault = |statement: &str| {
        let parsed = Statement::parse(statement, Context::Span, false);
        parsed.err().map(|error| error.why).unwrap_or_default()
    };
    assert_eq!(fault(r#"set_semconv_span_name("1.37.0")"#), "");
    assert_eq!(
        fault(r#"set_semconv_span_name("1.43.0", "original") where kind == 2"#),
        ""
    );
    for (statement, why) in [
        (
            r#"set_semconv_span_name("1.36.0")"#,
            "not one of 1.37.0 to 1.43.0",
        ),
        (
            r#"set_semconv_span_name("1.40.1")"#,
            "not one of 1.37.0 to 1.43.0",
        ),
        (
            r#"set_semconv_span_name("1.37.0", "")"#,
            "the attribute has no name",
        ),
        ("set_semconv_span_name(name)", "a text in quotes"),
    ] {
        let fault = fault(statement);
        assert!(fault.contains(why), "{statement}: {fault}");
    }
}

#[test]
fn editors_have_one_entry_each() {
    let mut all: Vec<&str> = editors().map(|editor| editor.name).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
