//! The peer's control stream (RFC 9114 §7.2): settings, GOAWAY, and what is refused there.

use super::read::Step;
use super::{Connection, Role, quic};
use crate::h3::code::{self, Failure};
use crate::h3::frame::{self, kind, setting};
use crate::h3::{Code, Event, StreamId, priority, record, varint};

/// The longest frame of a control stream that is read; priorities beyond it are ignored.
const FRAME_BYTES_MAX: u64 = 4096;

/// What was read of the control stream.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// A frame or its header, which is not complete.
    bytes: Vec<u8>,
    part: Part,
}

#[derive(Clone, Copy, Debug, Default)]
enum Part {
    /// The header of a frame.
    #[default]
    Head,
    /// A frame of this type; so many bytes are left.
    Frame(u64, u64),
    /// A frame that is ignored.
    Skip(u64),
}

impl Control {
    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

impl Connection {
    /// Bytes of the peer's control stream, at least one: the next frame, or a part of it.
    pub(super) fn control_bytes(
        &mut self,
        rest: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        let control = &mut self.unidirectional.control;
        match control.part {
            Part::Head => {
                control.bytes.push(rest[0]);
                let Some((kind, len, _)) = frame::read_head(&control.bytes) else {
                    return Ok(Step::Used(1));
                };
                control.bytes.clear();
                let part = self.control_frame(kind, len)?;
                self.unidirectional.control.part = part;
                // An empty frame has no more bytes.
                match part {
                    Part::Frame(kind, 0) => self.whole_frame(kind, &[], 1, out),
                    _ => Ok(Step::Used(1)),
                }
            }
            Part::Frame(kind, left) => {
                let used = (rest.len() as u64).min(left) as usize;
                let left = left - used as u64;
                control.bytes.extend_from_slice(&rest[..used]);
                control.part = Part::Frame(kind, left);
                if left > 0 {
                    return Ok(Step::Used(used));
                }
                let payload = std::mem::take(&mut control.bytes);
                let step = self.whole_frame(kind, &payload, used, out);
                self.unidirectional.control.bytes = payload;
                self.unidirectional.control.bytes.clear();
                step
            }
            Part::Skip(left) => {
                let used = (rest.len() as u64).min(left) as usize;
                control.part = match left - used as u64 {
                    0 => Part::Head,
                    left => Part::Skip(left),
                };
                Ok(Step::Used(used))
            }
        }
    }

    /// Checks the type and the length of a frame.
    fn control_frame(&mut self, kind: u64, len: u64) -> Result<Part, Failure> {
        const UNEXPECTED: Failure = Failure::new(
            code::FRAME_UNEXPECTED,
            "a frame that control streams do not have",
        );
        if !self.peer.are_known && kind != kind::SETTINGS {
            let message = "the first frame is not SETTINGS";
            return Err(Failure::new(code::MISSING_SETTINGS, message));
        }
        match kind {
            kind::SETTINGS if self.peer.are_known => {
                return Err(Failure::new(code::FRAME_UNEXPECTED, "SETTINGS twice"));
            }
            kind::SETTINGS if len > FRAME_BYTES_MAX => {
                let message = "settings larger than the limit";
                return Err(Failure::new(code::EXCESSIVE_LOAD, message));
            }
            kind::SETTINGS => self.counts.settings += 1,
            kind::GOAWAY | kind::CANCEL_PUSH => {
                self.counts.cancelled_pushes += u32::from(kind == kind::CANCEL_PUSH);
                self.idle_frame()?;
                is_number(len)?;
            }
            kind::MAX_PUSH_ID if self.role == Role::Server => {
                self.counts.push_limits += 1;
                self.idle_frame()?;
                is_number(len)?;
            }
            kind::PRIORITY_UPDATE | kind::PRIORITY_UPDATE_PUSH if self.role == Role::Server => {
                self.idle_frame()?;
                if len > FRAME_BYTES_MAX {
                    return Ok(Part::Skip(len));
                }
            }
            kind::MAX_PUSH_ID
            | kind::PRIORITY_UPDATE
            | kind::PRIORITY_UPDATE_PUSH
            | kind::DATA
            | kind::HEADERS
            | kind::PUSH_PROMISE => return Err(UNEXPECTED),
            kind if kind::is_reserved(kind) => return Err(UNEXPECTED),
            _ => {
                self.idle_frame()?;
                return Ok(if len == 0 {
                    Part::Head
                } else {
                    Part::Skip(len)
                });
            }
        }
        Ok(Part::Frame(kind, len))
    }

    /// Handles a frame, whose last `used` bytes came now.
    fn whole_frame(
        &mut self,
        kind: u64,
        payload: &[u8],
        used: usize,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        self.unidirectional.control.part = Part::Head;
        let event = match kind {
            kind::SETTINGS => Some(self.settings(payload)?),
            kind::GOAWAY => Some(self.goaway_frame(only_number(payload)?)?),
            kind::MAX_PUSH_ID => {
                let most = only_number(payload)?;
                if self.peer.push_max.is_some_and(|before| most < before) {
                    let message = "a lower MAX_PUSH_ID than before";
                    return Err(Failure::new(code::ID_ERROR, message));
                }
                self.peer.push_max = Some(most);
                None
            }
            kind::CANCEL_PUSH => {
                only_number(payload)?;
                // RFC 9114 §7.2.3: there are no pushes.
                return Err(Failure::new(
                    code::ID_ERROR,
                    "the end of a push that never was",
                ));
            }
            kind::PRIORITY_UPDATE => {
                self.priority_update(payload, out)?;
                None
            }
            // RFC 9218 §7.2: no push was promised.
            _ => return Err(Failure::new(code::ID_ERROR, "the priority of a push")),
        };
        Ok(Step::of(used, event))
    }

