//! Whole collectors, sent to as SDKs send, over real sockets.

mod connectors;
mod dashboard;
mod debug;
mod disk;
mod formats;
mod full;
mod lives;
mod memory;
mod metadata;
mod metrics;
mod options;
mod prometheus;
mod remote_write;
mod said;
mod servers;
mod storage;
mod waiting;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use export::client::{Client, Outcome};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use spangate_collector::config::source::Outside;
use spangate_collector::config::{self, Config, Signal};
use spangate_collector::run::account::Balance;
use spangate_collector::run::consume::Refusal;
use spangate_collector::run::process::memory::resident_bytes;
use spangate_collector::run::{Collector, Host, Level, Log, Setup, Sharing};
use telemetry::settings;
use tokio::time::Instant;

/// How long anything may take. Where an option is muted, tests are to fail.
const PATIENCE: Duration = Duration::from_secs(if cfg!(feature = "mute") { 8 } else { 20 });

/// A file that is gone with this.
struct TempFile(PathBuf);

impl TempFile {
    fn new() -> TempFile {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("spangate-collector-{}-{number}", std::process::id());
        TempFile(std::env::temp_dir().join(name))
    }

    /// The spans that were written to it, as JSON.
    fn spans(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let mut spans = Vec::new();
        for line in text.lines() {
            let request: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            for resource in request["resourceSpans"].as_array().into_iter().flatten() {
                for scope in resource["scopeSpans"].as_array().into_iter().flatten() {
                    spans.extend(scope["spans"].as_array().into_iter().flatten().cloned());
                }
            }
        }
        spans
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn load(yaml: &str) -> Config {
    load_in(&[], yaml)
}

/// The same where variables have values.
fn load_in(environment: &[(&str, &str)], yaml: &str) -> Config {
    let source = format!("yaml:{yaml}");
    let value = |name: &str| {
        let found = environment.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let outside = Outside {
        variable: &value,
        read_file: &|path| std::fs::read(path).map_err(|error| error.to_string()),
    };
    let config = config::load(&[&source], &config::Options::default(), outside);
    config.unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn setup() -> Setup {
    Setup {
        log: Log::new(|_, _| {}),
        seed: 1,
        record_policy: false,
        memory_used_bytes: resident_bytes,
        traces: None,
    }
}

fn start(yaml: &str) -> Collector {
    Collector::start(&load(yaml), setup()).unwrap_or_else(|error| panic!("{}", error.0))
}

/// A collector whose tail of the configuration is given, listening anywhere.
fn collector(rest: &str) -> Collector {
    start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }}, http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n{rest}"
    ))
}

const NO_METRICS: &str = "telemetry: { metrics: { level: none } }";

fn address(collector: &Collector, name: &str) -> String {
    let addresses = collector.addresses();
    let found = addresses.iter().find(|(own, _)| own == name);
    found
        .and_then(|(_, address)| *address)
        .expect(name)
        .to_string()
}

fn grpc(collector: &Collector) -> Client {
    grpc_with(collector, &[])
}

/// The same, with fields of each request.
fn grpc_with(collector: &Collector, fields: &[(&str, &str)]) -> Client {
    let settings = settings::OtlpGrpc {
        endpoint: format!("http://{}", address(collector, "otlp grpc")),
        headers: headers(fields),
        timeout_ms: 10_000,
        requests_max: 0,
        compression: settings::Compression::None,
        user_agent: None,
        tls: settings::Tls::default(),
    };
    Client::grpc(&settings, settings::Signal::Traces).expect("a client")
}

fn headers(fields: &[(&str, &str)]) -> settings::Headers {
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| ((*name).into(), (*value).into()));
    settings::Headers(fields.collect())
}

fn http(collector: &Collector, compression: settings::Compression) -> Client {
    http_with(collector, compression, &[])
}

fn http_with(
    collector: &Collector,
    compression: settings::Compression,
    fields: &[(&str, &str)],
) -> Client {
    let settings = settings::OtlpHttp {
        endpoint: format!("http://{}/v1/traces", address(collector, "otlp http")),
        encoding: settings::Encoding::Protobuf,
        headers: headers(fields),
        timeout_ms: 10_000,
        requests_max: 0,
        compression,
        tls: settings::Tls::default(),
    };
    Client::http(&settings, settings::Signal::Traces).expect("a client")
}

