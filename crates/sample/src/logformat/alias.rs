//! The aliases of log formats, one entry each (manual §8.2.6).

use net::Now;

use super::write::{Flags, HEADER_UNSAFE, URL_UNSAFE, Writer};
use crate::captured::CaptureSlots;
use crate::fetch::proxies::backend;
use crate::fetch::stream::path_of;
use crate::fetch::tls;
use crate::text::push_padded;
use crate::timers::Timers;
use crate::zone::{Zone, push_log_date, push_zoned_log_date};
use crate::{Scope, Txn};

/// An alias.
pub(crate) struct Alias {
    /// The name after `%`.
    pub name: &'static str,
    /// One line for the reference.
    pub doc: &'static str,
    /// Its value is final only at the end of a stream: a format with it is written at the end. As
    /// in HAProxy, and for `%tsc`, which contains the termination state like `%ts`.
    pub is_final: bool,
    /// Writes its value.
    pub write: fn(&Scope<'_>, &mut Writer<'_>),
}

const fn alias(
    name: &'static str,
    doc: &'static str,
    write: fn(&Scope<'_>, &mut Writer<'_>),
) -> Alias {
    Alias {
        name,
        doc,
        is_final: false,
        write,
    }
}

/// An alias whose value is final only at the end.
const fn final_alias(
    name: &'static str,
    doc: &'static str,
    write: fn(&Scope<'_>, &mut Writer<'_>),
) -> Alias {
    Alias {
        is_final: true,
        ..alias(name, doc, write)
    }
}

