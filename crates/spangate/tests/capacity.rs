//! The memory of connections. This test has a program of its own, because it needs most of the
//! available descriptors.

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use common::http::Client;
use common::origin::Origin;
use common::{DEFAULTS, Proxy, address, listener};

/// The idle connections, and the other descriptors of this test.
const IDLE: usize = 10_000;
const SPARE: u64 = 500;
/// Most bytes of private memory per idle connection.
const BYTES_A_CONNECTION: usize = 1024;
/// Most private memory of a process that has served nothing yet.
const OWN_BYTES_AT_START: usize = 1 << 20;

/// The private memory of a process in bytes, without the program's own pages: those of a newly built
/// program are not written to the disk yet and count as private and dirty, and how many of them the
/// loader relocates depends on how far the program is optimised. Only anonymous memory counts.
fn own_memory(pid: u32) -> usize {
    let program = fs::read_link(format!("/proc/{pid}/exe")).expect("a program");
    let program = program.to_str().expect("a path in UTF-8");
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).expect("the mappings");
    let (mut kilobytes, mut is_program) = (0, false);
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').expect("two words");
        if !word.ends_with(':') {
            // A mapping begins with its addresses and ends with the path of its file.
            is_program = rest.ends_with(program);
        } else if word == "Anonymous:" && !is_program {
            let size = rest.split_whitespace().next().expect("a number");
            kilobytes += size.parse::<usize>().expect("a number");
        }
    }
    kilobytes << 10
}

#[test]
fn idle_connections_cost_little() {
    let descriptors = common::sys::raise_descriptors(IDLE as u64 + SPARE);
    if descriptors < IDLE as u64 + SPARE {
        return common::skipped(&format!(
            "{IDLE} connections need more than the {descriptors} descriptors that can be had"
        ));
    }
    let origin = Origin::echo();
    let front = listener();
    let config = format!(
        "global\n nbthread 2\n maxconn {}\n no strict-limits\n{}\n http-reuse always\nlisten l\n bind \"fd@${{FRONT}}\"\n server s {}\n",
        IDLE + 100,
        DEFAULTS.replace("global\n    nbthread 1\n", ""),
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let pid = proxy.running.pid();
    let at_start = own_memory(pid);
    assert!(
        at_start <= OWN_BYTES_AT_START,
        "{at_start} bytes at the start"
    );

    let connect = || {
        let mut client = Client::connect(address(&front));
        assert_eq!(client.get("/").status, 200);
        client.reader.rest = Vec::new();
        client
    };
    // The memory that the first requests need does not belong to a connection.
    let warm: Vec<Client> = (0..50).map(|_| connect()).collect();
    drop(warm);
    let before = own_memory(pid);
    let mut clients: Vec<Client> = (0..IDLE).map(|_| connect()).collect();
    let each = own_memory(pid).saturating_sub(before) / IDLE;
    assert!(each <= BYTES_A_CONNECTION, "{each} bytes a connection");
    // All connections are still open.
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.get("/again").status, 200);
    }
    proxy.stop();
}

/// Clients whose uploads are not read, and heads that do not end.
const STALLED: usize = 200;
/// Most bytes of private memory for each: `tune.bufsize` and its related data, on both sides; for a
/// head, the bytes received.
const BYTES_AN_UPLOAD: usize = 48 << 10;
const BYTES_A_HEAD: usize = 24 << 10;
const HEAD_BYTES: usize = 14 << 10;
/// The bytes that the kernel holds for each in transit.
const KERNEL_BYTES: i32 = 16 << 10;

/// Sends as many bytes as possible without waiting.
fn offer(mut stream: &TcpStream, bytes: &[u8]) {
    stream.set_nonblocking(true).expect("a mode");
    let _ = stream.write(bytes);
}

/// The proxy's memory for each of `times` clients that do something.
fn memory_of_each(config: &str, times: usize, act: impl Fn(&TcpStream)) -> usize {
    let front = listener();
    let proxy = Proxy::start(config, &[("FRONT", &front)]);
    let pid = proxy.running.pid();
    let mut probe = Client::connect(address(&front));
    assert_eq!(probe.get("/ready").status, 200);
    let before = own_memory(pid);
    let connect = |_| TcpStream::connect(address(&front)).expect("a connection");
    let clients: Vec<TcpStream> = (0..STALLED).map(connect).collect();
    for _ in 0..times {
        clients.iter().for_each(&act);
        // With one worker, all earlier input has been read at this point.
        assert_eq!(probe.get("/ready").status, 200);
    }
    let each = own_memory(pid).saturating_sub(before) / STALLED;
    // A stalled client would delay a soft stop.
    drop(proxy);
    each
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn stalled_peers_cost_no_more_than_their_buffers() {
    let needed = SPARE + 4 * STALLED as u64;
    if common::sys::raise_descriptors(needed) < needed {
        eprintln!("skipped: it needs {needed} descriptors");
        return;
    }
    // The kernel accepts connections, and the test reads nothing.
    let deaf = listener();
    common::sys::hold_little(&deaf, KERNEL_BYTES);
    let tune =
        format!("global\n tune.sndbuf.server {KERNEL_BYTES}\n tune.rcvbuf.client {KERNEL_BYTES}\n");
    let config = format!(
        "{tune}{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n http-request return status 200 if {{ path /ready }}\n server s {}\n",
        address(&deaf)
    );
    let bytes = vec![b'x'; 4 * KERNEL_BYTES as usize];
    let each = memory_of_each(&config, 4, |stream| {
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n";
        offer(stream, head);
        offer(stream, &bytes);
    });
    assert!(each <= BYTES_AN_UPLOAD, "{each} bytes an upload");
    let head = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_BYTES));
    let each = memory_of_each(&config, 1, |stream| offer(stream, head.as_bytes()));
    assert!(each <= BYTES_A_HEAD, "{each} bytes a head");
}
