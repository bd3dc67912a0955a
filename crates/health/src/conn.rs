//! Connections of checks: over TCP or UNIX sockets, through a SOCKS4 proxy, with a PROXY header, in
//! plain text or over TLS.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use config::model::Source;
use net::{Addr, proxy_protocol, socks4};
use proxy::TlsPlace;
use tls::{Buffer, Connector, Session};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::target::{ProxyHeader, Way};

/// Bytes per read.
const READ_BYTES: usize = 16 << 10;

/// Why a connection failed.
#[derive(Debug)]
pub(crate) enum Lost {
    /// A system error.
    Io(io::Error),
    /// The TLS handshake failed.
    Handshake(String),
    /// The SOCKS4 proxy refused, or its reply is invalid.
    Socks4(&'static str),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Lost::Io(error)
    }
}

/// The layer that a connection has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// It is not established yet.
    Four,
    /// Its handshakes are in progress.
    Six,
    /// It carries data.
    Seven,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// An established connection.
pub(crate) struct Conn {
    stream: Box<dyn Stream>,
    secure: Option<Secure>,
    buffer: Vec<u8>,
}

struct Secure {
    session: Session,
    plain: Buffer,
    out: Buffer,
    has_ended: bool,
    /// Counts the connection as a TLS connection.
    _place: TlsPlace,
}

impl Conn {
    /// Connects and completes all handshakes. `layer` reports the progress.
    pub async fn open(
        way: &Way,
        secure: Option<(Connector, TlsPlace)>,
        lingers: bool,
        layer: &mut Layer,
    ) -> Result<Conn, Lost> {
        *layer = Layer::Four;
        let first = way.socks4.as_ref().unwrap_or(&way.to);
        let (stream, ends) = connect(first, way.source.as_ref(), lingers).await?;
        let mut conn = Conn {
            stream,
            secure: None,
            buffer: vec![0; READ_BYTES],
        };
        *layer = Layer::Six;
        if way.socks4.is_some() {
            conn.ask_socks4(&way.to).await?;
        }
        if let Some(header) = way.proxy_header {
            let ends = ends.map(|(local, peer)| (Addr::Inet(local), Addr::Inet(peer)));
            let ends = ends.as_ref().map(|(from, to)| (from, to));
            let mut bytes = Vec::new();
            match header {
                ProxyHeader::V1 => proxy_protocol::write_v1(ends, &mut bytes),
                ProxyHeader::V2 { is_local } => {
                    let ends = ends.filter(|_| !is_local);
                    // Without TLVs the header is never too long.
                    let _ = proxy_protocol::write_v2(ends, &[], &mut bytes);
                }
            }
            conn.stream.write_all(&bytes).await?;
        }
        if let Some((connector, place)) = secure {
            conn.handshake(&connector, place, way).await?;
        }
        *layer = Layer::Seven;
        Ok(conn)
    }

    async fn ask_socks4(&mut self, to: &Addr) -> Result<(), Lost> {
        let request =
            socks4::request(to).ok_or(Lost::Socks4("SOCKS4 Proxy write error during handshake"))?;
        self.stream.write_all(&request).await?;
        let mut reply = [0; socks4::REPLY_BYTES];
        let read = self.stream.read_exact(&mut reply).await;
        read.map_err(|_| Lost::Socks4("SOCKS4 Proxy read error during handshake"))?;
        if socks4::is_granted(&reply) {
            Ok(())
        } else {
            Err(Lost::Socks4("SOCKS4 Proxy deny the request"))
        }
    }

