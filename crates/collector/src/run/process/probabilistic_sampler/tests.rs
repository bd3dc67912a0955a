//! Decisions worked by hand.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::{Mode, Sampler, Settings, Source};
use crate::config::Signal;
use crate::run::process::tests::{kv, text, traces};

fn settings(mode: Mode, percentage: f64) -> Settings {
    Settings {
        percentage,
        hash_seed: 0,
        mode,
        fail_closed: true,
        precision: 4,
        source: Source::TraceId,
        from_attribute: String::new(),
        sampling_priority: String::new(),
    }
}

/// The `tracestate` of a span that is kept.
fn span(settings: &Settings, id: &[u8], state: &str, attributes: Vec<KeyValue>) -> Option<String> {
    let span = Span {
        trace_id: id.to_vec(),
        trace_state: state.to_owned(),
        name: "n".into(),
        attributes,
        ..Span::default()
    };
    let request = traces(vec![], vec![span.clone()]).encode_to_vec();
    let sampled = Sampler::new(settings).sample(Signal::Traces, &request);
    let sampled = sampled.unwrap();
    let bytes = sampled.bytes.unwrap_or(request);
    let request = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
    if sampled.dropped == 1 {
        assert_eq!(request.resource_spans, []);
        return None;
    }
    let mut got = request.resource_spans[0].scope_spans[0].spans[0].clone();
    let state = std::mem::take(&mut got.trace_state);
    let wanted = Span {
        trace_state: String::new(),
        ..span
    };
    assert_eq!(got, wanted);
    Some(state)
}

/// An identifier whose last 7 bytes begin with this one.
fn id(high: u8) -> Vec<u8> {
    let mut id = vec![0x11; 16];
    id[9] = high;
    id
}

/// A small identifier, whose hash is known.
fn small(low: u8) -> Vec<u8> {
    let mut id = vec![0; 16];
    id[15] = low;
    id
}

#[test]
fn hashes_decide() {
    let half = settings(Mode::HashSeed, 50.0);
    let kept = |state: &str| Some(state.to_owned());
    let go = |low: u8, state: &str| span(&half, &small(low), state, vec![]);
    // Buckets 8898 and 8495 are not below 8192; 8092 and 7689 are.
    assert_eq!(go(1, ""), None);
    assert_eq!(go(2, ""), None);
    assert_eq!(go(3, ""), kept("ot=rv:818c2db46fdf9c;th:8"));
    assert_eq!(
        go(4, "a=b, ot=p:8 ,c=d"),
        kept("ot=rv:87d82d745fde09;th:8;p:8,a=b,c=d")
    );
    // Another sampler's numbers, what makes no sense, and no identifier: faults.
    for state in ["ot=th:0", "ot=rv:818c2db46fdf9c", "ot=th:x", "a", "A=b"] {
        assert_eq!(go(3, state), None, "{state}");
    }
    assert_eq!(span(&half, &[], "", vec![]), None);
    let open = Settings {
        fail_closed: false,
        ..half
    };
    for state in ["ot=th:0", "ot=th:x", "a"] {
        assert_eq!(span(&open, &small(1), state, vec![]), kept(state));
    }
    assert_eq!(
        span(&open, &[], "", vec![]),
        kept("ot=rv:ffffffffffffff;th:0")
    );
    let all = settings(Mode::HashSeed, 200.0);
    assert_eq!(
        span(&all, &small(1), "", vec![]),
        kept("ot=rv:74f42e348fe2c2;th:0")
    );
    // Less than one bucket.
    let few = settings(Mode::HashSeed, 0.001);
    assert_eq!(span(&few, &small(1), "", vec![]), None);
}

#[test]
fn randomness_decides() {
    for (mode, percentage, high, state, wanted) in [
        (Mode::Equalizing, 25.0, 0xbf, "", None),
        (Mode::Equalizing, 25.0, 0xc0, "", Some("ot=th:c")),
        (Mode::Equalizing, 25.0, 0xc0, "a=b", Some("ot=th:c,a=b")),
        (Mode::Equalizing, 25.0, 0xc0, "ot=th:8", Some("ot=th:c")),
        (Mode::Equalizing, 25.0, 0x90, "ot=th:8", None),
        // It was sampled by less already.
        (Mode::Equalizing, 25.0, 0xf0, "ot=th:f", Some("ot=th:f")),
        // By its threshold it is not there.
        (Mode::Equalizing, 25.0, 0xe0, "ot=th:f", None),
        (Mode::Equalizing, 100.0, 0, "", Some("ot=th:0")),
        (
            Mode::Equalizing,
            25.0,
            0,
            "ot=x:y;rv:d0000000000000",
            Some("ot=rv:d0000000000000;th:c;x:y"),
        ),
        (Mode::Equalizing, 25.0, 0xff, "ot=rv:b0000000000000", None),
        (Mode::Equalizing, 25.0, 0xff, "ot=rv:b", None),
        (Mode::Proportional, 50.0, 0x80, "", Some("ot=th:8")),
        (Mode::Proportional, 50.0, 0x7f, "", None),
        (Mode::Proportional, 50.0, 0xc0, "ot=th:8", Some("ot=th:c")),
        (Mode::Proportional, 50.0, 0xb0, "ot=th:8", None),
        (Mode::Proportional, 0.0, 0xff, "", None),
        (Mode::HashSeed, 0.0, 0xff, "", None),
    ] {
        let got = span(&settings(mode, percentage), &id(high), state, vec![]);
        assert_eq!(got.as_deref(), wanted, "{mode:?} {high:x} {state}");
    }
    let open = Settings {
        fail_closed: false,
        ..settings(Mode::Equalizing, 25.0)
    };
    // The threshold that cannot be is gone.
    let got = span(&open, &id(0xe0), "ot=th:f", vec![]);
    assert_eq!(got.as_deref(), Some("ot=th:0"));
    let got = span(&open, &[], "a=b", vec![]);
    assert_eq!(got.as_deref(), Some("ot=th:0,a=b"));
    let got = span(&open, &id(0), "=", vec![]);
    assert_eq!(got.as_deref(), Some("="));
}

