//! Messages on their way in: bytes → head, data, end.

use http::Head;
use http::h1::body::{BodyDecoder, Piece};
use http::h1::{Framing, Limits, ParseError, Parsed, Resume, Strictness};

/// What comes next.
#[derive(Debug)]
pub(crate) enum Pull<'a> {
    /// More bytes are needed.
    More,
    /// The message is over: what follows waits for its turn.
    Hold,
    /// A head; it is in the buffer given.
    Head(Parsed),
    /// Payload. What of it is not used is given back with [`Reader::unread`].
    Data(&'a [u8]),
    /// The body is over. Its trailers are in the buffer given.
    End,
    /// The message breaks the protocol.
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

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    state: State,
    /// A head came in parts; `resume` tells when it is worth parsing again.
    in_parts: bool,
    resume: Resume,
}

impl Reader {
    /// The next step of what `input` holds, and how many bytes it took. `parse` reads a head.
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

    /// Looks through the chunks that came along with a head: where their framing is broken, nobody hears of the message.
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

    /// Takes back the last bytes of the payload at hand: they come again.
    pub fn unread(&mut self, count: usize) {
        if let State::Body(decoder) = &mut self.state {
            decoder.unread(count);
        }
    }

    /// The next message may come.
    pub fn begin(&mut self) {
        debug_assert!(!matches!(self.state, State::Raw));
        self.state = State::Head;
        self.in_parts = false;
    }

    /// What follows is no message: bytes as they are.
    pub fn become_raw(&mut self) {
        self.state = State::Raw;
    }

    /// A head is awaited.
    pub fn awaits_head(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// A body is being read.
    #[inline]
    pub fn is_within_body(&self) -> bool {
        matches!(self.state, State::Body(_))
    }

    /// All of a body whose length was announced is read.
    #[inline]
    pub fn has_all(&self) -> bool {
        matches!(&self.state, State::Body(decoder) if decoder.is_done())
    }

    /// The message is over with its body.
    #[inline]
    pub fn end_body(&mut self) {
        self.state = State::Over;
    }

    /// The message is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The end of the connection: whether it is that of the body at hand, which is over then.
    pub fn end_of_input(&mut self) -> bool {
        let ends = matches!(&self.state, State::Body(decoder) if decoder.is_until_close());
        if ends {
            self.state = State::Over;
        }
        ends
    }

    /// Payload bytes that were announced and did not come yet.
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
