//! Sends on the streams of a connection: whole frames, as far as the peer's windows and the socket
//! allow.

use http::h2::{Code, Scheme, StreamId as Number};
use http::{Head, Method, Name};
use net::Driver;
use sample::MuxFacts;

use super::turns::Turn;
use super::{Sending, StreamEnd, Upgrade};
use crate::ids::{ConnId, ExchangeId, LinkId, Timers};
use crate::link::messages::Asking;
use crate::link::mux::h1::{Answered, Asked, Wrote};
use crate::link::mux::{Mux, h2};
use crate::link::{Links, Role};
use crate::websocket;
use http::Codec;

/// The scheme of requests without one, as in HAProxy.
const SCHEME: Scheme = Scheme::Https;

/// The codec of a connection and one stream of it.
struct Way<'a> {
    number: Number,
    codec: &'a mut Codec,
}

/// What happens to the next part of a stream's payload.
enum Part {
    /// The stream is closed, or its message has no payload.
    Discard,
    /// It waits: for the stream's window, for its turn, or for the connection.
    Wait,
    /// This much is sent. `ends`: it ends the message.
    Send { count: usize, ends: bool },
}

impl Links {
    /// Adds a stream to a connection.
    pub fn add_stream(
        &mut self,
        connection: ConnId,
        number: Option<Number>,
        timers: &mut Timers,
    ) -> Option<ExchangeId> {
        let sock = self.get(connection)?.sock;
        let mux = Mux::Stream(StreamEnd::new(connection, number, 0));
        let slot = self.insert(sock, Role::Stream(connection), mux, timers);
        let id = ExchangeId::of(slot);
        let parent = self.connection_mut(connection)?;
        let place = parent.children.len() as u32;
        parent.children.push(id);
        if let Some(number) = number {
            parent.codec.set_token(number, slot.slot);
        }
        if let Some(end) = self.stream_end_mut(id) {
            end.place = place;
        }
        Some(id)
    }

