//! Sending: heads, payload, trailers, resets.

use super::{Connection, Role, STREAM_ROOM_BYTES, quic};
use crate::h2::hpack::FieldEncoder;
use crate::h2::write;
use crate::h3::frame::{self, kind};
use crate::h3::qpack::Encoder;
use crate::h3::record::{self, DATA_BYTES_MAX};
use crate::h3::streams::{Stream, StreamFlags};
use crate::h3::{Code, Scheme, StreamId, code, varint};
use crate::{Head, Method};

/// The most bytes that [`Connection::send_data_head`] appends.
pub const DATA_HEAD_BYTES_MAX: usize = record::HEAD_BYTES + 1 + varint::BYTES_MAX;

/// Memory that a connection keeps for the sections that it writes.
const SECTION_BYTES_KEPT: usize = 16 << 10;

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
        let id = StreamId(u32::try_from(self.opened.next).ok()?);
        self.opened.open(u64::from(id.0));
        self.counts.streams += 1;
        self.streams.add(Stream {
            id,
            token,
            room: STREAM_ROOM_BYTES as i64,
            flags: StreamFlags {
                send_end: end,
                sent_head: true,
                is_head: head.method() == Method::Head,
                is_connect: head.method() == Method::Connect,
                ..StreamFlags::default()
            },
            ..Stream::default()
        });
        self.write_section(id, end, out, |encoder, out| {
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
        let may_answer = |open: &&mut Stream| open.flags.has_head && !open.flags.sent_head;
        let Some(open) = self.sending(stream).filter(may_answer) else {
            return false;
        };
        open.flags.sent_head = !is_interim;
        open.flags.send_end = end;
        self.write_section(stream, end, out, |encoder, out| {
            write::response(head, encoder, out);
        });
        if end {
            self.close_if_over(stream, out);
        }
        true
    }

    /// How many bytes of payload can be sent on a stream in one frame now. If 0,
    /// [`crate::h2::Event::WindowOpen`] or [`crate::h2::Event::WindowsOpen`] says when to ask again.
    /// It is also 0 if the stream has ended, or if the peer has asked us to stop sending on it.
    pub fn data_room(&mut self, stream: StreamId) -> usize {
        self.is_blocked |= self.room <= 0;
        let room = self.room;
        let Some(open) = self.sending(stream).filter(|open| open.flags.sent_head) else {
            return 0;
        };
        open.flags.is_blocked = open.room <= 0;
        let room = usize::try_from(open.room.min(room)).unwrap_or(0);
        room.min(DATA_BYTES_MAX)
    }

    /// Whether the room of the connection permits payload. If not,
    /// [`crate::h2::Event::WindowsOpen`] follows.
    #[must_use]
    pub fn has_connection_room(&mut self) -> bool {
        self.is_blocked |= self.room <= 0;
        self.room > 0
    }

    /// Appends the header of a record and of a DATA frame, at most [`DATA_HEAD_BYTES_MAX`]; the
    /// caller appends `len` bytes of payload right after it. `len` is at most
    /// [`Connection::data_room`], and may be 0 with `end`. If `len` is not valid or the stream is
    /// gone, nothing is appended and the result is false.
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
        open.flags.send_end = end;
        if len == 0 {
            // HTTP/3 needs no empty frame, not even to end a stream.
            if end {
                record::fin(quic(stream), out);
            }
        } else {
            let bytes = 1 + varint::len(len as u64) + len;
            open.room -= bytes as i64;
            self.room -= bytes as i64;
            record::data_head(quic(stream), bytes, end, out);
            frame::head(kind::DATA, len, out);
        }
        self.load.worked();
        if end {
            self.close_if_over(stream, out);
        }
        true
    }

    /// Ends a message with a trailer section, which may have no fields. False if the stream is
    /// gone.
    pub fn send_trailers(&mut self, stream: StreamId, trailers: &Head, out: &mut Vec<u8>) -> bool {
        let Some(open) = self.sending(stream).filter(|open| open.flags.sent_head) else {
            return false;
        };
        // A tunnel has none (RFC 9114 §4.4).
        if trailers.field_count() == 0 || open.flags.is_connect {
            return self.send_data_head(stream, 0, true, out);
        }
        open.flags.send_end = true;
        self.write_section(stream, true, out, |encoder, out| {
            write::trailers(trailers, encoder, out);
        });
        self.close_if_over(stream, out);
        true
    }

    /// Ends both sides of a stream that are open, and forgets it: resets what we send, and stops
    /// what the peer sends. A server that has answered before the request was complete and does not
    /// want the rest sends `NO_ERROR` (RFC 9114 §4.1). False if the stream is gone.
    pub fn send_reset(&mut self, stream: StreamId, code: Code, out: &mut Vec<u8>) -> bool {
        if self.streams.get(stream).is_none() {
            return false;
        }
        let code = match (code::of_h2(code), self.role) {
            // RFC 9114 §4.1.1: only a server knows that a request was not processed.
            (code::REQUEST_REJECTED, Role::Client) => code::REQUEST_CANCELLED,
            (code, _) => code,
        };
        self.counts.sent_resets += 1;
        self.abort(stream, code, out);
        true
    }

    /// Does nothing. HTTP/3 has no PING frame, because QUIC has one, so the event
    /// [`crate::h2::Event::Pong`] never comes.
    pub fn ping(&mut self, _payload: u64, _out: &mut Vec<u8>) {}

    /// The caller has finished with payload: QUIC lets the peer send as much again. Count each byte
    /// of an [`crate::h2::Event::Data`] exactly once, even if the stream is gone.
    pub fn consumed(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        if bytes > 0 && !self.has_failed() {
            record::consumed(quic(stream), bytes as u64, out);
        }
    }

    /// Answers a request that the caller does not know.
    pub(super) fn write_status(&mut self, id: StreamId, status: u16, out: &mut Vec<u8>) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.flags.send_end = true;
        }
        self.write_section(id, true, out, |encoder, out| encoder.status(status, out));
    }

    /// Appends bytes of one of our unidirectional streams, if there are any.
    pub(super) fn send_bytes(&mut self, stream: u64, bytes: &[u8], out: &mut Vec<u8>) {
        if !bytes.is_empty() {
            self.room -= bytes.len() as i64;
            record::data(stream, bytes, false, out);
        }
    }

    /// Appends bytes of our control stream.
    pub(super) fn send_control(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.send_bytes(self.control_stream(), bytes, out);
    }

    /// A stream whose local side is open and wanted.
    fn sending(&mut self, stream: StreamId) -> Option<&mut Stream> {
        let has_failed = self.has_failed();
        self.streams
            .get_mut(stream)
            .filter(|open| !has_failed && !open.flags.send_end && open.stopped.is_none())
    }

    /// Appends a section as a HEADERS frame, after the instructions that it caused.
    #[inline]
    fn write_section(
        &mut self,
        id: StreamId,
        end: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let mut section = std::mem::take(&mut self.section);
        let mut lead = std::mem::take(&mut self.lead);
        section.clear();
        // Insertions must not wait for room: QUIC would keep them behind all that is on its way.
        self.encoder.begin(self.room > 0);
        write(&mut self.encoder, &mut section);
        lead.clear();
        self.encoder.finish(quic(id), &mut lead);
        let prefix = lead.len();
        frame::head(kind::HEADERS, prefix + section.len(), &mut lead);
        // The header of the frame comes first.
        lead.rotate_left(prefix);
        let mut instructions = std::mem::take(self.encoder.instructions());
        self.send_bytes(self.encoder_stream(), &instructions, out);
        instructions.clear();
        *self.encoder.instructions() = instructions;
        let total = lead.len() + section.len();
        if let Some(stream) = self.streams.get_mut(id) {
            stream.room -= total as i64;
        }
        self.room -= total as i64;
        let first = section.len().min(DATA_BYTES_MAX - lead.len());
        let (now, rest) = section.split_at(first);
        let is_whole = rest.is_empty();
        record::data_head(quic(id), lead.len() + now.len(), end && is_whole, out);
        out.extend_from_slice(&lead);
        out.extend_from_slice(now);
        if !is_whole {
            record::data(quic(id), rest, end, out);
        }
        if section.capacity() <= SECTION_BYTES_KEPT {
            self.section = section;
        }
        self.lead = lead;
    }
}