#[test]
fn a_priority_overrules() {
    for (value, wanted) in [
        (V::IntValue(0), None),
        (V::IntValue(2), Some("ot=th:0")),
        (V::DoubleValue(0.1), Some("ot=th:0")),
        (text("1"), Some("ot=th:0")),
        (text("0.0"), None),
        (V::IntValue(-1), Some("ot=th:8")),
        (text("x"), Some("ot=th:8")),
        (V::BoolValue(false), Some("ot=th:8")),
    ] {
        let half = settings(Mode::Equalizing, 50.0);
        let shown = format!("{value:?}");
        let got = span(&half, &id(0x80), "", vec![kv("sampling.priority", value)]);
        assert_eq!(got.as_deref(), wanted, "{shown}");
    }
    let must = || vec![kv("sampling.priority", V::IntValue(1))];
    let never = settings(Mode::Equalizing, 0.0);
    assert_eq!(span(&never, &id(0), "", must()).as_deref(), Some("ot=th:0"));
    // A threshold is never lowered.
    let half = settings(Mode::Equalizing, 50.0);
    let got = span(&half, &id(0xe0), "ot=th:c", must());
    assert_eq!(got.as_deref(), Some("ot=th:c"));
}

/// The attributes of a log record that is kept.
fn log(settings: &Settings, id: &[u8], attributes: &[(&str, V)]) -> Option<Vec<KeyValue>> {
    let attributes = attributes.iter();
    let record = LogRecord {
        trace_id: id.to_vec(),
        attributes: attributes
            .map(|(key, value)| kv(key, value.clone()))
            .collect(),
        ..LogRecord::default()
    };
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: vec![record],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let bytes = request.encode_to_vec();
    let sampled = Sampler::new(settings).sample(Signal::Logs, &bytes).unwrap();
    let bytes = sampled.bytes.unwrap_or(bytes);
    let request = ExportLogsServiceRequest::decode(&bytes[..]).unwrap();
    let resource = request.resource_logs.into_iter().next();
    assert_eq!(resource.is_none(), sampled.dropped == 1);
    let scope = resource?.scope_logs.into_iter().next()?;
    scope
        .log_records
        .into_iter()
        .next()
        .map(|log| log.attributes)
}

#[test]
fn logs_carry_it_in_attributes() {
    let half = settings(Mode::HashSeed, 50.0);
    let by = |randomness: &str, threshold: &str| {
        let randomness = kv("sampling.randomness", text(randomness));
        vec![randomness, kv("sampling.threshold", text(threshold))]
    };
    assert_eq!(log(&half, &small(1), &[]), None);
    assert_eq!(log(&half, &small(3), &[]), Some(by("818c2db46fdf9c", "8")));
    assert_eq!(log(&half, &[], &[]), None);
    let threshold = ("sampling.threshold", text("8"));
    assert_eq!(log(&half, &small(3), &[threshold]), None);

    let record = Settings {
        hash_seed: 22,
        source: Source::Record,
        from_attribute: "k".into(),
        ..half
    };
    // With this seed `a` is in bucket 4678, and `7` in 2524; a number is hashed as a text.
    let got = log(&record, &small(1), &[("k", text("a"))]).unwrap();
    assert_eq!(got[1..], by("b6e41389e35246", "8"));
    let got = log(&record, &small(1), &[("k", V::IntValue(7))]).unwrap();
    assert_eq!(got[1..], by("d88c080f0349dc", "8"));
    assert_eq!(log(&record, &small(3), &[]), None);
    assert_eq!(log(&record, &small(3), &[("k", text(""))]), None);

    let quarter = settings(Mode::Equalizing, 25.0);
    assert_eq!(log(&quarter, &id(0xb0), &[]), None);
    let only = |threshold: &str| vec![kv("sampling.threshold", text(threshold))];
    assert_eq!(log(&quarter, &id(0xc0), &[]), Some(only("c")));
    let before = ("sampling.threshold", text("f"));
    assert_eq!(log(&quarter, &id(0xf1), &[before]), Some(only("f")));
    let bad = ("sampling.threshold", text("x"));
    assert_eq!(log(&quarter, &id(0xf1), &[bad]), None);
}

#[test]
fn logs_may_tell_their_own_share() {
    let settings = Settings {
        sampling_priority: "p".into(),
        ..settings(Mode::Equalizing, 50.0)
    };
    let threshold = |value: V, high: u8| {
        let attributes = log(&settings, &id(high), &[("p", value)])?;
        match attributes.get(1)?.value.clone()?.value? {
            V::StringValue(text) => Some(text),
            _ => None,
        }
    };
    assert_eq!(threshold(V::IntValue(100), 0).as_deref(), Some("0"));
    assert_eq!(threshold(V::DoubleValue(25.0), 0xc0).as_deref(), Some("c"));
    assert_eq!(threshold(V::DoubleValue(25.0), 0xb0), None);
    // What tells no share leaves the rule as it is.
    for value in [V::IntValue(0), V::IntValue(-5), text("100")] {
        assert_eq!(threshold(value.clone(), 0x80).as_deref(), Some("8"));
        assert_eq!(threshold(value, 0x7f), None);
    }
}
