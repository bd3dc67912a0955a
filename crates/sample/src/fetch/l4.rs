//! Addresses of connections and facts from the PROXY protocol (manual §7.3.3).

use http::Version;
use net::Addr;

use super::{
    CLIENT, CLIENT_CONNECTION, Cursor, FRONTEND, Fetch, REQUEST, SERVER_CONNECTION, fetch,
};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::facts::Side;
use crate::{Kind, MuxFacts, Scope, Session, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "src",
        NONE,
        Kind::Addr,
        &CLIENT,
        "the client's address",
        |_, scope, _| ip(scope.src()),
    ),
    fetch(
        "src_port",
        NONE,
        Kind::Int,
        &CLIENT,
        "the client's port",
        |_, scope, _| port(scope.src()),
    ),
    fetch(
        "dst",
        NONE,
        Kind::Addr,
        &CLIENT,
        "the address the client connected to",
        |_, scope, _| ip(scope.dst()),
    ),
    fetch(
        "dst_port",
        NONE,
        Kind::Int,
        &CLIENT,
        "the port the client connected to",
        |_, scope, _| port(scope.dst()),
    ),
    fetch(
        "fc_src",
        NONE,
        Kind::Addr,
        &CLIENT,
        "the client connection's source",
        |_, scope, _| ip(fc_src(scope.session)),
    ),
    fetch(
        "fc_src_port",
        NONE,
        Kind::Int,
        &CLIENT,
        "its port",
        |_, scope, _| port(fc_src(scope.session)),
    ),
    fetch(
        "fc_dst",
        NONE,
        Kind::Addr,
        &CLIENT,
        "the client connection's destination",
        |_, scope, _| ip(fc_dst(scope.session)),
    ),
    fetch(
        "fc_dst_port",
        NONE,
        Kind::Int,
        &CLIENT,
        "its port",
        |_, scope, _| port(fc_dst(scope.session)),
    ),
    fetch(
        "fc_http_major",
        NONE,
        Kind::Int,
        &CLIENT,
        "the client side's HTTP major version",
        |_, scope, _| Some(Value::Int(major(scope.txn.and_then(|txn| txn.client_mux)))),
    ),
    fetch(
        "fc_rcvd_proxy",
        NONE,
        Kind::Bool,
        &CLIENT,
        "whether a PROXY header came",
        |_, scope, _| Some(Value::Bool(scope.session.received_proxy)),
    ),
    fetch(
        "fc_pp_authority",
        NONE,
        Kind::Str,
        &CLIENT,
        "the authority TLV",
        |_, scope, _| {
            scope
                .session
                .tlv(TLV_AUTHORITY, 0)
                .map(|(value, _)| Value::text(value))
        },
    ),
    fetch(
        "fc_pp_unique_id",
        NONE,
        Kind::Str,
        &CLIENT,
        "the unique-id TLV",
        |_, scope, _| {
            scope
                .session
                .tlv(TLV_UNIQUE_ID, 0)
                .map(|(value, _)| Value::text(value))
        },
    ),
    fetch(
        "fc_pp_tlv",
        spec(1, &[Str]),
        Kind::Str,
        &CLIENT_CONNECTION,
        "a TLV by name or number",
        pp_tlv,
    )
    .checked(tlv_kind),
    fetch(
        "bc_src",
        NONE,
        Kind::Addr,
        &SERVER_CONNECTION,
        "the server connection's source",
        |_, scope, _| ip(&server_src(scope)?),
    ),
    fetch(
        "bc_src_port",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "its port",
        |_, scope, _| port(&server_src(scope)?),
    ),
    fetch(
        "bc_dst",
        NONE,
        Kind::Addr,
        &SERVER_CONNECTION,
        "the server connection's destination",
        |_, scope, _| ip(scope.txn?.server_dst.as_ref()?),
    ),
    fetch(
        "bc_dst_port",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "its port",
        |_, scope, _| port(scope.txn?.server_dst.as_ref()?),
    ),
    fetch(
        "bc_http_major",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "the server side's HTTP major version",
        |_, scope, _| {
            let txn = scope.txn.filter(|txn| txn.had_server())?;
            Some(Value::Int(major(txn.server_mux)))
        },
    ),
    fetch(
        "bc_reused",
        NONE,
        Kind::Bool,
        &SERVER_CONNECTION,
        "whether the connection was a reused one",
        |_, scope, _| Some(Value::Bool(scope.txn?.server_reused)),
    ),
    fetch(
        "accept_date",
        spec(0, &[Str]),
        Kind::Int,
        &CLIENT,
        "when the stream was accepted",
        |args, scope, _| {
            let at = scope
                .txn
                .map_or(scope.session.accepted, |txn| txn.timing.start);
            Some(Value::Int(
                (at.wall_ns / int_at(args, 0).unwrap_or(1_000_000_000) as u64) as i64,
            ))
        },
    )
    .checked(super::internal::unit_first),
    fetch(
        "request_date",
        spec(0, &[Str]),
        Kind::Int,
        &REQUEST,
        "when the request began",
        |args, scope, _| {
            let timing = &scope.txn?.timing;
            let at = timing.request_start.unwrap_or(timing.start);
            Some(Value::Int(
                (at.wall_ns / int_at(args, 0).unwrap_or(1_000_000_000) as u64) as i64,
            ))
        },
    )
    .checked(super::internal::unit_first),
    fetch(
        "fc.timer.handshake",
        NONE,
        Kind::Int,
        &CLIENT,
        "milliseconds the handshakes took",
        |_, scope, _| Some(Value::Int(scope.session.handshake_ms.into())),
    ),
    fetch(
        "fc.timer.total",
        NONE,
        Kind::Int,
        &FRONTEND,
        "milliseconds since the accept (%Tt)",
        |_, scope, _| Some(Value::Int(crate::timers::Timers::of(scope).close)),
    ),
];

