//! The epoll driver: one per worker, edge-triggered, each descriptor registered once.
//!
//! A socket is read until a short read, which means that the socket is drained and that the kernel
//! reports the next bytes as a new edge. A socket that was paused, or had its turn, with bytes left
//! is kept in a list and served in the next round. Bulk data has a list of its own, and a round
//! reads a bounded number of its bytes. `read` receives, `send` sends, `listeners` accepts,
//! `datagrams` does both for datagram sockets.

mod asked;
mod datagram_queue;
mod datagrams;
mod listeners;
mod read;
mod send;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::activity::Activity;
use crate::boundary::{
    Close, Connect, ConnectError, DatagramSock, Driver, Engine, Labels, ListenerId, Message, Now,
    Parcel, Sent, SockId, WorkerId,
};
use crate::logs::{Dropped, LogSink};
use crate::slots::Slots;
use crate::stopwatch::Stopwatch;
use crate::sys::{self, Events};
use crate::tcp;
use crate::{Addr, Outgoing};

pub use datagram_queue::DATAGRAM_QUEUE_BYTES_MAX;
pub use listeners::ACCEPTS_A_TURN_DEFAULT;
pub use read::RECEIVE_BUFFER_BYTES;

/// The most events of one wait.
const EVENTS_MAX: usize = 256;
/// Bulk data that is read in a round: what a small message may have to wait for.
const BULK_BYTES_A_ROUND: usize = 256 << 10;
/// The most unread input discarded at a close, so that the peer sees a FIN after our last bytes
/// instead of a RST.
const DISCARD_BYTES_MAX: usize = 1 << 20;

const TOKEN_SPECIAL: u64 = (u32::MAX as u64) << 32;
/// Events of datagram sockets: with their place.
const TOKEN_DATAGRAMS: u64 = TOKEN_SPECIAL | 1 << 31;
const TOKEN_WAKE: u64 = u64::MAX;
const SOCK_BITS: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// A listener as the driver serves it.
#[derive(Debug)]
pub struct Listener {
    /// The listening, non-blocking socket, or a datagram socket of
    /// [`crate::listen::open_datagram`]. It closes when its last holder drops it.
    pub fd: Arc<OwnedFd>,
    /// Its name for the engine.
    pub id: ListenerId,
    /// The address it was bound to.
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
    /// Receives what this worker does.
    pub activity: Arc<Activity>,
    /// By worker: the eventfd that wakes it.
    pub wakes: Vec<Arc<OwnedFd>>,
    /// The index of this worker in `wakes`.
    pub worker: WorkerId,
    /// Connections accepted from one listener before others get their turn.
    pub accepts_a_turn_max: u32,
    /// Size of the engine's buffers (`tune.bufsize`), bytes. [`Driver::read_bytes`] derives from
    /// it.
    pub buffer_bytes: usize,
    /// `SO_SNDBUF`/`SO_RCVBUF` of client sockets and server sockets; `None` keeps the kernel's
    /// value.
    pub buffers: SocketBuffers,
    /// The engine reads the time within a round ([`crate::Driver::clock`]).
    pub measures: bool,
    /// The engine needs the local address of each connection when its listener has a wildcard
    /// address.
    pub local_addrs: bool,
    /// Delivers what is added later. Whoever adds something wakes the worker.
    pub more: Receiver<More>,
}

/// What a driver serves besides what it was set up with.
#[derive(Debug, Default)]
pub struct More {
    /// Further listeners of this worker.
    pub listeners: Vec<Listener>,
    /// Further log targets; they follow the known ones in the engine's numbering.
    pub logs: Vec<LogSink>,
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
    /// Receive buffer of UDP sockets to servers.
    pub server_datagrams_receive: Option<i32>,
    /// Send buffer of UDP sockets to servers.
    pub server_datagrams_send: Option<i32>,
}

