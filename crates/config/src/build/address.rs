//! Addresses in `bind`, `server`, `source` and `log` lines (manual §2.9).

use super::Shared;
use super::line::{Line, Parse};
use crate::model::{BindAddress, ServerAddress};
use net::Addr;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use syntax::octets::readable;

/// Longest path of a UNIX socket: the size of `sun_path` without its final NUL.
const UNIX_PATH_BYTES_MAX: usize = 107;
/// Bytes of an abstract name of `abns@`: all of `sun_path`, as in HAProxy. The name of `abnsz@` is
/// not padded.
const ABSTRACT_BYTES: usize = 108;

/// The ports after a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// No port.
    None,
    /// One port, or the first and the last port of a range.
    Range(u16, u16),
    /// `+N` or `-N`.
    Offset(i32),
}

/// A parsed address, before its use is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A host with ports.
    Inet(IpAddr, Ports),
    /// A UNIX socket.
    Unix(Addr),
    /// An inherited descriptor.
    Fd(i32),
}

/// How host names are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Resolve them once with the system's resolver, when the configuration is read.
    Resolve,
    /// Replace them by the unspecified address.
    Ignore,
    /// Replace them by this address.
    Replace(IpAddr),
    /// Refuse them.
    Refuse,
}

/// The bytes of the address in word `index`. HAProxy expands environment variables in it outside of
/// double quotes too; an unset one becomes empty. `title` is the beginning of a message.
///
/// # Errors
/// The result is empty.
pub fn resolved<'l>(
    line: &Line<'l>,
    index: usize,
    shared: &Shared<'_>,
    title: &str,
) -> Parse<Cow<'l, [u8]>> {
    let written = line.bytes(index);
    let address = shared.environment.expand(written);
    if address.is_empty() && !written.is_empty() {
        let word = line.arg(index);
        Err(line.fault(
            index,
            format!(
                "{title} : '{word}' resolves to an empty address (environment variable missing?)."
            ),
        ))
    } else {
        Ok(address)
    }
}

/// Parses one address. `written` has no commas.
pub fn parse(written: &[u8], names: Names) -> Result<Parsed, String> {
    // `stream+` is the only socket type here, so it changes nothing.
    let bare = written.strip_prefix(b"stream+").unwrap_or(written);
    let (family, path) = match memchr::memchr(b'@', bare) {
        Some(at) => (&bare[..at], &bare[at + 1..]),
        None if bare.starts_with(b"/") => (&b"unix"[..], bare),
        None => (&b""[..], bare),
    };
    let (text, family, rest) = (
        &*readable(written).to_string(),
        &*readable(family).to_string(),
        &*readable(path).to_string(),
    );
    match family {
        "unix" | "uxst" => unix_path(path),
        "abns" => abstract_name(path, ABSTRACT_BYTES),
        "abnsz" => abstract_name(path, 0),
        "fd" => rest
            .parse()
            .map(Parsed::Fd)
            .map_err(|_| format!("file descriptor '{rest}' is not a number in '{text}'")),
        "" | "tcp" => inet(rest, None, names),
        "ipv4" | "tcp4" => inet(rest, Some(false), names),
        "ipv6" | "tcp6" => inet(rest, Some(true), names),
        "sockpair" | "quic4" | "quic6" | "quic" | "rhttp" | "rev" | "udp" | "udp4" | "udp6"
        | "uxdg" | "stdout" | "stderr" | "ring" | "vsock" => Err(format!(
            "address family '{family}@' is known but not implemented yet by this version"
        )),
        _ if family.contains('+') => Err(format!(
            "socket type prefix '{family}@' is known but not implemented yet by this version"
        )),
        _ => Err(format!("unknown address family '{family}@' in '{text}'")),
    }
}

fn unix_path(path: &[u8]) -> Result<Parsed, String> {
    match path.len() {
        0 => Err("missing path of a UNIX socket".into()),
        n if n > UNIX_PATH_BYTES_MAX => Err(format!(
            "socket path '{}' too long (max {UNIX_PATH_BYTES_MAX})",
            readable(path)
        )),
        _ => Ok(Parsed::Unix(Addr::Unix(Arc::from(path)))),
    }
}

