//! Metrics and data points that are written anew.

use otlp::scan::{MONOTONIC, Metric, MetricKind, Number, POINTS, Point, PointKind, TEMPORALITY};
use otlp::wire::Fields;
use otlp::write;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
pub const CUMULATIVE: u64 = 2;

/// Appends a metric named after another one, with its description. `data` appends what it holds.
pub fn metric(
    of: &Metric<'_>,
    suffix: &[u8],
    unit: &[u8],
    kind: MetricKind,
    out: &mut Vec<u8>,
    data: impl FnOnce(&mut Vec<u8>),
) {
    text(out, 1, &[of.name, suffix].concat());
    text(out, 2, of.description);
    text(out, 3, unit);
    write::message(out, kind.number(), data);
}

fn text(out: &mut Vec<u8>, number: u32, text: &[u8]) {
    if !text.is_empty() {
        write::bytes(out, number, text);
    }
}

/// Appends what a sum has beside its data points.
pub fn sum_fields(temporality: u64, monotonic: bool, out: &mut Vec<u8>) {
    write::uint(out, TEMPORALITY >> 3, temporality);
    if monotonic {
        write::uint(out, MONOTONIC >> 3, 1);
    }
}

/// Appends a `NumberDataPoint` as a field of a metric's data: the times of another point, another
/// value, and attributes that `attributes` appends.
pub fn number(
    of: &Point<'_>,
    value: Number,
    out: &mut Vec<u8>,
    attributes: impl FnOnce(&mut Vec<u8>),
) {
    write::message(out, POINTS >> 3, |out| {
        times(of, out);
        match value {
            Number::Int(value) => write::fixed64(out, 6, value as u64),
            Number::Double(value) => write::double(out, 4, value),
        }
        attributes(out);
    });
}

/// Appends the times of a point, whose fields have the same numbers in all kinds of points.
pub fn times(of: &Point<'_>, out: &mut Vec<u8>) {
    if of.start_ns != 0 {
        write::fixed64(out, 2, of.start_ns);
    }
    if of.time_ns != 0 {
        write::fixed64(out, 3, of.time_ns);
    }
}

/// Appends the attributes of a point as those of another kind of point.
pub fn attributes(of: &Point<'_>, kind: PointKind, out: &mut Vec<u8>) {
    messages(
        of,
        of.kind.attributes_key() >> 3,
        kind.attributes_key() >> 3,
        out,
    );
}

/// Appends the messages under a number of a point under another number.
pub fn messages(of: &Point<'_>, from: u32, to: u32, out: &mut Vec<u8>) {
    for field in Fields::new(of.message).map_while(Result::ok) {
        if let Some(message) = field.message(from) {
            write::bytes(out, to, message);
        }
    }
}
