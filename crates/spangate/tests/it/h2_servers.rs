//! HTTP/2 servers that end streams and connections in ways that RFC 9113 permits, and in ways that
//! it does not.

use crate::common;

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use common::h2::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, Raw, frame};
use common::http::Client;
use common::origin::Origin;
use common::{DEADLINE, DEFAULTS, Proxy, address, listener, sys};

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

/// The head of a response with status 200, with a length if one is given.
fn head(length: Option<usize>) -> Vec<u8> {
    let mut block = vec![0x88];
    if let Some(length) = length {
        let text = length.to_string();
        block.extend_from_slice(&[0x0f, 0x0d, text.len() as u8]);
        block.extend_from_slice(text.as_bytes());
    }
    block
}

/// A complete response.
fn response(stream: u32, body: &[u8]) -> Vec<u8> {
    let mut all = frame(HEADERS, END_HEADERS, stream, &head(Some(body.len())));
    let mut chunks = body.chunks(16 << 10).peekable();
    while let Some(chunk) = chunks.next() {
        let flags = if chunks.peek().is_none() {
            END_STREAM
        } else {
            0
        };
        all.extend(frame(DATA, flags, stream, chunk));
    }
    all
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn goaway(last: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), NO_ERROR.to_be_bytes()].concat();
    frame(GOAWAY, 0, 0, &payload)
}

/// A server that handles its connections by number, from 0 on.
fn server(work: impl Fn(Raw, u32) + Send + Sync + 'static) -> SocketAddr {
    let next = AtomicU32::new(0);
    let origin = Origin::raw(move |stream| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        work(Raw::serve(stream), number);
    });
    origin.at
}

/// A proxy for HTTP/1 clients; it logs status and termination.
struct Before {
    proxy: Proxy,
    front: SocketAddr,
    log: UdpSocket,
}

impl Before {
    fn start(server: SocketAddr, more: &str) -> Before {
        let (front, log) = (listener(), UdpSocket::bind("127.0.0.1:0").unwrap());
        log.set_read_timeout(Some(DEADLINE)).unwrap();
        let config = format!(
            "{DEFAULTS}\n retries 1\n {more}\nlisten l\n log {} format raw local0\n log-format \"%ST %tsc\"\n bind \"fd@${{FRONT}}\"\n \
             server s {server} proto h2\n",
            log.local_addr().unwrap()
        );
        Before {
            proxy: Proxy::start(&config, &[("FRONT", &front)]),
            front: address(&front),
            log,
        }
    }

    fn logged(&self) -> String {
        let mut line = [0; 500];
        let count = self.log.recv(&mut line).expect("a line of the log");
        String::from_utf8_lossy(&line[..count]).trim().to_owned()
    }
}

#[test]
fn requests_that_were_not_processed_go_out_again() {
    let refused = server(|mut raw, number| {
        let mut count = 0;
        while let Some((stream, _)) = raw.until(HEADERS) {
            match (number, count) {
                (0, 0) => raw.send(&reset(stream, REFUSED_STREAM)),
                _ => raw.send(&response(stream, b"again")),
            };
            count += 1;
        }
    });
    let going = server(|mut raw, number| {
        while let Some((stream, _)) = raw.until(HEADERS) {
            match number {
                0 => {
                    raw.send(&goaway(0));
                    return;
                }
                _ => raw.send(&response(stream, b"again")),
            };
        }
    });
    for at in [refused, going] {
        let before = Before::start(at, "retry-on all-retryable-errors");
        let answer = Client::connect(before.front).get("/");
        assert_eq!((answer.status, &*answer.text()), (200, "again"));
        assert!(before.logged().starts_with("200 --"));
        before.proxy.stop();
    }
}

#[test]
fn a_connection_that_goes_away_serves_what_it_took() {
    let at = server(|mut raw, number| {
        let (stream, _) = raw.until(HEADERS).expect("a request");
        raw.send(&goaway(stream));
        raw.send(&response(stream, number.to_string().as_bytes()));
        // The other side closes it.
        while raw.frame().is_some() {}
    });
    let before = Before::start(at, "");
    let mut client = Client::connect(before.front);
    for number in 0..3 {
        assert_eq!(client.get("/").text(), number.to_string());
    }
    before.proxy.stop();
}

#[test]
fn what_a_server_sent_before_its_end_arrives() {
    let body = common::pattern(65_000);
    let sent = body.clone();
    let (outbox, closed) = channel();
    let at = server(move |mut raw, number| {
        let (stream, _) = raw.until(HEADERS).expect("a request");
        raw.send(&response(stream, &sent));
        if number == 0 {
            raw.stream.shutdown(Shutdown::Write).unwrap();
            outbox.send(()).unwrap();
            while raw.frame().is_some() {}
        } else {
            drop(raw);
            outbox.send(()).unwrap();
        }
    });
    // The client has small buffers: the rest waits in the proxy when the server closes.
    let before = Before::start(at, "global\n tune.sndbuf.client 4096\n");
    for _ in 0..2 {
        let mut client = Client::connect(before.front);
        sys::hold_little(&client.reader.wire, 8192);
        client.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        closed.recv_timeout(DEADLINE).expect("the server's end");
        let answer = client.response().expect("all of it");
        assert!(answer.body == body, "{} bytes", answer.body.len());
    }
    before.proxy.stop();
}

