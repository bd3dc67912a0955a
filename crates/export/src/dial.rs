//! Connections to receivers: over TCP, or to a Unix socket, whatever the address says.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tower_service::Service;

use crate::proxy::Proxy;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Silence of a connection after which the kernel asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Time that sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Clone)]
pub(crate) enum Dial {
    /// To the host and port of the address.
    Tcp(HttpConnector),
    /// To one address, whatever the host is.
    At(HttpConnector, Uri),
    /// To the socket of this path.
    Unix(Arc<str>),
    /// To a proxy, for `http://` addresses.
    Proxy(HttpConnector, Uri),
    /// Through a proxy to the host and port of the address, for `https://` addresses.
    Tunnel(Tunnel<HttpConnector>),
}

impl Dial {
    /// To the receivers of some addresses through a proxy.
    pub(crate) fn through(proxy: &Proxy, is_https: bool, connect_max: Duration) -> Dial {
        let (tcp, uri) = (tcp(connect_max), proxy.uri.clone());
        if !is_https {
            return Dial::Proxy(tcp, uri);
        }
        let tunnel = Tunnel::new(uri, tcp);
        Dial::Tunnel(match &proxy.credential {
            Some(credential) => tunnel.with_auth(credential.clone()),
            None => tunnel,
        })
    }

    /// To one address of a host, within a time.
    ///
    /// # Errors
    /// That it cannot be written as a URL: it is one of a link.
    pub(crate) fn at(address: SocketAddr, connect_max: Duration) -> Result<Dial, String> {
        let uri = format!("http://{address}").parse();
        let uri = uri.map_err(|error| format!("{address}: {error}"))?;
        Ok(Dial::At(tcp(connect_max), uri))
    }

    /// To the Unix socket of a path, or else over TCP within a time.
    pub(crate) fn new(unix: Option<&str>, connect_max: Duration) -> Dial {
        if let Some(path) = unix {
            return Dial::Unix(path.into());
        }
        Dial::Tcp(tcp(connect_max))
    }
}

fn tcp(connect_max: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
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
            Dial::Tcp(tcp) | Dial::At(tcp, _) | Dial::Proxy(tcp, _) => {
                tcp.poll_ready(context).map_err(BoxError::from)
            }
            Dial::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
            Dial::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Dial::Tcp(tcp) => {
                let connecting = tcp.call(uri);
                Box::pin(async move { Ok(Link::Tcp(connecting.await?)) })
            }
            Dial::At(tcp, at) => {
                let connecting = tcp.call(at.clone());
                Box::pin(async move { Ok(Link::Tcp(connecting.await?)) })
            }
            Dial::Proxy(tcp, proxy) => {
                let connecting = tcp.call(proxy.clone());
                Box::pin(async move { Ok(Link::Proxy(connecting.await?)) })
            }
            Dial::Tunnel(tunnel) => {
                let connecting = tunnel.call(uri);
                Box::pin(async move { Ok(Link::Tcp(connecting.await?)) })
            }
            Dial::Unix(path) => {
                let path = Arc::clone(path);
                Box::pin(async move {
                    let stream = UnixStream::connect(&*path).await;
                    let stream = stream.map_err(|error| format!("{path}: {error}"))?;
                    Ok(Link::Unix(TokioIo::new(stream)))
                })
            }
        }
    }
}

/// A connection.
pub(crate) enum Link {
    Tcp(TokioIo<TcpStream>),
    Unix(TokioIo<UnixStream>),
    /// To a proxy, which wants to be told the whole address.
    Proxy(TokioIo<TcpStream>),
}

/// The same call on whatever the connection is.
macro_rules! each {
    ($link:expr, $stream:ident => $call:expr) => {
        match $link.get_mut() {
            Link::Tcp(stream) | Link::Proxy(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Link::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        match self {
            Link::Tcp(stream) => stream.connected(),
            Link::Proxy(stream) => stream.connected().proxy(true),
            Link::Unix(_) => Connected::new(),
        }
    }
}

impl Read for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(context, room))
    }
}

impl Write for Link {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Link::Tcp(stream) | Link::Proxy(stream) => stream.is_write_vectored(),
            Link::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write_vectored(context, pieces))
    }
}
