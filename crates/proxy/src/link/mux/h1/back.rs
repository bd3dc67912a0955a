//! The server's side: sends requests, receives responses.

use http::h1::{self, Connection, Framing};
use http::{Head, Method, Version};

use super::reader::{Pull, Reader, Rules};
use super::writer::Writer;
use super::{announce_chunks, heed_connection};

/// The HTTP/1 mux of a server's connection.
#[derive(Debug, Default)]
pub(crate) struct Back {
    read: Reader,
    pub write: Writer,
    /// Whether the connection can be kept after this request.
    lives: bool,
    /// The method that was sent; it decides how the response is framed.
    method: Method,
}

/// How a request is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub framing: Framing,
    /// The connection may be kept after it.
    pub keep: bool,
    /// The request asks for keep-alive although the connection will close (`option
    /// http-pretend-keepalive`).
    pub pretend: bool,
    /// The request asks for another protocol; its own `Connection` header is sent.
    pub tunnel: bool,
}

impl Back {
    /// Writes a request's head. `method` decides how the response is framed.
    pub fn ask(&mut self, head: &mut Head, method: Method, how: Asked, out: &mut Vec<u8>) {
        self.method = method;
        self.write = Writer::of(how.framing);
        self.read.begin();
        if how.tunnel {
            self.lives = false;
            return h1::write_request(head, None, out);
        }
        let ends = heed_connection(head);
        head.drop_user_info();
        // HTTP/1.0 has no chunks: a server may read them as its next request (RFC 9112 §6.1).
        if how.framing == Framing::Chunked {
            head.set_version(Version::Http11);
            announce_chunks(head);
        }
        let version = head.version();
        self.lives = how.keep && !ends;
        let keeps = self.lives || how.pretend;
        let connection = match (keeps, version) {
            (true, Version::Http10) => Some(Connection::KeepAlive),
            (false, Version::Http10) => None,
            (false, Version::Http11 | Version::Http2 | Version::Http3) => Some(Connection::Close),
            (true, Version::Http11 | Version::Http2 | Version::Http3) => None,
        };
        h1::write_request(head, connection, out);
    }

    /// The next step with a server's bytes.
    #[inline(always)]
    pub fn pull<'a>(
        &mut self,
        input: &'a [u8],
        rules: Rules,
        response: &mut Head,
        trailers: &mut Head,
    ) -> (usize, Pull<'a>) {
        let method = self.method;
        let parse = |input: &'a [u8]| {
            h1::parse_response(input, method, rules.limits, rules.strictness, response)
        };
        let (used, pull) = self.read.pull(input, rules, trailers, parse);
        if let Pull::Head(parsed) = &pull {
            if is_interim(response.status()) {
                self.read.begin();
            } else {
                self.lives &= parsed.keep_alive && parsed.framing != Framing::UntilClose;
            }
        }
        (used, pull)
    }

    /// Gives back the last bytes of the current payload.
    pub fn unread(&mut self, count: usize) {
        self.read.unread(count);
    }

    /// Switches both sides to another protocol.
    pub fn become_raw(&mut self) {
        self.read.become_raw();
        self.write = Writer::Plain;
        self.lives = false;
    }

    /// The connection cannot be reused.
    pub fn end_after(&mut self) {
        self.lives = false;
    }

    /// The server has ended its side. Whether this ends a body too.
    pub fn end_of_input(&mut self) -> bool {
        self.read.end_of_input()
    }

    /// Whether another request may be sent: both messages of the exchange are complete.
    pub fn is_reusable(&self) -> bool {
        self.lives && self.read.is_over() && self.write == Writer::Nothing
    }

    /// Whether a response head is expected.
    pub fn awaits_head(&self) -> bool {
        self.read.awaits_head()
    }

    /// The reader of the message at hand.
    #[inline]
    pub fn read(&self) -> &Reader {
        &self.read
    }

    /// The message ends with its body.
    #[inline]
    pub fn end_body(&mut self) {
        self.read.end_body();
    }

    /// Announced payload bytes that have not come yet.
    pub fn announced(&self) -> u64 {
        self.read.announced()
    }
}

/// Whether a response precedes the final one (RFC 9110 §15.2); 101 is final.
pub(crate) fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}
