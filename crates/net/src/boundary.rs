//! The boundary: what a driver reports to the engine, and what the engine requests from a driver.
//!
//! Rules for both sides:
//! - Slices are lent for the call only. The engine copies what it cannot use yet (a partial head);
//!   the driver copies what the kernel does not take of a message.
//! - No method of [`Driver`] calls back into the engine: entry points never re-enter.
//! - A [`SockId`] carries a generation; after [`Driver::close`] or [`Engine::on_close`] it names
//!   nothing, and a driver ignores every request for it.
//! - A driver delivers nothing for a paused socket but [`Engine::on_writable`],
//!   [`Engine::on_broken`] and a fatal [`Engine::on_close`].
//! - Unsent bytes wait only in the driver, which bounds them: [`Driver::send`] returns how much of
//!   a body the driver took. Undelivered bytes wait in the kernel, except the few that the engine
//!   holds: [`Engine::on_data`] returns how much the engine took.

use std::any::Any;

use crate::{Addr, Datagrams, Keepalive, Outgoing, Sockets, TcpOptions};

/// The name of a socket, shared by driver and engine: a slot and the generation of the socket in
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SockId {
    /// The slot, dense from 0: both sides index their own tables with it.
    pub slot: u32,
    /// Grows each time the slot is reused.
    pub generation: u32,
}

/// A listener of the running configuration, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// A datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatagramSock {
    /// That of a listener.
    Listener(ListenerId),
    /// One to a server: see [`Driver::connect_datagrams`]. These names have slots of their own.
    Server(SockId),
}

impl From<ListenerId> for DatagramSock {
    fn from(listener: ListenerId) -> DatagramSock {
        DatagramSock::Listener(listener)
    }
}

impl From<SockId> for DatagramSock {
    fn from(sock: SockId) -> DatagramSock {
        DatagramSock::Server(sock)
    }
}

/// A worker of the process, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId(pub u32);

/// The time, read by the driver once per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Monotonic nanoseconds from an arbitrary origin. Deadlines and durations use this.
    pub mono_ns: u64,
    /// Nanoseconds since the UNIX epoch. Only logs and dates use this.
    pub wall_ns: u64,
}

impl Now {
    /// The time of these two clocks, nanoseconds.
    #[must_use]
    pub const fn new(mono_ns: u64, wall_ns: u64) -> Now {
        Now { mono_ns, wall_ns }
    }

    /// This time later, in milliseconds, on both clocks.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Now {
        let ns = ms * 1_000_000;
        Now::new(self.mono_ns + ns, self.wall_ns + ns)
    }

    /// Monotonic milliseconds, the unit of every timeout.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.mono_ns / 1_000_000
    }
}

/// A message to be sent: three parts that leave in this order, in one segment if they fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// Always taken whole: the sender bounds its size.
    pub head: &'a [u8],
    /// Payload: taken as far as the kernel and the driver's queue have room.
    pub body: &'a [u8],
    /// Taken whole once all of the body was taken, otherwise not at all: the sender bounds its
    /// size.
    pub tail: &'a [u8],
}

/// The result of [`Driver::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of the body that the driver took. The sender keeps the rest and may offer it again
    /// after [`Engine::on_writable`]. If the socket is dead, the driver takes the whole body and
    /// discards it.
    pub taken: usize,
    /// The kernel did not take everything: [`Engine::on_writable`] follows at each progress. A
    /// driver may put off small messages to the end of the round and learns only then that the
    /// kernel is full; it then reports progress although `blocked` was false.
    pub blocked: bool,
}

/// What the engine did with the bytes of [`Engine::on_data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// Bytes that the engine used or copied. If these are fewer than it was given, the engine has
    /// paused the socket, and the driver offers the rest again after [`Driver::resume`], which may
    /// come within the same call. The engine must take a delivery whole if it is no longer than
    /// [`Driver::read_bytes`] minus what the engine holds.
    pub bytes: usize,
    /// Bytes of this socket that the engine holds unused; the driver reads that much less at a
    /// time.
    pub held: usize,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The peer reset the connection, or the network failed (`ECONNRESET`, `EPIPE`, `ETIMEDOUT`).
    Reset,
    /// An outgoing connection was refused or its target is unreachable.
    Refused,
}

/// An incoming connection.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The listener that accepted the connection.
    pub listener: ListenerId,
    /// The peer's address.
    pub peer: Addr,
    /// The local address of the connection; the listener's address unless
    /// [`crate::epoll::Setup::local_addrs`] is set.
    pub local: Addr,
}

