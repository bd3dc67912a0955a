//! Received header blocks: requests, responses, trailers (RFC 9113 §5.1, §6.2, §6.10, §8.1).

use super::control::depends_on_other;
use super::read::{Block, Reading};
use super::{Connection, Role};
use crate::h1::Framing;
use crate::h2::fields::{Facts, Fault, Fields, Part};
use crate::h2::frame::{self, FrameHead, flag};
use crate::h2::streams::{Stream, StreamFlags};
use crate::h2::{Code, Error, Event, StreamId};
use crate::{Head, Method, Name, Version};

impl Connection {
    pub(super) fn headers(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        let fragment = fragment(frame, payload)?;
        let end_stream = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return self.block(frame.stream, end_stream, fragment, head, out);
        }
        self.block.clear();
        self.block.extend_from_slice(fragment);
        self.reading = Reading::Block(Block {
            stream: frame.stream,
            end_stream,
            continuations: 0,
        });
        Ok(None)
    }

    pub(super) fn continuation(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        let Reading::Block(mut block) = self.reading else {
            return Err(Error::protocol("no header block to continue"));
        };
        block.continuations += 1;
        let bytes = self.block.len() + payload.len();
        if block.continuations > self.limits.continuations_max
            || bytes > self.limits.block_bytes_max as usize
        {
            let message = "a header block larger than the limit";
            return Err(Error::new(Code::ENHANCE_YOUR_CALM, message));
        }
        self.block.extend_from_slice(payload);
        self.reading = Reading::Block(block);
        if !frame.has(flag::END_HEADERS) {
            return Ok(None);
        }
        self.reading = Reading::Frame;
        let bytes = std::mem::take(&mut self.block);
        let event = self.block(frame.stream, block.end_stream, &bytes, head, out);
        self.block = bytes;
        event
    }

    /// Handles a whole block.
    fn block(
        &mut self,
        id: StreamId,
        end: bool,
        block: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        if block.len() > self.limits.block_bytes_max as usize {
            let message = "a header block larger than the limit";
            return Err(Error::new(Code::ENHANCE_YOUR_CALM, message));
        }
        if let Some(&stream) = self.streams.get(id) {
            return self.block_of(stream, end, block, head, out).map(Some);
        }
        if self.is_new(id)? {
            return self.request(id, end, block, head, out);
        }
        self.decode(block, Part::Nothing, head)?.ok();
        Ok(None)
    }

    /// Whether to open a stream that is not open; false if its frames are ignored.
    fn is_new(&self, id: StreamId) -> Result<bool, Error> {
        if self.may_be_late(id) {
            return Ok(false);
        }
        if id.0.is_multiple_of(2) {
            return Err(Error::protocol(
                "HEADERS on a stream that a client cannot open",
            ));
        }
        match (id > self.last_stream, self.role) {
            (true, Role::Server) => Ok(true),
            (true, Role::Client) => Err(Error::protocol("HEADERS on an idle stream")),
            (false, _) => Err(Error::new(
                Code::STREAM_CLOSED,
                "HEADERS on a closed stream",
            )),
        }
    }

    /// Decodes a block. Every block must be decoded, to keep the state of the table.
    #[inline]
    fn decode(
        &mut self,
        block: &[u8],
        part: Part,
        head: &mut Head,
    ) -> Result<Result<Facts, Fault>, Error> {
        let mut fields = Fields::new(head, part, Version::Http2, &self.limits);
        match self.decoder.decode(block, &mut fields) {
            Ok(()) => Ok(fields.finish()),
            Err(error) => Err(Error::new(Code::COMPRESSION_ERROR, error.message())),
        }
    }

    /// Handles a request, which opens a stream.
    fn request(
        &mut self,
        id: StreamId,
        end: bool,
        block: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        let is_too_many = self.streams.len() >= self.limits.streams_max as usize;
        let part = if is_too_many {
            Part::Nothing
        } else {
            Part::Request {
                extended_connect: self.limits.extended_connect,
            }
        };
        let parsed = self.decode(block, part, head)?;
        self.last_stream = id;
        let facts = match parsed {
            Ok(facts) if end && facts.length.is_some_and(|length| length > 0) => {
                head.clear();
                let fault = Fault::Malformed("another body than content-length says");
                return self.refuse(id, end, fault, out).map(Some);
            }
            Ok(facts) => facts,
            Err(fault) => return self.refuse(id, end, fault, out).map(Some),
        };
        self.worked();
        let is_connect = head.method() == Method::Connect;
        self.counts.streams += 1;
        self.streams.add(Stream {
            id,
            token: u32::MAX,
            send_window: self.peer.stream_window as i32,
            recv_window: self.limits.stream_window_bytes as i32,
            window: self.limits.stream_window_bytes,
            due: 0,
            body_left: facts.length,
            flags: StreamFlags {
                recv_end: end,
                has_head: true,
                is_head: head.method() == Method::Head,
                is_connect,
                ..StreamFlags::default()
            },
        });
        if !end {
            self.widen(id, facts.length, out);
        }
        let framing = match facts.length {
            Some(length) => Framing::Length(length),
            None if end || is_connect => Framing::None,
            None => Framing::Chunked,
        };
        Ok(Some(Event::Head {
            stream: id,
            token: u32::MAX,
            end,
            framing,
            scheme: facts.scheme,
            expect_continue: facts.expect_continue,
        }))
    }

    /// Handles a request that does not become a stream.
    #[cold]
    fn refuse(
        &mut self,
        id: StreamId,
        end: bool,
        fault: Fault,
        out: &mut Vec<u8>,
    ) -> Result<Event, Error> {
        // A request that is valid in HTTP/2 but not in HTTP is not a glitch, as in HAProxy.
        if !matches!(fault, Fault::BadRequest(_)) {
            self.glitch()?;
        }
        let (error, status) = match fault {
            Fault::Malformed(message) | Fault::BadRequest(message) => {
                (Error::protocol(message), 400)
            }
            Fault::TooLarge => (too_large(), 431),
            Fault::Unwanted => (
                Error::new(Code::REFUSED_STREAM, "more streams than the limit"),
                0,
            ),
        };
        let mut code = error.code;
        self.counts.stream_errors += 1;
        self.reset_streams.add(id);
        if status > 0 {
            self.peer_reset()?;
            if self.limits.answers_malformed || !matches!(fault, Fault::Malformed(_)) {
                self.write_status(id, status, out);
                code = Code::NO_ERROR;
            }
        }
        if !end || code != Code::NO_ERROR {
            self.counts.sent_resets += 1;
            frame::reset(id, code, out);
        }
        Ok(Event::Refused { stream: id, error })
    }

    /// Handles a block of an open stream: trailers, or a response.
    fn block_of(
        &mut self,
        stream: Stream,
        end: bool,
        block: &[u8],
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Event, Error> {
        let part = match stream.flags {
            StreamFlags { recv_end: true, .. } => Part::Nothing,
            StreamFlags {
                has_head: false, ..
            } => Part::Response,
            _ if end => Part::Trailers,
            _ => Part::Nothing,
        };
        let parsed = self.decode(block, part, head)?;
        let error = match parsed {
            Err(Fault::Malformed(message) | Fault::BadRequest(message)) => Error::protocol(message),
            Err(Fault::TooLarge) => too_large(),
            Err(Fault::Unwanted) if stream.flags.recv_end => {
                Error::new(Code::STREAM_CLOSED, "HEADERS behind the end of the stream")
            }
            Err(Fault::Unwanted) => Error::protocol("trailers that do not end the stream"),
            Ok(_) if part == Part::Trailers && stream.body_left.is_some_and(|left| left > 0) => {
                Error::protocol("another body than content-length says")
            }
            Ok(_) if part == Part::Trailers => {
                self.worked();
                self.end_of_peer(stream.id);
                return Ok(Event::Trailers {
                    stream: stream.id,
                    token: stream.token,
                });
            }
            Ok(facts) => match self.response(stream, end, facts, head) {
                Ok(event) => {
                    if !end && head.status() >= 200 && !stream.flags.is_head {
                        self.widen(stream.id, facts.length, out);
                    }
                    return Ok(event);
                }
                Err(error) => error,
            },
        };
        head.clear();
        self.stream_error(stream.id, error, out)
    }

    /// Handles a response, which may be an interim one. An error is a stream error.
    fn response(
        &mut self,
        stream: Stream,
        end: bool,
        facts: Facts,
        head: &mut Head,
    ) -> Result<Event, Error> {
        let status = head.status();
        let is_interim = status < 200;
        let is_tunnel = stream.flags.is_connect && (200..300).contains(&status);
        let is_bodyless = stream.flags.is_head || status == 204 || status == 304;
        if is_interim && end {
            return Err(Error::protocol("an interim response that ends the stream"));
        }
        // RFC 9110 §8.6.
        if is_interim || is_tunnel || status == 204 {
            head.remove_id(Name::ContentLength);
        }
        let length = facts
            .length
            .filter(|_| !is_interim && !is_tunnel && !is_bodyless);
        if end && length.is_some_and(|length| length > 0) {
            return Err(Error::protocol("another body than content-length says"));
        }
        let framing = match length {
            Some(length) => Framing::Length(length),
            None if is_interim || is_tunnel || is_bodyless => Framing::None,
            None if end => Framing::Length(0),
            None => Framing::Chunked,
        };
        if framing == Framing::Length(0) {
            head.set_framing(framing);
        }
        if let Some(stream) = self.streams.get_mut(stream.id) {
            stream.flags.has_head = !is_interim;
            stream.flags.is_bodyless = is_bodyless;
            stream.body_left = length;
        }
        self.worked();
        if end {
            self.end_of_peer(stream.id);
        }
        Ok(Event::Head {
            stream: stream.id,
            token: stream.token,
            end,
            framing,
            scheme: None,
            expect_continue: false,
        })
    }

    /// A body begins on a stream: if it may not fit in the window, the window is widened. So one
    /// body uses the connection well, and not every stream of a connection needs to be offered as
    /// much.
    fn widen(&mut self, id: StreamId, length: Option<u64>, out: &mut Vec<u8>) {
        let window = self.limits.stream_window_bytes;
        let more = self.limits.body_window_bytes.saturating_sub(window);
        let fits = length.is_some_and(|length| length <= u64::from(window));
        if more > 0
            && !fits
            && let Some(stream) = self.streams.get_mut(id)
        {
            stream.window = stream.window.saturating_add(more);
            stream.recv_window = stream.recv_window.saturating_add_unsigned(more);
            frame::window_update(id, more, out);
        }
    }

    /// Records that the peer has ended its side of a stream.
    fn end_of_peer(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.flags.recv_end = true;
        }
        self.close_if_over(id);
    }
}

fn too_large() -> Error {
    Error::new(Code::ENHANCE_YOUR_CALM, "a head larger than the limit")
}

/// The fragment of a header block in a HEADERS frame, without padding and priority.
#[inline]
fn fragment(frame: FrameHead, payload: &[u8]) -> Result<&[u8], Error> {
    let too_short = Error::new(Code::FRAME_SIZE_ERROR, "a HEADERS frame of a wrong size");
    let mut fragment = payload;
    if frame.has(flag::PADDED) {
        let (len, rest) = payload.split_first().ok_or(too_short)?;
        let Some(len) = rest.len().checked_sub(usize::from(*len)) else {
            return Err(Error::protocol("more padding than the frame has bytes"));
        };
        fragment = &rest[..len];
    }
    if frame.has(flag::PRIORITY) {
        depends_on_other(frame.stream, fragment)?;
        fragment = fragment.get(5..).ok_or(too_short)?;
    }
    Ok(fragment)
}
