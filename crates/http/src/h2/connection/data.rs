//! Received payload and its flow control (RFC 9113 §5.2, §6.1, §6.9).

use super::control::SMALL_CREDIT_BYTES;
use super::read::{Data, Reading, Step};
use super::{Connection, Role};
use crate::h2::frame::{self, FRAME_HEAD_BYTES, FrameHead, WINDOW_DEFAULT, flag};
use crate::h2::streams::Stream;
use crate::h2::{Code, Error, Event, StreamId};

impl Connection {
    /// The caller has finished with payload: the peer may send as much again, or more if only the
    /// window limits it. The credit is sent once it is worth a frame. Count each byte of an
    /// [`Event::Data`] exactly once, even if the stream is gone.
    pub fn consumed(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.credit_connection(bytes, out);
        let (window, most) = (
            self.limits.stream_window_bytes,
            self.limits.grown_window_bytes,
        );
        let Some(stream) = self.streams.get_mut(stream) else {
            return;
        };
        stream.due = stream.due.saturating_add(bytes);
        // The rest of a body of known length may already fit in the window.
        let has_room = |left: u64| u64::try_from(stream.recv_window).is_ok_and(|room| room >= left);
        if stream.flags.recv_end || stream.body_left.is_some_and(has_room) {
            return;
        }
        if stream.due >= window.div_ceil(2) {
            let mut credit = std::mem::take(&mut stream.due);
            // The peer has used most of its window and the recipient keeps up: only the window
            // limits it. A distant peer needs as much as it can send in a round trip.
            if i64::from(stream.recv_window) < i64::from(stream.window / 2) {
                let more = stream.window.min(most.saturating_sub(stream.window));
                stream.window += more;
                credit = credit.saturating_add(more);
            }
            stream.recv_window = stream.recv_window.saturating_add_unsigned(credit);
            frame::window_update(stream.id, credit, out);
        }
    }

    /// Credits the connection. Payload that nobody consumes stays out of its window: the credit is
    /// sent for half of the rest, so that other streams continue. A credit that the peer would take
    /// for an attack is sent only if nothing else is left.
    fn credit_connection(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.due = self.due.saturating_add(bytes);
        let left = u32::try_from(self.recv_window).unwrap_or(0);
        let usable = left.saturating_add(self.due);
        if self.due > 0 && self.due >= left.max(SMALL_CREDIT_BYTES.min(usable)) {
            let due = std::mem::take(&mut self.due);
            self.recv_window = self.recv_window.saturating_add_unsigned(due);
            frame::window_update(StreamId::CONNECTION, due, out);
        }
    }

