//! Options of samplers: which of some traces are kept, from a file of settings to a file of spans.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::super::within_a_proxy_by;
use super::*;

/// A span of a trace that lasts some milliseconds.
pub(super) fn span(trace: u8, ms: u64) -> Span {
    Span {
        trace_id: vec![trace; 16],
        span_id: vec![1, 0, 0, 0, 0, 0, 0, trace],
        name: "plain".into(),
        start_time_unix_nano: 1_000_000_000,
        end_time_unix_nano: 1_000_000_000 + ms * 1_000_000,
        ..Span::default()
    }
}

pub(super) fn with_status(trace: u8, code: i32) -> Span {
    let message = String::new();
    Span {
        status: Some(Status { code, message }),
        ..span(trace, 10)
    }
}

fn with_value(trace: u8, key: &str, value: any_value::Value) -> Span {
    let value = Some(AnyValue { value: Some(value) });
    let key = key.into();
    Span {
        attributes: vec![KeyValue {
            key,
            value,
            ..KeyValue::default()
        }],
        ..span(trace, 10)
    }
}

/// The traces, by their numbers.
const PLAIN: u8 = 1;
const SLOW: u8 = 2;
const SLOWER: u8 = 3;
const FAILED: u8 = 4;
const FINE: u8 = 5;
const FEW: u8 = 6;
const MANY: u8 = 7;
const ABC: u8 = 8;
const WITHIN: u8 = 9;
const TRUE: u8 = 10;
const FALSE: u8 = 11;
const STATE_V: u8 = 12;
const STATE_W: u8 = 13;
const THREE: u8 = 14;
const FIVE: u8 = 15;
const BOOM: u8 = 16;
const SPECIAL: u8 = 17;
const ALL: std::ops::RangeInclusive<u8> = PLAIN..=SPECIAL;

fn spans() -> Vec<Span> {
    use any_value::Value::{BoolValue, IntValue, StringValue};
    let state = |trace, state: &str| Span {
        trace_state: state.into(),
        ..span(trace, 10)
    };
    let mut spans = vec![
        span(PLAIN, 10),
        span(SLOW, 300),
        span(SLOWER, 900),
        with_status(FAILED, 2),
        with_status(FINE, 1),
        with_value(FEW, "n", IntValue(5)),
        with_value(MANY, "n", IntValue(50)),
        with_value(ABC, "s", StringValue("abc".into())),
        with_value(WITHIN, "s", StringValue("xabcx".into())),
        with_value(TRUE, "b", BoolValue(true)),
        with_value(FALSE, "b", BoolValue(false)),
        state(STATE_V, "k=v"),
        state(STATE_W, "k=w"),
    ];
    spans.extend((0..3).map(|_| span(THREE, 10)));
    spans.extend((0..5).map(|_| span(FIVE, 10)));
    spans.push(Span {
        events: vec![Event {
            name: "boom".into(),
            ..Event::default()
        }],
        ..span(BOOM, 10)
    });
    spans.push(Span {
        name: "special".into(),
        ..span(SPECIAL, 10)
    });
    spans
}

