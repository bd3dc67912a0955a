//! Against the same text made from the library's messages, with the standard library's formatting.

use std::fmt::Write;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use otlp::Signal;
use prost::{DecodeError, Message};
use serde_json::{Map, Value as Json, json};
use syntax::hex;
use testing::Random;

use super::encode;

/// The text of a request, as the library's messages have it.
fn reference(signal: Signal, request: &[u8]) -> Result<String, DecodeError> {
    let mut out = String::new();
    match signal {
        Signal::Logs => logs(&mut out, request)?,
        _ => traces(&mut out, request)?,
    }
    Ok(out)
}

fn traces(out: &mut String, request: &[u8]) -> Result<(), DecodeError> {
    let request = ExportTraceServiceRequest::decode(request)?;
    for resource in &request.resource_spans {
        origin(out, &resource.resource);
        for scope in &resource.scope_spans {
            named(out, &scope.scope);
            scope.spans.iter().for_each(|it| span(out, it));
        }
    }
    Ok(())
}

fn logs(out: &mut String, request: &[u8]) -> Result<(), DecodeError> {
    let request = ExportLogsServiceRequest::decode(request)?;
    for resource in &request.resource_logs {
        origin(out, &resource.resource);
        for scope in &resource.scope_logs {
            named(out, &scope.scope);
            scope.log_records.iter().for_each(|it| log(out, it));
        }
    }
    Ok(())
}

fn origin(out: &mut String, resource: &Option<Resource>) {
    let attributes = resource
        .as_ref()
        .map(|resource| resource.attributes.as_slice());
    out.push_str("resource");
    pairs(out, attributes.unwrap_or_default());
    out.push('\n');
}

fn named(out: &mut String, scope: &Option<InstrumentationScope>) {
    if let Some(scope) = scope {
        let (name, version) = (json!(scope.name), json!(scope.version));
        line(out, format_args!("scope {name} version {version}"));
    }
}

fn span(out: &mut String, span: &Span) {
    let nanos = span
        .end_time_unix_nano
        .saturating_sub(span.start_time_unix_nano);
    line(
        out,
        format_args!(
            "span {} trace {} id {} parent {} kind {} start {} duration {} us",
            json!(span.name),
            hex::text(&span.trace_id),
            hex::text(&span.span_id),
            if span.parent_span_id.is_empty() {
                "none".to_owned()
            } else {
                hex::text(&span.parent_span_id)
            },
            span.kind()
                .as_str_name()
                .trim_start_matches("SPAN_KIND_")
                .to_ascii_lowercase(),
            time(span.start_time_unix_nano),
            nanos as f64 / 1000.0,
        ),
    );
    if let Some(status) = &span.status {
        let code = status
            .code()
            .as_str_name()
            .trim_start_matches("STATUS_CODE_");
        let code = code.to_ascii_lowercase();
        line(
            out,
            format_args!("  status {code} {}", json!(status.message)),
        );
    }
    attributes(out, &span.attributes);
    for event in &span.events {
        let _ = write!(
            out,
            "  event {} at {}",
            json!(event.name),
            time(event.time_unix_nano)
        );
        pairs(out, &event.attributes);
        out.push('\n');
    }
    for link in &span.links {
        let _ = write!(
            out,
            "  link trace {} id {}",
            hex::text(&link.trace_id),
            hex::text(&link.span_id)
        );
        pairs(out, &link.attributes);
        out.push('\n');
    }
}

fn log(out: &mut String, log: &LogRecord) {
    let severity = log.severity_number().as_str_name();
    let severity = severity
        .trim_start_matches("SEVERITY_NUMBER_")
        .to_ascii_lowercase();
    let at = time(log.time_unix_nano);
    let body = value(&log.body);
    let _ = write!(out, "log {severity} at {at} {body}");
    if !log.event_name.is_empty() {
        let _ = write!(out, " event {}", json!(log.event_name));
    }
    if !log.trace_id.is_empty() {
        let _ = write!(
            out,
            " trace {} span {}",
            hex::text(&log.trace_id),
            hex::text(&log.span_id)
        );
    }
    out.push('\n');
    attributes(out, &log.attributes);
}

/// Attributes, each on a line.
fn attributes(out: &mut String, attributes: &[KeyValue]) {
    for pair in attributes {
        line(
            out,
            format_args!("  {}={}", key(&pair.key), value(&pair.value)),
        );
    }
}

