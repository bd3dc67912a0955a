//! The boundary: what a driver tells the engine, and what the engine asks of a driver.
//!
//! Rules both sides keep:
//! - Slices are lent for the call only. The engine copies what it cannot use yet (a partial head), the driver what the
//!   kernel does not take of a message.
//! - No method of [`Driver`] calls back into the engine: entry points never re-enter.
//! - A [`SockId`] carries a generation; after [`Driver::close`] or [`Engine::on_close`] it names nothing, and a
//!   driver ignores every request for it.
//! - A driver delivers nothing for a paused socket but [`Engine::on_writable`], [`Engine::on_broken`] and a fatal
//!   [`Engine::on_close`].
//! - Unsent bytes wait in one place, the driver, and are bounded there: [`Driver::send`] says how much of a body it took.
//!   Undelivered bytes wait in the kernel, beyond the few that the engine holds: [`Engine::on_data`] says how much it took.

use std::any::Any;

use crate::{Addr, Keepalive, Sockets, TcpOptions};

/// A socket's name, shared by driver and engine: a slot and the generation of what lives in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SockId {
    /// The slot, dense from 0: both sides index their own tables with it.
    pub slot: u32,
    /// Grows each time the slot is taken again.
    pub generation: u32,
}

/// A listener of the running configuration, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// A worker of the process, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId(pub u32);

/// The time, read once a round by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Monotonic nanoseconds from an arbitrary origin. Deadlines and durations use this.
    pub mono_ns: u64,
    /// Nanoseconds since the UNIX epoch. Only logs and dates use this.
    pub wall_ns: u64,
}

impl Now {
    /// Monotonic milliseconds, the unit of every timeout.
    #[must_use]
    pub fn ms(self) -> u64 {
        self.mono_ns / 1_000_000
    }
}

/// A message to be sent: three parts that leave in this order, in one segment where they fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// Always taken whole: the sender bounds it.
    pub head: &'a [u8],
    /// Payload: taken as far as the kernel and the driver's queue have room.
    pub body: &'a [u8],
    /// Taken whole once all of the body was taken, else not at all: the sender bounds it.
    pub tail: &'a [u8],
}

/// What became of a message given to [`Driver::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of the body that the driver took. The rest is the sender's; it may be offered again after
    /// [`Engine::on_writable`]. All of it is taken, and vanishes, where the socket is dead.
    pub taken: usize,
    /// The kernel did not take everything: [`Engine::on_writable`] follows at each progress. A driver may put off small messages
    /// to the end of the round, and finds out only then; it then reports progress although nobody was told.
    pub blocked: bool,
}

/// What the engine did with the bytes of [`Engine::on_data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// Bytes that it used or copied. Where these are fewer than it was given, it has paused the socket, and the driver offers the
    /// rest again after [`Driver::resume`], which may come within the same call. It must take all of what is no longer than [`Driver::read_bytes`] less what it holds.
    pub bytes: usize,
    /// Bytes of this socket that it holds unused; the driver reads the fewer at a time.
    pub held: usize,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The peer reset it, or the network failed (`ECONNRESET`, `EPIPE`, `ETIMEDOUT`).
    Reset,
    /// An outgoing connection was refused or its target is unreachable.
    Refused,
}

/// An incoming connection.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The listener it came from.
    pub listener: ListenerId,
    /// The peer's address.
    pub peer: Addr,
    /// The local address it was made to; that of the listener where nobody asks for more ([`crate::epoll::Setup::local_addrs`]).
    pub local: Addr,
}

/// An outgoing connection that the engine asks for.
#[derive(Clone, Debug)]
pub struct Connect<'a> {
    /// Where to.
    pub to: &'a Addr,
    /// The local address to bind first (`source`).
    pub from: Option<&'a Addr>,
    /// `from` need not be this machine's (`usesrc`).
    pub is_foreign: bool,
    /// What the engine sends first may leave with the SYN (RFC 7413); it must send at once.
    pub fast_open: bool,
    /// The interface to bind to (`source … interface`).
    pub interface: Option<&'a str>,
    /// TCP keep-alive probes (`option srvtcpka`).
    pub keepalive: Option<Keepalive>,
    /// Its socket's other options.
    pub tcp: &'a TcpOptions,
    /// What its packets carry.
    pub labels: Labels,
}

/// What packets of a connection carry for the routers on their way, as far as the system lets us set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The mark that the packet filter of this machine sees (`SO_MARK`).
    pub mark: Option<u32>,
    /// Type of service of IPv4, traffic class of IPv6 (RFC 2474).
    pub tos: Option<u8>,
}

/// An outgoing connection that could not even start: the engine treats it as refused at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Refused or unreachable.
    Refused,
    /// It did not stand in time.
    Timeout,
    /// No local port, descriptor or memory is left.
    Resource,
}

/// Something on its way from one worker to another; only who made it knows what it is.
#[derive(Debug)]
pub struct Parcel(Box<dyn Any + Send>);

