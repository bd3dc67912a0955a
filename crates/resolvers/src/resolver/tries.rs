//! The attempts of resolutions: deadlines, queries, the change of the address family, ends.

use std::sync::Arc;

use super::resolution::{Manner, Partial, Requester, ResolutionId, Run, State};
use super::{Event, Outcome, Pending, QueryKey, Resolver, Status, Transmit};
use crate::message::{Kind, query};
use crate::section::{Families, Transport};

/// How often an id is drawn for a query before it is given up: ids of queries under way are taken.
const ID_DRAWS_MAX: usize = 100;

impl Resolver {
    /// Sends the queries that are due, and ends attempts whose time limit is over.
    pub fn handle_timeout(&mut self, now_ms: u64) {
        while let Some(&due) = self.due.first() {
            if due.at_ms > now_ms {
                break;
            }
            self.due.remove(&due);
            self.advance(due.resolution, now_ms);
        }
    }

    fn advance(&mut self, id: ResolutionId, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        if resolution.requesters.is_empty() {
            // A cached answer has expired.
            self.remove(id);
            return;
        }
        match &resolution.state {
            State::Waiting => {
                let attempts = self.section.resolve_retries.max(1);
                let tries = match resolution.key.manner {
                    Manner::AllAtOnce => attempts,
                    Manner::InTurn => {
                        let nameservers = self.section.nameservers.len().max(1);
                        attempts.saturating_mul(u32::try_from(nameservers).unwrap_or(u32::MAX))
                    }
                };
                let run = Run {
                    kind: resolution.key.kind,
                    tries_left: tries - 1,
                    nameserver: 0,
                    sent_ms: now_ms,
                    sent: 0,
                    failed: 0,
                    status: Status::Timeout,
                    queries: Vec::new(),
                    partial: None,
                };
                resolution.state = State::Running(run);
                self.send(id, now_ms);
            }
            State::Running(_) => self.expire(id, now_ms),
        }
    }

    /// The answers to an attempt are overdue.
    fn expire(&mut self, id: ResolutionId, now_ms: u64) {
        self.count_overdue(id);
        let families = self.section.families;
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let preferred = resolution.key.kind;
        let State::Running(run) = &mut resolution.state else {
            return;
        };
        match resolution.key.manner {
            Manner::AllAtOnce => {}
            Manner::InTurn => return self.next_nameserver(id, Status::Timeout, now_ms),
        }
        if let Some(partial) = run.partial.take() {
            self.succeed(id, partial, now_ms);
            return;
        }
        if run.tries_left == 0 {
            let status = if run.failed == 0 {
                Status::Timeout
            } else {
                run.status
            };
            self.fail(id, status, now_ms);
            return;
        }
        let other = other_kind(preferred, families);
        match other.filter(|_| run.failed > 0 && run.kind == preferred) {
            Some(other) => run.kind = other,
            None => {
                run.kind = preferred;
                run.tries_left -= 1;
            }
        }
        self.send(id, now_ms);
    }

    fn count_overdue(&mut self, id: ResolutionId) {
        let Some(resolution) = self.resolutions.get(&id) else {
            return;
        };
        let State::Running(run) = &resolution.state else {
            return;
        };
        for query in &run.queries {
            let pending = self.pending.get(query);
            let is_overdue =
                pending.is_some_and(|pending| pending.kind == run.kind && !pending.is_settled);
            if is_overdue && let Some(counters) = self.counters.get_mut(query.nameserver) {
                counters.timeout += 1;
            }
        }
    }

    /// All nameservers of an attempt have failed: asks for the other address family, if that has
    /// not been done. Else the next attempt waits for `timeout retry`, or the resolution fails.
    pub(super) fn all_failed(&mut self, id: ResolutionId, now_ms: u64) {
        let families = self.section.families;
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let preferred = resolution.key.kind;
        let State::Running(run) = &mut resolution.state else {
            return;
        };
        if let Some(partial) = run.partial.take() {
            self.succeed(id, partial, now_ms);
        } else if run.kind != preferred {
            if run.tries_left == 0 {
                let status = run.status;
                self.fail(id, status, now_ms);
            }
        } else if let Some(other) = other_kind(preferred, families) {
            run.kind = other;
            self.send(id, now_ms);
        }
    }

    /// The nameserver of the current attempt has failed, of those that are asked in turn.
    pub(super) fn next_nameserver(&mut self, id: ResolutionId, status: Status, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let State::Running(run) = &mut resolution.state else {
            return;
        };
        if run.tries_left == 0 {
            self.fail(id, status, now_ms);
            return;
        }
        run.tries_left -= 1;
        run.nameserver += 1;
        if run.nameserver >= self.section.nameservers.len() {
            run.nameserver = 0;
        }
        self.send(id, now_ms);
    }

