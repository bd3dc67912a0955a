//! Log records, metrics and data points, beside what a full decoder makes of them.

use super::*;
use crate::write;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Exemplar as DecodedExemplar;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric as Decoded, NumberDataPoint, Sum, Summary, SummaryDataPoint,
    exemplar::Value as ExemplarValue, exponential_histogram_data_point::Buckets as DecodedBuckets,
    metric::Data, number_data_point::Value as NumberValue, summary_data_point::ValueAtQuantile,
};
use prost::Message;

fn kv(key: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(V::IntValue(7)),
        }),
        ..KeyValue::default()
    }
}

fn record() -> LogRecord {
    LogRecord {
        time_unix_nano: 5,
        observed_time_unix_nano: 6,
        severity_number: 17,
        severity_text: "ERROR".into(),
        body: Some(AnyValue {
            value: Some(V::StringValue("failed".into())),
        }),
        attributes: vec![kv("a"), kv("b")],
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: vec![7; 16],
        span_id: vec![8; 8],
        event_name: "e".into(),
    }
}

#[test]
fn a_log_record_is_what_a_decoder_finds() {
    let decoded = record();
    let bytes = decoded.encode_to_vec();
    let log = log(&bytes).unwrap();
    assert_eq!((log.time_ns, log.observed_ns), (5, 6));
    assert_eq!((log.severity, log.severity_text), (17, &b"ERROR"[..]));
    assert_eq!(log.body(), Any::Text(b"failed"));
    let keys: Vec<_> = log.attributes().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"a", b"b"]);
    assert_eq!((log.dropped_attributes, log.flags), (3, 1));
    assert_eq!((log.trace_id, log.span_id), ([7; 16], &[8; 8][..]));
    assert_eq!(log.event_name, b"e");
    let empty = super::log(b"").unwrap();
    assert_eq!((empty.body(), empty.trace_id), (Any::Empty, [0; 16]));
}

#[test]
fn malformed_log_records_are_refused() {
    let with = |number, value: &[u8]| {
        let mut bytes = record().encode_to_vec();
        write::bytes(&mut bytes, number, value);
        bytes
    };
    for (bytes, fault) in [
        (with(9, b"short"), Malformed::TraceId),
        (with(10, b"short"), Malformed::SpanId),
        (with(1, b""), Malformed::WireType),
        (with(5, b"\x0a\x05a"), Malformed::Truncated),
        (with(6, b"\x12\x02\x0a\x05"), Malformed::Truncated),
    ] {
        assert_eq!(log(&bytes).err(), Some(fault), "{bytes:?}");
    }
    let whole = record().encode_to_vec();
    let faults = (1..whole.len()).filter(|cut| log(&whole[..*cut]).is_err());
    assert!(faults.count() > whole.len() / 2);
    assert!(log(&with(4, b"name")).is_ok() && log(&with(99, b"new")).is_ok());
}

fn one_exemplar() -> DecodedExemplar {
    DecodedExemplar {
        filtered_attributes: vec![kv("x")],
        time_unix_nano: 1,
        span_id: vec![1; 8],
        trace_id: vec![2; 16],
        value: Some(ExemplarValue::AsInt(4)),
    }
}

fn number(value: NumberValue) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![kv("a")],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: vec![one_exemplar()],
        flags: 1,
        value: Some(value),
    }
}

fn histogram() -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: vec![kv("a")],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 6,
        sum: Some(12.5),
        bucket_counts: vec![1, 2, 3],
        explicit_bounds: vec![0.5, 1.5],
        exemplars: vec![one_exemplar()],
        flags: 1,
        min: Some(-1.0),
        max: Some(9.0),
    }
}

fn exponential() -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        attributes: vec![kv("a")],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 6,
        sum: None,
        scale: -3,
        zero_count: 4,
        positive: Some(DecodedBuckets {
            offset: -5,
            bucket_counts: vec![1, 300],
        }),
        negative: Some(DecodedBuckets {
            offset: 6,
            bucket_counts: vec![],
        }),
        flags: 1,
        exemplars: vec![one_exemplar()],
        min: Some(-1.0),
        max: None,
        zero_threshold: 0.25,
    }
}

fn summary() -> SummaryDataPoint {
    SummaryDataPoint {
        attributes: vec![kv("a")],
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 6,
        sum: 0.0,
        quantile_values: vec![
            ValueAtQuantile {
                quantile: 0.5,
                value: 3.0,
            },
            ValueAtQuantile::default(),
        ],
        flags: 1,
    }
}

