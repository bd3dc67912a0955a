//! The sockets of the runtime interface and their threads: one per socket, one per connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use config::model::Bind;
use net::listen::ListenOptions;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::Subjects;
use super::command::{Client, Level, Severity};
use super::request::Limits;
use super::session::{Session, Talk};
use crate::serve::shown;
use crate::sockets::Sockets;

/// Silence after which a connection is closed (manual §3.1 stats timeout).
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Connections at once without `stats maxconn`.
const MAXCONN_DEFAULT: u32 = 10;
/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a client that sends on is read after the last answer, so that a reset does not take that answer away.
const LINGER: Duration = Duration::from_millis(500);
/// Bytes that are read then at most.
const LINGER_BYTES_MAX: u64 = 1 << 20;

/// The sockets, opened before privileges are dropped.
pub(crate) struct Control {
    sockets: Vec<Socket>,
}

struct Socket {
    fd: Arc<OwnedFd>,
    is_unix: bool,
    rights: Rights,
}

/// What a `stats socket` line gives to its connections.
#[derive(Clone, Copy)]
struct Rights {
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
                rights: Rights {
                    severity: Severity::of(bind),
                    level: Level::of(bind),
                    exposes_listeners: bind.exposes_listeners,
                },
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
        let global = &subjects.running.config.global;
        let served = Served {
            places: Arc::new(Places::new(global.stats_maxconn.unwrap_or(MAXCONN_DEFAULT))),
            timeout: global.stats_timeout.unwrap_or(TIMEOUT_DEFAULT),
            limits: Limits {
                line_bytes: global.tune.bufsize_bytes,
                payload_bytes: global.tune.cli_payload_bytes.max(global.tune.bufsize_bytes),
            },
            subjects: Arc::new(subjects),
        };
        for socket in self.sockets {
            let (served, closed) = (served.clone(), Arc::clone(&closed));
            thread("cli")?.spawn(move || serve(&served, &socket, &closed))?;
        }
        Ok(Doors { _open: open })
    }
}

fn thread(name: &str) -> io::Result<std::thread::Builder> {
    const STACK_BYTES: usize = 256 << 10;
    Ok(std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES))
}

/// What every connection needs.
#[derive(Clone)]
struct Served {
    subjects: Arc<Subjects>,
    places: Arc<Places>,
    timeout: Duration,
    limits: Limits,
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

#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a descriptor is free again"
)]
fn serve(served: &Served, socket: &Socket, closed: &io::PipeReader) {
    while comes(&socket.fd, closed) {
        served.places.take();
        let mut connection = match accept_with(&socket.fd, SocketFlags::CLOEXEC) {
            Ok(fd) => Connection::new(fd, socket),
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
        let rights = socket.rights;
        let spawned = thread("cli-conn").and_then(|builder| {
            builder.spawn(move || {
                let mut session = Session::new(rights.level, rights.severity, own.timeout);
                // Who has gone is told nothing.
                let _ = session
                    .talk(&mut connection, own.limits, &own.subjects)
                    .and_then(|()| connection.end());
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

/// A connection of either kind.
struct Connection {
    stream: Stream,
    exposes_listeners: bool,
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Does the same with either stream.
macro_rules! either {
    ($connection:expr, $stream:ident => $does:expr) => {
        match &$connection.stream {
            Stream::Unix($stream) => $does,
            Stream::Tcp($stream) => $does,
        }
    };
}

impl Connection {
    fn new(fd: OwnedFd, socket: &Socket) -> Self {
        Connection {
            stream: match socket.is_unix {
                true => Stream::Unix(UnixStream::from(fd)),
                false => Stream::Tcp(TcpStream::from(fd)),
            },
            exposes_listeners: socket.rights.exposes_listeners,
        }
    }

    /// Sends the end, and reads what the client still sends for a moment.
    fn end(&mut self) -> io::Result<()> {
        either!(self, stream => stream.shutdown(Shutdown::Write))?;
        self.set_timeout(LINGER)?;
        io::copy(&mut self.take(LINGER_BYTES_MAX), &mut io::sink())?;
        Ok(())
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => { let mut stream = stream; stream.read(into) })
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => { let mut stream = stream; stream.write(bytes) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Talk for Connection {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        either!(self, stream => {
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))
        })
    }
}

impl Client for Connection {
    fn ends_within(&self, wait: Duration) -> bool {
        let fd = either!(self, stream => stream.as_fd());
        let deadline_ns = net::sys::monotonic_ns().saturating_add(wait.as_nanos() as u64);
        let mut waits = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
        loop {
            let left_ns = deadline_ns.saturating_sub(net::sys::monotonic_ns());
            let left = Timespec {
                tv_sec: (left_ns / 1_000_000_000) as i64,
                tv_nsec: (left_ns % 1_000_000_000) as i64,
            };
            match poll(&mut waits, Some(&left)) {
                Ok(0) => return false,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return true,
            }
        }
    }

    fn takes_listeners(&self) -> Option<&UnixStream> {
        match &self.stream {
            Stream::Unix(stream) if self.exposes_listeners => Some(stream),
            _ => None,
        }
    }
}
