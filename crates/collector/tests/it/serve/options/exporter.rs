//! Options of exporters of OTLP that back ends see.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;

use super::*;

/// A request that came: its path, its fields, and its connection's number.
pub(super) type Came = (String, HeaderMap, u32);

/// A back end that answers every request with a status, over HTTP/1.1 or HTTP/2; and what came.
pub(super) async fn back_end(status: u16) -> (String, Arc<Mutex<Vec<Came>>>) {
    let BackEnd { at, came, .. } = BackEnd::answering(status, Duration::ZERO).await;
    (at, came)
}

/// One that answers after some time.
struct BackEnd {
    at: String,
    came: Arc<Mutex<Vec<Came>>>,
    /// Connections that there are.
    open: Arc<AtomicU32>,
}

impl BackEnd {
    async fn answering(status: u16, after: Duration) -> BackEnd {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a listener");
        let address = listener.local_addr().expect("an address").to_string();
        let came = Arc::<Mutex<Vec<Came>>>::default();
        let open = Arc::<AtomicU32>::default();
        let (all, connections) = (Arc::clone(&came), Arc::clone(&open));
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (came, open) = (Arc::clone(&all), Arc::clone(&connections));
                open.fetch_add(1, SeqCst);
                let service = service_fn(move |request: Request<Incoming>| {
                    let came = Arc::clone(&came);
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.map(|body| body.to_bytes().len());
                        tokio::time::sleep(after).await;
                        let authority = head.uri.authority().map(ToString::to_string);
                        let mut headers = head.headers;
                        if let Some(authority) = authority {
                            headers.insert("authority", authority.parse().expect("a value"));
                        }
                        headers.insert("body-bytes", body.unwrap_or_default().into());
                        let path = head.uri.path().to_owned();
                        came.lock().expect("no panic").push((path, headers, number));
                        // A failure of gRPC has no message: its trailers are its head.
                        let response = Response::builder()
                            .status(status)
                            .header("content-type", "application/grpc")
                            .header("grpc-status", "14");
                        Ok::<_, Infallible>(
                            response.body(Full::<Bytes>::default()).expect("it is one"),
                        )
                    }
                });
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                    open.fetch_sub(1, SeqCst);
                });
            }
        });
        BackEnd {
            at: address,
            came,
            open,
        }
    }
}

fn field<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).map(|value| value.to_str().expect("text"));
    value.unwrap_or_default()
}

/// A collector of all signals that sends each on by one exporter.
fn all_signals(exporter: &str) -> Collector {
    all_logged(exporter).0
}

/// The same, and its warnings.
fn all_logged(exporter: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    let name = exporter.split(':').next().expect("a name");
    let pipeline = format!("{{ receivers: [otlp], exporters: [{name}] }}");
    let config = format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\nexporters: {{ {exporter} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {pipeline}, metrics: {pipeline}, logs: {pipeline} }} }}"
    );
    start_logged(Level::Warn, &config)
}

/// Requests of one record each, by their paths.
const REQUESTS: [(&str, &[u8]); 3] = [
    ("/v1/traces", b"\x0a\x04\x12\x02\x12\x00"),
    ("/v1/metrics", b"\x0a\x08\x12\x06\x12\x04\x2a\x02\x0a\x00"),
    ("/v1/logs", b"\x0a\x04\x12\x02\x12\x00"),
];

async fn send_all(collector: &Collector) {
    let at = address(collector, "otlp http");
    for (path, body) in REQUESTS {
        let status = post_as(&at, path, "application/x-protobuf", body).await;
        assert_eq!(status, 200, "{path}");
    }
}

#[tokio::test]
async fn requests_over_http_are_what_the_settings_say() {
    let (at, came) = back_end(200).await;
    let collector = all_signals(&format!(
        "otlphttp: {{ traces_endpoint: 'http://{at}/t', metrics_endpoint: 'http://{at}/m', logs_endpoint: 'http://{at}/l', \
         encoding: json, compression: none, headers: {{ x-key: word }}, disable_keep_alives: true }}"
    ));
    send_all(&collector).await;
    until("all come", || came.lock().expect("no panic").len() == 3).await;
    let mut came = came.lock().expect("no panic").clone();
    came.sort_by(|one, other| one.0.cmp(&other.0));
    let paths: Vec<_> = came.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["/l", "/m", "/t"]);
    for (_, headers, _) in &came {
        assert_eq!(field(headers, "content-type"), "application/json");
        assert_eq!(field(headers, "x-key"), "word");
        assert_eq!(field(headers, "connection"), "close");
    }
    let mut connections: Vec<_> = came.iter().map(|(.., number)| *number).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 1, 2], "each request has one of its own");
}

/// The exporters that speak gRPC to this address, with these options.
pub(super) fn over_grpc(at: &str, options: &str) -> [String; 2] {
    let options = format!("tls: {{ insecure: true }}, {options}");
    [
        format!("otlp: {{ endpoint: '{at}', {options} }}"),
        format!(
            "loadbalancing: {{ protocol: {{ otlp: {{ {options} }} }}, resolver: {{ static: {{ hostnames: ['{at}'] }} }} }}"
        ),
    ]
}

/// A collector of traces that sends them on by one exporter.
pub(super) fn of_traces(exporter: &str) -> Collector {
    let name = exporter.split(':').next().expect("a name");
    let token = "extensions: { headers_setter: { headers: [ { key: authorization, value: Bearer key } ] } }";
    sender(exporter, name, token, "headers_setter")
}