/// The epoll driver of one worker.
#[derive(Debug)]
pub struct EpollDriver {
    epoll: sys::Epoll,
    socks: Slots<Sock>,
    /// Sockets to serve without waiting for an event.
    ready: VecDeque<SockId>,
    /// Sockets with bulk data.
    bulk: VecDeque<SockId>,
    listeners: listeners::Listeners,
    datagrams: datagrams::DatagramSockets,
    logs: Vec<LogSink>,
    dropped: Arc<Dropped>,
    activity: Arc<Activity>,
    wakes: Vec<Arc<OwnedFd>>,
    worker: WorkerId,
    read_bytes: usize,
    buffers: SocketBuffers,
    local_addrs: bool,
    more: Receiver<More>,
    now: Now,
    /// [`Now::ms`] of it.
    now_ms: u64,
    stopwatch: Stopwatch,
    outbox: send::Outbox,
    /// Closed sockets with bytes that the kernel did not take yet, ordered by the time when they
    /// are given up.
    orphans: VecDeque<send::Orphan>,
    thread_cpu: asked::CpuMeter,
    process_cpu: asked::CpuMeter,
}

#[derive(Debug)]
struct Sock {
    fd: OwnedFd,
    /// What the kernel did not take; boxed, so that an idle socket spends one word on it.
    queue: Option<Box<send::Queue>>,
    /// The socket's messages in the outbox.
    put_off: send::PutOff,
    /// Bytes of this socket that the engine holds, as last reported.
    held: u32,
    /// Bytes that the next read looks at without taking them; 0 for an ordinary read.
    window: u32,
    /// The last read was full: more data is likely to follow.
    was_full: bool,
    /// Data may be peeked at before it is taken (TCP).
    peeks: bool,
    /// The kernel did not take everything, and the engine waits for progress.
    blocked: bool,
    connecting: bool,
    paused: bool,
    /// The kernel may hold unread bytes or an unread end.
    unread: bool,
    /// The kernel has reported the peer's end or an error, which follows the unread bytes.
    hung_up: bool,
    /// The end of the peer's data was delivered.
    ended: bool,
    /// The socket is in the ready list.
    queued: bool,
    /// A FIN follows the queue.
    shutdown: bool,
    /// The engine has closed the socket; only its last bytes remain.
    orphan: bool,
    /// A send failed: nothing more leaves. The loop reports this to the engine.
    broken: bool,
    /// The failed send was reported.
    broken_told: bool,
}

/// A socket that moves from one driver to another.
#[derive(Debug)]
struct GivenUp {
    fd: OwnedFd,
    peeks: bool,
}

impl Sock {
    /// Whether this driver holds nothing of the socket except its descriptor.
    fn is_quiet(&self) -> bool {
        let has_output = self.queue.is_some() || self.put_off != send::PutOff::NOTHING;
        let has_input = self.held > 0 || self.unread || self.paused || self.ended;
        let is_ending = self.shutdown || self.orphan || self.broken;
        !has_output && !has_input && !is_ending && !self.connecting && !self.queued
    }
}

impl EpollDriver {
    /// # Errors
    /// The kernel refuses an epoll instance or a registration.
    pub fn new(mut setup: Setup) -> io::Result<Self> {
        let epoll = sys::Epoll::new()?;
        let wake = setup.wakes[setup.worker.0 as usize].as_raw_fd();
        epoll.add(wake, libc::EPOLLIN as u32, TOKEN_WAKE)?;
        let now = sys::now();
        let mut datagrams = datagrams::DatagramSockets::default();
        datagrams.add(&epoll, &mut setup.listeners);
        let listeners = listeners::Listeners::new(setup.listeners, setup.accepts_a_turn_max);
        let mut driver = EpollDriver {
            epoll,
            socks: Slots::default(),
            ready: VecDeque::new(),
            bulk: VecDeque::new(),
            listeners,
            datagrams,
            logs: setup.logs,
            dropped: setup.dropped,
            activity: setup.activity,
            wakes: setup.wakes,
            worker: setup.worker,
            // A body of one buffer and the head before it arrive in one read.
            read_bytes: setup.buffer_bytes + setup.buffer_bytes / 4,
            buffers: setup.buffers,
            local_addrs: setup.local_addrs,
            more: setup.more,
            now,
            now_ms: now.ms(),
            stopwatch: Stopwatch::new(setup.measures),
            outbox: send::Outbox::default(),
            orphans: VecDeque::new(),
            thread_cpu: asked::CpuMeter::new(now, 0),
            process_cpu: asked::CpuMeter::new(now, sys::process_cpu_ns()),
        };
        driver.listeners.arm(&driver.epoll);
        Ok(driver)
    }

