//! HTTP/2: many concurrent streams on a connection.
//!
//! The connection's link has a [`Connection`]. Each of its streams is a link of its own with a
//! [`StreamEnd`] as its mux, so that the layers above read, send, wait and close for a stream as
//! for an HTTP/1 connection. A stream that is not read keeps its window closed; the other streams
//! of its connection continue.

mod read;
mod send;
mod turns;

use std::time::Duration;

use http::h1::Framing;
use http::h2::{Counts, FRAME_HEAD_BYTES, Limits, StreamId as Number};
use http::{Codec, Head};
use http::{h2, h3};

use net::timers::NEVER_MS;

use crate::ids::{ConnId, ExchangeId};
pub(crate) use turns::Turn;
use turns::Turns;

/// A connection with its streams.
#[derive(Debug)]
pub(crate) struct Connection {
    pub codec: Codec,
    /// The links of its streams.
    pub children: Vec<ExchangeId>,
    /// The streams that wait to send.
    pub turns: Turns,
    /// It takes no new streams, and ends with its last one.
    pub is_ending: bool,
    /// The number of streams that the client has opened.
    pub streams: u32,
    pub idle: Idle,
    /// Its pings while it is idle.
    pub pings: Option<Pings>,
    /// The open streams that statistics know of.
    told_streams: usize,
}

/// What a connection has counted since it was last asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// It speaks HTTP/3.
    pub is_h3: bool,
    pub counts: Counts,
    /// The change of the number of open streams.
    pub opened: i64,
}

/// How long a connection without streams keeps the memory that its next streams would use,
/// milliseconds.
const RELEASE_MS: u64 = 5_000;

/// The deadlines of a connection without streams, monotonic milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    /// When the connection ends by itself.
    pub ends_ms: u64,
    /// When it frees the memory that only streams need; never once that is done.
    release_ms: u64,
}

/// Pings of a connection without streams (`idle-ping`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    pub interval_ms: u64,
    /// When the next one is due.
    pub next_ms: u64,
    /// The last ping is not answered yet.
    pub is_unanswered: bool,
}

impl Connection {
    /// A client's connection; appends our first frames to `out`.
    pub fn with_client(
        limits: Limits,
        idle_ping: Option<Duration>,
        out: &mut Vec<u8>,
    ) -> Box<Connection> {
        Connection::new(Codec::H2(h2::Connection::server(limits, out)), idle_ping)
    }

    /// A server's connection; appends our first frames to `out`.
    pub fn with_server(
        limits: Limits,
        idle_ping: Option<Duration>,
        out: &mut Vec<u8>,
    ) -> Box<Connection> {
        Connection::new(Codec::H2(h2::Connection::client(limits, out)), idle_ping)
    }

    /// A client's connection of HTTP/3; appends our first records to `out`.
    pub fn of_quic_client(limits: Limits, out: &mut Vec<u8>) -> Box<Connection> {
        let codec = Box::new(h3::Connection::server(limits, out));
        Connection::new(Codec::H3(codec), None)
    }

    /// A server's connection of HTTP/3.
    pub fn of_quic_server(limits: Limits, out: &mut Vec<u8>) -> Box<Connection> {
        let codec = Box::new(h3::Connection::client(limits, out));
        Connection::new(Codec::H3(codec), None)
    }

    fn new(codec: Codec, idle_ping: Option<Duration>) -> Box<Connection> {
        Box::new(Connection {
            codec,
            children: Vec::new(),
            turns: Turns::default(),
            is_ending: false,
            streams: 0,
            idle: Idle {
                ends_ms: NEVER_MS,
                release_ms: NEVER_MS,
            },
            pings: idle_ping.map(|interval| Pings {
                interval_ms: interval.as_millis() as u64,
                next_ms: NEVER_MS,
                is_unanswered: false,
            }),
            told_streams: 0,
        })
    }

    /// What the connection has counted since the last call, for statistics.
    pub fn tell(&mut self) -> Told {
        self.tell_with(self.codec.stream_count())
    }

    /// The same at its end.
    pub fn tell_end(&mut self) -> Told {
        self.tell_with(0)
    }

    fn tell_with(&mut self, streams: usize) -> Told {
        let before = std::mem::replace(&mut self.told_streams, streams);
        Told {
            is_h3: self.codec.is_h3(),
            counts: self.codec.take_counts(),
            opened: streams as i64 - before as i64,
        }
    }

    /// The connection has no streams from now on. `ends_ms`: when it ends by itself. Returns its
    /// next deadline.
    pub fn begin_idle(&mut self, now_ms: u64, ends_ms: u64) -> u64 {
        self.idle = Idle {
            ends_ms,
            release_ms: now_ms.saturating_add(RELEASE_MS),
        };
        if let Some(pings) = &mut self.pings {
            pings.next_ms = now_ms.saturating_add(pings.interval_ms);
            pings.is_unanswered = false;
        }
        self.idle_deadline_ms()
    }

