//! Metrics as text. They are few and collected every few seconds.

use std::fmt::Write;

use otlp::Signal;
use otlp::scan::Malformed;
use otlp::view::View;
use serde_json::json;

use crate::zipkin::value;

/// A metrics request as text.
pub(super) fn encode(request: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut out = String::with_capacity(request.len() * 2);
    let request = View::request(Signal::Metrics, request)?;
    for resource in request.all("resourceMetrics") {
        out.push_str("resource");
        if let Some(own) = resource.one("resource") {
            pairs(&mut out, &own);
        }
        out.push('\n');
        for scope in resource.all("scopeMetrics") {
            if let Some(named) = scope.one("scope") {
                let (name, version) = (json!(named.text("name")), json!(named.text("version")));
                line(&mut out, format_args!("scope {name} version {version}"));
            }
            scope.all("metrics").for_each(|it| metric(&mut out, &it));
        }
    }
    Ok(out.into_bytes())
}

fn metric(out: &mut String, metric: &View<'_>) {
    let [name, unit, about] = ["name", "unit", "description"].map(|it| json!(metric.text(it)));
    line(out, format_args!("metric {name} unit {unit} {about}"));
    // Spangate makes no summaries.
    for kind in ["gauge", "sum", "histogram", "exponentialHistogram"] {
        for point in metric.all(kind).flat_map(|data| data.all("dataPoints")) {
            let _ = match kind {
                "gauge" | "sum" => write!(out, "  {kind} {}", number(&point)),
                _ => histogram(out, kind == "histogram", &point),
            };
            pairs(out, &point);
            out.push('\n');
        }
    }
}

fn histogram(out: &mut String, has_bounds: bool, point: &View<'_>) -> std::fmt::Result {
    let (count, sum) = (point.number("count"), point.double("sum"));
    let sum = sum.unwrap_or_default();
    if !has_bounds {
        let scale = point.signed("scale");
        return write!(out, "  histogram count {count} sum {sum} scale {scale}");
    }
    let bounds = point.numbers("explicitBounds");
    let bounds: Vec<f64> = bounds.into_iter().map(f64::from_bits).collect();
    let counts = point.numbers("bucketCounts");
    write!(
        out,
        "  histogram count {count} sum {sum} bounds {bounds:?} counts {counts:?}"
    )
}

fn number(point: &View<'_>) -> serde_json::Value {
    match point.double("asDouble") {
        Some(double) => json!(double),
        None if point.has("asInt") => json!(point.signed("asInt")),
        None => json!(null),
    }
}

/// Appends attributes to the current line.
fn pairs(out: &mut String, message: &View<'_>) {
    for (key, any) in message.attributes("attributes") {
        let key = if key.bytes().all(|byte| byte.is_ascii_graphic()) {
            key
        } else {
            json!(key).to_string().into()
        };
        let _ = write!(out, " {key}={}", value(any));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
