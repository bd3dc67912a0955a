//! The request's URL: hashes of it, and the address in an absolute one (manual §7.3.6).

use std::net::{IpAddr, Ipv4Addr};

use ::http::{Head, Name};

use super::values::{Values, lines};
use super::{path_and_query, request};
use crate::args::NONE;
use crate::cast::written;
use crate::convert::hash::{full_avalanche, sdbm_from};
use crate::fetch::stream::path_of;
use crate::fetch::{Cursor, Fetch, REQUEST_HEAD, fetch};
use crate::text::{ipv4_prefix, read_int};
use crate::{Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "base32",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "a hash of base",
        |_, scope, cursor| Some(Value::Int(base32(request(scope, cursor)?).into())),
    ),
    fetch(
        "base32+src",
        NONE,
        Kind::Bin,
        &REQUEST_HEAD,
        "a hash of base, then the client's address",
        |_, scope, cursor| with_src(base32(request(scope, cursor)?), scope),
    ),
    fetch(
        "url32",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "a hash of the first Host, the path and the query",
        |_, scope, cursor| Some(Value::Int(url32(request(scope, cursor)?).into())),
    ),
    fetch(
        "url32+src",
        NONE,
        Kind::Bin,
        &REQUEST_HEAD,
        "a hash of the first Host, the path and the query, then the client's address",
        |_, scope, cursor| with_src(url32(request(scope, cursor)?), scope),
    ),
    fetch(
        "url_ip",
        NONE,
        Kind::Ipv4,
        &REQUEST_HEAD,
        "the IPv4 address in an absolute URL",
        |_, scope, cursor| authority(scope, cursor).map(|(ip, _)| Value::Ipv4(ip)),
    ),
    fetch(
        "url_port",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "the port in an absolute URL with an IPv4 address",
        |_, scope, cursor| authority(scope, cursor).map(|(_, port)| Value::Int(port.into())),
    ),
];

/// The hash of the first value of the first Host, and of the path without the query.
fn base32(head: &Head) -> u32 {
    let host = lines(head, Name::Host).next();
    let host = host.and_then(|line| Values::new(line).next());
    let path = path_and_query(head).map(|(path, _)| path);
    hash(host, path)
}

/// The hash of the whole first Host, and of path and query.
fn url32(head: &Head) -> u32 {
    hash(lines(head, Name::Host).next(), path_of(head.target()))
}

fn hash(host: Option<&[u8]>, path: Option<&[u8]>) -> u32 {
    let path = path.filter(|path| path.starts_with(b"/"));
    let parts = [host.unwrap_or_default(), path.unwrap_or_default()];
    full_avalanche(parts.into_iter().fold(0, sdbm_from))
}

fn with_src<'a>(hash: u32, scope: &Scope<'a>) -> Option<Value<'a>> {
    let ip = scope.src().ip()?;
    Some(Value::Bin(written(|out| {
        out.extend_from_slice(&hash.to_be_bytes());
        match ip {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    })))
}

/// Address and port of an absolute URL; as in HAProxy, only a literal IPv4 address.
fn authority(scope: &Scope<'_>, cursor: &mut Cursor) -> Option<(Ipv4Addr, u16)> {
    let target = request(scope, cursor)?.target();
    let scheme = memchr::memmem::find(target, b"://")?;
    let default_port = match target[..scheme].to_ascii_lowercase().as_slice() {
        b"http" => 80,
        b"https" => 443,
        _ => return None,
    };
    let rest = &target[scheme + 3..];
    let (ip, end) = ipv4_prefix(rest)?;
    let port = match rest[end..].strip_prefix(b":") {
        Some(port) => read_int(port).0 as u16,
        None => default_port,
    };
    Some((ip, port))
}
