//! HTTP/1: one stream at a time on a connection.
//!
//! Keep-alive, framing, partial heads and `100-continue` are handled here. [`Front`] is the
//! client's side, [`Back`] the server's; both read with a [`reader::Reader`] and write with a
//! [`Writer`].

mod back;
mod front;
mod reader;
mod writer;

use http::h1::Framing;
use http::{Head, Name};

pub(crate) use back::{Asked, Back, is_interim};
pub(crate) use front::{After, Answered, Front, Linger};
pub(crate) use reader::{Pull, Rules};
pub(crate) use writer::{Writer, Wrote};

/// Adds `Transfer-Encoding: chunked` where it is missing: an HTTP/2 message without a length has no
/// such field. It is written in lower case, because some recipients do not know `Chunked`, and
/// would read the body as their next message.
fn announce_chunks(head: &mut Head) {
    let is_announced = head
        .get(Name::TransferEncoding)
        .is_some_and(|value| value == b"chunked" || !value.eq_ignore_ascii_case(b"chunked"));
    if !is_announced {
        head.set_framing(Framing::Chunked);
    }
}

/// Applies a `Connection` header of rules and removes its options: only the mux decides about its
/// connection. Whether it is to close.
fn heed_connection(head: &mut Head) -> bool {
    if !head.has(Name::Connection) {
        return false;
    }
    let is = |option: &[u8], text: &str| option.eq_ignore_ascii_case(text.as_bytes());
    let mut ends = false;
    for (_, value) in head.get_all(Name::Connection) {
        let mut options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        ends |= options.any(|option| is(option, "close"));
    }
    // `Connection` must not name framing fields, because the next hop would drop them.
    head.filter_connection(|option| {
        !(is(option, "close")
            || is(option, "keep-alive")
            || is(option, "content-length")
            || is(option, "transfer-encoding"))
    });
    ends
}
