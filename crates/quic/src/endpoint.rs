//! Finds the connections of datagrams, accepts those of clients, and begins those to servers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, EndpointConfig, Transmit};

use crate::ids::Ids;
use tls::quic::QuicConnector;

use crate::{Client, Clock, Connection, Keys, Owner, Server};

/// The name of a connection at its endpoint.
pub type Handle = ConnectionHandle;

/// What an endpoint begins with.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// See [`Keys`].
    pub keys: &'a Keys,
    /// Who has its connections.
    pub owner: Owner,
    /// Random bytes, for ids and for what the library draws.
    pub seed: [u8; 32],
}

/// A run of datagrams of one peer.
#[derive(Debug)]
pub struct Run<'a> {
    /// The sender.
    pub peer: SocketAddr,
    /// The address that it was sent to, where it is known.
    pub local: Option<IpAddr>,
    /// The ECN bits (RFC 3168).
    pub ecn: u8,
    /// The length of each datagram; the last may be shorter.
    pub segment: usize,
    /// All datagrams.
    pub bytes: &'a [u8],
}

/// What a datagram is about.
#[derive(Debug)]
pub enum Arrival {
    /// A connection: see [`Connection::feed`].
    Connection(Handle, Datagram),
    /// A new one.
    Incoming(Incoming),
    /// Nothing here; this has to be sent.
    Reply(Reply),
}

/// A datagram of a connection.
#[derive(Debug)]
pub struct Datagram {
    pub(crate) event: quinn_proto::ConnectionEvent,
    pub(crate) peer: SocketAddr,
}

/// A connection that a client begins.
pub struct Incoming {
    inner: quinn_proto::Incoming,
    /// The length of its first datagram.
    bytes: usize,
}

impl Incoming {
    /// The client's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Our address, where it is known.
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// The client answers a Retry packet (RFC 9000 §8.1.2).
    #[must_use]
    pub fn answers_retry(&self) -> bool {
        !self.inner.may_retry()
    }

    /// The client has shown that it has its address (RFC 9000 §8.1).
    #[must_use]
    pub fn is_validated(&self) -> bool {
        self.inner.remote_address_validated()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// A datagram of the endpoint itself.
#[derive(Debug)]
pub struct Reply {
    transmit: Transmit,
    bytes: Vec<u8>,
}

impl Reply {
    /// Whether it is a stateless reset (RFC 9000 §10.3): the only one without a long header.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & 0x80 == 0)
    }

    /// What is to be sent.
    #[must_use]
    pub fn packet(&self) -> Packet<'_> {
        Packet::new(&self.transmit, &self.bytes)
    }
}

/// Datagrams to be sent to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The receiver.
    pub peer: SocketAddr,
    /// The address to send from.
    pub source: Option<IpAddr>,
    /// The ECN bits.
    pub ecn: u8,
    /// The length of each datagram but the last; none: it is one datagram.
    pub segment: Option<usize>,
    /// All datagrams.
    pub bytes: &'a [u8],
}

impl Packet<'_> {
    pub(crate) fn new<'a>(transmit: &Transmit, bytes: &'a [u8]) -> Packet<'a> {
        Packet {
            peer: transmit.destination,
            source: transmit.src_ip,
            ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            segment: transmit.segment_size,
            bytes,
        }
    }
}

/// The result of [`Endpoint::accept`].
#[derive(Debug)]
pub enum Accepted {
    /// The connection.
    Connection(Box<Connection>),
    /// It was refused; what has to be sent, if anything.
    Refused(Option<Reply>),
}

/// Why a connection to a server does not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotBegun(String);

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The QUIC connections of a worker.
pub struct Endpoint {
    inner: quinn_proto::Endpoint,
    clock: Clock,
}

impl Endpoint {
    /// An endpoint without connections, which accepts no clients before [`Endpoint::set_server`].
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Endpoint {
        let mut config = EndpointConfig::new(Arc::new(setup.keys.reset.clone()));
        let (owner, seed) = (setup.owner, setup.seed);
        config.cid_generator(move || Box::new(Ids::new(owner, &seed)));
        // Only version 1 (RFC 9000); drafts are not spoken any more.
        config.supported_versions(vec![1]);
        let inner = quinn_proto::Endpoint::new(Arc::new(config), None, true, Some(setup.seed));
        Endpoint {
            inner,
            clock: Clock::new(),
        }
    }

    /// What new clients get from now on, unless [`Endpoint::accept`] is told otherwise.
    pub fn set_server(&mut self, server: Server) {
        self.inner.set_server_config(Some(server.0));
    }

