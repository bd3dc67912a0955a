//! The text format of Prometheus (version 0.0.4) with HAProxy's names (its `addons/promex`), and
//! OpenMetrics (version 1.0.0), which has exemplars.

use std::fmt::Write as _;

use crate::latency::{BOUNDS_MS, Exemplar, Histogram};
use crate::metric::{Form, Metric, Point, Sample};
use crate::process::Fact;
use crate::row::Value;

/// The formats that Prometheus reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Version 0.0.4.
    #[default]
    Text,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

/// The media type of OpenMetrics, as a client names it in `Accept`.
pub const OPENMETRICS: &str = "application/openmetrics-text";

impl Format {
    /// The media type of the output.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The lines above the series of a metric.
    pub fn header(self, metric: &Metric, out: &mut String) {
        self.lines(&metric.name, metric.about(), metric.form(), out);
    }

    fn lines(self, name: &str, about: &str, form: Form, out: &mut String) {
        let has_suffix = name.ends_with("_total");
        // OpenMetrics names the family; a counter's sample has the suffix.
        let name = match (self, form) {
            (Format::OpenMetrics, Form::Counter) => name.trim_end_matches("_total"),
            _ => name,
        };
        let kind = match form {
            // A counter of OpenMetrics ends with the suffix, which HAProxy's names lack.
            Form::Counter if self == Format::OpenMetrics && !has_suffix => "unknown",
            Form::Counter => "counter",
            Form::Gauge => "gauge",
            Form::Histogram => "histogram",
        };
        let _ = write!(out, "# HELP {name} ");
        escape(about, self == Format::OpenMetrics, out);
        let _ = writeln!(out, "\n# TYPE {name} {kind}");
    }

    /// The series of a row.
    pub fn series(self, metric: &Metric, sample: &Sample, out: &mut String) {
        let mut labels = String::new();
        for (label, value) in sample.labels() {
            let comma = if labels.is_empty() { "" } else { "," };
            let _ = write!(labels, "{comma}{label}=\"");
            escape(value, true, &mut labels);
            labels.push('"');
        }
        let skips_nan = self == Format::OpenMetrics && metric.form() == Form::Counter;
        metric.points(sample, &mut |point| match point {
            // In OpenMetrics, a counter must have a number.
            Point::Number(_, value) if skips_nan && value.is_nan() => {}
            Point::Number(split, value) => {
                let _ = write!(out, "{}{{{labels}", metric.name);
                if let Some((label, text)) = split {
                    let _ = write!(out, ",{label}=\"{text}\"");
                }
                out.push_str("} ");
                number(value, out);
                out.push('\n');
            }
            Point::Histogram(histogram) => self.histogram(&metric.name, &labels, histogram, out),
        });
    }

    fn histogram(self, name: &str, labels: &str, histogram: &Histogram, out: &mut String) {
        let bounds = BOUNDS_MS.iter().map(|ms| Some(*ms as f64 / 1000.0));
        let mut count = 0;
        for (place, bound) in bounds.chain([None]).enumerate() {
            count += histogram.counts[place];
            let _ = match bound {
                Some(bound) => write!(out, "{name}_bucket{{{labels},le=\"{bound:?}\"}} {count}"),
                None => write!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}"),
            };
            if let Some(one) = &histogram.exemplars[place]
                && self == Format::OpenMetrics
            {
                exemplar(one, out);
            }
            out.push('\n');
        }
        let sum = histogram.sum_ms as f64 / 1000.0;
        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }

    /// A gauge outside of the table of fields, with its series: labels and value.
    pub fn gauge<'a>(
        self,
        name: &str,
        about: &str,
        series: impl Iterator<Item = ([(&'static str, &'a str); 2], f64)>,
        out: &mut String,
    ) {
        self.lines(name, about, Form::Gauge, out);
        for ([first, second], value) in series {
            let _ = write!(out, "{name}{{{}=\"", first.0);
            escape(first.1, true, out);
            let _ = write!(out, "\",{}=\"", second.0);
            escape(second.1, true, out);
            out.push_str("\"} ");
            number(value, out);
            out.push('\n');
        }
    }

    /// The text after the last metric.
    pub fn end(self, out: &mut String) {
        if self == Format::OpenMetrics {
            out.push_str("# EOF\n");
        }
    }

    /// The metric of a fact of the process, with its single series; nothing if it is not exported.
    pub fn process(self, fact: Fact, value: &Value<'_>, out: &mut String) {
        let Some(name) = fact.metric() else {
            return;
        };
        self.lines(&name, fact.field().about, fact.form(), out);
        out.push_str(&name);
        if let Some(label) = fact.label() {
            let _ = write!(out, "{{{label}=\"");
            escape(&value.to_string(), true, out);
            out.push_str("\"} 1\n");
            return;
        }
        out.push(' ');
        number(value.number().unwrap_or(f64::NAN), out);
        out.push('\n');
    }
}

/// Writes an exemplar after the value of its bucket: its trace, its own value and its time.
fn exemplar(exemplar: &Exemplar, out: &mut String) {
    out.push_str(" # {trace_id=\"");
    for byte in exemplar.trace_id {
        let _ = write!(out, "{byte:02x}");
    }
    let seconds = exemplar.ms as f64 / 1000.0;
    let at_s = (exemplar.unix_ns / 1_000_000) as f64 / 1000.0;
    let _ = write!(out, "\"}} {seconds} {at_s}");
}

