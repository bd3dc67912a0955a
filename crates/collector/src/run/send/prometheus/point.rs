//! Data points as they are held: read from OTLP, without their attributes.

use std::collections::BTreeMap;

use otlp::view::View;

use super::native::{Buckets, Native};

/// Buckets that a histogram may have, of each sign.
pub(super) const BUCKETS_MAX: usize = 4096;
/// Quantiles that a summary may have.
const QUANTILES_MAX: usize = 1024;

/// Type of a metric in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instrument {
    Gauge,
    /// A sum that only rises.
    Counter,
    /// A sum that may fall.
    UpDownCounter,
    Histogram,
    /// A histogram with exponential buckets.
    Exponential,
    Summary,
}

/// Type of a metric on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// How a point relates to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temporality {
    /// It replaces that one.
    Cumulative,
    /// It is added to that one.
    Delta,
}

/// A metric's data, and how they are to be read.
pub(super) struct Data<'a> {
    pub instrument: Instrument,
    pub temporality: Temporality,
    data: View<'a>,
}

/// A data point as it comes, and how it relates to the one before it.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub point: Point,
    pub temporality: Temporality,
}

/// A data point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// Nanoseconds of the UNIX epoch; 0: not known.
    pub start_ns: u64,
    pub time_ns: u64,
    pub value: Value,
    /// In the order of their buckets, one of each at most; of a counter the last one.
    pub exemplars: Vec<Exemplar>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Double(f64),
    Histogram(Histogram),
    Native(Native),
    Summary(Summary),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram {
    pub count: u64,
    pub sum: f64,
    /// Ascending and finite.
    pub bounds: Vec<f64>,
    /// How many values each bound has that the one before it has not.
    pub counts: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub count: u64,
    pub sum: f64,
    /// Ascending by the quantile.
    pub quantiles: Vec<Quantile>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantile {
    pub quantile: f64,
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exemplar {
    pub value: f64,
    pub time_ns: u64,
    /// All zeros: none.
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

impl Instrument {
    pub(super) fn kind(self) -> Kind {
        match self {
            Instrument::Counter => Kind::Counter,
            Instrument::Gauge | Instrument::UpDownCounter => Kind::Gauge,
            Instrument::Histogram | Instrument::Exponential => Kind::Histogram,
            Instrument::Summary => Kind::Summary,
        }
    }
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        }
    }
}

impl<'a> Data<'a> {
    /// The data of a metric. None where it has none that the page can show: deltas of what may
    /// fall, and sums and histograms without a temporality, are dropped as in the Collector.
    pub(super) fn of(metric: &View<'a>) -> Option<Data<'a>> {
        const FIELDS: [&str; 5] = [
            "gauge",
            "sum",
            "histogram",
            "exponentialHistogram",
            "summary",
        ];
        let of = |field: &&'static str| Some((*field, metric.one(field)?));
        let (field, data) = FIELDS.iter().find_map(of)?;
        let instrument = match field {
            "gauge" => Instrument::Gauge,
            "summary" => Instrument::Summary,
            "histogram" => Instrument::Histogram,
            "exponentialHistogram" => Instrument::Exponential,
            _ if data.number("isMonotonic") != 0 => Instrument::Counter,
            _ => Instrument::UpDownCounter,
        };
        let temporality = match instrument {
            Instrument::Gauge | Instrument::Summary => Temporality::Cumulative,
            _ => match data.number("aggregationTemporality") {
                1 => Temporality::Delta,
                2 => Temporality::Cumulative,
                _ => return None,
            },
        };
        let is_shown = (instrument, temporality) != (Instrument::UpDownCounter, Temporality::Delta);
        is_shown.then_some(Data {
            instrument,
            temporality,
            data,
        })
    }

    /// The data points as they came.
    pub(super) fn points(&self) -> impl Iterator<Item = View<'a>> + use<'a> {
        self.data.all("dataPoints")
    }
}

/// Whether a point only says that there is no value any more (OTLP, `NO_RECORDED_VALUE`).
pub(super) fn has_no_value(point: &View<'_>) -> bool {
    point.number("flags") & 1 != 0
}

impl Point {
    /// Reads a point of a metric.
    ///
    /// # Errors
    /// Why the page cannot show it.
    pub(super) fn read(point: &View<'_>, instrument: Instrument) -> Result<Point, &'static str> {
        let value = match instrument {
            Instrument::Gauge | Instrument::Counter | Instrument::UpDownCounter => {
                match number(point) {
                    Some(value) => value,
                    None => Value::Int(0),
                }
            }
            Instrument::Histogram => Value::Histogram(histogram(point)?),
            Instrument::Exponential => Value::Native(native(point)?),
            Instrument::Summary => Value::Summary(summary(point)?),
        };
        let exemplars = match (&value, instrument) {
            (Value::Histogram(histogram), _) => of_buckets(point, histogram),
            (_, Instrument::Counter) => exemplars(point).last().into_iter().collect(),
            _ => Vec::new(),
        };
        Ok(Point {
            start_ns: point.number("startTimeUnixNano"),
            time_ns: point.number("timeUnixNano"),
            value,
            exemplars,
        })
    }

    /// Bytes that it takes in memory, about.
    pub(super) fn held_bytes(&self) -> usize {
        let more = match &self.value {
            Value::Int(_) | Value::Double(_) => 0,
            Value::Histogram(histogram) => 8 * (histogram.bounds.len() + histogram.counts.len()),
            Value::Native(native) => {
                8 * (native.positive.counts.len() + native.negative.counts.len())
            }
            Value::Summary(summary) => size_of::<Quantile>() * summary.quantiles.len(),
        };
        size_of::<Point>() + more + size_of::<Exemplar>() * self.exemplars.len()
    }
}

impl Value {
    /// A number as it is shown.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// The value of a number or an exemplar.
pub(super) fn number(point: &View<'_>) -> Option<Value> {
    match point.double("asDouble") {
        Some(value) => Some(Value::Double(value)),
        None if point.has("asInt") => Some(Value::Int(point.signed("asInt"))),
        None => None,
    }
}

fn histogram(point: &View<'_>) -> Result<Histogram, &'static str> {
    let bounds = point.numbers("explicitBounds").into_iter();
    let mut bounds: Vec<f64> = bounds.map(f64::from_bits).collect();
    let counts = point.numbers("bucketCounts");
    if bounds.len().max(counts.len()) > BUCKETS_MAX {
        return Err("a histogram has too many buckets");
    }
    // The last bound may be written although it is infinite: the page has that bucket anyway.
    if bounds.last() == Some(&f64::INFINITY) {
        bounds.pop();
    }
    let is_ascending = bounds.is_sorted_by(|one, next| one < next);
    if !is_ascending || !bounds.iter().all(|bound| bound.is_finite()) {
        return Err("the bounds of a histogram do not ascend");
    }
    let mut counts = counts;
    counts.resize(bounds.len(), 0);
    Ok(Histogram {
        count: point.number("count"),
        sum: point.double("sum").unwrap_or_default(),
        bounds,
        counts,
    })
}

fn native(point: &View<'_>) -> Result<Native, &'static str> {
    let side = |name| -> Result<Buckets, &'static str> {
        let Some(side) = point.one(name) else {
            return Ok(Buckets::default());
        };
        let counts = side.numbers("bucketCounts");
        if counts.len() > BUCKETS_MAX {
            return Err("a histogram has too many buckets");
        }
        let offset = i32::try_from(side.signed("offset"));
        let offset = offset.map_err(|_| "a bucket of a histogram has no such place")?;
        Ok(Buckets { offset, counts })
    };
    let scale = i32::try_from(point.signed("scale"));
    Native {
        count: point.number("count"),
        sum: point.double("sum").unwrap_or_default(),
        scale: scale.map_err(|_| "a histogram has no such scale")?,
        zero_count: point.number("zeroCount"),
        zero_threshold: point.double("zeroThreshold").unwrap_or_default(),
        positive: side("positive")?,
        negative: side("negative")?,
    }
    .checked()
}

fn summary(point: &View<'_>) -> Result<Summary, &'static str> {
    let quantiles = point.all("quantileValues").take(QUANTILES_MAX + 1);
    let mut quantiles: Vec<_> = quantiles
        .map(|one| Quantile {
            quantile: one.double("quantile").unwrap_or_default(),
            value: one.double("value").unwrap_or_default(),
        })
        .collect();
    if quantiles.len() > QUANTILES_MAX {
        return Err("a summary has too many quantiles");
    }
    quantiles.sort_by(|one, other| one.quantile.total_cmp(&other.quantile));
    quantiles.dedup_by(|one, kept| one.quantile == kept.quantile);
    Ok(Summary {
        count: point.number("count"),
        sum: point.double("sum").unwrap_or_default(),
        quantiles,
    })
}

fn exemplars<'a>(point: &View<'a>) -> impl Iterator<Item = Exemplar> + use<'a> {
    point.all("exemplars").map(|one| Exemplar {
        value: number(&one).and_then(|value| value.number()).unwrap_or(0.0),
        time_ns: one.number("timeUnixNano"),
        trace_id: one.bytes("traceId").try_into().unwrap_or_default(),
        span_id: one.bytes("spanId").try_into().unwrap_or_default(),
    })
}

/// The last exemplar of each bucket.
fn of_buckets(point: &View<'_>, histogram: &Histogram) -> Vec<Exemplar> {
    let mut of_buckets = BTreeMap::new();
    for exemplar in exemplars(point) {
        of_buckets.insert(histogram.bucket(exemplar.value), exemplar);
    }
    of_buckets.into_values().collect()
}

impl Histogram {
    /// The place of the bucket that a value is in.
    pub(super) fn bucket(&self, value: f64) -> usize {
        self.bounds.partition_point(|bound| *bound < value)
    }
}
