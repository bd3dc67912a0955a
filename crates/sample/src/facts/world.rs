//! The data outside of a connection that an expression can read: names and counters of proxies and
//! servers, the process, the machine. The engine implements [`World`].

use std::net::IpAddr;

use net::{Addr, CpuOf, TcpInfo};

use crate::captured::CaptureSlot;
use crate::vars::{Change, VarLimits, VarNames};
use crate::{TokenAlgorithms, Value, Zone};

/// A server as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id (`srv_id`).
    pub id: u32,
    /// Established connections (`srv_conn`, `%sc`).
    pub connections: u32,
    /// Its `maxconn`, 0 for none.
    pub maxconn: u32,
    /// Requests in its queue.
    pub queue: u32,
    /// Its `maxqueue`, 0 for none.
    pub maxqueue: u32,
    /// It can accept traffic.
    pub is_up: bool,
    /// It gets traffic now. A backup server gets traffic only if no other server is up.
    pub takes_traffic: bool,
    /// The weight that the user set last (`srv_uweight`).
    pub user_weight: u32,
    /// Current weight (`srv_weight`).
    pub weight: u32,
    /// Configured weight (`srv_iweight`).
    pub initial_weight: u32,
}

/// A frontend or backend as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProxyFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id (`fe_id`, `be_id`).
    pub id: u32,
    /// Works in mode HTTP.
    pub is_http: bool,
    /// Connections of its frontend side (`fe_conn`, `%fc`).
    pub frontend_connections: u32,
    /// Connections of its backend side (`be_conn`, `%bc`).
    pub backend_connections: u32,
    /// Requests in all queues of the backend (`queue`).
    pub queue: u32,
    /// Usable servers (`nbsrv`).
    pub usable_servers: u32,
    /// Number of servers.
    pub servers: u32,
    /// Name of the default backend, empty for none (`fe_defbe`).
    pub default_backend: &'a str,
}

/// A side of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxySide {
    /// The side that accepts connections.
    Frontend,
    /// The side with servers.
    Backend,
}

/// A bind line as expressions see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BindFacts<'a> {
    /// Its name, empty for none.
    pub name: &'a [u8],
    /// Its id (`so_id`).
    pub id: u32,
    /// Connections on it (`dst_conn`).
    pub connections: u32,
}

/// A rate: events in the last second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Connections of a frontend (`fe_sess_rate`).
    FrontendSessions(u32),
    /// HTTP requests of a frontend (`fe_req_rate`).
    FrontendRequests(u32),
    /// Streams assigned to a backend (`be_sess_rate`).
    BackendSessions(u32),
    /// Streams assigned to a server of a backend (`srv_sess_rate`).
    ServerSessions(u32, u32),
}

/// One of the two connections of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    Client,
    /// The server's.
    Server,
}

/// The timeouts of a proxy in milliseconds, 0 for none, and its retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProxyTimeouts {
    pub client_ms: u64,
    pub connect_ms: u64,
    pub queue_ms: u64,
    pub server_ms: u64,
    pub tarpit_ms: u64,
    pub tunnel_ms: u64,
    pub retries: u32,
}