fn ip<'a>(addr: &Addr) -> Option<Value<'a>> {
    addr.ip().map(Value::from)
}

fn port<'a>(addr: &Addr) -> Option<Value<'a>> {
    if addr.is_unix() {
        None
    } else {
        Some(Value::Int(addr.port().into()))
    }
}

/// The major version of HTTP on a connection; 1 where a stream has it for itself.
fn major(mux: Option<MuxFacts>) -> i64 {
    match mux.map(|mux| mux.version) {
        Some(Version::Http3) => 3,
        Some(Version::Http2) => 2,
        Some(Version::Http10 | Version::Http11) | None => 1,
    }
}

/// The address to which the connection was bound, otherwise the one that the system chose.
fn server_src(scope: &Scope<'_>) -> Option<Addr> {
    let bound = scope.txn?.server_src.as_ref();
    match bound.filter(|addr| addr.port() != 0) {
        Some(addr) => Some(addr.clone()),
        None => scope.world.local_addr(Side::Server).or(bound.cloned()),
    }
}

pub(super) fn fc_src(session: &Session) -> &Addr {
    session.connection_src.as_deref().unwrap_or(&session.src)
}

pub(super) fn fc_dst(session: &Session) -> &Addr {
    session.connection_dst.as_deref().unwrap_or(&session.dst)
}

const TLV_AUTHORITY: u8 = 0x02;
const TLV_UNIQUE_ID: u8 = 0x05;

/// TLV types by name (PROXY protocol §2.2).
const TLV_KINDS: &[(&str, u8)] = &[
    ("ALPN", 0x01),
    ("AUTHORITY", TLV_AUTHORITY),
    ("CRC32C", 0x03),
    ("NOOP", 0x04),
    ("UNIQUE_ID", TLV_UNIQUE_ID),
    ("SSL", 0x20),
    ("SSL_VERSION", 0x21),
    ("SSL_CN", 0x22),
    ("SSL_CIPHER", 0x23),
    ("SSL_SIG_ALG", 0x24),
    ("SSL_KEY_ALG", 0x25),
    ("NETNS", 0x30),
];

fn tlv_kind(args: &mut [Arg]) -> Result<(), String> {
    let text = String::from_utf8_lossy(str_at(args, 0)).into_owned();
    let named = TLV_KINDS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, kind)| *kind);
    let number = || match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let kind = named
        .or_else(number)
        .ok_or_else(|| format!("Could not convert type '{text}'"))?;
    args[0] = Arg::Int(kind.into());
    Ok(())
}

fn pp_tlv<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let session = scope.session;
    let (value, next) = session.tlv(int_at(args, 0)? as u8, cursor.offset)?;
    cursor.offset = next;
    cursor.more = cursor.iterate;
    Some(Value::text(value))
}
