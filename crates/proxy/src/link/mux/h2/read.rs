//! Reads the frames of a connection, as events of its exchanges.

use http::h1::{Framing, Parsed};
use http::h2::{Code, Event, StreamId as Number};
use http::{Head, Name};
use net::timers::NEVER_MS;
use net::{CpuOf, Driver};

use super::Upgrade;
use crate::ids::{ConnId, ExchangeId};
use crate::link::ingress::{Ingress, Reading, Reset, Taken};
use crate::link::mux::Mux;
use crate::link::mux::h1::is_interim;
use crate::link::{Links, Role};
use crate::random::Random;
use crate::websocket;

impl Links {
    /// The next event of a connection's frames, and how many bytes it used.
    pub(in crate::link) fn pull_frame<'a, D: Driver>(
        &mut self,
        io: &mut D,
        conn: ConnId,
        bytes: &'a [u8],
        reading: &mut Reading<'_>,
    ) -> (usize, Ingress<'a>) {
        let gone = (bytes.len(), Ingress::Nothing);
        let Some(link) = self.links.get_mut(conn.into()) else {
            return gone;
        };
        let is_client = matches!(link.role, Role::Client(_));
        let Mux::Connection(connection) = &mut link.mux else {
            return gone;
        };
        let h2 = &self.h2;
        let mut frames = std::mem::take(&mut self.frames);
        if connection.is_odd(connection.codec.limits().glitches_max) {
            connection.is_ending = true;
            connection.codec.shutdown(&mut frames);
        }
        if h2.glitches_kill_percent > 0 {
            let kills = io.cpu_usage(CpuOf::Thread) >= h2.glitches_kill_percent;
            connection.codec.set_glitch_kill(kills);
        }
        let glitches = connection.codec.glitches();
        let head = &mut *reading.head;
        let read = connection.codec.read(bytes, io.now_ms(), head, &mut frames);
        reading.glitches += connection.codec.glitches() - glitches;
        self.send_whole(io, conn, &frames);
        frames.clear();
        self.frames = frames;
        let Ok((used, event)) = read else {
            return (bytes.len(), Ingress::Failed);
        };
        let event = match event {
            Event::More => Ingress::More,
            Event::Head {
                stream,
                token,
                end,
                framing,
                expect_continue,
                ..
            } => {
                let parsed = Parsed {
                    consumed: used,
                    framing,
                    keep_alive: true,
                    expect_continue,
                    ..Parsed::default()
                };
                if is_client {
                    self.request_came(io, (conn, stream), parsed, end, reading)
                } else {
                    self.response_came(token, parsed, end, reading.head)
                }
            }
            Event::Data {
                stream,
                token,
                range,
                end,
            } => self.data_came(io, (conn, stream), token, &bytes[range], end),
            Event::Trailers { token, .. } => self.trailers_came(token, reading),
            Event::Reset { token, code, .. } => self.reset_came(token, code),
            Event::WindowOpen { token, .. } => self
                .child_at(token)
                .map_or(Ingress::Nothing, Ingress::Writable),
            Event::WindowsOpen => {
                self.list_turns(conn);
                Ingress::Nothing
            }
            Event::Settings => {
                self.list_turns(conn);
                Ingress::Settled
            }
            Event::Goaway { .. } => {
                self.stop_exchanges(conn);
                Ingress::Ending
            }
            // A stream beyond the limit is no fault of the request: the client sends it again.
            Event::Refused { error, .. } if error.code == Code::REFUSED_STREAM => Ingress::Nothing,
            Event::Refused { .. } => Ingress::Refused,
            Event::Pong(_) => self.ponged(conn),
        };
        (used, event)
    }

    /// The stream with a token, if an exchange uses it or its rest is discarded.
    fn child_at(&self, token: u32) -> Option<ExchangeId> {
        let child = self.at(token)?;
        matches!(self.get(child)?.mux, Mux::Stream(_)).then(|| ExchangeId::of(child))
    }

    /// A client opens a stream with a request.
    fn request_came<D: Driver>(
        &mut self,
        io: &mut D,
        (conn, number): (ConnId, Number),
        parsed: Parsed,
        end: bool,
        reading: &mut Reading<'_>,
    ) -> Ingress<'static> {
        let Some(child) = self.add_stream(conn, Some(number), reading.timers) else {
            return Ingress::Nothing;
        };
        if let Some(link) = self.get(conn) {
            reading.timers.set(link.timer, NEVER_MS);
        }
        let (h2_most, quic_most) = (self.h2.total_streams_max, self.h2.quic_total_streams_max);
        if let Some(connection) = self.connection_mut(conn) {
            let is_h3 = connection.codec.is_h3();
            connection.streams += 1;
            // The client is told after the last stream that it may open
            // (`tune.h2.fe.max-total-streams`, `tune.quic.fe.stream.max-total`). Streams that it has
            // sent meanwhile are accepted.
            let most = if is_h3 { quic_most } else { h2_most };
            if most.is_some_and(|most| connection.streams == most) {
                connection.is_ending = true;
                self.announce_end(io, conn);
            }
        }
        let upgrade = open_upgrade(reading.head, &self.random);
        let is_upgrade = upgrade.is_some();
        if let Some(stream_end) = self.stream_end_mut(child) {
            stream_end.upgrade = upgrade;
            stream_end.message_began(parsed.framing, end);
            stream_end.expects = parsed.expect_continue && !end;
        }
        Ingress::Head {
            exchange: child,
            parsed: Parsed {
                upgrade: parsed.upgrade || is_upgrade,
                ..parsed
            },
            behind: 0,
        }
    }

    /// A server responds on a stream.
    fn response_came(
        &mut self,
        token: u32,
        parsed: Parsed,
        end: bool,
        head: &mut Head,
    ) -> Ingress<'static> {
        let Some(child) = self.child_at(token) else {
            return Ingress::Nothing;
        };
        let Some(stream_end) = self.stream_end_mut(child) else {
            return Ingress::Nothing;
        };
        let status = head.status();
        if head.reason().is_empty() {
            // HTTP/2 has no reason phrases, and some HTTP/1 clients expect one.
            head.set_status(status, http::reason(status).as_bytes());
        }
        let mut parsed = parsed;
        if !is_interim(status) {
            // A server that accepts an extended CONNECT accepts an upgrade.
            let upgrade = stream_end.upgrade.take();
            if let Some(upgrade) = upgrade.filter(|_| (200..300).contains(&status)) {
                let accept = upgrade.accept.as_deref().map(str::as_bytes);
                head.make_switched(&upgrade.protocol, accept);
                parsed.framing = Framing::None;
            }
            stream_end.message_began(parsed.framing, end);
        }
        Ingress::Head {
            exchange: child,
            parsed,
            behind: 0,
        }
    }

    /// Payload of a stream.
    fn data_came<'a, D: Driver>(
        &mut self,
        io: &mut D,
        (conn, number): (ConnId, Number),
        token: u32,
        bytes: &'a [u8],
        end: bool,
    ) -> Ingress<'a> {
        let child = self.child_at(token);
        let is_used = child.is_some_and(|child| self.stream(child).is_some());
        let Some(child) = child.filter(|_| is_used) else {
            // No recipient is left; the peer is credited all the same.
            self.with_codec(io, conn, |codec, frames| {
                codec.consumed(number, bytes.len(), frames);
            });
            return match child {
                Some(child) if end => self.rest_came(child),
                Some(child) => Ingress::Discarded(child),
                None => Ingress::Nothing,
            };
        };
        let Some(link) = self.links.get_mut(child.into()) else {
            return Ingress::Nothing;
        };
        if let Mux::Stream(stream_end) = &mut link.mux {
            stream_end.has_ended |= end;
            stream_end.announced = stream_end.announced.saturating_sub(bytes.len() as u64);
        }
        let mut bytes = bytes;
        if !link.input.is_empty() {
            // It follows payload that waits.
            link.input.extend_from_slice(bytes);
            bytes = &[];
        }
        Ingress::Data {
            exchange: child,
            bytes,
            framing: 0,
        }
    }

    fn trailers_came(&mut self, token: u32, reading: &mut Reading<'_>) -> Ingress<'static> {
        let Some(child) = self.child_at(token) else {
            return Ingress::Nothing;
        };
        if self.stream(child).is_none() {
            return self.rest_came(child);
        }
        let waits = self.has_input(child);
        let Some(end) = self.stream_end_mut(child) else {
            return Ingress::Nothing;
        };
        end.has_ended = true;
        if waits {
            end.trailers = Some(Box::new(std::mem::take(reading.head)));
            return Ingress::Nothing;
        }
        if std::mem::replace(&mut end.is_end_told, true) {
            return Ingress::Nothing;
        }
        std::mem::swap(reading.head, reading.trailers);
        Ingress::End {
            exchange: child,
            wire: 0,
        }
    }

    /// The rest of a request that was answered early has come, or will not come.
    fn rest_came(&mut self, child: ExchangeId) -> Ingress<'static> {
        match self.stream_end_mut(child) {
            Some(end) if end.drains => Ingress::Drained(child),
            Some(_) | None => Ingress::Nothing,
        }
    }

    /// A peer has reset a stream.
    fn reset_came(&mut self, token: u32, code: Code) -> Ingress<'static> {
        let Some(child) = self.child_at(token) else {
            return Ingress::Nothing;
        };
        if self.stream(child).is_none() {
            return self.rest_came(child);
        }
        let Some(end) = self.stream_end_mut(child) else {
            return Ingress::Nothing;
        };
        let why = match code {
            Code::NO_ERROR if end.has_ended => Reset::Answered,
            Code::REFUSED_STREAM => Reset::Unprocessed,
            _ => Reset::Lost,
        };
        Ingress::Reset {
            exchange: child,
            why,
        }
    }

    /// A peer has answered a ping.
    fn ponged(&mut self, conn: ConnId) -> Ingress<'static> {
        let pings = self
            .connection_mut(conn)
            .and_then(|conn| conn.pings.as_mut());
        match pings {
            Some(pings) => {
                pings.is_unanswered = false;
                Ingress::Alive
            }
            None => Ingress::Nothing,
        }
    }

    /// See [`Links::took`].
    pub(in crate::link) fn took_of_stream<D: Driver>(
        &mut self,
        io: &mut D,
        id: ExchangeId,
        (used, left): (usize, usize),
        trailers: &mut Head,
    ) -> Taken {
        self.consumed(io, id, used);
        // Payload that has waited comes first.
        if left > 0 || self.has_input(id) {
            return Taken::Part;
        }
        let Some(end) = self.stream_end_mut(id) else {
            return Taken::All;
        };
        if !end.has_ended || std::mem::replace(&mut end.is_end_told, true) {
            return Taken::All;
        }
        let of_end = end.trailers.take();
        let has_trailers = of_end.is_some();
        if let Some(of_end) = of_end {
            *trailers = *of_end;
        }
        Taken::Message { has_trailers }
    }

    /// Credits the peer of a connection for payload whose exchange is gone.
    pub fn credit<D: Driver>(&mut self, io: &mut D, conn: ConnId, bytes: usize) {
        if bytes > 0 {
            self.with_codec(io, conn, |codec, frames| {
                codec.consumed(Number::CONNECTION, bytes, frames);
            });
        }
    }
}

/// Converts an extended CONNECT into an HTTP/1 upgrade. For an HTTP/1 server that speaks WebSocket
/// the key is made here.
fn open_upgrade(head: &mut Head, random: &Random) -> Option<Box<Upgrade>> {
    if !head.make_upgrade() {
        return None;
    }
    let mut upgrade = Upgrade::default();
    if head.is_websocket() && !head.has(Name::SecWebsocketKey) {
        let key = websocket::key([random.next(), random.next()]);
        head.append(b"sec-websocket-key", key.as_bytes());
        upgrade.accept = Some(websocket::accept(key.as_bytes()).into());
    }
    Some(Box::new(upgrade))
}
