//! The task of a connection.

use std::io;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;

use super::Address;
use super::section::{State, Stream};
use crate::section::ConnId;

/// Bytes that are received at once.
const RECEIVED_BYTES: usize = 16 << 10;

/// Opens a connection and runs it.
pub(super) async fn opened(state: Rc<State>, id: ConnId, address: Address) {
    let wake = Registration::new(&state, id);
    let gone = async {
        while state.section.borrow().exists(id) {
            wake.notify.notified().await;
        }
    };
    let stream = tokio::select! {
        // Its time is over.
        () = gone => None,
        stream = connect(&address) => stream.ok(),
    };
    match stream {
        Some(stream) => {
            state.section.borrow_mut().connected(id, state.now_ms());
            run(&state, id, stream, &wake).await;
        }
        None => state.section.borrow_mut().lost(id, state.now_ms()),
    }
    state.changed.notify_one();
}

/// Runs a connection that a peer has opened.
pub(super) async fn accepted(state: Rc<State>, id: ConnId, stream: Stream) {
    let wake = Registration::new(&state, id);
    run(&state, id, stream, &wake).await;
    state.changed.notify_one();
}

async fn connect(address: &Address) -> io::Result<Stream> {
    Ok(match address {
        Address::Inet(address) => Stream::Inet(TcpStream::connect(address).await?),
        Address::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
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
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.state.writers.borrow_mut().remove(&self.id);
    }
}

async fn run(state: &State, id: ConnId, stream: Stream, wake: &Registration<'_>) {
    match stream {
        Stream::Inet(stream) => {
            // Small messages must not wait for one another. The option is only a hint.
            let _ = stream.set_nodelay(true);
            exchange(state, id, stream, wake).await;
        }
        Stream::Unix(stream) => exchange(state, id, stream, wake).await,
    }
    state.section.borrow_mut().lost(id, state.now_ms());
}

/// Moves bytes between a connection and its section until one of the two ends.
async fn exchange(
    state: &State,
    id: ConnId,
    stream: impl AsyncRead + AsyncWrite,
    wake: &Registration<'_>,
) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut received = vec![0; RECEIVED_BYTES];
    let (mut output, mut sent) = (Vec::new(), 0);
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
            let _ = writer.shutdown().await;
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
            written = writer.write(&output[sent..]), if sent < output.len() => match written {
                Ok(0) | Err(_) => return,
                Ok(count) => sent += count,
            },
            () = wake.notify.notified() => {}
        }
    }
}
