//! One connection of the origin: reads a head, discards its body, writes the answer, and repeats.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::{HEAD_BYTES_MAX, Site};

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const LENGTH_REQUIRED: &[u8] =
    b"HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits for its next event.
    Wait,
    /// It closes.
    Close,
}

/// The state of a connection: it allocates nothing while idle.
pub struct Conn {
    stream: TcpStream,
    /// The bytes of an incomplete head.
    partial: Vec<u8>,
    /// An answer that the kernel did not accept completely, and the number of bytes sent.
    unsent: Option<(Cow<'static, [u8]>, usize)>,
    /// The bytes of the request's body that have not arrived yet.
    body_left: u64,
    /// The connection closes after the answer.
    closing: bool,
}

impl Conn {
    /// A new connection.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            partial: Vec::new(),
            unsent: None,
            body_left: 0,
            closing: false,
        }
    }

    /// Does all work that is possible now.
    pub fn step<S: Site>(&mut self, site: &S, buffer: &mut [u8]) -> Next {
        if let Some((answer, sent)) = self.unsent.take()
            && self.write(answer, sent) == Next::Close
        {
            return Next::Close;
        }
        while self.unsent.is_none() {
            if self.closing {
                return Next::Close;
            }
            let count = match self.stream.read(buffer) {
                Ok(0) => return Next::Close,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Next::Close,
            };
            if self.take(&buffer[..count], site) == Next::Close {
                return Next::Close;
            }
            // A short read has emptied the socket: an edge event reports more data.
            if count < buffer.len() && !self.closing {
                return Next::Wait;
            }
        }
        Next::Wait
    }

    /// Processes the bytes of one read.
    fn take<S: Site>(&mut self, data: &[u8], site: &S) -> Next {
        let skip = usize::try_from(self.body_left)
            .unwrap_or(usize::MAX)
            .min(data.len());
        self.body_left -= skip as u64;
        let data = &data[skip..];
        if data.is_empty() {
            return Next::Wait;
        }
        if self.partial.is_empty() {
            return self.take_head(data, site);
        }
        self.partial.extend_from_slice(data);
        let whole = std::mem::take(&mut self.partial);
        self.take_head(&whole, site)
    }

    fn take_head<S: Site>(&mut self, data: &[u8], site: &S) -> Next {
        let Some(end) = memchr::memmem::find(data, b"\r\n\r\n").map(|at| at + 4) else {
            if data.len() > HEAD_BYTES_MAX {
                return self.refuse(TOO_LARGE);
            }
            self.partial = data.to_vec();
            return Next::Wait;
        };
        let head = &data[..end];
        if field(head, "transfer-encoding").is_some() {
            return self.refuse(LENGTH_REQUIRED);
        }
        let length = field(head, "content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0);
        let behind = (data.len() - end) as u64;
        if behind > length {
            return Next::Close;
        }
        self.body_left = length - behind;
        self.closing =
            field(head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.write(site.answer(head), 0)
    }

    fn refuse(&mut self, answer: &'static [u8]) -> Next {
        self.closing = true;
        self.write(Cow::Borrowed(answer), 0)
    }

    /// Sends `answer` from `sent` on; the rest waits for the next event.
    fn write(&mut self, answer: Cow<'static, [u8]>, mut sent: usize) -> Next {
        while sent < answer.len() {
            match self.stream.write(&answer[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unsent = Some((answer, sent));
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Close,
            }
        }
        Next::Wait
    }
}

/// The value of a header field of `head`, by its lower-case name.
fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        if !line[..colon].eq_ignore_ascii_case(name.as_bytes()) {
            return None;
        }
        Some(std::str::from_utf8(&line[colon + 1..]).ok()?.trim())
    })
}
