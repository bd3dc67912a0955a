//! The handshake, and received messages.

use tables::{Place, StoredValue, Update};

use super::connection::{Phase, RemoteTable};
use super::peer::{Learning, Lesson};
use super::timers::{HEARTBEAT_MS, RECONNECT_MS};
use super::{ConnId, Section};
use crate::handshake::{Greeted, Status, take_line};
use crate::layout::{Known, Layout};
use crate::message::{self, Control, Fault, Message, UpdateKind};
use crate::reader::Reader;
use crate::update;

impl Section {
    /// Bytes of a connection.
    pub fn receive(&mut self, id: ConnId, bytes: &[u8], now_ms: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if matches!(connection.phase, Phase::Closing) {
            return;
        }
        let mut input = std::mem::take(&mut connection.input);
        input.extend_from_slice(bytes);
        self.lines(id, &mut input, now_ms);
        self.messages(id, &mut input, now_ms);
        if let Some(connection) = self.connections.get_mut(&id)
            && !matches!(connection.phase, Phase::Closing)
        {
            connection.input = input;
        }
    }

    /// Reads lines while the handshake lasts.
    fn lines(&mut self, id: ConnId, input: &mut Vec<u8>, now_ms: u64) {
        while let Some(connection) = self.connections.get_mut(&id) {
            if !matches!(connection.phase, Phase::Greeting(_) | Phase::Status) {
                return;
            }
            let line = match take_line(input) {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(status) => return connection.refuse(status, now_ms),
            };
            match &mut connection.phase {
                Phase::Greeting(greeting) => match greeting.line(&line, &self.local) {
                    Ok(None) => {}
                    Ok(Some(greeted)) => self.greeted(id, &greeted, now_ms),
                    Err(status) => connection.refuse(status, now_ms),
                },
                Phase::Status => self.answered(id, Status::parse(&line), now_ms),
                Phase::Connecting | Phase::Running | Phase::Closing => return,
            }
        }
    }

    /// A peer has said who it is.
    fn greeted(&mut self, id: ConnId, greeted: &Greeted, now_ms: u64) {
        let known = self.peers.iter().position(|peer| peer.name == greeted.peer);
        let refuse = |section: &mut Section, status| {
            if let Some(connection) = section.connections.get_mut(&id) {
                connection.refuse(status, now_ms);
            }
        };
        let Some(index) = known else {
            return refuse(self, Status::PEER);
        };
        if let Some(old) = self.peers[index].connection {
            if self.peers[index].is_local {
                return refuse(self, Status::TRY_AGAIN);
            }
            self.close(old, now_ms);
            // The other side may close the new connection for the same reason: with a random pause
            // both do not do it again.
            let pause_ms = self.pause_ms();
            let peer = &mut self.peers[index];
            peer.reconnect_ms = Some(now_ms + pause_ms);
            peer.counters.collisions = peer.counters.collisions.wrapping_add(1);
        }
        let peer = &mut self.peers[index];
        peer.is_old = greeted.is_old;
        peer.is_alive = true;
        peer.connection = Some(id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.peer = Some(index);
            connection
                .output
                .extend_from_slice(Status::SUCCESS.line().as_bytes());
        }
        self.begin(id, index, now_ms);
    }

    /// A peer has answered the hello.
    fn answered(&mut self, id: ConnId, status: Status, now_ms: u64) {
        let Some(index) = self
            .connections
            .get(&id)
            .and_then(|connection| connection.peer)
        else {
            return;
        };
        let peer = &mut self.peers[index];
        peer.status = status;
        peer.last_handshake_ms = Some(now_ms);
        if status == Status::SUCCESS {
            return self.begin(id, index, now_ms);
        }
        peer.is_old |= status == Status::VERSION;
        self.close(id, now_ms);
    }

