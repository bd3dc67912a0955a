//! The codec of a connection with many streams: that of HTTP/2, or that of HTTP/3, whose bytes are
//! records of streams ([`http::h3::record`]).

use http::h2::{Code, Counts, Error, Event, Limits, Scheme, StreamId};
use http::{Head, h2, h3};

/// See the module.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a connection of HTTP/2 is on the heap as a whole"
)]
pub(crate) enum Codec {
    H2(h2::Connection),
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
    pub fn is_h3(&self) -> bool {
        matches!(self, Codec::H3(_))
    }

    /// The number of a stream in the protocol: of HTTP/3, that of its stream of QUIC (RFC 9000 §2.1).
    pub fn number_of(&self, stream: StreamId) -> u64 {
        match self {
            Codec::H2(_) => stream.0.into(),
            Codec::H3(_) => u64::from(stream.0) * 4,
        }
    }

    pub fn read(
        &mut self,
        bytes: &[u8],
        now_ms: u64,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event), Error> {
        either!(self, one => one.read(bytes, now_ms, head, out))
    }

    pub fn limits(&self) -> &Limits {
        either!(self, one => one.limits())
    }

    pub fn stream_count(&self) -> usize {
        either!(self, one => one.stream_count())
    }

    pub fn room_for_streams(&self) -> usize {
        either!(self, one => one.room_for_streams())
    }

    pub fn has_settings(&self) -> bool {
        either!(self, one => one.has_settings())
    }

    pub fn takes_extended_connect(&self) -> bool {
        either!(self, one => one.takes_extended_connect())
    }

    pub fn got_goaway(&self) -> bool {
        either!(self, one => one.got_goaway())
    }

    pub fn has_unprocessed(&self) -> bool {
        either!(self, one => one.has_unprocessed())
    }

    pub fn glitches(&self) -> u32 {
        either!(self, one => one.glitches())
    }

    pub fn set_glitch_kill(&mut self, kills: bool) {
        either!(self, one => one.set_glitch_kill(kills));
    }

    pub fn token(&self, stream: StreamId) -> Option<u32> {
        either!(self, one => one.token(stream))
    }

    pub fn set_token(&mut self, stream: StreamId, token: u32) {
        either!(self, one => one.set_token(stream, token));
    }

    pub fn shutdown(&mut self, out: &mut Vec<u8>) {
        either!(self, one => one.shutdown(out));
    }

    pub fn goaway(&mut self, code: Code, out: &mut Vec<u8>) {
        either!(self, one => one.goaway(code, out));
    }

    pub fn release_spare(&mut self) {
        either!(self, one => one.release_spare());
    }

    pub fn take_counts(&mut self) -> Counts {
        either!(self, one => one.take_counts())
    }

    pub fn consumed(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        either!(self, one => one.consumed(stream, bytes, out));
    }

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

    pub fn send_response(
        &mut self,
        stream: StreamId,
        head: &Head,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        either!(self, one => one.send_response(stream, head, end, out))
    }

    pub fn data_room(&mut self, stream: StreamId) -> usize {
        either!(self, one => one.data_room(stream))
    }

    pub fn has_connection_room(&mut self) -> bool {
        either!(self, one => one.has_connection_room())
    }

    pub fn send_data_head(
        &mut self,
        stream: StreamId,
        len: usize,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        either!(self, one => one.send_data_head(stream, len, end, out))
    }

    pub fn send_trailers(&mut self, stream: StreamId, trailers: &Head, out: &mut Vec<u8>) -> bool {
        either!(self, one => one.send_trailers(stream, trailers, out))
    }

    pub fn send_reset(&mut self, stream: StreamId, code: Code, out: &mut Vec<u8>) -> bool {
        either!(self, one => one.send_reset(stream, code, out))
    }

    pub fn ping(&mut self, payload: u64, out: &mut Vec<u8>) {
        either!(self, one => one.ping(payload, out));
    }
}