    async fn handshake(
        &mut self,
        connector: &Connector,
        place: TlsPlace,
        way: &Way,
    ) -> Result<(), Lost> {
        let connector = match &way.alpn {
            Some(protocols) => {
                let protocols: Vec<&[u8]> = protocols.iter().map(Vec::as_slice).collect();
                connector.with_protocols(&protocols)
            }
            None => connector.clone(),
        };
        let name = way.sni.as_deref().filter(|name| !name.is_empty());
        let failed = |failure: tls::Failure| Lost::Handshake(failure.text);
        let mut secure = Secure {
            session: connector.connect(name).map_err(failed)?,
            plain: Buffer::default(),
            out: Buffer::default(),
            has_ended: false,
            _place: place,
        };
        secure.session.start(&mut secure.out).map_err(failed)?;
        while !secure.session.is_established() {
            self.flush(&mut secure.out).await?;
            let count = match self.stream.read(&mut self.buffer).await {
                Ok(0) => {
                    let closed = "Connection closed during SSL handshake";
                    return Err(Lost::Handshake(closed.to_owned()));
                }
                Ok(count) => count,
                Err(error) => return Err(error.into()),
            };
            let bytes = &mut self.buffer[..count];
            let result = secure
                .session
                .read(bytes, usize::MAX, &mut secure.plain, &mut secure.out);
            if let Err(failure) = result {
                // Sends the alert to the server; the result does not matter.
                let _ = self.flush(&mut secure.out).await;
                return Err(Lost::Handshake(failure.text));
            }
        }
        self.flush(&mut secure.out).await?;
        self.secure = Some(secure);
        Ok(())
    }

    async fn flush(&mut self, out: &mut Buffer) -> io::Result<()> {
        if !out.is_empty() {
            self.stream.write_all(out).await?;
            out.clear();
        }
        Ok(())
    }

    /// Whether the connection uses TLS.
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// The negotiated application protocol (ALPN).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.secure.as_ref()?.session.protocol()
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        let Some(secure) = &mut self.secure else {
            return Ok(self.stream.write_all(bytes).await?);
        };
        let written = secure.session.write(bytes, &mut secure.out);
        written.map_err(|failure| Lost::Io(io::Error::other(failure.text)))?;
        let mut out = std::mem::take(&mut secure.out);
        let result = self.flush(&mut out).await;
        if let Some(secure) = &mut self.secure {
            secure.out = out;
        }
        Ok(result?)
    }

    /// Appends received bytes to `into`; false at the end.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, Lost> {
        let Conn {
            stream,
            secure,
            buffer,
        } = self;
        let Some(secure) = secure else {
            let count = stream.read(buffer).await?;
            into.extend_from_slice(&buffer[..count]);
            return Ok(count > 0);
        };
        loop {
            if !secure.plain.is_empty() {
                into.extend_from_slice(&secure.plain);
                secure.plain.clear();
                return Ok(true);
            }
            if secure.has_ended {
                return Ok(false);
            }
            let count = stream.read(buffer).await?;
            if count == 0 {
                return Ok(false);
            }
            let bytes = &mut buffer[..count];
            let result = secure
                .session
                .read(bytes, usize::MAX, &mut secure.plain, &mut secure.out);
            let progress = result.map_err(|failure| Lost::Io(io::Error::other(failure.text)))?;
            secure.has_ended |= progress.has_ended;
            if !secure.out.is_empty() {
                stream.write_all(&secure.out).await?;
                secure.out.clear();
            }
        }
    }
}

type Opened = (Box<dyn Stream>, Option<(SocketAddr, SocketAddr)>);

/// Connects from the source address of the server's connections. Unless it lingers, closing the
/// connection sends a reset, so that neither a peer nor a port waits for its end.
async fn connect(to: &Addr, source: Option<&Source>, lingers: bool) -> io::Result<Opened> {
    let to = match to {
        Addr::Inet(to) => *to,
        Addr::Unix(path) => {
            let stream = UnixStream::connect(OsStr::from_bytes(path)).await?;
            return Ok((Box::new(stream), None));
        }
    };
    let socket = if to.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(source) = source {
        bind(&socket, source)?;
    }
    let stream: TcpStream = socket.connect(to).await?;
    if !lingers {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    let ends = (stream.local_addr()?, stream.peer_addr()?);
    Ok((Box::new(stream), Some(ends)))
}

fn bind(socket: &TcpSocket, source: &Source) -> io::Result<()> {
    if let Some(interface) = &source.interface {
        let fd: OwnedFd = socket.as_fd().try_clone_to_owned()?;
        socket2::SockRef::from(&fd).bind_device(Some(interface.as_bytes()))?;
    }
    if let Addr::Inet(addr) = &source.addr
        && !(addr.ip().is_unspecified() && addr.port() == 0)
    {
        socket.set_reuseaddr(true)?;
        socket.bind(*addr)?;
    }
    Ok(())
}
