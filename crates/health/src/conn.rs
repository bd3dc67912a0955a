//! Connections of checks: over TCP or UNIX sockets, through a SOCKS4 proxy, with a PROXY header, in
//! plain text or over TLS; or over QUIC.

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

use crate::quic::QuicConn;
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
pub(crate) enum Conn {
    /// Bytes in order.
    Stream(Box<StreamConn>),
    /// QUIC: its bytes are records of streams.
    Quic(Box<QuicConn>),
}

/// A connection over TCP or a UNIX socket.
pub(crate) struct StreamConn {
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
        if way.is_quic {
            let missing = || Lost::Handshake("no TLS for this server".to_owned());
            let (connector, place) = secure.ok_or_else(missing)?;
            let opened = QuicConn::open(way, &connector, place, layer).await?;
            *layer = Layer::Seven;
            return Ok(Conn::Quic(Box::new(opened)));
        }
        let first = way.socks4.as_ref().unwrap_or(&way.to);
        let (stream, ends) = connect(first, way.source.as_ref(), lingers).await?;
        let mut conn = StreamConn {
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
        Ok(Conn::Stream(Box::new(conn)))
    }

    /// Whether the connection uses TLS.
    pub fn is_secure(&self) -> bool {
        match self {
            Conn::Stream(conn) => conn.secure.is_some(),
            Conn::Quic(_) => true,
        }
    }

    /// Whether its bytes are records of QUIC's streams.
    pub fn is_quic(&self) -> bool {
        matches!(self, Conn::Quic(_))
    }

    /// The negotiated application protocol (ALPN).
    pub fn protocol(&self) -> Option<Box<[u8]>> {
        match self {
            Conn::Stream(conn) => conn.secure.as_ref()?.session.protocol().map(Into::into),
            Conn::Quic(conn) => conn.protocol(),
        }
    }

    /// Appends what has come already and is to be read before anything is sent.
    pub fn greeting(&mut self, into: &mut Vec<u8>) {
        if let Conn::Quic(conn) = self {
            conn.take_records(into);
        }
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        match self {
            Conn::Stream(conn) => conn.send(bytes).await,
            Conn::Quic(conn) => conn.send(bytes).await,
        }
    }

    /// Appends received bytes to `into`; false at the end.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, Lost> {
        match self {
            Conn::Stream(conn) => conn.read(into).await,
            Conn::Quic(conn) => conn.read(into).await,
        }
    }
}

impl StreamConn {
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

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
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

    async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, Lost> {
        let StreamConn {
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

/// Binds a socket to the interface of a source.
pub(crate) fn bind_device(socket: &impl AsFd, source: Option<&Source>) -> io::Result<()> {
    let interface = source.and_then(|source| source.interface.as_deref());
    interface.map_or(Ok(()), |interface| {
        socket2::SockRef::from(socket).bind_device(Some(interface.as_bytes()))
    })
}

fn bind(socket: &TcpSocket, source: &Source) -> io::Result<()> {
    let fd: OwnedFd = socket.as_fd().try_clone_to_owned()?;
    bind_device(&fd, Some(source))?;
    if let Addr::Inet(addr) = &source.addr
        && !(addr.ip().is_unspecified() && addr.port() == 0)
    {
        socket.set_reuseaddr(true)?;
        socket.bind(*addr)?;
    }
    Ok(())
}
