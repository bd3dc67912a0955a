//! Options of `probabilistic_sampler`, from a file of settings to a file of records.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use serde_json::Value as Json;

use super::super::within_a_proxy_by;
use super::processors::{attribute, resource, span, text};
use super::*;

/// A collector with a sampler of traces and one of logs before files.
fn sampling(options: &str) -> (Collector, [TempFile; 2]) {
    let files = [TempFile::new(), TempFile::new()];
    let [spans, logs] = files.each_ref().map(|file| file.0.display());
    let collector = within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ probabilistic_sampler: {{ {options} }} }}\n\
         exporters: {{ file/spans: {{ path: '{spans}' }}, file/logs: {{ path: '{logs}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [probabilistic_sampler], exporters: [file/spans] }}, \
         logs: {{ receivers: [proxy], processors: [probabilistic_sampler], exporters: [file/logs] }} }} }}"
    ));
    (collector, files)
}

/// The spans that are kept of a hundred, as their numbers and what their tracestates say.
async fn sampled(options: &str, state: &str) -> BTreeMap<u8, String> {
    let (collector, [spans, _]) = sampling(options);
    let numbers = 0..100_u8;
    let all = numbers.map(|number| Span {
        trace_id: [&[number; 9][..], &[number.wrapping_mul(97); 7]].concat(),
        name: number.to_string(),
        trace_state: state.into(),
        ..span("", 1, vec![])
    });
    let request = ExportTraceServiceRequest {
        resource_spans: vec![resource(&[], ("", ""), all.collect())],
    };
    let body = request.encode_to_vec().into();
    let outcome = collector.of_proxy().take(Signal::Traces, body).await;
    outcome.expect("they are taken");
    collector.end().await;
    let kept = spans.spans().into_iter().map(|span| {
        let name = span["name"].as_str().expect("a name");
        let state = span["traceState"].as_str().unwrap_or_default();
        (name.parse().expect("a number"), state.to_owned())
    });
    kept.collect()
}

#[tokio::test(start_paused = true)]
async fn a_share_of_spans_is_kept_as_the_settings_say() {
    let seed = "mode: hash_seed, sampling_percentage: 50";
    let half = sampled(seed, "").await;
    assert!((25..75).contains(&half.len()), "{}", half.len());
    let other = sampled(&format!("{seed}, hash_seed: 22"), "").await;
    assert!(!half.keys().eq(other.keys()));
    let few = sampled("mode: hash_seed, sampling_percentage: 10", "").await;
    assert!(few.len() < half.len() && few.keys().all(|kept| half.contains_key(kept)));
    // By the identifiers alone others are kept.
    let third = "mode: equalizing, sampling_percentage: 33";
    let equal = sampled(third, "").await;
    assert!(
        equal.values().all(|state| state == "ot=th:ab85"),
        "{equal:?}"
    );
    let coarse = sampled(&format!("{third}, sampling_precision: 2"), "").await;
    assert!(
        coarse.values().all(|state| state == "ot=th:ac"),
        "{coarse:?}"
    );
    // A state that makes no sense.
    let closed = sampled(seed, "ot=th:x").await;
    let open = sampled(&format!("{seed}, fail_closed: false"), "ot=th:x").await;
    assert_eq!((closed.len(), open.len()), (0, 100));
}

/// The numbers of the log records that are kept of a hundred, all of one trace.
async fn logged(options: &str) -> Vec<u8> {
    let (collector, [_, logs]) = sampling(options);
    let records = (0..100_u8).map(|number| LogRecord {
        trace_id: vec![7; 16],
        severity_number: number.into(),
        attributes: vec![
            attribute("key", text(&number.to_string())),
            attribute(
                "priority",
                any_value::Value::IntValue(i64::from(number) % 2 * 100),
            ),
        ],
        ..LogRecord::default()
    });
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: records.collect(),
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let body = request.encode_to_vec().into();
    let outcome = collector.of_proxy().take(Signal::Logs, body).await;
    outcome.expect("they are taken");
    collector.end().await;
    let lines = std::fs::read_to_string(&logs.0).unwrap_or_default();
    let mut kept = Vec::new();
    for line in lines.lines() {
        let line: Json = serde_json::from_str(line).expect("JSON");
        let records = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array();
        for record in records.into_iter().flatten() {
            kept.push(record["severityNumber"].as_u64().unwrap_or_default() as u8);
        }
    }
    kept
}

#[tokio::test(start_paused = true)]
async fn a_share_of_log_records_is_kept_as_the_settings_say() {
    let half = "sampling_percentage: 50";
    // All have the same trace.
    let whole = logged(half).await.len();
    assert!(whole == 0 || whole == 100, "{whole}");
    let by_key = format!("{half}, attribute_source: record, from_attribute: key");
    let kept = logged(&by_key).await;
    assert!((25..75).contains(&kept.len()), "{kept:?}");
    let odd: Vec<_> = (0..100).filter(|number| number % 2 == 1).collect();
    let priority = "sampling_percentage: 0, sampling_priority: priority";
    assert_eq!(logged(priority).await, odd);
}
