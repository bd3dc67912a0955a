//! Random requests, changed as bytes and as messages: the same comes out, and what nothing is done
//! to stays as it came.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use otlp::write;
use prost::Message;

use super::random::Random;
use super::{kv, text};
use crate::config::Signal;
use crate::config::components::processors::action::{Action, AttributeValue, Source, Type, When};
use crate::config::components::processors::{attributes, resource};
use crate::run::process::attributes::Editor;
use crate::run::process::edit::Fields;
use crate::run::process::resource::Editor as ResourceEditor;

pub const KEYS: [&str; 5] = ["a", "b", "c", "long.key", "é"];

pub fn attributes_of(random: &mut Random) -> Vec<KeyValue> {
    let value = |random: &mut Random| match random.below(6) {
        0 => V::IntValue(random.below(1 << 40) as i64 - (1 << 39)),
        1 => V::DoubleValue(random.below(100) as f64 / 8.0),
        2 => V::BoolValue(random.below(2) == 0),
        3 => text(&"x".repeat(random.below(200) as usize)),
        4 => text(&random.below(100).to_string()),
        _ => text(KEYS[random.below(5) as usize]),
    };
    let count = random.below(6);
    let mut all = Vec::new();
    for _ in 0..count {
        let key = *random.pick(&KEYS);
        all.push(kv(key, value(random)));
    }
    all
}

fn actions(random: &mut Random) -> Vec<Action> {
    let key = |random: &mut Random| (*random.pick(&KEYS)).to_owned();
    let action = |random: &mut Random| match random.below(7) {
        0 => Action::Delete {
            key: key(random),
            pattern: None,
        },
        1 => Action::Delete {
            key: String::new(),
            pattern: Some("^.$".into()),
        },
        2 => Action::Convert {
            key: key(random),
            to: *random.pick(&[Type::Text, Type::Int, Type::Double]),
        },
        kind => Action::Set {
            key: key(random),
            source: match kind {
                3 | 4 => Source::Attribute(key(random)),
                _ => Source::Value(AttributeValue::Int(5)),
            },
            when: *random.pick(&[When::Missing, When::Present, When::Always]),
        },
    };
    (0..random.below(4) + 1).map(|_| action(random)).collect()
}

/// The same actions on a decoded list.
fn model(actions: &[Action], list: &mut Vec<KeyValue>) {
    let any = |value: V| Some(AnyValue { value: Some(value) });
    for action in actions {
        match action {
            Action::Delete { key, pattern: None } => {
                if let Some(at) = list.iter().position(|one| one.key == *key) {
                    list.remove(at);
                }
            }
            Action::Delete { .. } => list.retain(|one| one.key.chars().count() != 1),
            Action::Set { key, source, when } => {
                let value = match source {
                    Source::Value(_) => any(V::IntValue(5)),
                    Source::Attribute(from) => match list.iter().find(|one| one.key == *from) {
                        Some(one) => one.value.clone(),
                        None => continue,
                    },
                    // Nobody sent these.
                    Source::Context(_) => continue,
                };
                match (list.iter_mut().find(|one| one.key == *key), when) {
                    (Some(one), When::Present | When::Always) => one.value = value,
                    (None, When::Missing | When::Always) => list.push(KeyValue {
                        value,
                        ..kv(key, V::IntValue(0))
                    }),
                    _ => {}
                }
            }
            Action::Convert { key, to } => {
                let Some(one) = list.iter_mut().find(|one| one.key == *key) else {
                    continue;
                };
                let old = one.value.clone().and_then(|value| value.value).unwrap();
                let number = match &old {
                    V::IntValue(value) => Some(*value as f64),
                    V::DoubleValue(value) => Some(*value),
                    V::BoolValue(value) => Some(f64::from(u8::from(*value))),
                    V::StringValue(text) => text.parse().ok(),
                    _ => None,
                };
                let shown = match &old {
                    V::IntValue(value) => value.to_string(),
                    V::DoubleValue(value) => value.to_string(),
                    V::BoolValue(value) => value.to_string(),
                    V::StringValue(text) => text.clone(),
                    _ => unreachable!(),
                };
                let new = match (to, number, &old) {
                    (Type::Text, ..) => Some(V::StringValue(shown)),
                    (Type::Int, _, V::IntValue(_)) => None,
                    (Type::Int, Some(number), _) => Some(V::IntValue(number as i64)),
                    (Type::Double, Some(number), _) => Some(V::DoubleValue(number)),
                    _ => None,
                };
                if let Some(new) = new {
                    one.value = any(new);
                }
            }
            _ => unreachable!(),
        }
    }
}

