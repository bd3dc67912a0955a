//! The engine's entry points: convert the driver's events into work on connections and streams.
//!
//! `accept` takes clients up to their sessions, `incoming` feeds bytes to muxes and streams, `life`
//! drains and ends, `contain` limits a panic to its connection, `audit` checks invariants in tests.

mod accept;
mod audit;
mod contain;
mod ends;
mod exchanges;
mod incoming;
mod life;
mod quic;
mod relayed;
mod renewal;
mod secure;
mod servers;
mod socks4;
mod streams;
mod versions;
mod watch;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use net::timers::NEVER_MS;
use net::{Accepted, Close, DatagramSock, Driver, ListenerId, SockId, Took, WorkerId};

use crate::ids::{ConnId, ExchangeId, LinkId, Owner, StreamId};
use crate::link::Role;
use crate::phases::{Core, Cx};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{Grant, Killed, ServerTables, Shared, WorkerMessage};
use crate::stream::Streams;
use life::Life;
use renewal::Older;

use self::quic::Quics;
pub use audit::HeldBytes;
pub use quic::{QuicView, QuicsAsked, QuicsPart};
pub use renewal::{Current, Generation, Renewal};
pub use watch::{StreamView, StreamsAsked, StreamsPart};

/// An order from the process to a worker.
#[derive(Clone, Debug)]
pub enum Order {
    /// Stop accepting, finish the running requests, then end (`SIGUSR1`). Listeners close after
    /// `grace_ms`; remaining connections are cut after `hard_stop_ms`.
    Drain {
        /// Milliseconds before the listeners close.
        grace_ms: u64,
        /// Milliseconds until connections are cut, if ever.
        hard_stop_ms: Option<u64>,
    },
    /// Another process reads the datagrams of a listener.
    StopReceiving(ListenerId),
    /// End at once.
    Stop,
    /// Hand over the records of ended streams. It is done when the last copy of the sender is
    /// dropped.
    HandOver(Sender<()>),
    /// The listeners of a frontend, by its place in the configuration, close for good.
    CloseFrontend(usize),
    /// Go on with another configuration, together with the other workers.
    Renew(Renewal),
    /// Report some of the worker's streams.
    ShowStreams(StreamsAsked),
    /// Report some of the worker's QUIC connections.
    ShowQuics(QuicsAsked),
    /// End streams.
    Kill(Killed),
}

/// One worker's data path.
#[derive(Debug)]
pub struct Engine {
    runtime_config: Arc<RuntimeConfig>,
    /// Earlier configurations that running streams still follow.
    older: Older,
    /// The servers at the start of the current entry.
    servers: Arc<ServerTables>,
    core: Core,
    streams: Streams,
    state: State,
}

/// The state of the entry points beside connections and streams.
#[derive(Debug)]
struct State {
    life: Life,
    /// Numbers for future streams.
    numbers: Range<u64>,
    /// Listeners that are paused because a limit is reached.
    resting: Vec<ListenerId>,
    /// When listeners that reached a rate limit are checked again.
    room_at_ms: u64,
    /// When this worker looks again whether it still uses deleted servers or earlier
    /// configurations.
    release_at_ms: u64,
    /// Connections that had their turn and have bytes left: they continue in the next round.
    later: VecDeque<ConnId>,
    /// The last value of the counter by which workers ask for room.
    asked_for_room: u64,
    at_work: AtWork,
    /// Streams may follow earlier configurations.
    has_older: bool,
    /// The QUIC connections; none before the first one.
    quics: Option<Box<Quics>>,
    /// What a panic leaves of them.
    quic_remains: quic::Remains,
}

/// The connection and the stream that a panic would concern.
#[derive(Clone, Copy, Debug, Default)]
struct AtWork {
    link: Option<LinkId>,
    /// The driver has closed it.
    is_dead: bool,
    stream: Option<StreamId>,
    /// The stream's client.
    client: Option<ExchangeId>,
}

/// One entry: the worker's state with the current driver and configuration.
struct Turn<'a, D> {
    cx: Cx<'a, D>,
    /// The worker's configuration; the context has that of the stream at work.
    current: &'a RuntimeConfig,
    older: &'a Older,
    streams: &'a mut Streams,
    state: &'a mut State,
}