/// Two spans of each trace; every tenth trace has failed.
fn request(first: u64, traces: u64) -> Bytes {
    let span = |trace: u64, number: u8| Span {
        trace_id: [&[7; 8][..], &trace.to_be_bytes()].concat(),
        span_id: [&[number][..], &trace.to_be_bytes()[1..]].concat(),
        name: format!("span {number}"),
        start_time_unix_nano: 1,
        end_time_unix_nano: 2,
        status: (number == 2 && trace.is_multiple_of(10)).then(|| Status {
            code: 2,
            message: String::new(),
        }),
        attributes: vec![KeyValue {
            key: "trace".into(),
            value: Some(AnyValue {
                value: Some(any_value::Value::IntValue(trace as i64)),
            }),
            ..KeyValue::default()
        }],
        ..Span::default()
    };
    let spans = (first..first + traces).flat_map(|trace| [span(trace, 1), span(trace, 2)]);
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource::default()),
            scope_spans: vec![ScopeSpans {
                spans: spans.collect(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec().into()
}

async fn send(client: &Client, body: Bytes) -> Outcome {
    let prepared = client.prepare(vec![body]).expect("a request");
    client.send(&prepared).await
}

async fn taken(client: &Client, body: Bytes) {
    let outcome = send(client, body).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
}

fn traces(collector: &Collector) -> Balance {
    collector.view.accounts[Signal::Traces as usize].balance()
}

/// A section `telemetry` with a page of metrics.
const METERED: &str = "telemetry: { metrics: { readers: [ { pull: { exporter: { prometheus: { host: 127.0.0.1, port: 0 } } } } ] } }";

/// The collector's own metrics.
async fn metrics(collector: &Collector) -> String {
    let page = address(collector, "metrics");
    let mut stream = tokio::net::TcpStream::connect(page).await.expect("a page");
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, request)
        .await
        .expect("a request");
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer)
        .await
        .expect("an answer");
    answer
}

/// The lines of at least this level that a collector of this configuration logs, and it.
fn start_logged(level: Level, yaml: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let taken = Arc::clone(&lines);
    let log = Log::new(move |own, line| {
        if own >= level {
            taken.lock().expect("no panic").push(line.to_owned());
        }
    });
    let collector = Collector::start(&load(yaml), Setup { log, ..setup() });
    (
        collector.unwrap_or_else(|error| panic!("{}", error.0)),
        lines,
    )
}

/// The status of a request over HTTP whose body is of a media type.
async fn post_as(at: &str, path: &str, media: &str, body: &[u8]) -> u16 {
    let mut stream = tokio::net::TcpStream::connect(at).await.expect("a server");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body].concat();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .expect("a request");
    let mut answer = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer)
        .await
        .expect("an answer");
    let status = answer.get(9..12).expect("a status");
    String::from_utf8_lossy(status).parse().expect("a number")
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const ERRORS: &str =
    "policies: [ { name: e, type: status_code, status_code: { status_codes: [ERROR] } } ]";

#[tokio::test]
async fn both_transports_reach_the_same_decision_and_what_is_kept_arrives_whole() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let sampler = collector(&format!(
        "processors: {{ tail_sampling: {{ decision_wait: 1s, {ERRORS} }}, batch: {{ timeout: 10ms }} }}\n\
         exporters: {{ otlp: {{ endpoint: '{}', tls: {{ insecure: true }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [tail_sampling, batch], exporters: [otlp] }} }} }}",
        address(&sink, "otlp grpc")
    ));
    let clients = [
        grpc(&sampler),
        http(&sampler, settings::Compression::None),
        http(&sampler, settings::Compression::Gzip),
    ];
    for (number, client) in clients.iter().enumerate() {
        let body = request(1000 * number as u64, 100);
        let outcome = send(client, body).await;
        assert!(
            matches!(outcome, Outcome::Taken { rejected: 0, .. }),
            "{outcome:?}"
        );
    }
    let balance = traces(&sampler);
    assert_eq!((balance.accepted, balance.held()), (600, 600));
    until("the decision", || traces(&sampler).held() == 0).await;
    let balance = traces(&sampler);
    assert_eq!((balance.exported, balance.dropped), (60, 540));
    sampler.end().await;
    let [balance, ..] = sink.end().await;
    assert_eq!(
        (balance.accepted, balance.exported, balance.held()),
        (60, 60, 0)
    );
    let spans = file.spans();
    assert_eq!(spans.len(), 60);
    let kept = |span: &serde_json::Value| {
        let value = &span["attributes"][0]["value"]["intValue"];
        let text = value
            .as_str()
            .map(str::to_owned)
            .unwrap_or(value.to_string());
        text.parse::<u64>().expect("a number") % 10 == 0
    };
    assert!(spans.iter().all(kept), "{spans:?}");
}

