//! OTLP over HTTP: content, forms, answers, and receivers that do not behave.

use crate::support;

use std::io::Read;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint, metric::Data};
use prost::Message;
use serde_json::Value;
use spangate_export::{Exporters, MetricSource, PipelinePlan, Plan, Retry, Schedule};
use support::*;
use telemetry::account::{Loss, Signal};
use telemetry::queue::Batch;
use telemetry::settings::{Compression, Encoding, Exporter, Headers, OtlpHttp, Processor};
use tokio::time::Instant;

fn traces(settings: OtlpHttp, records: u32) -> PipelinePlan {
    let exporter = Exporter::OtlpHttp(Box::new(settings));
    pipeline(Signal::Traces, exporter, processor(records))
}

fn names(request: &ExportTraceServiceRequest) -> Vec<&str> {
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn spans_arrive_as_they_were_made() {
    let receiver = Receiver::start(Vec::new());
    let mut settings = otlp_http(receiver.address);
    settings.headers = Headers(vec![("x-tenant".to_owned(), "blue".to_owned())]);
    let exporters = start(traces(settings, 100));
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a", "b"]);
    offer_spans(queue, &["c"]);
    assert!(exporters.flush(DEADLINE));
    let got = receiver.next();
    assert_eq!(got.path, "/v1/traces");
    assert_eq!(got.headers["content-type"], "application/x-protobuf");
    assert_eq!(got.headers["content-length"], got.body.len().to_string());
    assert_eq!(got.headers["x-tenant"], "blue");
    assert!(
        got.headers["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("spangate/")
    );
    let request: ExportTraceServiceRequest = got.decoded();
    assert_eq!(request.resource_spans.len(), 1);
    let resource = &request.resource_spans[0];
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(*attributes, [text("service.name", "shop")]);
    assert_eq!(resource.scope_spans.len(), 1);
    let scope = resource.scope_spans[0].scope.as_ref().unwrap();
    assert_eq!(
        (scope.name.as_str(), scope.version.as_str()),
        ("scope", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        resource.scope_spans[0].spans,
        [span("a"), span("b"), span("c")]
    );
    // The envelope is what any other encoder makes.
    assert_eq!(request.encode_to_vec(), got.body);
    assert_eq!(counts(&queue.account), [3, 0, 0, 0, 0]);
    assert_eq!(queue.account.in_flight(), 0);
    assert_balance(queue);
    let health = &exporters.pipelines()[0].health;
    assert_eq!((health.requests_taken(), health.requests_failed()), (1, 0));
    assert!(health.since_taken().is_some());
    exporters.shutdown(DEADLINE);
    assert_eq!(receiver.rest(), 0);
}

#[test]
fn a_full_batch_is_sent_at_once_and_a_large_one_is_split() {
    let receiver = Receiver::start(Vec::new());
    let mut settings = otlp_http(receiver.address);
    settings.requests_max = 1;
    let exporters = start(traces(settings, 3));
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a", "b", "c", "d", "e", "f", "g"]);
    let mut got = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..3 {
        let request = receiver.next();
        connections.push(request.connection);
        got.push(names(&request.decoded()).join(""));
    }
    assert_eq!(got, ["abc", "def", "g"]);
    assert_eq!(connections, [0; 3], "the connection is used again");
    exporters.shutdown(DEADLINE);
}

#[test]
fn what_waits_is_sent_after_a_while_and_a_single_record_at_once() {
    let receiver = Receiver::start(Vec::new());
    let mut pipeline = traces(otlp_http(receiver.address), 100);
    let Schedule::Queue(Processor::Batch(batch)) = &mut pipeline.schedule else {
        panic!()
    };
    batch.delay_ms = 20;
    let exporters = start(pipeline);
    offer_spans(&exporters.pipelines()[0].queue, &["late"]);
    assert_eq!(names(&receiver.next().decoded()), ["late"]);
    exporters.shutdown(DEADLINE);

    let mut pipeline = traces(otlp_http(receiver.address), 100);
    pipeline.schedule = Schedule::Queue(Processor::Single);
    let exporters = start(pipeline);
    offer_spans(&exporters.pipelines()[0].queue, &["now"]);
    assert_eq!(names(&receiver.next().decoded()), ["now"]);
    exporters.shutdown(DEADLINE);
}

#[test]
fn gzip() {
    let receiver = Receiver::start(Vec::new());
    let mut settings = otlp_http(receiver.address);
    settings.compression = Compression::Gzip;
    let exporters = start(traces(settings, 100));
    offer_spans(&exporters.pipelines()[0].queue, &["a"; 50]);
    exporters.shutdown(DEADLINE);
    let got = receiver.next();
    assert_eq!(got.headers["content-encoding"], "gzip");
    let mut plain = Vec::new();
    GzDecoder::new(&got.body[..])
        .read_to_end(&mut plain)
        .unwrap();
    assert!(plain.len() > 5 * got.body.len());
    let request = ExportTraceServiceRequest::decode(&plain[..]).unwrap();
    assert_eq!(names(&request), ["a"; 50]);
}

#[test]
fn json() {
    let answer = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"one too many"}}"#;
    let receiver = Receiver::start(vec![(200, Vec::new(), answer.into())]);
    let mut settings = otlp_http(receiver.address);
    settings.encoding = Encoding::Json;
    let exporters = start(traces(settings, 100));
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a", "b"]);
    assert!(exporters.flush(DEADLINE));
    let got = receiver.next();
    assert_eq!(got.headers["content-type"], "application/json");
    let body: Value = serde_json::from_slice(&got.body).unwrap();
    let resource = &body["resourceSpans"][0];
    let attribute = &resource["resource"]["attributes"][0];
    assert_eq!(attribute["key"], "service.name");
    assert_eq!(attribute["value"]["stringValue"], "shop");
    let span = &resource["scopeSpans"][0]["spans"][1];
    assert_eq!(span["name"], "b");
    assert_eq!(span["traceId"], "0102030405060708090a0b0c0d0e0f10");
    assert_eq!(span["spanId"], "a1a2a3a4a5a6a7a8");
    assert_eq!(span["kind"], 2);
    assert_eq!(span["startTimeUnixNano"], "1700000000000000000");
    assert_eq!(counts(&queue.account), [1, 0, 1, 0, 0]);
}

#[test]
fn logs() {
    let receiver = Receiver::start(Vec::new());
    let exporter = Exporter::OtlpHttp(Box::new(otlp_http(receiver.address)));
    let exporters = start(pipeline(Signal::Logs, exporter, processor(10)));
    let record = LogRecord {
        severity_number: 9,
        event_name: "e".to_owned(),
        ..LogRecord::default()
    };
    offer(
        &exporters.pipelines()[0].queue,
        std::slice::from_ref(&record),
    );
    exporters.shutdown(DEADLINE);
    let request: ExportLogsServiceRequest = receiver.next().decoded();
    assert_eq!(request.resource_logs[0].scope_logs[0].log_records, [record]);
}

struct Points;

impl MetricSource for Points {
    fn collect(&self, pipeline: usize, now_unix_ns: u64) -> Batch {
        let point = NumberDataPoint {
            time_unix_nano: now_unix_ns,
            ..NumberDataPoint::default()
        };
        let data_points = vec![point; 2];
        let metric = Metric {
            name: format!("m{pipeline}"),
            data: Some(Data::Gauge(Gauge { data_points })),
            ..Metric::default()
        };
        Batch {
            records: 2,
            ..batch(&[metric])
        }
    }
}

#[test]
fn metrics_are_collected() {
    let receiver = Receiver::start(Vec::new());
    let exporter = Exporter::OtlpHttp(Box::new(otlp_http(receiver.address)));
    let schedule = Schedule::Collect {
        interval: Duration::from_millis(20),
        source: Arc::new(Points),
        pipeline: 7,
    };
    let pipeline = PipelinePlan::new(Signal::Metrics, &provider(), exporter, schedule);
    let exporters = start(pipeline);
    let queue = Arc::clone(&exporters.pipelines()[0].queue);
    let mut last = 0;
    for _ in 0..3 {
        let request: ExportMetricsServiceRequest = receiver.next().decoded();
        let metric = &request.resource_metrics[0].scope_metrics[0].metrics[0];
        assert_eq!(metric.name, "m7");
        let Some(Data::Gauge(gauge)) = &metric.data else {
            panic!()
        };
        assert!(gauge.data_points[0].time_unix_nano > last);
        last = gauge.data_points[0].time_unix_nano;
    }
    exporters.shutdown(DEADLINE);
    let account = &queue.account;
    assert_eq!(account.exported(), account.started());
    assert!(account.started() >= 8, "the last ones are of the end");
    assert_balance(&queue);
}

#[test]
fn a_busy_receiver_is_asked_again_when_it_says() {
    let busy = |after: &str| (503, vec![("retry-after", after.to_owned())], Vec::new());
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    let receiver = Receiver::start(vec![busy("1"), (429, Vec::new(), Vec::new()), busy(past)]);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut plan = plan(traces(otlp_http(receiver.address), 100));
    let log = Arc::clone(&lines);
    plan.log = Arc::new(move |line| log.lock().unwrap().push(line.to_owned()));
    let exporters = Exporters::start(plan).unwrap();
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a"]);
    let begin = Instant::now();
    assert!(exporters.flush(DEADLINE));
    assert!(begin.elapsed() >= Duration::from_secs(1));
    let bodies: Vec<_> = (0..4).map(|_| receiver.next().body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(counts(&queue.account), [1, 0, 0, 0, 0]);
    let health = &exporters.pipelines()[0].health;
    assert_eq!((health.requests_taken(), health.attempts_again()), (1, 3));
    let name = format!("traces otlp_http http://{}/v1/traces", receiver.address);
    let expected = [
        format!("export of {name} fails: status 503 Service Unavailable"),
        format!("export of {name} works again"),
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}

#[test]
fn a_refusal_is_for_good() {
    let receiver = Receiver::start(vec![
        (400, Vec::new(), b"no such\ntenant".to_vec()),
        // A status in protobuf: field 2 is its text.
        (413, Vec::new(), b"\x12\x05large".to_vec()),
        (302, vec![("location", "/elsewhere".to_owned())], Vec::new()),
    ]);
    let exporters = start(traces(otlp_http(receiver.address), 100));
    let (queue, health) = (
        &exporters.pipelines()[0].queue,
        &exporters.pipelines()[0].health,
    );
    for (failed, said) in [
        "status 400 Bad Request: no such tenant",
        "status 413 Payload Too Large: large",
        "status 302 Found",
    ]
    .iter()
    .enumerate()
    {
        offer_spans(queue, &["a", "b"]);
        assert!(exporters.flush(DEADLINE));
        assert_eq!(
            counts(&queue.account),
            [0, 2 * (failed as u64 + 1), 0, 0, 0]
        );
        assert_eq!(health.last_error(), *said);
        receiver.next();
    }
    assert_eq!((receiver.rest(), health.requests_failed()), (0, 3));
    assert_balance(queue);
}

#[test]
fn partial_success() {
    let answer = |rejected_spans| {
        let partial_success = Some(ExportTracePartialSuccess {
            rejected_spans,
            error_message: "too long".to_owned(),
        });
        let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
        (200, Vec::new(), body)
    };
    // More than there were, a number that means nothing, and no protobuf at all.
    let receiver = Receiver::start(vec![
        answer(2),
        answer(99),
        answer(-1),
        (200, Vec::new(), vec![0xff; 9]),
    ]);
    let exporters = start(traces(otlp_http(receiver.address), 100));
    let queue = &exporters.pipelines()[0].queue;
    for expected in [
        [1, 0, 2, 0, 0],
        [1, 0, 5, 0, 0],
        [4, 0, 5, 0, 0],
        [7, 0, 5, 0, 0],
    ] {
        offer_spans(queue, &["a", "b", "c"]);
        assert!(exporters.flush(DEADLINE));
        assert_eq!(counts(&queue.account), expected);
    }
    assert_eq!(
        exporters.pipelines()[0].health.last_error(),
        "0 records rejected: too long"
    );
    assert_balance(queue);
}

/// Takes connections and never answers.
fn hanging() -> (std::net::SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (said, heard) = mpsc::channel();
    std::thread::Builder::new()
        .spawn(move || {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                held.push(stream);
                let _ = said.send(());
            }
        })
        .unwrap();
    (address, heard)
}

#[test]
fn a_receiver_that_hangs_costs_records_and_never_workers() {
    let (address, connected) = hanging();
    // Ten records a request, four requests, and a queue of a thousand.
    let exporters = start(traces(otlp_http(address), 10));
    let queue = Arc::clone(&exporters.pipelines()[0].queue);
    for _ in 0..4 {
        offer_spans(&queue, &["a"; 10]);
        connected.recv_timeout(DEADLINE).unwrap();
    }
    for _ in 0..200 {
        offer_spans(&queue, &["a"; 10]);
    }
    let account = Arc::clone(&queue.account);
    assert_eq!(account.started(), 2040);
    assert_eq!((queue.depth().0, account.in_flight()), (1000, 40));
    assert_eq!(counts(&account), [0, 0, 0, 1000, 0]);
    assert_balance(&queue);
    assert!(!exporters.flush(Duration::from_millis(20)));
    let begin = Instant::now();
    exporters.shutdown(Duration::from_millis(50));
    assert!(begin.elapsed() < DEADLINE);
    assert_eq!(counts(&account), [0, 0, 0, 1000, 1040]);
    assert_eq!((queue.depth().0, account.in_flight()), (0, 0));
    offer_spans(&queue, &["late"]);
    assert_eq!(account.lost(Loss::Shutdown), 1041);
    assert_balance(&queue);
}

#[test]
fn bytes_are_bounded_as_records_are() {
    let (address, connected) = hanging();
    let mut pipeline = traces(otlp_http(address), 1000);
    pipeline.bytes_max = 10_000;
    let exporters = start(pipeline);
    let queue = &exporters.pipelines()[0].queue;
    let large = span(&"x".repeat(6000));
    // More than half of what may wait is sent at once.
    offer(queue, std::slice::from_ref(&large));
    connected.recv_timeout(DEADLINE).unwrap();
    offer(queue, std::slice::from_ref(&large));
    connected.recv_timeout(DEADLINE).unwrap();
    // On the way is as much as may be; one more may wait.
    for _ in 0..5 {
        offer(queue, std::slice::from_ref(&large));
    }
    assert_eq!((queue.depth().0, queue.account.in_flight()), (1, 2));
    assert_eq!(queue.account.lost(Loss::QueueFull), 4);
    assert_balance(queue);
}

#[test]
fn no_receiver_at_all() {
    let (listener, address) = listener();
    drop(listener);
    let mut settings = otlp_http(address);
    settings.timeout_ms = 1000;
    let mut plan = plan(traces(settings, 100));
    plan.retry = Retry {
        first: Duration::from_millis(1),
        elapsed_max: Some(Duration::from_millis(20)),
        ..Retry::default()
    };
    let exporters = Exporters::start(plan).unwrap();
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [0, 1, 0, 0, 0]);
    let error = exporters.pipelines()[0].health.last_error();
    assert!(error.contains("refused"), "{error}");
    assert!(exporters.pipelines()[0].health.attempts_again() > 0);
    assert_balance(queue);
}

#[test]
fn a_receiver_that_is_too_slow() {
    let (address, _connected) = hanging();
    let mut settings = otlp_http(address);
    settings.timeout_ms = 20;
    let mut plan = plan(traces(settings, 100));
    plan.retry.elapsed_max = Some(Duration::ZERO);
    let exporters = Exporters::start(plan).unwrap();
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [0, 1, 0, 0, 0]);
    assert_eq!(
        exporters.pipelines()[0].health.last_error(),
        "no answer within 20ms"
    );
}

