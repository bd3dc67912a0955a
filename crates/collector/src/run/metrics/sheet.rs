//! Metrics at one moment, before they are written in any format.

use std::borrow::Cow;
use std::fmt::{Display, Write};

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

/// A value by its labels.
pub(super) struct Point {
    pub labels: Vec<(String, String)>,
    pub value: Number,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Whole(u64),
    Real(f64),
    Histogram {
        bounds: Vec<u64>,
        /// How many are within each bound and beyond the one before, and beyond the last.
        counts: Vec<u64>,
        sum: u64,
    },
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

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
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
        let owned = |(label, text): &(&str, &str)| ((*label).to_owned(), (*text).to_owned());
        if let Some(family) = self.0.last_mut() {
            family.points.push(Point {
                labels: labels.iter().map(owned).collect(),
                value: value.into(),
            });
        }
    }

    /// A histogram of what was told last: how many are within each bound, and how many are beyond
    /// the last.
    pub(super) fn buckets(
        &mut self,
        labels: &[(&str, &str)],
        (bounds, counts): (&[u64], &[u64]),
        sum: u64,
    ) {
        let (bounds, counts) = (bounds.to_vec(), counts.to_vec());
        let histogram = Number::Histogram {
            bounds,
            counts,
            sum,
        };
        self.point(labels, histogram);
    }

    /// The same of what was counted.
    pub(super) fn counted(&mut self, labels: &[(&str, &str)], buckets: &Buckets) {
        let counts = (buckets.bounds(), &*buckets.counts());
        self.buckets(labels, counts, buckets.sum());
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
                point.write(&name, &mut text);
            }
        }
        text
    }
}

/// Units that Prometheus' names have other words for (OpenTelemetry specification, "Prometheus and
/// OpenMetrics Compatibility"), as far as there are such metrics here.
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

impl Point {
    fn write(&self, name: &str, text: &mut String) {
        match &self.value {
            Number::Whole(value) => self.line(text, (name, ""), None, value),
            Number::Real(value) => self.line(text, (name, ""), None, value),
            Number::Histogram {
                bounds,
                counts,
                sum,
            } => {
                let mut count = 0;
                let bounds = bounds.iter().map(u64::to_string);
                for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
                    count += bucket;
                    self.line(text, (name, "_bucket"), Some(&bound), count);
                }
                self.line(text, (name, "_sum"), None, sum);
                self.line(text, (name, "_count"), None, count);
            }
        }
    }

    /// A line with the label `le` of a bucket.
    fn line(
        &self,
        text: &mut String,
        (name, suffix): (&str, &str),
        bound: Option<&str>,
        value: impl Display,
    ) {
        text.push_str(name);
        text.push_str(suffix);
        let own = self.labels.iter();
        let own = own.map(|(label, value)| (label.as_str(), value.as_str()));
        let mut open = '{';
        for (label, value) in own.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(text, "{open}{label}=\"{}\"", escaped(value));
            open = ',';
        }
        if open == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
