//! How long connections live, and what they may do: `keepalive` of gRPC servers, and the timeouts
//! of HTTP servers.

use super::*;

use super::servers::{GRPC_SERVERS, RECEIVERS, http_servers};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT: &str = "300ms";

async fn connect(collector: &Collector, name: &str, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address(collector, name))
        .await
        .expect("a server");
    stream.write_all(first).await.expect("it reads");
    stream
}

/// All that comes until the other side ends the connection.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset ends it as well.
    let _ = read.expect("it ends");
    bytes
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    each(http_servers().map(|server| async move {
        for options in [
            format!("read_header_timeout: {SHORT}, read_timeout: 1h"),
            format!("read_timeout: {SHORT}, read_header_timeout: 0s"),
        ] {
            let collector = server.start(&options);
            for first in [&b""[..], b"POST /v1/traces HTTP/1.1\r\nhost"] {
                let mut stream = connect(&collector, server.name, first).await;
                assert_eq!(rest(&mut stream).await, b"", "{options}");
            }
            // The same after a request, as soon as something of the next one has come.
            let mut stream = connect(&collector, server.name, &server.request("")).await;
            let mut answer = [0; 11];
            stream.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(&answer, b"HTTP/1.1 20");
            stream.write_all(b"POST ").await.expect("it reads");
            rest(&mut stream).await;
        }
    }))
    .await;
}

#[tokio::test]
async fn a_connection_without_a_request_ends() {
    each(http_servers().map(|server| async move {
        for options in [
            format!("idle_timeout: {SHORT}, read_header_timeout: 1h"),
            format!("read_timeout: {SHORT}, idle_timeout: 0s, read_header_timeout: 1h"),
        ] {
            let collector = server.start(&options);
            let mut stream = connect(&collector, server.name, &server.request("")).await;
            let answer = rest(&mut stream).await;
            assert!(answer.starts_with(b"HTTP/1.1 20"), "{options}");
        }
    }))
    .await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_told_so() {
    for server in &RECEIVERS {
        let collector = server.start(&format!("read_timeout: {SHORT}"));
        let mut request = server.request("");
        request.pop();
        let mut stream = connect(&collector, server.name, &request).await;
        let answer = rest(&mut stream).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 408"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    }
}

#[tokio::test]
async fn a_response_that_takes_too_long_ends_the_connection() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    let exporter = format!(
        "otlphttp: {{ endpoint: 'http://{target}', timeout: 1h, sending_queue: {{ enabled: false }} }}"
    );
    for server in &RECEIVERS {
        let options = format!("endpoint: '127.0.0.1:0', write_timeout: {SHORT}");
        let collector = server.start_with(&options, &exporter);
        let mut stream = connect(&collector, server.name, &server.request("")).await;
        assert_eq!(rest(&mut stream).await, b"", "{}", server.name);
    }
}

/// Awaits all of some tests, which run at a time.
async fn each<T: Future<Output = ()> + Send + 'static>(tests: impl Iterator<Item = T>) {
    let mut running: tokio::task::JoinSet<()> = tests.collect();
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
}

fn keepalive(options: &str) -> String {
    format!("keepalive: {{ {options} }}")
}

/// What a client of HTTP/2 begins with: the preface and its settings.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A call whose message does not come (RFC 7541: `POST`, `http`, a path, an authority).
fn call(path: &str) -> Vec<u8> {
    let fields = [
        b"\x83\x86\x44",
        &[path.len() as u8][..],
        path.as_bytes(),
        b"\x41\x01x",
    ]
    .concat();
    let head = [0, 0, fields.len() as u8, 1, 4, 0, 0, 0, 1];
    [&head[..], &fields].concat()
}

const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingpong";

/// The frames of some bytes: their types, and what is in them.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((&[a, b, c, kind, ..], rest)) = bytes.split_first_chunk::<9>() {
        let len = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let (payload, rest) = rest.split_at(len.min(rest.len()));
        frames.push((kind, payload.to_vec()));
        bytes = rest;
    }
    frames
}

