//! One worker of a life: an engine, its driver, and the peers of its connections.

use net::{
    Accepted, Addr, Close, ConnectError, DatagramSock, Datagrams, Engine as _, ListenerId, SockId,
    WorkerId,
};
use spangate_proxy::{Engine, Generation, Order, ServerChange, Shared};

use super::client::Client;
use super::driver::{Opening, SimDriver, deliver};
use super::queue::Queue;
use super::server::Server;
use super::setups::Setup;
use super::stage::Stage;
use super::tcp::{TcpClient, TcpServer};
use super::wire::{Above, TlsWire, Wire};
use super::wire_mux::{MuxClient, MuxServer};

/// The largest look of a driver here at what came.
const LOOK_BYTES_MAX: usize = 8192;

/// Who is at the other end of a pipe.
#[derive(Debug)]
pub enum Peer {
    Client(Client),
    Server(Server),
    TcpClient(TcpClient),
    TcpServer(TcpServer),
}

/// What can happen next.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Arrive,
    Connect(usize),
    /// The engine learns that a send failed.
    Break(usize),
    /// The engine learns of a reset.
    Die(usize),
    Deliver(usize),
    End(usize),
    Drain(usize),
    /// The peer reads.
    Read(usize),
    SeeEnd(usize),
    SeeReset(usize),
    /// A server closes an idle connection.
    CloseIdle(usize),
}

/// See the module.
#[derive(Debug)]
pub struct Worker {
    pub engine: Engine,
    pub driver: SimDriver,
    /// By pipe; none once the peer has seen the end.
    pub peers: Vec<Option<Peer>>,
    /// Clients that have not come yet, last one first.
    pub coming: Vec<Peer>,
    chunk: Vec<u8>,
    /// Something happened since the last round's end.
    in_round: bool,
}

impl Worker {
    pub fn new(engine: Engine, driver: SimDriver) -> Self {
        Worker {
            engine,
            driver,
            peers: Vec::new(),
            coming: Vec::new(),
            chunk: Vec::new(),
            in_round: false,
        }
    }

    /// Tells the engine to finish what it has and to take nothing new.
    pub fn start_draining(&mut self, stage: &mut Stage<'_>) {
        self.driver.say(format_args!("drain"));
        let order = Order::Drain {
            grace_ms: 0,
            hard_stop_ms: None,
        };
        self.in_round = true;
        self.engine.on_order(&mut self.driver, order);
        self.adopt(stage);
    }

    /// The worker goes on with another configuration.
    pub fn renew(&mut self, next: Generation, stage: &mut Stage<'_>) {
        self.driver.say(format_args!(
            "generation {}",
            next.runtime_config.generation
        ));
        self.in_round = true;
        self.engine.renew(&mut self.driver, next);
        self.adopt(stage);
    }

    /// The end of a driver's round: what is due, and the engine's own round end.
    pub fn end_round(&mut self, stage: &mut Stage<'_>) {
        self.in_round = false;
        let now_ms = self.driver.now.ms();
        if self.deadline_ms().is_some_and(|at| at <= now_ms) {
            self.engine.on_timer(&mut self.driver);
            self.adopt(stage);
        }
        self.engine.on_round_end(&mut self.driver);
        self.driver.flush();
        self.adopt(stage);
    }

    /// It has a round to end.
    pub fn is_in_round(&self) -> bool {
        self.in_round || net::Engine::<SimDriver>::has_work(&self.engine)
    }

    /// Another worker wakes it.
    pub fn wake(&mut self) {
        self.in_round = true;
    }

    pub fn has_round_due(&mut self) -> bool {
        let now_ms = self.driver.now.ms();
        self.is_in_round() || self.deadline_ms().is_some_and(|at| at <= now_ms)
    }

    /// When the engine wants to be called.
    pub fn deadline_ms(&mut self) -> Option<u64> {
        net::Engine::<SimDriver>::next_deadline_ms(&mut self.engine)
    }

    /// When the next of its peers goes on.
    pub fn peers_wake_ms(&self) -> Option<u64> {
        let now_ms = self.driver.now.ms();
        let pipes = self.driver.pipes.iter();
        let wakes = pipes.flat_map(|pipe| [pipe.held_until_ms, pipe.unread_until_ms]);
        wakes.filter(|at| *at > now_ms && *at != u64::MAX).min()
    }

