//! Sans-IO HTTP/3 (RFC 9114) with header compression (RFC 9204), the extended CONNECT (RFC 9220) and
//! the urgency of priorities (RFC 9218).
//!
//! A [`Connection`] is the state of one connection, of a server or of a client. It has the functions
//! of [`crate::h2::Connection`], with the same meaning and the same events. The streams of QUIC come
//! and go as one run of bytes made of [`record`]s, so that the caller treats the connection as any
//! other that has bytes.
//!
//! What differs from HTTP/2:
//!
//! - A [`StreamId`] is the number of the request: a quarter of QUIC's number of its stream. The first
//!   request has the number 0.
//! - Error codes above the codec are those of HTTP/2: each of HTTP/3 has one that stands for it.
//! - Flow control belongs to QUIC. [`Connection::consumed`] tells it what was used, at once. What we
//!   may have on its way is limited by room that the QUIC layer gives back: [`STREAM_ROOM_BYTES`] and
//!   [`CONNECTION_ROOM_BYTES`].
//! - QUIC has its own pings: [`Connection::ping`] does nothing, and there is no [`Event::Pong`].
//! - [`Event::Settings`] also tells that a client may open more streams.
//! - Windows and sizes of frames in [`Limits`] have no effect.
//!
//! A field section that refers to insertions which have not arrived waits for them. Bytes of the
//! stream behind such a section go back to the QUIC layer and return as records of their own
//! ([`record::Kind::Echo`]), because payload is always lent from the input.

mod code;
mod connection;
mod frame;
mod load;
mod priority;
mod qpack;
pub mod record;
mod streams;
mod varint;

pub use crate::h2::{Code, Counts, Error, Event, Limits, Scheme, StreamId};
pub use connection::{
    BUFFERED_BYTES_MAX, CONNECTION_ROOM_BYTES, Connection, DATA_HEAD_BYTES_MAX, STREAM_ROOM_BYTES,
};

#[cfg(test)]
mod tests;
