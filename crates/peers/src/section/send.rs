//! What is sent next.

use std::sync::Arc;

use tables::{Place, Table, UpdateLog};

use super::connection::{Connection, Phase};
use super::peer::{Learning, Lesson, Peer};
use super::resync::Source;
use super::{ConnId, Section, Shared};
use crate::message::{self, BODY_BYTES_MAX, Control, UpdateKind};
use crate::shard;
use crate::update::{self, Form};

/// The bytes of one turn, after which others have theirs.
const TURN_BYTES: usize = 16 << 10;

impl Section {
    /// The next bytes to send; empty if there are none. They count as sent.
    pub fn pull(&mut self, id: ConnId, now_ms: u64) -> Vec<u8> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Vec::new();
        };
        if matches!(connection.phase, Phase::Running)
            && let Some(peer) = connection.peer
        {
            let is_complete = self.resync.source == Source::Finished;
            let sending = Sending {
                connection,
                peer: &mut self.peers[peer],
                tables: &self.tables,
                shards: self.shards,
                now_ms,
            };
            sending.fill(is_complete);
        }
        let output = std::mem::take(&mut connection.output);
        if output.is_empty() && matches!(connection.phase, Phase::Closing) {
            self.close(id, now_ms);
        } else if !output.is_empty()
            && matches!(connection.phase, Phase::Running)
            && let Some(stop) = &mut self.stop
        {
            stop.progress(now_ms);
        }
        output
    }
}

/// A connection whose turn it is.
struct Sending<'a> {
    connection: &'a mut Connection,
    peer: &'a mut Peer,
    tables: &'a [Shared],
    shards: u32,
    now_ms: u64,
}

impl Sending<'_> {
    fn fill(mut self, is_complete: bool) {
        if self.peer.learning == Learning::Assigned {
            message::put_control(&mut self.connection.output, Control::ResyncRequest);
            self.peer.learning = Learning::Processing;
        }
        if std::mem::take(&mut self.peer.owes_heartbeat) {
            message::put_control(&mut self.connection.output, Control::Heartbeat);
            let sent = &mut self.peer.counters.heartbeats_sent;
            *sent = sent.wrapping_add(1);
        }
        self.acks();
        if self.peer.is_teaching {
            self.lesson(is_complete);
        } else if self.peer.learning == Learning::No {
            self.updates();
        }
        while self.peer.confirms > 0 && self.has_room() {
            message::put_control(&mut self.connection.output, Control::ResyncConfirm);
            self.peer.confirms -= 1;
        }
    }

    fn has_room(&self) -> bool {
        self.connection.output.len() < TURN_BYTES
    }

    fn acks(&mut self) {
        for share in &mut self.peer.shares {
            if share.got != share.acked_to_peer && share.remote_id != 0 {
                message::put_ack(&mut self.connection.output, share.remote_id, share.got);
                share.acked_to_peer = share.got;
            }
        }
    }

    /// Introduces a table, unless it is the last one that was introduced.
    fn introduce(&mut self, table: usize) {
        if self.connection.introduced != Some(table) {
            let body = self.tables[table].layout.body();
            message::put_definition(&mut self.connection.output, &body);
            self.connection.introduced = Some(table);
        }
    }

    /// Updates of this process that the peer does not know, of one table after the other.
    fn updates(&mut self) {
        let count = self.tables.len();
        for step in 0..count {
            let table = (self.connection.next_table + step) % count;
            let shared = &self.tables[table];
            while self.peer.shares[table].pushed < shared.log.last() {
                if !self.has_room() {
                    self.connection.next_table = table;
                    return;
                }
                self.one_update(table);
            }
        }
    }

    fn one_update(&mut self, table: usize) {
        let shared = &self.tables[table];
        let mut pushed = self.peer.shares[table].pushed;
        let (shard, of) = (self.peer.shard, self.shards);
        let sent = &mut self.connection.sent;
        let body = shared.log.next(&mut pushed, self.now_ms, |id, entry| {
            let is_theirs = shard == 0 || shared.shard(entry.key(), of) == shard;
            let form = Form {
                id: id as u32,
                is_timed: false,
            };
            is_theirs.then(|| update::body(shared.log.table(), entry, form, sent))
        });
        self.peer.shares[table].pushed = pushed;
        if let Some(body) = body.flatten() {
            self.put(table, false, &body);
        }
    }

    /// Every update has its number: HAProxy 3.5 acknowledges wrong numbers after updates without.
    fn put(&mut self, table: usize, is_timed: bool, body: &[u8]) {
        if body.len() > BODY_BYTES_MAX {
            return;
        }
        self.introduce(table);
        let kind = UpdateKind {
            has_id: true,
            is_timed,
        };
        message::put_update(&mut self.connection.output, kind, body);
    }

    /// All entries, of one table after the other, then the end of the lesson.
    fn lesson(&mut self, is_complete: bool) {
        if self.peer.has_taught {
            return;
        }
        for table in 0..self.tables.len() {
            while let Lesson::From(place) = self.peer.shares[table].lesson {
                if !self.has_room() {
                    return;
                }
                let next = self.part(table, place);
                self.peer.shares[table].lesson = next.map_or(Lesson::Done, Lesson::From);
            }
        }
        let end = if is_complete {
            Control::ResyncFinished
        } else {
            Control::ResyncPartial
        };
        message::put_control(&mut self.connection.output, end);
        self.peer.has_taught = true;
    }

    /// Some entries from a place on; returns the next place.
    fn part(&mut self, table: usize, from: Place) -> Option<Place> {
        let tables = self.tables;
        let shared = &tables[table];
        let source: &Arc<Table> = shared.log.table();
        // Version 2.0 has no updates with an expiry.
        let is_timed = !self.peer.is_old;
        let (shard, of) = (self.peer.shard, self.shards);
        let mut bodies = Vec::new();
        let (mut bytes, room) = (0, TURN_BYTES.saturating_sub(self.connection.output.len()));
        let sent = &mut self.connection.sent;
        let next = source.list(from, self.now_ms, |_, entry| {
            if shard == 0 || shared.shard(entry.key(), of) == shard {
                let id = UpdateLog::id_of(entry);
                let body = update::body(source, entry, Form { id, is_timed }, sent);
                bytes += body.len();
                bodies.push(body);
            }
            bytes < room
        });
        for body in bodies {
            self.put(table, is_timed, &body);
        }
        next
    }
}

impl Shared {
    /// The part of the entries that a key belongs to.
    fn shard(&self, key: &[u8], shards: u32) -> u32 {
        shard::seeded(self.log.table().definition(), key, shards, self.shard_seed)
    }
}