/// Writes a text with escaped special characters. `quoted`: quotes are escaped too.
fn escape(text: &str, quoted: bool, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' if quoted => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

/// Writes a number in Prometheus's format. Writing to memory does not fail.
fn number(value: f64, out: &mut String) {
    let _ = if value.is_nan() {
        write!(out, "NaN")
    } else {
        write!(out, "{value}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::latency::{Exemplar, Latency};
    use crate::metric::metrics;
    use crate::row::{Kind, Row};

    fn server() -> Row<'static> {
        let mut row = Row::new(Kind::Server);
        row.set(Column::Pxname, "be");
        row.set(Column::Svname, "s\"1");
        row.set(Column::Status, "no check");
        row.set(Column::Stot, 3_u64);
        row.set(Column::Qtime, 1500_u32);
        row
    }

    fn written(kind: Kind, row: &Row<'_>) -> String {
        let sample = Sample::of(row, None);
        let mut out = String::new();
        for metric in metrics(kind) {
            Format::Text.header(&metric, &mut out);
            Format::Text.series(&metric, &sample, &mut out);
        }
        out
    }

    #[test]
    fn series_of_a_server() {
        let text = written(Kind::Server, &server());
        let labels = "proxy=\"be\",server=\"s\\\"1\"";
        for line in [
            format!("haproxy_server_sessions_total{{{labels}}} 3"),
            format!("haproxy_server_queue_time_average_seconds{{{labels}}} 1.5"),
            format!("haproxy_server_status{{{labels},state=\"UP\"}} 1"),
            format!("haproxy_server_status{{{labels},state=\"DOWN\"}} 0"),
            format!("haproxy_server_queue_limit{{{labels}}} NaN"),
            "# TYPE haproxy_server_sessions_total counter".to_owned(),
            "# TYPE haproxy_server_active gauge".to_owned(),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
        assert!(!text.contains("haproxy_server_check_code{"), "no check");
    }

    #[test]
    fn responses_are_one_metric() {
        let mut row = Row::new(Kind::Frontend);
        row.set(Column::Pxname, "fe");
        row.set(Column::Status, "OPEN");
        for column in [Column::Hrsp1xx, Column::Hrsp2xx, Column::HrspOther] {
            row.set(column, 7_u64);
        }
        let text = written(Kind::Frontend, &row);
        let header = "# TYPE haproxy_frontend_http_responses_total counter";
        assert_eq!(text.matches(header).count(), 1);
        assert!(text.contains("http_responses_total{proxy=\"fe\",code=\"2xx\"} 7\n"));
        assert!(text.contains("http_responses_total{proxy=\"fe\",code=\"other\"} 7\n"));
        assert!(text.contains("haproxy_frontend_status{proxy=\"fe\",state=\"UP\"} 1\n"));
    }

    fn with_times() -> Row<'static> {
        let mut row = Row::new(Kind::Server);
        row.set(Column::Pxname, "be");
        row.set(Column::Svname, "s1");
        row.set(Column::Stot, 3_u64);
        let mut latency = Latency::default();
        let total = &mut latency.parts[3];
        (total.counts[0], total.counts[2], total.counts[15]) = (1, 4, 2);
        total.sum_ms = 140_021;
        total.offer(Exemplar {
            trace_id: [0xab; 16],
            ms: 4,
            unix_ns: 1_700_000_000_250_000_000,
        });
        row.latency = Some(Box::new(latency));
        row
    }

    #[test]
    fn histograms_are_cumulative_and_exemplars_are_openmetrics() {
        let sample = Sample::of(&with_times(), None);
        let metric = metrics(Kind::Server).last().expect("a metric");
        let write = |format: Format| {
            let mut out = String::new();
            format.header(&metric, &mut out);
            format.series(&metric, &sample, &mut out);
            out
        };
        let name = "haproxy_server_total_time_seconds";
        let labels = "proxy=\"be\",server=\"s1\"";
        let (text, open) = (write(Format::Text), write(Format::OpenMetrics));
        for line in [
            format!("# TYPE {name} histogram"),
            format!("{name}_bucket{{{labels},le=\"0.001\"}} 1"),
            format!("{name}_bucket{{{labels},le=\"60.0\"}} 5"),
            format!("{name}_bucket{{{labels},le=\"+Inf\"}} 7"),
            format!("{name}_count{{{labels}}} 7"),
            format!("{name}_sum{{{labels}}} 140.021"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
            assert!(open.contains(&format!("{line}\n")), "{line}\n{open}");
        }
        assert!(!text.contains("trace_id"));
        let trace = "ab".repeat(16);
        let exemplar = format!(
            "{name}_bucket{{{labels},le=\"0.005\"}} 5 # {{trace_id=\"{trace}\"}} 0.004 1700000000.25\n"
        );
        assert!(open.contains(&exemplar), "{open}");
    }

    #[test]
    fn openmetrics_names_a_counter_without_its_suffix_and_knows_no_counter_without_a_number() {
        let sample = Sample::of(&with_times(), None);
        let mut out = String::new();
        for metric in metrics(Kind::Server) {
            assert_eq!(
                metric.form() == crate::metric::Form::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            Format::OpenMetrics.header(&metric, &mut out);
            Format::OpenMetrics.series(&metric, &sample, &mut out);
        }
        Format::OpenMetrics.end(&mut out);
        assert!(out.contains("# TYPE haproxy_server_sessions counter\n"));
        assert!(out.contains("\nhaproxy_server_sessions_total{"));
        assert!(!out.contains("haproxy_server_bytes_in_total{"), "no number");
        assert!(out.ends_with("# EOF\n"));
    }
}
