//! The streams of requests: which ones are accepted, and their frames (RFC 9114 §4.1, §6.1, §7.2).

use super::messages::Outcome;
use super::read::{Piece, Step};
use super::{BUFFERED_BYTES_MAX, Connection, Role};
use crate::Head;
use crate::h3::code::{self, Failure};
use crate::h3::frame::{self, HEAD_BYTES_MAX, kind};
use crate::h3::streams::{Part, Stream};
use crate::h3::{Event, StreamId};

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
