//! The simulated driver: connections are two queues of bytes and a few flags, time is a number.
//!
//! It decides nothing by itself: whoever owns it says how much of what is delivered when ([`super::worker`] by chance,
//! the scripts line by line). What it does itself is to keep the boundary's rules and to note where the engine breaks
//! one ([`SimDriver::faults`]).

use std::fmt::Arguments;
use std::net::IpAddr;

use net::slots::Slots;
use net::{
    Addr, ConnId, Connect, ConnectError, Driver, Labels, ListenerId, Now, Sent, Sockets, TcpInfo,
};

use super::queue::Queue;

/// A connection between the proxy and a peer; never used again in a life.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The engine's name for it, while it has one.
    pub conn: Option<ConnId>,
    /// The target of an outgoing connection.
    pub to: Option<Addr>,
    /// An outgoing connection that does not stand yet.
    pub connecting: bool,
    /// From the peer, not yet delivered.
    pub inbox: Queue,
    /// The peer's end stands behind the inbox.
    pub peer_ended: bool,
    pub end_told: bool,
    /// The peer reset it; the engine learns of it by an event or by a send.
    pub peer_reset: bool,
    /// For the peer, taken by the kernel.
    pub outbox: Queue,
    /// Not taken by the kernel: what the driver keeps.
    pub backlog: Queue,
    /// Bytes that the kernel still takes.
    pub room: usize,
    pub paused: bool,
    /// The peer stalls: nothing of it is delivered before.
    pub held_until_ms: u64,
    /// The peer reads nothing before.
    pub unread_until_ms: u64,
    /// The engine's FIN was asked for; nothing may be sent any more.
    pub shut: bool,
    /// The engine's end, which the peer sees behind the outbox.
    pub ended: bool,
    /// The engine reset it.
    pub reset: bool,
    /// A send found it dead: the engine is told from the loop.
    pub broken: bool,
    /// What its packets carry.
    pub labels: Labels,
}

impl Pipe {
    /// The peer sends.
    pub fn write(&mut self, bytes: &[u8]) {
        // Misfortune may have ended it before.
        if !self.peer_ended {
            self.inbox.push(bytes);
        }
    }

    /// Moves backlog into the kernel; whether the last of it went.
    pub fn drain(&mut self, count: usize) -> bool {
        let count = count.min(self.room).min(self.backlog.len());
        self.outbox.push(&self.backlog.peek()[..count]);
        self.backlog.skip(count);
        self.room -= count;
        if self.backlog.is_empty() && self.shut {
            self.ended = true;
        }
        self.backlog.is_empty()
    }
}

/// What becomes of a connection that the engine opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It stands, or fails, by an event.
    Pending,
    Fails(ConnectError),
}

/// See the module.
#[derive(Debug)]
pub struct SimDriver {
    pub now: Now,
    pub pipes: Vec<Pipe>,
    pub names: Slots<usize>,
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
    /// Largest backlog seen.
    pub backlog_max: usize,
    /// A round of the other workers was asked for.
    pub woke: bool,
    /// What its lines in the trace begin with.
    pub name: &'static str,
    /// Writes down what happens.
    pub verbose: bool,
}

impl SimDriver {
    pub fn new(listeners: usize) -> Self {
        SimDriver {
            now: Now {
                mono_ns: 1_000_000_000,
                wall_ns: 1_700_000_000_000_000_000,
            },
            pipes: Vec::new(),
            names: Slots::default(),
            accepting: vec![true; listeners],
            unlistened: vec![false; listeners],
            logs: Vec::new(),
            faults: Vec::new(),
            opening: Opening::Pending,
            room: usize::MAX,
            backlog_max: 0,
            woke: false,
            name: "",
            verbose: false,
        }
    }

    /// A new connection; its name and its pipe.
    pub fn open(&mut self) -> (ConnId, usize) {
        let pipe = self.pipes.len();
        let conn = self.names.insert(pipe);
        self.pipes.push(Pipe {
            conn: Some(conn),
            room: self.room,
            ..Pipe::default()
        });
        (conn, pipe)
    }

    pub fn pipe(&mut self, conn: ConnId) -> Option<&mut Pipe> {
        let place = *self.names.get_mut(conn)?;
        Some(&mut self.pipes[place])
    }