    /// A handshake has succeeded.
    fn begin(&mut self, id: ConnId, index: usize, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.phase = Phase::Running;
        connection.deadline_ms = None;
        let is_ours = connection.is_ours;
        let peer = &mut self.peers[index];
        peer.status = Status::SUCCESS;
        peer.last_handshake_ms = Some(now_ms);
        peer.heartbeat_ms = Some(now_ms + HEARTBEAT_MS);
        if peer.reconnect_ms.is_none_or(|at| at <= now_ms) {
            peer.reconnect_ms = Some(now_ms + RECONNECT_MS);
        }
        peer.owes_heartbeat = false;
        peer.confirms = 0;
        peer.is_teaching = false;
        for share in &mut peer.shares {
            (share.got, share.acked_to_peer, share.remote_id) = (0, 0, 0);
            share.pushed = share.acked;
        }
        self.stop_learning(index, now_ms);
        if self.peers[index].is_local && is_ours {
            self.teach(index);
        }
        self.may_learn(index, is_ours, now_ms);
    }

    /// Begins to send all entries to a peer.
    fn teach(&mut self, index: usize) {
        self.collect();
        let peer = &mut self.peers[index];
        peer.is_teaching = true;
        peer.has_taught = false;
        for (share, table) in peer.shares.iter_mut().zip(&self.tables) {
            share.lesson = Lesson::From(Place::default());
            share.lesson_from = table.log.last();
        }
    }

    /// Reads messages.
    fn messages(&mut self, id: ConnId, input: &mut Vec<u8>, now_ms: u64) {
        let mut at = 0;
        loop {
            let connection = self.connections.get(&id);
            let running = connection.filter(|one| matches!(one.phase, Phase::Running));
            let Some(index) = running.and_then(|connection| connection.peer) else {
                break;
            };
            let result = match message::next(&input[at..]) {
                Ok(None) => break,
                Ok(Some((message, length))) => {
                    at += length;
                    self.peers[index].is_alive = true;
                    self.message(id, index, message, now_ms)
                }
                Err(fault) => Err(fault),
            };
            if let Err(fault) = result {
                let errors = &mut self.peers[index].counters.protocol_errors;
                *errors = errors.wrapping_add(1);
                self.detach(id, index, now_ms);
                if let Some(connection) = self.connections.get_mut(&id) {
                    message::put_fault(&mut connection.output, fault);
                    connection.end(now_ms);
                }
                break;
            }
        }
        input.drain(..at);
    }

