//! Listening addresses (manual §5.1).

use std::net::SocketAddr;
use std::time::Duration;

use super::BindTls;
use net::{Addr, TcpOptions};
use syntax::octets::Octets;

/// A `bind` line; one entry per address (port ranges and lists are expanded).
#[derive(Clone, Debug)]
pub struct Bind {
    /// The listening address.
    pub address: BindAddress,
    /// The name in statistics and logs.
    pub name: Option<Octets>,
    /// The id in statistics.
    pub id: u32,
    /// Most connections of this listener.
    pub maxconn: Option<u32>,
    /// Length of the kernel's accept queue.
    pub backlog: Option<u32>,
    /// Expect a PROXY protocol header.
    pub accept_proxy: bool,
    /// IPv6 accepts IPv4 too.
    pub v4v6: bool,
    /// IPv6 does not accept IPv4.
    pub v6only: bool,
    /// The interval of pings on idle HTTP/2 connections.
    pub idle_ping: Option<Duration>,
    /// QUIC.
    pub quic: super::QuicBind,
    /// Network interface.
    pub interface: Option<String>,
    /// TCP Fast Open.
    pub tfo: bool,
    /// Accepts connections to addresses of other machines.
    pub transparent: bool,
    /// Other options of its connections.
    pub tcp: TcpOptions,
    /// Accept only when data is there.
    pub defer_accept: bool,
    /// TLS settings; None without TLS.
    pub tls: Option<Box<BindTls>>,
    /// `proto`: the protocol, without negotiation.
    pub proto: Option<Proto>,
    /// Largest TCP segment.
    pub mss: Option<i32>,
    /// Whether SYN packets are kept: 0, 1, or 2 with their link headers.
    pub tcp_ss: u8,
    /// Permissions of a UNIX socket's file.
    pub mode: Option<u32>,
    /// Owner of a UNIX socket's file.
    pub uid: Option<u32>,
    /// Group of a UNIX socket's file.
    pub gid: Option<u32>,
    /// Access level of the runtime interface.
    pub level: Option<String>,
    /// The runtime interface hands over the listening sockets.
    pub exposes_listeners: bool,
    /// How the runtime interface shows severities.
    pub severity_output: Option<String>,
    /// Only a previous configuration of the process has it: it keeps the place for connections that
    /// still exist.
    pub is_removed: bool,
    /// A permanent name of the listener (`guid-prefix`).
    pub guid: Option<String>,
    /// `file:line` for errors at the start.
    pub origin: String,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// The process binds it.
    Addr(Addr),
    /// The process binds it for datagrams, which carry QUIC.
    Quic(SocketAddr),
    /// An inherited descriptor, which is already bound.
    Fd(i32),
}

/// The protocol that `proto` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proto {
    /// `none`: raw bytes.
    Tcp,
    /// `h1`
    H1,
    /// `h2`
    H2,
}
