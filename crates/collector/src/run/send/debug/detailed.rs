//! `verbosity: detailed`: every field, on lines of its own.

use std::fmt::{Display, Write};

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::exemplar::Value as ExemplarValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint,
    SummaryDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::points::buckets;
use super::text::{Shown, fixed, id, time, typed};
use super::{Logs, Metrics, Traces};

/// Lines that are being written.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, line: impl Display) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// A field of a span.
    fn field(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("    {name:<15}: {value}"));
    }

    /// Attributes below their name, where there are some.
    fn attributes(&mut self, name: &str, attributes: &[KeyValue]) {
        if attributes.is_empty() {
            return;
        }
        self.line(format_args!("{name}:"));
        let indent = name.split_once("->").map_or("", |(indent, _)| indent);
        for one in attributes {
            let (key, value) = (Shown(&one.key), typed(one.value.as_ref()));
            self.line(format_args!("{indent}     -> {key}: {value}"));
        }
    }

    fn resource(&mut self, what: &str, place: usize, resource: &Option<Resource>, schema: &str) {
        self.line(format_args!("{what} #{place}"));
        self.line(format_args!("Resource SchemaURL: {}", Shown(schema)));
        let Some(resource) = resource else {
            return;
        };
        self.attributes("Resource attributes", &resource.attributes);
        if !resource.entity_refs.is_empty() {
            self.line("Resource entity refs:");
        }
        for (place, entity) in resource.entity_refs.iter().enumerate() {
            self.line(format_args!("     -> Entity ref #{place}:"));
            self.line(format_args!("          -> Type: {}", Shown(&entity.r#type)));
            if !entity.schema_url.is_empty() {
                let schema = Shown(&entity.schema_url);
                self.line(format_args!("          -> Schema URL: {schema}"));
            }
            for (name, keys) in [
                ("ID", &entity.id_keys),
                ("Description", &entity.description_keys),
            ] {
                if !keys.is_empty() {
                    self.line(format_args!("          -> {name} keys:"));
                }
                for key in keys {
                    self.line(format_args!("               -> {}", Shown(key)));
                }
            }
        }
    }

    fn scope(
        &mut self,
        what: &str,
        place: usize,
        scope: &Option<InstrumentationScope>,
        schema: &str,
    ) {
        self.line(format_args!("{what} #{place}"));
        self.line(format_args!("{what} SchemaURL: {}", Shown(schema)));
        let none = InstrumentationScope::default();
        let scope = scope.as_ref().unwrap_or(&none);
        let (name, version) = (Shown(&scope.name), Shown(&scope.version));
        self.line(format_args!("InstrumentationScope {name} {version}"));
        self.attributes("InstrumentationScope attributes", &scope.attributes);
    }
}

pub(super) fn traces(request: &Traces) -> String {
    let mut out = Lines::default();
    for (place, resource) in request.resource_spans.iter().enumerate() {
        let (own, schema) = (&resource.resource, &resource.schema_url);
        out.resource("ResourceSpans", place, own, schema);
        for (place, scope) in resource.scope_spans.iter().enumerate() {
            out.scope("ScopeSpans", place, &scope.scope, &scope.schema_url);
            for (place, span) in scope.spans.iter().enumerate() {
                out.span(place, span);
            }
        }
    }
    out.0
}

impl Lines {
    fn span(&mut self, place: usize, span: &Span) {
        let none = Status::default();
        let status = span.status.as_ref().unwrap_or(&none);
        self.line(format_args!("Span #{place}"));
        self.field("Trace ID", id(&span.trace_id));
        self.field("Parent ID", id(&span.parent_span_id));
        self.field("ID", id(&span.span_id));
        self.field("Name", Shown(&span.name));
        self.field("Kind", kind(span.kind));
        if !span.trace_state.is_empty() {
            self.field("TraceState", Shown(&span.trace_state));
        }
        self.field("Start time", time(span.start_time_unix_nano));
        self.field("End time", time(span.end_time_unix_nano));
        self.field("Status code", status_code(status.code));
        self.field("Status message", Shown(&status.message));
        self.field("DroppedAttributesCount", span.dropped_attributes_count);
        self.field("DroppedEventsCount", span.dropped_events_count);
        self.field("DroppedLinksCount", span.dropped_links_count);
        self.attributes("Attributes", &span.attributes);
        if !span.events.is_empty() {
            self.line("Events:");
        }
        for (place, event) in span.events.iter().enumerate() {
            self.event(place, event);
        }
        if !span.links.is_empty() {
            self.line("Links:");
        }
        for (place, link) in span.links.iter().enumerate() {
            self.link(place, link);
        }
    }

    fn event(&mut self, place: usize, event: &Event) {
        self.line(format_args!("SpanEvent #{place}"));
        self.line(format_args!("     -> Name: {}", Shown(&event.name)));
        let (at, dropped) = (time(event.time_unix_nano), event.dropped_attributes_count);
        self.line(format_args!("     -> Timestamp: {at}"));
        self.line(format_args!("     -> DroppedAttributesCount: {dropped}"));
        self.attributes("     -> Attributes:", &event.attributes);
    }

    fn link(&mut self, place: usize, link: &Link) {
        self.line(format_args!("SpanLink #{place}"));
        self.line(format_args!("     -> Trace ID: {}", id(&link.trace_id)));
        self.line(format_args!("     -> ID: {}", id(&link.span_id)));
        let (state, dropped) = (Shown(&link.trace_state), link.dropped_attributes_count);
        self.line(format_args!("     -> TraceState: {state}"));
        self.line(format_args!("     -> DroppedAttributesCount: {dropped}"));
        self.attributes("     -> Attributes:", &link.attributes);
    }
}

/// A span's kind; nothing where there is no such kind.
fn kind(kind: i32) -> &'static str {
    const KINDS: [&str; 6] = [
        "Unspecified",
        "Internal",
        "Server",
        "Client",
        "Producer",
        "Consumer",
    ];
    word(&KINDS, kind)
}

fn status_code(code: i32) -> &'static str {
    word(&["Unset", "Ok", "Error"], code)
}

