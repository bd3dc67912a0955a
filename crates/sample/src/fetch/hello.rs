//! Contents of a TLS hello in the buffer, before decryption (manual §7.3.5).
//!
//! For the client, only the first hello, which is not encrypted; in mode HTTP there is none.

use super::{CLIENT, Cursor, Fetch, REQUEST_BUFFER, RESPONSE_BUFFER, Source, fetch};
use super::{raw_request, raw_response, sniffed};
use crate::args::{Arg, NONE};
use crate::cast::written;
use crate::sniff::Sniffed;
use crate::sniff::client_hello::{
    FIRST_PROTOCOL, cipher_suites, extension, extensions, host_name, key_share_groups, kind, list,
    message_type, protocol_at, version,
};
use crate::{Kind, SAMPLE_BYTES_MAX, Scope, Value};

/// Valid at any place, although only the buffer has the data.
const HELLO: Source = Source {
    places: CLIENT.places,
    needs: "request buffer",
};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "req.ssl_hello_type",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "type of the TLS handshake message: 1 is a ClientHello",
        request_type,
    ),
    fetch(
        "req_ssl_hello_type",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "as req.ssl_hello_type",
        request_type,
    ),
    fetch(
        "res.ssl_hello_type",
        NONE,
        Kind::Int,
        &RESPONSE_BUFFER,
        "type of the TLS handshake message: 2 is a ServerHello",
        response_type,
    ),
    fetch(
        "rep_ssl_hello_type",
        NONE,
        Kind::Int,
        &RESPONSE_BUFFER,
        "as res.ssl_hello_type",
        response_type,
    ),
    fetch(
        "req.ssl_ver",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "the version in the hello: major times 65536, and minor",
        request_version,
    ),
    fetch(
        "req_ssl_ver",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "as req.ssl_ver",
        request_version,
    ),
    fetch(
        "req.ssl_sni",
        NONE,
        Kind::Str,
        &REQUEST_BUFFER,
        "the server name that the hello asks for",
        server_name,
    ),
    fetch(
        "req_ssl_sni",
        NONE,
        Kind::Str,
        &REQUEST_BUFFER,
        "as req.ssl_sni",
        server_name,
    ),
    fetch(
        "req.ssl_alpn",
        NONE,
        Kind::Str,
        &REQUEST_BUFFER,
        "the protocols that the hello offers",
        protocols,
    ),
    fetch(
        "req.ssl_cipherlist",
        NONE,
        Kind::Bin,
        &HELLO,
        "the cipher suites that the hello offers",
        |_, scope, cursor| {
            let list = raw_request(scope).then(cipher_suites);
            sniffed(list, cursor).map(|list| Value::Bin(list.into()))
        },
    ),
    fetch(
        "req.ssl_supported_groups",
        NONE,
        Kind::Bin,
        &HELLO,
        "the key exchange groups that the hello offers",
        |_, scope, cursor| listed(kind::GROUPS, scope, cursor),
    ),
    fetch(
        "req.ssl_sigalgs",
        NONE,
        Kind::Bin,
        &HELLO,
        "the signature algorithms that the hello offers",
        |_, scope, cursor| listed(kind::SIGNATURES, scope, cursor),
    ),
    fetch(
        "req.ssl_keyshare_groups",
        NONE,
        Kind::Bin,
        &HELLO,
        "the groups that the hello brings key shares of",
        key_shares,
    ),
    fetch(
        "req.ssl_ec_ext",
        NONE,
        Kind::Bool,
        &REQUEST_BUFFER,
        "true when the hello names elliptic curves",
        |_, scope, cursor| content(kind::GROUPS, scope, cursor).map(|_| Value::Bool(true)),
    ),
    fetch(
        "req.ssl_st_ext",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "session ticket in the hello: 0 none, 1 asked for, 2 given",
        session_ticket,
    ),
];

fn request_type<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let found = raw_request(scope).then(message_type);
    sniffed(found, cursor).map(|found| Value::Int(found.into()))
}

fn response_type<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let found = raw_response(scope).then(message_type);
    sniffed(found, cursor).map(|found| Value::Int(found.into()))
}

fn request_version<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let found = raw_request(scope).then(|bytes| version(bytes, SAMPLE_BYTES_MAX));
    let (major, minor) = sniffed(found, cursor)?;
    Some(Value::Int(i64::from(major) << 16 | i64::from(minor)))
}

/// The content of an extension of the client's hello.
fn content<'a>(wanted: u16, scope: &Scope<'a>, cursor: &mut Cursor) -> Option<&'a [u8]> {
    let all = raw_request(scope).then(extensions);
    sniffed(all, cursor).and_then(|all| extension(all, wanted))
}

/// An extension whose content is one list.
fn listed<'a>(wanted: u16, scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let list = list(content(wanted, scope, cursor)?, 2)?;
    Some(Value::Bin(list.into()))
}

fn server_name<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    host_name(content(kind::SERVER_NAME, scope, cursor)?).map(Value::text)
}

/// The first protocol name, or each in turn for callers that iterate.
fn protocols<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let names = content(kind::ALPN, scope, cursor)?;
    let (name, next) = protocol_at(names, cursor.offset.max(FIRST_PROTOCOL))?;
    cursor.offset = next;
    cursor.more = next < names.len();
    Some(Value::text(name))
}

fn key_shares<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let groups = key_share_groups(content(kind::KEY_SHARE, scope, cursor)?)?;
    Some(Value::Bin(written(|out| {
        out.extend(groups.flatten());
    })))
}

fn session_ticket<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let all: Sniffed<&[u8]> = raw_request(scope).then(extensions);
    let ticket = extension(sniffed(all, cursor)?, kind::SESSION_TICKET);
    Some(Value::Int(match ticket {
        None => 0,
        Some([]) => 1,
        Some(_) => 2,
    }))
}

#[cfg(test)]
mod tests;
