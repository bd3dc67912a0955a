//! The cookie of the Remote Desktop Protocol (MS-RDPBCGR §3.2.5.3.1): `<address>.<port>.<reserved>`
//! of the server.

use std::net::Ipv4Addr;

use config::model::ServerAddress;
use net::Addr;
use sample::sniff::{Sniffed, rdp};

use crate::ids::ServerId;
use crate::shared::ServerRecord;

/// The usable server that the cookie in a connection's first bytes names.
pub(crate) fn server<'a>(
    input: &[u8],
    name: &[u8],
    mut servers: impl Iterator<Item = (ServerId, &'a ServerRecord)>,
    usable: impl Fn(ServerId) -> bool,
) -> Option<ServerId> {
    let (ip, port) = named(input, name)?;
    let found = servers.find(|(id, server)| {
        let ServerAddress::Fixed(Addr::Inet(addr)) = &server.address else {
            return false;
        };
        addr.ip() == ip && addr.port() == port && usable(*id)
    });
    found.map(|(id, _)| id)
}

/// The address in the cookie with this name.
fn named(input: &[u8], name: &[u8]) -> Option<(Ipv4Addr, u16)> {
    match rdp::cookie(input, name) {
        Sniffed::Found(value) => address(value),
        Sniffed::More | Sniffed::No => None,
    }
}

/// Parses address and port. Both are numbers in network order that are written as if they were in
/// the machine's order.
fn address(value: &[u8]) -> Option<(Ipv4Addr, u16)> {
    let mut parts = value.splitn(3, |byte| *byte == b'.');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u32>().ok();
    let (ip, port) = (number()?, number()?);
    parts.next()?;
    let port = u16::try_from(port).ok()?.to_be();
    Some((Ipv4Addr::from(ip.to_ne_bytes()), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies() {
        let of = |text: &[u8]| {
            let input = [&[0; 11][..], text].concat();
            named(&input, b"msts")
        };
        let address = (Ipv4Addr::new(127, 0, 0, 1), 3389);
        // As a terminal server writes 127.0.0.1:3389.
        let little = cfg!(target_endian = "little");
        let text: &[u8] = if little {
            b"Cookie: msts=16777343.15629.0000\r\n"
        } else {
            b"Cookie: msts=2130706433.3389.0000\r\n"
        };
        assert_eq!(of(text), Some(address));
        for bad in [
            &b"Cookie: msts=16777343.15629.0000"[..],
            b"Cookie: mstshash=user\r\n",
            b"Cookie: msts=1.2\r\n",
            b"Cookie: msts=99999999999.1.0000\r\n",
            b"Cookie: msts=1.99999.0000\r\n",
            b"",
        ] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }
}
