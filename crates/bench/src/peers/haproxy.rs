//! HAProxy, and the configuration that Spangate shares with it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Peer, Setting, fill, on_path};

const TEMPLATE: &str = include_str!("../../templates/haproxy.cfg");

/// HAProxy as installed on this system.
pub const PEER: Peer = Peer {
    name: "haproxy",
    traces: false,
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
    let text = fill(
        TEMPLATE,
        &[
            ("connections_max", &setting.connections_max),
            ("workers", &setting.workers),
            ("listen", &setting.listen),
            ("origin", &setting.origin),
            ("log", &log),
            ("limits", &limits),
            ("rules", &setting.rules),
        ],
    );
    fs::write(file, text)
}