    fn settings(&mut self, payload: &[u8]) -> Result<Event, Failure> {
        const WRONG: Failure = Failure::new(code::SETTINGS_ERROR, "a wrong setting");
        let mut known = [false; 0x40];
        let mut capacity = 0;
        let mut at = 0;
        while at < payload.len() {
            let id = next_number(payload, &mut at)?;
            let value = next_number(payload, &mut at)?;
            // RFC 9114 §7.2.4: no setting comes twice; unknown ones are not remembered.
            let place = usize::try_from(id).ok().and_then(|id| known.get_mut(id));
            if place.is_some_and(|known| std::mem::replace(known, true)) {
                return Err(Failure::new(code::SETTINGS_ERROR, "a setting twice"));
            }
            match id {
                setting::QPACK_MAX_TABLE_CAPACITY => capacity = value,
                setting::ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(WRONG),
                setting::ENABLE_CONNECT_PROTOCOL => self.peer.extended_connect = value == 1,
                setting::H3_DATAGRAM if value > 1 => return Err(WRONG),
                id if setting::is_reserved(id) => {
                    return Err(Failure::new(code::SETTINGS_ERROR, "a setting of HTTP/2"));
                }
                _ => {}
            }
        }
        let most = self.limits.encoder_table_bytes_max.min(4096) as usize;
        self.encoder.set_capacity(capacity, most);
        self.peer.are_known = true;
        Ok(Event::Settings)
    }

    /// RFC 9114 §5.2, §7.2.6.
    fn goaway_frame(&mut self, identifier: u64) -> Result<Event, Failure> {
        self.counts.goaways += 1;
        if self.role == Role::Client && !identifier.is_multiple_of(4) {
            let message = "GOAWAY with a stream that is no request";
            return Err(Failure::new(code::ID_ERROR, message));
        }
        if self.goaway.got.is_some_and(|before| identifier > before) {
            let message = "GOAWAY with a higher number than before";
            return Err(Failure::new(code::ID_ERROR, message));
        }
        self.goaway.got = Some(identifier);
        // A client's GOAWAY is about pushes.
        let last = match self.role {
            Role::Client => (identifier / 4).saturating_sub(1),
            Role::Server => 0,
        };
        Ok(Event::Goaway {
            last: StreamId(u32::try_from(last).unwrap_or(u32::MAX)),
            code: Code::NO_ERROR,
        })
    }

    /// RFC 9218 §7.2. The priority of a request that is not open is not remembered.
    fn priority_update(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut at = 0;
        let stream = next_number(payload, &mut at)?;
        if !stream.is_multiple_of(4) {
            let message = "the priority of a stream that is no request";
            return Err(Failure::new(code::ID_ERROR, message));
        }
        let id = u32::try_from(stream / 4).ok().map(StreamId);
        if id.is_some_and(|id| self.streams.get(id).is_some()) {
            record::priority(stream, priority::of(&payload[at..]), out);
        }
        Ok(())
    }

    /// Whether some of our streams that the peer's GOAWAY declared unprocessed have not been
    /// reported yet, or other events wait: [`Connection::read`] reports them, even without input.
    #[must_use]
    pub fn has_unprocessed(&self) -> bool {
        self.unprocessed().is_some() || !self.later.is_empty()
    }

    #[inline]
    fn unprocessed(&self) -> Option<StreamId> {
        let from = self.goaway.got.filter(|_| self.role == Role::Client)?;
        let last = self.streams.last()?.id;
        (quic(last) >= from).then_some(last)
    }

    /// One of our streams that the peer's GOAWAY declared unprocessed.
    #[inline]
    pub(super) fn next_unprocessed(&mut self, out: &mut Vec<u8>) -> Option<Event> {
        let stream = self.unprocessed()?;
        let token = self.abort(stream, code::REQUEST_CANCELLED, out);
        Some(Event::Reset {
            stream,
            token,
            code: Code::REFUSED_STREAM,
            error: None,
        })
    }
}

/// Checks the length of a frame that has one number.
fn is_number(len: u64) -> Result<(), Failure> {
    if (1..=varint::BYTES_MAX as u64).contains(&len) {
        Ok(())
    } else {
        Err(Failure::new(code::FRAME_ERROR, "a frame of a wrong size"))
    }
}

/// The number that is the whole payload of a frame.
fn only_number(payload: &[u8]) -> Result<u64, Failure> {
    match varint::read(payload) {
        Some((number, len)) if len == payload.len() => Ok(number),
        _ => Err(Failure::new(code::FRAME_ERROR, "a frame of a wrong size")),
    }
}

/// The number at `at`.
fn next_number(payload: &[u8], at: &mut usize) -> Result<u64, Failure> {
    let number = varint::read(payload.get(*at..).unwrap_or_default());
    let (number, len) = number.ok_or(Failure::new(code::FRAME_ERROR, "a frame of a wrong size"))?;
    *at += len;
    Ok(number)
}
