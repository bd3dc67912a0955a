//! The state of a section: its peers, their connections, and what this process has still to learn.
//!
//! | file | holds |
//! |---|---|
//! | `connection` | one connection: its phase and its buffers |
//! | `peer` | one peer: its timers and counters, and how far each table was told to it |
//! | `receive` | the handshake, and received messages |
//! | `send` | what is sent next |
//! | `resync` | from whom this process learns, and the end of a lesson |
//! | `timers` | connections that are due, heartbeats, silent peers, the soft stop |

mod connection;
mod peer;
mod receive;
mod resync;
mod send;
mod timers;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use tables::{Table, UpdateId, UpdateLog};

use crate::layout::Layout;
use crate::view::{PeerView, SectionView, TableView};
use connection::{Connection, Phase};
use peer::Peer;
use resync::Resync;

/// Connections per peer that may be open at once, as in HAProxy: each may be about to replace the
/// one before.
const CONNECTIONS_A_PEER: usize = 3;

/// A connection of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

/// What a section needs.
pub struct Setup {
    /// Its name.
    pub name: String,
    /// The name of this process among its peers.
    pub local: String,
    /// The number of this process.
    pub pid: u32,
    /// The peers, with this process.
    pub peers: Vec<PeerSetup>,
    /// The tables: those that other peers know, each with a log of its updates.
    pub tables: Vec<SharedTable>,
    /// `shards`: how many peers share the entries; 0: all have all.
    pub shards: u32,
    /// An older process may bring its entries.
    pub follows_another: bool,
    /// Random numbers.
    pub random: Box<dyn FnMut() -> u64 + Send>,
}

/// A peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSetup {
    /// Its name.
    pub name: String,
    /// Its address, as it is shown.
    pub shown: String,
    /// `shard`: the part of the entries that it is told; 0 for all.
    pub shard: u32,
}

/// A table of a section.
pub struct SharedTable {
    /// Its updates.
    pub log: UpdateLog,
    /// `write-to`: the table to which updates from peers are copied.
    pub write_to: Option<Arc<Table>>,
}

/// A table with its layout.
struct Shared {
    log: UpdateLog,
    write_to: Option<Arc<Table>>,
    layout: Layout,
    shard_seed: u64,
}

/// See the module.
pub struct Section {
    name: String,
    local: String,
    pid: u32,
    shards: u32,
    random: Box<dyn FnMut() -> u64 + Send>,
    peers: Vec<Peer>,
    tables: Vec<Shared>,
    connections: BTreeMap<ConnId, Connection>,
    next_connection: u64,
    /// Connections that the runner has to open, each with the index of its peer.
    to_open: Vec<(ConnId, usize)>,
    resync: Resync,
    stop: Option<timers::Stop>,
}

impl Section {
    /// A section at its start. Without the process itself among its peers, it only accepts.
    #[must_use]
    pub fn new(setup: Setup, now_ms: u64) -> Section {
        let count = setup.tables.len();
        let local = setup.local;
        let peers = setup.peers.into_iter().map(|peer| {
            let is_local = peer.name == local;
            Peer::new(peer, is_local, count)
        });
        let peers = peers.collect();
        let tables = setup.tables.into_iter().zip(1..).map(|(table, id)| {
            let definition = table.log.table().definition();
            Shared {
                layout: Layout::of(definition, id),
                shard_seed: crate::shard::seed(definition),
                log: table.log,
                write_to: table.write_to,
            }
        });
        Section {
            name: setup.name,
            local,
            pid: setup.pid,
            shards: setup.shards,
            random: setup.random,
            peers,
            tables: tables.collect(),
            connections: BTreeMap::new(),
            next_connection: 1,
            to_open: Vec::new(),
            resync: Resync::new(setup.follows_another, now_ms),
            stop: None,
        }
    }

    /// A connection was accepted; none if there are too many, and it is to be closed.
    pub fn accept(&mut self, now_ms: u64) -> Option<ConnId> {
        if self.connections.len() >= CONNECTIONS_A_PEER * self.peers.len() || self.stop.is_some() {
            return None;
        }
        Some(self.add(Connection::accepted(now_ms)))
    }

    fn add(&mut self, connection: Connection) -> ConnId {
        let id = ConnId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(id, connection);
        id
    }

    /// The connections that are to be opened, each with the index of its peer.
    pub fn take_connections(&mut self) -> Vec<(ConnId, usize)> {
        std::mem::take(&mut self.to_open)
    }

