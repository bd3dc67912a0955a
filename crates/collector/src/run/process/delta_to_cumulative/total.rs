//! The sum of the data points of a stream.

use otlp::scan::{Number, Point, PointKind};
use otlp::write;

use super::super::streams::{Exponential, Remembered, without};
use super::Error;

/// The sum of the data points of a stream so far.
#[derive(Clone, Debug)]
pub struct Total {
    start_ns: u64,
    time_ns: u64,
    value: Value,
    /// Of histograms.
    min: Option<f64>,
    max: Option<f64>,
}

#[derive(Clone, Debug)]
enum Value {
    Number(Number),
    Histogram(Histogram),
    Exponential(Exponential),
}

#[derive(Clone, Debug)]
struct Histogram {
    count: u64,
    sum: Option<f64>,
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

impl Remembered for Total {
    fn bytes(&self) -> usize {
        match &self.value {
            Value::Number(_) => 0,
            Value::Histogram(histogram) => {
                (histogram.bounds.len() + histogram.counts.len()) * size_of::<u64>()
            }
            Value::Exponential(histogram) => histogram.bytes(),
        }
    }
}

impl Total {
    /// Of one data point; one without a value is 0.
    pub fn of(point: &Point<'_>) -> Total {
        Total {
            start_ns: point.start_ns,
            time_ns: point.time_ns,
            min: point.min,
            max: point.max,
            value: match point.kind {
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
            },
        }
    }

    /// This, and one more data point.
    ///
    /// # Errors
    /// Why it cannot be added.
    pub fn and(&self, point: &Point<'_>) -> Result<Total, Error> {
        if point.start_ns < self.start_ns {
            return Err(Error::OlderStart);
        }
        if point.time_ns <= self.time_ns {
            return Err(Error::OutOfOrder);
        }
        let other = Total::of(point);
        let value = match (&self.value, other.value) {
            (Value::Number(mine), Value::Number(other)) => Value::Number(sum(*mine, other)),
            (Value::Histogram(mine), Value::Histogram(other)) if mine.bounds == other.bounds => {
                Value::Histogram(mine.and(&other))
            }
            (Value::Exponential(mine), Value::Exponential(other)) => {
                let mut sum = mine.clone();
                sum.add(other);
                Value::Exponential(sum)
            }
            // Buckets with other bounds cannot be added: the stream begins again.
            (_, value) => return Ok(Total { value, ..other }),
        };
        let both = |mine: Option<f64>, other: Option<f64>| mine.zip(other);
        Ok(Total {
            start_ns: self.start_ns,
            time_ns: point.time_ns,
            value,
            min: both(self.min, other.min).map(|(mine, other)| mine.min(other)),
            max: both(self.max, other.max).map(|(mine, other)| mine.max(other)),
        })
    }

    /// Appends the data point that was added last, with the sum of all of them.
    pub fn write(&self, point: &Point<'_>, out: &mut Vec<u8>) {
        let (min, max) = match &self.value {
            Value::Number(value) => {
                without(point.message, &[2, 4, 6], out);
                match value {
                    Number::Int(value) => write::fixed64(out, 6, value.cast_unsigned()),
                    Number::Double(value) => write::double(out, 4, *value),
                }
                (0, 0)
            }
            Value::Histogram(histogram) => {
                without(point.message, &[2, 4, 5, 6, 11, 12], out);
                histogram.write(out);
                (11, 12)
            }
            Value::Exponential(histogram) => {
                let numbers = [&[2, 12, 13], &Exponential::FIELDS[..]].concat();
                without(point.message, &numbers, out);
                histogram.write(out);
                (12, 13)
            }
        };
        if self.start_ns != 0 {
            write::fixed64(out, 2, self.start_ns);
        }
        for (number, value) in [(min, self.min), (max, self.max)] {
            if let Some(value) = value {
                write::double(out, number, value);
            }
        }
    }
}

/// Of numbers of two types the sum is a double.
fn sum(mine: Number, other: Number) -> Number {
    let double = |number| match number {
        Number::Int(value) => value as f64,
        Number::Double(value) => value,
    };
    match (mine, other) {
        (Number::Int(mine), Number::Int(other)) => Number::Int(mine.saturating_add(other)),
        _ => Number::Double(double(mine) + double(other)),
    }
}

impl Histogram {
    fn and(&self, other: &Histogram) -> Histogram {
        let counts = self.counts.iter().zip(&other.counts);
        let mut sums: Vec<u64> = counts
            .map(|(mine, other)| mine.saturating_add(*other))
            .collect();
        // A histogram should have a count for each bucket; what one lacks is as it was.
        sums.extend(self.counts.iter().skip(sums.len()));
        Histogram {
            count: self.count.saturating_add(other.count),
            sum: self.sum.zip(other.sum).map(|(mine, other)| mine + other),
            bounds: self.bounds.clone(),
            counts: sums,
        }
    }

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
