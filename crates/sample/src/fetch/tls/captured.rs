//! Captured parts of the client's hello (`tune.ssl.capture-buffer-size`).

use super::names::{self, is_grease};
use super::{bytes, client, number};
use crate::args::{Arg, ArgKind, NONE, Spec, spec};
use crate::cast::written;
use crate::facts::HelloFacts;
use crate::fetch::{CLIENT_CONNECTION, Cursor, Fetch, fetch};
use crate::text::hex_digits;
use crate::{Kind, Scope, Value};

/// Whether reserved values (RFC 8701) are left out.
const FILTER: Spec = spec(0, &[ArgKind::Int]);

/// Entries for lists of byte pairs.
macro_rules! lists {
    ($($name:literal $field:ident $doc:literal;)*) => {
        pub(crate) const FETCHES: &[Fetch] = &[
            $(fetch($name, FILTER, Kind::Bin, &CLIENT_CONNECTION, $doc, |args, scope, _| {
                filtered(&hello(scope)?.$field, args)
            }),)*
            fetch("ssl_fc_ecformats_bin", NONE, Kind::Bin, &CLIENT_CONNECTION, "the formats of points that the client offers",
                |_, scope, _| bytes(&hello(scope)?.formats)),
            fetch("ssl_fc_cipherlist_hex", FILTER, Kind::Str, &CLIENT_CONNECTION, "the cipher suites that the client offers, in hexadecimal", in_hex),
            fetch("ssl_fc_cipherlist_str", FILTER, Kind::Str, &CLIENT_CONNECTION, "the names of the cipher suites that the client offers", in_names),
            fetch("ssl_fc_cipherlist_xxh", NONE, Kind::Int, &CLIENT_CONNECTION, "a hash (xxh64) of the cipher suites that the client offers",
                |_, scope, _| Some(Value::Int(hello(scope)?.ciphers_xxh.cast_signed()))),
            fetch("ssl_fc_protocol_hello_id", NONE, Kind::Int, &CLIENT_CONNECTION, "the version that the client's hello asks for",
                |_, scope, _| Some(Value::Int(hello(scope)?.version.into()))),
        ];
    };
}
lists! {
    "ssl_fc_cipherlist_bin" ciphers "the cipher suites that the client offers";
    "ssl_fc_extlist_bin" extensions "the types of the extensions of the client's hello";
    "ssl_fc_eclist_bin" groups "the groups that the client offers";
    "ssl_fc_sigalgs_bin" sigalgs "the signature algorithms that the client offers";
    "ssl_fc_supported_versions_bin" versions "the versions that the client offers";
}

fn hello<'a>(scope: &Scope<'a>) -> Option<&'a HelloFacts> {
    client(scope)?.hello.as_deref()
}

/// The pairs of a list, without excluded ones. An odd byte at the end is ignored.
fn pairs<'a>(list: &'a [u8], args: &[Arg]) -> impl Iterator<Item = [u8; 2]> + 'a {
    let filters = number(args, 0) == 1;
    let pairs = list.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(move |pair| !filters || !is_grease(*pair))
}

fn filtered<'a>(list: &'a [u8], args: &[Arg]) -> Option<Value<'a>> {
    match number(args, 0) {
        1 => {
            let kept = written(|out| out.extend(pairs(list, args).flatten()));
            (!kept.is_empty()).then_some(Value::Bin(kept))
        }
        _ => bytes(list),
    }
}

fn in_hex<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let list = &hello(scope)?.ciphers;
    let hex = written(|out| {
        for byte in pairs(list, args).flatten() {
            out.extend_from_slice(&hex_digits(byte));
        }
    });
    (!hex.is_empty()).then_some(Value::Str(hex))
}

fn in_names<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let list = &hello(scope)?.ciphers;
    let names = written(|out| {
        for pair in pairs(list, args) {
            if !out.is_empty() {
                out.push(b',');
            }
            match names::suite(u16::from_be_bytes(pair)) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => {
                    let [high, low] = pair;
                    out.extend_from_slice(format!("UNKNOWN({high:02x}{low:02x})").as_bytes());
                }
            }
        }
    });
    (!names.is_empty()).then_some(Value::Str(names))
}