/// What the last `GOAWAY` of some frames says: its code and its text.
fn goaway(frames: &[(u8, Vec<u8>)]) -> Option<(u8, String)> {
    let (_, last) = frames.iter().rev().find(|(kind, _)| *kind == 7)?;
    let text = String::from_utf8_lossy(last.get(8..)?);
    Some((*last.get(7)?, text.into_owned()))
}

#[tokio::test]
async fn grpc_connections_end_when_they_are_idle_or_old() {
    let options = [
        format!("max_connection_idle: {SHORT}"),
        format!("max_connection_age: {SHORT}"),
    ];
    let cases = GRPC_SERVERS
        .iter()
        .flat_map(|server| options.iter().map(move |options| (server, options)));
    for (server, options) in cases {
        let collector = server.start(&keepalive(&format!("server_parameters: {{ {options} }}")));
        let mut stream = connect(&collector, server.name, BEGIN).await;
        // Whoever answers the ping between the two knows of the end.
        let mut all = Vec::new();
        loop {
            let mut part = [0; 1024];
            let read = tokio::time::timeout(PATIENCE, stream.read(&mut part)).await;
            match read.expect("it ends").unwrap_or(0) {
                0 => break,
                len => all.extend(&part[..len]),
            }
            let pings: Vec<_> = { frames(&all).into_iter() }
                .filter(|(kind, _)| *kind == 6)
                .collect();
            if let Some((_, ping)) = pings.last() {
                let answer = [&b"\0\0\x08\x06\x01\0\0\0\0"[..], ping].concat();
                let _ = stream.write_all(&answer).await;
            }
        }
        assert_eq!(goaway(&frames(&all)), Some((0, String::new())), "{options}");
    }
}

#[tokio::test]
async fn what_is_not_answered_at_that_age_has_a_while() {
    let options = format!("max_connection_age: {SHORT}, max_connection_age_grace: {SHORT}");
    for server in &GRPC_SERVERS {
        let collector = server.start(&keepalive(&format!("server_parameters: {{ {options} }}")));
        let begin = [BEGIN, &call(server.method)].concat();
        let mut stream = connect(&collector, server.name, &begin).await;
        let frames = frames(&rest(&mut stream).await);
        assert_eq!(goaway(&frames), Some((0, String::new())), "{frames:?}");
    }
}

#[tokio::test]
async fn a_silent_client_is_pinged_and_given_up() {
    let options = format!("server_parameters: {{ time: {SHORT}, timeout: {SHORT} }}");
    for server in &GRPC_SERVERS {
        let collector = server.start(&keepalive(&options));
        let mut stream = connect(&collector, server.name, BEGIN).await;
        let frames = frames(&rest(&mut stream).await);
        assert!(frames.iter().any(|(kind, _)| *kind == 6), "{frames:?}");
    }
}

#[tokio::test]
async fn a_client_that_pings_too_often_is_sent_away() {
    let pings = [BEGIN, &PING.repeat(6)].concat();
    let policies = [
        ("", false),
        ("enforcement_policy: { min_time: 1ns }", false),
        ("enforcement_policy: { permit_without_stream: true }", false),
        (
            "enforcement_policy: { min_time: 1ns, permit_without_stream: true }",
            true,
        ),
    ];
    let cases = GRPC_SERVERS
        .iter()
        .flat_map(|server| policies.iter().map(move |policy| (server, policy)));
    for (server, (policy, is_borne)) in cases {
        let collector = server.start(&keepalive(policy));
        let mut stream = connect(&collector, server.name, &pings).await;
        if *is_borne {
            // All are answered, and it goes on.
            let mut all = Vec::new();
            while frames(&all).iter().filter(|(kind, _)| *kind == 6).count() < 6 {
                let mut part = [0; 1024];
                let read = tokio::time::timeout(PATIENCE, stream.read(&mut part)).await;
                let len = read.expect("in time").expect("it goes on");
                assert!(len > 0, "{policy}");
                all.extend(&part[..len]);
            }
            assert_eq!(goaway(&frames(&all)), None, "{policy}");
        } else {
            let frames = frames(&rest(&mut stream).await);
            let told = Some((11, "too_many_pings".to_owned()));
            assert_eq!(goaway(&frames), told, "{policy}: {frames:?}");
        }
    }
}
