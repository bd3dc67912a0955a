//! The difference of two data points of a stream.

use otlp::scan::{Number, Point, PointKind};
use otlp::write;

use super::super::streams::{Exponential, Remembered, without};
use super::Reason;

/// The last data point of a stream.
#[derive(Clone, Debug)]
pub struct Last {
    pub time_ns: u64,
    value: Value,
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

impl Remembered for Last {
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

impl Last {
    /// Of a data point; one without a value is 0.
    pub fn of(point: &Point<'_>) -> Last {
        let value = match point.kind {
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
        };
        Last {
            time_ns: point.time_ns,
            value,
        }
    }

    /// A sum that is no number is the one before.
    pub fn fill(&mut self, before: &Last) {
        if let (Value::Histogram(histogram), Value::Histogram(before)) =
            (&mut self.value, &before.value)
            && histogram.sum.is_some_and(f64::is_nan)
        {
            histogram.sum = before.sum;
        }
    }

    /// The difference to the data point before.
    ///
    /// # Errors
    /// Why nothing can be told.
    pub fn since(&self, before: &Last) -> Result<Delta, Reason> {
        match (&self.value, &before.value) {
            (Value::Number(Number::Int(value)), Value::Number(Number::Int(before)))
                if value >= before =>
            {
                Ok(Delta(Value::Number(Number::Int(
                    value.wrapping_sub(*before),
                ))))
            }
            (Value::Number(Number::Double(value)), Value::Number(Number::Double(before)))
                if value >= before =>
            {
                Ok(Delta(Value::Number(Number::Double(value - before))))
            }
            (Value::Histogram(histogram), Value::Histogram(before)) => {
                histogram.since(before).map(Value::Histogram).map(Delta)
            }
            (Value::Exponential(histogram), Value::Exponential(before)) => {
                let since = histogram.since(before).ok_or(Reason::Reset)?;
                Ok(Delta(Value::Exponential(since)))
            }
            _ => Err(Reason::Reset),
        }
    }
}

impl Histogram {
    fn since(&self, before: &Histogram) -> Result<Histogram, Reason> {
        if self.counts.len() != before.counts.len() || self.bounds != before.bounds {
            return Err(Reason::BucketMismatch);
        }
        let counts = self.counts.iter().zip(&before.counts);
        let counts: Option<Vec<u64>> = counts
            .map(|(count, before)| count.checked_sub(*before))
            .collect();
        let (Some(count), Some(counts)) = (self.count.checked_sub(before.count), counts) else {
            // As in the Collector, all of a histogram that was reset came since.
            return Ok(self.clone());
        };
        Ok(Histogram {
            count,
            sum: self.sum.map(|sum| sum - before.sum.unwrap_or_default()),
            bounds: Vec::new(),
            counts,
        })
    }
}

/// The difference of two data points.
#[derive(Debug)]
pub struct Delta(Value);

impl Delta {
    /// All of a data point.
    pub fn whole(last: &Last) -> Delta {
        Delta(last.value.clone())
    }

    /// Appends the data point that this is made of, as a delta.
    pub fn write(&self, point: &Point<'_>, start_ns: u64, out: &mut Vec<u8>) {
        match &self.0 {
            Value::Number(value) => {
                without(point.message, &[2, 4, 6], out);
                match value {
                    Number::Int(value) => write::fixed64(out, 6, value.cast_unsigned()),
                    Number::Double(value) => write::double(out, 4, *value),
                }
            }
            Value::Histogram(histogram) => {
                // The least and the greatest value are those since the start.
                without(point.message, &[2, 4, 6, 11, 12, 5], out);
                write::fixed64(out, 4, histogram.count);
                match (point.sum, histogram.sum) {
                    (Some(sum), _) if sum.is_nan() => write::double(out, 5, sum),
                    (Some(_), Some(sum)) => write::double(out, 5, sum),
                    _ => {}
                }
                if !histogram.counts.is_empty() {
                    write::packed(out, 6, histogram.counts.iter().copied());
                }
            }
            Value::Exponential(histogram) => {
                let numbers = [&[2, 12, 13], &Exponential::FIELDS[..]].concat();
                without(point.message, &numbers, out);
                histogram.write(out);
            }
        }
        if start_ns != 0 {
            write::fixed64(out, 2, start_ns);
        }
    }
}
