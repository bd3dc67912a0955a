//! The control frames of streams and of the connection (RFC 9113 §6.3–§6.9).

use super::{Connection, Role};
use crate::h2::frame::{self, FrameHead, flag, number, setting};
use crate::h2::limits::WINDOW_MAX;
use crate::h2::{Code, Error, Event, StreamId};

/// A credit below this size is not worth a frame, unless something else is sent.
pub(super) const SMALL_CREDIT_BYTES: u32 = 1024;

const WINDOW_TOO_LARGE: Error = Error::new(Code::FLOW_CONTROL_ERROR, "a window beyond 2^31 - 1");

impl Connection {
    /// PRIORITY is deprecated (RFC 9113 §5.3.2): only its size is checked, and that a stream does
    /// not depend on itself.
    pub(super) fn priority(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
    ) -> Result<Option<Event>, Error> {
        self.idle_frame()?;
        depends_on_other(frame.stream, payload)?;
        Ok(None)
    }

    pub(super) fn rst_stream(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
    ) -> Result<Option<Event>, Error> {
        let Some(stream) = self.streams.remove(frame.stream) else {
            if self.is_unopened(frame.stream) && !self.may_be_late(frame.stream) {
                return Err(Error::protocol("RST_STREAM on an idle stream"));
            }
            self.idle_frame()?;
            return Ok(None);
        };
        if self.role == Role::Server && !stream.flags.send_end {
            self.peer_reset()?;
        }
        Ok(Some(Event::Reset {
            stream: frame.stream,
            token: stream.token,
            code: Code(number(payload)),
            error: None,
        }))
    }

    pub(super) fn settings(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        if frame.has(flag::ACK) {
            self.idle_frame()?;
            self.has_ack = true;
            self.decoder
                .set_table_bytes_max(self.limits.table_bytes as usize);
            return Ok(None);
        }
        if self.peer.are_known {
            self.idle_frame()?;
        }
        let mut stream_window = self.peer.stream_window;
        for entry in payload.as_chunks::<6>().0 {
            let [a, b, value @ ..] = *entry;
            let (id, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes(value));
            match id {
                setting::INITIAL_WINDOW_SIZE if value > WINDOW_MAX => return Err(WINDOW_TOO_LARGE),
                // Applied once per frame, because all streams are adjusted.
                setting::INITIAL_WINDOW_SIZE => stream_window = value,
                _ => self.setting(id, value)?,
            }
        }
        self.set_stream_window(stream_window)?;
        let are_first = !std::mem::replace(&mut self.peer.are_known, true);
        self.is_blocked = false;
        self.streams
            .iter_mut()
            .for_each(|stream| stream.flags.is_blocked = false);
        frame::head(
            frame::kind::SETTINGS,
            flag::ACK,
            StreamId::CONNECTION,
            0,
            out,
        );
        if are_first {
            self.open_window(out);
        }
        Ok(Some(Event::Settings))
    }

