//! `verbosity: detailed`: every field, on lines of its own.

use std::fmt::{Display, Write};

use otlp::view::View;

use super::Names;
use super::points::{buckets, data};
use super::text::{Shown, fixed, id, time, typed};
use crate::config::Signal;

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

    /// A field of something within a record.
    fn part(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("     -> {name}: {value}"));
    }

    /// Attributes below their name, where there are some.
    fn attributes(&mut self, name: &str, message: &View<'_>, field: &str) {
        if !message.has(field) {
            return;
        }
        self.line(format_args!("{name}:"));
        let indent = name.split_once("->").map_or("", |(indent, _)| indent);
        for (key, value) in message.attributes(field) {
            let (key, value) = (Shown(&key), typed(value));
            self.line(format_args!("{indent}     -> {key}: {value}"));
        }
    }

    /// The parts of a list, below its name, where there are some.
    fn list(&mut self, name: &str, parts: &[View<'_>], write: fn(&mut Lines, usize, &View<'_>)) {
        if !parts.is_empty() {
            self.line(format_args!("{name}:"));
        }
        for (place, part) in parts.iter().enumerate() {
            write(self, place, part);
        }
    }

    fn resource(&mut self, message: &View<'_>) {
        let schema = message.text("schemaUrl");
        self.line(format_args!("Resource SchemaURL: {}", Shown(&schema)));
        let Some(resource) = message.one("resource") else {
            return;
        };
        self.attributes("Resource attributes", &resource, "attributes");
        let entities: Vec<_> = resource.all("entityRefs").collect();
        self.list("Resource entity refs", &entities, Lines::entity);
    }

    fn entity(&mut self, place: usize, entity: &View<'_>) {
        self.line(format_args!("     -> Entity ref #{place}:"));
        let (kind, schema) = (entity.text("type"), entity.text("schemaUrl"));
        self.line(format_args!("          -> Type: {}", Shown(&kind)));
        if !schema.is_empty() {
            let schema = Shown(&schema);
            self.line(format_args!("          -> Schema URL: {schema}"));
        }
        for (name, keys) in [("ID", "idKeys"), ("Description", "descriptionKeys")] {
            if entity.has(keys) {
                self.line(format_args!("          -> {name} keys:"));
            }
            for key in entity.texts(keys) {
                self.line(format_args!("               -> {}", Shown(&key)));
            }
        }
    }

    fn scope(&mut self, what: &str, message: &View<'_>) {
        let schema = message.text("schemaUrl");
        self.line(format_args!("{what} SchemaURL: {}", Shown(&schema)));
        let scope = message.one("scope");
        let text = |name| scope.map(|scope| scope.text(name)).unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        let (name, version) = (Shown(&name), Shown(&version));
        self.line(format_args!("InstrumentationScope {name} {version}"));
        if let Some(scope) = &scope {
            self.attributes("InstrumentationScope attributes", scope, "attributes");
        }
    }
}

