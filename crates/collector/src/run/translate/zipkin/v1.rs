//! A span of version 1: what it means stands in its annotations.

use std::borrow::Cow;

use super::json::{Endpoint, Parts, Text, text};
use super::keys::START_ABSENT;
use super::v1_status::Status;
use super::values;
use crate::run::translate::micros_to_ns;
use crate::run::translate::request::Request;
use crate::run::translate::span::{self, Any, Attributes, Event, Kind};

/// A span in JSON.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span<'a> {
    #[serde(borrow)]
    trace_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    parent_id: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    timestamp: Option<u64>,
    duration: Option<u64>,
    #[serde(borrow)]
    annotations: Option<Parts<Annotation<'a>>>,
    #[serde(borrow)]
    binary_annotations: Option<Parts<BinaryAnnotation<'a>>>,
}

#[derive(serde::Deserialize, Debug)]
struct Annotation<'a> {
    timestamp: Option<u64>,
    #[serde(borrow)]
    value: Option<Text<'a>>,
    #[serde(borrow)]
    endpoint: Option<Endpoint<'a>>,
}

#[derive(serde::Deserialize, Debug)]
struct BinaryAnnotation<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    /// A text; `true` for the address of a peer.
    value: Option<serde_json::Value>,
    #[serde(borrow)]
    endpoint: Option<Endpoint<'a>>,
}

/// The service of a span that does not tell it.
const UNKNOWN: &str = "unknown-service";

impl<'a> Span<'a> {
    /// Adds it to a request.
    ///
    /// # Errors
    /// Which identifier is none.
    pub fn translate(self, parse_tags: bool, request: &mut Request) -> Result<(), String> {
        let mut span = span::Span {
            trace_id: values::trace_id(&text(self.trace_id))?,
            span_id: values::id(&text(self.id))?,
            name: text(self.name),
            ..span::Span::default()
        };
        match &*text(self.parent_id) {
            "" => {}
            parent => span.parent_id = values::id(parent)?,
        }
        let annotations = self.annotations.unwrap_or_default().0;
        let endpoint = read_annotations(annotations, &mut span);
        let binary = self.binary_annotations.unwrap_or_default().0;
        let fallback = read_binary(binary, parse_tags, &mut span);
        if let Some(start_us) = self.timestamp.filter(|time| *time > 0) {
            let end_us = start_us.saturating_add(self.duration.unwrap_or(0));
            (span.start_ns, span.end_ns) = (micros_to_ns(start_us), micros_to_ns(end_us));
        }
        if span.start_ns == 0 {
            span.attributes.put(START_ABSENT, Any::Bool(true));
        }
        let resource = resource(endpoint, fallback);
        request.add(&resource.resource(), b"", &span);
        Ok(())
    }
}

/// What an annotation of the core says of the kind.
fn kind(value: &str) -> Option<Kind> {
    match value {
        "cs" | "cr" => Some(Kind::Client),
        "ss" | "sr" => Some(Kind::Server),
        "ms" => Some(Kind::Producer),
        "mr" => Some(Kind::Consumer),
        _ => None,
    }
}

/// Kind, times and events; the endpoint of the first annotation of the core that names its service.
fn read_annotations<'a>(
    annotations: Vec<Annotation<'a>>,
    span: &mut span::Span<'a>,
) -> Option<Endpoint<'a>> {
    let (mut endpoint, mut times): (Option<Endpoint<'a>>, Option<(u64, u64)>) = (None, None);
    for annotation in annotations {
        let value = text(annotation.value);
        if value.is_empty() {
            continue;
        }
        let time_us = annotation.timestamp.unwrap_or(0);
        let (first, last) = times.unwrap_or((time_us, time_us));
        times = Some((first.min(time_us), last.max(time_us)));
        let Some(kind) = kind(&value) else {
            span.events.push(Event {
                time_ns: micros_to_ns(time_us),
                name: value,
                ..Event::default()
            });
            continue;
        };
        if span.kind == Kind::Unspecified {
            span.kind = kind;
        }
        let named = annotation.endpoint.filter(|one| {
            let name = one.service_name.as_ref();
            name.is_some_and(|name| !name.0.is_empty() && name.0 != UNKNOWN)
        });
        endpoint = endpoint.or(named);
    }
    let (first, last) = times.unwrap_or_default();
    (span.start_ns, span.end_ns) = (micros_to_ns(first), micros_to_ns(last));
    endpoint
}

/// Attributes and status; the name of a service that they tell.
fn read_binary<'a>(
    annotations: Vec<BinaryAnnotation<'a>>,
    parse_tags: bool,
    span: &mut span::Span<'a>,
) -> Cow<'a, str> {
    let (mut service, mut component) = (Cow::Borrowed(""), Cow::Borrowed(""));
    let mut status = Status::default();
    for annotation in annotations {
        let named = annotation.endpoint.map(|one| text(one.service_name));
        if let Some(name) = named.filter(|name| !name.is_empty()) {
            service = name;
        }
        let value = match annotation.value {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text,
            Some(other) => other.to_string(),
        };
        let mut key = text(annotation.key);
        // The name of a local span's component.
        if key == "lc" {
            key = "component".into();
            component = value.clone().into();
        }
        let value = values::value(value.into(), parse_tags);
        if !status.takes(&key, &value) {
            span.attributes.add(key, value);
        }
    }
    span.attributes.unique();
    status.set(span);
    if service.is_empty() {
        component
    } else {
        service
    }
}

fn resource<'a>(endpoint: Option<Endpoint<'a>>, fallback: Cow<'a, str>) -> Attributes<'a> {
    let mut resource = Attributes::default();
    let endpoint = endpoint.unwrap_or_default();
    let mut name = text(endpoint.service_name);
    if name.is_empty() {
        name = fallback;
    }
    if name.is_empty() {
        name = UNKNOWN.into();
    }
    resource.add("service.name", Any::Text(name));
    for (key, value) in [("ipv4", endpoint.ipv4), ("ipv6", endpoint.ipv6)] {
        let value = text(value);
        if !value.is_empty() {
            resource.add(key, Any::Text(value));
        }
    }
    if let Some(port) = endpoint.port.filter(|port| *port != 0) {
        resource.add("port", Any::Text(port.to_string().into()));
    }
    resource
}
