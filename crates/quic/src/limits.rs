//! What a side allows its peers: a listener its clients, and a client its server.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};
use quinn_proto::{
    IdleTimeout, MtuDiscoveryConfig, NoneTokenStore, TokenMemoryCache, TokenStore, TransportConfig,
    VarInt,
};
use tls::quic::{QuicAcceptor, QuicConnector};

use crate::Keys;

/// Streams of one direction that a peer may have open besides those of requests: control and the
/// two of QPACK (RFC 9114 §6.2), and a few of unknown types.
const OTHER_STREAMS_MAX: u32 = 8;

/// The most request streams that a client may have open: the library has something of each from the
/// beginning.
const STREAMS_MAX: u32 = 10_000;

/// The search for larger datagrams ends when the next step would be smaller, bytes. Between the
/// library's bounds, 1200 and 1452 bytes, the search tries the upper one first, and one in the middle
/// only where that does not pass. Each try is a datagram of that size, and each connection pays for it.
const MTU_CHANGE_MIN: u16 = 127;

/// The algorithm that decides how much is in flight (`quic-cc-algo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 9002 §7.
    NewReno,
    /// draft-ietf-ccwg-bbr.
    Bbr,
    /// The largest window always.
    Fixed,
}

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams of both directions that the peer may have open at a time: those of a client's
    /// requests.
    pub streams_max: u32,
    /// Bytes that the peer may send on a stream ahead of what was read.
    pub stream_bytes: u32,
    /// The same for all streams of a connection.
    pub connection_bytes: u32,
    /// Bytes that are kept until the peer acknowledges them, of all streams.
    pub send_bytes: u64,
    /// After such a time without packets a connection ends; zero: never.
    pub idle: Duration,
    /// The kernel may cut messages into datagrams.
    pub joins_datagrams: bool,
    /// See [`Congestion`].
    pub congestion: Congestion,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            streams_max: 100,
            stream_bytes: 256 << 10,
            connection_bytes: 1 << 20,
            send_bytes: 480 << 10,
            idle: Duration::from_secs(30),
            joins_datagrams: true,
            congestion: Congestion::Cubic,
        }
    }
}

impl Limits {
    fn transport(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let idle_ms = u32::try_from(self.idle.as_millis()).unwrap_or(u32::MAX);
        let mut mtu_discovery = MtuDiscoveryConfig::default();
        mtu_discovery.minimum_change(MTU_CHANGE_MIN);
        let idle = (idle_ms > 0).then(|| IdleTimeout::from(VarInt::from_u32(idle_ms)));
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(self.streams_max.min(STREAMS_MAX)))
            .max_concurrent_uni_streams(VarInt::from_u32(OTHER_STREAMS_MAX))
            .stream_receive_window(VarInt::from_u32(self.stream_bytes))
            .receive_window(VarInt::from_u32(self.connection_bytes))
            .send_window(self.send_bytes)
            .max_idle_timeout(idle)
            .mtu_discovery_config(Some(mtu_discovery))
            .enable_segmentation_offload(self.joins_datagrams)
            // No datagrams of RFC 9221.
            .datagram_receive_buffer_size(None);
        match self.congestion {
            Congestion::Cubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
            }
            Congestion::NewReno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
            }
            Congestion::Bbr => {
                transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
            }
            Congestion::Fixed => {
                transport.congestion_controller_factory(Arc::new(FixedWindow(self.send_bytes)));
            }
        }
        transport
    }
}

/// A window that neither grows nor shrinks.
#[derive(Clone, Copy, Debug)]
struct FixedWindow(u64);

impl ControllerFactory for FixedWindow {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for FixedWindow {
    fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _lasts: bool, _lost: u64) {}

    fn on_mtu_update(&mut self, _mtu: u16) {}

    fn window(&self) -> u64 {
        self.0
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        self.0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// How a listener serves its clients.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<quinn_proto::ServerConfig>);

impl Server {
    /// A listener with this TLS and these limits.
    #[must_use]
    pub fn new(tls: QuicAcceptor, limits: &Limits, keys: &Keys) -> Server {
        let tokens = Arc::new(keys.tokens());
        let mut config = quinn_proto::ServerConfig::new(Arc::new(tls), tokens);
        config
            .transport_config(Arc::new(limits.transport()))
            .validation_token_config(keys.used_tokens.config());
        Server(Arc::new(config))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

/// How connections to a server are made.
#[derive(Clone)]
pub struct Client {
    transport: Arc<TransportConfig>,
    tokens: Option<Tokens>,
}

/// Tokens by which servers know the address of a client that comes again (RFC 9000 §8.1.3). Without
/// one, a server may answer early data only after the handshake. The library keeps two of each of 256
/// addresses.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<TokenMemoryCache>);

impl Client {
    /// A client with these limits, which keeps no tokens. A server opens no streams of both directions
    /// (RFC 9114 §6.1).
    #[must_use]
    pub fn new(limits: &Limits) -> Client {
        let mut transport = limits.transport();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
        Client {
            transport: Arc::new(transport),
            tokens: None,
        }
    }

    /// It keeps the tokens that servers give it, and uses each once.
    #[must_use]
    pub fn with_tokens(self, tokens: &Tokens) -> Client {
        Client {
            tokens: Some(tokens.clone()),
            ..self
        }
    }

    /// The configuration of a connection, and the name of the server for its tokens.
    pub(crate) fn config(
        &self,
        tls: QuicConnector,
        peer: SocketAddr,
    ) -> (quinn_proto::ClientConfig, String) {
        let mut config = quinn_proto::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::clone(&self.transport));
        match &self.tokens {
            Some(Tokens(tokens)) => {
                config.token_store(Arc::clone(tokens) as Arc<dyn TokenStore>);
                (config, peer.to_string())
            }
            None => {
                // A server that wants to know our address asks again: a round trip.
                config.token_store(Arc::new(NoneTokenStore));
                (config, String::new())
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
