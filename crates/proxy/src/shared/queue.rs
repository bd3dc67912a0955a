//! The streams that wait for a slot of a backend's servers: one queue for all workers, locked, and
//! used only where a server is full.
//!
//! A released slot goes directly to the first stream that it can serve, and only that stream's
//! worker is woken, so workers do not compete for it. The order of the queue is: by class, then by
//! arrival time plus offset (manual §4.4 set-priority-class, set-priority-offset), then by turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use net::WorkerId;

use super::servers::Servers;
use super::succession::Succession;
use crate::ids::{ProxyId, ServerId};

/// A reference to a stream of a worker: its place, and its number, because the place may have been
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamRef {
    pub worker: WorkerId,
    pub place: u32,
    pub number: u64,
}

/// The order of waiting streams; the lower one goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub class: i16,
    /// The arrival time plus the offset.
    pub time_ms: i64,
}

/// The position of a waiting stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub backend: ProxyId,
    /// The only server that it waits for.
    pub server: Option<ServerId>,
    rank: Rank,
    turn: u64,
}

/// A stream that starts to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub stream: StreamRef,
    pub backend: ProxyId,
    pub rank: Rank,
    /// The only server that may serve it.
    pub server: Option<ServerId>,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub stream: StreamRef,
    pub backend: ProxyId,
    /// The server whose slot it now has; none: it must choose again, because its server is gone.
    pub server: Option<ServerId>,
}

/// Access to the slots that a queue hands out.
pub(super) trait Slots {
    fn servers(&self) -> &Servers;
    /// Whether a server accepts requests that are not bound to a server.
    fn is_usable(&self, server: ServerId) -> bool;
    /// Takes a slot of a server, if one is free.
    fn take(&self, server: ServerId) -> bool;
}

type Line = BTreeMap<(Rank, u64), StreamRef>;

/// The streams that any server can serve, and those that are bound to one server.
#[derive(Debug, Default)]
struct Queue {
    any: Line,
    bound: Vec<Line>,
    turns: u64,
}

#[derive(Debug)]
struct QueueOf {
    /// The number of waiting streams, readable without the lock.
    len: AtomicU32,
    queue: Mutex<Queue>,
}

/// The queues by backend.
#[derive(Debug)]
pub(super) struct Queues(Vec<QueueOf>);

impl Queues {
    /// `servers`: by proxy, the number of its servers.
    pub fn new(servers: impl Iterator<Item = usize>) -> Queues {
        let queue = |servers: usize| QueueOf {
            len: AtomicU32::new(0),
            queue: Mutex::new(Queue {
                bound: (0..servers).map(|_| Line::new()).collect(),
                ..Queue::default()
            }),
        };
        Queues(servers.map(queue).collect())
    }

    /// Takes the waiting streams of the backends of both configurations over.
    pub fn succeed(&self, before: &Queues, both: &Succession<'_>) {
        for proxy in &both.proxies {
            let (mut now, mut then) = (self.lock(*proxy), before.lock(*proxy));
            let places = now.bound.len();
            std::mem::swap(&mut *now, &mut *then);
            let longest = now.bound.len().max(places);
            now.bound.resize_with(longest, Line::new);
            let len = before.0[proxy.place()].len.load(Ordering::SeqCst);
            self.0[proxy.place()].len.store(len, Ordering::SeqCst);
        }
    }

    fn lock(&self, backend: ProxyId) -> MutexGuard<'_, Queue> {
        let queue = &self.0[backend.place()].queue;
        // The data is valid after a panic, because each change is one insertion or removal.
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of waiting requests of a backend.
    pub fn len(&self, backend: ProxyId) -> u32 {
        self.0[backend.place()].len.load(Ordering::SeqCst)
    }

    fn count(&self, backend: ProxyId, server: Option<ServerId>, one_more: bool, servers: &Servers) {
        let len = &self.0[backend.place()].len;
        if one_more {
            len.fetch_add(1, Ordering::SeqCst)
        } else {
            len.fetch_sub(1, Ordering::SeqCst)
        };
        if let Some(server) = server {
            servers.count_waiting(server, one_more);
        }
    }

