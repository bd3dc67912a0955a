//! Sections `peers` (manual §11.2).

use net::Addr;

use super::{Bind, ServerTls};

/// A section `peers`.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Its name.
    pub name: String,
    /// `disabled`: nothing is shared.
    pub is_disabled: bool,
    /// The peers, with this process if it has a line.
    pub peers: Vec<Peer>,
    /// Where this process listens for other peers.
    pub bind: Option<Bind>,
    /// `shards`: the number of peers that have a part of the entries each; 0: all have all.
    pub shards: u32,
    /// `file:line`.
    pub origin: String,
}

/// A peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// It is this process.
    pub is_local: bool,
    /// Its address; none: that of [`Peers::bind`].
    pub address: Option<Addr>,
    /// `shard`: its part of the entries; 0 for all.
    pub shard: u32,
    /// TLS of connections to it; none for plain connections.
    pub tls: Option<Box<ServerTls>>,
    /// `file:line`.
    pub origin: String,
}

impl Peers {
    /// Whether the section shares tables: it has this process among its peers.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.is_disabled && self.peers.iter().any(|peer| peer.is_local)
    }
}