/// Attributes on the line that is there.
fn pairs(out: &mut String, attributes: &[KeyValue]) {
    for pair in attributes {
        let _ = write!(out, " {}={}", key(&pair.key), value(&pair.value));
    }
}

/// A value as JSON.
fn value(any: &Option<AnyValue>) -> Json {
    let Some(any) = any.as_ref().and_then(|any| any.value.as_ref()) else {
        return Json::Null;
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
        _ => Json::Null,
    }
}

fn key(key: &str) -> String {
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        key.to_owned()
    } else {
        json!(key).to_string()
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

fn time(unix_ns: u64) -> String {
    match Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(time) => time.to_string(),
        Err(_) => unix_ns.to_string(),
    }
}

/// Random parts of requests.
struct Values(Random);

impl Values {
    /// A number with any count of bits.
    fn number(&mut self) -> u64 {
        self.0.next() >> self.0.number_below(64)
    }

    fn text(&mut self) -> String {
        let kinds = [
            "",
            "GET /",
            "a\"b",
            "back\\slash",
            "\n\r\t\u{8}\u{c}\u{1f}",
            "\u{7f}",
            "é€😀",
            "plain text of more than sixteen bytes",
            "plain text of more than sixteen bytes \" and a quote",
            "two words",
        ];
        self.0.pick(&kinds).to_owned()
    }

    fn time(&mut self) -> u64 {
        let second = 1_700_000_000 + self.0.number_below(20);
        let fraction = self
            .0
            .pick(&[0, 500_000, 123_456_789, 1, 999_999_999, 120_000_000]);
        match self.0.number_below(8) {
            0 => self.number(),
            _ => second * 1_000_000_000 + fraction,
        }
    }

    fn id(&mut self, bytes: usize) -> Vec<u8> {
        let byte = self.0.pick(&[1, 0xab, 0xff]);
        match self.0.number_below(6) {
            0 => Vec::new(),
            1 => vec![byte; 3],
            _ => vec![byte; bytes],
        }
    }

    fn any(&mut self, depth: u32) -> Option<AnyValue> {
        let list = |random: &mut Self| {
            (0..random.0.number_below(3))
                .filter_map(|_| random.any(depth + 1))
                .collect()
        };
        let value = match self.0.number_below(if depth > 2 { 6 } else { 8 }) {
            0 => return self.0.pick(&[None, Some(AnyValue { value: None })]),
            1 => Any::BoolValue(self.0.number_below(2) == 0),
            2 => Any::IntValue(self.number().cast_signed()),
            3 => Any::DoubleValue(self.0.pick(&[0.5, -3.0, 1e300, f64::NAN])),
            4 => Any::BytesValue(self.id(5)),
            5 => Any::StringValue(self.text()),
            6 => Any::ArrayValue(ArrayValue { values: list(self) }),
            _ => Any::KvlistValue(KeyValueList {
                values: self.pairs(depth + 1),
            }),
        };
        Some(AnyValue { value: Some(value) })
    }

    fn pairs(&mut self, depth: u32) -> Vec<KeyValue> {
        let keys = ["url.path", "with blank", "", "é", "q\""];
        let pairs = (0..self.0.number_below(4)).map(|_| KeyValue {
            key: self.0.pick(&keys).to_owned(),
            value: self.any(depth),
            ..KeyValue::default()
        });
        pairs.collect()
    }

    fn span(&mut self) -> Span {
        let start = self.time();
        let lasted = self.number();
        let message = self.text();
        let status = |code| {
            Some(Status {
                code,
                message: message.clone(),
            })
        };
        let status = self
            .0
            .pick(&[None, Some(Status::default()), status(2), status(7)]);
        Span {
            trace_id: self.id(16),
            span_id: self.id(8),
            trace_state: self.text(),
            parent_span_id: self.id(8),
            name: self.text(),
            kind: self.0.pick(&[0, 1, 2, 3, 4, 5, 6, -1]),
            start_time_unix_nano: start,
            end_time_unix_nano: self.0.pick(&[start.saturating_add(lasted), 0, start]),
            attributes: self.pairs(0),
            events: (0..self.0.number_below(3))
                .map(|_| Event {
                    time_unix_nano: self.time(),
                    name: self.text(),
                    attributes: self.pairs(0),
                    ..Event::default()
                })
                .collect(),
            links: (0..self.0.number_below(3))
                .map(|_| Link {
                    trace_id: self.id(16),
                    span_id: self.id(8),
                    attributes: self.pairs(0),
                    ..Link::default()
                })
                .collect(),
            status,
            flags: 0x101,
            ..Span::default()
        }
    }

