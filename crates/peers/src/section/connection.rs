//! One connection.

use std::collections::BTreeMap;

use crate::dictionary::{Received, Sent};
use crate::handshake::{Greeting, Status};
use crate::layout::Layout;

/// How long a connection may take to be there, as HAProxy's `timeout connect` of peers.
pub(super) const CONNECT_MS: u64 = 1000;
/// How long a handshake may take, as HAProxy's `timeout client` of peers.
pub(super) const HANDSHAKE_MS: u64 = 5000;

/// The phase of a connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// It is being opened.
    Connecting,
    /// The peer that connected says who it is.
    Greeting(Greeting),
    /// The peer that was connected to answers the hello.
    Status,
    /// Messages go both ways.
    Running,
    /// What is left to send is sent, then it ends.
    Closing,
}

/// The table of the updates that come next.
#[derive(Debug)]
pub(super) struct RemoteTable {
    pub layout: Layout,
    /// The same table of this process; none if it has no table of this name.
    pub table: Option<usize>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub phase: Phase,
    /// The peer, once it is known.
    pub peer: Option<usize>,
    /// This process opened it.
    pub is_ours: bool,
    /// When it ends unless the handshake is over.
    pub deadline_ms: Option<u64>,
    /// Received bytes of an incomplete line or message.
    pub input: Vec<u8>,
    /// Bytes to send before anything else.
    pub output: Vec<u8>,
    pub sent: Sent,
    pub received: Received,
    pub remote: Option<RemoteTable>,
    /// The layouts of the tables of this process that the peer has introduced.
    pub layouts: BTreeMap<usize, Layout>,
    /// The table that was introduced to the peer last.
    pub introduced: Option<usize>,
    /// The table whose updates are sent next.
    pub next_table: usize,
}

impl Connection {
    fn new(phase: Phase, peer: Option<usize>, deadline_ms: u64) -> Connection {
        Connection {
            is_ours: peer.is_some(),
            phase,
            peer,
            deadline_ms: Some(deadline_ms),
            input: Vec::new(),
            output: Vec::new(),
            sent: Sent::default(),
            received: Received::default(),
            remote: None,
            layouts: BTreeMap::new(),
            introduced: None,
            next_table: 0,
        }
    }

    /// One that a peer opened.
    pub fn accepted(now_ms: u64) -> Connection {
        let phase = Phase::Greeting(Greeting::default());
        Connection::new(phase, None, now_ms + HANDSHAKE_MS)
    }

    /// One that is opened to a peer.
    pub fn opening(peer: usize, now_ms: u64) -> Connection {
        Connection::new(Phase::Connecting, Some(peer), now_ms + CONNECT_MS)
    }

    /// It is there: the hello is sent.
    pub fn connected(&mut self, hello: &str, now_ms: u64) {
        self.output.extend_from_slice(hello.as_bytes());
        self.phase = Phase::Status;
        self.deadline_ms = Some(now_ms + HANDSHAKE_MS);
    }

    /// Refuses a hello.
    pub fn refuse(&mut self, status: Status, now_ms: u64) {
        self.output.extend_from_slice(status.line().as_bytes());
        self.end(now_ms);
    }

    /// Ends the connection when all output is sent, or after [`HANDSHAKE_MS`].
    pub fn end(&mut self, now_ms: u64) {
        self.input = Vec::new();
        self.phase = Phase::Closing;
        self.deadline_ms = Some(now_ms + HANDSHAKE_MS);
    }
}
