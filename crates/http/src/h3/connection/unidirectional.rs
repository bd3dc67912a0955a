//! The peer's unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2): its control stream, and those
//! of its encoder and its decoder.

use super::control::Control;
use super::read::{Piece, Step};
use super::{Connection, Role};
use crate::h3::code::{self, Failure};
use crate::h3::frame::stream_type;
use crate::h3::qpack::Did;
use crate::h3::{record, varint};

/// The most unidirectional streams of a peer that are open at a time. It needs three; more of them
/// are of unknown types.
const STREAMS_MAX: usize = 32;

/// The peer's unidirectional streams.
#[derive(Debug, Default)]
pub(super) struct Unidirectional {
    streams: Vec<Stream>,
    pub control: Control,
    /// Bytes of the peer's encoder: the beginning of an instruction, and more if
    /// `has_instructions`.
    encoder: Vec<u8>,
    /// There may be whole instructions in `encoder`.
    pub has_instructions: bool,
    /// The peer is told of insertions once all instructions are followed.
    pub tells_inserted: bool,
    /// Bytes of the peer's decoder: the beginning of an instruction.
    decoder: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// QUIC's number.
    id: u64,
    kind: Kind,
}

/// The type of a unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The type is not complete; its bytes so far.
    Unknown([u8; varint::BYTES_MAX], u8),
    Control,
    Encoder,
    Decoder,
    Ignored,
}

/// Whether this number of QUIC is that of a unidirectional stream.
pub(super) fn is_unidirectional(stream: u64) -> bool {
    stream & 2 != 0
}

impl Unidirectional {
    /// Whether this stream is that of the peer's encoder.
    pub fn is_encoder(&self, id: u64) -> bool {
        let is_it = |stream: &Stream| stream.id == id && stream.kind == Kind::Encoder;
        self.streams.iter().any(is_it)
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        self.encoder.shrink_to_fit();
        self.decoder.shrink_to_fit();
        self.control.release_spare();
    }
}