    fn add(&mut self, mut more: More) {
        self.logs.extend(more.logs);
        self.datagrams.add(&self.epoll, &mut more.listeners);
        self.listeners.add(more.listeners);
        self.listeners.arm(&self.epoll);
    }

    /// This round's time, from now on.
    fn set_now(&mut self, now: Now) {
        self.now = now;
        self.now_ms = now.ms();
    }

    /// Serves until an order told the engine to stop and no work is left.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn run<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        orders: &Receiver<E::Order>,
    ) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; RECEIVE_BUFFER_BYTES.max(self.read_bytes)];
        self.activity.begin(self.now);
        while !engine.is_finished(self.listeners.are_closing() || self.datagrams.are_closing()) {
            let deadline_ms = engine.next_deadline_ms();
            let timeout_ms = self.wait_ms(engine, deadline_ms);
            let count = self.epoll.wait(&mut events, timeout_ms)?;
            let now = self.stopwatch.start();
            self.set_now(now);
            self.activity.begin_round(count, now);
            self.listeners.end_rest(&self.epoll, self.now_ms);
            for index in 0..count {
                let event = events.get(index);
                match event.token {
                    TOKEN_WAKE => {
                        sys::eventfd_reset(self.wakes[self.worker.0 as usize].as_raw_fd());
                        while let Ok(more) = self.more.try_recv() {
                            self.add(more);
                        }
                        while let Ok(order) = orders.try_recv() {
                            engine.on_order(self, order);
                        }
                    }
                    token if token >= TOKEN_DATAGRAMS => {
                        self.datagram_event((token & 0x7fff_ffff) as usize, event.bits);
                    }
                    token if token >= TOKEN_SPECIAL => {
                        self.accept_turn(engine, (token & 0xffff_ffff) as usize, &mut buffer);
                    }
                    token => {
                        let sock = SockId {
                            slot: token as u32,
                            generation: (token >> 32) as u32,
                        };
                        self.event(engine, sock, event.bits, &mut buffer);
                    }
                }
            }
            self.serve_ready(engine, &mut buffer);
            self.serve_bulk(engine, &mut buffer);
            self.serve_datagrams(engine);
            // Deadlines that this round has set are looked at in the next one.
            if deadline_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
                engine.on_timer(self);
            }
            if self.listeners.are_closing() {
                self.close_listeners(engine, &mut buffer);
            }
            engine.on_round_end(self);
            self.flush();
            self.datagrams
                .flush(&self.epoll, self.now_ms, &self.activity);
            self.bury_orphans();
            for log in &mut self.logs {
                log.flush(&self.dropped);
            }
            self.activity.end_round();
        }
        Ok(())
    }

    /// Sends what the engine has left at its end, as far as the kernel takes it.
    pub fn finish(&mut self) {
        self.flush();
        self.datagrams
            .flush(&self.epoll, self.now_ms, &self.activity);
    }

    fn wait_ms<E: Engine<Self>>(&mut self, engine: &mut E, deadline_ms: Option<u64>) -> i32 {
        let is_busy = !self.ready.is_empty() || !self.bulk.is_empty() || self.datagrams.has_work();
        if is_busy || engine.has_work() {
            return 0;
        }
        let mut next = deadline_ms.unwrap_or(u64::MAX);
        if let Some(at) = self.listeners.rest_ends_ms() {
            next = next.min(at);
        }
        if let Some(orphan) = self.orphans.front() {
            next = next.min(orphan.until_ms);
        }
        if let Some(at) = self.datagrams.close_ms() {
            next = next.min(at);
        }
        match next {
            u64::MAX => -1,
            next => i32::try_from(next.saturating_sub(self.now_ms)).unwrap_or(i32::MAX),
        }
    }

    fn event<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        sock: SockId,
        bits: u32,
        buffer: &mut [u8],
    ) {
        let Some(entry) = self.socks.get_mut(sock) else {
            return;
        };
        if entry.orphan {
            return self.orphan_event(sock, bits);
        }
        let has = |bit: i32| bits & bit as u32 != 0;
        if entry.connecting {
            if !has(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) {
                return;
            }
            entry.connecting = false;
            if has(libc::EPOLLERR | libc::EPOLLHUP) && sys::pending_error(entry.fd.as_raw_fd()) != 0
            {
                self.die(engine, sock, Close::Refused);
                return;
            }
            engine.on_connected(self, sock);
        } else if has(libc::EPOLLOUT) && entry.blocked {
            self.writable(engine, sock);
        }
        let Some(entry) = self.socks.get_mut(sock) else {
            return;
        };
        if has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) {
            entry.unread = true;
            entry.hung_up |= has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
            // A paused or half-closed connection must still learn that its peer is gone for good.
            if (entry.paused || entry.ended) && has(libc::EPOLLERR | libc::EPOLLHUP) {
                let code = sys::pending_error(entry.fd.as_raw_fd());
                if entry.ended {
                    return self.die(engine, sock, Close::Reset);
                }
                if code != 0 {
                    entry.broken = true;
                }
            }
            if entry.is_bulk() && !entry.broken {
                self.make_ready(sock);
            } else {
                self.read(engine, sock, buffer);
            }
        }
        self.tell_broken(engine, sock);
    }

    /// Serves the sockets that are ready. Those that become ready meanwhile are served in the next
    /// round.
    fn serve_ready<E: Engine<Self>>(&mut self, engine: &mut E, buffer: &mut [u8]) {
        for _ in 0..self.ready.len() {
            if let Some(sock) = self.ready.pop_front() {
                self.serve(engine, sock, buffer);
            }
        }
    }

    /// Serves sockets with bulk data, first in, first out, up to the bytes that a round has for
    /// them. The others keep their places, so that small messages wait for one such portion at
    /// most, however many transfers there are.
    fn serve_bulk<E: Engine<Self>>(&mut self, engine: &mut E, buffer: &mut [u8]) {
        let mut left = BULK_BYTES_A_ROUND;
        for _ in 0..self.bulk.len() {
            if left == 0 {
                return;
            }
            if let Some(sock) = self.bulk.pop_front() {
                let bytes = self.serve(engine, sock, buffer);
                left = left.saturating_sub(bytes);
            }
        }
    }

    /// Delivers a socket's end, its connection or its bytes. Returns the number of bytes that were
    /// read.
    fn serve<E: Engine<Self>>(&mut self, engine: &mut E, sock: SockId, buffer: &mut [u8]) -> usize {
        let Some(entry) = self.socks.get_mut(sock) else {
            return 0;
        };
        entry.queued = false;
        if entry.orphan {
            return 0; // nobody is to be told anything of it
        }
        let mut bytes = 0;
        if entry.connecting && !entry.broken {
            entry.connecting = false;
            engine.on_connected(self, sock);
        } else if entry.unread {
            bytes = self.read(engine, sock, buffer);
        }
        self.tell_broken(engine, sock);
        bytes
    }

    /// Reports a connection that accepts no more data. Its unread bytes are read first, then the
    /// connection is dead.
    #[inline]
    fn tell_broken<E: Engine<Self>>(&mut self, engine: &mut E, sock: SockId) {
        let is_news = |entry: &Sock| entry.broken && !entry.broken_told;
        if self.socks.get(sock).is_some_and(is_news) {
            self.tell_of_break(engine, sock);
        }
    }

    #[cold]
    fn tell_of_break<E: Engine<Self>>(&mut self, engine: &mut E, sock: SockId) {
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.broken_told = true;
        }
        engine.on_broken(self, sock);
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.unread = true;
            self.make_ready(sock);
        }
    }

    fn die<E: Engine<Self>>(&mut self, engine: &mut E, sock: SockId, why: Close) {
        if self.socks.remove(sock).is_some() {
            engine.on_close(self, sock, why);
        }
    }

    fn make_ready(&mut self, sock: SockId) {
        if let Some(entry) = self.socks.get_mut(sock)
            && !entry.queued
        {
            entry.queued = true;
            if entry.is_bulk() {
                self.bulk.push_back(sock)
            } else {
                self.ready.push_back(sock)
            }
        }
    }

    fn adopt(&mut self, fd: OwnedFd, connecting: bool, peeks: bool) -> Option<SockId> {
        let raw = fd.as_raw_fd();
        let sock = self.socks.insert(Sock {
            fd,
            queue: None,
            put_off: send::PutOff::NOTHING,
            held: 0,
            window: 0,
            was_full: false,
            peeks,
            blocked: false,
            connecting,
            paused: false,
            unread: false,
            hung_up: false,
            ended: false,
            queued: false,
            shutdown: false,
            orphan: false,
            broken: false,
            broken_told: false,
        });
        let token = u64::from(sock.generation) << 32 | u64::from(sock.slot);
        if self.epoll.add(raw, SOCK_BITS, token).is_err() {
            self.socks.remove(sock);
            return None;
        }
        Some(sock)
    }

    fn open(&mut self, connect: &Connect<'_>) -> io::Result<(OwnedFd, bool)> {
        let fd = connect.tcp.socket(connect.to)?;
        let raw = fd.as_raw_fd();
        if !connect.to.is_unix() {
            sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
            if let Some(keepalive) = connect.keepalive {
                tcp::keep_alive(raw, keepalive)?;
            }
            connect.tcp.apply(raw, connect.to)?;
            if connect.fast_open {
                // Without this option the connection is established as usual.
                let _ = sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
            }
        }
        set_buffers(raw, self.buffers.server_receive, self.buffers.server_send);
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
            if connect.is_foreign {
                sys::set_transparent(raw, from.ip().is_some_and(|ip| ip.is_ipv6()))?;
            }
            sys::bind(&fd, from)?;
        }
        let standing = sys::connect(raw, connect.to)?;
        Ok((fd, standing))
    }
}

