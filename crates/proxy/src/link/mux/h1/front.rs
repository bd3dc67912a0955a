//! The client's side: receives requests, sends responses.

use http::h1::{self, Connection, Framing};
use http::{Head, Version};

use super::reader::{Pull, Reader, Rules};
use super::writer::Writer;
use super::{announce_chunks, heed_connection};

/// The HTTP/1 mux of a client's connection.
#[derive(Debug, Default)]
pub(crate) struct Front {
    read: Reader,
    pub write: Writer,
    /// Whether the connection is kept after this exchange.
    lives: bool,
    /// The client asked to close and sends no further request.
    asked_end: bool,
    /// The client speaks HTTP/1.0.
    is_old: bool,
    /// The client waits for 100 before it sends its body (`Expect: 100-continue`).
    expects: bool,
    /// The rest of the request is discarded, because the response came before its end.
    drains: bool,
}

/// How a response is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub framing: Framing,
    /// The connection ends after the response, whatever the client asked for.
    pub close: bool,
    /// Another protocol follows, which the request asked for.
    pub tunnel: bool,
    /// Payload of the server follows, even if the client gets none.
    pub reads_on: bool,
}

/// What a connection does after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Reads the next request.
    Next,
    /// First discards the rest of this request.
    Drain,
    /// Ends.
    End(Linger),
}

/// How long the input of a client is discarded after the proxy has ended the connection. A close
/// with unread input resets the connection, and the client loses the response (RFC 9112 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// The client sends no more: not at all.
    No,
    /// The client may have sent another request, because only the response tells it about the end:
    /// for a moment.
    Briefly,
    /// The client sends the rest of a request that was answered early: until it has been silent for
    /// its timeout.
    WhileItSends,
}

impl Front {
    /// The next step with a client's bytes.
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

    /// Gives back the last bytes of the current payload.
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
        // A client that still waits for 100 may send its body or not, so the body cannot be
        // distinguished from the next request.
        let unasked = self.expects && !self.read.is_over();
        self.lives &= !how.close && !ends && !unasked;
        match framing {
            // HTTP/1.0 has no chunks: the end of the connection ends the body.
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
        let connection = if self.lives {
            (is_old || self.is_old).then_some(Connection::KeepAlive)
        } else {
            (!is_old).then_some(Connection::Close)
        };
        h1::write_response(head, connection, out);
        self.write = Writer::of(framing);
    }

    /// Writes an interim response, which HTTP/1.0 clients do not know. Whether it was written.
    pub fn interim(&mut self, head: &Head, out: &mut Vec<u8>) -> bool {
        if self.is_old {
            return false;
        }
        self.expects &= head.status() != 100;
        h1::write_response(head, None, out);
        true
    }

    /// Returns whether the client waits for 100, and clears that state.
    pub fn ask_for_body(&mut self) -> bool {
        std::mem::take(&mut self.expects)
    }

    /// Whether the client waits for 100.
    pub fn expects(&self) -> bool {
        self.expects
    }

    /// Whether the connection is kept after this exchange, as far as is known.
    pub fn lives(&self) -> bool {
        self.lives
    }

    /// The response is complete, and the exchange ends.
    pub fn finish(&mut self) -> After {
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
            (false, false) => After::End(Linger::WhileItSends),
            (false, true) => After::End(if self.asked_end {
                Linger::No
            } else {
                Linger::Briefly
            }),
        }
    }

    /// Whether the rest of the request's body is discarded.
    pub fn drains(&self) -> bool {
        self.drains
    }

    /// The rest of the request has been discarded.
    pub fn drained(&mut self) {
        self.drains = false;
        self.read.begin();
    }

    /// Whether a request head is expected.
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