/// Appends fields that nobody knows to every message on the way to records, and to these.
pub fn with_unknown(message: &[u8], depth: u32) -> Vec<u8> {
    let mut out = b"\xfa\x3e\x03new".to_vec();
    for field in Fields::new(message).map(Result::unwrap) {
        match (field.key >> 3, field.value) {
            (number @ 1..=2, super::super::edit::Value::Bytes(inner))
                if depth > 0 && (number == 2 || depth == 3) =>
            {
                write::bytes(&mut out, number, &with_unknown(inner, depth - 1));
            }
            _ => out.extend_from_slice(field.whole),
        }
    }
    out.extend_from_slice(b"\xf8\x3f\x85\x00");
    out
}

pub fn traces(random: &mut Random) -> ExportTraceServiceRequest {
    let span = |random: &mut Random| Span {
        trace_id: vec![1; 16],
        name: (*random.pick(&KEYS)).to_owned(),
        attributes: attributes_of(random),
        status: Some(Status::default()),
        ..Span::default()
    };
    let scope = |random: &mut Random| ScopeSpans {
        spans: (0..random.below(4)).map(|_| span(random)).collect(),
        ..ScopeSpans::default()
    };
    let of_resource = |random: &mut Random| ResourceSpans {
        resource: Some(Resource {
            attributes: attributes_of(random),
            ..Resource::default()
        }),
        scope_spans: (0..random.below(3)).map(|_| scope(random)).collect(),
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest {
        resource_spans: (0..random.below(4)).map(|_| of_resource(random)).collect(),
    }
}

fn settings(actions: &[Action]) -> attributes::Attributes {
    attributes::Attributes {
        include: None,
        exclude: None,
        actions: actions.to_vec(),
    }
}

#[test]
fn spans_become_what_they_should() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let (before, actions) = (traces(&mut random), actions(&mut random));
        let mut after = before.clone();
        for resource in &mut after.resource_spans {
            for scope in &mut resource.scope_spans {
                for span in &mut scope.spans {
                    model(&actions, &mut span.attributes);
                }
            }
        }
        let mut bytes = before.encode_to_vec();
        if seed % 2 == 0 {
            bytes = with_unknown(&bytes, 3);
        }
        let editor = Editor::new(&settings(&actions)).unwrap();
        let edited = editor.edit(Signal::Traces, &bytes, None).unwrap().bytes;
        assert_eq!(edited.is_none(), before == after, "{seed}");
        let edited = edited.unwrap_or(bytes.clone());
        let got = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
        assert_eq!(got, after, "{seed} {actions:?}");
        let unknown = |bytes: &[u8]| bytes.windows(3).filter(|bytes| *bytes == b"new").count();
        assert_eq!(unknown(&edited), unknown(&bytes), "{seed}");
        // Records that nothing was done to are as they came, byte for byte.
        let pairs = spans_of(&bytes).into_iter().zip(spans_of(&edited));
        let decoded = spans(&before).zip(spans(&after));
        for ((old_bytes, new_bytes), (old, new)) in pairs.zip(decoded) {
            assert_eq!(old == new, old_bytes == new_bytes, "{seed}");
        }
        // What it takes is bound by what came and what the settings add.
        let records = spans(&before).count();
        assert!(
            edited.len() <= bytes.len() + records * actions.len() * 256,
            "{seed}"
        );
    }
}

fn spans(request: &ExportTraceServiceRequest) -> impl Iterator<Item = &Span> {
    let scopes = request.resource_spans.iter();
    let scopes = scopes.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| &scope.spans)
}

