//! Walks a body: tells where its payload lies in the bytes that came and where the message ends.

use super::{Framing, error::ParseError};
use crate::Head;

/// A step of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Payload; may be called for again with the rest of the input.
    Data(&'a [u8]),
    /// More input is needed.
    More,
    /// The message is complete; trailers, if any, are in the `trailers` head given.
    End,
}

/// The decoder's state between inputs; a few bytes, no buffer but for an incomplete trailer section.
#[derive(Clone, Debug, Default)]
pub struct BodyDecoder {}

impl BodyDecoder {
    pub fn new(_framing: Framing) -> Self {
        unimplemented!()
    }
    /// Takes one step. Returns how many bytes of `input` it consumed and what they were.
    ///
    /// # Errors
    /// Malformed chunk size, extension, trailer; limits.
    pub fn next<'a>(
        &mut self,
        _input: &'a [u8],
        _trailers: &mut Head,
    ) -> Result<(usize, Piece<'a>), ParseError> {
        unimplemented!()
    }
    pub fn is_done(&self) -> bool {
        unimplemented!()
    }
}
