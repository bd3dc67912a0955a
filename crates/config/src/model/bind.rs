//! Listening addresses (manual §5.1).

use std::time::Duration;

use super::BindTls;
use net::{Addr, TcpOptions};
use syntax::octets::Octets;

/// A `bind` line; one entry per address (port ranges and comma lists are expanded).
#[derive(Clone, Debug)]
pub struct Bind {
    /// Where to listen.
    pub address: BindAddress,
    /// In statistics and logs.
    pub name: Option<Octets>,
    /// Number in statistics.
    pub id: u32,
    /// Connections of this listener.
    pub maxconn: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Expect a PROXY protocol header.
    pub accept_proxy: bool,
    /// IPv6 takes IPv4 too.
    pub v4v6: bool,
    /// IPv6 does not take IPv4.
    pub v6only: bool,
    /// The interval of pings on idle connections of HTTP/2.
    pub idle_ping: Option<Duration>,
    /// Network interface.
    pub interface: Option<String>,
    /// TCP Fast Open.
    pub tfo: bool,
    /// Takes connections to addresses that are not this machine's.
    pub transparent: bool,
    /// Other options of its connections.
    pub tcp: TcpOptions,
    /// Accept only when data is there.
    pub defer_accept: bool,
    /// TLS; clear where none.
    pub tls: Option<Box<BindTls>>,
    /// `proto`: the protocol, whatever is negotiated.
    pub proto: Option<Proto>,
    /// Largest TCP segment.
    pub mss: Option<i32>,
    /// Whether SYN packets are kept: 0, 1, or 2 with their link headers.
    pub tcp_ss: u8,
    /// Rights of a UNIX socket's file.
    pub mode: Option<u32>,
    /// Owner of a UNIX socket's file.
    pub uid: Option<u32>,
    /// Group of a UNIX socket's file.
    pub gid: Option<u32>,
    /// Rights of the runtime interface.
    pub level: Option<String>,
    /// The runtime interface hands the listening sockets over.
    pub exposes_listeners: bool,
    /// How the runtime interface shows severities.
    pub severity_output: Option<String>,
    /// A name that identifies the listener for ever (`guid-prefix`).
    pub guid: Option<String>,
    /// `file:line` for start-up errors.
    pub origin: String,
}

/// Where a listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// To be bound.
    Addr(Addr),
    /// Inherited, bound already.
    Fd(i32),
}

/// The protocol of connections that `proto` forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proto {
    /// `none`: bytes.
    Tcp,
    /// `h1`
    H1,
    /// `h2`
    H2,
}