/// How many stream numbers are taken from the shared counter at a time.
const NUMBER_BLOCK: u64 = 1024;

/// The pause before a worker looks again whether it still uses a deleted server or an earlier
/// configuration, milliseconds.
const RELEASE_RETRY_MS: u64 = 1000;

impl Engine {
    /// A worker's engine. `seed` is its only source of randomness.
    #[must_use]
    pub fn new(
        runtime_config: Arc<RuntimeConfig>,
        shared: Arc<Shared>,
        worker: usize,
        seed: u64,
    ) -> Self {
        let worker = WorkerId(worker as u32);
        let servers = shared.server_tables();
        Engine {
            core: Core::new(&runtime_config, &servers, shared, worker, seed),
            runtime_config,
            older: Older::default(),
            servers,
            streams: Streams::default(),
            state: State {
                life: Life::Serving,
                numbers: 0..0,
                resting: Vec::new(),
                room_at_ms: NEVER_MS,
                release_at_ms: NEVER_MS,
                later: VecDeque::new(),
                asked_for_room: 0,
                at_work: AtWork::default(),
                has_older: false,
                quics: None,
                quic_remains: quic::Remains::default(),
            },
        }
    }

    /// The number of active streams.
    #[must_use]
    pub fn streams_in_use(&self) -> usize {
        self.streams.in_use()
    }

    /// The number of QUIC connections, with those that only wait until their peers have everything.
    #[must_use]
    pub fn quic_connections(&self) -> usize {
        let quics = self.state.quics.as_ref();
        quics.map_or(0, |quics| quics.connections())
    }

    /// The worker ends, and with it its remaining streams: exports their recorded data.
    #[cold]
    #[inline(never)]
    pub fn finish<D: Driver>(&mut self, driver: &mut D) {
        let ids = self.streams.ids();
        let mut turn = self.turn(driver);
        for id in ids {
            turn.with_stream(id, |cx, stream| cx.kill(stream));
        }
        turn.end_quics();
        self.core.tracing.flush_records(&self.runtime_config);
    }

    fn turn<'a, D: Driver>(&'a mut self, driver: &'a mut D) -> Turn<'a, D> {
        Turn {
            cx: Cx {
                io: driver,
                runtime_config: &self.runtime_config,
                servers: &self.servers,
                core: &mut self.core,
            },
            current: &self.runtime_config,
            older: &self.older,
            streams: &mut self.streams,
            state: &mut self.state,
        }
    }

    /// Runs work for a connection, or for none, and the work that it made possible. A panic ends
    /// that connection.
    #[inline]
    fn enter<D: Driver>(
        &mut self,
        driver: &mut D,
        link: Option<LinkId>,
        work: impl FnOnce(&mut Turn<'_, D>),
    ) {
        if self.core.ambient.shared.server_tables_version() != self.servers.version() {
            self.take_servers_over(driver);
        }
        self.state.at_work.link = link;
        let done = contain::run(|| {
            let mut turn = self.turn(driver);
            work(&mut turn);
            turn.settle();
        });
        if done.is_err() {
            self.contain(driver);
        }
    }

    /// Encrypts and sends the collected bytes of connections.
    fn flush_gathered<D: Driver>(&mut self, driver: &mut D) {
        while let Some(link) = self.core.links.next_gathering() {
            self.enter(driver, Some(link.into()), |turn| {
                turn.cx.core.links.flush(turn.cx.io, link);
            });
        }
    }

    fn link_of(&self, sock: SockId) -> Option<ConnId> {
        self.core.links.of(sock)
    }
}

impl<D: Driver> net::Engine<D> for Engine {
    type Order = Order;

