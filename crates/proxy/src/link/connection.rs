//! What the layers above ask about a connection and tell it, whatever mux it has.

use std::time::Duration;

use http::h2::Code;
use net::{Driver, SockId};

use super::mux::h1::{Back, Front};
use super::mux::{Mux, h2};
use super::{Client, Link, Links, Role, Secure, Server};
use crate::ids::{ConnId, ExchangeId, LinkId, StreamId, Timers};

/// The exchanges of a connection.
pub(crate) enum Exchanges {
    /// At most one: the connection serves one at a time.
    One(Option<ExchangeId>),
    /// Those of a connection that serves many.
    Many(std::vec::IntoIter<ExchangeId>),
}

impl Iterator for Exchanges {
    type Item = ExchangeId;

    fn next(&mut self) -> Option<ExchangeId> {
        match self {
            Exchanges::One(one) => one.take(),
            Exchanges::Many(all) => all.next(),
        }
    }
}

/// The name of what is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Conn(ConnId),
    /// An exchange that shares its connection.
    Exchange(ExchangeId),
}

/// What the passed deadline of a connection was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleDue {
    /// The mux has no deadlines of its own: it was one of the layers above.
    Above,
    /// Exchanges use the connection, which then has no deadline.
    InUse,
    /// The connection waits until this time.
    Until(u64),
    /// The connection has been idle for long enough.
    Ends,
    /// The peer does not answer a ping.
    Silent,
}

/// An idle server connection without its socket, on its way to another worker.
#[derive(Debug)]
pub(crate) struct Detached {
    pub server: Box<Server>,
    back: Back,
    secure: Option<Box<Secure>>,
}

impl Link {
    /// What a connection of HTTP/2 that ends has counted since it was last asked; none of another
    /// one.
    pub fn tell_end(&mut self) -> Option<h2::Told> {
        match &mut self.mux {
            Mux::Connection(connection) => Some(connection.tell_end()),
            Mux::Raw | Mux::Front(_) | Mux::Back(_) | Mux::Stream(_) => None,
        }
    }
}

/// The major versions of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HttpMajor {
    /// HTTP/1, or no HTTP.
    #[default]
    H1,
    H2,
    H3,
}

impl Links {
    // ---- names

    /// What is in a slot.
    pub fn name(&self, link: LinkId) -> Option<Named> {
        Some(match self.get(link)?.role {
            Role::Client(_) | Role::Server(_) => Named::Conn(ConnId::of(link)),
            Role::Stream(_) => Named::Exchange(ExchangeId::of(link)),
        })
    }

    // ---- beginnings

    /// Adds a client's connection. `is_http`: it carries messages, not bytes as they are.
    pub fn add_client(
        &mut self,
        sock: SockId,
        client: Client,
        is_http: bool,
        timers: &mut Timers,
    ) -> ConnId {
        let mux = if is_http {
            Mux::Front(Front::default())
        } else {
            Mux::Raw
        };
        self.add(sock, Role::Client(Box::new(client)), mux, timers)
    }

    /// Adds a connection to a server in the same way.
    pub fn add_server(
        &mut self,
        sock: SockId,
        server: Server,
        is_http: bool,
        timers: &mut Timers,
    ) -> ConnId {
        let mux = if is_http {
            Mux::Back(Back::default())
        } else {
            Mux::Raw
        };
        self.add(sock, Role::Server(Box::new(server)), mux, timers)
    }

    /// A client's connection speaks HTTP/2 from now on.
    pub fn client_speaks_h2<D: Driver>(
        &mut self,
        io: &mut D,
        conn: ConnId,
        idle_ping: Option<Duration>,
    ) {
        let mut out = Vec::new();
        let connection = h2::Connection::with_client(self.h2.clients, idle_ping, &mut out);
        if let Some(link) = self.get_mut(conn) {
            link.mux = Mux::Connection(connection);
        }
        self.send_whole(io, conn, &out);
    }

