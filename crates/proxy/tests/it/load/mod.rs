//! Lives under load: transfers without end and small requests, beside peers that mean no good. What
//! is asserted after each round: everything that can go on goes on, none gets less than a third of
//! what another like it gets, and what the proxy holds for each peer has a bound.

mod clients;
pub mod frames;
mod hostile;
mod servers;
mod setups;
mod share;

use std::fmt::Write as _;
use std::sync::Arc;

use http::h2::Limits;
use net::{Accepted, Addr, Close, Engine as _, ListenerId};
use spangate_proxy::{Engine, HeldBytes, Shared};

use self::clients::{H1Client, H2Client};
use self::hostile::{ATTACKS, Attack, Hostile};
use self::servers::{H1Server, H2Server};
use self::setups::Setup;
use self::share::{Board, Flow, Kind};
use crate::driver::{SimDriver, deliver};
use crate::held::FRAME_BYTES_MAX;
use crate::wire::TlsWire;
use testing::Random;

/// The name by which a life is replayed.
pub const NAME: &str = "load";

/// What one transfer of a connection gets before its transfers are compared, bytes.
const WINDOW_BYTES: usize = 16 * TURN_BYTES;
/// A stream's turn on its connection, bytes (`link/mux/h2/turns.rs`).
const TURN_BYTES: usize = 32 << 10;
/// Rounds in which everything goes on, beside the turns of others.
const PROGRESS_ROUNDS: usize = 60;
/// Streams that a life keeps in the window of a server's connection.
const KEPT_STREAMS_MAX: usize = 2;
/// Rounds of a life without transfers, and after which one is called endless.
const SHORT_ROUNDS: usize = 80;
const ROUNDS_MAX: usize = 20_000;
/// The virtual time after which nothing of a life may be left once all peers are silent.
const SILENCE_MS: u64 = 120_000;
/// What a socket takes where nothing limits it.
const ROOM_MAX: usize = usize::MAX / 2;

/// How a peer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    All,
    /// So many bytes in a round.
    Slowly(usize),
    Never,
}

#[derive(Debug)]
enum Role {
    H1Client(H1Client),
    H2Client(H2Client),
    H1Server(H1Server),
    H2Server(H2Server),
    Hostile(Hostile),
}

#[derive(Debug)]
struct Peer {
    role: Role,
    reading: Reading,
    is_client: bool,
}

/// In which order a driver finds its sockets ready.
#[derive(Clone, Copy, Debug)]
enum Order {
    Ascending,
    Descending,
    Turning,
    Random,
}

struct Life {
    engine: Engine,
    driver: SimDriver,
    shared: Arc<Shared>,
    setup: &'static Setup,
    /// By pipe.
    peers: Vec<Option<Peer>>,
    board: Board,
    random: Random,
    order: Order,
    /// The most that a driver reads of a socket at a time.
    look_bytes: usize,
    /// How servers read.
    reading: Reading,
    round_ms: u64,
    /// Rounds in which everything goes on.
    progress_rounds: usize,
    /// What hostile servers do, and how often in a round.
    attack: (Attack, usize),
    held: Vec<HeldBytes>,
}

/// Runs the life of a seed.
///
/// # Errors
/// The first thing that broke.
pub fn live(seed: u64, verbose: bool) -> Result<(), String> {
    let mut life = Life::new(Random::new(seed));
    life.driver.verbose = verbose;
    life.begin();
    life.run()?;
    life.end()
}

impl Life {
    fn new(mut random: Random) -> Life {
        let setup = setups::pick(&mut random);
        let shared = Arc::new(setup.runtime_config.share(1));
        let engine = Engine::new(
            setup.runtime_config.clone(),
            shared.clone(),
            0,
            random.next(),
        );
        let mut driver = SimDriver::new(1, setup.bounds.bufsize);
        driver.room = ROOM_MAX;
        driver.puts_off = random.chance(50);
        driver.frame_bytes = FRAME_BYTES_MAX;
        let order = random.pick(&[
            Order::Ascending,
            Order::Descending,
            Order::Turning,
            Order::Random,
        ]);
        Life {
            engine,
            driver,
            shared,
            setup,
            peers: Vec::new(),
            board: Board::default(),
            order,
            look_bytes: random.pick(&[4 << 10, 16 << 10, 16 << 10, 64 << 10]),
            reading: random.pick(&[
                Reading::All,
                Reading::Slowly(8_000),
                Reading::Slowly(20_000),
            ]),
            round_ms: random.pick(&[0, 1, 5]),
            progress_rounds: 0,
            attack: (
                random.pick(&[Attack::Pings, Attack::Settings, Attack::Credits]),
                random.pick(&[1, 20, 5_000]),
            ),
            held: Vec::new(),
            random,
        }
    }

