//! The resolutions of one section: a state machine without I/O, clock and random source.
//!
//! [`resolution`] is one name under way; this file owns all of them, their deadlines, the ids of
//! queries and the counters.

mod answers;
mod resolution;
mod tries;
mod types;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::assign::{Preference, choose_address};
use crate::counters::Counters;
use crate::message::Kind;
use crate::name::Name;
use crate::records::Records;
use crate::section::{Families, Family, Section, Transport};
use crate::{ASKED_NAMES_MAX, Random, SUBSCRIBED_NAMES_MAX};

pub use types::{
    Asked, Event, LookedUp, Outcome, Question, RequestId, SendFailure, Status, TooMany, Transmit,
};

use resolution::{Key, Manner, Requester, Resolution, ResolutionId, State};

/// A query that may still be answered.
#[derive(Debug)]
struct Pending {
    resolution: ResolutionId,
    kind: Kind,
    /// The transport of the answer.
    transport: Transport,
    /// How many times it was asked over TCP in this attempt because its UDP answer was truncated.
    truncated: u32,
    /// It has been answered with an error, or could not be sent, in this attempt.
    is_settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QueryKey {
    nameserver: usize,
    id: u16,
}

/// When a resolution has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ms: u64,
    resolution: ResolutionId,
}

/// The resolutions of one section.
///
/// After each call that takes the time: send what [`Resolver::poll_transmit`] gives, report what
/// [`Resolver::poll_event`] gives, and call [`Resolver::handle_timeout`] at
/// [`Resolver::poll_timeout`]. All times are milliseconds of one clock that does not go back.
pub struct Resolver {
    section: Section,
    random: Random,
    resolutions: HashMap<ResolutionId, Resolution>,
    by_key: HashMap<Key, ResolutionId>,
    requests: HashMap<RequestId, ResolutionId>,
    due: BTreeSet<Due>,
    /// Cached answers that nobody waits for, by the time when they expire.
    cached: BTreeSet<Due>,
    pending: HashMap<QueryKey, Pending>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Vec<Counters>,
    next_id: u64,
    /// The number of resolutions that began with a subscription, and with a question.
    subscribed: usize,
    asked: usize,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("section", &self.section.name)
            .field("resolutions", &self.resolutions.len())
            .field("requests", &self.requests.len())
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// The resolver of a section. `random` gives ids of queries: others must not predict them.
    #[must_use]
    pub fn new(section: Section, random: Random) -> Resolver {
        let counters = vec![Counters::default(); section.nameservers.len()];
        Resolver {
            section,
            random,
            resolutions: HashMap::new(),
            by_key: HashMap::new(),
            requests: HashMap::new(),
            due: BTreeSet::new(),
            cached: BTreeSet::new(),
            pending: HashMap::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters,
            next_id: 0,
            subscribed: 0,
            asked: 0,
        }
    }

    /// The section.
    #[must_use]
    pub fn section(&self) -> &Section {
        &self.section
    }

    /// Changes the families that are asked for, from the next query on.
    pub fn set_families(&mut self, families: Families) {
        self.section.families = families;
    }

    // ---- requests

    /// Resolves a name at once and then every `timeout resolve`, until [`Resolver::unsubscribe`].
    /// Subscriptions of one name and type share their resolution.
    ///
    /// # Errors
    /// There are [`SUBSCRIBED_NAMES_MAX`] names.
    pub fn subscribe(
        &mut self,
        name: Name,
        question: Question,
        now_ms: u64,
    ) -> Result<RequestId, TooMany> {
        let kind = self.kind(question);
        let key = Key {
            name,
            kind,
            manner: Manner::AllAtOnce,
        };
        let id = self.resolution(key, Origin::Subscription, now_ms)?;
        let request = RequestId(self.number());
        self.requests.insert(request, id);
        if let Some(resolution) = self.resolutions.get_mut(&id) {
            resolution.requesters.insert(request, Requester::Subscriber);
            if resolution.is_valid() {
                let outcome = Outcome::Found {
                    records: Arc::clone(&resolution.records),
                    nameserver: None,
                    changed: true,
                };
                self.events.push_back(Event { request, outcome });
            }
        }
        self.reschedule(id, now_ms);
        Ok(request)
    }

