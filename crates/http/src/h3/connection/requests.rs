//! The streams of requests: which ones are accepted, and their frames (RFC 9114 §4.1, §6.1, §7.2).

use super::messages::Outcome;
use super::read::{Piece, Step};
use super::{BUFFERED_BYTES_MAX, Connection, Role, quic};
use crate::Head;
use crate::h3::code::{self, Failure};
use crate::h3::frame::{self, HEAD_BYTES_MAX, kind};
use crate::h3::streams::{Part, Stream};
use crate::h3::{Event, StreamId, record};

const TRUNCATED: Failure = Failure::new(code::FRAME_ERROR, "a stream that ends within a frame");
const UNEXPECTED: Failure = Failure::new(
    code::FRAME_UNEXPECTED,
    "a frame where it must not be on the stream of a request",
);
pub(super) const OTHER_LENGTH: Failure =
    Failure::new(code::MESSAGE_ERROR, "another body than content-length says");

impl Connection {
    /// Bytes of the stream of a request, and its end.
    pub(super) fn request_bytes(
        &mut self,
        number: u64,
        piece: Piece<'_>,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let len = piece.bytes.len();
        let Some(id) = self.admit(number, out)? else {
            self.used += len as u64;
            return Ok(Step::Used(len));
        };
        let end = piece.end || self.ends_echo(id, piece);
        let mut used = 0;
        while used < len {
            let rest = Piece {
                bytes: &piece.bytes[used..],
                at: piece.at + used,
                end,
                ..piece
            };
            if self.is_held(id, piece.is_echo) {
                let event = self.hold(id, rest, out)?;
                if let Some(event) = event {
                    return Ok(Step::Tell(len, event));
                }
                used = len;
                break;
            }
            let step = if self.streams.get(id).is_some() {
                self.frame(id, rest, head, out)?
            } else {
                Step::Used(rest.bytes.len())
            };
            let (more, event) = match step {
                Step::Used(more) => (more, None),
                Step::Tell(more, event) => (more, Some(event)),
                Step::More => (0, None),
            };
            used += more;
            let lent = match &event {
                Some(Event::Data { range, .. }) => range.len(),
                _ => 0,
            };
            self.used += (more - lent) as u64;
            if piece.is_echo {
                self.echoed(id, more, out);
            }
            if let Some(event) = event {
                return Ok(Step::Tell(used, event));
            }
        }
        let event = if end {
            self.end_of_stream(id, piece.at + used, out)?
        } else {
            None
        };
        Ok(Step::of(used, event))
    }

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
                room: super::STREAM_ROOM_BYTES as i64,
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

