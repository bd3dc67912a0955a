//! What `show peers` shows.

use std::sync::Arc;

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionView {
    /// Its name.
    pub name: String,
    /// What is still to be learned, with HAProxy's bits.
    pub flags: u32,
    /// Milliseconds until another source is tried.
    pub resync_in_ms: Option<i64>,
    /// The peers.
    pub peers: Vec<PeerView>,
}

/// A peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Its name.
    pub name: String,
    /// It is this process.
    pub is_local: bool,
    /// It has a connection, maybe one that is being opened.
    pub is_active: bool,
    /// Its handshake is over.
    pub is_connected: bool,
    /// Its address.
    pub address: String,
    /// Whether this process learns from it.
    pub learning: &'static str,
    /// The status of its last connection.
    pub status: &'static str,
    /// Milliseconds since its last handshake.
    pub handshake_ago_ms: Option<u64>,
    /// Milliseconds until it is connected to.
    pub reconnect_in_ms: Option<i64>,
    /// Milliseconds until the next heartbeat.
    pub heartbeat_in_ms: Option<i64>,
    /// Resyncs to confirm.
    pub confirms: u32,
    /// Its counters.
    pub counters: PeerCounters,
    /// HAProxy's bits.
    pub flags: u32,
    /// The tables.
    pub tables: Vec<TableView>,
    /// The names that it has received, by number.
    pub sent_names: Vec<Arc<str>>,
    /// The names that it has sent, by number.
    pub received_names: Vec<Option<Arc<str>>>,
}

/// The counters of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Heartbeats sent.
    pub heartbeats_sent: u32,
    /// Heartbeats received.
    pub heartbeats_received: u32,
    /// Connections that were closed because nothing was received.
    pub silences: u32,
    /// Connections that were opened.
    pub connections: u32,
    /// Malformed messages.
    pub protocol_errors: u32,
    /// Connections that were replaced.
    pub collisions: u32,
}

/// A table and a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableView {
    /// The table's name.
    pub name: String,
    /// The number that this process gave to it.
    pub local_id: u64,
    /// The number that the peer gave to it; 0 before it did.
    pub remote_id: u64,
    /// The data types of the peer's updates, as bits.
    pub remote_data: u64,
    /// The last update that was acknowledged to the peer.
    pub last_acked: u32,
    /// The last update that was sent.
    pub last_pushed: u32,
    /// The last update that was received.
    pub last_got: u32,
    /// The last update that the peer acknowledged.
    pub update: u32,
    /// The last update of the table.
    pub last_update: u32,
}
