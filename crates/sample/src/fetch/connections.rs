//! The two connections of a stream: their failures, and facts from the kernel and from their
//! multiplexers (manual §7.3.3, §7.3.4).
//!
//! In HTTP/1 and TCP a connection carries one stream at a time. What only HTTP/2 and HTTP/3 have is 0
//! there (stream numbers) or has no value (resets), as in HAProxy.

use net::{Addr, TcpInfo};

use super::{
    CLIENT, CLIENT_CONNECTION, Cursor, Fetch, SERVER_CONNECTION, SERVER_SIDE, fetch, stream_of,
};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::written;
use crate::facts::Side;
use crate::text::push_int;
use crate::{ConnError, Kind, MuxFacts, Scope, Value};

/// A counter of `TCP_INFO` on the client's side.
macro_rules! counter {
    ($name:literal, $field:ident, $doc:literal) => {
        fetch($name, COUNTER, Kind::Int, &CLIENT, $doc, |_, scope, _| {
            info(scope, Side::Client, |info| info.$field)
        })
    };
}

/// A time of `TCP_INFO`.
macro_rules! time {
    ($name:literal, $side:ident, $field:ident, $doc:literal) => {
        fetch($name, UNIT, Kind::Int, &CLIENT, $doc, |args, scope, _| {
            let us = info(scope, Side::$side, |info| info.$field)?;
            Some(in_unit(args, us))
        })
        .checked(unit)
    };
}

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "fc_err",
        NONE,
        Kind::Int,
        &CLIENT,
        "why the client connection failed, 0 for not at all",
        |_, scope, _| Some(Value::Int(scope.session.error.number())),
    ),
    fetch(
        "fc_err_name",
        NONE,
        Kind::Str,
        &CLIENT,
        "the name of that",
        |_, scope, _| Some(Value::text(scope.session.error.name())),
    ),
    fetch(
        "fc_err_str",
        NONE,
        Kind::Str,
        &CLIENT,
        "the words for that",
        |_, scope, _| Some(Value::text(scope.session.error.text())),
    ),
    fetch(
        "bc_err",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "why the server connection failed, 0 for not at all",
        |_, scope, _| Some(Value::Int(server_error(scope)?.number())),
    ),
    fetch(
        "bc_err_name",
        NONE,
        Kind::Str,
        &SERVER_CONNECTION,
        "the name of that",
        |_, scope, _| Some(Value::text(server_error(scope)?.name())),
    ),
    fetch(
        "bc_err_str",
        NONE,
        Kind::Str,
        &SERVER_CONNECTION,
        "the words for that",
        |_, scope, _| Some(Value::text(server_error(scope)?.text())),
    ),
    fetch(
        "fc_rtt",
        UNIT,
        Kind::Int,
        &CLIENT,
        "round-trip time to the client, over TCP or QUIC",
        |args, scope, _| rtt(args, scope, Side::Client),
    )
    .checked(unit),
    time!("fc_rttvar", Client, rttvar_us, "variance of that"),
    fetch(
        "bc_rtt",
        UNIT,
        Kind::Int,
        &CLIENT,
        "round-trip time to the server, over TCP or QUIC",
        |args, scope, _| rtt(args, scope, Side::Server),
    )
    .checked(unit),
    time!("bc_rttvar", Server, rttvar_us, "variance of that"),
    counter!("fc_unacked", unacked, "segments not acknowledged"),
    counter!("fc_sacked", sacked, "segments acknowledged selectively"),
    counter!("fc_retrans", retrans, "segments sent again"),
    counter!(
        "fc_fackets",
        fackets,
        "segments in the forward acknowledgement"
    ),
    counter!("fc_lost", lost, "segments thought lost"),
    counter!("fc_reordering", reordering, "reordering that is expected"),
    fetch(
        "fc_saved_syn",
        NONE,
        Kind::Bin,
        &CLIENT,
        "the client's SYN packet, where tcp-ss keeps it",
        |_, scope, _| {
            let mut out = crate::Bytes::buffer();
            let found = scope.world.saved_syn(out.as_vec());
            found.then(|| Value::Bin(out.into()))
        },
    ),
    fetch(
        "src_is_local",
        NONE,
        Kind::Bool,
        &CLIENT,
        "whether the client's address is this machine's",
        |_, scope, _| is_local(scope.src(), scope),
    ),
    fetch(
        "dst_is_local",
        NONE,
        Kind::Bool,
        &CLIENT,
        "whether the address that was connected to is this machine's",
        |_, scope, _| is_local(scope.dst(), scope),
    ),
    fetch(
        "fc_src_is_local",
        NONE,
        Kind::Bool,
        &CLIENT,
        "the same of the connection's source",
        |_, scope, _| is_local(super::l4::fc_src(scope.session), scope),
    ),
    fetch(
        "fc_dst_is_local",
        NONE,
        Kind::Bool,
        &CLIENT,
        "the same of the connection's destination",
        |_, scope, _| is_local(super::l4::fc_dst(scope.session), scope),
    ),
    fetch(
        "fc_glitches",
        NONE,
        Kind::Int,
        &CLIENT,
        "oddities of the client's protocol: HTTP/1 counts none",
        |_, scope, _| {
            let glitches = i64::from(scope.session.glitches);
            stream_of(scope)?.is_http.then_some(Value::Int(glitches))
        },
    ),
    fetch(
        "bc_glitches",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "oddities of the server's protocol: HTTP/1 counts none",
        |_, scope, _| {
            let txn = to_server(scope)?;
            let glitches = i64::from(txn.server_glitches);
            txn.is_http.then_some(Value::Int(glitches))
        },
    ),
    fetch(
        "fc_nb_streams",
        NONE,
        Kind::Int,
        &CLIENT,
        "streams on the client connection when this one began",
        |_, scope, _| {
            stream_of(scope).map(|txn| Value::Int(shared(txn.client_mux, |mux| mux.streams)))
        },
    ),
    fetch(
        "bc_nb_streams",
        NONE,
        Kind::Int,
        &SERVER_SIDE,
        "streams on the server connection when this one began",
        |_, scope, _| {
            to_server(scope).map(|txn| Value::Int(shared(txn.server_mux, |mux| mux.streams)))
        },
    ),
    fetch(
        "fc_settings_streams_limit",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "streams that the client connection allows at a time",
        |_, scope, _| {
            stream_of(scope).map(|txn| Value::Int(shared(txn.client_mux, |mux| mux.streams_max)))
        },
    ),
    fetch(
        "bc_settings_streams_limit",
        NONE,
        Kind::Int,
        &SERVER_SIDE,
        "streams that the server connection allows at a time",
        |_, scope, _| {
            to_server(scope).map(|txn| Value::Int(shared(txn.server_mux, |mux| mux.streams_max)))
        },
    ),
    fetch(
        "fs.id",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "the number of the stream on the client's connection; 0 in HTTP/1",
        |_, scope, _| stream_of(scope).map(|txn| Value::Int(number(txn.client_mux))),
    ),
    fetch(
        "bs.id",
        NONE,
        Kind::Int,
        &SERVER_SIDE,
        "the number of the stream on the server's connection; 0 in HTTP/1",
        |_, scope, _| to_server(scope).map(|txn| Value::Int(number(txn.server_mux))),
    ),
    fetch(
        "fs.aborted",
        NONE,
        Kind::Bool,
        &CLIENT_CONNECTION,
        "whether the client reset the stream alone: HTTP/1 cannot",
        |_, scope, _| stream_of(scope).map(|_| Value::Bool(false)),
    ),
    fetch(
        "bs.aborted",
        NONE,
        Kind::Bool,
        &SERVER_SIDE,
        "whether the server reset the stream alone: HTTP/1 cannot",
        |_, scope, _| stream_of(scope).map(|_| Value::Bool(false)),
    ),
    fetch(
        "fs.rst_code",
        NONE,
        Kind::Int,
        &CLIENT_CONNECTION,
        "the code of the client's reset",
        no_reset,
    ),
    fetch(
        "bs.rst_code",
        NONE,
        Kind::Int,
        &SERVER_SIDE,
        "the code of the server's reset",
        no_reset,
    ),
    fetch(
        "fs.debug_str",
        spec(0, &[Int]),
        Kind::Str,
        &CLIENT_CONNECTION,
        "the client's side of the stream, for debugging",
        |_, scope, _| debug_text(scope, Side::Client),
    ),
    fetch(
        "bs.debug_str",
        spec(0, &[Int]),
        Kind::Str,
        &SERVER_SIDE,
        "the server's side of the stream, for debugging",
        |_, scope, _| debug_text(scope, Side::Server),
    ),
];

