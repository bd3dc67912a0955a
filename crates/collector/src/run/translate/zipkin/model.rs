//! A span of version 2, and what becomes of it.

use std::borrow::Cow;
use std::net::IpAddr;

use super::keys::{RESOURCE, SERVICE_NAME_SOURCE, START_ABSENT};
use super::values;
use crate::run::translate::micros_to_ns;
use crate::run::translate::request::Request;
use crate::run::translate::span::{self, Any, Attributes, Code, Event, Kind, Link};

/// A span as Zipkin has it.
#[derive(Debug, Default)]
pub struct Span<'a> {
    pub trace_id: [u8; 16],
    pub id: [u8; 8],
    /// Zeros: none.
    pub parent_id: [u8; 8],
    pub kind: Kind,
    pub name: Cow<'a, str>,
    /// 0: none.
    pub timestamp_us: u64,
    pub duration_us: u64,
    pub local: Endpoint<'a>,
    pub remote: Endpoint<'a>,
    pub annotations: Vec<(u64, Cow<'a, str>)>,
    /// Texts; a key may come more than once, then the last one counts.
    pub tags: Attributes<'a>,
}

/// One side of a span.
#[derive(Debug, Default)]
pub struct Endpoint<'a> {
    pub service: Cow<'a, str>,
    pub v4: Option<IpAddr>,
    pub v6: Option<IpAddr>,
    /// 0: none.
    pub port: u16,
}

/// Links of a span, at most; further ones stay tags.
const LINKS_MAX: u32 = 128;

impl<'a> Span<'a> {
    /// Adds it to a request.
    pub fn translate(mut self, parse_tags: bool, request: &mut Request) {
        self.tags.unique();
        let resource = self.resource();
        let scope = self.scope();
        let mut span = span::Span {
            trace_id: self.trace_id,
            span_id: self.id,
            name: std::mem::take(&mut self.name),
            start_ns: micros_to_ns(self.timestamp_us),
            end_ns: micros_to_ns(self.timestamp_us.saturating_add(self.duration_us)),
            ..span::Span::default()
        };
        if self.parent_id != self.id {
            span.parent_id = self.parent_id;
        }
        if let Some(state) = self.tags.take("w3c.tracestate") {
            span.trace_state = state.into_text();
        }
        span.kind = self.kind();
        self.status(&mut span);
        span.links = self.links();
        span.events = self.annotations.drain(..).map(event).collect();
        span.attributes = self.attributes(parse_tags);
        request.add(&resource.resource(), &scope, &span);
    }

    fn resource(&mut self) -> Attributes<'a> {
        let mut resource = Attributes::default();
        let service = std::mem::take(&mut self.local.service);
        if !service.is_empty() {
            let source = self.tags.take(SERVICE_NAME_SOURCE).map(Any::into_text);
            let source = source.filter(|source| !source.is_empty());
            let source = source.unwrap_or(Cow::Borrowed("service.name"));
            resource.add(source, Any::Text(service));
        }
        let is_of_resource = |(key, _): &mut (Cow<'a, str>, Any<'a>)| {
            RESOURCE.binary_search_by(|own| (**own).cmp(key)).is_ok()
        };
        resource
            .0
            .extend(self.tags.0.extract_if(.., is_of_resource));
        resource.unique();
        resource
    }

    fn scope(&mut self) -> Vec<u8> {
        let mut tag = |key| self.tags.take(key).map(Any::into_text).unwrap_or_default();
        let (name, version) = (tag("otel.library.name"), tag("otel.library.version"));
        if name.is_empty() {
            Vec::new()
        } else {
            span::scope(&name, &version)
        }
    }

    fn kind(&mut self) -> Kind {
        if self.kind != Kind::Unspecified {
            return self.kind;
        }
        match self.tags.take("span.kind") {
            Some(kind) if kind.as_text() == "internal" => Kind::Internal,
            _ => Kind::Unspecified,
        }
    }

    fn status(&mut self, span: &mut span::Span<'a>) {
        if let Some(code) = self.tags.take("otel.status_code") {
            span.status = status_code(code.as_text());
            let message = self.tags.take("otel.status_description");
            span.status_message = message.map(Any::into_text).unwrap_or_default();
        }
        if self.tags.get("error").map(Any::as_text) == Some("true") {
            self.tags.take("error");
            span.status = Code::Error;
        }
    }

    /// The links that the Collector's exporter wrote as tags `otlp.link.0` and so on.
    fn links(&mut self) -> Vec<Link<'static>> {
        let mut links = Vec::new();
        for number in 0..LINKS_MAX {
            let key = format!("otlp.link.{number}");
            let Some(text) = self.tags.get(&key).map(Any::as_text) else {
                break;
            };
            if let Some(link) = link(text) {
                links.push(link);
                self.tags.take(&key);
            }
        }
        links
    }

    fn attributes(&mut self, parse_tags: bool) -> Attributes<'a> {
        let mut attributes = Attributes::default();
        for (key, text) in self.tags.0.drain(..) {
            attributes.add(key, values::value(text.into_text(), parse_tags));
        }
        self.local
            .add("net.host.ip", "net.host.port", &mut attributes);
        let peer = std::mem::take(&mut self.remote.service);
        if !peer.is_empty() {
            attributes.put("peer.service", Any::Text(peer));
        }
        self.remote
            .add("net.peer.ip", "net.peer.port", &mut attributes);
        if self.timestamp_us == 0 {
            attributes.put(START_ABSENT, Any::Bool(true));
        }
        attributes
    }
}

impl Endpoint<'_> {
    /// Adds its address and port as attributes; an address of version 6 goes before one of version
    /// 4.
    fn add(&self, ip_key: &'static str, port_key: &'static str, attributes: &mut Attributes<'_>) {
        if let Some(ip) = self.v6.or(self.v4) {
            let text = ip.to_canonical().to_string();
            attributes.put(ip_key, Any::Text(text.into()));
        }
        if self.port > 0 {
            attributes.put(port_key, Any::Int(i64::from(self.port)));
        }
    }
}

/// `OK` and the like, also with `STATUS_CODE_` before it.
pub fn status_code(text: &str) -> Code {
    let is = |word: &str| {
        let rest = text.strip_prefix("STATUS_CODE_").unwrap_or(text);
        rest.eq_ignore_ascii_case(word)
    };
    match text {
        _ if is("ok") => Code::Ok,
        _ if is("error") => Code::Error,
        _ => Code::Unset,
    }
}

/// `trace id|span id|tracestate|attributes|dropped attributes`
fn link(text: &str) -> Option<Link<'static>> {
    let mut parts = text.splitn(4, '|');
    let (trace, span, state) = (parts.next()?, parts.next()?, parts.next()?);
    let (attributes, dropped_attributes) = values::attributes_and_count(parts.next()?)?;
    Some(Link {
        trace_id: values::trace_id(trace).ok()?,
        span_id: values::id(span).ok()?,
        trace_state: state.to_owned().into(),
        attributes,
        dropped_attributes,
    })
}

/// An annotation: a name, or `name|attributes|dropped attributes`.
fn event((time_us, text): (u64, Cow<'_, str>)) -> Event<'_> {
    let mut event = Event {
        time_ns: micros_to_ns(time_us),
        ..Event::default()
    };
    let parts = text.split_once('|');
    let parts = parts.and_then(|(name, rest)| Some((name, values::attributes_and_count(rest)?)));
    match parts {
        Some((name, (attributes, dropped))) => {
            event.name = name.to_owned().into();
            event.attributes = attributes;
            event.dropped_attributes = dropped;
        }
        None => event.name = text,
    }
    event
}
