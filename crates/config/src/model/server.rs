//! Servers (manual §5.2) and `hash-type` (manual §4.2).

use super::{LogStreamOptions, Proto, ResolveOptions, ServerChecks, ServerTls};
use net::{Addr, TcpOptions};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use syntax::octets::Octets;

/// `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashType {
    /// How a hash selects a server.
    pub method: HashMethod,
    /// The function.
    pub function: HashFunction,
    /// Applies an avalanche to the hash.
    pub avalanche: bool,
}

/// The methods of `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashMethod {
    /// `map-based`: a fixed map of the usable servers.
    #[default]
    Map,
    /// `consistent`: the nearest of the servers' points on a ring.
    Ring,
}

/// `hash-preserve-affinity`: the servers that a hash on a ring skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashAffinity {
    /// None.
    #[default]
    Always,
    /// Servers with `maxconn` requests.
    Maxconn,
    /// Servers whose queue is full as well.
    Maxqueue,
}

/// `hash-key`: the input for the positions of a server's points on the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashKey {
    /// The low 28 bits of its id.
    #[default]
    Id,
    /// Its whole id.
    Id32,
    /// Its `guid`.
    Guid,
    /// Its address.
    Addr,
    /// Its address and port.
    AddrPort,
}

/// A method of `init-addr`: the source of a named server's address when the process starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAddr {
    /// The server state file.
    Last,
    /// The system's resolver.
    Libc,
    /// None: the server starts without an address.
    None,
    /// This address.
    Ip(IpAddr),
}

/// The functions of `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashFunction {
    /// `sdbm`.
    #[default]
    Sdbm,
    /// `djb2`.
    Djb2,
    /// `wt6`.
    Wt6,
    /// `crc32`.
    Crc32,
    /// `none`: the key is used as a number.
    None,
}

/// A `server` line. Its options can be read like its own fields.
#[derive(Clone, Debug)]
pub struct Server {
    /// The name as written.
    pub name: String,
    /// The address.
    pub address: ServerAddress,
    /// The name could not be resolved: the server is in maintenance until it has an address.
    pub unresolved: bool,
    /// The name from which its address comes; a name that begins with `_` is that of a service
    /// (SRV records).
    pub fqdn: Option<String>,
    /// The index in [`super::Config::resolvers`] of the section that resolves its name while the
    /// process runs.
    pub resolvers: Option<usize>,
    /// Only a previous configuration of the process has it: it keeps the place for streams that
    /// still run. It is disabled too, and is not checked.
    pub is_removed: bool,
    /// Other lines name it, so it cannot be deleted at run time.
    pub is_named: bool,
    /// In `mode log`: it receives messages as datagrams; otherwise over TCP.
    pub takes_datagrams: bool,
    /// Its connections are those of QUIC.
    pub is_quic: bool,
    /// The options after the address, applied to those of `default-server`.
    pub options: ServerOptions,
    /// The hash of the words from which its options come: its own line's and those of the
    /// `default-server` lines before it. 0 for a server that was added at run time.
    pub words_hash: u128,
    /// `file:line`.
    pub origin: String,
}

impl std::ops::Deref for Server {
    type Target = ServerOptions;

    fn deref(&self) -> &ServerOptions {
        &self.options
    }
}

/// The options of `server` and `default-server` lines.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The id in statistics.
    pub id: u32,
    /// Share of the load, 0 to 256.
    pub weight: u32,
    /// Most connections; 0 is unlimited.
    pub maxconn: u32,
    /// Lower limit of a dynamic `maxconn`; 0 means none.
    pub minconn: u32,
    /// Most requests in the queue; 0 is unlimited.
    pub maxqueue: u32,
    /// The options of a log server over TCP.
    pub log_stream: LogStreamOptions,
    /// Its value of the persistence cookie.
    pub cookie: Option<Octets>,
    /// That value is computed from its address (`cookie … dynamic`).
    pub has_dynamic_cookie: bool,
    /// GET and HEAD requests are answered with a redirect to this prefix and the request's path.
    pub redir: Option<Octets>,
    /// Used only if no other server is usable.
    pub backup: bool,
    /// `non-stick`: `stick` rules do not store it.
    pub non_stick: bool,
    /// In maintenance.
    pub disabled: bool,
    /// `init-addr`; empty means `last,libc`.
    pub init_addr: Vec<InitAddr>,
    /// How its name is resolved while the process runs.
    pub resolve: ResolveOptions,
    /// `hash-key`
    pub hash_key: HashKey,
    /// `guid`
    pub guid: Option<Octets>,
    /// PROXY protocol.
    pub send_proxy: SendProxy,
    /// The source of connections; it overrides the backend's.
    pub source: Option<Source>,
    /// The SOCKS4 proxy for connections to the server.
    pub socks4: Option<Addr>,
    /// Socket options of connections.
    pub tcp: TcpOptions,
    /// `tfo`: the first bytes may be sent in the SYN packet.
    pub tfo: bool,
    /// Most idle connections that are kept; None is unlimited.
    pub pool_max_conn: Option<u32>,
    /// `strict-maxconn`: idle connections count in `maxconn`.
    pub strict_maxconn: bool,
    /// Unused idle connections are closed after this time.
    pub pool_purge_delay: Duration,
    /// The interval of pings on idle HTTP/2 connections.
    pub idle_ping: Option<Duration>,
    /// Most requests on one connection after the first one; None is unlimited.
    pub max_reuse: Option<u32>,
    /// TLS of traffic, of health checks or of both; see [`ServerOptions::tls`].
    pub tls_words: Option<Box<ServerTls>>,
    /// Health checks, agent checks, and their consequences.
    pub checks: ServerChecks,
    /// `proto`: the protocol, without negotiation.
    pub proto: Option<Proto>,
    /// `ws`: the protocol of WebSocket requests; None: the same as for others (`auto`).
    pub ws: Option<Proto>,
    /// `pool-conn-name`: the name that distinguishes idle connections; None: the server name for
    /// TLS.
    pub pool_conn_name: Option<sample::Expr>,
    /// QUIC, where the server's address asks for it.
    pub quic: super::QuicServer,
}

