//! The way of a request, top to bottom.
//!
//! A stream is a state machine over [`Phase`]s. A phase does its work, then names the next phase or
//! waits; the event that ends the wait is written beside the phase. Bodies are forwarded beside the
//! phases once their head has been sent (see [`bodies`]).

pub(crate) mod account;
mod bodies;
mod buffering;
mod clients;
mod compress;
mod connect;
mod connect_addresses;
mod content;
mod ends;
mod exchanges;
mod fault;
mod filters;
mod forwarded;
mod names;
mod observe;
mod prepare;
mod proxy_header;
mod refused;
mod reply;
mod request;
mod response;
mod retry;
mod rules;
mod select;
mod servers;
mod statistics;
mod tables;
mod take_over;
mod tunnel;
mod waits;

use std::collections::VecDeque;
use std::sync::Arc;

use http::Head;
use net::{Driver, Now, WorkerId};
use sample::{LogOrigin, Session};
use telemetry::program::Event;

use crate::backend::{Backends, View};
use crate::evaluation::{Ambient, Connection, Eval};
use crate::ids::{ConnId, ExchangeId, LinkId, StreamId, Timers};
use crate::link::{Links, Role, ShortRecords};
use crate::logging::{Logging, Scene};
use crate::random::Random;
use crate::runtime_config::RuntimeConfig;
use crate::shared::{Count, Pace, ServerTables, Shared};
use crate::stream::{Compressors, FOLLOWS_TRIES, Phase, Step, Stream};
use crate::{rules as actions, tracing};
pub(crate) use fault::Cause;
pub(crate) use request::{is_monitored, request_read_rules};
pub(crate) use response::response_read_rules;
pub(crate) use statistics::is_for_page;
pub(crate) use waits::ConnWait;

/// The state of one worker, except its streams.
#[derive(Debug)]
pub(crate) struct Core {
    pub ambient: Ambient,
    pub links: Links,
    pub backends: Backends,
    pub timers: Timers,
    pub logging: Logging,
    pub tracing: tracing::Worker,
    pub rules: actions::Memory,
    /// Scratch buffers: a text, and a head that is written. Empty between uses.
    pub text: Vec<u8>,
    pub out: Vec<u8>,
    /// The buffer for bytes that TLS has decrypted.
    pub opened: crate::link::Opened,
    /// Scratch buffers: a head and trailers that are read. Empty between uses.
    pub head: Head,
    pub trailers: Head,
    pub work: Work,
    /// Client connections of this worker.
    pub clients: u32,
    /// The compressors of messages.
    pub compressors: Compressors,
}

/// Work that an event made possible; done before the entry point returns.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Streams that can continue.
    pub streams: VecDeque<StreamId>,
    /// Connections whose input may be used now.
    pub links: VecDeque<LinkId>,
    /// A client's connection was closed, so another one may be accepted.
    pub dismissed: bool,
}

/// The context of phases: the driver, the configuration, and the worker.
pub(crate) struct Cx<'a, D> {
    pub io: &'a mut D,
    pub runtime_config: &'a RuntimeConfig,
    pub servers: &'a ServerTables,
    pub core: &'a mut Core,
}

impl Core {
    /// The initial state of a worker.
    pub fn new(
        runtime_config: &RuntimeConfig,
        servers: &ServerTables,
        shared: Arc<Shared>,
        worker: WorkerId,
        seed: u64,
    ) -> Core {
        let workers = shared.workers().count();
        let ambient = Ambient::new(shared, worker, seed);
        Core {
            backends: Backends::new(&View {
                runtime_config,
                servers,
                ambient: &ambient,
            }),
            logging: Logging::new(runtime_config, &ambient),
            tracing: tracing::Worker::new(runtime_config, worker.0 as usize, seed),
            ambient,
            links: Links::new(
                ShortRecords::new(&runtime_config.config.global.tls),
                runtime_config.h2,
                Random::new(!seed),
            ),
            timers: Timers::default(),
            rules: actions::Memory::default(),
            text: Vec::with_capacity(256),
            out: Vec::with_capacity(4096),
            opened: crate::link::Opened::default(),
            head: Head::default(),
            trailers: Head::default(),
            work: Work::default(),
            clients: 0,
            compressors: Compressors::new(
                runtime_config.config.global.maxzlibmem_mib,
                runtime_config.config.global.tune.comp_level,
                workers,
            ),
        }
    }

    /// The exchange of a connection for a new request.
    fn open_exchange(&mut self, connection: ConnId) -> Option<ExchangeId> {
        self.links.open_exchange(connection, &mut self.timers)
    }

    /// Increments a gauge.
    #[inline]
    pub fn count(&self, what: Count) {
        self.ambient.shared.add(self.ambient.worker, what);
    }

