//! Data points that a scraper makes, gathered by metric, and the request of all of them.

use otlp::write;

use crate::config::components::receivers::host_metrics::metrics::{Data, Metric};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u64 = 2;
/// The schema of the names (`sem_conv_version` of the Collector's scrapers).
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.9.0";
/// The Collector's name of the scope, before the name of the scraper.
const SCOPE: &str = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/hostmetricsreceiver/internal/scraper/";

/// The data points of one scraper and one moment.
pub(super) struct Points<'a> {
    metrics: &'a [&'static Metric],
    /// Of each metric, its data points as fields of `Sum` and `Gauge`.
    points: Vec<Vec<u8>>,
    /// Nanoseconds of the UNIX epoch.
    start_ns: u64,
    now_ns: u64,
}

/// Attributes of a data point.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl<'a> Points<'a> {
    /// None yet. Points of other metrics than these are left out. Counts began at `start_ns`.
    pub fn new(metrics: &'a [&'static Metric], start_ns: u64, now_ns: u64) -> Points<'a> {
        Points {
            metrics,
            points: vec![Vec::new(); metrics.len()],
            start_ns,
            now_ns,
        }
    }

    /// Whether a metric is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.metrics.iter().any(|metric| metric.name == name)
    }

    /// A point with a whole number. What is beyond the range of OTLP is its end.
    pub fn int(&mut self, name: &str, attributes: Attributes<'_>, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        // `NumberDataPoint.as_int`
        self.point(name, attributes, |out| {
            write::fixed64(out, 6, value.cast_unsigned());
        });
    }

    /// A point with a fraction.
    pub fn double(&mut self, name: &str, attributes: Attributes<'_>, value: f64) {
        // `NumberDataPoint.as_double`
        self.point(name, attributes, |out| write::double(out, 4, value));
    }

    fn point(&mut self, name: &str, attributes: Attributes<'_>, value: impl FnOnce(&mut Vec<u8>)) {
        let Some(place) = self.metrics.iter().position(|metric| metric.name == name) else {
            return;
        };
        let (start_ns, now_ns) = (self.start_ns, self.now_ns);
        write::message(&mut self.points[place], 1, |out| {
            write::fixed64(out, 2, start_ns);
            write::fixed64(out, 3, now_ns);
            value(out);
            for (key, value) in attributes {
                write::text_value(out, 7, key, value);
            }
        });
    }

    /// How many metrics have points.
    pub fn count(&self) -> u64 {
        let with_points = self.points.iter().filter(|points| !points.is_empty());
        with_points.count() as u64
    }

    /// Appends a `ResourceMetrics` as a field of a request; nothing where there are no points.
    pub fn write(&self, scraper: &str, out: &mut Vec<u8>) {
        if self.count() == 0 {
            return;
        }
        write::message(out, 1, |out| {
            write::message(out, 1, |_| {});
            write::message(out, 2, |out| {
                write::message(out, 1, |out| {
                    let name = format!("{SCOPE}{scraper}scraper");
                    write::bytes(out, 1, name.as_bytes());
                    write::bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                for (metric, points) in self.metrics.iter().zip(&self.points) {
                    if !points.is_empty() {
                        write::message(out, 2, |out| write_metric(metric, points, out));
                    }
                }
            });
            write::bytes(out, 3, SCHEMA.as_bytes());
        });
    }
}

fn write_metric(metric: &Metric, points: &[u8], out: &mut Vec<u8>) {
    write::bytes(out, 1, metric.name.as_bytes());
    write::bytes(out, 2, metric.description.as_bytes());
    write::bytes(out, 3, metric.unit.as_bytes());
    if metric.data == Data::Gauge {
        return write::message(out, 5, |out| out.extend_from_slice(points));
    }
    write::message(out, 7, |out| {
        out.extend_from_slice(points);
        write::uint(out, 2, CUMULATIVE);
        if metric.data == Data::Counter {
            write::uint(out, 3, 1);
        }
    });
}
