//! Servers (manual §5.2), and how one is chosen (manual §4.2 balance).

use super::{Proto, ServerChecks, ServerTls};
use net::{Addr, TcpOptions};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use syntax::octets::Octets;

/// `balance` (manual §4.2).
#[derive(Clone, Debug, Default)]
pub enum Balance {
    /// In turn, weights may change.
    #[default]
    RoundRobin,
    /// In turn, weights are fixed.
    StaticRr,
    /// The fewest connections.
    LeastConn,
    /// The lowest expected latency, beyond HAProxy: the peak-sensitive average of latencies (peak EWMA) times the requests that a
    /// server works on.
    LeastLatency,
    /// The first one with a free slot.
    First,
    /// The least loaded of some drawn by lot.
    Random {
        /// How many are drawn.
        draws: u32,
    },
    /// A hash of the client's address.
    Source,
    /// A hash of the URI.
    Uri {
        /// The query too.
        whole: bool,
        /// Bytes that count.
        len: Option<usize>,
        /// Directories that count.
        depth: Option<usize>,
        /// Without scheme and authority.
        path_only: bool,
    },
    /// A hash of a query parameter.
    UrlParam {
        /// Its name.
        name: Octets,
        /// In the body of a POST as well, where the query has none.
        check_post: bool,
    },
    /// A hash of a header.
    Hdr {
        /// Its name.
        name: Octets,
        /// Only the middle part of a host name.
        use_domain_only: bool,
    },
    /// A hash of an expression.
    Hash(sample::Expr),
    /// `mode log`: always the same server, as long as there is it.
    Sticky,
    /// `mode log`: a hash of what converters make of a message.
    LogHash(sample::Expr),
}

impl Balance {
    /// Whether weights may be changed while traffic runs, beyond none and all.
    #[must_use]
    pub fn takes_weights(&self) -> bool {
        self.is_dynamic() || matches!(self, Balance::First)
    }

    /// Whether a part of a server's weight may count (`slowstart`): HAProxy's `BE_LB_PROP_DYN`.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        matches!(
            self,
            Balance::RoundRobin | Balance::LeastConn | Balance::Random { .. }
        )
    }
}

/// `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashType {
    /// How a hash leads to a server.
    pub method: HashMethod,
    /// The function.
    pub function: HashFunction,
    /// Mixes the hash once more.
    pub avalanche: bool,
}

/// The methods of `hash-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashMethod {
    /// `map-based`: a fixed map of the servers in use.
    #[default]
    Map,
    /// `consistent`: the closest of the points that servers have on a ring.
    Ring,
}

/// `hash-preserve-affinity`: which servers a hash on a ring passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashAffinity {
    /// None.
    #[default]
    Always,
    /// Those that have `maxconn` requests.
    Maxconn,
    /// Those whose queue is full as well.
    Maxqueue,
}

/// `hash-key`: what places the points of a server on the ring.
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

/// A method of `init-addr`: where the address of a server with a name comes from when the process starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAddr {
    /// The file of states.
    Last,
    /// The system's resolver.
    Libc,
    /// Nowhere: the server starts without an address.
    None,
    /// This one.
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
    /// `none`: the key is the number.
    None,
}

