//! TLS of the two connections (manual §7.3.4). Without TLS, fetches that test for something return
//! false, and the others have no value.

pub(crate) mod captured;
pub(crate) mod certificates;
mod names;
mod secrets;

pub(crate) use names::{suite, version};

use super::{CLIENT_CONNECTION, Fetch, SERVER_SIDE, fetch};
use crate::args::{Arg, NONE};
use crate::facts::TlsFacts;
use crate::{Kind, Scope, Value};

/// Facts of the client connection.
pub(crate) fn client<'a>(scope: &Scope<'a>) -> Option<&'a TlsFacts> {
    scope.session.tls.as_deref()
}

/// Facts of the client connection, unless its handshake has failed.
fn complete<'a>(scope: &Scope<'a>) -> Option<&'a TlsFacts> {
    client(scope).filter(|facts| !facts.has_failed)
}

/// Facts of the server connection.
fn server<'a>(scope: &Scope<'a>) -> Option<&'a TlsFacts> {
    scope.txn.and_then(|txn| txn.server_tls.as_deref())
}

/// Reads one fact.
type Read = for<'a> fn(&'a TlsFacts) -> Option<Value<'a>>;

/// Entries for the two connections, which read the same facts.
macro_rules! both {
    ($($client:literal $server:literal $kind:ident $doc:literal $read:path;)*) => {
        pub(crate) const FETCHES: &[Fetch] = &[
            fetch("ssl_fc", NONE, Kind::Bool, &CLIENT_CONNECTION, "whether the client connection is TLS",
                |_, scope, _| Some(Value::Bool(client(scope).is_some()))),
            fetch("ssl_bc", NONE, Kind::Bool, &SERVER_SIDE, "whether the server connection is TLS",
                |_, scope, _| Some(Value::Bool(server(scope).is_some()))),
            fetch("ssl_fc_is_resumed", NONE, Kind::Bool, &CLIENT_CONNECTION, "whether a TLS session was resumed",
                |_, scope, _| flag(client(scope), |facts| facts.resumed)),
            fetch("ssl_bc_is_resumed", NONE, Kind::Bool, &SERVER_SIDE, "whether a TLS session was resumed",
                |_, scope, _| flag(server(scope), |facts| facts.resumed)),
            fetch("ssl_fc_has_sni", NONE, Kind::Bool, &CLIENT_CONNECTION, "whether the client sent an SNI",
                |_, scope, _| flag(client(scope), |facts| facts.sni.is_some())),
            $(
                fetch($client, NONE, Kind::$kind, &CLIENT_CONNECTION, $doc,
                    |_, scope, _| { let read: Read = $read; read(client(scope)?) }),
                fetch($server, NONE, Kind::$kind, &SERVER_SIDE, $doc,
                    |_, scope, _| { let read: Read = $read; read(server(scope)?) }),
            )*
            of_client("ssl_fc_has_crt", Kind::Bool, "whether the client showed a certificate on this connection",
                |_, scope, _| complete(scope).map(|facts| Value::Bool(!facts.peer.is_empty() && !facts.resumed))),
            of_client("ssl_c_used", Kind::Bool, "whether the session has a certificate of the client",
                |_, scope, _| client(scope).map(|facts| Value::Bool(!facts.peer.is_empty()))),
            of_client("ssl_fc_has_early", Kind::Bool, "whether early data came and the handshake is not done",
                |_, scope, _| client(scope).map(|facts| Value::Bool(facts.has_early))),
            of_client("ssl_fc_early_rcvd", Kind::Bool, "whether early data came",
                |_, scope, _| client(scope).map(|facts| Value::Bool(facts.received_early))),
            of_client("ssl_fc_crtname", Kind::Str, "the name of the certificate that the client was shown",
                |_, scope, _| client(scope)?.own_name.as_deref().map(Value::text)),
            of_client("ssl_c_verify", Kind::Int, "what the verification of the client's certificate came to",
                |_, scope, _| complete(scope).map(|facts| Value::Int(facts.verify.into()))),
            of_client("ssl_c_err", Kind::Int, "why the client's certificate was refused",
                |_, scope, _| client(scope).map(|facts| Value::Int(facts.crt_error.into()))),
            of_client("ssl_c_ca_err", Kind::Int, "why a certificate above it was refused",
                |_, scope, _| client(scope).map(|facts| Value::Int(facts.ca_error.into()))),
            of_client("ssl_c_ca_err_depth", Kind::Int, "how far above it that is",
                |_, scope, _| client(scope).map(|facts| Value::Int(facts.ca_error_depth.into()))),
        ];
    };
}
both! {
    "ssl_fc_alg_keysize" "ssl_bc_alg_keysize" Int "bits of the cipher's key" keysize;
    "ssl_fc_use_keysize" "ssl_bc_use_keysize" Int "bits of the cipher's key that are secret" keysize;
    "ssl_fc_alpn" "ssl_bc_alpn" Str "the protocol that ALPN came to" alpn;
    "ssl_fc_npn" "ssl_bc_npn" Str "no value: NPN is not served" nothing;
    "ssl_fc_cipher" "ssl_bc_cipher" Str "the cipher suite, by OpenSSL's name" cipher;
    "ssl_fc_curve" "ssl_bc_curve" Str "the group of the key exchange, by OpenSSL's name" curve;
    "ssl_fc_protocol" "ssl_bc_protocol" Str "the version of TLS" protocol;
    "ssl_fc_err" "ssl_bc_err" Int "the number of the last TLS error, 0 for none" error;
    "ssl_fc_err_str" "ssl_bc_err_str" Str "its text" error_text;
    "ssl_fc_session_id" "ssl_bc_session_id" Bin "the session's id" session_id;
    "ssl_fc_sni" "ssl_bc_sni" Str "the name that was asked for" sni;
    "ssl_fc_unique_id" "ssl_bc_unique_id" Bin "the connection's id (RFC 5929)" unique_id;
    "ssl_fc_client_random" "ssl_bc_client_random" Bin "the random value of the client's hello" secrets::client_random;
    "ssl_fc_server_random" "ssl_bc_server_random" Bin "the random value of the server's hello" secrets::server_random;
    "ssl_fc_session_key" "ssl_bc_session_key" Bin "the master secret of TLS 1.2; no value with TLS 1.3" secrets::session_key;
    "ssl_fc_client_early_traffic_secret" "ssl_bc_client_early_traffic_secret" Str "the secret of early data, with `tune.ssl.keylog`" secrets::client_early_traffic;
    "ssl_fc_client_handshake_traffic_secret" "ssl_bc_client_handshake_traffic_secret" Str "the secret of the client's handshake, with `tune.ssl.keylog`" secrets::client_handshake_traffic;
    "ssl_fc_server_handshake_traffic_secret" "ssl_bc_server_handshake_traffic_secret" Str "the secret of the server's handshake, with `tune.ssl.keylog`" secrets::server_handshake_traffic;
    "ssl_fc_client_traffic_secret_0" "ssl_bc_client_traffic_secret_0" Str "the secret of the client's data, with `tune.ssl.keylog`" secrets::client_traffic;
    "ssl_fc_server_traffic_secret_0" "ssl_bc_server_traffic_secret_0" Str "the secret of the server's data, with `tune.ssl.keylog`" secrets::server_traffic;
    "ssl_fc_exporter_secret" "ssl_bc_exporter_secret" Str "the secret of exported keys, with `tune.ssl.keylog`" secrets::exporter;
    "ssl_fc_early_exporter_secret" "ssl_bc_early_exporter_secret" Str "no value: early keys are not exported" nothing;
}

