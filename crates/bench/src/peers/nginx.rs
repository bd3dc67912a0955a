//! nginx with a configuration equal to HAProxy's.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Listener, Peer, Servers, Setting, fill, first_line, on_path};

const TEMPLATE: &str = include_str!("../../templates/nginx.conf");

/// nginx as installed on this system.
pub const PEER: Peer = Peer {
    name: "nginx",
    reads_haproxy: false,
    traces: false,
    http2_servers: false,
    http3: true,
    checks_servers: false,
    logs: true,
    settle_ms: 0,
    version: |program| first_line(program, &["-v"]),
    find: || on_path("nginx"),
    command,
};

fn command(program: &Path, setting: &Setting, dir: &Path) -> io::Result<Command> {
    let log = match setting.log {
        Some(sink) => format!("    access_log syslog:server={sink},facility=local0;"),
        None => "    access_log off;".to_owned(),
    };
    // Debian's default configuration has `auto`.
    let workers = setting
        .workers
        .map_or("auto".to_owned(), |count| count.to_string());
    let (listener, pem) = match &setting.listener {
        Listener::Http => (String::new(), None),
        Listener::Https(pem) => (" ssl".to_owned(), Some(pem)),
        Listener::Http2(pem) => (" ssl http2".to_owned(), Some(pem)),
        Listener::ClearHttp2 => (" http2".to_owned(), None),
        // From version 1.25 on.
        Listener::Http3(pem) => {
            let quic = format!(" ssl;\n        listen {} quic reuseport", setting.listen);
            (quic, Some(pem))
        }
    };
    // Versions before 1.23.4 do not enable TLS 1.3 by default.
    let tls = pem
        .map(|pem| {
            format!(
                "        ssl_certificate {pem};\n        ssl_certificate_key {pem};\n        ssl_protocols TLSv1.2 TLSv1.3;"
            )
        })
        .unwrap_or_default();
    let (keepalive, connection) = match setting.servers {
        // Without `keepalive` it keeps no connections, which would not be a fair comparison.
        Servers::Kept | Servers::Default => (keepalive(setting.connections_max), ""),
        Servers::Fresh => (String::new(), "close"),
        Servers::Http2 => return Err(io::ErrorKind::Unsupported.into()),
    };
    // One server block of nginx serves every name, so another block must refuse the other names.
    let (server_name, others) = match setting.host {
        Some(host) => (
            format!("        server_name {host};"),
            format!(
                "    server {{\n        listen {} default_server;\n        return 404;\n    }}",
                setting.listen
            ),
        ),
        None => Default::default(),
    };
    let servers: String = setting
        .origins()
        .map(|origin| format!("        server {origin};\n"))
        .collect();
    let text = fill(
        TEMPLATE,
        &[
            ("connections_max", &setting.connections_max),
            ("files_max", &(2 * setting.connections_max + 100)),
            ("workers", &workers),
            ("listener", &listener),
            ("tls", &tls),
            ("keepalive", &keepalive),
            ("connection", &connection),
            ("listen", &setting.listen),
            ("servers", &servers),
            ("server_name", &server_name),
            ("others", &others),
            ("dir", &dir.display()),
            ("log", &log),
        ],
    );
    let file = dir.join("nginx.conf");
    fs::write(&file, text)?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(dir)
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(dir.join("nginx-error.log"));
    Ok(command)
}

/// The lines of `upstream` that keep connections to the origin.
fn keepalive(connections: u32) -> String {
    format!(
        "        keepalive {connections};\n        keepalive_requests 1000000000;\n        keepalive_timeout 300s;\n        keepalive_time 24h;"
    )
}
