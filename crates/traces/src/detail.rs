//! One trace with all its data.

use std::ops::Range;

use otlp::scan::{Attributes, RESOURCE_ATTRIBUTES, Span, events, span};
use otlp::wire::{Value, fields, last_bytes};
use syntax::hex;

use crate::answer::{EventDetail, Link, Scope, SpanDetail, Status, TraceDetail};
use crate::intern::part;
use crate::value::{attributes, between_ms, duration_ms, text, time_ms};

/// `Span.links`
const LINKS: u32 = 13 << 3 | 2;
/// `Link.attributes`
const LINK_ATTRIBUTES: u32 = 4 << 3 | 2;
/// `InstrumentationScope.name`, `.version`
const SCOPE_NAME: u32 = 1 << 3 | 2;
const SCOPE_VERSION: u32 = 2 << 3 | 2;

/// A trace, copied out of the store.
pub(crate) struct Copy {
    pub id: [u8; 16],
    pub kept: Option<bool>,
    pub policy: Option<String>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub left_out: u64,
    pub bytes: Vec<u8>,
    /// The range of each span, and the index of its header.
    pub spans: Vec<(Range<usize>, usize)>,
    pub headers: Vec<Vec<u8>>,
}

/// The answer for a trace.
pub(crate) fn detail(copy: &Copy) -> TraceDetail {
    let mut spans: Vec<(u64, SpanDetail)> = copy
        .spans
        .iter()
        .filter_map(|(range, header)| {
            let message = copy.bytes.get(range.clone())?;
            let header = copy.headers.get(*header)?;
            // Spans that cannot be parsed were not stored.
            let span = span(message, &mut ()).ok()?;
            Some((span.start_ns, span_detail(&span, header, copy.start_ns)))
        })
        .collect();
    spans.sort_by_key(|(start_ns, _)| *start_ns);
    TraceDetail {
        id: hex::text(&copy.id),
        kept: copy.kept,
        policy: copy.policy.clone(),
        start_ms: time_ms(copy.start_ns),
        duration_ms: duration_ms(copy.end_ns.saturating_sub(copy.start_ns)),
        left_out: copy.left_out,
        spans: spans.into_iter().map(|(_, span)| span).collect(),
    }
}

fn span_detail(span: &Span<'_>, header: &[u8], start_ns: u64) -> SpanDetail {
    let (resource, scope) = (part(header, 0), part(header, 1));
    let resource = attributes(Attributes::new(resource, RESOURCE_ATTRIBUTES));
    let service = resource.get("service.name").and_then(|name| name.as_str());
    SpanDetail {
        id: hex::text(span.span_id),
        parent: (!span.is_root()).then(|| hex::text(span.parent_span_id)),
        service: service.unwrap_or_default().to_owned(),
        name: text(span.name),
        kind: kind(span.kind),
        start_ms: time_ms(span.start_ns),
        offset_ms: between_ms(start_ns, span.start_ns),
        duration_ms: duration_ms(span.end_ns.saturating_sub(span.start_ns)),
        status: Status {
            code: match span.status {
                1 => "ok",
                2 => "error",
                _ => "unset",
            },
            message: text(span.status_message()),
        },
        attributes: attributes(span.attributes()),
        events: events(span)
            .map(|event| EventDetail {
                name: text(event.name),
                time_ms: time_ms(event.time_ns),
                offset_ms: between_ms(start_ns, event.time_ns),
                attributes: attributes(event.attributes()),
            })
            .collect(),
        links: links(span),
        resource,
        scope: Scope {
            name: text(last_bytes(scope, SCOPE_NAME)),
            version: text(last_bytes(scope, SCOPE_VERSION)),
        },
        trace_state: text(span.trace_state),
    }
}

fn links(span: &Span<'_>) -> Vec<Link> {
    let links = fields(span.message).filter_map(|field| match (field.key, field.value) {
        (LINKS, Value::Bytes(message)) => Some(message),
        _ => None,
    });
    let link = |message| Link {
        trace: hex::text(last_bytes(message, 1 << 3 | 2)),
        span: hex::text(last_bytes(message, 2 << 3 | 2)),
        attributes: attributes(Attributes::new(message, LINK_ATTRIBUTES)),
    };
    links.map(link).collect()
}

fn kind(kind: i32) -> &'static str {
    match kind {
        1 => "internal",
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "unspecified",
    }
}