/// Why a connection does not begin, by the kernel's error.
fn not_connected(error: &io::Error) -> ConnectError {
    match error.raw_os_error() {
        Some(
            libc::ECONNREFUSED
            | libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::ENOENT
            | libc::ECONNRESET,
        ) => ConnectError::Refused,
        _ => ConnectError::Resource,
    }
}

fn set_buffers(fd: RawFd, receive: Option<i32>, send: Option<i32>) {
    // If the kernel refuses a size, its own value stays.
    if let Some(bytes) = receive {
        let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes);
    }
    if let Some(bytes) = send {
        let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes);
    }
}

impl Driver for EpollDriver {
    fn now(&self) -> Now {
        self.now
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn clock(&self) -> Now {
        self.stopwatch.now()
    }

    fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    fn send(&mut self, sock: SockId, message: Message<'_>) -> Sent {
        self.send_message(sock, message)
    }

    fn connect(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        let (fd, standing) = self.open(connect).map_err(|error| not_connected(&error))?;
        let sock = self
            .adopt(fd, true, !connect.to.is_unix())
            .ok_or(ConnectError::Resource)?;
        if standing {
            self.make_ready(sock);
        }
        Ok(sock)
    }

    fn shutdown(&mut self, sock: SockId) {
        self.flush_sock(sock);
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.shutdown = true;
            if entry.queue.is_none() {
                sys::shutdown_write(entry.fd.as_raw_fd());
            }
        }
    }

