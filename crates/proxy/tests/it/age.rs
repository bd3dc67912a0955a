//! Lives of hours: a client of HTTP/2 that keeps a call open, pings, cancels requests and asks for
//! small things, a little at each step. What is asserted: the connection and the call live as long
//! as they progress, an idle one is cut at its deadline, and nothing grows with age.

use std::sync::Arc;

use http::Head;
use http::h1::Framing;
use http::h2::{Code, Connection, Event, Limits, Scheme, StreamId};
use net::{Accepted, Addr, Engine as _, ListenerId};
use spangate_proxy::{Engine, HeldBytes, Shared};

use super::allocations::live_bytes;
use super::driver::{Pipe, SimDriver, deliver};
use super::held::{Bounds, FRAME_BYTES_MAX};
use super::load::frames::Frames;
use super::setups;
use testing::Random;

/// The name by which a life is replayed.
pub const NAME: &str = "age";

/// Steps of a life, and the virtual time between two: more than three hours in all.
const STEPS: usize = 1_200;
const STEP_MS: u64 = 10_000;
/// After so many steps everything that is kept for later is there.
const WARM_STEPS: usize = STEPS / 4;
/// What may be added after that: less than a few bytes for each thing that happens.
const GROWTH_BYTES_MAX: usize = 8 << 10;
/// `timeout client` and `timeout server` of the configuration.
const TIMEOUT_MS: u64 = 30_000;
const BUFSIZE: usize = 4096;
/// Windows of connections, bytes.
const RXBUF_BYTES: usize = 200_000;

const TEXT: &str = "
global
    tune.bufsize BUFSIZE
    tune.maxrewrite 1024
    tune.h2.fe.rxbuf RXBUF
    tune.h2.be.rxbuf RXBUF
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 2s
    timeout http-keep-alive 40s
    http-reuse always
    log stdout format raw local0
    log-format \"%HP %ST %tsc\"
frontend age
    bind 127.0.0.1:80
    http-request return status 200 if { path /local }
    default_backend app
backend app
    server one 127.0.0.1:81 SERVER
";

/// What a life does at each step.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// Who speaks in the call; nobody: there is none.
    client_speaks: bool,
    server_speaks: bool,
    client_pings: bool,
    server_pings: bool,
    changes_settings: bool,
    /// Requests that are cancelled before and after they are answered, and complete ones.
    cancels: usize,
    late_cancels: usize,
    requests: usize,
}

/// A server's connection.
#[derive(Debug)]
enum Server {
    H1 {
        came: Vec<u8>,
        has_call: bool,
    },
    H2 {
        frames: Box<Frames>,
        call: Option<StreamId>,
    },
}

struct Life {
    engine: Engine,
    driver: SimDriver,
    shared: Arc<Shared>,
    bounds: Bounds,
    h2_servers: bool,
    habits: Habits,
    client: usize,
    frames: Frames,
    call: Option<StreamId>,
    /// By pipe.
    servers: Vec<Option<Server>>,
    /// Bytes of the call that came to the client and to the server.
    got: usize,
    server_got: usize,
    /// Requests that wait for their answers.
    open: Vec<StreamId>,
    faults: Vec<String>,
    /// Nobody speaks any more, and the proxy may end what it has.
    ends: bool,
    held: Vec<HeldBytes>,
}

/// Runs the life of a seed.
///
/// # Errors
/// The first thing that broke.
pub fn live(seed: u64, verbose: bool) -> Result<(), String> {
    let mut life = Life::new(Random::new(seed), verbose);
    life.driver.say(format_args!("{:?}", life.habits));
    let mut warm = 0;
    for step in 0..STEPS {
        life.step()
            .map_err(|error| format!("step {step}: {error}"))?;
        if step == WARM_STEPS {
            warm = life.live_bytes();
        }
    }
    life.driver
        .say(format_args!("{} pipes", life.driver.pipes.len()));
    let grown = life.live_bytes().wrapping_sub(warm);
    if grown.cast_signed() > GROWTH_BYTES_MAX as isize {
        let steps = STEPS - WARM_STEPS;
        return Err(format!(
            "{grown} bytes more after {steps} steps: {:?}",
            life.habits
        ));
    }
    life.end()
}