/// `filled`: the length to which the name is padded with NULs.
fn abstract_name(name: &[u8], filled: usize) -> Result<Parsed, String> {
    let mut bytes = [b"\0", name].concat();
    if bytes.len() > UNIX_PATH_BYTES_MAX {
        return Err(format!(
            "abstract socket name '{}' too long (max {UNIX_PATH_BYTES_MAX})",
            readable(name)
        ));
    }
    bytes.resize(bytes.len().max(filled), 0);
    Ok(Parsed::Unix(Addr::Unix(Arc::from(bytes))))
}

/// The host name of an address with an optional family and port; none where there is no name.
pub fn host_name(written: &[u8]) -> Option<String> {
    let single = single_path(written).unwrap_or(written.into());
    let text = std::str::from_utf8(&single).ok()?;
    let text = text.strip_prefix("stream+").unwrap_or(text);
    let rest = text.split_once('@').map_or(text, |(_, rest)| rest);
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
    let is_name = !host.is_empty() && host != "*" && host.parse::<IpAddr>().is_err();
    is_name.then(|| host.to_owned())
}

/// `v6`: the address family that a prefix requires.
fn inet(text: &str, v6: Option<bool>, names: Names) -> Result<Parsed, String> {
    // As in HAProxy, the port follows the last colon, unless a bracket follows it. So `::1:80` is
    // `::1` with port 80.
    let (host, port) = match text.rfind([':', ']']) {
        Some(at) if text.as_bytes()[at] == b':' => (&text[..at], &text[at + 1..]),
        _ => (text, ""),
    };
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    Ok(Parsed::Inet(ip(host, v6, names, text)?, ports(port, text)?))
}

fn ip(host: &str, v6: Option<bool>, names: Names, text: &str) -> Result<IpAddr, String> {
    let unspecified = match v6 {
        Some(true) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    if host.is_empty() || host == "*" {
        return Ok(unspecified);
    }
    let suits = |ip: &IpAddr| v6.is_none_or(|v6| ip.is_ipv6() == v6);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return if suits(&ip) {
            Ok(ip)
        } else {
            Err(format!("invalid address: '{host}' in '{text}'"))
        };
    }
    match names {
        Names::Resolve => {}
        Names::Ignore => return Ok(unspecified),
        Names::Replace(ip) => return Ok(ip),
        Names::Refuse => return Err(format!("'{host}' is a name")),
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !host.bytes().all(is_allowed) {
        return Err(format!("invalid address: '{host}' in '{text}'"));
    }
    let found = files::addresses(host)
        .ok()
        .and_then(|all| all.into_iter().find(suits));
    found.ok_or_else(|| format!("could not resolve address '{host}'"))
}

fn ports(text: &str, whole: &str) -> Result<Ports, String> {
    let bad = || format!("invalid character in port number '{text}' in '{whole}'");
    if text.is_empty() {
        return Ok(Ports::None);
    }
    if text.starts_with(['+', '-']) {
        let offset: i32 = text.parse().map_err(|_| bad())?;
        return if offset.unsigned_abs() <= 65535 {
            Ok(Ports::Offset(offset))
        } else {
            Err(format!("invalid port '{text}' specified"))
        };
    }
    let one = |port: &str| -> Result<u16, String> {
        if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        port.parse()
            .map_err(|_| format!("invalid port '{port}' specified"))
    };
    match text.split_once('-') {
        None => one(text).map(|port| Ports::Range(port, port)),
        Some((low, high)) => {
            let (low, high) = (one(low)?, one(high)?);
            if low > high {
                Err(format!("invalid port range '{text}'"))
            } else {
                Ok(Ports::Range(low, high))
            }
        }
    }
}

/// The plain TCP address of a multipath TCP address (`mptcp@`).
fn single_path(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let families: [(&[u8], &[u8]); 3] = [
        (b"mptcp@", b"tcp@"),
        (b"mptcp4@", b"tcp4@"),
        (b"mptcp6@", b"tcp6@"),
    ];
    let text = text.strip_prefix(b"stream+").unwrap_or(text);
    let mut known = families.iter();
    known.find_map(|(family, single)| Some([single, text.strip_prefix(*family)?].concat().into()))
}

/// Whether an address is for multipath TCP.
pub fn is_multipath(text: &[u8]) -> bool {
    single_path(text).is_some()
}

/// An address of a `bind` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub address: BindAddress,
    /// Multipath TCP.
    pub multipath: bool,
    /// The descriptor that has this address, of a line with QUIC.
    pub descriptor: Option<i32>,
}