    /// A client's connection over QUIC speaks HTTP/3 from now on.
    pub fn client_speaks_h3<D: Driver>(&mut self, io: &mut D, conn: ConnId) {
        let mut out = Vec::new();
        let connection = h2::Connection::of_quic_client(self.h2.quic_clients, &mut out);
        if let Some(link) = self.get_mut(conn) {
            link.mux = Mux::Connection(connection);
        }
        self.send_whole(io, conn, &out);
    }

    /// Whether a connection speaks HTTP/2.
    pub fn speaks_h2(&self, conn: ConnId) -> bool {
        self.speaks(conn) == HttpMajor::H2
    }

    /// The version of HTTP that a connection speaks.
    pub fn speaks(&self, conn: ConnId) -> HttpMajor {
        match self.get(conn).map(|link| &link.mux) {
            Some(Mux::Connection(connection)) if connection.codec.is_h3() => HttpMajor::H3,
            Some(Mux::Connection(_)) => HttpMajor::H2,
            _ => HttpMajor::H1,
        }
    }

    /// A server's connection speaks HTTP/2 from now on, or HTTP/3 over QUIC. Returns the exchange of
    /// the stream that waits for it, and our first frames, which the caller sends
    /// ([`Links::send_whole`]).
    pub fn server_multiplexes(
        &mut self,
        conn: ConnId,
        idle_ping: Option<Duration>,
        timers: &mut Timers,
    ) -> Option<(ExchangeId, Vec<u8>)> {
        let stream = self.stream(conn)?;
        let is_ending = self.server(conn)?.is_ending;
        let mut out = Vec::new();
        let mut connection = if self.get(conn)?.quic.is_some() {
            h2::Connection::of_quic_server(self.h2.quic_servers, &mut out)
        } else {
            h2::Connection::with_server(self.h2.servers, idle_ping, &mut out)
        };
        connection.is_ending = is_ending;
        let link = self.get_mut(conn)?;
        link.mux = Mux::Connection(connection);
        link.stream = None;
        let exchange = self.add_stream(conn, None, timers)?;
        self.set_stream(exchange, Some(stream));
        Some((exchange, out))
    }

    /// The server has not read the early data of a connection over QUIC, which begins again: the stream
    /// of its exchange waits for it. Returns what the connection has counted.
    pub fn server_begins_again(&mut self, conn: ConnId, timers: &mut Timers) -> Option<h2::Told> {
        let exchange = self.exchanges(conn).next()?;
        let stream = self.stream(exchange);
        self.remove_stream(exchange, timers);
        let link = self.get_mut(conn)?;
        let told = link.tell_end();
        link.mux = Mux::Back(Back::default());
        link.stream = stream;
        if let Some(quic) = &mut link.quic {
            quic.begin_again();
        }
        told
    }

    /// Takes an idle server connection apart, so that another worker can use it.
    pub fn detach(&mut self, conn: ConnId, timers: &mut Timers) -> Option<Detached> {
        let link = self.remove(conn, timers)?;
        match (link.role, link.mux) {
            (Role::Server(server), Mux::Back(back)) => Some(Detached {
                server,
                back,
                secure: link.secure,
            }),
            // The pool has no other kinds of connections.
            _ => None,
        }
    }

    /// Adds a connection of another worker.
    pub fn add_detached(
        &mut self,
        sock: SockId,
        detached: Detached,
        timers: &mut Timers,
    ) -> ConnId {
        let Detached {
            server,
            back,
            secure,
        } = detached;
        let conn = self.add(sock, Role::Server(server), Mux::Back(back), timers);
        if let Some(link) = self.get_mut(conn) {
            link.secure = secure;
        }
        conn
    }

    // ---- exchanges

    /// Whether a connection serves many exchanges at a time.
    #[inline]
    pub fn multiplexes(&self, conn: ConnId) -> bool {
        self.get(conn).is_some_and(Link::multiplexes)
    }

