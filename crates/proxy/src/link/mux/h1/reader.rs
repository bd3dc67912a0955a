//! Reads messages: bytes → head, data, end.

use http::Head;
use http::h1::body::{BodyDecoder, Piece};
use http::h1::{Framing, Limits, ParseError, Parsed, Resume, Strictness};

/// The next part of a message.
#[derive(Debug)]
pub(crate) enum Pull<'a> {
    /// More bytes are needed.
    More,
    /// The message is over; the bytes after it wait.
    Hold,
    /// A head, which is in the given buffer.
    Head(Parsed),
    /// Payload. Unused bytes of it are given back with [`Reader::unread`].
    Data(&'a [u8]),
    /// The end of the body. Its trailers are in the given buffer.
    End,
    /// The message violates the protocol.
    Bad(ParseError),
}

/// How messages are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub limits: Limits,
    pub strictness: Strictness,
}

/// ```text
/// Head → Body → Over → Head …
///   └──────┴──→ Raw              (CONNECT, upgrades)
/// ```
#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Body(BodyDecoder),
    Over,
    Raw,
}

/// Reads the messages of one side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    state: State,
    /// The head came in parts; `resume` says when parsing it again is useful.
    in_parts: bool,
    resume: Resume,
}

impl Reader {
    /// The next step with the bytes of `input`, and how many of them it used. `parse` reads a head.
    pub fn pull<'a>(
        &mut self,
        input: &'a [u8],
        rules: Rules,
        trailers: &mut Head,
        parse: impl FnOnce(&'a [u8]) -> Result<Option<Parsed>, ParseError>,
    ) -> (usize, Pull<'a>) {
        match &mut self.state {
            State::Head => self.pull_head(input, rules, trailers, parse),
            State::Over => (0, Pull::Hold),
            State::Raw if input.is_empty() => (0, Pull::More),
            State::Raw => (input.len(), Pull::Data(input)),
            State::Body(decoder) => {
                let (used, pull) = match decoder.next(input, trailers) {
                    Ok((used, Piece::Data(bytes))) => (used, Pull::Data(bytes)),
                    Ok((used, Piece::More)) => (used, Pull::More),
                    Ok((used, Piece::End)) => (used, Pull::End),
                    Err(error) => (input.len(), Pull::Bad(error)),
                };
                if matches!(pull, Pull::End) {
                    self.state = State::Over;
                }
                (used, pull)
            }
        }
    }

    #[inline]
    fn pull_head<'a>(
        &mut self,
        input: &'a [u8],
        rules: Rules,
        trailers: &mut Head,
        parse: impl FnOnce(&'a [u8]) -> Result<Option<Parsed>, ParseError>,
    ) -> (usize, Pull<'a>) {
        if input.is_empty() || (self.in_parts && !self.resume.is_worth_it(input, rules.limits)) {
            return (0, Pull::More);
        }
        match parse(input) {
            Ok(None) => {
                if !std::mem::replace(&mut self.in_parts, true) {
                    self.resume = Resume::default();
                    self.resume.is_worth_it(input, rules.limits);
                }
                (0, Pull::More)
            }
            Ok(Some(parsed)) => {
                self.in_parts = false;
                self.begin_body(parsed.framing, rules);
                match self.probe(&input[parsed.consumed..], trailers) {
                    Ok(()) => (parsed.consumed, Pull::Head(parsed)),
                    Err(error) => (input.len(), Pull::Bad(error)),
                }
            }
            Err(error) => (input.len(), Pull::Bad(error)),
        }
    }

    /// Checks the chunks that came with a head. Where their framing is broken, the message is not
    /// forwarded at all.
    #[inline]
    fn probe(&self, input: &[u8], trailers: &mut Head) -> Result<(), ParseError> {
        match &self.state {
            State::Body(decoder) if !input.is_empty() && decoder.is_chunked() => {
                probe_chunks(decoder.clone(), input, trailers)
            }
            _ => Ok(()),
        }
    }

    fn begin_body(&mut self, framing: Framing, rules: Rules) {
        self.state = match framing {
            Framing::None | Framing::Length(0) => State::Over,
            _ => State::Body(BodyDecoder::with(framing, rules.limits, rules.strictness)),
        };
    }

    /// Gives back the last bytes of the current payload; they are delivered again.
    pub fn unread(&mut self, count: usize) {
        if let State::Body(decoder) = &mut self.state {
            decoder.unread(count);
        }
    }

    /// Allows the next message.
    pub fn begin(&mut self) {
        debug_assert!(!matches!(self.state, State::Raw));
        self.state = State::Head;
        self.in_parts = false;
    }

    /// The bytes that follow are not a message and are passed unparsed.
    pub fn become_raw(&mut self) {
        self.state = State::Raw;
    }

    /// Whether a head is expected.
    pub fn awaits_head(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// Whether a body is being read.
    #[inline]
    pub fn is_within_body(&self) -> bool {
        matches!(self.state, State::Body(_))
    }

    /// Whether a body of announced length is read completely.
    #[inline]
    pub fn has_all(&self) -> bool {
        matches!(&self.state, State::Body(decoder) if decoder.is_done())
    }

    /// The message ends with its body.
    #[inline]
    pub fn end_body(&mut self) {
        self.state = State::Over;
    }

    /// Whether the message is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The connection has ended. Whether this ends the current body, which is then complete.
    pub fn end_of_input(&mut self) -> bool {
        let ends = matches!(&self.state, State::Body(decoder) if decoder.is_until_close());
        if ends {
            self.state = State::Over;
        }
        ends
    }

    /// Announced payload bytes that have not come yet.
    pub fn announced(&self) -> u64 {
        match &self.state {
            State::Body(decoder) => decoder.announced(),
            State::Head | State::Over | State::Raw => 0,
        }
    }
}

#[cold]
fn probe_chunks(
    mut decoder: BodyDecoder,
    mut input: &[u8],
    trailers: &mut Head,
) -> Result<(), ParseError> {
    loop {
        match decoder.next(input, trailers)? {
            (used, Piece::Data(_)) => input = &input[used..],
            (_, Piece::More | Piece::End) => {
                trailers.clear();
                return Ok(());
            }
        }
    }
}
