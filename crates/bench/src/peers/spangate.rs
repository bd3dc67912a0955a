//! Spangate: the program beside ours, with HAProxy's configuration.

use super::{Peer, first_line, haproxy};

/// Spangate as built with this benchmark.
pub const PEER: Peer = Peer {
    name: "spangate",
    reads_haproxy: true,
    traces: true,
    http2_servers: true,
    http3: true,
    checks_servers: true,
    logs: true,
    settle_ms: 0,
    version: |program| first_line(program, &["-v"]),
    find: || {
        Some(std::env::current_exe().ok()?.with_file_name("spangate")).filter(|file| file.is_file())
    },
    command: |program, setting, dir| haproxy::command(program, setting, &dir.join("spangate.cfg")),
};
