//! The cookie of the Remote Desktop Protocol (MS-RDPBCGR §3.2.5.3.1): `<address>.<port>.<reserved>` of the server.

use std::net::Ipv4Addr;

use config::model::{Server, ServerAddress};
use net::Addr;

/// The bytes of TPKT and X.224 before the cookie.
const HEADERS_BYTES: usize = 11;

/// The usable server that the cookie of a connection's first bytes names.
pub(crate) fn server(
    input: &[u8],
    name: &str,
    servers: &[Server],
    usable: impl Fn(usize) -> bool,
) -> Option<usize> {
    let (ip, port) = address(value(input, name.as_bytes())?)?;
    servers.iter().enumerate().position(|(index, server)| {
        let ServerAddress::Fixed(Addr::Inet(addr)) = &server.address else {
            return false;
        };
        addr.ip() == ip && addr.port() == port && usable(index)
    })
}

/// The value of the cookie, which ends with its line.
fn value<'a>(input: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = without(input.get(HEADERS_BYTES..)?, b"Cookie:")?.trim_ascii_start();
    let rest = without(rest, name)?.strip_prefix(b"=")?;
    let end = memchr(rest, b'\r')?;
    rest[end..].starts_with(b"\r\n").then_some(&rest[..end])
}

fn memchr(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

/// `bytes` without a beginning in any case.
fn without<'a>(bytes: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

/// Both are numbers in network order, read as if they were in the machine's.
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
            let input = [&[0; HEADERS_BYTES][..], text].concat();
            value(&input, b"msts").and_then(address)
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
