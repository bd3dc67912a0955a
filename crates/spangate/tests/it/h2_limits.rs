//! Timeouts, drains and limits of HTTP/2 connections, frame by frame.

use crate::common;

use std::net::{SocketAddr, UdpSocket};

use common::h2::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, Raw, SETTINGS, WINDOW_UPDATE,
    frame, get,
};
use common::origin::{Origin, ok};
use common::{DEADLINE, DEFAULTS, Proxy, accept, address, listener, sys};

const NO_ERROR: u32 = 0;
const REFUSED_STREAM: u32 = 7;

/// `POST` instead of `GET`.
fn post(path: &str) -> Vec<u8> {
    let mut block = get(path);
    block[0] = 0x83;
    block
}

fn code(payload: &[u8]) -> u32 {
    let at = payload.len().min(8) - 4;
    u32::from_be_bytes(payload[at..at + 4].try_into().unwrap())
}

fn start(origin: SocketAddr, more: &str) -> (Proxy, SocketAddr) {
    let front = listener();
    let config = format!(
        "{DEFAULTS}\n timeout tarpit 20s\n {more}\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request tarpit if {{ path /tarpit }}\n \
         default_backend b\nbackend b\n server s {origin}\n"
    );
    (Proxy::start(&config, &[("FRONT", &front)]), address(&front))
}

fn request(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(path))
}

#[test]
fn silent_connections_end_in_time() {
    let origin = Origin::echo();
    let more = "timeout http-request 100ms\n timeout http-keep-alive 100ms\n timeout client 200ms";
    let (proxy, front) = start(origin.at, more);
    // No bytes, a head that does not end, and a part of a frame.
    for bytes in [
        vec![],
        frame(HEADERS, END_STREAM, 1, &get("/")),
        vec![0, 0, 9, 1],
    ] {
        let mut raw = Raw::connect(front, &[]);
        raw.send(&bytes);
        assert_eq!(raw.goaway(), Some(NO_ERROR), "{bytes:?}");
    }
    // A timeout between requests.
    let mut raw = Raw::connect(front, &[]);
    raw.send(&request(1, "/"));
    assert_eq!(raw.until(HEADERS).unwrap().0, 1);
    assert_eq!(raw.goaway(), Some(NO_ERROR));
    // If a body does not arrive, the answer is 400, and the connection stays usable.
    let mut raw = Raw::connect(front, &[]);
    raw.send(&frame(HEADERS, END_HEADERS, 1, &post("/")));
    raw.send(&request(3, "/"));
    assert_eq!(raw.until(HEADERS).unwrap().0, 3);
    let (stream, block) = raw.until(HEADERS).expect("an answer");
    // `:status: 400` of the static table.
    assert_eq!((stream, block[0]), (1, 0x8c));
    raw.send(&request(5, "/"));
    assert_eq!(raw.until(HEADERS).unwrap().0, 5);
    proxy.stop();
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let origin = Origin::echo();
    let (proxy, front) = start(origin.at, "");
    let mut raw = Raw::connect(front, &[]);
    for stream in 0..101 {
        raw.send(&request(stream * 2 + 1, "/tarpit"));
    }
    let (stream, payload) = raw.until(RST_STREAM).expect("a refusal");
    assert_eq!((stream, code(&payload)), (201, REFUSED_STREAM));
    // The end of a stream makes room for another.
    raw.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
    raw.send(&request(203, "/"));
    assert_eq!(raw.until(HEADERS).unwrap().0, 203);
    proxy.stop();
}

#[test]
fn a_drained_process_tells_its_clients() {
    let (origin, held, release) = Origin::holding(|_| ok("done"));
    let (proxy, front) = start(origin.at, "");
    let mut idle = Raw::connect(front, &[]);
    idle.send(&request(1, "/"));
    assert_eq!(idle.until(HEADERS).unwrap().0, 1);
    let mut busy = Raw::connect(front, &[]);
    busy.send(&request(1, "/hold"));
    drop(accept(&held, "the request"));
    proxy.running.signal(libc::SIGUSR1);
    let (_, payload) = idle.until(GOAWAY).expect("a word");
    assert_eq!(code(&payload), NO_ERROR);
    assert_eq!(idle.goaway(), Some(NO_ERROR));
    let (_, payload) = busy.until(GOAWAY).expect("a word");
    assert_eq!(code(&payload), NO_ERROR);
    drop(accept(&release, "the server's wait"));
    assert_eq!(busy.until(HEADERS).unwrap().0, 1);
    assert_eq!(busy.until(DATA).unwrap().1, b"done");
    busy.goaway();
    drop((idle, busy));
    assert!(proxy.running.end().status.success());
}