    /// The name is void from now on.
    pub fn forget(&mut self, conn: ConnId) -> Option<&mut Pipe> {
        let place = self.names.remove(conn)?;
        let pipe = &mut self.pipes[place];
        pipe.conn = None;
        Some(pipe)
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.now.mono_ns += ms * 1_000_000;
        self.now.wall_ns += ms * 1_000_000;
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

    fn place(&mut self, conn: ConnId) -> String {
        self.names
            .get_mut(conn)
            .map_or("gone".into(), |place| format!("#{place}"))
    }

    fn say_of(&mut self, conn: ConnId, what: &str) {
        if self.verbose {
            let place = self.place(conn);
            self.say(format_args!("    {place} <- {what}"));
        }
    }
}

/// Round trips of the simulated network, microseconds.
pub const RTT_US: u32 = 1_500;

impl Sockets for SimDriver {
    fn tcp_info(&self, conn: ConnId) -> Option<TcpInfo> {
        self.names.get(conn).map(|_| TcpInfo {
            rtt_us: RTT_US,
            rttvar_us: RTT_US / 2,
            ..TcpInfo::default()
        })
    }

    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        Some(ip.is_loopback())
    }
}

impl Driver for SimDriver {
    fn now(&self) -> Now {
        self.now
    }

    fn send(&mut self, conn: ConnId, head: &[u8], body: &[u8]) -> Sent {
        if self.verbose {
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(&line[..line.len().min(60)])
                .trim_end()
                .to_string();
            self.say_of(
                conn,
                &format!("send {} + {} {line:?}", head.len(), body.len()),
            );
        }
        let Some(pipe) = self.pipe(conn) else {
            return Sent::Dead;
        };
        let rule = match () {
            () if pipe.connecting => Some("sent before the connection stood"),
            () if pipe.shut => Some("sent after its own end"),
            () if head.is_empty() && body.is_empty() => Some("sent nothing"),
            () => None,
        };
        if let Some(rule) = rule {
            let place = self.place(conn);
            self.fault(format!("{place}: {rule}"));
        }
        let Some(pipe) = self.pipe(conn) else {
            return Sent::Dead;
        };
        if pipe.peer_reset {
            pipe.broken = true;
            return Sent::Dead;
        }
        let mut room = if pipe.backlog.is_empty() {
            pipe.room
        } else {
            0
        };
        for bytes in [head, body] {
            let taken = room.min(bytes.len());
            room -= taken;
            pipe.room -= taken;
            pipe.outbox.push(&bytes[..taken]);
            pipe.backlog.push(&bytes[taken..]);
        }
        let backlog = pipe.backlog.len();
        self.backlog_max = self.backlog_max.max(backlog);
        if backlog > 0 {
            self.say(format_args!("      backlog {backlog}"));
        }
        if backlog == 0 {
            Sent::All
        } else {
            Sent::Backlog
        }
    }

    fn connect(&mut self, connect: &Connect<'_>) -> Result<ConnId, ConnectError> {
        if let Opening::Fails(error) = self.opening {
            self.say(format_args!("    connect to {}: {error:?}", connect.to));
            return Err(error);
        }
        let (conn, place) = self.open();
        self.say(format_args!("    #{place} <- connect to {}", connect.to));
        let pipe = &mut self.pipes[place];
        pipe.connecting = true;
        pipe.to = Some(connect.to.clone());
        pipe.labels = connect.labels;
        Ok(conn)
    }

    fn shutdown(&mut self, conn: ConnId) {
        self.say_of(conn, "shutdown");
        if let Some(pipe) = self.pipe(conn) {
            pipe.shut = true;
            pipe.ended |= pipe.backlog.is_empty();
        }
    }

    fn close(&mut self, conn: ConnId) {
        self.say_of(conn, "close");
        if let Some(pipe) = self.forget(conn) {
            pipe.ended = true;
        }
    }

    fn abort(&mut self, conn: ConnId) {
        self.say_of(conn, "abort");
        if let Some(pipe) = self.forget(conn) {
            pipe.reset = true;
        }
    }

    fn vanish(&mut self, conn: ConnId, _rst_ttl: Option<u8>) {
        self.say_of(conn, "vanish");
        self.forget(conn);
    }

    fn label(&mut self, conn: ConnId, labels: Labels) {
        self.say_of(conn, "label");
        if let Some(pipe) = self.pipe(conn) {
            pipe.labels.mark = labels.mark.or(pipe.labels.mark);
            pipe.labels.tos = labels.tos.or(pipe.labels.tos);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        self.say_of(conn, "pause");
        if let Some(pipe) = self.pipe(conn) {
            pipe.paused = true;
        }
    }

    fn resume(&mut self, conn: ConnId) {
        self.say_of(conn, "resume");
        if let Some(pipe) = self.pipe(conn) {
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

    fn wake_peers(&mut self) {
        self.woke = true;
    }

    fn log(&mut self, _target: usize, message: &[u8]) {
        self.say(format_args!(
            "    log {}",
            String::from_utf8_lossy(message).trim_end()
        ));
        self.logs.push(message.to_vec());
    }
}