/// All aliases except `%o`, which only sets flags.
pub(crate) const ALIASES: &[Alias] = &[
    // ---- dates
    alias("T", "accept date, UTC", |scope, writer| {
        date_zone(accepted(scope), Zone::utc(), writer)
    }),
    alias("Tl", "accept date, local", |scope, writer| {
        date_zone(accepted(scope), scope.world.local_time(), writer)
    }),
    alias(
        "Ts",
        "accept date in seconds since the epoch",
        |scope, writer| {
            writer.hex_or_uint(seconds(accepted(scope)), 4);
        },
    ),
    alias("ms", "milliseconds of the accept date", |scope, writer| {
        let ms = accepted(scope).wall_ns / 1_000_000 % 1_000;
        if writer.flags.has(Flags::HEX) {
            writer.hex(ms, 2);
        } else {
            writer.padded(ms, 3);
        }
    }),
    alias(
        "t",
        "accept date, local, with milliseconds",
        |scope, writer| date_ms(accepted(scope), scope, writer),
    ),
    alias(
        "tr",
        "request date, local, with milliseconds",
        |scope, writer| date_ms(requested(scope), scope, writer),
    ),
    alias("trg", "request date, UTC", |scope, writer| {
        date_zone(requested(scope), Zone::utc(), writer)
    }),
    alias("trl", "request date, local", |scope, writer| {
        date_zone(requested(scope), scope.world.local_time(), writer)
    }),
    // ---- timers
    final_alias("Th", "handshakes", |scope, writer| {
        writer.int(Timers::of(scope).handshake)
    }),
    final_alias("Ti", "idle time before the request", |scope, writer| {
        writer.int(Timers::of(scope).idle)
    }),
    final_alias("TR", "the request's head", |scope, writer| {
        writer.int(Timers::of(scope).request_head())
    }),
    final_alias("Tq", "Th + Ti + TR", |scope, writer| {
        writer.int(Timers::of(scope).request)
    }),
    final_alias("Tw", "in queues", |scope, writer| {
        writer.int(Timers::of(scope).waited())
    }),
    final_alias("Tc", "connecting", |scope, writer| {
        writer.int(Timers::of(scope).connecting())
    }),
    final_alias("Tr", "the server's answer", |scope, writer| {
        writer.int(Timers::of(scope).response_head())
    }),
    final_alias("Td", "the transfer", |scope, writer| {
        let is_http = scope
            .world
            .proxy(backend(scope))
            .is_some_and(|proxy| proxy.is_http);
        writer.int(Timers::of(scope).data(is_http));
    }),
    final_alias("Ta", "active time", |scope, writer| {
        early(scope, writer, |timers| timers.active())
    }),
    final_alias("Tt", "total time", |scope, writer| {
        early(scope, writer, |timers| timers.close)
    }),
    final_alias("Tu", "total time without the idle time", |scope, writer| {
        early(scope, writer, |timers| timers.user())
    }),
    // ---- addresses
    alias("ci", "client's address", |scope, writer| {
        writer.ip(Some(scope.src()))
    }),
    alias("cp", "client's port", |scope, writer| {
        writer.port(Some(scope.src()), || bind_id(scope))
    }),
    alias("fi", "frontend's address", |scope, writer| {
        writer.ip(Some(scope.dst()))
    }),
    alias("fp", "frontend's port", |scope, writer| {
        writer.port(Some(scope.dst()), || bind_id(scope))
    }),
    alias(
        "bi",
        "address the server was connected from",
        |scope, writer| {
            writer.ip(scope.txn.and_then(|txn| txn.server_src.as_ref()));
        },
    ),
    alias("bp", "its port", |scope, writer| {
        writer.port(scope.txn.and_then(|txn| txn.server_src.as_ref()), || 0)
    }),
    alias("si", "server's address", |scope, writer| {
        writer.ip(scope.txn.and_then(|txn| txn.server_dst.as_ref()))
    }),
    alias("sp", "server's port", |scope, writer| {
        writer.port(scope.txn.and_then(|txn| txn.server_dst.as_ref()), || 0)
    }),
    // ---- names
    alias("H", "hostname", |scope, writer| {
        writer.text(scope.world.hostname().as_bytes())
    }),
    alias("f", "frontend's name", |scope, writer| {
        writer.text(proxy_name(scope, scope.session.frontend))
    }),
    alias("ft", "frontend's name, with ~ for TLS", |scope, writer| {
        writer.begin();
        writer.raw(proxy_name(scope, scope.session.frontend));
        if scope.session.tls.is_some() {
            writer.mark(b'~');
        }
        writer.end();
    }),
    alias("b", "backend's name", |scope, writer| {
        writer.text(proxy_name(scope, backend(scope)))
    }),
    alias("s", "server's name", |scope, writer| {
        match scope.txn.and_then(|txn| txn.service) {
            Some(service) => writer.text(service.as_bytes()),
            None => {
                let server = scope.txn.and_then(|txn| txn.server);
                let name =
                    server.and_then(|server| scope.world.server_name(backend(scope), server));
                writer.text(name.unwrap_or("<NOSRV>").as_bytes());
            }
        }
    }),
    final_alias("ID", "unique id", |scope, writer| {
        writer.text(crate::unique_id::unique_id(scope).unwrap_or_default());
    }),
    alias("OG", "why the line is written", |scope, writer| {
        writer.text(scope.session.log_origin.name().as_bytes());
    }),
    alias("sslc", "TLS cipher", |scope, writer| {
        let facts = tls::client(scope);
        let name = facts.and_then(|facts| tls::suite(facts.cipher));
        writer.text(name.unwrap_or_default().as_bytes());
    }),
    alias("sslv", "TLS version", |scope, writer| {
        let facts = tls::client(scope);
        let name = facts.and_then(|facts| tls::version(facts.version));
        writer.text(name.unwrap_or_default().as_bytes());
    }),
    // ---- counters
    alias("pid", "process id", |scope, writer| {
        writer.hex_or_uint(scope.world.pid().into(), 4)
    }),
    alias("rt", "number of the request", |scope, writer| {
        writer.hex_or_uint(scope.txn.map_or(0, |txn| txn.id & 0xffff_ffff), 4);
    }),
    alias("lc", "number of the line", |scope, writer| {
        writer.hex_or_uint(scope.world.logged(scope.session.frontend).into(), 4);
    }),
    final_alias("ac", "connections of the process", |scope, writer| {
        writer.uint(scope.world.actconn().into())
    }),
    final_alias("fc", "connections of the frontend", |scope, writer| {
        writer.uint(
            scope
                .world
                .frontend_connections(scope.session.frontend)
                .into(),
        );
    }),
    final_alias("bc", "connections of the backend", |scope, writer| {
        writer.uint(scope.world.backend_connections(backend(scope)).into());
    }),
    final_alias("sc", "connections of the server", |scope, writer| {
        let server = scope.txn.and_then(|txn| txn.server);
        let connections = server.map_or(0, |server| {
            scope.world.server_connections(backend(scope), server)
        });
        writer.uint(connections.into());
    }),
    final_alias("rc", "retries, + after a redispatch", |scope, writer| {
        if scope.txn.is_some_and(|txn| txn.redispatched) {
            writer.remark(b'+');
        }
        writer.uint(scope.txn.map_or(0, |txn| txn.retries).into());
    }),
    final_alias("sq", "position in the server's queue", |scope, writer| {
        writer.uint(scope.txn.map_or(0, |txn| txn.server_queue).into());
    }),
    final_alias("bq", "position in the backend's queue", |scope, writer| {
        writer.uint(scope.txn.map_or(0, |txn| txn.backend_queue).into());
    }),
    alias("ST", "status", |scope, writer| {
        // An HTTP request without a response has no status. A stream that is not HTTP, or whose
        // request was not read, has 0.
        let status = |txn: &Txn| match txn.status {
            0 if txn.is_http && !txn.request_line.is_empty() => -1,
            status => i64::from(status),
        };
        writer.int(scope.txn.map_or(0, status))
    }),
    final_alias("B", "bytes to the client", |scope, writer| {
        plus_if_early(scope, writer);
        writer.uint(scope.txn.map_or(0, |txn| txn.bytes_out));
    }),
    final_alias("U", "bytes from the client", |scope, writer| {
        writer.uint(scope.txn.map_or(0, |txn| txn.bytes_in))
    }),
    // ---- termination
    final_alias("ts", "termination state", |scope, writer| {
        writer.raw(&termination(scope)[..2])
    }),
    final_alias("tsc", "termination state with cookies", |scope, writer| {
        writer.raw(&termination(scope))
    }),
    // ---- captures
    alias("CC", "captured request cookie", |scope, writer| {
        writer.text(
            scope
                .txn
                .and_then(|txn| txn.captured_request_cookie.get())
                .unwrap_or_default(),
        );
    }),
    alias("CS", "captured response cookie", |scope, writer| {
        writer.text(
            scope
                .txn
                .and_then(|txn| txn.captured_response_cookie.get())
                .unwrap_or_default(),
        );
    }),
    alias("hr", "captured request headers", |scope, writer| {
        captures(scope.txn.map(|txn| &txn.captured_request), writer);
    }),
    alias("hs", "captured response headers", |scope, writer| {
        captures(scope.txn.map(|txn| &txn.captured_response), writer);
    }),
    alias(
        "hrl",
        "captured request headers, one by one",
        |scope, writer| {
            capture_list(scope.txn.map(|txn| &txn.captured_request), writer);
        },
    ),
    alias(
        "hsl",
        "captured response headers, one by one",
        |scope, writer| {
            capture_list(scope.txn.map(|txn| &txn.captured_response), writer);
        },
    ),
    // ---- the request line as received
    alias("r", "request line", |scope, writer| {
        writer.quoted_encoded(line(scope).unwrap_or(BAD_REQUEST), &URL_UNSAFE);
    }),
    alias("HM", "method", |scope, writer| {
        part(scope, writer, |parts| Some(parts.method))
    }),
    alias("HU", "URI", |scope, writer| {
        part(scope, writer, |parts| parts.uri)
    }),
    alias("HP", "URI without its query", |scope, writer| {
        part(scope, writer, |parts| parts.uri.map(before_query))
    }),
    alias("HPO", "path alone", |scope, writer| {
        part(scope, writer, |parts| {
            parts
                .uri
                .map(|uri| before_query(path_of(uri).unwrap_or_default()))
        });
    }),
    alias("HQ", "query with its question mark", |scope, writer| {
        let query = match line(scope) {
            None => BAD_REQUEST,
            Some(line) => {
                let rest = memchr::memchr(b'?', line).map_or(&b""[..], |mark| &line[mark..]);
                &rest[..memchr::memchr2(b' ', b'\t', rest).unwrap_or(rest.len())]
            }
        };
        writer.quoted_encoded(query, &URL_UNSAFE);
    }),
    alias("HV", "version", |scope, writer| {
        part(scope, writer, |parts| {
            parts.uri.map(|_| parts.version.unwrap_or(b"HTTP/0.9"))
        });
    }),
];

