//! The epoll driver: one a worker, edge-triggered, each descriptor registered once.
//!
//! A connection is read as far as its data goes: a short read means that the socket is drained and the kernel will
//! report the next bytes as a new edge. A connection that was paused, or had its turn, with bytes left is kept in a
//! ready list and served before the next wait.

mod asked;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::Addr;
use crate::boundary::{
    Accepted, Close, ConnId, Connect, ConnectError, Driver, Engine, Labels, ListenerId, Now, Sent,
};
use crate::logs::{Dropped, LogSink};
use crate::slots::Slots;
use crate::stopwatch::Stopwatch;
use crate::sys::{self, Accept, Events, Io};

/// The receive buffer of a thread. Large bodies cost the fewer system calls the larger it is, up to the second
/// level cache; untouched pages cost nothing.
pub const RECEIVE_BUFFER_BYTES: usize = 256 << 10;
/// Events of one wait.
const EVENTS_MAX: usize = 256;
/// Full reads of one connection before the others have their turn.
const READS_A_TURN_MAX: u32 = 4;
/// Messages up to this long leave at the end of the round, together with those of the other connections: the kernel's
/// send path stays in the cache, and whoever is woken by them finds more than one. Longer ones leave at once.
const DEFER_BYTES_MAX: usize = 4 << 10;
/// Messages gathered before they leave within a round, so that the first of a large one does not wait for the last.
const DEFER_CONNS_MAX: usize = 32;
/// How long the last bytes of a closed connection may wait for a peer that does not read.
const ORPHAN_MS: u64 = 10_000;
/// Connections accepted from one listener before the others have their turn, where nothing else is asked for.
pub const ACCEPTS_A_TURN_DEFAULT: u32 = 64;
/// Unread input thrown away at a close, so that the peer sees FIN after our last bytes and not RST.
const DISCARD_BYTES_MAX: usize = 1 << 20;
/// Pause of accepting when descriptors are exhausted.
const EXHAUSTED_PAUSE_MS: u64 = 100;

const TOKEN_SPECIAL: u64 = (u32::MAX as u64) << 32;
const TOKEN_WAKE: u64 = u64::MAX;
const CONN_BITS: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// A listener as the driver serves it.
#[derive(Debug)]
pub struct Listener {
    /// Its socket, listening and non-blocking. It closes with its last holder.
    pub fd: Arc<OwnedFd>,
    /// Its name for the engine.
    pub id: ListenerId,
    /// The address it was bound to; connections to a wildcard ask for their own.
    pub local: Addr,
    /// Other workers accept from the same socket.
    pub shared: bool,
}

/// How a driver is set up.
#[derive(Debug)]
pub struct Setup {
    /// Listeners of this worker.
    pub listeners: Vec<Listener>,
    /// Log targets, in the engine's numbering.
    pub logs: Vec<LogSink>,
    /// Counter of dropped log messages.
    pub dropped: Arc<Dropped>,
    /// Rung by whoever sends a message.
    pub wake: Arc<OwnedFd>,
    /// Rung to wake the other workers.
    pub peers: Vec<Arc<OwnedFd>>,
    /// Most connections of this worker.
    pub conns_max: usize,
    /// Connections accepted from one listener before the others have their turn.
    pub accepts_a_turn_max: u32,
    /// `SO_SNDBUF`/`SO_RCVBUF` of client sockets, then of server sockets; none leaves the kernel's.
    pub buffers: SocketBuffers,
    /// The engine asks for times within a round ([`crate::Driver::clock`]).
    pub measures: bool,
}

/// Kernel buffer sizes (`tune.rcvbuf.*`, `tune.sndbuf.*`), bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SocketBuffers {
    /// Receive buffer of client connections.
    pub client_receive: Option<i32>,
    /// Send buffer of client connections.
    pub client_send: Option<i32>,
    /// Receive buffer of server connections.
    pub server_receive: Option<i32>,
    /// Send buffer of server connections.
    pub server_send: Option<i32>,
}

