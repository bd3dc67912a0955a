//! The series of a batch: what each data point gives, by the names and labels of the series.

use std::collections::BTreeMap;
use std::sync::Arc;

use otlp::view::View;
use syntax::hex;

use crate::config::components::exporters::prometheus_remote_write::WriteVersion;
use crate::run::send::prometheus::Rejected;
use crate::run::send::prometheus::labels::{Labeller, Labels, Resource};
use crate::run::send::prometheus::native::Native;
use crate::run::send::prometheus::point::{
    self, Data, Histogram, Instrument, Kind, Point, Summary, Temporality, Value,
};

/// The value that says that a series has none any more (Prometheus, `value.StaleNaN`).
pub const STALE: u64 = 0x7ff0_0000_0000_0002;
/// Characters of the names and values of an exemplar's labels (OpenMetrics 1.0, "Exemplars").
const EXEMPLAR_CHARS_MAX: usize = 128;
/// Exemplars of a data point.
const EXEMPLARS_MAX: usize = 1024;

const NOT_CUMULATIVE: &str = "it is not cumulative, and Prometheus adds nothing up";

/// Identity of a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The name of the metric.
    pub name: Arc<str>,
    /// Labels besides the name.
    pub labels: Arc<Labels>,
    /// `le` or `quantile`.
    pub own: Option<(&'static str, String)>,
}

/// Points of a series in a batch.
#[derive(Debug, Default)]
pub struct Series {
    /// Times in milliseconds of the UNIX epoch, and values.
    pub samples: Vec<(i64, f64)>,
    pub histograms: Vec<NativeSample>,
    pub exemplars: Vec<Exemplar>,
    /// Of its metric.
    pub metadata: Option<Arc<Metadata>>,
    /// How many data points come with it: those of a histogram with one of its series.
    pub points: u64,
}

#[derive(Debug)]
pub struct NativeSample {
    pub time_ms: i64,
    pub native: Native,
    /// It has no value any more.
    pub is_stale: bool,
}

#[derive(Debug)]
pub struct Exemplar {
    /// Ascending by the name.
    pub labels: BTreeMap<String, String>,
    pub value: f64,
    pub time_ms: i64,
}

/// Type of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metadata {
    pub name: Arc<str>,
    /// The number that both versions of the protocol have for it.
    pub kind: u64,
    pub help: String,
    pub unit: String,
}

/// Settings of series.
pub struct Rules {
    pub labeller: Labeller,
    pub target_info: bool,
    pub version: WriteVersion,
}

/// The series of a batch.
#[derive(Default)]
pub struct Collected {
    pub series: BTreeMap<Key, Series>,
    pub metadata: BTreeMap<Arc<str>, Arc<Metadata>>,
    pub rejected: Rejected,
}

/// A data point that is read, and what its series have in common.
struct Read<'a, 'v> {
    view: &'a View<'v>,
    labels: Arc<Labels>,
    metadata: &'a Arc<Metadata>,
    time_ms: i64,
    is_stale: bool,
}

impl Rules {
    /// The series of a request.
    pub fn collect(&self, request: &View<'_>) -> Collected {
        let mut collected = Collected::default();
        for one in request.all("resourceMetrics") {
            let view = one.one("resource");
            let resource = self.labeller.resource(view.as_ref());
            let mut last_ns = 0;
            for scope in one.all("scopeMetrics") {
                last_ns = last_ns.max(self.scope(&scope, &resource, &mut collected));
            }
            if let Some(view) = view.filter(|_| self.target_info && last_ns > 0)
                && let Some(labels) = self.labeller.pushed_target(&view)
            {
                self.add_target(labels, last_ns, &mut collected);
            }
        }
        collected
    }

    fn add_target(&self, labels: Labels, last_ns: u64, collected: &mut Collected) {
        let name: Arc<str> = self.labeller.namer.target_info().into();
        let metadata = collected.metadata.entry(Arc::clone(&name));
        let metadata = metadata.or_insert_with(|| {
            Arc::new(Metadata {
                name: Arc::clone(&name),
                kind: number_of(Kind::Gauge),
                help: "Target metadata".to_owned(),
                unit: String::new(),
            })
        });
        let metadata = Some(Arc::clone(metadata));
        let key = Key {
            name,
            labels: Arc::new(labels),
            own: None,
        };
        let series = collected.series.entry(key).or_default();
        series.samples.push((millis(last_ns), 1.0));
        series.metadata = metadata;
    }

