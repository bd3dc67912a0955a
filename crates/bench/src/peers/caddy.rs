//! Caddy with a configuration equal to HAProxy's.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Listener, Peer, Servers, Setting, fill, first_line, on_path, printed};

const TEMPLATE: &str = include_str!("../../templates/Caddyfile");

/// Caddy as installed on this system.
pub const PEER: Peer = Peer {
    name: "caddy",
    reads_haproxy: false,
    traces: false,
    http2_servers: true,
    http3: true,
    checks_servers: false,
    logs: true,
    settle_ms: 0,
    version,
    find: || on_path("caddy"),
    command,
};

/// A program built with `go install` does not know its version; its module does.
fn version(program: &Path) -> String {
    let version = first_line(program, &["version"]);
    if version != "unknown" {
        return version;
    }
    let built = printed(program, &["build-info"]);
    let module = built.lines().find_map(|line| line.strip_prefix("mod\t"));
    let words = module.and_then(|module| module.split_whitespace().nth(1));
    words.map_or(version, str::to_owned)
}

fn command(program: &Path, setting: &Setting, dir: &Path) -> io::Result<Command> {
    let log = match setting.log {
        Some(sink) => format!("\tlog {{\n\t\toutput net udp/{sink}\n\t}}"),
        None => String::new(),
    };
    let (scheme, protocols, pem) = match &setting.listener {
        Listener::Http => ("http", "h1", None),
        Listener::Https(pem) => ("https", "h1", Some(pem)),
        Listener::Http2(pem) => ("https", "h1 h2", Some(pem)),
        Listener::ClearHttp2 => ("http", "h1 h2c", None),
        Listener::Http3(pem) => ("https", "h1 h2 h3", Some(pem)),
    };
    let tls = pem
        .map(|pem| format!("\ttls {pem} {pem}"))
        .unwrap_or_default();
    let kept = setting.connections_max;
    let keepalive = match setting.servers {
        Servers::Kept | Servers::Http2 => format!(
            "\t\t\tkeepalive 300s\n\t\t\tkeepalive_idle_conns {kept}\n\t\t\tkeepalive_idle_conns_per_host {kept}"
        ),
        Servers::Default => String::new(),
        Servers::Fresh => "\t\t\tkeepalive off".to_owned(),
    };
    let versions = match setting.servers {
        Servers::Http2 => "h2c 2",
        _ => "1.1",
    };
    let port = setting.listen.port();
    let sites = match setting.host {
        Some(host) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{}, {scheme}://localhost:{port}", setting.listen),
    };
    // Without a site for a host, it answers 200 without a body.
    let others = match setting.host {
        Some(_) => format!("{scheme}://:{port} {{\n\trespond 404\n}}"),
        None => String::new(),
    };
    let origins: Vec<String> = setting.origins().map(|one| one.to_string()).collect();
    let text = fill(
        TEMPLATE,
        &[
            ("sites", &sites),
            ("others", &others),
            ("ip", &setting.listen.ip()),
            ("protocols", &protocols),
            ("tls", &tls),
            ("log", &log),
            ("keepalive", &keepalive),
            ("versions", &versions),
            ("listen", &setting.listen),
            ("origins", &origins.join(" ")),
        ],
    );
    let file = dir.join("Caddyfile");
    fs::write(&file, text)?;
    let mut command = Command::new(program);
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(&file)
        // Its own data is removed together with the folder.
        .env("XDG_DATA_HOME", dir)
        .env("XDG_CONFIG_HOME", dir);
    if let Some(workers) = setting.workers {
        command.env("GOMAXPROCS", workers.to_string());
    }
    Ok(command)
}
