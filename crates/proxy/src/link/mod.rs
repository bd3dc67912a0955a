//! Connections: a socket, its waiting bytes, the mux that reads and writes them, and the side that
//! it belongs to.
//!
//! A link knows its stream by name only. The layers above decide what its bytes mean to streams;
//! [`mux`], below, frames them.

mod client;
mod connection;
mod exchange;
mod ingress;
mod input;
mod messages;
mod mux;
mod quic;
mod secure;
mod server;

use std::collections::VecDeque;

use net::slots::{Key, Slots};
use net::timers::TimerId;
use net::{Driver, Message, Sent, SockId};
use sample::Session;

use self::quic::Quic;
pub(crate) use self::quic::{Dial, NO_SOCKET, Quic as QuicLink};
use crate::ids::{ConnId, ExchangeId, LinkId, Owner, StreamId, Timers};
use crate::random::Random;
use crate::runtime_config::H2Limits;
pub(crate) use client::{Client, Stage};
pub(crate) use connection::HttpMajor;
pub(crate) use connection::{Detached, IdleDue, Named};
pub(crate) use exchange::{Follows, User};
pub(crate) use ingress::{Ingress, Reading, Reset, Taken};
pub(crate) use input::Input;
pub(crate) use messages::Asking;
use mux::Mux;
pub(crate) use mux::h1::{After, Answered, Asked, Linger, Rules, Wrote, is_interim};
pub(crate) use mux::h2::Told;
pub(crate) use secure::{Opened, Secure, ShortRecords};
use secure::{Outgoing, Wire};
pub(crate) use server::{Server, Socks4};

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub sock: SockId,
    pub timer: TimerId,
    /// The reasons for which it is not read: [`Hold`]s.
    holds: u8,
    /// The driver has unsent bytes.
    pub blocked: bool,
    /// The bytes that were sent since then: an upper bound of those that wait.
    owed: usize,
    /// The peer has ended its side.
    pub eof: bool,
    /// Our side is ended.
    pub shut: bool,
    /// It is in the list of connections that continue in the next round.
    pub is_later: bool,
    /// Its TLS session; none for plain connections.
    pub secure: Option<Box<Secure>>,
    /// Its QUIC connection, where it has one instead of a socket.
    pub quic: Option<Box<Quic>>,
    /// Received plain bytes that are not used yet.
    pub input: Input,
    mux: Mux,
    /// The stream that uses it: of a connection that serves one exchange at a time, or of an
    /// exchange that shares its connection.
    stream: Option<StreamId>,
    pub role: Role,
}

/// The side of a connection. Boxed, so that each of them takes only the memory of its own kind.
#[derive(Debug)]
pub(crate) enum Role {
    Client(Box<Client>),
    Server(Box<Server>),
    /// A stream of this HTTP/2 connection, on the connection's side.
    Stream(ConnId),
}

/// A reason why a connection is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Hold {
    /// It has sent more than can be used now.
    Full = 1,
    /// The recipient of its bytes takes no more.
    Peer = 2,
    /// A rule holds its message.
    Rule = 4,
    /// A bandwidth limit lets nothing pass for now.
    Pace = 8,
}

/// The largest input buffer that an idle connection keeps, bytes; a larger one is freed.
const IDLE_INPUT_BYTES_MAX: usize = 256;

/// How many bytes may be sent to a peer that does not read, beyond the message that filled its
/// socket: heads, interim responses and automatic replies, all of which are sent whole. Above it,
/// neither the peer nor the source of such messages is read.
const OWED_BYTES_MAX: usize = 16 << 10;

