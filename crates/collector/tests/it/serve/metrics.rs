//! The page of metrics, held against that of a real Collector.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What a Collector's pages had: see its head.
const RECORDED: &str = include_str!("metrics/collector-0.160.0.tsv");

/// Metrics of the Collector that there are none of here, and why.
const LACKING: [(&str, &str); 7] = [
    (
        "otelcol_process_runtime_total_alloc_bytes",
        "no allocator counts what it gave out in all",
    ),
    ("promhttp_metric_handler_errors", "of Go's library"),
    (
        "otelcol_processor_groupbytrace_event_latency",
        "there is no queue of events",
    ),
    (
        "otelcol_processor_groupbytrace_num_events_in_queue",
        "there is no queue of events",
    ),
    (
        "otelcol_processor_groupbytrace_incomplete_releases",
        "no trace is released in parts",
    ),
    (
        "otelcol_processor_tail_sampling_sampling_policy_execution_time_sum",
        "single policies are not timed: all are evaluated at once",
    ),
    (
        "otelcol_exporter_enqueue_size",
        "requests are not measured before they wait",
    ),
];

/// A metric of a page: its type, and the labels that its points have.
type Page = BTreeMap<String, (String, BTreeSet<String>)>;

fn recorded(page: &str) -> Page {
    let rows = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split('\t').collect::<Vec<_>>());
    let mut metrics = Page::new();
    for row in rows.filter(|row| row[0] == page) {
        let labels = row[3].split(',').filter(|label| !label.is_empty());
        let labels = labels.map(str::to_owned).collect();
        metrics.insert(row[1].to_owned(), (row[2].to_owned(), labels));
    }
    metrics
}

fn parsed(text: &str) -> Page {
    let mut metrics = Page::new();
    let mut last = String::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, kind) = about.split_once(' ').expect("a type");
            last = name.to_owned();
            metrics.insert(last.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, rest)) = line.split_once('{')
            && name.starts_with(&last)
        {
            let labels = rest.split("\",").filter_map(|part| part.split_once("=\""));
            let labels = labels.map(|(label, _)| label.to_owned());
            let own = &mut metrics.get_mut(&last).expect("a type before").1;
            own.extend(labels.filter(|label| label != "le"));
        }
    }
    metrics
}

/// The page of a collector that was sent what the recorded one was.
async fn page(telemetry: &str) -> String {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    drop(dead);
    let collector = start(&format!(
        "receivers:
  otlp: {{ protocols: {{ grpc: {ANY}, http: {ANY} }} }}
  otlp/second: {{ protocols: {{ http: {ANY} }} }}
processors:
  memory_limiter: {{ check_interval: 1s, limit_mib: 100000 }}
  batch: {{ timeout: 50ms, send_batch_size: 3 }}
  tail_sampling: {{ decision_wait: 1s, policies: [ {{ name: all, type: always_sample }} ] }}
  groupbytrace: {{ wait_duration: 1s }}
exporters:
  nop:
  debug:
  otlp_grpc/dead: {{ endpoint: '{target}', tls: {{ insecure: true }}, retry_on_failure: {{ enabled: false }} }}
  otlp_http/sink: {{ endpoint: 'http://{target}' }}
service:
  telemetry: {{ metrics: {{ {telemetry} readers: [ {{ pull: {{ exporter: {{ prometheus: {{ host: 127.0.0.1, port: 0, {SUFFIXES} }} }} }} }} ] }} }}
  pipelines:
    traces: {{ receivers: [otlp, otlp/second], processors: [memory_limiter, tail_sampling, batch], exporters: [nop, debug, otlp_grpc/dead] }}
    traces/group: {{ receivers: [otlp], processors: [groupbytrace], exporters: [nop] }}
    metrics: {{ receivers: [otlp], processors: [memory_limiter, batch], exporters: [nop, debug] }}
    logs: {{ receivers: [otlp], exporters: [debug, otlp_http/sink] }}",
        SUFFIXES = if telemetry.is_empty() { "without_units: false, without_type_suffix: false" } else { "" },
    ));
    let body = request(0, 5);
    for name in ["otlp http", "otlp/second http"] {
        let at = address(&collector, name);
        assert_eq!(post(&at, "/v1/traces", &body).await, 200);
    }
    let at = address(&collector, "otlp http");
    // A gauge with one point, and a log record without fields.
    assert_eq!(
        post(
            &at,
            "/v1/metrics",
            b"\x0a\x08\x12\x06\x12\x04\x2a\x02\x0a\x00"
        )
        .await,
        200
    );
    assert_eq!(
        post(&at, "/v1/logs", b"\x0a\x04\x12\x02\x12\x00").await,
        200
    );
    until("the decisions", || {
        let senders = &collector.view.senders;
        let dead = senders.iter().find(|(id, ..)| id == "otlp_grpc/dead");
        dead.is_some_and(|(.., sender)| sender.counts().failed.load(Relaxed) == 20)
    })
    .await;
    metrics(&collector).await
}

const ANY: &str = "{ endpoint: '127.0.0.1:0' }";