/// Names and live counters that expressions and logs read (`%f`, `%b`, `%s`, `%ac`, `nbsrv`, …). A
/// value is a snapshot; None for an index that does not exist.
pub trait World {
    /// A frontend or backend.
    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>>;
    /// A bind line of a frontend.
    fn bind(&self, frontend: u32, bind: u32) -> Option<BindFacts<'_>>;
    /// A server of a backend.
    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>>;
    /// The accepted algorithms of encrypted tokens.
    fn token_algorithms(&self) -> TokenAlgorithms {
        TokenAlgorithms::default()
    }
    /// The name of a proxy alone, which is all that a log line needs of most proxies. Empty for an
    /// index that does not exist.
    fn proxy_name(&self, proxy: u32) -> &str {
        self.proxy(proxy).map_or("", |proxy| proxy.name)
    }
    /// A proxy's id alone.
    fn proxy_id(&self, proxy: u32) -> Option<u32> {
        Some(self.proxy(proxy)?.id)
    }
    /// The size of a capture slot of a frontend in bytes; None for a slot that does not exist.
    fn capture_len(&self, _frontend: u32, _slot: CaptureSlot) -> Option<usize> {
        None
    }
    /// The proxy with this name and this side (`nbsrv`, `fe_exists`).
    fn proxy_named(&self, _name: &[u8], _side: ProxySide) -> Option<u32> {
        None
    }
    /// The server of this name in a backend (`srv_is_up`).
    fn server_named(&self, _backend: u32, _name: &[u8]) -> Option<u32> {
        None
    }
    /// [`ProxyFacts::frontend_connections`] alone.
    fn frontend_connections(&self, proxy: u32) -> u32 {
        self.proxy(proxy)
            .map_or(0, |proxy| proxy.frontend_connections)
    }
    /// [`ProxyFacts::backend_connections`] alone.
    fn backend_connections(&self, proxy: u32) -> u32 {
        self.proxy(proxy)
            .map_or(0, |proxy| proxy.backend_connections)
    }
    /// A server's name alone.
    fn server_name(&self, backend: u32, server: u32) -> Option<&str> {
        self.server(backend, server).map(|server| server.name)
    }
    /// [`ServerFacts::connections`] alone.
    fn server_connections(&self, backend: u32, server: u32) -> u32 {
        self.server(backend, server)
            .map_or(0, |server| server.connections)
    }
    /// A file of the configuration, by its number in [`RulePlace`](super::RulePlace); empty for one
    /// that does not exist.
    fn file_name(&self, _file: u32) -> &str {
        ""
    }
    /// Log lines of a frontend so far (`%lc`).
    fn logged(&self, _frontend: u32) -> u32 {
        0
    }
    /// `hostname`.
    fn hostname(&self) -> &str;
    /// `pid`.
    fn pid(&self) -> u32;
    /// The index of this worker, from 0.
    fn thread(&self) -> u32;
    /// Number of workers.
    fn nbthread(&self) -> u32;
    /// Connections of the whole process (`%ac`, `act_conn`).
    fn actconn(&self) -> u32;
    /// Lines with QUIC are bound (`tune.quic.listen`).
    fn quic_enabled(&self) -> bool;
    /// The process is draining.
    fn stopping(&self) -> bool;
    /// Seconds since the start of the process.
    fn uptime_seconds(&self) -> u64;
    /// Local time (`%t`, `ltime`).
    fn local_time(&self) -> &Zone;
    /// A random number (`rand`, `uuid`). In the simulation, it comes from the seed.
    fn random(&self) -> u64;
    /// The format of a frontend's unique ids.
    fn unique_id_format(&self, _frontend: u32) -> Option<&crate::LogFormat> {
        None
    }
    /// A rate: the sum over the workers.
    fn rate(&self, _of: Rate) -> u32 {
        0
    }
    /// The timeouts of a proxy; none for an index that does not exist.
    fn timeouts(&self, _proxy: u32) -> Option<ProxyTimeouts> {
        None
    }
    /// The smoothed round-trip time of a connection of this stream, microseconds; None without a
    /// connection, or if it is neither TCP nor QUIC.
    fn rtt_us(&self, side: Side) -> Option<u32> {
        Some(self.tcp_info(side)?.rtt_us)
    }
    /// The kernel's TCP information about a connection of this stream; None without a connection,
    /// or if it is not TCP.
    fn tcp_info(&self, _side: Side) -> Option<TcpInfo> {
        None
    }
    /// Appends the SYN packet of the client's connection. Returns false if the connection has none.
    fn saved_syn(&self, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// The local address of a connection of this stream.
    fn local_addr(&self, _side: Side) -> Option<Addr> {
        None
    }
    /// Whether an address belongs to this machine; None if the system does not tell.
    fn is_local(&self, _ip: IpAddr) -> Option<bool> {
        None
    }
    /// Processor use in percent, from 0 to 100, averaged over the threads.
    fn cpu_usage(&self, _of: CpuOf) -> u32 {
        0
    }
    /// A variable of scope `proc`.
    fn proc_var(&self, _slot: u32) -> Option<Value<'static>> {
        None
    }
    /// Changes a variable of scope `proc`, for all workers.
    fn change_proc_var(&self, _slot: u32, _change: Change) {}
    /// The names of all variables (`dump_all_vars`).
    fn var_names(&self) -> Option<&VarNames> {
        None
    }
    /// The memory limits of variables; None for no limit.
    fn var_limits(&self) -> Option<&VarLimits> {
        None
    }
    /// The size of all variables of the process for [`VarLimits`]; computed only if there is a
    /// limit.
    fn var_bytes(&self) -> usize {
        0
    }
}

/// An empty world: for the time before a configuration is complete, and for tests that need nothing
/// of it.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl World for Nowhere {
    fn proxy(&self, _: u32) -> Option<ProxyFacts<'_>> {
        None
    }
    fn bind(&self, _: u32, _: u32) -> Option<BindFacts<'_>> {
        None
    }
    fn server(&self, _: u32, _: u32) -> Option<ServerFacts<'_>> {
        None
    }
    fn hostname(&self) -> &str {
        ""
    }
    fn pid(&self) -> u32 {
        0
    }
    fn thread(&self) -> u32 {
        0
    }
    fn nbthread(&self) -> u32 {
        1
    }
    fn actconn(&self) -> u32 {
        0
    }
    fn quic_enabled(&self) -> bool {
        true
    }
    fn stopping(&self) -> bool {
        false
    }
    fn uptime_seconds(&self) -> u64 {
        0
    }
    fn local_time(&self) -> &Zone {
        Zone::utc()
    }
    fn random(&self) -> u64 {
        0
    }
}
