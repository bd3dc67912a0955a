//! Traefik with a configuration equal to HAProxy's, in two files: the static and the dynamic part.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Listener, Peer, Servers, Setting, fill, first_line, on_path};

const START: &str = include_str!("../../templates/traefik.yml");
const ROUTES: &str = include_str!("../../templates/traefik-routes.yml");

/// Traefik as installed on this system.
pub const PEER: Peer = Peer {
    name: "traefik",
    reads_haproxy: false,
    traces: false,
    http2_servers: true,
    http3: false,
    checks_servers: false,
    // Its access logs go to files and to OTLP.
    logs: false,
    settle_ms: 1000,
    version: |program| first_line(program, &["version", "--format", "{{.Version}}"]),
    find: || on_path("traefik"),
    command,
};

fn command(program: &Path, setting: &Setting, dir: &Path) -> io::Result<Command> {
    if matches!(setting.listener, Listener::Http3(_)) {
        return Err(super::no_http3());
    }
    let routes = dir.join("traefik-routes.yml");
    let text = fill(
        START,
        &[("listen", &setting.listen), ("routes", &routes.display())],
    );
    let start = dir.join("traefik.yml");
    fs::write(&start, text)?;
    fs::write(&routes, fill_routes(setting))?;
    let mut command = Command::new(program);
    command.arg(format!("--configFile={}", start.display()));
    if let Some(workers) = setting.workers {
        command.env("GOMAXPROCS", workers.to_string());
    }
    Ok(command)
}

fn fill_routes(setting: &Setting) -> String {
    let rule = match setting.host {
        Some(host) => format!("Host(`{host}`)"),
        None => "PathPrefix(`/`)".to_owned(),
    };
    let (router_tls, tls) = match &setting.listener {
        Listener::Http | Listener::ClearHttp2 | Listener::Http3(_) => ("", String::new()),
        Listener::Https(pem) => ("      tls: {}", certificates(pem, "http/1.1")),
        Listener::Http2(pem) => ("      tls: {}", certificates(pem, "h2, http/1.1")),
    };
    let scheme = match setting.servers {
        Servers::Http2 => "h2c",
        Servers::Kept | Servers::Default | Servers::Fresh => "http",
    };
    let servers: Vec<String> = setting
        .origins()
        .map(|origin| format!("{{ url: \"{scheme}://{origin}\" }}"))
        .collect();
    // Idle connections to each server; the default is 200. A negative number keeps none.
    let kept = match setting.servers {
        Servers::Kept | Servers::Http2 => i64::from(setting.connections_max),
        Servers::Default => 200,
        Servers::Fresh => -1,
    };
    fill(
        ROUTES,
        &[
            ("listen", &setting.listen),
            ("rule", &rule),
            ("router_tls", &router_tls),
            ("servers", &servers.join(", ")),
            ("kept", &kept),
            ("tls", &tls),
        ],
    )
}

fn certificates(pem: &super::TlsFile, alpn: &str) -> String {
    format!(
        "tls:
  options: {{ default: {{ alpnProtocols: [{alpn}] }} }}
  stores: {{ default: {{ defaultCertificate: {{ certFile: \"{pem}\", keyFile: \"{pem}\" }} }} }}"
    )
}
