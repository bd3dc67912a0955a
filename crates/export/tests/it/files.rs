//! Exporters into files and into memory, and to Zipkin.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint, metric::Data};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use otlp::Signal;
use prost::Message;
use serde_json::{Value, json};
use spangate_export::Exporters;
use support::*;
use telemetry::settings::{Exporter, OtlpFile, Target, Zipkin};

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn files(folder: &Path, pattern: &str) -> OtlpFile {
    OtlpFile {
        file_pattern: folder.join(pattern).to_str().unwrap().to_owned(),
        alias_pattern: Some(folder.join("newest").to_str().unwrap().to_owned()),
        file_bytes_max: 2000,
        files_max: 3,
    }
}

/// Exports spans, a request each.
fn export(settings: &OtlpFile, names: std::ops::Range<u32>) {
    let exporter = Exporter::OtlpFile(settings.clone());
    let exporters = start(pipeline(Signal::Traces, exporter, processor(1)));
    let queue = &exporters.pipelines()[0].queue;
    let count = names.len() as u64;
    for name in names {
        offer_spans(queue, &[&name.to_string()]);
    }
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [count, 0, 0, 0, 0]);
    exporters.shutdown(DEADLINE);
}

/// The names of the spans of a file.
fn names(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.len() <= 2000 && text.ends_with('\n'));
    let lines = text.lines().map(|line| {
        let request: ExportTraceServiceRequest = serde_json::from_str(line).unwrap();
        let spans = &request.resource_spans[0].scope_spans[0].spans;
        let name = spans[0].name.parse().unwrap();
        assert_eq!(*spans, [span(&spans[0].name)]);
        name
    });
    lines.collect()
}

#[test]
fn files_follow_each_other() {
    let folder = folder("rotation");
    let settings = files(&folder, "sub/spans-%N.jsonl");
    export(&settings, 0..1);
    let first = folder.join("sub/spans-0.jsonl");
    assert_eq!(names(&first), [0]);
    let fit = 2000 / fs::metadata(&first).unwrap().len() as u32;
    // The file goes on where it was.
    export(&settings, 1..fit + 1);
    assert_eq!(names(&first), (0..fit).collect::<Vec<_>>());
    assert_eq!(names(&folder.join("sub/spans-1.jsonl")), [fit]);
    assert_eq!(names(&folder.join("newest")), [fit]);
}

#[test]
fn the_oldest_file_is_written_over() {
    let folder = folder("wrapped");
    let settings = files(&folder, "spans");
    export(&settings, 10..30);
    let all: Vec<_> = ["spans", "spans.1", "spans.2"]
        .iter()
        .flat_map(|name| names(&folder.join(name)))
        .collect();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    assert!(
        all.len() < 20 && all.contains(&29) && !all.contains(&10),
        "{all:?}"
    );
    let newest = names(&folder.join("newest"));
    assert_eq!(newest.last(), Some(&29));
}

#[test]
fn a_file_that_cannot_be() {
    let settings = OtlpFile {
        file_pattern: "/dev/null/x".to_owned(),
        ..files(Path::new("/"), "")
    };
    let plan = |exporter| plan(pipeline(Signal::Traces, exporter, processor(1)));
    let error = Exporters::start(plan(Exporter::OtlpFile(settings))).unwrap_err();
    assert!(
        error.starts_with("exporter of traces otlp_file /dev/null/x: "),
        "{error}"
    );
    // Full from the beginning.
    let target = Target::File("/dev/full".to_owned());
    let exporters = Exporters::start(plan(Exporter::Ostream(target))).unwrap();
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [0, 1, 0, 0, 0]);
    assert!(
        exporters.pipelines()[0]
            .health
            .last_error()
            .contains("No space")
    );
}

/// A span that has everything.
fn full_span() -> Span {
    Span {
        parent_span_id: vec![9; 8],
        kind: 3,
        attributes: vec![
            text("url.path", "/a\nb"),
            text("network.peer.address", "10.0.0.1"),
        ],
        events: vec![
            Event {
                time_unix_nano: 1_700_000_000_000_500_000,
                name: "retry".to_owned(),
                attributes: vec![text("why", "x")],
                ..Event::default()
            },
            Event {
                name: "plain".to_owned(),
                ..Event::default()
            },
        ],
        links: vec![Link {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            ..Link::default()
        }],
        status: Some(Status {
            code: 2,
            message: "bad".to_owned(),
        }),
        dropped_events_count: 3,
        ..span("full")
    }
}

/// What `ostream` writes of some records.
fn written<M: Message>(name: &str, signal: Signal, records: &[M]) -> String {
    let path = folder(name).join("out");
    fs::write(&path, "old").unwrap();
    let target = Target::File(path.to_str().unwrap().to_owned());
    let exporters = start(pipeline(signal, Exporter::Ostream(target), processor(10)));
    offer(&exporters.pipelines()[0].queue, records);
    exporters.shutdown(DEADLINE);
    fs::read_to_string(path).unwrap()
}

