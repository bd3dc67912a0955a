//! The state of a connection on the server's side.

use std::sync::Arc;

use config::model::Proto;
use net::{Addr, Labels};
use sample::TlsFacts;

use super::Secure;
use crate::ids::{ConnId, ServerId};

/// A server's connection.
#[derive(Debug)]
pub(crate) struct Server {
    pub server: ServerId,
    /// It is not established yet.
    pub connecting: bool,
    /// The number of completed responses.
    pub served: u32,
    /// It takes no new requests, because its server has moved or is in maintenance.
    pub is_ending: bool,
    /// Only the client that opened it may reuse it.
    pub private: bool,
    /// Its place in the idle pool.
    pub pool_place: Option<u32>,
    /// Its place in the list of its server's connections that take streams of many clients.
    pub shared_place: Option<u32>,
    /// It is counted among the idle connections that take streams of many clients.
    pub is_shared_idle: bool,
    /// It is included in the count of idle connections of all workers.
    pub is_pool_counted: bool,
    /// The client that keeps it, while it is private and idle.
    pub keeper: Option<ConnId>,
    /// The PROXY protocol header at its start; empty for none.
    pub header: Box<[u8]>,
    /// The name that distinguishes it from other idle connections: the SNI name, or
    /// `pool-conn-name`; empty for none.
    pub name: Box<[u8]>,
    /// The facts of its TLS session.
    pub tls: Option<Arc<TlsFacts>>,
    /// The protocol that only this connection must use (`ws`).
    pub proto: Option<Proto>,
    /// The mark and TOS of its packets. A connection with a mark or TOS is private.
    pub labels: Labels,
    /// The SOCKS4 handshake, which is not complete.
    pub socks4: Option<Box<Socks4>>,
}

/// The handshake with a SOCKS4 proxy.
#[derive(Debug)]
pub(crate) struct Socks4 {
    /// The destination that the proxy is asked to connect to.
    pub to: Addr,
    /// The TLS session with the server, which begins after the handshake.
    pub secure: Option<Box<Secure>>,
}