/// A `server` line. Its options read as fields of its own.
#[derive(Clone, Debug)]
pub struct Server {
    /// As written.
    pub name: String,
    /// Where it is.
    pub address: ServerAddress,
    /// Its name could not be resolved: it is in maintenance until it has an address.
    pub unresolved: bool,
    /// Other lines name it, so it cannot be deleted while traffic runs.
    pub is_named: bool,
    /// Of a backend in `mode log`: takes messages as datagrams; else over TCP.
    pub takes_datagrams: bool,
    /// What follows the address, over what `default-server` says.
    pub options: ServerOptions,
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
    /// Number in statistics.
    pub id: u32,
    /// Share of the load, 0 to 256.
    pub weight: u32,
    /// Connections; 0 is unlimited.
    pub maxconn: u32,
    /// Lower bound of a dynamic `maxconn`; 0 is none.
    pub minconn: u32,
    /// Length of the queue; 0 is unlimited.
    pub maxqueue: u32,
    /// Its value of the persistence cookie.
    pub cookie: Option<Octets>,
    /// That value is made of its address (`cookie … dynamic`).
    pub has_dynamic_cookie: bool,
    /// GET and HEAD are answered with a redirect to this place, before the request's path.
    pub redir: Option<Octets>,
    /// Used only when no other server is.
    pub backup: bool,
    /// `non-stick`: `stick` rules do not remember it.
    pub non_stick: bool,
    /// In maintenance.
    pub disabled: bool,
    /// `init-addr`; none is `last,libc`.
    pub init_addr: Vec<InitAddr>,
    /// `hash-key`
    pub hash_key: HashKey,
    /// `guid`
    pub guid: Option<Octets>,
    /// PROXY protocol.
    pub send_proxy: SendProxy,
    /// Where connections come from; before the backend's.
    pub source: Option<Source>,
    /// The SOCKS4 proxy that leads to it.
    pub socks4: Option<Addr>,
    /// Socket options of connections.
    pub tcp: TcpOptions,
    /// `tfo`: the first bytes may leave with the SYN.
    pub tfo: bool,
    /// Idle connections that are kept; none is unlimited.
    pub pool_max_conn: Option<u32>,
    /// `strict-maxconn`: idle connections count in `maxconn`.
    pub strict_maxconn: bool,
    /// Time after which unused idle connections are closed.
    pub pool_purge_delay: Duration,
    /// The interval of pings on idle connections of HTTP/2.
    pub idle_ping: Option<Duration>,
    /// Requests on one connection after the first one; none is unlimited.
    pub max_reuse: Option<u32>,
    /// TLS of traffic, of health checks or of both; see [`ServerOptions::tls`].
    pub tls_words: Option<Box<ServerTls>>,
    /// Health checks, agent checks, and what follows from them.
    pub checks: ServerChecks,
    /// `proto`: the protocol, whatever is negotiated.
    pub proto: Option<Proto>,
    /// `ws`: the protocol of WebSocket requests; none is that of the others, `auto`.
    pub ws: Option<Proto>,
    /// `pool-conn-name`: what tells idle connections apart; none is the name that TLS asks for.
    pub pool_conn_name: Option<sample::Expr>,
}

impl ServerOptions {
    /// How many idle connections are kept and counted; none where they are neither limited nor counted.
    #[must_use]
    pub fn idle_max(&self) -> Option<u32> {
        self.pool_max_conn
            .or(self.strict_maxconn.then_some(u32::MAX))
    }

    /// TLS of connections for traffic; they are clear where none.
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
            cookie: None,
            has_dynamic_cookie: false,
            redir: None,
            backup: false,
            non_stick: false,
            disabled: false,
            init_addr: Vec::new(),
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
        }
    }
}

/// Where a server is. `PortOffset`: the address has no fixed port but `+N`/`-N` from the client's destination port.
/// The unspecified address means the client's destination address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A whole address.
    Fixed(Addr),
    /// The port follows the client's.
    PortOffset {
        /// The address.
        ip: IpAddr,
        /// Added to the port that the client connected to.
        offset: i32,
    },
}

/// The PROXY protocol header that a server is sent before the data.
#[derive(Clone, Debug, Default)]
pub struct SendProxy {
    /// The text header.
    pub v1: bool,
    /// The binary header; it alone where both are asked for, as in HAProxy.
    pub v2: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options crc32c`.
    pub crc32c: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `send-proxy-v2-ssl`, `proxy-v2-options ssl`: what is known of the client's TLS.
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
    /// Whether there is a header.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.v1 || self.v2
    }
}

/// `source` of a backend or server.
#[derive(Clone, Debug)]
pub struct Source {
    /// Address, with port 0 where none is written.
    pub addr: Addr,
    /// The ports that connections come from, where a range is written.
    pub ports: Option<Arc<SourcePorts>>,
    /// The address that servers see instead of it. Health checks still come from `addr`.
    pub foreign: Option<ForeignSource>,
    /// Network interface.
    pub interface: Option<String>,
}

/// `source <addr>:<port>-<port>`: ports that are used in turn, by all workers together.
#[derive(Debug)]
pub struct SourcePorts {
    first: u16,
    count: u32,
    turn: AtomicU32,
}

impl SourcePorts {
    /// From one port to another, both included; `first` is at most `last`.
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
        // Below the count, which is at most 65,536.
        self.first + (turn % self.count) as u16
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// `source … usesrc`: an address that need not be this machine's (manual §4.2 source).
#[derive(Clone, Debug)]
pub enum ForeignSource {
    /// This one, with port 0 where none is written.
    Addr(Addr),
    /// The client's address and port.
    Client,
    /// The client's address, with a port that the system chooses.
    ClientIp,
    /// The address in a request header, with a port that the system chooses. Requests without one come from
    /// [`Source::addr`].
    Header(sample::Expr),
}
