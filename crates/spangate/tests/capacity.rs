//! What connections cost. Alone in its program: it needs most of the descriptors that there are.

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use common::http::Client;
use common::origin::Origin;
use common::{DEFAULTS, Proxy, address, listener};

/// Idle connections that are held, and what else this test has open.
const IDLE: usize = 10_000;
const SPARE: u64 = 500;
/// Bytes of private memory that an idle connection may cost.
const BYTES_A_CONNECTION: usize = 1024;
/// Memory of its own of a process that has served nothing yet. Pages of the program are the page cache's, and a program that
/// was just built has more of them resident.
const OWN_BYTES_AT_START: usize = 3 << 20;

/// The memory that a process has of its own, bytes. Pages of a program that was just built are not written to the disk yet and
/// count as private and dirty, so only anonymous memory is told.
fn own_memory(pid: u32) -> usize {
    let text =
        fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the kernel's summary");
    let line = text
        .lines()
        .find(|line| line.starts_with("Anonymous:"))
        .expect("the line");
    let kilobytes = line.split_whitespace().nth(1).expect("a number");
    kilobytes.parse::<usize>().expect("a number") << 10
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
        "global\n nbthread 2\n maxconn {}\n{}\n http-reuse always\nlisten l\n bind \"fd@${{FRONT}}\"\n server s {}\n",
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
    // What the first requests cost is no connection's.
    let warm: Vec<Client> = (0..50).map(|_| connect()).collect();
    drop(warm);
    let before = own_memory(pid);
    let mut clients: Vec<Client> = (0..IDLE).map(|_| connect()).collect();
    let each = own_memory(pid).saturating_sub(before) / IDLE;
    assert!(each <= BYTES_A_CONNECTION, "{each} bytes a connection");
    // They are all still there.
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.get("/again").status, 200);
    }
    proxy.stop();
}

/// Clients whose uploads nobody reads, and heads that do not end.
const STALLED: usize = 200;
/// Bytes of private memory that each may cost: `tune.bufsize` and what belongs to it, on both sides; of a head, what came of it.
const BYTES_AN_UPLOAD: usize = 48 << 10;
const BYTES_A_HEAD: usize = 24 << 10;
const HEAD_BYTES: usize = 14 << 10;
/// What the kernel holds for each on its way.
const KERNEL_BYTES: i32 = 16 << 10;

/// Sends what is taken without waiting.
fn offer(mut stream: &TcpStream, bytes: &[u8]) {
    stream.set_nonblocking(true).expect("a mode");
    let _ = stream.write(bytes);
}

/// Memory of the proxy for each of clients that do something, so many times.
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
        // One worker: what came before this request has been read.
        assert_eq!(probe.get("/ready").status, 200);
    }
    let each = own_memory(pid).saturating_sub(before) / STALLED;
    // What is stalled would hold up a soft stop.
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
    // The kernel accepts for it; nobody reads.
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
