//! Sends the messages of rings to their servers over TCP or TLS, on one thread.
//!
//! Each server has a position of its own in its ring and a connection of its own. A connection is
//! made when there is a message, and made again after a pause when it is lost. Messages that the
//! kernel had not taken whole are sent again on the next connection. While a server is not reached,
//! its messages wait in the ring, which bounds them.

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use net::logs::Reach;
use net::ring::{Framing, Ring, RingReader};
use tls::stream::{GetConnector, TlsStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Once a batch of messages from a ring has this many bytes, the server sends it before it takes
/// more messages.
const BATCH_BYTES: usize = 16 << 10;
/// The least time between two attempts to connect, as in HAProxy.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);
/// The stack size of the thread, bytes.
const STACK_BYTES: usize = 256 << 10;
/// Bytes per read of what a server says, which is discarded.
const READ_BYTES: usize = 512;

/// A server of a ring.
pub struct Server {
    /// The ring whose messages it gets.
    pub ring: Arc<Ring>,
    /// Its address.
    pub address: SocketAddr,
    /// How messages are separated.
    pub framing: Framing,
    /// The time limit of an attempt to connect; none for the kernel's.
    pub timeout_connect: Option<Duration>,
    /// The longest time in which the server takes no byte although messages wait; none: no limit.
    pub timeout_server: Option<Duration>,
    /// Its connector; none for plain connections.
    pub connector: Option<GetConnector>,
    /// Records whether it is reached.
    pub reach: Arc<Reach>,
}

/// The thread of the servers.
#[derive(Debug)]
pub struct Runner {
    thread: JoinHandle<()>,
    stopping: watch::Sender<bool>,
}

impl Runner {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime cannot be created.
    pub fn start(servers: Vec<Server>) -> io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stopping, stops) = watch::channel(false);
        let links: Vec<Link> = servers
            .into_iter()
            .map(|server| Link::new(server, stops.clone()))
            .collect();
        let thread = std::thread::Builder::new()
            .name("rings".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let local = tokio::task::LocalSet::new();
                for link in links {
                    local.spawn_local(link.run());
                }
                runtime.block_on(local);
            })?;
        Ok(Runner { thread, stopping })
    }

    /// Sends the messages that are left to the servers that take them within a limited time, and
    /// ends the thread.
    pub fn stop(self) {
        // If the thread has ended, there is nothing to stop.
        let _ = self.stopping.send(true);
        // The panic hook has already reported a panic of the thread.
        let _ = self.thread.join();
    }
}

/// How long the last messages may take when the process ends.
const STOP_TIME: Duration = Duration::from_secs(1);

/// A server, its connection and the messages that it has not taken yet.
struct Link {
    server: Server,
    reader: RingReader,
    arrived: Arc<Notify>,
    stops: watch::Receiver<bool>,
    /// Whole messages from the ring, at most [`BATCH_BYTES`] and one message.
    batch: Vec<u8>,
    /// Bytes of them that the kernel has taken.
    sent: usize,
}

/// Why a connection ended.
enum Ended {
    Failed(io::Error),
    /// Every message is sent, and the process ends.
    Stopped,
}

impl Link {
    fn new(server: Server, stops: watch::Receiver<bool>) -> Link {
        let arrived = Arc::new(Notify::new());
        let own = Arc::clone(&arrived);
        let reader = server.ring.attach(Arc::new(move || own.notify_one()));
        Link {
            server,
            reader,
            arrived,
            stops,
            batch: Vec::new(),
            sent: 0,
        }
    }

    async fn run(mut self) {
        let mut stops = self.stops.clone();
        let limit = async {
            // The sender outlives the thread.
            let _ = stops.wait_for(|stops| *stops).await;
            sleep(STOP_TIME).await;
        };
        tokio::select! {
            () = self.serve() => {}
            () = limit => {}
        }
    }

    /// Serves until the process ends and every message is sent.
    async fn serve(&mut self) {
        while self.wait_for_messages().await {
            let next = Instant::now() + CONNECT_PAUSE;
            let ended = match self.connect().await {
                Ok(mut stream) => {
                    let ended = self.send(&mut stream).await;
                    self.keep_unsent();
                    ended
                }
                Err(error) => Ended::Failed(error),
            };
            match ended {
                Ended::Stopped => return,
                Ended::Failed(error) => self.server.reach.failed(&error, 0),
            }
            if *self.stops.borrow() {
                return;
            }
            sleep_until(next).await;
        }
    }

    /// Waits until the batch has messages. False if the process ends before there are any.
    async fn wait_for_messages(&mut self) -> bool {
        loop {
            if self.fill() {
                return true;
            }
            let mut stops = self.stops.clone();
            tokio::select! {
                () = self.arrived.notified() => {}
                _ = stops.wait_for(|stops| *stops) => return self.fill(),
            }
        }
    }

    /// Takes messages from the ring when every earlier one is sent. False if there are none.
    fn fill(&mut self) -> bool {
        if self.sent < self.batch.len() {
            return true;
        }
        self.batch.clear();
        self.sent = 0;
        let framing = self.server.framing;
        self.reader.read(framing, BATCH_BYTES, &mut self.batch)
    }

    /// A message of which the server has a part is sent again on the next connection.
    fn keep_unsent(&mut self) {
        let whole = self.server.framing.whole(&self.batch, self.sent);
        self.batch.drain(..whole);
        self.sent = 0;
    }

    async fn connect(&self) -> io::Result<Wire> {
        let connecting = async {
            let stream = TcpStream::connect(self.server.address).await?;
            let Some(connector) = &self.server.connector else {
                return Ok(Wire::Plain(stream));
            };
            let secure = TlsStream::connect(stream, connector).await?;
            Ok(Wire::Secure(Box::new(secure)))
        };
        match self.server.timeout_connect {
            Some(limit) => timeout(limit, connecting).await?,
            None => connecting.await,
        }
    }

    /// Sends messages until the connection fails, or the process ends.
    async fn send(&mut self, stream: &mut Wire) -> Ended {
        loop {
            while self.fill() {
                match self.write(stream).await {
                    Ok(()) => self.server.reach.worked(),
                    Err(error) => return Ended::Failed(error),
                }
            }
            let mut stops = self.stops.clone();
            tokio::select! {
                () = self.arrived.notified() => {}
                _ = stops.wait_for(|stops| *stops) => {
                    if !self.fill() {
                        // The connection ends either way.
                        let _ = stream.shutdown().await;
                        return Ended::Stopped;
                    }
                }
                read = stream.read() => match read {
                    Ok(0) => return Ended::Failed(io::ErrorKind::ConnectionReset.into()),
                    // A log server has nothing to say.
                    Ok(_) => {}
                    Err(error) => return Ended::Failed(error),
                },
            }
        }
    }

    async fn write(&mut self, stream: &mut Wire) -> io::Result<()> {
        let writing = stream.write(&self.batch[self.sent..]);
        let written = match self.server.timeout_server {
            Some(limit) => timeout(limit, writing).await??,
            None => writing.await?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.sent += written;
        Ok(())
    }
}

/// A connection to a server.
enum Wire {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// Sends some bytes. Returns how many.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(bytes).await,
            Wire::Secure(secure) => {
                secure.write_all(bytes).await?;
                secure.flush().await?;
                Ok(bytes.len())
            }
        }
    }

    /// Reads some bytes, and returns how many; 0 at the end.
    async fn read(&mut self) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(&mut [0; READ_BYTES]).await,
            Wire::Secure(secure) => secure.read(&mut [0; READ_BYTES]).await,
        }
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.shutdown().await,
            Wire::Secure(secure) => secure.shutdown().await,
        }
    }
}