#[test]
fn text_for_people() {
    let head = format!(
        "resource service.name=\"shop\"\nscope \"scope\" version \"{}\"\n",
        env!("CARGO_PKG_VERSION")
    );
    let expected = r#"span "full" trace 0102030405060708090a0b0c0d0e0f10 id a1a2a3a4a5a6a7a8 parent 0909090909090909 kind client start 2023-11-14T22:13:20Z duration 1234.567 us
  status error "bad"
  url.path="/a\nb"
  network.peer.address="10.0.0.1"
  event "retry" at 2023-11-14T22:13:20.0005Z why="x"
  event "plain" at 1970-01-01T00:00:00Z
  link trace 01010101010101010101010101010101 id 0202020202020202
"#;
    assert_eq!(
        written("text", Signal::Traces, &[full_span()]),
        format!("{head}{expected}")
    );
    let record = LogRecord {
        severity_number: 13,
        body: text("", "hello\n").value,
        attributes: vec![text("k", "v")],
        ..LogRecord::default()
    };
    let expected = "log warn at 1970-01-01T00:00:00Z \"hello\\n\"\n  k=\"v\"\n";
    assert_eq!(
        written("log", Signal::Logs, &[record]),
        format!("{head}{expected}")
    );
    let point = NumberDataPoint {
        value: Some(Number::AsInt(-5)),
        attributes: vec![text("k", "v")],
        ..NumberDataPoint::default()
    };
    let metric = Metric {
        name: "m".to_owned(),
        unit: "s".to_owned(),
        data: Some(Data::Gauge(Gauge {
            data_points: vec![point],
        })),
        ..Metric::default()
    };
    let expected = "metric \"m\" unit \"s\" \"\"\n  gauge -5 k=\"v\"\n";
    assert_eq!(
        written("metric", Signal::Metrics, &[metric]),
        format!("{head}{expected}")
    );
}

#[test]
fn memory_keeps_the_newest() {
    let exporter = Exporter::Memory { records_max: 3 };
    let exporters = start(pipeline(Signal::Traces, exporter, processor(2)));
    let pipeline = &exporters.pipelines()[0];
    offer_spans(&pipeline.queue, &["a", "b", "c", "d", "e"]);
    assert!(exporters.flush(DEADLINE));
    let memory = pipeline.memory.as_ref().unwrap();
    let names = memory
        .take()
        .into_iter()
        .map(|record| Span::decode(&record[..]).unwrap().name);
    assert_eq!(names.collect::<Vec<_>>(), ["c", "d", "e"]);
    assert!(memory.take().is_empty());
    assert_eq!(counts(&pipeline.queue.account), [5, 0, 0, 0, 0]);
}

#[test]
fn zipkin() {
    let receiver = Receiver::start(vec![
        (202, Vec::new(), Vec::new()),
        (400, Vec::new(), Vec::new()),
    ]);
    let settings = Zipkin {
        endpoint: format!("http://{}/api/v2/spans", receiver.address),
        service_name: "not asked for".to_owned(),
        ipv4: Some([192, 0, 2, 1].into()),
        ipv6: None,
    };
    let exporters = start(pipeline(
        Signal::Traces,
        Exporter::Zipkin(settings),
        processor(10),
    ));
    let queue = &exporters.pipelines()[0].queue;
    offer(queue, &[span("plain"), full_span()]);
    assert!(exporters.flush(DEADLINE));
    let got = receiver.next();
    assert_eq!(got.path, "/api/v2/spans");
    assert_eq!(got.headers["content-type"], "application/json");
    let body: Value = serde_json::from_slice(&got.body).unwrap();
    let local = json!({ "serviceName": "shop", "ipv4": "192.0.2.1" });
    let version = env!("CARGO_PKG_VERSION");
    let expected = json!([
        {
            "traceId": "0102030405060708090a0b0c0d0e0f10", "id": "a1a2a3a4a5a6a7a8", "name": "plain", "kind": "SERVER",
            "timestamp": 1_700_000_000_000_000u64, "duration": 1234, "localEndpoint": local,
            "tags": { "url.path": "/a\nb", "otel.scope.name": "scope", "otel.scope.version": version },
        },
        {
            "traceId": "0102030405060708090a0b0c0d0e0f10", "id": "a1a2a3a4a5a6a7a8", "parentId": "0909090909090909",
            "name": "full", "kind": "CLIENT", "timestamp": 1_700_000_000_000_000u64, "duration": 1234,
            "localEndpoint": local, "remoteEndpoint": { "serviceName": "10.0.0.1", "ipv4": "10.0.0.1" },
            "annotations": [
                { "timestamp": 1_700_000_000_000_500u64, "value": "\"retry\": {\"why\":\"x\"}" },
                { "timestamp": 0, "value": "plain" },
            ],
            "tags": {
                "url.path": "/a\nb", "network.peer.address": "10.0.0.1", "otel.scope.name": "scope", "otel.scope.version": version,
                "otel.dropped_events_count": "3", "otel.status_code": "ERROR", "error": "bad",
            },
        },
    ]);
    assert_eq!(body, expected);
    offer(queue, &[span("refused")]);
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [2, 1, 0, 0, 0]);
}
