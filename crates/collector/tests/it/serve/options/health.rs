//! gRPC's health service.

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

/// A call of a method, as it was answered.
async fn call(address: &str, method: &str, service: &str) -> Response<Incoming> {
    let stream = tokio::net::TcpStream::connect(address).await;
    let io = TokioIo::new(stream.expect("a connection"));
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
    let (mut sender, connection) = shaken.expect("a handshake");
    tokio::spawn(connection);
    let mut message = vec![0, 0, 0, 0, 0];
    if !service.is_empty() {
        message[4] = service.len() as u8 + 2;
        message.extend([0x0a, service.len() as u8]);
        message.extend(service.bytes());
    }
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/{method}"))
        .header("content-type", "application/grpc")
        .body(Full::<Bytes>::from(message))
        .expect("a request");
    sender.send_request(request).await.expect("an answer")
}

/// The next message of an answer that goes on: the status in it, or that of gRPC at its end.
async fn next(answer: &mut Response<Incoming>) -> Result<u8, String> {
    let frame = tokio::time::timeout(PATIENCE, answer.body_mut().frame()).await;
    let frame = frame.expect("in time").expect("a frame").expect("a frame");
    match frame.into_data() {
        Ok(data) => {
            assert_eq!(data[..6], [0, 0, 0, 0, 2, 0x08]);
            Ok(data[6])
        }
        Err(frame) => {
            let trailers = frame.into_trailers().expect("trailers");
            let status = trailers["grpc-status"].to_str().expect("a status");
            Err(status.to_owned())
        }
    }
}

async fn check(address: &str, service: &str) -> Result<u8, String> {
    let mut answer = call(address, "Check", service).await;
    if let Some(status) = answer.headers().get("grpc-status") {
        return Err(status.to_str().expect("text").to_owned());
    }
    let told = next(&mut answer).await;
    assert_eq!(next(&mut answer).await, Err("0".to_owned()));
    told
}

const SERVING: u8 = 1;
const NOT_SERVING: u8 = 2;
const SERVICE_UNKNOWN: u8 = 3;

#[tokio::test]
async fn the_health_of_a_pipeline_is_asked_for_and_watched() {
    // Nobody listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead_at = dead.local_addr().expect("an address");
    drop(dead);
    let probed = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\n\
         extensions: {{ healthcheckv2: {{ use_v2: true, grpc: {ANYWHERE}, \
           component_health: {{ include_recoverable_errors: true, recovery_duration: 1ns }} }} }}\n\
         exporters: {{ nop: , otlphttp: {{ endpoint: 'http://{dead_at}', retry_on_failure: {{ enabled: false }} }} }}\n\
         service: {{ {NO_METRICS}, extensions: [healthcheckv2], pipelines: {{ \
         traces/a: {{ receivers: [otlp], exporters: [otlphttp] }}, logs: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    let at = address(&probed, "healthcheckv2 grpc");
    let mut whole = call(&at, "Watch", "").await;
    let mut traces = call(&at, "Watch", "traces/a").await;
    let mut nobody = call(&at, "Watch", "traces").await;
    // Until everything runs nothing serves.
    while next(&mut whole).await != Ok(SERVING) {}
    while next(&mut traces).await != Ok(SERVING) {}
    assert_eq!(next(&mut nobody).await, Ok(SERVICE_UNKNOWN));
    for (service, expected) in [
        ("", Ok(SERVING)),
        ("traces/a", Ok(SERVING)),
        ("logs", Ok(SERVING)),
        ("traces", Err("5".to_owned())),
    ] {
        assert_eq!(check(&at, service).await, expected, "{service}");
    }
    let other = call(&at, "List", "").await;
    assert_eq!(other.headers()["grpc-status"], "12");

    taken(&grpc(&probed), request(0, 10)).await;
    assert_eq!(next(&mut whole).await, Ok(NOT_SERVING));
    assert_eq!(next(&mut traces).await, Ok(NOT_SERVING));
    for (service, expected) in [
        ("", NOT_SERVING),
        ("traces/a", NOT_SERVING),
        ("logs", SERVING),
    ] {
        assert_eq!(check(&at, service).await, Ok(expected), "{service}");
    }
    // Those who watch do not hold up the end, and hear of it.
    probed.end().await;
    for watched in [&mut whole, &mut traces, &mut nobody] {
        assert_eq!(next(watched).await, Err("1".to_owned()));
    }
    assert!(tokio::net::TcpStream::connect(&at).await.is_err());
}

/// Only those who say who they are are answered.
#[tokio::test]
async fn the_health_service_has_the_options_of_a_server() {
    let extensions = format!(
        "extensions: {{ bearertokenauth: {{ token: key }}, healthcheckv2: {{ use_v2: true, \
         http: {ANYWHERE}, grpc: {{ endpoint: '127.0.0.1:0', auth: {{ authenticator: bearertokenauth }} }} }} }}"
    );
    let names = "bearertokenauth, healthcheckv2";
    let probed = keeper(&format!("grpc: {ANYWHERE}"), &extensions, names);
    let both = ["healthcheckv2", "healthcheckv2 grpc"].map(|name| address(&probed, name));
    assert_ne!(both[0], both[1]);
    assert_eq!(check(&both[1], "").await, Err("16".to_owned()));
}