impl Life {
    fn new(mut random: Random, verbose: bool) -> Life {
        let h2_servers = random.chance(50);
        let server = if h2_servers { "proto h2" } else { "" };
        let text = TEXT
            .replace("BUFSIZE", &BUFSIZE.to_string())
            .replace("RXBUF", &RXBUF_BYTES.to_string())
            .replace("SERVER", server);
        let runtime_config = setups::runtime_config(&text);
        let shared = Arc::new(runtime_config.share(1));
        let mut engine = Engine::new(runtime_config, shared.clone(), 0, random.next());
        let mut driver = SimDriver::new(1, BUFSIZE);
        driver.frame_bytes = FRAME_BYTES_MAX;
        driver.verbose = verbose;
        let (client_speaks, server_speaks) =
            random.pick(&[(false, false), (true, false), (false, true), (true, true)]);
        let habits = Habits {
            client_speaks,
            server_speaks,
            client_pings: random.chance(50),
            server_pings: h2_servers && random.chance(50),
            changes_settings: random.chance(30),
            cancels: random.pick(&[0, 0, 1, 3]),
            late_cancels: random.pick(&[0, 0, 1, 3]),
            requests: random.pick(&[1, 2]),
        };
        let (sock, client) = driver.open();
        let mut first = Vec::new();
        let frames = Frames::new(Connection::client(Limits::default(), &mut first));
        driver.pipes[client].write(&first);
        let address = |text: &str| Addr::Inet(text.parse().expect("an address"));
        let accepted = Accepted {
            listener: ListenerId(0),
            peer: address("10.0.0.1:5000"),
            local: address("10.1.0.1:80"),
        };
        assert!(engine.admit(&mut driver, ListenerId(0)));
        engine.on_accept(&mut driver, sock, accepted);
        let bounds = Bounds {
            bufsize: BUFSIZE,
            client_window: RXBUF_BYTES,
            server_window: RXBUF_BYTES,
            tls: false,
        };
        Life {
            engine,
            driver,
            shared,
            bounds,
            h2_servers,
            habits,
            client,
            frames,
            call: None,
            servers: vec![None],
            got: 0,
            server_got: 0,
            open: Vec::new(),
            faults: Vec::new(),
            ends: false,
            held: Vec::new(),
        }
    }

    /// What the thread has allocated for the engine, and for the peers what does not grow.
    fn live_bytes(&self) -> usize {
        let pipes = self.driver.pipes.capacity() * size_of::<Pipe>();
        let servers = self.servers.capacity() * size_of::<Option<Server>>();
        live_bytes().wrapping_sub(pipes + servers)
    }

    /// A little of everything, then time passes.
    fn step(&mut self) -> Result<(), String> {
        let habits = self.habits;
        let has_call = habits.client_speaks || habits.server_speaks;
        let (got, server_got) = (self.got, self.server_got);
        let mut out = Vec::new();
        if self.call.is_none() && has_call {
            self.call = self.ask("/call", false, &mut out);
        }
        if let (Some(call), true) = (self.call, habits.client_speaks) {
            let codec = &mut self.frames.codec;
            if codec.send_data_head(call, 5, false, &mut out) {
                out.extend_from_slice(b"hello");
            }
        }
        if habits.client_pings {
            self.frames.codec.ping(7, &mut out);
        }
        if habits.changes_settings {
            out.extend_from_slice(b"\0\0\0\x04\0\0\0\0\0");
        }
        for _ in 0..habits.cancels {
            if let Some(stream) = self.ask("/silent", true, &mut out) {
                self.frames.codec.send_reset(stream, Code::CANCEL, &mut out);
            }
        }
        self.send(&out)?;
        let mut late = Vec::new();
        out.clear();
        for _ in 0..habits.late_cancels {
            late.extend(self.ask("/silent", true, &mut out));
        }
        for nth in 0..habits.requests {
            let path = if nth == 0 { "/local" } else { "/answer" };
            let asked = self.ask(path, true, &mut out);
            self.open.extend(asked);
        }
        self.server_speaks();
        self.send(&out)?;
        out.clear();
        for stream in late {
            self.frames.codec.send_reset(stream, Code::CANCEL, &mut out);
        }
        self.send(&out)?;
        if !self.open.is_empty() {
            return Err(format!("no answer on {:?}", self.open));
        }
        // The first words of the call still open it.
        let is_heard = self.got > got || got == 0;
        let is_server_heard = self.server_got > server_got || server_got == 0;
        if habits.server_speaks && !is_heard || habits.client_speaks && !is_server_heard {
            return Err(format!("the call stands still: {habits:?}"));
        }
        self.wait(STEP_MS)
    }

    fn ask(&mut self, path: &str, end: bool, out: &mut Vec<u8>) -> Option<StreamId> {
        let mut head = Head::default();
        assert!(head.set_method(if end { b"GET" } else { b"POST" }));
        head.set_target(path.as_bytes());
        head.append(b"host", b"a");
        let asked = self
            .frames
            .codec
            .send_request(&head, Scheme::Http, 0, end, out);
        if asked.is_none() {
            self.faults.push(format!("no stream for {path}"));
        }
        asked
    }

