//! A backend as one worker serves it: which server takes a request, and who waits when all are full.

use std::collections::VecDeque;

use config::model::Proxy;
use net::timers::NEVER_MS;
use net::{ConnId, Driver};

use crate::balance::{self, Balance, Candidates};
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::shared::Count;
use crate::stream::phases::Step;
use crate::stream::{Phase, Stream, StreamId};
use crate::world::next_random;

/// One worker's state of a backend.
#[derive(Debug)]
pub(crate) struct Backend {
    balance: Box<dyn Balance>,
    /// The servers that take traffic now.
    usable: Vec<bool>,
    /// By server: idle connections.
    pub idle: Vec<Vec<ConnId>>,
    /// Requests that wait for a slot, oldest first. An entry whose stream has left says so by its number.
    queue: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    stream: StreamId,
    number: u64,
    /// Only this server will do (the algorithm is bound to it).
    server: Option<usize>,
}

impl Backend {
    pub fn new(proxy: &Proxy, worker: usize) -> Self {
        Backend {
            balance: balance::new(proxy, worker),
            usable: usable_servers(proxy),
            idle: proxy.servers.iter().map(|_| Vec::new()).collect(),
            queue: VecDeque::new(),
        }
    }
}

/// Enabled servers with a weight; backups only where there is no other, and only the first without `option allbackups`.
fn usable_servers(proxy: &Proxy) -> Vec<bool> {
    let serves = |backup: bool| {
        let servers = proxy.servers.iter();
        servers
            .map(|line| !line.disabled && line.weight > 0 && line.backup == backup)
            .collect::<Vec<_>>()
    };
    let active = serves(false);
    if active.contains(&true) {
        return active;
    }
    let mut backups = serves(true);
    if !proxy.options.allbackups {
        let first = backups.iter().position(|usable| *usable);
        backups
            .iter_mut()
            .enumerate()
            .for_each(|(index, usable)| *usable = Some(index) == first);
    }
    backups
}

