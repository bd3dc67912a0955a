//! Sockets of receivers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use net::Addr;
use net::listen::{ListenAddr, ListenOptions};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::bounds::Bounds;
use super::listeners::{Keep, Listeners};
use super::protocol::{Protocol, Settings};
use super::serve::{Server, builder, run};
use super::{Intake, tls};
use crate::config::components::shared::address::{Family, Listen};
use crate::run::auth::Authenticators;
use crate::run::origin::Wanted;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Whether a socket takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It does.
    Open,
    /// It does not, for another listens in its place. Connections end soon, after a request.
    Draining,
    /// It does not, and connections end.
    Over,
}

/// A socket that takes connections.
pub struct Listening {
    /// Where; none for a Unix socket.
    pub address: Option<SocketAddr>,
    task: tokio::task::JoinHandle<()>,
    stage: watch::Sender<Stage>,
}

impl Listening {
    /// What a task serves until it is told to end.
    pub(super) fn new(
        address: Option<SocketAddr>,
        task: tokio::task::JoinHandle<()>,
        stage: watch::Sender<Stage>,
    ) -> Listening {
        Listening {
            address,
            task,
            stage,
        }
    }

    /// Takes no more connections from now on, for another listens in its place; those that there are
    /// end once their requests are answered. One without a request waits a moment for the next, so
    /// that none is cut off that is just being sent.
    pub fn close(&self) {
        self.stage.send_replace(Stage::Draining);
    }

    /// Waits a while for connections to end after [`Listening::close`].
    pub async fn drained(self) {
        let _ = self.task.await;
    }

    /// Takes no more connections, and waits a while for those that there are.
    pub async fn end(self) {
        self.stage.send_replace(Stage::Over);
        let _ = self.task.await;
    }
}

pub(super) struct Socket {
    pub listener: Listener,
    /// For the next configuration, as long as this one listens.
    _keep: Keep,
}

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Whether sockets may be opened where another process listens that ends soon (a reload). Processes
/// that share a port get connections in turn; a Unix socket takes the path over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// An address that is in use is an error.
    #[default]
    Alone,
    /// Shared with processes that share theirs.
    Shared,
}

/// How sockets are opened.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// Who asks who sends.
    pub auth: &'a Authenticators,
    /// Who else listens there.
    pub sharing: Sharing,
    /// The sockets of the process.
    pub listeners: &'a Listeners,
    /// What components ask of requests.
    pub wanted: Option<&'a Wanted>,
}

/// Opens the socket and serves it.
///
/// # Errors
/// Why it cannot be opened.
pub fn listen(
    protocol: Protocol,
    intake: Arc<Intake>,
    opening: Opening<'_>,
) -> Result<Listening, String> {
    let Opening { auth, .. } = opening;
    let (address, tls_settings, protocols): (&Listen, _, &[&[u8]]) = match protocol.settings() {
        Settings::Grpc(grpc) => (&grpc.listen, &grpc.tls, &[b"h2"]),
        Settings::Http(http) => (&http.listen, &http.tls, &[b"h2", b"http/1.1"]),
    };
    let gate = auth.gate(match protocol.settings() {
        Settings::Grpc(grpc) => grpc.auth.as_ref(),
        Settings::Http(http) => http.auth.as_ref(),
    })?;
    let tls = match tls_settings {
        Some(settings) => Some(TlsAcceptor::from(Arc::new(tls::server(
            settings, protocols,
        )?))),
        None => None,
    };
    let socket = open(address, opening)?;
    let local = match &socket.listener {
        Listener::Tcp(listener) => listener.local_addr().ok(),
        Listener::Unix(_) => None,
    };
    let (stage, stages) = watch::channel(Stage::Open);
    let server = Arc::new(Server {
        bounds: Bounds::of(&protocol),
        builder: builder(&protocol),
        wanted: { opening.wanted }
            .and_then(|wanted| wanted.of_receiver(protocol.settings().include_metadata())),
        protocol,
        intake,
        tls,
        gate,
        stage: stages.clone(),
    });
    let task = tokio::spawn(run(server, socket, stages));
    Ok(Listening {
        address: local,
        task,
        stage,
    })
}

fn open(listen: &Listen, opening: Opening<'_>) -> Result<Socket, String> {
    let Opening {
        sharing, listeners, ..
    } = opening;
    match listen {
        Listen::Unix(path) => {
            let failed = |error: io::Error| format!("{path}: {error}");
            let open = || {
                // A socket that nobody listens to is left over from another life, and is replaced.
                let is_served = std::os::unix::net::UnixStream::connect(path).is_ok();
                if is_served && sharing == Sharing::Alone {
                    return Err(io::ErrorKind::AddrInUse.into());
                }
                socket(Addr::Unix(path.as_bytes().into()), sharing)
            };
            let (fd, keep) = listeners
                .open(format!("unix {path}"), open)
                .map_err(failed)?;
            let listener = UnixListener::from_std(fd.into());
            Ok(Socket {
                listener: Listener::Unix(listener.map_err(failed)?),
                _keep: keep,
            })
        }
        Listen::Tcp { host, port, family } => {
            let failed = |error: io::Error| format!("{host}:{port}: {error}");
            let address = format!("tcp {host}:{port} {family:?}");
            let open = || bind(host, *port, *family, sharing);
            let (fd, keep) = listeners.open(address, open).map_err(failed)?;
            let listener = TcpListener::from_std(fd.into());
            Ok(Socket {
                listener: Listener::Tcp(listener.map_err(failed)?),
                _keep: keep,
            })
        }
    }
}

fn socket(address: Addr, sharing: Sharing) -> io::Result<OwnedFd> {
    let options = ListenOptions {
        backlog: BACKLOG,
        // Every address of version 6 takes version 4 too.
        v6only: Some(false),
        reuse_port: sharing == Sharing::Shared,
        ..ListenOptions::default()
    };
    net::listen::open(&ListenAddr::Bind(address), &options)
}

/// Opens a TCP socket.
fn bind(host: &str, port: u16, family: Family, sharing: Sharing) -> io::Result<OwnedFd> {
    // Every address: that of version 6 takes both.
    let hosts: &[&str] = match (host, family) {
        ("", Family::V4) => &["0.0.0.0"],
        ("", _) => &["::", "0.0.0.0"],
        _ => &[host],
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for host in hosts {
        for address in (*host, port).to_socket_addrs()? {
            let is_meant = match family {
                Family::Any => true,
                Family::V4 => address.is_ipv4(),
                Family::V6 => address.is_ipv6(),
            };
            if is_meant {
                match socket(Addr::Inet(address), sharing) {
                    Ok(fd) => return Ok(fd),
                    Err(error) => last = error,
                }
            }
        }
    }
    Err(last)
}
