//! A QUIC connection of a simulated peer. The peer's script decides what is said on it, as it does for
//! a TCP connection.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use quic::{Connection, Endpoint, Lost, News, Records};
use testing::Random;

use crate::client::Client;
use crate::driver::Pipe;
use crate::server::Server;
use crate::stage::Stage;
use crate::wire::{Whim, Wire};
use crate::wire_mux::{MuxClient, MuxServer};

/// Codes of HTTP/3 (RFC 9114 §8.1).
const NO_ERROR: u64 = 0x100;
const INTERNAL_ERROR: u64 = 0x102;
/// The most bytes of records that are read at a time.
const LOOK_BYTES_MAX: usize = 8192;
const NS_PER_MS: u64 = 1_000_000;

/// Connections whose early data servers have read, in all lives.
pub static EARLY: AtomicU64 = AtomicU64::new(0);

/// What the peer does.
#[derive(Debug)]
pub enum Script {
    Client(Client),
    Server(Server),
}

impl Script {
    fn name(&self) -> String {
        match self {
            Script::Client(client) => format!("client {}", client.index),
            Script::Server(server) => format!("server {}", server.index),
        }
    }

    fn wire(&self, out: &mut Vec<u8>) -> Box<dyn Wire> {
        match self {
            Script::Client(_) => Box::new(MuxClient::h3(out)),
            Script::Server(_) => Box::new(MuxServer::h3(out)),
        }
    }