fn temporality(temporality: i32) -> &'static str {
    word(&["Unspecified", "Delta", "Cumulative"], temporality)
}

fn word(words: &[&'static str], number: i32) -> &'static str {
    let place = usize::try_from(number).ok();
    place.and_then(|place| words.get(place)).unwrap_or(&"")
}

pub(super) fn logs(request: &Logs) -> String {
    let mut out = Lines::default();
    for (place, resource) in request.resource_logs.iter().enumerate() {
        let (own, schema) = (&resource.resource, &resource.schema_url);
        out.resource("ResourceLog", place, own, schema);
        for (place, scope) in resource.scope_logs.iter().enumerate() {
            out.scope("ScopeLogs", place, &scope.scope, &scope.schema_url);
            for (place, record) in scope.log_records.iter().enumerate() {
                out.record(place, record);
            }
        }
    }
    out.0
}

impl Lines {
    fn record(&mut self, place: usize, record: &LogRecord) {
        self.line(format_args!("LogRecord #{place}"));
        let observed = time(record.observed_time_unix_nano);
        self.line(format_args!("ObservedTimestamp: {observed}"));
        self.line(format_args!("Timestamp: {}", time(record.time_unix_nano)));
        let (text, number) = (Shown(&record.severity_text), record.severity_number);
        self.line(format_args!("SeverityText: {text}"));
        self.line(format_args!(
            "SeverityNumber: {}({number})",
            severity(number)
        ));
        if !record.event_name.is_empty() {
            self.line(format_args!("EventName: {}", Shown(&record.event_name)));
        }
        self.line(format_args!("Body: {}", typed(record.body.as_ref())));
        self.attributes("Attributes", &record.attributes);
        self.line(format_args!("Trace ID: {}", id(&record.trace_id)));
        self.line(format_args!("Span ID: {}", id(&record.span_id)));
        self.line(format_args!("Flags: {}", record.flags));
    }
}

/// A severity; nothing where there is none of this number.
fn severity(number: i32) -> String {
    const WORDS: [&str; 6] = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal"];
    match number {
        0 => "Unspecified".to_owned(),
        1..=24 => {
            let (word, rest) = (word(&WORDS, (number - 1) / 4), (number - 1) % 4);
            match rest {
                0 => word.to_owned(),
                rest => format!("{word}{}", rest + 1),
            }
        }
        _ => String::new(),
    }
}

pub(super) fn metrics(request: &Metrics) -> String {
    let mut out = Lines::default();
    for (place, resource) in request.resource_metrics.iter().enumerate() {
        let (own, schema) = (&resource.resource, &resource.schema_url);
        out.resource("ResourceMetrics", place, own, schema);
        for (place, scope) in resource.scope_metrics.iter().enumerate() {
            out.scope("ScopeMetrics", place, &scope.scope, &scope.schema_url);
            for (place, metric) in scope.metrics.iter().enumerate() {
                out.line(format_args!("Metric #{place}"));
                out.metric(metric);
            }
        }
    }
    out.0
}

impl Lines {
    fn metric(&mut self, metric: &Metric) {
        let (kind, tempo) = match &metric.data {
            None => ("Empty", None),
            Some(Data::Gauge(_)) => ("Gauge", None),
            Some(Data::Sum(data)) => ("Sum", Some(data.aggregation_temporality)),
            Some(Data::Histogram(data)) => ("Histogram", Some(data.aggregation_temporality)),
            Some(Data::ExponentialHistogram(data)) => {
                ("ExponentialHistogram", Some(data.aggregation_temporality))
            }
            Some(Data::Summary(_)) => ("Summary", None),
        };
        self.line("Descriptor:");
        self.line(format_args!("     -> Name: {}", Shown(&metric.name)));
        let description = Shown(&metric.description);
        self.line(format_args!("     -> Description: {description}"));
        self.line(format_args!("     -> Unit: {}", Shown(&metric.unit)));
        self.line(format_args!("     -> DataType: {kind}"));
        self.attributes("     -> Metadata", &metric.metadata);
        if let Some(Data::Sum(sum)) = &metric.data {
            self.line(format_args!("     -> IsMonotonic: {}", sum.is_monotonic));
        }
        if let Some(tempo) = tempo {
            let tempo = temporality(tempo);
            self.line(format_args!("     -> AggregationTemporality: {tempo}"));
        }
        self.points(metric);
    }

    fn points(&mut self, metric: &Metric) {
        match &metric.data {
            None => {}
            Some(Data::Gauge(data)) => self.numbers(&data.data_points),
            Some(Data::Sum(data)) => self.numbers(&data.data_points),
            Some(Data::Histogram(data)) => {
                for (place, point) in data.data_points.iter().enumerate() {
                    self.histogram(place, point);
                }
            }
            Some(Data::ExponentialHistogram(data)) => {
                for (place, point) in data.data_points.iter().enumerate() {
                    self.exponential(place, point);
                }
            }
            Some(Data::Summary(data)) => {
                for (place, point) in data.data_points.iter().enumerate() {
                    self.summary(place, point);
                }
            }
        }
    }

    /// What every point begins with.
    fn point(&mut self, what: &str, place: usize, attributes: &[KeyValue], times: [u64; 2]) {
        self.line(format_args!("{what} #{place}"));
        self.attributes("Data point attributes", attributes);
        let [start, own] = times.map(time);
        self.line(format_args!("StartTimestamp: {start}"));
        self.line(format_args!("Timestamp: {own}"));
    }

    fn numbers(&mut self, points: &[NumberDataPoint]) {
        for (place, point) in points.iter().enumerate() {
            let times = [point.start_time_unix_nano, point.time_unix_nano];
            self.point("NumberDataPoints", place, &point.attributes, times);
            match point.value {
                None => {}
                Some(Value::AsInt(value)) => self.line(format_args!("Value: {value}")),
                Some(Value::AsDouble(value)) => self.line(format_args!("Value: {}", fixed(value))),
            }
            self.exemplars(&point.exemplars);
        }
    }

    /// What all histograms say of their values.
    fn totals(&mut self, count: u64, [sum, min, max]: [Option<f64>; 3]) {
        self.line(format_args!("Count: {count}"));
        for (name, value) in [("Sum", sum), ("Min", min), ("Max", max)] {
            if let Some(value) = value {
                self.line(format_args!("{name}: {}", fixed(value)));
            }
        }
    }

    fn histogram(&mut self, place: usize, point: &HistogramDataPoint) {
        let times = [point.start_time_unix_nano, point.time_unix_nano];
        self.point("HistogramDataPoints", place, &point.attributes, times);
        self.totals(point.count, [point.sum, point.min, point.max]);
        for (place, bound) in point.explicit_bounds.iter().enumerate() {
            self.line(format_args!("ExplicitBounds #{place}: {}", fixed(*bound)));
        }
        for (place, count) in point.bucket_counts.iter().enumerate() {
            self.line(format_args!("Buckets #{place}, Count: {count}"));
        }
        self.exemplars(&point.exemplars);
    }

    fn exponential(&mut self, place: usize, point: &ExponentialHistogramDataPoint) {
        let times = [point.start_time_unix_nano, point.time_unix_nano];
        let what = "ExponentialHistogramDataPoints";
        self.point(what, place, &point.attributes, times);
        self.totals(point.count, [point.sum, point.min, point.max]);
        for (bounds, count) in buckets(point, point.negative.as_ref()).rev() {
            let (low, high) = (fixed(-bounds.end), fixed(-bounds.start));
            self.line(format_args!("Bucket [{low}, {high}), Count: {count}"));
        }
        if point.zero_count > 0 {
            self.line(format_args!("Bucket [0, 0], Count: {}", point.zero_count));
        }
        for (bounds, count) in buckets(point, point.positive.as_ref()) {
            let (low, high) = (fixed(bounds.start), fixed(bounds.end));
            self.line(format_args!("Bucket ({low}, {high}], Count: {count}"));
        }
        self.exemplars(&point.exemplars);
    }

    fn summary(&mut self, place: usize, point: &SummaryDataPoint) {
        let times = [point.start_time_unix_nano, point.time_unix_nano];
        self.point("SummaryDataPoints", place, &point.attributes, times);
        self.line(format_args!("Count: {}", point.count));
        self.line(format_args!("Sum: {}", fixed(point.sum)));
        for (place, one) in point.quantile_values.iter().enumerate() {
            let (quantile, value) = (fixed(one.quantile), fixed(one.value));
            self.line(format_args!(
                "QuantileValue #{place}: Quantile {quantile}, Value {value}"
            ));
        }
    }

    fn exemplars(&mut self, exemplars: &[Exemplar]) {
        if !exemplars.is_empty() {
            self.line("Exemplars:");
        }
        for (place, one) in exemplars.iter().enumerate() {
            self.line(format_args!("Exemplar #{place}"));
            self.line(format_args!("     -> Trace ID: {}", id(&one.trace_id)));
            self.line(format_args!("     -> Span ID: {}", id(&one.span_id)));
            self.line(format_args!(
                "     -> Timestamp: {}",
                time(one.time_unix_nano)
            ));
            match one.value {
                None => {}
                Some(ExemplarValue::AsInt(value)) => {
                    self.line(format_args!("     -> Value: {value}"));
                }
                Some(ExemplarValue::AsDouble(value)) => {
                    self.line(format_args!("     -> Value: {}", fixed(value)));
                }
            }
            self.attributes("     -> FilteredAttributes", &one.filtered_attributes);
        }
    }
}
