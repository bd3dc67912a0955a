//! The side of a server: requests out, responses in.

use http::h1::{self, Connection, Framing};
use http::{Head, Method, Version};

use super::reader::{Pull, Reader, Rules};
use super::writer::Writer;
use super::{announce_chunks, heed_connection};
use crate::ids::StreamId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Back {
    /// The stream whose request it works on; none while it is idle.
    pub stream: Option<StreamId>,
    read: Reader,
    pub write: Writer,
    /// The connection can serve another request after this one.
    lives: bool,
    /// The method that the server was asked with: it decides how the answer is framed.
    method: Method,
}

/// How a request is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub framing: Framing,
    /// The connection may go on after it.
    pub keep: bool,
    /// It is asked to go on although it will not (`option http-pretend-keepalive`).
    pub pretend: bool,
    /// The request asks for something that is no HTTP: what is said of the connection is its own.
    pub tunnel: bool,
}

impl Back {
    /// Writes a request's head. `method`: what decides how its answer is framed.
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
        // HTTP/1.0 knows no chunks: a server might take them for its next request (RFC 9112 §6.1).
        if how.framing == Framing::Chunked {
            head.set_version(Version::Http11);
            announce_chunks(head);
        }
        let version = head.version();
        self.lives = how.keep && !ends;
        let keeps = self.lives || how.pretend;
        let connection = match (keeps, version) {
            (false, Version::Http11 | Version::Http2) => Some(Connection::Close),
            (true, Version::Http10) => Some(Connection::KeepAlive),
            (false, Version::Http10) | (true, Version::Http11 | Version::Http2) => None,
        };
        h1::write_request(head, connection, out);
    }

    /// The next step of what a server sent.
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

    /// Takes back the last bytes of the payload at hand.
    pub fn unread(&mut self, count: usize) {
        self.read.unread(count);
    }

    /// From here on both sides speak something else.
    pub fn become_raw(&mut self) {
        self.read.become_raw();
        self.write = Writer::Plain;
        self.lives = false;
    }

    /// The connection cannot be used again.
    pub fn end_after(&mut self) {
        self.lives = false;
    }

    /// The server's end came: whether it is that of a body, too.
    pub fn end_of_input(&mut self) -> bool {
        self.read.end_of_input()
    }

    /// Whether another request may be sent: the exchange is over on both ways.
    pub fn is_reusable(&self) -> bool {
        self.lives && self.read.is_over() && self.write == Writer::Nothing
    }

    /// A response is awaited.
    pub fn awaits_head(&self) -> bool {
        self.read.awaits_head()
    }

    /// What is being read.
    #[inline]
    pub fn read(&self) -> &Reader {
        &self.read
    }

    /// The message is over with its body.
    #[inline]
    pub fn end_body(&mut self) {
        self.read.end_body();
    }

    /// Payload bytes that were announced and did not come yet.
    pub fn announced(&self) -> u64 {
        self.read.announced()
    }
}

/// A response before the final one (RFC 9110 §15.2); 101 is final.
pub(crate) fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}
