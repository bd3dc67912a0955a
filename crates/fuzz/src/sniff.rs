//! The first bytes of a connection: TLS hellos, RDP cookies, distcc tokens.

use std::fmt::Debug;

use sample::sniff::client_hello::{
    FIRST_PROTOCOL, cipher_suites, extension, extensions, host_name, key_share_groups, kind, list,
    message_type, protocol_at, version,
};
use sample::sniff::{Sniffed, distcc, rdp};

/// More than any input.
const ROOM: usize = 1 << 20;

/// A shorter input asks for more or has the same result; what is found are bytes of the input.
pub fn first_bytes(data: &[u8]) {
    grows(data, message_type);
    grows(data, |bytes| version(bytes, ROOM));
    grows(data, cipher_suites);
    grows(data, extensions);
    for name in [&b""[..], b"mstshash"] {
        grows(data, |bytes| rdp::cookie(bytes, name));
    }
    for (name, occurrence) in [(*b"DOTI", 0), (*b"ARGV", 2)] {
        grows(data, |bytes| {
            let token = distcc::token(bytes, name, occurrence, ROOM);
            token.then(|token| {
                assert!(token.body.len() <= bytes.len().min(token.parameter as usize));
                Sniffed::Found(token.parameter)
            })
        });
    }
    if let Sniffed::Found(all) = extensions(data) {
        contents(all);
    }
    // Its own language: any bytes may stand where extensions do.
    contents(data);
}

fn grows<'a, T: Debug + PartialEq>(data: &'a [u8], sniff: impl Fn(&'a [u8]) -> Sniffed<T>) {
    let whole = sniff(data);
    for cut in crate::cuts(data.len()) {
        match sniff(&data[..cut]) {
            Sniffed::More => {}
            part => assert_eq!(part, whole, "cut at {cut}"),
        }
    }
}

fn contents(all: &[u8]) {
    let get = |wanted| extension(all, wanted);
    let _ = get(kind::SERVER_NAME).and_then(host_name);
    let _ = get(kind::GROUPS).and_then(|content| list(content, 2));
    let shares = get(kind::KEY_SHARE).and_then(key_share_groups);
    assert!(shares.is_none_or(|shares| shares.count() <= all.len()));
    let names = get(kind::ALPN).unwrap_or_default();
    let mut at = FIRST_PROTOCOL;
    while let Some((name, next)) = protocol_at(names, at) {
        assert!(next > at && next <= names.len() && name.len() < names.len());
        at = next;
    }
}
