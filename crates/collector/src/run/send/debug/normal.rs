//! `verbosity: normal`: a line of each record.

use std::fmt::Write;

use otlp::view::View;

use super::Names;
use super::points::{buckets, data};
use super::text::{Shown, fixed, id, number, pairs, value};
use crate::config::Signal;

// Writing to a text cannot fail: the results below are of no use.

pub(super) fn text(names: &Names, resources: &[View<'_>]) -> String {
    let [of_resource, of_scope] = names.normal;
    let mut out = String::new();
    for (place, one) in resources.iter().enumerate() {
        let attributes = one.one("resource").map(|own| spaced(&own));
        let attributes = attributes.unwrap_or_default();
        let schema = schema(one);
        let _ = writeln!(out, "{of_resource} #{place}{schema}{attributes}");
        for (place, one) in one.all(names.scopes).enumerate() {
            scope(&mut out, (of_scope, place), &one);
            for one in one.all(names.records) {
                record(&mut out, names.signal, &one);
            }
        }
    }
    out
}

fn scope(out: &mut String, (what, place): (&str, usize), message: &View<'_>) {
    let _ = write!(out, "{what} #{place}");
    let scope = message.one("scope");
    if let Some(scope) = &scope {
        let (name, version) = (scope.text("name"), scope.text("version"));
        if !name.is_empty() {
            let _ = write!(out, " {}", Shown(&name));
        }
        if !version.is_empty() {
            let space = if name.is_empty() { " " } else { "" };
            let _ = write!(out, "{space}@{}", Shown(&version));
        }
    }
    let attributes = scope.map(|own| spaced(&own)).unwrap_or_default();
    let _ = writeln!(out, "{}{attributes}", schema(message));
}

fn schema(message: &View<'_>) -> String {
    match &*message.text("schemaUrl") {
        "" => String::new(),
        schema => format!(" [{}]", Shown(schema)),
    }
}

/// Attributes behind a space, where there are some.
fn spaced(message: &View<'_>) -> String {
    if message.has("attributes") {
        format!(" {}", pairs(message, " "))
    } else {
        String::new()
    }
}

fn record(out: &mut String, signal: Signal, record: &View<'_>) {
    match signal {
        Signal::Traces => {
            let (trace, own) = (id(record.bytes("traceId")), id(record.bytes("spanId")));
            let (name, attributes) = (record.text("name"), spaced(record));
            let _ = writeln!(out, "{} {trace} {own}{attributes}", Shown(&name));
        }
        Signal::Metrics => metric(out, record),
        Signal::Logs => {
            let body = value(record.any("body"));
            let _ = writeln!(out, "{body} {}", pairs(record, " "));
        }
    }
}

fn metric(out: &mut String, metric: &View<'_>) {
    let Some((kind, data)) = data(metric) else {
        return;
    };
    let name = metric.text("name");
    for point in data.all("dataPoints") {
        let value = match kind {
            "Histogram" => histogram(&point),
            "ExponentialHistogram" => exponential(&point),
            "Summary" => summary(&point),
            _ => one(&point),
        };
        let (name, attributes) = (Shown(&name), pairs(&point, ","));
        let _ = writeln!(out, "{name}{{{attributes}}} {value}");
    }
}

fn one(point: &View<'_>) -> String {
    match point.double("asDouble") {
        Some(value) => number(value),
        None if point.has("asInt") => point.signed("asInt").to_string(),
        None => String::new(),
    }
}

/// What all histograms begin with.
fn totals(point: &View<'_>) -> String {
    let mut out = format!("count={}", point.number("count"));
    for name in ["sum", "min", "max"] {
        if let Some(value) = point.double(name) {
            let _ = write!(out, " {name}={}", number(value));
        }
    }
    out
}

fn histogram(point: &View<'_>) -> String {
    let mut out = totals(point);
    let bounds = point.numbers("explicitBounds");
    for (place, count) in point.numbers("bucketCounts").into_iter().enumerate() {
        let bound = bounds.get(place).map(|bits| number(f64::from_bits(*bits)));
        let bound = bound.map(|bound| format!("le{bound}="));
        let _ = write!(out, " {}{count}", bound.unwrap_or_default());
    }
    out
}

fn exponential(point: &View<'_>) -> String {
    let mut out = totals(point);
    for (bounds, count) in buckets(point, "negative").rev() {
        let _ = write!(out, " le{}={count}", number(-bounds.start));
    }
    let zero = point.number("zeroCount");
    if zero > 0 {
        let _ = write!(out, " zero={zero}");
    }
    for (bounds, count) in buckets(point, "positive") {
        let _ = write!(out, " le{}={count}", number(bounds.end));
    }
    out
}

fn summary(point: &View<'_>) -> String {
    let sum = point.double("sum").unwrap_or_default();
    let mut out = format!("count={} sum={}", point.number("count"), fixed(sum));
    for one in point.all("quantileValues") {
        let part = |name| number(one.double(name).unwrap_or_default());
        let _ = write!(out, " q{}={}", part("quantile"), part("value"));
    }
    out
}
