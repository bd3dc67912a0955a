//! The exporter `zipkin`: spans as Zipkin's JSON, version 2 (OpenTelemetry specification,
//! "OpenTelemetry to Zipkin Transformation").

use std::net::IpAddr;

use otlp::Signal;
use otlp::scan::{Any, Attributes};
use otlp::view::View;
use serde_json::{Map, Value, json};
use syntax::hex;
use telemetry::settings::Zipkin;

/// An OTLP request as a list of Zipkin spans.
pub(crate) fn encode(settings: &Zipkin, request: &[u8]) -> Result<Vec<u8>, String> {
    let request = View::request(Signal::Traces, request).map_err(|fault| fault.to_string())?;
    let mut spans = Vec::new();
    for resource in request.all("resourceSpans") {
        let attributes = resource.one("resource").map(|own| texts(&own));
        let attributes = attributes.unwrap_or_default();
        let service = find(&attributes, &["service.name"]);
        let service = service.unwrap_or(&settings.service_name);
        let local = endpoint(settings, service);
        for scope in resource.all("scopeSpans") {
            let named = scope.one("scope");
            let all = scope.all("spans");
            spans.extend(all.map(|it| span(&it, &local, &attributes, named)));
        }
    }
    serde_json::to_vec(&spans).map_err(|error| error.to_string())
}

/// Attributes with their values as texts.
type Texts = Vec<(String, String)>;

fn texts(message: &View<'_>) -> Texts {
    let attributes = message.attributes("attributes");
    attributes
        .map(|(key, value)| (key.into_owned(), plain(value)))
        .collect()
}

/// The value of the first of these keys that there is.
fn find<'a>(attributes: &'a Texts, keys: &[&str]) -> Option<&'a String> {
    let of = |key: &&str| attributes.iter().find(|(own, _)| own == key);
    keys.iter().find_map(of).map(|(_, value)| value)
}

fn endpoint(settings: &Zipkin, service: &str) -> Value {
    let mut endpoint = json!({ "serviceName": service });
    if let Some(ipv4) = settings.ipv4 {
        endpoint["ipv4"] = ipv4.to_string().into();
    }
    if let Some(ipv6) = settings.ipv6 {
        endpoint["ipv6"] = ipv6.to_string().into();
    }
    endpoint
}

fn span(span: &View<'_>, local: &Value, resource: &Texts, scope: Option<View<'_>>) -> Value {
    let start_ns = span.number("startTimeUnixNano");
    let duration_ns = span.number("endTimeUnixNano").saturating_sub(start_ns);
    let attributes = texts(span);
    let mut out = json!({
        "traceId": hex::text(span.bytes("traceId")),
        "id": hex::text(span.bytes("spanId")),
        "name": span.text("name"),
        "timestamp": start_ns / 1000,
        // Zipkin interprets zero as "not known".
        "duration": (duration_ns / 1000).max(1),
        "localEndpoint": local,
        "tags": tags(span, resource, &attributes, scope),
    });
    if !span.bytes("parentSpanId").is_empty() {
        out["parentId"] = hex::text(span.bytes("parentSpanId")).into();
    }
    // `Span.SpanKind`
    let (kind, calls) = match span.number("kind") {
        2 => ("SERVER", false),
        3 => ("CLIENT", true),
        4 => ("PRODUCER", true),
        5 => ("CONSUMER", false),
        _ => ("", false),
    };
    if !kind.is_empty() {
        out["kind"] = kind.into();
    }
    if calls && let Some(remote) = remote(&attributes) {
        out["remoteEndpoint"] = remote;
    }
    let annotations: Vec<_> = span.all("events").map(|event| annotation(&event)).collect();
    if !annotations.is_empty() {
        out["annotations"] = annotations.into();
    }
    out
}

fn annotation(event: &View<'_>) -> Value {
    let attributes = event.attributes("attributes");
    let attributes: Map<_, _> = attributes
        .map(|(key, own)| (key.into_owned(), value(own)))
        .collect();
    let name = event.text("name");
    let value = if attributes.is_empty() {
        name.into_owned()
    } else {
        // The form of the specification: a name in quotes, then an object.
        format!("{}: {}", json!(name), Value::from(attributes))
    };
    json!({ "timestamp": event.number("timeUnixNano") / 1000, "value": value })
}

fn tags(span: &View<'_>, resource: &Texts, own: &Texts, scope: Option<View<'_>>) -> Value {
    let mut tags = Map::new();
    let resource = resource.iter().filter(|(key, _)| key != "service.name");
    for (key, value) in resource.chain(own) {
        tags.insert(key.clone(), value.clone().into());
    }
    let mut put = |key: &str, text: &str| tags.insert(key.to_owned(), text.into());
    for (key, field) in [
        ("otel.scope.name", "name"),
        ("otel.scope.version", "version"),
    ] {
        if let Some(text) = scope
            .map(|scope| scope.text(field))
            .filter(|it| !it.is_empty())
        {
            put(key, &text);
        }
    }
    for (key, field) in [
        ("otel.dropped_attributes_count", "droppedAttributesCount"),
        ("otel.dropped_events_count", "droppedEventsCount"),
        ("otel.dropped_links_count", "droppedLinksCount"),
    ] {
        let count = span.number(field);
        if count > 0 {
            put(key, &count.to_string());
        }
    }
    // `Status.StatusCode`
    match span
        .one("status")
        .map(|status| (status.number("code"), status))
    {
        Some((1, _)) => {
            put("otel.status_code", "OK");
        }
        Some((2, status)) => {
            put("otel.status_code", "ERROR");
            put("error", &status.text("message"));
        }
        _ => {}
    }
    tags.into()
}

/// The remote endpoint of a span, from the attributes that may name it, in order of preference.
fn remote(attributes: &Texts) -> Option<Value> {
    let name = find(
        attributes,
        &["peer.service", "server.address", "net.peer.name"],
    );
    let address = find(attributes, &["network.peer.address", "net.sock.peer.addr"]);
    let port = find(attributes, &["network.peer.port", "server.port"]);
    let mut remote = Map::new();
    if let Some(name) = name.or(address) {
        remote.insert("serviceName".to_owned(), name.as_str().into());
    }
    if let Some(ip) = address.and_then(|address| address.parse::<IpAddr>().ok()) {
        let version = if ip.is_ipv4() { "ipv4" } else { "ipv6" };
        remote.insert(version.to_owned(), ip.to_string().into());
    }
    if remote.is_empty() {
        return None;
    }
    if let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) {
        remote.insert("port".to_owned(), port.into());
    }
    Some(remote.into())
}

/// A value as text: a string unchanged, other values as JSON.
fn plain(any: Any<'_>) -> String {
    match value(any) {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A value as JSON.
pub(crate) fn value(any: Any<'_>) -> Value {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match any {
        Any::Empty => Value::Null,
        Any::Text(bytes) => text(bytes).into(),
        Any::Bool(flag) => flag.into(),
        Any::Int(int) => int.into(),
        Any::Double(double) => double.into(),
        Any::Bytes(bytes) => hex::text(bytes).into(),
        Any::Array(items) => Any::items(items).map(value).collect(),
        Any::Map(map) => {
            let pairs = Attributes::of_map(map);
            let pairs: Map<_, _> = pairs
                .map(|(key, own)| (text(key), value(Any::read(own))))
                .collect();
            pairs.into()
        }
    }
}