#[tokio::test]
async fn what_waits_at_the_end_is_decided_and_sent() {
    let file = TempFile::new();
    let sampler = collector(&format!(
        "processors: {{ tail_sampling: {{ decision_wait: 300s, num_shards: 3, {ERRORS} }} }}\n\
         exporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [tail_sampling], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let client = grpc(&sampler);
    for number in 0..5 {
        assert!(matches!(
            send(&client, request(number * 100, 100)).await,
            Outcome::Taken { .. }
        ));
    }
    assert_eq!(traces(&sampler).held(), 1000);
    let [balance, ..] = sampler.end().await;
    assert_eq!(
        (balance.exported, balance.dropped, balance.held()),
        (100, 900, 0)
    );
    assert_eq!(file.spans().len(), 100);
}

#[tokio::test]
async fn what_was_grouped_is_sampled_at_once() {
    let file = TempFile::new();
    let sampler = collector(&format!(
        "processors: {{ groupbytrace: {{ wait_duration: 1s, num_events: 100 }}, policysampling: {{ {ERRORS} }} }}\n\
         exporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [groupbytrace, policysampling], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let client = grpc(&sampler);
    for number in 0..5 {
        let outcome = send(&client, request(number * 100, 100)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    }
    until("the decision", || traces(&sampler).held() == 0).await;
    let [balance, ..] = sampler.end().await;
    assert_eq!((balance.exported, balance.dropped), (100, 900));
    assert_eq!(file.spans().len(), 100);
}

#[tokio::test]
async fn at_the_end_nothing_waits_for_a_back_end_that_is_there_again() {
    let is_up = Arc::new(AtomicBool::new(false));
    let (told, mut attempts) = tokio::sync::mpsc::unbounded_channel();
    let back_end = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("an address");
    let target = back_end.local_addr().expect("an address");
    let answers = Arc::clone(&is_up);
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = back_end.accept().await.expect("a connection");
            let (answers, told) = (Arc::clone(&answers), told.clone());
            let answer = hyper::service::service_fn(move |_| {
                let status = if answers.load(SeqCst) { 200 } else { 503 };
                told.send(()).expect("the test listens");
                let answer = hyper::Response::builder().status(status);
                let answer = answer.body(http_body_util::Empty::<bytes::Bytes>::new());
                std::future::ready(answer)
            });
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(stream, answer),
            );
        }
    });
    let sender = collector(&format!(
        "exporters: {{ otlphttp: {{ endpoint: 'http://{target}', retry_on_failure: {{ initial_interval: 1h, max_interval: 1h, max_elapsed_time: 0s }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}",
    ));
    let client = grpc(&sender);
    for number in 0..3 {
        assert!(matches!(
            send(&client, request(number * 10, 10)).await,
            Outcome::Taken { .. }
        ));
        attempts.recv().await.expect("an attempt");
    }
    is_up.store(true, SeqCst);
    let [balance, ..] = sender.end().await;
    assert_eq!((balance.exported, balance.shutdown), (60, 0));
    serving.abort();
}

#[tokio::test]
async fn a_dead_back_end_loses_nothing_while_it_may_be_tried_again() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    // A back end that hangs up on the first attempts.
    let relay = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("an address");
    let target = relay.local_addr().expect("an address");
    let sampler = collector(&format!(
        "exporters: {{ otlphttp: {{ endpoint: 'http://{target}', timeout: 200ms, compression: none, retry_on_failure: {{ initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}",
    ));
    let client = grpc(&sampler);
    for number in 0..10 {
        assert!(matches!(
            send(&client, request(number * 10, 10)).await,
            Outcome::Taken { .. }
        ));
    }
    for _ in 0..5 {
        drop(relay.accept().await.expect("an attempt"));
    }
    assert_eq!(traces(&sampler).held(), 200);
    // From now on it is a plain relay to the sink.
    let to = address(&sink, "otlp http");
    let relaying = tokio::spawn(async move {
        while let Ok((mut from, _)) = relay.accept().await {
            let to = to.clone();
            tokio::spawn(async move {
                let mut to = tokio::net::TcpStream::connect(to).await.expect("the sink");
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    until("everything arrives", || traces(&sampler).exported == 200).await;
    let balance = traces(&sampler);
    assert_eq!((balance.failed, balance.held()), (0, 0));
    relaying.abort();
    sampler.end().await;
    // At least once: an attempt whose answer came too late may have arrived as well.
    sink.end().await;
    assert!(file.spans().len() >= 200);
}

#[tokio::test]
async fn without_room_a_request_is_refused_whole_and_says_when() {
    // Two requests fit the queue of an exporter whose back end does not answer, and one is on its
    // way.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    let full = collector(&format!(
        "exporters: {{ otlphttp: {{ endpoint: 'http://{target}', timeout: 60s, sending_queue: {{ queue_size: 2, num_consumers: 1 }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}",
    ));
    let over_grpc = grpc(&full);
    let mut taken = 0;
    let refused = loop {
        match send(&over_grpc, request(taken * 10, 10)).await {
            Outcome::Taken { .. } => taken += 1,
            other => break other,
        }
        assert!(taken <= 3, "there is no bound");
        // Whoever sends takes the first one out.
        let view = &full.view;
        until("the first is on its way", || {
            view.senders[0].2.depth().0 < 2 || taken == 3
        })
        .await;
    };
    assert_eq!(taken, 3);
    let Outcome::Busy {
        after: Some(after), ..
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert!(after > Duration::ZERO);
    let over_http = http(&full, settings::Compression::None);
    let refused = send(&over_http, request(0, 10)).await;
    assert!(
        matches!(refused, Outcome::Busy { after: Some(_), .. }),
        "{refused:?}"
    );
    let balance = traces(&full);
    assert_eq!(
        (balance.accepted, balance.refused, balance.held()),
        (60, 40, 60)
    );
}

/// A request whose text is replaced, byte for byte.
fn replaced(request: &Bytes, text: &[u8], other: &[u8]) -> Bytes {
    assert_eq!(text.len(), other.len());
    let mut bytes = request.to_vec();
    let at = bytes.windows(text.len()).position(|found| found == text);
    let at = at.expect("it is there");
    bytes[at..at + other.len()].copy_from_slice(other);
    bytes.into()
}

#[tokio::test]
async fn a_malformed_span_spoils_nothing_but_its_own_request() {
    let sink = collector(&format!(
        "exporters: {{ nop: }}\nprocessors: {{ tail_sampling: {{ decision_wait: 1s, {ERRORS} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [tail_sampling], exporters: [nop] }} }} }}"
    ));
    let back_end = address(&sink, "otlp grpc");
    let exporter = format!("otlp: {{ endpoint: '{back_end}', tls: {{ insecure: true }}");
    let good = request(0, 50);
    // The second span's identifier takes a byte of its name.
    let bad = request(100, 1);
    let number = 100_u64.to_be_bytes();
    let own = [&[0x12, 8, 2][..], &number[1..]].concat();
    let bad = replaced(&bad, &own, &[&[0x12, 5, 2][..], &number[1..]].concat());
    for (processors, names, queue) in [
        ("batch: { timeout: 200ms }", "batch", ""),
        (
            "",
            "",
            ", sending_queue: { batch: { flush_timeout: 200ms } }",
        ),
    ] {
        let front = collector(&format!(
            "processors: {{ {processors} }}\nexporters: {{ {exporter} {queue} }} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [{names}], exporters: [otlp] }} }} }}"
        ));
        let client = grpc(&front);
        for (body, is_taken) in [(&good, true), (&bad, false), (&good, true)] {
            let outcome = send(&client, body.clone()).await;
            assert_eq!(
                matches!(outcome, Outcome::Taken { .. }),
                is_taken,
                "{outcome:?}"
            );
            assert_eq!(
                matches!(outcome, Outcome::Refused(_)),
                !is_taken,
                "{outcome:?}"
            );
        }
        let [balance, ..] = front.end().await;
        let settled = (balance.accepted, balance.exported, balance.malformed);
        assert_eq!(settled, (200, 200, 1), "{names}");
    }
    sink.end().await;
}

#[tokio::test]
async fn a_name_that_is_not_utf_8_costs_no_span() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let body = replaced(&request(0, 50), b"span 1", b"sp\xffn 1");
    let outcome = send(&grpc(&sink), body).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    let [balance, ..] = sink.end().await;
    assert_eq!((balance.accepted, balance.exported), (100, 100));
    let spans = file.spans();
    assert_eq!(spans.len(), 100);
    let replaced = spans.iter().filter(|span| span["name"] == "sp\u{fffd}n 1");
    assert_eq!(replaced.count(), 1);
}

#[tokio::test]
async fn what_is_no_request_is_refused_for_good() {
    let nop = collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    for client in [grpc(&nop), http(&nop, settings::Compression::None)] {
        for body in [&b"garbage"[..], b"\x0a\xff\xff\xff\xff\x0f", &[0xff; 100]] {
            let outcome = send(
                &client,
                Bytes::from_static(b"")
                    .into_iter()
                    .chain(body.iter().copied())
                    .collect(),
            )
            .await;
            assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        }
        // An empty request is one.
        assert!(matches!(
            send(&client, Bytes::new()).await,
            Outcome::Taken { .. }
        ));
    }
    let balance = traces(&nop);
    assert_eq!(
        (balance.accepted, balance.malformed, balance.held()),
        (0, 6, 0)
    );
}

#[tokio::test]
async fn a_bomb_is_refused_before_it_is_large() {
    let nop = collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    use settings::Compression::{Deflate, Gzip, Lz4, Snappy, SnappyFramed, Zstd};
    for compression in [Gzip, Deflate, Zstd, Snappy, SnappyFramed, Lz4] {
        let client = http(&nop, compression);
        // 64 MiB of zeros take 64 KiB of gzip; 20 MiB are taken.
        let outcome = send(&client, vec![0; 64 << 20].into()).await;
        let Outcome::Refused(why) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(why.contains("413"), "{compression:?}: {why}");
    }
}

#[tokio::test]
async fn statements_change_spans_and_conditions_drop_them() {
    let file = TempFile::new();
    let config = format!(
        r#"processors:
  filter: {{ trace_conditions: ['span.attributes["trace"] >= 5'] }}
  transform: {{ trace_statements: ['set(span.attributes["double"], span.attributes["trace"] * 2)'] }}
  resourcedetection: {{ detectors: [system], system: {{ resource_attributes: {{ host.name: {{ enabled: false }} }} }} }}
exporters: {{ file: {{ path: '{}' }} }}
service:
  {METERED}
  pipelines:
    traces: {{ receivers: [otlp], processors: [filter, transform, resourcedetection], exporters: [file] }}"#,
        file.0.display()
    );
    let collector = collector(&config);
    let outcome = send(&grpc(&collector), request(0, 10)).await;
    assert!(
        matches!(outcome, Outcome::Taken { rejected: 0, .. }),
        "{outcome:?}"
    );
    let filtered = "otelcol_processor_filter_spans_filtered\
                    {pipeline=\"traces\",processor=\"filter\",filter=\"filter\"} 10\n";
    let page = metrics(&collector).await;
    assert!(page.contains(filtered), "{page}");
    let [balance, ..] = collector.end().await;
    assert_eq!(
        (balance.accepted, balance.exported, balance.dropped),
        (20, 10, 10)
    );
    let spans = file.spans();
    assert_eq!(spans.len(), 10);
    for span in spans {
        let number = |at: usize| {
            let value = &span["attributes"][at]["value"]["intValue"];
            let text = value.as_str().map(str::to_owned);
            text.unwrap_or(value.to_string())
                .parse::<u64>()
                .expect("a number")
        };
        assert!(number(0) < 5);
        let count = span["attributes"].as_array().map_or(0, Vec::len);
        assert_eq!(number(count - 1), number(0) * 2);
    }
}
/// Everything that is written of a collector in virtual time, which gets spans of a proxy around it
/// only.
fn within_a_proxy(processors: &str, order: &str) -> Collector {
    within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ {processors} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [{order}], exporters: [nop] }} }} }}"
    ))
}