const fn of_client(
    name: &'static str,
    kind: Kind,
    doc: &'static str,
    eval: super::FetchFn,
) -> Fetch {
    fetch(name, NONE, kind, &CLIENT_CONNECTION, doc, eval)
}

fn flag<'a>(facts: Option<&TlsFacts>, read: fn(&TlsFacts) -> bool) -> Option<Value<'a>> {
    Some(Value::Bool(facts.is_some_and(read)))
}

fn keysize(facts: &TlsFacts) -> Option<Value<'_>> {
    names::key_bits(facts.cipher).map(Value::Int)
}

fn alpn(facts: &TlsFacts) -> Option<Value<'_>> {
    text(&facts.alpn)
}

fn nothing(_: &TlsFacts) -> Option<Value<'_>> {
    None
}

fn cipher(facts: &TlsFacts) -> Option<Value<'_>> {
    names::suite(facts.cipher).map(Value::text)
}

fn curve(facts: &TlsFacts) -> Option<Value<'_>> {
    names::group(facts.group).map(Value::text)
}

fn protocol(facts: &TlsFacts) -> Option<Value<'_>> {
    names::version(facts.version).map(Value::text)
}

fn error(facts: &TlsFacts) -> Option<Value<'_>> {
    Some(Value::Int(facts.error.into()))
}

fn error_text(facts: &TlsFacts) -> Option<Value<'_>> {
    facts.error_text.as_deref().map(Value::text)
}

fn session_id(facts: &TlsFacts) -> Option<Value<'_>> {
    bytes(&facts.session_id)
}

fn sni(facts: &TlsFacts) -> Option<Value<'_>> {
    facts.sni.as_deref().map(Value::text)
}

fn unique_id(facts: &TlsFacts) -> Option<Value<'_>> {
    bytes(&facts.unique_id)
}

/// A text; None if it is empty.
fn text(text: &[u8]) -> Option<Value<'_>> {
    (!text.is_empty()).then(|| Value::text(text))
}

/// Bytes; None if there are none.
fn bytes(bytes: &[u8]) -> Option<Value<'_>> {
    (!bytes.is_empty()).then(|| Value::Bin(bytes.into()))
}

/// A number argument; 0 if it is missing.
fn number(args: &[Arg], index: usize) -> i64 {
    match args.get(index) {
        Some(Arg::Int(number)) => *number,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
