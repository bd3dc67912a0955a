//! One peer.

use tables::{Place, UpdateId};

use super::{ConnId, PeerSetup};
use crate::handshake::Status;
use crate::view::PeerCounters;

/// Whether this process learns from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learning {
    No,
    /// The peer is to be asked.
    Assigned,
    /// Its entries arrive.
    Processing,
}

impl Learning {
    /// Its name in `show peers`.
    pub fn name(self) -> &'static str {
        match self {
            Learning::No => "NOTASSIGNED",
            Learning::Assigned => "ASSIGNED",
            Learning::Processing => "PROCESSING",
        }
    }
}

/// How far all entries of a table were sent to a peer that asked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lesson {
    /// From this place on, they are still to be sent.
    From(Place),
    Done,
}

/// A table and a peer.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The last update that the peer has acknowledged.
    pub acked: UpdateId,
    /// The last update that was sent.
    pub pushed: UpdateId,
    pub lesson: Lesson,
    /// The last update when the lesson began.
    pub lesson_from: UpdateId,
    /// The number that the peer gave to the table; 0 before it did.
    pub remote_id: u64,
    /// The data types of its updates, as bits.
    pub remote_data: u64,
    /// The number of the last update that the peer sent.
    pub got: u32,
    /// The last of its updates that this process acknowledged.
    pub acked_to_peer: u32,
}

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub name: String,
    pub shown: String,
    pub shard: u32,
    pub is_local: bool,
    pub connection: Option<ConnId>,
    pub status: Status,
    /// It knows only version 2.0.
    pub is_old: bool,
    pub learning: Learning,
    /// It was learned from, and there is nothing more to learn.
    pub is_exhausted: bool,
    /// It asked for all entries, and has not confirmed them.
    pub is_teaching: bool,
    /// All entries were sent.
    pub has_taught: bool,
    /// This process stops, and the peer has all entries.
    pub knows_all: bool,
    /// Resyncs to confirm.
    pub confirms: u32,
    /// It sent something in this period.
    pub is_alive: bool,
    /// A heartbeat is due.
    pub owes_heartbeat: bool,
    /// When it is connected to, or, with a connection, when it must have sent something.
    pub reconnect_ms: Option<u64>,
    pub heartbeat_ms: Option<u64>,
    pub last_handshake_ms: Option<u64>,
    pub counters: PeerCounters,
    pub shares: Vec<Share>,
}

impl Peer {
    pub fn new(setup: PeerSetup, is_local: bool, tables: usize) -> Peer {
        let share = Share {
            acked: 0,
            pushed: 0,
            lesson: Lesson::Done,
            lesson_from: 0,
            remote_id: 0,
            remote_data: 0,
            got: 0,
            acked_to_peer: 0,
        };
        Peer {
            name: setup.name,
            shown: setup.shown,
            shard: setup.shard,
            is_local,
            connection: None,
            status: Status::NONE,
            is_old: false,
            learning: Learning::No,
            is_exhausted: false,
            is_teaching: false,
            has_taught: false,
            knows_all: false,
            confirms: 0,
            is_alive: false,
            owes_heartbeat: false,
            reconnect_ms: None,
            heartbeat_ms: None,
            last_handshake_ms: None,
            counters: PeerCounters::default(),
            shares: vec![share; tables],
        }
    }

    /// Its flags in `show peers`, with HAProxy's bits.
    pub fn flags(&self) -> u32 {
        let bits = [
            (self.is_teaching, 1),
            (self.is_teaching && self.has_taught, 2),
            (self.knows_all, 4),
            (self.is_exhausted, 8),
            (self.is_alive, 0x20),
            (self.owes_heartbeat, 0x40),
            (self.is_old, 0x80),
        ];
        bits.iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, bit)| bit)
            .sum()
    }
}