/// The addresses of a `bind` line: separated by commas, with port ranges. `prefix` is put before
/// UNIX paths (`unix-bind prefix`).
pub fn binds(text: &[u8], prefix: &[u8]) -> Result<Vec<Listen>, String> {
    let mut all = Vec::new();
    for part in text.split(|byte| *byte == b',') {
        if let Some(bare) = without_quic(part) {
            for address in listen(&bare, prefix)? {
                all.push(over_quic(&address, part)?);
            }
            continue;
        }
        let single = single_path(part);
        let multipath = single.is_some();
        let addresses = listen(&single.unwrap_or(part.into()), prefix)?.into_iter();
        all.extend(addresses.map(|address| Listen {
            address,
            multipath,
            descriptor: None,
        }));
    }
    Ok(all)
}

/// An address with QUIC. A descriptor has its address already.
fn over_quic(address: &BindAddress, part: &[u8]) -> Result<Listen, String> {
    let (address, descriptor) = match address {
        BindAddress::Fd(number) => {
            let address = net::sys::local_addr(*number)
                .map_err(|error| format!("cannot use file descriptor '{number}' ({error})"))?;
            (address, Some(*number))
        }
        BindAddress::Addr(address) => (address.clone(), None),
        BindAddress::Quic(address) => (Addr::Inet(*address), None),
    };
    match address {
        Addr::Inet(address) => Ok(Listen {
            address: BindAddress::Quic(address),
            multipath: false,
            descriptor,
        }),
        Addr::Unix(_) => Err(format!("QUIC needs an IP address in '{}'", readable(part))),
    }
}

fn listen(part: &[u8], prefix: &[u8]) -> Result<Vec<BindAddress>, String> {
    let shown = || readable(part);
    let one = |addr| Ok(vec![BindAddress::Addr(addr)]);
    match parse(part, Names::Resolve)? {
        Parsed::Fd(fd) => Ok(vec![BindAddress::Fd(fd)]),
        Parsed::Unix(Addr::Unix(path)) if !prefix.is_empty() && path.first() != Some(&0) => {
            match unix_path(&[prefix, &path].concat())? {
                Parsed::Unix(addr) => one(addr),
                _ => unreachable!("unix_path gives a UNIX socket"),
            }
        }
        Parsed::Unix(addr) => one(addr),
        Parsed::Inet(_, Ports::None) => Err(format!("missing port number: '{}'", shown())),
        Parsed::Inet(_, Ports::Offset(_)) => {
            Err(format!("port offset not allowed here in '{}'", shown()))
        }
        Parsed::Inet(ip, Ports::Range(low, high)) => Ok((low..=high)
            .map(|port| BindAddress::Addr(Addr::Inet(SocketAddr::new(ip, port))))
            .collect()),
    }
}

/// The same address without the prefix that asks for QUIC (`quic4@`, `quic6@`, `quic+ipv4@`).
pub fn without_quic(part: &[u8]) -> Option<Vec<u8>> {
    let rest = part.strip_prefix(b"quic")?;
    match rest {
        [family @ (b'4' | b'6'), b'@', rest @ ..] => {
            Some([b"ipv", &[*family][..], b"@", rest].concat())
        }
        [b'+', rest @ ..] => Some(rest.to_vec()),
        _ => None,
    }
}