#[test]
fn nothing_is_flushed_at_the_end_where_that_is_asked_for() {
    let receiver = Receiver::start(Vec::new());
    let mut pipeline = traces(otlp_http(receiver.address), 100);
    pipeline.flush_timeout = Duration::ZERO;
    let exporters = start(pipeline);
    let queue = Arc::clone(&exporters.pipelines()[0].queue);
    offer_spans(&queue, &["a"]);
    exporters.shutdown(DEADLINE);
    assert_eq!(counts(&queue.account), [0, 0, 0, 0, 1]);
    assert_eq!(receiver.rest(), 0);
}

#[test]
fn settings_become_a_plan() {
    let text = "exporters: { h: { type: otlp_http }, m: { type: memory }, o: { type: ostream } }\nsignals:\n  traces: { default: { scope_name: s, exporters: [h, m] } }\n  metrics: { default: { scope_name: s, exporters: m } }\n  logs: { default: { scope_name: s, exporters: o, flush_timeout: 7 } }\n";
    let (settings, _) = telemetry::settings::parse(text, "f", None, &|_| None).unwrap();
    let mut plan = Plan::new(Arc::new(|_| {}));
    let places = plan.add(&settings, Some(Arc::new(Points)));
    assert_eq!(
        (places.traces, places.logs, places.metrics),
        (vec![0, 1], vec![2], vec![3])
    );
    assert_eq!(plan.pipelines[2].flush_timeout, Duration::from_millis(7));
    let places = plan.add(&settings, None);
    assert_eq!(
        (places.traces, places.logs, places.metrics),
        (vec![4, 5], vec![6], vec![])
    );
    let exporters = Exporters::start(plan).unwrap();
    let signals: Vec<_> = exporters.pipelines().iter().map(|it| it.signal).collect();
    let (t, m, l) = (Signal::Traces, Signal::Metrics, Signal::Logs);
    assert_eq!(signals, [t, t, l, m, t, t, l]);
}
