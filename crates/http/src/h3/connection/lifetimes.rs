//! The beginning and the end of request streams (RFC 9114 §4.1, §6.1).

use super::{Connection, Role, STREAM_ROOM_BYTES, quic};
use crate::h3::code::{self, Failure};
use crate::h3::streams::Stream;
use crate::h3::{Event, StreamId, record};

impl Connection {
    /// The stream of a request with this number, if it is open. A server opens it if it is new and
    /// accepted.
    pub(super) fn admit(
        &mut self,
        number: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<StreamId>, Failure> {
        let Ok(id) = u32::try_from(number).map(StreamId) else {
            let message = "a request number above 2^32";
            return Err(Failure::new(code::NO_ERROR, message));
        };
        if self.streams.get(id).is_some() {
            return Ok(Some(id));
        }
        if self.opened.contains(number) {
            return Ok(None);
        }
        if self.role == Role::Client {
            let message = "bytes on a stream that no request opened";
            return Err(Failure::new(code::STREAM_CREATION_ERROR, message));
        }
        self.opened.open(number);
        // Each gap has a stream that the peer could still use.
        if self.opened.gaps() > self.limits.streams_max as usize {
            let message = "too many streams out of order";
            return Err(Failure::new(code::EXCESSIVE_LOAD, message));
        }
        let is_late = self.goaway.sent.is_some_and(|from| number >= from);
        let is_too_many = self.streams.len() >= self.limits.streams_max as usize;
        if !is_late && !is_too_many {
            self.headless += 1;
            self.streams.add(Stream {
                id,
                token: u32::MAX,
                room: STREAM_ROOM_BYTES as i64,
                ..Stream::default()
            });
            return Ok(Some(id));
        }
        record::reset(quic(id), code::REQUEST_REJECTED, out);
        record::stop(quic(id), code::REQUEST_REJECTED, out);
        self.cancel_sections(id, out);
        self.counts.sent_resets += 1;
        if is_too_many && !is_late {
            self.glitch()?;
            self.counts.stream_errors += 1;
            let error = Failure::new(code::REQUEST_REJECTED, "more streams than the limit").error();
            self.later.push_back(Event::Refused { stream: id, error });
        }
        Ok(None)
    }

    /// Resets a stream because of an error of the peer.
    pub(super) fn stream_error(
        &mut self,
        id: StreamId,
        failure: Failure,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        self.glitch()?;
        // A peer that provokes resets by us causes as much work as one that resets streams
        // (CVE-2025-8671).
        self.peer_reset()?;
        self.counts.stream_errors += 1;
        self.counts.sent_resets += 1;
        let is_told = match self.role {
            Role::Server => self
                .streams
                .get(id)
                .is_some_and(|stream| stream.flags.has_head),
            Role::Client => true,
        };
        let token = self.abort(id, failure.code, out);
        let error = failure.error();
        if !is_told {
            return Ok(Event::Refused { stream: id, error });
        }
        Ok(Event::Reset {
            stream: id,
            token,
            code: error.code,
            error: Some(error),
        })
    }

    /// Ends both sides of a stream that are open, with this code, and forgets it. Returns the
    /// caller's name for it.
    pub(super) fn abort(&mut self, id: StreamId, code: u64, out: &mut Vec<u8>) -> u32 {
        let Some(stream) = self.streams.get(id) else {
            return u32::MAX;
        };
        if !stream.flags.send_end && stream.stopped.is_none() {
            record::reset(quic(id), code, out);
        }
        if !stream.flags.recv_end {
            record::stop(quic(id), code, out);
            self.cancel_sections(id, out);
        }
        self.forget(id, out).map_or(u32::MAX, |stream| stream.token)
    }

    /// Forgets a stream. QUIC is told that what was kept of it is used.
    pub(super) fn forget(&mut self, id: StreamId, out: &mut Vec<u8>) -> Option<Stream> {
        let stream = self.streams.remove(id)?;
        self.buffered -= stream.block.len();
        if let Some(held) = &stream.held {
            self.buffered -= held.len();
            if held.len() > 0 {
                record::consumed(quic(id), held.len() as u64, out);
            }
        }
        self.waiting.retain(|(_, waiting)| *waiting != id);
        self.headless -= usize::from(self.role == Role::Server && !stream.flags.has_head);
        Some(stream)
    }

    /// The peer's decoder is told that the rest of a stream is not decoded (RFC 9204 §4.4.2).
    pub(super) fn cancel_sections(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let mut instruction = std::mem::take(&mut self.lead);
        instruction.clear();
        self.decoder.cancel(quic(id), &mut instruction);
        self.send_bytes(self.decoder_stream(), &instruction, out);
        self.lead = instruction;
    }

    /// Forgets a stream if both sides have ended.
    pub(super) fn close_if_over(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if !stream.flags.recv_end {
            return;
        }
        let token = stream.token;
        match (stream.flags.send_end, stream.stopped) {
            (true, _) => {}
            // The peer wanted no more of the request; its response is complete.
            (false, Some(code)) => self.later.push_back(Event::Reset {
                stream: id,
                token,
                code,
                error: None,
            }),
            (false, None) => return,
        }
        self.forget(id, out);
        self.load.ended_well();
    }
}
