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
type Came = (String, HeaderMap, u32);

/// A back end that answers every request with a status, over HTTP/1.1 or HTTP/2; and what came.
async fn back_end(status: u16) -> (String, Arc<Mutex<Vec<Came>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    let came = Arc::<Mutex<Vec<Came>>>::default();
    let all = Arc::clone(&came);
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            let came = Arc::clone(&all);
            let service = service_fn(move |request: Request<Incoming>| {
                let came = Arc::clone(&came);
                async move {
                    let (head, body) = request.into_parts();
                    let _ = body.collect().await;
                    let authority = head.uri.authority().map(ToString::to_string);
                    let mut headers = head.headers;
                    if let Some(authority) = authority {
                        headers.insert("authority", authority.parse().expect("a value"));
                    }
                    let path = head.uri.path().to_owned();
                    came.lock().expect("no panic").push((path, headers, number));
                    // A failure of gRPC has no message: its trailers are its head.
                    let response = Response::builder()
                        .status(status)
                        .header("content-type", "application/grpc")
                        .header("grpc-status", "14");
                    Ok::<_, Infallible>(response.body(Full::<Bytes>::default()).expect("it is one"))
                }
            });
            tokio::spawn(async move {
                let builder = Builder::new(TokioExecutor::new());
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, came)
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

#[tokio::test]
async fn calls_over_grpc_are_what_the_settings_say() {
    let (at, came) = back_end(200).await;
    let collector = all_signals(&format!(
        "otlp: {{ endpoint: '{at}', tls: {{ insecure: true }}, headers: {{ x-key: word }}, authority: other.example, \
         user_agent: own/1, retry_on_failure: {{ enabled: false }} }}"
    ));
    send_all(&collector).await;
    until("all come", || came.lock().expect("no panic").len() == 3).await;
    for (path, headers, _) in came.lock().expect("no panic").iter() {
        assert!(
            path.starts_with("/opentelemetry.proto.collector."),
            "{path}"
        );
        assert_eq!(field(headers, "x-key"), "word");
        assert_eq!(field(headers, "authority"), "other.example");
        assert!(field(headers, "user-agent").starts_with("own/1 "));
    }
    // They are told that it is unavailable, and there is no other attempt.
    until("all fail", || {
        let accounts = &collector.view.accounts;
        accounts.iter().all(|account| account.balance().failed == 1)
    })
    .await;
    assert_eq!(came.lock().expect("no panic").len(), 3);
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