    /// Requests that a server of the configuration has at hand.
    pub fn busy(&self, index: usize) -> usize {
        let busy = self
            .driver
            .pipes
            .iter()
            .zip(&self.peers)
            .filter(|(pipe, peer)| {
                let works = |server: &Server| server.index == index && server.is_busy();
                pipe.sock.is_some()
                    && !pipe.peer_ended
                    && matches!(peer, Some(Peer::Server(server)) if works(server))
            });
        busy.count()
    }

    /// Client connections that stand.
    pub fn clients(&self) -> usize {
        let pipes = self.driver.pipes.iter();
        pipes
            .filter(|pipe| pipe.sock.is_some() && pipe.to.is_none())
            .count()
    }

    pub fn is_finished(&self) -> bool {
        net::Engine::<SimDriver>::is_finished(&self.engine, false)
    }

    /// Somebody changes a server's state.
    pub fn change_server(&mut self, shared: &Shared, stage: &mut Stage<'_>) -> Vec<WorkerId> {
        let setup = stage.setup;
        let server = stage.random.below(setup.maxconn.len());
        let on = stage.random.chance(40);
        let spare = setup.maxconn.len() > 1 && server > 0;
        let change = match stage.random.below(5) {
            // What a calm life can bear: another server takes new requests.
            0 if spare || !stage.mood.calm => ServerChange::Drain(on),
            1 if spare || !stage.mood.calm => {
                ServerChange::Weight(stage.random.below(3) as u32 * 64)
            }
            2 if !stage.mood.calm => ServerChange::Down(on),
            3 if !stage.mood.calm => ServerChange::Maintenance(on),
            4 if setup.maxconn[server] > 0 => {
                let most = setup.maxconn[server] as usize;
                ServerChange::Maxconn(1 + stage.random.below(most) as u32)
            }
            _ => return Vec::new(),
        };
        self.driver
            .say(format_args!("server {server} changes: {change:?}"));
        shared.change_server(setup.backend, server, change)
    }

    /// Stalls in every life, resets and ends in rough ones: what nobody plans.
    pub fn misfortune(&mut self, stage: &mut Stage<'_>) {
        let count = self.driver.pipes.len();
        if count == 0 || !stage.random.chance(2) {
            return;
        }
        let place = stage.random.below(count);
        if stage.mood.calm {
            return self.hesitate(place, stage);
        }
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        let until_ms = match stage.random.below(3) {
            0 => u64::MAX,
            _ => now_ms + stage.random.next() % 20_000,
        };
        match stage.random.below(4) {
            0 if !pipe.connecting => pipe.peer_reset = true,
            1 => pipe.held_until_ms = until_ms,
            2 => pipe.unread_until_ms = until_ms,
            3 if !pipe.connecting => pipe.peer_ended = true,
            _ => return,
        }
        self.driver.say(format_args!("misfortune of #{place}"));
    }

    /// A stall within every timeout.
    fn hesitate(&mut self, place: usize, stage: &mut Stage<'_>) {
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        if pipe.connecting || stage.hesitations == 0 {
            return;
        }
        stage.hesitations -= 1;
        let until_ms = now_ms + stage.random.next() % 500;
        match stage.random.below(2) {
            0 => pipe.held_until_ms = pipe.held_until_ms.max(until_ms),
            _ => pipe.unread_until_ms = until_ms,
        }
    }

