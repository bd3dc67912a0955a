//! Sending: heads, payload, trailers, resets.

use super::Connection;
use crate::h2::frame::{self, FRAME_HEAD_BYTES, flag, kind};
use crate::h2::hpack::{Encoder, FieldEncoder};
use crate::h2::streams::{Stream, StreamFlags};
use crate::h2::{Code, Scheme, StreamId, write};
use crate::{Head, Method};

/// The small credits that a peer may send for a DATA frame of any size: on its stream and on the
/// connection.
const CREDITS_A_FRAME: u32 = 2;
/// The payload for which it may send one more: some peers credit a frame in pieces, or have small
/// windows.
const BYTES_A_CREDIT: usize = 32;
/// The most small credits that are still due.
const CREDITS_DUE_MAX: u32 = 1 << 16;

impl Connection {
    /// A client sends a request, which opens a stream. Returns the stream's number, or none if
    /// [`Connection::can_open`] is false.
    ///
    /// `scheme` is used if the target has none. `end`: no payload and no trailers follow. An
    /// extended CONNECT is a head with [`Head::set_protocol`], method CONNECT and a target in
    /// origin form; the peer must support it ([`Connection::takes_extended_connect`]).
    #[must_use]
    pub fn send_request(
        &mut self,
        head: &Head,
        scheme: Scheme,
        token: u32,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Option<StreamId> {
        if !self.can_open() {
            return None;
        }
        let id = match self.last_stream {
            StreamId::CONNECTION => StreamId(1),
            StreamId(last) => StreamId(last + 2),
        };
        self.last_stream = id;
        self.counts.streams += 1;
        self.streams.add(Stream {
            id,
            token,
            send_window: self.peer.stream_window as i32,
            recv_window: self.limits.stream_window_bytes as i32,
            window: self.limits.stream_window_bytes,
            due: 0,
            body_left: None,
            flags: StreamFlags {
                send_end: end,
                sent_head: true,
                is_head: head.method() == Method::Head,
                is_connect: head.method() == Method::Connect,
                ..StreamFlags::default()
            },
        });
        self.write_block(id, end, out, |encoder, out| {
            write::request(head, scheme, encoder, out);
        });
        Some(id)
    }

    /// A server sends a response, or an interim one (status below 200), which does not end the
    /// stream. `end`: no payload and no trailers follow. If the stream is gone or already has its
    /// response, nothing is sent and the result is false.
    pub fn send_response(
        &mut self,
        stream: StreamId,
        head: &Head,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_interim = head.status() < 200;
        let end = end && !is_interim;
        let Some(open) = self.sending(stream).filter(|open| !open.flags.sent_head) else {
            return false;
        };
        open.flags.sent_head = !is_interim;
        open.flags.send_end = end;
        self.write_block(stream, end, out, |encoder, out| {
            write::response(head, encoder, out);
        });
        if end {
            self.close_if_over(stream);
        }
        true
    }

    /// How many bytes of payload can be sent on a stream in one frame now. If 0,
    /// [`crate::h2::Event::WindowOpen`], [`crate::h2::Event::WindowsOpen`] or
    /// [`crate::h2::Event::Settings`] says when to ask again. It is also 0 if the
    /// stream has ended.
    pub fn data_room(&mut self, stream: StreamId) -> usize {
        let Some(open) = self.streams.get_mut(stream) else {
            return 0;
        };
        if open.flags.send_end || !open.flags.sent_head {
            return 0;
        }
        open.flags.is_blocked = open.send_window <= 0;
        self.is_blocked |= self.send_window <= 0;
        let room = open.send_window.min(self.send_window).max(0) as usize;
        room.min(self.peer.frame_bytes_max as usize)
    }

    /// Whether the window of the connection permits payload. If not,
    /// [`super::super::Event::WindowsOpen`] follows.
    #[must_use]
    pub fn has_connection_room(&mut self) -> bool {
        self.is_blocked |= self.send_window <= 0;
        self.send_window > 0
    }

    /// Appends the header of a DATA frame; the caller appends `len` bytes of payload right after
    /// it. `len` is at most [`Connection::data_room`], and may be 0 with `end`. If `len` is not
    /// valid or the stream is gone, nothing is appended and the result is false.
    pub fn send_data_head(
        &mut self,
        stream: StreamId,
        len: usize,
        end: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if len > 0 && len > self.data_room(stream) {
            return false;
        }
        let Some(open) = self.sending(stream).filter(|open| open.flags.sent_head) else {
            return false;
        };
        open.send_window -= len as i32;
        open.flags.send_end = end;
        let stream_window = open.send_window;
        self.send_window -= len as i32;
        // A frame that the peer's windows cut short earns by its bytes alone: otherwise tiny credits
        // would pay for themselves.
        let mut earned = (len / BYTES_A_CREDIT) as u32;
        if len > 0 && stream_window > 0 && self.send_window > 0 {
            earned = earned.max(CREDITS_A_FRAME);
        }
        self.load.credits_due = (self.load.credits_due + earned).min(CREDITS_DUE_MAX);
        let flags = if end { flag::END_STREAM } else { 0 };
        frame::head(kind::DATA, flags, stream, len, out);
        self.worked();
        if end {
            self.close_if_over(stream);
        }
        true
    }

    /// Ends a message with a trailer section, which may have no fields. False if the stream is
    /// gone.
    pub fn send_trailers(&mut self, stream: StreamId, trailers: &Head, out: &mut Vec<u8>) -> bool {
        if trailers.field_count() == 0 {
            return self.send_data_head(stream, 0, true, out);
        }
        let Some(open) = self.sending(stream).filter(|open| open.flags.sent_head) else {
            return false;
        };
        open.flags.send_end = true;
        self.write_block(stream, true, out, |encoder, out| {
            write::trailers(trailers, encoder, out);
        });
        self.close_if_over(stream);
        true
    }

    /// Resets a stream and forgets it. A server that has answered before the request was complete
    /// and does not want the rest sends `NO_ERROR` (RFC 9113 §8.1). False if the stream is gone.
    pub fn send_reset(&mut self, stream: StreamId, code: Code, out: &mut Vec<u8>) -> bool {
        if self.streams.remove(stream).is_none() {
            return false;
        }
        self.reset_streams.add(stream);
        self.counts.sent_resets += 1;
        frame::reset(stream, code, out);
        true
    }

    /// Sends a PING; the peer answers with [`crate::h2::Event::Pong`] and the same payload.
    pub fn ping(&mut self, payload: u64, out: &mut Vec<u8>) {
        self.load.pings = self.load.pings.saturating_add(1);
        frame::ping(0, &payload.to_be_bytes(), out);
    }

    /// Answers a request that has no stream.
    pub(super) fn write_status(&mut self, id: StreamId, status: u16, out: &mut Vec<u8>) {
        self.write_block(id, true, out, |encoder, out| {
            encoder.status(status, out);
        });
    }

    /// A stream whose local side is open.
    fn sending(&mut self, stream: StreamId) -> Option<&mut Stream> {
        self.streams
            .get_mut(stream)
            .filter(|open| !open.flags.send_end)
    }

    /// Appends a block as a HEADERS frame and as many CONTINUATION frames as needed.
    #[inline]
    fn write_block(
        &mut self,
        id: StreamId,
        end: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let at = out.len();
        let end_stream = if end { flag::END_STREAM } else { 0 };
        frame::head(kind::HEADERS, flag::END_HEADERS | end_stream, id, 0, out);
        self.encoder.begin(out);
        write(&mut self.encoder, out);
        let len = out.len() - at - FRAME_HEAD_BYTES;
        let most = self.peer.frame_bytes_max as usize;
        if len <= most {
            frame::set_len(out, at, len);
            return;
        }
        let block = out.split_off(at + FRAME_HEAD_BYTES);
        out.truncate(at);
        for (nth, part) in block.chunks(most).enumerate() {
            let kind = if nth == 0 {
                kind::HEADERS
            } else {
                kind::CONTINUATION
            };
            let is_last = (nth + 1) * most >= block.len();
            let flags = if nth == 0 { end_stream } else { 0 };
            let flags = flags | if is_last { flag::END_HEADERS } else { 0 };
            frame::head(kind, flags, id, part.len(), out);
            out.extend_from_slice(part);
        }
    }
}