    /// The next deadline of a connection without streams.
    pub fn idle_deadline_ms(&self) -> u64 {
        let ping_ms = self.pings.map_or(NEVER_MS, |pings| pings.next_ms);
        self.idle.ends_ms.min(self.idle.release_ms).min(ping_ms)
    }

    /// Frees the memory that only streams need, if it is time to.
    pub fn release_spare(&mut self, now_ms: u64) {
        if now_ms >= self.idle.release_ms {
            self.idle.release_ms = NEVER_MS;
            self.codec.release_spare();
            self.turns.release_spare();
        }
    }

    /// The largest frame that the peer may send, with its header, bytes.
    pub fn frame_bytes_max(&self) -> usize {
        FRAME_HEAD_BYTES + self.codec.limits().frame_bytes_max as usize
    }

    /// Whether the peer's glitches reach three quarters of the number at which it is disconnected,
    /// if there is such a number (`tune.h2.fe.glitches-threshold`). Then it has to reconnect.
    pub fn is_odd(&self, glitches_max: u32) -> bool {
        let glitches = self.codec.glitches();
        glitches > 0 && glitches_max > 0 && glitches >= glitches_max - glitches_max / 4
    }

    /// Whether one more request may be sent on this connection.
    pub fn has_room(&self) -> bool {
        !self.is_ending && !self.codec.got_goaway() && self.codec.room_for_streams() > 0
    }
}

/// How far the message on a stream is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The head is not sent.
    #[default]
    Head,
    /// The payload is being sent. `left`: the bytes still announced, if the length was.
    Body { left: Option<u64> },
    /// The message has no payload, but the server's payload is still read. The stream ends after
    /// that, so that the server's connection is free for the client's next request.
    Bodiless,
    /// The message is sent, or its rest is discarded.
    Over,
}

/// What the request of an exchange waits for, which the server has not told yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Awaits {
    #[default]
    Nothing,
    /// How many requests it permits (HTTP/3).
    Room,
    /// The same, and its settings: whether it supports upgrades.
    Settings,
}

/// One stream of a connection: the mux of its link.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    pub connection: ConnId,
    /// Its number; none until a request opens it.
    pub number: Option<Number>,
    /// Its place among [`Connection::children`].
    pub place: u32,
    pub sending: Sending,
    pub turn: Turn,
    /// The peer's message has ended; its unused bytes wait with the link.
    pub has_ended: bool,
    /// The end was reported to the stream.
    pub is_end_told: bool,
    /// The bytes of the peer's message that were announced and have not come.
    pub announced: u64,
    /// The response came before the request was complete: the rest of the request is discarded.
    pub drains: bool,
    /// The client waits for 100 before it sends its body (`Expect: 100-continue`).
    pub expects: bool,
    /// The trailers of a message whose payload is not used completely.
    pub trailers: Option<Box<Head>>,
    /// What its request waits for before it is sent.
    pub awaits: Awaits,
    /// Its request is an extended CONNECT, which the other layers see as an upgrade.
    pub upgrade: Option<Box<Upgrade>>,
}

/// The state of an extended CONNECT.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    /// The proof that a server has seen the WebSocket key which we made for it.
    pub accept: Option<Box<str>>,
    /// The protocol that a server is asked for.
    pub protocol: Box<[u8]>,
}

impl StreamEnd {
    /// A new stream of a connection.
    pub fn new(connection: ConnId, number: Option<Number>, place: u32) -> StreamEnd {
        StreamEnd {
            connection,
            number,
            place,
            sending: Sending::Head,
            turn: Turn::Free,
            has_ended: false,
            is_end_told: false,
            announced: 0,
            drains: false,
            expects: false,
            trailers: None,
            awaits: Awaits::Nothing,
            upgrade: None,
        }
    }

    /// The head of the peer's message has come. `end`: nothing follows it.
    pub fn message_began(&mut self, framing: Framing, end: bool) {
        self.has_ended = end;
        self.is_end_told = end;
        if let Framing::Length(length) = framing {
            self.announced = length;
        }
    }

    /// A head has been sent: sets how the following bytes are sent; in a tunnel they are not a
    /// body. `reads_on`: the other side's payload is read in any case.
    pub fn head_left(&mut self, framing: Framing, is_tunnel: bool, reads_on: bool) {
        self.sending = match framing {
            _ if is_tunnel => Sending::Body { left: None },
            Framing::None if reads_on => Sending::Bodiless,
            Framing::None | Framing::Length(0) => Sending::Over,
            Framing::Length(length) => Sending::Body { left: Some(length) },
            Framing::Chunked | Framing::UntilClose => Sending::Body { left: None },
        };
    }
}
