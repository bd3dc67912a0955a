//! Pipelines that connectors join, of one signal and of several.

use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::*;

/// The lines of a file as JSON.
fn lines(file: &TempFile) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(&file.0).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

/// The counts of a file by metric.
fn counts(file: &TempFile) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for line in lines(file) {
        let metrics = &line["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        for metric in metrics.as_array().expect("metrics") {
            let name = metric["name"].as_str().expect("a name").to_owned();
            let points = metric["sum"]["dataPoints"].as_array().expect("points");
            let count = points.iter().map(|point| {
                let count = point["asInt"].as_str().expect("a count");
                count.parse::<u64>().expect("a number")
            });
            counts.push((name, count.sum()));
        }
    }
    counts
}

/// Both pipelines keep what they get until they are ended: the one that counts before the one that
/// gets the counts.
#[tokio::test]
async fn counts_of_spans_go_to_a_pipeline_of_metrics() {
    let (spans, counted) = (TempFile::new(), TempFile::new());
    let collector = collector(&format!(
        "processors: {{ batch: {{ timeout: 1h }} }}
connectors: {{ count: , forward: }}
exporters: {{ file/spans: {{ path: '{}' }}, file/counts: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    metrics: {{ receivers: [count], processors: [batch], exporters: [forward] }}
    metrics/out: {{ receivers: [forward], exporters: [file/counts] }}
    traces: {{ receivers: [otlp], processors: [batch], exporters: [file/spans, count] }}",
        spans.0.display(),
        counted.0.display()
    ));
    taken(&grpc(&collector), request(0, 10)).await;
    taken(&grpc(&collector), request(10, 5)).await;
    let [traces, metrics, _] = collector.end().await;
    assert_eq!((traces.accepted, traces.exported), (30, 30));
    assert_eq!((metrics.accepted, metrics.exported), (2, 2));
    assert_eq!(spans.spans().len(), 30);
    let resources = lines(&counted);
    assert_eq!(resources.len(), 1, "one batch");
    let resources = resources[0]["resourceMetrics"].as_array().expect("a list");
    let counts = resources.iter().map(|resource| {
        let metric = &resource["scopeMetrics"][0]["metrics"][0];
        let point = &metric["sum"]["dataPoints"][0];
        (metric["name"].clone(), point["asInt"].clone())
    });
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [
            ("trace.span.count".into(), "20".into()),
            ("trace.span.count".into(), "10".into())
        ]
    );
}

#[tokio::test]
async fn conditions_of_counts_read_client_metadata() {
    let counted = TempFile::new();
    let collector = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }} }}
connectors:
  count: {{ spans: {{ of.a: {{ conditions: ['otelcol.client.metadata[\"tenant\"][0] == \"a\"'] }} }} }}
exporters: {{ file: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    traces: {{ receivers: [otlp], exporters: [count] }}
    metrics: {{ receivers: [count], exporters: [file] }}",
        counted.0.display()
    ));
    for (tenant, traces) in [("a", 1), ("b", 2), ("a", 3)] {
        let client = grpc_with(&collector, &[("tenant", tenant)]);
        taken(&client, request(0, traces)).await;
    }
    let [traces, metrics, _] = collector.end().await;
    assert_eq!((traces.accepted, traces.exported), (12, 12));
    assert_eq!((metrics.accepted, metrics.exported), (2, 2));
    let of_a = |count| ("of.a".to_owned(), count);
    assert_eq!(counts(&counted), [of_a(2), of_a(6)]);
}