/// The connections of a worker.
#[derive(Debug)]
pub(crate) struct Links {
    links: Slots<Link, LinkId>,
    /// By the driver's slot.
    of_sock: Vec<LinkId>,
    /// Scratch buffer: the framing around payload that is sent.
    frame: Vec<u8>,
    /// Scratch buffer: a head in HTTP/1; empty between uses.
    head: Vec<u8>,
    /// Scratch buffer: HTTP/2 frames to send; empty between uses.
    frames: Vec<u8>,
    outgoing: Outgoing,
    h2: H2Limits,
    random: Random,
    /// HTTP/2 connections whose waiting streams may send.
    turns: VecDeque<ConnId>,
    /// Connections over QUIC that may have datagrams to send.
    touched: Vec<ConnId>,
    /// Connections over QUIC that are to begin.
    dials: Vec<Dial>,
    /// QUIC connections whose links have ended.
    #[expect(clippy::vec_box, reason = "links and the engine keep them on the heap")]
    leaving: Vec<Box<Quic>>,
}

impl Links {
    /// No connections yet. `short`: the records at the beginning of a transfer. `random`: a source
    /// of random numbers.
    pub fn new(short: Option<ShortRecords>, h2: H2Limits, random: Random) -> Links {
        Links {
            links: Slots::default(),
            of_sock: Vec::new(),
            frame: Vec::new(),
            head: Vec::new(),
            frames: Vec::new(),
            outgoing: Outgoing::new(short),
            h2,
            random,
            turns: VecDeque::new(),
            touched: Vec::new(),
            dials: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Adds a new connection.
    fn add(&mut self, sock: SockId, role: Role, mux: Mux, timers: &mut Timers) -> ConnId {
        let id = self.insert(sock, role, mux, timers);
        if sock == NO_SOCKET {
            return ConnId::of(id);
        }
        let slot = sock.slot as usize;
        if slot >= self.of_sock.len() {
            self.of_sock.resize(slot + 1, LinkId::new(u32::MAX, 0));
        }
        self.of_sock[slot] = id;
        ConnId::of(id)
    }

    fn insert(&mut self, sock: SockId, role: Role, mux: Mux, timers: &mut Timers) -> LinkId {
        self.links.insert_with(|id| Link {
            sock,
            timer: timers.add(Owner::Link(id)),
            holds: 0,
            blocked: false,
            owed: 0,
            eof: false,
            shut: false,
            is_later: false,
            secure: None,
            quic: None,
            input: Input::default(),
            mux,
            stream: None,
            role,
        })
    }

    /// Forgets a connection.
    pub fn remove(&mut self, id: impl Into<LinkId>, timers: &mut Timers) -> Option<Link> {
        let id = id.into();
        let mut link = self.links.remove(id)?;
        timers.remove(link.timer);
        if let Some(quic) = link.quic.take() {
            self.leaving.push(quic);
        }
        Some(link)
    }

    /// The connection of a socket.
    #[inline]
    pub fn of(&self, sock: SockId) -> Option<ConnId> {
        let id = *self.of_sock.get(sock.slot as usize)?;
        (self.links.get(id)?.sock == sock).then(|| ConnId::of(id))
    }

    #[inline]
    pub fn get(&self, id: impl Into<LinkId>) -> Option<&Link> {
        let id = id.into();
        self.links.get(id)
    }

    #[inline]
    pub fn get_mut(&mut self, id: impl Into<LinkId>) -> Option<&mut Link> {
        let id = id.into();
        self.links.get_mut(id)
    }

    /// A link's connection: itself, or the connection that it is a stream of.
    #[inline]
    pub fn base(&self, id: impl Into<LinkId>) -> Option<&Link> {
        let id = id.into();
        let link = self.links.get(id)?;
        match link.role {
            Role::Stream(connection) => self.links.get(connection.into()),
            Role::Client(_) | Role::Server(_) => Some(link),
        }
    }

    #[inline]
    pub fn base_mut(&mut self, id: impl Into<LinkId>) -> Option<&mut Link> {
        let id = id.into();
        if let Role::Stream(connection) = self.links.get(id)?.role {
            return self.links.get_mut(connection.into());
        }
        self.links.get_mut(id)
    }

    /// The stream that uses a connection now.
    #[inline]
    pub fn stream(&self, id: impl Into<LinkId>) -> Option<StreamId> {
        let id = id.into();
        self.get(id)?.stream
    }

    /// Whether received bytes of a connection wait here.
    pub fn has_input(&self, id: impl Into<LinkId>) -> bool {
        let id = id.into();
        self.get(id).is_some_and(|link| !link.input.is_empty())
    }

    /// Whether a connection, or the connection of a stream, is a client's.
    pub fn is_client(&self, id: impl Into<LinkId>) -> bool {
        let id = id.into();
        self.client(id).is_some()
    }

    /// The client's state of a connection, or of a stream's connection.
    #[inline]
    pub fn client(&self, id: impl Into<LinkId>) -> Option<&Client> {
        let id = id.into();
        match &self.base(id)?.role {
            Role::Client(client) => Some(client),
            Role::Server(_) | Role::Stream(_) => None,
        }
    }

    #[inline]
    pub fn client_mut(&mut self, id: impl Into<LinkId>) -> Option<&mut Client> {
        let id = id.into();
        match &mut self.base_mut(id)?.role {
            Role::Client(client) => Some(client),
            Role::Server(_) | Role::Stream(_) => None,
        }
    }

    /// The server's state of a connection, or of a stream's connection.
    pub fn server(&self, id: impl Into<LinkId>) -> Option<&Server> {
        let id = id.into();
        match &self.base(id)?.role {
            Role::Server(server) => Some(server),
            Role::Client(_) | Role::Stream(_) => None,
        }
    }

    pub fn server_mut(&mut self, id: impl Into<LinkId>) -> Option<&mut Server> {
        let id = id.into();
        match &mut self.base_mut(id)?.role {
            Role::Server(server) => Some(server),
            Role::Client(_) | Role::Stream(_) => None,
        }
    }

    /// Whether a client has asked before and waits on its connection with no request under way.
    pub fn is_between_requests(&self, conn: ConnId) -> bool {
        let is_idle = self
            .get(conn)
            .is_some_and(|link| link.is_free() && !link.blocked);
        let has_asked = |client: &Client| client.stage == Stage::Ready && client.streams > 0;
        is_idle && self.client(conn).is_some_and(has_asked)
    }

    /// The session of a client's connection.
    #[inline]
    pub fn session(&self, client: impl Into<LinkId>) -> Option<&Session> {
        let client = client.into();
        self.client(client).map(|client| &client.session)
    }

    /// All connections.
    pub fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter()
    }

    /// The connections of clients.
    pub fn clients(&self) -> impl Iterator<Item = (ConnId, &Client)> {
        self.links.iter().filter_map(|(link, entry)| {
            let Role::Client(client) = &entry.role else {
                return None;
            };
            Some((ConnId::of(link), &**client))
        })
    }

    /// The connection in a slot, if there is one.
    pub fn at(&self, slot: u32) -> Option<LinkId> {
        self.links.key_at(slot)
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.links.slots()
    }

    // ---- sending

    /// Sends bytes unframed, through the connection's TLS session if it has one.
    #[inline]
    pub fn send<D: Driver>(
        &mut self,
        io: &mut D,
        id: impl Into<LinkId>,
        message: Message<'_>,
    ) -> Sent {
        let id = id.into();
        match self.links.get_mut(id) {
            Some(link) => {
                if link.quic.is_some() {
                    return self.send_records(ConnId::of(id), message);
                }
                let was_blocked = link.blocked;
                let sent = self.outgoing.message(io, link.wire(id).0, message);
                link.blocked |= sent.blocked;
                if was_blocked {
                    link.owed += message.head.len() + sent.taken + message.tail.len();
                }
                sent
            }
            None => Sent {
                taken: message.body.len(),
                blocked: false,
            },
        }
    }

    /// Sends bytes outside the connection's TLS session: bytes before it, and its handshake.
    pub fn send_clear<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>, bytes: &[u8]) {
        let id = id.into();
        let head = Message {
            head: bytes,
            ..Message::default()
        };
        if let Some(link) = self.links.get_mut(id) {
            link.blocked |= io.send(link.sock, head).blocked;
        }
    }