    /// Adds a stream. Slots that became free meanwhile are handed out at once.
    pub fn enter(&self, arrival: Arrival, slots: &impl Slots, grants: &mut Vec<Grant>) -> Ticket {
        let mut queue = self.lock(arrival.backend);
        queue.reach(slots.servers(), arrival.backend);
        let turn = queue.turns;
        queue.turns += 1;
        let line = match arrival.server {
            Some(server) => &mut queue.bound[server.place()],
            None => &mut queue.any,
        };
        line.insert((arrival.rank, turn), arrival.stream);
        self.count(arrival.backend, arrival.server, true, slots.servers());
        match arrival.server {
            Some(server) => self.hand_out(&mut queue, server, slots, grants),
            None => {
                for server in slots.servers().of(arrival.backend) {
                    self.hand_out(&mut queue, server, slots, grants);
                }
            }
        }
        Ticket {
            backend: arrival.backend,
            server: arrival.server,
            rank: arrival.rank,
            turn,
        }
    }

    /// Removes a stream. False if its wait has already ended and a [`Grant`] is posted.
    pub fn leave(&self, ticket: Ticket, servers: &Servers) -> bool {
        let mut queue = self.lock(ticket.backend);
        let line = match ticket.server {
            Some(server) => &mut queue.bound[server.place()],
            None => &mut queue.any,
        };
        let was_there = line.remove(&(ticket.rank, ticket.turn)).is_some();
        if was_there {
            self.count(ticket.backend, ticket.server, false, servers);
        }
        was_there
    }

    /// A slot of a server was released: hands it to the first stream that the server can serve.
    pub fn serve(&self, server: ServerId, slots: &impl Slots, grants: &mut Vec<Grant>) {
        if self.len(server.backend) > 0 {
            let mut queue = self.lock(server.backend);
            queue.reach(slots.servers(), server.backend);
            self.hand_out(&mut queue, server, slots, grants);
        }
    }

    /// The servers of a backend have changed: serves streams that can be served now, and lets those
    /// that never will choose again.
    pub fn review(&self, backend: ProxyId, slots: &impl Slots, grants: &mut Vec<Grant>) {
        let mut queue = self.lock(backend);
        queue.reach(slots.servers(), backend);
        for server in slots.servers().of(backend) {
            if slots.servers().is_up(server) {
                self.hand_out(&mut queue, server, slots, grants);
                continue;
            }
            while let Some((_, stream)) = queue.bound[server.place()].pop_first() {
                self.count(backend, Some(server), false, slots.servers());
                grants.push(Grant {
                    stream,
                    backend,
                    server: None,
                });
            }
        }
        // Nobody serves those that any server may serve: they fail now, not at `timeout queue`.
        let mut all = slots.servers().of(backend);
        if queue.any.is_empty() || all.any(|server| slots.is_usable(server)) {
            return;
        }
        while let Some((_, stream)) = queue.any.pop_first() {
            self.count(backend, None, false, slots.servers());
            grants.push(Grant {
                stream,
                backend,
                server: None,
            });
        }
    }

    fn hand_out(
        &self,
        queue: &mut Queue,
        server: ServerId,
        slots: &impl Slots,
        grants: &mut Vec<Grant>,
    ) {
        let is_usable = slots.is_usable(server);
        while let Some((key, is_bound)) = queue.first(server, is_usable) {
            if !slots.take(server) {
                return;
            }
            let line = if is_bound {
                &mut queue.bound[server.place()]
            } else {
                &mut queue.any
            };
            let Some(stream) = line.remove(&key) else {
                return slots.servers().give(server);
            };
            let of = is_bound.then_some(server);
            self.count(server.backend, of, false, slots.servers());
            grants.push(Grant {
                stream,
                backend: server.backend,
                server: Some(server),
            });
        }
    }

    /// Whether no stream waits.
    pub fn is_quiet(&self) -> bool {
        self.0.iter().all(|of| of.len.load(Ordering::Relaxed) == 0)
    }
}

impl Queue {
    /// Makes room for servers that may have been added.
    fn reach(&mut self, servers: &Servers, backend: ProxyId) {
        let places = servers.of(backend).len();
        if self.bound.len() < places {
            self.bound.resize_with(places, Line::new);
        }
    }

