//! Metrics at one moment, before they are written in any format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{Display, Write};

use crate::config::service::telemetry::{MetricsLevel, Naming};
use crate::run::buckets::Buckets;

/// Metrics in the order in which they were noted first.
pub struct Sheet {
    /// How many metrics there are.
    pub level: MetricsLevel,
    pub(super) families: Vec<Family>,
    /// Places of the families by their names.
    places: HashMap<String, usize>,
    /// The family that the next points are of.
    current: usize,
}

/// What has one name.
pub(super) struct Family {
    pub name: String,
    pub kind: Kind,
    /// As OTLP has it (UCUM); empty: none.
    pub unit: &'static str,
    pub help: String,
    pub points: Vec<Point>,
}

/// How the values of a metric are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum that only rises.
    Counter,
    /// The value of now.
    Gauge,
    /// Counts of values by their size.
    Histogram,
}

/// A value by its labels.
pub(super) struct Point {
    pub labels: Vec<(String, String)>,
    pub value: Number,
}

/// The value of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A count.
    Whole(u64),
    /// A measured value.
    Real(f64),
    /// A histogram.
    Histogram {
        /// Upper bounds of the buckets, in rising order.
        bounds: Vec<u64>,
        /// How many are within each bound and beyond the one before, and beyond the last.
        counts: Vec<u64>,
        /// The sum of all values.
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
    /// An empty sheet of a level.
    #[must_use]
    pub fn new(level: MetricsLevel) -> Sheet {
        Sheet {
            level,
            families: Vec::new(),
            places: HashMap::new(),
            current: 0,
        }
    }

    /// What the next points are of. Components of one kind name the same metric one after the other:
    /// its points stay together, and the first one says what it is.
    pub fn about(&mut self, kind: Kind, name: &str, unit: &'static str, help: &str) {
        if let Some(place) = self.places.get(name) {
            self.current = *place;
            return;
        }
        self.current = self.families.len();
        self.places.insert(name.to_owned(), self.current);
        self.families.push(Family {
            name: name.to_owned(),
            kind,
            unit,
            help: help.to_owned(),
            points: Vec::new(),
        });
    }

    /// A value of what was told last.
    pub fn point(&mut self, labels: &[(&str, &str)], value: impl Into<Number>) {
        let owned = |(label, text): &(&str, &str)| ((*label).to_owned(), (*text).to_owned());
        if let Some(family) = self.families.get_mut(self.current) {
            family.points.push(Point {
                labels: labels.iter().map(owned).collect(),
                value: value.into(),
            });
        }
    }

    /// A histogram of what was told last: how many are within each bound, and how many are beyond
    /// the last.
    pub fn buckets(
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
    pub fn counted(&mut self, labels: &[(&str, &str)], buckets: &Buckets) {
        let counts = (buckets.bounds(), &*buckets.counts());
        self.buckets(labels, counts, buckets.sum());
    }

    /// In Prometheus' text format. What has no points is left out.
    pub(in crate::run) fn prometheus(&self, naming: Naming) -> String {
        let mut text = String::new();
        for family in self
            .families
            .iter()
            .filter(|family| !family.points.is_empty())
        {
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