/// The text for an invalid request.
const BAD_REQUEST: &[u8] = b"<BADREQ>";

// ---- dates

/// On a kept-alive connection, the start of the stream.
fn accepted(scope: &Scope<'_>) -> Now {
    scope
        .txn
        .map_or(scope.session.accepted, |txn| txn.timing.start)
}

fn requested(scope: &Scope<'_>) -> Now {
    scope
        .txn
        .and_then(|txn| txn.timing.request_start)
        .unwrap_or_else(|| accepted(scope))
}

fn seconds(at: Now) -> u64 {
    at.wall_ns / 1_000_000_000
}

fn date_ms(at: Now, scope: &Scope<'_>, writer: &mut Writer<'_>) {
    writer.short(|out| {
        push_log_date(out, seconds(at) as i64, scope.world.local_time());
        out.push(b'.');
        push_padded(out, at.wall_ns / 1_000_000 % 1_000, 3);
    });
}

fn date_zone(at: Now, zone: &Zone, writer: &mut Writer<'_>) {
    writer.short(|out| push_zoned_log_date(out, seconds(at) as i64, zone));
}

// ---- values that may still grow

fn plus_if_early(scope: &Scope<'_>, writer: &mut Writer<'_>) {
    if scope.txn.is_some_and(|txn| txn.log_early) {
        writer.remark(b'+');
    }
}

