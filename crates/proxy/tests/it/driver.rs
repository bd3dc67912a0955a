//! The simulated driver: connections are two queues of bytes and a few flags, time is a number.
//!
//! It decides nothing by itself: whoever owns it says how much of what is delivered when
//! ([`super::worker`] by chance, the scripts line by line). What it does itself is to keep the
//! boundary's rules and to note where the engine breaks one ([`SimDriver::faults`]).

use std::cell::{Cell, RefCell};
use std::fmt::Arguments;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use net::slots::Slots;
use net::{
    Addr, Connect, ConnectError, CpuOf, DatagramSock, Driver, Labels, ListenerId, Message, Now,
    Outgoing, Parcel, Sent, SockId, Sockets, TcpInfo, WorkerId,
};

use super::queue::Queue;
use super::udp::Udp;
use super::wire::Wire;

/// A connection between the proxy and a peer.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The engine's name for it, while it has one.
    pub sock: Option<SockId>,
    /// The target of an outgoing connection.
    pub to: Option<Addr>,
    /// Where it comes from with `usesrc`.
    pub foreign: Option<Addr>,
    /// The address that it comes from, where the proxy chose one.
    pub source: Option<Addr>,
    /// The first bytes may leave with the SYN.
    pub fast_open: bool,
    /// An outgoing connection that does not stand yet.
    pub connecting: bool,
    /// From the peer, not yet delivered.
    pub inbox: Queue,
    /// The peer's end stands behind the inbox.
    pub peer_ended: bool,
    pub end_told: bool,
    /// The peer has said so below, too.
    pub said_end: bool,
    /// The peer reset it; the engine learns of it by an event or by a send.
    pub peer_reset: bool,
    /// For the peer, taken by the kernel.
    pub outbox: Queue,
    /// Not taken by the kernel: what the driver keeps.
    pub backlog: Queue,
    /// The backlog was only put off to the end of the round: the engine does not know of it.
    pub put_off: bool,
    /// The engine is told of each progress.
    pub blocked: bool,
    /// Bytes that the kernel still takes.
    pub room: usize,
    pub paused: bool,
    /// It was paused during the delivery at hand.
    pub was_paused: bool,
    /// Bytes that the engine holds.
    pub held: usize,
    /// The peer stalls: nothing of it is delivered before.
    pub held_until_ms: u64,
    /// The peer reads nothing before.
    pub unread_until_ms: u64,
    /// The engine's FIN was asked for; nothing may be sent any more.
    pub shut: bool,
    /// The engine's end, which the peer sees behind the outbox.
    pub ended: bool,
    /// The engine closed it: what it kept still leaves.
    pub closed: bool,
    /// The engine reset it.
    pub reset: bool,
    /// A send found it dead: the engine is told from the loop, once.
    pub broken: bool,
    pub break_told: bool,
    /// What its packets carry.
    pub labels: Labels,
    /// Another worker's driver has it now, or had it before: the number of the move.
    pub given_up: Option<u64>,
    pub taken_in: Option<u64>,
    /// What the peer speaks below what it means.
    pub wire: Option<Box<dyn Wire>>,
}

impl Pipe {
    /// The peer sends.
    pub fn write(&mut self, bytes: &[u8]) {
        // Misfortune may have ended it before.
        if self.peer_ended {
            return;
        }
        match &mut self.wire {
            None => self.inbox.push(bytes),
            Some(wire) => {
                let mut out = Vec::new();
                wire.write(bytes, &mut out);
                self.inbox.push(&out);
            }
        }
    }

    /// The peer reads what came: what the proxy meant.
    pub fn understand(&mut self, bytes: &mut Vec<u8>) {
        if let Some(wire) = &mut self.wire {
            let (mut got, mut out) = (Vec::new(), Vec::new());
            wire.read(bytes, &mut got, &mut out);
            *bytes = got;
            if !self.peer_reset && (!self.peer_ended || !self.end_told) {
                self.inbox.push(&out);
            }
        }
    }

    /// Nothing that the peer means is still on its way: a connection of several requests would lose
    /// it with the next one.
    pub fn is_quiet(&self) -> bool {
        self.wire
            .as_ref()
            .is_none_or(|wire| wire.is_quiet() && self.inbox.is_empty())
    }

    /// The peer says that it will send no more, where it has a way to.
    pub fn say_end(&mut self) {
        if let Some(wire) = &mut self.wire {
            let mut out = Vec::new();
            wire.end(&mut out);
            self.inbox.push(&out);
        }
    }

