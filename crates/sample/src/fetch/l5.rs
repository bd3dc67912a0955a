//! The client connection's transport (manual §7.3.4), as far as a clear connection can tell: what only TLS has is false
//! or has no value. The facts of TLS come with TLS itself.

use super::{CLIENT_CONNECTION, Cursor, Fetch, fetch};
use crate::args::{Arg, NONE};
use crate::{Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "ssl_fc",
        NONE,
        Kind::Bool,
        &CLIENT_CONNECTION,
        "whether the client connection is TLS",
        |_, scope, _| Some(Value::Bool(scope.session.tls)),
    ),
    fetch(
        "ssl_fc_is_resumed",
        NONE,
        Kind::Bool,
        &CLIENT_CONNECTION,
        "whether a TLS session was resumed",
        clear_false,
    ),
    fetch(
        "ssl_fc_has_sni",
        NONE,
        Kind::Bool,
        &CLIENT_CONNECTION,
        "whether the client sent an SNI",
        clear_false,
    ),
    fetch(
        "ssl_fc_sni",
        NONE,
        Kind::Str,
        &CLIENT_CONNECTION,
        "the client's SNI",
        clear_none,
    ),
    fetch(
        "ssl_fc_err",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "the TLS error of the client connection",
        clear_none,
    ),
    fetch(
        "ssl_c_err",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "why the client's certificate was refused",
        clear_none,
    ),
    fetch(
        "ssl_c_ca_err",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "why a certificate above it was refused",
        clear_none,
    ),
];

fn clear_false<'a>(_: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    (!scope.session.tls).then_some(Value::Bool(false))
}

fn clear_none<'a>(_: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    None
}
