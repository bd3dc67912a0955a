//! HTTP/2: many streams at a time on a connection.
//!
//! The connection's link has a [`Connection`]. Each of its streams is a link of its own, with a [`StreamEnd`] for its mux: what above
//! reads, sends, waits and closes does so for a stream as for a connection of HTTP/1. A stream that is not read keeps its window
//! shut; the other streams of its connection go on.

mod send;

use std::time::Duration;

use http::Head;
use http::h1::Framing;
use http::h2::{Connection as Codec, FRAME_HEAD_BYTES, Limits, StreamId as Number};

use net::timers::NEVER_MS;

use crate::ids::{LinkId, StreamId};

/// A connection with its streams.
#[derive(Debug)]
pub(crate) struct Connection {
    pub codec: Codec,
    /// The links of its streams.
    pub children: Vec<LinkId>,
    /// Bytes that the codec has answered by itself while the socket took none.
    pub unread: usize,
    /// It takes no more streams; it ends with its last one.
    pub is_ending: bool,
    /// Streams that a client has opened.
    pub streams: u32,
    /// It is pinged while it is idle.
    pub pings: Option<Pings>,
}

/// Pings of a connection without streams (`idle-ping`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    pub interval_ms: u64,
    /// When the connection ends by itself.
    pub ends_ms: u64,
    /// The last one is not answered.
    pub is_unanswered: bool,
}

impl Connection {
    /// A client's connection; appends our first words to `out`.
    pub fn with_client(
        limits: Limits,
        idle_ping: Option<Duration>,
        out: &mut Vec<u8>,
    ) -> Box<Connection> {
        Connection::new(Codec::server(limits, out), idle_ping)
    }

    /// The same of a server's.
    pub fn with_server(
        limits: Limits,
        idle_ping: Option<Duration>,
        out: &mut Vec<u8>,
    ) -> Box<Connection> {
        Connection::new(Codec::client(limits, out), idle_ping)
    }

    fn new(codec: Codec, idle_ping: Option<Duration>) -> Box<Connection> {
        Box::new(Connection {
            codec,
            children: Vec::new(),
            unread: 0,
            is_ending: false,
            streams: 0,
            pings: idle_ping.map(|interval| Pings {
                interval_ms: interval.as_millis() as u64,
                ends_ms: NEVER_MS,
                is_unanswered: false,
            }),
        })
    }

    /// The largest frame of the peer with its head, bytes.
    pub fn frame_bytes_max(&self) -> usize {
        FRAME_HEAD_BYTES + self.codec.limits().frame_bytes_max as usize
    }

    /// Whether its peer makes so many glitches that it has to come again: three quarters of those for which it is cut off, if any
    /// are (`tune.h2.fe.glitches-threshold`).
    pub fn is_odd(&self, glitches_max: u32) -> bool {
        let glitches = self.codec.glitches();
        glitches > 0 && glitches_max > 0 && glitches >= glitches_max - glitches_max / 4
    }

    /// Whether one more request may be sent on it.
    pub fn has_room(&self) -> bool {
        !self.is_ending && !self.codec.got_goaway() && self.codec.room_for_streams() > 0
    }
}

/// What is sent of a message on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Its head has not left.
    #[default]
    Head,
    /// Its payload leaves; so much of it is still announced, if its length was.
    Body { left: Option<u64> },
    /// It has no payload, but that of the server is still read. The stream ends with it, so that the server's connection is
    /// free for what the client asks next.
    Bodiless,
    /// All of it has left, or what is left is thrown away.
    Over,
}

/// One stream of a connection: the mux of its link.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    pub connection: LinkId,
    /// Its number; none before a request has opened it.
    pub number: Option<Number>,
    /// The stream whose end it is.
    pub stream: Option<StreamId>,
    /// Its place among [`Connection::children`].
    pub place: u32,
    pub sending: Sending,
    /// The peer's message has ended; what of it is not used waits with the link.
    pub has_ended: bool,
    /// The stream was told so.
    pub is_end_told: bool,
    /// The peer's message has such a length, of which so much has not come.
    pub announced: u64,
    /// It was answered before its request was complete: the rest of that is thrown away.
    pub drains: bool,
    /// The client waits to be asked for its body (`Expect: 100-continue`).
    pub expects: bool,
    /// The trailers of a message whose payload is not used yet.
    pub trailers: Option<Box<Head>>,
    /// Its request waits for the settings of the peer.
    pub awaits_settings: bool,
    /// Its request is an extended CONNECT, which is an upgrade to everyone else.
    pub upgrade: Option<Box<Upgrade>>,
}

/// What is known of an extended CONNECT.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    /// What proves that a server has seen the key which we made for it.
    pub accept: Option<Box<str>>,
    /// What a server is asked for.
    pub protocol: Box<[u8]>,
}

impl StreamEnd {
    /// A stream of a connection.
    pub fn new(connection: LinkId, number: Option<Number>, place: u32) -> StreamEnd {
        StreamEnd {
            connection,
            number,
            stream: None,
            place,
            sending: Sending::Head,
            has_ended: false,
            is_end_told: false,
            announced: 0,
            drains: false,
            expects: false,
            trailers: None,
            awaits_settings: false,
            upgrade: None,
        }
    }

    /// A head has left: what follows it, which is no message's body in a tunnel. `reads_on`: payload comes from the other side
    /// in any case.
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
