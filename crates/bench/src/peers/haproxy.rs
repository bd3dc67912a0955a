//! HAProxy, and the configuration that Spangate shares with it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Listener, Peer, Servers, Setting, fill, first_line, on_path};

const TEMPLATE: &str = include_str!("../../templates/haproxy.cfg");

/// The lines of a frontend that exports its statistics.
const OBSERVED: &str = "    option socket-stats
    stats enable
    stats uri /stats
    http-request use-service prometheus-exporter if { path /metrics }";

/// HAProxy as installed on this system.
pub const PEER: Peer = Peer {
    name: "haproxy",
    reads_haproxy: true,
    traces: false,
    http2_servers: true,
    http3: true,
    checks_servers: true,
    logs: true,
    settle_ms: 0,
    version: |program| first_line(program, &["-v"]),
    find: || on_path("haproxy"),
    command: |program, setting, dir| command(program, setting, &dir.join("haproxy.cfg")),
};

/// Writes the configuration to `file` and returns the command that serves it in the foreground.
pub fn command(program: &Path, setting: &Setting, file: &Path) -> io::Result<Command> {
    write_config(setting, file)?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(file);
    Ok(command)
}

/// Writes the configuration to `file`.
pub fn write_config(setting: &Setting, file: &Path) -> io::Result<()> {
    let log = setting
        .log
        .map(|sink| format!("    log {sink} local0\n    option httplog"))
        .unwrap_or_default();
    let limits = if setting.strict_limits {
        ""
    } else {
        "    no strict-limits"
    };
    let workers = setting
        .workers
        .map(|count| format!("    nbthread {count}"))
        .unwrap_or_default();
    let bind = match &setting.listener {
        Listener::Http => String::new(),
        Listener::Https(pem) => format!(" ssl crt {pem}"),
        Listener::Http2(pem) => format!(" ssl crt {pem} alpn h2,http/1.1"),
        Listener::ClearHttp2 => " proto h2".to_owned(),
        Listener::Http3(pem) => format!(
            " ssl crt {pem} alpn h2,http/1.1\n    bind quic4@{} ssl crt {pem} alpn h3",
            setting.listen
        ),
    };
    let (reuse, server) = match setting.servers {
        Servers::Kept => ("    http-reuse always", ""),
        Servers::Default => ("", ""),
        Servers::Fresh => ("    http-reuse never\n    option http-server-close", ""),
        Servers::Http2 => ("    http-reuse always", " proto h2"),
    };
    let (observed, check) = if setting.watched {
        (OBSERVED, " check inter 100ms")
    } else {
        ("", "")
    };
    let choice = match setting.host {
        Some(host) => format!("    use_backend origin if {{ req.hdr(host) -i {host} }}"),
        None => "    default_backend origin".to_owned(),
    };
    let servers: String = setting
        .origins()
        .enumerate()
        .map(|(number, origin)| format!("    server origin{number} {origin}{server}{check}\n"))
        .collect();
    let text = fill(
        TEMPLATE,
        &[
            ("connections_max", &setting.connections_max),
            ("workers", &workers),
            ("bind", &bind),
            ("reuse", &reuse),
            ("servers", &servers),
            ("choice", &choice),
            ("observed", &observed),
            ("listen", &setting.listen),
            ("log", &log),
            ("limits", &limits),
            ("global", &setting.global),
            ("rules", &setting.rules),
        ],
    );
    fs::write(file, text)
}