    /// The clients come.
    fn begin(&mut self) {
        let slowly = [8_000, 20_000, 50_000].map(Reading::Slowly);
        let reading = if self.random.chance(50) {
            self.random.pick(&slowly)
        } else {
            Reading::All
        };
        let hostile = self.random.below(4);
        let count = if hostile == 0 {
            1 + self.random.below(3)
        } else {
            self.random.below(3)
        };
        let kind = self.random.pick(&[Kind::Down, Kind::Up]);
        let streams = 2 + self.random.below(3);
        for _ in 0..count {
            let mut kinds = vec![kind; streams];
            // A stream that keeps itself back holds nobody up, as long as it leaves some of the
            // window.
            if self.random.chance(30) {
                kinds.push(self.random.pick(&[Kind::Uncredited, Kind::Unread]));
            }
            if self.random.chance(30) {
                kinds.push(Kind::Small);
            }
            if self.random.chance(10) {
                kinds.push(self.random.pick(&[Kind::Hints, Kind::Half]));
            }
            // What is never credited must leave some of the connection's window.
            let windows = [65_535, Limits::default().connection_window_bytes];
            let connection_window_bytes = if kinds.contains(&Kind::Uncredited) {
                windows[1]
            } else {
                self.random.pick(&windows)
            };
            let limits = Limits {
                connection_window_bytes,
                ..Limits::default()
            };
            self.clients_of(&kinds, reading, limits);
        }
        if self.random.chance(30) {
            self.clients_of(&[Kind::Small], reading, Limits::default());
        }
        for _ in 0..hostile {
            self.hostile();
        }
        let slowest = [reading, self.reading]
            .into_iter()
            .map(|reading| match reading {
                Reading::Slowly(rate) => rate,
                Reading::All | Reading::Never => usize::MAX,
            });
        // With HTTP/2 servers all uploads are on one connection.
        let turns = self.board.flows.len() + 2;
        let slowest = slowest.min().unwrap_or(usize::MAX);
        self.progress_rounds = PROGRESS_ROUNDS + turns * TURN_BYTES / slowest;
    }

    /// One client with these streams, or one for each.
    fn clients_of(&mut self, kinds: &[Kind], reading: Reading, limits: Limits) {
        let h2 = self.setup.h2_clients;
        let is_h2 = h2.unwrap_or_else(|| self.random.chance(50));
        let place = self.peers.len();
        let kinds = self.bearable(kinds);
        let first = self.board.flows.len();
        let flows: Vec<usize> = (first..first + kinds.len()).collect();
        if is_h2 {
            let flow = |kind: &Kind| Flow::new(*kind, place, Some(limits.connection_window_bytes));
            self.board.flows.extend(kinds.iter().map(flow));
            let mut out = Vec::new();
            let role = Role::H2Client(H2Client::new(limits, &flows, &mut out));
            return self.arrive(role, reading, &out);
        }
        for (flow, kind) in flows.into_iter().zip(&kinds) {
            let place = self.peers.len();
            self.board.flows.push(Flow::new(*kind, place, None));
            let reading = match kind {
                Kind::Uncredited => Reading::Never,
                _ => reading,
            };
            self.arrive(Role::H1Client(H1Client::new(flow)), reading, &[]);
        }
    }