    fn setting(&mut self, id: u16, value: u32) -> Result<(), Error> {
        match id {
            setting::HEADER_TABLE_SIZE => {
                let bytes = value.min(self.limits.encoder_table_bytes_max);
                self.encoder.set_table_bytes(bytes as usize);
            }
            // A server never sends 1 (RFC 9113 §6.5.2).
            setting::ENABLE_PUSH if value > 1 || (value == 1 && self.role == Role::Client) => {
                return Err(Error::protocol("a wrong SETTINGS_ENABLE_PUSH"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.peer.streams_max = value,
            setting::MAX_FRAME_SIZE => {
                if !(frame::FRAME_BYTES_DEFAULT..=frame::FRAME_BYTES_MAX).contains(&value) {
                    return Err(Error::protocol("a wrong SETTINGS_MAX_FRAME_SIZE"));
                }
                self.peer.frame_bytes_max = value;
            }
            // The peer may not withdraw it (RFC 8441 §3).
            setting::ENABLE_CONNECT_PROTOCOL
                if value > 1 || (value == 0 && self.peer.extended_connect) =>
            {
                return Err(Error::protocol("a wrong SETTINGS_ENABLE_CONNECT_PROTOCOL"));
            }
            setting::ENABLE_CONNECT_PROTOCOL => self.peer.extended_connect = value == 1,
            _ => {}
        }
        Ok(())
    }

    /// Adjusts the windows of all open streams (RFC 9113 §6.9.2).
    fn set_stream_window(&mut self, value: u32) -> Result<(), Error> {
        if value == self.peer.stream_window {
            return Ok(());
        }
        let change = value as i32 - self.peer.stream_window as i32;
        for stream in self.streams.iter_mut() {
            stream.send_window = stream
                .send_window
                .checked_add(change)
                .ok_or(WINDOW_TOO_LARGE)?;
        }
        self.peer.stream_window = value;
        Ok(())
    }

    pub(super) fn pinged(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        if frame.has(flag::ACK) && self.load.pings > 0 {
            self.load.pings -= 1;
        } else {
            self.idle_frame()?;
        }
        if frame.has(flag::ACK) {
            let bytes = payload.first_chunk().copied().unwrap_or_default();
            return Ok(Some(Event::Pong(u64::from_be_bytes(bytes))));
        }
        frame::ping(flag::ACK, payload, out);
        Ok(None)
    }

    pub(super) fn goaway_frame(&mut self, payload: &[u8]) -> Result<Option<Event>, Error> {
        self.idle_frame()?;
        let last = StreamId(number(payload) & StreamId::MAX.0);
        if self.goaway.got.is_some_and(|before| last > before) {
            self.glitch()?;
        }
        let last = self.goaway.got.map_or(last, |before| before.min(last));
        self.goaway.got = Some(last);
        let code = Code(number(&payload[4..]));
        Ok(Some(Event::Goaway { last, code }))
    }

    /// Whether some of our streams that the peer's GOAWAY declared unprocessed have not been
    /// reported yet: [`Connection::read`] reports them, even without input.
    #[must_use]
    pub fn has_unprocessed(&self) -> bool {
        self.unprocessed().is_some()
    }

    #[inline]
    fn unprocessed(&self) -> Option<(StreamId, u32)> {
        let last = self.goaway.got.filter(|_| self.role == Role::Client)?;
        let stream = self.streams.last().filter(|stream| stream.id > last)?;
        Some((stream.id, stream.token))
    }

    /// One of our streams that the peer's GOAWAY declared unprocessed.
    #[inline]
    pub(super) fn next_unprocessed(&mut self) -> Option<Event> {
        let (stream, token) = self.unprocessed()?;
        self.streams.remove(stream);
        self.reset_streams.add(stream);
        Some(Event::Reset {
            stream,
            token,
            code: Code::REFUSED_STREAM,
            error: None,
        })
    }

    pub(super) fn window_update(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Error> {
        let credit = number(payload) & WINDOW_MAX;
        if credit < SMALL_CREDIT_BYTES {
            match self.load.credits_due.checked_sub(1) {
                Some(left) => self.load.credits_due = left,
                None => self.idle_frame()?,
            }
        }
        if frame.stream == StreamId::CONNECTION {
            return self.connection_credit(credit);
        }
        if self.is_unopened(frame.stream) && !self.may_be_late(frame.stream) {
            return Err(Error::protocol("WINDOW_UPDATE on an idle stream"));
        }
        let Some(stream) = self.streams.get_mut(frame.stream) else {
            return Ok(None);
        };
        let error = match stream.send_window.checked_add_unsigned(credit) {
            _ if credit == 0 => Error::protocol("a credit of 0"),
            None => WINDOW_TOO_LARGE,
            Some(window) => {
                stream.send_window = window;
                if window <= 0 || !std::mem::take(&mut stream.flags.is_blocked) {
                    return Ok(None);
                }
                return Ok(Some(Event::WindowOpen {
                    stream: stream.id,
                    token: stream.token,
                }));
            }
        };
        self.stream_error(frame.stream, error, out).map(Some)
    }

    fn connection_credit(&mut self, credit: u32) -> Result<Option<Event>, Error> {
        if credit == 0 {
            return Err(Error::protocol("a credit of 0"));
        }
        let window = self.send_window.checked_add_unsigned(credit);
        self.send_window = window.ok_or(WINDOW_TOO_LARGE)?;
        Ok(std::mem::take(&mut self.is_blocked).then_some(Event::WindowsOpen))
    }

    /// Resets a stream because of an error of the peer.
    pub(super) fn stream_error(
        &mut self,
        id: StreamId,
        error: Error,
        out: &mut Vec<u8>,
    ) -> Result<Event, Error> {
        self.glitch()?;
        // A peer that provokes resets by us causes as much work as one that resets streams
        // (CVE-2025-8671).
        self.peer_reset()?;
        self.counts.stream_errors += 1;
        self.counts.sent_resets += 1;
        frame::reset(id, error.code, out);
        self.reset_streams.add(id);
        let token = self
            .streams
            .remove(id)
            .map_or(u32::MAX, |stream| stream.token);
        Ok(Event::Reset {
            stream: id,
            token,
            code: error.code,
            error: Some(error),
        })
    }
}

/// Checks the first field of a priority: a stream may not depend on itself (RFC 7540 §5.3.1).
pub(super) fn depends_on_other(stream: StreamId, priority: &[u8]) -> Result<(), Error> {
    if StreamId(number(priority) & StreamId::MAX.0) == stream {
        Err(Error::protocol("a stream that depends on itself"))
    } else {
        Ok(())
    }
}
