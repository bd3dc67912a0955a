//! Writes heads as bytes.

use crate::head::Span;
use crate::{Head, Version};

/// What a message says about the future of its connection (RFC 9112 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The connection ends with this exchange.
    Close,
    /// The connection persists; written only for peers that would not assume it.
    KeepAlive,
}

impl Connection {
    const fn line(self) -> &'static [u8] {
        match self {
            Connection::Close => b"connection: close\r\n",
            Connection::KeepAlive => b"connection: keep-alive\r\n",
        }
    }
}

/// Appends the request line, all live fields, the connection option and the empty line to `out`.
#[inline]
pub fn write_request(head: &Head, connection: Option<Connection>, out: &mut Vec<u8>) {
    match head.whole().filter(|_| connection.is_none()) {
        Some(whole) => out.extend_from_slice(whole),
        None => write_request_parts(head, connection, out),
    }
}

fn write_request_parts(head: &Head, connection: Option<Connection>, out: &mut Vec<u8>) {
    if head.start.line.len == 0 {
        for part in [
            head.method_bytes(),
            b" ",
            head.line_target(),
            b" ",
            version(head),
            b"\r\n",
        ] {
            out.extend_from_slice(part);
        }
    }
    write_from(head, head.start.line, out);
    end(connection, out);
}

/// Appends the status line, all live fields, the connection option and the empty line to `out`.
#[inline]
pub fn write_response(head: &Head, connection: Option<Connection>, out: &mut Vec<u8>) {
    match head.whole().filter(|_| connection.is_none()) {
        Some(whole) => out.extend_from_slice(whole),
        None => write_response_parts(head, connection, out),
    }
}

fn write_response_parts(head: &Head, connection: Option<Connection>, out: &mut Vec<u8>) {
    if head.start.line.len == 0 {
        let mut digits = [0; STATUS_DIGITS_MAX];
        for part in [
            version(head),
            b" ",
            status_text(head.status(), &mut digits),
            b" ",
            head.reason(),
            b"\r\n",
        ] {
            out.extend_from_slice(part);
        }
    }
    write_from(head, head.start.line, out);
    end(connection, out);
}

/// The version of the start line. A message received over HTTP/2 or HTTP/3 is written as HTTP/1.1.
fn version(head: &Head) -> &[u8] {
    match head.version() {
        Version::Http2 | Version::Http3 => Version::Http11.as_str().as_bytes(),
        Version::Http10 | Version::Http11 => head.version_bytes(),
    }
}

/// Appends the live fields and the empty line.
pub(super) fn write_fields(head: &Head, out: &mut Vec<u8>) {
    write_from(head, Span::default(), out);
    end(None, out);
}

fn end(connection: Option<Connection>, out: &mut Vec<u8>) {
    out.extend_from_slice(connection.map_or(&[][..], Connection::line));
    out.extend_from_slice(b"\r\n");
}

/// Appends the start line at `run`, if the buffer has one, and the fields. Adjacent parts of the
/// buffer that are in wire form are copied in one piece.
fn write_from(head: &Head, mut run: Span, out: &mut Vec<u8>) {
    for field in head.fields.iter().filter(|field| field.live) {
        if !field.line {
            flush(head, &mut run, out);
            for part in [
                head.slice(field.name),
                b": ",
                head.slice(field.value),
                b"\r\n",
            ] {
                out.extend_from_slice(part);
            }
            continue;
        }
        if field.name.at != run.at + run.len {
            flush(head, &mut run, out);
            run.at = field.name.at;
        }
        run.len = field.value.at + field.value.len + 2 - run.at;
    }
    flush(head, &mut run, out);
}

fn flush(head: &Head, run: &mut Span, out: &mut Vec<u8>) {
    if run.len > 0 {
        out.extend_from_slice(head.slice(*run));
        *run = Span::default();
    }
}

/// The most digits of a status.
const STATUS_DIGITS_MAX: usize = 5;

fn status_text(status: u16, digits: &mut [u8; STATUS_DIGITS_MAX]) -> &[u8] {
    let mut at = STATUS_DIGITS_MAX;
    let mut rest = status;
    while rest > 0 || at > STATUS_DIGITS_MAX - 3 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    &digits[at..]
}
