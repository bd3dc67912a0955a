//! The list of TLVs (type, length, value) after the addresses of version 2 (`proxy-protocol.txt`
//! §2.2).

use super::Error;
use crate::crc::CASTAGNOLI;

/// One entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// One of [`kind`], or of the ranges for applications (0xE0–0xEF) and experiments (0xF0–0xF7).
    pub kind: u8,
    /// The value.
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
    /// Facts about the client's TLS connection.
    pub const SSL: u8 = 0x20;
    /// The name of the network namespace.
    pub const NETNS: u8 = 0x30;

    /// Within [`SSL`]: the version.
    pub const SSL_VERSION: u8 = 0x21;
    /// Within [`SSL`]: the common name of the client's certificate.
    pub const SSL_CN: u8 = 0x22;
    /// Within [`SSL`]: the cipher suite.
    pub const SSL_CIPHER: u8 = 0x23;
    /// Within [`SSL`]: the algorithm that signs the certificate of the listener.
    pub const SSL_SIG_ALG: u8 = 0x24;
    /// Within [`SSL`]: the kind of the key of that certificate.
    pub const SSL_KEY_ALG: u8 = 0x25;
}

/// The fixed part of a TLV of [`kind::SSL`], which describes the client (`proxy-protocol.txt`
/// §2.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SslClient {
    /// The client uses TLS.
    pub is_tls: bool,
    /// The client sent a certificate on this connection.
    pub has_certificate: bool,
    /// The client sent a certificate in this session, on this connection or an earlier one.
    pub has_certificate_in_session: bool,
    /// 0 if a certificate was sent and verified.
    pub verify: u32,
}

/// The value of a TLV of [`kind::SSL`], with its own list of TLVs. Values that are too long are
/// left out.
#[must_use]
pub fn ssl_value(client: SslClient, list: &[Tlv<'_>]) -> Vec<u8> {
    let bit = |is_set: bool, place: u8| u8::from(is_set) << place;
    let mut value = vec![
        bit(client.is_tls, 0)
            | bit(client.has_certificate, 1)
            | bit(client.has_certificate_in_session, 2),
    ];
    value.extend_from_slice(&client.verify.to_be_bytes());
    for tlv in list {
        if let Ok(len) = u16::try_from(tlv.value.len()) {
            value.push(tlv.kind);
            value.extend_from_slice(&len.to_be_bytes());
            value.extend_from_slice(tlv.value);
        }
    }
    value
}

/// The longest value of any TLV.
pub const VALUE_BYTES_MAX: usize = 1024;
/// The longest authority.
pub const AUTHORITY_BYTES_MAX: usize = 255;
/// The longest unique identifier.
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// Checks that the list is well-formed and within the bounds of each kind, and that a checksum in
/// it matches `header`, which ends with the list.
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

/// The entries of a checked list.
pub(super) fn well_formed(list: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (tlv, behind) = split(rest)?;
        rest = behind;
        Some(tlv)
    })
}

/// The first entry and the rest; none if its length reaches beyond the list.
fn split(list: &[u8]) -> Option<(Tlv<'_>, &[u8])> {
    let (&[kind, high, low], rest) = list.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((Tlv { kind, value }, rest))
}