    /// Streams of one connection to a server that nobody takes may fill its window, but for a part:
    /// more of them would stop the others.
    fn bearable(&self, kinds: &[Kind]) -> Vec<Kind> {
        let is_kept = |kind: Kind| matches!(kind, Kind::Uncredited | Kind::Tiny);
        let flows = self.board.flows.iter();
        let mut kept = flows.filter(|flow| is_kept(flow.kind)).count();
        let bear = |kind: &Kind| {
            if !self.setup.h2_servers || !is_kept(*kind) {
                return *kind;
            }
            kept += 1;
            if kept > KEPT_STREAMS_MAX {
                Kind::Half
            } else {
                *kind
            }
        };
        kinds.iter().map(bear).collect()
    }

    /// One that means no good.
    fn hostile(&mut self) {
        let reading = self.random.pick(&[
            Reading::Never,
            Reading::Never,
            Reading::Slowly(1),
            Reading::All,
        ]);
        let limits = Limits {
            stream_window_bytes: self.random.pick(&[1, 10, 65_535]),
            ..Limits::default()
        };
        match self.random.below(8) {
            // Transfers of which nobody takes anything, or next to nothing.
            0 => self.clients_of(&[Kind::Uncredited, Kind::Uncredited], reading, limits),
            1 => self.clients_of(&[Kind::Tiny, Kind::Tiny], reading, limits),
            2 => self.clients_of(&[Kind::Hints], reading, limits),
            3 => self.clients_of(&[Kind::Unread, Kind::Unread, Kind::Half], reading, limits),
            // A server that floods.
            4 => self.clients_of(&[Kind::Flooded], Reading::All, limits),
            _ => {
                let attack = self.random.pick(ATTACKS);
                // What its connections speak is not for it to choose.
                if self.setup.h2_clients == Some(attack.is_h1()) {
                    return;
                }
                let pace = self.random.pick(&[1, 5, 50, 5_000]);
                let mut first = Vec::new();
                let role = Role::Hostile(Hostile::client(attack, pace, &mut first));
                self.arrive(role, reading, &first);
            }
        }
    }

    fn arrive(&mut self, role: Role, reading: Reading, first: &[u8]) {
        let listener = ListenerId(0);
        if !self.engine.admit(&mut self.driver, listener) {
            return self.board.fault("a listener takes nobody".into());
        }
        let (sock, place) = self.driver.open();
        let pipe = &mut self.driver.pipes[place];
        pipe.room = room_of(reading, 0);
        if self.setup.tls {
            let mut out = Vec::new();
            pipe.wire = Some(Box::new(TlsWire::client(&mut out)));
            pipe.inbox.push(&out);
            // Even one that reads nothing has read its handshake.
            pipe.room = pipe.room.max(8 << 10);
        }
        pipe.write(first);
        let number = place % 250 + 1;
        self.driver
            .say(format_args!("client #{place}: {role:?}, reads {reading:?}"));
        self.peers.push(Some(Peer {
            role,
            reading,
            is_client: true,
        }));
        let address = |text: &str| Addr::Inet(text.parse().expect("an address"));
        let accepted = Accepted {
            listener,
            peer: address(&format!("10.0.0.{number}:5000")),
            local: address("10.1.0.1:80"),
        };
        self.engine.on_accept(&mut self.driver, sock, accepted);
        self.adopt();
    }

