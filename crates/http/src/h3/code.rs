//! Error codes of HTTP/3 (RFC 9114 §8.1) and QPACK (RFC 9204 §6), and those of HTTP/2 that stand for
//! them above the codec.

use crate::h2::{Code, Error};

pub(super) const NO_ERROR: u64 = 0x100;
pub(super) const GENERAL_PROTOCOL_ERROR: u64 = 0x101;
pub(super) const INTERNAL_ERROR: u64 = 0x102;
pub(super) const STREAM_CREATION_ERROR: u64 = 0x103;
pub(super) const CLOSED_CRITICAL_STREAM: u64 = 0x104;
pub(super) const FRAME_UNEXPECTED: u64 = 0x105;
pub(super) const FRAME_ERROR: u64 = 0x106;
pub(super) const EXCESSIVE_LOAD: u64 = 0x107;
pub(super) const ID_ERROR: u64 = 0x108;
pub(super) const SETTINGS_ERROR: u64 = 0x109;
pub(super) const MISSING_SETTINGS: u64 = 0x10a;
pub(super) const REQUEST_REJECTED: u64 = 0x10b;
pub(super) const REQUEST_CANCELLED: u64 = 0x10c;
pub(super) const REQUEST_INCOMPLETE: u64 = 0x10d;
pub(super) const MESSAGE_ERROR: u64 = 0x10e;
pub(super) const CONNECT_ERROR: u64 = 0x10f;
pub(super) const VERSION_FALLBACK: u64 = 0x110;
pub(super) const DECOMPRESSION_FAILED: u64 = 0x200;
pub(super) const ENCODER_STREAM_ERROR: u64 = 0x201;
pub(super) const DECODER_STREAM_ERROR: u64 = 0x202;

/// The code of HTTP/2 for one of HTTP/3. Unknown codes mean the same as `H3_NO_ERROR` (RFC 9114
/// §8).
pub(super) fn to_h2(code: u64) -> Code {
    match code {
        GENERAL_PROTOCOL_ERROR
        | STREAM_CREATION_ERROR
        | CLOSED_CRITICAL_STREAM
        | FRAME_UNEXPECTED
        | ID_ERROR
        | SETTINGS_ERROR
        | MISSING_SETTINGS
        | REQUEST_INCOMPLETE
        | MESSAGE_ERROR => Code::PROTOCOL_ERROR,
        INTERNAL_ERROR => Code::INTERNAL_ERROR,
        FRAME_ERROR => Code::FRAME_SIZE_ERROR,
        EXCESSIVE_LOAD => Code::ENHANCE_YOUR_CALM,
        REQUEST_REJECTED => Code::REFUSED_STREAM,
        REQUEST_CANCELLED => Code::CANCEL,
        CONNECT_ERROR => Code::CONNECT_ERROR,
        VERSION_FALLBACK => Code::HTTP_1_1_REQUIRED,
        DECOMPRESSION_FAILED | ENCODER_STREAM_ERROR | DECODER_STREAM_ERROR => {
            Code::COMPRESSION_ERROR
        }
        _ => Code::NO_ERROR,
    }
}

/// The code of HTTP/3 with which a stream is reset for one of HTTP/2.
pub(super) fn of_h2(code: Code) -> u64 {
    match code {
        Code::NO_ERROR => NO_ERROR,
        Code::PROTOCOL_ERROR => MESSAGE_ERROR,
        Code::FRAME_SIZE_ERROR => FRAME_ERROR,
        Code::REFUSED_STREAM => REQUEST_REJECTED,
        Code::CANCEL => REQUEST_CANCELLED,
        Code::COMPRESSION_ERROR => DECOMPRESSION_FAILED,
        Code::CONNECT_ERROR => CONNECT_ERROR,
        Code::ENHANCE_YOUR_CALM => EXCESSIVE_LOAD,
        Code::HTTP_1_1_REQUIRED => VERSION_FALLBACK,
        Code::FLOW_CONTROL_ERROR
        | Code::SETTINGS_TIMEOUT
        | Code::STREAM_CLOSED
        | Code::INADEQUATE_SECURITY => GENERAL_PROTOCOL_ERROR,
        _ => INTERNAL_ERROR,
    }
}

/// A rule that the peer broke, with the code of HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub code: u64,
    pub message: &'static str,
}

impl Failure {
    pub const fn new(code: u64, message: &'static str) -> Failure {
        Failure { code, message }
    }

    /// How it is told above the codec.
    pub fn error(self) -> Error {
        Error::new(to_h2(self.code), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_mean_the_same_come_back() {
        for (h3, h2) in [
            (NO_ERROR, Code::NO_ERROR),
            (INTERNAL_ERROR, Code::INTERNAL_ERROR),
            (FRAME_ERROR, Code::FRAME_SIZE_ERROR),
            (EXCESSIVE_LOAD, Code::ENHANCE_YOUR_CALM),
            (REQUEST_REJECTED, Code::REFUSED_STREAM),
            (REQUEST_CANCELLED, Code::CANCEL),
            (MESSAGE_ERROR, Code::PROTOCOL_ERROR),
            (CONNECT_ERROR, Code::CONNECT_ERROR),
            (VERSION_FALLBACK, Code::HTTP_1_1_REQUIRED),
            (DECOMPRESSION_FAILED, Code::COMPRESSION_ERROR),
        ] {
            assert_eq!((to_h2(h3), of_h2(h2)), (h2, h3));
        }
        for code in [0, 0x21, 0x33f, u64::MAX] {
            assert_eq!(to_h2(code), Code::NO_ERROR);
        }
        assert_eq!(of_h2(Code(99)), INTERNAL_ERROR);
    }
}