    fn on_order(&mut self, driver: &mut D, order: Order) {
        if let Order::Renew(renewal) = &order {
            return self.meet(driver, renewal);
        }
        self.enter(driver, None, |turn| match order {
            // Handled above.
            Order::Renew(_) => {}
            Order::Drain {
                grace_ms,
                hard_stop_ms,
            } => turn.drain(grace_ms, hard_stop_ms),
            Order::StopReceiving(listener) => turn.cx.io.stop_receiving(listener),
            Order::Stop => turn.state.life = Life::Stopped,
            Order::ShowStreams(asked) => turn.show_streams(&asked),
            Order::ShowQuics(asked) => turn.show_quics(&asked),
            Order::Kill(killed) => turn.kill(&killed),
            Order::CloseFrontend(frontend) => turn.close_frontend(frontend),
            Order::HandOver(_) => turn.cx.core.tracing.flush_records(turn.cx.runtime_config),
        });
    }

    fn is_finished(&self, accepts: bool) -> bool {
        let is_idle = self.streams.in_use() == 0 && self.core.clients == 0 && !accepts;
        let is_idle = is_idle
            && self
                .state
                .quics
                .as_ref()
                .is_none_or(|quics| quics.is_over());
        self.state.life.is_over(is_idle)
    }

    fn admit(&mut self, driver: &mut D, listener: ListenerId) -> bool {
        let mut admitted = false;
        self.enter(driver, None, |turn| admitted = turn.admit(listener));
        admitted
    }

    fn retract(&mut self, driver: &mut D, listener: ListenerId) {
        self.enter(driver, None, |turn| turn.retract(listener));
    }

    fn on_accept(&mut self, driver: &mut D, sock: SockId, accepted: Accepted) {
        self.enter(driver, None, |turn| {
            turn.accepted(sock, accepted, None);
        });
    }