    fn close(&mut self, sock: SockId) {
        self.flush_sock(sock);
        let waits = |entry: &Sock| entry.queue.is_some() && !entry.broken;
        if self.socks.get(sock).is_some_and(waits) {
            return self.orphan(sock);
        }
        if let Some(entry) = self.socks.remove(sock)
            && (entry.unread || entry.paused)
        {
            sys::discard_input(entry.fd.as_raw_fd(), DISCARD_BYTES_MAX);
        }
    }

    fn abort(&mut self, sock: SockId) {
        self.flush_sock(sock);
        if let Some(entry) = self.socks.remove(sock) {
            sys::set_linger_zero(entry.fd.as_raw_fd());
        }
    }

    fn vanish(&mut self, sock: SockId, rst_ttl: Option<u8>) {
        if let Some(entry) = self.socks.remove(sock) {
            sys::silence(entry.fd.as_raw_fd(), rst_ttl);
        }
    }

    fn label(&mut self, sock: SockId, labels: Labels) {
        if let Some(entry) = self.socks.get_mut(sock) {
            sys::label(entry.fd.as_raw_fd(), labels);
        }
    }

    fn give_up(&mut self, sock: SockId) -> Option<Parcel> {
        if !self.socks.get(sock)?.is_quiet() {
            return None;
        }
        let entry = self.socks.remove(sock)?;
        self.epoll.remove(entry.fd.as_raw_fd());
        Some(Parcel::new(GivenUp {
            fd: entry.fd,
            peeks: entry.peeks,
        }))
    }

