//! Chooses the server of a request; queues the request where all are full.

use config::model::HashFunction;
use http::Method;
use net::Driver;

use super::{Cause, Cx};
use crate::backend::{Choice, Placement, View, hash_key};
use crate::ids::ServerId;
use crate::runtime_config::deadline;
use crate::shared::{Arrival, BackCount, Grant, Rank};
use crate::stream::{Phase, Queue, Step, Stream, Until};

impl<D: Driver> Cx<'_, D> {
    /// Chooses a server and takes one of its slots; queues the request where no slot is free.
    pub(super) fn select_server(&mut self, stream: &mut Stream) -> Step {
        if stream.route.target.is_none() || stream.route.slot.is_none() {
            let bound = stream.route.target.filter(|_| stream.route.persist.direct);
            let chosen = match bound {
                Some(server) => self.choose_bound(stream, server),
                None => self.choose(stream),
            };
            match chosen {
                Choice::Server(placement) => {
                    stream.route.target = Some(placement.server);
                    stream.route.slot = placement.has_slot.then_some(placement.server);
                }
                Choice::Full(server) => return self.enqueue(stream, server),
                Choice::QueueFull => {
                    self.fail(stream, Cause::QueueFull);
                    return Step::Wait;
                }
                Choice::Nobody => {
                    self.fail(stream, Cause::NoServer);
                    return Step::Wait;
                }
            }
        }
        if let Some(server) = stream.route.target
            && let Some(prefix) = &self.servers.at(server).redir
            && matches!(stream.txn.method, Method::Get | Method::Head)
        {
            stream.txn.server = Some(server.number());
            self.redirect_to_server(stream, prefix);
            return Step::Wait;
        }
        stream.go(Phase::Connect(Until::default()))
    }

    /// The server that the request is bound to. The request waits for its slot, unless the queue is
    /// full and another server may be used.
    #[inline(never)]
    fn choose_bound(&mut self, stream: &mut Stream, server: ServerId) -> Choice {
        let shared = &self.core.ambient.shared;
        if let Some(placement) = Placement::of(shared, server) {
            return Choice::Server(placement);
        }
        let most = self.servers.at(server).maxqueue;
        if most == 0 || shared.servers.waiting(server) < most {
            return Choice::Full(Some(server));
        }
        let options = &self.runtime_config.proxy(stream.backend).options;
        if options.redispatch.is_none() || stream.route.persist.forced {
            return Choice::QueueFull;
        }
        stream.unbind();
        stream.route.target = None;
        self.accounts()
            .tell_server(stream, server, BackCount::Redispatches);
        stream.txn.redispatched = true;
        self.choose(stream)
    }

    #[inline]
    fn choose(&mut self, stream: &mut Stream) -> Choice {
        let backend = stream.backend;
        let key = if self.core.backends.sticks(backend) {
            self.hash_key(stream)
        } else {
            None
        };
        let proxy = self.runtime_config.proxy(backend);
        if proxy.options.prefer_last_server
            && key.is_none()
            && let Some(server) = self.last_server(stream)
            && let Some(choice) = self.choose_last(stream, server)
        {
            return choice;
        }
        let core = &mut *self.core;
        let avoid = stream.route.avoid;
        let view = View {
            runtime_config: self.runtime_config,
            servers: self.servers,
            ambient: &core.ambient,
        };
        let now_ns = self.io.now().mono_ns;
        core.backends.choose(&view, backend, avoid, key, now_ns)
    }

    /// The hash of the key that binds this request to a server.
    #[inline(never)]
    fn hash_key(&mut self, stream: &mut Stream) -> Option<u32> {
        let hash_type = self.runtime_config.proxy(stream.backend).hash_type;
        self.with_eval(stream, |eval, stream| {
            hash_key(eval.runtime_config, stream, eval.session, |expr, out| {
                eval.with_scope(stream, true, |scope| {
                    if hash_type.function == HashFunction::None {
                        expr.append_text(scope, out);
                        !out.is_empty()
                    } else {
                        expr.append_binary(scope, out)
                    }
                })
            })
        })
        .flatten()
    }

    /// The server of the private connection that this client used last.
    fn last_server(&mut self, stream: &Stream) -> Option<ServerId> {
        let core = &mut *self.core;
        let kept = core.links.client(stream.client?)?.kept.last()?;
        let server = core.links.server(*kept)?.server;
        let view = View {
            runtime_config: self.runtime_config,
            servers: self.servers,
            ambient: &core.ambient,
        };
        let is_usable = server.backend == stream.backend && core.backends.is_usable(&view, server);
        is_usable.then_some(server)
    }

    /// The client's last server or a place in its queue, if the queue is not too long.
    #[inline(never)]
    fn choose_last(&self, stream: &Stream, server: ServerId) -> Option<Choice> {
        let shared = &self.core.ambient.shared;
        if let Some(placement) = Placement::of(shared, server) {
            return Some(Choice::Server(placement));
        }
        let waiting = shared.servers.waiting(server);
        let proxy = self.runtime_config.proxy(stream.backend);
        let most = self.servers.at(server).maxqueue;
        let is_worth_it = proxy.max_keep_alive_queue.is_none_or(|max| waiting < max);
        (is_worth_it && (most == 0 || waiting < most)).then_some(Choice::Full(Some(server)))
    }

    #[inline(never)]
    fn enqueue(&mut self, stream: &mut Stream, server: Option<ServerId>) -> Step {
        let now = self.now();
        let shared = &self.core.ambient.shared;
        // The place in the queue, as in HAProxy: 1 is the first one.
        match server {
            Some(server) => stream.txn.server_queue += shared.servers.waiting(server) + 1,
            None => stream.txn.backend_queue += shared.queued(stream.backend) + 1,
        }
        let arrival = Arrival {
            stream: stream.reference(self.core.ambient.worker),
            backend: stream.backend,
            rank: Rank {
                class: stream.txn.prio_class,
                time_ms: now.ms() as i64 + i64::from(stream.txn.prio_offset),
            },
            server,
        };
        let ticket = shared.wait_for_slot(arrival, &mut |worker| self.io.wake(worker));
        let until = Until(deadline(now, stream.queue_ms(self.runtime_config)));
        stream.go(Phase::Queue(Queue { ticket, until }))
    }

    /// The stream's wait in the queue has ended: it has a server's slot, or must choose again.
    /// False where the stream no longer waits; then the grant is not taken.
    pub fn granted(&mut self, stream: &mut Stream, grant: Grant) -> bool {
        let waits = matches!(stream.phase, Phase::Queue(_)) && stream.txn.id == grant.stream.number;
        if !waits {
            return false;
        }
        stream.phase = Phase::SelectServer;
        match grant.server {
            Some(server) => {
                stream.route.target = Some(server);
                stream.route.slot = Some(server);
            }
            None => {
                stream.route.target = None;
                stream.unbind();
            }
        }
        self.run(stream);
        true
    }

    /// A grant was not taken: gives the slot to the next stream in the queue.
    pub fn refuse_grant(&mut self, grant: Grant) {
        if let Some(server) = grant.server {
            let shared = &self.core.ambient.shared;
            shared.give_slot(server, &mut |worker| self.io.wake(worker));
        }
    }

    /// A queued stream will get no server: its queue time ends now.
    pub(super) fn give_up_queue(&mut self, stream: &mut Stream) {
        if let Phase::Queue(Queue { ticket, .. }) = stream.phase {
            let now_ms = self.now_ms();
            stream.txn.timing.queued_ms.get_or_insert(now_ms);
            self.core.ambient.shared.stop_waiting(ticket);
            // The stream has left the queue; no later grant may match it.
            stream.phase = Phase::SelectServer;
        }
    }

    /// Releases a server's slot, which the first stream in the queue gets.
    pub(super) fn release_slot(&mut self, stream: &mut Stream) {
        if let Some(server) = stream.route.slot.take() {
            let shared = &self.core.ambient.shared;
            shared.give_slot(server, &mut |worker| self.io.wake(worker));
        }
    }

    /// Whether the next try may use another server (manual §4.2 option redispatch): after every so
    /// many tries, or only for the last one; at once where nothing binds the request to this
    /// server, or where the server is down.
    pub(super) fn may_redispatch(&mut self, stream: &Stream) -> bool {
        let runtime_config = self.runtime_config;
        let proxy = runtime_config.proxy(stream.backend);
        let Some(interval) = proxy.options.redispatch else {
            return false;
        };
        let core = &mut *self.core;
        let (route, backend) = (&stream.route, stream.backend);
        let view = View {
            runtime_config,
            servers: self.servers,
            ambient: &core.ambient,
        };
        let has_others = core.backends.has_others(&view, backend, route.target);
        if route.persist.forced || !has_others {
            return false;
        }
        let servers = &core.ambient.shared.servers;
        let is_down = route.target.is_some_and(|server| !servers.is_up(server));
        let every = match i64::from(interval) {
            every if every > 0 => every,
            before_last => i64::from(stream.retries_max(runtime_config)) + 1 + before_last,
        };
        let due = every > 0 && i64::from(route.tries) % every == 0;
        is_down || due || (!route.persist.direct && !core.backends.sticks(backend))
    }

    /// Lets the next try choose another server.
    pub(super) fn redispatch(&mut self, stream: &mut Stream) {
        self.release_slot(stream);
        stream.route.avoid = stream.route.target.take();
        if let Some(from) = stream.route.avoid {
            self.accounts()
                .tell_server(stream, from, BackCount::Redispatches);
        }
        stream.unbind();
        stream.txn.redispatched = true;
    }
}