/// The same of a whole configuration.
fn within_a_proxy_by(yaml: &str) -> Collector {
    let config = load(yaml);
    let host = Host {
        root_wait: Duration::from_secs(2),
        ..Host::default()
    };
    Collector::start_in(&config, setup(), &host).unwrap_or_else(|error| panic!("{}", error.0))
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_proxys_root_shortens_the_wait() {
    let sampler = |more: &str| format!("tail_sampling: {{ decision_wait: 30s, {more} {ERRORS} }}");
    // Seconds until the spans of the requests are decided.
    let cases = [
        (sampler(""), "tail_sampling", 2),
        (sampler("num_shards: 3,"), "tail_sampling", 2),
        (
            sampler("decision_wait_after_root_received: 5s,"),
            "tail_sampling",
            5,
        ),
        (
            format!("{}, batch: {{ timeout: 1s }}", sampler("")),
            "batch, tail_sampling",
            3,
        ),
        (
            "groupbytrace: { wait_duration: 10s }".to_owned(),
            "groupbytrace",
            10,
        ),
    ];
    for (processors, order, due_s) in cases {
        let collector = within_a_proxy(&processors, order);
        let intake = collector.of_proxy();
        assert!(intake.takes(Signal::Traces) && !intake.takes(Signal::Logs));
        let refused = intake.take(Signal::Logs, request(0, 1)).await;
        assert!(matches!(refused, Err(Refusal::Malformed(_))));
        for number in 0..2 {
            intake
                .take(Signal::Traces, request(number * 10, 10))
                .await
                .expect("there is room");
        }
        tokio::time::sleep(Duration::from_millis(due_s * 1000 - 100)).await;
        assert_eq!(traces(&collector).held(), 40, "{processors}");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let balance = traces(&collector);
        assert_eq!((balance.accepted, balance.held()), (40, 0), "{processors}");
        let ended = collector.end().await;
        assert_eq!(ended[Signal::Traces as usize], balance);
        assert_eq!(
            intake.take(Signal::Traces, request(0, 1)).await,
            Err(Refusal::Closing)
        );
    }
}

#[tokio::test]
async fn who_listens_no_more_lets_others_listen_and_takes_what_a_proxy_gives() {
    let reserved = tokio::net::TcpSocket::new_v4().expect("a socket");
    reserved.set_reuseport(true).expect("an option");
    reserved
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let port = reserved.local_addr().expect("an address").port();
    let config = load(&format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:{port}' }} }} }} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    let host = Host {
        sharing: Sharing::Shared,
        ..Host::default()
    };
    let alone = Collector::start(&config, setup());
    assert!(alone.is_err(), "somebody has the port");
    let started = || {
        Collector::start_in(&config, setup(), &host).unwrap_or_else(|error| panic!("{}", error.0))
    };
    let (old, new) = (started(), started());
    old.stop_listening();
    // What had come to the old one may be cut; its clients come again.
    let of_proxy = old.of_proxy();
    for _ in 0..3 {
        let taken = of_proxy.take(Signal::Traces, request(0, 1)).await;
        taken.expect("it takes what a proxy gives");
    }
    until("all of it has left", || traces(&old).exported == 6).await;
    let balances = old.end().await;
    assert_eq!(balances[0].held(), 0);
    let client = http(&new, settings::Compression::None);
    let outcome = send(&client, request(0, 10)).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    assert_eq!(traces(&new).exported, 20);
}
