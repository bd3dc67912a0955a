//! Pages in protobuf: messages `MetricFamily` of Prometheus' `client_model` (`metrics.proto`), each
//! after its length.

use otlp::write::{bytes, double, key, message, uint, varint};
use syntax::hex;

use super::escape::Escaping;
use super::native::{Buckets, Native};
use super::point::{Exemplar, Histogram, Kind, Point, Summary, Value};
use super::store::{Sample, View};

/// Values up to this size are zero where a histogram does not say what is.
const ZERO_THRESHOLD: f64 = 1e-128;
/// Empty buckets between two others that are written: a span of its own would take more.
const GAP_MAX: usize = 2;

/// Writes the metrics of a page.
pub(super) fn write(views: &[View], escaping: Escaping) -> Vec<u8> {
    let mut out = Vec::new();
    let mut one = Vec::new();
    for view in views.iter().filter(|view| !view.series.is_empty()) {
        one.clear();
        family(&mut one, view, escaping);
        varint(&mut out, one.len() as u64);
        out.extend_from_slice(&one);
    }
    out
}

fn family(out: &mut Vec<u8>, view: &View, escaping: Escaping) {
    let metric = &view.metric;
    let kind = match metric.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Summary => 2,
        Kind::Histogram => 4,
    };
    bytes(out, 1, escaping.name(&metric.name).as_bytes());
    bytes(out, 2, metric.help.as_bytes());
    uint(out, 3, kind);
    for sample in &view.series {
        message(out, 4, |out| series(out, sample, view, escaping));
    }
}

fn series(out: &mut Vec<u8>, sample: &Sample, view: &View, escaping: Escaping) {
    for (name, value) in sample.labels.iter() {
        label(out, &escaping.name(name), value);
    }
    let point = &*sample.point;
    match (&point.value, view.metric.kind) {
        (Value::Histogram(one), _) => message(out, 7, |out| histogram(out, one, point)),
        (Value::Native(one), _) => message(out, 7, |out| native(out, one, point)),
        (Value::Summary(one), _) => message(out, 4, |out| summary(out, one, point)),
        (value, Kind::Counter) => message(out, 3, |out| {
            double(out, 1, value.number().unwrap_or_default());
            if let Some(one) = point.exemplars.last() {
                message(out, 2, |out| exemplar(out, one));
            }
            created(out, 3, point);
        }),
        (value, _) => message(out, 2, |out| {
            double(out, 1, value.number().unwrap_or_default());
        }),
    }
    if view.has_times {
        uint(out, 6, point.time_ns / 1_000_000);
    }
}

fn label(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, 1, |out| {
        bytes(out, 1, name.as_bytes());
        bytes(out, 2, value.as_bytes());
    });
}

fn histogram(out: &mut Vec<u8>, histogram: &Histogram, point: &Point) {
    uint(out, 1, histogram.count);
    double(out, 2, histogram.sum);
    let mut exemplars = point.exemplars.iter().peekable();
    let mut bucket = |out: &mut Vec<u8>, place: usize, count: u64, bound: f64| {
        message(out, 3, |out| {
            uint(out, 1, count);
            double(out, 2, bound);
            if let Some(one) = exemplars.next_if(|one| histogram.bucket(one.value) == place) {
                message(out, 3, |out| exemplar(out, one));
            }
        });
    };
    let mut sum = 0u64;
    let bounds = histogram.bounds.iter().zip(&histogram.counts);
    for (place, (bound, count)) in bounds.enumerate() {
        sum = sum.saturating_add(*count);
        bucket(out, place, sum, *bound);
    }
    bucket(out, histogram.bounds.len(), histogram.count, f64::INFINITY);
    created(out, 15, point);
}

/// The values that the zero bucket of a histogram has, up to this size.
pub(super) fn zero_threshold(native: &Native) -> f64 {
    match native.zero_threshold {
        0.0 => ZERO_THRESHOLD,
        threshold => threshold,
    }
}

