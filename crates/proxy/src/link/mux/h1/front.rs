//! The side of a client: requests in, responses out.

use http::h1::{self, Connection, Framing};
use http::{Head, Version};

use super::reader::{Pull, Reader, Rules};
use super::writer::Writer;
use super::{announce_chunks, heed_connection};
use crate::ids::StreamId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Front {
    /// The stream of the request at hand.
    pub stream: Option<StreamId>,
    read: Reader,
    pub write: Writer,
    /// The connection goes on after this exchange.
    lives: bool,
    /// The client asked for the end: it sends nothing more.
    asked_end: bool,
    /// The client speaks HTTP/1.0.
    is_old: bool,
    /// The client waits to be asked for its body (`Expect: 100-continue`).
    expects: bool,
    /// What is left of the request is thrown away: it was answered before its end.
    drains: bool,
}

/// How a response is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub framing: Framing,
    /// The connection ends after it, whatever the client wants.
    pub close: bool,
    /// What follows is no HTTP: the request asked for that.
    pub tunnel: bool,
}

/// What becomes of a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come.
    Next,
    /// The rest of this request is thrown away first.
    Drain,
    /// It ends. With `lingers` the client, which may still send, learns so from the response only.
    End { lingers: bool },
}

impl Front {
    /// For the first request of this stream, which is there already.
    pub fn of(stream: StreamId) -> Front {
        Front {
            stream: Some(stream),
            ..Front::default()
        }
    }

    /// The next step of what a client sent.
    pub fn pull<'a>(
        &mut self,
        input: &'a [u8],
        rules: Rules,
        request: &mut Head,
        trailers: &mut Head,
    ) -> (usize, Pull<'a>) {
        let parse =
            |input: &'a [u8]| h1::parse_request(input, rules.limits, rules.strictness, request);
        let (used, pull) = self.read.pull(input, rules, trailers, parse);
        if let Pull::Head(parsed) = &pull {
            self.lives = parsed.keep_alive;
            self.asked_end = !parsed.keep_alive;
            self.is_old = request.version_bytes() == b"HTTP/1.0";
            self.expects = parsed.expect_continue;
        }
        (used, pull)
    }

    /// Takes back the last bytes of the payload at hand.
    pub fn unread(&mut self, count: usize) {
        self.read.unread(count);
    }

    /// Writes a response's head.
    pub fn respond(&mut self, head: &mut Head, how: Answered, out: &mut Vec<u8>) {
        if how.tunnel {
            h1::write_response(head, None, out);
            self.read.become_raw();
            self.write = Writer::Plain;
            self.lives = false;
            return;
        }
        let ends = heed_connection(head);
        let mut framing = how.framing;
        // A client that still waits to be asked may send its body or not: nobody could tell it from the next request.
        let unasked = self.expects && !self.read.is_over();
        self.lives &= !how.close && !ends && !unasked;
        match framing {
            // HTTP/1.0 knows no chunks: the end of the connection ends the body.
            Framing::Chunked if self.is_old => {
                head.set_framing(Framing::None);
                framing = Framing::UntilClose;
                self.lives = false;
            }
            Framing::UntilClose => self.lives = false,
            Framing::Chunked => {
                head.set_version(Version::Http11);
                announce_chunks(head);
            }
            Framing::None | Framing::Length(_) => {}
        }
        let is_old = head.version() == Version::Http10;
        let connection = match self.lives {
            false => (!is_old).then_some(Connection::Close),
            true => (is_old || self.is_old).then_some(Connection::KeepAlive),
        };
        h1::write_response(head, connection, out);
        self.write = Writer::of(framing);
    }

    /// Writes an interim response, which a client of HTTP/1.0 does not know; whether it did.
    pub fn interim(&mut self, head: &Head, out: &mut Vec<u8>) -> bool {
        if self.is_old {
            return false;
        }
        self.expects &= head.status() != 100;
        h1::write_response(head, None, out);
        true
    }

    /// Asks a client that waits for it to send its body; whether it did wait.
    pub fn ask_for_body(&mut self) -> bool {
        std::mem::take(&mut self.expects)
    }

    /// The connection goes on after this exchange, as far as is known.
    pub fn lives(&self) -> bool {
        self.lives
    }

    /// The response is complete: the exchange is over.
    pub fn finish(&mut self) -> After {
        self.stream = None;
        self.write = Writer::Nothing;
        match (self.lives, self.read.is_over()) {
            (true, true) => {
                self.read.begin();
                After::Next
            }
            (true, false) => {
                self.drains = true;
                After::Drain
            }
            (false, _) => After::End {
                lingers: !self.asked_end,
            },
        }
    }

    /// What comes of the request's body is thrown away.
    pub fn drains(&self) -> bool {
        self.drains
    }

    /// The rest of the request has been thrown away.
    pub fn drained(&mut self) {
        self.drains = false;
        self.read.begin();
    }

    /// A request is awaited.
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