    /// The HTTP/2 connection of a link.
    pub fn connection_mut(&mut self, id: ConnId) -> Option<&mut h2::Connection> {
        match &mut self.get_mut(id)?.mux {
            Mux::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    /// The HTTP/2 stream of a link.
    pub fn stream_end_mut(&mut self, id: ExchangeId) -> Option<&mut StreamEnd> {
        match &mut self.get_mut(id)?.mux {
            Mux::Stream(end) => Some(end),
            _ => None,
        }
    }

    /// What fetches tell of the connection that an exchange shares; nothing in HTTP/1.
    pub fn mux_facts(&self, exchange: ExchangeId) -> Option<MuxFacts> {
        let number = self.get(exchange).and_then(|link| match &link.mux {
            Mux::Stream(end) => end.number,
            _ => None,
        });
        let conn = self.connection_of(exchange);
        let connection = conn.and_then(|conn| match &self.get(conn)?.mux {
            Mux::Connection(connection) => Some(connection),
            _ => None,
        });
        match (number, connection) {
            (Some(number), Some(connection)) => {
                let codec = &connection.codec;
                let (streams, most) = (codec.stream_count(), codec.limits().streams_max);
                // A server may permit fewer than are used at most.
                let permitted = streams + codec.room_for_streams();
                let is_client = conn.is_some_and(|conn| self.is_client(conn));
                let allowed = if is_client {
                    most as usize
                } else {
                    permitted.min(most as usize)
                };
                Some(MuxFacts {
                    stream: codec.number_of(number),
                    version: codec.version(),
                    streams: u16::try_from(streams).unwrap_or(u16::MAX),
                    streams_max: u16::try_from(allowed).unwrap_or(u16::MAX),
                })
            }
            _ => None,
        }
    }

    /// The connection that a link is a stream of.
    #[inline]
    pub fn connection_of(&self, id: impl Into<LinkId>) -> Option<ConnId> {
        match self.get(id)?.role {
            Role::Stream(connection) => Some(connection),
            _ => None,
        }
    }

    /// Lets the codec work for a stream, and sends the resulting frames. Returns the number of
    /// their bytes.
    fn with_way<D: Driver>(
        &mut self,
        io: &mut D,
        id: ExchangeId,
        work: impl FnOnce(&mut Way<'_>, &mut Vec<u8>),
    ) -> usize {
        let Some(end) = self.stream_end_mut(id) else {
            return 0;
        };
        let (connection, Some(number)) = (end.connection, end.number) else {
            return 0;
        };
        self.with_codec(io, connection, |codec, frames| {
            work(&mut Way { number, codec }, frames);
        })
    }

    /// Lets the codec work for a connection, and sends the resulting frames. Returns the number of
    /// their bytes.
    pub fn with_codec<D: Driver>(
        &mut self,
        io: &mut D,
        connection: ConnId,
        work: impl FnOnce(&mut Codec, &mut Vec<u8>),
    ) -> usize {
        let mut frames = std::mem::take(&mut self.frames);
        if let Some(parent) = self.connection_mut(connection) {
            work(&mut parent.codec, &mut frames);
            self.send_whole(io, connection, &frames);
        }
        let wire = frames.len();
        frames.clear();
        self.frames = frames;
        wire
    }

    /// Sends the head of a response on a stream. Returns the number of bytes.
    pub(in crate::link) fn respond_stream<D: Driver>(
        &mut self,
        io: &mut D,
        id: ExchangeId,
        head: &Head,
        how: Answered,
    ) -> usize {
        let mut connected = None;
        // HTTP/2 has no 101 (RFC 9113 §8.6).
        if head.status() == 101 {
            connected.insert(head.clone()).make_connected();
        }
        let head = connected.as_ref().unwrap_or(head);
        let Some(end) = self.stream_end_mut(id) else {
            return 0;
        };
        end.head_left(how.framing, how.tunnel, how.reads_on);
        let ends = end.sending == Sending::Over;
        self.with_way(io, id, |way, frames| {
            way.codec.send_response(way.number, head, ends, frames);
        })
    }

    /// Sends an interim response on a stream. Returns the number of bytes.
    pub(in crate::link) fn interim_stream<D: Driver>(
        &mut self,
        io: &mut D,
        id: ExchangeId,
        head: &Head,
    ) -> usize {
        if let Some(end) = self.stream_end_mut(id) {
            end.expects &= head.status() != 100;
        }
        self.with_way(io, id, |way, frames| {
            way.codec.send_response(way.number, head, false, frames);
        })
    }

    /// Sends the head of a request, which opens its stream.
    pub(in crate::link) fn ask_stream<D: Driver>(
        &mut self,
        io: &mut D,
        id: ExchangeId,
        head: &Head,
        how: Asked,
    ) -> Asking {
        let Some(connection) = self.connection_of(id) else {
            return Asking::Full;
        };
        let is_upgrade = how.tunnel && head.method() != Method::Connect;
        let mut extended = None;
        if is_upgrade {
            let Some((head, upgrade)) = self.extended_connect(connection, head) else {
                return Asking::Unsupported;
            };
            if let Some(end) = self.stream_end_mut(id) {
                end.upgrade = Some(Box::new(upgrade));
            }
            extended = Some(head);
        }
        let head = extended.as_ref().unwrap_or(head);
        let Some(end) = self.stream_end_mut(id) else {
            return Asking::Full;
        };
        end.head_left(how.framing, how.tunnel, false);
        let ends = end.sending == Sending::Over;
        let mut number = None;
        let wire = self.with_codec(io, connection, |codec, frames| {
            number = codec.send_request(head, SCHEME, LinkId::from(id).slot, ends, frames);
        });
        let (Some(end), Some(number)) = (self.stream_end_mut(id), number) else {
            return Asking::Full;
        };
        end.number = Some(number);
        Asking::Sent { wire }
    }

    /// The extended CONNECT (RFC 8441 §4) for a request with `Upgrade`. None where the server does
    /// not support it, or the request has a body.
    fn extended_connect(&mut self, connection: ConnId, request: &Head) -> Option<(Head, Upgrade)> {
        let is_taken = self
            .connection_mut(connection)?
            .codec
            .takes_extended_connect();
        let mut head = request.clone();
        let protocol: Box<[u8]> = request.upgrade_protocol()?.into();
        let accept = request.get(Name::SecWebsocketKey).map(websocket::accept);
        if !is_taken || request.method() != Method::Get || !head.make_extended_connect() {
            return None;
        }
        let accept = accept.map(String::into_boxed_str);
        Some((head, Upgrade { accept, protocol }))
    }

    /// Sends payload on a stream, as far as its windows, its turn and the connection allow.
    pub fn stream_data<D: Driver>(&mut self, io: &mut D, id: ExchangeId, bytes: &[u8]) -> Wrote {
        let mut wrote = Wrote::default();
        while wrote.taken < bytes.len() {
            match self.next_part(id, bytes.len() - wrote.taken) {
                Part::Discard => wrote.taken = bytes.len(),
                Part::Wait => {
                    wrote.blocked = true;
                    break;
                }
                Part::Send { count, ends } => {
                    let part = &bytes[wrote.taken..wrote.taken + count];
                    wrote.wire += self.with_way(io, id, |way, frames| {
                        if way.codec.send_data_head(way.number, count, ends, frames) {
                            frames.extend_from_slice(part);
                        }
                    });
                    wrote.taken += count;
                }
            }
        }
        if let Some(link) = self.get_mut(id) {
            link.blocked |= wrote.blocked;
        }
        wrote
    }

    /// How much of `most` bytes a stream may send next.
    fn next_part(&mut self, id: ExchangeId, most: usize) -> Part {
        let Some(link) = self.links.get_mut(id.into()) else {
            return Part::Discard;
        };
        let Mux::Stream(end) = &mut link.mux else {
            return Part::Discard;
        };
        let (Sending::Body { left }, Some(number)) = (&mut end.sending, end.number) else {
            // The message has no payload to send.
            return Part::Discard;
        };
        let (mut left_after, turn, connection) = (*left, end.turn, end.connection);
        let Some(parent) = self.links.get_mut(connection.into()) else {
            return Part::Discard;
        };
        let is_blocked = parent.blocked;
        let Mux::Connection(parent) = &mut parent.mux else {
            return Part::Discard;
        };
        if parent.codec.token(number).is_none() {
            // The stream is closed.
            return Part::Discard;
        }
        let limit = match turn {
            Turn::Waiting => return Part::Wait,
            Turn::Free => usize::MAX,
            Turn::Woken { left } => left,
        };
        // Others that wait come first.
        let is_late = turn == Turn::Free && !parent.turns.is_empty();
        if is_blocked || is_late || limit == 0 || !parent.codec.has_connection_room() {
            parent.turns.queue(id, turn);
            self.list_turns(connection);
            self.set_turn(id, Turn::Waiting);
            return Part::Wait;
        }
        let room = parent.codec.data_room(number);
        let count = room.min(most).min(limit);
        if count == 0 {
            return Part::Wait;
        }
        if let Some(left) = &mut left_after {
            *left = left.saturating_sub(count as u64);
        }
        let ends = left_after == Some(0);
        if let Some(end) = self.stream_end_mut(id) {
            end.sending = if ends {
                Sending::Over
            } else {
                Sending::Body { left: left_after }
            };
            if let Turn::Woken { left } = &mut end.turn {
                *left -= count;
            }
        }
        Part::Send { count, ends }
    }

    fn set_turn(&mut self, id: ExchangeId, turn: Turn) {
        if let Some(end) = self.stream_end_mut(id) {
            end.turn = turn;
        }
    }

    /// Lists a connection whose streams wait, if it takes payload now.
    pub fn list_turns(&mut self, connection: ConnId) {
        let Some(link) = self.links.get_mut(connection.into()) else {
            return;
        };
        let is_blocked = link.blocked;
        if let Mux::Connection(parent) = &mut link.mux
            && !is_blocked
            && !parent.turns.is_empty()
            && parent.codec.has_connection_room()
            && !std::mem::replace(&mut parent.turns.is_listed, true)
        {
            self.turns.push_back(connection);
        }
    }

    /// The number of connections whose waiting streams may send.
    #[inline]
    pub fn listed_turns(&self) -> usize {
        self.turns.len()
    }

    /// The next connection whose waiting streams may send.
    pub fn next_listed(&mut self) -> Option<ConnId> {
        let connection = self.turns.pop_front()?;
        if let Some(parent) = self.connection_mut(connection) {
            parent.turns.is_listed = false;
        }
        Some(connection)
    }

    /// Lets the next waiting streams of a connection send, at most `most`; none where the
    /// connection takes no payload.
    pub fn next_turns(&mut self, connection: ConnId, most: usize) -> Vec<ExchangeId> {
        let Some(link) = self.links.get_mut(connection.into()) else {
            return Vec::new();
        };
        let is_blocked = link.blocked;
        let Mux::Connection(parent) = &mut link.mux else {
            return Vec::new();
        };
        if is_blocked || !parent.codec.has_connection_room() {
            return Vec::new();
        }
        let woken = parent.turns.next_round(most);
        let woken = woken.map(|(id, turn)| {
            self.set_turn(id, turn);
            id
        });
        woken.collect()
    }

    /// Whether a stream has payload to send that the peer's windows do not permit.
    pub fn awaits_credit(&mut self, id: ExchangeId) -> bool {
        let Some(link) = self.links.get_mut(id.into()) else {
            return false;
        };
        let is_waiting = link.blocked;
        let Mux::Stream(end) = &mut link.mux else {
            return false;
        };
        let (connection, Some(number)) = (end.connection, end.number) else {
            return false;
        };
        let parent = self.connection_mut(connection);
        is_waiting && parent.is_some_and(|parent| parent.codec.data_room(number) == 0)
    }

    /// A stream has nothing to send now, and its connection is backlogged: it is told when the
    /// connection takes bytes again.
    pub fn await_turn(&mut self, id: ExchangeId) {
        let Some(link) = self.links.get_mut(id.into()) else {
            return;
        };
        let Mux::Stream(end) = &mut link.mux else {
            return;
        };
        link.blocked = true;
        let (connection, turn) = (
            end.connection,
            std::mem::replace(&mut end.turn, Turn::Waiting),
        );
        if let Some(parent) = self.connection_mut(connection) {
            parent.turns.queue(id, turn);
        }
    }

    /// Ends the message on a stream. Returns the number of bytes that are sent for it.
    pub fn stream_end<D: Driver>(&mut self, io: &mut D, id: ExchangeId, trailers: &Head) -> usize {
        let Some(end) = self.stream_end_mut(id) else {
            return 0;
        };
        let has_payload = match end.sending {
            Sending::Head | Sending::Over => return 0,
            Sending::Bodiless => false,
            Sending::Body { .. } => true,
        };
        end.sending = Sending::Over;
        self.with_way(io, id, |way, frames| {
            if !has_payload || trailers.fields().next().is_none() {
                way.codec.send_data_head(way.number, 0, true, frames);
            } else {
                way.codec.send_trailers(way.number, trailers, frames);
            }
        })
    }

    /// Credits the peer for used payload, unless it has ended its side.
    pub fn consumed<D: Driver>(&mut self, io: &mut D, id: ExchangeId, bytes: usize) {
        let connection = self.connection_of(id).and_then(|link| self.get(link));
        if bytes > 0 && connection.is_some_and(|connection| !connection.eof) {
            self.with_way(io, id, |way, frames| {
                way.codec.consumed(way.number, bytes, frames);
            });
        }
    }

    /// Resets an open stream. A client with a complete response gets `NO_ERROR`, one with an
    /// incomplete response `INTERNAL_ERROR`, and a server `CANCEL`.
    pub fn reset_stream<D: Driver>(&mut self, io: &mut D, id: ExchangeId) {
        if self
            .stream_end_mut(id)
            .is_some_and(|end| end.sending == Sending::Bodiless)
        {
            // The message to the client is complete, whatever the server still sends.
            self.stream_end(io, id, &Head::default());
        }
        let Some(link) = self.get(id) else { return };
        let unused = link.input.len();
        let Mux::Stream(end) = &link.mux else { return };
        let connection = self.get(end.connection).map(|link| &link.role);
        let code = match (connection, end.sending) {
            // The response is complete (RFC 9113 §8.1).
            (Some(Role::Client(_)), Sending::Over) => Code::NO_ERROR,
            (Some(Role::Client(_)), Sending::Head | Sending::Bodiless | Sending::Body { .. }) => {
                Code::INTERNAL_ERROR
            }
            _ => Code::CANCEL,
        };
        self.consumed(io, id, unused);
        self.with_way(io, id, |way, frames| {
            way.codec.send_reset(way.number, code, frames);
        });
    }

    /// Forgets a stream. Returns its connection if that has no other stream.
    pub fn remove_stream(&mut self, id: ExchangeId, timers: &mut Timers) -> Option<ConnId> {
        let link = self.remove(id, timers)?;
        let Mux::Stream(end) = link.mux else {
            return None;
        };
        let parent = self.connection_mut(end.connection)?;
        if end.turn == Turn::Waiting {
            parent.turns.remove(id);
        }
        let place = end.place as usize;
        parent.children.swap_remove(place);
        let is_free = parent.children.is_empty();
        if let Some(moved) = parent.children.get(place).copied()
            && let Some(moved) = self.stream_end_mut(moved)
        {
            moved.place = place as u32;
        }
        is_free.then_some(end.connection)
    }
}