    fn log(&mut self) -> LogRecord {
        LogRecord {
            time_unix_nano: self.time(),
            severity_number: self.0.pick(&[0, 1, 9, 13, 24, 25, -1]),
            body: self.any(0),
            attributes: self.pairs(0),
            trace_id: self.id(16),
            span_id: self.id(8),
            event_name: self.text(),
            ..LogRecord::default()
        }
    }

    fn resource(&mut self) -> Option<Resource> {
        let resource = Resource {
            attributes: self.pairs(0),
            ..Resource::default()
        };
        self.0.pick(&[Some(resource), None])
    }

    fn scope(&mut self) -> Option<InstrumentationScope> {
        let scope = InstrumentationScope {
            name: self.text(),
            version: self.text(),
            ..InstrumentationScope::default()
        };
        self.0.pick(&[Some(scope), None])
    }

    fn request(&mut self, signal: Signal) -> Vec<u8> {
        let (resource, scope) = (self.resource(), self.scope());
        match signal {
            Signal::Logs => {
                let log_records = (0..self.0.number_below(4)).map(|_| self.log()).collect();
                let scope_logs = ScopeLogs {
                    scope,
                    log_records,
                    ..ScopeLogs::default()
                };
                let one = ResourceLogs {
                    resource,
                    scope_logs: vec![scope_logs; 2],
                    ..ResourceLogs::default()
                };
                ExportLogsServiceRequest {
                    resource_logs: vec![one; 2],
                }
                .encode_to_vec()
            }
            _ => {
                let spans = (0..self.0.number_below(4)).map(|_| self.span()).collect();
                let scope_spans = ScopeSpans {
                    scope,
                    spans,
                    ..ScopeSpans::default()
                };
                let one = ResourceSpans {
                    resource,
                    scope_spans: vec![scope_spans; 2],
                    ..ResourceSpans::default()
                };
                ExportTraceServiceRequest {
                    resource_spans: vec![one; 2],
                }
                .encode_to_vec()
            }
        }
    }
}

#[test]
fn the_text_is_that_of_the_messages() {
    let mut random = Values(Random::new(1));
    for _ in 0..2000 {
        for signal in [Signal::Traces, Signal::Logs] {
            let request = random.request(signal);
            let text = String::from_utf8(encode(signal, &request).unwrap()).unwrap();
            assert_eq!(text, reference(signal, &request).unwrap());
        }
    }
}

#[test]
fn cut_requests_are_refused_as_by_the_library() {
    let mut random = Values(Random::new(2));
    let request = (0..)
        .map(|_| random.request(Signal::Traces))
        .find(|request| request.len() > 200)
        .unwrap();
    for end in 0..request.len() {
        let (ours, theirs) = (
            encode(Signal::Traces, &request[..end]),
            reference(Signal::Traces, &request[..end]),
        );
        assert_eq!(
            ours.ok().map(|text| String::from_utf8(text).unwrap()),
            theirs.ok(),
            "{end}"
        );
    }
}

#[test]
fn what_is_not_utf8_costs_a_character() {
    let mut request = span_with_name("xyz");
    let at = request
        .windows(3)
        .position(|bytes| bytes == b"xyz")
        .unwrap();
    request[at + 1] = 0xff;
    let text = String::from_utf8(encode(Signal::Traces, &request).unwrap()).unwrap();
    assert!(text.contains("span \"x\u{fffd}z\" trace"), "{text}");
}

fn span_with_name(name: &str) -> Vec<u8> {
    let span = Span {
        name: name.to_owned(),
        ..Span::default()
    };
    let scope_spans = ScopeSpans {
        spans: vec![span],
        ..ScopeSpans::default()
    };
    let resource_spans = vec![ResourceSpans {
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

#[test]
fn durations_are_as_the_standard_library_writes_them() {
    let mut random = Values(Random::new(3));
    let edges = [
        0,
        1,
        10,
        999,
        1000,
        1001,
        1_234_567,
        999_999_999_999_999,
        1_000_000_000_000_000,
        u64::MAX,
    ];
    for ns in edges
        .into_iter()
        .chain((0..10_000).map(|_| random.number()))
    {
        let mut writer = super::write::Writer::new(0);
        writer.microseconds(ns);
        assert_eq!(
            String::from_utf8(writer.out).unwrap(),
            (ns as f64 / 1000.0).to_string()
        );
    }
}