impl Connection {
    /// Bytes of a unidirectional stream, and its end.
    pub(super) fn unidirectional_bytes(
        &mut self,
        id: u64,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Failure> {
        if (id & 1 == 1) == (self.role == Role::Server) {
            let message = "bytes on a stream of ours";
            return Err(Failure::new(code::STREAM_CREATION_ERROR, message));
        }
        let mut used = 0;
        while used < piece.bytes.len() {
            let rest = &piece.bytes[used..];
            let step = match self.kind_of(id)? {
                Kind::Unknown(bytes, len) => {
                    self.stream_type(id, bytes, usize::from(len), rest[0], out)?;
                    Step::Used(1)
                }
                Kind::Control => self.control_bytes(rest, out)?,
                Kind::Encoder => {
                    self.unidirectional.encoder.extend_from_slice(rest);
                    self.unidirectional.has_instructions = true;
                    Step::Used(rest.len())
                }
                Kind::Decoder => self.acknowledgements(rest)?,
                Kind::Ignored => Step::Used(rest.len()),
            };
            match step {
                Step::Used(more) => {
                    used += more;
                    self.used += more as u64;
                }
                Step::Tell(more, event) => {
                    used += more;
                    self.used += more as u64;
                    if used == piece.bytes.len() && piece.end {
                        self.end_of_unidirectional(id)?;
                    }
                    return Ok(Step::Tell(used, event));
                }
                Step::More => break,
            }
        }
        if piece.end {
            self.end_of_unidirectional(id)?;
        }
        Ok(Step::Used(used))
    }

    /// The type of a stream. A new one is unknown.
    fn kind_of(&mut self, id: u64) -> Result<Kind, Failure> {
        let streams = &mut self.unidirectional.streams;
        if let Some(stream) = streams.iter().find(|stream| stream.id == id) {
            return Ok(stream.kind);
        }
        if streams.len() >= STREAMS_MAX {
            let message = "too many unidirectional streams";
            return Err(Failure::new(code::EXCESSIVE_LOAD, message));
        }
        let kind = Kind::Unknown([0; varint::BYTES_MAX], 0);
        streams.push(Stream { id, kind });
        Ok(kind)
    }

    /// Reads one more byte of a stream's type.
    fn stream_type(
        &mut self,
        id: u64,
        mut bytes: [u8; varint::BYTES_MAX],
        len: usize,
        byte: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        // A number is complete before the array is full.
        if let Some(place) = bytes.get_mut(len) {
            *place = byte;
        }
        let kind = match varint::read(&bytes[..bytes.len().min(len + 1)]) {
            None => Kind::Unknown(bytes, len as u8 + 1),
            Some((stream_type::CONTROL, _)) => Kind::Control,
            Some((stream_type::ENCODER, _)) => Kind::Encoder,
            Some((stream_type::DECODER, _)) => Kind::Decoder,
            Some((stream_type::PUSH, _)) => {
                // RFC 9114 §4.6, §6.2.2: we permit no push, and clients cannot push.
                let code = match self.role {
                    Role::Client => code::ID_ERROR,
                    Role::Server => code::STREAM_CREATION_ERROR,
                };
                return Err(Failure::new(code, "a push stream"));
            }
            Some(_) => {
                self.idle_frame()?;
                record::stop(id, code::STREAM_CREATION_ERROR, out);
                Kind::Ignored
            }
        };
        let streams = &mut self.unidirectional.streams;
        let is_critical = matches!(kind, Kind::Control | Kind::Encoder | Kind::Decoder);
        if is_critical && streams.iter().any(|stream| stream.kind == kind) {
            let message = "a second control stream, encoder or decoder";
            return Err(Failure::new(code::STREAM_CREATION_ERROR, message));
        }
        if let Some(stream) = streams.iter_mut().find(|stream| stream.id == id) {
            stream.kind = kind;
        }
        Ok(())
    }

    /// The end of a unidirectional stream, or its reset.
    pub(super) fn end_of_unidirectional(&mut self, id: u64) -> Result<(), Failure> {
        let streams = &mut self.unidirectional.streams;
        let Some(place) = streams.iter().position(|stream| stream.id == id) else {
            return self.idle_frame();
        };
        match streams[place].kind {
            Kind::Unknown(..) => {
                streams.remove(place);
                self.idle_frame()
            }
            Kind::Ignored => {
                streams.remove(place);
                Ok(())
            }
            Kind::Control | Kind::Encoder | Kind::Decoder => {
                // Instructions that came before are followed.
                let message = "the end of a control stream, encoder or decoder";
                self.failure = Some(Failure::new(code::CLOSED_CRITICAL_STREAM, message));
                Ok(())
            }
        }
    }

    /// Follows the instructions of the peer's encoder, up to one that a waiting section needs.
    pub(super) fn instructions(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let bytes = std::mem::take(&mut self.unidirectional.encoder);
        let mut at = 0;
        let followed = loop {
            match self.decoder.instruction(&bytes[at..]) {
                Ok(Some((used, did))) => {
                    at += used;
                    if did != Did::Insert
                        && let Err(failure) = self.idle_frame()
                    {
                        break Err(failure);
                    }
                    if self.next_resumed().is_some() {
                        break Ok(());
                    }
                }
                Ok(None) => {
                    self.unidirectional.has_instructions = false;
                    break Ok(());
                }
                Err(bad) => break Err(Failure::new(code::ENCODER_STREAM_ERROR, bad.0)),
            }
        };
        self.unidirectional.encoder = bytes;
        self.unidirectional.encoder.drain(..at);
        followed?;
        let is_done = !self.unidirectional.has_instructions;
        if is_done && std::mem::take(&mut self.unidirectional.tells_inserted) {
            let mut instruction = std::mem::take(&mut self.lead);
            instruction.clear();
            self.decoder.tell_inserted(&mut instruction);
            self.send_bytes(self.decoder_stream(), &instruction, out);
            self.lead = instruction;
        }
        Ok(())
    }

    /// Follows the instructions of the peer's decoder.
    fn acknowledgements(&mut self, rest: &[u8]) -> Result<Step, Failure> {
        let mut bytes = std::mem::take(&mut self.unidirectional.decoder);
        bytes.extend_from_slice(rest);
        let mut at = 0;
        let followed = loop {
            match self.encoder.acknowledgement(&bytes[at..]) {
                Ok(Some(used)) => at += used,
                Ok(None) => break Ok(()),
                Err(bad) => break Err(Failure::new(code::DECODER_STREAM_ERROR, bad.0)),
            }
        };
        bytes.drain(..at);
        self.unidirectional.decoder = bytes;
        followed.map(|()| Step::Used(rest.len()))
    }
}