    /// A connection is there.
    pub fn connected(&mut self, id: ConnId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(peer) = connection.peer else { return };
        let peer = &mut self.peers[peer];
        connection.connected(
            &crate::handshake::hello(&peer.name, &self.local, self.pid, peer.is_old),
            now_ms,
        );
        peer.status = crate::handshake::Status::CONNECTED;
        peer.last_handshake_ms = Some(now_ms);
    }

    /// A connection has ended, or could not be opened.
    pub fn lost(&mut self, id: ConnId, now_ms: u64) {
        self.close(id, now_ms);
    }

    /// Whether the connection is still wanted. When it is not, the bytes that [`Section::pull`]
    /// returned are to be sent before it is closed.
    #[must_use]
    pub fn wants(&self, id: ConnId) -> bool {
        let connection = self.connections.get(&id);
        connection.is_some_and(|connection| !matches!(connection.phase, Phase::Closing))
    }

    /// Whether the connection still exists. If it was lost, it is closed at once.
    #[must_use]
    pub fn exists(&self, id: ConnId) -> bool {
        self.connections.contains_key(&id)
    }

    /// Ends a connection.
    fn close(&mut self, id: ConnId, now_ms: u64) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        let Some(peer) = connection.peer else { return };
        if self.peers[peer].connection == Some(id) {
            self.peers[peer].connection = None;
            self.peers[peer].is_teaching = false;
            self.peers[peer].confirms = 0;
            self.stop_learning(peer, now_ms);
        }
    }

    /// The highest number of an update of a table that any peer was told.
    fn told(&self, table: usize) -> UpdateId {
        let peers = self.peers.iter().filter(|peer| !peer.is_local);
        peers
            .map(|peer| peer.shares[table].pushed)
            .max()
            .unwrap_or(0)
    }

    /// Takes the updates of the tables; returns whether there are any.
    pub fn collect(&mut self) -> bool {
        let mut any = false;
        for table in 0..self.tables.len() {
            let told = self.told(table);
            any |= self.tables[table].log.collect(told);
        }
        any
    }

    /// Has the tables wake the runner at the next update; false if there is one already.
    #[must_use]
    pub fn sleep(&self) -> bool {
        self.tables.iter().all(|table| table.log.sleep())
    }

    /// A look at the section.
    #[must_use]
    pub fn view(&self, now_ms: u64) -> SectionView {
        SectionView {
            name: self.name.clone(),
            flags: self.resync.flags(),
            resync_in_ms: self.resync.deadline_ms.map(|at| at as i64 - now_ms as i64),
            peers: self
                .peers
                .iter()
                .map(|peer| self.peer_view(peer, now_ms))
                .collect(),
        }
    }

    fn peer_view(&self, peer: &Peer, now_ms: u64) -> PeerView {
        let connection = peer.connection.and_then(|id| self.connections.get(&id));
        let left = |at: Option<u64>| at.map(|at| at as i64 - now_ms as i64);
        let tables = self.tables.iter().zip(&peer.shares).zip(1..);
        PeerView {
            name: peer.name.clone(),
            is_local: peer.is_local,
            is_active: connection.is_some(),
            is_connected: connection.is_some_and(|one| matches!(one.phase, Phase::Running)),
            address: peer.shown.clone(),
            learning: peer.learning.name(),
            status: peer.status.name(),
            handshake_ago_ms: peer.last_handshake_ms.map(|at| now_ms.saturating_sub(at)),
            reconnect_in_ms: left(peer.reconnect_ms),
            heartbeat_in_ms: left(peer.heartbeat_ms),
            confirms: peer.confirms,
            counters: peer.counters,
            flags: peer.flags(),
            tables: tables
                .map(|((table, share), id)| TableView {
                    name: table.log.table().definition().name.clone(),
                    local_id: id,
                    remote_id: share.remote_id,
                    remote_data: share.remote_data,
                    last_acked: share.acked_to_peer,
                    last_pushed: share.pushed as u32,
                    last_got: share.got,
                    update: share.acked as u32,
                    last_update: table.log.last() as u32,
                })
                .collect(),
            sent_names: connection.map_or_else(Vec::new, |one| one.sent.names().to_vec()),
            received_names: connection.map_or_else(Vec::new, |one| one.received.names().to_vec()),
        }
    }
}