/// The address of a server.
pub fn server(text: &[u8], names: Names) -> Result<ServerAddress, String> {
    let single = single_path(text).unwrap_or(text.into());
    Ok(match parse(&single, names)? {
        Parsed::Unix(addr) => ServerAddress::Fixed(addr),
        Parsed::Fd(_) => {
            return Err(
                "address family 'fd@' is known but not implemented yet by this version".into(),
            );
        }
        Parsed::Inet(ip, Ports::None | Ports::Range(0, 0)) => {
            ServerAddress::PortOffset { ip, offset: 0 }
        }
        Parsed::Inet(ip, Ports::Offset(offset)) => ServerAddress::PortOffset { ip, offset },
        Parsed::Inet(ip, Ports::Range(low, high)) if low == high => {
            ServerAddress::Fixed(Addr::Inet(SocketAddr::new(ip, low)))
        }
        Parsed::Inet(..) => {
            let text = readable(text);
            return Err(format!("port range not allowed here in '{text}'"));
        }
    })
}

/// A single address with an optional port (0 if there is none), and the range if one is written
/// (`source`).
pub fn single(text: &[u8]) -> Result<(Addr, Option<(u16, u16)>), String> {
    let shown = readable(text);
    match parse(text, Names::Resolve)? {
        Parsed::Unix(addr) => Ok((addr, None)),
        Parsed::Inet(ip, Ports::None) => Ok((Addr::Inet(SocketAddr::new(ip, 0)), None)),
        Parsed::Inet(ip, Ports::Range(low, high)) if low == high => {
            Ok((Addr::Inet(SocketAddr::new(ip, low)), None))
        }
        Parsed::Inet(ip, Ports::Range(low, high)) => {
            Ok((Addr::Inet(SocketAddr::new(ip, 0)), Some((low, high))))
        }
        Parsed::Inet(_, Ports::Offset(_)) => {
            Err(format!("port offset not allowed here in '{shown}'"))
        }
        Parsed::Fd(_) => Err(format!("file descriptor not allowed here in '{shown}'")),
    }
}

/// An address with an optional prefix length, as `except` of `option forwardfor` takes it.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) => (ip.parse::<IpAddr>().ok()?, Some(length)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => bits,
        Some(length) => match length.parse::<u8>() {
            Ok(length) if length <= bits => length,
            Ok(_) => return None,
            Err(_) => mask_length(length)?,
        },
    };
    Some((ip, length))
}

