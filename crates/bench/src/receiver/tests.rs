//! The receiver over real loopback connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::json;

use super::*;
use crate::client;

/// One resource, one scope, two records.
const MESSAGE: &[u8] = b"\x0a\x06\x12\x04\x12\x00\x12\x00";
/// One data point of a gauge.
const GAUGE: &[u8] = b"\x0a\x08\x12\x06\x12\x04\x2a\x02\x0a\x00";

fn connect() -> TcpStream {
    TcpStream::connect(start((Ipv4Addr::LOCALHOST, 0).into()).unwrap()).unwrap()
}

fn head(path: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\nContent-Type: application/x-protobuf\r\n{more}\r\n")
}

/// Sends and reads an answer without a body.
fn post(stream: &mut TcpStream, head: &str, body: &[u8]) -> String {
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

fn counted(stream: &mut TcpStream) -> serde_json::Value {
    serde_json::from_slice(&client::get(stream, "/counts").unwrap()).unwrap()
}

#[test]
fn counts_every_signal_over_one_connection() {
    let mut stream = connect();
    let length = |body: &[u8]| format!("content-length: {}\r\n", body.len());
    for (path, body) in [
        ("/v1/traces", MESSAGE),
        ("/v1/traces", MESSAGE),
        ("/v1/logs", MESSAGE),
        ("/v1/metrics", GAUGE),
        ("/v1/traces", b""),
    ] {
        let answer = post(&mut stream, &head(path, &length(body)), body);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let expected = json!({
        "spans": 4, "logs": 2, "points": 1, "messages": 5, "refused": 0,
        "bytes": 3 * MESSAGE.len() + GAUGE.len(),
    });
    assert_eq!(counted(&mut stream), expected);
}

#[test]
fn counts_json() {
    let mut stream = connect();
    let span =
        br#"{"name":"\"startTimeUnixNano\":","startTimeUnixNano":"1","links":[{"spanId":"aa"}]}"#;
    let body = [b"{\"resourceSpans\":[", &span[..], b",", &span[..], b"]}"].concat();
    let json = |length: usize| {
        format!(
            "POST /v1/traces HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let answer = post(&mut stream, &json(body.len()), &body);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    // The body of that answer.
    stream.read_exact(&mut [0; 2]).unwrap();
    let answer = post(&mut stream, &json(4), b"[{}]");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let counts = counted(&mut stream);
    assert_eq!(
        (&counts["spans"], &counts["refused"]),
        (&serde_json::json!(2), &serde_json::json!(1))
    );
}

#[test]
fn nothing_is_taken_while_it_is_down() {
    let mut stream = connect();
    let head = head(
        "/v1/traces",
        &format!("content-length: {}\r\n", MESSAGE.len()),
    );
    client::get(&mut stream, "/down").unwrap();
    let answer = post(&mut stream, &head, MESSAGE);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(counted(&mut stream)["spans"], 0);
    client::get(&mut stream, "/up").unwrap();
    let answer = post(&mut stream, &head, MESSAGE);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(counted(&mut stream)["spans"], 2);
}

#[test]
fn reads_chunks_with_their_trailers() {
    let mut stream = connect();
    let (one, two) = MESSAGE.split_at(3);
    let body = [
        b"3;a=b\r\n",
        one,
        b"\r\n5\r\n",
        two,
        b"\r\n0\r\nx: y\r\n\r\n",
    ]
    .concat();
    let head = head("/v1/traces", "Transfer-Encoding: chunked\r\n");
    assert!(post(&mut stream, &head, &body).contains(" 200 "));
    assert_eq!(counted(&mut stream)["spans"], 2);
}

#[test]
fn refuses_what_it_cannot_count() {
    let mut stream = connect();
    for (status, path, more) in [
        (" 404 ", "/v1/other", ""),
        (" 400 ", "/v1/metrics", "Expect: 100-continue\r\n"),
        (" 415 ", "/v1/traces", "Content-Encoding: gzip\r\n"),
    ] {
        let head = head(path, &format!("content-length: 2\r\n{more}"));
        let mut answer = post(&mut stream, &head, b"\x0a\x7f");
        if answer.contains(" 100 ") {
            answer = post(&mut stream, "", b"");
        }
        assert!(answer.contains(status), "{answer}");
    }
    let counts = counted(&mut stream);
    assert_eq!(
        (&counts["refused"], &counts["messages"]),
        (&json!(3), &json!(0))
    );
}

#[test]
fn ends_the_connection_when_asked_or_not_understood() {
    for head in [
        head("/v1/traces", "content-length: 0\r\nConnection: close\r\n"),
        head("/v1/traces", "content-length: x\r\n"),
        head("/v1/traces", "Transfer-Encoding: chunked\r\n") + "no number\r\n",
        head("/v1/traces", &format!("a: {}\r\n", "b".repeat(20_000))),
        head("/v1/traces", "content-length: 99999999999\r\n"),
    ] {
        let mut stream = connect();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // Sent bytes that were not read reset the connection, which ends it too.
        let _ = stream.read_to_end(&mut answer);
        let all = String::from_utf8(answer).unwrap();
        assert_eq!(all.contains(" 200 "), head.contains("close"), "{head}");
    }
}
