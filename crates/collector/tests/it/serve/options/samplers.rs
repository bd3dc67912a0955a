//! Options of what holds spans: samplers, `groupbytrace`, `batch` and `memory_limiter`, in virtual
//! time.

use std::collections::BTreeSet;

use spangate_collector::run::process::memory::memory_bytes;

use super::super::{within_a_proxy, within_a_proxy_by};
use super::policies::{request_of, span, traces_of, with_status};
use super::*;

const WITH_ERROR: i32 = 2;
const ALWAYS: &str = "policies: [ { name: a, type: always_sample } ]";

/// A collector with a chain of processors before a file.
pub(super) fn into_file(processors: &str, names: &str) -> (Collector, TempFile) {
    let file = TempFile::new();
    let collector = within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ {processors} }}\nexporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [{names}], exporters: [file] }} }} }}",
        file.0.display()
    ));
    (collector, file)
}

fn sampling(options: &str) -> (Collector, TempFile) {
    into_file(&format!("tail_sampling: {{ {options} }}"), "tail_sampling")
}

async fn take(collector: &Collector, spans: Vec<Span>) -> Result<(), Refusal> {
    let intake = collector.of_proxy();
    intake.take(Signal::Traces, request_of(spans)).await
}

async fn taken(collector: &Collector, spans: Vec<Span>) {
    take(collector, spans).await.expect("there is room");
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Traces of one span each.
fn plain(traces: std::ops::Range<u8>) -> Vec<Span> {
    traces.map(|trace| span(trace, 10)).collect()
}

/// The traces that a collector has kept at its end.
async fn kept(collector: Collector, file: &TempFile) -> BTreeSet<u8> {
    collector.end().await;
    traces_of(file)
}

#[tokio::test(start_paused = true)]
async fn decisions_come_when_the_settings_say() {
    // The end of a proxy's roots would shorten the wait.
    let (collector, _file) = sampling(&format!("decision_wait: 3s, {ALWAYS}"));
    let spans = plain(0..5).into_iter();
    let parent_span_id = vec![9; 8];
    let spans = spans.map(|span| Span {
        parent_span_id: parent_span_id.clone(),
        ..span
    });
    taken(&collector, spans.collect()).await;
    sleep_ms(2900).await;
    assert_eq!(traces(&collector).held(), 5);
    sleep_ms(300).await;
    assert_eq!(traces(&collector).exported, 5);
    // Each batch of spans is decided at once.
    let (collector, _file) = sampling(&format!("sampling_strategy: span-ingest, {ALWAYS}"));
    taken(&collector, plain(0..5)).await;
    sleep_ms(300).await;
    assert_eq!(traces(&collector).exported, 5);
}

#[tokio::test(start_paused = true)]
async fn decisions_are_remembered_as_long_as_the_caches_say() {
    let wait = format!("decision_wait: 1s, num_traces: 10, {ERRORS}");
    let cases = [
        ("", true, false),
        ("decision_cache: { sampled_cache_size: 1000 },", true, true),
        ("", false, true),
        (
            "decision_cache: { non_sampled_cache_size: 1000 },",
            false,
            false,
        ),
    ];
    for (cache, is_kept, late_is_kept) in cases {
        let (collector, file) = sampling(&format!("{cache} {wait}"));
        let status = |fails: bool| if fails { WITH_ERROR } else { 0 };
        // A trace is decided, then others of the same kind, and then the first one's late span says
        // otherwise.
        for first in (1..200).step_by(10) {
            let traces = first..first + 10;
            let spans = traces.map(|trace| with_status(trace, status(is_kept)));
            taken(&collector, spans.collect()).await;
            sleep_ms(1500).await;
        }
        let before = traces(&collector).exported;
        taken(&collector, vec![with_status(1, status(!is_kept))]).await;
        sleep_ms(1500).await;
        let after = traces(&collector).exported;
        assert_eq!(after > before, late_is_kept, "{cache} {is_kept}");
        kept(collector, &file).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_policy_that_keeps_ends_it_where_that_is_asked_for() {
    let policies = "policies: [ { name: e, type: status_code, status_code: { status_codes: [ERROR] } }, \
                    { name: r, type: rate_limiting, rate_limiting: { spans_per_second: 1, burst_capacity: 1 } } ]";
    for (first, expected) in [("false", vec![1]), ("true", vec![1, 2])] {
        let first = format!("sample_on_first_match: {first}");
        let (collector, file) = sampling(&format!("decision_wait: 1s, {first}, {policies}"));
        let at_once = format!(
            "groupbytrace: {{ wait_duration: 1s }}, policysampling: {{ {first}, {policies} }}"
        );
        let (grouping, grouped) = into_file(&at_once, "groupbytrace, policysampling");
        for (collector, file) in [(collector, file), (grouping, grouped)] {
            taken(&collector, vec![with_status(1, WITH_ERROR), span(2, 10)]).await;
            sleep_ms(1500).await;
            let kept = kept(collector, &file).await;
            assert_eq!(kept, expected.iter().copied().collect(), "{first}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_pending_at_the_end_is_dropped_where_that_is_asked_for() {
    for (options, left) in [("", 5), ("drop_pending_traces_on_shutdown: true,", 0)] {
        let (collector, file) = sampling(&format!("{options} {ALWAYS}"));
        taken(&collector, plain(0..5)).await;
        assert_eq!(kept(collector, &file).await.len(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn large_traces_are_dropped_at_once() {
    let (collector, file) = sampling(&format!("maximum_trace_size_bytes: 300, {ALWAYS}"));
    let mut spans = plain(1..3);
    spans.extend((0..20).map(|_| span(3, 10)));
    taken(&collector, spans).await;
    assert_eq!(traces(&collector).dropped, 20);
    assert_eq!(kept(collector, &file).await, BTreeSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn shards_share_what_is_allowed() {
    let composite = "policies: [ { name: c, type: composite, composite: { max_total_spans_per_second: 8, \
                     policy_order: [a], composite_sub_policy: [ { name: a, type: always_sample } ] } } ]";
    for (shards, left) in [(1, 1), (8, 0)] {
        let (collector, file) = sampling(&format!(
            "decision_wait: 1s, num_shards: {shards}, {composite}"
        ));
        taken(&collector, vec![span(1, 10), span(1, 10), span(1, 10)]).await;
        assert_eq!(kept(collector, &file).await.len(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn senders_wait_where_num_traces_is_reached_if_that_is_asked_for() {
    for (blocks, accepted) in [("false", 20), ("true", 10)] {
        let options = format!("num_traces: 10, block_on_overflow: {blocks}, {ALWAYS}");
        let (collector, _file) = sampling(&options);
        taken(&collector, plain(0..10)).await;
        let outcome = take(&collector, plain(10..20)).await;
        assert_eq!(outcome.is_ok(), accepted == 20, "{outcome:?}");
        assert_eq!(traces(&collector).accepted, accepted);
    }
}

#[tokio::test(start_paused = true)]
async fn groups_go_on_when_the_settings_say() {
    let group =
        |options: &str| into_file(&format!("groupbytrace: {{ {options} }}"), "groupbytrace");
    let (collector, _file) = group("wait_duration: 5s");
    taken(&collector, plain(0..5)).await;
    sleep_ms(4900).await;
    assert_eq!(traces(&collector).held(), 5);
    sleep_ms(300).await;
    assert_eq!(traces(&collector).exported, 5);
    // The oldest make room, in each part of the traces.
    for (options, early) in [
        ("num_traces: 40", 0..=0),
        ("num_traces: 10", 30..=30),
        ("num_traces: 40, num_workers: 20", 1..=30),
    ] {
        let (collector, _file) = group(&format!("wait_duration: 1h, {options}"));
        taken(&collector, plain(0..40)).await;
        sleep_ms(300).await;
        let exported = traces(&collector).exported;
        assert!(early.contains(&exported), "{options}: {exported}");
    }
    // Of these two one has no root.
    for (options, left) in [("", 2), (", discard_orphans: true", 1)] {
        let (collector, file) = group(&format!("wait_duration: 1s{options}"));
        let orphan = Span {
            parent_span_id: vec![9; 8],
            ..span(1, 10)
        };
        taken(&collector, vec![orphan, span(2, 10)]).await;
        sleep_ms(1500).await;
        assert_eq!(kept(collector, &file).await.len(), left, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn services_go_on_alone_where_that_is_asked_for() {
    let of_service = |name: &str, spans| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![KeyValue {
                key: "service.name".into(),
                value: Some(AnyValue {
                    value: Some(any_value::Value::StringValue(name.into())),
                }),
                ..KeyValue::default()
            }],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans,
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![
            of_service("a", vec![span(1, 10)]),
            of_service("b", vec![span(1, 10)]),
        ],
    };
    let request = Bytes::from(request.encode_to_vec());
    // There is room for one: the part of the first service makes room for that of the second one.
    for (strategy, early) in [("trace", 0), ("service", 1)] {
        let options = format!(
            "groupbytrace: {{ wait_duration: 1h, num_traces: 1, emit_strategy: {strategy} }}"
        );
        let (collector, _file) = into_file(&options, "groupbytrace");
        let intake = collector.of_proxy();
        let outcome = intake.take(Signal::Traces, request.clone()).await;
        outcome.expect("there is room");
        sleep_ms(300).await;
        assert_eq!(traces(&collector).exported, early, "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn batches_have_the_sizes_of_the_settings() {
    let (collector, file) = into_file(
        "batch: { timeout: 5s, send_batch_size: 4, send_batch_max_size: 6 }",
        "batch",
    );
    let lines = || {
        let text = std::fs::read_to_string(&file.0).unwrap_or_default();
        text.lines().count()
    };
    taken(&collector, plain(0..3)).await;
    sleep_ms(4900).await;
    assert_eq!(traces(&collector).held(), 3);
    sleep_ms(300).await;
    assert_eq!((traces(&collector).exported, lines()), (3, 1));
    taken(&collector, plain(0..4)).await;
    sleep_ms(300).await;
    assert_eq!((traces(&collector).exported, lines()), (7, 2));
    taken(&collector, plain(0..20)).await;
    collector.end().await;
    assert_eq!(lines(), 2 + 4, "20 are three of six, and two");
}

/// A collector behind a limiter, of whose memory 31 MiB are in use.
fn limited(options: &str) -> Collector {
    let config = load(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ memory_limiter: {{ {options} }} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [memory_limiter], exporters: [nop] }} }} }}"
    ));
    let setup = Setup {
        memory_used_bytes: || 31 << 20,
        ..setup()
    };
    let collector = Collector::start_in(&config, setup, &Host::default());
    collector.unwrap_or_else(|error| panic!("{}", error.0))
}

#[tokio::test(start_paused = true)]
async fn memory_is_limited_as_the_settings_say() {
    for (options, after_s) in [
        ("check_interval: 7s, limit_mib: 40", None),
        ("check_interval: 7s, limit_mib: 35", Some(7)),
        (
            "check_interval: 7s, limit_mib: 40, spike_limit_mib: 10",
            Some(7),
        ),
    ] {
        let collector = limited(options);
        sleep_ms(100).await;
        match (take(&collector, plain(0..5)).await, after_s) {
            (Ok(()), None) => {}
            (Err(Refusal::Busy(room)), Some(after_s)) => {
                assert_eq!(room.after, Duration::from_secs(after_s));
            }
            (other, _) => panic!("{options}: {other:?}"),
        }
    }
    let part = |percent: u64| memory_bytes() / 100 * percent;
    for (options, bytes_max) in [
        (
            "check_interval: 1s, limit_percentage: 50",
            part(50) - part(50) / 5,
        ),
        (
            "check_interval: 1s, limit_percentage: 50, spike_limit_percentage: 20",
            part(50) - part(20),
        ),
    ] {
        let collector = limited(options);
        assert_eq!(collector.view.budget.bytes_max(), bytes_max, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampler_waits_less_once_the_root_is_there() {
    let sampler = format!(
        "tail_sampling: {{ decision_wait: 30s, decision_wait_after_root_received: 5s, {ALWAYS} }}"
    );
    let collector = within_a_proxy(&sampler, "tail_sampling");
    taken(&collector, plain(0..5)).await;
    sleep_ms(4900).await;
    assert_eq!(traces(&collector).held(), 5);
    sleep_ms(300).await;
    assert_eq!(traces(&collector).held(), 0);
}