/// An outgoing connection that the engine requests.
#[derive(Clone, Debug)]
pub struct Connect<'a> {
    /// The address to connect to.
    pub to: &'a Addr,
    /// The local address to bind first (`source`).
    pub from: Option<&'a Addr>,
    /// `from` need not be an address of this machine (`usesrc`).
    pub is_foreign: bool,
    /// The first bytes may leave with the SYN (RFC 7413); the engine must send at once.
    pub fast_open: bool,
    /// The interface to bind to (`source … interface`).
    pub interface: Option<&'a str>,
    /// TCP keep-alive probes (`option srvtcpka`).
    pub keepalive: Option<Keepalive>,
    /// Other socket options.
    pub tcp: &'a TcpOptions,
    /// Labels of the connection's packets.
    pub labels: Labels,
}

/// Labels of a connection's packets for the packet filter and for routers, as far as the system
/// permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The mark that the packet filter of this machine sees (`SO_MARK`).
    pub mark: Option<u32>,
    /// Type of service of IPv4, traffic class of IPv6 (RFC 2474).
    pub tos: Option<u8>,
}

/// The error of an outgoing connection that could not start: the engine treats the connection as
/// refused at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Refused or unreachable.
    Refused,
    /// The connection was not established in time.
    Timeout,
    /// No local port, descriptor or memory is left.
    Resource,
}

/// A value that one worker hands to another; only its producer knows its type.
#[derive(Debug)]
pub struct Parcel(Box<dyn Any + Send>);

impl Parcel {
    /// Packs a value.
    #[must_use]
    pub fn new(content: impl Any + Send) -> Parcel {
        Parcel(Box::new(content))
    }

    /// The value, if it is of this type.
    #[must_use]
    pub fn open<T: Any>(self) -> Option<Box<T>> {
        self.0.downcast().ok()
    }
}

