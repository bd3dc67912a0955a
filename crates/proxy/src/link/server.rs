//! What a connection is to a server's side.

use std::sync::Arc;

use config::model::Proto;
use net::{Addr, Labels};
use sample::TlsFacts;

use super::Secure;
use crate::ids::{LinkId, ServerId};

/// A server's connection.
#[derive(Debug)]
pub(crate) struct Server {
    pub server: ServerId,
    /// It does not stand yet.
    pub connecting: bool,
    /// Responses it has completed.
    pub served: u32,
    /// It serves no other request than those it has: its server has moved or is in maintenance.
    pub is_ending: bool,
    /// Only the client that opened it may use it again.
    pub private: bool,
    /// Its place in the idle pool.
    pub pool_place: Option<u32>,
    /// Its place among those of its server that take streams of many clients.
    pub shared_place: Option<u32>,
    /// It is counted among the idle ones of all workers.
    pub is_pool_counted: bool,
    /// The client that keeps it, when it is private and idle.
    pub keeper: Option<LinkId>,
    /// The PROXY protocol header that it begins with; empty for none.
    pub header: Box<[u8]>,
    /// What tells it from other idle ones: the name that its TLS asked for, or what `pool-conn-name` says; empty for none.
    pub name: Box<[u8]>,
    /// What its TLS came to.
    pub tls: Option<Arc<TlsFacts>>,
    /// The protocol that was demanded of this connection alone (`ws`).
    pub proto: Option<Proto>,
    /// What its packets carry. A connection with any is private.
    pub labels: Labels,
    /// The SOCKS4 proxy on its way has not answered yet.
    pub socks4: Option<Box<Socks4>>,
}

/// The handshake with a SOCKS4 proxy.
#[derive(Debug)]
pub(crate) struct Socks4 {
    /// Where the proxy is to connect to.
    pub to: Addr,
    /// TLS with the server, which begins behind the handshake.
    pub secure: Option<Box<Secure>>,
}