    /// Moves backlog into the kernel.
    pub fn drain(&mut self, count: usize) {
        let count = count.min(self.room).min(self.backlog.len());
        self.outbox.push(&self.backlog.peek()[..count]);
        self.backlog.skip(count);
        self.room -= count;
        if self.backlog.is_empty() {
            self.blocked = false;
            self.ended |= self.shut || self.closed;
        }
    }

    /// The kernel takes bytes; how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let count = self.room.min(bytes.len());
        self.outbox.push(&bytes[..count]);
        self.room -= count;
        count
    }
}

/// What becomes of a connection that the engine opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It stands, or fails, by an event.
    Pending,
    Fails(ConnectError),
}

/// Connections that moved between workers, in all lives.
pub static MOVED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Connections between two workers of a life, by the numbers that stand for them.
    static MOVING: RefCell<Vec<(u64, Pipe)>> = const { RefCell::new(Vec::new()) };
    static MOVES: Cell<u64> = const { Cell::new(0) };
}

/// See the module.
#[derive(Debug)]
pub struct SimDriver {
    pub now: Now,
    pub pipes: Vec<Pipe>,
    /// Pipes that are over and may be used again; lives that check what a peer has seen leave none.
    pub free: Vec<usize>,
    pub names: Slots<usize>,
    pub udp: Udp,
    /// By listener.
    pub accepting: Vec<bool>,
    pub unlistened: Vec<bool>,
    pub logs: Vec<Vec<u8>>,
    /// Rules that the engine broke.
    pub faults: Vec<String>,
    /// What the next outgoing connections come to.
    pub opening: Opening,
    /// What the kernel takes for a connection before its peer reads.
    pub room: usize,
    /// The most bytes of a delivery that must be taken whole.
    pub read_bytes: usize,
    /// The largest frame of a peer of HTTP/2, which is kept until it is whole.
    pub frame_bytes: usize,
    /// The CPU usage that it reports.
    pub cpu_percent: u32,
    /// Small messages are put off to the end of the round.
    pub puts_off: bool,
    /// Largest backlog seen.
    pub backlog_max: usize,
    /// Workers that were to get a round.
    pub woken: Vec<WorkerId>,
    /// Calls of the engine until one panics.
    pub panics_in: Option<u32>,
    /// What its lines in the trace begin with.
    pub name: &'static str,
    /// Writes down what happens.
    pub verbose: bool,
}

/// The longest message that is put off, and the most of a connection's.
const PUT_OFF_BYTES_MAX: usize = 400;
const PUT_OFF_ALL_BYTES_MAX: usize = 2000;
/// What an injected panic says.
pub const INJECTED: &str = "injected";

impl SimDriver {
    /// `bufsize`: that of the configuration.
    pub fn new(listeners: usize, bufsize: usize) -> Self {
        SimDriver {
            now: Now::new(1_000_000_000, 1_700_000_000_000_000_000),
            pipes: Vec::new(),
            free: Vec::new(),
            names: Slots::default(),
            udp: Udp::new(0),
            accepting: vec![true; listeners],
            unlistened: vec![false; listeners],
            logs: Vec::new(),
            faults: Vec::new(),
            opening: Opening::Pending,
            room: usize::MAX,
            read_bytes: bufsize + bufsize / 4,
            frame_bytes: 0,
            cpu_percent: 0,
            puts_off: false,
            backlog_max: 0,
            woken: Vec::new(),
            panics_in: None,
            name: "",
            verbose: false,
        }
    }

    /// A new connection; its name and its pipe.
    pub fn open(&mut self) -> (SockId, usize) {
        let pipe = self.free.pop().unwrap_or(self.pipes.len());
        let sock = self.names.insert(pipe);
        let opened = Pipe {
            sock: Some(sock),
            room: self.room,
            ..Pipe::default()
        };
        match self.pipes.get_mut(pipe) {
            Some(old) => *old = opened,
            None => self.pipes.push(opened),
        }
        (sock, pipe)
    }

    pub fn pipe(&mut self, sock: SockId) -> Option<&mut Pipe> {
        let place = *self.names.get_mut(sock)?;
        Some(&mut self.pipes[place])
    }

    /// The name is void from now on.
    pub fn forget(&mut self, sock: SockId) -> Option<&mut Pipe> {
        let place = self.names.remove(sock)?;
        let pipe = &mut self.pipes[place];
        pipe.sock = None;
        Some(pipe)
    }

