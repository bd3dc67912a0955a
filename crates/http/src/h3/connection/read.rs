//! Splits the input into records, and dispatches them.

use super::unidirectional::is_unidirectional;
use super::{CONNECTION_ROOM_BYTES, Connection, Role, STREAM_ROOM_BYTES, quic};
use crate::Head;
use crate::h3::code::{self, Failure};
use crate::h3::record::{self, HEAD_BYTES, Kind, Record, RecordHead};
use crate::h3::streams::Stream;
use crate::h3::{Error, Event, StreamId};

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// A record.
    Record,
    /// Bytes of a stream.
    Data(Data),
    /// Nothing: the connection has failed.
    Failed(Error),
}

/// A record of bytes of a stream that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    stream: u64,
    left: usize,
    end: bool,
    is_echo: bool,
}

/// Bytes of a stream, which begin at `at` in the caller's input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    /// The stream ends after them.
    pub end: bool,
    pub is_echo: bool,
}

/// The result of a step.
#[derive(Debug)]
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

/// RFC 9114 §6.1: a server opens no bidirectional streams.
const NO_REQUEST: Failure = Failure::new(
    code::STREAM_CREATION_ERROR,
    "a bidirectional stream of a server",
);

impl Connection {
    /// Reads records of the QUIC layer up to the next event. Returns the number of bytes used, which
    /// must not be passed again, and the event. With [`Event::More`] the unused bytes are part of a
    /// record: pass them again with more input after them. They are fewer than 32 bytes; bytes of
    /// streams are used as they arrive.
    ///
    /// `head` receives the message head or trailer section of the event; other events overwrite it
    /// too. Records for the QUIC layer are appended to `out`. `now_ms`: the monotonic time,
    /// milliseconds; what a peer does slowly is no attack.
    ///
    /// # Errors
    /// The peer broke a rule and the connection ends. A Close record is already in `out`; nothing
    /// may follow it. All later calls fail with the same error.
    #[inline]
    pub fn read(
        &mut self,
        input: &[u8],
        now_ms: u64,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event), Error> {
        self.load.decay(now_ms);
        let mut at = 0;
        loop {
            if let Reading::Failed(error) = self.reading {
                return Err(error);
            }
            match self.step(&input[at..], at, head, out) {
                Ok(Step::Used(used)) => at += used,
                Ok(Step::Tell(used, event)) => return Ok((at + used, event)),
                Ok(Step::More) => return Ok((at, Event::More)),
                Err(failure) => return Err(self.fail(failure, out)),
            }
        }
    }