/// The bytes of each span.
pub fn spans_of(request: &[u8]) -> Vec<&[u8]> {
    let inner = |message, number| {
        let fields = Fields::new(message).map(Result::unwrap);
        fields.filter_map(move |field| match field.value {
            super::super::edit::Value::Bytes(inner) if field.key >> 3 == number => Some(inner),
            _ => None,
        })
    };
    let scopes = inner(request, 1).flat_map(|resource| inner(resource, 2));
    scopes.flat_map(|scope| inner(scope, 2)).collect()
}

#[test]
fn resources_become_what_they_should() {
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let (before, actions) = (traces(&mut random), actions(&mut random));
        let mut after = before.clone();
        for resource in &mut after.resource_spans {
            let resource = resource.resource.as_mut().unwrap();
            model(&actions, &mut resource.attributes);
        }
        let bytes = with_unknown(&before.encode_to_vec(), 3);
        let settings = resource::Resource {
            actions: actions.clone(),
        };
        let editor = ResourceEditor::new(&settings).unwrap();
        let edited = editor.edit(&bytes, None).unwrap().bytes;
        assert_eq!(edited.is_none(), before == after, "{seed}");
        let edited = edited.unwrap_or(bytes);
        let got = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
        assert_eq!(got, after, "{seed} {actions:?}");
    }
}

#[test]
fn log_records_become_what_they_should() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let record = |random: &mut Random| LogRecord {
            attributes: attributes_of(random),
            trace_id: vec![2; 16],
            ..LogRecord::default()
        };
        let before = ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                scope_logs: vec![ScopeLogs {
                    log_records: (0..5).map(|_| record(&mut random)).collect(),
                    ..ScopeLogs::default()
                }],
                ..ResourceLogs::default()
            }],
        };
        let actions = actions(&mut random);
        let mut after = before.clone();
        for record in &mut after.resource_logs[0].scope_logs[0].log_records {
            model(&actions, &mut record.attributes);
        }
        let bytes = before.encode_to_vec();
        let editor = Editor::new(&settings(&actions)).unwrap();
        let edited = editor.edit(Signal::Logs, &bytes, None).unwrap().bytes;
        let edited = edited.unwrap_or(bytes);
        let got = ExportLogsServiceRequest::decode(&edited[..]).unwrap();
        assert_eq!(got, after, "{seed}");
    }
}

#[test]
fn data_points_become_what_they_should() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut lists: Vec<_> = (0..5).map(|_| attributes_of(&mut random)).collect();
        let before = metrics(&lists);
        let actions = actions(&mut random);
        lists.iter_mut().for_each(|list| model(&actions, list));
        let bytes = before.encode_to_vec();
        let editor = Editor::new(&settings(&actions)).unwrap();
        let edited = editor.edit(Signal::Metrics, &bytes, None).unwrap().bytes;
        let edited = edited.unwrap_or(bytes);
        let got = ExportMetricsServiceRequest::decode(&edited[..]).unwrap();
        assert_eq!(got, metrics(&lists), "{seed}");
    }
}

/// A metric of each kind, with a point of these attributes each.
fn metrics(lists: &[Vec<KeyValue>]) -> ExportMetricsServiceRequest {
    let attributes = |at: usize| lists[at].clone();
    let number = |at| NumberDataPoint {
        attributes: attributes(at),
        time_unix_nano: 5,
        ..NumberDataPoint::default()
    };
    let data = [
        Data::Gauge(Gauge {
            data_points: vec![number(0)],
        }),
        Data::Sum(Sum {
            data_points: vec![number(1)],
            is_monotonic: true,
            ..Sum::default()
        }),
        Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint {
                attributes: attributes(2),
                bucket_counts: vec![1, 2],
                ..HistogramDataPoint::default()
            }],
            aggregation_temporality: 2,
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![ExponentialHistogramDataPoint {
                attributes: attributes(3),
                scale: -1,
                ..ExponentialHistogramDataPoint::default()
            }],
            ..ExponentialHistogram::default()
        }),
        Data::Summary(Summary {
            data_points: vec![SummaryDataPoint {
                attributes: attributes(4),
                count: 5,
                ..SummaryDataPoint::default()
            }],
        }),
    ];
    let metric = |data| Metric {
        name: "m".into(),
        data: Some(data),
        ..Metric::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![ScopeMetrics {
                metrics: data.into_iter().map(metric).collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}