    /// Adds what can happen here at this moment.
    pub fn collect(&self, events: &mut Vec<Event>, stage: &mut Stage<'_>) {
        let now_ms = self.driver.now.ms();
        if !self.coming.is_empty() && self.driver.accepting[0] && !self.driver.unlistened[0] {
            events.push(Event::Arrive);
        }
        for (place, pipe) in self.driver.pipes.iter().enumerate() {
            let open = pipe.sock.is_some();
            let mut event = None;
            let speaks = pipe.held_until_ms <= now_ms && !pipe.paused;
            if open && pipe.connecting {
                event = (pipe.held_until_ms <= now_ms).then_some(Event::Connect(place));
            } else if open && pipe.broken && !pipe.break_told {
                event = Some(Event::Break(place));
            } else if open
                && (pipe.broken || pipe.peer_reset)
                && (pipe.inbox.is_empty() || stage.random.chance(50))
            {
                event = Some(Event::Die(place));
            } else if open && speaks && !pipe.inbox.is_empty() {
                event = Some(Event::Deliver(place));
            } else if open
                && speaks
                && pipe.peer_ended
                && !pipe.end_told
                && (!stage.mood.calm || pipe.wire.as_ref().is_none_or(|wire| wire.is_quiet()))
            {
                event = Some(Event::End(place));
            }
            events.extend(event);
            let leaves = !pipe.backlog.is_empty() && !pipe.put_off;
            if (leaves || pipe.blocked) && pipe.room > 0 && !pipe.peer_reset {
                events.push(Event::Drain(place));
            }
            let Some(peer) = &self.peers[place] else {
                continue;
            };
            if pipe.reset {
                events.push(Event::SeeReset(place));
            } else if pipe.unread_until_ms <= now_ms && !pipe.peer_reset {
                if !pipe.outbox.is_empty() {
                    events.push(Event::Read(place));
                } else if pipe.ended {
                    events.push(Event::SeeEnd(place));
                }
            }
            // At the end of all, or out of the blue.
            let quiet = stage.mood.stale || !stage.mood.calm;
            if open
                && !pipe.peer_ended
                && matches!(peer, Peer::Server(server) if server.is_idle())
                && pipe.is_quiet()
                && (quiet && stage.random.chance(3))
            {
                events.push(Event::CloseIdle(place));
            }
        }
    }

    /// One event, from the driver's loop.
    pub fn happen(&mut self, event: Event, stage: &mut Stage<'_>) {
        self.in_round = true;
        let verbose = self.driver.verbose;
        if verbose {
            self.driver.say(format_args!("{event:?}"));
        }
        match event {
            Event::Arrive => self.arrive(stage),
            Event::Connect(place) => self.connect(place, stage),
            Event::Break(place) => {
                let pipe = &mut self.driver.pipes[place];
                pipe.break_told = true;
                if let Some(sock) = pipe.sock {
                    self.engine.on_broken(&mut self.driver, sock);
                }
            }
            Event::Die(place) => self.die(place, Close::Reset),
            Event::Deliver(place) => {
                let waiting = self.driver.pipes[place].inbox.len();
                let count = stage.random.part(waiting.min(LOOK_BYTES_MAX));
                deliver(&mut self.engine, &mut self.driver, place, count);
            }
            Event::End(place) => {
                let pipe = &mut self.driver.pipes[place];
                if pipe.wire.is_some() && !pipe.said_end && stage.random.chance(70) {
                    pipe.said_end = true;
                    return pipe.say_end();
                }
                pipe.end_told = true;
                if let Some(sock) = self.driver.pipes[place].sock {
                    self.engine.on_eof(&mut self.driver, sock);
                }
            }
            Event::Drain(place) => {
                let pipe = &mut self.driver.pipes[place];
                let count = stage.random.part(pipe.backlog.len().min(pipe.room).max(1));
                pipe.drain(count);
                let blocked = pipe.blocked;
                if let Some(sock) = pipe.sock {
                    self.engine.on_writable(&mut self.driver, sock, blocked);
                }
            }
            Event::Read(place) => self.read(place, stage),
            Event::SeeEnd(place) | Event::SeeReset(place) => {
                self.see_end(place, matches!(event, Event::SeeReset(_)), stage)
            }
            Event::CloseIdle(place) => self.driver.pipes[place].peer_ended = true,
        }
        self.adopt(stage);
    }

    /// Datagrams have come.
    pub fn datagrams(&mut self, datagrams: Datagrams<'_>, stage: &mut Stage<'_>) {
        self.in_round = true;
        if self.driver.verbose {
            let Datagrams { sock, bytes, .. } = &datagrams;
            let (peer, bytes) = (datagrams.peer, bytes.len());
            self.driver.say(format_args!(
                "{bytes} bytes in datagrams of {peer} at {sock:?}"
            ));
        }
        self.engine.on_datagrams(&mut self.driver, datagrams);
        self.adopt(stage);
    }