    /// Sends the PROXY protocol header of a server's connection, if it has one.
    pub fn send_proxy_header<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>) {
        let id = id.into();
        let Some(Link { sock, role, .. }) = self.links.get(id) else {
            return;
        };
        if let Role::Server(server) = role
            && !server.header.is_empty()
        {
            let head = Message {
                head: &server.header,
                ..Message::default()
            };
            let blocked = io.send(*sock, head).blocked;
            if let Some(link) = self.links.get_mut(id) {
                link.blocked |= blocked;
            }
        }
    }

    /// Sends a head, or other bytes that must be sent as a whole.
    pub fn send_whole<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>, head: &[u8]) {
        let id = id.into();
        if head.is_empty() {
            return;
        }
        let head = Message {
            head,
            ..Message::default()
        };
        self.send(io, id, head);
    }

    /// Sends payload of a connection's stream, framed by its mux.
    #[inline]
    pub fn send_data<D: Driver>(
        &mut self,
        io: &mut D,
        id: impl Into<LinkId>,
        bytes: &[u8],
    ) -> Wrote {
        let id = id.into();
        let Some(link) = self.links.get_mut(id) else {
            return Wrote {
                taken: bytes.len(),
                ..Wrote::default()
            };
        };
        if let Mux::Stream(_) = link.mux {
            return self.stream_data(io, ExchangeId::of(id), bytes);
        }
        let (mut wire, mux) = link.wire(id);
        let (outgoing, frame) = (&mut self.outgoing, &mut self.frame);
        let wrote = mux.data(bytes, frame, |message| {
            let sent = outgoing.message(io, wire.again(), message);
            wire.blocked |= sent.blocked;
            sent
        });
        link.blocked |= wrote.blocked;
        wrote
    }

    /// Ends the payload of a connection's stream. Whether the bytes show the end to the peer, and
    /// how many bytes are sent for it.
    #[inline]
    pub fn send_end<D: Driver>(
        &mut self,
        io: &mut D,
        id: impl Into<LinkId>,
        trailers: &http::Head,
    ) -> (bool, usize) {
        let id = id.into();
        let Some(link) = self.links.get_mut(id) else {
            return (true, 0);
        };
        if let Mux::Stream(_) = link.mux {
            return (true, self.stream_end(io, ExchangeId::of(id), trailers));
        }
        let (mut wire, mux) = link.wire(id);
        let (outgoing, frame) = (&mut self.outgoing, &mut self.frame);
        let mut blocked = false;
        let ended = mux.end(trailers, frame, |message| {
            let sent = outgoing.message(io, wire.again(), message);
            blocked |= sent.blocked;
            sent
        });
        link.blocked |= blocked;
        ended
    }

    /// Ends our side.
    pub fn send_fin<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>) {
        let id = id.into();
        if self.shares_connection(id) {
            self.stream_end(io, ExchangeId::of(id), &http::Head::default());
            return;
        }
        if let Some(link) = self.links.get_mut(id)
            && !std::mem::replace(&mut link.shut, true)
        {
            let sock = link.sock;
            self.say_end(io, ConnId::of(id));
            io.shutdown(sock);
        }
    }

    /// Closes the socket; with `abort` the peer may lose sent bytes. The caller removes the
    /// connection.
    pub fn close<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>, abort: bool) {
        let id = id.into();
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let sock = link.sock;
        if let Some(quic) = &mut link.quic {
            // What was sent before still goes, unless the peer may lose it.
            return quic.leave(abort);
        }
        if abort {
            return io.abort(sock);
        }
        if !link.shut {
            self.say_end(io, ConnId::of(id));
        }
        io.close(sock);
    }

    /// Whether the driver has unsent bytes.
    pub fn is_blocked(&self, id: impl Into<LinkId>) -> bool {
        let id = id.into();
        self.get(id).is_some_and(|link| link.blocked)
    }

    /// Whether the connection of a link has unsent bytes.
    pub fn is_backlogged(&self, id: impl Into<LinkId>) -> bool {
        let id = id.into();
        self.base(id).is_some_and(|link| link.blocked)
    }

    /// Whether the connection of a link has so many unsent bytes that nothing may be done that adds
    /// to them.
    pub fn owes_much(&self, id: impl Into<LinkId>) -> bool {
        let id = id.into();
        self.base(id).is_some_and(Link::owes_much)
    }

    // ---- reading

    /// Stops reading for a reason.
    pub fn hold<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>, why: Hold) {
        let id = id.into();
        if let Some(link) = self.links.get_mut(id) {
            // A stream that is not read keeps its window closed.
            if link.holds == 0 && !matches!(link.role, Role::Stream(_)) {
                io.pause(link.sock);
            }
            link.holds |= why as u8;
        }
    }

    /// Removes a reason and reads again if no other is left.
    pub fn release<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>, why: Hold) {
        let id = id.into();
        if let Some(link) = self.links.get_mut(id)
            && link.holds & why as u8 != 0
        {
            link.holds &= !(why as u8);
            if link.holds == 0 && !matches!(link.role, Role::Stream(_)) {
                if link.quic.is_some() {
                    return self.touch(ConnId::of(id));
                }
                io.resume(link.sock);
            }
        }
    }

    /// Removes all reasons and reads again.
    pub fn release_all<D: Driver>(&mut self, io: &mut D, id: impl Into<LinkId>) {
        let id = id.into();
        if let Some(link) = self.links.get_mut(id)
            && std::mem::take(&mut link.holds) != 0
            && !matches!(link.role, Role::Stream(_))
        {
            if link.quic.is_some() {
                return self.touch(ConnId::of(id));
            }
            io.resume(link.sock);
        }
    }
}

