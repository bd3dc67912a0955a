//! The sockets of the runtime interface and their threads: one per socket, one per connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use config::model::Bind;
use net::listen::ListenOptions;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::CurrentSubjects;
use super::command::{Client, Level, Severity};
use super::request::Limits;
use super::session::{Session, Talk};
use crate::serve::shown;
use crate::sockets::Sockets;

/// A connection closes after this much silence (manual §3.1 stats timeout).
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Most connections at a time without `stats maxconn`.
const MAXCONN_DEFAULT: u32 = 10;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// After the last answer, input is discarded for this long: closing with unread input resets the
/// connection, and the client could lose that answer.
const LINGER: Duration = Duration::from_millis(500);
/// Most bytes that are discarded then.
const LINGER_BYTES_MAX: u64 = 1 << 20;

/// The sockets, opened before privileges are dropped.
pub(crate) struct Control {
    listeners: Vec<Listener>,
}

/// A listening socket of the runtime interface.
pub(crate) struct Listener {
    fd: Arc<OwnedFd>,
    is_unix: bool,
    rights: Rights,
}

/// The rights that a `stats socket` line gives to its connections.
#[derive(Clone, Copy)]
struct Rights {
    severity: Severity,
    level: Level,
    exposes_listeners: bool,
}

/// The sockets accept connections until this value is dropped.
pub(crate) struct CliServer {
    served: Served,
    _open: io::PipeWriter,
}

/// Serves connections that the master hands over.
pub(crate) struct MasterConnections(Served);

/// Opens sockets.
///
/// # Errors
/// Why a socket cannot be bound.
pub(crate) fn listen(binds: &[Bind], sockets: &mut Sockets) -> Result<Vec<Listener>, String> {
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
        let opened = sockets.open(bind, &options, 1).map_err(|error| {
            let (origin, address) = (&bind.origin, shown(&bind.address));
            format!("Binding [{origin}] for stats socket: {error} for [{address}].")
        })?;
        let is_unix = opened.local.is_unix();
        let fds = opened.own.into_iter().chain(opened.shared);
        all.extend(fds.map(|fd| Listener {
            fd,
            is_unix,
            rights: Rights {
                severity: Severity::of(bind),
                level: Level::of(bind),
                exposes_listeners: bind.exposes_listeners,
            },
        }));
    }
    Ok(all)
}

impl Control {
    /// Whether there is a socket.
    pub fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// # Errors
    /// Why a socket cannot be bound.
    pub fn open(binds: &[Bind], sockets: &mut Sockets) -> Result<Self, String> {
        listen(binds, sockets).map(|listeners| Control { listeners })
    }

    /// Starts the threads that accept connections.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(self, subjects: Arc<CurrentSubjects>) -> io::Result<CliServer> {
        let (closed, open) = io::pipe()?;
        let closed = Arc::new(closed);
        let first = subjects.get();
        let global = &first.runtime_config.config.global;
        let places = Arc::new(Places::new(global.stats_maxconn.unwrap_or(MAXCONN_DEFAULT)));
        let served = Served {
            timeout: global.stats_timeout.unwrap_or(TIMEOUT_DEFAULT),
            limits: Limits {
                line_bytes: global.tune.bufsize_bytes,
                payload_bytes: global.tune.cli_payload_bytes.max(global.tune.bufsize_bytes),
            },
            subjects,
        };
        for listener in self.listeners {
            let own = served.clone();
            let rights = listener.rights;
            let talk = move |connection| own.talk(connection, rights);
            listener.start(&places, Some(&closed), talk)?;
        }
        Ok(CliServer {
            served,
            _open: open,
        })
    }
}

impl CliServer {
    /// Serves the connections that the master hands over.
    pub fn visitors(&self) -> MasterConnections {
        MasterConnections(self.served.clone())
    }
}

impl MasterConnections {
    /// Serves a connection from the master, with all rights, on a thread of its own.
    pub fn serve(&self, stream: UnixStream) {
        let served = self.0.clone();
        let rights = Rights {
            severity: Severity::None,
            level: Level::Admin,
            exposes_listeners: false,
        };
        let connection = Connection {
            stream: Stream::Unix(stream),
            exposes_listeners: false,
        };
        // If no thread can be started, the connection closes.
        let _ = thread("cli-conn")
            .and_then(|builder| builder.spawn(move || served.talk(connection, rights)));
    }
}

impl Listener {
    pub fn level(&self) -> Level {
        self.rights.level
    }

    pub fn severity(&self) -> Severity {
        self.rights.severity
    }

    /// Accepts connections on a thread of its own, at most the given number at a time, and serves
    /// each on a thread of its own.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn serve(
        self,
        connections_max: u32,
        talk: impl Fn(Connection) + Clone + Send + 'static,
    ) -> io::Result<()> {
        self.start(&Arc::new(Places::new(connections_max)), None, talk)
    }

    fn start(
        self,
        places: &Arc<Places>,
        closed: Option<&Arc<io::PipeReader>>,
        talk: impl Fn(Connection) + Clone + Send + 'static,
    ) -> io::Result<()> {
        let (places, closed) = (Arc::clone(places), closed.cloned());
        let builder = thread("cli")?;
        builder.spawn(move || accept(&self, &places, closed.as_deref(), &talk))?;
        Ok(())
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn thread(name: &str) -> io::Result<std::thread::Builder> {
    const STACK_BYTES: usize = 256 << 10;
    Ok(std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES))
}