/// The requests of the engine to its driver. Calls for a dead socket do nothing.
pub trait Driver: Sockets {
    /// The time of this round.
    fn now(&self) -> Now;
    /// The same in monotonic milliseconds: [`Now::ms`], which is read many times in a round.
    fn now_ms(&self) -> u64 {
        self.now().ms()
    }
    /// The current time, for measurements within a round.
    fn clock(&self) -> Now {
        self.now()
    }
    /// The largest delivery that the engine must take whole, and the most bytes of a body that wait
    /// in the driver.
    fn read_bytes(&self) -> usize;
    /// Sends a message.
    fn send(&mut self, sock: SockId, message: Message<'_>) -> Sent;
    /// Starts an outgoing connection; [`Engine::on_connected`] or [`Engine::on_close`] follows from
    /// the loop.
    ///
    /// # Errors
    /// The connection could not start.
    fn connect(&mut self, connect: &Connect<'_>) -> Result<SockId, ConnectError>;
    /// Sends a FIN after all bytes taken so far.
    fn shutdown(&mut self, sock: SockId);
    /// Closes the socket when all bytes taken have left, or after a bounded time. The engine makes
    /// no further call for the socket.
    fn close(&mut self, sock: SockId);
    /// Closes with a RST (`option nolinger`, aborted transfers).
    fn abort(&mut self, sock: SockId);
    /// Closes without notifying the peer, as far as the system permits (`silent-drop`); with
    /// `rst_ttl`, closes with a RST that has this hop limit.
    fn vanish(&mut self, sock: SockId, rst_ttl: Option<u8>);
    /// Labels the connection's packets from now on. A label that is `None` stays as it is.
    fn label(&mut self, sock: SockId, labels: Labels);
    /// Gives a socket up, so that the driver of another worker can adopt it ([`Driver::take_in`]).
    /// None if bytes of the socket wait in this driver or its peer has ended; the socket then stays
    /// with this driver.
    fn give_up(&mut self, _sock: SockId) -> Option<Parcel> {
        None
    }
    /// Adopts a socket that the driver of another worker gave up. None if that fails; the socket is
    /// then closed.
    fn take_in(&mut self, _parcel: Parcel) -> Option<SockId> {
        None
    }
    /// Stops delivering data from this socket.
    fn pause(&mut self, sock: SockId);
    /// Delivers data again, but never from within this call.
    fn resume(&mut self, sock: SockId);
    /// Stops or starts accepting on a listener (`maxconn`, draining). A datagram socket goes on: its
    /// connections need it.
    fn accepting(&mut self, listener: ListenerId, on: bool);
    /// Takes the connections that already wait on a listener, then closes it for good. A datagram
    /// socket delivers nothing more from now on, and closes when what it was given to send has left,
    /// or after a bounded time.
    fn unlisten(&mut self, listener: ListenerId);
    /// Closes a listener at once. Connections that wait on it are those of another listener that
    /// holds its socket, if there is one. A datagram socket first sends what the kernel takes at
    /// once.
    fn abandon(&mut self, listener: ListenerId) {
        self.unlisten(listener);
    }
    /// Another process reads the datagram sockets of a listener from now on. This one goes on to
    /// send from them. A driver without datagram sockets has nothing to do.
    fn stop_receiving(&mut self, _listener: ListenerId) {}
    /// Opens a datagram socket to a server: it receives from that address only. Of the options of
    /// TCP, it has the network namespace. A driver without datagram sockets opens none.
    ///
    /// # Errors
    /// The socket cannot be opened, or the address has no route.
    fn connect_datagrams(&mut self, _connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        Err(ConnectError::Resource)
    }
    /// Closes such a socket when what it was given to send has left, or after a bounded time.
    fn close_datagrams(&mut self, _sock: SockId) {}
    /// Sends datagrams: they leave at the end of the round, in order. Datagrams for which there is no
    /// room ([`Driver::datagram_room`]) and those that the network refuses are lost. A driver without
    /// datagram sockets loses all.
    fn send_datagrams(&mut self, _sock: DatagramSock, _datagrams: Outgoing<'_>) {}
    /// Whether the kernel takes datagrams of this socket and [`Driver::send_datagrams`] has room for
    /// [`crate::datagrams::RUN_BYTES_MAX`] bytes. After a false answer,
    /// [`Engine::on_datagram_room`] follows.
    fn datagram_room(&mut self, _sock: DatagramSock) -> bool {
        true
    }
    /// Wakes another worker, which has work to do.
    fn wake(&mut self, worker: WorkerId);
    /// Hands a finished log message, terminated as its target needs, to log target `target`. Never
    /// blocks.
    fn log(&mut self, target: usize, message: &[u8]);
}

/// The events that a driver reports to the engine.
pub trait Engine<D: Driver> {
    /// The type of an order from the control thread.
    type Order: Send;
    /// An order arrived.
    fn on_order(&mut self, driver: &mut D, order: Self::Order);
    /// An order told the engine to stop, and no work is left: the driver's loop ends. `accepts`:
    /// listeners that the engine closed still have connections, which are work to come, or
    /// datagrams to send.
    fn is_finished(&self, accepts: bool) -> bool;
    /// Whether one more connection may be accepted. If so, [`Engine::on_accept`] or
    /// [`Engine::retract`] follows.
    fn admit(&mut self, driver: &mut D, listener: ListenerId) -> bool;
    /// No connection was waiting after [`Engine::admit`] had reserved a place.
    fn retract(&mut self, driver: &mut D, listener: ListenerId);
    /// A connection was accepted. Data that has already arrived is delivered next.
    fn on_accept(&mut self, driver: &mut D, sock: SockId, accepted: Accepted);
    /// An outgoing connection is established.
    fn on_connected(&mut self, driver: &mut D, sock: SockId);
    /// Bytes arrived; never empty. The engine may overwrite the bytes that it takes.
    fn on_data(&mut self, driver: &mut D, sock: SockId, data: &mut [u8]) -> Took;
    /// The kernel took bytes that had waited in the driver. `blocked`: some still wait.
    fn on_writable(&mut self, driver: &mut D, sock: SockId, blocked: bool);
    /// The peer will send no more. It may still receive.
    fn on_eof(&mut self, driver: &mut D, sock: SockId);
    /// The peer accepts no more data. What the peer sent before is still delivered;
    /// [`Engine::on_close`] follows.
    fn on_broken(&mut self, driver: &mut D, sock: SockId);
    /// The connection is dead.
    fn on_close(&mut self, driver: &mut D, sock: SockId, why: Close);
    /// Datagrams arrived at a datagram socket. By default they are ignored.
    fn on_datagrams(&mut self, _driver: &mut D, _datagrams: Datagrams<'_>) {}
    /// There is room for datagrams again, after [`Driver::datagram_room`] was false.
    fn on_datagram_room(&mut self, _driver: &mut D, _sock: DatagramSock) {}
    /// The network reports that a server does not receive what was sent to it
    /// ([`Driver::connect_datagrams`]). The report may be forged.
    fn on_datagrams_refused(&mut self, _driver: &mut D, _sock: SockId) {}
    /// The time has reached [`Engine::next_deadline_ms`].
    fn on_timer(&mut self, driver: &mut D);
    /// When [`Engine::on_timer`] wants to be called, in monotonic milliseconds.
    fn next_deadline_ms(&mut self) -> Option<u64>;
    /// All events of a round are delivered.
    fn on_round_end(&mut self, driver: &mut D);
    /// The engine has work for the next round, so the driver must not wait for events.
    fn has_work(&self) -> bool;
}
