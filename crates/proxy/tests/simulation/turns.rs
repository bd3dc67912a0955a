//! A life: an engine, its driver and its peers, one event after the other as the seed has it, checked after each.

use std::sync::Arc;

use net::{Accepted, Addr, Close, ConnectError, Engine as _, ListenerId};
use spangate_proxy::{Engine, Message, Shared};

use super::client::Client;
use super::driver::{Opening, SimDriver};
use super::plan::{self, Mood};
use super::random::Random;
use super::server::Server;
use super::setups::Setup;
use super::stage::Stage;
use super::tcp::{TcpClient, TcpServer};

/// Steps after which a life is called endless.
const STEPS_MAX: usize = 100_000;
/// Virtual time after which one is called stuck: far beyond the sum of all timeouts of all requests.
const TIME_MAX_MS: u64 = 3_600_000;
/// The receive buffer of a driver here.
const RECEIVE_BYTES: usize = 8192;

/// Who is at the other end of a pipe.
#[derive(Debug)]
enum Peer {
    Client(Client),
    Server(Server),
    TcpClient(TcpClient),
    TcpServer(TcpServer),
}

/// What can happen next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive,
    Connect(usize),
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

struct Life<'a> {
    engine: Engine,
    driver: SimDriver,
    shared: Arc<Shared>,
    stage: Stage<'a>,
    /// By pipe; none once the peer has seen the end.
    peers: Vec<Option<Peer>>,
    /// Clients that have not come yet, last one first.
    coming: Vec<Peer>,
    events: Vec<Event>,
    chunk: Vec<u8>,
    drain_at: Option<usize>,
}

/// Runs the life of a seed.
///
/// # Errors
/// The first invariant that broke.
pub fn live(seed: u64, setups: &[Setup], verbose: bool) -> Result<(), String> {
    let mut random = Random::new(seed);
    let setup = &setups[random.below(setups.len())];
    let mood = Mood {
        calm: random.chance(60),
        stale: random.chance(25),
        drain: random.chance(15),
    };
    let mut life = Life::new(setup, mood, random);
    life.driver.verbose = verbose;
    life.driver.say(format_args!("{}: {mood:?}", setup.name));
    for exchange in life.stage.plans.iter().flatten() {
        life.driver.say(format_args!("plan {exchange:?}"));
    }
    life.run()
}

impl<'a> Life<'a> {
    fn new(setup: &'a Setup, mood: Mood, mut random: Random) -> Self {
        let shared = Arc::new(Shared::new(&setup.running, 1));
        let engine = Engine::new(setup.running.clone(), shared.clone(), 0, random.next());
        let count = 1 + random.below(4);
        let plans: Vec<_> = (0..count)
            .map(|client| plan::exchanges(&mut random, client, mood))
            .collect();
        let coming = (0..count).rev().map(|client| match setup.is_tcp {
            true => Peer::TcpClient(TcpClient::new(client)),
            false => Peer::Client(Client::new(client, random.chance(30))),
        });
        let coming = coming.collect();
        let mut driver = SimDriver::new(1);
        driver.room = random.pick(&[usize::MAX, 100_000, 4000, 500, 50]);
        let stage = Stage {
            setup,
            mood,
            seen: plans.iter().map(|plan| vec![0; plan.len()]).collect(),
            got: plans.iter().map(|plan| vec![0; plan.len()]).collect(),
            plans,
            draining: false,
            faults: Vec::new(),
            random,
        };
        let mut life = Life {
            engine,
            driver,
            shared,
            stage,
            peers: Vec::new(),
            coming,
            events: Vec::new(),
            chunk: Vec::new(),
            drain_at: None,
        };
        life.drain_at = mood.drain.then(|| life.stage.random.below(100));
        life
    }

    fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS_MAX {
            self.misfortune();
            if self.drain_at == Some(step) {
                self.stage.draining = true;
                self.driver.say(format_args!("drain"));
                let message = Message::Drain {
                    grace_ms: 0,
                    hard_stop_ms: None,
                };
                self.engine.on_message(&mut self.driver, message);
                self.adopt();
            }
            self.collect();
            if self.events.is_empty() {
                if self.is_over() {
                    self.end_round();
                    return self.last_checks();
                }
                self.pass_time()?;
            } else {
                let event = self.stage.random.pick(&self.events);
                self.happen(event);
                if self.stage.random.chance(40) {
                    self.end_round();
                }
            }
            self.check()?;
        }
        Err(format!("endless: {:?} could happen", self.events))
    }

    /// Whether clients and servers are done with each other.
    fn is_over(&mut self) -> bool {
        self.driver.names.is_empty() && (self.coming.is_empty() || self.driver.unlistened[0])
    }

    /// Resets and stalls that nobody plans.
    fn misfortune(&mut self) {
        let count = self.driver.pipes.len();
        if self.stage.mood.calm || count == 0 || !self.stage.random.chance(2) {
            return;
        }
        let place = self.stage.random.below(count);
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        let until_ms = match self.stage.random.below(3) {
            0 => u64::MAX,
            _ => now_ms + self.stage.random.next() % 20_000,
        };
        match self.stage.random.below(4) {
            0 if !pipe.connecting => pipe.peer_reset = true,
            1 => pipe.held_until_ms = until_ms,
            2 => pipe.unread_until_ms = until_ms,
            3 if !pipe.connecting => pipe.peer_ended = true,
            _ => return,
        }
        self.driver.say(format_args!("misfortune of #{place}"));
    }

    fn collect(&mut self) {
        self.events.clear();
        let now_ms = self.driver.now.ms();
        if !self.coming.is_empty() && self.driver.accepting[0] && !self.driver.unlistened[0] {
            self.events.push(Event::Arrive);
        }
        for (place, pipe) in self.driver.pipes.iter().enumerate() {
            let open = pipe.conn.is_some();
            let mut event = None;
            let speaks = pipe.held_until_ms <= now_ms && !pipe.paused;
            if open && pipe.connecting {
                event = (pipe.held_until_ms <= now_ms).then_some(Event::Connect(place));
            } else if open && (pipe.broken || pipe.peer_reset) {
                event = Some(Event::Die(place));
            } else if open && speaks && !pipe.inbox.is_empty() {
                event = Some(Event::Deliver(place));
            } else if open && speaks && pipe.peer_ended && !pipe.end_told {
                event = Some(Event::End(place));
            }
            self.events.extend(event);
            if open && !pipe.backlog.is_empty() && pipe.room > 0 && !pipe.peer_reset {
                self.events.push(Event::Drain(place));
            }
            let Some(peer) = &self.peers[place] else {
                continue;
            };
            if pipe.reset {
                self.events.push(Event::SeeReset(place));
            } else if pipe.unread_until_ms <= now_ms && !pipe.peer_reset {
                if !pipe.outbox.is_empty() {
                    self.events.push(Event::Read(place));
                } else if pipe.ended {
                    self.events.push(Event::SeeEnd(place));
                }
            }
            // At the end of all, or out of the blue.
            let quiet = self.stage.mood.stale || !self.stage.mood.calm;
            if open
                && !pipe.peer_ended
                && matches!(peer, Peer::Server(server) if server.is_idle())
                && (quiet && self.stage.random.chance(3))
            {
                self.events.push(Event::CloseIdle(place));
            }
        }
    }

    fn happen(&mut self, event: Event) {
        let verbose = self.driver.verbose;
        if verbose {
            self.driver.say(format_args!("{event:?}"));
        }
        match event {
            Event::Arrive => self.arrive(),
            Event::Connect(place) => self.connect(place),
            Event::Die(place) => self.die(place, Close::Reset),
            Event::Deliver(place) => self.deliver(place),
            Event::End(place) => {
                self.driver.pipes[place].end_told = true;
                if let Some(conn) = self.driver.pipes[place].conn {
                    self.engine.on_eof(&mut self.driver, conn);
                }
            }
            Event::Drain(place) => {
                let pipe = &mut self.driver.pipes[place];
                let count = self.stage.random.part(pipe.backlog.len().min(pipe.room));
                if pipe.drain(count)
                    && let Some(conn) = pipe.conn
                {
                    self.engine.on_drained(&mut self.driver, conn);
                }
            }
            Event::Read(place) => self.read(place),
            Event::SeeEnd(place) | Event::SeeReset(place) => {
                self.see_end(place, matches!(event, Event::SeeReset(_)))
            }
            Event::CloseIdle(place) => self.driver.pipes[place].peer_ended = true,
        }
        self.adopt();
    }

    /// Gives the connections that the engine opened their servers.
    fn adopt(&mut self) {
        let now_ms = self.driver.now.ms();
        while self.peers.len() < self.driver.pipes.len() {
            let pipe = &mut self.driver.pipes[self.peers.len()];
            let Some(to) = &pipe.to else { return };
            let index = usize::from(to.port()) - 81;
            if self.stage.random.chance(20) {
                pipe.held_until_ms = now_ms + self.stage.random.next() % 1900;
            }
            if !self.stage.mood.calm && self.stage.random.chance(10) {
                pipe.held_until_ms = u64::MAX;
            }
            self.peers.push(Some(match self.stage.setup.is_tcp {
                true => Peer::TcpServer(TcpServer::new(&self.stage)),
                false => Peer::Server(Server::new(index, &self.stage)),
            }));
        }
        if !self.stage.mood.calm {
            self.driver.opening = match self.stage.random.below(30) {
                0 => Opening::Fails(ConnectError::Refused),
                1 => Opening::Fails(ConnectError::Resource),
                _ => Opening::Pending,
            };
        }
    }

    fn arrive(&mut self) {
        let Some(mut peer) = self.coming.pop() else {
            return;
        };
        let (conn, place) = self.driver.open();
        let pipe = &mut self.driver.pipes[place];
        let index = match &mut peer {
            Peer::Client(client) => {
                client.start(&mut self.stage, pipe);
                client.index
            }
            Peer::TcpClient(client) => {
                client.start(&mut self.stage, pipe);
                client.index
            }
            _ => 0,
        };
        if self.stage.mood.calm && self.stage.random.chance(20) {
            pipe.held_until_ms = self.driver.now.ms() + self.stage.random.next() % 2000;
        }
        self.peers.push(Some(peer));
        let address = |text: &str, port: usize| {
            Addr::Inet(format!("{text}:{port}").parse().expect("an address"))
        };
        let accepted = Accepted {
            listener: ListenerId(0),
            peer: address(&format!("10.0.0.{}", index + 1), 5000 + index),
            local: address("10.1.0.1", 80),
        };
        self.engine.on_accept(&mut self.driver, conn, accepted);
    }

    fn connect(&mut self, place: usize) {
        let refused = !self.stage.mood.calm && self.stage.random.chance(10);
        let pipe = &mut self.driver.pipes[place];
        let Some(conn) = pipe.conn else { return };
        if refused {
            return self.die(place, Close::Refused);
        }
        pipe.connecting = false;
        self.engine.on_connected(&mut self.driver, conn);
    }

    fn die(&mut self, place: usize, why: Close) {
        if let Some(conn) = self.driver.pipes[place].conn {
            self.driver.forget(conn);
            self.peers[place] = None;
            self.engine.on_close(&mut self.driver, conn, why);
        }
    }

    fn deliver(&mut self, place: usize) {
        let pipe = &mut self.driver.pipes[place];
        let Some(conn) = pipe.conn else { return };
        let count = self.stage.random.part(pipe.inbox.len().min(RECEIVE_BYTES));
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        pipe.inbox.take(count, &mut chunk);
        self.driver.say(format_args!("  {count} bytes"));
        self.engine.on_data(&mut self.driver, conn, &chunk);
        self.chunk = chunk;
    }

    fn read(&mut self, place: usize) {
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        let count = self.stage.random.part(pipe.outbox.len());
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        pipe.outbox.take(count, &mut chunk);
        pipe.room = pipe.room.saturating_add(count);
        match &mut self.peers[place] {
            Some(Peer::Client(client)) => client.read(&chunk, &mut self.stage, pipe, now_ms),
            Some(Peer::Server(server)) => server.read(&chunk, &mut self.stage, pipe, now_ms),
            Some(Peer::TcpClient(client)) => client.read(&chunk, &mut self.stage),
            Some(Peer::TcpServer(server)) => server.read(&chunk, &mut self.stage, pipe),
            None => {}
        }
        self.chunk = chunk;
    }

    fn see_end(&mut self, place: usize, reset: bool) {
        let now_ms = self.driver.now.ms();
        let pipe = &mut self.driver.pipes[place];
        match self.peers[place].take() {
            Some(Peer::Client(mut client)) if reset => client.was_reset(&mut self.stage),
            Some(Peer::Client(mut client)) => client.ended(&mut self.stage, pipe, now_ms),
            Some(Peer::Server(mut server)) => server.ended(&mut self.stage, pipe),
            Some(Peer::TcpClient(mut client)) => client.ended(&mut self.stage, pipe, reset),
            Some(Peer::TcpServer(mut server)) => server.ended(&mut self.stage, pipe, reset),
            None => {}
        }
    }

    /// The end of a driver's round: what is due, the engine's own round end, a little time.
    fn end_round(&mut self) {
        let now_ms = self.driver.now.ms();
        if self.engine_deadline().is_some_and(|at| at <= now_ms) {
            self.engine.on_timer(&mut self.driver);
            self.adopt();
        }
        self.engine.on_round_end(&mut self.driver);
        self.adopt();
        if self.stage.random.chance(20) {
            // Never beyond a deadline: what a timeout cuts is cut at its moment.
            let next_ms = self.engine_deadline().unwrap_or(u64::MAX);
            let passed_ms = self.stage.random.next() % 4;
            self.driver
                .advance_ms(passed_ms.min(next_ms.saturating_sub(now_ms)));
        }
    }

    fn engine_deadline(&mut self) -> Option<u64> {
        net::Engine::<SimDriver>::next_deadline_ms(&mut self.engine)
    }

    /// Nothing can happen at this moment: on to the next one.
    fn pass_time(&mut self) -> Result<(), String> {
        let now_ms = self.driver.now.ms();
        let pipes = self.driver.pipes.iter();
        let wakes = pipes.flat_map(|pipe| [pipe.held_until_ms, pipe.unread_until_ms]);
        let peers_ms = wakes.filter(|at| *at > now_ms && *at != u64::MAX).min();
        let engine_ms = self.engine_deadline();
        let idle_over = self.engine.streams_in_use() == 0 && self.stage.random.chance(50);
        if idle_over && self.close_idle_servers() {
            return Ok(());
        }
        let Some(next_ms) = peers_ms.into_iter().chain(engine_ms).min() else {
            if self.close_idle_servers() {
                return Ok(());
            }
            return Err(format!(
                "stuck: {} streams, {} connections",
                self.engine.streams_in_use(),
                self.driver.names.len()
            ));
        };
        if next_ms > TIME_MAX_MS {
            return Err("it lives too long".into());
        }
        self.driver.advance_ms(next_ms.saturating_sub(now_ms));
        self.end_round();
        Ok(())
    }

    /// Servers close the connections that they keep idle; whether there was one.
    fn close_idle_servers(&mut self) -> bool {
        let mut any = false;
        for (pipe, peer) in self.driver.pipes.iter_mut().zip(&self.peers) {
            let is_server = matches!(peer, Some(Peer::Server(_) | Peer::TcpServer(_)));
            if is_server
                && pipe.conn.is_some()
                && !pipe.peer_ended
                && !pipe.connecting
                && pipe.held_until_ms <= self.driver.now.ms()
            {
                pipe.peer_ended = true;
                any = true;
            }
        }
        any
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(fault) = self.driver.faults.first().or(self.stage.faults.first()) {
            return Err(fault.clone());
        }
        let backlog_max = 2 * self.stage.setup.bufsize + 2 * RECEIVE_BYTES;
        if self.driver.backlog_max > backlog_max {
            return Err(format!("a backlog of {} bytes", self.driver.backlog_max));
        }
        let open = self
            .driver
            .pipes
            .iter()
            .filter(|pipe| pipe.conn.is_some() && pipe.to.is_none());
        if self
            .stage
            .setup
            .clients_max
            .is_some_and(|max| open.count() > max as usize)
        {
            return Err("more clients than maxconn".into());
        }
        self.check_maxconn()?;
        self.engine.audit()
    }

    fn check_maxconn(&self) -> Result<(), String> {
        for (index, max) in self
            .stage
            .setup
            .maxconn
            .iter()
            .enumerate()
            .filter(|(_, max)| **max > 0)
        {
            let busy = self.driver.pipes.iter().zip(&self.peers).filter(|(pipe, peer)| {
                pipe.conn.is_some() && !pipe.peer_ended && matches!(peer, Some(Peer::Server(server)) if server.index == index && server.is_busy())
            });
            let busy = busy.count();
            if busy > *max as usize {
                return Err(format!(
                    "server {index} has {busy} requests, maxconn is {max}"
                ));
            }
        }
        Ok(())
    }

    fn last_checks(&mut self) -> Result<(), String> {
        self.check()?;
        if self.engine.streams_in_use() != 0 {
            return Err(format!("{} streams are left", self.engine.streams_in_use()));
        }
        if !self.shared.is_quiet() {
            return Err(format!("a count is left: {:?}", self.shared));
        }
        if self.stage.draining && !net::Engine::<SimDriver>::is_finished(&self.engine) {
            return Err("drained, and not finished".into());
        }
        super::logs::check(&self.driver.logs, &self.stage)
    }
}
