//! Facts of the stream: timers, counters, termination state, captures.

use super::{
    Fetch, INTERNAL, REQUEST, REQUEST_HEAD, REQUEST_TOTALS, RESPONSE, SERVER_CONNECTION, TOTALS,
    TRANSACTION, fetch,
};
use crate::args::ArgKind::Int;
use crate::args::{Arg, NONE, int_at, spec};
use crate::captured::CaptureSlot;
use crate::cast::written;
use crate::timers::Timers;
use crate::{Kind, RulePlace, Scope, Txn, Value, Waits};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "http_first_req",
        NONE,
        Kind::Bool,
        &REQUEST,
        "whether it is the connection's first request",
        |_, scope, _| Some(Value::Bool(scope.txn?.first_request)),
    ),
    fetch(
        "unique-id",
        NONE,
        Kind::Str,
        &super::CONSTANT,
        "the unique id",
        |_, scope, _| crate::unique_id::unique_id(scope).map(Value::text),
    ),
    fetch(
        "txn.id32",
        NONE,
        Kind::Int,
        &INTERNAL,
        "the stream's number (%rt)",
        |_, scope, _| Some(Value::Int((scope.txn?.id & 0xffff_ffff) as i64)),
    ),
    fetch(
        "txn.status",
        NONE,
        Kind::Int,
        &RESPONSE,
        "the status sent to the client",
        |_, scope, _| {
            let txn = scope.txn.filter(|txn| !txn.unread)?;
            Some(Value::Int(txn.status.into()))
        },
    ),
    fetch(
        "server_status",
        NONE,
        Kind::Int,
        &RESPONSE,
        "the status received from the server",
        |_, scope, _| {
            Some(scope.txn?.server_status)
                .filter(|status| *status > 0)
                .map(|status| Value::Int(status.into()))
        },
    ),
    fetch(
        "txn.conn_retries",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "connection retries",
        |_, scope, _| Some(Value::Int(scope.txn?.retries.into())),
    ),
    fetch(
        "txn.redispatched",
        NONE,
        Kind::Bool,
        &SERVER_CONNECTION,
        "whether another server was taken",
        |_, scope, _| Some(Value::Bool(scope.txn?.redispatched)),
    ),
    fetch(
        "txn.sess_term_state",
        NONE,
        Kind::Str,
        &INTERNAL,
        "the termination state (%ts)",
        |_, scope, _| {
            let txn = scope.txn?;
            Some(Value::Str(written(|out| {
                out.extend_from_slice(&txn.termination_text()[..2])
            })))
        },
    ),
    fetch(
        "last_rule_file",
        NONE,
        Kind::Str,
        &INTERNAL,
        "the file of the final rule that decided last",
        |_, scope, _| {
            let rule = scope.txn?.last_rule?;
            Some(Value::text(scope.world.file_name(rule.file)))
        },
    ),
    fetch(
        "last_rule_line",
        NONE,
        Kind::Int,
        &INTERNAL,
        "the line of the final rule that decided last",
        |_, scope, _| Some(Value::Int(scope.txn?.last_rule?.line.into())),
    ),
    fetch(
        "last_entity",
        NONE,
        Kind::Str,
        &INTERNAL,
        "file and line of the final rule that decided last",
        |_, scope, _| Some(place(scope, scope.txn?.last_rule?)),
    ),
    fetch(
        "waiting_entity",
        NONE,
        Kind::Str,
        &INTERNAL,
        "what the stream waited for when its time was over",
        |_, scope, _| {
            Some(match scope.txn?.waits? {
                Waits::Rule(rule) => place(scope, rule),
                Waits::Body => Value::text("http-buffer-request"),
            })
        },
    ),
    fetch(
        "term_events",
        NONE,
        Kind::Str,
        &INTERNAL,
        "events that ended the parts of a stream: none is recorded, which is a dash",
        |_, _, _| Some(Value::text("{-,-,-,-,-,-,-}")),
    ),
    fetch(
        "internal.strm.is_htx",
        NONE,
        Kind::Bool,
        &INTERNAL,
        "whether the stream is handled as HTTP",
        |_, scope, _| Some(Value::Bool(scope.txn?.is_http)),
    ),
    fetch(
        "prio_class",
        NONE,
        Kind::Int,
        &INTERNAL,
        "the priority class of the stream in a queue",
        |_, scope, _| Some(Value::Int(scope.txn?.prio_class.into())),
    ),
    fetch(
        "prio_offset",
        NONE,
        Kind::Int,
        &INTERNAL,
        "the priority offset of the stream in a queue",
        |_, scope, _| Some(Value::Int(scope.txn?.prio_offset.into())),
    ),
    fetch(
        "txn.timer.total",
        NONE,
        Kind::Int,
        &TRANSACTION,
        "%Ta",
        |_, scope, _| timer(scope, Timers::active),
    ),
    fetch(
        "txn.timer.user",
        NONE,
        Kind::Int,
        &TRANSACTION,
        "%Tu",
        |_, scope, _| timer(scope, Timers::user),
    ),
    fetch(
        "req.timer.idle",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "%Ti",
        |_, scope, _| timer(scope, |timers| timers.idle),
    ),
    fetch(
        "req.timer.tq",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "%Tq",
        |_, scope, _| timer(scope, |timers| timers.request),
    ),
    fetch(
        "req.timer.hdr",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "%TR",
        |_, scope, _| timer(scope, Timers::request_head),
    ),
    fetch(
        "req.timer.queue",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "%Tw",
        |_, scope, _| timer(scope, Timers::waited),
    ),
    fetch(
        "bc.timer.connect",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "%Tc",
        |_, scope, _| timer(scope, Timers::connecting),
    ),
    fetch(
        "res.timer.hdr",
        NONE,
        Kind::Int,
        &super::RESPONSE_HEAD,
        "%Tr",
        |_, scope, _| timer(scope, Timers::response_head),
    ),
    fetch(
        "res.timer.data",
        NONE,
        Kind::Int,
        &TOTALS,
        "%Td",
        |_, scope, _| timer(scope, |timers| timers.data(true)),
    ),
    fetch(
        "bytes_in",
        NONE,
        Kind::Int,
        &REQUEST_TOTALS,
        "bytes from the client (%U)",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_in as i64)),
    ),
    fetch(
        "req.bytes_in",
        NONE,
        Kind::Int,
        &REQUEST_TOTALS,
        "bytes from the client (%U)",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_in as i64)),
    ),
    fetch(
        "bytes_out",
        NONE,
        Kind::Int,
        &TOTALS,
        "bytes from the server",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_from_server as i64)),
    ),
    fetch(
        "res.bytes_in",
        NONE,
        Kind::Int,
        &TOTALS,
        "bytes from the server",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_from_server as i64)),
    ),
    fetch(
        "req.bytes_out",
        NONE,
        Kind::Int,
        &REQUEST_TOTALS,
        "bytes to the server",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_to_server as i64)),
    ),
    fetch(
        "res.bytes_out",
        NONE,
        Kind::Int,
        &TOTALS,
        "bytes to the client (%B)",
        |_, scope, _| Some(Value::Int(scope.txn?.bytes_out as i64)),
    ),
    fetch(
        "bc_be_queue",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "%bq",
        |_, scope, _| Some(Value::Int(scope.txn?.backend_queue.into())),
    ),
    fetch(
        "bc_srv_queue",
        NONE,
        Kind::Int,
        &SERVER_CONNECTION,
        "%sq",
        |_, scope, _| Some(Value::Int(scope.txn?.server_queue.into())),
    ),
    fetch(
        "capture.req.hdr",
        spec(1, &[Int]),
        Kind::Str,
        &REQUEST,
        "a captured request header",
        |args, scope, _| captured(args, scope, false),
    )
    .checked(capture_slot),
    fetch(
        "capture.res.hdr",
        spec(1, &[Int]),
        Kind::Str,
        &RESPONSE,
        "a captured response header",
        |args, scope, _| captured(args, scope, true),
    )
    .checked(capture_slot),
    fetch(
        "capture.req.method",
        NONE,
        Kind::Str,
        &REQUEST,
        "the method as received",
        |_, scope, _| request_line(scope.txn?).map(|(method, _, _)| Value::text(method)),
    ),
    fetch(
        "capture.req.uri",
        NONE,
        Kind::Str,
        &REQUEST,
        "path and query as received",
        |_, scope, _| {
            let (_, uri, _) = request_line(scope.txn?)?;
            path_of(uri).map(Value::text)
        },
    ),
    fetch(
        "capture.req.ver",
        NONE,
        Kind::Str,
        &REQUEST,
        "HTTP/1.0 or HTTP/1.1",
        |_, scope, _| request_line(scope.txn?).map(|(_, _, version)| Value::text(version)),
    ),
    fetch(
        "capture.res.ver",
        NONE,
        Kind::Str,
        &REQUEST,
        "HTTP/1.0, HTTP/1.1 or HTTP/2.0",
        |_, scope, _| Some(Value::text(scope.response?.version().as_str())),
    ),
];

