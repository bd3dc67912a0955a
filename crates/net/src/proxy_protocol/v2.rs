//! Version 2: a binary header (`proxy-protocol.txt` §2.2).

use super::tlv::{self, Tlv, kind};
use super::{Addresses, Error, Header};
use crate::Addr;
use crate::crc::CASTAGNOLI;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header accepted: what one receive buffer holds (`tune.bufsize`'s default).
pub const V2_HEADER_BYTES_MAX: usize = 16 * 1024;

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const FIXED_BYTES: usize = 16;
/// The size of a path in the addresses of a UNIX socket.
const UNIX_PATH_BYTES: usize = 108;

const VERSION: u8 = 0x20;
const LOCAL: u8 = 0x0;
const PROXY: u8 = 0x1;
const UNSPEC: u8 = 0x00;
const INET_STREAM: u8 = 0x11;
const INET6_STREAM: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;

pub(super) fn parse(input: &[u8]) -> Result<Option<(usize, Header)>, Error> {
    let Some(&command) = input.get(12) else {
        return Ok(None);
    };
    if command & 0xf0 != VERSION {
        return Err(Error::BadVersion);
    }
    let local = match command & 0x0f {
        LOCAL => true,
        PROXY => false,
        _ => return Err(Error::BadCommand),
    };
    let Some(&[family, high, low]) = input.get(13..FIXED_BYTES) else {
        return Ok(None);
    };
    let address_bytes = address_bytes(family);
    if address_bytes.is_none() && !local {
        return Err(Error::BadFamily);
    }
    let total = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if total > V2_HEADER_BYTES_MAX {
        return Err(Error::HeaderTooLong);
    }
    let Some(header) = input.get(..total) else {
        return Ok(None);
    };

    let block = &header[FIXED_BYTES..];
    // If the family is unspecified, the bytes after it have no meaning either.
    let address_bytes = address_bytes.unwrap_or(block.len());
    if block.len() < address_bytes {
        return Err(Error::TooShort);
    }
    let (block, tlvs) = block.split_at(address_bytes);
    tlv::check(tlvs, header)?;
    let addresses = if local {
        None
    } else {
        addresses(family, block)
    };
    Ok(Some((
        total,
        Header {
            addresses,
            tlvs: tlvs.to_vec(),
        },
    )))
}

/// Appends the header for a relayed connection. Without addresses, or if not both are IP addresses,
/// writes the header of a connection of the sender's own (`LOCAL`). If only one address is IPv6,
/// maps the other to IPv6. TLVs are written in the given order. The value of a checksum
/// ([`kind::CRC32C`]) is computed here; a given value is ignored.
///
/// # Errors
/// [`Error::HeaderTooLong`] if a length does not fit into its two bytes; nothing is appended then.
pub fn write_v2(
    addresses: Option<(&Addr, &Addr)>,
    tlvs: &[Tlv<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(SIGNATURE);
    match addresses {
        Some((Addr::Inet(source), Addr::Inet(destination))) => write_inet(source, destination, out),
        _ => out.extend_from_slice(&[VERSION | LOCAL, UNSPEC, 0, 0]),
    }
    let mut checksum_at = None;
    for given in tlvs {
        let value = if given.kind == kind::CRC32C {
            &[0; 4]
        } else {
            given.value
        };
        let Ok(len) = u16::try_from(value.len()) else {
            out.truncate(start);
            return Err(Error::HeaderTooLong);
        };
        out.push(given.kind);
        out.extend_from_slice(&len.to_be_bytes());
        if given.kind == kind::CRC32C {
            checksum_at = Some(out.len());
        }
        out.extend_from_slice(value);
    }
    let Ok(len) = u16::try_from(out.len() - start - FIXED_BYTES) else {
        out.truncate(start);
        return Err(Error::HeaderTooLong);
    };
    out[start + 14..start + FIXED_BYTES].copy_from_slice(&len.to_be_bytes());
    if let Some(at) = checksum_at {
        let checksum = CASTAGNOLI.of(&[&out[start..]]);
        out[at..at + 4].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}

/// Writes the bytes from the command on; the caller fills in the length later.
fn write_inet(source: &SocketAddr, destination: &SocketAddr, out: &mut Vec<u8>) {
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[VERSION | PROXY, INET_STREAM, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (from, to) => {
            out.extend_from_slice(&[VERSION | PROXY, INET6_STREAM, 0, 0]);
            out.extend_from_slice(&v6(from).octets());
            out.extend_from_slice(&v6(to).octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// The size of the two addresses of a family and transport; none for unassigned ones. All bytes
/// after an unspecified family count as address.
fn address_bytes(family: u8) -> Option<usize> {
    match (family >> 4, family & 0x0f) {
        (_, 3..) => None,
        (0, _) => Some(0),
        (1, _) => Some(2 * 4 + 2 * 2),
        (2, _) => Some(2 * 16 + 2 * 2),
        (3, _) => Some(2 * UNIX_PATH_BYTES),
        _ => None,
    }
}

/// The addresses of a stream family; any other family counts as unspecified.
fn addresses(family: u8, block: &[u8]) -> Option<Addresses> {
    let (source, destination) = match family {
        INET_STREAM => inet::<4, Ipv4Addr>(block)?,
        INET6_STREAM => inet::<16, Ipv6Addr>(block)?,
        UNIX_STREAM => {
            let (source, destination) = block.split_at_checked(UNIX_PATH_BYTES)?;
            (unix(source), unix(destination))
        }
        _ => return None,
    };
    Some(Addresses {
        source,
        destination,
    })
}

fn inet<const LEN: usize, Ip: From<[u8; LEN]> + Into<IpAddr>>(
    block: &[u8],
) -> Option<(Addr, Addr)> {
    let (source, rest) = block.split_first_chunk::<LEN>()?;
    let (destination, rest) = rest.split_first_chunk::<LEN>()?;
    let (source_port, rest) = rest.split_first_chunk()?;
    let (destination_port, _) = rest.split_first_chunk()?;
    let addr = |ip: &[u8; LEN], port: &[u8; 2]| {
        Addr::Inet(SocketAddr::new(
            Ip::from(*ip).into(),
            u16::from_be_bytes(*port),
        ))
    };
    Some((
        addr(source, source_port),
        addr(destination, destination_port),
    ))
}

/// A path up to its first NUL; an abstract name, which begins with a NUL, without its trailing
/// zeros.
fn unix(path: &[u8]) -> Addr {
    let trimmed = path.len() - path.iter().rev().take_while(|&&byte| byte == 0).count();
    let len = match path[..trimmed].iter().position(|&byte| byte == 0) {
        Some(0) | None => trimmed,
        Some(nul) => nul,
    };
    Addr::Unix(path[..len].into())
}
