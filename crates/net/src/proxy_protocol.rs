//! The PROXY protocol, versions 1 and 2: a header that a proxy sends before the first byte of a
//! connection.
//!
//! Sans-IO: parses a header from bytes, and writes one. Format and bounds are those of HAProxy's
//! `proxy-protocol.txt`.

mod tlv;
mod v1;
mod v2;

use crate::Addr;
use std::fmt;

pub use tlv::{SslClient, Tlv, kind, ssl_value};
pub use v1::{V1_LINE_BYTES_MAX, write_v1};
pub use v2::{V2_HEADER_BYTES_MAX, write_v2};

/// A parsed PROXY protocol header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The ends of the relayed connection. None if they are those of this connection (`LOCAL`,
    /// `UNKNOWN`), or if the transport is not a stream.
    pub addresses: Option<Addresses>,
    /// The TLVs of version 2 as received, checked to be well-formed.
    tlvs: Vec<u8>,
}

/// The two ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client's address.
    pub source: Addr,
    /// The address that the client connected to.
    pub destination: Addr,
}

impl Header {
    /// The TLVs in order, checksum and padding included.
    pub fn tlvs(&self) -> impl Iterator<Item = Tlv<'_>> {
        tlv::well_formed(&self.tlvs)
    }

    /// The TLVs as received: kind, length, value, one after the other. Well-formed.
    #[must_use]
    pub fn tlv_bytes(&self) -> &[u8] {
        &self.tlvs
    }

    /// The value of the first TLV of a kind.
    #[must_use]
    pub fn tlv(&self, kind: u8) -> Option<&[u8]> {
        self.tlvs()
            .find(|tlv| tlv.kind == kind)
            .map(|tlv| tlv.value)
    }
}

/// Why bytes are not a valid PROXY protocol header; the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Neither version's signature.
    NotProxy,
    /// Version 1 with a protocol other than `TCP4`, `TCP6` and `UNKNOWN`.
    UnknownProtocol,
    /// Version 1: malformed line.
    BadLine,
    /// Version 1: longer than any line can be.
    LineTooLong,
    /// Version 2 with another version number.
    BadVersion,
    /// Version 2: neither `LOCAL` nor `PROXY`.
    BadCommand,
    /// Version 2: unassigned address family or transport.
    BadFamily,
    /// Version 2: the header has no room for the addresses of its family.
    TooShort,
    /// Version 2: longer than a receive buffer.
    HeaderTooLong,
    /// A TLV reaches beyond the header, or a checksum does not have four bytes.
    BadTlv,
    /// A TLV longer than its kind may be.
    TlvTooLong,
    /// The checksum does not match the header.
    BadChecksum,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Error::NotProxy => "not a PROXY protocol header",
            Error::UnknownProtocol => "unknown protocol in a PROXY line",
            Error::BadLine => "malformed PROXY line",
            Error::LineTooLong => "PROXY line too long",
            Error::BadVersion => "unsupported PROXY protocol version",
            Error::BadCommand => "unknown PROXY protocol command",
            Error::BadFamily => "unknown PROXY protocol address family",
            Error::TooShort => "PROXY protocol header shorter than its addresses",
            Error::HeaderTooLong => "PROXY protocol header too long",
            Error::BadTlv => "malformed PROXY protocol TLV",
            Error::TlvTooLong => "PROXY protocol TLV too long",
            Error::BadChecksum => "wrong PROXY protocol checksum",
        })
    }
}

impl std::error::Error for Error {}

/// Parses a header at the start of `input`. Returns its length and the header, or none while it is
/// incomplete.
///
/// # Errors
/// The bytes cannot become a valid header. Reported as early as possible.
pub fn parse(input: &[u8]) -> Result<Option<(usize, Header)>, Error> {
    if begins(input, v1::SIGNATURE) {
        v1::parse(input)
    } else if begins(input, v2::SIGNATURE) {
        v2::parse(input)
    } else {
        Err(Error::NotProxy)
    }
}

/// Whether `input` begins with the signature, or with a part of it when it is shorter.
fn begins(input: &[u8], signature: &[u8]) -> bool {
    input.iter().zip(signature).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests;
