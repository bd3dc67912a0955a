//! Splits bytes into frames, and dispatches the frames.

use super::{Connection, Role};
use crate::Head;
use crate::h2::frame::{FRAME_HEAD_BYTES, FrameHead, PREFACE, flag, kind};
use crate::h2::{Code, Error, Event, StreamId};

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// The preface; this many bytes have arrived.
    Preface(u8),
    /// A frame.
    Frame,
    /// A CONTINUATION frame of this stream.
    Block(Block),
    /// Payload of a DATA frame.
    Data(Data),
    /// The rest of a frame that is discarded.
    Skip(u32),
    /// Nothing: the connection has failed.
    Failed(Error),
}

/// A header block of several frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub stream: StreamId,
    pub end_stream: bool,
    /// How many CONTINUATION frames have arrived.
    pub continuations: u32,
}

/// A DATA frame that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub stream: StreamId,
    pub left: u32,
    pub padding: u8,
    pub end_stream: bool,
}

/// The result of a step.
pub(super) enum Step {
    /// This many bytes were used; the rest may contain more.
    Used(usize),
    /// This many bytes were used, and an event is to be returned.
    Tell(usize, Event),
    /// More input is needed.
    More,
}

impl Step {
    /// After this many bytes, returns an event if there is one.
    pub fn of(used: usize, event: Option<Event>) -> Step {
        match event {
            Some(event) => Step::Tell(used, event),
            None => Step::Used(used),
        }
    }
}

impl Connection {
    /// Reads bytes from the wire up to the next event. Returns the number of bytes used, which must
    /// not be passed again, and the event. With [`Event::More`] the unused bytes are part of a
    /// frame: pass them again with more input after them. They are at most
    /// [`crate::h2::Limits::frame_bytes_max`] and a frame header; payload is used as it arrives.
    ///
    /// `head` receives the message head or trailer section of the event; other events overwrite it
    /// too. Automatic replies are appended to `out`. `now_ms`: the monotonic time, milliseconds;
    /// what a peer does slowly is no attack.
    ///
    /// # Errors
    /// The peer broke a rule and the connection ends. GOAWAY is already in `out`; close the
    /// connection once it is sent. All later calls fail with the same error.
    #[inline]
    pub fn read(
        &mut self,
        input: &[u8],
        now_ms: u64,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event), Error> {
        if let Some(event) = self.next_unprocessed() {
            return Ok((0, event));
        }
        self.load.decay(now_ms);
        let mut at = 0;
        loop {
            match self.step(&input[at..], at, head, out) {
                Ok(Step::Used(used)) => at += used,
                Ok(Step::Tell(used, event)) => return Ok((at + used, event)),
                Ok(Step::More) => return Ok((at, Event::More)),
                Err(error) => return Err(self.fail(error, out)),
            }
        }
    }

    /// Takes one step with the bytes `rest`, which begin at `at` in the caller's input.
    fn step(
        &mut self,
        rest: &[u8],
        at: usize,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Error> {
        match self.reading {
            Reading::Frame | Reading::Block(_) => self.frame(rest, head, out),
            Reading::Data(_) | Reading::Skip(_) if rest.is_empty() => Ok(Step::More),
            Reading::Data(data) => Ok(self.data_piece(data, rest, at, out)),
            Reading::Skip(left) => {
                let used = rest.len().min(left as usize);
                self.skip(left - used as u32);
                Ok(Step::Used(used))
            }
            Reading::Preface(len) => self.preface(usize::from(len), rest),
            Reading::Failed(error) => Err(error),
        }
    }

    /// RFC 9113 §3.4.
    fn preface(&mut self, len: usize, rest: &[u8]) -> Result<Step, Error> {
        let used = rest.len().min(PREFACE.len() - len);
        if rest[..used] != PREFACE[len..len + used] {
            return Err(Error::protocol("not the preface of HTTP/2"));
        }
        if used == 0 {
            return Ok(Step::More);
        }
        self.reading = match len + used {
            len if len == PREFACE.len() => Reading::Frame,
            len => Reading::Preface(len as u8),
        };
        Ok(Step::Used(used))
    }

    /// Discards the rest of this frame.
    pub(super) fn skip(&mut self, left: u32) {
        self.reading = match left {
            0 => Reading::Frame,
            left => Reading::Skip(left),
        };
    }

    fn frame(&mut self, rest: &[u8], head: &mut Head, out: &mut Vec<u8>) -> Result<Step, Error> {
        let Some(bytes) = rest.first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(Step::More);
        };
        let frame = FrameHead::read(*bytes);
        self.check(frame)?;
        if frame.kind == kind::DATA {
            return self.data_frame(frame, rest, out);
        }
        if frame.kind > kind::CONTINUATION {
            // RFC 9113 §5.5: unknown types are ignored.
            self.idle_frame()?;
            self.skip(frame.len);
            return Ok(Step::Used(FRAME_HEAD_BYTES));
        }
        let end = FRAME_HEAD_BYTES + frame.len as usize;
        let Some(payload) = rest.get(FRAME_HEAD_BYTES..end) else {
            return Ok(Step::More);
        };
        let event = match frame.kind {
            kind::HEADERS => {
                self.counts.headers += 1;
                self.headers(frame, payload, head, out)?
            }
            kind::CONTINUATION => self.continuation(frame, payload, head, out)?,
            kind::PRIORITY => self.priority(frame, payload)?,
            kind::RST_STREAM => {
                self.counts.resets += 1;
                self.rst_stream(frame, payload)?
            }
            kind::SETTINGS => {
                self.counts.settings += 1;
                self.settings(frame, payload, out)?
            }
            kind::PING => self.pinged(frame, payload, out)?,
            kind::GOAWAY => {
                self.counts.goaways += 1;
                self.goaway_frame(payload)?
            }
            _ => self.window_update(frame, payload, out)?,
        };
        Ok(Step::of(end, event))
    }