impl Parcel {
    /// Packs something.
    #[must_use]
    pub fn new(content: impl Any + Send) -> Parcel {
        Parcel(Box::new(content))
    }

    /// What is in it, where it is of this type.
    #[must_use]
    pub fn open<T: Any>(self) -> Option<Box<T>> {
        self.0.downcast().ok()
    }
}

/// What the engine asks of its driver. Calls for a dead socket do nothing.
pub trait Driver: Sockets {
    /// The time of this round.
    fn now(&self) -> Now;
    /// The time of this moment, for what is measured within a round.
    fn clock(&self) -> Now {
        self.now()
    }
    /// The most bytes that one delivery has which must be taken whole, and the most of a body that waits in the driver.
    fn read_bytes(&self) -> usize;
    /// Sends a message.
    fn send(&mut self, sock: SockId, message: Message<'_>) -> Sent;
    /// Starts an outgoing connection; [`Engine::on_connected`] or [`Engine::on_close`] follows from the loop.
    ///
    /// # Errors
    /// When it could not start.
    fn connect(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError>;
    /// Sends a FIN behind all that was taken.
    fn shutdown(&mut self, sock: SockId);
    /// Closes once all that was taken has left, or could not in a bounded time. No call for it follows.
    fn close(&mut self, sock: SockId);
    /// Closes with a RST (`option nolinger`, aborted transfers).
    fn abort(&mut self, sock: SockId);
    /// Closes without a word to the peer, as far as the system lets us (`silent-drop`); with `rst_ttl` by a RST that
    /// lives for so many hops.
    fn vanish(&mut self, sock: SockId, rst_ttl: Option<u8>);
    /// Labels the connection's packets from now on. What is none stays as it is.
    fn label(&mut self, sock: SockId, labels: Labels);
    /// Gives a socket up, so that the driver of another worker can have it ([`Driver::take_in`]). None where bytes of it wait in
    /// this driver, or its peer's end is known: then it stays what it is.
    fn give_up(&mut self, _sock: SockId) -> Option<Parcel> {
        None
    }
    /// Has a socket that the driver of another worker gave up. None where it cannot; the socket is closed then.
    fn take_in(&mut self, _parcel: Parcel) -> Option<SockId> {
        None
    }
    /// Stops delivering data from this socket.
    fn pause(&mut self, sock: SockId);
    /// Delivers data again; never from within this call.
    fn resume(&mut self, sock: SockId);
    /// Stops or starts accepting on a listener (`maxconn`, draining).
    fn accepting(&mut self, listener: ListenerId, on: bool);
    /// Takes the connections that already wait on a listener, then closes it for good.
    fn unlisten(&mut self, listener: ListenerId);
    /// Gives another worker a round: there is something for it.
    fn wake(&mut self, worker: WorkerId);
    /// Hands a finished log message, terminated as its target needs, to log target `target`; never blocks.
    fn log(&mut self, target: usize, message: &[u8]);
}

/// What a driver tells the engine.
pub trait Engine<D: Driver> {
    /// What the control thread tells it.
    type Order: Send;
    /// An order came.
    fn on_order(&mut self, driver: &mut D, order: Self::Order);
    /// Nothing is left to do after an order told it to stop: the driver's loop ends.
    fn is_finished(&self) -> bool;
    /// Whether one more connection may be accepted. If so, [`Engine::on_accept`] or [`Engine::retract`] follows.
    fn admit(&mut self, driver: &mut D, listener: ListenerId) -> bool;
    /// No connection was there to be accepted.
    fn retract(&mut self, driver: &mut D, listener: ListenerId);
    /// A connection came in. Data that is already there is delivered right after.
    fn on_accept(&mut self, driver: &mut D, sock: SockId, accepted: Accepted);
    /// An outgoing connection stands.
    fn on_connected(&mut self, driver: &mut D, sock: SockId);
    /// Bytes came in; never empty. The engine may overwrite those that it takes.
    fn on_data(&mut self, driver: &mut D, sock: SockId, data: &mut [u8]) -> Took;
    /// The kernel took bytes that it had not taken before. `blocked`: some still wait.
    fn on_writable(&mut self, driver: &mut D, sock: SockId, blocked: bool);
    /// The peer will send no more. It may still receive.
    fn on_eof(&mut self, driver: &mut D, sock: SockId);
    /// The peer takes nothing any more. What it sent before is still delivered; [`Engine::on_close`] follows.
    fn on_broken(&mut self, driver: &mut D, sock: SockId);
    /// The connection is dead.
    fn on_close(&mut self, driver: &mut D, sock: SockId, why: Close);
    /// The time has reached [`Engine::next_deadline_ms`].
    fn on_timer(&mut self, driver: &mut D);
    /// When [`Engine::on_timer`] wants to be called, in monotonic milliseconds.
    fn next_deadline_ms(&mut self) -> Option<u64>;
    /// All events of a round are delivered.
    fn on_round_end(&mut self, driver: &mut D);
    /// It has work for the next round, which therefore must not wait for events.
    fn has_work(&self) -> bool;
}
