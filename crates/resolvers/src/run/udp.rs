//! Datagrams to one nameserver.
//!
//! Sockets are connected, so that the kernel drops datagrams of other sources, and each has a
//! random source port, which the kernel chooses. A socket sends few queries; then another one,
//! with another port, takes its place, while the old one still receives for a while. So an
//! answer that somebody forges must guess a port as well as an id, and soon another one
//! (RFC 5452 §9.2).

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::tcp::AbortOnDrop;
use super::turns::{Inbound, Origin, Reports};
use crate::section::Transport;

/// How many queries leave from one port.
const SOCKET_QUERIES_MAX: u32 = 32;

/// For how long queries leave from one port.
const SOCKET_AGE_MAX: Duration = Duration::from_secs(10);

/// For how long at least a socket receives after its last query.
const SOCKET_LINGER_MIN: Duration = Duration::from_secs(5);

/// The most sockets of one nameserver. While there are as many, the last one goes on sending.
const SOCKETS_MAX: usize = 32;

/// The pause after an error of a socket that receives.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The datagrams of one nameserver.
pub(super) struct UdpLink {
    origin: Origin,
    address: SocketAddr,
    payload_bytes: usize,
    linger: Duration,
    /// The last one sends.
    sockets: VecDeque<Open>,
}

struct Open {
    socket: UdpSocket,
    /// Ends with the socket.
    _reader: AbortOnDrop,
    opened: Instant,
    last_sent: Instant,
    queries: u32,
}

impl UdpLink {
    pub fn new(
        origin: Origin,
        address: SocketAddr,
        payload_bytes: usize,
        answer_timeout: Duration,
    ) -> UdpLink {
        UdpLink {
            origin,
            address,
            payload_bytes,
            linger: answer_timeout.max(SOCKET_LINGER_MIN),
            sockets: VecDeque::new(),
        }
    }

    /// Sends a datagram; one that the kernel has no room for is lost, as on the way.
    pub fn send(&mut self, bytes: &[u8], reports: &Reports) -> io::Result<()> {
        let now = Instant::now();
        self.close_old(now);
        let is_used_up =
            |open: &Open| open.queries >= SOCKET_QUERIES_MAX || now - open.opened >= SOCKET_AGE_MAX;
        let must_open = self.sockets.back().is_none_or(is_used_up);
        if self.sockets.is_empty() || (must_open && self.sockets.len() < SOCKETS_MAX) {
            self.sockets.push_back(self.open(now, reports)?);
        }
        let Some(open) = self.sockets.back_mut() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        open.queries += 1;
        open.last_sent = now;
        let sent = match open.socket.send(bytes) {
            // The error is that of an earlier datagram, whose port was closed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                open.socket.send(bytes)
            }
            sent => sent,
        };
        match sent {
            Ok(_) => Ok(()),
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.sockets.pop_back();
                }
                Err(error)
            }
        }
    }

    fn close_old(&mut self, now: Instant) {
        while self.sockets.len() > 1
            && let Some(oldest) = self.sockets.front()
            && now - oldest.last_sent >= self.linger
        {
            self.sockets.pop_front();
        }
    }

    fn open(&self, now: Instant, reports: &Reports) -> io::Result<Open> {
        let any = match self.address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(self.address)?;
        let receiver = tokio::net::UdpSocket::from_std(socket.try_clone()?)?;
        let reader = receive(receiver, self.origin, self.payload_bytes, reports.clone());
        Ok(Open {
            socket,
            _reader: AbortOnDrop::spawn(reader),
            opened: now,
            last_sent: now,
            queries: 0,
        })
    }
}

/// Receives until the socket is closed.
async fn receive(
    socket: tokio::net::UdpSocket,
    origin: Origin,
    payload_bytes: usize,
    reports: Reports,
) {
    // One byte more shows that a datagram is too big.
    let mut buffer = vec![0; payload_bytes + 1];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => {
                let message = Inbound::Message {
                    origin,
                    transport: Transport::Udp,
                    bytes: buffer[..length].to_vec(),
                };
                if reports.send(message).await.is_err() {
                    return;
                }
            }
            // That the port is closed: the query times out, as without this error.
            Err(_) => sleep(ERROR_PAUSE).await,
        }
    }
}
