//! The runtime interface on `stats socket` (management guide §9.3): for now the commands that tell what runs.
//!
//! One thread a socket, off the data path. A command that does not exist yet is answered as an unknown one, with the list
//! of those that do.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use config::model::{Bind, BindAddress};
use net::Addr;
use net::listen::{self, ListenAddr, ListenOptions};
use proxy::Running;

/// Bytes of one command line.
const COMMAND_BYTES_MAX: usize = 16 << 10;
/// Silence after which a connection is closed (manual §3.1 stats timeout).
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// One command: its words, what it does, its line of help.
struct Command {
    words: &'static str,
    help: &'static str,
    run: fn(&Running) -> String,
}

const COMMANDS: &[Command] = &[
    Command {
        words: "help",
        help: "this list",
        run: |_| help(),
    },
    Command {
        words: "show version",
        help: "the version",
        run: |_| crate::build::info().version + "\n",
    },
    Command {
        words: "show info",
        help: "facts of the process",
        run: show_info,
    },
];

/// The sockets, opened before privileges are dropped.
pub(crate) struct Control {
    sockets: Vec<(OwnedFd, bool)>,
}

impl Control {
    /// # Errors
    /// A socket that cannot be bound, in words.
    pub fn open(binds: &[Bind]) -> Result<Self, String> {
        let mut sockets = Vec::new();
        for bind in binds {
            let (addr, is_unix) = match &bind.address {
                BindAddress::Addr(addr @ Addr::Unix(_)) => (ListenAddr::Bind(addr.clone()), true),
                BindAddress::Addr(addr) => (ListenAddr::Bind(addr.clone()), false),
                BindAddress::Fd(fd) => (ListenAddr::Inherited(*fd), false),
            };
            let options = ListenOptions {
                backlog: 16,
                unix_mode: bind.mode,
                unix_uid: bind.uid,
                unix_gid: bind.gid,
                ..ListenOptions::default()
            };
            let fd = listen::open(&addr, &options)
                .map_err(|error| format!("Binding [{}] for stats socket: {error}", bind.origin))?;
            sockets.push((fd, is_unix));
        }
        Ok(Control { sockets })
    }

    /// Starts serving.
    ///
    /// # Errors
    /// No thread could be made.
    pub fn start(self, running: &Arc<Running>) -> io::Result<()> {
        for (fd, is_unix) in self.sockets {
            let running = Arc::clone(running);
            let builder = std::thread::Builder::new()
                .name("cli".to_owned())
                .stack_size(128 << 10);
            builder.spawn(move || {
                // A socket that cannot be served any more ends its thread.
                let _ = if is_unix {
                    serve_unix(fd, &running)
                } else {
                    serve_tcp(fd, &running)
                };
            })?;
        }
        Ok(())
    }
}

fn serve_unix(fd: OwnedFd, running: &Running) -> io::Result<()> {
    let listener = UnixListener::from(fd);
    listener.set_nonblocking(false)?;
    serve(listener.incoming(), running, |stream, limit| {
        stream.set_read_timeout(limit)?;
        stream.set_write_timeout(limit)
    });
    Ok(())
}

fn serve_tcp(fd: OwnedFd, running: &Running) -> io::Result<()> {
    let listener = TcpListener::from(fd);
    listener.set_nonblocking(false)?;
    serve(listener.incoming(), running, |stream, limit| {
        stream.set_read_timeout(limit)?;
        stream.set_write_timeout(limit)
    });
    Ok(())
}

/// Answers one connection after the other, each with its time limit.
fn serve<S>(
    incoming: impl Iterator<Item = io::Result<S>>,
    running: &Running,
    set_limit: impl Fn(&S, Option<Duration>) -> io::Result<()>,
) where
    for<'a> &'a S: Read + Write,
{
    let limit = running
        .config
        .global
        .stats_timeout
        .unwrap_or(TIMEOUT_DEFAULT);
    for stream in incoming.flatten() {
        if set_limit(&stream, Some(limit)).is_ok() {
            // A client that left is not waited for.
            let _ = converse(&stream, &stream, running);
        }
    }
}

/// One line of commands, parted by semicolons, and its answers; then the connection closes, as HAProxy's does without `prompt`.
fn converse(mut input: impl Read, mut output: impl Write, running: &Running) -> io::Result<()> {
    let mut line = Vec::new();
    let mut chunk = [0; 1024];
    while !line.contains(&b'\n') && line.len() < COMMAND_BYTES_MAX {
        match input.read(&mut chunk)? {
            0 => break,
            count => line.extend_from_slice(&chunk[..count]),
        }
    }
    let text = String::from_utf8_lossy(&line);
    for command in text
        .lines()
        .next()
        .unwrap_or_default()
        .split(';')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        output.write_all(answer(command, running).as_bytes())?;
        output.write_all(b"\n")?;
    }
    output.flush()
}

fn answer(line: &str, running: &Running) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let known = COMMANDS.iter().find(|command| {
        let wanted: Vec<&str> = command.words.split(' ').collect();
        words.len() >= wanted.len()
            && wanted
                .iter()
                .zip(&words)
                .all(|(wanted, word)| wanted == word)
    });
    match known {
        Some(command) => (command.run)(running),
        None => format!("Unknown command: '{line}'.\n{}", help()),
    }
}

fn help() -> String {
    let line = |command: &Command| format!("  {:<40}: {}\n", command.words, command.help);
    format!(
        "The following commands are valid at this level:\n{}",
        COMMANDS.iter().map(line).collect::<String>()
    )
}

fn show_info(running: &Running) -> String {
    let process = &running.process;
    let uptime = (net::sys::now().mono_ns - process.started.mono_ns) / 1_000_000_000;
    format!(
        "Name: HAProxy\nVersion: {}\nNbthread: {}\nNbproc: 1\nProcess_num: 1\nPid: {}\nUptime_sec: {uptime}\nnode: {}\n",
        crate::build::info().version,
        process.nbthread,
        process.pid,
        running
            .config
            .global
            .node
            .as_deref()
            .unwrap_or(&process.hostname),
    )
}
