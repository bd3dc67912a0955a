//! Metrics as text. They are few and collected every few seconds, so a library decodes them.

use std::fmt::Write;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::{DecodeError, Message};
use serde_json::json;

use crate::zipkin::value;

/// A metrics request as text.
pub(super) fn encode(request: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut out = String::with_capacity(request.len() * 2);
    let request = ExportMetricsServiceRequest::decode(request)?;
    for resource in &request.resource_metrics {
        origin(&mut out, &resource.resource);
        for scope in &resource.scope_metrics {
            named(&mut out, &scope.scope);
            scope.metrics.iter().for_each(|it| metric(&mut out, it));
        }
    }
    Ok(out.into_bytes())
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
        // Spangate makes no summaries.
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

/// Appends attributes to the current line.
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