pub(super) fn text(names: &Names, resources: &[View<'_>]) -> String {
    let [of_resource, of_scope] = names.detailed;
    let mut out = Lines::default();
    for (place, one) in resources.iter().enumerate() {
        out.line(format_args!("{of_resource} #{place}"));
        out.resource(one);
        for (place, one) in one.all(names.scopes).enumerate() {
            out.line(format_args!("{of_scope} #{place}"));
            out.scope(of_scope, &one);
            for (place, one) in one.all(names.records).enumerate() {
                match names.signal {
                    Signal::Traces => out.span(place, &one),
                    Signal::Metrics => out.metric(place, &one),
                    Signal::Logs => out.record(place, &one),
                }
            }
        }
    }
    out.0
}

impl Lines {
    fn span(&mut self, place: usize, span: &View<'_>) {
        let (state, status) = (span.text("traceState"), span.one("status"));
        let code = status.map_or(0, |status| status.number("code"));
        let told = status.map(|status| status.text("message"));
        self.line(format_args!("Span #{place}"));
        self.field("Trace ID", id(span.bytes("traceId")));
        self.field("Parent ID", id(span.bytes("parentSpanId")));
        self.field("ID", id(span.bytes("spanId")));
        self.field("Name", Shown(&span.text("name")));
        self.field("Kind", kind(span.number("kind")));
        if !state.is_empty() {
            self.field("TraceState", Shown(&state));
        }
        self.field("Start time", time(span.number("startTimeUnixNano")));
        self.field("End time", time(span.number("endTimeUnixNano")));
        self.field("Status code", word(&["Unset", "Ok", "Error"], code));
        self.field("Status message", Shown(&told.unwrap_or_default()));
        for (name, field) in [
            ("DroppedAttributesCount", "droppedAttributesCount"),
            ("DroppedEventsCount", "droppedEventsCount"),
            ("DroppedLinksCount", "droppedLinksCount"),
        ] {
            self.field(name, span.number(field));
        }
        self.attributes("Attributes", span, "attributes");
        let parts = |name| span.all(name).collect::<Vec<_>>();
        self.list("Events", &parts("events"), Lines::event);
        self.list("Links", &parts("links"), Lines::link);
    }

    fn event(&mut self, place: usize, event: &View<'_>) {
        self.line(format_args!("SpanEvent #{place}"));
        self.part("Name", Shown(&event.text("name")));
        self.part("Timestamp", time(event.number("timeUnixNano")));
        let dropped = event.number("droppedAttributesCount");
        self.part("DroppedAttributesCount", dropped);
        self.attributes("     -> Attributes:", event, "attributes");
    }

    fn link(&mut self, place: usize, link: &View<'_>) {
        self.line(format_args!("SpanLink #{place}"));
        self.part("Trace ID", id(link.bytes("traceId")));
        self.part("ID", id(link.bytes("spanId")));
        self.part("TraceState", Shown(&link.text("traceState")));
        let dropped = link.number("droppedAttributesCount");
        self.part("DroppedAttributesCount", dropped);
        self.attributes("     -> Attributes:", link, "attributes");
    }
}

/// A span's kind; nothing where there is no such kind.
fn kind(kind: u64) -> &'static str {
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

fn word(words: &[&'static str], number: u64) -> &'static str {
    let place = usize::try_from(number).ok();
    place.and_then(|place| words.get(place)).unwrap_or(&"")
}

impl Lines {
    fn record(&mut self, place: usize, record: &View<'_>) {
        let (text, event) = (record.text("severityText"), record.text("eventName"));
        let number = record.number("severityNumber");
        let [observed, own] = ["observedTimeUnixNano", "timeUnixNano"].map(|it| record.number(it));
        self.line(format_args!("LogRecord #{place}"));
        self.line(format_args!("ObservedTimestamp: {}", time(observed)));
        self.line(format_args!("Timestamp: {}", time(own)));
        self.line(format_args!("SeverityText: {}", Shown(&text)));
        let severity = severity(number);
        self.line(format_args!(
            "SeverityNumber: {severity}({})",
            number as i32
        ));
        if !event.is_empty() {
            self.line(format_args!("EventName: {}", Shown(&event)));
        }
        self.line(format_args!("Body: {}", typed(record.any("body"))));
        self.attributes("Attributes", record, "attributes");
        self.line(format_args!("Trace ID: {}", id(record.bytes("traceId"))));
        self.line(format_args!("Span ID: {}", id(record.bytes("spanId"))));
        self.line(format_args!("Flags: {}", record.number("flags")));
    }
}

/// A severity; nothing where there is none of this number.
fn severity(number: u64) -> String {
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

impl Lines {
    fn metric(&mut self, place: usize, metric: &View<'_>) {
        let data = data(metric);
        let kind = data.map_or("Empty", |(kind, _)| kind);
        self.line(format_args!("Metric #{place}"));
        self.line("Descriptor:");
        self.part("Name", Shown(&metric.text("name")));
        self.part("Description", Shown(&metric.text("description")));
        self.part("Unit", Shown(&metric.text("unit")));
        self.part("DataType", kind);
        self.attributes("     -> Metadata", metric, "metadata");
        let Some((kind, data)) = data else {
            return;
        };
        if kind == "Sum" {
            self.part("IsMonotonic", data.number("isMonotonic") != 0);
        }
        if !matches!(kind, "Gauge" | "Summary") {
            const WORDS: [&str; 3] = ["Unspecified", "Delta", "Cumulative"];
            let temporality = word(&WORDS, data.number("aggregationTemporality"));
            self.part("AggregationTemporality", temporality);
        }
        for (place, point) in data.all("dataPoints").enumerate() {
            self.point(kind, place, &point);
        }
    }

    fn point(&mut self, kind: &str, place: usize, point: &View<'_>) {
        let what = match kind {
            "Gauge" | "Sum" => "Number",
            kind => kind,
        };
        self.line(format_args!("{what}DataPoints #{place}"));
        self.attributes("Data point attributes", point, "attributes");
        let [start, own] = ["startTimeUnixNano", "timeUnixNano"].map(|it| time(point.number(it)));
        self.line(format_args!("StartTimestamp: {start}"));
        self.line(format_args!("Timestamp: {own}"));
        match kind {
            "Histogram" => self.histogram(point),
            "ExponentialHistogram" => self.exponential(point),
            "Summary" => return self.summary(point),
            _ => self.number("", point),
        }
        let exemplars: Vec<_> = point.all("exemplars").collect();
        self.list("Exemplars", &exemplars, Lines::exemplar);
    }

    /// The value of a number or an exemplar.
    fn number(&mut self, indent: &str, point: &View<'_>) {
        if let Some(value) = point.double("asDouble") {
            self.line(format_args!("{indent}Value: {}", fixed(value)));
        } else if point.has("asInt") {
            self.line(format_args!("{indent}Value: {}", point.signed("asInt")));
        }
    }

    /// What all histograms say of their values.
    fn totals(&mut self, point: &View<'_>) {
        self.line(format_args!("Count: {}", point.number("count")));
        for (name, field) in [("Sum", "sum"), ("Min", "min"), ("Max", "max")] {
            if let Some(value) = point.double(field) {
                self.line(format_args!("{name}: {}", fixed(value)));
            }
        }
    }

    fn histogram(&mut self, point: &View<'_>) {
        self.totals(point);
        for (place, bits) in point.numbers("explicitBounds").into_iter().enumerate() {
            let bound = fixed(f64::from_bits(bits));
            self.line(format_args!("ExplicitBounds #{place}: {bound}"));
        }
        for (place, count) in point.numbers("bucketCounts").into_iter().enumerate() {
            self.line(format_args!("Buckets #{place}, Count: {count}"));
        }
    }

    fn exponential(&mut self, point: &View<'_>) {
        self.totals(point);
        for (bounds, count) in buckets(point, "negative").rev() {
            let (low, high) = (fixed(-bounds.end), fixed(-bounds.start));
            self.line(format_args!("Bucket [{low}, {high}), Count: {count}"));
        }
        let zero = point.number("zeroCount");
        if zero > 0 {
            self.line(format_args!("Bucket [0, 0], Count: {zero}"));
        }
        for (bounds, count) in buckets(point, "positive") {
            let (low, high) = (fixed(bounds.start), fixed(bounds.end));
            self.line(format_args!("Bucket ({low}, {high}], Count: {count}"));
        }
    }

    fn summary(&mut self, point: &View<'_>) {
        self.line(format_args!("Count: {}", point.number("count")));
        let part = |of: &View<'_>, name| fixed(of.double(name).unwrap_or_default());
        self.line(format_args!("Sum: {}", part(point, "sum")));
        for (place, one) in point.all("quantileValues").enumerate() {
            let (quantile, value) = (part(&one, "quantile"), part(&one, "value"));
            self.line(format_args!(
                "QuantileValue #{place}: Quantile {quantile}, Value {value}"
            ));
        }
    }

    fn exemplar(&mut self, place: usize, one: &View<'_>) {
        self.line(format_args!("Exemplar #{place}"));
        self.part("Trace ID", id(one.bytes("traceId")));
        self.part("Span ID", id(one.bytes("spanId")));
        self.part("Timestamp", time(one.number("timeUnixNano")));
        self.number("     -> ", one);
        self.attributes("     -> FilteredAttributes", one, "filteredAttributes");
    }
}