/// As in HAProxy, an argument is ignored.
const COUNTER: crate::args::Spec = spec(0, &[Str]);
const UNIT: crate::args::Spec = spec(0, &[Str]);

fn unit(args: &mut [Arg]) -> Result<(), String> {
    if args.is_empty() {
        return Ok(());
    }
    let us_a_unit = match str_at(args, 0) {
        b"us" => 1,
        b"ms" => 1000,
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(format!("expects 'us' or 'ms', got '{other}'"));
        }
    };
    args[0] = Arg::Int(us_a_unit);
    Ok(())
}

/// Microseconds converted to the requested unit, rounded; milliseconds without a unit.
fn in_unit<'a>(args: &[Arg], us: Value<'_>) -> Value<'a> {
    let Value::Int(us) = us else {
        return Value::Int(0);
    };
    let us_a_unit = int_at(args, 0).unwrap_or(1000);
    Value::Int((us + us_a_unit / 2) / us_a_unit)
}

fn rtt<'a>(args: &[Arg], scope: &Scope<'_>, side: Side) -> Option<Value<'a>> {
    let us = scope.world.rtt_us(side)?;
    Some(in_unit(args, Value::Int(us.into())))
}

fn info<'a>(scope: &Scope<'_>, side: Side, read: impl Fn(TcpInfo) -> u32) -> Option<Value<'a>> {
    scope
        .world
        .tcp_info(side)
        .map(|info| Value::Int(read(info).into()))
}

