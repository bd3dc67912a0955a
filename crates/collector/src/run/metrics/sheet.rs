//! Metrics at one moment, before they are written in any format.

use std::fmt::Write;

/// Metrics in the order in which they were noted.
#[derive(Default)]
pub(in crate::run) struct Sheet(pub(super) Vec<Family>);

/// What has one name.
pub(super) struct Family {
    pub name: String,
    pub kind: Kind,
    pub help: String,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// Its points are named as in Prometheus' format: `_bucket` with `le`, `_sum` and `_count`.
    Histogram,
}

/// A value.
pub(super) struct Point {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: u64,
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
    /// What the next lines are; another word than `counter` and `histogram` is a gauge.
    pub(super) fn about(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push(Family {
            name: name.to_owned(),
            kind: match kind {
                "counter" => Kind::Counter,
                "histogram" => Kind::Histogram,
                _ => Kind::Gauge,
            },
            help: help.to_owned(),
            points: Vec::new(),
        });
    }

    /// A value of what was told last.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        let owned = |(label, text): &(&str, &str)| ((*label).to_owned(), (*text).to_owned());
        if let Some(family) = self.0.last_mut() {
            family.points.push(Point {
                name: name.to_owned(),
                labels: labels.iter().map(owned).collect(),
                value,
            });
        }
    }

    /// In Prometheus' text format.
    pub(super) fn prometheus(&self) -> String {
        let mut text = String::new();
        for Family {
            name,
            kind,
            help,
            points,
        } in &self.0
        {
            // Writing to a text cannot fail.
            let kind = kind.word();
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for point in points {
                line(&mut text, point);
            }
        }
        text
    }
}

fn line(text: &mut String, point: &Point) {
    text.push_str(&point.name);
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