    /// The present exchanges of a connection.
    pub fn exchanges(&self, conn: ConnId) -> Exchanges {
        self.some_exchanges(conn, |connection| connection.children.clone())
    }

    /// The exchanges of a connection that wait to send.
    pub fn waiting_exchanges(&self, conn: ConnId) -> Exchanges {
        self.some_exchanges(conn, |connection| connection.turns.waiting().collect())
    }

    /// The only exchange of a connection, or those that `choose` returns of one that serves many.
    fn some_exchanges(
        &self,
        conn: ConnId,
        choose: impl FnOnce(&h2::Connection) -> Vec<ExchangeId>,
    ) -> Exchanges {
        let Some(link) = self.get(conn) else {
            return Exchanges::One(None);
        };
        match &link.mux {
            Mux::Connection(connection) => Exchanges::Many(choose(connection).into_iter()),
            _ => Exchanges::One(link.stream.map(|_| conn.only_exchange())),
        }
    }

    /// Binds the exchange of a connection that serves one at a time to a stream, or frees it.
    #[inline]
    pub fn set_stream(&mut self, exchange: ExchangeId, stream: Option<StreamId>) {
        if let Some(link) = self.get_mut(exchange) {
            link.stream = stream;
        }
    }

    // ---- ends

    /// The peer is told to begin no further exchanges. Whether it was: some muxes can tell it only
    /// with the next response.
    pub fn announce_end<D: Driver>(&mut self, io: &mut D, conn: ConnId) -> bool {
        if !self.multiplexes(conn) || self.get(conn).is_some_and(|link| link.shut) {
            return false;
        }
        self.with_codec(io, conn, |codec, frames| codec.shutdown(frames));
        true
    }

    /// Tells the peer that the connection closes now, if the mux has a message for that.
    pub fn send_goaway<D: Driver>(&mut self, io: &mut D, conn: ConnId) {
        self.go_away(io, conn, Code::NO_ERROR);
    }

    fn go_away<D: Driver>(&mut self, io: &mut D, conn: ConnId, code: Code) {
        self.with_codec(io, conn, |codec, frames| codec.goaway(code, frames));
    }

    /// A client is turned away: it is told to go, and treated as if it had ended its side.
    pub fn expel<D: Driver>(&mut self, io: &mut D, conn: ConnId) {
        self.go_away(io, conn, Code::ENHANCE_YOUR_CALM);
        self.stop_exchanges(conn);
        if let Some(link) = self.get_mut(conn) {
            link.eof = true;
        }
    }

    /// A connection takes no further exchanges and ends with its last one.
    pub fn stop_exchanges(&mut self, conn: ConnId) {
        if let Some(connection) = self.connection_mut(conn) {
            connection.is_ending = true;
        }
    }

    /// Whether a connection that serves many exchanges ends with its last one.
    pub fn is_ending(&self, conn: ConnId) -> bool {
        self.get(conn).is_some_and(
            |link| matches!(&link.mux, Mux::Connection(connection) if connection.is_ending),
        )
    }

    // ---- time

    /// A connection has no exchanges from now on. `ends_ms`: when it ends by itself. Returns its
    /// next deadline, which is earlier where the mux has work to do before.
    pub fn begin_idle(&mut self, conn: ConnId, now_ms: u64, ends_ms: u64) -> u64 {
        match self.connection_mut(conn) {
            Some(connection) => connection.begin_idle(now_ms, ends_ms),
            None => ends_ms,
        }
    }

    /// Whether a connection serves many exchanges, and has none now.
    pub fn is_idle(&self, conn: ConnId) -> bool {
        self.get(conn).is_some_and(|link| match &link.mux {
            Mux::Connection(connection) => connection.children.is_empty(),
            _ => false,
        })
    }

    /// What a connection of HTTP/2 has counted since the last call; none of another one.
    pub fn tell(&mut self, conn: ConnId) -> Option<h2::Told> {
        Some(self.connection_mut(conn)?.tell())
    }

