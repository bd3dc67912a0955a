//! The sum of the data points of a stream.

use otlp::scan::{Number, Point};
use otlp::write;

use super::super::streams::{Histogram, Remembered, Value};
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

impl Remembered for Total {
    fn bytes(&self) -> usize {
        self.value.bytes()
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
            value: Value::of(point),
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
        self.value.write(point, out);
        // Field numbers of the least and of the greatest value.
        let (min, max) = match self.value {
            Value::Number(_) => (0, 0),
            Value::Histogram(_) => (11, 12),
            Value::Exponential(_) => (12, 13),
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
}
