//! The task of a connection.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tls::stream::TlsStream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Address;
use super::section::{Remote, State};
use crate::section::ConnId;

/// Bytes that are received at once.
const RECEIVED_BYTES: usize = 16 << 10;
/// How long a peer may take to accept the last bytes of a connection that ends.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// An open connection.
pub(super) type Wire = Box<dyn Duplex>;

/// A stream of bytes in both directions.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A TCP connection. Small messages must not wait for one another; the option is only a hint.
pub(super) fn tcp(stream: TcpStream) -> Wire {
    let _ = stream.set_nodelay(true);
    Box::new(stream)
}

/// Opens a connection to a peer, given by its index, and runs it.
pub(super) async fn opened(state: Rc<State>, id: ConnId, peer: usize) {
    let wake = Registration::new(&state, id);
    let Remote { address, connector } = &state.remotes[peer];
    let opening = async {
        let wire = connect(address).await?;
        let Some(connector) = connector else {
            return Ok(wire);
        };
        let secure = TlsStream::connect(wire, connector).await?;
        Ok(Box::new(secure) as Wire)
    };
    match wake.while_wanted(opening).await {
        Some(wire) => {
            state.section.borrow_mut().connected(id, state.now_ms());
            wake.run(wire).await;
        }
        None => state.section.borrow_mut().lost(id, state.now_ms()),
    }
    state.changed.notify_one();
}

/// Runs a connection that a peer has opened. The time for its hello includes the TLS handshake.
pub(super) async fn accepted(state: Rc<State>, id: ConnId, wire: Wire) {
    let wake = Registration::new(&state, id);
    let opening = async {
        let Some(choose) = &state.accept else {
            return Ok(wire);
        };
        let secure = TlsStream::accept(wire, choose).await?;
        Ok(Box::new(secure) as Wire)
    };
    match wake.while_wanted(opening).await {
        Some(wire) => wake.run(wire).await,
        None => state.section.borrow_mut().lost(id, state.now_ms()),
    }
    state.changed.notify_one();
}

async fn connect(address: &Address) -> io::Result<Wire> {
    Ok(match address {
        Address::Inet(address) => tcp(TcpStream::connect(address).await?),
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

/// Wakes the task of a connection, as long as it runs.
struct Registration<'a> {
    state: &'a State,
    id: ConnId,
    notify: Rc<Notify>,
}

impl<'a> Registration<'a> {
    fn new(state: &'a State, id: ConnId) -> Registration<'a> {
        let notify = Rc::new(Notify::new());
        state.writers.borrow_mut().insert(id, Rc::clone(&notify));
        Registration { state, id, notify }
    }

    /// The result of an operation, unless it fails or the section gives the connection up.
    async fn while_wanted<T>(&self, operation: impl Future<Output = io::Result<T>>) -> Option<T> {
        let gone = async {
            while self.state.section.borrow().exists(self.id) {
                self.notify.notified().await;
            }
        };
        tokio::select! {
            () = gone => None,
            done = operation => done.ok(),
        }
    }

    /// Runs the connection until it ends.
    async fn run(&self, wire: Wire) {
        exchange(self.state, self.id, wire, self).await;
        let now_ms = self.state.now_ms();
        self.state.section.borrow_mut().lost(self.id, now_ms);
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.state.writers.borrow_mut().remove(&self.id);
    }
}

/// Moves bytes between a connection and its section until one of the two ends.
async fn exchange(state: &State, id: ConnId, wire: Wire, wake: &Registration<'_>) {
    let (mut reader, mut writer) = tokio::io::split(wire);
    let mut received = vec![0; RECEIVED_BYTES];
    let (mut output, mut sent) = (Vec::new(), 0);
    // A TLS layer may have bytes that it took.
    let mut is_flushed = true;
    loop {
        if sent == output.len() {
            output = state.section.borrow_mut().pull(id, state.now_ms());
            sent = 0;
        }
        let (exists, wants) = {
            let section = state.section.borrow();
            (section.exists(id), section.wants(id))
        };
        if !exists {
            // The peer may see the end before it sees a reset.
            let _ = timeout(CLOSE_WAIT, writer.shutdown()).await;
            return;
        }
        tokio::select! {
            read = reader.read(&mut received), if wants => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    state
                        .section
                        .borrow_mut()
                        .receive(id, &received[..count], state.now_ms());
                    state.changed.notify_one();
                }
            },
            written = send(&mut writer, &output[sent..]), if sent < output.len() || !is_flushed => match written {
                Err(_) => return,
                Ok(count) => {
                    sent += count;
                    is_flushed = count == 0;
                }
            },
            () = wake.notify.notified() => {}
        }
    }
}

/// Sends some bytes and returns how many. Without bytes, sends what the writer holds and returns 0.
/// Nothing is lost if it is cancelled.
async fn send(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    match writer.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(count),
    }
}