pub(super) fn request_of(spans: Vec<Span>) -> Bytes {
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![ScopeSpans {
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec().into()
}

/// The traces of a file.
pub(super) fn traces_of(file: &TempFile) -> BTreeSet<u8> {
    let numbers = file.spans().into_iter().map(|span| {
        let id = span["traceId"].as_str().expect("an id").to_owned();
        u8::from_str_radix(&id[30..], 16).expect("hexadecimal")
    });
    numbers.collect()
}

/// A collector with a pipeline through each of these samplers to a file of its own.
fn sampling(samplers: &[(&str, String)]) -> (Collector, Vec<TempFile>) {
    let files: Vec<_> = samplers.iter().map(|_| TempFile::new()).collect();
    let [mut processors, mut exporters, mut pipelines] = [const { String::new() }; 3];
    for (number, (name, options)) in samplers.iter().enumerate() {
        processors += &format!("{name}/{number}: {{ {options} }}, ");
        let path = files[number].0.display();
        exporters += &format!("file/{number}: {{ path: '{path}' }}, ");
        let chain = match *name {
            "policysampling" => format!("groupbytrace, {name}/{number}"),
            name => format!("{name}/{number}"),
        };
        pipelines += &format!(
            "traces/{number}: {{ receivers: [proxy], processors: [{chain}], exporters: [file/{number}] }}, "
        );
    }
    let yaml = format!(
        "receivers: {{ proxy: }}\nprocessors: {{ {processors} groupbytrace: {{ wait_duration: 1s }} }}\n\
         exporters: {{ {exporters} }}\nservice: {{ {NO_METRICS}, pipelines: {{ {pipelines} }} }}"
    );
    (within_a_proxy_by(&yaml), files)
}

/// Sends spans, and ends a second after the decisions.
async fn decided(collector: Collector, spans: Vec<Span>) {
    let intake = collector.of_proxy();
    let taken = intake.take(Signal::Traces, request_of(spans)).await;
    taken.expect("there is room");
    tokio::time::sleep(Duration::from_secs(3)).await;
    collector.end().await;
}

/// What each policy keeps of the traces.
async fn kept(policies: &[&str]) -> Vec<BTreeSet<u8>> {
    let sampler = |policy: &&str| {
        let options = format!("decision_wait: 1s, policies: [ {policy} ]");
        ("tail_sampling", options)
    };
    let samplers: Vec<_> = policies.iter().map(sampler).collect();
    let (collector, files) = sampling(&samplers);
    decided(collector, spans()).await;
    files.iter().map(traces_of).collect()
}

fn but(traces: &[u8]) -> BTreeSet<u8> {
    ALL.filter(|trace| !traces.contains(trace)).collect()
}

fn only(traces: &[u8]) -> BTreeSet<u8> {
    traces.iter().copied().collect()
}

async fn keep(expected: &[(&str, BTreeSet<u8>)]) {
    let policies: Vec<_> = expected.iter().map(|(policy, _)| *policy).collect();
    for (kept, (policy, expected)) in kept(&policies).await.into_iter().zip(expected) {
        assert_eq!(&kept, expected, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn policies_on_spans_keep_what_their_options_say() {
    keep(&[
        ("{ name: p, type: always_sample }", but(&[])),
        (
            "{ name: p, type: latency, latency: { threshold_ms: 100 } }",
            only(&[SLOW, SLOWER]),
        ),
        (
            "{ name: p, type: latency, latency: { threshold_ms: 100, upper_threshold_ms: 500 } }",
            only(&[SLOW]),
        ),
        (
            "{ name: p, type: numeric_attribute, numeric_attribute: { key: n, min_value: 10, max_value: 100 } }",
            only(&[MANY]),
        ),
        (
            "{ name: p, type: numeric_attribute, numeric_attribute: { key: n, min_value: 1, max_value: 9 } }",
            only(&[FEW]),
        ),
        (
            "{ name: p, type: numeric_attribute, numeric_attribute: { key: n, min_value: 1, max_value: 9, invert_match: true } }",
            but(&[FEW]),
        ),
        (
            "{ name: p, type: status_code, status_code: { status_codes: [ERROR] } }",
            only(&[FAILED]),
        ),
        (
            "{ name: p, type: string_attribute, string_attribute: { key: s, values: [abc] } }",
            only(&[ABC]),
        ),
        (
            "{ name: p, type: string_attribute, string_attribute: { key: s, values: [abc], enabled_regex_matching: true } }",
            only(&[ABC, WITHIN]),
        ),
        (
            "{ name: p, type: string_attribute, string_attribute: { key: s, values: [abc], invert_match: true } }",
            but(&[ABC]),
        ),
        (
            "{ name: p, type: boolean_attribute, boolean_attribute: { key: b, value: true } }",
            only(&[TRUE]),
        ),
        (
            "{ name: p, type: boolean_attribute, boolean_attribute: { key: b, value: true, invert_match: true } }",
            but(&[TRUE]),
        ),
        (
            "{ name: p, type: trace_state, trace_state: { key: k, values: [v] } }",
            only(&[STATE_V]),
        ),
        (
            "{ name: p, type: span_count, span_count: { min_spans: 3 } }",
            only(&[THREE, FIVE]),
        ),
        (
            "{ name: p, type: span_count, span_count: { min_spans: 2, max_spans: 4 } }",
            only(&[THREE]),
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn conditions_keep_what_they_are_true_of() {
    let condition = |options: &str| {
        format!("{{ name: p, type: ottl_condition, ottl_condition: {{ {options} }} }}")
    };
    // Most spans have no text to measure.
    let fails = "span: ['Len(attributes[\"s\"]) == 3', 'name == \"special\"']";
    let [special, boom, propagate, ignore] = [
        "span: ['name == \"special\"']".to_owned(),
        "spanevent: ['name == \"boom\"']".to_owned(),
        fails.to_owned(),
        format!("error_mode: ignore, {fails}"),
    ]
    .map(|options| condition(&options));
    keep(&[
        (&special, only(&[SPECIAL])),
        (&boom, only(&[BOOM])),
        (&propagate, only(&[ABC])),
        (&ignore, only(&[ABC, SPECIAL])),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn policies_of_policies_keep_what_those_say() {
    let slow = "{ name: slow, type: latency, latency: { threshold_ms: 100 } }";
    let less =
        "{ name: less, type: latency, latency: { threshold_ms: 1, upper_threshold_ms: 500 } }";
    let all = "{ name: all, type: always_sample }";
    let not = format!("{{ name: p, type: not, not: {{ not_sub_policy: {slow} }} }}");
    let and = format!("{{ name: p, type: and, and: {{ and_sub_policy: [{slow}, {less}] }} }}");
    let drop =
        format!("{{ name: p, type: drop, drop: {{ drop_sub_policy: [{slow}, {less}] }} }}, {all}");
    // The slow ones come first and have one span each of eight a second, which is but one of them;
    // others have four.
    let composite = |options: &str| {
        format!(
            "{{ name: p, type: composite, composite: {{ max_total_spans_per_second: 8, {options}, composite_sub_policy: [{slow}, {all}] }} }}"
        )
    };
    let shares = composite(
        "policy_order: [slow, all], rate_allocation: [ { policy: slow, percent: 13 }, { policy: all, percent: 50 } ]",
    );
    let equal = composite("policy_order: [slow, all]");
    keep(&[
        (&not, but(&[SLOW, SLOWER])),
        (&and, only(&[SLOW])),
        (&drop, but(&[SLOW])),
        (&shares, only(&[PLAIN, SLOW, FAILED, FINE, FEW])),
        (&equal, only(&[PLAIN, SLOW, SLOWER, FAILED, FINE, FEW])),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn rates_are_those_of_the_settings() {
    let rate = |options: &str| {
        format!("{{ name: p, type: rate_limiting, rate_limiting: {{ {options} }} }}")
    };
    let bytes = |options: &str| {
        format!("{{ name: p, type: bytes_limiting, bytes_limiting: {{ {options} }} }}")
    };
    let policies = [
        rate("spans_per_second: 2"),
        rate("spans_per_second: 2, burst_capacity: 7"),
        bytes("bytes_per_second: 100"),
        bytes("bytes_per_second: 200"),
        bytes("bytes_per_second: 100, burst_capacity: 400"),
    ];
    let policies: Vec<_> = policies.iter().map(String::as_str).collect();
    let kept = kept(&policies).await;
    assert_eq!(kept[0], only(&[1, 2, 3, 4]), "twice as many at once");
    assert_eq!(kept[1], only(&[1, 2, 3, 4, 5, 6, 7]));
    let counts: Vec<_> = kept.iter().map(BTreeSet::len).collect();
    assert!(0 < counts[2] && counts[2] < counts[3], "{counts:?}");
    assert_eq!(counts[3], counts[4]);
}

/// FNV-1a of 64 bits.
fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[tokio::test(start_paused = true)]
async fn shares_are_those_of_the_hashes() {
    let share = |salt: &str, half: u64| -> BTreeSet<u8> {
        let hash = |trace: &u8| fnv1a(salt.bytes().chain([*trace; 16]));
        ALL.filter(|trace| hash(trace) <= half).collect()
    };
    let policy = |options: &str| {
        format!("{{ name: p, type: probabilistic, probabilistic: {{ {options} }} }}")
    };
    let [half, salted, quarter] = [
        "sampling_percentage: 50",
        "sampling_percentage: 50, hash_salt: other",
        "sampling_percentage: 25",
    ]
    .map(policy);
    let expected = [
        share("default-hash-seed", u64::MAX / 2),
        share("other", u64::MAX / 2),
        share("default-hash-seed", u64::MAX / 4),
    ];
    assert_ne!(expected[0], expected[1]);
    assert_ne!(expected[0], expected[2]);
    let [a, b, c] = expected;
    keep(&[(&half, a), (&salted, b), (&quarter, c)]).await;
}
