//! A small HTTP/1.1 client, and a parser of messages for both sides.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use super::{DEADLINE, uninterrupted};

/// Any connection.
pub trait Wire: Read + Write + Send {
    fn close_write(&self);
}

impl Wire for TcpStream {
    fn close_write(&self) {
        let _ = self.shutdown(std::net::Shutdown::Write);
    }
}

impl Wire for UnixStream {
    fn close_write(&self) {
        let _ = self.shutdown(std::net::Shutdown::Write);
    }
}

/// A message that was read from a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The start line.
    pub line: String,
    /// The header lines as received.
    pub fields: Vec<String>,
    pub body: Vec<u8>,
    /// The status of a response.
    pub status: u16,
}

impl Message {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Received bytes that were not consumed.
pub struct Reader<W> {
    pub wire: W,
    pub rest: Vec<u8>,
}

impl<W> Reader<W> {
    /// A reader on a connection from which nothing was read.
    pub fn over(wire: W) -> Reader<W> {
        Reader {
            wire,
            rest: Vec::new(),
        }
    }
}

impl<W: Read> Reader<W> {
    /// Reads once more. Returns whether anything arrived.
    fn more(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        match uninterrupted(|| self.wire.read(&mut chunk)) {
            Ok(count) => {
                self.rest.extend_from_slice(&chunk[..count]);
                count > 0
            }
            Err(_) => false,
        }
    }

    fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self
                .rest
                .windows(end.len())
                .position(|window| window == end)
            {
                return Some(self.rest.drain(..at + end.len()).collect());
            }
            if !self.more() {
                return None;
            }
        }
    }

    pub fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.rest.len() < count {
            if !self.more() {
                return None;
            }
        }
        Some(self.rest.drain(..count).collect())
    }

    /// All bytes until the end.
    pub fn everything(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.rest)
    }

    /// A head without its body.
    pub fn head(&mut self) -> Option<Message> {
        let head = self.until(b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(&head).into_owned();
        let mut lines = text.trim_end().split("\r\n").map(str::to_owned);
        let line = lines.next()?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        Some(Message {
            status: status.unwrap_or(0),
            line,
            fields: lines.collect(),
            body: Vec::new(),
        })
    }

    /// The body that a head announces. `open`: without a length, it continues to the end of the
    /// connection.
    pub fn body(&mut self, head: &Message, open: bool) -> Option<Vec<u8>> {
        if head.field("transfer-encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let line = self.until(b"\r\n")?;
                let size =
                    usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim(), 16).ok()?;
                body.extend_from_slice(&self.exactly(size)?);
                self.exactly(2)?;
                if size == 0 {
                    return Some(body);
                }
            }
        }
        match head.field("content-length") {
            Some(length) => self.exactly(length.parse().ok()?),
            None if open => Some(self.everything()),
            None => Some(Vec::new()),
        }
    }
}

/// A client connection.
pub struct Client<W = TcpStream> {
    pub reader: Reader<W>,
}

impl Client<TcpStream> {
    pub fn connect(to: SocketAddr) -> Client {
        Client::on(TcpStream::connect(to).expect("a connection"))
    }

    pub fn on(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Client {
            reader: Reader::over(stream),
        }
    }
}

impl<W: Wire> Client<W> {
    pub fn over(wire: W) -> Client<W> {
        Client {
            reader: Reader::over(wire),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.wire.write_all(bytes.as_ref()).expect("sent");
    }

    pub fn response(&mut self) -> Option<Message> {
        let mut head = self.reader.head()?;
        let bodiless = head.status < 200 || matches!(head.status, 204 | 304);
        if !bodiless {
            head.body = self.reader.body(&head, true)?;
        }
        Some(head)
    }

    pub fn try_get(&mut self, path: &str) -> Option<Message> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        self.reader.wire.write_all(request.as_bytes()).ok()?;
        self.response()
    }

    pub fn get(&mut self, path: &str) -> Message {
        self.try_get(path).expect("an answer")
    }

    /// Whether the other side has closed without sending anything.
    pub fn is_closed(&mut self) -> bool {
        let end = uninterrupted(|| self.reader.wire.read(&mut [0]));
        let closed = match end {
            Ok(count) => count == 0,
            // The error is not a timeout.
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        closed && self.reader.rest.is_empty()
    }
}
