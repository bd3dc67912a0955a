//! The boundary: what a driver tells the engine, and what the engine asks of a driver.
//!
//! Rules both sides keep:
//! - Slices are lent for the call only. The engine copies only what is left over (a partial head), the driver only
//!   the unsent tail of a message.
//! - No method of [`Driver`] calls back into the engine: entry points never re-enter.
//! - A [`ConnId`] carries a generation; after [`Driver::close`] or [`Engine::on_close`] it names nothing, and a
//!   driver ignores every request for it.
//! - A driver delivers nothing for a paused connection but [`Engine::on_drained`] and a fatal [`Engine::on_close`].

use crate::{Addr, Sockets};

/// A connection's name, shared by driver and engine: a slot and the generation of what lives in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// The slot, dense from 0: both sides index their own tables with it.
    pub slot: u32,
    /// Grows each time the slot is taken again.
    pub generation: u32,
}

/// A listener of the running configuration, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

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

/// What became of the bytes given to [`Driver::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All of them are with the kernel, or will be at the end of the round. If that then does not take them all,
    /// [`Engine::on_drained`] comes although nobody was told of a backlog.
    All,
    /// The driver keeps a copy of the unsent tail and calls [`Engine::on_drained`] when it is gone.
    /// The engine stops feeding this connection until then.
    Backlog,
    /// The connection is dead; [`Engine::on_close`] follows from the driver's loop.
    Dead,
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
    /// The local address it was made to.
    pub local: Addr,
}

/// An outgoing connection that the engine asks for.
#[derive(Clone, Debug)]
pub struct Connect<'a> {
    /// Where to.
    pub to: &'a Addr,
    /// The local address to bind first (`source`).
    pub from: Option<&'a Addr>,
    /// The interface to bind to (`source … interface`).
    pub interface: Option<&'a str>,
    /// TCP keep-alive probes (`option srvtcpka`).
    pub keepalive: bool,
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

/// What the engine asks of its driver. Calls of a dead connection do nothing.
pub trait Driver: Sockets {
    /// The time of this round.
    fn now(&self) -> Now;
    /// The time of this moment, for what is measured within a round.
    fn clock(&self) -> Now {
        self.now()
    }
    /// Sends `head` and then `body`, in one segment where they fit.
    fn send(&mut self, conn: ConnId, head: &[u8], body: &[u8]) -> Sent;
    /// Starts an outgoing connection; [`Engine::on_connected`] or [`Engine::on_close`] follows from the loop.
    ///
    /// # Errors
    /// When it could not start.
    fn connect(&mut self, connect: &Connect<'_>) -> Result<ConnId, ConnectError>;
    /// Sends a FIN once the backlog is gone.
    fn shutdown(&mut self, conn: ConnId);
    /// Closes at once; a backlog is lost. No call for it follows.
    fn close(&mut self, conn: ConnId);
    /// Closes with a RST (`option nolinger`, aborted transfers).
    fn abort(&mut self, conn: ConnId);
    /// Closes without a word to the peer, as far as the system lets us (`silent-drop`); with `rst_ttl` by a RST that
    /// lives for so many hops.
    fn vanish(&mut self, conn: ConnId, rst_ttl: Option<u8>);
    /// Labels the connection's packets from now on. What is none stays as it is.
    fn label(&mut self, conn: ConnId, labels: Labels);
    /// Stops delivering data from this connection.
    fn pause(&mut self, conn: ConnId);
    /// Delivers data again; never from within this call.
    fn resume(&mut self, conn: ConnId);
    /// Stops or starts accepting on a listener (`maxconn`, draining).
    fn accepting(&mut self, listener: ListenerId, on: bool);
    /// Takes the connections that already wait on a listener, then closes it for good.
    fn unlisten(&mut self, listener: ListenerId);
    /// Gives every other worker a round: something they share was freed.
    fn wake_peers(&mut self);
    /// Hands a finished log message, terminated as its target needs, to log target `target`; never blocks.
    fn log(&mut self, target: usize, message: &[u8]);
}

/// What a driver tells the engine.
pub trait Engine<D: Driver> {
    /// What the control thread and the other workers tell it.
    type Message: Send;
    /// A message came.
    fn on_message(&mut self, driver: &mut D, message: Self::Message);
    /// Nothing is left to do after a message told it to stop: the driver's loop ends.
    fn is_finished(&self) -> bool;
    /// A connection came in. Data that is already there is delivered right after.
    fn on_accept(&mut self, driver: &mut D, conn: ConnId, accepted: Accepted);
    /// An outgoing connection stands.
    fn on_connected(&mut self, driver: &mut D, conn: ConnId);
    /// Bytes came in; never empty.
    fn on_data(&mut self, driver: &mut D, conn: ConnId, data: &[u8]);
    /// The backlog of this connection is gone.
    fn on_drained(&mut self, driver: &mut D, conn: ConnId);
    /// The peer will send no more. It may still receive.
    fn on_eof(&mut self, driver: &mut D, conn: ConnId);
    /// The connection is dead.
    fn on_close(&mut self, driver: &mut D, conn: ConnId, why: Close);
    /// The time has reached [`Engine::next_deadline_ms`].
    fn on_timer(&mut self, driver: &mut D);
    /// When [`Engine::on_timer`] wants to be called, in monotonic milliseconds.
    fn next_deadline_ms(&mut self) -> Option<u64>;
    /// All events of a round are delivered.
    fn on_round_end(&mut self, driver: &mut D);
}
