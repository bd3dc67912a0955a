//! Jaeger's spans, however they came, and what becomes of them.

use std::borrow::Cow;

use super::status;
use crate::run::translate::request::Request;
use crate::run::translate::span::{self, Any, Attributes, Event, Kind, Link};

/// A span.
#[derive(Debug, Default)]
pub struct Span<'a> {
    pub trace_id: [u8; 16],
    pub id: [u8; 8],
    /// Zeros: none, or a reference tells it.
    pub parent_id: [u8; 8],
    pub name: Cow<'a, str>,
    pub references: Vec<Reference>,
    pub flags: u32,
    pub start_ns: u64,
    pub duration_ns: i64,
    pub tags: Attributes<'a>,
    pub logs: Vec<Log<'a>>,
}

/// A reference to another span.
#[derive(Debug, Default, PartialEq)]
pub struct Reference {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub follows_from: bool,
}

/// Something that happened at a time.
#[derive(Debug, Default)]
pub struct Log<'a> {
    pub time_ns: u64,
    pub fields: Attributes<'a>,
}

/// Who sends spans.
#[derive(Debug, Default)]
pub struct Process<'a> {
    pub service: Cow<'a, str>,
    pub tags: Attributes<'a>,
}

/// What the Collector calls a service without a name, where it writes Jaeger.
const NO_SERVICE: &str = "OTLPResourceNoServiceName";
/// The flag of a span that is sampled; OTLP's is the same.
const SAMPLED: u32 = 1;
/// The attribute of a link that says what the reference was.
const REFERENCE_TYPE: &str = "opentracing.ref_type";

impl Process<'_> {
    /// The message `Resource`.
    pub fn resource(mut self) -> Vec<u8> {
        let mut attributes = Attributes::default();
        if self.service == NO_SERVICE {
            return Vec::new();
        }
        if !self.service.is_empty() {
            attributes.add("service.name", Any::Text(self.service));
        }
        attributes.0.append(&mut self.tags.0);
        attributes.unique();
        if attributes.get("host.name").is_none()
            && let Some(host) = attributes.take("hostname")
        {
            attributes.add("host.name", host);
        }
        const EXPORTER: &str = "opencensus.exporterversion";
        if attributes.get(EXPORTER).is_none()
            && let Some(version) = attributes.take("jaeger.version")
        {
            let version = format!("Jaeger-{}", version.as_text());
            attributes.add(EXPORTER, Any::Text(version.into()));
        }
        attributes.resource()
    }
}

/// A tag of a type that there is not.
pub fn unknown_tag(number: u64) -> Any<'static> {
    Any::Text(format!("<Unknown Jaeger TagType \"{number}\">").into())
}

impl<'a> Span<'a> {
    /// Nothing of it is set.
    fn is_blank(&self) -> bool {
        let has_id = self.trace_id != [0; 16] || self.id != [0; 8];
        !has_id && self.name.is_empty() && self.tags.0.is_empty() && self.logs.is_empty()
    }

    /// The scope that its tags name; they are its tags no more.
    pub fn take_scope(&mut self) -> Vec<u8> {
        for [name, version] in [
            ["otel.scope.name", "otel.scope.version"],
            ["otel.library.name", "otel.library.version"],
        ] {
            if let Some(name) = self.tags.take(name) {
                let version = self.tags.take(version).map(Any::into_text);
                return span::scope(name.as_text(), &version.unwrap_or_default());
            }
        }
        Vec::new()
    }

    /// The `tracestate` that a tag tells; it is a tag no more.
    pub fn take_trace_state(&mut self) -> Cow<'a, str> {
        let state = self.tags.take("w3c.tracestate");
        state.map(Any::into_text).unwrap_or_default()
    }

    /// Adds it to a request.
    pub fn translate(
        mut self,
        (resource, scope): (&[u8], &[u8]),
        trace_state: Cow<'a, str>,
        request: &mut Request,
    ) {
        if self.is_blank() {
            return;
        }
        let parent_id = self.parent();
        let mut attributes = std::mem::take(&mut self.tags);
        attributes.unique();
        let kind = attributes.take("span.kind");
        let kind = kind.map_or(Kind::Unspecified, |kind| kind_of(kind.as_text()));
        let (status, status_message) = status::take(&mut attributes, kind);
        let span = span::Span {
            trace_id: self.trace_id,
            span_id: self.id,
            trace_state,
            parent_id,
            name: self.name,
            kind,
            start_ns: self.start_ns,
            end_ns: self.start_ns.saturating_add_signed(self.duration_ns),
            attributes,
            events: self.logs.into_iter().map(event).collect(),
            links: links(&self.references, parent_id),
            status,
            status_message,
            flags: self.flags & SAMPLED,
        };
        request.add(resource, scope, &span);
    }

    /// The parent, or else a reference to a span of the same trace: to one whose child it is before
    /// one that it follows.
    fn parent(&self) -> [u8; 8] {
        if self.parent_id != [0; 8] {
            return self.parent_id;
        }
        let of_trace = || {
            let references = self.references.iter();
            references.filter(|one| one.trace_id == self.trace_id)
        };
        let parent = of_trace().find(|one| !one.follows_from);
        let parent = parent.or_else(|| of_trace().next());
        parent.map(|one| one.span_id).unwrap_or_default()
    }
}

fn kind_of(text: &str) -> Kind {
    match text {
        "client" => Kind::Client,
        "server" => Kind::Server,
        "producer" => Kind::Producer,
        "consumer" => Kind::Consumer,
        "internal" => Kind::Internal,
        _ => Kind::Unspecified,
    }
}

fn event(log: Log<'_>) -> Event<'_> {
    let mut attributes = log.fields;
    attributes.unique();
    let name = attributes.take("event").map(Any::into_text);
    Event {
        time_ns: log.time_ns,
        name: name.unwrap_or_default(),
        attributes,
        dropped_attributes: 0,
    }
}

/// References but for that to the parent.
fn links(references: &[Reference], parent_id: [u8; 8]) -> Vec<Link<'static>> {
    let is_parent = |one: &&Reference| one.span_id == parent_id && !one.follows_from;
    let others = references.iter().filter(|one| !is_parent(one));
    let link = |one: &Reference| {
        let mut attributes = Attributes::default();
        let kind = if one.follows_from {
            "follows_from"
        } else {
            "child_of"
        };
        attributes.add(REFERENCE_TYPE, Any::Text(kind.into()));
        Link {
            trace_id: one.trace_id,
            span_id: one.span_id,
            attributes,
            ..Link::default()
        }
    };
    others.map(link).collect()
}
