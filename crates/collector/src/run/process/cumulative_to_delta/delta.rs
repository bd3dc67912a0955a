//! The difference of two data points of a stream.

use otlp::scan::{Number, Point};
use otlp::write;

use super::super::streams::{Histogram, Remembered, Value};
use super::Reason;

/// The last data point of a stream.
#[derive(Clone, Debug)]
pub struct Last {
    pub time_ns: u64,
    value: Value,
}

impl Remembered for Last {
    fn bytes(&self) -> usize {
        self.value.bytes()
    }
}

impl Last {
    /// Of a data point; one without a value is 0.
    pub fn of(point: &Point<'_>) -> Last {
        Last {
            time_ns: point.time_ns,
            value: Value::of(point),
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
        // The least and the greatest value are those since the start: a delta has none.
        match (&self.0, point.sum) {
            (Value::Histogram(histogram), Some(sum)) if sum.is_nan() => {
                let histogram = Histogram {
                    sum: Some(sum),
                    ..histogram.clone()
                };
                Value::Histogram(histogram).write(point, out);
            }
            (value, _) => value.write(point, out),
        }
        if start_ns != 0 {
            write::fixed64(out, 2, start_ns);
        }
    }
}
