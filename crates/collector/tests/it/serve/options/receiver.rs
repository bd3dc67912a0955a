//! Options of receivers of OTLP that answers show.

use super::*;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// All that is answered to some bytes, until the other side ends the connection.
async fn answer(collector: &Collector, name: &str, bytes: &[u8]) -> String {
    let stream = TcpStream::connect(address(collector, name)).await;
    let mut stream = stream.expect("a server");
    stream.write_all(bytes).await.expect("it reads");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("it ends").expect("no reset");
    String::from_utf8_lossy(&answer).to_lowercase()
}

const EMPTY: &[u8] = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn what_is_larger_than_the_settings_say_is_refused() {
    let protocols = "grpc: { endpoint: '127.0.0.1:0', max_recv_msg_size_mib: 1 }, \
                     http: { endpoint: '127.0.0.1:0', max_request_body_size: 1048576 }";
    let sink = keeper(protocols, "", "");
    let large = request(0, 10_000);
    assert!((1 << 20..4 << 20).contains(&large.len()), "{}", large.len());
    for client in [grpc(&sink), http(&sink, settings::Compression::None)] {
        let outcome = send(&client, large.clone()).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        taken(&client, request(0, 1000)).await;
    }
}

#[tokio::test]
async fn signals_have_the_paths_of_the_settings() {
    let http = "http: { endpoint: '127.0.0.1:0', traces_url_path: /t, metrics_url_path: m, logs_url_path: /l }";
    let pipeline = "{ receivers: [otlp], exporters: [nop] }";
    let sink = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ {http} }} }} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {pipeline}, metrics: {pipeline}, logs: {pipeline} }} }}"
    ));
    let at = address(&sink, "otlp http");
    for (path, status) in [
        ("/t", 200),
        ("/m", 200),
        ("/l", 200),
        ("/v1/traces", 404),
        ("/v1/metrics", 404),
        ("/v1/logs", 404),
    ] {
        let answered = post_as(&at, path, "application/x-protobuf", b"").await;
        assert_eq!(answered, status, "{path}");
    }
}

#[tokio::test]
async fn answers_have_the_fields_of_the_settings_and_connections_end_after_them() {
    let http = "http: { endpoint: '127.0.0.1:0', response_headers: { x-own: told }, keep_alives_enabled: false }";
    let answer = answer(&keeper(http, "", ""), "otlp http", EMPTY).await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(answer.contains("\r\nx-own: told\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn codings_that_are_not_in_the_settings_are_refused() {
    let sink = keeper(
        "http: { endpoint: '127.0.0.1:0', compression_algorithms: [zstd] }",
        "",
        "",
    );
    taken(&http(&sink, settings::Compression::Zstd), request(0, 10)).await;
    let outcome = send(&http(&sink, settings::Compression::Gzip), request(0, 10)).await;
    let Outcome::Refused(why) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("415"), "{why}");
}

#[tokio::test]
async fn browsers_are_told_what_they_may_do() {
    let cors = "cors: { allowed_origins: ['http://*.example'], allowed_headers: [x-key], exposed_headers: [x-told], max_age: 77 }";
    let http = format!("http: {{ endpoint: '127.0.0.1:0', {cors} }}");
    let sink = keeper(&http, "", "");
    let ask = |origin: &str, header: &str| {
        format!(
            "OPTIONS /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: {origin}\r\n\
             access-control-request-method: POST\r\naccess-control-request-headers: {header}\r\n\r\n"
        )
    };
    let good = answer(
        &sink,
        "otlp http",
        ask("http://a.example", "x-key").as_bytes(),
    )
    .await;
    for field in [
        "access-control-allow-origin: http://a.example",
        "access-control-allow-headers: x-key",
        "access-control-max-age: 77",
    ] {
        assert!(good.contains(field), "{good}");
    }
    for (origin, header) in [("http://a.other", "x-key"), ("http://a.example", "x-other")] {
        let bad = answer(&sink, "otlp http", ask(origin, header).as_bytes()).await;
        assert!(!bad.contains("access-control-allow-headers: x-"), "{bad}");
    }
    let post = String::from_utf8_lossy(EMPTY);
    let post = post.replace(
        "host: x",
        "host: x\r\nconnection: close\r\norigin: http://a.example",
    );
    let posted = answer(&sink, "otlp http", post.as_bytes()).await;
    assert!(
        posted.contains("access-control-expose-headers: x-told"),
        "{posted}"
    );
}

#[tokio::test]
async fn calls_at_a_time_are_those_of_the_settings() {
    let sink = keeper(
        "grpc: { endpoint: '127.0.0.1:0', max_concurrent_streams: 7 }",
        "",
        "",
    );
    let stream = TcpStream::connect(address(&sink, "otlp grpc")).await;
    let mut stream = stream.expect("a server");
    let begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(begin).await.expect("it reads");
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.expect("a frame");
    assert_eq!(head[3], 4, "settings come first (RFC 9113 section 3.4)");
    let mut frame = vec![0; usize::from(head[2])];
    stream.read_exact(&mut frame).await.expect("the frame");
    // SETTINGS_MAX_CONCURRENT_STREAMS (section 6.5.2).
    let value = frame.chunks(6).find(|setting| setting[..2] == [0, 3]);
    assert_eq!(value.expect("it is set")[2..], [0, 0, 0, 7]);
}

#[tokio::test]
async fn http_is_spoken_over_a_unix_socket_too() {
    let socket = TempFile::new();
    let http = format!(
        "http: {{ endpoint: '{}', transport: unix }}",
        socket.0.display()
    );
    let _sink = keeper(&http, "", "");
    let mut stream = UnixStream::connect(&socket.0).await.expect("a server");
    stream.write_all(EMPTY).await.expect("it reads");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
}
