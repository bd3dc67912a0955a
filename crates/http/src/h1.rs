//! Sans-IO HTTP/1 (RFC 9112): heads, body framing, chunked coding in both directions.
//!
//! A head is parsed in one pass over a copy in the [`Head`]'s buffer, which then serves as its
//! storage: `parse` knows the grammar of lines, `facts` what single fields mean for the framing and
//! the connection, `request` and `response` the rules of whole messages. Each refusal names one
//! rule of [`ParseError`].

pub mod body;
pub mod chunk;
pub mod error;
mod facts;
mod hops;
mod parse;
mod request;
mod response;
mod resume;
pub mod write;

use crate::Head;

pub use body::{BodyDecoder, Piece};
pub use chunk::{write_chunk_head, write_last_chunk};
pub use error::ParseError;
pub use resume::{Resume, head_end};
pub use write::{Connection, write_request, write_response};

/// Empty lines that may stand before a start line (RFC 9112 §2.2).
pub const EMPTY_LINES_MAX: usize = 16;

/// Limits of a head. `tune.bufsize - tune.maxrewrite` and `tune.http.maxhdr`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a head, or of a trailer section, including all line ends.
    pub head_bytes_max: usize,
    /// Fields of a head, or of a trailer section (`tune.http.maxhdr` counts the start line too).
    pub fields_max: usize,
}

impl Default for Limits {
    /// HAProxy's defaults: 16384 - 1024 bytes, and 101 lines including the start line.
    fn default() -> Self {
        Limits {
            head_bytes_max: 16384 - 1024,
            fields_max: 100,
        }
    }
}

/// How far a message may break the grammar (`option
/// accept-unsafe-violations-in-http-request/response`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// RFC 9112 to the letter; the default.
    #[default]
    Strict,
    /// Accepts what the options above permit, and a lone LF as line end, obsolete folding, control
    /// characters in values.
    Relaxed,
}

/// How the body of a message is delimited (RFC 9112 §6.3), decided when its head is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// No body follows the head.
    #[default]
    None,
    /// This many bytes; may be 0.
    Length(u64),
    /// Chunked transfer coding (RFC 9112 §7.1).
    Chunked,
    /// A response's body up to the close of the connection.
    UntilClose,
}

/// Facts of a parsed head that the parser found on the way, so that they need not be searched for
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Bytes of the input that belong to the head, including leading empty lines.
    pub consumed: usize,
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the peer permits the connection to persist: by version and `Connection` (RFC 9112
    /// §9.3) and, for a response, by a body that does not end with the connection. Also false if
    /// both `Content-Length` and `Transfer-Encoding` were present, or the latter in HTTP/1.0 (RFC
    /// 9112 §6.1).
    pub keep_alive: bool,
    /// `Connection: keep-alive` was present.
    pub keep_alive_asked: bool,
    /// `Connection: upgrade` together with an `Upgrade` field; in a response only with status 101.
    pub upgrade: bool,
    /// `Expect: 100-continue` in an HTTP/1.1 request.
    pub expect_continue: bool,
}

/// Parses a request head into `head` (cleared first).
///
/// Returns none while the head is incomplete. Call again with the same bytes and more; parsing
/// restarts, and fails with `TooLarge` or `TargetTooLong` if that many bytes do not contain a whole
/// head. [`Resume`] says when another call is worthwhile, so that a head that arrives byte by byte
/// costs linear time.
///
/// The head is normalised as HAProxy does it: field names in lower case; `close` and `keep-alive`
/// removed from `Connection` (they are in [`Parsed`]); `Upgrade` only together with `Connection:
/// upgrade` and never to HTTP/2; one `Content-Length` with one number and none beside
/// `Transfer-Encoding`; one `Host`; default ports removed from an absolute target and its `Host`;
/// `TE` reduced to `trailers`.
///
/// # Errors
/// The head breaks RFC 9112 or a limit. [`ParseError::status`] is the status to send. The head is
/// empty then.
pub fn parse_request(
    input: &[u8],
    limits: Limits,
    strictness: Strictness,
    head: &mut Head,
) -> Result<Option<Parsed>, ParseError> {
    parse::run(input, limits, strictness, head, request::parse)
}

/// Parses a response head. `to` is the method of the request it answers (HEAD, CONNECT decide the
/// framing).
///
/// A response that has no body by its status (1xx, 204, or 2xx to CONNECT) loses `Content-Length`
/// and `Transfer-Encoding`. The caller must know what follows a 101 or a 2xx to CONNECT.
///
/// # Errors
/// As [`parse_request`].
pub fn parse_response(
    input: &[u8],
    to: crate::Method,
    limits: Limits,
    strictness: Strictness,
    head: &mut Head,
) -> Result<Option<Parsed>, ParseError> {
    parse::run(input, limits, strictness, head, |parser| {
        response::parse(parser, to)
    })
}

#[cfg(test)]
mod tests;