    /// Takes one step with the bytes `rest`, which begin at `at` in the caller's input. What earlier
    /// bytes caused comes first.
    fn step(
        &mut self,
        rest: &[u8],
        at: usize,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        if let Some(event) = self.later.pop_front() {
            return Ok(Step::Tell(0, event));
        }
        if let Some(event) = self.next_unprocessed(out) {
            return Ok(Step::Tell(0, event));
        }
        if let Some(id) = self.next_resumed() {
            let event = self.resume(id, head, out)?;
            return Ok(Step::Tell(0, event));
        }
        if self.unidirectional.has_instructions {
            self.instructions(out)?;
            return Ok(Step::Used(0));
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.reading {
            Reading::Record => self.record(rest, out),
            Reading::Data(data) => self.data(data, rest, at, head, out),
            // `read` returned the error.
            Reading::Failed(_) => Ok(Step::More),
        }
    }

    fn record(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Result<Step, Failure> {
        const MALFORMED: Failure = Failure::new(code::INTERNAL_ERROR, "a malformed record of QUIC");
        let Some(head) = RecordHead::read(rest).map_err(|_| MALFORMED)? else {
            return Ok(Step::More);
        };
        if let Kind::Data | Kind::Echo | Kind::Fin = head.kind {
            self.reading = Reading::Data(Data {
                stream: head.stream,
                left: head.len,
                end: head.end,
                is_echo: head.kind == Kind::Echo,
            });
            return Ok(Step::Used(HEAD_BYTES));
        }
        let comes = matches!(
            head.kind,
            Kind::Reset | Kind::Stopped | Kind::Written | Kind::Streams
        );
        if !comes {
            return Err(MALFORMED);
        }
        let Some((record, used)) = Record::read(rest).map_err(|_| MALFORMED)? else {
            return Ok(Step::More);
        };
        let event = match head.kind {
            Kind::Reset => self.was_reset(head.stream, record.number(), out)?,
            Kind::Stopped => self.was_stopped(head.stream, record.number(), out)?,
            Kind::Written => self.written(head.stream, record.number()),
            Kind::Streams => self.may_open(record.number()),
            _ => return Err(MALFORMED),
        };
        Ok(Step::of(used, event))
    }

    /// Bytes of a stream, and its end.
    fn data(
        &mut self,
        data: Data,
        rest: &[u8],
        at: usize,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        if rest.is_empty() && data.left > 0 {
            return Ok(Step::More);
        }
        let bytes = &rest[..rest.len().min(data.left)];
        let piece = Piece {
            bytes,
            at,
            end: data.end && bytes.len() == data.left,
            is_echo: data.is_echo,
        };
        let step = if is_unidirectional(data.stream) {
            self.unidirectional_bytes(data.stream, piece, out)?
        } else if data.stream.is_multiple_of(4) {
            self.request_bytes(data.stream / 4, piece, head, out)?
        } else {
            return Err(NO_REQUEST);
        };
        let used = match step {
            Step::Used(used) | Step::Tell(used, _) => used,
            Step::More => 0,
        };
        let left = data.left - used;
        self.reading = if left > 0 {
            Reading::Data(Data { left, ..data })
        } else {
            self.end_of_record(data.stream, out);
            Reading::Record
        };
        Ok(step)
    }

    /// Tells QUIC what was used of a record for other things than payload.
    fn end_of_record(&mut self, stream: u64, out: &mut Vec<u8>) {
        if self.used > 0 {
            record::consumed(stream, std::mem::take(&mut self.used), out);
        }
        // The peer is told once a record of how many insertions came with it.
        self.unidirectional.tells_inserted |= self.unidirectional.is_encoder(stream);
    }

    /// The peer has reset its side of a stream.
    fn was_reset(
        &mut self,
        stream: u64,
        code: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        self.counts.resets += 1;
        if is_unidirectional(stream) {
            return self.end_of_unidirectional(stream).map(|()| None);
        }
        if !stream.is_multiple_of(4) {
            return Err(NO_REQUEST);
        }
        let Some(id) = self.admit(stream / 4, out)? else {
            return Ok(None);
        };
        let Some(open) = self.streams.get_mut(id).filter(|open| !open.flags.recv_end) else {
            return Ok(None);
        };
        open.flags.recv_end = true;
        let flags = open.flags;
        if self.role == Role::Server && !flags.send_end {
            self.peer_reset()?;
        }
        self.cancel_sections(id, out);
        let token = self.abort(id, code::REQUEST_CANCELLED, out);
        Ok(self.reset_event(id, token, flags.has_head, code))
    }

    /// The peer wants no more of a stream.
    fn was_stopped(
        &mut self,
        stream: u64,
        code: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        self.counts.resets += 1;
        if is_unidirectional(stream) {
            // RFC 9114 §6.2.1, RFC 9204 §4.2.
            let message = "a control stream of ours that is stopped";
            return Err(Failure::new(code::CLOSED_CRITICAL_STREAM, message));
        }
        if !stream.is_multiple_of(4) {
            return Err(NO_REQUEST);
        }
        // It may overtake the stream itself, which is opened by it.
        let Some(id) = self.admit(stream / 4, out)? else {
            return Ok(None);
        };
        let is_sending = |open: &&mut Stream| !open.flags.send_end && open.stopped.is_none();
        let Some(open) = self.streams.get_mut(id).filter(is_sending) else {
            return Ok(None);
        };
        record::reset(quic(id), code, out);
        // RFC 9114 §4.1: the response may still be complete.
        open.stopped = Some(code::to_h2(code));
        if self.role == Role::Client {
            self.close_if_over(id, out);
            return Ok(None);
        }
        let has_head = open.flags.has_head;
        self.peer_reset()?;
        let token = self.abort(id, code::REQUEST_CANCELLED, out);
        Ok(self.reset_event(id, token, has_head, code))
    }

    /// The event of a stream that the peer ended. A request without a head is not told.
    fn reset_event(&self, id: StreamId, token: u32, has_head: bool, code: u64) -> Option<Event> {
        (has_head || self.role == Role::Client).then_some(Event::Reset {
            stream: id,
            token,
            code: code::to_h2(code),
            error: None,
        })
    }

    /// The transport has taken so many bytes.
    fn written(&mut self, stream: u64, count: u64) -> Option<Event> {
        let more = |room: i64, most: u64| room.saturating_add_unsigned(count).min(most as i64);
        if stream == record::CONNECTION {
            self.room = more(self.room, CONNECTION_ROOM_BYTES);
            let opens = self.room > 0 && std::mem::take(&mut self.is_blocked);
            return opens.then_some(Event::WindowsOpen);
        }
        let id = number(stream)?;
        let open = self.streams.get_mut(id)?;
        open.room = more(open.room, STREAM_ROOM_BYTES);
        if open.room <= 0 || !std::mem::take(&mut open.flags.is_blocked) {
            return None;
        }
        Some(Event::WindowOpen {
            stream: id,
            token: open.token,
        })
    }

    /// A client may open so many requests in total.
    fn may_open(&mut self, count: u64) -> Option<Event> {
        let could = self.can_open();
        self.requests_max = self.requests_max.max(count);
        (!could && self.can_open()).then_some(Event::Settings)
    }
}

/// The number of the request on a stream of QUIC.
fn number(stream: u64) -> Option<StreamId> {
    let id = u32::try_from(stream / 4).ok().map(StreamId);
    id.filter(|_| stream.is_multiple_of(4))
}