/// The state that every connection needs.
#[derive(Clone)]
struct Served {
    subjects: Arc<CurrentSubjects>,
    timeout: Duration,
    limits: Limits,
}

impl Served {
    fn talk(&self, mut connection: Connection, rights: Rights) {
        let mut session = Session::new(rights.level, rights.severity, self.timeout);
        // A client that has gone needs no message.
        let _ = session
            .talk(&mut connection, self.limits, &self.subjects)
            .and_then(|()| connection.end());
    }
}

/// Limits the connections that are served at a time (manual §3.1 stats maxconn); the others wait to
/// be accepted.
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
fn accept(
    listener: &Listener,
    places: &Arc<Places>,
    closed: Option<&io::PipeReader>,
    talk: &(impl Fn(Connection) + Clone + Send + 'static),
) {
    while comes(&listener.fd, closed) {
        places.take();
        let connection = match accept_with(&listener.fd, SocketFlags::CLOEXEC) {
            Ok(fd) => Connection::new(fd, listener),
            Err(error) => {
                places.give();
                // Another process that shares the socket may have accepted the connection.
                if error != Errno::AGAIN {
                    // The process may be out of descriptors: pause instead of spinning.
                    std::thread::sleep(ACCEPT_PAUSE);
                }
                continue;
            }
        };
        let (talk, own) = (talk.clone(), Arc::clone(places));
        let spawned = thread("cli-conn").and_then(|builder| {
            builder.spawn(move || {
                talk(connection);
                own.give();
            })
        });
        if spawned.is_err() {
            places.give();
        }
    }
}

/// Waits for a connection. Returns false when no more are accepted.
fn comes(socket: &OwnedFd, closed: Option<&io::PipeReader>) -> bool {
    let mut waits = vec![PollFd::new(socket, PollFlags::IN)];
    waits.extend(closed.map(|closed| PollFd::new(closed, PollFlags::IN)));
    loop {
        match poll(&mut waits, None) {
            Ok(_) => return waits[1..].iter().all(|wait| wait.revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// A TCP or a UNIX connection.
pub(crate) struct Connection {
    stream: Stream,
    exposes_listeners: bool,
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Runs the same expression with either stream.
macro_rules! either {
    ($connection:expr, $stream:ident => $does:expr) => {
        match &$connection.stream {
            Stream::Unix($stream) => $does,
            Stream::Tcp($stream) => $does,
        }
    };
}

impl Connection {
    fn new(fd: OwnedFd, listener: &Listener) -> Self {
        Connection {
            stream: if listener.is_unix {
                Stream::Unix(UnixStream::from(fd))
            } else {
                Stream::Tcp(TcpStream::from(fd))
            },
            exposes_listeners: listener.rights.exposes_listeners,
        }
    }

    /// Sets how long the client may be silent, and how long it may take no data.
    ///
    /// # Errors
    /// The kernel refuses the time.
    pub fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        either!(self, stream => {
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))
        })
    }

    /// Forwards bytes in both directions until both have ended.
    ///
    /// # Errors
    /// One of the two sides has disconnected.
    pub fn relay(&self, other: &UnixStream) -> io::Result<()> {
        let mut from_client = either!(self, stream => stream.as_fd().try_clone_to_owned())
            .map(std::fs::File::from)?;
        let mut to_other = other.try_clone()?;
        let upwards = thread("cli-relay")?.spawn(move || {
            // The other direction reports the error.
            let _ = io::copy(&mut from_client, &mut to_other);
            let _ = to_other.shutdown(Shutdown::Write);
        })?;
        let mut to_client: Box<dyn Write> = either!(self, stream => Box::new(stream));
        let mut from_other = other;
        let copied = io::copy(&mut from_other, &mut to_client);
        drop(to_client);
        either!(self, stream => stream.shutdown(Shutdown::Both))?;
        let _ = upwards.join();
        copied.map(drop)
    }

    /// Closes the sending direction, then discards the client's input for a moment.
    ///
    /// # Errors
    /// The client has disconnected.
    pub fn end(&mut self) -> io::Result<()> {
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
        self.set_timeouts(timeout)
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, stream => stream.as_raw_fd())
    }
}

impl Connection {
    /// Waits for an event of the connection. The kernel always reports an error, and that both
    /// directions are closed.
    fn waits_for(&self, events: PollFlags, wait: Duration) -> bool {
        let fd = either!(self, stream => stream.as_fd());
        let deadline_ns = net::sys::monotonic_ns().saturating_add(wait.as_nanos() as u64);
        let mut waits = [PollFd::from_borrowed_fd(fd, events)];
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
}

impl Client for Connection {
    fn leaves_within(&self, wait: Duration) -> bool {
        // A client that closed only its sending direction still reads.
        self.waits_for(PollFlags::empty(), wait)
    }

    fn interrupts_within(&self, wait: Duration) -> bool {
        self.waits_for(PollFlags::IN, wait)
    }

    fn takes_listeners(&self) -> Option<&UnixStream> {
        match &self.stream {
            Stream::Unix(stream) if self.exposes_listeners => Some(stream),
            _ => None,
        }
    }
}
