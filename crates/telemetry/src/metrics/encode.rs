//! Metrics as OTLP (opentelemetry/proto/metrics/v1/metrics.proto).

use super::Temporality;
use super::exponential::Buckets;
use super::instrument::{Plan, Stream};
use super::point::{Point, Totals};
use super::table::Table;
use otlp::write::{bytes, double, fixed64, message, packed, uint, varint};

/// The time of a point's values, in nanoseconds of the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub start: u64,
    pub now: u64,
}

/// Appends one metric as `ScopeMetrics.metrics`, unless it has no point; returns the number of its
/// points.
pub(super) fn metric(
    stream: &Stream,
    table: &Table,
    temporality: Temporality,
    times: Times,
    out: &mut Vec<u8>,
) -> usize {
    let count = table.news().count();
    if count == 0 {
        return 0;
    }
    let instrument = &stream.instrument;
    message(out, 2, |out| {
        for (field, text) in [
            (1, &instrument.name),
            (2, &instrument.description),
            (3, &instrument.unit),
        ] {
            if !text.is_empty() {
                bytes(out, field, text.as_bytes());
            }
        }
        let field = match stream.plan {
            Plan::Last => 5,
            Plan::Sum | Plan::Drop => 7,
            Plan::Explicit { .. } => 9,
            Plan::Exponential { .. } => 10,
        };
        message(out, field, |out| {
            for series in table.news() {
                message(out, 1, |out| {
                    point(stream, &series.point, &series.attributes, times, out)
                });
            }
            if field != 5 {
                // AGGREGATION_TEMPORALITY_DELTA, _CUMULATIVE.
                uint(
                    out,
                    2,
                    if temporality == Temporality::Delta {
                        1
                    } else {
                        2
                    },
                );
            }
            if field == 7 && instrument.kind.is_monotonic() {
                uint(out, 3, 1);
            }
        });
    });
    count
}

/// Writes a point. Fields are in the order of their numbers and empty fields are omitted, as in
/// every encoder.
fn point(stream: &Stream, point: &Point, set: &[u8], times: Times, out: &mut Vec<u8>) {
    let monotonic = stream.instrument.kind.is_monotonic();
    match (point, &stream.plan) {
        (Point::Sum(value) | Point::Last { value, .. }, _) => {
            times.write(out);
            fixed64(out, 6, value.cast_unsigned());
            attributes(out, 7, set);
        }
        (Point::Explicit(histogram), Plan::Explicit { bounds, .. }) => {
            times.write(out);
            totals(&histogram.totals, monotonic, out);
            if !bounds.is_empty() {
                packed(out, 6, histogram.counts.iter().copied());
                packed(out, 7, bounds.iter().map(|bound| bound.to_bits()));
            }
            attributes(out, 9, set);
            extremes(&histogram.totals, 11, out);
        }
        (Point::Exponential(histogram), _) => {
            attributes(out, 1, set);
            times.write(out);
            totals(&histogram.totals, monotonic, out);
            sint(out, 6, histogram.scale);
            if histogram.zeros > 0 {
                fixed64(out, 7, histogram.zeros);
            }
            buckets(out, 8, &histogram.positive);
            buckets(out, 9, &histogram.negative);
            extremes(&histogram.totals, 12, out);
        }
        (Point::Explicit(_), _) => {}
    }
}

impl Times {
    fn write(self, out: &mut Vec<u8>) {
        fixed64(out, 2, self.start);
        fixed64(out, 3, self.now);
    }
}

fn buckets(out: &mut Vec<u8>, field: u32, buckets: &Buckets) {
    if buckets.counts.is_empty() {
        return;
    }
    message(out, field, |out| {
        sint(out, 1, buckets.start);
        message(out, 2, |out| {
            for count in &buckets.counts {
                varint(out, *count);
            }
        });
    });
}

/// Writes the count, and the sum if it is meaningful: if no value is negative.
fn totals(totals: &Totals, monotonic: bool, out: &mut Vec<u8>) {
    fixed64(out, 4, totals.count);
    if monotonic {
        double(out, 5, totals.sum as f64);
    }
}

/// Writes the minimum and the maximum. A point has at least one value.
fn extremes(totals: &Totals, field: u32, out: &mut Vec<u8>) {
    double(out, field, totals.min as f64);
    double(out, field + 1, totals.max as f64);
}

/// A field of type `sint32`.
fn sint(out: &mut Vec<u8>, field: u32, value: i32) {
    if value != 0 {
        let zigzag = (value << 1 ^ value >> 31).cast_unsigned();
        uint(out, field, u64::from(zigzag));
    }
}

/// Writes a set of attributes, given as fields with number 1, under another field number. Stops at
/// the first byte that is not such a field.
fn attributes(out: &mut Vec<u8>, field: u32, mut set: &[u8]) {
    while let Some((value, rest)) = split(set) {
        bytes(out, field, value);
        set = rest;
    }
}

/// The content of the first field, and the bytes after it.
fn split(set: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = set.strip_prefix(&[0x0a])?;
    let mut len = 0_usize;
    for shift in (0..28).step_by(7) {
        let (byte, after) = rest.split_first()?;
        rest = after;
        len |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return rest.split_at_checked(len);
        }
    }
    None
}
