//! The type-length-value list behind the addresses of version 2 (`proxy-protocol.txt` §2.2).

use super::Error;
use crate::crc::CASTAGNOLI;

/// One entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// One of [`kind`], or of the ranges for applications (0xE0–0xEF) and experiments (0xF0–0xF7).
    pub kind: u8,
    /// What it says.
    pub value: &'a [u8],
}

/// The registered kinds of TLVs.
pub mod kind {
    /// The upper layer protocol.
    pub const ALPN: u8 = 0x01;
    /// The host name the client gave.
    pub const AUTHORITY: u8 = 0x02;
    /// The checksum of the header.
    pub const CRC32C: u8 = 0x03;
    /// Padding.
    pub const NOOP: u8 = 0x04;
    /// An identifier of the connection.
    pub const UNIQUE_ID: u8 = 0x05;
    /// What is known of the client's TLS.
    pub const SSL: u8 = 0x20;
    /// The name of the network namespace.
    pub const NETNS: u8 = 0x30;
}

/// The longest value of any TLV.
pub const VALUE_BYTES_MAX: usize = 1024;
/// The longest authority.
pub const AUTHORITY_BYTES_MAX: usize = 255;
/// The longest unique identifier.
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// Checks that the list is well-formed, within the bounds of each kind, and that a checksum in it is that of `header`,
/// whose last part the list is.
pub(super) fn check(list: &[u8], header: &[u8]) -> Result<(), Error> {
    let mut rest = list;
    let mut checksums = 0;
    while !rest.is_empty() {
        let (tlv, behind) = split(rest).ok_or(Error::BadTlv)?;
        let value_bytes_max = match tlv.kind {
            kind::AUTHORITY => AUTHORITY_BYTES_MAX,
            kind::UNIQUE_ID => UNIQUE_ID_BYTES_MAX,
            _ => VALUE_BYTES_MAX,
        };
        if tlv.value.len() > value_bytes_max {
            return Err(Error::TlvTooLong);
        }
        if tlv.kind == kind::CRC32C {
            checksums += 1;
            let given: [u8; 4] = tlv.value.try_into().map_err(|_| Error::BadTlv)?;
            let (before, _) = header.split_at(header.len() - behind.len() - given.len());
            let computed = CASTAGNOLI.of(&[before, &[0; 4], behind]);
            if checksums > 1 || computed != u32::from_be_bytes(given) {
                return Err(Error::BadChecksum);
            }
        }
        rest = behind;
    }
    Ok(())
}

/// The entries of a list that was checked.
pub(super) fn well_formed(list: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (tlv, behind) = split(rest)?;
        rest = behind;
        Some(tlv)
    })
}

/// The first entry and what follows it; none where its length reaches beyond the list.
fn split(list: &[u8]) -> Option<(Tlv<'_>, &[u8])> {
    let (&[kind, high, low], rest) = list.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((Tlv { kind, value }, rest))
}