#[test]
fn points_of_all_kinds_are_what_a_decoder_finds() {
    let shared = |point: &Point<'_>| {
        let keys: Vec<_> = point.attributes().map(|(key, _)| key.to_vec()).collect();
        assert_eq!(keys, [b"a"]);
        assert_eq!((point.start_ns, point.time_ns, point.flags), (1, 2, 1));
    };
    for (decoded, value) in [
        (NumberValue::AsInt(-4), Number::Int(-4)),
        (NumberValue::AsDouble(0.0), Number::Double(0.0)),
    ] {
        let bytes = number(decoded).encode_to_vec();
        let point = point(PointKind::Number, &bytes).unwrap();
        shared(&point);
        assert_eq!((point.value, point.sum), (Some(value), None));
    }
    let bytes = histogram().encode_to_vec();
    let found = point(PointKind::Histogram, &bytes).unwrap();
    shared(&found);
    assert_eq!((found.count, found.sum, found.value), (6, Some(12.5), None));
    assert_eq!((found.min, found.max), (Some(-1.0), Some(9.0)));
    assert_eq!(found.bucket_counts(), [1, 2, 3]);
    assert_eq!(found.explicit_bounds(), [0.5, 1.5]);

    let bytes = exponential().encode_to_vec();
    let found = point(PointKind::Exponential, &bytes).unwrap();
    shared(&found);
    assert_eq!((found.count, found.sum, found.scale), (6, None, -3));
    assert_eq!((found.zero_count, found.zero_threshold), (4, 0.25));
    assert_eq!((found.min, found.max), (Some(-1.0), None));
    let (positive, negative) = (found.positive(), found.negative());
    assert_eq!((positive.offset(), negative.offset()), (-5, 6));
    assert_eq!(
        (positive.counts(), negative.counts()),
        (vec![1, 300], vec![])
    );

    let bytes = summary().encode_to_vec();
    let found = point(PointKind::Summary, &bytes).unwrap();
    shared(&found);
    assert_eq!((found.count, found.sum), (6, Some(0.0)));
    let quantiles: Vec<_> = found
        .quantiles()
        .map(|one| (one.quantile, one.value))
        .collect();
    assert_eq!(quantiles, [(0.5, 3.0), (0.0, 0.0)]);
}

#[test]
fn lists_that_are_not_packed_are_read_too() {
    let mut bytes = histogram().encode_to_vec();
    write::fixed64(&mut bytes, 6, 9);
    write::double(&mut bytes, 7, 2.5);
    let found = point(PointKind::Histogram, &bytes).unwrap();
    assert_eq!(found.bucket_counts(), [1, 2, 3, 9]);
    assert_eq!(found.explicit_bounds(), [0.5, 1.5, 2.5]);
    let mut bytes = exponential().encode_to_vec();
    write::message(&mut bytes, POSITIVE, |out| write::uint(out, 2, 5));
    let found = point(PointKind::Exponential, &bytes).unwrap();
    assert_eq!(
        (found.positive().offset(), found.positive().counts()),
        (-5, vec![1, 300, 5])
    );
}

#[test]
fn malformed_points_are_refused() {
    let messages = [
        (
            PointKind::Number,
            number(NumberValue::AsInt(1)).encode_to_vec(),
        ),
        (PointKind::Histogram, histogram().encode_to_vec()),
        (PointKind::Exponential, exponential().encode_to_vec()),
        (PointKind::Summary, summary().encode_to_vec()),
    ];
    for (kind, whole) in messages {
        // A known field of another type.
        for number in [2, kind.flags(), kind.attributes_key() >> 3] {
            let mut bytes = whole.clone();
            write::fixed32(&mut bytes, number, 1);
            assert_eq!(
                point(kind, &bytes).err(),
                Some(Malformed::WireType),
                "{kind:?}"
            );
        }
        if let Some(number) = kind.exemplars() {
            let mut bytes = whole.clone();
            write::message(&mut bytes, number, |out| write::bytes(out, 4, b"no"));
            assert_eq!(
                point(kind, &bytes).err(),
                Some(Malformed::SpanId),
                "{kind:?}"
            );
        }
        let mut bytes = whole.clone();
        write::uint(&mut bytes, 3000, 1);
        assert!(point(kind, &bytes).is_ok());
        assert_eq!(
            point(kind, &bytes[..bytes.len() - 1]).err(),
            Some(Malformed::Truncated)
        );
    }
    let packed = |number, content: &[u8]| {
        let mut bytes = Vec::new();
        write::bytes(&mut bytes, number, content);
        bytes
    };
    let fault = point(PointKind::Histogram, &packed(6, &[0; 7])).err();
    assert_eq!(fault, Some(Malformed::Truncated));
    let fault = point(PointKind::Exponential, &packed(8, &packed(2, &[0x80]))).err();
    assert_eq!(fault, Some(Malformed::Truncated));
    let fault = point(PointKind::Summary, &packed(6, &packed(1, b""))).err();
    assert_eq!(fault, Some(Malformed::WireType));
}

