//! Receives messages for `log-forward` sections: datagrams and streams, on one thread.
//!
//! Each section has a limited number of connections, and each connection a limited buffer. A
//! connection that breaks the framing is closed.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tls::stream::{Choose, TlsStream};
use tls::{Buffer, Failure, Progress, Session};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::{sleep, timeout};

use crate::frames::Frames;

/// Bytes per read of a connection.
const READ_BYTES: usize = 16 << 10;
/// Datagrams of a socket before other sockets have their turn.
const DATAGRAMS_A_TURN_MAX: usize = 64;
/// Pause after a failed accept: the process may be out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The stack size of the thread, bytes.
const STACK_BYTES: usize = 512 << 10;

/// Takes the messages; called on the receiving thread, it must not block.
pub trait Deliver: Send {
    /// A message that a section received; `from` is the address of its sender, where it has one.
    fn message(&mut self, section: usize, bytes: &[u8], from: Option<IpAddr>);

    /// The rest of a stream is lost, because it breaks the framing.
    fn lost(&mut self);

    /// No further message is at hand now.
    fn flush(&mut self);
}

/// A section `log-forward`.
pub struct Section {
    /// Sockets for datagrams.
    pub datagrams: Vec<UdpSocket>,
    /// Sockets for streams.
    pub listeners: Vec<Listener>,
    /// The most connections at a time.
    pub connections_max: usize,
    /// The longest silence of a connection; none for no limit.
    pub timeout: Option<Duration>,
    /// The longest message, bytes.
    pub message_bytes_max: usize,
    /// Messages of streams always end in a line feed.
    pub assumes_lines: bool,
}

/// TLS of a listening socket.
pub trait Acceptor: Send {
    /// Takes a place in the count of TLS connections, which ends with the value; none if no more
    /// are allowed.
    fn enter(&self) -> Option<Box<dyn Any>>;

    /// Continues a session whose client's hello is there ([`Session::accept`]).
    ///
    /// # Errors
    /// See [`Failure`].
    fn accept(
        &self,
        session: &mut Session,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure>;
}

/// A listening socket with its TLS.
pub struct Listener {
    /// The socket.
    pub socket: Socket,
    /// Its TLS; none for plain connections.
    pub acceptor: Option<Box<dyn Acceptor>>,
}

/// A listening socket.
#[derive(Debug)]
pub enum Socket {
    /// TCP
    Tcp(TcpListener),
    /// A UNIX socket.
    Unix(UnixListener),
}

/// The thread.
#[derive(Debug)]
pub struct Runner {
    thread: JoinHandle<()>,
    stage: watch::Sender<Stage>,
}

/// The life of the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Receives,
    /// Only open connections are served.
    Drains,
    Ended,
}

type Receiver = Rc<RefCell<Box<dyn Deliver>>>;

/// What each task of a section needs.
#[derive(Clone)]
struct Scene {
    section: Rc<SectionFacts>,
    deliver: Receiver,
    /// TLS of the socket of this task.
    acceptor: Option<Rc<dyn Acceptor>>,
    stage: watch::Receiver<Stage>,
}

struct SectionFacts {
    number: usize,
    timeout: Option<Duration>,
    message_bytes_max: usize,
    assumes_lines: bool,
    places: Arc<Semaphore>,
}

impl Runner {
    /// Starts the thread. `deliver` gets the messages with the index of their section.
    ///
    /// # Errors
    /// The thread or its runtime cannot be created, or a socket cannot be used.
    pub fn start(sections: Vec<Section>, deliver: Box<dyn Deliver>) -> io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        for section in &sections {
            for socket in &section.datagrams {
                socket.set_nonblocking(true)?;
            }
            for listener in &section.listeners {
                match &listener.socket {
                    Socket::Tcp(listener) => listener.set_nonblocking(true)?,
                    Socket::Unix(listener) => listener.set_nonblocking(true)?,
                }
            }
        }
        let (stage, stages) = watch::channel(Stage::Receives);
        let thread = std::thread::Builder::new()
            .name("log-forward".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let local = LocalSet::new();
                local.block_on(&runtime, async {
                    let mut stage = stages.clone();
                    let deliver = Rc::new(RefCell::new(deliver));
                    for (number, section) in sections.into_iter().enumerate() {
                        section.start(number, &deliver, &stages);
                    }
                    // The sender outlives the thread.
                    let _ = stage.wait_for(|stage| *stage == Stage::Ended).await;
                    // Sockets give what they have before they end.
                    yield_now().await;
                });
            })?;
        Ok(Runner { thread, stage })
    }

    /// Closes the sockets; open connections go on.
    pub fn stop_listening(&self) {
        // If the thread has ended, there is nothing to stop.
        let _ = self.stage.send(Stage::Drains);
    }

    /// Ends the thread and its connections.
    pub fn stop(self) {
        let _ = self.stage.send(Stage::Ended);
        // The panic hook has already reported a panic of the thread.
        let _ = self.thread.join();
    }
}

