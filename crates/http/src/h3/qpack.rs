//! Header compression (RFC 9204): the static table, a decoder and an encoder with their dynamic
//! tables, and the instructions of both.
//!
//! Fields go into the same [`crate::h2::hpack::Sink`] as those of HPACK, and the dynamic tables are
//! the same, so that both protocols validate heads with the same code.

mod decode;
mod encode;
mod integer;
mod statics;

pub(super) use decode::{Decoder, Did};
pub(super) use encode::Encoder;

/// Why a section or an instruction cannot be used. The stream that it comes on decides the error
/// code (RFC 9204 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad(pub &'static str);

/// Field sections of the peer that may wait for instructions (`SETTINGS_QPACK_BLOCKED_STREAMS`).
pub(super) const BLOCKED_STREAMS_MAX: usize = 16;

#[cfg(test)]
mod tests;
