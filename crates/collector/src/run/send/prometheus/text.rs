//! Pages in text: Prometheus' format 0.0.4, and OpenMetrics 1.0.0.

use std::fmt::Write;

use syntax::hex;

use super::escape::{Escaping, is_plain};
use super::labels::Labels;
use super::native::Native;
use super::point::{Exemplar, Histogram, Kind, Point, Summary, Value};
use super::store::View;
use crate::run::send::number::general;

/// Writes the metrics of a page.
pub(super) fn write(views: &[View], is_open: bool, escaping: Escaping) -> String {
    let mut page = Page {
        out: String::new(),
        is_open,
        escaping,
    };
    for view in views.iter().filter(|view| !view.series.is_empty()) {
        page.metric(view);
    }
    if is_open {
        page.out.push_str("# EOF\n");
    }
    page.out
}

struct Page {
    out: String,
    /// OpenMetrics.
    is_open: bool,
    escaping: Escaping,
}

/// A sample's name and labels.
#[derive(Clone, Copy)]
struct Key<'a> {
    name: &'a str,
    suffix: &'a str,
    labels: &'a Labels,
    /// The label of a bucket or quantile.
    more: Option<More>,
}

#[derive(Clone, Copy)]
struct More {
    name: &'static str,
    value: f64,
}

/// Rest of a line after a sample's value.
#[derive(Clone, Copy)]
struct Behind<'a> {
    time_ns: Option<u64>,
    exemplar: Option<&'a Exemplar>,
}

impl Page {
    fn metric(&mut self, view: &View) {
        let metric = &view.metric;
        let name = self.escaping.name(&metric.name).into_owned();
        // In OpenMetrics the suffix belongs to the sample, not to the metric. A counter without it
        // cannot be told as one.
        let counted =
            { self.is_open && metric.kind == Kind::Counter }.then(|| name.strip_suffix("_total"));
        let (base, kind) = match counted {
            None => (name.as_str(), metric.kind.word()),
            Some(None) => (name.as_str(), "unknown"),
            Some(Some(base)) => (base, metric.kind.word()),
        };
        self.about("HELP", base);
        let help = escaped(&metric.help, self.is_open);
        let _ = writeln!(self.out, " {help}");
        self.about("TYPE", base);
        let _ = writeln!(self.out, " {kind}");
        if let Some(unit) = metric.unit.as_deref().filter(|_| self.is_open) {
            let rest = base.strip_suffix(unit);
            if rest.is_some_and(|rest| rest.ends_with('_')) {
                self.about("UNIT", base);
                let _ = writeln!(self.out, " {unit}");
            }
        }
        for sample in &view.series {
            let key = Key {
                name: &name,
                suffix: "",
                labels: &sample.labels,
                more: None,
            };
            let is_counter = metric.kind == Kind::Counter;
            self.point(key, &sample.point, view.has_times, is_counter);
        }
    }

    fn about(&mut self, what: &str, name: &str) {
        let _ = write!(self.out, "# {what} ");
        if is_plain(name) {
            self.out.push_str(name);
        } else {
            self.quoted(name);
        }
    }

    fn point(&mut self, key: Key<'_>, point: &Point, has_times: bool, is_counter: bool) {
        let behind = Behind {
            time_ns: has_times.then_some(point.time_ns),
            exemplar: None,
        };
        match &point.value {
            Value::Int(_) | Value::Double(_) => {
                let exemplar = point.exemplars.last().filter(|_| is_counter);
                let value = point.value.number().unwrap_or_default();
                let value = self.number(value);
                self.line(key, &value, Behind { exemplar, ..behind });
            }
            Value::Histogram(histogram) => {
                self.histogram(key, histogram, &point.exemplars, behind);
            }
            Value::Native(native) => self.native(key, native, behind),
            Value::Summary(summary) => self.summary(key, summary, behind),
        }
    }

    fn histogram(
        &mut self,
        key: Key<'_>,
        histogram: &Histogram,
        exemplars: &[Exemplar],
        behind: Behind<'_>,
    ) {
        let mut exemplars = exemplars.iter().peekable();
        let mut sum = 0u64;
        let counts = histogram.counts.iter().map(Some).chain([None]);
        let bounds = histogram.bounds.iter().chain([&f64::INFINITY]);
        for (place, (bound, count)) in bounds.zip(counts).enumerate() {
            sum = match count {
                Some(count) => sum.saturating_add(*count),
                None => histogram.count,
            };
            let exemplar = exemplars.next_if(|one| histogram.bucket(one.value) == place);
            self.bucket(key, *bound, sum, Behind { exemplar, ..behind });
        }
        self.totals(key, histogram.sum, histogram.count, behind);
    }

