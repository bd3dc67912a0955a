//! Received field sections: requests, responses, trailers (RFC 9114 §4).

use super::requests::OTHER_LENGTH;
use super::{Connection, Role, quic};
use crate::h1::Framing;
use crate::h2::fields::{Facts, Fault, Fields, Part};
use crate::h3::code::{self, Failure};
use crate::h3::qpack::Bad;
use crate::h3::{Event, StreamId, priority, record};
use crate::{Head, Method, Name, Version};

/// What became of a section.
pub(super) enum Outcome {
    Told(Event),
    /// It needs so many insertions, which have not all come.
    Waits(u64),
}

const TOO_LARGE: Failure = Failure::new(code::EXCESSIVE_LOAD, "a head larger than the limit");

impl Connection {
    /// Handles a whole section. `end`: nothing follows it on its stream.
    pub(super) fn section(
        &mut self,
        id: StreamId,
        section: &[u8],
        end: bool,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        let failed = |bad: Bad| Failure::new(code::DECOMPRESSION_FAILED, bad.0);
        let prefix = self.decoder.prefix(section).map_err(failed)?;
        if prefix.required > self.decoder.inserted() {
            return Ok(Outcome::Waits(prefix.required));
        }
        let flags = self
            .streams
            .get(id)
            .map(|stream| stream.flags)
            .unwrap_or_default();
        let part = match (flags.has_head, self.role) {
            (true, _) => Part::Trailers,
            (false, Role::Client) => Part::Response,
            (false, Role::Server) => Part::Request {
                extended_connect: self.limits.extended_connect,
            },
        };
        let mut fields = Fields::new(head, part, Version::Http3, &self.limits);
        self.decoder
            .decode(prefix, section, &mut fields)
            .map_err(failed)?;
        let parsed = fields.finish();
        let mut acknowledgement = std::mem::take(&mut self.lead);
        acknowledgement.clear();
        let decoder = &mut self.decoder;
        decoder.acknowledge(quic(id), prefix.required, &mut acknowledgement);
        self.send_bytes(self.decoder_stream(), &acknowledgement, out);
        self.lead = acknowledgement;
        let event = match (part, parsed) {
            (Part::Request { .. }, Ok(facts)) => self.request(id, end, facts, head, out),
            (Part::Request { .. }, Err(fault)) => self.refuse(id, end, fault, out),
            (Part::Trailers, Ok(_)) => self.trailers(id, end, head, out),
            (_, Ok(facts)) => self.response(id, end, facts, head, out),
            (_, Err(Fault::TooLarge)) => self.section_error(id, end, TOO_LARGE, out),
            (_, Err(Fault::Malformed(message) | Fault::BadRequest(message))) => {
                let failure = Failure::new(code::MESSAGE_ERROR, message);
                self.section_error(id, end, failure, out)
            }
            (_, Err(Fault::Unwanted)) => {
                let failure = Failure::new(code::INTERNAL_ERROR, "an unwanted section");
                self.section_error(id, end, failure, out)
            }
        };
        event.map(Outcome::Told)
    }

    /// Handles a request, which opens a stream.
    fn request(
        &mut self,
        id: StreamId,
        end: bool,
        facts: Facts,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        if end && facts.length.is_some_and(|length| length > 0) {
            head.clear();
            return self.refuse(id, end, Fault::Malformed(OTHER_LENGTH.message), out);
        }
        self.load.worked();
        self.counts.streams += 1;
        let is_connect = head.method() == Method::Connect;
        if let Some(stream) = self.streams.get_mut(id) {
            self.headless -= 1;
            stream.body_left = facts.length;
            stream.flags.recv_end |= end;
            stream.flags.has_head = true;
            stream.flags.is_head = head.method() == Method::Head;
            stream.flags.is_connect = is_connect;
            stream.flags.is_tunnel = is_connect;
        }
        if let Some(value) = head.get(Name::Priority) {
            match priority::of(value) {
                0 => {}
                priority => record::priority(quic(id), priority, out),
            }
        }
        let framing = match facts.length {
            Some(length) => Framing::Length(length),
            None if end || is_connect => Framing::None,
            None => Framing::Chunked,
        };
        Ok(Event::Head {
            stream: id,
            token: u32::MAX,
            end,
            framing,
            scheme: facts.scheme,
            expect_continue: facts.expect_continue,
        })
    }