impl Section {
    fn start(self, number: usize, deliver: &Receiver, stage: &watch::Receiver<Stage>) {
        let scene = Scene {
            section: Rc::new(SectionFacts {
                number,
                timeout: self.timeout,
                message_bytes_max: self.message_bytes_max,
                assumes_lines: self.assumes_lines,
                places: Arc::new(Semaphore::new(
                    self.connections_max.min(Semaphore::MAX_PERMITS),
                )),
            }),
            deliver: Rc::clone(deliver),
            acceptor: None,
            stage: stage.clone(),
        };
        for socket in self.datagrams {
            // The runtime can register a descriptor unless memory is exhausted.
            if let Ok(socket) = tokio::net::UdpSocket::from_std(socket) {
                spawn_local(scene.clone().datagrams(socket));
            }
        }
        for listener in self.listeners {
            let scene = Scene {
                acceptor: listener.acceptor.map(Rc::from),
                ..scene.clone()
            };
            match listener.socket {
                Socket::Tcp(listener) => {
                    if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                        spawn_local(scene.tcp(listener));
                    }
                }
                Socket::Unix(listener) => {
                    if let Ok(listener) = tokio::net::UnixListener::from_std(listener) {
                        spawn_local(scene.unix(listener));
                    }
                }
            }
        }
    }
}

impl Scene {
    /// Receives datagrams until the process stops listening.
    async fn datagrams(self, socket: tokio::net::UdpSocket) {
        let mut buffer = vec![0; self.section.message_bytes_max];
        let mut stage = self.stage.clone();
        loop {
            let stops = tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage > Stage::Receives) => true,
                _ = socket.readable() => false,
            };
            let mut left = DATAGRAMS_A_TURN_MAX;
            while left > 0
                && let Ok((count, from)) = socket.try_recv_from(&mut buffer)
            {
                left -= 1;
                self.deliver(&buffer[..count], Some(from));
            }
            self.deliver.borrow_mut().flush();
            // What has arrived before the end is relayed.
            if stops && left > 0 {
                return;
            }
            yield_now().await;
        }
    }

    async fn tcp(self, listener: tokio::net::TcpListener) {
        while let Some(accepted) = self.accept(listener.accept()).await {
            if let Some(((stream, from), place)) = accepted {
                spawn_local(self.clone().connection(stream, Some(from), place));
            }
        }
    }

    async fn unix(self, listener: tokio::net::UnixListener) {
        while let Some(accepted) = self.accept(listener.accept()).await {
            if let Some(((stream, _), place)) = accepted {
                spawn_local(self.clone().connection(stream, None, place));
            }
        }
    }

    /// Waits for a free place and for a connection. None when the process stops listening.
    async fn accept<T>(
        &self,
        accepting: impl Future<Output = io::Result<T>>,
    ) -> Option<Option<(T, tokio::sync::OwnedSemaphorePermit)>> {
        let mut stage = self.stage.clone();
        let places = Arc::clone(&self.section.places);
        let next = async {
            // The semaphore is never closed.
            let place = places.acquire_owned().await.ok()?;
            match accepting.await {
                Ok(accepted) => Some((accepted, place)),
                Err(_) => {
                    drop(place);
                    sleep(ACCEPT_PAUSE).await;
                    None
                }
            }
        };
        tokio::select! {
            _ = stage.wait_for(|stage| *stage > Stage::Receives) => None,
            accepted = next => Some(accepted),
        }
    }

    /// Serves a connection until it ends, is silent for too long or breaks the framing.
    async fn connection(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        from: Option<SocketAddr>,
        _place: tokio::sync::OwnedSemaphorePermit,
    ) {
        let section = &self.section;
        let mut tls_place = None;
        let opening = async {
            let Some(acceptor) = &self.acceptor else {
                return Ok(Wire::Plain(stream));
            };
            tls_place = acceptor.enter();
            if tls_place.is_none() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let choose: Choose<'_> = &|session, plain, out| acceptor.accept(session, plain, out);
            let secure = TlsStream::accept(stream, choose).await?;
            Ok(Wire::Secure(Box::new(secure)))
        };
        let Ok(mut wire) = self.within_timeout(opening).await else {
            return;
        };
        let mut buffer = vec![0; READ_BYTES];
        let mut frames = Frames::new(section.message_bytes_max, section.assumes_lines);
        loop {
            match self.within_timeout(wire.read(&mut buffer)).await {
                Ok(0) | Err(_) => return,
                Ok(count) => frames.push(&buffer[..count]),
            }
            let fault = loop {
                match frames.next_message() {
                    Ok(Some(message)) => self.deliver(message, from),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            self.end_of_messages(fault);
            if fault {
                return;
            }
            // One sender must not keep the thread from the others.
            yield_now().await;
        }
    }

    /// The messages at hand are delivered; the rest of the stream may be lost.
    fn end_of_messages(&self, is_lost: bool) {
        let mut deliver = self.deliver.borrow_mut();
        if is_lost {
            deliver.lost();
        }
        deliver.flush();
    }

    /// The result of an operation, unless the sender is silent for too long.
    async fn within_timeout<T>(
        &self,
        operation: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        match self.section.timeout {
            Some(limit) => timeout(limit, operation).await?,
            None => operation.await,
        }
    }

    fn deliver(&self, message: &[u8], from: Option<SocketAddr>) {
        let section = &self.section;
        // A dual-stack socket shows IPv4 senders as IPv6.
        let from = from.map(|from| from.ip().to_canonical());
        let mut deliver = self.deliver.borrow_mut();
        deliver.message(section.number, message, from);
    }
}

/// A connection of a sender.
enum Wire<S> {
    Plain(S),
    Secure(Box<TlsStream<S>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Reads some bytes, and returns how many; 0 at the end.
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(buffer).await,
            Wire::Secure(secure) => secure.read(buffer).await,
        }
    }
}