    /// The end of a round: what was put off leaves, as far as it does.
    pub fn flush(&mut self) {
        for pipe in &mut self.pipes {
            if std::mem::take(&mut pipe.put_off) {
                if pipe.peer_reset {
                    pipe.broken |= pipe.sock.is_some();
                    pipe.backlog.clear();
                    continue;
                }
                pipe.blocked = true;
                pipe.drain(usize::MAX);
            }
        }
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
    }

    /// Writes a line of the trace.
    #[expect(clippy::print_stderr, reason = "the trace of a replayed seed")]
    pub fn say(&self, line: Arguments<'_>) {
        if self.verbose {
            eprintln!("{:>8} {}{line}", self.now.ms() - 1000, self.name);
        }
    }

    fn fault(&mut self, text: String) {
        self.say(format_args!("FAULT {text}"));
        self.faults.push(text);
    }

    fn place(&mut self, sock: SockId) -> String {
        self.names
            .get_mut(sock)
            .map_or("gone".into(), |place| format!("#{place}"))
    }

    /// The engine asks for something. Misfortune may have it panic.
    fn asked(&mut self, sock: SockId, what: &str) {
        if self.verbose {
            let place = self.place(sock);
            self.say(format_args!("    {place} <- {what}"));
        }
        self.may_panic();
    }

    fn may_panic(&mut self) {
        match &mut self.panics_in {
            Some(0) => {
                self.panics_in = None;
                self.say(format_args!("PANIC"));
                std::panic::panic_any(INJECTED);
            }
            Some(calls) => *calls -= 1,
            None => {}
        }
    }

    /// What a message breaks of the rules.
    fn check_send(&mut self, sock: SockId, bytes: usize) {
        let Some(pipe) = self.pipe(sock) else { return };
        let rule = match () {
            () if pipe.connecting => Some("sent before the connection stood"),
            () if pipe.shut => Some("sent after its own end"),
            () if bytes == 0 => Some("sent nothing"),
            () => None,
        };
        if let Some(rule) = rule {
            let place = self.place(sock);
            self.fault(format!("{place}: {rule}"));
        }
    }
}

/// Round trips of the simulated network, microseconds.
pub const RTT_US: u32 = 1_500;

impl Sockets for SimDriver {
    fn tcp_info(&self, sock: SockId) -> Option<TcpInfo> {
        self.names.get(sock).map(|_| TcpInfo {
            rtt_us: RTT_US,
            rttvar_us: RTT_US / 2,
            ..TcpInfo::default()
        })
    }

    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        Some(ip.is_loopback())
    }

    fn cpu_usage(&self, _of: CpuOf) -> u32 {
        self.cpu_percent
    }
}

impl Driver for SimDriver {
    fn now(&self) -> Now {
        self.now
    }

    fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    fn send(&mut self, sock: SockId, message: Message<'_>) -> Sent {
        let Message { head, body, tail } = message;
        let bytes = head.len() + body.len() + tail.len();
        if self.verbose {
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(&line[..line.len().min(60)]);
            let line = line.trim_end().to_string();
            let what = format!(
                "send {} + {} + {} {line:?}",
                head.len(),
                body.len(),
                tail.len()
            );
            self.asked(sock, &what);
        } else {
            self.asked(sock, "");
        }
        self.check_send(sock, bytes);
        let (puts_off, read_bytes) = (self.puts_off, self.read_bytes);
        let gone = Sent {
            taken: body.len(),
            blocked: false,
        };
        let Some(pipe) = self.pipe(sock) else {
            return gone;
        };
        if pipe.broken {
            return gone;
        }
        if pipe.peer_reset {
            pipe.broken = true;
            pipe.backlog.clear();
            (pipe.put_off, pipe.blocked) = (false, false);
            return gone;
        }
        let may_wait = pipe.backlog.is_empty() || pipe.put_off;
        let is_small =
            bytes <= PUT_OFF_BYTES_MAX && pipe.backlog.len() + bytes <= PUT_OFF_ALL_BYTES_MAX;
        if puts_off && may_wait && !pipe.blocked && is_small {
            pipe.put_off = true;
            for part in [head, body, tail] {
                pipe.backlog.push(part);
            }
            return gone;
        }
        // What was put off goes first.
        if std::mem::take(&mut pipe.put_off) {
            pipe.drain(usize::MAX);
        }
        let mut sent = gone;
        if pipe.backlog.is_empty() {
            let head_done = pipe.take(head);
            let body_done = if head_done == head.len() {
                pipe.take(body)
            } else {
                0
            };
            let tail_done = if head_done == head.len() && body_done == body.len() {
                pipe.take(tail)
            } else {
                0
            };
            if head_done + body_done + tail_done == bytes {
                return sent;
            }
            if body.len() - body_done > read_bytes {
                sent.taken = body_done;
            }
            pipe.backlog.push(&head[head_done..]);
            pipe.backlog.push(&body[body_done..sent.taken]);
            if sent.taken == body.len() {
                pipe.backlog.push(&tail[tail_done..]);
            }
        } else {
            pipe.backlog.push(head);
            sent.taken = read_bytes
                .saturating_sub(pipe.backlog.len())
                .min(body.len());
            pipe.backlog.push(&body[..sent.taken]);
            if sent.taken == body.len() {
                pipe.backlog.push(tail);
            }
        }
        pipe.blocked = true;
        sent.blocked = true;
        let backlog = pipe.backlog.len();
        self.backlog_max = self.backlog_max.max(backlog);
        self.say(format_args!("      took {}, backlog {backlog}", sent.taken));
        sent
    }