impl ServerOptions {
    /// The number of idle connections that are kept and counted; None if they are neither limited
    /// nor counted.
    #[must_use]
    pub fn idle_max(&self) -> Option<u32> {
        self.pool_max_conn
            .or(self.strict_maxconn.then_some(u32::MAX))
    }

    /// TLS of connections for traffic; None without TLS.
    #[must_use]
    pub fn tls(&self) -> Option<&ServerTls> {
        self.tls_words.as_deref().filter(|tls| tls.ssl)
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            id: 0,
            weight: 1,
            maxconn: 0,
            minconn: 0,
            maxqueue: 0,
            log_stream: LogStreamOptions::default(),
            cookie: None,
            has_dynamic_cookie: false,
            redir: None,
            backup: false,
            non_stick: false,
            disabled: false,
            init_addr: Vec::new(),
            resolve: ResolveOptions::default(),
            hash_key: HashKey::default(),
            guid: None,
            send_proxy: SendProxy::default(),
            source: None,
            socks4: None,
            tcp: TcpOptions::default(),
            tfo: false,
            pool_max_conn: None,
            strict_maxconn: false,
            pool_purge_delay: Duration::from_secs(5),
            idle_ping: None,
            max_reuse: None,
            tls_words: None,
            checks: ServerChecks::default(),
            proto: None,
            ws: None,
            pool_conn_name: None,
            quic: super::QuicServer::default(),
        }
    }
}

/// The address of a server. `PortOffset`: the port is `+N`/`-N` relative to the client's
/// destination port. The unspecified address means the client's destination address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A whole address.
    Fixed(Addr),
    /// The port is relative to the client's destination port.
    PortOffset {
        /// The address.
        ip: IpAddr,
        /// Added to the port that the client connected to.
        offset: i32,
    },
}

impl ServerAddress {
    /// The IP address; none for a UNIX socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            ServerAddress::Fixed(addr) => addr.ip(),
            ServerAddress::PortOffset { ip, .. } => Some(*ip),
        }
    }

    /// The same port at another IP address; none for a UNIX socket.
    #[must_use]
    pub fn with_ip(&self, ip: IpAddr) -> Option<ServerAddress> {
        match self {
            ServerAddress::Fixed(Addr::Inet(addr)) => {
                let addr = SocketAddr::new(ip, addr.port());
                Some(ServerAddress::Fixed(Addr::Inet(addr)))
            }
            ServerAddress::PortOffset { offset, .. } => Some(ServerAddress::PortOffset {
                ip,
                offset: *offset,
            }),
            ServerAddress::Fixed(Addr::Unix(_)) => None,
        }
    }
}

/// The PROXY protocol header that is sent to a server before the data.
#[derive(Clone, Debug, Default)]
pub struct SendProxy {
    /// The text header.
    pub v1: bool,
    /// The binary header. If both are configured, only this one is sent, as in HAProxy.
    pub v2: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options crc32c`.
    pub crc32c: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `send-proxy-v2-ssl`, `proxy-v2-options ssl`: facts about the client's TLS.
    pub ssl: bool,
    /// `send-proxy-v2-ssl-cn`, `proxy-v2-options cert-cn`
    pub cert_cn: bool,
    /// `proxy-v2-options cert-key`
    pub cert_key: bool,
    /// `proxy-v2-options cert-sig`
    pub cert_sig: bool,
    /// `proxy-v2-options ssl-cipher`
    pub ssl_cipher: bool,
    /// `set-proxy-v2-tlv-fmt`.
    pub tlvs: Vec<(u8, sample::LogFormat)>,
}

impl SendProxy {
    /// Whether a header is sent.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.v1 || self.v2
    }
}

/// `source` of a backend or server.
#[derive(Clone, Debug)]
pub struct Source {
    /// The address; the port is 0 if none is written.
    pub addr: Addr,
    /// The source ports, if a range is written.
    pub ports: Option<Arc<SourcePorts>>,
    /// The address that servers see instead. Health checks still use `addr`.
    pub foreign: Option<ForeignSource>,
    /// Network interface.
    pub interface: Option<String>,
}

/// `source <addr>:<port>-<port>`: ports that all workers use in turn.
#[derive(Debug)]
pub struct SourcePorts {
    first: u16,
    count: u32,
    turn: AtomicU32,
}

impl SourcePorts {
    /// The ports from `first` to `last`, including both; `first` is at most `last`.
    #[must_use]
    pub fn new(first: u16, last: u16) -> SourcePorts {
        SourcePorts {
            first,
            count: u32::from(last.saturating_sub(first)) + 1,
            turn: AtomicU32::new(0),
        }
    }

    /// The next port.
    #[must_use]
    pub fn next(&self) -> u16 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        // The result is below the count, which is at most 65,536.
        self.first + (turn % self.count) as u16
    }

    /// The number of ports.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// `source … usesrc`: an address that can belong to another machine (manual §4.2 source).
#[derive(Clone, Debug)]
pub enum ForeignSource {
    /// This address; the port is 0 if none is written.
    Addr(Addr),
    /// The client's address and port.
    Client,
    /// The client's address; the system chooses the port.
    ClientIp,
    /// The address in a request header; the system chooses the port. Requests without the header
    /// use [`Source::addr`].
    Header(sample::Expr),
}