    fn read(&mut self, bytes: &mut Vec<u8>, stage: &mut Stage<'_>, pipe: &mut Pipe, now_ms: u64) {
        match self {
            Script::Client(client) => client.read(bytes, stage, pipe, now_ms),
            Script::Server(server) => loop {
                server.read(bytes, stage, pipe, now_ms);
                bytes.clear();
                if let Some(wire) = &mut pipe.wire {
                    wire.more(bytes);
                }
                if bytes.is_empty() {
                    break;
                }
            },
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct QuicPeer {
    pub connection: Box<Connection>,
    /// Its queues are those of the peer: what it says waits in the inbox.
    pub pipe: Pipe,
    script: Script,
    records: Records,
    /// The handshake is complete.
    is_begun: bool,
    /// The script has seen the end, or has ended it.
    is_over: bool,
    /// A message of the proxy has come, so the proxy has completed the handshake too.
    pub is_answered: bool,
    /// When it has gone on, monotonic milliseconds.
    stepped_ms: u64,
    /// The connection is over, and nothing more is sent on it.
    pub has_vanished: bool,
}

impl QuicPeer {
    pub fn new(connection: Box<Connection>, script: Script) -> QuicPeer {
        let pipe = Pipe {
            room: usize::MAX,
            ..Pipe::default()
        };
        QuicPeer {
            connection,
            pipe,
            script,
            records: Records::default(),
            is_begun: false,
            is_over: false,
            is_answered: false,
            stepped_ms: 0,
            has_vanished: false,
        }
    }

    /// The handshake is complete, and the connection has not ended.
    pub fn is_up(&self) -> bool {
        self.is_begun && !self.is_over && !self.has_vanished
    }

    /// A server that waits for a next request, and all that it said has left.
    pub fn is_idle_server(&mut self) -> bool {
        let Script::Server(server) = &self.script else {
            return false;
        };
        let is_idle = server.is_idle() && self.pipe.is_quiet() && !self.pipe.peer_ended;
        self.is_up() && is_idle && self.connection.is_quiet()
    }

    /// When it goes on by itself, monotonic milliseconds.
    pub fn wakes_ms(&mut self) -> Option<u64> {
        if self.has_vanished {
            // To be forgotten.
            return Some(0);
        }
        let due_ns = self.connection.deadline_ns();
        let due_ms = due_ns.map(|ns| ns.div_ceil(NS_PER_MS));
        let waits = [self.pipe.held_until_ms, self.pipe.unread_until_ms];
        let waits = waits
            .into_iter()
            .filter(|at| *at > self.stepped_ms && *at < u64::MAX);
        due_ms.into_iter().chain(waits).min()
    }

    /// Does a thing that HTTP/3 has and HTTP/1 has not.
    pub fn whim(&mut self, whim: Whim) {
        if let Some(wire) = &mut self.pipe.wire {
            let mut out = Vec::new();
            wire.whim(whim, &mut out);
            self.pipe.inbox.push(&out);
            self.pipe.ended |= wire.is_over();
        }
    }

    /// Goes on as far as it can: reads, lets the script act, and sends with `send`.
    pub fn step(
        &mut self,
        endpoint: &mut Endpoint,
        now_ns: u64,
        stage: &mut Stage<'_>,
        random: &mut Random,
    ) {
        while self
            .connection
            .deadline_ns()
            .is_some_and(|due| due <= now_ns)
        {
            self.connection.expire(now_ns);
        }
        let news = self.connection.news();
        let now_ms = now_ns / NS_PER_MS;
        self.stepped_ms = now_ms;
        if news.is_established {
            self.begin(stage);
        }
        if self.is_begun && !self.is_over {
            self.exchange(news.is_lost, now_ms, stage);
        }
        self.end(news, now_ns, stage, random);
        endpoint.settle(&mut self.connection);
    }

    fn begin(&mut self, stage: &mut Stage<'_>) {
        self.is_begun = true;
        let facts = self.connection.agreed().facts;
        let is_early = facts.is_some_and(|facts| facts.has_early_data);
        EARLY.fetch_add(u64::from(is_early), Relaxed);
        let mut out = Vec::new();
        self.pipe.wire = Some(self.script.wire(&mut out));
        self.pipe.inbox.push(&out);
        if let Script::Client(client) = &mut self.script {
            client.start(stage, &mut self.pipe);
        }
    }

    /// Sends what the script has said, and lets it read what came.
    fn exchange(&mut self, is_lost: bool, now_ms: u64, stage: &mut Stage<'_>) {
        let mut bytes = Vec::new();
        loop {
            let pipe = &mut self.pipe;
            if pipe.held_until_ms <= now_ms && !pipe.inbox.is_empty() {
                self.records.send(&mut self.connection, pipe.inbox.peek());
                pipe.inbox.clear();
            }
            bytes.clear();
            if pipe.unread_until_ms <= now_ms || is_lost {
                self.records
                    .receive(&mut self.connection, LOOK_BYTES_MAX, &mut bytes);
            }
            if bytes.is_empty() {
                return;
            }
            pipe.understand(&mut bytes);
            pipe.ended |= pipe.wire.as_ref().is_some_and(|wire| wire.is_over());
            self.is_answered |= !bytes.is_empty();
            self.script.read(&mut bytes, stage, pipe, now_ms);
        }
    }

    /// The connection ends: the proxy has ended it, or the script wants to.
    fn end(&mut self, news: News, now_ns: u64, stage: &mut Stage<'_>, random: &mut Random) {
        let now_ms = now_ns / NS_PER_MS;
        if news.is_lost {
            return self.lost(now_ms, stage);
        }
        self.records.close_if_asked(&mut self.connection, now_ns);
        if self.connection.is_closed() || !self.is_begun {
            return;
        }
        let pipe = &self.pipe;
        if pipe.peer_reset {
            if random.chance(50) {
                self.has_vanished = true;
            } else {
                self.connection.close(now_ns, INTERNAL_ERROR, b"");
            }
            self.is_over = true;
        } else if pipe.peer_ended || pipe.ended {
            let is_quiet = pipe.is_quiet() && self.connection.is_quiet();
            let is_done = is_quiet || pipe.wire.as_ref().is_some_and(|wire| wire.is_over());
            if is_done || (!stage.mood.calm && random.chance(30)) {
                self.connection.close(now_ns, NO_ERROR, b"");
                self.over(stage, now_ms, false);
            }
        }
    }

    fn lost(&mut self, now_ms: u64, stage: &mut Stage<'_>) {
        let lost = self.connection.lost().cloned();
        // The proxy's last datagram may be lost.
        let is_end = |lost: &Lost| {
            let is_silent = matches!(lost, Lost::TimedOut | Lost::Reset | Lost::ClosedHere);
            is_silent || *lost == Lost::Closed(NO_ERROR)
        };
        let is_reset = !lost.as_ref().is_some_and(is_end);
        if self.is_begun {
            if is_reset && stage.mood.calm && !self.is_over {
                stage.fault(format!("{}: lost: {lost:?}", self.script.name()));
            }
            return self.over(stage, now_ms, is_reset);
        }
        // The proxy may give up a connection to a server.
        let is_client = matches!(self.script, Script::Client(_));
        if stage.mood.calm && !stage.draining && is_client {
            stage.fault(format!("{}: no handshake: {lost:?}", self.script.name()));
        }
        self.is_over = true;
    }

    /// The script learns of the end, unless it knows.
    fn over(&mut self, stage: &mut Stage<'_>, now_ms: u64, is_reset: bool) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        match &mut self.script {
            Script::Client(client) if is_reset => client.was_reset(stage),
            Script::Client(client) => client.ended(stage, &mut self.pipe, now_ms),
            Script::Server(server) => server.ended(stage, &mut self.pipe),
        }
    }
}