    fn connect(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        if let Opening::Fails(error) = self.opening {
            self.say(format_args!("    connect to {}: {error:?}", connect.to));
            return Err(error);
        }
        let (sock, place) = self.open();
        self.say(format_args!("    #{place} <- connect to {}", connect.to));
        let pipe = &mut self.pipes[place];
        pipe.connecting = true;
        pipe.to = Some(connect.to.clone());
        pipe.fast_open = connect.fast_open;
        pipe.source = connect.from.cloned();
        pipe.foreign = connect.from.filter(|_| connect.is_foreign).cloned();
        pipe.labels = connect.labels;
        Ok(sock)
    }

    fn shutdown(&mut self, sock: SockId) {
        self.asked(sock, "shutdown");
        if let Some(pipe) = self.pipe(sock) {
            pipe.shut = true;
            pipe.ended |= pipe.backlog.is_empty();
        }
    }

    fn close(&mut self, sock: SockId) {
        self.asked(sock, "close");
        if let Some(pipe) = self.forget(sock) {
            pipe.closed = true;
            pipe.put_off = false;
            pipe.drain(usize::MAX);
        }
    }

    fn abort(&mut self, sock: SockId) {
        self.asked(sock, "abort");
        if let Some(pipe) = self.forget(sock) {
            pipe.reset = true;
            pipe.backlog.clear();
        }
    }

    fn vanish(&mut self, sock: SockId, _rst_ttl: Option<u8>) {
        self.asked(sock, "vanish");
        if let Some(pipe) = self.forget(sock) {
            pipe.backlog.clear();
        }
    }

    fn label(&mut self, sock: SockId, labels: Labels) {
        self.asked(sock, "label");
        if let Some(pipe) = self.pipe(sock) {
            pipe.labels.mark = labels.mark.or(pipe.labels.mark);
            pipe.labels.tos = labels.tos.or(pipe.labels.tos);
        }
    }

    fn give_up(&mut self, sock: SockId) -> Option<Parcel> {
        self.asked(sock, "give up");
        let pipe = self.pipe(sock)?;
        let has_output = !pipe.backlog.is_empty() || pipe.blocked || pipe.shut;
        let is_ending = pipe.broken || pipe.end_told;
        if has_output || is_ending || pipe.paused || pipe.held > 0 || pipe.connecting {
            return None;
        }
        let number = MOVES.get();
        MOVES.set(number + 1);
        let pipe = self.forget(sock)?;
        let left = Pipe {
            given_up: Some(number),
            to: pipe.to.clone(),
            ..Pipe::default()
        };
        let moved = std::mem::replace(pipe, left);
        MOVING.with_borrow_mut(|moving| moving.push((number, moved)));
        Some(Parcel::new(number))
    }

    fn take_in(&mut self, parcel: Parcel) -> Option<SockId> {
        let number = *parcel.open::<u64>()?;
        let moved = MOVING.with_borrow_mut(|moving| {
            let place = moving.iter().position(|(known, _)| *known == number)?;
            Some(moving.swap_remove(place).1)
        })?;
        let (sock, place) = self.open();
        self.pipes[place] = Pipe {
            sock: Some(sock),
            taken_in: Some(number),
            ..moved
        };
        MOVED.fetch_add(1, Ordering::Relaxed);
        self.say(format_args!("    #{place} <- taken in"));
        Some(sock)
    }