fn metrics() -> Vec<(Data, MetricKind)> {
    let numbers = vec![number(NumberValue::AsInt(1)), number(NumberValue::AsInt(2))];
    vec![
        (
            Data::Gauge(Gauge {
                data_points: numbers.clone(),
            }),
            MetricKind::Gauge,
        ),
        (
            Data::Sum(Sum {
                data_points: numbers,
                aggregation_temporality: 2,
                is_monotonic: true,
            }),
            MetricKind::Sum,
        ),
        (
            Data::Histogram(Histogram {
                data_points: vec![histogram(), histogram()],
                aggregation_temporality: 2,
            }),
            MetricKind::Histogram,
        ),
        (
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: vec![exponential(), exponential()],
                aggregation_temporality: 2,
            }),
            MetricKind::Exponential,
        ),
        (
            Data::Summary(Summary {
                data_points: vec![summary(), summary()],
            }),
            MetricKind::Summary,
        ),
    ]
}

#[test]
fn metrics_of_all_kinds_are_what_a_decoder_finds() {
    for (data, kind) in metrics() {
        let bytes = Decoded {
            name: "n".into(),
            description: "d".into(),
            unit: "u".into(),
            metadata: vec![kv("m")],
            data: Some(data),
        }
        .encode_to_vec();
        let found = metric(&bytes).unwrap();
        assert_eq!(found.kind, Some(kind));
        let texts = (found.name, found.description, found.unit);
        assert_eq!(texts, (&b"n"[..], &b"d"[..], &b"u"[..]));
        let temporality = if kind.has_temporality() { 2 } else { 0 };
        assert_eq!(found.temporality, temporality);
        assert_eq!(found.is_monotonic, kind == MetricKind::Sum);
        assert_eq!(found.points().filter(Result::is_ok).count(), 2);
        assert_eq!(found.check_points(), Ok(()));

        let mut frame = Vec::new();
        metric_frame(&bytes, &mut frame).unwrap();
        let around = metric(&frame).unwrap();
        assert_eq!((around.kind, around.temporality), (found.kind, temporality));
        assert_eq!((around.name, around.points().count()), (&b"n"[..], 0));
    }
    let empty = metric(b"").unwrap();
    assert_eq!((empty.kind, empty.points().count()), (None, 0));
}

#[test]
fn malformed_metrics_are_refused() {
    for (data, kind) in metrics() {
        let decoded = Decoded {
            data: Some(data),
            ..Decoded::default()
        };
        let whole = decoded.encode_to_vec();
        for number in [1, 12, kind.number()] {
            let mut bytes = whole.clone();
            write::uint(&mut bytes, number, 1);
            assert_eq!(metric(&bytes).err(), Some(Malformed::WireType));
        }
        let mut bytes = Vec::new();
        write::message(&mut bytes, kind.number(), |out| write::uint(out, 1, 1));
        assert_eq!(metric(&bytes).err(), Some(Malformed::WireType));
        assert_eq!(
            metric_frame(&bytes, &mut Vec::new()),
            Err(Malformed::WireType)
        );
        let mut bytes = Vec::new();
        write::message(&mut bytes, kind.number(), |out| {
            write::bytes(out, 1, b"\x11\x01");
        });
        let fault = metric(&bytes).unwrap().check_points();
        assert_eq!(fault, Err(Malformed::Truncated));
    }
}

#[test]
fn exemplars_are_what_a_decoder_finds() {
    let bytes = one_exemplar().encode_to_vec();
    let found = exemplar(&bytes).unwrap();
    assert_eq!((found.time_ns, found.value), (1, Some(Number::Int(4))));
    assert_eq!((found.trace_id, found.span_id), ([2; 16], &[1; 8][..]));
    assert_eq!(found.attributes().count(), 1);
    let double = DecodedExemplar {
        value: Some(ExemplarValue::AsDouble(0.5)),
        ..DecodedExemplar::default()
    };
    let bytes = double.encode_to_vec();
    assert_eq!(exemplar(&bytes).unwrap().value, Some(Number::Double(0.5)));
    let mut bytes = one_exemplar().encode_to_vec();
    write::uint(&mut bytes, 2, 1);
    assert_eq!(exemplar(&bytes).err(), Some(Malformed::WireType));

    let whole = histogram().encode_to_vec();
    let mut frame = Vec::new();
    point_frame(PointKind::Histogram, &whole, &mut frame).unwrap();
    let expected = HistogramDataPoint {
        exemplars: vec![],
        ..histogram()
    };
    assert_eq!(frame, expected.encode_to_vec());
}