    /// Refuses a head or a trailer section that is too large, before it is complete.
    pub(super) fn too_large(&mut self, id: StreamId, out: &mut Vec<u8>) -> Result<Event, Failure> {
        let has_head = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.flags.has_head);
        if self.role == Role::Server && !has_head {
            return self.refuse(id, false, Fault::TooLarge, out);
        }
        self.stream_error(id, TOO_LARGE, out)
    }

    /// Handles a request that does not become a stream for the caller.
    #[cold]
    fn refuse(
        &mut self,
        id: StreamId,
        end: bool,
        fault: Fault,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        // A request that is valid in HTTP/3 but not in HTTP is not a glitch, as in HAProxy.
        if !matches!(fault, Fault::BadRequest(_)) {
            self.glitch()?;
        }
        let (failure, status) = match fault {
            Fault::Malformed(message) | Fault::BadRequest(message) => {
                (Failure::new(code::MESSAGE_ERROR, message), 400)
            }
            Fault::TooLarge | Fault::Unwanted => (TOO_LARGE, 431),
        };
        self.counts.stream_errors += 1;
        self.peer_reset()?;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.flags.recv_end |= end;
        }
        let mut code = failure.code;
        if self.limits.answers_malformed || !matches!(fault, Fault::Malformed(_)) {
            self.write_status(id, status, out);
            code = code::NO_ERROR;
        }
        self.counts.sent_resets += u32::from(!end || code != code::NO_ERROR);
        self.abort(id, code, out);
        Ok(Event::Refused {
            stream: id,
            error: failure.error(),
        })
    }

    /// Resets a stream because of a section that may be its end.
    fn section_error(
        &mut self,
        id: StreamId,
        end: bool,
        failure: Failure,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.flags.recv_end |= end;
        }
        self.stream_error(id, failure, out)
    }

    /// Handles trailers. The end of the stream may come later.
    fn trailers(
        &mut self,
        id: StreamId,
        end: bool,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        let stream = self.streams.get_mut(id);
        if stream
            .as_ref()
            .is_some_and(|stream| stream.body_left.is_some_and(|left| left > 0))
        {
            head.clear();
            return self.section_error(id, end, OTHER_LENGTH, out);
        }
        let mut token = u32::MAX;
        if let Some(stream) = stream {
            token = stream.token;
            stream.flags.has_trailers = true;
            stream.flags.recv_end |= end;
        }
        self.load.worked();
        self.close_if_over(id, out);
        Ok(Event::Trailers { stream: id, token })
    }

    /// Handles a response, which may be an interim one.
    fn response(
        &mut self,
        id: StreamId,
        end: bool,
        facts: Facts,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<Event, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Err(Failure::new(
                code::INTERNAL_ERROR,
                "a response without a stream",
            ));
        };
        let flags = stream.flags;
        let status = head.status();
        let is_interim = status < 200;
        let is_tunnel = flags.is_connect && (200..300).contains(&status);
        let is_bodyless = flags.is_head || status == 204 || status == 304;
        // RFC 9110 §8.6.
        if is_interim || is_tunnel || status == 204 {
            head.remove_id(Name::ContentLength);
        }
        let length = facts
            .length
            .filter(|_| !is_interim && !is_tunnel && !is_bodyless);
        let failure = if is_interim && end {
            let message = "an interim response that ends the stream";
            Some(Failure::new(code::MESSAGE_ERROR, message))
        } else if end && length.is_some_and(|length| length > 0) {
            Some(OTHER_LENGTH)
        } else {
            None
        };
        if let Some(failure) = failure {
            head.clear();
            return self.section_error(id, end, failure, out);
        }
        stream.flags.has_head = !is_interim;
        stream.flags.is_tunnel = is_tunnel;
        stream.flags.is_bodyless = is_bodyless;
        stream.flags.recv_end |= end;
        stream.body_left = length;
        let token = stream.token;
        let framing = match length {
            Some(length) => Framing::Length(length),
            None if is_interim || is_tunnel || is_bodyless => Framing::None,
            None if end => Framing::Length(0),
            None => Framing::Chunked,
        };
        if framing == Framing::Length(0) {
            head.set_framing(framing);
        }
        self.load.worked();
        self.close_if_over(id, out);
        Ok(Event::Head {
            stream: id,
            token,
            end,
            framing,
            scheme: None,
            expect_continue: false,
        })
    }
}
