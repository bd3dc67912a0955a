//! Sans-IO HTTP/1 (RFC 9112): heads, body framing, chunked both ways.

pub mod body;
pub mod chunk;
pub mod error;
pub mod parse;
pub mod write;

use crate::Head;

/// Limits of a head. `tune.bufsize - tune.maxrewrite` and `tune.http.maxhdr`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub head_bytes_max: usize,
    pub fields_max: usize,
}

/// How far a message may break the grammar (`option accept-unsafe-violations-in-http-request/response`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    Strict,
    Relaxed,
}

/// How the body of a message is delimited (RFC 9112 §6.3), decided when its head is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// No body follows the head.
    #[default]
    None,
    /// This many bytes, may be 0.
    Length(u64),
    Chunked,
    /// A response's body up to the close of the connection.
    UntilClose,
}

/// Facts of a parsed head that its parser saw on the way, so nobody searches for them again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parsed {
    /// Bytes of the input that the head took, leading empty lines included.
    pub consumed: usize,
    pub framing: Framing,
    /// Whether the peer lets the connection live on: version and `Connection` (RFC 9112 §9.3), also
    /// `Proxy-Connection` for requests as HAProxy takes it.
    pub keep_alive: bool,
    /// `Connection: upgrade` together with an `Upgrade` field.
    pub upgrade: bool,
    /// `Expect: 100-continue` in an HTTP/1.1 request.
    pub expect_continue: bool,
}

/// Parses a request head into `head` (cleared first).
///
/// Returns none while the head is incomplete. Call again with the same bytes and more; parsing restarts, so the
/// caller bounds the input at `head_bytes_max` (an incomplete head as long as that is `TooLarge`).
///
/// # Errors
/// What RFC 9112 calls malformed, and the limits. `response()` of the error tells the status to send.
pub fn parse_request(
    _input: &[u8],
    _limits: Limits,
    _strictness: Strictness,
    _head: &mut Head,
) -> Result<Option<Parsed>, error::ParseError> {
    unimplemented!()
}

/// Parses a response head. `to` is the method of the request it answers (HEAD, CONNECT decide the framing).
///
/// # Errors
/// As [`parse_request`].
pub fn parse_response(
    _input: &[u8],
    _to: crate::Method,
    _limits: Limits,
    _strictness: Strictness,
    _head: &mut Head,
) -> Result<Option<Parsed>, error::ParseError> {
    unimplemented!()
}

/// Appends the request line, all live fields and the empty line to `out`. Hop-by-hop fields are already decided by the caller.
pub fn write_request(_head: &Head, _out: &mut Vec<u8>) {
    unimplemented!()
}
/// The same with a status line.
pub fn write_response(_head: &Head, _out: &mut Vec<u8>) {
    unimplemented!()
}
