//! Sans-IO HTTP/2 (RFC 9113) with header compression (RFC 7541) and the extended CONNECT (RFC
//! 8441).
//!
//! A [`Connection`] is the state of one connection, of a server or of a client. It does no I/O,
//! reads no clock and keeps no payload:
//!
//! - [`Connection::read`] takes bytes from the wire and returns one [`Event`] at a time. Payload is
//!   lent as a range of those bytes, even of a frame that is not complete. Automatic replies
//!   (acknowledgements, resets, GOAWAY) are appended to `out`.
//! - The `send_*` functions append frames to `out`. For payload they append only the frame header;
//!   the caller asks [`Connection::data_room`] first and appends the payload after the header.
//! - Flow control: [`Connection::consumed`] credits the peer for payload that the caller has
//!   finished with.
//!
//! # Use
//! ```text
//! loop {
//!     let (used, event) = connection.read(&input[at..], now_ms, &mut head, &mut out)?;
//!     match event {
//!         Event::More => break,              // keep input[at + used..] and call again with more behind it
//!         Event::Head { stream, .. } => …    // take the head by swap; connection.set_token(stream, mine)
//!         Event::Data { range, end, .. } => … input[at..][range], then connection.consumed(stream, n, &mut out)
//!         …
//!     }
//!     at += used;
//! }
//! ```
//!
//! The caller bounds `out`: while its peer does not accept what was sent, it stops calling `read`
//! (RFC 9113 §10.5). It also bounds the payload that it keeps; the windows do this if `consumed` is
//! called late.
//!
//! A stream is known from its head to its end or reset. After that the `send_*` functions do
//! nothing and return false, so that the caller needs no copy of the state. `token` is the caller's
//! name for the stream; events carry it.
//!
//! Heads: a request's target is the origin form of `:path` (authority form for CONNECT, `*` for
//! OPTIONS), its `Host` is `:authority`, its version [`crate::Version::Http2`]; the HTTP/1 writers
//! send it as HTTP/1.1. A head of HTTP/1 is sent without its hop-by-hop fields.

mod connection;
mod counts;
mod error;
mod event;
pub(crate) mod fields;
mod frame;
pub(crate) mod hpack;
mod limits;
mod streams;
pub(crate) mod write;

pub use connection::Connection;
pub use counts::Counts;
pub use error::{Code, Error};
pub use event::{Event, Scheme, StreamId};
pub use frame::{FRAME_HEAD_BYTES, PREFACE};
pub use limits::Limits;

#[cfg(test)]
mod tests;
