//! What the layers above ask about an exchange, one request and its response on a connection,
//! whatever mux frames it.

use net::Driver;
use net::timers::NEVER_MS;

use super::mux::h1::{After, Front, Linger};
use super::mux::h2::{Awaits, Sending};
use super::{Links, Mux, Role};
use crate::ids::{ConnId, ExchangeId, LinkId, StreamId, Timers};

/// What follows an exchange on a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The connection is free for what its mux says.
    Connection(After),
    /// The exchange was one of several: the connection goes on without it.
    Others,
}

/// The stream that uses an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub stream: StreamId,
    /// The exchange is the stream's end towards the client.
    pub is_client: bool,
    /// The connection that the exchange shares with others.
    pub connection: Option<ConnId>,
}

impl Links {
    /// The user of an exchange.
    #[inline]
    pub fn user(&self, exchange: ExchangeId) -> Option<User> {
        let link = self.links.get(exchange.into())?;
        let (is_client, connection) = match link.role {
            Role::Client(_) => (true, None),
            Role::Server(_) => (false, None),
            Role::Stream(connection) => (self.is_client(connection), Some(connection)),
        };
        Some(User {
            stream: link.stream?,
            is_client,
            connection,
        })
    }

    /// Whether an exchange shares its connection with others. Its peer may then refuse it without
    /// having processed it (RFC 9113 §8.7), and bytes after a request for a tunnel belong to the
    /// tunnel.
    #[inline]
    pub fn shares_connection(&self, id: impl Into<LinkId>) -> bool {
        self.connection_of(id).is_some()
    }

    /// The exchange of a connection for a new request: one more where the connection takes several
    /// at a time.
    pub fn open_exchange(&mut self, connection: ConnId, timers: &mut Timers) -> Option<ExchangeId> {
        let link = self.get(connection)?;
        if !matches!(link.mux, Mux::Connection(_)) {
            return Some(connection.only_exchange());
        }
        timers.set(link.timer, NEVER_MS);
        self.add_stream(connection, None, timers)
    }

    /// The glitches of a connection's peer so far (`bc_glitches`).
    pub fn glitches(&mut self, conn: ConnId) -> u32 {
        let connection = self.connection_mut(conn);
        connection.map_or(0, |connection| connection.codec.glitches())
    }

    /// The connection that an exchange has for itself; none if it shares one.
    #[inline]
    pub fn own_connection(&self, exchange: ExchangeId) -> Option<ConnId> {
        (!self.shares_connection(exchange)).then(|| exchange.own_connection())
    }

    /// Both sides of a server's exchange are a tunnel from now on.
    pub fn open_tunnel(&mut self, server: ExchangeId) {
        if let Some(Mux::Back(back)) = self.get_mut(server).map(|link| &mut link.mux) {
            back.become_raw();
        }
    }

    /// A connection takes no request after this exchange.
    pub fn end_after(&mut self, server: ExchangeId) {
        if let Some(Mux::Back(back)) = self.get_mut(server).map(|link| &mut link.mux) {
            back.end_after();
        }
    }

    /// Whether a server's connection can serve another request now: both messages of the exchange
    /// are complete, and nothing waits on it.
    pub fn is_reusable(&self, server: ExchangeId) -> bool {
        self.get(server).is_some_and(|link| {
            matches!(&link.mux, Mux::Back(back) if back.is_reusable())
                && !link.eof
                && !link.blocked
                && link.input.is_empty()
        })
    }

    /// Whether a connection takes one more request beside those that it serves.
    pub fn takes_more(&self, connection: ConnId) -> bool {
        self.get(connection).is_some_and(|link| {
            !link.blocked
                && matches!(&link.mux, Mux::Connection(connection) if connection.has_room())
        })
    }

    /// Whether a client's connection serves one exchange at a time and is kept after this one, as
    /// far as is known.
    pub fn outlives_exchange(&self, client: ExchangeId) -> bool {
        self.get(client)
            .is_some_and(|link| matches!(&link.mux, Mux::Front(front) if front.lives()))
    }

    /// The response of an exchange is complete, and the exchange ends.
    pub fn finish_exchange(&mut self, client: ExchangeId) -> Option<Follows> {
        let link = self.get_mut(client)?;
        Some(match &mut link.mux {
            Mux::Front(front) => {
                link.stream = None;
                Follows::Connection(front.finish())
            }
            Mux::Stream(_) => Follows::Others,
            Mux::Raw | Mux::Back(_) | Mux::Connection(_) => {
                Follows::Connection(After::End(Linger::No))
            }
        })
    }