#[test]
fn responses_that_are_cut_are_seen_to_be() {
    for (ends, length) in [
        (false, Some(10)),
        (true, Some(10)),
        (false, None),
        (true, None),
    ] {
        let at = server(move |mut raw, _| {
            let (stream, _) = raw.until(HEADERS).expect("a request");
            let mut part = frame(HEADERS, END_HEADERS, stream, &head(length));
            part.extend(frame(DATA, 0, stream, b"half"));
            if ends {
                part.extend(reset(stream, INTERNAL_ERROR));
            }
            raw.send(&part);
            if ends {
                while raw.frame().is_some() {}
            }
        });
        let before = Before::start(at, "");
        let mut client = Client::connect(before.front);
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.response(), None, "{ends} {length:?}");
        assert!(before.logged().starts_with("200 SD"), "{ends} {length:?}");
        before.proxy.stop();
    }
}

#[test]
fn an_answer_before_the_end_of_the_upload_arrives() {
    let at = server(|mut raw, _| {
        while let Some((stream, _)) = raw.until(HEADERS) {
            let mut early = response(stream, b"early");
            early.extend(reset(stream, NO_ERROR));
            raw.send(&early);
        }
    });
    let before = Before::start(at, "");
    let mut client = Client::connect(before.front);
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nsome");
    let answer = client.response().expect("an answer");
    assert_eq!((answer.status, &*answer.text()), (200, "early"));
    before.proxy.stop();
}

#[test]
fn trailers_reach_clients_of_http_1() {
    let at = server(|mut raw, _| {
        while let Some((stream, _)) = raw.until(HEADERS) {
            let mut all = frame(HEADERS, END_HEADERS, stream, &head(None));
            all.extend(frame(DATA, 0, stream, b"body"));
            let trailers = b"\x00\x05x-sum\x017";
            all.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, trailers));
            raw.send(&all);
        }
    });
    let before = Before::start(at, "");
    let mut client = Client::connect(before.front);
    client.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let all = client.reader.everything();
    let text = String::from_utf8_lossy(&all).into_owned();
    assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
    assert!(
        text.ends_with("\r\n4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{text}"
    );
    before.proxy.stop();
}

/// A server that never answers. It reports the streams that were reset.
fn silent() -> (SocketAddr, Receiver<u32>) {
    let (outbox, resets) = channel();
    let at = server(move |mut raw, _| {
        while let Some((kind, _, _, payload)) = raw.frame() {
            match kind {
                HEADERS => outbox.send(u32::MAX).unwrap(),
                RST_STREAM => {
                    let code = payload.try_into().map(u32::from_be_bytes).unwrap();
                    outbox.send(code).unwrap();
                }
                _ => {}
            }
        }
    });
    (at, resets)
}

#[test]
fn streams_that_nobody_waits_for_are_cancelled() {
    let (at, heard) = silent();
    let before = Before::start(at, "timeout server 200ms");
    let mut client = Client::connect(before.front);
    assert_eq!(client.get("/").status, 504);
    assert!(before.logged().starts_with("504 sH"));
    assert_eq!(heard.recv_timeout(DEADLINE), Ok(u32::MAX));
    assert_eq!(heard.recv_timeout(DEADLINE), Ok(CANCEL));
    before.proxy.stop();

    let (at, heard) = silent();
    let before = Before::start(at, "option abortonclose");
    let mut client = Client::connect(before.front);
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(heard.recv_timeout(DEADLINE), Ok(u32::MAX));
    drop(client);
    assert_eq!(heard.recv_timeout(DEADLINE), Ok(CANCEL));
    assert!(before.logged().contains(" CH"));
    before.proxy.stop();
}

#[test]
fn servers_that_speak_something_else_are_refused() {
    let h1 = Origin::raw(|mut stream| {
        let _ = stream.read(&mut [0; 100]);
        let _ = std::io::Write::write_all(
            &mut stream,
            b"HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n",
        );
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    // A head without a status, and one with an invalid field.
    let faulty = |block: &'static [u8]| {
        server(move |mut raw, _| {
            while let Some((stream, _)) = raw.until(HEADERS) {
                raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, block));
            }
        })
    };
    for at in [
        h1.at,
        faulty(b"\x00\x01a\x01b"),
        faulty(b"\x88\x00\x01A\x01b"),
        faulty(b"\xff\xff\xff\xff\xff"),
    ] {
        let before = Before::start(at, "");
        let answer = Client::connect(before.front).get("/");
        assert_eq!(answer.status, 502);
        assert!(before.logged().starts_with("502 "));
        before.proxy.stop();
    }
}

#[test]
fn an_idle_server_that_does_not_answer_a_ping_loses_its_connection() {
    let (ended, end) = channel();
    let at = server(move |mut raw, _| {
        let (stream, _) = raw.until(HEADERS).expect("a request");
        raw.send(&response(stream, b"ok"));
        let was_pinged = raw.until(PING).is_some();
        let _ = ended.send((was_pinged, raw.goaway()));
    });
    let before = Before::start(at, "default-server idle-ping 20ms pool-purge-delay 1h");
    assert_eq!(Client::connect(before.front).get("/").text(), "ok");
    assert_eq!(end.recv_timeout(DEADLINE), Ok((true, None)));
    before.proxy.stop();
}
