//! Makes OTLP of samples, as the Collector's receiver does (OpenTelemetry specification, "Prometheus
//! and OpenMetrics Compatibility").
//!
//! Start times are only those that a target exposes (`_created`): like the Collector, this
//! receiver makes none up.

use std::collections::{BTreeSet, HashMap};

use otlp::write;

use super::text::{Exemplar, Family, Kind, Labels, NAME, Sample};
use crate::run::send::prometheus::{STALE, UNITS};

/// Families of a target by name: those of the last scrape, then those of the one before, which stale
/// series need.
pub(super) type Families<'a> = [&'a HashMap<String, Family>; 2];

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u64 = 2;
/// `DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK`
const NO_RECORDED_VALUE: u64 = 1;
/// The Collector's name of the scope of metrics that name none.
const SCOPE: &str =
    "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver";
/// Labels with this prefix describe the scope.
const SCOPE_PREFIX: &str = "otel_scope_";

/// The metrics of a target about itself, and what the Collector says of them.
const OWN: [(&str, &str, &str); 5] = [
    ("up", "", "The scraping was successful"),
    (
        "scrape_duration_seconds",
        "seconds",
        "Duration of the scrape",
    ),
    (
        "scrape_samples_scraped",
        "",
        "The number of samples the target exposed",
    ),
    (
        "scrape_series_added",
        "",
        "The approximate number of new series in this scrape",
    ),
    (
        "scrape_samples_post_metric_relabeling",
        "",
        "The number of samples remaining after metric relabeling was applied",
    ),
];

/// Facts of the target.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub job: String,
    pub instance: String,
    pub scheme: String,
}

/// Samples on their way to a request.
pub(super) struct Converter<'a> {
    families: Families<'a>,
    origin: &'a Origin,
    trims_suffixes: bool,
    resources: Vec<Resource>,
    /// Places of the resources by job and instance.
    places: HashMap<(String, String), usize>,
}

struct Resource {
    job: String,
    instance: String,
    /// The labels of `target_info`.
    info: Labels,
    scopes: Vec<Scope>,
    places: HashMap<Labels, usize>,
}

/// A scope by its labels: name, version, URL of its schema, and attributes.
struct Scope {
    labels: Labels,
    /// The labels of `otel_scope_info`.
    info: Labels,
    metrics: Vec<Metric>,
    places: HashMap<String, usize>,
}

struct Metric {
    name: String,
    family: Family,
    points: Vec<Point>,
    /// Places of the points by their attributes.
    places: HashMap<Labels, usize>,
}

/// A data point as far as it is known.
struct Point {
    time_ms: i64,
    attributes: Labels,
    value: Option<f64>,
    count: Option<f64>,
    sum: Option<f64>,
    /// Seconds of the UNIX epoch.
    created: Option<f64>,
    /// Buckets or quantiles: the boundary and the value.
    parts: Vec<(f64, f64)>,
    exemplars: Vec<Exemplar>,
}

impl<'a> Converter<'a> {
    pub fn new(families: Families<'a>, origin: &'a Origin, trims_suffixes: bool) -> Converter<'a> {
        Converter {
            families,
            origin,
            trims_suffixes,
            resources: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Adds a sample. Samples of one data point that differ in their time are left out.
    pub fn add(&mut self, sample: &Sample, time_ms: i64) {
        let Some(name) = sample.labels.get(NAME) else {
            return;
        };
        let (name, family) = self.family(name);
        let resource = self.resource(&sample.labels);
        if name == "target_info" {
            resource.info.extend(described(&sample.labels));
            return;
        }
        let scope = resource.scope(&sample.labels);
        if name == "otel_scope_info" {
            let info = described(&sample.labels);
            let info = info.filter(|(key, _)| !key.starts_with(SCOPE_PREFIX));
            scope.info.extend(info);
            return;
        }
        scope.metric(name, family).add(sample, time_ms);
    }

    /// The metric that a sample belongs to, and its family.
    fn family(&self, sample: &str) -> (String, Family) {
        if let Some((name, unit, help)) = OWN.iter().find(|(name, ..)| *name == sample) {
            let family = Family {
                kind: Kind::Gauge,
                help: (*help).to_owned(),
                unit: (*unit).to_owned(),
            };
            return ((*name).to_owned(), family);
        }
        let find = |name: &str| self.families.iter().find_map(|all| all.get(name));
        if let Some(family) = find(sample) {
            return (sample.to_owned(), family.clone());
        }
        let merged = SUFFIXES.iter().find_map(|(suffix, kinds)| {
            let base = sample.strip_suffix(suffix)?;
            let family = find(base).filter(|family| kinds.contains(&family.kind))?;
            Some((base, family.clone()))
        });
        match merged {
            // The name of a counter has its suffix in OTLP too.
            Some((base, family)) if family.kind == Kind::Counter => {
                (format!("{base}_total"), family)
            }
            Some((base, family)) => (base.to_owned(), family),
            None => (sample.to_owned(), Family::default()),
        }
    }

    fn resource(&mut self, labels: &Labels) -> &mut Resource {
        let own =
            |name: &str, default: &str| labels.get(name).cloned().unwrap_or(default.to_owned());
        let job = own("job", &self.origin.job);
        let instance = own("instance", &self.origin.instance);
        let key = (job, instance);
        let next = self.resources.len();
        let place = *self.places.entry(key.clone()).or_insert(next);
        if place == next {
            self.resources.push(Resource {
                job: key.0,
                instance: key.1,
                info: Labels::new(),
                scopes: Vec::new(),
                places: HashMap::new(),
            });
        }
        &mut self.resources[place]
    }

    /// The request.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for resource in &self.resources {
            let mut scopes = Vec::new();
            for scope in &resource.scopes {
                scope.write(self.trims_suffixes, &mut scopes);
            }
            if scopes.is_empty() {
                continue;
            }
            write::message(&mut out, 1, |out| {
                write::message(out, 1, |out| resource.write(&self.origin.scheme, out));
                out.extend_from_slice(&scopes);
            });
        }
        out
    }
}

