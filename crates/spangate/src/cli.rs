//! The runtime interface on `stats socket` (management guide §9.3): for now the commands that tell what runs, and those of the
//! filter `opentelemetry` ([`otel`]) and the collectors.
//!
//! One thread a socket and one a connection, off the data path, which has no part in them. A command that does not exist yet is answered as an unknown one, with the list
//! of those that do.

mod collectors;
mod otel;
mod status;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use config::model::{Bind, BindAddress};
use net::Addr;
use net::listen::{self, ListenAddr, ListenOptions};
use proxy::Running;

use crate::collectors::Watched;
use crate::exports::Exports;
use crate::serve::Inboxes;

/// Bytes of one command line.
const COMMAND_BYTES_MAX: usize = 16 << 10;
/// Silence after which a connection is closed (manual §3.1 stats timeout).
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Connections at once without `stats maxconn`.
const MAXCONN_DEFAULT: u32 = 10;
/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// One command: its words, what it does, its line of help.
struct Command {
    words: &'static str,
    help: &'static str,
    level: Level,
    run: fn(&Asked<'_>) -> Reply,
}

/// A command that came.
struct Asked<'a> {
    running: &'a Running,
    exports: Option<&'a Exports>,
    collectors: &'a [Watched],
    workers: &'a Inboxes,
    /// The rights of the socket that it came to.
    level: Level,
    /// What stood after the command's words.
    rest: &'a [&'a str],
}

/// What a command answers.
#[derive(Debug, PartialEq)]
enum Reply {
    /// For programs: it never begins with a severity.
    Dump(String),
    Said(String),
    Refused(String),
}

/// What a socket may be asked (manual §5.1 level).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    User,
    Operator,
    Admin,
}

impl Level {
    fn of(bind: &Bind) -> Self {
        match bind.level.as_deref() {
            Some("user") => Level::User,
            Some("admin") => Level::Admin,
            _ => Level::Operator,
        }
    }
}

fn denied() -> Reply {
    Reply::Refused("Permission denied\n".to_owned())
}

const COMMANDS: &[Command] = &[
    Command {
        words: "help",
        help: "this list",
        level: Level::User,
        run: |asked| Reply::Said(help(asked.level)),
    },
    Command {
        words: "show version",
        help: "the version",
        level: Level::User,
        run: |_| Reply::Said(crate::build::info().version + "\n"),
    },
    Command {
        words: "show info",
        help: "facts of the process",
        level: Level::User,
        run: show_info,
    },
];

/// All of them.
fn commands() -> impl Iterator<Item = &'static Command> {
    COMMANDS
        .iter()
        .chain(collectors::COMMANDS)
        .chain(otel::COMMANDS)
}

/// The commands as `-dKcli` lists them.
pub(crate) fn listing() -> String {
    let mut words: Vec<&str> = commands().map(|command| command.words).collect();
    words.sort_unstable();
    words
        .into_iter()
        .map(|words| format!("{words} [WORKER] \n"))
        .collect()
}

/// The sockets, opened before privileges are dropped.
pub(crate) struct Control {
    sockets: Vec<(Socket, bool)>,
}

struct Socket {
    fd: OwnedFd,
    severity: Severity,
    level: Level,
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
                BindAddress::Fd(fd) => {
                    let local = net::sys::local_addr(*fd);
                    let is_unix = local.is_ok_and(|addr| addr.is_unix());
                    (ListenAddr::Inherited(*fd), is_unix)
                }
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
            let severity = Severity::of(bind);
            let level = Level::of(bind);
            let socket = Socket {
                fd,
                severity,
                level,
            };
            sockets.push((socket, is_unix));
        }
        Ok(Control { sockets })
    }

    /// Starts serving.
    ///
    /// # Errors
    /// No thread could be made.
    pub fn start(
        self,
        running: &Arc<Running>,
        exports: Option<&Arc<Exports>>,
        collectors: Vec<Watched>,
        workers: &Inboxes,
    ) -> io::Result<()> {
        let places = Arc::new(Places::new(
            running
                .config
                .global
                .stats_maxconn
                .unwrap_or(MAXCONN_DEFAULT),
        ));
        for (socket, is_unix) in self.sockets {
            let served = Served {
                running: Arc::clone(running),
                exports: exports.cloned(),
                collectors: collectors.clone(),
                workers: workers.clone(),
                places: Arc::clone(&places),
                severity: socket.severity,
                level: socket.level,
            };
            let fd = socket.fd;
            thread("cli")?.spawn(move || {
                if is_unix {
                    let listener = UnixListener::from(fd);
                    let _ = listener.set_nonblocking(false);
                    serve(&served, || listener.accept().map(|(stream, _)| stream));
                } else {
                    let listener = TcpListener::from(fd);
                    let _ = listener.set_nonblocking(false);
                    serve(&served, || listener.accept().map(|(stream, _)| stream));
                }
            })?;
        }
        Ok(())
    }
}

fn thread(name: &str) -> io::Result<std::thread::Builder> {
    const STACK_BYTES: usize = 128 << 10;
    Ok(std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES))
}

/// What every connection of a socket shares.
#[derive(Clone)]
struct Served {
    running: Arc<Running>,
    exports: Option<Arc<Exports>>,
    collectors: Vec<Watched>,
    workers: Inboxes,
    places: Arc<Places>,
    severity: Severity,
    level: Level,
}

/// Whether messages begin with how severe they are (manual §5.1 severity-output); dumps never do.
#[derive(Clone, Copy)]
enum Severity {
    None,
    Number,
    Text,
}

impl Severity {
    fn of(bind: &Bind) -> Self {
        match bind.severity_output.as_deref() {
            Some("number") => Severity::Number,
            Some("string") => Severity::Text,
            _ => Severity::None,
        }
    }