    /// Changes when a connection without exchanges ends by itself.
    pub fn set_idle_end(&mut self, conn: ConnId, ends_ms: u64) {
        if let Some(connection) = self.connection_mut(conn) {
            connection.idle.ends_ms = ends_ms;
        }
    }

    /// The deadline of a connection has passed: does the work of its mux that is due.
    pub fn idle_due<D: Driver>(&mut self, io: &mut D, conn: ConnId, now_ms: u64) -> IdleDue {
        let Some(connection) = self.connection_mut(conn) else {
            return IdleDue::Above;
        };
        if !connection.children.is_empty() {
            return IdleDue::InUse;
        }
        if now_ms >= connection.idle.ends_ms {
            return IdleDue::Ends;
        }
        connection.release_spare(now_ms);
        let mut pings = false;
        if let Some(due) = connection
            .pings
            .as_mut()
            .filter(|due| now_ms >= due.next_ms)
        {
            if due.is_unanswered {
                return IdleDue::Silent;
            }
            (due.is_unanswered, pings) = (true, true);
            due.next_ms = now_ms.saturating_add(due.interval_ms);
        }
        let at_ms = connection.idle_deadline_ms();
        if pings {
            self.with_codec(io, conn, |codec, frames| {
                codec.ping(now_ms, frames);
            });
        }
        IdleDue::Until(at_ms)
    }
}

impl Link {
    /// The stream that uses the connection now, where it serves one at a time, or the exchange.
    #[inline]
    pub fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// Whether it serves many exchanges at a time.
    pub fn multiplexes(&self) -> bool {
        matches!(self.mux, Mux::Connection(_))
    }

    /// Whether no exchange uses the connection.
    #[inline]
    pub fn is_free(&self) -> bool {
        match &self.mux {
            Mux::Connection(connection) => connection.children.is_empty(),
            _ => self.stream.is_none(),
        }
    }

    /// Whether the next bytes may begin a request.
    #[inline]
    pub fn awaits_request(&self) -> bool {
        match &self.mux {
            Mux::Front(front) => self.stream.is_none() && front.awaits_head(),
            Mux::Connection(_) => true,
            Mux::Raw | Mux::Back(_) | Mux::Stream(_) => false,
        }
    }

    /// Whether the next bytes begin a message, which may be of any version of HTTP.
    #[inline]
    pub fn is_before_head(&self) -> bool {
        match &self.mux {
            Mux::Front(front) => front.awaits_head(),
            Mux::Back(back) => back.awaits_head(),
            Mux::Raw | Mux::Connection(_) | Mux::Stream(_) => false,
        }
    }

    /// Whether the peer has to take bytes before more of it is read: what it sends provokes more of
    /// them.
    #[inline]
    pub fn must_drain_first(&self) -> bool {
        self.blocked
            && match &self.mux {
                Mux::Front(_) => self.awaits_request(),
                Mux::Connection(_) => self.owes_much(),
                Mux::Raw | Mux::Back(_) | Mux::Stream(_) => false,
            }
    }

    /// Whether the connection carries messages; otherwise bytes as they are.
    pub fn is_http(&self) -> bool {
        !matches!(self.mux, Mux::Raw)
    }

    /// Whether the rest of a request that was answered early is discarded.
    pub fn discards_rest(&self) -> bool {
        match &self.mux {
            Mux::Front(front) => front.drains(),
            Mux::Stream(end) => end.drains,
            Mux::Raw | Mux::Back(_) | Mux::Connection(_) => false,
        }
    }

    /// Whether it may have events without further bytes.
    #[inline]
    pub fn has_more_to_tell(&self) -> bool {
        self.mux.has_more_to_tell()
    }

    /// How many bytes may wait before the connection is not read further.
    #[inline]
    pub fn input_bytes_max(&self, bufsize: usize) -> usize {
        self.mux.input_bytes_max(bufsize)
    }
}
