//! The runtime interface on `stats socket` (management guide §9.3): for now the commands that tell what runs, and those of the
//! filter `opentelemetry` ([`otel`]) and the collectors.
//!
//! One thread a socket and one a connection, off the data path, which has no part in them. A command of HAProxy's that does not exist yet
//! is answered with just that, an unknown one with the list of those that do.

mod collectors;
mod info;
mod known;
mod otel;
mod status;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use config::model::Bind;
use net::listen::ListenOptions;
use net::logs::Dropped;
use proxy::Running;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::collectors::Watched;
use crate::exports::Exports;
use crate::handover::{self, Exposed};
use crate::serve::{Inboxes, shown};
use crate::sockets::Sockets;

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
    subjects: &'a Subjects,
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
        run: info::show,
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
    sockets: Vec<Socket>,
}

struct Socket {
    fd: Arc<OwnedFd>,
    is_unix: bool,
    severity: Severity,
    level: Level,
    exposes_listeners: bool,
}

/// The sockets accept connections until this goes.
pub(crate) struct Doors {
    _open: io::PipeWriter,
}

impl Control {
    /// # Errors
    /// A socket that cannot be bound, in words.
    pub fn open(binds: &[Bind], sockets: &mut Sockets) -> Result<Self, String> {
        let mut all = Vec::new();
        for bind in binds {
            let options = ListenOptions {
                backlog: 16,
                unix_mode: bind.mode,
                unix_uid: bind.uid,
                unix_gid: bind.gid,
                reuse_port: true,
                ..ListenOptions::default()
            };
            let opened = sockets.open(&bind.address, &options, 1).map_err(|error| {
                let (origin, address) = (&bind.origin, shown(&bind.address));
                format!("Binding [{origin}] for stats socket: {error} for [{address}].")
            })?;
            let is_unix = opened.local.is_unix();
            let fds = opened.own.into_iter().chain(opened.shared);
            all.extend(fds.map(|fd| Socket {
                fd,
                is_unix,
                severity: Severity::of(bind),
                level: Level::of(bind),
                exposes_listeners: bind.exposes_listeners,
            }));
        }
        Ok(Control { sockets: all })
    }

    /// Starts serving.
    ///
    /// # Errors
    /// No thread could be made.
    pub fn start(self, subjects: Subjects) -> io::Result<Doors> {
        let (closed, open) = io::pipe()?;
        let closed = Arc::new(closed);
        let subjects = Arc::new(subjects);
        let places = Arc::new(Places::new(
            subjects
                .running
                .config
                .global
                .stats_maxconn
                .unwrap_or(MAXCONN_DEFAULT),
        ));
        for socket in self.sockets {
            let served = Served {
                subjects: Arc::clone(&subjects),
                places: Arc::clone(&places),
                severity: socket.severity,
                level: socket.level,
                exposes_listeners: socket.exposes_listeners,
            };
            let closed = Arc::clone(&closed);
            thread("cli")?.spawn(move || match socket.is_unix {
                true => serve::<UnixStream>(&served, &socket.fd, &closed),
                false => serve::<TcpStream>(&served, &socket.fd, &closed),
            })?;
        }
        Ok(Doors { _open: open })
    }
}

fn thread(name: &str) -> io::Result<std::thread::Builder> {
    const STACK_BYTES: usize = 128 << 10;
    Ok(std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES))
}

/// What commands are about.
pub(crate) struct Subjects {
    pub running: Arc<Running>,
    pub exports: Option<Arc<Exports>>,
    pub collectors: Vec<Watched>,
    pub workers: Inboxes,
    pub shared: Arc<proxy::Shared>,
    /// That the process may have.
    pub descriptors: u64,
    pub dropped_logs: Arc<Dropped>,
    pub exposed: Arc<Exposed>,
}

/// What every connection of a socket shares.
#[derive(Clone)]
struct Served {
    subjects: Arc<Subjects>,
    places: Arc<Places>,
    severity: Severity,
    level: Level,
    exposes_listeners: bool,
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
trait Talk: Read + Write + Send + From<OwnedFd> + 'static {
    fn set_timeouts(&self, timeout: Duration) -> io::Result<()>;

    /// What can be given descriptors.
    fn unix(&self) -> Option<&UnixStream>;
}

macro_rules! talks {
    ($($kind:ty, $self:ident => $unix:expr;)*) => {$(
        impl Talk for $kind {
            fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(timeout))?;
                self.set_write_timeout(Some(timeout))
            }

            fn unix(&$self) -> Option<&UnixStream> {
                $unix
            }
        }
    )*};
}
talks! {
    TcpStream, self => None;
    UnixStream, self => Some(self);
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a descriptor is free again"
)]
fn serve<T: Talk>(served: &Served, socket: &OwnedFd, closed: &io::PipeReader) {
    while comes(socket, closed) {
        served.places.take();
        let stream = match accept_with(socket, SocketFlags::CLOEXEC) {
            Ok(fd) => T::from(fd),
            Err(error) => {
                served.places.give();
                // Another process may have been faster.
                if error != Errno::AGAIN {
                    // Descriptors may be exhausted: no reason to spin.
                    std::thread::sleep(ACCEPT_PAUSE);
                }
                continue;
            }
        };
        let own = served.clone();
        let spawned = thread("cli-conn").and_then(|builder| {
            builder.spawn(move || {
                let timeout = own
                    .subjects
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

/// Waits for a connection; false when no more are to be accepted.
fn comes(socket: &OwnedFd, closed: &io::PipeReader) -> bool {
    let mut waits = [
        PollFd::new(closed, PollFlags::IN),
        PollFd::new(socket, PollFlags::IN),
    ];
    loop {
        match poll(&mut waits, None) {
            Ok(_) => return waits[0].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// One line of commands, parted by semicolons, and its answers; then the connection closes, as HAProxy's does without `prompt`.
fn converse(mut stream: impl Talk, served: &Served) -> io::Result<()> {
    let line = read_line(&mut stream)?;
    let text = String::from_utf8_lossy(&line);
    if text.trim_end() == handover::COMMAND {
        return match stream.unix().filter(|_| served.exposes_listeners) {
            Some(unix) => served.subjects.exposed.give(unix),
            None => Ok(()),
        };
    }
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
            subjects: &served.subjects,
            level: served.level,
            rest: &words[command.words.split(' ').count()..],
        }),
        None => match known::not_yet(&words) {
            Some(command) => Reply::Refused(format!(
                "Command '{command}' is known but not implemented yet by this version.\n"
            )),
            None => Reply::Said(format!(
                "Unknown command: '{line}'.\n{}",
                help(served.level)
            )),
        },
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
