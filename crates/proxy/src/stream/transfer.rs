//! Bodies on their way: taken apart as one side frames them, put together as the other side needs them.

use http::Head;
use http::h1::body::{BodyDecoder, Piece};
use http::h1::chunk::{write_chunk_head, write_last_chunk};
use http::h1::error::ParseError;
use http::h1::{Framing, Limits, Strictness};

/// Up to this many bytes of payload are copied beside their chunk's frame, so that they leave in one piece;
/// larger ones are lent to the driver.
const CHUNK_COPY_BYTES_MAX: usize = 16 << 10;

/// Up to this many bytes of payload are copied behind the head that waits.
const HEAD_COPY_BYTES_MAX: usize = 4 << 10;

/// How a body leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is: its length was announced, or the end of the connection ends it.
    #[default]
    Plain,
    Chunked,
    /// Nowhere: the rest of a message that was answered early.
    Discard,
}

/// One direction of a stream.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    decoder: BodyDecoder,
    pub coding: Coding,
    /// The head has left, the body may follow.
    pub open: bool,
    pub done: bool,
    /// The end of the connection is the end of this body.
    pub until_close: bool,
    /// Trailers do not leave.
    pub drops_trailers: bool,
}

/// Where the pieces of a body go, with the bytes that must stand before them.
pub(crate) trait Outlet {
    /// Sends `head` then `body`.
    fn send(&mut self, head: &[u8], body: &[u8]);
}

impl Transfer {
    pub fn new(framing: Framing, coding: Coding, limits: Limits, strictness: Strictness) -> Self {
        let decoder = BodyDecoder::with(framing, limits, strictness);
        Transfer {
            done: decoder.is_done(),
            decoder,
            coding,
            open: false,
            until_close: framing == Framing::UntilClose,
            drops_trailers: false,
        }
    }

    /// A body that is over.
    pub fn finished() -> Self {
        Transfer {
            done: true,
            ..Transfer::default()
        }
    }

    /// Moves what `input` holds of this body to `outlet`. `pending` holds what must leave first (the message's head) and is
    /// empty after. Returns the bytes consumed.
    ///
    /// # Errors
    /// The body breaks its framing.
    pub fn pump(
        &mut self,
        input: &[u8],
        trailers: &mut Head,
        pending: &mut Vec<u8>,
        outlet: &mut impl Outlet,
    ) -> Result<usize, ParseError> {
        let mut position = 0;
        while !self.done {
            let (used, piece) = self.decoder.next(&input[position..], trailers)?;
            position += used;
            match piece {
                Piece::Data(bytes) => self.forward(bytes, pending, outlet),
                Piece::More => break,
                Piece::End => {
                    self.done = true;
                    if self.drops_trailers {
                        trailers.clear();
                    }
                    if self.coding == Coding::Chunked {
                        write_last_chunk(trailers, pending);
                    }
                }
            }
            if self.decoder.is_done() && self.coding != Coding::Chunked {
                self.done = true;
            }
        }
        if !pending.is_empty() {
            outlet.send(pending, &[]);
            pending.clear();
        }
        Ok(position)
    }

    fn forward(&self, bytes: &[u8], pending: &mut Vec<u8>, outlet: &mut impl Outlet) {
        match self.coding {
            Coding::Discard => {}
            // A small body is copied behind its head: cheaper than a second vector for the kernel.
            Coding::Plain if !pending.is_empty() && bytes.len() <= HEAD_COPY_BYTES_MAX => {
                pending.extend_from_slice(bytes);
            }
            Coding::Plain => {
                outlet.send(pending, bytes);
                pending.clear();
            }
            Coding::Chunked => {
                write_chunk_head(bytes.len(), pending);
                if bytes.len() <= CHUNK_COPY_BYTES_MAX {
                    pending.extend_from_slice(bytes);
                } else {
                    outlet.send(pending, bytes);
                    pending.clear();
                }
                pending.extend_from_slice(b"\r\n");
            }
        }
    }
}