    fn pause(&mut self, sock: SockId) {
        self.asked(sock, "pause");
        if let Some(pipe) = self.pipe(sock) {
            pipe.paused = true;
            pipe.was_paused = true;
        }
    }

    fn resume(&mut self, sock: SockId) {
        self.asked(sock, "resume");
        if let Some(pipe) = self.pipe(sock) {
            pipe.paused = false;
        }
    }

    fn accepting(&mut self, listener: ListenerId, on: bool) {
        self.say(format_args!("    listener {} accepting {on}", listener.0));
        self.accepting[listener.0 as usize] = on;
    }

    fn unlisten(&mut self, listener: ListenerId) {
        self.say(format_args!("    listener {} closed", listener.0));
        self.unlistened[listener.0 as usize] = true;
    }

    fn stop_receiving(&mut self, listener: ListenerId) {
        self.say(format_args!(
            "    listener {} is read by another",
            listener.0
        ));
        self.udp.deaf.push(listener);
    }

    fn connect_datagrams(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        self.say(format_args!("    datagrams to {}", connect.to));
        match (self.opening, connect.to) {
            (Opening::Fails(error), _) => Err(error),
            (Opening::Pending, Addr::Inet(server)) => Ok(self.udp.open(*server)),
            (Opening::Pending, Addr::Unix(_)) => Err(ConnectError::Refused),
        }
    }

    fn close_datagrams(&mut self, sock: SockId) {
        self.say(format_args!("    socket {} of datagrams closed", sock.slot));
        if self.udp.socks.remove(sock).is_none() {
            self.fault("a socket of datagrams is closed twice".into());
        }
    }

    fn send_datagrams(&mut self, sock: DatagramSock, datagrams: Outgoing<'_>) {
        if self.verbose {
            let (bytes, to) = (datagrams.bytes.len(), datagrams.peer);
            self.say(format_args!("    {bytes} bytes in datagrams to {to}"));
        }
        self.may_panic();
        let now_ms = self.now.ms();
        if let Some(rule) = self.udp.send(sock, datagrams, now_ms) {
            self.fault(rule.into());
        }
    }

    fn datagram_room(&mut self, sock: DatagramSock) -> bool {
        self.udp.has_room(sock, self.now.ms())
    }

    fn wake(&mut self, worker: WorkerId) {
        self.woken.push(worker);
    }

    fn log(&mut self, _target: usize, message: &[u8]) {
        self.say(format_args!(
            "    log {}",
            String::from_utf8_lossy(message).trim_end()
        ));
        self.logs.push(message.to_vec());
    }
}

/// Delivers what is there, as a driver does: as much as must be taken whole, or more of a large
/// delivery, of which the engine takes what it can. `count`: at most so many bytes.
pub fn deliver(
    engine: &mut spangate_proxy::Engine,
    driver: &mut SimDriver,
    place: usize,
    count: usize,
) {
    let pipe = &mut driver.pipes[place];
    let Some(sock) = pipe.sock else { return };
    let count = count.min(pipe.inbox.len());
    let whole = driver.read_bytes.saturating_sub(pipe.held).max(1);
    let mut bytes = pipe.inbox.peek()[..count].to_vec();
    pipe.was_paused = pipe.paused;
    driver.say(format_args!("  {count} bytes"));
    let took = net::Engine::on_data(engine, driver, sock, &mut bytes);
    let pipe = &mut driver.pipes[place];
    let record = if pipe.wire.is_some() { 16 << 10 } else { 0 };
    pipe.inbox.skip(took.bytes);
    pipe.held = took.held;
    let (paused, open) = (pipe.was_paused, pipe.sock.is_some());
    let rule = match () {
        () if took.bytes > count => Some("took more than there was"),
        () if took.bytes < count && count <= whole => Some("did not take a small delivery whole"),
        () if took.bytes < count && open && !paused => Some("took a part and goes on reading"),
        // A record of TLS is opened whole.
        () if took.held > 2 * driver.read_bytes.max(driver.frame_bytes) + record => {
            Some("holds too much")
        }
        () => None,
    };
    if let Some(rule) = rule {
        driver.fault(format!("#{place}: {rule}: {took:?} of {count}"));
    }
}
