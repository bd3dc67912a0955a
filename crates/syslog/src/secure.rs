//! TLS over a stream: the handshake of either side, then plain bytes.

use std::io;

use tls::{Buffer, Failure, Progress, Session};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes per read.
const READ_BYTES: usize = 16 << 10;

/// A TLS connection.
pub(crate) struct Secure<S> {
    stream: S,
    session: Session,
    plain: Buffer,
    /// Bytes of the TLS layer, of which the first `sent` are sent.
    out: Buffer,
    sent: usize,
    buffer: Vec<u8>,
    has_ended: bool,
}

/// Chooses what a session that awaits the client's hello continues with ([`Session::accept`]).
pub(crate) type Choose<'a> =
    &'a dyn Fn(&mut Session, &mut Buffer, &mut Buffer) -> Result<Progress, Failure>;

impl<S: AsyncRead + AsyncWrite + Unpin> Secure<S> {
    /// Completes the handshake of a client.
    pub async fn connect(stream: S, session: Session) -> io::Result<Secure<S>> {
        let mut secure = Secure::new(stream, session);
        let started = secure.session.start(&mut secure.out);
        started.map_err(failed)?;
        secure.handshake(None).await?;
        Ok(secure)
    }

    /// Completes the handshake of a server.
    pub async fn accept(stream: S, choose: Choose<'_>) -> io::Result<Secure<S>> {
        let mut secure = Secure::new(stream, Session::awaiting_hello());
        secure.handshake(Some(choose)).await?;
        Ok(secure)
    }

    fn new(stream: S, session: Session) -> Secure<S> {
        Secure {
            stream,
            session,
            plain: Buffer::default(),
            out: Buffer::default(),
            sent: 0,
            buffer: vec![0; READ_BYTES],
            has_ended: false,
        }
    }

    async fn handshake(&mut self, choose: Option<Choose<'_>>) -> io::Result<()> {
        while !self.session.is_established() {
            self.flush().await?;
            if self.fill(choose).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush().await
    }

    /// Reads once from the stream. Returns the number of bytes.
    async fn fill(&mut self, choose: Option<Choose<'_>>) -> io::Result<usize> {
        let count = self.stream.read(&mut self.buffer).await?;
        let bytes = &mut self.buffer[..count];
        let (plain, out) = (&mut self.plain, &mut self.out);
        let mut progress = self.session.read(bytes, usize::MAX, plain, out);
        if let (
            Ok(Progress {
                awaits_acceptor: true,
                ..
            }),
            Some(choose),
        ) = (&progress, choose)
        {
            progress = choose(&mut self.session, plain, out);
        }
        match progress {
            Ok(progress) => self.has_ended |= progress.has_ended,
            Err(failure) => {
                // Sends the alert to the peer; the result does not matter.
                let _ = self.flush().await;
                return Err(failed(failure));
            }
        }
        Ok(count)
    }

    /// Sends the bytes of the TLS layer.
    async fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            let count = self.stream.write(&self.out[self.sent..]).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += count;
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads plain bytes; none at the end. Nothing is lost if it is cancelled.
    pub async fn read(&mut self) -> io::Result<&[u8]> {
        self.plain.clear();
        while self.plain.is_empty() && !self.has_ended {
            if self.fill(None).await? == 0 {
                break;
            }
            // The layer may have an answer.
            self.flush().await?;
        }
        Ok(&self.plain)
    }

    /// Sends plain bytes.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.session.write(bytes, &mut self.out).map_err(failed)?;
        self.flush().await
    }

    /// Tells the peer that no more bytes follow.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.session.end(&mut self.out).map_err(failed)?;
        self.flush().await?;
        self.stream.shutdown().await
    }
}

fn failed(failure: Failure) -> io::Error {
    io::Error::other(failure.text)
}