    /// Whether the peer will still end its side of an exchange, even if its message has no body.
    /// Releasing the exchange before that resets it, and a proxy that is the server then gives up
    /// its own connection for the request.
    pub fn has_end_to_come(&mut self, id: ExchangeId) -> bool {
        self.stream_end_mut(id).is_some_and(|end| !end.has_ended)
    }

    /// What an HTTP/1 server has to prove before the upgrade of this client is accepted (RFC 6455
    /// §4.1); none if nothing.
    pub fn upgrade_proof(&mut self, client: ExchangeId) -> Option<&str> {
        let upgrade = self.stream_end_mut(client)?.upgrade.as_deref()?;
        upgrade.accept.as_deref()
    }

    /// The bytes of a client become HTTP/1 requests, the first of which belongs to this stream.
    /// `came`: bytes that were taken.
    pub fn become_http1(&mut self, client: ExchangeId, stream: StreamId, came: &[u8]) {
        if let Some(link) = self.get_mut(client) {
            link.input.put_back(came);
            link.mux = Mux::Front(Front::default());
            link.stream = Some(stream);
        }
    }

    /// An exchange may send again, unless it waits for its turn. Returns its stream if that has to
    /// be told.
    pub fn wake(&mut self, exchange: ExchangeId) -> Option<StreamId> {
        let link = self.get_mut(exchange)?;
        if link.awaits_turn() || !std::mem::take(&mut link.blocked) {
            return None;
        }
        link.stream
    }

    /// The first exchange of a server's connection. Returns whether it has to wait before it begins:
    /// for the server's settings if it is an upgrade, and for room for a request.
    pub fn awaits_server(&mut self, exchange: ExchangeId, is_upgrade: bool) -> bool {
        let awaits = if is_upgrade {
            Awaits::Settings
        } else {
            Awaits::Room
        };
        let waits = !self.has_come(exchange, awaits);
        if waits && let Some(end) = self.stream_end_mut(exchange) {
            end.awaits = awaits;
        }
        waits
    }

    /// Whether the connection of an exchange takes a request now.
    pub fn has_room(&self, exchange: ExchangeId) -> bool {
        self.has_come(exchange, Awaits::Room)
    }

    /// Whether what an exchange waits for has come.
    fn has_come(&self, exchange: ExchangeId, awaits: Awaits) -> bool {
        let conn = self.connection_of(exchange);
        let Some(Mux::Connection(connection)) = conn.and_then(|conn| Some(&self.get(conn)?.mux))
        else {
            return true;
        };
        let codec = &connection.codec;
        match awaits {
            Awaits::Nothing => true,
            Awaits::Room => codec.room_for_streams() > 0,
            Awaits::Settings => codec.has_settings() && codec.room_for_streams() > 0,
        }
    }

    /// The peer has told more of itself. Returns the stream of an exchange that waited for that.
    pub fn settled(&mut self, exchange: ExchangeId) -> Option<StreamId> {
        let awaits = self.stream_end_mut(exchange)?.awaits;
        if awaits == Awaits::Nothing || !self.has_come(exchange, awaits) {
            return None;
        }
        self.stream_end_mut(exchange)?.awaits = Awaits::Nothing;
        self.stream(exchange)
    }

    /// Whether all of the peer's message has come, where the mux knows that before its payload is
    /// used.
    pub fn has_ended(&mut self, exchange: ExchangeId) -> bool {
        self.stream_end_mut(exchange)
            .is_some_and(|end| end.has_ended)
    }

    /// The response of an exchange that shares its connection is complete: discards the rest of the
    /// request, because a client that is told to stop sending may lose the response. False if
    /// nothing more can come.
    pub fn discard_rest<D: Driver>(&mut self, io: &mut D, exchange: ExchangeId) -> bool {
        let Some(link) = self.links.get_mut(exchange.into()) else {
            return false;
        };
        let unused = link.input.len();
        link.input.clear();
        let Mux::Stream(end) = &mut link.mux else {
            return false;
        };
        if end.has_ended || end.sending != Sending::Over {
            return false;
        }
        end.drains = true;
        link.stream = None;
        self.consumed(io, exchange, unused);
        true
    }
}
