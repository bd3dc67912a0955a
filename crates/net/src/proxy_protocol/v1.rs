//! Version 1: one line of text (`proxy-protocol.txt` §2.1).

use super::{Addresses, Error, Header};
use crate::Addr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest line, CRLF included.
pub const V1_LINE_BYTES_MAX: usize = 107;

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

pub(super) fn parse(input: &[u8]) -> Result<Option<(usize, Header)>, Error> {
    let window = &input[..input.len().min(V1_LINE_BYTES_MAX)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        return if window.len() < V1_LINE_BYTES_MAX {
            Ok(None)
        } else {
            Err(Error::LineTooLong)
        };
    };
    let line = window[SIGNATURE.len()..end]
        .strip_suffix(b"\r")
        .ok_or(Error::BadLine)?;
    let line = std::str::from_utf8(line).map_err(|_| Error::BadLine)?;
    if line.contains(['\r', '\0']) {
        return Err(Error::BadLine);
    }
    let (protocol, rest) = line.split_once(' ').unwrap_or((line, ""));
    let addresses = match protocol {
        "TCP4" => Some(addresses::<Ipv4Addr>(rest).ok_or(Error::BadLine)?),
        "TCP6" => Some(addresses::<Ipv6Addr>(rest).ok_or(Error::BadLine)?),
        "UNKNOWN" => None,
        _ => return Err(Error::UnknownProtocol),
    };
    Ok(Some((
        end + 1,
        Header {
            addresses,
            tlvs: Vec::new(),
        },
    )))
}

/// Appends the line for a relayed connection. Writes `UNKNOWN` unless both addresses are IP
/// addresses; if only one is IPv6, maps the other to IPv6.
pub fn write_v1(addresses: Option<(&Addr, &Addr)>, out: &mut Vec<u8>) {
    let line = match addresses {
        Some((Addr::Inet(source), Addr::Inet(destination))) => {
            let v4 = source.is_ipv4() && destination.is_ipv4();
            let protocol = if v4 { "TCP4" } else { "TCP6" };
            let (from, to) = if v4 {
                (source.ip(), destination.ip())
            } else {
                (mapped(source), mapped(destination))
            };
            format!(
                "PROXY {protocol} {from} {to} {} {}\r\n",
                source.port(),
                destination.port()
            )
        }
        _ => "PROXY UNKNOWN\r\n".to_owned(),
    };
    out.extend_from_slice(line.as_bytes());
}

fn mapped(addr: &SocketAddr) -> IpAddr {
    match addr.ip() {
        IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    }
}

/// Source and destination address, then their ports, one space between them.
fn addresses<Ip: FromStr + Into<IpAddr>>(text: &str) -> Option<Addresses> {
    let mut words = text.split(' ');
    let mut word = || words.next();
    let (source, destination) = (ip::<Ip>(word()?)?, ip::<Ip>(word()?)?);
    let (source_port, destination_port) = (port(word()?)?, port(word()?)?);
    word().is_none().then(|| Addresses {
        source: Addr::Inet(SocketAddr::new(source, source_port)),
        destination: Addr::Inet(SocketAddr::new(destination, destination_port)),
    })
}

fn ip<Ip: FromStr + Into<IpAddr>>(text: &str) -> Option<IpAddr> {
    text.parse::<Ip>().ok().map(Into::into)
}

/// Decimal, without a sign or zeros before it.
fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.starts_with('0') && text != "0") {
        return None;
    }
    text.parse().ok()
}
