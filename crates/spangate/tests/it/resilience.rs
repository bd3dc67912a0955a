//! Settings that prevent failures from spreading: `retry-budget` and `outlier-ejection`
//! (docs/resilience.md).

use crate::common;

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use common::http::{Client, Reader};
use common::origin::Origin;
use common::{DEFAULTS, Proxy, address, join, listener, spawn};

const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n";

/// The frontend of these tests, with its metrics at `/metrics`.
fn front(backend: &str) -> String {
    format!(
        "{DEFAULTS}frontend fe\n bind \"fd@${{FRONT}}\"\n \
         http-request use-service prometheus-exporter if {{ path /metrics }}\n default_backend be\nbackend be\n{backend}"
    )
}

fn metrics(front: &TcpListener) -> String {
    Client::connect(address(front)).get("/metrics").text()
}

/// Ends the program. Returns its output.
fn told(proxy: Proxy) -> String {
    proxy.running.signal(libc::SIGTERM);
    proxy.running.end().stderr
}

/// A kept connection that the server closes after the next request. Whether it has worked on that
/// request nobody knows, so only what may be repeated is sent again (RFC 9110 section 9.2.2), by the
/// method that the server sees.
#[test]
fn a_request_is_sent_again_by_the_method_that_the_server_saw() {
    let (front, server) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}listen front\n bind \"fd@${{FRONT}}\"\n \
         http-request set-method %[req.hdr(as)] if {{ req.hdr(as) -m found }}\n server s {}\n",
        address(&server)
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    for (own, sent, is_again) in [
        ("GET", "GET", true),
        ("GET", "POST", false),
        ("POST", "POST", false),
        ("POST", "PUT", true),
    ] {
        let served = server.try_clone().expect("a listener");
        let origin = spawn(move || {
            let mut methods = Vec::new();
            // The second request of the first connection gets no answer.
            for requests in [2, 1] {
                let (mut stream, _) = served.accept().expect("a connection");
                let mut reader = Reader::over(stream.try_clone().expect("a stream"));
                for number in 0..requests {
                    let head = reader.head().expect("a request");
                    methods.push(head.line.split(' ').next().unwrap_or_default().to_owned());
                    if requests == 2 && number == 1 {
                        break;
                    }
                    let answer = b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).expect("an answer");
                }
            }
            methods
        });
        let mut client = Client::connect(address(&front));
        assert_eq!(client.get("/").status, 200);
        client.send(format!(
            "{own} / HTTP/1.1\r\nhost: x\r\nas: {sent}\r\ncontent-length: 0\r\n\r\n"
        ));
        let status = client.response().map(|answer| answer.status);
        // The client of a kept connection may send its request again itself, so it gets no status.
        let expected = is_again.then_some(200);
        assert_eq!(status, expected, "{own} as {sent}");
        if !is_again {
            // For the second connection of the server.
            assert_eq!(Client::connect(address(&front)).get("/").status, 200);
        }
        let methods = join(&origin, "the server's end");
        assert_eq!(methods[..2], ["GET", sent]);
        assert_eq!(methods[2], if is_again { sent } else { "GET" });
    }
    proxy.stop();
}

#[test]
fn a_budget_bounds_retries() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let failing = Origin::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        UNAVAILABLE.to_vec()
    });
    let listener = listener();
    // The budget allows ten retries in ten seconds, for any number of requests.
    let config = front(&format!(
        " retries 3\n retry-on 503\n retry-budget 0% min 1\n server s {}\n",
        failing.at
    ));
    let proxy = Proxy::start(&config, &[("FRONT", &listener)]);
    for _ in 0..6 {
        let answer = Client::connect(address(&listener)).get("/");
        assert_eq!(answer.status, 503);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 6 + 10);
    let metrics = metrics(&listener);
    for line in [
        "haproxy_backend_retries_refused_total{proxy=\"be\"} 3",
        "haproxy_server_retries_refused_total{proxy=\"be\",server=\"s\"} 3",
        "haproxy_server_retry_warnings_total{proxy=\"be\",server=\"s\"} 10",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    told(proxy);
}

