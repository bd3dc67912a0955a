//! The codec of a connection with many streams: that of HTTP/2, or that of HTTP/3, whose bytes are
//! records of streams ([`crate::h3::record`]).

use crate::h2::{Code, Counts, Error, Event, Limits, Scheme, StreamId};
use crate::{Head, Version, h2, h3};

/// See the module.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a connection of HTTP/2 is on the heap as a whole"
)]
pub enum Codec {
    /// HTTP/2.
    H2(h2::Connection),
    /// HTTP/3.
    H3(Box<h3::Connection>),
}

/// Calls a method of either codec.
macro_rules! either {
    ($codec:expr, $one:ident => $call:expr) => {
        match $codec {
            Codec::H2($one) => $call,
            Codec::H3($one) => $call,
        }
    };
}

impl Codec {
    /// Whether it is that of HTTP/3.
    #[must_use]
    pub fn is_h3(&self) -> bool {
        matches!(self, Codec::H3(_))
    }

    /// The version that it speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        match self {
            Codec::H2(_) => Version::Http2,
            Codec::H3(_) => Version::Http3,
        }
    }

    /// The number of a stream in the protocol: of HTTP/3, that of its stream of QUIC (RFC 9000 §2.1).
    #[must_use]
    pub fn number_of(&self, stream: StreamId) -> u64 {
        match self {
            Codec::H2(_) => stream.0.into(),
            Codec::H3(_) => u64::from(stream.0) * 4,
        }
    }

    /// See [`h2::Connection::read`].
    pub fn read(
        &mut self,
        bytes: &[u8],
        now_ms: u64,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event), Error> {
        either!(self, one => one.read(bytes, now_ms, head, out))
    }

    /// See [`h2::Connection::limits`].
    #[must_use]
    pub fn limits(&self) -> &Limits {
        either!(self, one => one.limits())
    }

    /// See [`h2::Connection::stream_count`].
    #[must_use]
    pub fn stream_count(&self) -> usize {
        either!(self, one => one.stream_count())
    }

    /// See [`h2::Connection::room_for_streams`].
    #[must_use]
    pub fn room_for_streams(&self) -> usize {
        either!(self, one => one.room_for_streams())
    }

    /// See [`h2::Connection::has_settings`].
    #[must_use]
    pub fn has_settings(&self) -> bool {
        either!(self, one => one.has_settings())
    }

    /// See [`h2::Connection::takes_extended_connect`].
    #[must_use]
    pub fn takes_extended_connect(&self) -> bool {
        either!(self, one => one.takes_extended_connect())
    }

    /// See [`h2::Connection::got_goaway`].
    #[must_use]
    pub fn got_goaway(&self) -> bool {
        either!(self, one => one.got_goaway())
    }

    /// See [`h2::Connection::has_unprocessed`].
    #[must_use]
    pub fn has_unprocessed(&self) -> bool {
        either!(self, one => one.has_unprocessed())
    }

    /// See [`h2::Connection::glitches`].
    #[must_use]
    pub fn glitches(&self) -> u32 {
        either!(self, one => one.glitches())
    }

    /// See [`h2::Connection::set_glitch_kill`].
    pub fn set_glitch_kill(&mut self, kills: bool) {
        either!(self, one => one.set_glitch_kill(kills));
    }

    /// See [`h2::Connection::token`].
    #[must_use]
    pub fn token(&self, stream: StreamId) -> Option<u32> {
        either!(self, one => one.token(stream))
    }

    /// See [`h2::Connection::set_token`].
    pub fn set_token(&mut self, stream: StreamId, token: u32) {
        either!(self, one => one.set_token(stream, token));
    }

    /// See [`h2::Connection::shutdown`].
    pub fn shutdown(&mut self, out: &mut Vec<u8>) {
        either!(self, one => one.shutdown(out));
    }

    /// See [`h2::Connection::goaway`].
    pub fn goaway(&mut self, code: Code, out: &mut Vec<u8>) {
        either!(self, one => one.goaway(code, out));
    }

    /// See [`h2::Connection::release_spare`].
    pub fn release_spare(&mut self) {
        either!(self, one => one.release_spare());
    }

    /// See [`h2::Connection::take_counts`].
    pub fn take_counts(&mut self) -> Counts {
        either!(self, one => one.take_counts())
    }

    /// See [`h2::Connection::consumed`].
    pub fn consumed(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        either!(self, one => one.consumed(stream, bytes, out));
    }

    /// See [`h2::Connection::send_request`].
    pub fn send_request(
        &mut self,
        head: &Head,
        scheme: Scheme,
        token: u32,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Option<StreamId> {
        either!(self, one => one.send_request(head, scheme, token, end, out))
    }

    /// See [`h2::Connection::send_response`].
    pub fn send_response(
        &mut self,
        stream: StreamId,
        head: &Head,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        either!(self, one => one.send_response(stream, head, end, out))
    }

    /// See [`h2::Connection::data_room`].
    pub fn data_room(&mut self, stream: StreamId) -> usize {
        either!(self, one => one.data_room(stream))
    }

    /// See [`h2::Connection::has_connection_room`].
    pub fn has_connection_room(&mut self) -> bool {
        either!(self, one => one.has_connection_room())
    }

    /// See [`h2::Connection::send_data_head`].
    pub fn send_data_head(
        &mut self,
        stream: StreamId,
        len: usize,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        either!(self, one => one.send_data_head(stream, len, end, out))
    }

    /// See [`h2::Connection::send_trailers`].
    pub fn send_trailers(&mut self, stream: StreamId, trailers: &Head, out: &mut Vec<u8>) -> bool {
        either!(self, one => one.send_trailers(stream, trailers, out))
    }

    /// See [`h2::Connection::send_reset`].
    pub fn send_reset(&mut self, stream: StreamId, code: Code, out: &mut Vec<u8>) -> bool {
        either!(self, one => one.send_reset(stream, code, out))
    }

    /// See [`h2::Connection::ping`].
    pub fn ping(&mut self, payload: u64, out: &mut Vec<u8>) {
        either!(self, one => one.ping(payload, out));
    }
}