/// `file:line`
fn place<'a>(scope: &Scope<'a>, rule: RulePlace) -> Value<'a> {
    Value::Str(written(|out| {
        out.extend_from_slice(scope.world.file_name(rule.file).as_bytes());
        out.push(b':');
        crate::text::push_uint(out, rule.line.into());
    }))
}

fn timer<'a>(scope: &Scope<'_>, read: impl Fn(&Timers) -> i64) -> Option<Value<'a>> {
    scope.txn?;
    Some(Value::Int(read(&Timers::of(scope))))
}

fn capture_slot(args: &mut [Arg]) -> Result<(), String> {
    match int_at(args, 0) {
        Some(..0) => Err("capture identifier must be >= 0".into()),
        _ => Ok(()),
    }
}

fn captured<'a>(args: &[Arg], scope: &Scope<'a>, of_response: bool) -> Option<Value<'a>> {
    let index = usize::try_from(int_at(args, 0)?).ok()?;
    let txn = scope.txn?;
    if let Some(text) = txn.captured.get(CaptureSlot { of_response, index }) {
        return Some(Value::Str(text));
    }
    let slots = if of_response {
        &txn.captured_response
    } else {
        &txn.captured_request
    };
    slots.get(index).map(Value::text)
}

/// Method, URI and version of the request line as received.
fn request_line(txn: &Txn) -> Option<(&[u8], &[u8], &[u8])> {
    let line = &txn.request_line[..];
    let space = memchr::memchr(b' ', line)?;
    let rest = &line[space + 1..];
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    Some((
        &line[..space],
        &rest[..end],
        rest.get(end + 1..).unwrap_or_default(),
    ))
}

/// Path and query of a request target. An absolute target may have a query without a path.
pub(crate) fn path_of(uri: &[u8]) -> Option<&[u8]> {
    if uri.first() == Some(&b'/') {
        return Some(uri);
    }
    let scheme = memchr::memmem::find(uri, b"://")?;
    let authority = &uri[scheme + 3..];
    memchr::memchr2(b'/', b'?', authority).map(|end| &authority[end..])
}

impl Txn {
    /// The termination state, with `-` for unset characters.
    pub(crate) fn termination_text(&self) -> [u8; 4] {
        self.termination
            .map(|byte| if byte == 0 { b'-' } else { byte })
    }
}
