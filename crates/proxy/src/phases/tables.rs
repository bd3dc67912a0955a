//! What stick tables record of a stream: counts in the entries that it tracks, and the servers that
//! clients stick to.

use std::sync::Arc;

use config::model::{ServerAddress, StickRule};
use net::Driver;
use sample::table_key;
use tables::{Data, Event, ServerKey, Table};

use super::account::Accounts;
use super::{Cause, Cx};
use crate::evaluation::Eval;
use crate::ids::{ConnId, ServerId};
use crate::shared::ServerRecord;
use crate::stream::{Binding, Phase, Stick, Stream};

/// How many keys one stream stores at most, as in HAProxy.
const STICKS_MAX: usize = 8;

impl Accounts<'_> {
    /// Counts an event in all entries that the stream or its connection tracks. Without tables this
    /// is one branch.
    #[inline(always)]
    pub fn tell_tables(self, stream: &Stream, event: Event) {
        if self.runtime_config.has_tables {
            self.tell_tracked(stream, event);
        }
    }

    #[inline(never)]
    fn tell_tracked(self, stream: &Stream, event: Event) {
        let now_ms = self.now.ms();
        stream.txn.tracked.count(event, now_ms);
        let session = stream.client.and_then(|link| self.links.session(link));
        if let Some(session) = session {
            session.tracked.count(event, now_ms);
        }
    }

    /// Counts by the server's status.
    #[inline(always)]
    pub fn tell_status(self, stream: &Stream, status: u16) {
        if self.runtime_config.has_tables {
            self.tell_counted_status(stream, status);
        }
    }

    #[inline(never)]
    fn tell_counted_status(self, stream: &Stream, status: u16) {
        let counted = &self.runtime_config.config.global.counted_statuses;
        if counted.errors.has(status) {
            self.tell_tracked(stream, Event::ClientError);
        }
        if counted.failures.has(status) {
            self.tell_tracked(stream, Event::ServerFailure);
        }
    }

    /// Counts a failed stream, by whether the server is at fault.
    pub fn tell_failure(self, stream: &Stream, cause: Cause) {
        let answers = matches!(
            stream.phase,
            Phase::ResponseHead | Phase::BackendResponse(_) | Phase::Transfer
        );
        let is_servers = match cause {
            Cause::EmptyResponse | Cause::BadResponse | Cause::CacheableCookies => true,
            Cause::ServerTimeout | Cause::ServerGone => answers,
            _ => false,
        };
        if is_servers && stream.txn.is_http {
            self.tell_tables(stream, Event::ServerFailure);
        }
    }

    /// Counts bytes of a stream, in the order of a row's cells.
    pub fn tell_bytes_to_tables(self, stream: &Stream, bytes: [u64; 4]) {
        let [from_client, _, from_server, _] = bytes;
        for event in [Event::BytesIn(from_client), Event::BytesOut(from_server)] {
            if !matches!(event, Event::BytesIn(0) | Event::BytesOut(0)) {
                self.tell_tables(stream, event);
            }
        }
    }

    /// Counts the bytes of a stream that has ended, and releases the entries that it tracks.
    #[inline(never)]
    pub fn end_tracking(self, stream: &mut Stream) {
        self.tell_bytes_to_tables(stream, self.uncounted_bytes(stream));
        stream.txn.tracked.end(self.now.ms());
        stream.sticks.clear();
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Counts glitches of a client's connection.
    #[cold]
    pub(crate) fn tell_glitches(&mut self, link: ConnId, count: u32) {
        let now_ms = self.now_ms();
        if let Some(client) = self.core.links.client_mut(link) {
            let session = &mut client.session;
            session.glitches = session.glitches.saturating_add(count);
            session.tracked.count(Event::Glitches(count), now_ms);
        }
    }

    /// `stick on|match|store-request`: binds the request to the remembered server unless it is
    /// bound already. Keys to store are kept until the server is known.
    #[inline(never)]
    pub(super) fn stick_request(&mut self, stream: &mut Stream) {
        let rules = &self.runtime_config.proxy(stream.backend).stick_request;
        self.with_eval(stream, |eval, stream| {
            for rule in rules {
                // Only the first key is stored in each table.
                let stored = |stick: &Stick| Arc::ptr_eq(&stick.table, &rule.table);
                if rule.stores && stream.sticks.iter().any(stored) {
                    continue;
                }
                let Some(key) = key_of(eval, stream, rule) else {
                    continue;
                };
                if rule.matches
                    && let Some(server) = remembered(eval, stream, &rule.table, &key)
                    && stream.route.target.is_none()
                    && crate::persistence::may_bind(eval, stream, server, true)
                {
                    stream.bind(server, Binding::StickTable);
                }
                if rule.stores {
                    keep(stream, rule, key);
                }
            }
        });
    }

    /// `stick store-response`; then stores the server under all kept keys.
    #[inline(never)]
    pub(super) fn stick_response(&mut self, stream: &mut Stream) {
        let rules = &self.runtime_config.proxy(stream.backend).stick_response;
        if rules.is_empty() && stream.sticks.is_empty() {
            return;
        }
        let of_request = stream.sticks.len();
        self.with_eval(stream, |eval, stream| {
            for rule in rules {
                let stored = |stick: &Stick| Arc::ptr_eq(&stick.table, &rule.table);
                if stream.sticks[of_request..].iter().any(stored) {
                    continue;
                }
                if let Some(key) = key_of(eval, stream, rule) {
                    keep(stream, rule, key);
                }
            }
        });
        let now_ms = self.now_ms();
        let server = stream.txn.server;
        let server = server.map(|server| ServerId::at(stream.backend, server as usize));
        let record = server.map(|server| self.servers.at(server));
        for stick in std::mem::take(&mut stream.sticks) {
            let Some(record) = record.filter(|record| !record.non_stick) else {
                continue;
            };
            let name = name_of(record, &stick.table);
            stick
                .table
                .store_server(&stick.key, now_ms, record.id, &name);
        }
    }
}

