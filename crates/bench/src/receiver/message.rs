//! Requests of exporters: HTTP/1.1 with a length or in chunks, limited in size.

use std::io::{self, BufRead, BufReader, Read, Write};

/// The longest head, in bytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024;
/// The longest line with a chunk size, or of a trailer, in bytes.
const LINE_BYTES_MAX: u64 = 4 * 1024;
/// The longest body, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Uncompressed protobuf.
    Protobuf,
    /// Uncompressed JSON.
    Json,
    /// Another format, or compressed.
    Other,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// As sent.
    pub method: String,
    /// As sent.
    pub path: String,
    /// The format of the body.
    pub body: Body,
    /// The connection ends after the answer.
    pub closes: bool,
}

/// The length of a body.
#[derive(Clone, Copy)]
enum Length {
    Known(u64),
    Chunked,
}

/// Reads a request, with its body into `body`; None at the end of the connection.
///
/// # Errors
/// The connection fails or ends early, or the request is malformed or too long.
pub fn read<S: Read + Write>(
    stream: &mut BufReader<S>,
    body: &mut Vec<u8>,
) -> io::Result<Option<Head>> {
    body.clear();
    let Some(first) = first_line(stream)? else {
        return Ok(None);
    };
    let mut left = HEAD_BYTES_MAX - first.len() as u64;
    let mut words = first.split_ascii_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut head = Head {
        method: word(),
        path: word(),
        body: Body::Other,
        closes: false,
    };
    let (mut length, mut encoded, mut expects) = (Length::Known(0), false, false);
    loop {
        let text = line(stream, left)?;
        left -= text.len() as u64;
        let text = text.trim_end();
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').ok_or_else(malformed)?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Length::Known(value.parse().map_err(|_| malformed())?),
            "transfer-encoding" => length = Length::Chunked,
            "content-type" if value.starts_with("application/x-protobuf") => {
                head.body = Body::Protobuf;
            }
            "content-type" if value.starts_with("application/json") => head.body = Body::Json,
            "content-encoding" => encoded = !value.eq_ignore_ascii_case("identity"),
            "connection" => head.closes = value.eq_ignore_ascii_case("close"),
            "expect" => expects = true,
            _ => {}
        }
    }
    if encoded {
        head.body = Body::Other;
    }
    if expects {
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    match length {
        Length::Known(length) => piece(stream, length, body)?,
        Length::Chunked => chunks(stream, body)?,
    }
    Ok(Some(head))
}

fn chunks<S: Read>(stream: &mut BufReader<S>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let text = line(stream, LINE_BYTES_MAX)?;
        let size = text.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| malformed())?;
        if size == 0 {
            break;
        }
        piece(stream, size, body)?;
        if !line(stream, LINE_BYTES_MAX)?.trim_end().is_empty() {
            return Err(malformed());
        }
    }
    // Trailers.
    while !line(stream, LINE_BYTES_MAX)?.trim_end().is_empty() {}
    Ok(())
}

/// Appends the next `length` bytes to `body`.
fn piece<S: Read>(stream: &mut BufReader<S>, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    let room = BODY_BYTES_MAX.saturating_sub(body.len() as u64);
    if length > room {
        return Err(malformed());
    }
    let read = stream.by_ref().take(length).read_to_end(body)?;
    if read as u64 == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// The first line of a head; None at the end of the connection.
fn first_line<S: Read>(stream: &mut BufReader<S>) -> io::Result<Option<String>> {
    if stream.fill_buf()?.is_empty() {
        Ok(None)
    } else {
        line(stream, HEAD_BYTES_MAX).map(Some)
    }
}

/// The next line, including its end.
fn line<S: Read>(stream: &mut BufReader<S>, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream
        .by_ref()
        .take(bytes_max)
        .read_until(b'\n', &mut bytes)?;
    match bytes.last() {
        Some(b'\n') => String::from_utf8(bytes).map_err(|_| malformed()),
        _ => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