    /// The first stream that a server may serve, and whether it is bound to this server; of equal
    /// ones the bound one is first.
    fn first(&self, server: ServerId, is_usable: bool) -> Option<((Rank, u64), bool)> {
        let bound = self.bound[server.place()].keys().next();
        let any = self.any.keys().next().filter(|_| is_usable);
        match (bound, any) {
            (Some(bound), Some(any)) if any.0 < bound.0 => Some((*any, false)),
            (Some(bound), _) => Some((*bound, true)),
            (None, Some(any)) => Some((*any, false)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::health::WHOLE;
    use crate::shared::servers;

    /// Two servers with a slot each.
    struct Two(Servers);

    impl Slots for Two {
        fn servers(&self) -> &Servers {
            &self.0
        }
        fn is_usable(&self, server: ServerId) -> bool {
            self.0.usable(server.backend)[server.place()]
        }
        fn take(&self, server: ServerId) -> bool {
            self.0.take(server, 1)
        }
    }

    struct Play {
        slots: Two,
        queues: Queues,
    }

    fn load(text: &str) -> config::model::Config {
        let input = config::reader::Input {
            name: "queue.cfg".into(),
            text: text.into(),
        };
        let options = config::load::LoadOptions {
            build: &config::condition::BuildInfo::default(),
            settings: config::build::Settings::default(),
            zero_warning: false,
        };
        let mut environment = config::environment::Environment::new();
        let no_file = |name: &str| Err(format!("no {name}"));
        let loaded = config::load::load_with(&[input], options, &mut environment, &no_file);
        loaded.expect("a configuration").0
    }

    fn server(place: usize) -> ServerId {
        ServerId::at(ProxyId::at(0), place)
    }

    impl Play {
        /// All slots are taken.
        fn new() -> Play {
            let text =
                "backend app\nserver a 127.0.0.1:1 maxconn 1\nserver b 127.0.0.1:2 maxconn 1\n";
            let config = load(text);
            let slots = Two(Servers::new(&config, &[1]));
            assert!(slots.take(server(0)) && slots.take(server(1)));
            Play {
                slots,
                queues: Queues::new([2].into_iter()),
            }
        }

        fn enter(&self, number: u64, time_ms: i64, only: Option<usize>) -> Ticket {
            let arrival = Arrival {
                stream: StreamRef {
                    worker: WorkerId(0),
                    place: 0,
                    number,
                },
                backend: ProxyId::at(0),
                rank: Rank { class: 0, time_ms },
                server: only.map(server),
            };
            let mut grants = Vec::new();
            let ticket = self.queues.enter(arrival, &self.slots, &mut grants);
            assert_eq!(grants, []);
            ticket
        }

        /// Who gets the slot that a server gives back.
        fn give(&self, place: usize) -> Vec<(u64, Option<usize>)> {
            let mut grants = Vec::new();
            self.slots.0.give(server(place));
            self.queues.serve(server(place), &self.slots, &mut grants);
            numbers(&grants)
        }
    }

    fn numbers(grants: &[Grant]) -> Vec<(u64, Option<usize>)> {
        let of = |grant: &Grant| (grant.stream.number, grant.server.map(ServerId::place));
        grants.iter().map(of).collect()
    }

    #[test]
    fn a_slot_goes_to_the_first_that_its_server_can_serve() {
        let play = Play::new();
        play.enter(1, 10, None);
        play.enter(2, 5, Some(1));
        play.enter(3, 10, Some(0));
        let gone = play.enter(4, 1, None);
        assert_eq!(play.queues.len(ProxyId::at(0)), 4);
        assert_eq!(play.slots.0.waiting(server(0)), 1);
        assert!(play.queues.leave(gone, &play.slots.0));
        assert_eq!(play.give(0), [(3, Some(0))], "among equals the bound one");
        assert_eq!(play.give(1), [(2, Some(1))]);
        assert_eq!(play.give(1), [(1, Some(1))]);
        assert!(!play.slots.take(server(1)), "its slot was handed over");
        assert_eq!(play.give(1), []);
        assert!(play.slots.take(server(1)));
        assert!(!play.queues.leave(gone, &play.slots.0));
        assert!(play.queues.is_quiet());
    }

    #[test]
    fn those_who_wait_for_a_server_that_went_choose_again() {
        let play = Play::new();
        play.enter(1, 1, Some(0));
        play.enter(2, 2, None);
        play.slots.0.set(server(0), servers::MAINTENANCE, 1, WHOLE);
        let mut grants = Vec::new();
        let backend = ProxyId::at(0);
        play.queues.review(backend, &play.slots, &mut grants);
        assert_eq!(numbers(&grants), [(1, None)]);
        assert_eq!(play.give(0), [], "nobody may go there");
        assert_eq!(play.give(1), [(2, Some(1))]);
    }
}
