//! The exporter `zipkin`: spans as Zipkin's JSON, version 2 (OpenTelemetry specification, "OpenTelemetry to Zipkin
//! Transformation").

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use serde_json::{Map, Value, json};
use syntax::hex;
use telemetry::settings::Zipkin;

/// An OTLP request as a list of Zipkin spans.
pub(crate) fn encode(settings: &Zipkin, request: &[u8]) -> Result<Vec<u8>, String> {
    let request = ExportTraceServiceRequest::decode(request).map_err(|error| error.to_string())?;
    let mut spans = Vec::new();
    for resource in request.resource_spans {
        let attributes = resource.resource.unwrap_or_default().attributes;
        let service = attributes
            .iter()
            .find(|pair| pair.key == "service.name")
            .map_or_else(|| settings.service_name.clone(), |pair| plain(&pair.value));
        let local = endpoint(settings, &service);
        for scope in resource.scope_spans {
            let named = scope.scope.unwrap_or_default();
            spans.extend(
                scope
                    .spans
                    .iter()
                    .map(|it| span(it, &local, &attributes, &named)),
            );
        }
    }
    serde_json::to_vec(&spans).map_err(|error| error.to_string())
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

fn span(span: &Span, local: &Value, resource: &[KeyValue], scope: &InstrumentationScope) -> Value {
    let duration = span
        .end_time_unix_nano
        .saturating_sub(span.start_time_unix_nano);
    let mut out = json!({
        "traceId": hex::text(&span.trace_id),
        "id": hex::text(&span.span_id),
        "name": span.name,
        "timestamp": span.start_time_unix_nano / 1000,
        // Zipkin interprets zero as "not known".
        "duration": (duration / 1000).max(1),
        "localEndpoint": local,
        "tags": tags(span, resource, scope),
    });
    if !span.parent_span_id.is_empty() {
        out["parentId"] = hex::text(&span.parent_span_id).into();
    }
    let kind = match span.kind() {
        SpanKind::Client => "CLIENT",
        SpanKind::Server => "SERVER",
        SpanKind::Producer => "PRODUCER",
        SpanKind::Consumer => "CONSUMER",
        SpanKind::Internal | SpanKind::Unspecified => "",
    };
    if !kind.is_empty() {
        out["kind"] = kind.into();
    }
    if matches!(span.kind(), SpanKind::Client | SpanKind::Producer)
        && let Some(remote) = remote(&span.attributes)
    {
        out["remoteEndpoint"] = remote;
    }
    let annotations = span.events.iter().map(|event| {
        let value = match event.attributes.is_empty() {
            true => event.name.clone(),
            false => {
                let attributes = event.attributes.iter();
                let attributes: Map<_, _> = attributes
                    .map(|pair| (pair.key.clone(), value(&pair.value)))
                    .collect();
                // The form of the specification: a name in quotes, then an object.
                format!("{}: {}", json!(event.name), Value::from(attributes))
            }
        };
        json!({ "timestamp": event.time_unix_nano / 1000, "value": value })
    });
    let annotations: Vec<_> = annotations.collect();
    if !annotations.is_empty() {
        out["annotations"] = annotations.into();
    }
    out
}

fn tags(span: &Span, resource: &[KeyValue], scope: &InstrumentationScope) -> Value {
    let mut tags = Map::new();
    let resource = resource.iter().filter(|pair| pair.key != "service.name");
    for pair in resource.chain(&span.attributes) {
        tags.insert(pair.key.clone(), plain(&pair.value).into());
    }
    for (key, text) in [
        ("otel.scope.name", &scope.name),
        ("otel.scope.version", &scope.version),
    ] {
        if !text.is_empty() {
            tags.insert(key.to_owned(), text.clone().into());
        }
    }
    let dropped = [
        (
            "otel.dropped_attributes_count",
            span.dropped_attributes_count,
        ),
        ("otel.dropped_events_count", span.dropped_events_count),
        ("otel.dropped_links_count", span.dropped_links_count),
    ];
    for (key, count) in dropped.into_iter().filter(|(_, count)| *count > 0) {
        tags.insert(key.to_owned(), count.to_string().into());
    }
    if let Some(status) = &span.status {
        let code = match status.code() {
            StatusCode::Unset => return tags.into(),
            StatusCode::Ok => "OK",
            StatusCode::Error => "ERROR",
        };
        tags.insert("otel.status_code".to_owned(), code.into());
        if status.code() == StatusCode::Error {
            tags.insert("error".to_owned(), status.message.clone().into());
        }
    }
    tags.into()
}

/// The remote endpoint of a span, from the attributes that may name it, in order of preference.
fn remote(attributes: &[KeyValue]) -> Option<Value> {
    let find = |keys: &[&str]| {
        let mut found = keys.iter().filter_map(|key| {
            let pair = attributes.iter().find(|pair| pair.key == *key)?;
            Some(plain(&pair.value))
        });
        found.next()
    };
    let name = find(&["peer.service", "server.address", "net.peer.name"]);
    let address = find(&["network.peer.address", "net.sock.peer.addr"]);
    let port = find(&["network.peer.port", "server.port"]);
    let mut remote = Map::new();
    if let Some(name) = name.or_else(|| address.clone()) {
        remote.insert("serviceName".to_owned(), name.into());
    }
    match address.and_then(|address| address.parse().ok()) {
        Some(std::net::IpAddr::V4(ip)) => {
            remote.insert("ipv4".to_owned(), ip.to_string().into());
        }
        Some(std::net::IpAddr::V6(ip)) => {
            remote.insert("ipv6".to_owned(), ip.to_string().into());
        }
        None => {}
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
fn plain(any: &Option<AnyValue>) -> String {
    match value(any) {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A value as JSON.
pub(crate) fn value(any: &Option<AnyValue>) -> Value {
    let Some(any) = any.as_ref().and_then(|any| any.value.as_ref()) else {
        return Value::Null;
    };
    match any {
        Any::StringValue(text) => text.clone().into(),
        Any::BoolValue(flag) => (*flag).into(),
        Any::IntValue(int) => (*int).into(),
        Any::DoubleValue(double) => (*double).into(),
        Any::BytesValue(bytes) => hex::text(bytes).into(),
        Any::ArrayValue(list) => {
            let items = list.values.iter();
            items.map(|item| value(&Some(item.clone()))).collect()
        }
        Any::KvlistValue(list) => {
            let pairs = list.values.iter();
            let pairs: Map<_, _> = pairs
                .map(|pair| (pair.key.clone(), value(&pair.value)))
                .collect();
            pairs.into()
        }
        // An index into a dictionary that spans do not have.
        _ => Value::Null,
    }
}