#[tokio::test]
async fn calls_over_grpc_are_what_the_settings_say() {
    let options = "headers: { x-key: word }, authority: other.example, compression: zstd, \
                   user_agent: own/1, retry_on_failure: { enabled: false }, auth: { authenticator: headers_setter }";
    for exporter in 0..2 {
        let (at, came) = back_end(200).await;
        let collector = of_traces(&over_grpc(&at, options)[exporter]);
        taken(&grpc(&collector), request(0, 10)).await;
        // It is told that it is unavailable, and there is no other attempt.
        until("it fails", || traces(&collector).failed == 20).await;
        let came = came.lock().expect("no panic");
        assert_eq!(came.len(), 1);
        let (path, headers, _) = &came[0];
        assert_eq!(
            path,
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
        );
        for (name, value) in [
            ("x-key", "word"),
            ("authority", "other.example"),
            ("grpc-encoding", "zstd"),
            ("authorization", "Bearer key"),
        ] {
            assert_eq!(field(headers, name), value);
        }
        assert!(field(headers, "user-agent").starts_with("own/1 "));
    }
}

#[tokio::test]
async fn backends_have_queues_and_times_of_their_own() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let at = dead.local_addr().expect("an address").to_string();
    for exporter in over_grpc(&at, "timeout: 200ms, retry_on_failure: { enabled: false }") {
        let name = exporter.split(':').next().expect("a name");
        let (collector, lines) = start_logged(
            Level::Warn,
            &format!(
                "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\nexporters: {{ {exporter} }}\n\
                 service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [{name}] }} }} }}"
            ),
        );
        taken(&grpc(&collector), request(0, 10)).await;
        until("it is given up", || traces(&collector).failed == 20).await;
        let lines = lines.lock().expect("no panic");
        let is_told = |line: &String| line.contains("no answer within 200ms");
        assert!(lines.iter().any(is_told), "{lines:?}");
    }
    for exporter in over_grpc(
        &at,
        "timeout: 1h, sending_queue: { queue_size: 1, num_consumers: 1 }",
    ) {
        let collector = of_traces(&exporter);
        let client = grpc(&collector);
        let mut accepted = 0;
        while let Outcome::Taken { .. } = send(&client, request(0, 10)).await {
            accepted += 1;
            assert!(accepted <= 2, "there is no bound");
        }
    }
}

/// The bytes that a body of an exporter over HTTP has, and its coding.
async fn coded(options: &str) -> (u64, String) {
    let (at, came) = back_end(200).await;
    let exporter = format!("otlphttp: {{ endpoint: 'http://{at}', {options} }}");
    let collector = of_traces(&exporter);
    taken(&grpc(&collector), request(0, 2000)).await;
    until("it comes", || traces(&collector).exported == 4000).await;
    let came = came.lock().expect("no panic");
    let (_, headers, _) = &came[0];
    let bytes = field(headers, "body-bytes").parse().expect("a number");
    (bytes, field(headers, "content-encoding").to_owned())
}

#[tokio::test]
async fn bodies_are_compressed_as_the_settings_say() {
    // As in the Collector, the field names the coding as the settings do.
    for coding in ["zstd", "zlib", "deflate", "gzip"] {
        let (few, told) = coded(&format!(
            "compression: {coding}, compression_params: {{ level: 9 }}"
        ))
        .await;
        assert_eq!(told, coding);
        let (many, told) = coded(&format!(
            "compression: {coding}, compression_params: {{ level: 1 }}"
        ))
        .await;
        assert_eq!(told, coding);
        assert_ne!(few, many, "{coding}");
    }
    let (bytes, told) = coded("compression: none").await;
    assert_eq!((bytes, &*told), (request(0, 2000).len() as u64, ""));
}

#[tokio::test]
async fn connections_are_as_many_as_the_settings_say() {
    // Five requests at a time; then nothing.
    for (options, of_many, left) in [
        ("max_conns_per_host: 1", 1, 1),
        ("max_idle_conns: 2", 5, 2),
        ("idle_conn_timeout: 100ms", 5, 0),
    ] {
        let back_end = BackEnd::answering(200, Duration::from_millis(100)).await;
        let collector = of_traces(&format!(
            "otlphttp: {{ endpoint: 'http://{}', {options} }}",
            back_end.at
        ));
        let client = grpc(&collector);
        for number in 0..5 {
            taken(&client, request(number, 1)).await;
        }
        until("all come", || traces(&collector).exported == 10).await;
        let came = back_end.came.lock().expect("no panic").clone();
        let connections: std::collections::BTreeSet<_> =
            came.iter().map(|(.., number)| *number).collect();
        assert!(connections.len() <= of_many, "{options}: {connections:?}");
        until(options, || back_end.open.load(SeqCst) == left).await;
    }
}

#[tokio::test]
async fn a_back_end_that_does_not_answer_in_time_is_given_up() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let at = dead.local_addr().expect("an address");
    let more = "timeout: 200ms, retry_on_failure: { enabled: false }";
    for exporter in [
        format!("otlphttp: {{ endpoint: 'http://{at}', {more} }}"),
        format!("otlp: {{ endpoint: '{at}', tls: {{ insecure: true }}, {more} }}"),
    ] {
        let (collector, lines) = all_logged(&exporter);
        send_all(&collector).await;
        until(&exporter, || {
            let accounts = &collector.view.accounts;
            accounts.iter().all(|account| account.balance().failed == 1)
        })
        .await;
        let lines = lines.lock().expect("no panic");
        let is_told = |line: &String| line.ends_with("lost: no answer within 200ms");
        assert!(lines.iter().all(is_told) && !lines.is_empty(), "{lines:?}");
    }
}