    fn apply(self, reply: Reply) -> String {
        let (number, name, text) = match reply {
            Reply::Dump(text) => return text,
            Reply::Said(text) => ('6', "info", text),
            Reply::Refused(text) => ('3', "err", text),
        };
        match self {
            Severity::None => text,
            Severity::Number => format!("[{number}]: {text}"),
            Severity::Text => format!("[{name}]: {text}"),
        }
    }
}

/// The connections that may be served at once (manual §3.1 stats maxconn); the others wait to be accepted.
struct Places {
    free: Mutex<u32>,
    freed: Condvar,
}

impl Places {
    fn new(count: u32) -> Self {
        Places {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    fn take(&self) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
    }

    fn give(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
    }
}

/// A connection of either kind.
trait Talk: Read + Write + Send + 'static {
    fn set_timeouts(&self, timeout: Duration) -> io::Result<()>;
}

macro_rules! talks {
    ($($kind:ty)*) => {$(
        impl Talk for $kind {
            fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(timeout))?;
                self.set_write_timeout(Some(timeout))
            }
        }
    )*};
}
talks!(TcpStream UnixStream);

#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a descriptor is free again"
)]
fn serve<T: Talk>(served: &Served, accept: impl Fn() -> io::Result<T>) {
    loop {
        served.places.take();
        let Ok(stream) = accept() else {
            served.places.give();
            // Descriptors may be exhausted: no reason to spin.
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let own = served.clone();
        let spawned = thread("cli-conn").and_then(|builder| {
            builder.spawn(move || {
                let timeout = own
                    .running
                    .config
                    .global
                    .stats_timeout
                    .unwrap_or(TIMEOUT_DEFAULT);
                if stream.set_timeouts(timeout).is_ok() {
                    let _ = converse(stream, &own);
                }
                own.places.give();
            })
        });
        if spawned.is_err() {
            served.places.give();
        }
    }
}

/// One line of commands, parted by semicolons, and its answers; then the connection closes, as HAProxy's does without `prompt`.
fn converse(mut stream: impl Read + Write, served: &Served) -> io::Result<()> {
    let line = read_line(&mut stream)?;
    let text = String::from_utf8_lossy(&line);
    for command in text.lines().next().unwrap_or_default().split(';') {
        stream.write_all(answer(command.trim(), served).as_bytes())?;
        stream.write_all(b"\n")?;
    }
    stream.flush()
}

/// What comes up to the first line's end, as far as a line may go. A signal that the process ignores, or its stop and going
/// on, ends no read of the standard library's `read_until`, as it would one of the system with a deadline (signal(7)).
fn read_line(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    const CHUNK_BYTES: usize = 1024;
    let limited = stream.take(COMMAND_BYTES_MAX as u64);
    let mut line = Vec::new();
    BufReader::with_capacity(CHUNK_BYTES, limited).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn answer(line: &str, served: &Served) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.is_empty() {
        return String::new();
    }
    let known = commands().find(|command| {
        let wanted: Vec<&str> = command.words.split(' ').collect();
        words.starts_with(&wanted)
    });
    let reply = match known {
        Some(command) if served.level < command.level => denied(),
        Some(command) => (command.run)(&Asked {
            running: &served.running,
            exports: served.exports.as_deref(),
            collectors: &served.collectors,
            workers: &served.workers,
            level: served.level,
            rest: &words[command.words.split(' ').count()..],
        }),
        None => Reply::Said(format!(
            "Unknown command: '{line}'.\n{}",
            help(served.level)
        )),
    };
    served.severity.apply(reply)
}

fn help(level: Level) -> String {
    let line = |command: &Command| format!("  {:<40}: {}\n", command.words, command.help);
    let permitted = commands().filter(|command| command.level <= level);
    format!(
        "The following commands are valid at this level:\n{}",
        permitted.map(line).collect::<String>()
    )
}

fn show_info(asked: &Asked<'_>) -> Reply {
    let running = asked.running;
    let process = &running.process;
    let uptime = (net::sys::now().mono_ns - process.started.mono_ns) / 1_000_000_000;
    Reply::Dump(format!(
        "Name: HAProxy\nVersion: {}\nNbthread: {}\nNbproc: 1\nProcess_num: 1\nPid: {}\nUptime_sec: {uptime}\nMaxconn: {}\nnode: {}\nDescription: {}\n",
        crate::build::info().version,
        process.nbthread,
        process.pid,
        running.config.global.maxconn.unwrap_or(0),
        running
            .config
            .global
            .node
            .as_deref()
            .unwrap_or(&process.hostname),
        running
            .config
            .global
            .description
            .as_deref()
            .unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that come in parts; none is a signal.
    struct Parts<'a>(&'a [&'a str]);

    impl Read for Parts<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some((part, rest)) = self.0.split_first() else {
                return Ok(0);
            };
            self.0 = rest;
            match part.as_bytes() {
                [] => Err(io::ErrorKind::Interrupted.into()),
                bytes => {
                    into[..bytes.len()].copy_from_slice(bytes);
                    Ok(bytes.len())
                }
            }
        }
    }

    #[test]
    fn a_line_is_read_to_its_end() {
        let line = |parts: &[&str]| {
            let line = read_line(&mut Parts(parts)).expect("a line");
            String::from_utf8(line).expect("text")
        };
        assert_eq!(line(&["show ", "", "info\n", "later"]), "show info\n");
        assert_eq!(line(&["show info"]), "show info");
        assert_eq!(line(&[]), "");
        let part = "x".repeat(1024);
        assert_eq!(line(&[&*part; 20]).len(), COMMAND_BYTES_MAX);
    }
}
