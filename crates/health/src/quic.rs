//! The QUIC connection of a check: what the codec of HTTP/3 writes and reads are records of its
//! streams ([`quic::Records`]).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::time::Duration;

use config::model::Source;
use net::Addr;
use proxy::TlsPlace;
use quic::{Arrival, Connection, Endpoint, Keys, Lost as LostQuic, Owner, Records, Run, Setup};
use tls::Connector;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::conn::{Layer, Lost, bind_device};
use crate::target::Way;

/// The largest datagram.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Records that are read at once, bytes.
const RECORDS_BYTES_MAX: usize = 64 << 10;
/// HTTP/3's code for the end of a connection that is not needed any more (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;

/// An established connection.
pub(crate) struct QuicConn {
    socket: UdpSocket,
    peer: SocketAddr,
    endpoint: Endpoint,
    connection: Box<Connection>,
    records: Records,
    packets: Vec<u8>,
    _place: TlsPlace,
}

impl QuicConn {
    /// Connects and completes the handshake. `layer` reports the progress.
    pub async fn open(
        way: &Way,
        connector: &Connector,
        place: TlsPlace,
        layer: &mut Layer,
    ) -> Result<QuicConn, Lost> {
        let Addr::Inet(peer) = way.to else {
            return Err(Lost::Io(io::Error::other("QUIC needs an IP address")));
        };
        let socket = open_socket(peer, way.source.as_ref()).map_err(Lost::Io)?;
        let name = way.sni.as_deref().filter(|name| !name.is_empty());
        let tls = connector
            .quic(name)
            .map_err(|failure| Lost::Handshake(failure.text))?;
        let random = || RandomState::new().hash_one(0_u8);
        let secret = [random(), random(), random(), random()].map(u64::to_le_bytes);
        let keys = Keys::new(secret.as_flattened());
        let owner = Owner {
            worker: 0,
            process: 0,
        };
        let mut endpoint = Endpoint::new(&Setup {
            keys: &keys,
            owner,
            seed: keys.seed(0, 0),
        });
        let limits = quic::Limits {
            joins_datagrams: false,
            ..quic::Limits::default()
        };
        let client = quic::Client::new(&limits);
        let begun = endpoint.connect(net::sys::monotonic_ns(), &client, tls, peer);
        let connection = begun.map_err(|error| Lost::Handshake(error.to_string()))?;
        let mut conn = QuicConn {
            socket,
            peer,
            endpoint,
            connection,
            records: Records::default(),
            packets: Vec::new(),
            _place: place,
        };
        // Nothing is known of the peer before its first packet.
        *layer = Layer::Four;
        loop {
            let news = conn.connection.news();
            if news.is_agreed {
                *layer = Layer::Six;
            }
            if news.is_established {
                // The server has our part of the handshake, also of a check that ends now.
                conn.flush().await?;
                return Ok(conn);
            }
            if news.is_lost {
                return Err(conn.lost());
            }
            conn.turn().await?;
        }
    }

    /// Why the connection was lost.
    fn lost(&self) -> Lost {
        let failure = self.connection.agreed().failure;
        match (failure, self.connection.lost()) {
            (Some(failure), _) => Lost::Handshake(failure.text),
            (None, Some(LostQuic::Failed(text))) => Lost::Handshake(text.clone()),
            (None, Some(LostQuic::TimedOut)) => Lost::Io(io::ErrorKind::TimedOut.into()),
            (None, _) => Lost::Io(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// Sends what is to be sent, and waits for a datagram or for the time of the connection.
    async fn turn(&mut self) -> Result<(), Lost> {
        self.flush().await?;
        let now_ns = net::sys::monotonic_ns();
        let due_ns = self.connection.deadline_ns();
        let wait = due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns)));
        let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
        let received = self.socket.recv(&mut datagram);
        let received = match wait {
            Some(wait) => timeout(wait, received).await,
            None => Ok(received.await),
        };
        let now_ns = net::sys::monotonic_ns();
        let Ok(received) = received else {
            self.connection.expire(now_ns);
            self.endpoint.settle(&mut self.connection);
            return Ok(());
        };
        let bytes = &datagram[..received?];
        let run = Run {
            peer: self.peer,
            local: None,
            ecn: 0,
            segment: bytes.len().max(1),
            bytes,
        };
        let mut arrivals = Vec::new();
        self.endpoint.receive(now_ns, &run, &mut arrivals);
        for arrival in arrivals {
            match arrival {
                Arrival::Connection(_, datagram) => self.connection.feed(now_ns, datagram),
                // A server begins no connections, and gets no other answers.
                Arrival::Incoming(incoming) => self.endpoint.ignore(incoming),
                Arrival::Reply(_) => {}
            }
        }
        self.endpoint.settle(&mut self.connection);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Lost> {
        let now_ns = net::sys::monotonic_ns();
        self.records.close_if_asked(&mut self.connection, now_ns);
        while let Some(packet) = self.connection.transmit(now_ns, &mut self.packets) {
            let segment = packet.segment.unwrap_or(packet.bytes.len()).max(1);
            for datagram in packet.bytes.chunks(segment) {
                self.socket.send(datagram).await?;
            }
        }
        self.endpoint.settle(&mut self.connection);
        Ok(())
    }

    /// The negotiated application protocol (ALPN).
    pub fn protocol(&self) -> Option<Box<[u8]>> {
        self.connection.agreed().facts?.protocol
    }

    /// Appends the records that have come so far.
    pub fn take_records(&mut self, into: &mut Vec<u8>) {
        let most = into.len() + RECORDS_BYTES_MAX;
        self.records.receive(&mut self.connection, most, into);
    }

    /// Sends records.
    pub async fn send(&mut self, records: &[u8]) -> Result<(), Lost> {
        self.records.send(&mut self.connection, records);
        self.flush().await
    }

    /// Appends records to `into` when some have come; false at the end.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, Lost> {
        let before = into.len();
        loop {
            self.take_records(into);
            if into.len() > before {
                return Ok(true);
            }
            if self.connection.is_closed() {
                return match self.connection.lost() {
                    Some(LostQuic::Closed(_)) | None => Ok(false),
                    Some(_) => Err(self.lost()),
                };
            }
            self.turn().await?;
        }
    }
}

impl Drop for QuicConn {
    /// Tells the server, which would wait for the connection until a timeout.
    fn drop(&mut self) {
        let now_ns = net::sys::monotonic_ns();
        self.connection.close(now_ns, NO_ERROR, b"");
        while let Some(packet) = self.connection.transmit(now_ns, &mut self.packets) {
            // Without room it is as if the packet were lost.
            let _ = self.socket.try_send(packet.bytes);
        }
    }
}

/// A socket that is connected to the server.
fn open_socket(peer: SocketAddr, source: Option<&Source>) -> io::Result<UdpSocket> {
    let any: SocketAddr = if peer.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    let from = match source.map(|source| &source.addr) {
        Some(Addr::Inet(from)) => *from,
        _ => any,
    };
    let socket = StdSocket::bind(from)?;
    bind_device(&socket, source)?;
    socket.set_nonblocking(true)?;
    socket.connect(peer)?;
    UdpSocket::from_std(socket)
}