    /// Reads the metrics of a scope. Returns the time of its latest data point, nanoseconds.
    fn scope(&self, scope: &View<'_>, resource: &Resource, collected: &mut Collected) -> u64 {
        let of_scope = self.labeller.scope(scope);
        let mut last_ns = 0;
        for metric in scope.all("metrics") {
            let told = metric.text("name");
            let Some(data) = Data::of(&metric) else {
                let count = points_of(&metric);
                collected.rejected.add_many(&told, NOT_CUMULATIVE, count);
                continue;
            };
            let metadata = match data.temporality {
                Temporality::Cumulative => self.metadata(&metric, &data),
                Temporality::Delta => Err(NOT_CUMULATIVE),
            };
            for view in data.points() {
                last_ns = last_ns.max(view.number("timeUnixNano"));
                let mut add = || {
                    let metadata = metadata.as_ref().map_err(|why| *why)?;
                    let scope = of_scope.as_ref().map_err(|why| *why)?;
                    let kind = data.instrument.kind();
                    let labels = self.labeller.series(&view, resource, scope, kind)?;
                    let point = Point::read(&view, data.instrument)?;
                    let read = Read {
                        view: &view,
                        labels: Arc::new(labels),
                        metadata,
                        time_ms: millis(point.time_ns),
                        is_stale: point::has_no_value(&view),
                    };
                    self.add(read, point, data.instrument, collected);
                    Ok(())
                };
                if let Err(why) = add() {
                    collected.rejected.add(&told, why);
                }
            }
            if let Ok(metadata) = metadata {
                let name = Arc::clone(&metadata.name);
                collected.metadata.entry(name).or_insert(metadata);
            }
        }
        last_ns
    }

    fn metadata(&self, metric: &View<'_>, data: &Data<'_>) -> Result<Arc<Metadata>, &'static str> {
        let (name, unit) = (metric.text("name"), metric.text("unit"));
        let namer = &self.labeller.namer;
        let made = namer.metric(&name, &unit, data.instrument);
        Ok(Arc::new(Metadata {
            name: made.ok_or("nothing is left of its name")?.into(),
            kind: number_of(data.instrument.kind()),
            help: metric.text("description").into_owned(),
            unit: namer.unit(&unit).unwrap_or_default(),
        }))
    }

    fn add(&self, read: Read<'_, '_>, point: Point, kind: Instrument, collected: &mut Collected) {
        let with_exemplars = match kind {
            Instrument::Gauge => self.version == WriteVersion::Two,
            Instrument::Summary => false,
            _ => true,
        };
        let exemplars = if with_exemplars {
            exemplars(read.view)
        } else {
            Vec::new()
        };
        match point.value {
            Value::Int(_) | Value::Double(_) => {
                let value = point.value.number().unwrap_or_default();
                let series = collected.series(&read, "", None);
                series.samples.push((read.time_ms, read.value(value)));
                series.exemplars.extend(exemplars);
                series.points += 1;
            }
            Value::Histogram(histogram) => collected.histogram(&read, &histogram, exemplars),
            Value::Native(native) => {
                let series = collected.series(&read, "", None);
                series.histograms.push(NativeSample {
                    time_ms: read.time_ms,
                    native,
                    is_stale: read.is_stale,
                });
                series.exemplars.extend(exemplars);
                series.points += 1;
            }
            Value::Summary(summary) => collected.summary(&read, &summary),
        }
    }
}

impl Read<'_, '_> {
    fn value(&self, value: f64) -> f64 {
        if self.is_stale {
            f64::from_bits(STALE)
        } else {
            value
        }
    }
}