fn native(out: &mut Vec<u8>, native: &Native, point: &Point) {
    uint(out, 1, native.count);
    double(out, 2, native.sum);
    sint(out, 5, i64::from(native.scale));
    double(out, 6, zero_threshold(native));
    uint(out, 7, native.zero_count);
    side(out, NEGATIVE, &native.negative);
    side(out, POSITIVE, &native.positive);
    created(out, 15, point);
}

/// The numbers of the fields that have the buckets of one sign.
#[derive(Clone, Copy)]
struct Fields {
    span: u32,
    delta: u32,
}

const NEGATIVE: Fields = Fields { span: 9, delta: 10 };
const POSITIVE: Fields = Fields {
    span: 12,
    delta: 13,
};

/// Prometheus' form of the buckets of one sign.
pub(super) struct Layout {
    /// Runs of buckets: how far each is from the end of the one before it, and its length.
    pub spans: Vec<(i64, u64)>,
    /// How each bucket differs from the one before it.
    pub deltas: Vec<i64>,
}

impl Layout {
    pub(super) fn of(buckets: &Buckets) -> Layout {
        // Prometheus' bucket of a place ends where that of OTLP begins.
        let mut end = 0;
        let spans = runs(&buckets.counts).map(|(begin, counts)| {
            let place = i64::from(buckets.offset) + begin as i64 + 1;
            let offset = place - end;
            end = place + counts.len() as i64;
            (offset, counts.len() as u64)
        });
        let spans = spans.collect();
        let mut before = 0;
        let deltas = runs(&buckets.counts).flat_map(|(_, counts)| counts);
        let deltas = deltas.map(|count| {
            let count = count.cast_signed();
            let delta = count.wrapping_sub(before);
            before = count;
            delta
        });
        Layout {
            spans,
            deltas: deltas.collect(),
        }
    }
}

/// Writes the buckets of one sign.
fn side(out: &mut Vec<u8>, fields: Fields, buckets: &Buckets) {
    let layout = Layout::of(buckets);
    for (offset, length) in layout.spans {
        message(out, fields.span, |out| {
            sint(out, 1, offset);
            uint(out, 2, length);
        });
    }
    for delta in layout.deltas {
        sint(out, fields.delta, delta);
    }
}

/// The parts of buckets that are not empty, and where they begin.
fn runs(counts: &[u64]) -> impl Iterator<Item = (usize, &[u64])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + counts[at..].iter().position(|count| *count != 0)?;
        let (mut end, mut gap) = (begin, 0);
        for (place, count) in counts.iter().enumerate().skip(begin) {
            gap = if *count == 0 { gap + 1 } else { 0 };
            if gap > GAP_MAX {
                break;
            }
            if gap == 0 {
                end = place + 1;
            }
        }
        at = end;
        Some((begin, &counts[begin..end]))
    })
}

fn summary(out: &mut Vec<u8>, summary: &Summary, point: &Point) {
    uint(out, 1, summary.count);
    double(out, 2, summary.sum);
    for one in &summary.quantiles {
        message(out, 3, |out| {
            double(out, 1, one.quantile);
            double(out, 2, one.value);
        });
    }
    created(out, 4, point);
}

fn exemplar(out: &mut Vec<u8>, exemplar: &Exemplar) {
    for (name, id) in exemplar.ids() {
        label(out, name, &hex::text(id));
    }
    double(out, 2, exemplar.value);
    message(out, 3, |out| time(out, exemplar.time_ns));
}

/// When the series began, where that is known.
fn created(out: &mut Vec<u8>, field: u32, point: &Point) {
    if point.start_ns >= 1_000_000_000 {
        message(out, field, |out| time(out, point.start_ns));
    }
}

/// `google.protobuf.Timestamp`
fn time(out: &mut Vec<u8>, ns: u64) {
    uint(out, 1, ns / 1_000_000_000);
    uint(out, 2, ns % 1_000_000_000);
}

/// A field of type `sint32` or `sint64`.
pub(super) fn sint(out: &mut Vec<u8>, field: u32, value: i64) {
    key(out, field, 0);
    varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests;