    /// Decrements a gauge.
    #[inline]
    pub fn uncount(&self, what: Count) {
        self.ambient.shared.sub(self.ambient.worker, what);
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Runs the phases of a stream until it waits.
    pub fn run(&mut self, stream: &mut Stream) {
        stream.txn.turns = stream.txn.turns.wrapping_add(1);
        loop {
            let step = match stream.phase {
                // A TCP stream that switches to HTTP: waits for the client's bytes, at most
                // `timeout http-request`.
                Phase::RequestHead(_) => Step::Wait,
                // `tcp-request content` of the frontend: may wait `inspect-delay` for bytes.
                Phase::FrontendContent(inspection) => self.frontend_content(stream, inspection),
                // `option http-buffer-request` of the frontend: waits for the body or a full
                // buffer.
                Phase::FrontendBody(_) => self.frontend_body(stream),
                // `http-request` of the frontend: a rule may wait.
                Phase::FrontendRequest(rules) => self.frontend_request(stream, rules),
                // `use_backend`, `default_backend`.
                Phase::SwitchBackend => self.switch_backend(stream),
                // `tcp-request content` of the backend.
                Phase::BackendContent(inspection) => self.backend_content(stream, inspection),
                // `option http-buffer-request` of the backend.
                Phase::BackendBody(_) => self.backend_body(stream),
                // `http-request` of the backend.
                Phase::BackendRequest(rules) => self.backend_request(stream, rules),
                // `use-server`, persistence cookies.
                Phase::AssignServer => self.assign_server(stream),
                // Forwarding headers, connection handling.
                Phase::PrepareRequest => self.prepare_request(stream),
                // Balancing; a slot of the server.
                Phase::SelectServer => self.select_server(stream),
                // A full backend: waits for a slot, at most `timeout queue`.
                Phase::Queue(_) => Step::Wait,
                // The pause before the same server is tried again.
                Phase::TurnAround(_) => Step::Wait,
                // An idle or new connection to the server: waits for it, at most `timeout connect`.
                Phase::Connect(_) => self.connect_server(stream),
                // An idle connection of another worker: waits for the answer, at most
                // `TAKE_OVER_MS`.
                Phase::TakeOver(_) => Step::Wait,
                // Sends the head of the request; its body follows as it comes.
                Phase::SendRequest => self.send_request(stream),
                // The head of the response: waits for the server's bytes, at most `timeout server`.
                Phase::ResponseHead => Step::Wait,
                // `tcp-response content`, `http-response` of backend and frontend.
                Phase::BackendResponse(rules) => self.response_rules(stream, rules),
                // `http-after-response`; then sends the head of the response.
                Phase::SendResponse => self.send_response(stream),
                // Forwards both bodies to their ends.
                Phase::Transfer => self.transfer(stream),
                // Delays the response to a refused client by `timeout tarpit`.
                Phase::Tarpit(_) => Step::Wait,
                // TCP, CONNECT, upgrades: forwards bytes both ways until both sides have ended.
                Phase::OpenTunnel => self.open_tunnel(stream),
                Phase::Tunnel(_) => Step::Wait,
                Phase::Done => Step::Wait,
            };
            match step {
                Step::Go => {}
                Step::Wait => return,
            }
        }
    }

    /// The time of this round.
    #[inline]
    pub fn now(&self) -> Now {
        self.io.now()
    }

    /// The same in monotonic milliseconds.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.io.now_ms()
    }

    /// Counts one event of a rate.
    #[inline(always)]
    pub fn mark(&self, what: Pace) {
        let ambient = &self.core.ambient;
        ambient.shared.mark(ambient.worker, what, self.now_ms());
    }

    /// Whether the worker accepts no new connections any more.
    pub fn is_stopping(&self) -> bool {
        self.core.ambient.stopping
    }

    // ---- deadlines

    /// A stream stops running: sets its timer to its first deadline.
    #[inline(always)]
    pub fn set_timer(&mut self, runtime_config: &RuntimeConfig, stream: &mut Stream) {
        let first_ms = stream.stopped(runtime_config, self.now_ms());
        self.core.timers.set(stream.timer, first_ms);
    }

    // ---- evaluation

