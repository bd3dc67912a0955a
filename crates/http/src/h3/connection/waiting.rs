//! Sections that wait for instructions of the peer's encoder (RFC 9204 §2.1.2), and the bytes behind
//! them.

use super::messages::Outcome;
use super::read::Piece;
use super::{BUFFERED_BYTES_MAX, Connection, quic};
use crate::Head;
use crate::h3::code::{self, Failure};
use crate::h3::qpack::BLOCKED_STREAMS_MAX;
use crate::h3::streams::Part;
use crate::h3::{Event, StreamId, record};

/// The most sections of one stream that may wait: bytes behind them are moved each time.
const WAITS_MAX: u8 = 8;

const TOO_MUCH: Failure = Failure::new(code::EXCESSIVE_LOAD, "too much behind a waiting section");

impl Connection {
    /// Keeps a section that needs more insertions than there are.
    pub(super) fn wait(
        &mut self,
        id: StreamId,
        required: u64,
        section: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        if self.waiting.len() >= BLOCKED_STREAMS_MAX {
            let message = "more waiting sections than permitted";
            return Err(Failure::new(code::DECOMPRESSION_FAILED, message));
        }
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        stream.waits += 1;
        if stream.waits > WAITS_MAX || self.buffered + section.len() > BUFFERED_BYTES_MAX {
            return self.stream_error(id, TOO_MUCH, out).map(Some);
        }
        self.buffered += section.len();
        stream.block = section;
        stream.part = Part::Waiting;
        stream.held.get_or_insert_default();
        self.waiting.push((required, id));
        Ok(None)
    }

    /// Whether bytes of a stream cannot be used now: a section waits, or earlier bytes are not back
    /// yet.
    pub(super) fn is_held(&self, id: StreamId, is_echo: bool) -> bool {
        self.streams.get(id).is_some_and(|stream| {
            stream.part == Part::Waiting || (stream.held.is_some() && !is_echo)
        })
    }

    /// Keeps bytes of a stream until they can be used.
    pub(super) fn hold(
        &mut self,
        id: StreamId,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        let len = piece.bytes.len();
        if self.buffered + len > BUFFERED_BYTES_MAX {
            self.used += len as u64;
            return self.stream_error(id, TOO_MUCH, out).map(Some);
        }
        if let Some(held) = self
            .streams
            .get_mut(id)
            .and_then(|stream| stream.held.as_mut())
        {
            self.buffered += len;
            if piece.is_echo {
                held.echoing = held.echoing.saturating_sub(len);
                held.returned.extend_from_slice(piece.bytes);
            } else {
                held.fresh.extend_from_slice(piece.bytes);
            }
        }
        Ok(None)
    }

    /// Whether the stream ends with these bytes, because they are the last that were on their way
    /// back.
    pub(super) fn ends_echo(&self, id: StreamId, piece: Piece<'_>) -> bool {
        let held = self.streams.get(id).and_then(|stream| stream.held.as_ref());
        piece.is_echo
            && held.is_some_and(|held| {
                held.end && held.echoing == piece.bytes.len() && held.len() == 0
            })
    }

    /// `bytes` of the payload that was given back have come again and are used now.
    pub(super) fn echoed(&mut self, id: StreamId, bytes: usize, out: &mut Vec<u8>) {
        let stream = self.streams.get_mut(id);
        if let Some(held) = stream.and_then(|stream| stream.held.as_mut()) {
            held.echoing = held.echoing.saturating_sub(bytes);
            self.release(id, out);
        }
    }

    /// The stream whose section has all that it needs; the one that waits longest.
    #[inline]
    pub(super) fn next_resumed(&self) -> Option<StreamId> {
        let inserted = self.decoder.inserted();
        let mut ready = self
            .waiting
            .iter()
            .filter(|(required, _)| *required <= inserted);
        ready.next().map(|(_, id)| *id)
    }

    /// Decodes a section that has waited.
    pub(super) fn resume(
        &mut self,
        id: StreamId,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        const GONE: Failure = Failure::new(code::INTERNAL_ERROR, "a section without a stream");
        self.waiting.retain(|(_, waiting)| *waiting != id);
        let stream = self.streams.get_mut(id).ok_or(GONE)?;
        stream.part = Part::Head;
        let section = std::mem::take(&mut stream.block);
        self.buffered -= section.len();
        let is_last = |held: &crate::h3::streams::Held| held.len() == 0 && held.echoing == 0;
        let ends = stream
            .held
            .as_ref()
            .is_some_and(|held| held.end && is_last(held));
        match self.section(id, &section, ends, head, out)? {
            Outcome::Told(event) => {
                self.release(id, out);
                Ok(event)
            }
            Outcome::Waits(_) => Err(GONE),
        }
    }

    /// Sends bytes that can be used now on their way back.
    fn release(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let is_waiting = stream.part == Part::Waiting;
        let Some(held) = stream
            .held
            .as_mut()
            .filter(|held| !is_waiting && held.echoing == 0)
        else {
            return;
        };
        if held.len() == 0 {
            stream.held = None;
            return;
        }
        let mut bytes = std::mem::take(&mut held.returned);
        bytes.append(&mut held.fresh);
        self.buffered -= bytes.len();
        held.echoing = bytes.len();
        record::echo(quic(id), &bytes, std::mem::take(&mut held.end), out);
    }
}
