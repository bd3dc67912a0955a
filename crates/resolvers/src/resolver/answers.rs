//! What nameservers send, and what could not be sent to them.

use super::resolution::{Manner, Partial, State};
use super::{QueryKey, Resolver, SendFailure, Status};
use crate::message::{Answer, Fault, read};
use crate::section::Transport;
use crate::{MESSAGE_BYTES_MAX, TRUNCATED_RETRIES_MAX};

impl Resolver {
    /// A message of a nameserver, without a length before it. The caller vouches for its source.
    pub fn handle_message(
        &mut self,
        nameserver: usize,
        transport: Transport,
        bytes: &[u8],
        now_ms: u64,
    ) {
        let Some(settings) = self.section.nameservers.get(nameserver) else {
            return;
        };
        // A query that went over TCP because of its size may have an answer of any size.
        let bytes_max = if transport == settings.transport {
            usize::from(self.section.accepted_payload_bytes)
        } else {
            MESSAGE_BYTES_MAX
        };
        let counters = &mut self.counters[nameserver];
        if bytes.len() > bytes_max {
            counters.too_big += 1;
            return;
        }
        let &[high, low, ..] = bytes else {
            counters.invalid += 1;
            return;
        };
        let key = QueryKey {
            nameserver,
            id: u16::from_be_bytes([high, low]),
        };
        let pending = self.pending.get(&key);
        let Some(pending) = pending.filter(|pending| pending.transport == transport) else {
            counters.outdated += 1;
            return;
        };
        let Some(resolution) = self.resolutions.get(&pending.resolution) else {
            return;
        };
        match read(bytes, &resolution.key.name, pending.kind) {
            Ok(answer) if answer.is_truncated => self.truncated(key, Some(answer), now_ms),
            Ok(answer) => {
                let id = pending.resolution;
                self.succeed(id, Partial { nameserver, answer }, now_ms);
            }
            Err(Fault::Truncated) => self.truncated(key, None, now_ms),
            Err(fault) => self.refused(key, fault, now_ms),
        }
    }

    /// A truncated answer: the query goes over TCP, to the same nameserver. What an answer of
    /// services has is kept for when TCP gives nothing.
    fn truncated(&mut self, key: QueryKey, partial: Option<Answer>, now_ms: u64) {
        self.counters[key.nameserver].truncated += 1;
        let Some(pending) = self.pending.get(&key) else {
            return;
        };
        let id = pending.resolution;
        let can_retry =
            pending.transport == Transport::Udp && pending.truncated < TRUNCATED_RETRIES_MAX;
        if let Some(answer) = partial {
            let partial = Partial {
                nameserver: key.nameserver,
                answer,
            };
            let resolution = self.resolutions.get_mut(&id);
            if !can_retry {
                self.succeed(id, partial, now_ms);
                return;
            }
            if let Some(resolution) = resolution
                && let State::Running(run) = &mut resolution.state
            {
                run.partial.get_or_insert(partial);
            }
        }
        if can_retry {
            self.send_over_tcp(key);
        } else {
            self.settle(key, Status::Other, now_ms);
        }
    }

    /// An answer that is an error.
    fn refused(&mut self, key: QueryKey, fault: Fault, now_ms: u64) {
        let counters = &mut self.counters[key.nameserver];
        let (counter, status) = match fault {
            Fault::Unrelated => {
                counters.invalid += 1;
                return;
            }
            Fault::Invalid => (&mut counters.invalid, Status::Invalid),
            Fault::Nx => (&mut counters.nx, Status::Nx),
            Fault::Refused => (&mut counters.refused, Status::Refused),
            Fault::Empty => (&mut counters.any_err, Status::NoData),
            Fault::Alias => (&mut counters.cname_error, Status::NoData),
            Fault::Truncated => (&mut counters.truncated, Status::Other),
            Fault::Other => (&mut counters.other, Status::Other),
        };
        *counter += 1;
        self.settle(key, status, now_ms);
    }

    /// A nameserver failed in this attempt. When all have, the attempt is over.
    fn settle(&mut self, key: QueryKey, status: Status, now_ms: u64) {
        let Some(pending) = self.pending.get_mut(&key) else {
            return;
        };
        let id = pending.resolution;
        let is_repeated = std::mem::replace(&mut pending.is_settled, true);
        let kind = pending.kind;
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let State::Running(run) = &mut resolution.state else {
            return;
        };
        // Only the first error of each nameserver in the current attempt counts.
        if is_repeated || kind != run.kind {
            return;
        }
        match resolution.key.manner {
            Manner::AllAtOnce => {
                run.failed += 1;
                run.status = status;
                if run.failed >= run.sent {
                    self.all_failed(id, now_ms);
                }
            }
            Manner::InTurn if status.is_negative() => self.fail(id, status, now_ms),
            // The error of a nameserver whose turn is over changes nothing.
            Manner::InTurn if run.nameserver != key.nameserver => {}
            Manner::InTurn => self.next_nameserver(id, status, now_ms),
        }
    }

    /// A message could not be sent, or its connection was lost. The nameserver no longer counts
    /// in this attempt; when no message could be sent at all, the attempt ends as if it had timed
    /// out.
    pub fn handle_send_failure(&mut self, failure: SendFailure, now_ms: u64) {
        let Some(counters) = self.counters.get_mut(failure.nameserver) else {
            return;
        };
        counters.sent = counters.sent.saturating_sub(1);
        counters.snd_error += 1;
        let key = QueryKey {
            nameserver: failure.nameserver,
            id: failure.id,
        };
        let settings = &self.section.nameservers[failure.nameserver];
        let Some(pending) = self.pending.get_mut(&key) else {
            return;
        };
        if pending.transport != failure.transport {
            return;
        }
        if failure.transport != settings.transport {
            // The truncated answer was the nameserver's.
            self.settle(key, Status::Other, now_ms);
            return;
        }
        let id = pending.resolution;
        let kind = pending.kind;
        if std::mem::replace(&mut pending.is_settled, true) {
            return;
        }
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        if let State::Running(run) = &mut resolution.state
            && kind == run.kind
        {
            match resolution.key.manner {
                Manner::AllAtOnce => {
                    run.sent -= 1;
                    if run.failed > 0 && run.failed >= run.sent {
                        self.all_failed(id, now_ms);
                    }
                }
                Manner::InTurn if run.nameserver != failure.nameserver => {}
                Manner::InTurn => self.next_nameserver(id, Status::Timeout, now_ms),
            }
        }
    }
}
