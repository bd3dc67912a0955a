//! Metrics at one moment, before they are written in any format.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::config::service::telemetry::Naming;
use crate::run::buckets::Buckets;

/// Metrics in the order in which they were noted.
#[derive(Default)]
pub(in crate::run) struct Sheet(pub(super) Vec<Family>);

/// What has one name.
pub(super) struct Family {
    pub name: String,
    pub kind: Kind,
    /// As OTLP has it (UCUM); empty: none.
    pub unit: &'static str,
    pub help: String,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A value, or one of the numbers of a histogram.
pub(super) struct Point {
    pub part: Part,
    pub labels: Vec<(String, String)>,
    pub value: Number,
}

/// What a point is of its metric, as Prometheus' format tells histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Value,
    /// What is not larger than the label `le`.
    Bucket,
    Sum,
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::Whole(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Real(value)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(value) => value.fmt(out),
            Number::Real(value) => value.fmt(out),
        }
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

impl Part {
    fn suffix(self) -> &'static str {
        match self {
            Part::Value => "",
            Part::Bucket => "_bucket",
            Part::Sum => "_sum",
            Part::Count => "_count",
        }
    }
}

impl Sheet {
    /// What the next points are of.
    pub(super) fn about(&mut self, kind: Kind, name: &str, unit: &'static str, help: &str) {
        self.0.push(Family {
            name: name.to_owned(),
            kind,
            unit,
            help: help.to_owned(),
            points: Vec::new(),
        });
    }

    /// A value of what was told last.
    pub(super) fn point(&mut self, labels: &[(&str, &str)], value: impl Into<Number>) {
        self.part(Part::Value, labels, value.into());
    }

    /// A histogram of what was told last: how many are within each bound, and how many are beyond the last.
    pub(super) fn buckets(
        &mut self,
        labels: &[(&str, &str)],
        (bounds, counts): (&[u64], &[u64]),
        sum: u64,
    ) {
        let mut count = 0;
        let bounds = bounds.iter().map(u64::to_string);
        for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
            count += bucket;
            let labels: Vec<_> = { labels.iter().copied() }
                .chain([("le", bound.as_str())])
                .collect();
            self.part(Part::Bucket, &labels, count.into());
        }
        self.part(Part::Sum, labels, sum.into());
        self.part(Part::Count, labels, count.into());
    }

    /// The same of what was counted.
    pub(super) fn counted(&mut self, labels: &[(&str, &str)], buckets: &Buckets) {
        let counts = (buckets.bounds(), &*buckets.counts());
        self.buckets(labels, counts, buckets.sum());
    }

    fn part(&mut self, part: Part, labels: &[(&str, &str)], value: Number) {
        let owned = |(label, text): &(&str, &str)| ((*label).to_owned(), (*text).to_owned());
        if let Some(family) = self.0.last_mut() {
            family.points.push(Point {
                part,
                labels: labels.iter().map(owned).collect(),
                value,
            });
        }
    }

    /// In Prometheus' text format. What has no points is left out.
    pub(super) fn prometheus(&self, naming: Naming) -> String {
        let mut text = String::new();
        for family in self.0.iter().filter(|family| !family.points.is_empty()) {
            let (name, kind) = (family.prometheus_name(naming), family.kind.word());
            let help = &family.help;
            // Writing to a text cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for point in &family.points {
                line(&mut text, &name, point);
            }
        }
        text
    }
}

/// Units that Prometheus' names have other words for (OpenTelemetry specification, "Prometheus and OpenMetrics
/// Compatibility"), as far as there are such metrics here.
const UNITS: [(&str, &str); 4] = [
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("By", "bytes"),
];

impl Family {
    fn prometheus_name(&self, naming: Naming) -> Cow<'_, str> {
        let mut name = Cow::from(&*self.name);
        // Of `{spans}` and the like nothing is in the name.
        let unit = UNITS.iter().find(|(unit, _)| *unit == self.unit);
        let unit = match (unit, self.kind) {
            (Some((_, word)), _) => Some(*word),
            (None, Kind::Gauge) if self.unit == "1" => Some("ratio"),
            _ => None,
        };
        if let Some(unit) = unit.filter(|unit| naming.units && !name.ends_with(unit)) {
            name = format!("{name}_{unit}").into();
        }
        if naming.type_suffix && self.kind == Kind::Counter && !name.ends_with("_total") {
            name = format!("{name}_total").into();
        }
        name
    }
}

fn line(text: &mut String, name: &str, point: &Point) {
    text.push_str(name);
    text.push_str(point.part.suffix());
    for (at, (label, value)) in point.labels.iter().enumerate() {
        let open = if at == 0 { '{' } else { ',' };
        let _ = write!(text, "{open}{label}=\"{}\"", escaped(value));
    }
    if !point.labels.is_empty() {
        text.push('}');
    }
    let _ = writeln!(text, " {}", point.value);
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
