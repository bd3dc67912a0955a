//! Envoy with a configuration equal to HAProxy's.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::{Listener, Peer, Servers, Setting, fill, first_line, on_path};

const TEMPLATE: &str = include_str!("../../templates/envoy.yaml");

/// Envoy as installed on this system.
pub const PEER: Peer = Peer {
    name: "envoy",
    reads_haproxy: false,
    traces: false,
    http2_servers: true,
    http3: false,
    checks_servers: false,
    // Its access logs go to files and to gRPC.
    logs: false,
    settle_ms: 0,
    version,
    find: || on_path("envoy"),
    command,
};

/// The version without the program's path, which it prints first.
fn version(program: &Path) -> String {
    let line = first_line(program, &["--version"]);
    let path = program.display().to_string();
    line.trim_start_matches(&path).trim().to_owned()
}

fn command(program: &Path, setting: &Setting, dir: &Path) -> io::Result<Command> {
    let (codec, alpn) = match &setting.listener {
        Listener::Http => ("HTTP1", ""),
        Listener::Https(_) => ("HTTP1", "http/1.1"),
        Listener::Http2(_) => ("AUTO", "h2, http/1.1"),
        Listener::ClearHttp2 => ("HTTP2", ""),
        Listener::Http3(_) => return Err(super::no_http3()),
    };
    let tls = match &setting.listener {
        Listener::Https(pem) | Listener::Http2(pem) => fill(
            include_str!("../../templates/envoy-tls.yaml"),
            &[("pem", pem), ("alpn", &alpn)],
        ),
        Listener::Http | Listener::ClearHttp2 | Listener::Http3(_) => String::new(),
    };
    let origins: Vec<String> = setting.origins().map(endpoint).collect();
    let text = fill(
        TEMPLATE,
        &[
            ("listen", &setting.listen),
            ("ip", &setting.listen.ip()),
            ("port", &setting.listen.port()),
            ("codec", &codec),
            ("tls", &tls),
            ("host", &setting.host.unwrap_or("*")),
            ("origins", &origins.join(", ")),
            ("servers", &servers(setting)),
        ],
    );
    let file = dir.join("envoy.yaml");
    fs::write(&file, text)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file);
    // Hot restart shares memory between all Envoys of the machine.
    command.args(["--disable-hot-restart", "--log-level", "error"]);
    if let Some(workers) = setting.workers {
        command.args(["--concurrency", &workers.to_string()]);
    }
    Ok(command)
}

fn endpoint(origin: SocketAddr) -> String {
    let (ip, port) = (origin.ip(), origin.port());
    format!(
        "{{ endpoint: {{ address: {{ socket_address: {{ address: {ip}, port_value: {port} }} }} }} }}"
    )
}

/// The lines of the cluster for its connections.
fn servers(setting: &Setting) -> String {
    let (protocol, requests) = match setting.servers {
        Servers::Default => return String::new(),
        Servers::Kept => ("http_protocol_options", ""),
        Servers::Fresh => (
            "http_protocol_options",
            "\n          common_http_protocol_options: { max_requests_per_connection: 1 }",
        ),
        Servers::Http2 => ("http2_protocol_options", ""),
    };
    // By default, it refuses more than 1,024 requests at a time.
    let most = setting.connections_max.saturating_mul(2);
    format!(
        "      circuit_breakers:
        thresholds: [{{ max_connections: {most}, max_pending_requests: {most}, max_requests: {most} }}]
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {{ {protocol}: {{}} }}{requests}"
    )
}
