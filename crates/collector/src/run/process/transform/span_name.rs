//! `set_semconv_span_name`: the name that the semantic conventions give a span (semantic
//! conventions for HTTP, RPC, databases and messaging, "Span name").

use otlp::scan::{Any, Span};
use otlp::text::text_of;
use otlp::write;
use ottl::{Failure, Message};

use super::super::edit::replace_field;
use super::apply::Applied;
use super::map;

/// `Span.name`
const NAME: u32 = 5;
/// `Span.attributes`
const ATTRIBUTES: u32 = 9 << 3 | 2;
/// `Span.SpanKind`
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const PRODUCER: i32 = 4;
const CONSUMER: i32 = 5;

/// Appends a span with its conventional name; `original` is the attribute that gets the name that it
/// had. Nothing where the name stays.
///
/// # Errors
/// The span's attributes are malformed.
pub fn apply(
    span: &Span<'_>,
    original: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    let name = match conventional(span) {
        Some(name) if name != span.name => name,
        _ => return Ok(Applied::Nothing),
    };
    let mut renamed = Vec::with_capacity(span.message.len() + name.len());
    replace_field(span.message, NAME, &mut renamed, |out| {
        write::bytes(out, NAME, &name);
    });
    match original {
        Some(key) => {
            let mut any = Vec::new();
            write::bytes(&mut any, 1, span.name);
            map::set(&renamed, ATTRIBUTES, key, &any, out)?;
        }
        None => out.extend_from_slice(&renamed),
    }
    Ok(Applied::Changed(Message::Span))
}

/// The name by the first convention that the span follows.
fn conventional(span: &Span<'_>) -> Option<Vec<u8>> {
    match span.kind {
        SERVER => http(span, "http.route")
            .or_else(|| rpc(span))
            .or_else(|| messaging(span)),
        CLIENT => http(span, "url.template")
            .or_else(|| rpc(span))
            .or_else(|| database(span))
            .or_else(|| messaging(span)),
        PRODUCER | CONSUMER => messaging(span),
        _ => None,
    }
}

/// The text of the first of some attributes that is there.
fn first(span: &Span<'_>, names: &[&str]) -> Option<Vec<u8>> {
    let found = names
        .iter()
        .find_map(|name| span.attributes().get(name.as_bytes()));
    found.map(text_of)
}

fn joined(left: &[u8], separator: &[u8], right: &[u8]) -> Vec<u8> {
    [left, separator, right].concat()
}

fn http(span: &Span<'_>, target: &str) -> Option<Vec<u8>> {
    let method = first(span, &["http.request.method", "http.method"])?;
    Some(match first(span, &[target]) {
        Some(target) => joined(&method, b" ", &target),
        None => method,
    })
}

fn rpc(span: &Span<'_>) -> Option<Vec<u8>> {
    let system = first(span, &["rpc.system.name", "rpc.system"])?;
    let method = first(span, &["rpc.method", "rpc.grpc.method"]);
    let service = first(span, &["rpc.service", "rpc.grpc.service"]);
    Some(match (service, method) {
        (Some(service), Some(method)) => joined(&service, b"/", &method),
        (None, Some(method)) => method,
        (Some(service), None) => joined(&service, b"/", b"*"),
        (None, None) => system,
    })
}

fn database(span: &Span<'_>) -> Option<Vec<u8>> {
    let system = first(span, &["db.system.name", "db.system"])?;
    if let Some(summary) = first(span, &["db.query.summary"]) {
        return Some(summary);
    }
    let not_empty = |text: &Vec<u8>| !text.is_empty();
    let operation = first(span, &["db.operation.name", "db.operation"]).filter(not_empty);
    let target = database_target(span).filter(not_empty);
    Some(match (operation, target) {
        (Some(operation), Some(target)) => joined(&operation, b" ", &target),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => system,
    })
}

fn database_target(span: &Span<'_>) -> Option<Vec<u8>> {
    let namespace = first(span, &["db.namespace", "db.name"]).filter(|text| !text.is_empty());
    match (
        namespace,
        first(span, &["db.collection.name", "db.stored_procedure.name"]),
    ) {
        (Some(namespace), Some(object)) => Some(joined(&namespace, b".", &object)),
        (None, Some(one)) | (Some(one), None) => Some(one),
        (None, None) => server(span),
    }
}

fn server(span: &Span<'_>) -> Option<Vec<u8>> {
    let address = first(span, &["server.address"])?;
    Some(match first(span, &["server.port"]) {
        Some(port) => joined(&address, b":", &port),
        None => address,
    })
}

fn messaging(span: &Span<'_>) -> Option<Vec<u8>> {
    let system = first(span, &["messaging.system"])?;
    let operation = first(span, &["messaging.operation.name", "messaging.operation"]);
    let destination = messaging_destination(span).filter(|text| !text.is_empty());
    Some(match (operation, destination) {
        (Some(operation), Some(destination)) => joined(&operation, b" ", &destination),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => system,
    })
}

fn messaging_destination(span: &Span<'_>) -> Option<Vec<u8>> {
    let is_set = |name: &str| span.attributes().get(name.as_bytes()) == Some(Any::Bool(true));
    if is_set("messaging.destination.temporary") {
        return Some(b"(temporary)".to_vec());
    }
    if is_set("messaging.destination.anonymous") {
        return Some(b"(anonymous)".to_vec());
    }
    let names = [
        "messaging.destination.template",
        "messaging.destination.name",
        "messaging.destination",
    ];
    first(span, &names).or_else(|| server(span))
}