impl Collected {
    /// A series of a data point.
    fn series(
        &mut self,
        read: &Read<'_, '_>,
        suffix: &str,
        own: Option<(&'static str, String)>,
    ) -> &mut Series {
        let name = match suffix {
            "" => Arc::clone(&read.metadata.name),
            suffix => format!("{}{suffix}", read.metadata.name).into(),
        };
        let key = Key {
            name,
            labels: Arc::clone(&read.labels),
            own,
        };
        let series = self.series.entry(key).or_default();
        if series.metadata.is_none() {
            series.metadata = Some(Arc::clone(read.metadata));
        }
        series
    }

    fn sum_and_count(&mut self, read: &Read<'_, '_>, sum: Option<f64>, count: u64) {
        if let Some(sum) = sum {
            let series = self.series(read, "_sum", None);
            series.samples.push((read.time_ms, read.value(sum)));
        }
        let series = self.series(read, "_count", None);
        series
            .samples
            .push((read.time_ms, read.value(count as f64)));
        series.points += 1;
    }

    fn histogram(&mut self, read: &Read<'_, '_>, histogram: &Histogram, exemplars: Vec<Exemplar>) {
        let has_sum = read.view.has("sum");
        self.sum_and_count(read, has_sum.then_some(histogram.sum), histogram.count);
        let mut of_buckets: BTreeMap<usize, Vec<Exemplar>> = BTreeMap::new();
        for exemplar in exemplars {
            let bucket = histogram.bucket(exemplar.value);
            of_buckets.entry(bucket).or_default().push(exemplar);
        }
        let mut sum = 0u64;
        let places = histogram.bounds.len();
        for place in 0..=places {
            let (bound, count) = match histogram.bounds.get(place) {
                Some(bound) => {
                    sum = sum.saturating_add(histogram.counts[place]);
                    (bound.to_string(), sum)
                }
                None => ("+Inf".to_owned(), histogram.count),
            };
            let series = self.series(read, "_bucket", Some(("le", bound)));
            series
                .samples
                .push((read.time_ms, read.value(count as f64)));
            let own = of_buckets.remove(&place).unwrap_or_default();
            series.exemplars.extend(own);
        }
    }

    fn summary(&mut self, read: &Read<'_, '_>, summary: &Summary) {
        self.sum_and_count(read, Some(summary.sum), summary.count);
        for one in &summary.quantiles {
            let own = Some(("quantile", one.quantile.to_string()));
            let series = self.series(read, "", own);
            series.samples.push((read.time_ms, read.value(one.value)));
        }
    }
}

impl Rejected {
    fn add_many(&mut self, metric: &str, why: &str, count: u64) {
        for _ in 0..count.min(1) {
            self.add(metric, why);
        }
        self.points += count.saturating_sub(1);
    }
}

/// Data points of a metric of any kind.
fn points_of(metric: &View<'_>) -> u64 {
    let kinds = [
        "gauge",
        "sum",
        "histogram",
        "exponentialHistogram",
        "summary",
    ];
    let data = kinds.into_iter().find_map(|kind| metric.one(kind));
    data.map_or(0, |data| data.all("dataPoints").count() as u64)
}

fn number_of(kind: Kind) -> u64 {
    match kind {
        Kind::Counter => 1,
        Kind::Gauge => 2,
        Kind::Histogram => 3,
        Kind::Summary => 5,
    }
}

fn millis(ns: u64) -> i64 {
    (ns / 1_000_000).cast_signed()
}

/// The exemplars of a data point. Their attributes are labels where these are short enough.
fn exemplars(point: &View<'_>) -> Vec<Exemplar> {
    let all = point.all("exemplars").take(EXEMPLARS_MAX);
    let all = all.map(|one| {
        let mut labels = BTreeMap::new();
        for (name, field) in [("trace_id", "traceId"), ("span_id", "spanId")] {
            let id = one.bytes(field);
            if id.iter().any(|byte| *byte != 0) {
                labels.insert(name.to_owned(), hex::text(id));
            }
        }
        let attributes = one.attributes("filteredAttributes");
        let attributes = attributes.map(|(key, value)| {
            let text = String::from_utf8_lossy(&otlp::text::text_of(value)).into_owned();
            (key.into_owned(), text)
        });
        let attributes: BTreeMap<_, _> = attributes
            .filter(|(key, _)| !labels.contains_key(key))
            .collect();
        let chars =
            |(name, value): (&String, &String)| name.chars().count() + value.chars().count();
        if labels.iter().chain(&attributes).map(chars).sum::<usize>() <= EXEMPLAR_CHARS_MAX {
            labels.extend(attributes);
        }
        Exemplar {
            labels,
            value: point::number(&one)
                .and_then(|value| value.number())
                .unwrap_or(0.0),
            time_ms: millis(one.number("timeUnixNano")),
        }
    });
    all.collect()
}
