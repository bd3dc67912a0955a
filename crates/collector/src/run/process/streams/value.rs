//! Value of a data point, as it is remembered of its stream.

use otlp::scan::{Number, Point, PointKind};
use otlp::write;

use super::{Exponential, without};

/// Value of a data point.
#[derive(Clone, Debug)]
pub enum Value {
    /// Of a sum.
    Number(Number),
    /// Of a histogram with explicit bounds.
    Histogram(Histogram),
    /// Of an exponential histogram.
    Exponential(Exponential),
}

/// Value of a histogram with explicit bounds.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// `count`
    pub count: u64,
    /// `sum`
    pub sum: Option<f64>,
    /// `explicit_bounds`
    pub bounds: Vec<f64>,
    /// `bucket_counts`
    pub counts: Vec<u64>,
}

impl Value {
    /// Of a data point; a number that is not there is 0.
    pub fn of(point: &Point<'_>) -> Value {
        match point.kind {
            PointKind::Number | PointKind::Summary => {
                Value::Number(point.value.unwrap_or(Number::Int(0)))
            }
            PointKind::Histogram => Value::Histogram(Histogram {
                count: point.count,
                sum: point.sum,
                bounds: point.explicit_bounds(),
                counts: point.bucket_counts(),
            }),
            PointKind::Exponential => Value::Exponential(Exponential::of(point)),
        }
    }

    /// Bytes that it takes besides its own size.
    pub fn bytes(&self) -> usize {
        match self {
            Value::Number(_) => 0,
            Value::Histogram(histogram) => {
                (histogram.bounds.len() + histogram.counts.len()) * size_of::<u64>()
            }
            Value::Exponential(histogram) => histogram.bytes(),
        }
    }

    /// Appends a data point with this value in the place of its own, without its start time, its
    /// least and its greatest value.
    pub fn write(&self, point: &Point<'_>, out: &mut Vec<u8>) {
        match self {
            Value::Number(value) => {
                without(point.message, &[2, 4, 6], out);
                match value {
                    Number::Int(value) => write::fixed64(out, 6, value.cast_unsigned()),
                    Number::Double(value) => write::double(out, 4, *value),
                }
            }
            Value::Histogram(histogram) => {
                without(point.message, &[2, 4, 5, 6, 11, 12], out);
                histogram.write(out);
            }
            Value::Exponential(histogram) => {
                let numbers = [&[2, 12, 13], &Exponential::FIELDS[..]].concat();
                without(point.message, &numbers, out);
                histogram.write(out);
            }
        }
    }
}

impl Histogram {
    /// Appends its fields; the bounds are those of the data point.
    fn write(&self, out: &mut Vec<u8>) {
        write::fixed64(out, 4, self.count);
        if let Some(sum) = self.sum {
            write::double(out, 5, sum);
        }
        if !self.counts.is_empty() {
            write::packed(out, 6, self.counts.iter().copied());
        }
    }
}