fn early(scope: &Scope<'_>, writer: &mut Writer<'_>, value: impl Fn(&Timers) -> i64) {
    plus_if_early(scope, writer);
    writer.int(value(&Timers::of(scope)));
}

// ---- names

fn proxy_name<'a>(scope: &Scope<'a>, proxy: u32) -> &'a [u8] {
    scope.world.proxy_name(proxy).as_bytes()
}

fn bind_id(scope: &Scope<'_>) -> u32 {
    scope
        .world
        .bind(scope.session.frontend, scope.session.bind)
        .map_or(0, |bind| bind.id)
}

fn termination(scope: &Scope<'_>) -> [u8; 4] {
    scope.txn.map_or(*b"PR--", Txn::termination_text)
}

// ---- captures

/// `{a|b}`; empty if the configuration captures nothing.
fn captures(slots: Option<&CaptureSlots>, writer: &mut Writer<'_>) {
    let Some(slots) = slots.filter(|slots| !slots.is_empty()) else {
        return;
    };
    writer.begin();
    writer.mark(b'{');
    for (index, slot) in slots.iter().enumerate() {
        if index > 0 {
            writer.mark(b'|');
        }
        writer.encoded(slot.unwrap_or_default(), b'#', &HEADER_UNSAFE);
    }
    writer.mark(b'}');
    writer.end();
}

/// `a b -`; empty if the configuration captures nothing.
fn capture_list(slots: Option<&CaptureSlots>, writer: &mut Writer<'_>) {
    let Some(slots) = slots.filter(|slots| !slots.is_empty()) else {
        return;
    };
    writer.begin_list();
    for (index, slot) in slots.iter().enumerate() {
        if index > 0 {
            writer.next();
        }
        writer.begin();
        match slot {
            None if !writer.flags.has(Flags::QUOTE) => writer.mark(b'-'),
            slot => writer.encoded(slot.unwrap_or_default(), b'#', &HEADER_UNSAFE),
        }
        writer.end();
    }
    writer.end_list();
}

// ---- the request line

/// The request line, if it was valid.
fn line<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    scope
        .txn
        .map(|txn| &txn.request_line[..])
        .filter(|line| !line.is_empty())
}

/// Parts of a request line.
struct Parts<'a> {
    method: &'a [u8],
    uri: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn of(line: &'a [u8]) -> Option<Parts<'a>> {
        let (method, rest) = cut_blank(line);
        let rest = rest?;
        let (uri, version) = cut_blank(rest);
        Some(Parts {
            method,
            uri: Some(uri),
            version: version.filter(|version| !version.is_empty()),
        })
    }
}

/// The text before the first blanks, and after them.
fn cut_blank(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(at) = memchr::memchr2(b' ', b'\t', text) else {
        return (text, None);
    };
    let blanks = text[at..]
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    (&text[..at], Some(&text[at + blanks..]))
}

fn part(
    scope: &Scope<'_>,
    writer: &mut Writer<'_>,
    get: impl for<'a> Fn(Parts<'a>) -> Option<&'a [u8]>,
) {
    let text = line(scope)
        .and_then(Parts::of)
        .and_then(get)
        .unwrap_or(BAD_REQUEST);
    writer.quoted_encoded(text, &URL_UNSAFE);
}

fn before_query(uri: &[u8]) -> &[u8] {
    &uri[..memchr::memchr(b'?', uri).unwrap_or(uri.len())]
}