impl Link {
    /// Where a link's messages are sent, and its mux.
    #[inline]
    fn wire(&mut self, id: LinkId) -> (Wire<'_>, &mut Mux) {
        let wire = Wire {
            id: ConnId::of(id),
            sock: self.sock,
            blocked: self.blocked,
            secure: self.secure.as_deref_mut(),
        };
        (wire, &mut self.mux)
    }

    /// Whether so many unsent bytes wait for the peer that nothing may be done that adds to them.
    #[inline]
    pub fn owes_much(&self) -> bool {
        self.blocked && self.owed >= OWED_BYTES_MAX
    }

    /// Whether it is a stream that waits for its turn on its connection.
    pub fn awaits_turn(&self) -> bool {
        matches!(&self.mux, Mux::Stream(end) if end.turn == mux::h2::Turn::Waiting)
    }

    /// The driver has sent bytes. `blocked`: some still wait.
    pub fn progressed(&mut self, blocked: bool) {
        self.blocked = blocked;
        if !blocked {
            self.owed = 0;
        }
    }

    /// Whether as many bytes wait as may.
    pub fn is_full(&self, bufsize: usize) -> bool {
        self.input.len() >= self.mux.input_bytes_max(bufsize)
    }

    /// Whether there is input to use: bytes, here or in the kernel, or the peer's end.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.input.is_empty() || self.eof || self.holds != 0
    }

    /// Whether any reason keeps it from being read.
    pub fn is_held_at_all(&self) -> bool {
        self.holds != 0
    }

    /// Whether this reason keeps it from being read.
    pub fn is_held(&self, why: Hold) -> bool {
        self.holds & why as u8 != 0
    }

    /// Frees memory that an idle connection does not need.
    #[inline]
    pub fn release_spare(&mut self) {
        if self.input.is_empty() && self.input.capacity() > IDLE_INPUT_BYTES_MAX {
            self.input = Input::default();
        }
    }
}
