//! Walks a body: finds its payload in the input and the end of the message (RFC 9112 §6, §7.1).
//!
//! The state is a few bytes, and decoding continues from any cut of the input; only an incomplete
//! trailer section is buffered here, up to the limit of a head.

use super::{Framing, Limits, Strictness, error::ParseError, parse};
use crate::Head;

/// The largest chunk: 2^52 - 1, so that a peer that counts in floating point reads the exact size.
pub const CHUNK_BYTES_MAX: u64 = (1 << 52) - 1;
/// Digits of a chunk size, leading zeros included.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;
/// The most bytes of all chunk extensions of a message, and of white space after chunk sizes.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 16 * 1024;

/// A step of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Payload. The next call with the rest of the input may return more of it.
    Data(&'a [u8]),
    /// More input is needed.
    More,
    /// The message is complete; trailers, if any, are in the `trailers` head given.
    End,
}

/// The decoder's state between inputs: a few bytes, plus a buffer only for an incomplete trailer
/// section.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    is_chunked: bool,
    strictness: Strictness,
    head_bytes_max: u32,
    fields_max: u32,
    extension_bytes: u32,
    #[expect(
        clippy::box_collection,
        reason = "one of these lies in each connection, and few bodies have trailers that come in parts"
    )]
    trailers: Option<Box<Vec<u8>>>,
}

// Each connection contains one.
const _: () = assert!(size_of::<BodyDecoder>() <= 48);

/// ```text
/// Size → Blank → Extension ⇄ Quoted ⇄ Escaped
///   └──────┴─────────┴→ SizeLf → Chunk → ChunkCr → ChunkLf → Size
///                          └ (size 0) → Trailers → Done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The number of bytes left of a body with a length.
    Length(u64),
    UntilClose,
    Size {
        size: u64,
        digits: u8,
    },
    /// White space between a size and its extension or line end.
    Blank(u64),
    Extension(u64),
    Quoted(u64),
    Escaped(u64),
    SizeLf(u64),
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    Trailers,
    Done,
}

impl Default for BodyDecoder {
    /// The decoder of a message without a body.
    fn default() -> Self {
        BodyDecoder::new(Framing::None)
    }
}