    /// In text an exponential histogram has no buckets but the last.
    fn native(&mut self, key: Key<'_>, native: &Native, behind: Behind<'_>) {
        self.bucket(key, f64::INFINITY, native.count, behind);
        self.totals(key, native.sum, native.count, behind);
    }

    fn summary(&mut self, key: Key<'_>, summary: &Summary, behind: Behind<'_>) {
        for one in &summary.quantiles {
            let more = Some(More {
                name: "quantile",
                value: one.quantile,
            });
            let value = self.number(one.value);
            self.line(Key { more, ..key }, &value, behind);
        }
        self.totals(key, summary.sum, summary.count, behind);
    }

    fn bucket(&mut self, key: Key<'_>, bound: f64, count: u64, behind: Behind<'_>) {
        let more = Some(More {
            name: "le",
            value: bound,
        });
        let key = Key {
            suffix: "_bucket",
            more,
            ..key
        };
        let count = self.count(count);
        self.line(key, &count, behind);
    }

    fn totals(&mut self, key: Key<'_>, sum: f64, count: u64, behind: Behind<'_>) {
        let sum = self.number(sum);
        let count = self.count(count);
        for (suffix, value) in [("_sum", sum), ("_count", count)] {
            self.line(Key { suffix, ..key }, &value, behind);
        }
    }

    fn line(&mut self, key: Key<'_>, value: &str, behind: Behind<'_>) {
        let (name, is_quoted) = (key.name, !is_plain(key.name));
        let mut open = '{';
        if is_quoted {
            self.out.push('{');
            self.quoted(&format!("{name}{}", key.suffix));
            open = ',';
        } else {
            self.out.push_str(name);
            self.out.push_str(key.suffix);
        }
        for (name, value) in key.labels.iter() {
            self.out.push(open);
            self.label(name, value);
            open = ',';
        }
        if let Some(more) = key.more {
            let value = self.number(more.value);
            self.out.push(open);
            self.label(more.name, &value);
            open = ',';
        }
        if open == ',' {
            self.out.push('}');
        }
        let _ = write!(self.out, " {value}");
        if let Some(time_ns) = behind.time_ns {
            let time_ms = time_ns / 1_000_000;
            let time = if self.is_open {
                open_number(time_ms as f64 / 1e3)
            } else {
                time_ms.to_string()
            };
            let _ = write!(self.out, " {time}");
        }
        if let Some(exemplar) = behind.exemplar.filter(|_| self.is_open) {
            self.exemplar(exemplar);
        }
        self.out.push('\n');
    }

    fn label(&mut self, name: &str, value: &str) {
        let name = self.escaping.name(name);
        // A colon is for the names of metrics only.
        if is_plain(&name) && !name.contains(':') {
            self.out.push_str(&name);
        } else {
            self.quoted(&name);
        }
        self.out.push('=');
        self.quoted(value);
    }

    fn exemplar(&mut self, exemplar: &Exemplar) {
        self.out.push_str(" # {");
        for (place, (name, id)) in exemplar.ids().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(self.out, "{comma}{name}=\"{}\"", hex::text(id));
        }
        let (value, time) = (exemplar.value, exemplar.time_ns as f64 / 1e9);
        let (value, time) = (open_number(value), open_number(time));
        let _ = write!(self.out, "}} {value} {time}");
    }

    fn quoted(&mut self, text: &str) {
        let _ = write!(self.out, "\"{}\"", escaped(text, true));
    }

    fn number(&self, value: f64) -> String {
        if self.is_open {
            open_number(value)
        } else {
            number(value)
        }
    }

    fn count(&self, value: u64) -> String {
        if self.is_open {
            value.to_string()
        } else {
            number(value as f64)
        }
    }
}

impl Exemplar {
    /// The labels that it has: what it is an example from.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let all: [(&str, &[u8]); 2] = [("trace_id", &self.trace_id), ("span_id", &self.span_id)];
        let is_there = |(_, id): &(&str, &[u8])| id.iter().any(|byte| *byte != 0);
        all.into_iter().filter(is_there)
    }
}

/// A text within a line. Prometheus' format leaves quotes in descriptions as they are.
fn escaped(text: &str, with_quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if with_quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

/// A number as Go's `strconv` writes it with the format `g`.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    general(value, 1e6)
}

/// The same in OpenMetrics, where a number that is no count has a dot or an exponent.
fn open_number(value: f64) -> String {
    let text = number(value);
    if value.is_finite() && !text.contains(['.', 'e']) {
        format!("{text}.0")
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