    /// Servers that have the call speak in it.
    fn server_speaks(&mut self) {
        let habits = self.habits;
        for (pipe, server) in self.driver.pipes.iter_mut().zip(&mut self.servers) {
            match server {
                Some(Server::H1 { has_call: true, .. }) if habits.server_speaks => {
                    pipe.write(b"5\r\nhello\r\n");
                }
                Some(Server::H2 { frames, call }) => {
                    let mut out = Vec::new();
                    if habits.server_pings {
                        frames.codec.ping(8, &mut out);
                    }
                    if let Some(call) = call
                        && habits.server_speaks
                        && frames.codec.send_data_head(*call, 5, false, &mut out)
                    {
                        out.extend_from_slice(b"hello");
                    }
                    if pipe.sock.is_some() && !out.is_empty() {
                        pipe.write(&out);
                    }
                }
                _ => {}
            }
        }
    }

    /// The client sends, and everything happens that follows.
    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.driver.pipes[self.client].write(bytes);
        self.settle()
    }

    fn settle(&mut self) -> Result<(), String> {
        loop {
            let mut any = false;
            for place in 0..self.driver.pipes.len() {
                any |= self.serve(place);
            }
            self.adopt();
            any |= self.act();
            any |= net::Engine::<SimDriver>::has_work(&self.engine);
            self.engine.on_round_end(&mut self.driver);
            self.driver.flush();
            self.driver.logs.clear();
            self.adopt();
            if !any {
                break;
            }
        }
        self.check()
    }

    /// What a driver does with one socket. Whether there was anything.
    fn serve(&mut self, place: usize) -> bool {
        let pipe = &mut self.driver.pipes[place];
        let Some(sock) = pipe.sock else {
            return false;
        };
        if pipe.connecting {
            pipe.connecting = false;
            self.engine.on_connected(&mut self.driver, sock);
        } else if !pipe.paused && !pipe.inbox.is_empty() {
            deliver(&mut self.engine, &mut self.driver, place, usize::MAX);
        } else {
            return false;
        }
        true
    }

    /// Gives the connections that the engine opened their servers.
    fn adopt(&mut self) {
        let Life {
            driver, servers, ..
        } = self;
        servers.resize_with(driver.pipes.len(), || None);
        for (place, (pipe, server)) in driver.pipes.iter_mut().zip(servers).enumerate() {
            if server.is_some() || pipe.sock.is_none() || place == self.client {
                continue;
            }
            *server = Some(if self.h2_servers {
                let mut first = Vec::new();
                let codec = Connection::server(Limits::default(), &mut first);
                pipe.write(&first);
                Server::H2 {
                    frames: Box::new(Frames::new(codec)),
                    call: None,
                }
            } else {
                Server::H1 {
                    came: Vec::new(),
                    has_call: false,
                }
            });
        }
    }

    /// All peers read and answer. Whether there was anything.
    fn act(&mut self) -> bool {
        let Life {
            driver,
            servers,
            frames,
            client,
            call,
            got,
            server_got,
            open,
            faults,
            ..
        } = self;
        let now_ms = driver.now.ms();
        let (mut any, mut bytes) = (false, Vec::new());
        let free = &mut driver.free;
        for (place, pipe) in driver.pipes.iter_mut().enumerate() {
            bytes.clear();
            pipe.outbox.take(pipe.outbox.len(), &mut bytes);
            any |= !bytes.is_empty();
            if bytes.is_empty() && pipe.sock.is_some() {
                continue;
            }
            let mut out = Vec::new();
            let read = match &mut servers[place] {
                _ if place == *client => {
                    frames.read(&bytes, now_ms, &mut out, |codec, event, _, head, out| {
                        let ended = match event {
                            Event::Head { stream, end, .. } if Some(stream) != *call => {
                                if head.status() != 200 {
                                    faults.push(format!("{stream:?} got {}", head.status()));
                                }
                                end.then_some(stream)
                            }
                            Event::Data {
                                stream, range, end, ..
                            } => {
                                codec.consumed(stream, range.len(), out);
                                if Some(stream) == *call {
                                    *got += range.len();
                                }
                                end.then_some(stream)
                            }
                            Event::Reset { stream, code, .. } => {
                                faults.push(format!("{stream:?} ends with {code:?}"));
                                None
                            }
                            Event::Goaway { code, .. } => {
                                faults.push(format!("GOAWAY {code:?}"));
                                None
                            }
                            _ => None,
                        };
                        open.retain(|stream| Some(*stream) != ended);
                    })
                }
                None => Ok(()),
                Some(Server::H1 { came, has_call }) => {
                    came.extend_from_slice(&bytes);
                    answer_h1(came, has_call, server_got, &mut out);
                    Ok(())
                }
                Some(Server::H2 { frames, call }) => frames.read(
                    &bytes,
                    now_ms,
                    &mut out,
                    |codec, event, _, head, out| match event {
                        Event::Head { stream, .. } => answer_h2(codec, stream, head, call, out),
                        Event::Data { stream, range, .. } => {
                            codec.consumed(stream, range.len(), out);
                            *server_got += range.len();
                        }
                        _ => {}
                    },
                ),
            };
            if let Err(error) = read {
                faults.push(format!("#{place}: {error}"));
            }
            if pipe.sock.is_none() {
                // It is over, and leaves no memory behind.
                // One that was closed before it stood had no server yet.
                if place != *client && !free.contains(&place) {
                    servers[place] = None;
                    *pipe = Pipe::default();
                    free.push(place);
                }
            } else if !out.is_empty() {
                any = true;
                pipe.write(&out);
            }
        }
        any
    }

    fn check(&mut self) -> Result<(), String> {
        let told = self.faults.first().filter(|_| !self.ends);
        let fault = told.or(self.driver.faults.first());
        if let Some(fault) = fault {
            return Err(fault.clone());
        }
        self.engine.audit()?;
        let pipes = &self.driver.pipes;
        self.bounds.check(&self.engine, pipes, &mut self.held)
    }

    /// Time passes, with every deadline at its moment.
    fn wait(&mut self, ms: u64) -> Result<(), String> {
        let until_ms = self.driver.now.ms() + ms;
        loop {
            let due_ms = net::Engine::<SimDriver>::next_deadline_ms(&mut self.engine);
            let next_ms = due_ms.map_or(until_ms, |at| at.min(until_ms));
            let now_ms = self.driver.now.ms();
            self.driver.advance_ms(next_ms.saturating_sub(now_ms));
            if due_ms.is_none_or(|at| at > until_ms) {
                return Ok(());
            }
            self.engine.on_timer(&mut self.driver);
            self.settle()?;
        }
    }

    /// Everybody falls silent: the connection ends at its deadline, not before, and leaves nothing.
    fn end(&mut self) -> Result<(), String> {
        if self.call.is_some() {
            // The last step has waited already.
            self.wait(TIMEOUT_MS - STEP_MS - 1)?;
            if self.driver.pipes[self.client].sock.is_none() {
                return Err("the call was cut before its time".into());
            }
        }
        self.ends = true;
        self.wait(10 * TIMEOUT_MS)?;
        for place in 0..self.driver.pipes.len() {
            let pipe = &mut self.driver.pipes[place];
            if let Some(sock) = pipe.sock.filter(|_| place != self.client) {
                pipe.peer_ended = true;
                self.engine.on_eof(&mut self.driver, sock);
            }
        }
        self.settle()?;
        let (streams, left) = (self.engine.streams_in_use(), self.driver.names.len());
        if !self.shared.is_quiet() {
            return Err(format!("a count is left: {:?}", self.shared));
        }
        if streams > 0 || left > 0 {
            return Err(format!("{streams} streams and {left} connections are left"));
        }
        Ok(())
    }
}

/// Answers the requests on a connection of HTTP/1. All that follows the call's head is its body.
fn answer_h1(came: &mut Vec<u8>, has_call: &mut bool, got: &mut usize, out: &mut Vec<u8>) {
    while !*has_call {
        let Some(at) = came.windows(4).position(|window| window == b"\r\n\r\n") else {
            return;
        };
        let head: Vec<u8> = came.drain(..at + 4).collect();
        if head.starts_with(b"POST /call ") {
            *has_call = true;
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        } else if head.starts_with(b"GET /answer ") {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    }
    *got += came.len();
    came.clear();
}

fn answer_h2(
    codec: &mut Connection,
    stream: StreamId,
    asked: &Head,
    call: &mut Option<StreamId>,
    out: &mut Vec<u8>,
) {
    let mut head = Head::default();
    head.set_status(200, b"OK");
    if asked.target().ends_with(b"/call") {
        *call = Some(stream);
        codec.send_response(stream, &head, false, out);
    } else if asked.target().ends_with(b"/answer") {
        head.set_framing(Framing::Length(0));
        codec.send_response(stream, &head, true, out);
    }
}