    /// Reads the header of a DATA frame, and the length of its padding.
    pub(super) fn data_frame(
        &mut self,
        frame: FrameHead,
        rest: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Error> {
        let mut used = FRAME_HEAD_BYTES;
        let (mut data_len, mut padding) = (frame.len, 0);
        if frame.has(flag::PADDED) {
            if frame.len == 0 {
                return Err(Error::new(
                    Code::FRAME_SIZE_ERROR,
                    "padding without a length",
                ));
            }
            let Some(&len) = rest.get(used) else {
                return Ok(Step::More);
            };
            if u32::from(len) >= frame.len {
                return Err(Error::protocol("more padding than the frame has bytes"));
            }
            used += 1;
            padding = len;
            data_len -= 1 + u32::from(padding);
        }
        self.counts.data += 1;
        // The whole frame counts, even if it is refused (RFC 9113 §6.9.1).
        let len = frame.len as i32;
        if len > self.recv_window {
            return flow_error("more payload than the connection's window");
        }
        self.recv_window -= len;
        let end_stream = frame.has(flag::END_STREAM);
        if let Err(error) = self.admit(frame, data_len) {
            let event = match error {
                Refusal::Connection(error) => return Err(error),
                Refusal::Late => None,
                Refusal::Stream(error) => Some(self.stream_error(frame.stream, error, out)?),
            };
            self.credit_connection(frame.len, out);
            self.skip(frame.len - (used - FRAME_HEAD_BYTES) as u32);
            return Ok(Step::of(used, event));
        }
        if frame.len > data_len {
            self.consumed(frame.stream, (frame.len - data_len) as usize, out);
        }
        match data_len {
            0 => self.idle_frame()?,
            _ => self.worked(),
        }
        let data = Data {
            stream: frame.stream,
            left: data_len,
            padding,
            end_stream,
        };
        if data_len == 0 {
            let step = if end_stream {
                self.data_piece(data, &[], 0, out)
            } else {
                self.skip(u32::from(padding));
                Step::Used(0)
            };
            return Ok(match step {
                Step::Tell(_, event) => Step::Tell(used, event),
                Step::Used(_) | Step::More => Step::Used(used),
            });
        }
        self.reading = Reading::Data(data);
        Ok(Step::Used(used))
    }

    /// Whether a stream accepts this frame. Charges the stream's window.
    fn admit(&mut self, frame: FrameHead, data_len: u32) -> Result<(), Refusal> {
        let needs_head = self.role == Role::Client;
        // Before the peer knows our settings it assumes the default.
        let more = if self.has_ack {
            0
        } else {
            WINDOW_DEFAULT.saturating_sub(self.limits.stream_window_bytes) as i32
        };
        let Some(stream) = self.streams.get_mut(frame.stream) else {
            let error = match (
                self.is_unopened(frame.stream),
                self.may_be_late(frame.stream),
            ) {
                (_, true) => return Err(Refusal::Late),
                (true, _) => Error::protocol("DATA on an idle stream"),
                (false, _) => Error::new(Code::STREAM_CLOSED, "DATA on a closed stream"),
            };
            return Err(Refusal::Connection(error));
        };
        let error = if stream.flags.recv_end {
            Error::new(Code::STREAM_CLOSED, "DATA behind the end of the stream")
        } else if needs_head && !stream.flags.has_head {
            Error::protocol("DATA before a head")
        } else if frame.len as i32 > stream.recv_window.saturating_add(more) {
            Error::new(
                Code::FLOW_CONTROL_ERROR,
                "more payload than the stream's window",
            )
        } else if !count_body(stream, data_len, frame.has(flag::END_STREAM)) {
            Error::protocol("another body than content-length says")
        } else {
            stream.recv_window -= frame.len as i32;
            return Ok(());
        };
        Err(Refusal::Stream(error))
    }

    /// Payload of the current frame, at `at` in the caller's input.
    pub(super) fn data_piece(
        &mut self,
        data: Data,
        rest: &[u8],
        at: usize,
        out: &mut Vec<u8>,
    ) -> Step {
        let used = rest.len().min(data.left as usize);
        let left = data.left - used as u32;
        if left > 0 {
            self.reading = Reading::Data(Data { left, ..data });
        } else {
            self.skip(u32::from(data.padding));
        }
        let Some(stream) = self.streams.get_mut(data.stream) else {
            // The stream was reset while the frame arrived.
            self.credit_connection(used as u32, out);
            return Step::Used(used);
        };
        let end = data.end_stream && left == 0;
        let token = stream.token;
        stream.flags.recv_end |= end;
        if end {
            self.close_if_over(data.stream);
        }
        Step::Tell(
            used,
            Event::Data {
                stream: data.stream,
                token,
                range: at..at + used,
                end,
            },
        )
    }
}

/// Why a DATA frame is refused.
enum Refusal {
    Connection(Error),
    Stream(Error),
    /// The frame was sent before the peer could know of the end of the stream.
    Late,
}

/// Counts payload against the announced length (RFC 9113 §8.1.1); returns whether they agree.
fn count_body(stream: &mut Stream, len: u32, end: bool) -> bool {
    if stream.flags.is_bodyless {
        return len == 0;
    }
    let Some(left) = &mut stream.body_left else {
        return true;
    };
    match left.checked_sub(u64::from(len)) {
        Some(rest) if rest == 0 || !end => {
            *left = rest;
            true
        }
        _ => false,
    }
}

fn flow_error<T>(message: &'static str) -> Result<T, Error> {
    Err(Error::new(Code::FLOW_CONTROL_ERROR, message))
}
