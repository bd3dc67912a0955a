//! From whom this process learns, and the end of a lesson.

use super::Section;
use super::peer::Learning;

/// How long this process waits for someone to learn from.
pub(super) const RESYNC_MS: u64 = 5000;
/// The longest lesson.
const LESSON_MS_MAX: u64 = 600_000;

/// Where this process learns the entries that it does not have yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The process before this one.
    Local,
    /// Any other peer.
    Remote,
    /// Nothing is missing.
    Finished,
}

/// What is still to be learned.
#[derive(Debug)]
pub(super) struct Resync {
    pub source: Source,
    /// A peer was chosen.
    pub is_assigned: bool,
    /// When another source is tried: the chosen peer has sent nothing, or there is none.
    pub deadline_ms: Option<u64>,
    /// When the lesson of the chosen peer ends at the latest.
    lesson_ends_ms: u64,
}

impl Resync {
    pub fn new(follows_another: bool, now_ms: u64) -> Resync {
        let source = if follows_another {
            Source::Local
        } else {
            Source::Remote
        };
        Resync {
            source,
            is_assigned: false,
            deadline_ms: Some(now_ms + RESYNC_MS),
            lesson_ends_ms: 0,
        }
    }

    fn assign(&mut self, now_ms: u64) {
        self.is_assigned = true;
        self.deadline_ms = Some(now_ms + RESYNC_MS);
        self.lesson_ends_ms = now_ms + LESSON_MS_MAX;
    }

    /// The chosen peer has sent an entry.
    pub fn progress(&mut self, now_ms: u64) {
        self.deadline_ms = Some((now_ms + RESYNC_MS).min(self.lesson_ends_ms));
    }

    pub fn is_over(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|at| at <= now_ms)
    }

    /// Its flags in `show peers`, with HAProxy's bits.
    pub fn flags(&self) -> u32 {
        let source = match self.source {
            Source::Local => 0,
            Source::Remote => 1,
            Source::Finished => 3,
        };
        source | u32::from(self.is_assigned) << 2
    }
}

impl Section {
    /// A handshake has succeeded: chooses the peer, if someone is to be learned from.
    pub(super) fn may_learn(&mut self, peer: usize, is_ours: bool, now_ms: u64) {
        let (source, is_assigned) = (self.resync.source, self.resync.is_assigned);
        let peer = &mut self.peers[peer];
        if is_assigned {
            return;
        }
        peer.learning = match (peer.is_local, source) {
            // The old process begins by itself.
            (true, Source::Local) if !is_ours => Learning::Processing,
            (false, Source::Remote) => Learning::Assigned,
            _ => return,
        };
        self.resync.assign(now_ms);
    }

    /// A lesson ends before its end.
    pub(super) fn stop_learning(&mut self, peer: usize, now_ms: u64) {
        let peer = &mut self.peers[peer];
        if peer.learning != Learning::No {
            peer.learning = Learning::No;
            self.resync.is_assigned = false;
            self.resync.deadline_ms = Some(now_ms + RESYNC_MS);
        }
        peer.is_exhausted = false;
    }

    /// A peer has sent all entries. `is_complete`: it was up to date.
    pub(super) fn has_learned(&mut self, peer: usize, is_complete: bool, now_ms: u64) {
        if self.peers[peer].learning != Learning::Processing {
            return;
        }
        self.peers[peer].learning = Learning::No;
        self.resync.is_assigned = false;
        let shard = self.peers[peer].shard;
        if !is_complete {
            self.peers[peer].is_exhausted = true;
        } else if shard == 0 || self.is_last_shard(peer) {
            self.resync.source = Source::Finished;
            self.resync.deadline_ms = None;
            return;
        }
        self.resync.deadline_ms = Some(now_ms + RESYNC_MS);
    }

    /// Notes that the entries of a peer's shard are known; returns whether those of all shards are.
    fn is_last_shard(&mut self, learned: usize) -> bool {
        let shard = self.peers[learned].shard;
        let mut is_last = true;
        for peer in self.peers.iter_mut().filter(|peer| peer.shard > 0) {
            if peer.shard == shard {
                peer.is_exhausted = true;
            } else if !peer.is_exhausted {
                is_last = false;
            }
        }
        is_last
    }

    /// The chosen peer does not go on: another one is chosen.
    fn give_up_lesson(&mut self, now_ms: u64) {
        for peer in &mut self.peers {
            if peer.learning != Learning::No {
                peer.learning = Learning::No;
                peer.is_exhausted = true;
            }
        }
        self.resync.is_assigned = false;
        self.resync.deadline_ms = Some(now_ms + RESYNC_MS);
    }

    /// Goes on to the next source when the time of one is over; chooses a peer to learn from.
    pub(super) fn choose_source(&mut self, now_ms: u64) {
        if self.resync.is_assigned {
            if self.resync.is_over(now_ms) {
                self.give_up_lesson(now_ms);
            }
            return;
        }
        if self.resync.source == Source::Local && self.resync.is_over(now_ms) {
            self.resync.source = Source::Remote;
            self.resync.deadline_ms = Some(now_ms + RESYNC_MS);
        }
        if self.resync.source != Source::Remote {
            return;
        }
        let ready = |peer: &super::Peer| {
            let is_running = || {
                let connection = peer.connection.and_then(|id| self.connections.get(&id));
                connection.is_some_and(|one| matches!(one.phase, super::Phase::Running))
            };
            !peer.is_local && !peer.is_exhausted && is_running()
        };
        if let Some(peer) = self.peers.iter().position(ready) {
            self.peers[peer].learning = Learning::Assigned;
            self.resync.assign(now_ms);
            return;
        }
        let has_remote = self.peers.iter().any(|peer| !peer.is_local);
        if self.resync.is_over(now_ms) || !has_remote {
            self.resync.source = Source::Finished;
            self.resync.deadline_ms = None;
        }
    }
}
