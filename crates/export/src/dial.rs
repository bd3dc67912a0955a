//! Connections to receivers: over TCP, through a proxy, or to a configured Unix socket or address
//! instead of the URL's.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{self, Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tower_service::Service;

use crate::lookup::ProcessResolver;
use crate::proxy::{Kind, Proxy, User};
use crate::tls::Secure;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a connection is silent before the kernel sends keep-alive probes.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// Connects over TCP, to names that the process's resolver knows.
pub(crate) type HttpConnector = connect::HttpConnector<ProcessResolver>;

/// How connections are opened.
#[derive(Clone)]
pub(crate) enum Dial {
    /// To the host and port of the URL.
    Tcp(HttpConnector),
    /// To one address, whatever the URL's host is.
    At(HttpConnector, Uri),
    /// To the socket with this path.
    Unix(Arc<str>),
    /// To an HTTP proxy that receives requests with absolute URLs.
    Proxy(Hop, Uri),
    /// Through an HTTP proxy's tunnel to the host and port of the URL.
    Tunnel(Tunnel<Hop>),
    /// Through a SOCKS proxy to the host and port of the URL.
    Socks(SocksV5<Hop>),
}

/// Connects to a proxy, with TLS if its URL says so.
pub(crate) type Hop = HttpsConnector<HttpConnector>;

impl Dial {
    /// Connects through a proxy, with a time limit for the connection to it: with a tunnel or,
    /// otherwise, by requests to an HTTP proxy.
    pub(crate) fn through(
        proxy: &Proxy,
        is_tunnel: bool,
        tls: &Secure,
        connect_max: Duration,
    ) -> Dial {
        let (hop, uri) = (tls.hop(tcp(connect_max)), proxy.uri.clone());
        match &proxy.kind {
            Kind::Socks(None) => Dial::Socks(SocksV5::new(uri, hop)),
            Kind::Socks(Some(User { name, password })) => {
                let socks = SocksV5::new(uri, hop);
                Dial::Socks(socks.with_auth(name.clone(), password.clone()))
            }
            Kind::Http(_) if !is_tunnel => Dial::Proxy(hop, uri),
            Kind::Http(None) => Dial::Tunnel(Tunnel::new(uri, hop)),
            Kind::Http(Some(credential)) => {
                Dial::Tunnel(Tunnel::new(uri, hop).with_auth(credential.clone()))
            }
        }
    }

    /// Connects to one address of a host, within a time.
    ///
    /// # Errors
    /// The address cannot be written as a URL: it is link-local.
    pub(crate) fn at(address: SocketAddr, connect_max: Duration) -> Result<Dial, String> {
        let uri = format!("http://{address}").parse();
        let uri = uri.map_err(|error| format!("{address}: {error}"))?;
        Ok(Dial::At(tcp(connect_max), uri))
    }

    /// Connects to the Unix socket with a path or, without one, over TCP within a time.
    pub(crate) fn new(unix: Option<&str>, connect_max: Duration) -> Dial {
        if let Some(path) = unix {
            return Dial::Unix(path.into());
        }
        Dial::Tcp(tcp(connect_max))
    }
}

fn tcp(connect_max: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new_with_resolver(ProcessResolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect_max));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    tcp
}

impl Service<Uri> for Dial {
    type Response = Link;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Dial::Tcp(tcp) | Dial::At(tcp, _) => tcp.poll_ready(context).map_err(BoxError::from),
            Dial::Proxy(hop, _) => hop.poll_ready(context),
            Dial::Socks(socks) => socks.poll_ready(context).map_err(BoxError::from),
            Dial::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
            Dial::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Dial::Tcp(tcp) => {
                let connecting = tcp.call(uri);
                Box::pin(async move { Ok(Link::new(connecting.await?, false)) })
            }
            Dial::At(tcp, at) => {
                let connecting = tcp.call(at.clone());
                Box::pin(async move { Ok(Link::new(connecting.await?, false)) })
            }
            Dial::Proxy(hop, proxy) => {
                let connecting = hop.call(proxy.clone());
                Box::pin(async move { Ok(Link::new(connecting.await?, true)) })
            }
            Dial::Tunnel(tunnel) => {
                let connecting = tunnel.call(uri);
                Box::pin(async move { Ok(Link::new(connecting.await?, false)) })
            }
            Dial::Socks(socks) => {
                let connecting = with_port(uri).map(|uri| socks.call(uri));
                Box::pin(async move { Ok(Link::new(connecting?.await?, false)) })
            }
            Dial::Unix(path) => {
                let path = Arc::clone(path);
                Box::pin(async move {
                    let stream = UnixStream::connect(&*path).await;
                    let stream = stream.map_err(|error| format!("{path}: {error}"))?;
                    Ok(Link::new(TokioIo::new(stream), false))
                })
            }
        }
    }
}

/// The URL with its explicit port, which a SOCKS proxy needs.
fn with_port(uri: Uri) -> Result<Uri, BoxError> {
    if uri.port().is_some() || uri.scheme() != Some(&Scheme::HTTP) {
        return Ok(uri);
    }
    let mut parts = uri.into_parts();
    let authority = parts.authority.ok_or("there is no host")?;
    parts.authority = Some(format!("{authority}:80").parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// Bytes to and from the other end.
trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// An open connection.
pub(crate) struct Link {
    stream: Box<dyn Stream>,
    /// At the other end is a proxy that needs requests with absolute URLs.
    is_proxy: bool,
}

impl Link {
    fn new(stream: impl Stream + 'static, is_proxy: bool) -> Link {
        Link {
            stream: Box::new(stream),
            is_proxy,
        }
    }

    fn stream(&mut self) -> Pin<&mut dyn Stream> {
        Pin::new(&mut *self.stream)
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxy)
    }
}

impl Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, room)
    }
}

impl Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, pieces)
    }
}