/// See the module.
#[derive(Debug)]
pub struct EpollDriver {
    epoll: sys::Epoll,
    conns: Slots<Conn>,
    ready: Vec<ConnId>,
    listeners: Vec<ListenerState>,
    logs: Vec<LogSink>,
    dropped: Arc<Dropped>,
    wake: Arc<OwnedFd>,
    peers: Vec<Arc<OwnedFd>>,
    conns_max: usize,
    accepts_a_turn_max: u32,
    buffers: SocketBuffers,
    now: Now,
    stopwatch: Stopwatch,
    retry_accept_ms: Option<u64>,
    /// Connections with a message for the end of the round, and the bytes of those.
    outbox: Vec<PutOff>,
    out: Vec<u8>,
    /// Closed connections whose last bytes the kernel did not take yet, by the moment they are given up.
    orphans: VecDeque<(u64, ConnId)>,
    thread_cpu: asked::CpuMeter,
    process_cpu: asked::CpuMeter,
}

#[derive(Debug)]
struct ListenerState {
    /// None once it was closed for good.
    fd: Option<Arc<OwnedFd>>,
    id: ListenerId,
    local: Addr,
    shared: bool,
    wildcard: bool,
    wanted: bool,
    armed: bool,
    /// Takes what waits at the end of this round, then goes.
    closing: bool,
}

#[derive(Debug)]
struct Conn {
    fd: OwnedFd,
    /// What the kernel did not take.
    backlog: Option<Box<Backlog>>,
    /// It has a message in the outbox: the place there, from 1.
    put_off: u32,
    /// The engine has closed it; only its last bytes remain.
    orphan: bool,
    connecting: bool,
    paused: bool,
    /// The kernel may hold unread bytes or an unread end.
    unread: bool,
    /// The peer's end was delivered.
    ended: bool,
    /// In the ready list.
    queued: bool,
    /// A FIN follows the backlog.
    shutdown: bool,
    /// Died while the engine was running; told from the loop.
    dead: Option<Close>,
}

/// A message in `out` for the end of the round.
#[derive(Debug)]
struct PutOff {
    conn: ConnId,
    from: u32,
    to: u32,
}

/// The unsent tail of a message; boxed, so that it costs an idle connection one word.
#[derive(Debug)]
struct Backlog {
    bytes: Vec<u8>,
    sent: usize,
}

impl EpollDriver {
    /// # Errors
    /// The kernel refuses an epoll instance or a registration.
    pub fn new(setup: Setup) -> io::Result<Self> {
        let epoll = sys::Epoll::new()?;
        epoll.add(setup.wake.as_raw_fd(), libc::EPOLLIN as u32, TOKEN_WAKE)?;
        let now = sys::now();
        let mut driver = EpollDriver {
            epoll,
            conns: Slots::default(),
            ready: Vec::new(),
            listeners: Vec::new(),
            logs: setup.logs,
            dropped: setup.dropped,
            wake: setup.wake,
            peers: setup.peers,
            conns_max: setup.conns_max,
            accepts_a_turn_max: setup.accepts_a_turn_max.max(1),
            buffers: setup.buffers,
            now,
            stopwatch: Stopwatch::new(setup.measures),
            retry_accept_ms: None,
            outbox: Vec::new(),
            out: Vec::new(),
            orphans: VecDeque::new(),
            thread_cpu: asked::CpuMeter::new(now, 0),
            process_cpu: asked::CpuMeter::new(now, sys::process_cpu_ns()),
        };
        for listener in setup.listeners {
            let wildcard = sys::is_wildcard(&listener.local);
            driver.listeners.push(ListenerState {
                fd: Some(listener.fd),
                id: listener.id,
                local: listener.local,
                shared: listener.shared,
                wildcard,
                wanted: true,
                armed: false,
                closing: false,
            });
        }
        driver.arm_listeners();
        Ok(driver)
    }