fn is_local<'a>(addr: &Addr, scope: &Scope<'_>) -> Option<Value<'a>> {
    match addr.ip() {
        Some(ip) => scope.world.is_local(ip).map(Value::Bool),
        // A UNIX socket is always local.
        None => Some(Value::Bool(true)),
    }
}

/// A number of a connection; 1 where a stream has it for itself.
fn shared(mux: Option<MuxFacts>, number: impl Fn(&MuxFacts) -> u16) -> i64 {
    mux.as_ref().map_or(1, number).into()
}

/// The number of a stream on its connection.
fn number(mux: Option<MuxFacts>) -> i64 {
    mux.map_or(0, |mux| mux.stream as i64)
}

/// The stream, after a connection to a server was attempted or reused.
fn to_server<'a>(scope: &Scope<'a>) -> Option<&'a crate::Txn> {
    scope.txn.filter(|txn| txn.had_server())
}

fn server_error(scope: &Scope<'_>) -> Option<ConnError> {
    to_server(scope).map(|txn| txn.server_error)
}

fn no_reset<'a>(_: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    None
}

fn debug_text<'a>(scope: &Scope<'a>, side: Side) -> Option<Value<'a>> {
    let txn = scope.txn?;
    let framing = match side {
        Side::Client => txn.request_body.framing,
        Side::Server => {
            to_server(scope)?;
            txn.response_body.framing
        }
    };
    let numbers = [
        (&b"stream="[..], txn.id),
        (b" turns=", txn.turns.into()),
        (b" in=", txn.bytes_in),
        (b" out=", txn.bytes_out),
        (b" retries=", txn.retries.into()),
        (b" reused=", txn.server_reused.into()),
    ];
    Some(Value::Str(written(|out| {
        for (name, number) in numbers {
            out.extend_from_slice(name);
            push_int(out, number as i64);
        }
        out.extend_from_slice(match framing {
            http::h1::Framing::None => b" body=none",
            http::h1::Framing::Length(_) => b" body=length",
            http::h1::Framing::Chunked => b" body=chunked",
            http::h1::Framing::UntilClose => b" body=close",
        });
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Facts, addr};
    use http::Version;

    use crate::{ConnError, MuxFacts};

    fn check(facts: &Facts, cases: &[(&str, Option<&str>)]) {
        for (expr, wanted) in cases {
            assert_eq!(facts.text(expr).as_deref(), *wanted, "{expr}");
        }
    }

    #[test]
    fn what_the_kernel_knows() {
        let cases = [
            ("fc_rtt", Some("2")),
            ("fc_rtt(ms)", Some("2")),
            ("fc_rtt(us)", Some("1500")),
            ("fc_rttvar(us)", Some("499")),
            ("fc_rttvar", Some("0")),
            ("bc_rtt(us)", None),
            ("fc_reordering", Some("3")),
            ("fc_lost(what)", Some("0")),
            ("fc_saved_syn,hex", Some("4500")),
            ("src_is_local", Some("0")),
            ("dst_is_local", Some("1")),
            ("fc_dst_is_local", Some("1")),
        ];
        check(&Facts::new(), &cases);
        assert!(crate::testing::fails("fc_rtt(s)").contains("expects 'us' or 'ms', got 's'"));
    }

    #[test]
    fn errors_have_a_number_a_name_and_words() {
        let mut facts = Facts::new();
        check(
            &facts,
            &[
                ("fc_err", Some("0")),
                ("fc_err_name", Some("")),
                ("fc_err_str", Some("Success")),
                ("bc_err", None),
            ],
        );
        facts.session.error = ConnError::ProxyNone;
        facts.txn.server_dst = Some(addr("10.0.0.9:80"));
        facts.txn.server_error = ConnError::Refused;
        check(
            &facts,
            &[
                ("fc_err", Some("15")),
                ("fc_err_name", Some("PRX_NOT_HDR")),
                ("bc_err", Some("47")),
                ("bc_err_name", Some("EREFUSED")),
                ("bc_err_str", Some("ECONNREFUSED returned by OS")),
            ],
        );
    }

    #[test]
    fn one_stream_a_connection() {
        let mut facts = Facts::new();
        facts.txn.server_dst = Some(addr("10.0.0.9:80"));
        for expr in [
            "fc_nb_streams",
            "bc_nb_streams",
            "fc_settings_streams_limit",
        ] {
            assert_eq!(facts.text(expr).as_deref(), Some("1"), "{expr}");
        }
        for expr in ["fc_glitches", "bc_glitches", "fs.id", "bs.id", "fs.aborted"] {
            assert_eq!(facts.text(expr).as_deref(), Some("0"), "{expr}");
        }
        let mux = |stream, version| {
            Some(MuxFacts {
                stream,
                version,
                streams: 2,
                streams_max: 100,
            })
        };
        (facts.txn.client_mux, facts.txn.server_mux) =
            (mux(4, Version::Http3), mux(7, Version::Http2));
        for (expr, value) in [
            ("fc_http_major", "3"),
            ("bc_http_major", "2"),
            ("fc_nb_streams", "2"),
            ("bc_nb_streams", "2"),
            ("fc_settings_streams_limit", "100"),
            ("bc_settings_streams_limit", "100"),
        ] {
            assert_eq!(facts.text(expr).as_deref(), Some(value), "{expr}");
        }
        assert_eq!(facts.text("fs.id").as_deref(), Some("4"));
        assert_eq!(facts.text("bs.id").as_deref(), Some("7"));
        assert_eq!(facts.text("fs.rst_code"), None);
        facts.txn.is_http = false;
        assert_eq!(facts.text("fc_glitches"), None);
        let debug = facts.text("fs.debug_str(1)").expect("a text");
        assert!(debug.starts_with("stream=0 turns=0 in=0"), "{debug}");
    }
}