    /// A socket has room for datagrams again.
    pub fn datagram_room(&mut self, sock: DatagramSock, stage: &mut Stage<'_>) {
        self.in_round = true;
        self.driver.say(format_args!("{sock:?} has room"));
        self.engine.on_datagram_room(&mut self.driver, sock);
        self.adopt(stage);
    }

    /// Nobody receives what a socket sends.
    pub fn datagrams_refused(&mut self, sock: SockId, stage: &mut Stage<'_>) {
        self.in_round = true;
        self.driver.say(format_args!("{sock:?} is refused"));
        self.engine.on_datagrams_refused(&mut self.driver, sock);
        self.adopt(stage);
    }

    /// Gives the connections that the engine opened their servers.
    pub fn adopt(&mut self, stage: &mut Stage<'_>) {
        let now_ms = self.driver.now.ms();
        for (pipe, peer) in self.driver.pipes.iter_mut().zip(&mut self.peers) {
            if let Some(number) = pipe.given_up.take() {
                stage.moving.push((number, peer.take()));
            }
        }
        while self.peers.len() < self.driver.pipes.len() {
            let pipe = &mut self.driver.pipes[self.peers.len()];
            if let Some(number) = pipe.taken_in.take() {
                let mut moving = stage.moving.iter();
                let place = moving.position(|(known, _)| *known == number);
                let peer = place.and_then(|place| stage.moving.swap_remove(place).1);
                self.peers.push(peer);
                continue;
            }
            let Some(to) = &pipe.to else { return };
            let index = usize::from(to.port()) - 81;
            if stage.random.chance(20) {
                pipe.held_until_ms = now_ms + stage.random.next() % 1900;
            }
            if !stage.mood.calm && stage.random.chance(10) {
                pipe.held_until_ms = u64::MAX;
            }
            pipe.wire = server_wire(stage.setup, &mut pipe.inbox);
            self.peers.push(Some(if stage.setup.is_tcp {
                Peer::TcpServer(TcpServer::new(stage))
            } else {
                Peer::Server(Server::new(index, stage))
            }));
        }
        if !stage.mood.calm {
            self.driver.opening = match stage.random.below(30) {
                0 => Opening::Fails(ConnectError::Refused),
                1 => Opening::Fails(ConnectError::Resource),
                _ => Opening::Pending,
            };
        }
    }

    fn arrive(&mut self, stage: &mut Stage<'_>) {
        let listener = ListenerId(0);
        if !self.engine.admit(&mut self.driver, listener) {
            if self.driver.accepting[0] {
                stage.fault("a listener takes nobody and does not rest".into());
            }
            return;
        }
        // Another process took it first.
        if stage.random.chance(10) {
            return self.engine.retract(&mut self.driver, listener);
        }
        let Some(mut peer) = self.coming.pop() else {
            return;
        };
        let (sock, place) = self.driver.open();
        let pipe = &mut self.driver.pipes[place];
        pipe.wire = client_wire(stage.setup, &mut pipe.inbox);
        let index = match &mut peer {
            Peer::Client(client) => {
                client.start(stage, pipe);
                client.index
            }
            Peer::TcpClient(client) => {
                client.start(stage, pipe);
                client.index
            }
            _ => 0,
        };
        if stage.mood.calm && stage.random.chance(20) {
            pipe.held_until_ms = self.driver.now.ms() + stage.random.next() % 4000;
        }
        self.peers.push(Some(peer));
        let address = |text: &str, port: usize| {
            Addr::Inet(format!("{text}:{port}").parse().expect("an address"))
        };
        let accepted = Accepted {
            listener,
            peer: address(&format!("10.0.0.{}", index + 1), 5000 + index),
            local: address("10.1.0.1", 80),
        };
        self.engine.on_accept(&mut self.driver, sock, accepted);
    }

    fn connect(&mut self, place: usize, stage: &mut Stage<'_>) {
        let refused = !stage.mood.calm && stage.random.chance(10);
        let pipe = &mut self.driver.pipes[place];
        let Some(sock) = pipe.sock else { return };
        if refused {
            return self.die(place, Close::Refused);
        }
        pipe.connecting = false;
        self.engine.on_connected(&mut self.driver, sock);
    }

