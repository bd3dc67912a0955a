//! The form of `ostream`: records as text for people. Foreign text stands in quotes as JSON writes it, so that it cannot
//! forge a line.

use std::fmt::Write;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::{DecodeError, Message};
use serde_json::json;
use syntax::hex;
use telemetry::settings::Signal;

use crate::zipkin::value;

/// An OTLP request as text.
pub(crate) fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = String::with_capacity(request.len() * 2);
    let written = match signal {
        Signal::Traces => traces(&mut out, request),
        Signal::Metrics => metrics(&mut out, request),
        Signal::Logs => logs(&mut out, request),
    };
    written.map_err(|error| error.to_string())?;
    Ok(out.into_bytes())
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

fn metrics(out: &mut String, request: &[u8]) -> Result<(), DecodeError> {
    let request = ExportMetricsServiceRequest::decode(request)?;
    for resource in &request.resource_metrics {
        origin(out, &resource.resource);
        for scope in &resource.scope_metrics {
            named(out, &scope.scope);
            scope.metrics.iter().for_each(|it| metric(out, it));
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

fn metric(out: &mut String, metric: &Metric) {
    let (name, unit) = (json!(metric.name), json!(metric.unit));
    line(
        out,
        format_args!("metric {name} unit {unit} {}", json!(metric.description)),
    );
    match &metric.data {
        Some(Data::Gauge(gauge)) => numbers(out, "gauge", &gauge.data_points),
        Some(Data::Sum(sum)) => numbers(out, "sum", &sum.data_points),
        Some(Data::Histogram(histogram)) => {
            for point in &histogram.data_points {
                let (count, sum) = (point.count, point.sum.unwrap_or_default());
                let (counts, bounds) = (&point.bucket_counts, &point.explicit_bounds);
                let _ = write!(
                    out,
                    "  histogram count {count} sum {sum} bounds {bounds:?} counts {counts:?}"
                );
                pairs(out, &point.attributes);
                out.push('\n');
            }
        }
        Some(Data::ExponentialHistogram(histogram)) => {
            for point in &histogram.data_points {
                let (count, sum, scale) = (point.count, point.sum.unwrap_or_default(), point.scale);
                let _ = write!(out, "  histogram count {count} sum {sum} scale {scale}");
                pairs(out, &point.attributes);
                out.push('\n');
            }
        }
        // We make no others.
        Some(Data::Summary(_)) | None => {}
    }
}

fn numbers(out: &mut String, kind: &str, points: &[NumberDataPoint]) {
    for point in points {
        let number = match point.value {
            Some(Number::AsInt(int)) => json!(int),
            Some(Number::AsDouble(double)) => json!(double),
            None => json!(null),
        };
        let _ = write!(out, "  {kind} {number}");
        pairs(out, &point.attributes);
        out.push('\n');
    }
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

fn key(key: &str) -> String {
    match key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => key.to_owned(),
        false => json!(key).to_string(),
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
