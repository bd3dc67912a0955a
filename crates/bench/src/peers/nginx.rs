//! nginx with a configuration equal to HAProxy's.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{Peer, Setting, fill, on_path};

const TEMPLATE: &str = include_str!("../../templates/nginx.conf");

/// nginx as installed on this system.
pub const PEER: Peer = Peer {
    name: "nginx",
    traces: false,
    find: || on_path("nginx"),
    command,
};

fn command(program: &Path, setting: &Setting, dir: &Path) -> io::Result<Command> {
    let log = match setting.log {
        Some(sink) => format!("    access_log syslog:server={sink},facility=local0;"),
        None => "    access_log off;".to_owned(),
    };
    let text = fill(
        TEMPLATE,
        &[
            ("connections_max", &setting.connections_max),
            ("files_max", &(2 * setting.connections_max + 100)),
            ("workers", &setting.workers),
            ("listen", &setting.listen),
            ("origin", &setting.origin),
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