    /// Checks what a frame header alone can reveal.
    #[inline]
    fn check(&self, frame: FrameHead) -> Result<(), Error> {
        if frame.len > self.limits.frame_bytes_max {
            return size_error("a frame larger than the limit");
        }
        // RFC 9113 §6.10: no other frame may interrupt a header block, not even one of another
        // stream.
        let block = match self.reading {
            Reading::Block(block) => Some(block.stream),
            _ => None,
        };
        let continues = (frame.kind == kind::CONTINUATION).then_some(frame.stream);
        if block != continues {
            return Err(Error::protocol(
                "a header block that is interrupted, or none to continue",
            ));
        }
        // RFC 9113 §3.4.
        if !self.peer.are_known && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(Error::protocol("the first frame is not SETTINGS"));
        }
        let of_connection = frame.stream == StreamId::CONNECTION;
        match frame.kind {
            kind::DATA | kind::HEADERS | kind::CONTINUATION if of_connection => {
                Err(Error::protocol("a frame of a stream without its number"))
            }
            kind::DATA | kind::HEADERS | kind::CONTINUATION => Ok(()),
            kind::PRIORITY | kind::RST_STREAM if of_connection => {
                Err(Error::protocol("a frame of a stream without its number"))
            }
            kind::PRIORITY if frame.len != 5 => size_error("a PRIORITY frame of a wrong size"),
            kind::RST_STREAM if frame.len != 4 => size_error("an RST_STREAM frame of a wrong size"),
            kind::SETTINGS | kind::PING | kind::GOAWAY if !of_connection => Err(Error::protocol(
                "a frame of the connection with a stream's number",
            )),
            kind::SETTINGS if frame.has(flag::ACK) && frame.len > 0 => {
                size_error("an acknowledgement of settings with a payload")
            }
            kind::SETTINGS if !frame.len.is_multiple_of(6) => {
                size_error("a SETTINGS frame of a wrong size")
            }
            kind::PING if frame.len != 8 => size_error("a PING frame of a wrong size"),
            kind::GOAWAY if frame.len < 8 => size_error("a GOAWAY frame of a wrong size"),
            kind::WINDOW_UPDATE if frame.len != 4 => {
                size_error("a WINDOW_UPDATE frame of a wrong size")
            }
            // We never permit it (RFC 9113 §8.4).
            kind::PUSH_PROMISE => Err(Error::protocol("a PUSH_PROMISE frame")),
            _ => Ok(()),
        }
    }

    /// Whether a stream is idle: it was never opened (RFC 9113 §5.1).
    pub(super) fn is_unopened(&self, id: StreamId) -> bool {
        // A server opens no streams: even numbers stay idle.
        id > self.last_stream || id.0.is_multiple_of(2)
    }

    /// Whether frames of a closed stream may still arrive: we reset it, or no longer accept it.
    pub(super) fn may_be_late(&self, id: StreamId) -> bool {
        let is_ignored = self.goaway.sent.is_some_and(|last| id > last);
        (is_ignored && self.role == Role::Server) || self.reset_streams.contains(id)
    }
}

fn size_error(message: &'static str) -> Result<(), Error> {
    Err(Error::new(Code::FRAME_SIZE_ERROR, message))
}