    /// The next frame of a stream, or a part of it, of at least one byte.
    fn frame(
        &mut self,
        id: StreamId,
        piece: Piece<'_>,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(Step::Used(piece.bytes.len()));
        };
        let bytes = piece.bytes;
        match stream.part {
            Part::Head => self.frame_head(id, bytes, out),
            Part::Data(left) => self.payload(id, left, piece, out),
            Part::Section(left) => self.section_bytes(id, left, piece, head, out),
            Part::Skip(left) => {
                let used = (bytes.len() as u64).min(left);
                stream.part = match left - used {
                    0 => Part::Head,
                    left => Part::Skip(left),
                };
                Ok(Step::Used(used as usize))
            }
            // The caller holds the bytes.
            Part::Waiting => Ok(Step::Used(bytes.len())),
        }
    }

    /// The header of a frame, or a part of it.
    fn frame_head(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(Step::Used(bytes.len()));
        };
        let before = stream.block.len();
        let found = if before == 0 {
            frame::read_head(bytes)
        } else {
            let more = bytes.len().min(HEAD_BYTES_MAX - before);
            stream.block.extend_from_slice(&bytes[..more]);
            let found = frame::read_head(&stream.block);
            stream.block.truncate(before);
            found
        };
        let Some((kind, len, size)) = found else {
            stream.block.extend_from_slice(bytes);
            self.buffered += bytes.len();
            return Ok(Step::Used(bytes.len()));
        };
        stream.block.clear();
        self.buffered -= before;
        let event = self.frame_begins(id, kind, len, out)?;
        Ok(Step::of(size - before, event))
    }

    /// Checks a frame by its header, and prepares for its payload.
    fn frame_begins(
        &mut self,
        id: StreamId,
        kind: u64,
        len: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        let flags = stream.flags;
        match kind {
            kind::DATA => {
                if !flags.has_head || flags.has_trailers {
                    return Err(UNEXPECTED);
                }
                stream.part = if len == 0 {
                    Part::Head
                } else {
                    Part::Data(len)
                };
                let is_right = count_body(stream, len);
                self.counts.data += 1;
                match len {
                    0 => self.idle_frame()?,
                    _ => self.load.worked(),
                }
                if !is_right {
                    return self.stream_error(id, OTHER_LENGTH, out).map(Some);
                }
            }
            kind::HEADERS => {
                // RFC 9114 §4.4: a tunnel has no trailers.
                if flags.has_trailers || flags.is_tunnel {
                    return Err(UNEXPECTED);
                }
                stream.part = Part::Section(len);
                self.counts.headers += 1;
                if len == 0 {
                    let message = "an empty field section";
                    return Err(Failure::new(code::DECOMPRESSION_FAILED, message));
                }
                if len > u64::from(self.limits.block_bytes_max) {
                    return self.too_large(id, out).map(Some);
                }
            }
            // RFC 9114 §7.2.5: we permit no push.
            kind::PUSH_PROMISE if self.role == Role::Client => {
                return Err(Failure::new(code::ID_ERROR, "a promise of a push"));
            }
            kind::CANCEL_PUSH
            | kind::SETTINGS
            | kind::PUSH_PROMISE
            | kind::GOAWAY
            | kind::MAX_PUSH_ID
            | kind::PRIORITY_UPDATE
            | kind::PRIORITY_UPDATE_PUSH => return Err(UNEXPECTED),
            kind if kind::is_reserved(kind) => return Err(UNEXPECTED),
            _ => {
                stream.part = if len == 0 {
                    Part::Head
                } else {
                    Part::Skip(len)
                };
                self.idle_frame()?;
            }
        }
        Ok(None)
    }

    /// Payload of a DATA frame of which so much is left.
    fn payload(
        &mut self,
        id: StreamId,
        left: u64,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let used = (piece.bytes.len() as u64).min(left) as usize;
        let left = left - used as u64;
        let end = piece.end && used == piece.bytes.len();
        let is_truncated = end && left > 0;
        let end = end && !is_truncated;
        if is_truncated {
            // The payload that came is told before.
            self.failure = Some(TRUNCATED);
        }
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(Step::Used(used));
        };
        stream.part = if left == 0 {
            Part::Head
        } else {
            Part::Data(left)
        };
        stream.flags.recv_end |= end;
        let token = stream.token;
        let is_short = end && stream.body_left.is_some_and(|left| left > 0);
        if is_short {
            let event = self.stream_error(id, OTHER_LENGTH, out)?;
            self.later.push_back(event);
        } else if end {
            self.close_if_over(id, out);
        }
        let end = end && !is_short;
        Ok(Step::Tell(
            used,
            Event::Data {
                stream: id,
                token,
                range: piece.at..piece.at + used,
                end,
            },
        ))
    }

    /// Bytes of a HEADERS frame of which so much is left.
    fn section_bytes(
        &mut self,
        id: StreamId,
        left: u64,
        piece: Piece<'_>,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(Step::Used(piece.bytes.len()));
        };
        let used = (piece.bytes.len() as u64).min(left) as usize;
        let bytes = &piece.bytes[..used];
        let left = left - used as u64;
        if left > 0 {
            if piece.end {
                return Err(TRUNCATED);
            }
            if self.buffered + used > BUFFERED_BYTES_MAX {
                let event = self.too_large(id, out)?;
                return Ok(Step::Tell(used, event));
            }
            self.buffered += used;
            stream.block.extend_from_slice(bytes);
            stream.part = Part::Section(left);
            return Ok(Step::Used(used));
        }
        stream.part = Part::Head;
        let end = piece.end && used == piece.bytes.len();
        if stream.block.is_empty() {
            return match self.section(id, bytes, end, head, out)? {
                Outcome::Told(event) => Ok(Step::Tell(used, event)),
                Outcome::Waits(required) => {
                    let event = self.wait(id, required, bytes.to_vec(), out)?;
                    Ok(Step::of(used, event))
                }
            };
        }
        let mut block = std::mem::take(&mut stream.block);
        self.buffered -= block.len();
        block.extend_from_slice(bytes);
        match self.section(id, &block, end, head, out)? {
            Outcome::Told(event) => Ok(Step::Tell(used, event)),
            Outcome::Waits(required) => {
                let event = self.wait(id, required, block, out)?;
                Ok(Step::of(used, event))
            }
        }
    }

    /// The peer has ended its side of a stream.
    fn end_of_stream(
        &mut self,
        id: StreamId,
        at: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        if let Some(held) = &mut stream.held {
            held.end = true;
            return Ok(None);
        }
        let flags = stream.flags;
        if flags.recv_end {
            return Ok(None);
        }
        if stream.part != Part::Head || !stream.block.is_empty() {
            return Err(TRUNCATED);
        }
        stream.flags.recv_end = true;
        if !flags.has_head {
            const INCOMPLETE: Failure = Failure::new(
                code::REQUEST_INCOMPLETE,
                "a stream that ends without a head",
            );
            return self.stream_error(id, INCOMPLETE, out).map(Some);
        }
        if stream.body_left.is_some_and(|left| left > 0) {
            return self.stream_error(id, OTHER_LENGTH, out).map(Some);
        }
        let token = stream.token;
        self.close_if_over(id, out);
        if flags.has_trailers {
            return Ok(None);
        }
        Ok(Some(Event::Data {
            stream: id,
            token,
            range: at..at,
            end: true,
        }))
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
}

/// Counts payload against the announced length (RFC 9114 §4.1.2); returns whether it may be so much.
fn count_body(stream: &mut Stream, len: u64) -> bool {
    if stream.flags.is_bodyless {
        return len == 0;
    }
    let Some(left) = &mut stream.body_left else {
        return true;
    };
    let rest = left.checked_sub(len);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
