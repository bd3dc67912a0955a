//! What connections cost. Alone in its program: it needs most of the descriptors that there are.

#[path = "it/common/mod.rs"]
mod common;

use std::fs;

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

/// A line of the kernel's summary of a process' memory, bytes.
fn memory(pid: u32, name: &str) -> usize {
    let text =
        fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the kernel's summary");
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
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
    let at_start = memory(pid, "Anonymous:");
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
    let before = memory(pid, "Private_Dirty:");
    let mut clients: Vec<Client> = (0..IDLE).map(|_| connect()).collect();
    let each = memory(pid, "Private_Dirty:").saturating_sub(before) / IDLE;
    assert!(each <= BYTES_A_CONNECTION, "{each} bytes a connection");
    // They are all still there.
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.get("/again").status, 200);
    }
    proxy.stop();
}
