//! `verbosity: normal`: a line of each record.

use std::fmt::Write;

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint, SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::points::buckets;
use super::text::{Shown, fixed, id, number, pairs, value_of};
use super::{Logs, Metrics, Traces};

// Writing to a text cannot fail: the results below are of no use.

pub(super) fn traces(request: &Traces) -> String {
    let mut out = String::new();
    for (place, resource) in request.resource_spans.iter().enumerate() {
        let head = ("ResourceTraces", place);
        self::resource(&mut out, head, (&resource.resource, &resource.schema_url));
        for (place, scope) in resource.scope_spans.iter().enumerate() {
            let head = ("ScopeTraces", place);
            self::scope(&mut out, head, (&scope.scope, &scope.schema_url));
            for span in &scope.spans {
                let (trace, own) = (id(&span.trace_id), id(&span.span_id));
                let attributes = spaced(&span.attributes);
                let _ = writeln!(out, "{} {trace} {own}{attributes}", Shown(&span.name));
            }
        }
    }
    out
}

pub(super) fn logs(request: &Logs) -> String {
    let mut out = String::new();
    for (place, resource) in request.resource_logs.iter().enumerate() {
        let head = ("ResourceLog", place);
        self::resource(&mut out, head, (&resource.resource, &resource.schema_url));
        for (place, scope) in resource.scope_logs.iter().enumerate() {
            let head = ("ScopeLog", place);
            self::scope(&mut out, head, (&scope.scope, &scope.schema_url));
            for record in &scope.log_records {
                let body = value_of(record.body.as_ref());
                let _ = writeln!(out, "{body} {}", pairs(&record.attributes, " "));
            }
        }
    }
    out
}

pub(super) fn metrics(request: &Metrics) -> String {
    let mut out = String::new();
    for (place, resource) in request.resource_metrics.iter().enumerate() {
        let head = ("ResourceMetrics", place);
        self::resource(&mut out, head, (&resource.resource, &resource.schema_url));
        for (place, scope) in resource.scope_metrics.iter().enumerate() {
            let head = ("ScopeMetrics", place);
            self::scope(&mut out, head, (&scope.scope, &scope.schema_url));
            for metric in &scope.metrics {
                self::metric(&mut out, metric);
            }
        }
    }
    out
}

fn resource(
    out: &mut String,
    (what, place): (&str, usize),
    (resource, schema): (&Option<Resource>, &str),
) {
    let attributes = resource.as_ref().map(|own| spaced(&own.attributes));
    let attributes = attributes.unwrap_or_default();
    let _ = writeln!(out, "{what} #{place}{}{attributes}", bracketed(schema));
}

fn scope(
    out: &mut String,
    (what, place): (&str, usize),
    (scope, schema): (&Option<InstrumentationScope>, &str),
) {
    let _ = write!(out, "{what} #{place}");
    if let Some(scope) = scope {
        let before = out.len();
        if !scope.name.is_empty() {
            let _ = write!(out, " {}", Shown(&scope.name));
        }
        if !scope.version.is_empty() {
            let space = if out.len() == before { " " } else { "" };
            let _ = write!(out, "{space}@{}", Shown(&scope.version));
        }
    }
    out.push_str(&bracketed(schema));
    let attributes = scope.as_ref().map(|own| spaced(&own.attributes));
    let _ = writeln!(out, "{}", attributes.unwrap_or_default());
}

fn bracketed(schema: &str) -> String {
    match schema {
        "" => String::new(),
        schema => format!(" [{}]", Shown(schema)),
    }
}

/// Attributes behind a space, where there are some.
fn spaced(attributes: &[KeyValue]) -> String {
    match attributes.is_empty() {
        true => String::new(),
        false => format!(" {}", pairs(attributes, " ")),
    }
}

fn metric(out: &mut String, metric: &Metric) {
    let name = Shown(&metric.name);
    let mut line = |attributes: &[KeyValue], value: String| {
        let _ = writeln!(out, "{name}{{{}}} {value}", pairs(attributes, ","));
    };
    match &metric.data {
        None => {}
        Some(Data::Gauge(data)) => {
            for point in &data.data_points {
                line(&point.attributes, one(point));
            }
        }
        Some(Data::Sum(data)) => {
            for point in &data.data_points {
                line(&point.attributes, one(point));
            }
        }
        Some(Data::Histogram(data)) => {
            for point in &data.data_points {
                line(&point.attributes, histogram(point));
            }
        }
        Some(Data::ExponentialHistogram(data)) => {
            for point in &data.data_points {
                line(&point.attributes, exponential(point));
            }
        }
        Some(Data::Summary(data)) => {
            for point in &data.data_points {
                line(&point.attributes, summary(point));
            }
        }
    }
}

fn one(point: &NumberDataPoint) -> String {
    match point.value {
        None => String::new(),
        Some(Value::AsInt(value)) => value.to_string(),
        Some(Value::AsDouble(value)) => number(value),
    }
}

/// What all histograms begin with.
fn totals(count: u64, [sum, min, max]: [Option<f64>; 3]) -> String {
    let mut out = format!("count={count}");
    for (name, value) in [("sum", sum), ("min", min), ("max", max)] {
        if let Some(value) = value {
            let _ = write!(out, " {name}={}", number(value));
        }
    }
    out
}

fn histogram(point: &HistogramDataPoint) -> String {
    let mut out = totals(point.count, [point.sum, point.min, point.max]);
    for (place, count) in point.bucket_counts.iter().enumerate() {
        let bound = point.explicit_bounds.get(place);
        let bound = bound.map(|bound| format!("le{}=", number(*bound)));
        let _ = write!(out, " {}{count}", bound.unwrap_or_default());
    }
    out
}

fn exponential(point: &ExponentialHistogramDataPoint) -> String {
    let mut out = totals(point.count, [point.sum, point.min, point.max]);
    for (bounds, count) in buckets(point, point.negative.as_ref()).rev() {
        let _ = write!(out, " le{}={count}", number(-bounds.start));
    }
    if point.zero_count > 0 {
        let _ = write!(out, " zero={}", point.zero_count);
    }
    for (bounds, count) in buckets(point, point.positive.as_ref()) {
        let _ = write!(out, " le{}={count}", number(bounds.end));
    }
    out
}

fn summary(point: &SummaryDataPoint) -> String {
    let mut out = format!("count={} sum={}", point.count, fixed(point.sum));
    for one in &point.quantile_values {
        let (quantile, value) = (number(one.quantile), number(one.value));
        let _ = write!(out, " q{quantile}={value}");
    }
    out
}
