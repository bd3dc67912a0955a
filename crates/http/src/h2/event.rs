//! What a connection tells its caller.

use std::ops::Range;

use super::{Code, Error};
use crate::h1::Framing;

/// The number of a stream (RFC 9113 §5.1.1). Those of a client are odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// What frames about the whole connection have.
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

/// One step of what a peer sent. `token` is what [`super::Connection::set_token`] or
/// [`super::Connection::send_request`] was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All that can be used is used: more input is needed.
    More,
    /// A server gets a request, which opens a stream; a client gets a response, perhaps an interim one (RFC 9110 §15.2). It is in
    /// the head that `read` was given.
    Head {
        /// The stream.
        stream: StreamId,
        /// `u32::MAX` for a request.
        token: u32,
        /// No body and no trailers follow.
        end: bool,
        /// How an HTTP/1 message delimits the body: `None` where there is none, `Length` where `Content-Length` told it or the response
        /// has an empty body, `Chunked` otherwise. The head's fields say the same but for `Chunked`, which
        /// [`crate::Head::set_framing`] writes if the message goes on over HTTP/1. `None` without `end`: a tunnel (CONNECT), or an interim response.
        framing: Framing,
        /// The scheme of a request; none for CONNECT, and for another scheme, with which the target is in absolute form.
        scheme: Option<Scheme>,
        /// `Expect: 100-continue` was there.
        expect_continue: bool,
    },
    /// Payload.
    Data {
        /// The stream.
        stream: StreamId,
        /// The caller's name of it.
        token: u32,
        /// Where it lies in the input of this call; may be empty if `end`. Each byte of it is to be credited by
        /// [`super::Connection::consumed`] once, whatever becomes of the stream.
        range: Range<usize>,
        /// No payload and no trailers follow.
        end: bool,
    },
    /// The trailer section is in the head that `read` was given; the message is complete.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// The caller's name of it.
        token: u32,
    },
    /// The stream ends before its messages; it is forgotten already.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The caller's name of it.
        token: u32,
        /// Why. A request reset with `REFUSED_STREAM` was not processed and can be sent again.
        code: Code,
        /// The rule that the peer broke: we have reset the stream. None where the peer has.
        error: Option<Error>,
    },
    /// A request was refused: it was malformed, too large, or one too many. It never became a stream; it is answered or reset already.
    Refused {
        /// The stream it would have been.
        stream: StreamId,
        /// Why.
        error: Error,
    },
    /// Payload can be sent on this stream again, after [`super::Connection::data_room`] was 0.
    WindowOpen {
        /// The stream.
        stream: StreamId,
        /// The caller's name of it.
        token: u32,
    },
    /// The same of all streams.
    WindowsOpen,
    /// The peer's settings came. All streams may have room for payload; a client may be able to open more of them.
    Settings,
    /// The peer opens no more streams on this connection, or takes no more. A client's streams above `last` were not processed: a
    /// [`Event::Reset`] for each follows by itself.
    Goaway {
        /// The last stream that the peer processes.
        last: StreamId,
        /// Why.
        code: Code,
    },
    /// The answer to [`super::Connection::ping`], with its payload.
    Pong(u64),
}