    /// Serves until the engine has nothing left to do after a message told it to stop.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn run<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        messages: &Receiver<E::Message>,
    ) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; RECEIVE_BUFFER_BYTES];
        let mut turn = Vec::new();
        while !engine.is_finished() {
            let timeout_ms = self.wait_ms(engine);
            let count = self.epoll.wait(&mut events, timeout_ms)?;
            self.now = self.stopwatch.start();
            if self.retry_accept_ms.is_some_and(|at| self.now.ms() >= at) {
                self.retry_accept_ms = None;
                self.arm_listeners();
            }
            for index in 0..count {
                let event = events.get(index);
                match event.token {
                    TOKEN_WAKE => {
                        sys::eventfd_reset(self.wake.as_raw_fd());
                        while let Ok(message) = messages.try_recv() {
                            engine.on_message(self, message);
                        }
                    }
                    token if token >= TOKEN_SPECIAL => {
                        let most = self.accepts_a_turn_max;
                        self.accept(engine, (token & 0xffff_ffff) as usize, most, &mut buffer);
                    }
                    token => {
                        let conn = ConnId {
                            slot: token as u32,
                            generation: (token >> 32) as u32,
                        };
                        self.event(engine, conn, event.bits, &mut buffer);
                    }
                }
            }
            std::mem::swap(&mut turn, &mut self.ready);
            for conn in turn.drain(..) {
                if let Some(entry) = self.conns.get_mut(conn) {
                    entry.queued = false;
                    self.serve(engine, conn, &mut buffer);
                }
            }
            if engine
                .next_deadline_ms()
                .is_some_and(|at| at <= self.now.ms())
            {
                engine.on_timer(self);
            }
            self.close_listeners(engine, &mut buffer);
            engine.on_round_end(self);
            self.flush();
            self.bury_orphans();
            for log in &mut self.logs {
                log.flush(&self.dropped);
            }
        }
        Ok(())
    }

    fn wait_ms<E: Engine<Self>>(&mut self, engine: &mut E) -> i32 {
        if !self.ready.is_empty() {
            return 0;
        }
        let orphan = self.orphans.front().map(|(at, _)| *at);
        let moments = [engine.next_deadline_ms(), self.retry_accept_ms, orphan];
        let Some(next) = moments.into_iter().flatten().min() else {
            return -1;
        };
        i32::try_from(next.saturating_sub(self.now.ms())).unwrap_or(i32::MAX)
    }

    fn event<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        conn: ConnId,
        bits: u32,
        buffer: &mut [u8],
    ) {
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        if entry.orphan {
            return self.orphan_event(conn, bits);
        }
        let has = |bit: i32| bits & bit as u32 != 0;
        if entry.connecting {
            if !has(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) {
                return;
            }
            entry.connecting = false;
            if has(libc::EPOLLERR | libc::EPOLLHUP) && sys::pending_error(entry.fd.as_raw_fd()) != 0
            {
                self.die(engine, conn, Close::Refused);
                return;
            }
            engine.on_connected(self, conn);
        } else if has(libc::EPOLLOUT) && entry.backlog.is_some() {
            self.drain(engine, conn);
        }
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        if has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) {
            entry.unread = true;
            let hang_up = has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
            // A paused or half-dead connection must still learn that its peer is gone for good.
            if (entry.paused || entry.ended) && has(libc::EPOLLERR | libc::EPOLLHUP) {
                let code = sys::pending_error(entry.fd.as_raw_fd());
                if code != 0 || entry.ended {
                    self.die(engine, conn, Close::Reset);
                    return;
                }
            }
            self.read(engine, conn, buffer, hang_up);
        }
        self.bury(engine, conn);
    }

    /// What a connection of the ready list waits for: its death told, its connection told, or its bytes read.
    fn serve<E: Engine<Self>>(&mut self, engine: &mut E, conn: ConnId, buffer: &mut [u8]) {
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        if entry.orphan {
            return; // nobody is to be told anything of it
        }
        if entry.dead.is_none() && entry.connecting {
            entry.connecting = false;
            engine.on_connected(self, conn);
        } else if entry.dead.is_none() && entry.unread {
            self.read(engine, conn, buffer, true);
        }
        self.bury(engine, conn);
    }

    /// Reads what is there. With `to_end` a short read does not mean drained: the peer's end is behind it.
    fn read<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        conn: ConnId,
        buffer: &mut [u8],
        to_end: bool,
    ) {
        for _ in 0..READS_A_TURN_MAX {
            let Some(entry) = self.conns.get_mut(conn) else {
                return;
            };
            if entry.paused || entry.ended || entry.dead.is_some() {
                return;
            }
            match sys::recv(entry.fd.as_raw_fd(), buffer) {
                Io::Done(0) => {
                    entry.unread = false;
                    entry.ended = true;
                    engine.on_eof(self, conn);
                    return;
                }
                Io::Done(bytes) => {
                    let drained = bytes < buffer.len() && !to_end;
                    if drained {
                        entry.unread = false;
                    }
                    engine.on_data(self, conn, &buffer[..bytes]);
                    if drained {
                        return;
                    }
                }
                Io::WouldBlock => {
                    entry.unread = false;
                    return;
                }
                Io::Failed(_) => {
                    self.die(engine, conn, Close::Reset);
                    return;
                }
            }
        }
        self.make_ready(conn);
    }

    fn drain<E: Engine<Self>>(&mut self, engine: &mut E, conn: ConnId) {
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        let Some(mut backlog) = entry.backlog.take() else {
            return;
        };
        let rest = &backlog.bytes[backlog.sent..];
        match sys::send(entry.fd.as_raw_fd(), rest, &[]) {
            Io::Done(bytes) if bytes == rest.len() => {
                if entry.shutdown {
                    sys::shutdown_write(entry.fd.as_raw_fd());
                }
                engine.on_drained(self, conn);
            }
            Io::Done(bytes) => {
                backlog.sent += bytes;
                entry.backlog = Some(backlog);
            }
            Io::WouldBlock => entry.backlog = Some(backlog),
            Io::Failed(_) => self.die(engine, conn, Close::Reset),
        }
    }

    /// Sends what was put off for the end of the round.
    fn flush(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        let out = std::mem::take(&mut self.out);
        for (place, message) in (1..).zip(&outbox) {
            let Some(entry) = self.conns.get_mut(message.conn) else {
                continue;
            };
            if entry.put_off != place {
                continue; // it left before its turn; a later one may wait
            }
            entry.put_off = 0;
            let bytes = &out[message.from as usize..message.to as usize];
            let sent = sys::send(entry.fd.as_raw_fd(), bytes, &[]);
            if sent != Io::Done(bytes.len()) {
                self.not_all(message.conn, sent, bytes, &[]);
            }
        }
        outbox.clear();
        self.outbox = outbox;
        self.out = out;
        self.out.clear();
    }

    /// Sends what one connection put off. Its place in the outbox then finds nothing more to send.
    fn flush_conn(&mut self, conn: ConnId) -> Sent {
        let Some(entry) = self.conns.get_mut(conn) else {
            return Sent::Dead;
        };
        let place = std::mem::take(&mut entry.put_off);
        let Some(message) = self.outbox.get((place as usize).wrapping_sub(1)) else {
            return Sent::All;
        };
        let (from, to) = (message.from as usize, message.to as usize);
        let out = std::mem::take(&mut self.out);
        let sent = self.send_now(conn, &out[from..to], &[]);
        self.out = out;
        sent
    }

    /// Sends now; what the kernel does not take becomes the backlog.
    fn send_now(&mut self, conn: ConnId, head: &[u8], body: &[u8]) -> Sent {
        let Some(entry) = self.conns.get_mut(conn) else {
            return Sent::Dead;
        };
        match sys::send(entry.fd.as_raw_fd(), head, body) {
            Io::Done(bytes) if bytes == head.len() + body.len() => Sent::All,
            sent => self.not_all(conn, sent, head, body),
        }
    }

    #[cold]
    fn not_all(&mut self, conn: ConnId, sent: Io, head: &[u8], body: &[u8]) -> Sent {
        let Some(entry) = self.conns.get_mut(conn) else {
            return Sent::Dead;
        };
        let sent = match sent {
            Io::Done(bytes) => bytes,
            Io::WouldBlock => 0,
            Io::Failed(_) => {
                entry.dead = Some(Close::Reset);
                self.make_ready(conn);
                return Sent::Dead;
            }
        };
        let mut bytes = Vec::with_capacity(head.len() + body.len() - sent);
        bytes.extend_from_slice(&head[sent.min(head.len())..]);
        bytes.extend_from_slice(&body[sent.saturating_sub(head.len())..]);
        entry.backlog = Some(Box::new(Backlog { bytes, sent: 0 }));
        Sent::Backlog
    }

    /// The engine closed a connection whose last bytes, put off and so taken for sent, the kernel did not take.
    fn orphan(&mut self, conn: ConnId) {
        if let Some(entry) = self.conns.get_mut(conn) {
            entry.orphan = true;
            self.orphans.push_back((self.now.ms() + ORPHAN_MS, conn));
        }
    }

    fn orphan_event(&mut self, conn: ConnId, bits: u32) {
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        let Some(backlog) = &mut entry.backlog else {
            return;
        };
        let over = bits & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0
            || match sys::send(entry.fd.as_raw_fd(), &backlog.bytes[backlog.sent..], &[]) {
                Io::Done(bytes) => {
                    backlog.sent += bytes;
                    backlog.sent == backlog.bytes.len()
                }
                Io::WouldBlock => false,
                Io::Failed(_) => true,
            };
        if over && let Some(entry) = self.conns.remove(conn) {
            sys::discard_input(entry.fd.as_raw_fd(), DISCARD_BYTES_MAX);
        }
    }

    fn bury_orphans(&mut self) {
        while let Some((at, conn)) = self.orphans.front().copied()
            && (at <= self.now.ms() || self.conns.get_mut(conn).is_none())
        {
            self.orphans.pop_front();
            self.conns.remove(conn);
        }
    }

    fn die<E: Engine<Self>>(&mut self, engine: &mut E, conn: ConnId, why: Close) {
        if self.conns.remove(conn).is_some() {
            engine.on_close(self, conn, why);
        }
    }

    /// Tells the engine of a connection that died in one of its own sends.
    fn bury<E: Engine<Self>>(&mut self, engine: &mut E, conn: ConnId) {
        if let Some(why) = self.conns.get_mut(conn).and_then(|entry| entry.dead) {
            self.die(engine, conn, why);
        }
    }

    fn make_ready(&mut self, conn: ConnId) {
        if let Some(entry) = self.conns.get_mut(conn)
            && !entry.queued
        {
            entry.queued = true;
            self.ready.push(conn);
        }
    }

    /// Takes connections, up to so many; whether none waits any more.
    fn accept<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        index: usize,
        most: u32,
        buffer: &mut [u8],
    ) -> bool {
        for _ in 0..most {
            let state = &self.listeners[index];
            if !state.wanted || (!state.armed && !state.closing) {
                return false;
            }
            if self.conns.len() >= self.conns_max {
                self.pause_accepting();
                return false;
            }
            let Some(listener) = &state.fd else {
                return true;
            };
            match sys::accept(listener.as_raw_fd()) {
                Accept::Conn(fd, peer) => {
                    let local = if state.wildcard {
                        sys::local_addr(fd.as_raw_fd()).unwrap_or_else(|_| state.local.clone())
                    } else {
                        state.local.clone()
                    };
                    let accepted = Accepted {
                        listener: state.id,
                        peer,
                        local,
                    };
                    self.set_buffers(
                        fd.as_raw_fd(),
                        self.buffers.client_receive,
                        self.buffers.client_send,
                    );
                    let Some(conn) = self.adopt(fd, false) else {
                        continue;
                    };
                    engine.on_accept(self, conn, accepted);
                    // The first bytes are usually here already: saves a round.
                    if let Some(entry) = self.conns.get_mut(conn) {
                        entry.unread = true;
                        self.read(engine, conn, buffer, false);
                    }
                    self.bury(engine, conn);
                }
                Accept::WouldBlock => return true,
                Accept::Failed => {}
                Accept::Exhausted => {
                    self.pause_accepting();
                    return false;
                }
            }
        }
        false
    }

    /// Takes the connections that wait on listeners to be closed, so that none of them is reset, and closes those. One that
    /// has to pause meanwhile goes on in a later round.
    fn close_listeners<E: Engine<Self>>(&mut self, engine: &mut E, buffer: &mut [u8]) {
        let most = self.accepts_a_turn_max;
        for index in 0..self.listeners.len() {
            if !self.listeners[index].closing || !self.accept(engine, index, most, buffer) {
                continue;
            }
            let state = &mut self.listeners[index];
            state.closing = false;
            state.armed = false;
            if let Some(fd) = state.fd.take() {
                // An inherited socket stays open elsewhere: closing this descriptor would leave it registered.
                self.epoll.remove(fd.as_raw_fd());
            }
        }
    }

    fn pause_accepting(&mut self) {
        for state in &mut self.listeners {
            if state.armed {
                state.armed = false;
                if let Some(fd) = &state.fd {
                    self.epoll.remove(fd.as_raw_fd());
                }
            }
        }
        self.retry_accept_ms = Some(self.now.ms() + EXHAUSTED_PAUSE_MS);
    }

    fn arm_listeners(&mut self) {
        if self.retry_accept_ms.is_some() {
            return;
        }
        for (index, state) in self.listeners.iter_mut().enumerate() {
            if state.wanted == state.armed {
                continue;
            }
            let Some(fd) = state.fd.as_ref().map(AsRawFd::as_raw_fd) else {
                continue;
            };
            if state.wanted {
                let bits = libc::EPOLLIN
                    | if state.shared {
                        libc::EPOLLEXCLUSIVE
                    } else {
                        0
                    };
                state.armed = self
                    .epoll
                    .add(fd, bits as u32, TOKEN_SPECIAL | index as u64)
                    .is_ok();
            } else {
                self.epoll.remove(fd);
                state.armed = false;
            }
        }
    }

    fn adopt(&mut self, fd: OwnedFd, connecting: bool) -> Option<ConnId> {
        let raw = fd.as_raw_fd();
        let conn = self.conns.insert(Conn {
            fd,
            backlog: None,
            put_off: 0,
            orphan: false,
            connecting,
            paused: false,
            unread: false,
            ended: false,
            queued: false,
            shutdown: false,
            dead: None,
        });
        let token = u64::from(conn.generation) << 32 | u64::from(conn.slot);
        if self.epoll.add(raw, CONN_BITS, token).is_err() {
            self.conns.remove(conn);
            return None;
        }
        Some(conn)
    }

    fn set_buffers(&self, fd: RawFd, receive: Option<i32>, send: Option<i32>) {
        // A size the kernel refuses leaves its own, as everywhere.
        if let Some(bytes) = receive {
            let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes);
        }
        if let Some(bytes) = send {
            let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes);
        }
    }

    fn open(&mut self, connect: &Connect<'_>) -> io::Result<(OwnedFd, bool)> {
        let fd = sys::stream_socket(connect.to)?;
        let raw = fd.as_raw_fd();
        if !connect.to.is_unix() {
            sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
            if connect.keepalive {
                sys::set_option(raw, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
            }
        }
        self.set_buffers(raw, self.buffers.server_receive, self.buffers.server_send);
        sys::label(raw, connect.labels);
        if let Some(interface) = connect.interface {
            sys::bind_to_interface(raw, interface)?;
        }
        if let Some(from) = connect.from {
            sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
            if from.port() == 0 {
                // Lets the kernel pick the port at connect time, per destination.
                let _ = sys::set_option(raw, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            }
            sys::bind(&fd, from)?;
        }
        let standing = sys::connect(raw, connect.to)?;
        Ok((fd, standing))
    }
}

impl Driver for EpollDriver {
    fn now(&self) -> Now {
        self.now
    }

    fn clock(&self) -> Now {
        self.stopwatch.now()
    }

    fn send(&mut self, conn: ConnId, head: &[u8], body: &[u8]) -> Sent {
        let Some(entry) = self.conns.get_mut(conn) else {
            return Sent::Dead;
        };
        if entry.dead.is_some() {
            return Sent::Dead;
        }
        if let Some(backlog) = &mut entry.backlog {
            backlog.bytes.extend_from_slice(head);
            backlog.bytes.extend_from_slice(body);
            return Sent::Backlog;
        }
        if entry.put_off == 0 && head.len() + body.len() <= DEFER_BYTES_MAX {
            let from = self.out.len() as u32;
            self.out.extend_from_slice(head);
            self.out.extend_from_slice(body);
            let to = self.out.len() as u32;
            self.outbox.push(PutOff { conn, from, to });
            entry.put_off = self.outbox.len() as u32;
            if self.outbox.len() >= DEFER_CONNS_MAX {
                self.flush();
            }
            return Sent::All;
        }
        match self.flush_conn(conn) {
            Sent::All => self.send_now(conn, head, body),
            // What waited was not taken whole: this goes behind it.
            Sent::Backlog => self.send(conn, head, body),
            Sent::Dead => Sent::Dead,
        }
    }

    fn connect(&mut self, connect: &Connect<'_>) -> Result<ConnId, ConnectError> {
        if self.conns.len() >= self.conns_max {
            return Err(ConnectError::Resource);
        }
        let (fd, standing) = self
            .open(connect)
            .map_err(|error| match error.raw_os_error() {
                Some(
                    libc::ECONNREFUSED
                    | libc::ENETUNREACH
                    | libc::EHOSTUNREACH
                    | libc::ENOENT
                    | libc::ECONNRESET,
                ) => ConnectError::Refused,
                _ => ConnectError::Resource,
            })?;
        let conn = self.adopt(fd, true).ok_or(ConnectError::Resource)?;
        if standing {
            self.make_ready(conn);
        }
        Ok(conn)
    }

    fn shutdown(&mut self, conn: ConnId) {
        self.flush_conn(conn);
        if let Some(entry) = self.conns.get_mut(conn) {
            entry.shutdown = true;
            if entry.backlog.is_none() {
                sys::shutdown_write(entry.fd.as_raw_fd());
            }
        }
    }

    fn close(&mut self, conn: ConnId) {
        if self.flush_conn(conn) == Sent::Backlog {
            return self.orphan(conn);
        }
        if let Some(entry) = self.conns.remove(conn)
            && (entry.unread || entry.paused)
        {
            sys::discard_input(entry.fd.as_raw_fd(), DISCARD_BYTES_MAX);
        }
    }

    fn abort(&mut self, conn: ConnId) {
        self.flush_conn(conn);
        if let Some(entry) = self.conns.remove(conn) {
            sys::set_linger_zero(entry.fd.as_raw_fd());
        }
    }

    fn vanish(&mut self, conn: ConnId, rst_ttl: Option<u8>) {
        if let Some(entry) = self.conns.remove(conn) {
            sys::silence(entry.fd.as_raw_fd(), rst_ttl);
        }
    }

    fn label(&mut self, conn: ConnId, labels: Labels) {
        if let Some(entry) = self.conns.get_mut(conn) {
            sys::label(entry.fd.as_raw_fd(), labels);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        if let Some(entry) = self.conns.get_mut(conn) {
            entry.paused = true;
        }
    }

    fn resume(&mut self, conn: ConnId) {
        let Some(entry) = self.conns.get_mut(conn) else {
            return;
        };
        if std::mem::take(&mut entry.paused) && entry.unread {
            self.make_ready(conn);
        }
    }

    fn accepting(&mut self, listener: ListenerId, on: bool) {
        for state in &mut self.listeners {
            if state.id == listener {
                state.wanted = on;
            }
        }
        self.arm_listeners();
    }

    fn unlisten(&mut self, listener: ListenerId) {
        for state in &mut self.listeners {
            if state.id == listener {
                state.closing = true;
            }
        }
    }

    fn wake_peers(&mut self) {
        for peer in &self.peers {
            sys::eventfd_ring(peer.as_raw_fd());
        }
    }

    fn log(&mut self, target: usize, message: &[u8]) {
        self.logs[target].push(message, &self.dropped);
    }
}