    /// Asks for an address once (`do-resolve`). An answer that is not older than `hold valid`
    /// serves without another query.
    ///
    /// # Errors
    /// There are [`ASKED_NAMES_MAX`] names that are being asked for.
    pub fn ask(&mut self, name: Name, prefer: Family, now_ms: u64) -> Result<Asked, TooMany> {
        let kind = self.kind(Question::Address { prefer });
        let key = Key {
            name,
            kind,
            manner: Manner::AllAtOnce,
        };
        let id = self.resolution(key, Origin::Question, now_ms)?;
        let hold_ms = self.section.hold.valid_ms;
        let families = self.section.families;
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return Err(TooMany);
        };
        if resolution.is_fresh(hold_ms, now_ms)
            && let Some(address) = resolution.next_address(prefer, families)
        {
            return Ok(Asked::Now(address));
        }
        Ok(Asked::Later(self.request_once(
            id,
            Requester::Once { prefer },
            now_ms,
        )))
    }

    /// Asks once for all addresses of one family, nameserver after nameserver: each attempt of
    /// `resolve_retries` asks all of them in turn, and the next one is asked after `timeout retry`
    /// or an error. A valid or negative answer is final; it serves further lookups for
    /// `hold valid`. The families of the section do not matter.
    ///
    /// # Errors
    /// There are [`ASKED_NAMES_MAX`] names that are being asked for.
    pub fn look_up(
        &mut self,
        name: Name,
        family: Family,
        now_ms: u64,
    ) -> Result<LookedUp, TooMany> {
        let key = Key {
            name,
            kind: Kind::of(family),
            manner: Manner::InTurn,
        };
        let id = self.resolution(key, Origin::Question, now_ms)?;
        let hold_ms = self.section.hold.valid_ms;
        if let Some(resolution) = self.resolutions.get(&id)
            && let Some(last) = resolution.last
            && resolution.is_cached(hold_ms, now_ms)
        {
            let found = last.map(|()| Arc::clone(&resolution.records));
            return Ok(LookedUp::Now(found));
        }
        let request = self.request_once(id, Requester::Lookup, now_ms);
        Ok(LookedUp::Later(request))
    }

    fn request_once(&mut self, id: ResolutionId, requester: Requester, now_ms: u64) -> RequestId {
        let request = RequestId(self.number());
        if let Some(resolution) = self.resolutions.get_mut(&id) {
            resolution.requesters.insert(request, requester);
            // A name that subscribers have as well is not left to wait for its next turn.
            if matches!(resolution.state, State::Waiting) {
                resolution.completed_ms = None;
            }
        }
        self.requests.insert(request, id);
        self.reschedule(id, now_ms);
        request
    }

    /// Ends a subscription or a question; no event follows. Unknown requests are ignored.
    pub fn unsubscribe(&mut self, request: RequestId, now_ms: u64) {
        let Some(id) = self.requests.remove(&request) else {
            return;
        };
        self.events.retain(|event| event.request != request);
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let requester = resolution.requesters.remove(&request);
        if !resolution.requesters.is_empty() {
            return;
        }
        let was_question = match requester {
            Some(Requester::Once { .. } | Requester::Lookup) => true,
            Some(Requester::Subscriber) | None => false,
        };
        let is_waiting = matches!(resolution.state, State::Waiting);
        let is_cacheable = resolution.is_cached(self.section.hold.valid_ms, now_ms);
        if was_question && is_waiting && is_cacheable {
            self.reschedule(id, now_ms);
        } else {
            self.remove(id);
        }
    }

    /// Resolves a name now rather than at its next turn, for example when a health check timed
    /// out. It does nothing if the resolution is under way, or its answer is not older than
    /// `hold valid`. Returns whether a query will be sent.
    pub fn kick(&mut self, request: RequestId, now_ms: u64) -> bool {
        let hold_ms = self.section.hold.valid_ms;
        let Some(&id) = self.requests.get(&request) else {
            return false;
        };
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return false;
        };
        let is_waiting = matches!(resolution.state, State::Waiting);
        if !is_waiting || resolution.is_fresh(hold_ms, now_ms) {
            return false;
        }
        resolution.completed_ms = None;
        self.reschedule(id, now_ms);
        true
    }

    /// The records of a request's name now.
    #[must_use]
    pub fn records(&self, request: RequestId) -> Option<Arc<Records>> {
        let id = self.requests.get(&request)?;
        Some(Arc::clone(&self.resolutions.get(id)?.records))
    }

    // ---- output

    /// The next message to send. It counts as sent, unless [`Resolver::handle_send_failure`] says
    /// otherwise.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.transmits.pop_front()?;
        if let Some(counters) = self.counters.get_mut(transmit.nameserver) {
            counters.sent += 1;
        }
        Some(transmit)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Resolver::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due.first().map(|due| due.at_ms)
    }

    /// The counters of a nameserver; all are 0 if there is none of this index.
    #[must_use]
    pub fn counters(&self, nameserver: usize) -> Counters {
        self.counters.get(nameserver).copied().unwrap_or_default()
    }

    /// Counts an answer of a nameserver that changed the address of a server.
    pub fn count_update(&mut self, nameserver: usize) {
        if let Some(counters) = self.counters.get_mut(nameserver) {
            counters.update += 1;
        }
    }

    // ---- the table of resolutions

    fn number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The type that is asked for first.
    fn kind(&self, question: Question) -> Kind {
        match question {
            Question::Service => Kind::Srv,
            Question::Address { prefer } => Kind::of(match self.section.families {
                Families::V4 => Family::V4,
                Families::V6 => Family::V6,
                Families::Both => prefer,
            }),
        }
    }

    /// The resolution of a key, which begins if there is none.
    fn resolution(
        &mut self,
        key: Key,
        origin: Origin,
        now_ms: u64,
    ) -> Result<ResolutionId, TooMany> {
        if let Some(&id) = self.by_key.get(&key) {
            return Ok(id);
        }
        match origin {
            Origin::Subscription if self.subscribed >= SUBSCRIBED_NAMES_MAX => return Err(TooMany),
            Origin::Question if self.asked >= ASKED_NAMES_MAX => self.evict_cached()?,
            Origin::Subscription | Origin::Question => {}
        }
        match origin {
            Origin::Subscription => self.subscribed += 1,
            Origin::Question => self.asked += 1,
        }
        let id = ResolutionId(self.number());
        self.by_key.insert(key.clone(), id);
        let resolution = Resolution::new(key, origin, now_ms);
        self.resolutions.insert(id, resolution);
        Ok(id)
    }

    /// Makes room for a question: the cached answer that expires first goes.
    fn evict_cached(&mut self) -> Result<(), TooMany> {
        let evicted = self.cached.first().ok_or(TooMany)?;
        self.remove(evicted.resolution);
        Ok(())
    }

    /// Sets the deadline of a resolution from its state.
    fn reschedule(&mut self, id: ResolutionId, now_ms: u64) {
        let Some(resolution) = self.resolutions.get_mut(&id) else {
            return;
        };
        let old = Due {
            at_ms: resolution.due_ms,
            resolution: id,
        };
        let due = Due {
            at_ms: resolution.deadline_ms(&self.section).unwrap_or(now_ms),
            resolution: id,
        };
        resolution.due_ms = due.at_ms;
        let is_idle = resolution.requesters.is_empty();
        self.due.remove(&old);
        self.cached.remove(&old);
        self.due.insert(due);
        if is_idle {
            self.cached.insert(due);
        }
    }

    /// Removes a resolution with its queries and requests.
    fn remove(&mut self, id: ResolutionId) {
        let Some(resolution) = self.resolutions.remove(&id) else {
            return;
        };
        let due = Due {
            at_ms: resolution.due_ms,
            resolution: id,
        };
        self.due.remove(&due);
        self.cached.remove(&due);
        self.by_key.remove(&resolution.key);
        if let State::Running(run) = &resolution.state {
            for query in &run.queries {
                self.pending.remove(query);
            }
        }
        for request in resolution.requesters.keys() {
            self.requests.remove(request);
        }
        match resolution.origin {
            Origin::Subscription => self.subscribed -= 1,
            Origin::Question => self.asked -= 1,
        }
    }
}

/// The reason why a resolution began, which decides the limit that applies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Subscription,
    Question,
}

impl Resolution {
    /// An address for a question; several addresses take turns.
    fn next_address(&mut self, prefer: Family, families: Families) -> Option<IpAddr> {
        let accepted = self.records.addresses.iter().copied();
        let accepted: Vec<IpAddr> = accepted
            .filter(|&address| families.accept(Family::of(address)))
            .collect();
        let preference = Preference {
            prefer,
            ..Preference::default()
        };
        let choice = choose_address(&accepted, self.turn, &preference)?;
        self.turn = choice.next;
        Some(choice.address)
    }
}

#[cfg(test)]
mod tests;