/// The name under which a table stores a server.
fn name_of(record: &ServerRecord, table: &Table) -> String {
    match table.definition().server_key {
        ServerKey::Name => record.name.clone(),
        ServerKey::Addr => match &record.address {
            ServerAddress::Fixed(addr) => addr.to_string(),
            ServerAddress::PortOffset { ip, offset } => format!("{ip}:{offset:+}"),
        },
    }
}

/// The key of a rule that applies.
fn key_of(eval: &Eval<'_>, stream: &Stream, rule: &StickRule) -> Option<Box<[u8]>> {
    let holds = |condition| eval.holds(stream, condition);
    if !rule.condition.as_ref().is_none_or(holds) {
        return None;
    }
    eval.with_scope(stream, true, |scope| {
        let key = rule.key.eval(scope)?;
        table_key::with_key(key, rule.table.definition(), |key| key.into())
    })
}

/// The server that a table remembers for a key. Restarts the entry's expiry.
fn remembered(eval: &Eval<'_>, stream: &Stream, table: &Table, key: &[u8]) -> Option<ServerId> {
    let found = table.with(key, eval.now.ms(), |entry| {
        entry.touch();
        (table.server_name(entry), entry.get(Data::ServerId, 0))
    });
    let (name, id) = found?;
    let servers = || {
        eval.servers
            .of(stream.backend)
            .filter(|(_, server)| !server.is_deleted)
    };
    let by_name = name.and_then(|name| {
        let mut servers = servers();
        servers.find(|(_, server)| *name_of(server, table) == *name)
    });
    let by_id = || {
        let id = u32::try_from(id?).ok()?;
        servers().find(|(_, server)| server.id == id)
    };
    by_name.or_else(by_id).map(|(server, _)| server)
}

fn keep(stream: &mut Stream, rule: &StickRule, key: Box<[u8]>) {
    if stream.sticks.len() < STICKS_MAX {
        let table = Arc::clone(&rule.table);
        stream.sticks.push(Stick { table, key });
    }
}