    /// The connection is no longer the peer's, but has something left to send.
    fn detach(&mut self, id: ConnId, index: usize, now_ms: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.peer = None;
        }
        let peer = &mut self.peers[index];
        peer.connection = None;
        peer.is_teaching = false;
        peer.confirms = 0;
        self.stop_learning(index, now_ms);
    }

    fn message(
        &mut self,
        id: ConnId,
        index: usize,
        message: Message<'_>,
        now_ms: u64,
    ) -> Result<(), Fault> {
        match message {
            Message::Control(control) => self.control(id, index, control, now_ms),
            Message::Definition(body) => self.definition(id, index, body)?,
            Message::Switch(body) => self.switch(id, index, body)?,
            Message::Ack(body) => self.ack(index, body)?,
            Message::Update(kind, body) => self.update(id, index, kind, body, now_ms)?,
            Message::Other => {}
        }
        Ok(())
    }

    fn control(&mut self, id: ConnId, index: usize, control: Control, now_ms: u64) {
        match control {
            Control::ResyncRequest => self.teach(index),
            Control::ResyncFinished | Control::ResyncPartial => {
                self.has_learned(index, control == Control::ResyncFinished, now_ms);
                let peer = &mut self.peers[index];
                peer.confirms = peer.confirms.saturating_add(1);
            }
            Control::ResyncConfirm => {
                if self.stop.is_some() {
                    self.peers[index].knows_all = true;
                    return self.close(id, now_ms);
                }
                let peer = &mut self.peers[index];
                if peer.is_teaching && peer.has_taught {
                    for share in &mut peer.shares {
                        share.acked = share.lesson_from;
                        share.pushed = share.lesson_from;
                    }
                    peer.is_teaching = false;
                }
            }
            Control::Heartbeat => {
                let peer = &mut self.peers[index];
                peer.reconnect_ms = Some(now_ms + RECONNECT_MS);
                let received = &mut peer.counters.heartbeats_received;
                *received = received.wrapping_add(1);
            }
        }
    }

    fn definition(&mut self, id: ConnId, index: usize, body: &[u8]) -> Result<(), Fault> {
        let (layout, known) = Layout::parse(body).map_err(|_| Fault::Protocol)?;
        let table = self.tables.iter().position(|table| {
            layout.name == table.layout.name && layout.suits(table.log.table().definition())
        });
        let shares = &mut self.peers[index].shares;
        for share in shares
            .iter_mut()
            .filter(|share| share.remote_id == layout.id)
        {
            share.remote_id = 0;
        }
        if let Some(share) = table
            .map(|table| &mut shares[table])
            .filter(|_| known == Known::Yes)
        {
            share.remote_id = layout.id;
            share.remote_data = layout
                .columns
                .iter()
                .map(|column| 1 << column.data as u8)
                .sum();
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            if let Some(table) = table {
                connection.layouts.insert(table, layout.clone());
            }
            // Updates of a table that this process does not have are read for their names.
            let remote = RemoteTable { layout, table };
            connection.remote = (known == Known::Yes).then_some(remote);
        }
        Ok(())
    }

    fn switch(&mut self, id: ConnId, index: usize, body: &[u8]) -> Result<(), Fault> {
        let number = Reader(body).varint().map_err(|_| Fault::Protocol)?;
        let shares = self.peers[index].shares.iter();
        let table = shares
            .clone()
            .position(|share| number != 0 && share.remote_id == number);
        if let Some(connection) = self.connections.get_mut(&id) {
            let layout = table.and_then(|table| connection.layouts.get(&table));
            connection.remote = layout.map(|layout| RemoteTable {
                layout: layout.clone(),
                table,
            });
        }
        Ok(())
    }

    fn ack(&mut self, index: usize, body: &[u8]) -> Result<(), Fault> {
        let peer = &mut self.peers[index];
        if peer.is_teaching {
            return Ok(());
        }
        let mut reader = Reader(body);
        let table = reader.varint().map_err(|_| Fault::Protocol)?;
        let number = reader.fixed().map_err(|_| Fault::Protocol)?;
        let table = usize::try_from(table)
            .ok()
            .and_then(|table| table.checked_sub(1));
        let Some((share, table)) =
            table.and_then(|table| Some((peer.shares.get_mut(table)?, &self.tables[table])))
        else {
            return Ok(());
        };
        if let Some(id) = table
            .log
            .meant(number, share.acked)
            .filter(|id| *id <= share.pushed)
        {
            share.acked = id;
        }
        Ok(())
    }

    fn update(
        &mut self,
        id: ConnId,
        index: usize,
        kind: UpdateKind,
        body: &[u8],
        now_ms: u64,
    ) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        let Some(remote) = &connection.remote else {
            return Ok(());
        };
        if remote.layout.key.is_none() {
            return Ok(());
        }
        let update = update::parse(body, kind, &remote.layout, &mut connection.received);
        let update = update.map_err(|_| Fault::Protocol)?;
        let Some(table) = remote.table else {
            return Ok(());
        };
        let peer = &mut self.peers[index];
        if peer.learning == Learning::Processing {
            self.resync.progress(now_ms);
        } else {
            let share = &mut peer.shares[table];
            share.got = update.id.unwrap_or(share.got.wrapping_add(1));
        }
        let shared = &self.tables[table];
        let table = shared.log.table();
        let is_learned =
            |value: &StoredValue| table.definition().receives_only || !value.data.is_local();
        let values: Vec<_> = update.values.iter().copied().filter(is_learned).collect();
        let merged = Update {
            values: &values,
            server: update.server.as_deref(),
            expires_in_ms: update.expires_in_ms.map(u64::from),
        };
        // A table without room keeps what it has, as in HAProxy.
        let _ = table.merge(update.key, now_ms, &merged);
        if let Some(copy) = &shared.write_to {
            let is_copied = |value: &StoredValue| value.data.is_copied();
            let values: Vec<_> = values.iter().copied().filter(is_copied).collect();
            let copied = Update {
                values: &values,
                ..merged
            };
            let _ = copy.merge(update.key, now_ms, &copied);
        }
        Ok(())
    }
}