#[test]
fn a_retry_of_a_connection_that_the_budget_refuses_ends_with_the_first_fault() {
    let gone = listener();
    let at = address(&gone);
    drop(gone);
    let listener = listener();
    // Three attempts would take two seconds.
    let config = front(&format!(
        " timeout connect 1s\n retries 2\n retry-budget 0% min 0\n server s {at}\n"
    ));
    let proxy = Proxy::start(&config, &[("FRONT", &listener)]);
    let answer = Client::connect(address(&listener)).get("/");
    assert_eq!(answer.status, 503);
    let metrics = metrics(&listener);
    for line in [
        "haproxy_server_connection_attempts_total{proxy=\"be\",server=\"s\"} 1",
        "haproxy_backend_retries_refused_total{proxy=\"be\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    told(proxy);
}

/// Repeats a function until it returns true, within the deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "ejections go by their own clock, and nothing tells when they have ended"
)]
fn repeat(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < common::DEADLINE, "{what}");
        crate::common::before_the_next_look();
    }
}

/// Polls the metrics until they contain a line.
fn until(front: &TcpListener, line: &str) {
    repeat(line, || metrics(front).contains(line));
}

/// A server with a variable status, and the number of its requests.
fn switched(status: u16) -> (Origin, Arc<AtomicU16>, Arc<AtomicUsize>) {
    let status = Arc::new(AtomicU16::new(status));
    let asked = Arc::new(AtomicUsize::new(0));
    let (answer, count) = (Arc::clone(&status), Arc::clone(&asked));
    let origin = Origin::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let status = answer.load(Ordering::SeqCst);
        format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").into_bytes()
    });
    (origin, status, asked)
}

#[test]
fn a_server_that_fails_is_ejected_and_comes_back() {
    let (failing, status, asked) = switched(500);
    let (good, _, _) = switched(200);
    let listener = listener();
    let config = front(&format!(
        " default-server outlier-ejection errors 3 ejection 200ms\n server a {}\n server b {}\n",
        failing.at, good.at
    ));
    let proxy = Proxy::start(&config, &[("FRONT", &listener)]);
    let get = || Client::connect(address(&listener)).get("/").status;
    let asks = |times| {
        repeat("requests for the first server", || {
            get();
            asked.load(Ordering::SeqCst) >= times
        });
    };
    asks(3);
    until(
        &listener,
        "haproxy_server_status{proxy=\"be\",server=\"a\",state=\"NOLB\"} 1",
    );
    // The probe fails, which ejects the server again.
    asks(4);
    until(
        &listener,
        "haproxy_server_ejections_total{proxy=\"be\",server=\"a\"} 2",
    );
    status.store(200, Ordering::SeqCst);
    asks(5);
    until(
        &listener,
        "haproxy_server_status{proxy=\"be\",server=\"a\",state=\"UP\"} 1",
    );
    until(
        &listener,
        "haproxy_server_ejections_total{proxy=\"be\",server=\"b\"} 0",
    );
    let told = told(proxy);
    for text in [
        "Server be/a is ejected, reason: 3 consecutive errors, last one was: Wrong http response, for 200ms. 1 active and 0 backup \
         servers online.",
        "Server be/a is ejected, reason: probe failed: Wrong http response, for 400ms.",
        "Server be/a is back, reason: probe succeeded. 2 active and 0 backup servers online.",
    ] {
        assert!(told.contains(text), "{text}\n{told}");
    }
}

#[test]
fn a_circuit_opens_and_one_request_closes_it() {
    let (failing, status, asked) = switched(503);
    let listener = listener();
    let config = front(&format!(
        " server s {} outlier-ejection success-rate 50% requests 4 ejection 300ms max-ejected 100%\n",
        failing.at
    ));
    let proxy = Proxy::start(&config, &[("FRONT", &listener)]);
    let get = || Client::connect(address(&listener)).get("/").status;
    for _ in 0..4 {
        assert_eq!(get(), 503);
    }
    // Open: the server gets no requests.
    status.store(200, Ordering::SeqCst);
    assert_eq!(get(), 503);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    // The server answers the probe with 200, and the circuit closes.
    repeat("a good answer", || get() == 200);
    assert_eq!(get(), 200);
    assert_eq!(asked.load(Ordering::SeqCst), 6);
    let told = told(proxy);
    for text in [
        "Server be/s is ejected, reason: 0 of 4 requests succeeded, for 300ms.",
        "backend 'be' has no server available!",
        "Server be/s is back, reason: probe succeeded.",
    ] {
        assert!(told.contains(text), "{text}\n{told}");
    }
}