#[test]
fn uploads_that_nobody_reads_stay_with_the_client() {
    // The server never reads from its connections.
    let silent = listener();
    sys::hold_little(&silent, 4096);
    let (proxy, front) = start(address(&silent), "global\n tune.sndbuf.server 16384\n");
    let mut raw = Raw::connect(front, &[]);
    raw.send(&frame(HEADERS, END_HEADERS, 1, &post("/")));
    let (mut window, mut sent) = (65_535u32, 0u64);
    raw.stream
        .set_read_timeout(Some(std::time::Duration::from_millis(200)))
        .unwrap();
    // As many bytes as the windows of stream and connection allow.
    let (mut stream_window, mut connection_window) = (65_535i64, 65_535i64);
    loop {
        let room = stream_window.min(connection_window).min(16_384);
        if room > 0 {
            assert!(raw.send(&frame(DATA, 0, 1, &vec![b'x'; room as usize])));
            stream_window -= room;
            connection_window -= room;
            sent += room as u64;
            continue;
        }
        let Some((kind, _, stream, payload)) = raw.frame() else {
            break;
        };
        match (kind, stream) {
            (WINDOW_UPDATE, 0) => connection_window += i64::from(code(&payload)),
            (WINDOW_UPDATE, _) => stream_window += i64::from(code(&payload)),
            (SETTINGS, _) => {
                for setting in payload.chunks_exact(6).filter(|setting| setting[1] == 4) {
                    let new = u32::from_be_bytes(setting[2..].try_into().unwrap());
                    stream_window += i64::from(new) - i64::from(window);
                    window = new;
                }
            }
            _ => {}
        }
    }
    // The windows, and the kernel's buffers.
    assert!(sent < 1 << 20, "{sent} bytes");
    proxy.stop();
}

#[test]
fn requests_that_are_refused_are_answered_or_reset_and_logged() {
    let origin = Origin::echo();
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let more = format!(
        " log {} format raw local0\n log-format \"%ft %ST %B %ts %{{+Q}}r\"\n",
        log.local_addr().unwrap()
    );
    let (proxy, front) = start(origin.at, &more);
    let line = || {
        let mut datagram = [0; 1000];
        let count = log.recv(&mut datagram).expect("a log line");
        String::from_utf8_lossy(&datagram[..count])
            .trim()
            .to_owned()
    };
    let mut raw = Raw::connect(front, &[]);
    // One field repeats, which is in the dynamic table after its first use.
    let mut large = get("/");
    large.extend([0x40, 1, b'x', 127, 0x81, 0x06]);
    large.extend([b'a'; 896]);
    large.extend([0xbe; 60]);
    raw.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &large));
    let (stream, block) = raw.until(HEADERS).expect("an answer");
    assert_eq!(
        (stream, String::from_utf8_lossy(&block).contains("431")),
        (1, true)
    );
    assert_eq!(line(), "f 0 0 PR \"<BADREQ>\"");
    // A name with capital letters.
    let mut malformed = get("/");
    malformed.extend(b"\x00\x01A\x01b");
    raw.send(&frame(HEADERS, END_STREAM | END_HEADERS, 3, &malformed));
    let (stream, payload) = raw.until(RST_STREAM).expect("a reset");
    assert_eq!((stream, code(&payload)), (3, 1));
    assert_eq!(line(), "f 0 0 PR \"<BADREQ>\"");
    // The connection stays usable.
    raw.send(&request(5, "/"));
    assert_eq!(raw.until(HEADERS).unwrap().0, 5);
    assert!(line().starts_with("f 200 "));
    proxy.stop();
}