/// A pipeline of metrics without room holds up the senders of what is counted: nothing is taken that
/// is not counted.
#[tokio::test]
async fn senders_wait_while_counts_have_no_room() {
    let counted = TempFile::new();
    let collector = collector(&format!(
        "connectors: {{ count: }}
processors: {{ memory_limiter: {{ check_interval: 1ms, limit_mib: 1 }} }}
exporters: {{ file: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    traces: {{ receivers: [otlp], exporters: [count] }}
    metrics: {{ receivers: [count], processors: [memory_limiter], exporters: [file] }}",
        counted.0.display()
    ));
    let client = grpc(&collector);
    let deadline = Instant::now() + PATIENCE;
    while !matches!(send(&client, request(0, 1)).await, Outcome::Busy { .. }) {
        assert!(Instant::now() < deadline, "the limiter refuses");
    }
    let [traces, metrics, _] = collector.end().await;
    assert_eq!((traces.held(), metrics.held()), (0, 0));
    assert_eq!(traces.accepted, traces.exported);
    assert_eq!(metrics.accepted, metrics.exported);
    let all: u64 = counts(&counted).iter().map(|(_, count)| count).sum();
    assert_eq!(all, traces.exported, "each span that was taken is counted");
}

#[tokio::test]
async fn batches_go_to_pipelines_in_turn() {
    let files = [TempFile::new(), TempFile::new()];
    let collector = collector(&format!(
        "connectors: {{ round_robin: }}
exporters: {{ file/a: {{ path: '{}' }}, file/b: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    traces: {{ receivers: [otlp], exporters: [round_robin] }}
    traces/a: {{ receivers: [round_robin], exporters: [file/a] }}
    traces/b: {{ receivers: [round_robin], exporters: [file/b] }}",
        files[0].0.display(),
        files[1].0.display()
    ));
    for traces in 1..=4 {
        taken(&grpc(&collector), request(0, traces)).await;
    }
    let [balance, ..] = collector.end().await;
    assert_eq!((balance.accepted, balance.exported), (20, 20));
    let spans = files.each_ref().map(|file| file.spans().len());
    assert_eq!([spans[0].max(spans[1]), spans[0].min(spans[1])], [12, 8]);
}

/// Spans are counted as they come; the counts are handed on from time to time, and at the end.
#[tokio::test]
async fn spans_are_measured_from_time_to_time_and_at_the_end() {
    let measured = TempFile::new();
    let config = |interval: &str| {
        format!(
            "processors: {{ resource: {{ attributes: [ {{ key: service.name, value: s, action: insert }} ] }} }}
connectors: {{ span_metrics: {{ metrics_flush_interval: {interval}, exclude_dimensions: [collector.instance.id] }} }}
exporters: {{ file: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    traces: {{ receivers: [otlp], processors: [resource], exporters: [span_metrics] }}
    metrics: {{ receivers: [span_metrics], exporters: [file] }}",
            measured.0.display()
        )
    };
    let calls = || {
        let metrics = lines(&measured).into_iter().map(|line| {
            let metrics = &line["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
            let points = metrics[0]["sum"]["dataPoints"].as_array().cloned();
            let points = points.unwrap_or_default().into_iter();
            let counts = points.map(|point| {
                let count = point["asInt"].as_str().unwrap_or_default();
                count.parse::<u64>().expect("a count")
            });
            (metrics[0]["name"].clone(), counts.sum::<u64>())
        });
        metrics.collect::<Vec<_>>()
    };
    let often = collector(&config("20ms"));
    taken(&grpc(&often), request(0, 15)).await;
    until("it is handed on twice", || calls().len() > 1).await;
    often.end().await;
    let name = "traces.span.metrics.calls";
    assert!(
        calls().iter().all(|one| *one == (name.into(), 30)),
        "{:?}",
        calls()
    );
    std::fs::write(&measured.0, "").expect("a file");

    let seldom = collector(&config("1h"));
    taken(&grpc(&seldom), request(0, 15)).await;
    let [traces, metrics, _] = seldom.end().await;
    assert_eq!((traces.accepted, traces.exported), (30, 30));
    assert_eq!(
        (metrics.accepted, metrics.exported, metrics.held()),
        (6, 6, 0)
    );
    assert_eq!(calls(), [(name.into(), 30)]);
}

/// The exceptions of one pipeline as metrics and as log records.
#[tokio::test]
async fn exceptions_go_to_pipelines_of_both_signals() {
    let files = [TempFile::new(), TempFile::new()];
    let collector = collector(&format!(
        "processors: {{ resource: {{ attributes: [ {{ key: service.name, value: s, action: insert }} ] }} }}
connectors: {{ exceptions: }}
exporters: {{ file/metrics: {{ path: '{}' }}, file/logs: {{ path: '{}' }} }}
service:
  {NO_METRICS}
  pipelines:
    traces: {{ receivers: [otlp], processors: [resource], exporters: [exceptions] }}
    metrics: {{ receivers: [exceptions], exporters: [file/metrics] }}
    logs: {{ receivers: [exceptions], exporters: [file/logs] }}",
        files[0].0.display(),
        files[1].0.display()
    ));
    let mut failed = ExportTraceServiceRequest::decode(request(0, 5)).expect("a request");
    for span in &mut failed.resource_spans[0].scope_spans[0].spans {
        span.name = "s".into();
        span.status = None;
        span.events.push(Event {
            name: "exception".into(),
            ..Event::default()
        });
    }
    taken(&grpc(&collector), failed.encode_to_vec().into()).await;
    taken(&grpc(&collector), request(5, 5)).await;
    let [traces, metrics, logs] = collector.end().await;
    assert_eq!((traces.accepted, traces.exported), (20, 20));
    assert_eq!((logs.accepted, logs.exported), (10, 10));
    assert!(metrics.accepted > 0, "{metrics:?}");
    assert_eq!(metrics.exported, metrics.accepted);
    let [counted, records] = files.each_ref().map(lines);
    let last = counted.last().expect("metrics");
    let metric = &last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    assert_eq!(metric["sum"]["dataPoints"][0]["asInt"], "10");
    let of = |line: &serde_json::Value| {
        let records = &line["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        records.as_array().map_or(0, Vec::len)
    };
    assert_eq!(records.iter().map(of).sum::<usize>(), 10);
}

/// Requests between services as metrics, and what the connector tells of itself.
#[tokio::test]
async fn requests_between_services_go_to_a_pipeline_of_metrics() {
    let file = TempFile::new();
    let collector = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }} }} }} }}
connectors: {{ servicegraph: {{ store: {{ ttl: 1h, max_items: 1 }} }} }}
exporters: {{ file: {{ path: '{}' }} }}
service:
  telemetry: {{ metrics: {{ readers: [ {{ pull: {{ exporter: {{ prometheus: {{ host: 127.0.0.1, port: 0 }} }} }} }} ] }} }}
  pipelines:
    traces: {{ receivers: [otlp], exporters: [servicegraph] }}
    metrics: {{ receivers: [servicegraph], exporters: [file] }}",
        file.0.display()
    ));
    let service = |name: &str| KeyValue {
        key: "service.name".into(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(name.into())),
        }),
        ..KeyValue::default()
    };
    let spans = |name: &str, spans: Vec<Span>| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![service(name)],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans,
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    let span = |kind: i32, id: u8, parent: u8| Span {
        trace_id: vec![1; 16],
        span_id: vec![id; 8],
        parent_span_id: vec![parent; 8],
        kind,
        ..Span::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![
            spans("shop", vec![span(3, 2, 1)]),
            spans("cart", vec![span(2, 3, 2)]),
            // The first waits, and there is no room for the second.
            spans("shop", vec![span(3, 4, 1), span(3, 5, 1)]),
        ],
    };
    taken(&grpc(&collector), request.encode_to_vec().into()).await;
    let page = metrics(&collector).await;
    for (name, count) in [
        ("otelcol_connector_servicegraph_total_edges", 2),
        ("otelcol_connector_servicegraph_dropped_spans", 1),
        ("otelcol_connector_servicegraph_expired_edges", 0),
        ("spangate_connector_servicegraph_waiting_edges", 1),
    ] {
        let line = format!("{name}{{connector=\"servicegraph\"}} {count}");
        assert!(page.lines().any(|own| own == line), "{line}\n{page}");
    }
    let [traces, metrics, _] = collector.end().await;
    assert_eq!((traces.accepted, traces.exported), (4, 4));
    assert_eq!((metrics.accepted, metrics.exported), (3, 3));
    let told = lines(&file);
    let total = &told[0]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    assert_eq!(total["name"], "traces_service_graph_request_total");
    assert_eq!(total["sum"]["dataPoints"][0]["asInt"], "1");
}