    /// Sends the query of the current attempt to its nameservers.
    fn send(&mut self, id: ResolutionId, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let name = resolution.key.name.clone();
        let State::Running(run) = &mut resolution.state else {
            return;
        };
        run.sent_ms = now_ms;
        run.sent = 0;
        run.failed = 0;
        let payload_bytes = self.section.accepted_payload_bytes;
        let only = match resolution.key.manner {
            Manner::AllAtOnce => None,
            Manner::InTurn => Some(run.nameserver),
        };
        for (nameserver, settings) in self.section.nameservers.iter().enumerate() {
            if only.is_some_and(|only| only != nameserver) {
                continue;
            }
            // A query that is sent again keeps its id: the answer to the first one may be late.
            let earlier = run.queries.iter().find(|query| {
                let pending = self.pending.get(query);
                query.nameserver == nameserver
                    && pending.is_some_and(|pending| pending.kind == run.kind)
            });
            let query_id = match earlier {
                Some(query) => query.id,
                None => {
                    let mut draw = || QueryKey {
                        nameserver,
                        id: (self.random)() as u16,
                    };
                    let drawn = std::iter::repeat_with(&mut draw).take(ID_DRAWS_MAX);
                    let free = { drawn }.find(|query| !self.pending.contains_key(query));
                    let Some(free) = free else { continue };
                    run.queries.push(free);
                    free.id
                }
            };
            let pending = Pending {
                resolution: id,
                kind: run.kind,
                transport: settings.transport,
                truncated: 0,
                is_settled: false,
            };
            let key = QueryKey {
                nameserver,
                id: query_id,
            };
            self.pending.insert(key, pending);
            run.sent += 1;
            self.transmits.push_back(Transmit {
                nameserver,
                transport: settings.transport,
                id: query_id,
                bytes: query(query_id, &name, run.kind, payload_bytes),
            });
        }
        self.reschedule(id, now_ms);
    }

    /// Sends a query whose UDP answer was truncated over TCP.
    pub(super) fn send_over_tcp(&mut self, key: QueryKey) {
        let Some(pending) = self.pending.get_mut(&key) else {
            return;
        };
        let Some(resolution) = self.resolutions.get(&pending.resolution) else {
            return;
        };
        pending.transport = Transport::Tcp;
        pending.truncated += 1;
        let payload_bytes = self.section.accepted_payload_bytes;
        self.transmits.push_back(Transmit {
            nameserver: key.nameserver,
            transport: Transport::Tcp,
            id: key.id,
            bytes: query(key.id, &resolution.key.name, pending.kind, payload_bytes),
        });
    }

    /// A resolution ends with a valid answer.
    pub(super) fn succeed(&mut self, id: ResolutionId, found: Partial, now_ms: u64) {
        let Partial { nameserver, answer } = found;
        let families = self.section.families;
        let obsolete_ms = self.section.hold.obsolete_ms;
        if let Some(counters) = self.counters.get_mut(nameserver) {
            counters.valid += 1;
            counters.cname += u64::from(answer.is_alias);
        }
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        resolution.valid_ms = now_ms;
        resolution.last = Some(Ok(()));
        resolution.kept.merge(answer, obsolete_ms, families, now_ms);
        let changed = {
            let records = resolution.kept.records();
            let changed = *resolution.records != records;
            if changed {
                resolution.records = Arc::new(records);
            }
            changed
        };
        let requesters: Vec<_> = resolution
            .requesters
            .iter()
            .map(|(id, who)| (*id, *who))
            .collect();
        for (request, requester) in requesters {
            let outcome = match requester {
                Requester::Subscriber => Outcome::Found {
                    records: Arc::clone(&resolution.records),
                    nameserver: Some(nameserver),
                    changed,
                },
                Requester::Once { prefer } => resolution
                    .next_address(prefer, families)
                    .map_or(Outcome::NoAddress, Outcome::Address),
                Requester::Lookup => Outcome::LookedUp(Ok(Arc::clone(&resolution.records))),
            };
            self.events.push_back(Event { request, outcome });
        }
        self.complete(id, now_ms);
    }

    /// A resolution ends with an error.
    pub(super) fn fail(&mut self, id: ResolutionId, status: Status, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        resolution.last = Some(Err(status));
        let is_held = resolution.is_held(status, &self.section.hold, now_ms);
        if !is_held {
            resolution.kept = Default::default();
            resolution.records = Arc::default();
        }
        for (&request, requester) in &resolution.requesters {
            let outcome = match requester {
                Requester::Subscriber if is_held => Outcome::Held(status),
                Requester::Subscriber => Outcome::Lost(status),
                Requester::Once { .. } => Outcome::NoAddress,
                Requester::Lookup => Outcome::LookedUp(Err(status)),
            };
            self.events.push_back(Event { request, outcome });
        }
        self.complete(id, now_ms);
    }

    /// Ends the attempts of a resolution, and its questions.
    fn complete(&mut self, id: ResolutionId, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let state = std::mem::replace(&mut resolution.state, State::Waiting);
        if let State::Running(run) = state {
            for query in &run.queries {
                self.pending.remove(query);
            }
        }
        resolution.completed_ms = Some(now_ms);
        let requests = &mut self.requests;
        resolution.requesters.retain(|request, requester| {
            let stays = match requester {
                Requester::Subscriber => true,
                Requester::Once { .. } | Requester::Lookup => false,
            };
            if !stays {
                requests.remove(request);
            }
            stays
        });
        let is_idle = resolution.requesters.is_empty();
        if is_idle && !resolution.is_cached(self.section.hold.valid_ms, now_ms) {
            self.remove(id);
        } else {
            self.reschedule(id, now_ms);
        }
    }
}

/// The other type of addresses, if both families are accepted.
fn other_kind(kind: Kind, families: Families) -> Option<Kind> {
    match (kind, families) {
        (Kind::A, Families::Both) => Some(Kind::Aaaa),
        (Kind::Aaaa, Families::Both) => Some(Kind::A),
        (Kind::A | Kind::Aaaa, Families::V4 | Families::V6) | (Kind::Srv, _) => None,
    }
}