    fn on_connected(&mut self, driver: &mut D, sock: SockId) {
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(link) = link {
                turn.connected(link);
            }
        });
    }

    fn on_data(&mut self, driver: &mut D, sock: SockId, data: &mut [u8]) -> Took {
        let mut took = Took {
            bytes: data.len(),
            held: 0,
        };
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(link) = link {
                took = turn.receive(link, data);
            }
        });
        if self.core.links.gather_enough() {
            self.flush_gathered(driver);
        }
        took
    }

    fn on_writable(&mut self, driver: &mut D, sock: SockId, blocked: bool) {
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(link) = link {
                turn.writable(link, blocked);
            }
        });
    }

    fn on_eof(&mut self, driver: &mut D, sock: SockId) {
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(entry) = link.and_then(|link| turn.cx.core.links.get_mut(link)) {
                entry.eof = true;
            }
            if let Some(link) = link {
                turn.process_input(link.into());
            }
        });
    }

    fn on_broken(&mut self, driver: &mut D, sock: SockId) {
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(link) = link {
                turn.broken(link);
            }
        });
    }

    fn on_close(&mut self, driver: &mut D, sock: SockId, why: Close) {
        let link = self.link_of(sock);
        self.enter(driver, link.map(LinkId::from), |turn| {
            if let Some(link) = link {
                turn.state.at_work.is_dead = true;
                turn.closed(link, why);
            }
        });
    }

    fn on_timer(&mut self, driver: &mut D) {
        self.enter(driver, None, |turn| {
            turn.advance_life();
            turn.look_for_room();
            turn.trace_timers();
        });
        self.streams.trim(&mut self.core.timers);
        let now_ms = driver.now_ms();
        if self.state.release_at_ms <= now_ms {
            self.end_lasting(driver);
            self.release_servers(now_ms);
            self.release_older(now_ms);
        }
        while let Some(owner) = self.core.timers.expired(now_ms) {
            match owner {
                Owner::Link(link) => {
                    self.enter(driver, Some(link), |turn| turn.link_timeout(link));
                }
                Owner::Stream(id) => self.stream_timeouts(driver, id, now_ms),
                Owner::Quic(handle) => self.quic_timeout(driver, handle),
            }
        }
    }

    fn next_deadline_ms(&mut self) -> Option<u64> {
        let next_ms = [
            self.core.timers.next_ms().unwrap_or(NEVER_MS),
            self.state.life.next_ms(),
            self.state.room_at_ms,
            self.state.release_at_ms,
            self.core.tracing.next_ms(),
        ];
        let mut next_ms = next_ms.into_iter().fold(NEVER_MS, u64::min);
        if let Some(quics) = &self.state.quics {
            next_ms = next_ms.min(quics.closes_ms());
        }
        (next_ms != NEVER_MS).then_some(next_ms)
    }

    fn on_round_end(&mut self, driver: &mut D) {
        let ambient = &self.core.ambient;
        if ambient.shared.server_tables_version() != self.servers.version() {
            self.take_servers_over(driver);
        }
        let ambient = &self.core.ambient;
        if ambient.shared.has_mail(ambient.worker) {
            let received = ambient.shared.collect_mail(ambient.worker);
            for grant in received.grants {
                self.enter(driver, None, |turn| turn.granted(grant));
            }
            for letter in received.messages {
                self.enter(driver, None, |turn| turn.read_letter(letter));
            }
        }
        if !self.state.resting.is_empty() {
            self.enter(driver, None, |turn| turn.reopen_listeners());
        }
        let asked = self.core.ambient.shared.asked_for_room();
        if asked != self.state.asked_for_room {
            self.state.asked_for_room = asked;
            self.enter(driver, None, |turn| turn.cx.close_idle_servers());
        }
        // Connections that are added meanwhile continue in the next round.
        for _ in 0..self.state.later.len() {
            if let Some(link) = self.state.later.pop_front() {
                self.enter(driver, Some(link.into()), |turn| turn.go_on_later(link));
            }
        }
        for _ in 0..self.core.links.listed_turns() {
            if let Some(link) = self.core.links.next_listed() {
                self.enter(driver, Some(link.into()), |turn| turn.take_turns(link));
            }
        }
        // Before the bytes for servers are encrypted: requests that have come over QUIC are among them.
        if self.state.quics.is_some() || self.core.links.has_dials() {
            self.send_datagrams(driver);
        }
        self.flush_gathered(driver);
    }

    fn on_datagrams(&mut self, driver: &mut D, datagrams: net::Datagrams<'_>) {
        self.datagrams_came(driver, &datagrams);
    }

    fn on_datagram_room(&mut self, driver: &mut D, sock: DatagramSock) {
        self.datagrams_have_room(driver, sock);
    }

    fn on_datagrams_refused(&mut self, driver: &mut D, sock: SockId) {
        self.enter(driver, None, |turn| turn.server_unreachable(sock));
    }

    fn has_work(&self) -> bool {
        !self.state.later.is_empty() || self.core.links.listed_turns() > 0
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Does the work that the current work made possible, until none is left.
    fn settle(&mut self) {
        loop {
            let work = &mut self.cx.core.work;
            if let Some(id) = work.streams.pop_front() {
                self.with_stream(id, |cx, stream| cx.run(stream));
            } else if let Some(link) = work.links.pop_front() {
                self.stream_stops();
                self.state.at_work = AtWork {
                    link: Some(link),
                    ..AtWork::default()
                };
                self.process_input(link);
            } else if std::mem::take(&mut work.dismissed) {
                self.place_is_free();
            } else {
                break;
            }
        }
        self.stream_stops();
        self.state.at_work = AtWork::default();
    }

    /// An outgoing connection is established.
    fn connected(&mut self, link: ConnId) {
        match self.cx.core.links.server(link).map(|server| &server.socks4) {
            Some(Some(_)) => self.ask_socks4_proxy(link),
            _ => self.path_established(link),
        }
    }

    /// The path to a server is established, through all proxies on it.
    fn path_established(&mut self, link: ConnId) {
        // Sent before the first byte of TLS or HTTP/2.
        self.cx.core.links.send_proxy_header(self.cx.io, link);
        let entry = self.cx.core.links.get(link);
        if entry.is_some_and(|entry| entry.secure.is_some()) {
            self.begin_server_handshake(link)
        } else {
            self.server_stands(link)
        }
    }

    /// An outgoing connection is ready for requests.
    fn server_stands(&mut self, link: ConnId) {
        if self.speaks_h2(link) {
            return self.server_multiplexes(link);
        }
        let stream = self.cx.core.links.get(link).map(|link| link.stream());
        match stream {
            Some(Some(stream)) => {
                self.with_stream(stream, |cx, stream| cx.server_connected(stream));
            }
            Some(None) => self.cx.close_server(link),
            None => {}
        }
    }

    /// An outgoing connection is established and cannot be used, because the handshake with its
    /// server failed.
    fn server_refused(&mut self, link: ConnId, why: sample::ConnError) {
        let links = &self.cx.core.links;
        // A stream that has sent early data has an exchange already.
        let early = || { links.exchanges(link) }.find_map(|exchange| links.stream(exchange));
        match links.stream(link).or_else(early) {
            Some(stream) => self.with_stream(stream, |cx, stream| {
                cx.handshake_failed(stream, why);
            }),
            None => self.cx.close_server(link),
        }
    }

    /// The kernel took bytes of a connection.
    fn writable(&mut self, link: ConnId, blocked: bool) {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        entry.progressed(blocked);
        let is_alone = matches!(entry.role, Role::Client(_)) && entry.is_free();
        if !blocked {
            self.cx.core.links.unblocked(link);
        }
        self.exchanges_moved_on(link, blocked);
        if is_alone {
            self.cx.client_moved_on_alone(link, blocked);
        }
    }

    /// A connection can send no more bytes. A client's connection is closed. A server's connection
    /// is still read, because the server may have sent a response before it broke.
    fn broken(&mut self, link: ConnId) {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        entry.progressed(false);
        match &entry.role {
            Role::Client(_) => {
                let sock = entry.sock;
                self.closed(link, Close::Reset);
                self.cx.io.close(sock);
            }
            Role::Server(_) | Role::Stream(_) => {
                self.cx.core.links.release_all(self.cx.io, link);
                // The sender continues, and its bytes are discarded.
                self.writable(link, false);
            }
        }
    }

    /// A connection is closed.
    fn closed(&mut self, link: ConnId, why: Close) {
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        match &entry.role {
            Role::Stream(_) => {}
            Role::Client(_) => self.client_closed(link),
            Role::Server(_) if self.cx.core.links.multiplexes(link) => {
                self.server_connection_ended(link);
            }
            Role::Server(_) => {
                let began = !entry.input.is_empty();
                if let Some(stream) = entry.stream() {
                    self.with_stream(stream, |cx, stream| cx.server_lost(stream, why, began));
                }
                self.cx.forget_server(link);
            }
        }
    }

    /// A wait for a server's slot has ended.
    fn granted(&mut self, grant: Grant) {
        let mut is_taken = false;
        self.with_stream(StreamId(grant.stream.place), |cx, stream| {
            is_taken = cx.granted(stream, grant);
        });
        if !is_taken {
            self.cx.refuse_grant(grant);
        }
    }

    /// Another worker asks for an idle connection, or answers; or an address was found.
    fn read_letter(&mut self, letter: WorkerMessage) {
        match letter {
            WorkerMessage::IdleConnRequest(wish) => self.cx.grant_wish(&wish),
            WorkerMessage::Answer { stream, connection } => {
                self.cx.take_over(connection);
                self.with_stream(StreamId(stream.place), |cx, waiting| {
                    cx.answered(waiting, stream.number);
                });
            }
            WorkerMessage::Datagram(datagram) => self.read_forwarded(&datagram),
            WorkerMessage::Name { stream, ip } => {
                self.with_stream(StreamId(stream.place), |cx, waiting| {
                    if waiting.txn.id == stream.number && waiting.name_answered(ip) {
                        cx.run(waiting);
                    }
                });
            }
        }
    }

    /// Runs the timers of filters that are due.
    fn trace_timers(&mut self) {
        let now_ms = self.cx.now_ms();
        while let Some((id, number, filter)) = self.cx.core.tracing.next_idle(now_ms) {
            self.with_stream(id, |cx, stream| {
                if stream.txn.id == number {
                    cx.trace_idle(stream, filter);
                }
            });
        }
        let runtime_config = self.cx.runtime_config;
        self.cx.core.tracing.flush_due(runtime_config, now_ms);
    }
}
