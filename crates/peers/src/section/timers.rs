//! Connections that are due, heartbeats, silent peers, and the soft stop.

use super::connection::{Connection, Phase};
use super::resync::RESYNC_MS;
use super::{ConnId, Section};
use crate::handshake::Status;

/// The pause between connections to a peer, and the time in which it must send something.
pub(super) const RECONNECT_MS: u64 = 5000;
/// The pause between connections to the new process at a soft stop.
const LOCAL_RECONNECT_MS: u64 = 500;
/// When nothing else was sent for so long, a heartbeat is.
pub(super) const HEARTBEAT_MS: u64 = 3000;
/// The random pause after a connection was closed by this side.
const PAUSE_MS_MIN: u64 = 50;
const PAUSE_MS_SPREAD: u64 = 2000;

/// A soft stop: the new process gets all entries.
#[derive(Debug)]
pub(super) struct Stop {
    /// Without progress until then, it is given up.
    deadline_ms: u64,
    /// It is given up then in any case.
    ends_ms: u64,
    is_over: bool,
}

impl Stop {
    pub fn progress(&mut self, now_ms: u64) {
        self.deadline_ms = (now_ms + RESYNC_MS).min(self.ends_ms);
    }
}

impl Section {
    /// Does what is due. Callers call it after each other function too, which may have made
    /// something due.
    pub fn tick(&mut self, now_ms: u64) {
        self.close_late(now_ms);
        if self.stop.is_some() {
            return self.tick_stop(now_ms);
        }
        self.choose_source(now_ms);
        for index in 0..self.peers.len() {
            if !self.peers[index].is_local {
                self.tick_peer(index, now_ms);
            }
        }
    }

    /// When [`Section::tick`] is to be called at the latest.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        let connections = self.connections.values().filter_map(|one| one.deadline_ms);
        if let Some(stop) = &self.stop {
            let local = self.peers.iter().find(|peer| peer.is_local);
            let reconnect = local.filter(|peer| peer.connection.is_none());
            let reconnect = reconnect.and_then(|peer| peer.reconnect_ms);
            let own = reconnect.into_iter().chain([stop.deadline_ms]);
            return own.chain(connections).min();
        }
        let remote = self.peers.iter().filter(|peer| !peer.is_local);
        let peers = remote.flat_map(|peer| {
            let heartbeat = peer.heartbeat_ms.filter(|_| peer.connection.is_some());
            [peer.reconnect_ms, heartbeat]
        });
        connections
            .chain(peers.flatten())
            .chain(self.resync.deadline_ms)
            .min()
    }

    /// The process stops softly: other peers are left, and the process that follows gets all
    /// entries, within this time.
    pub fn stop(&mut self, now_ms: u64, within_ms: Option<u64>) {
        let all: Vec<ConnId> = self.connections.keys().copied().collect();
        for id in all {
            self.close(id, now_ms);
        }
        self.to_open.clear();
        let mut stop = Stop {
            deadline_ms: 0,
            ends_ms: now_ms.saturating_add(within_ms.unwrap_or(u64::MAX)),
            is_over: false,
        };
        stop.progress(now_ms);
        self.stop = Some(stop);
        for peer in self.peers.iter_mut().filter(|peer| peer.is_local) {
            peer.reconnect_ms = Some(now_ms);
            peer.status = Status::NONE;
        }
        self.tick(now_ms);
    }

    /// Whether a soft stop is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.is_over)
    }

    /// A pause that others do not make at the same time.
    pub(super) fn pause_ms(&mut self) -> u64 {
        PAUSE_MS_MIN + (self.random)() % PAUSE_MS_SPREAD
    }

    fn close_late(&mut self, now_ms: u64) {
        let late = |(id, one): (&ConnId, &Connection)| {
            one.deadline_ms
                .is_some_and(|at| at <= now_ms)
                .then_some(*id)
        };
        let late: Vec<ConnId> = self.connections.iter().filter_map(late).collect();
        for id in late {
            self.close(id, now_ms);
        }
    }

    fn open(&mut self, index: usize, pause_ms: u64, now_ms: u64) {
        let id = self.add(Connection::opening(index, now_ms));
        let peer = &mut self.peers[index];
        peer.connection = Some(id);
        peer.counters.connections = peer.counters.connections.wrapping_add(1);
        peer.reconnect_ms = Some(now_ms + pause_ms);
        peer.heartbeat_ms = None;
        peer.status = Status::CONNECTING;
        peer.is_alive = false;
        peer.last_handshake_ms = Some(now_ms);
        self.to_open.push((id, index));
    }

    fn tick_peer(&mut self, index: usize, now_ms: u64) {
        let peer = &mut self.peers[index];
        let is_due = peer.reconnect_ms.is_none_or(|at| at <= now_ms);
        let Some(id) = peer.connection else {
            if is_due {
                self.open(index, RECONNECT_MS, now_ms);
            }
            return;
        };
        let connection = self.connections.get(&id);
        if !connection.is_some_and(|one| matches!(one.phase, Phase::Running)) {
            // Its own deadline ends it.
            if is_due {
                peer.reconnect_ms = Some(now_ms + RECONNECT_MS);
            }
            return;
        }
        if is_due {
            if std::mem::take(&mut peer.is_alive) {
                peer.reconnect_ms = Some(now_ms + RECONNECT_MS);
            } else {
                peer.counters.silences = peer.counters.silences.wrapping_add(1);
                self.close(id, now_ms);
                let pause_ms = self.pause_ms();
                self.peers[index].reconnect_ms = Some(now_ms + pause_ms);
                return;
            }
        }
        if peer.heartbeat_ms.is_none_or(|at| at <= now_ms) {
            peer.heartbeat_ms = Some(now_ms + HEARTBEAT_MS);
            peer.owes_heartbeat = true;
        }
    }

    fn tick_stop(&mut self, now_ms: u64) {
        let local = self.peers.iter().position(|peer| peer.is_local);
        let Some(stop) = &mut self.stop else { return };
        let Some(index) = local.filter(|_| !stop.is_over && stop.deadline_ms > now_ms) else {
            stop.is_over = true;
            return;
        };
        let peer = &self.peers[index];
        if peer.connection.is_some() {
            return;
        }
        // A connection that could not be opened: nobody listens.
        let goes_on = matches!(
            peer.status,
            Status::NONE | Status::CONNECTED | Status::SUCCESS | Status::TRY_AGAIN
        );
        if peer.knows_all || !goes_on {
            stop.is_over = true;
        } else if peer.reconnect_ms.is_none_or(|at| at <= now_ms) {
            self.open(index, LOCAL_RECONNECT_MS, now_ms);
        }
    }
}
