//! The events that a connection reports to its caller.

use std::ops::Range;

use super::{Code, Error};
use crate::h1::Framing;

/// The number of a stream (RFC 9113 §5.1.1). Those of a client are odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The stream number of frames about the whole connection.
    pub const CONNECTION: StreamId = StreamId(0);
    /// The highest number.
    pub const MAX: StreamId = StreamId((1 << 31) - 1);
}

/// The scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// How it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// One event from the peer. `token` is the value given to [`super::Connection::set_token`] or
/// [`super::Connection::send_request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All usable input is used: more is needed.
    More,
    /// A server receives a request, which opens a stream; a client receives a response, possibly an
    /// interim one (RFC 9110 §15.2). It is in the head passed to `read`.
    Head {
        /// The stream.
        stream: StreamId,
        /// `u32::MAX` for a request.
        token: u32,
        /// No body and no trailers follow.
        end: bool,
        /// How an HTTP/1 message would delimit the body: `None` if there is none, `Length` if
        /// `Content-Length` gave it or the response has an empty body, `Chunked` otherwise. The
        /// head's fields agree, except that for `Chunked` [`crate::Head::set_framing`] writes the
        /// field if the message is forwarded over HTTP/1. `None` without `end`: a tunnel (CONNECT),
        /// or an interim response.
        framing: Framing,
        /// The scheme of a request; none for CONNECT, and for another scheme, whose target is in
        /// absolute form.
        scheme: Option<Scheme>,
        /// `Expect: 100-continue` was present.
        expect_continue: bool,
    },
    /// Payload.
    Data {
        /// The stream.
        stream: StreamId,
        /// The caller's name for the stream.
        token: u32,
        /// The range of the payload in the input of this call; may be empty if `end`. Credit each
        /// byte once with [`super::Connection::consumed`], even if the stream is gone.
        range: Range<usize>,
        /// No payload and no trailers follow.
        end: bool,
    },
    /// The trailer section is in the head passed to `read`; the message is complete.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// The caller's name for the stream.
        token: u32,
    },
    /// The stream ended before its messages were complete; it is already forgotten.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The caller's name for the stream.
        token: u32,
        /// The reason. A request reset with `REFUSED_STREAM` was not processed and can be sent
        /// again.
        code: Code,
        /// The rule that the peer broke, for which we reset the stream. None if the peer reset it.
        error: Option<Error>,
    },
    /// A request was refused: it was malformed, too large, or beyond the limit of streams. It never
    /// became a stream and was already answered or reset.
    Refused {
        /// The stream number of the request.
        stream: StreamId,
        /// Why.
        error: Error,
    },
    /// Payload can be sent on this stream again, after [`super::Connection::data_room`] was 0.
    WindowOpen {
        /// The stream.
        stream: StreamId,
        /// The caller's name for the stream.
        token: u32,
    },
    /// Payload can be sent on all streams again.
    WindowsOpen,
    /// The peer's settings arrived. All streams may have room for payload; a client may be able to
    /// open more of them.
    Settings,
    /// The peer opens no more streams on this connection, or accepts no more. A client's streams
    /// above `last` were not processed: an [`Event::Reset`] follows for each.
    Goaway {
        /// The last stream that the peer processes.
        last: StreamId,
        /// Why.
        code: Code,
    },
    /// The answer to [`super::Connection::ping`], with its payload.
    Pong(u64),
}
