//! The origin: an HTTP/1.1 server that costs less than any proxy in front of it, so that the
//! measurement shows the proxy.
//!
//! Each thread has an edge-triggered epoll loop, all share one listener, and answers are built in
//! advance. It supports keep-alive, `Connection: close` and request bodies with a Content-Length,
//! which are discarded. It does not support pipelining: bytes that follow a request before its
//! answer are refused. A head has at most [`HEAD_BYTES_MAX`].

mod conn;
mod site;

pub use site::{Bodies, Site};

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Failure;
use crate::sys::{self, Epoll};
use conn::{Conn, Next};

/// The options.
pub const HELP: &str = "ADDR: serves /50, /16k, /64k and /1m on ADDR until Ctrl-C";

/// The longest request head in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The interval of checks whether the program must end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs the command.
///
/// # Errors
/// The address is missing or cannot be used.
pub fn run(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let address = parser.value()?.to_string_lossy().parse()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "the origin listens on {}",
        start(address, threads, Bodies::new())?.address
    );
    while !sys::interrupted() {
        sys::pause(LOOK_EVERY);
    }
    Ok(())
}

/// A running origin; its threads run as long as the process.
pub struct Origin {
    /// Its listening address.
    pub address: SocketAddr,
    accepted: Arc<AtomicU64>,
}

impl Origin {
    /// The number of accepted connections.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Serves `site` on a free loopback port; see [`start`].
///
/// # Errors
/// Those of [`start`].
pub fn start_here<S: Site>(threads: usize, site: S) -> io::Result<Origin> {
    start((Ipv4Addr::LOCALHOST, 0).into(), threads, site)
}

/// Serves `site` on `listen` with `threads` threads until the process ends.
///
/// # Errors
/// It cannot listen, or a thread cannot be started.
pub fn start<S: Site>(listen: SocketAddr, threads: usize, site: S) -> io::Result<Origin> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let shared = Arc::new((listener, site));
    let accepted = Arc::new(AtomicU64::new(0));
    for number in 0..threads {
        let shared = Arc::clone(&shared);
        let mut worker = Worker::new(&shared.0, Arc::clone(&accepted))?;
        std::thread::Builder::new()
            .name(format!("origin-{number}"))
            .spawn(move || worker.run(&shared.0, &shared.1))?;
    }
    Ok(Origin { address, accepted })
}

/// One thread's connections, indexed by descriptor.
struct Worker {
    epoll: Epoll,
    conns: Vec<Option<Conn>>,
    buffer: Vec<u8>,
    accepted: Arc<AtomicU64>,
}

impl Worker {
    fn new(listener: &TcpListener, accepted: Arc<AtomicU64>) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.watch_listener(listener)?;
        Ok(Self {
            epoll,
            conns: Vec::new(),
            buffer: vec![0; HEAD_BYTES_MAX],
            accepted,
        })
    }

    fn run<S: Site>(&mut self, listener: &TcpListener, site: &S) {
        let mut ready = Vec::with_capacity(Epoll::EVENTS_MAX);
        while self.epoll.wait(&mut ready).is_ok() {
            for &fd in &ready {
                if fd == listener.as_raw_fd() {
                    self.accept(listener);
                } else {
                    self.serve(fd, site);
                }
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            self.accepted.fetch_add(1, Ordering::Relaxed);
            let fd = stream.as_raw_fd();
            let usable = stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
            if !usable || self.epoll.watch_stream(&stream).is_err() {
                continue;
            }
            let Ok(slot) = usize::try_from(fd) else {
                continue;
            };
            if self.conns.len() <= slot {
                self.conns.resize_with(slot + 1, || None);
            }
            self.conns[slot] = Some(Conn::new(stream));
        }
    }

    fn serve<S: Site>(&mut self, fd: RawFd, site: &S) {
        let Some(slot) = usize::try_from(fd)
            .ok()
            .and_then(|slot| self.conns.get_mut(slot))
        else {
            return;
        };
        let Some(conn) = slot else { return };
        if conn.step(site, &mut self.buffer) == Next::Close {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests;