    fn take_in(&mut self, parcel: Parcel) -> Option<SockId> {
        let given = parcel.open::<GivenUp>()?;
        self.adopt(given.fd, false, given.peeks)
    }

    fn pause(&mut self, sock: SockId) {
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.paused = true;
        }
    }

    fn resume(&mut self, sock: SockId) {
        let Some(entry) = self.socks.get_mut(sock) else {
            return;
        };
        if std::mem::take(&mut entry.paused) && entry.unread {
            self.make_ready(sock);
        }
    }

    fn accepting(&mut self, listener: ListenerId, on: bool) {
        self.listeners.want(&self.epoll, listener, on);
    }

    fn unlisten(&mut self, listener: ListenerId) {
        self.listeners.close(listener);
        self.datagrams.close(listener, self.now_ms);
    }

    fn abandon(&mut self, listener: ListenerId) {
        self.listeners.abandon(&self.epoll, listener);
        self.datagrams
            .abandon(&self.epoll, listener, &self.activity);
    }

    fn stop_receiving(&mut self, listener: ListenerId) {
        self.datagrams.stop_receiving(&self.epoll, listener);
    }

    fn connect_datagrams(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        let SocketBuffers {
            server_datagrams_receive: receive,
            server_datagrams_send: send,
            ..
        } = self.buffers;
        let fd = crate::udp::to_server(connect, (receive, send))
            .map_err(|error| not_connected(&error))?;
        Ok(self.datagrams.add_server(&self.epoll, fd))
    }

    fn close_datagrams(&mut self, sock: SockId) {
        self.datagrams
            .close_server(&self.epoll, sock, self.now_ms, &self.activity);
    }

    fn send_datagrams(&mut self, sock: DatagramSock, datagrams: Outgoing<'_>) {
        self.datagrams.send(sock, &datagrams, &self.activity);
    }

    fn datagram_room(&mut self, sock: DatagramSock) -> bool {
        self.datagrams.room(sock)
    }

    fn wake(&mut self, worker: WorkerId) {
        sys::eventfd_ring(self.wakes[worker.0 as usize].as_raw_fd());
    }

    fn log(&mut self, target: usize, message: &[u8]) {
        self.logs[target].push(message, &self.dropped);
    }
}