impl BodyDecoder {
    /// A decoder with the default limits that allows no violation.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        BodyDecoder::with(framing, Limits::default(), Strictness::Strict)
    }

    /// A decoder whose trailer section obeys these limits and this strictness.
    #[must_use]
    pub fn with(framing: Framing, limits: Limits, strictness: Strictness) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        BodyDecoder {
            state,
            is_chunked: framing == Framing::Chunked,
            strictness,
            head_bytes_max: u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX),
            fields_max: u32::try_from(limits.fields_max).unwrap_or(u32::MAX),
            extension_bytes: 0,
            trailers: None,
        }
    }

    /// Takes one step. Returns how many bytes of `input` it consumed and what they were. Do not
    /// pass consumed bytes again; the payload of a `Data` step is the last part of them. `trailers`
    /// is cleared when a trailer section is parsed.
    ///
    /// # Errors
    /// Malformed chunk size, extension, trailer; limits.
    pub fn next<'a>(
        &mut self,
        input: &'a [u8],
        trailers: &mut Head,
    ) -> Result<(usize, Piece<'a>), ParseError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Done => return Ok((at, Piece::End)),
                State::Trailers => return self.trailer_section(input, at, trailers),
                _ if at == input.len() => return Ok((at, Piece::More)),
                State::UntilClose => return Ok((input.len(), Piece::Data(&input[at..]))),
                State::Length(left) | State::Chunk(left) => {
                    let data = &input[at..at + shorter(left, input.len() - at)];
                    self.state = self.after_data(left - data.len() as u64);
                    return Ok((at + data.len(), Piece::Data(data)));
                }
                _ => {
                    self.state = self.line_byte(input[at])?;
                    at += 1;
                }
            }
        }
    }

    /// Takes back the last `count` bytes of the current `Data` piece; the caller passes them again.
    /// `count` is at most the piece's size.
    pub fn unread(&mut self, count: usize) {
        let count = count as u64;
        self.state = match (self.state, self.is_chunked) {
            (State::Length(left), _) => State::Length(left + count),
            (State::Done, false) if count > 0 => State::Length(count),
            (State::Chunk(left), _) => State::Chunk(left + count),
            (State::ChunkCr, _) if count > 0 => State::Chunk(count),
            (state, _) => state,
        };
    }

    /// Whether the message is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the body is chunked.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.is_chunked
    }

    /// Whether the end of the connection ends the body.
    #[must_use]
    pub fn is_until_close(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Announced payload bytes that have not arrived yet: of the whole body, or of the current
    /// chunk.
    #[must_use]
    pub fn announced(&self) -> u64 {
        match self.state {
            State::Length(left) | State::Chunk(left) => left,
            _ => 0,
        }
    }

    fn after_data(&self, left: u64) -> State {
        match (self.state, left) {
            (State::Length(_), 0) => State::Done,
            (State::Length(_), left) => State::Length(left),
            (_, 0) => State::ChunkCr,
            (_, left) => State::Chunk(left),
        }
    }

    /// Processes one byte of a chunk's size line or of the line end after a chunk.
    fn line_byte(&mut self, byte: u8) -> Result<State, ParseError> {
        let next = match (self.state, byte) {
            (State::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                return size_digit(size, digits, byte);
            }
            (State::Size { digits: 0, .. }, _) => return Err(ParseError::BadChunkSize),
            (State::Size { size, .. } | State::Blank(size) | State::Extension(size), b'\r') => {
                State::SizeLf(size)
            }
            (State::Size { size, .. } | State::Blank(size), b' ' | b'\t') => State::Blank(size),
            (State::Size { size, .. } | State::Blank(size), b';') => State::Extension(size),
            (State::Size { .. } | State::Blank(_), _) => return Err(ParseError::BadChunkSize),
            (State::Extension(size), b'"') => State::Quoted(size),
            (State::Quoted(size), b'"') => State::Extension(size),
            (State::Quoted(size), b'\\') => State::Escaped(size),
            (State::Extension(_), b'\\') => return Err(ParseError::BadChunkExtension),
            (State::Extension(_) | State::Quoted(_) | State::Escaped(_), 0..=8 | 10..=31 | 127) => {
                return Err(ParseError::BadChunkExtension);
            }
            (State::Escaped(size), _) => State::Quoted(size),
            (State::SizeLf(0), b'\n') => State::Trailers,
            (State::SizeLf(size), b'\n') => return Ok(State::Chunk(size)),
            (State::SizeLf(_), _) => return Err(ParseError::BareCr),
            (State::ChunkCr, b'\r') => return Ok(State::ChunkLf),
            (State::ChunkLf, b'\n') => return Ok(State::Size { size: 0, digits: 0 }),
            (State::ChunkCr | State::ChunkLf, _) => return Err(ParseError::BadChunkEnd),
            (state, _) => state,
        };
        self.count_extension(next)?;
        Ok(next)
    }

    /// Counts bytes of extensions, and bounds them.
    fn count_extension(&mut self, next: State) -> Result<(), ParseError> {
        if matches!(
            next,
            State::Blank(_) | State::Extension(_) | State::Quoted(_) | State::Escaped(_)
        ) {
            self.extension_bytes += 1;
            if self.extension_bytes > CHUNK_EXTENSION_BYTES_MAX {
                return Err(ParseError::ChunkExtensionsTooLong);
            }
        }
        Ok(())
    }

    /// Takes trailers from the input if the section is whole there, otherwise from the buffer.
    fn trailer_section<'a>(
        &mut self,
        input: &'a [u8],
        at: usize,
        trailers: &mut Head,
    ) -> Result<(usize, Piece<'a>), ParseError> {
        let rest = &input[at..];
        let limits = Limits {
            head_bytes_max: self.head_bytes_max as usize,
            fields_max: self.fields_max as usize,
        };
        if self.trailers.is_none()
            && is_whole_section(rest, 0)
            && let Some(consumed) = parse::trailers(rest, limits, self.strictness, trailers)?
        {
            self.state = State::Done;
            return Ok((at + consumed, Piece::End));
        }
        let mut section = self.trailers.take().unwrap_or_default();
        let held = section.len();
        let room = limits.head_bytes_max.saturating_sub(held);
        section.extend_from_slice(&rest[..rest.len().min(room)]);
        let is_whole = is_whole_section(&section, held) || section.len() >= limits.head_bytes_max;
        if is_whole
            && let Some(consumed) = parse::trailers(&section, limits, self.strictness, trailers)?
        {
            self.state = State::Done;
            return Ok((at + consumed - held, Piece::End));
        }
        self.trailers = Some(section);
        Ok((input.len(), Piece::More))
    }
}

/// Whether a trailer section has its empty line; `from` is how much of it was examined before.
fn is_whole_section(section: &[u8], from: usize) -> bool {
    matches!(section, [b'\r', b'\n', ..] | [b'\n', ..]) || super::head_end(section, from).is_some()
}

fn size_digit(size: u64, digits: u8, byte: u8) -> Result<State, ParseError> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    };
    let size = size << 4 | u64::from(digit);
    if size > CHUNK_BYTES_MAX || digits == CHUNK_SIZE_DIGITS_MAX {
        return Err(ParseError::ChunkTooLarge);
    }
    Ok(State::Size {
        size,
        digits: digits + 1,
    })
}

fn shorter(left: u64, len: usize) -> usize {
    usize::try_from(left).map_or(len, |left| left.min(len))
}

#[cfg(test)]
mod tests;