/// The status of a request in protobuf.
async fn post(at: &str, path: &str, body: &[u8]) -> u16 {
    post_as(at, path, "application/x-protobuf", body).await
}

/// What of the recorded page is not on ours: names, types and labels.
fn missing(recorded: &Page, own: &Page, lacking: &[&str]) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, (kind, labels)) in recorded {
        let is_lacking = lacking.iter().any(|lacking| name.starts_with(lacking));
        match own.get(name) {
            Some(_) if is_lacking => missing.push(format!("{name}: is there")),
            None if is_lacking => {}
            Some((own_kind, own_labels)) if own_kind == kind && own_labels.is_superset(labels) => {}
            own => missing.push(format!("{name}: {kind} {labels:?}, and not {own:?}")),
        }
    }
    missing
}

#[tokio::test]
async fn dashboards_made_for_the_collector_find_their_metrics() {
    let lacking = LACKING.map(|(name, _)| name);
    for (name, telemetry) in [
        ("default", "level: normal,"),
        ("suffix", ""),
        ("basic", "level: basic,"),
    ] {
        let text = page(telemetry).await;
        let missing = missing(&recorded(name), &parsed(&text), &lacking);
        assert!(missing.is_empty(), "{name}: {missing:#?}\n{text}");
    }
}

#[tokio::test]
async fn what_is_only_there_at_higher_levels_is_not_there_at_lower_ones() {
    let (basic, own) = (recorded("basic"), parsed(&page("level: basic,").await));
    let more = recorded("default");
    let batch = more.keys().filter(|name| !basic.contains_key(*name));
    let batch: Vec<_> = batch.collect();
    assert_eq!(batch.len(), 4, "{batch:?}");
    assert!(batch.into_iter().all(|name| !own.contains_key(name)));
}

#[tokio::test]
async fn each_exporter_counts_its_own_copy_and_each_transport_what_came_in() {
    let text = page("level: normal,").await;
    for line in [
        "otelcol_receiver_accepted_spans{receiver=\"otlp\",transport=\"http\"} 10",
        "otelcol_receiver_accepted_spans{receiver=\"otlp/second\",transport=\"http\"} 10",
        "otelcol_receiver_refused_spans{receiver=\"otlp\",transport=\"http\"} 0",
        "otelcol_exporter_sent_spans{exporter=\"debug\"} 20",
        "otelcol_processor_incoming_items{otel_signal=\"traces\",processor=\"memory_limiter\"} 20",
        "otelcol_processor_outgoing_items{otel_signal=\"traces\",processor=\"batch\"} 20",
        "otelcol_processor_memory_limiter_accepted_spans{processor=\"memory_limiter\"} 20",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    let dead = { text.lines() }.find(|line| {
        line.starts_with("otelcol_exporter_send_failed_spans{exporter=\"otlp_grpc/dead\"")
    });
    assert!(dead.is_some_and(|line| line.ends_with(" 20")), "{dead:?}");
}

#[tokio::test]
async fn a_filter_counts_what_it_dropped_under_the_name_of_its_signal() {
    let collector = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {ANY} }} }} }}
processors: {{ filter: {{ trace_conditions: ['span.name != \"\"'], metric_conditions: ['metric.name == \"\"'], log_conditions: ['log.severity_number == 0'] }} }}
exporters: {{ nop: }}
service:
  telemetry: {{ metrics: {{ readers: [ {{ pull: {{ exporter: {{ prometheus: {{ host: 127.0.0.1, port: 0 }} }} }} }} ] }} }}
  pipelines:
    traces: {{ receivers: [otlp], processors: [filter], exporters: [nop] }}
    metrics: {{ receivers: [otlp], processors: [filter], exporters: [nop] }}
    logs: {{ receivers: [otlp], processors: [filter], exporters: [nop] }}"
    ));
    let at = address(&collector, "otlp http");
    let bodies: [(&str, &[u8]); 3] = [
        ("traces", &request(0, 5)),
        ("metrics", b"\x0a\x08\x12\x06\x12\x04\x2a\x02\x0a\x00"),
        ("logs", b"\x0a\x08\x12\x06\x12\x00\x12\x00\x12\x00"),
    ];
    for (signal, body) in bodies {
        assert_eq!(post(&at, &format!("/v1/{signal}"), body).await, 200);
    }
    let text = metrics(&collector).await;
    let mut found: Vec<_> = { text.lines() }
        .filter(|line| line.starts_with("otelcol_processor_filter_"))
        .map(|line| line.split_once('{').expect("labels"))
        .map(|(name, rest)| {
            let signal = rest.split("pipeline=\"").nth(1).expect("a pipeline");
            let signal = signal.split('"').next().expect("a signal");
            format!(
                "{name} {signal} {}",
                rest.rsplit(' ').next().expect("a value")
            )
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "otelcol_processor_filter_datapoints_filtered metrics 1",
            "otelcol_processor_filter_logs_filtered logs 3",
            "otelcol_processor_filter_spans_filtered traces 10",
        ],
        "{text}"
    );
}