    fn die(&mut self, place: usize, why: Close) {
        if let Some(sock) = self.driver.pipes[place].sock {
            self.driver.forget(sock);
            self.peers[place] = None;
            self.engine.on_close(&mut self.driver, sock, why);
        }
    }

    fn read(&mut self, place: usize, stage: &mut Stage<'_>) {
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        let count = stage.random.part(pipe.outbox.len());
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        pipe.outbox.take(count, &mut chunk);
        pipe.room = pipe.room.saturating_add(count);
        pipe.understand(&mut chunk);
        // What cannot be understood any more ends for the peer.
        pipe.ended |= pipe.wire.as_ref().is_some_and(|wire| wire.is_over());
        if chunk.is_empty() {
            self.chunk = chunk;
            return;
        }
        match &mut self.peers[place] {
            Some(Peer::Client(client)) => client.read(&chunk, stage, pipe, now_ms),
            Some(Peer::Server(server)) => loop {
                server.read(&chunk, stage, pipe, now_ms);
                chunk.clear();
                if let Some(wire) = &mut pipe.wire {
                    wire.more(&mut chunk);
                }
                if chunk.is_empty() {
                    break;
                }
            },
            Some(Peer::TcpClient(client)) => client.read(&chunk, stage),
            Some(Peer::TcpServer(server)) => server.read(&chunk, stage, pipe),
            None => {}
        }
        self.chunk = chunk;
    }

    fn see_end(&mut self, place: usize, reset: bool, stage: &mut Stage<'_>) {
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        match self.peers[place].take() {
            Some(Peer::Client(mut client)) if reset => client.was_reset(stage),
            Some(Peer::Client(mut client)) => client.ended(stage, pipe, now_ms),
            Some(Peer::Server(mut server)) => server.ended(stage, pipe),
            Some(Peer::TcpClient(mut client)) => client.ended(stage, pipe, reset),
            Some(Peer::TcpServer(mut server)) => server.ended(stage, pipe, reset),
            None => {}
        }
    }

    /// Servers close the connections that they keep idle; whether there was one.
    pub fn close_idle_servers(&mut self) -> bool {
        let mut any = false;
        for (pipe, peer) in self.driver.pipes.iter_mut().zip(&self.peers) {
            let is_server = matches!(peer, Some(Peer::Server(_) | Peer::TcpServer(_)));
            if is_server
                && pipe.sock.is_some()
                && !pipe.peer_ended
                && !pipe.connecting
                && pipe.is_quiet()
                && pipe.held_until_ms <= self.driver.now.ms()
            {
                pipe.peer_ended = true;
                any = true;
            }
        }
        any
    }
}

/// What a client speaks below HTTP/1; its first words are on their way.
fn client_wire(setup: &Setup, inbox: &mut Queue) -> Option<Box<dyn Wire>> {
    let mut out = Vec::new();
    let wire: Option<Box<dyn Wire>> = match (setup.h2_clients, setup.tls) {
        (false, false) => None,
        (false, true) => Some(Box::new(TlsWire::client(&mut out))),
        (true, false) => Some(Box::new(MuxClient::h2(&mut out))),
        (true, true) => {
            let mut first = Vec::new();
            let upper = MuxClient::h2(&mut first);
            let lower = TlsWire::client(&mut out);
            Some(Box::new(Above::new(upper, lower, &first, &mut out)))
        }
    };
    inbox.push(&out);
    wire
}

/// The same of a server.
fn server_wire(setup: &Setup, inbox: &mut Queue) -> Option<Box<dyn Wire>> {
    let mut out = Vec::new();
    let wire: Option<Box<dyn Wire>> = match (setup.h2_servers, setup.tls) {
        (false, false) => None,
        (false, true) => Some(Box::new(TlsWire::server())),
        (true, false) => Some(Box::new(MuxServer::h2(&mut out))),
        (true, true) => {
            let mut first = Vec::new();
            let upper = MuxServer::h2(&mut first);
            Some(Box::new(Above::new(
                upper,
                TlsWire::server(),
                &first,
                &mut out,
            )))
        }
    };
    inbox.push(&out);
    wire
}
