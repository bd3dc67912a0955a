//! A backend as one worker serves it: which server takes a request, and who waits when all are full.

use config::model::{HashFunction, Proxy};
use http::Method;
use net::timers::NEVER_MS;
use net::{ConnId, Driver};

use crate::balance::{self, Balance, Candidates};
use crate::engine::{Core, Cx};
use crate::queue::{Queue, Rank, Waiting};
use crate::running::deadline;
use crate::shared::{Count, Shared};
use crate::stream::phases::Step;
use crate::stream::{Phase, Stream, StreamId, Streams};
use crate::world::next_random;

/// One worker's state of a backend.
#[derive(Debug)]
pub(crate) struct Backend {
    balance: Box<dyn Balance>,
    /// The servers that take traffic now.
    usable: Vec<bool>,
    /// By server: idle connections.
    pub idle: Vec<Vec<ConnId>>,
    /// Requests that wait for a slot.
    queue: Queue,
}

impl Backend {
    pub fn new(proxy: &Proxy, worker: usize) -> Self {
        Backend {
            balance: balance::new(proxy, worker),
            usable: balance::usable(proxy),
            idle: proxy.servers.iter().map(|_| Vec::new()).collect(),
            queue: Queue::new(proxy.servers.len()),
        }
    }
}

impl Core {
    /// Chooses a server and takes one of its slots; queues where all are taken.
    pub fn select_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let proxy = cx.running.proxy(stream.backend);
        if stream.target.is_none() || !stream.slot_held {
            let bound = stream.target.filter(|_| stream.persist.direct);
            let chosen = match bound {
                Some(server) => self.choose_bound(cx, stream, server),
                None => self.choose(cx, stream),
            };
            match chosen {
                Choice::Server(server) => stream.target = Some(server),
                Choice::Full(server) => return self.enqueue(cx, stream, server),
                Choice::QueueFull => {
                    stream.ended_by(b'S', b'Q');
                    self.fail(cx, stream, 503);
                    return Step::Wait;
                }
                Choice::None => {
                    stream.ended_by(b'S', b'C');
                    self.fail(cx, stream, 503);
                    return Step::Wait;
                }
            }
            stream.slot_held = stream
                .target
                .is_some_and(|server| proxy.servers[server].maxconn > 0);
            if let Some(server) = stream.target
                && let Some(prefix) = &proxy.servers[server].redir
                && matches!(stream.txn.method, Method::Get | Method::Head)
            {
                stream.txn.server = Some(server as u32);
                self.redirect_to_server(cx, stream, prefix);
                return Step::Wait;
            }
        }
        Step::Go(Phase::Connect)
    }

    /// The server that the request is bound to: its slot is waited for, unless its queue is full and another one will do.
    fn choose_bound<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        server: usize,
    ) -> Choice {
        let place = stream.backend;
        let max = limit(cx, &self.shared, place, server);
        if max == 0 || self.shared.take_slot(place, server, max) {
            return Choice::Server(server);
        }
        let proxy = cx.running.proxy(place);
        let most = proxy.servers[server].maxqueue;
        if most == 0 || self.shared.queued_for(place, server) < most {
            return Choice::Full(Some(server));
        }
        if proxy.options.redispatch.is_none() || stream.persist.forced {
            return Choice::QueueFull;
        }
        stream.unbind();
        stream.target = None;
        stream.txn.redispatched = true;
        self.choose(cx, stream)
    }

    /// The hash of what binds this request to a server.
    fn hash_key<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream) -> Option<u32> {
        let proxy = cx.running.proxy(stream.backend);
        let session = self.session(stream)?;
        let request = stream.has_request().then_some(&stream.request);
        balance::key(proxy, session, &stream.txn, request, |expr, out| {
            self.with_scope(cx, stream, true, |scope| {
                if proxy.hash_type.function == HashFunction::None {
                    expr.append_text(scope, out);
                    !out.is_empty()
                } else {
                    expr.append_binary(scope, out)
                }
            })
            .unwrap_or(false)
        })
    }

    /// The server of a backend in `mode log` that the next message goes to; `key` where its algorithm hashes.
    pub fn log_server<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        place: usize,
        key: Option<u32>,
    ) -> Option<usize> {
        let Core {
            backends,
            shared,
            random,
            ..
        } = self;
        let backend = &mut backends[place];
        let usable = &backend.usable;
        let candidates = Candidates {
            servers: &cx.running.proxy(place).servers,
            may: &|server| usable[server],
            load: &|_| 0,
            turn: shared.turn(place),
        };
        backend
            .balance
            .pick(&candidates, key, &mut || next_random(random))
    }

    #[inline]
    fn choose<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &Stream) -> Choice {
        let proxy = cx.running.proxy(stream.backend);
        let hashes = self.backends[stream.backend].balance.sticks();
        let key = if hashes {
            self.hash_key(cx, stream)
        } else {
            None
        };
        if proxy.options.prefer_last_server
            && key.is_none()
            && let Some(server) = self.last_server(stream)
        {
            let max = limit(cx, &self.shared, stream.backend, server);
            if max == 0 || self.shared.take_slot(stream.backend, server, max) {
                return Choice::Server(server);
            }
            // It is worth a wait, if not too many wait there already.
            let (queued, line) = (
                self.shared.queued_for(stream.backend, server),
                &proxy.servers[server],
            );
            let worth_it = proxy.max_keep_alive_queue.is_none_or(|max| queued < max);
            if worth_it && (line.maxqueue == 0 || queued < line.maxqueue) {
                return Choice::Full(Some(server));
            }
        }
        let Core {
            backends,
            shared,
            random,
            ..
        } = self;
        let backend = &mut backends[stream.backend];
        let sticks = key.is_some() && backend.balance.sticks();
        let (usable, place) = (&backend.usable, stream.backend);
        let limit = |server: usize| limit(cx, shared, place, server);
        let free = |server: usize| {
            let max = limit(server);
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
            turn: shared.turn(place),
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
            let max = limit(server);
            if max == 0 || shared.take_slot(place, server, max) {
                return Choice::Server(server);
            }
            if sticks {
                let most = proxy.servers[server].maxqueue;
                return match most > 0 && shared.queued_for(place, server) >= most {
                    true => Choice::QueueFull,
                    false => Choice::Full(Some(server)),
                };
            }
            // Another worker took the slot in between: look again.
        }
    }

    /// The server of the connection that this client keeps for itself.
    fn last_server(&self, stream: &Stream) -> Option<usize> {
        let kept = self.conns.client_ref(stream.client?)?.kept?;
        let kept = self.conns.server_ref(kept)?;
        let usable = &self.backends[stream.backend].usable;
        (kept.backend == stream.backend && usable[kept.server]).then_some(kept.server)
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
            stream.queued_for = server;
            if let Some(server) = server {
                self.shared.queue_for(place, server);
            }
            if let Some(client) = stream.client {
                self.set_deadline(client, deadline(cx.now(), stream.queue_ms(cx.running)));
            }
        }
        let waiting = Waiting {
            stream: stream.id,
            number: stream.txn.id,
        };
        let rank = Rank {
            class: stream.txn.prio_class,
            time_ms: cx.now().ms() as i64 + i64::from(stream.txn.prio_offset),
        };
        let live = self.shared.own_count(self.worker, Count::Queued(place)) as usize;
        let streams = &self.streams;
        let queue = &mut self.backends[place].queue;
        queue.push(waiting, rank, server, live, |waiting| {
            streams.waits(waiting)
        });
        Step::Go(Phase::Queue)
    }

    /// A stream no longer waits in a queue.
    pub fn leave_queue(&mut self, stream: &mut Stream) {
        if std::mem::take(&mut stream.queued) {
            self.uncount(Count::Queued(stream.backend));
            self.shared.waiting_sub();
            if let Some(server) = stream.queued_for.take() {
                self.shared.unqueue_for(stream.backend, server);
            }
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
        let Core {
            backends,
            shared,
            streams,
            ..
        } = self;
        let Backend { queue, usable, .. } = &mut backends[place];
        let free = |server: usize| {
            let max = limit(cx, shared, place, server);
            usable[server] && (max == 0 || shared.slot_is_free(place, server, max))
        };
        if let Some(waiting) = queue.pop(free, |waiting| streams.waits(waiting)) {
            self.retry_select(waiting.stream);
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

    /// Whether the next try may go to another server (manual §4.2 option redispatch): after every so many tries, or only
    /// for the last; at once where nothing binds the request to this one, or where it is down.
    pub fn may_redispatch<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream) -> bool {
        let proxy = cx.running.proxy(stream.backend);
        let Some(interval) = proxy.options.redispatch else {
            return false;
        };
        let backend = &self.backends[stream.backend];
        let others = || {
            let mut usable = backend.usable.iter().enumerate();
            usable.any(|(server, usable)| *usable && stream.target != Some(server))
        };
        if stream.persist.forced || !others() {
            return false;
        }
        let is_down = stream
            .target
            .is_some_and(|server| proxy.servers[server].disabled);
        let every = match i64::from(interval) {
            every if every > 0 => every,
            before_last => i64::from(stream.retries_max(cx.running)) + 1 + before_last,
        };
        let due = every > 0 && i64::from(stream.tries) % every == 0;
        is_down || due || (!stream.persist.direct && !backend.balance.sticks())
    }

    /// Lets the next try find another server.
    pub fn redispatch<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        self.release_slot(cx, stream);
        stream.avoid = stream.target.take();
        stream.unbind();
        stream.txn.redispatched = true;
    }
}

impl Streams {
    /// Whether what an entry of a queue names still waits there. A stream that is being worked on does not.
    fn waits(&self, waiting: &Waiting) -> bool {
        self.get(waiting.stream)
            .is_some_and(|stream| stream.txn.id == waiting.number && stream.queued)
    }
}

enum Choice {
    Server(usize),
    /// All are full, or the one that it must be.
    Full(Option<usize>),
    /// The one that it must be is full, and so is its queue (`maxqueue`).
    QueueFull,
    None,
}

/// How many requests a server may work on now; 0 is any number. With `minconn` it grows with the backend's load until
/// `fullconn` (manual §5.2 minconn).
fn limit<D: Driver>(cx: &Cx<'_, D>, shared: &Shared, place: usize, server: usize) -> u32 {
    let proxy = cx.running.proxy(place);
    let line = &proxy.servers[server];
    if line.minconn == 0 {
        return line.maxconn;
    }
    let load = u64::from(shared.count(Count::Backend(place)));
    let full = u64::from(cx.running.fullconn[place].max(1));
    if load >= full {
        return line.maxconn;
    }
    line.minconn
        .max((load * u64::from(line.maxconn) / full) as u32)
}
