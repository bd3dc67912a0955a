//! Statistics as OTLP (opentelemetry/proto/metrics/v1/metrics.proto): the metrics of the Prometheus
//! exporter with the same names, and their labels as attributes.

use otlp::write::{bytes, double, fixed64, message, packed, text_value, uint};
use stats::Kind;
use stats::latency::{BOUNDS_MS, Histogram};
use stats::metric::{Form, Metric, Point, Sample, metrics};
use stats::nameserver;

use super::export::KINDS;
use super::{Cursor, Selection, View};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u64 = 2;

/// The field of `Metric` for the points of each form.
const fn field_of(form: Form) -> u32 {
    match form {
        Form::Gauge => 5,
        Form::Counter => 7,
        Form::Histogram => 9,
    }
}

/// Appends each metric as field 2 of `ScopeMetrics`. Returns the number of data points.
/// `now_unix_ns`: the current time.
pub fn write(view: &View<'_>, now_unix_ns: u64, out: &mut Vec<u8>) -> usize {
    let mut writer = Writer {
        start_ns: view.runtime_config.process.started.wall_ns,
        now_ns: now_unix_ns,
        points: 0,
    };
    for (fact, value) in view.process().whole().filled() {
        let Some(name) = fact.metric() else { continue };
        let text = value.to_string();
        let number = value.number().unwrap_or(f64::NAN);
        writer.metric(
            (&name, fact.field().about, fact.form()),
            out,
            |each| match fact.label() {
                Some(label) => each(&[(label, &text)], Point::Number(None, 1.0)),
                None => each(&[], Point::Number(None, number)),
            },
        );
    }
    for kind in KINDS {
        let samples = samples(view, kind);
        for metric in metrics(kind) {
            writer.rows(&metric, &samples, out);
        }
    }
    writer.nameservers(view, out);
    writer.points
}

fn samples(view: &View<'_>, kind: Kind) -> Vec<Sample> {
    let selection = Selection {
        kinds: Some(vec![kind]),
        ..Selection::default()
    };
    let mut cursor = Cursor::default();
    let rows = std::iter::from_fn(|| cursor.next(view, &selection));
    rows.map(|(place, row)| view.sample(place, &row)).collect()
}

/// A data point: its attributes and its value.
type Each<'a> = dyn FnMut(&[(&str, &str)], Point<'_>) + 'a;

struct Writer {
    start_ns: u64,
    now_ns: u64,
    points: usize,
}

impl Writer {
    fn rows(&mut self, metric: &Metric, samples: &[Sample], out: &mut Vec<u8>) {
        let described = (&*metric.name, metric.about(), metric.form());
        self.metric(described, out, |each| {
            for sample in samples {
                let labels: Vec<_> = sample.labels().collect();
                metric.points(sample, &mut |point| each(&labels, point));
            }
        });
    }

    fn nameservers(&mut self, view: &View<'_>, out: &mut Vec<u8>) {
        let rows = view.shared.nameservers(&view.runtime_config.config);
        for (place, counter) in nameserver::COUNTERS.iter().enumerate() {
            let described = (&*counter.metric(), counter.about, Form::Gauge);
            self.metric(described, out, |each| {
                for row in &rows {
                    let labels = [("resolver", row.section), ("nameserver", row.name)];
                    each(&labels, Point::Number(None, row.values[place] as f64));
                }
            });
        }
    }

    /// Writes a metric with the points that `give` passes on; writes nothing if there are none.
    fn metric(
        &mut self,
        (name, about, form): (&str, &str, Form),
        out: &mut Vec<u8>,
        give: impl FnOnce(&mut Each<'_>),
    ) {
        let (begin, before) = (out.len(), self.points);
        message(out, 2, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, about.as_bytes());
            let unit = unit(name);
            if !unit.is_empty() {
                bytes(out, 3, unit.as_bytes());
            }
            message(out, field_of(form), |out| {
                give(&mut |labels, point| self.point(labels, point, out));
                if form != Form::Gauge {
                    uint(out, 2, CUMULATIVE);
                }
                if form == Form::Counter {
                    uint(out, 3, 1);
                }
            });
        });
        if self.points == before {
            out.truncate(begin);
        }
    }

    fn point(&mut self, labels: &[(&str, &str)], point: Point<'_>, out: &mut Vec<u8>) {
        match point {
            // NaN means that there is no number.
            Point::Number(_, value) if value.is_nan() => return,
            Point::Number(split, value) => message(out, 1, |out| {
                self.times(out);
                double(out, 4, value);
                let labels = labels.iter().copied().chain(split);
                labels.for_each(|(key, value)| text_value(out, 7, key, value));
            }),
            Point::Histogram(histogram) => message(out, 1, |out| {
                self.times(out);
                self::histogram(histogram, out);
                { labels.iter() }.for_each(|(key, value)| text_value(out, 9, key, value));
            }),
        }
        self.points += 1;
    }

    fn times(&self, out: &mut Vec<u8>) {
        fixed64(out, 2, self.start_ns);
        fixed64(out, 3, self.now_ns);
    }
}

/// The UCUM unit that a metric's name implies.
fn unit(name: &str) -> &'static str {
    match name.trim_end_matches("_total") {
        name if name.ends_with("_seconds") => "s",
        name if name.contains("_bytes_") => "By",
        _ => "",
    }
}

fn histogram(histogram: &Histogram, out: &mut Vec<u8>) {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    fixed64(out, 4, histogram.count());
    double(out, 5, seconds(histogram.sum_ms));
    packed(out, 6, histogram.counts.iter().copied());
    packed(
        out,
        7,
        BOUNDS_MS.iter().map(|bound| seconds(*bound).to_bits()),
    );
    for exemplar in histogram.exemplars.iter().flatten() {
        message(out, 8, |out| {
            fixed64(out, 2, exemplar.unix_ns);
            double(out, 3, seconds(exemplar.ms));
            bytes(out, 5, &exemplar.trace_id);
        });
    }
}