    /// Evaluates expressions for a stream, with everything that rules need. None where its client
    /// is gone.
    pub fn with_rules<R>(
        &mut self,
        stream: &mut Stream,
        work: impl FnOnce(&mut actions::Cx<'_>, &mut Stream) -> R,
    ) -> Option<R> {
        let core = &mut *self.core;
        let server = stream.server.link();
        let server = server.and_then(|link| core.links.base(link));
        let server = server.map(|link| Connection::new(link.sock, link.quic.as_deref()));
        let link = core.links.base_mut(stream.client?)?;
        let Role::Client(client) = &mut link.role else {
            return None;
        };
        let now = self.io.now();
        let mut cx = actions::Cx {
            scene: Scene {
                eval: Eval {
                    runtime_config: self.runtime_config,
                    servers: self.servers,
                    ambient: &core.ambient,
                    io: &mut *self.io,
                    now,
                    session: &mut client.session,
                    client: Some(Connection::new(link.sock, link.quic.as_deref())),
                    server,
                    input: &[],
                    text: &mut core.text,
                },
                logging: &mut core.logging,
            },
            tracing: &mut core.tracing,
            memory: &mut core.rules,
        };
        Some(work(&mut cx, stream))
    }

    /// Evaluates expressions for a stream. None where its client is gone.
    #[inline(never)]
    pub fn with_eval<R>(
        &mut self,
        stream: &mut Stream,
        work: impl FnOnce(&mut Eval<'_>, &mut Stream) -> R,
    ) -> Option<R> {
        self.with_rules(stream, |cx, stream| work(&mut cx.scene.eval, stream))
    }

    /// Evaluates expressions for a client's connection that has no stream.
    pub fn with_session<R>(
        &mut self,
        client: ConnId,
        work: impl FnOnce(&mut actions::Cx<'_>) -> R,
    ) -> Option<R> {
        let core = &mut *self.core;
        let link = core.links.base_mut(client)?;
        let Role::Client(client) = &mut link.role else {
            return None;
        };
        let now = self.io.now();
        let mut cx = actions::Cx {
            scene: Scene {
                eval: Eval {
                    runtime_config: self.runtime_config,
                    servers: self.servers,
                    ambient: &core.ambient,
                    io: &mut *self.io,
                    now,
                    session: &mut client.session,
                    client: Some(Connection::new(link.sock, link.quic.as_deref())),
                    server: None,
                    input: &link.input,
                    text: &mut core.text,
                },
                logging: &mut core.logging,
            },
            tracing: &mut core.tracing,
            memory: &mut core.rules,
        };
        Some(work(&mut cx))
    }

    /// The same for a client without a connection.
    pub fn with_new_session<R>(
        &mut self,
        session: &mut Session,
        work: impl FnOnce(&mut actions::Cx<'_>) -> R,
    ) -> R {
        let core = &mut *self.core;
        let now = self.io.now();
        let mut cx = actions::Cx {
            scene: Scene {
                eval: Eval {
                    runtime_config: self.runtime_config,
                    servers: self.servers,
                    ambient: &core.ambient,
                    io: &mut *self.io,
                    now,
                    session,
                    client: None,
                    server: None,
                    input: &[],
                    text: &mut core.text,
                },
                logging: &mut core.logging,
            },
            tracing: &mut core.tracing,
            memory: &mut core.rules,
        };
        work(&mut cx)
    }

    // ---- logs and traces

    /// Writes a log line if the stream's frontend logs at this moment; most do not.
    #[inline]
    pub fn log_at(&mut self, stream: &mut Stream, at: LogOrigin) {
        if stream.log.moments.has(at) {
            self.with_rules(stream, |cx, stream| {
                let Scene { eval, logging } = &mut cx.scene;
                logging.due(eval, stream, at);
            });
        }
    }

    /// Reports an event to the scopes bound to it; most streams have none.
    #[inline(always)]
    pub fn trace(&mut self, stream: &mut Stream, event: Event) {
        if stream.tracing.events & event.bit() != 0 {
            self.trace_now(stream, &[event]);
        }
    }

    /// Reports several events in this order.
    #[inline(always)]
    pub fn trace_all<const N: usize>(&mut self, stream: &mut Stream, events: [Event; N]) {
        let any = events.iter().fold(0, |set, event| set | event.bit());
        if stream.tracing.events & any != 0 {
            self.trace_now(stream, &events);
        }
    }

    #[inline(never)]
    fn trace_now(&mut self, stream: &mut Stream, events: &[Event]) {
        self.with_rules(stream, |cx, stream| {
            for event in events {
                cx.tracing.trace(&mut cx.scene, stream, *event);
            }
        });
    }

    /// A stream begins: the frontend's filters decide whether they follow it.
    #[inline(always)]
    pub fn trace_begin(&mut self, stream: &mut Stream) {
        if self.runtime_config.tracing.any {
            self.with_rules(stream, |cx, stream| cx.tracing.begin(&mut cx.scene, stream));
        }
    }

    /// A stream has its backend: the backend's filters decide whether they follow it.
    #[inline(always)]
    pub fn trace_backend(&mut self, stream: &mut Stream) {
        if self.runtime_config.tracing.any {
            self.with_rules(stream, |cx, stream| {
                cx.tracing.begin_backend(&mut cx.scene, stream);
            });
        }
    }

    /// The server's side of the stream begins.
    #[inline(always)]
    pub fn trace_server(&mut self, stream: &mut Stream) {
        stream.tracing.server_began = true;
        let events = [Event::ServerSessionStart, Event::TcpResponse];
        self.trace_all(stream, events);
    }

    /// A connection to a server is used or opened for this request.
    #[inline(always)]
    pub fn trace_try(&mut self, stream: &mut Stream) {
        if stream.tracing.events & FOLLOWS_TRIES != 0 {
            self.with_rules(stream, |cx, stream| {
                cx.tracing.begin_tries(&mut cx.scene, stream);
            });
        }
    }

    /// A try has failed; `status` is the server's, if it sent one.
    #[inline(always)]
    pub fn trace_failed_try(&mut self, stream: &mut Stream, status: Option<u16>) {
        if stream.tracing.events & FOLLOWS_TRIES != 0 {
            self.with_rules(stream, |cx, stream| {
                cx.tracing.fail_tries(&mut cx.scene, stream, status);
            });
        }
    }
}