    /// Gives the connections that the engine opened their servers.
    fn adopt(&mut self) {
        while self.peers.len() < self.driver.pipes.len() {
            let place = self.peers.len();
            let pipe = &mut self.driver.pipes[place];
            let is_bad = pipe.to.as_ref().is_some_and(|to| to.port() == 82);
            let mut first = Vec::new();
            let role = match (self.setup.h2_servers, is_bad) {
                (false, _) => Role::H1Server(H1Server::default()),
                (true, true) => {
                    let (attack, pace) = self.attack;
                    Role::Hostile(Hostile::server(attack, pace, &mut first))
                }
                (true, false) => {
                    // What is never credited must leave some of the connection's window.
                    let flows = &self.board.flows;
                    let is_kept = flows.iter().any(|flow| flow.kind == Kind::Unread);
                    let limits = if is_kept {
                        Limits::default()
                    } else {
                        Limits {
                            connection_window_bytes: 65_535,
                            stream_window_bytes: self.random.pick(&[16_384, 65_535, 1 << 20]),
                            ..Limits::default()
                        }
                    };
                    Role::H2Server(H2Server::new(limits, &mut first))
                }
            };
            if self.setup.tls {
                pipe.wire = Some(Box::new(TlsWire::server()));
            }
            pipe.room = room_of(self.reading, 0).max(8 << 10);
            if !first.is_empty() {
                pipe.write(&first);
            }
            self.driver.say(format_args!("server #{place}: {role:?}"));
            self.peers.push(Some(Peer {
                role,
                reading: self.reading,
                is_client: false,
            }));
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let has_bulk = self.board.flows.iter().any(|flow| flow.kind.is_bulk());
        let rounds_max = if has_bulk { ROUNDS_MAX } else { SHORT_ROUNDS };
        let mut is_compared = false;
        for round in 0..rounds_max {
            self.board.round = round;
            self.round();
            self.act();
            self.check()?;
            let progress = self.board.check_progress(self.progress_rounds);
            progress.map_err(|error| error + &self.shown())?;
            if !is_compared && self.board.have_all_begun() {
                is_compared = true;
                self.board.begin_window();
            }
            if has_bulk && is_compared && self.board.check_shares(WINDOW_BYTES)? {
                return self.board.check_connections();
            }
        }
        if has_bulk {
            return Err(format!("it goes on for {ROUNDS_MAX} rounds"));
        }
        Ok(())
    }

    /// A round of the driver: each socket that is ready is served once.
    fn round(&mut self) {
        let count = self.driver.pipes.len();
        let mut order: Vec<usize> = (0..count).collect();
        match self.order {
            Order::Ascending => {}
            Order::Descending => order.reverse(),
            Order::Turning => order.rotate_left(self.board.round % count.max(1)),
            Order::Random => {
                for at in 1..count {
                    order.swap(at, self.random.below(at + 1));
                }
            }
        }
        for place in order {
            self.serve(place);
        }
        self.driver.advance_ms(self.round_ms);
        self.end_round();
    }

    fn end_round(&mut self) {
        let now_ms = self.driver.now.ms();
        self.board.now_ms = now_ms;
        if self.deadline_ms().is_some_and(|at| at <= now_ms) {
            self.engine.on_timer(&mut self.driver);
        }
        self.engine.on_round_end(&mut self.driver);
        self.driver.flush();
        self.driver.logs.clear();
        self.adopt();
    }

    fn deadline_ms(&mut self) -> Option<u64> {
        net::Engine::<SimDriver>::next_deadline_ms(&mut self.engine)
    }

    /// What a driver does with one socket. Whether there was anything.
    fn serve(&mut self, place: usize) -> bool {
        let pipe = &mut self.driver.pipes[place];
        let Some(sock) = pipe.sock else {
            pipe.drain(usize::MAX);
            return false;
        };
        let mut any = true;
        if pipe.connecting {
            pipe.connecting = false;
            self.engine.on_connected(&mut self.driver, sock);
        } else if pipe.peer_reset {
            self.driver.forget(sock);
            self.engine.on_close(&mut self.driver, sock, Close::Reset);
        } else {
            any = false;
            if pipe.blocked && pipe.room > 0 {
                any = true;
                pipe.drain(usize::MAX);
                let blocked = pipe.blocked;
                self.engine.on_writable(&mut self.driver, sock, blocked);
            }
            let pipe = &mut self.driver.pipes[place];
            if pipe.sock.is_some() && !pipe.paused {
                if !pipe.inbox.is_empty() {
                    any = true;
                    deliver(&mut self.engine, &mut self.driver, place, self.look_bytes);
                } else if pipe.peer_ended && !std::mem::replace(&mut pipe.end_told, true) {
                    any = true;
                    self.engine.on_eof(&mut self.driver, sock);
                }
            }
        }
        self.adopt();
        any
    }

    /// All peers read and go on.
    fn act(&mut self) {
        let Life {
            driver,
            peers,
            board,
            ..
        } = self;
        let mut bytes = Vec::new();
        for (place, (pipe, peer)) in driver.pipes.iter_mut().zip(peers).enumerate() {
            let Some(peer) = peer else { continue };
            let is_over = pipe.sock.is_none() && pipe.backlog.is_empty();
            let is_deaf = match &peer.role {
                Role::H1Server(server) => server.is_deaf(board),
                _ => false,
            };
            bytes.clear();
            if !is_deaf {
                pipe.outbox.take(pipe.outbox.len(), &mut bytes);
                pipe.room = room_of(peer.reading, pipe.room);
            }
            if !bytes.is_empty() {
                pipe.understand(&mut bytes);
            }
            match &mut peer.role {
                Role::H1Client(client) => client.act(place, pipe, &bytes, board),
                Role::H2Client(client) => client.act(place, pipe, &bytes, board),
                Role::H1Server(server) => server.act(place, pipe, &bytes, board),
                Role::H2Server(server) => server.act(place, pipe, &bytes, board),
                Role::Hostile(hostile) => hostile.act(pipe, board),
            }
            if is_over {
                pipe.inbox.clear();
            }
        }
    }

    fn check(&mut self) -> Result<(), String> {
        let fault = self.board.faults.first().or(self.driver.faults.first());
        if let Some(fault) = fault {
            return Err(fault.clone());
        }
        self.engine.audit()?;
        let bounds = &self.setup.bounds;
        bounds.check(&self.engine, &self.driver.pipes, &mut self.held)
    }

    /// The connections, for a message.
    fn shown(&mut self) -> String {
        self.engine.held_bytes(&mut self.held);
        let mut text = String::new();
        for (place, pipe) in self.driver.pipes.iter().enumerate() {
            let Some(sock) = pipe.sock else { continue };
            let held = self.held.iter().find(|held| held.sock == Some(sock));
            let (paused, blocked) = (pipe.paused, pipe.blocked);
            let _ = write!(
                text,
                "\n  #{place}: {} come, paused {paused}, {} owed, blocked {blocked}, room {}, {held:?}",
                pipe.inbox.len(),
                pipe.backlog.len(),
                pipe.room,
            );
        }
        text
    }

    /// All peers fall silent, or leave: in the end nothing is left of them.
    fn end(&mut self) -> Result<(), String> {
        let leaves = self.random.below(3);
        for (pipe, peer) in self.driver.pipes.iter_mut().zip(&self.peers) {
            let is_client = peer.as_ref().is_some_and(|peer| peer.is_client);
            match leaves {
                0 => {}
                1 => pipe.peer_reset = is_client,
                _ => pipe.peer_ended = is_client,
            }
        }
        let until_ms = self.driver.now.ms() + SILENCE_MS;
        loop {
            let mut any = false;
            for place in 0..self.driver.pipes.len() {
                any |= self.serve(place);
            }
            let has_work = net::Engine::<SimDriver>::has_work(&self.engine);
            self.end_round();
            self.check()?;
            if any || has_work {
                continue;
            }
            let now_ms = self.driver.now.ms();
            let next_ms = self.deadline_ms().unwrap_or(until_ms).min(until_ms);
            self.driver.advance_ms(next_ms.saturating_sub(now_ms));
            if next_ms == until_ms {
                break;
            }
        }
        // Servers close what is idle.
        for pipe in &mut self.driver.pipes {
            pipe.peer_ended |= pipe.to.is_some();
        }
        for _ in 0..2 {
            for place in 0..self.driver.pipes.len() {
                self.serve(place);
            }
            self.end_round();
        }
        self.check()?;
        let left = self.driver.names.len();
        if self.engine.streams_in_use() > 0 || left > 0 {
            let streams = self.engine.streams_in_use();
            return Err(format!(
                "{streams} streams and {left} connections outlive their deadlines"
            ));
        }
        if !self.shared.is_quiet() {
            return Err(format!("a count is left: {:?}", self.shared));
        }
        Ok(())
    }
}

/// What a socket takes after its peer has read.
fn room_of(reading: Reading, room: usize) -> usize {
    match reading {
        Reading::All => ROOM_MAX,
        Reading::Slowly(rate) => (room + rate).min(2 * rate),
        Reading::Never => room,
    }
}
