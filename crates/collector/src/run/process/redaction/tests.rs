//! Redaction worked by hand, as the Collector does it.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary as SummaryData,
    SummaryDataPoint,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use otlp::Signal;
use otlp::scan::Malformed;
use prost::Message;

use super::Editor;
use crate::config::components::processors::redaction::{Mask, Redaction, Summary};
use crate::run::process::tests::transform::{any, list, map};
use crate::run::process::tests::{kv, text, traces};

fn settings() -> Redaction {
    Redaction {
        allows_all_keys: true,
        allowed_keys: vec![],
        ignored_keys: vec![],
        ignored_key_patterns: vec![],
        blocked_key_patterns: vec![],
        blocked_values: vec!["4[0-9]{3}".into()],
        allowed_values: vec![],
        reads_all_types: false,
        mask: Mask::Asterisks,
        summary: Summary::Silent,
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Redacts the attributes of a span.
fn attributes(settings: &Redaction, before: Vec<KeyValue>) -> Vec<KeyValue> {
    let span = Span {
        name: "n".into(),
        attributes: before,
        ..Span::default()
    };
    let request = traces(vec![], vec![span]);
    let bytes = request.encode_to_vec();
    let edited = Editor::new(settings).unwrap();
    let edited = edited.edit(Signal::Traces, &bytes).unwrap();
    assert_eq!((edited.dropped, edited.added), (0, 0));
    let bytes = edited.bytes.unwrap_or(bytes);
    let mut edited = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
    let span = &mut edited.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(span.name, "n");
    std::mem::take(&mut span.attributes)
}

/// Redacts a body; returns it with the attributes of its record.
fn body(settings: &Redaction, before: Option<V>) -> (Option<AnyValue>, Vec<KeyValue>) {
    let record = LogRecord {
        severity_number: 9,
        body: before.map(any),
        flags: 1,
        ..LogRecord::default()
    };
    let bytes = logs(record).encode_to_vec();
    let edited = Editor::new(settings).unwrap();
    let edited = edited.edit(Signal::Logs, &bytes).unwrap();
    let bytes = edited.bytes.unwrap_or(bytes);
    let edited = ExportLogsServiceRequest::decode(&bytes[..]).unwrap();
    let record = edited.resource_logs[0].scope_logs[0].log_records[0].clone();
    assert_eq!((record.severity_number, record.flags), (9, 1));
    (record.body, record.attributes)
}

fn logs(record: LogRecord) -> ExportLogsServiceRequest {
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: vec![record],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

#[test]
fn keys_that_are_not_allowed_are_removed() {
    let settings = Redaction {
        allows_all_keys: false,
        allowed_keys: texts(&["id", "card"]),
        ignored_keys: texts(&["raw"]),
        ignored_key_patterns: texts(&["^safe\\."]),
        summary: Summary::Keys,
        ..settings()
    };
    let before = vec![
        kv("id", text("5")),
        kv("z", text("x")),
        kv("card", text("no 4111, 4222")),
        kv("raw", text("4111")),
        kv("name", V::IntValue(1)),
        kv("z", text("again")),
        kv("safe.card", text("4111")),
    ];
    let after = vec![
        kv("id", text("5")),
        kv("card", text("no ****, ****")),
        kv("raw", text("4111")),
        kv("safe.card", text("4111")),
        kv("redaction.redacted.keys", text("name,z,z")),
        kv("redaction.redacted.count", V::IntValue(3)),
        kv("redaction.masked.keys", text("card")),
        kv("redaction.masked.count", V::IntValue(1)),
        kv("redaction.ignored.count", V::IntValue(2)),
    ];
    assert_eq!(attributes(&settings, before), after);
    // A second one leaves the summary of the first, and adds its own.
    let mut again = after.clone();
    again.insert(1, kv("y", text("")));
    let mut wanted = after;
    wanted[4] = kv("redaction.redacted.keys", text("name,y,z,z"));
    wanted[5] = kv("redaction.redacted.count", V::IntValue(4));
    wanted[8] = kv("redaction.ignored.count", V::IntValue(4));
    assert_eq!(attributes(&settings, again), wanted);
}

#[test]
fn a_summary_tells_as_much_as_is_asked_for() {
    let before = vec![kv("a", text("4111"))];
    let masked = kv("a", text("****"));
    let count = kv("redaction.masked.count", V::IntValue(1));
    let keys = kv("redaction.masked.keys", text("a"));
    for (summary, wanted) in [
        (Summary::Silent, vec![masked.clone()]),
        (Summary::Counts, vec![masked.clone(), count.clone()]),
        (Summary::Keys, vec![masked, keys, count]),
    ] {
        let settings = Redaction {
            summary,
            ..settings()
        };
        assert_eq!(attributes(&settings, before.clone()), wanted);
    }
    // Of more keys than fit only the count is told.
    let key = |at: usize| format!("{at:04}{}", "k".repeat(1000));
    let before = (0..100).map(|at| kv(&key(at), text("4111"))).collect();
    let settings = Redaction {
        summary: Summary::Keys,
        ..settings()
    };
    let after = attributes(&settings, before);
    assert_eq!(
        after[101],
        kv("redaction.masked.count", V::IntValue(100)),
        "{}",
        after.len()
    );
    let Some(V::StringValue(told)) = after[100].value.clone().and_then(|one| one.value) else {
        panic!("{:?}", after[100]);
    };
    assert_eq!(told.split(',').count(), (64 << 10) / 1005);
    assert!(told.starts_with(&key(0)));
}

#[test]
fn values_are_allowed_before_they_are_masked() {
    let settings = Redaction {
        blocked_values: texts(&["company\\.com", "4[0-9]{3}"]),
        allowed_values: texts(&["^support@company\\.com$"]),
        blocked_key_patterns: texts(&["(?i)token"]),
        summary: Summary::Counts,
        ..settings()
    };
    let before = vec![
        kv("from", text("support@company.com")),
        kv("to", text("me@company.com 4111")),
        kv("my.Token", text("a b\nc")),
        kv("token", text("support@company.com")),
        kv("token.n", V::IntValue(5)),
        kv("n", V::IntValue(4111)),
    ];
    let after = vec![
        kv("from", text("support@company.com")),
        kv("to", text("me@**** ****")),
        kv("my.Token", text("****\n****")),
        kv("token", text("support@company.com")),
        kv("token.n", text("****")),
        kv("n", V::IntValue(4111)),
        kv("redaction.masked.count", V::IntValue(3)),
        kv("redaction.allowed.count", V::IntValue(2)),
    ];
    assert_eq!(attributes(&settings, before), after);
}

#[test]
fn values_of_other_types_are_read_as_texts_where_that_is_asked_for() {
    let settings = Redaction {
        reads_all_types: true,
        ..settings()
    };
    let before = vec![
        kv("n", V::IntValue(14111)),
        kv("d", V::DoubleValue(0.5)),
        kv("m", map(vec![kv("k", text("4111"))])),
        kv("l", list(vec![V::IntValue(1)])),
        kv("b", V::BytesValue(b"4111".to_vec())),
    ];
    let after = vec![
        kv("n", text("1****")),
        kv("d", V::DoubleValue(0.5)),
        kv("m", text(r#"{"k":"****"}"#)),
        kv("l", list(vec![V::IntValue(1)])),
        kv("b", V::BytesValue(b"4111".to_vec())),
    ];
    assert_eq!(attributes(&settings, before), after);
}

const SHA512: &str = "9bf28647d4fe3099b6e86694841837869084de4d90a7f72e08d04d74278fbe72\
                      f450a64813cd5c6894dca3589c38c322608942fd8dcbbc40eca39ffb813246f3";

#[test]
fn hashes_stand_for_masked_text() {
    for (mask, hash) in [
        (Mask::Md5, "64f07f012a35c83d7c556ba0b69ef64e"),
        (Mask::Sha1, "4d186afe41eb80f94cb4585aabb00a931c46b439"),
        (
            Mask::Sha3,
            "f32fb6271814b575fd82937d1cf787520f7cca55e5e2120fe8df0c5e7a426a11",
        ),
        (
            Mask::HmacSha256("k".repeat(32)),
            "ea3235590fd31aaeccaf7b0cadfb2130cb3f10c5a7608142917711b0f116a728",
        ),
        (Mask::HmacSha512("k".repeat(64)), SHA512),
    ] {
        let settings = Redaction { mask, ..settings() };
        let after = attributes(&settings, vec![kv("a", text("no 4111."))]);
        assert_eq!(after, [kv("a", text(&format!("no {hash}.")))]);
    }
}

#[test]
fn expressions_match_as_in_go() {
    for (pattern, value, wanted) in [
        // An empty match beside another one, or within a character, is none.
        ("a*", "baac", "****b****c****"),
        ("x*", "é", "****é****"),
        ("^", "ab", "****ab"),
        ("z", "ab", "ab"),
    ] {
        let settings = Redaction {
            blocked_values: texts(&[pattern]),
            ..settings()
        };
        let after = attributes(&settings, vec![kv("a", text(value))]);
        assert_eq!(after, [kv("a", text(wanted))], "{pattern}");
    }
    // Each expression reads what the one before it made.
    let settings = Redaction {
        blocked_values: texts(&["b", "\\*{4}c"]),
        ..settings()
    };
    let after = attributes(&settings, vec![kv("a", text("abcd"))]);
    assert_eq!(after, [kv("a", text("a****d"))]);
}

#[test]
fn attributes_of_all_parts_of_a_request_are_redacted() {
    let card = || vec![kv("a", text("4111"))];
    let hidden = || vec![kv("a", text("****"))];
    let span = |attributes: &dyn Fn() -> Vec<KeyValue>| Span {
        attributes: attributes(),
        events: vec![
            Event {
                name: "4111".into(),
                attributes: attributes(),
                ..Event::default()
            },
            Event::default(),
        ],
        name: "4111".into(),
        ..Span::default()
    };
    let request = |attributes: &dyn Fn() -> Vec<KeyValue>| {
        let mut request = traces(attributes(), vec![span(attributes), Span::default()]);
        let scope = request.resource_spans[0].scope_spans[0].scope.as_mut();
        scope.unwrap().attributes = attributes();
        request
    };
    let editor = Editor::new(&settings()).unwrap();
    let edited = editor.edit(Signal::Traces, &request(&card).encode_to_vec());
    let edited = edited.unwrap().bytes.unwrap();
    let edited = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
    assert_eq!(edited, request(&hidden));
    let same = request(&hidden).encode_to_vec();
    assert_eq!(editor.edit(Signal::Traces, &same).unwrap().bytes, None);
    // If only an event changes, the rest of its span stays.
    let mut only = request(&hidden);
    only.resource_spans[0].scope_spans[0].spans[0].events[0].attributes = card();
    let edited = editor.edit(Signal::Traces, &only.encode_to_vec());
    assert_eq!(edited.unwrap().bytes.unwrap(), same);
}

#[test]
fn attributes_of_data_points_of_every_kind_are_redacted() {
    let request = |value: &str| {
        let attributes = vec![kv("a", text(value))];
        let number = NumberDataPoint {
            attributes: attributes.clone(),
            ..NumberDataPoint::default()
        };
        let data = [
            Data::Gauge(Gauge {
                data_points: vec![number.clone()],
            }),
            Data::Sum(Sum {
                data_points: vec![number],
                is_monotonic: true,
                ..Sum::default()
            }),
            Data::Histogram(Histogram {
                data_points: vec![HistogramDataPoint {
                    attributes: attributes.clone(),
                    count: 1,
                    ..HistogramDataPoint::default()
                }],
                ..Histogram::default()
            }),
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: vec![ExponentialHistogramDataPoint {
                    attributes: attributes.clone(),
                    count: 1,
                    ..ExponentialHistogramDataPoint::default()
                }],
                ..ExponentialHistogram::default()
            }),
            Data::Summary(SummaryData {
                data_points: vec![SummaryDataPoint {
                    attributes,
                    count: 1,
                    ..SummaryDataPoint::default()
                }],
            }),
        ];
        let metrics = data.into_iter().map(|data| Metric {
            name: "m".into(),
            data: Some(data),
            ..Metric::default()
        });
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                scope_metrics: vec![ScopeMetrics {
                    metrics: metrics.collect(),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        }
    };
    let editor = Editor::new(&settings()).unwrap();
    let edited = editor.edit(Signal::Metrics, &request("4111").encode_to_vec());
    let edited = edited.unwrap().bytes.unwrap();
    let edited = ExportMetricsServiceRequest::decode(&edited[..]).unwrap();
    assert_eq!(edited, request("****"));
}

#[test]
fn bodies_that_are_texts_or_numbers_are_redacted() {
    let settings = Redaction {
        summary: Summary::Keys,
        allowed_values: texts(&["^ok"]),
        ..settings()
    };
    let told = vec![
        kv("redaction.body.masked.keys", text("body")),
        kv("redaction.body.masked.count", V::IntValue(1)),
    ];
    for (before, after, told) in [
        (Some(text("a 4111")), Some(text("a ****")), told.clone()),
        (Some(V::IntValue(4111)), Some(text("****")), told),
        (Some(text("ok 4111")), Some(text("ok 4111")), vec![]),
        (Some(V::IntValue(5)), Some(V::IntValue(5)), vec![]),
        (None, None, vec![]),
    ] {
        assert_eq!(body(&settings, before), (after.map(any), told));
    }
}

#[test]
fn bodies_of_any_depth_are_redacted() {
    let settings = Redaction {
        allows_all_keys: false,
        allowed_keys: texts(&["a", "b", "list", "token"]),
        ignored_keys: texts(&["raw"]),
        blocked_key_patterns: texts(&["token"]),
        allowed_values: texts(&["^4000$"]),
        summary: Summary::Keys,
        ..settings()
    };
    let before = map(vec![
        kv("a", text("4111")),
        kv("gone", text("x")),
        kv("raw", text("4111")),
        kv("token", V::IntValue(7)),
        kv(
            "b",
            map(vec![
                kv("gone", V::BoolValue(true)),
                kv("a", V::IntValue(4222)),
                kv("raw", text("4111")),
                kv("token", text("t")),
            ]),
        ),
        kv(
            "list",
            list(vec![
                text("x"),
                text("4333"),
                text("4000"),
                map(vec![kv("a", text("4444"))]),
            ]),
        ),
    ]);
    let after = map(vec![
        kv("a", text("****")),
        kv("raw", text("4111")),
        kv("token", text("****")),
        kv(
            "b",
            map(vec![
                kv("a", text("****")),
                kv("raw", text("4111")),
                kv("token", text("****")),
            ]),
        ),
        kv(
            "list",
            list(vec![
                text("x"),
                text("****"),
                text("4000"),
                map(vec![kv("a", text("****"))]),
            ]),
        ),
    ]);
    let told = vec![
        kv("redaction.body.redacted.keys", text("b.gone,gone")),
        kv("redaction.body.redacted.count", V::IntValue(2)),
        kv(
            "redaction.body.masked.keys",
            text("a,b.a,b.token,list.[1],list.[3].a,token"),
        ),
        kv("redaction.body.masked.count", V::IntValue(6)),
        kv("redaction.body.allowed.keys", text("list.[2]")),
        kv("redaction.body.allowed.count", V::IntValue(1)),
        kv("redaction.body.ignored.count", V::IntValue(2)),
    ];
    assert_eq!(body(&settings, Some(before)), (Some(any(after)), told));
    let lists = |inner: &str| list(vec![text("y"), list(vec![text(inner)])]);
    let (after, told) = body(&settings, Some(lists("4111")));
    assert_eq!(after, Some(any(lists("****"))));
    assert_eq!(told[0], kv("redaction.body.masked.keys", text("[1].[0]")));
    // A map that loses all of its entries is an empty one.
    let (after, _) = body(&settings, Some(map(vec![kv("gone", text("x"))])));
    assert_eq!(after, Some(any(map(vec![]))));
}

#[test]
fn malformed_requests_and_those_that_grow_too_much_are_refused() {
    let editor = Editor::new(&settings()).unwrap();
    let span = Span {
        attributes: vec![kv("a", text("4111"))],
        ..Span::default()
    };
    let bytes = traces(vec![], vec![span]).encode_to_vec();
    let cut = &bytes[..bytes.len() - 1];
    assert!(editor.edit(Signal::Traces, cut).is_err());
    // A body of a wrong type: field 5 is a number.
    let record = b"\x0a\x06\x12\x04\x12\x02\x28\x01";
    assert_eq!(
        editor.edit(Signal::Logs, record).unwrap_err(),
        Malformed::WireType
    );
    // Each expression makes the value once more.
    let settings = Redaction {
        blocked_values: vec!["^.".into(); 150],
        ..settings()
    };
    let editor = Editor::new(&settings).unwrap();
    let of = |bytes: usize| {
        let span = Span {
            attributes: vec![kv("a", text(&"x".repeat(bytes)))],
            ..Span::default()
        };
        let bytes = traces(vec![], vec![span]).encode_to_vec();
        editor.edit(Signal::Traces, &bytes).map(drop)
    };
    assert_eq!(of(1000), Ok(()));
    assert_eq!(of(1 << 20), Err(Malformed::TooLarge));
}
