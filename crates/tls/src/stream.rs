//! TLS over a stream of tokio: the handshake of either side, then plain bytes. The sections that
//! have a thread of their own use it: rings, receivers of logs and peers.
//!
//! One task reads and writes: a read also sends what the TLS layer has to say, so that neither
//! direction waits for the other.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::{Buffer, Connector, Failure, Progress, Session};

/// Bytes per read from the stream.
const READ_BYTES: usize = 16 << 10;
/// Plain bytes that are encrypted at a time. More wait until these are sent.
const WRITE_BYTES_MAX: usize = 16 << 10;
/// The TLS layer's answers to a peer that does not read, bytes. Without room for more, nothing is
/// read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A TLS connection. [`AsyncWrite::poll_flush`] sends the rest of the bytes that a write took.
pub struct TlsStream<S> {
    stream: S,
    session: Session,
    /// Received plain bytes, of which the reader has the first `taken`.
    plain: Buffer,
    taken: usize,
    /// Bytes of the TLS layer, of which the first `sent` are sent.
    out: Buffer,
    sent: usize,
    /// Memory for reads from the stream.
    buffer: Vec<u8>,
    /// The peer sends no more.
    has_ended: bool,
    /// The peer was told that no more bytes follow.
    is_closed: bool,
}

/// Chooses how a session that awaits the client's hello continues ([`Session::accept`]).
pub type Choose<'a> =
    &'a dyn Fn(&mut Session, &mut Buffer, &mut Buffer) -> Result<Progress, Failure>;

/// Gives the current connector to a server; none after a failure to build it.
pub type GetConnector = Box<dyn Fn() -> Option<Arc<Connector>> + Send>;

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Completes the handshake of a client with the current connector, without a server name.
    ///
    /// # Errors
    /// There is no connector, or the stream or the handshake fails.
    pub async fn connect(stream: S, connector: &GetConnector) -> io::Result<TlsStream<S>> {
        let connector = connector().ok_or(io::ErrorKind::NotFound)?;
        let session = connector.connect(None).map_err(failed)?;
        let mut secure = TlsStream::new(stream, session);
        let started = secure.session.start(&mut secure.out);
        started.map_err(failed)?;
        secure.handshake(None).await?;
        Ok(secure)
    }

    /// Completes the handshake of a server.
    ///
    /// # Errors
    /// The stream or the handshake fails.
    pub async fn accept(stream: S, choose: Choose<'_>) -> io::Result<TlsStream<S>> {
        let mut secure = TlsStream::new(stream, Session::awaiting_hello());
        secure.handshake(Some(choose)).await?;
        Ok(secure)
    }

    fn new(stream: S, session: Session) -> TlsStream<S> {
        TlsStream {
            stream,
            session,
            plain: Buffer::default(),
            taken: 0,
            out: Buffer::default(),
            sent: 0,
            buffer: vec![0; READ_BYTES],
            has_ended: false,
            is_closed: false,
        }
    }

    async fn handshake(&mut self, choose: Option<Choose<'_>>) -> io::Result<()> {
        while !self.session.is_established() {
            self.flush().await?;
            let count = self.stream.read(&mut self.buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Err(failure) = self.take(count, choose) {
                // Sends the alert to the peer; the result does not matter.
                let _ = self.flush().await;
                return Err(failed(failure));
            }
        }
        self.flush().await
    }

    /// Processes the first `count` bytes of the memory for reads.
    fn take(&mut self, count: usize, choose: Option<Choose<'_>>) -> Result<(), Failure> {
        let bytes = &mut self.buffer[..count];
        let (plain, out) = (&mut self.plain, &mut self.out);
        let mut progress = self.session.read(bytes, usize::MAX, plain, out)?;
        if let Some(choose) = choose.filter(|_| progress.awaits_acceptor) {
            progress = choose(&mut self.session, plain, out)?;
        }
        self.has_ended |= progress.has_ended;
        Ok(())
    }

    /// Sends the bytes of the TLS layer.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            let rest = &self.out[self.sent..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count;
        }
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Fills `plain`, which is empty, from the stream. It stays empty at the end.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.plain.is_empty() && !self.has_ended {
            // A peer that does not read is read until the answers to it have no room.
            if self.poll_send(context)?.is_pending() && self.out.len() >= ANSWER_BYTES_MAX {
                return Poll::Pending;
            }
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let count = buffer.filled().len();
            if count == 0 {
                self.has_ended = true;
                break;
            }
            if let Err(failure) = self.take(count, None) {
                // Sends the alert to the peer if there is room; the result does not matter.
                let _ = self.poll_send(context);
                return Poll::Ready(Err(failed(failure)));
            }
        }
        // The layer may have an answer. Its failure is reported by the next call.
        let _ = self.poll_send(context);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.plain.is_empty() {
            ready!(this.poll_fill(context))?;
        }
        let rest = &this.plain[this.taken..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        this.taken += count;
        if this.taken == this.plain.len() {
            this.plain.clear();
            this.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        let bytes = &bytes[..bytes.len().min(WRITE_BYTES_MAX)];
        let is_written = this.session.write(bytes, &mut this.out).map_err(failed)?;
        if !is_written {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // The bytes count as written even if sending fails here: the next call reports the failure.
        let _ = this.poll_send(context);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_closed {
            this.is_closed = true;
            this.session.end(&mut this.out).map_err(failed)?;
        }
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

fn failed(failure: Failure) -> io::Error {
    io::Error::other(failure.text)
}