impl Core {
    /// Chooses a server and takes one of its slots; queues where all are taken.
    pub fn select_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let proxy = cx.running.proxy(stream.backend);
        if stream.target.is_none() || !stream.slot_held {
            let chosen = self.choose(cx, stream);
            match chosen {
                Choice::Server(server) => stream.target = Some(server),
                Choice::Full(server) => return self.enqueue(cx, stream, server),
                Choice::None => {
                    stream.ended_by(b'S', b'C');
                    self.fail(cx, stream, 503);
                    return Step::Wait;
                }
            }
            stream.slot_held = stream
                .target
                .is_some_and(|server| proxy.servers[server].maxconn > 0);
        }
        Step::Go(Phase::Connect)
    }

    fn choose<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &Stream) -> Choice {
        let proxy = cx.running.proxy(stream.backend);
        let key = match stream.client.and_then(|client| self.conns.client(client)) {
            Some(client) => balance::key(
                &proxy.balance,
                &client.session,
                stream.has_request().then_some(&stream.request),
            ),
            None => None,
        };
        let Core {
            backends,
            shared,
            random,
            ..
        } = self;
        let backend = &mut backends[stream.backend];
        let sticks = key.is_some() && backend.balance.sticks();
        let (usable, place) = (&backend.usable, stream.backend);
        let free = |server: usize| {
            let max = proxy.servers[server].maxconn;
            max == 0 || shared.slot_is_free(place, server, max)
        };
        let may = |server: usize| {
            usable[server] && stream.avoid != Some(server) && (sticks || free(server))
        };
        let load = |server: usize| shared.count(Count::Server(place, server));
        let candidates = Candidates {
            servers: &proxy.servers,
            may: &may,
            load: &load,
        };
        loop {
            let Some(server) = backend
                .balance
                .pick(&candidates, key, &mut || next_random(random))
            else {
                let any =
                    (0..usable.len()).any(|server| usable[server] && stream.avoid != Some(server));
                return if any {
                    Choice::Full(None)
                } else {
                    Choice::None
                };
            };
            let max = proxy.servers[server].maxconn;
            if max == 0 || shared.take_slot(place, server, max) {
                return Choice::Server(server);
            }
            if sticks {
                return Choice::Full(Some(server));
            }
            // Another worker took the slot in between: look again.
        }
    }

    fn enqueue<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        server: Option<usize>,
    ) -> Step {
        let place = stream.backend;
        if !std::mem::replace(&mut stream.queued, true) {
            let ahead = self.shared.count(Count::Queued(place));
            stream.txn.backend_queue = ahead;
            self.count(Count::Queued(place));
            self.shared.waiting_add();
            if let Some(client) = stream.client {
                self.set_deadline(client, deadline(cx.now(), cx.running.timeouts[place].queue));
            }
        }
        let waiting = Waiting {
            stream: stream.id,
            number: stream.txn.id,
            server,
        };
        self.backends[place].queue.push_back(waiting);
        Step::Go(Phase::Queue)
    }

    /// A stream no longer waits in a queue.
    pub fn leave_queue(&mut self, stream: &mut Stream) {
        if std::mem::take(&mut stream.queued) {
            self.uncount(Count::Queued(stream.backend));
            self.shared.waiting_sub();
        }
    }

    /// Lets go of a server's slot and gives the waiting a chance.
    pub fn release_slot<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if std::mem::take(&mut stream.slot_held)
            && let Some(server) = stream.target
        {
            self.shared.give_slot(stream.backend, server);
            if self.shared.anyone_waits() {
                self.wake_queue(cx, stream.backend);
                cx.driver.wake_peers();
            }
        }
    }

    /// Offers free slots to the waiting of every backend.
    pub fn wake_queues<D: Driver>(&mut self, cx: &mut Cx<'_, D>) {
        for place in 0..self.backends.len() {
            if !self.backends[place].queue.is_empty() {
                self.wake_queue(cx, place);
            }
        }
    }

    fn wake_queue<D: Driver>(&mut self, cx: &Cx<'_, D>, place: usize) {
        let proxy = cx.running.proxy(place);
        let Core {
            backends,
            shared,
            streams,
            ..
        } = self;
        let Backend { queue, usable, .. } = &mut backends[place];
        let free = |server: usize| {
            let max = proxy.servers[server].maxconn;
            usable[server] && (max == 0 || shared.slot_is_free(place, server, max))
        };
        let position = queue.iter().position(|waiting| {
            // A stream that is being worked on is not waiting any more either.
            let still = streams
                .get(waiting.stream)
                .is_some_and(|stream| stream.txn.id == waiting.number && stream.queued);
            !still
                || waiting
                    .server
                    .map_or_else(|| (0..usable.len()).any(free), free)
        });
        if let Some(waiting) = position.and_then(|position| queue.remove(position)) {
            let live = streams
                .get(waiting.stream)
                .is_some_and(|stream| stream.txn.id == waiting.number && stream.queued);
            if live {
                self.retry_select(waiting.stream);
            }
        }
    }

    fn retry_select(&mut self, id: StreamId) {
        let Some(mut stream) = self.streams.take(id) else {
            return;
        };
        self.leave_queue(&mut stream);
        if let Some(client) = stream.client {
            self.set_deadline(client, NEVER_MS);
        }
        stream.phase = Phase::SelectServer;
        self.streams.put(stream);
        self.woken.push(id);
    }

    /// Whether the next try goes to another server (manual §4.2 option redispatch): after every try, or only for the last.
    pub fn may_redispatch<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream) -> bool {
        let proxy = cx.running.proxy(stream.backend);
        let Some(interval) = proxy.options.redispatch else {
            return false;
        };
        let left = i64::from(proxy.retries) - i64::from(stream.tries);
        let due = match i64::from(interval) {
            0 => false,
            every if every > 0 => i64::from(stream.tries) % every == 0,
            before_last => left == -before_last - 1,
        };
        due && self.backends[stream.backend]
            .usable
            .iter()
            .filter(|usable| **usable)
            .count()
            > 1
    }
}

enum Choice {
    Server(usize),
    /// All are full, or the one that it must be.
    Full(Option<usize>),
    None,
}