/// Suffixes of samples that belong to a family of another name, by its types.
const SUFFIXES: [(&str, &[Kind]); 6] = [
    ("_total", &[Kind::Counter]),
    ("_created", &[Kind::Counter, Kind::Histogram, Kind::Summary]),
    ("_bucket", &[Kind::Histogram]),
    ("_count", &[Kind::Histogram, Kind::Summary]),
    ("_sum", &[Kind::Histogram, Kind::Summary]),
    ("_info", &[Kind::Info]),
];

/// Labels that describe something, without those of the sample.
fn described(labels: &Labels) -> impl Iterator<Item = (String, String)> {
    let own = labels.iter();
    let own = own.filter(|(name, _)| ![NAME, "job", "instance"].contains(&name.as_str()));
    own.map(|(name, value)| (name.clone(), value.clone()))
}

impl Resource {
    fn scope(&mut self, labels: &Labels) -> &mut Scope {
        let of_scope = labels
            .iter()
            .filter(|(name, _)| name.starts_with(SCOPE_PREFIX));
        let labels: Labels = of_scope
            .map(|(name, value)| (name[SCOPE_PREFIX.len()..].to_owned(), value.clone()))
            .collect();
        let next = self.scopes.len();
        let place = *self.places.entry(labels.clone()).or_insert(next);
        if place == next {
            self.scopes.push(Scope {
                labels,
                info: Labels::new(),
                metrics: Vec::new(),
                places: HashMap::new(),
            });
        }
        &mut self.scopes[place]
    }

    fn write(&self, scheme: &str, out: &mut Vec<u8>) {
        let (host, port) = match self.instance.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (self.instance.as_str(), ""),
        };
        let host = host.trim_matches(['[', ']']);
        let mut attributes = vec![("service.name", self.job.as_str())];
        if is_discernible(host) {
            attributes.push(("server.address", host));
        }
        attributes.extend([
            ("service.instance.id", self.instance.as_str()),
            ("server.port", port),
            ("url.scheme", scheme),
        ]);
        for (key, value) in attributes {
            if !self.info.contains_key(key) {
                write::text_value(out, 1, key, value);
            }
        }
        for (key, value) in &self.info {
            write::text_value(out, 1, key, value);
        }
    }
}

/// Whether a host says which one it is.
fn is_discernible(host: &str) -> bool {
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => !address.is_loopback() && !address.is_unspecified(),
        Err(_) => host != "localhost",
    }
}

impl Scope {
    fn metric(&mut self, name: String, family: Family) -> &mut Metric {
        let next = self.metrics.len();
        let place = *self.places.entry(name.clone()).or_insert(next);
        if place == next {
            self.metrics.push(Metric {
                name,
                family,
                points: Vec::new(),
                places: HashMap::new(),
            });
        }
        &mut self.metrics[place]
    }

    /// Appends a `ScopeMetrics`; nothing where there are no points.
    fn write(&self, trims_suffixes: bool, out: &mut Vec<u8>) {
        let mut metrics = Vec::new();
        for metric in &self.metrics {
            metric.write(trims_suffixes, &mut metrics);
        }
        if metrics.is_empty() {
            return;
        }
        write::message(out, 2, |out| {
            write::message(out, 1, |out| self.write_scope(out));
            out.extend_from_slice(&metrics);
            if let Some(url) = self.labels.get("schema_url") {
                write::bytes(out, 3, url.as_bytes());
            }
        });
    }