/// The length of a dotted mask whose ones are contiguous.
fn mask_length(text: &str) -> Option<u8> {
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let ones = mask.leading_ones();
    (ones == 32 || mask << ones == 0).then_some(ones as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match binds(text.as_bytes(), b"") {
            Ok(all) => all
                .iter()
                .map(|listen| match (&listen.address, listen.multipath) {
                    (BindAddress::Addr(addr), false) => addr.to_string(),
                    (BindAddress::Addr(addr), true) => format!("{addr} by several paths"),
                    (BindAddress::Quic(addr), _) => format!("quic {addr}"),
                    (BindAddress::Fd(fd), _) => format!("fd@{fd}"),
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(message) => message,
        }
    }

    #[test]
    fn bind_addresses_in_every_form() {
        let cases = [
            (":80", "0.0.0.0:80"),
            ("*:80", "0.0.0.0:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("::1:80", "[::1]:80"),
            (":::80", "[::]:80"),
            ("ipv6@:80", "[::]:80"),
            ("ipv4@*:80", "0.0.0.0:80"),
            ("ipv6@::1:80", "[::1]:80"),
            ("/run/x.sock", "unix@/run/x.sock"),
            ("unix@run/x.sock", "unix@run/x.sock"),
            ("abns@name", "abns@name"),
            ("fd@4", "fd@4"),
            ("stream+fd@4", "fd@4"),
            ("stream+ipv6@::1:80", "[::1]:80"),
            ("stream+10.0.0.1:80", "10.0.0.1:80"),
            ("stream+/x", "unix@/x"),
            (
                "quic+fd@999999",
                "cannot use file descriptor '999999' (Bad file descriptor (os error 9))",
            ),
            (
                "mptcp6@:80,mptcp@10.0.0.1:81,:82",
                "[::]:80 by several paths 10.0.0.1:81 by several paths 0.0.0.0:82",
            ),
            (":80-82", "0.0.0.0:80 0.0.0.0:81 0.0.0.0:82"),
            (":80,[::1]:81,/x", "0.0.0.0:80 [::1]:81 unix@/x"),
            (":8000-800", "invalid port range '8000-800'"),
            ("10.0.0.1", "missing port number: '10.0.0.1'"),
            (":+5", "port offset not allowed here in ':+5'"),
            (":x", "invalid character in port number 'x' in ':x'"),
            (":70000", "invalid port '70000' specified"),
            ("ipv4@[::1]:80", "invalid address: '::1' in '[::1]:80'"),
            ("foo@x", "unknown address family 'foo@' in 'foo@x'"),
            ("fd@x", "file descriptor 'x' is not a number in 'fd@x'"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(binds(format!("/{}", "x".repeat(107)).as_bytes(), b"").is_err());
    }

    #[test]
    fn a_descriptor_with_quic_has_its_address() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let found = binds(format!("quic+fd@{number}").as_bytes(), b"").expect("an address");
        let address = socket.local_addr().expect("an address");
        assert_eq!(found[0].address, BindAddress::Quic(address));
        assert_eq!(found[0].descriptor, Some(number));
    }

    #[test]
    fn a_prefix_goes_before_unix_paths_only() {
        assert_eq!(binds(b"/x,abns@y,:80", b"/chroot").unwrap().len(), 3);
        assert_eq!(
            format!("{:?}", &binds(b"/x", b"/p").unwrap()[0].address),
            format!(
                "{:?}",
                BindAddress::Addr(Addr::Unix(Arc::from(&b"/p/x"[..])))
            )
        );
    }

    #[test]
    fn abstract_names_are_as_long_as_haproxy_makes_them() {
        for (text, bytes) in [("abns@name", 108), ("abnsz@name", 5)] {
            let Ok(Parsed::Unix(Addr::Unix(name))) = parse(text.as_bytes(), Names::Resolve) else {
                panic!("{text}");
            };
            assert_eq!((name.len(), &name[..5]), (bytes, &b"\0name"[..]), "{text}");
        }
    }

    #[test]
    fn server_addresses_may_follow_the_clients_port() {
        assert!(matches!(
            server(b"127.0.0.1", Names::Resolve).unwrap(),
            ServerAddress::PortOffset { offset: 0, .. }
        ));
        assert!(matches!(
            server(b"127.0.0.1:+10", Names::Resolve).unwrap(),
            ServerAddress::PortOffset { offset: 10, .. }
        ));
        assert!(matches!(
            server(b"127.0.0.1:-10", Names::Resolve).unwrap(),
            ServerAddress::PortOffset { offset: -10, .. }
        ));
        assert!(matches!(
            server(b"127.0.0.1:80", Names::Resolve).unwrap(),
            ServerAddress::Fixed(Addr::Inet(_))
        ));
        assert!(server(b"127.0.0.1:80-90", Names::Resolve).is_err());
    }

    #[test]
    fn networks_have_lengths_or_masks() {
        let v4: IpAddr = "10.0.0.0".parse().unwrap();
        assert_eq!(network("10.0.0.0/8"), Some((v4, 8)));
        assert_eq!(network("10.0.0.0"), Some((v4, 32)));
        assert_eq!(network("10.0.0.0/255.255.0.0"), Some((v4, 16)));
        assert_eq!(network("10.0.0.0/33"), None);
        assert_eq!(network("10.0.0.0/255.0.255.0"), None);
        assert_eq!(network("x"), None);
    }
}