    /// How many connections there are, those included that have been closed and still answer.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.open_connections()
    }

    /// Reads a run of datagrams; appends what they are about.
    pub fn receive(&mut self, now_ns: u64, run: &Run<'_>, arrivals: &mut Vec<Arrival>) {
        let now = self.clock.instant(now_ns);
        let ecn = EcnCodepoint::from_bits(run.ecn);
        // One allocation for all of them.
        let mut bytes = BytesMut::from(run.bytes);
        let segment = run.segment.max(1);
        while !bytes.is_empty() {
            // The last one is not split off, which would allocate.
            let one = if bytes.len() > segment {
                bytes.split_to(segment)
            } else {
                std::mem::take(&mut bytes)
            };
            let mut reply = Vec::new();
            let len = one.len();
            let event = self
                .inner
                .handle(now, run.peer, run.local, ecn, one, &mut reply);
            arrivals.extend(event.map(|event| match event {
                DatagramEvent::ConnectionEvent(handle, event) => {
                    let peer = run.peer;
                    Arrival::Connection(handle, Datagram { event, peer })
                }
                DatagramEvent::NewConnection(incoming) => Arrival::Incoming(Incoming {
                    inner: incoming,
                    bytes: len,
                }),
                DatagramEvent::Response(transmit) => Arrival::Reply(Reply {
                    transmit,
                    bytes: reply,
                }),
            }));
        }
    }

    /// Begins a connection. `server`: what this client gets.
    pub fn accept(&mut self, now_ns: u64, incoming: Incoming, server: &Server) -> Accepted {
        let now = self.clock.instant(now_ns);
        let mut reply = Vec::new();
        let server = Some(Arc::clone(&server.0));
        let (is_validated, first_bytes) = (incoming.is_validated(), incoming.bytes as u64);
        match self.inner.accept(incoming.inner, now, &mut reply, server) {
            Ok((handle, inner)) => {
                let first = (is_validated, first_bytes);
                let connection = Connection::new(handle, inner, self.clock, first);
                let mut connection = Box::new(connection);
                self.settle(&mut connection);
                Accepted::Connection(connection)
            }
            Err(error) => Accepted::Refused(error.response.map(|transmit| Reply {
                transmit,
                bytes: reply,
            })),
        }
    }

    /// Begins a connection to a server.
    ///
    /// # Errors
    /// The address has no port or is no address of a host, or the options of TLS cannot be used.
    pub fn connect(
        &mut self,
        now_ns: u64,
        client: &Client,
        tls: QuicConnector,
        peer: SocketAddr,
    ) -> Result<Box<Connection>, NotBegun> {
        let now = self.clock.instant(now_ns);
        // The connector has the name for TLS.
        let (config, name) = client.config(tls, peer);
        let begun = self.inner.connect(now, config, peer, &name);
        let (handle, inner) = begun.map_err(|error| NotBegun(error.to_string()))?;
        let mut connection = Box::new(Connection::new(handle, inner, self.clock, (false, 0)));
        self.settle(&mut connection);
        Ok(connection)
    }

    /// Asks a client to show that it has its address (RFC 9000 §8.1.2). None if it has.
    pub fn retry(&mut self, incoming: Incoming) -> Option<Reply> {
        let mut bytes = Vec::new();
        match self.inner.retry(incoming.inner, &mut bytes) {
            Ok(transmit) => Some(Reply { transmit, bytes }),
            Err(error) => {
                self.inner.ignore(error.into_incoming());
                None
            }
        }
    }

    /// Refuses a client (CONNECTION_REFUSED).
    pub fn refuse(&mut self, incoming: Incoming) -> Reply {
        let mut bytes = Vec::new();
        let transmit = self.inner.refuse(incoming.inner, &mut bytes);
        Reply { transmit, bytes }
    }

    /// Does not answer a client.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.inner.ignore(incoming.inner);
    }

    /// Exchanges news with a connection. To be called after each call that changes it, until
    /// [`Connection::is_drained`]; after that the endpoint has forgotten it, and another connection
    /// may have its name.
    pub fn settle(&mut self, connection: &mut Connection) {
        while let Some(event) = connection.inner.poll_endpoint_events() {
            if connection.is_drained {
                continue;
            }
            connection.is_drained = event.is_drained();
            if let Some(event) = self.inner.handle_event(connection.handle, event) {
                connection.inner.handle_event(event);
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