    fn write_scope(&self, out: &mut Vec<u8>) {
        if self.labels.is_empty() {
            write::bytes(out, 1, SCOPE.as_bytes());
            write::bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
            return;
        }
        for (field, key) in [(1, "name"), (2, "version")] {
            if let Some(value) = self.labels.get(key) {
                write::bytes(out, field, value.as_bytes());
            }
        }
        let named = ["name", "version", "schema_url"];
        let own = self.labels.iter();
        let own = own.filter(|(key, _)| !named.contains(&key.as_str()));
        let info = self
            .info
            .iter()
            .filter(|(key, _)| !self.labels.contains_key(*key));
        for (key, value) in own.chain(info) {
            write::text_value(out, 3, key, value);
        }
    }
}

impl Metric {
    fn add(&mut self, sample: &Sample, time_ms: i64) {
        let name = sample.labels.get(NAME).map_or("", String::as_str);
        let part = match self.family.kind {
            Kind::Histogram => "le",
            Kind::Summary => "quantile",
            _ => "",
        };
        let is_own = |name: &str| {
            ![NAME, "job", "instance", part].contains(&name) && !name.starts_with(SCOPE_PREFIX)
        };
        let attributes = sample.labels.iter().filter(|(name, _)| is_own(name));
        let attributes: Labels = attributes
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let next = self.points.len();
        let place = *self.places.entry(attributes.clone()).or_insert(next);
        if place == next {
            self.points.push(Point {
                time_ms,
                attributes,
                value: None,
                count: None,
                sum: None,
                created: None,
                parts: Vec::new(),
                exemplars: Vec::new(),
            });
        }
        let point = &mut self.points[place];
        if point.time_ms != time_ms {
            return;
        }
        let is_merged = !part.is_empty();
        let merges = is_merged || self.family.kind == Kind::Counter;
        if merges && name.ends_with("_created") {
            point.created = Some(sample.value);
            return;
        }
        if !is_merged {
            point.value = Some(sample.value);
        } else if name.ends_with("_sum") {
            point.sum = Some(sample.value);
        } else if name.ends_with("_count") {
            point.count = Some(sample.value);
        } else {
            let boundary = sample.labels.get(part).and_then(|text| text.parse().ok());
            let Some(boundary) = boundary else {
                return;
            };
            point.parts.push((boundary, sample.value));
        }
        if self.family.kind != Kind::Summary {
            point.exemplars.extend(sample.exemplar.clone());
        }
    }

    /// Appends a `Metric` as a field of `ScopeMetrics`; nothing where no point is whole.
    fn write(&self, trims_suffixes: bool, out: &mut Vec<u8>) {
        let mut points = Vec::new();
        for point in &self.points {
            match self.family.kind {
                Kind::Histogram => point.histogram(&mut points),
                Kind::Summary => point.summary(&mut points),
                kind => point.number(kind == Kind::Counter, &mut points),
            }
        }
        if points.is_empty() {
            return;
        }
        let Family { kind, help, unit } = &self.family;
        let name = if trims_suffixes {
            trimmed(&self.name, *kind, unit)
        } else {
            &self.name
        };
        let ucum = UNITS.iter().find(|(_, word)| word == unit);
        write::message(out, 2, |out| {
            write::bytes(out, 1, name.as_bytes());
            write::bytes(out, 2, help.as_bytes());
            write::bytes(
                out,
                3,
                ucum.map_or(unit.as_str(), |(ucum, _)| ucum).as_bytes(),
            );
            let (field, is_monotonic) = match kind {
                Kind::Counter => (7, true),
                Kind::Info | Kind::StateSet => (7, false),
                Kind::Histogram => (9, false),
                Kind::Summary => (11, false),
                Kind::Gauge | Kind::GaugeHistogram | Kind::Unknown => (5, false),
            };
            write::message(out, field, |out| {
                out.extend_from_slice(&points);
                if [7, 9].contains(&field) {
                    write::uint(out, 2, CUMULATIVE);
                }
                if is_monotonic {
                    write::uint(out, 3, 1);
                }
            });
            write::text_value(out, 12, "prometheus.type", kind.word());
        });
    }
}

/// A name without the suffixes of its type and unit.
fn trimmed<'a>(name: &'a str, kind: Kind, unit: &str) -> &'a str {
    let name = match kind {
        Kind::Counter | Kind::Info | Kind::StateSet => name.strip_suffix("_total").unwrap_or(name),
        _ => name,
    };
    let short = name.strip_suffix(unit).filter(|_| !unit.is_empty());
    short
        .and_then(|short| short.strip_suffix('_'))
        .unwrap_or(name)
}

fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE
}

impl Point {
    fn write(&self, field_of_attributes: u32, out: &mut Vec<u8>) {
        if let Some(created) = self.created.filter(|created| *created > 0.0) {
            write::fixed64(out, 2, (created * 1e9) as u64);
        }
        write::fixed64(out, 3, nanoseconds(self.time_ms));
        for (key, value) in &self.attributes {
            write::text_value(out, field_of_attributes, key, value);
        }
    }

    fn number(&self, has_start: bool, points: &mut Vec<u8>) {
        let Some(value) = self.value else {
            return;
        };
        let own = Point {
            created: self.created.filter(|_| has_start),
            attributes: self.attributes.clone(),
            parts: Vec::new(),
            exemplars: Vec::new(),
            ..*self
        };
        write::message(points, 1, |out| {
            own.write(7, out);
            if is_stale(value) {
                write::uint(out, 8, NO_RECORDED_VALUE);
            } else {
                write::double(out, 4, value);
            }
            self.write_exemplars(5, out);
        });
    }

    fn is_stale(&self) -> bool {
        self.count.is_some_and(is_stale) || self.sum.is_some_and(is_stale)
    }

    fn sorted(&self) -> Vec<(f64, f64)> {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| a.0.total_cmp(&b.0));
        parts
    }

    fn histogram(&self, points: &mut Vec<u8>) {
        let Some(count) = self.count else {
            return;
        };
        let mut parts = self.sorted();
        if parts
            .last()
            .is_some_and(|(bound, _)| *bound == f64::INFINITY)
        {
            parts.pop();
        }
        let is_stale = self.is_stale();
        let mut counts = Vec::with_capacity(parts.len() + 1);
        let mut before = 0.0;
        for value in parts.iter().map(|(_, value)| *value).chain([count]) {
            // Counts that fall, or are none, make no histogram.
            if !is_stale && (value.is_nan() || value < before) {
                return;
            }
            counts.push(if is_stale { 0 } else { (value - before) as u64 });
            before = value;
        }
        write::message(points, 1, |out| {
            self.write(9, out);
            if is_stale {
                write::uint(out, 10, NO_RECORDED_VALUE);
            } else {
                write::fixed64(out, 4, count as u64);
                if let Some(sum) = self.sum {
                    write::double(out, 5, sum);
                }
            }
            write::packed(out, 6, counts.iter().copied());
            write::packed(out, 7, parts.iter().map(|(bound, _)| bound.to_bits()));
            self.write_exemplars(8, out);
        });
    }

    fn summary(&self, points: &mut Vec<u8>) {
        let Some(count) = self.count else {
            return;
        };
        let is_stale = self.is_stale();
        write::message(points, 1, |out| {
            self.write(7, out);
            if is_stale {
                write::uint(out, 8, NO_RECORDED_VALUE);
            } else {
                write::fixed64(out, 4, count as u64);
                write::double(out, 5, self.sum.unwrap_or(0.0));
            }
            for (quantile, value) in self.sorted() {
                write::message(out, 6, |out| {
                    write::double(out, 1, quantile);
                    if !is_stale {
                        write::double(out, 2, value);
                    }
                });
            }
        });
    }

    fn write_exemplars(&self, field: u32, out: &mut Vec<u8>) {
        for exemplar in &self.exemplars {
            let time_ms = exemplar.time_ms.unwrap_or(self.time_ms);
            write::message(out, field, |out| {
                write::fixed64(out, 2, nanoseconds(time_ms));
                write::double(out, 3, exemplar.value);
                let mut seen = BTreeSet::new();
                for (name, value) in &exemplar.labels {
                    let (field, bytes) = match name.to_ascii_lowercase().as_str() {
                        "trace_id" => (5, 16),
                        "span_id" => (4, 8),
                        _ => (0, 0),
                    };
                    match id(value, bytes).filter(|_| field > 0 && seen.insert(field)) {
                        Some(id) => write::bytes(out, field, &id),
                        None if value.is_empty() => {}
                        None => write::text_value(out, 7, name, value),
                    }
                }
            });
        }
    }
}

/// An identifier of so many bytes in hexadecimal digits; none where it is none, or is zero.
fn id(text: &str, bytes: usize) -> Option<Vec<u8>> {
    if text.len() != 2 * bytes || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs =
        (0..bytes).map(|place| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok());
    let id: Vec<u8> = pairs.collect::<Option<_>>()?;
    id.iter().any(|byte| *byte != 0).then_some(id)
}

fn nanoseconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000)
}
