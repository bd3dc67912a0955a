//! Muxes: convert between the bytes of a connection and the messages of streams.

pub(crate) mod h1;
pub(crate) mod h2;

use http::Head;
use net::{Message, Sent};

use h1::{Back, Front, Writer, Wrote};

/// The mux of a connection.
#[derive(Debug)]
pub(crate) enum Mux {
    /// Unparsed bytes, for one stream.
    Raw,
    /// HTTP/1 with a client.
    Front(Front),
    /// HTTP/1 with a server.
    Back(Back),
    /// HTTP/2; its streams are links of their own.
    Connection(Box<h2::Connection>),
    /// A stream of HTTP/2.
    Stream(h2::StreamEnd),
}

impl Mux {
    /// Sends payload of the stream. `frame` is a scratch buffer for the framing.
    pub fn data(
        &mut self,
        bytes: &[u8],
        frame: &mut Vec<u8>,
        send: impl FnMut(Message<'_>) -> Sent,
    ) -> Wrote {
        match self {
            Mux::Raw => Writer::Plain.data(bytes, frame, send),
            // The streams of the connection send payload, not the connection itself.
            Mux::Connection(_) | Mux::Stream(_) => Writer::Nothing.data(bytes, frame, send),
            Mux::Front(Front { write, .. }) | Mux::Back(Back { write, .. }) => {
                write.data(bytes, frame, send)
            }
        }
    }

    /// Ends the stream's payload. Whether the bytes show the end to the peer, and how many bytes
    /// are sent for it.
    pub fn end(
        &mut self,
        trailers: &Head,
        frame: &mut Vec<u8>,
        send: impl FnMut(Message<'_>) -> Sent,
    ) -> (bool, usize) {
        match self {
            Mux::Raw | Mux::Connection(_) | Mux::Stream(_) => (true, 0),
            Mux::Front(Front { write, .. }) | Mux::Back(Back { write, .. }) => {
                write.end(trailers, frame, send)
            }
        }
    }

    /// How many bytes may wait before the connection is not read further: one buffer, and with
    /// HTTP/2 at least one frame.
    #[inline]
    pub fn input_bytes_max(&self, bufsize: usize) -> usize {
        match self {
            Mux::Connection(connection) => bufsize.max(connection.frame_bytes_max()),
            Mux::Raw | Mux::Front(_) | Mux::Back(_) | Mux::Stream(_) => bufsize,
        }
    }

    /// Gives back the last bytes of the current payload.
    pub fn unread(&mut self, count: usize) {
        match self {
            Mux::Raw | Mux::Connection(_) | Mux::Stream(_) => {}
            Mux::Front(front) => front.unread(count),
            Mux::Back(back) => back.unread(count),
        }
    }

    /// Whether it may have events without further bytes: the end of a body, or streams that its
    /// server will not process.
    #[inline]
    pub fn has_more_to_tell(&self) -> bool {
        match self {
            Mux::Raw | Mux::Stream(_) => false,
            Mux::Connection(connection) => connection.codec.has_unprocessed(),
            Mux::Front(front) => front.read().is_within_body(),
            Mux::Back(back) => back.read().is_within_body(),
        }
    }

    /// Whether a body of announced length is read completely.
    #[inline]
    pub fn has_all(&self) -> bool {
        match self {
            Mux::Raw | Mux::Connection(_) | Mux::Stream(_) => false,
            Mux::Front(front) => front.read().has_all(),
            Mux::Back(back) => back.read().has_all(),
        }
    }

    /// The message ends with its body.
    #[inline]
    pub fn end_body(&mut self) {
        match self {
            Mux::Raw | Mux::Connection(_) | Mux::Stream(_) => {}
            Mux::Front(front) => front.end_body(),
            Mux::Back(back) => back.end_body(),
        }
    }

    /// Announced payload bytes that have not come yet.
    pub fn announced(&self) -> u64 {
        match self {
            Mux::Raw | Mux::Connection(_) => 0,
            Mux::Stream(end) => end.announced,
            Mux::Front(front) => front.announced(),
            Mux::Back(back) => back.announced(),
        }
    }
}
