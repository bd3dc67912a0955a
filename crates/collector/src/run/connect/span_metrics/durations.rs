//! Histograms of durations.

use otlp::write;

use super::exponential::Exponential;
use crate::config::components::connectors::span_metrics::Buckets;
use crate::run::connect::series::Value;

/// A histogram of durations.
#[derive(Clone, Debug)]
pub struct Durations {
    count: u64,
    sum: f64,
    buckets: Counted,
}

#[derive(Clone, Debug)]
enum Counted {
    Explicit(std::sync::Arc<[f64]>, Vec<u64>),
    Exponential(Exponential),
}

impl Durations {
    /// An empty one.
    pub fn new(buckets: &Buckets) -> Durations {
        Durations {
            count: 0,
            sum: 0.0,
            buckets: match buckets {
                Buckets::Explicit(bounds) => {
                    Counted::Explicit(bounds[..].into(), vec![0; bounds.len() + 1])
                }
                Buckets::Exponential(size) => Counted::Exponential(Exponential::new(*size)),
            },
        }
    }

    /// A duration that counts `times`.
    pub fn add(&mut self, value: f64, times: u64) {
        self.count = self.count.saturating_add(times);
        self.sum += value * times as f64;
        match &mut self.buckets {
            Counted::Explicit(bounds, counts) => {
                let place = bounds.partition_point(|bound| *bound < value);
                counts[place] = counts[place].saturating_add(times);
            }
            Counted::Exponential(histogram) => histogram.add(value, times),
        }
    }
}

impl Value for Durations {
    fn fields(&self) -> (u32, u32, u32) {
        match self.buckets {
            Counted::Explicit(..) => (9, 9, 8),
            Counted::Exponential(_) => (10, 1, 11),
        }
    }

    fn bytes_max(&self) -> usize {
        let buckets = match &self.buckets {
            Counted::Explicit(_, counts) => counts.len(),
            Counted::Exponential(histogram) => histogram.size_max(),
        };
        buckets * size_of::<u64>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        write::fixed64(out, 4, self.count);
        write::double(out, 5, self.sum);
        match &self.buckets {
            Counted::Explicit(bounds, counts) => {
                write::packed(out, 6, counts.iter().copied());
                write::packed(out, 7, bounds.iter().map(|bound| bound.to_bits()));
            }
            Counted::Exponential(histogram) => {
                let (scale, zeros, offset, counts) = histogram.buckets();
                let (min, max) = histogram.range();
                write::uint(out, 6, zigzag(scale));
                write::fixed64(out, 7, zeros);
                write::message(out, 8, |out| {
                    write::uint(out, 1, zigzag(offset));
                    write::message(out, 2, |out| {
                        counts.iter().for_each(|count| write::varint(out, *count));
                    });
                });
                write::double(out, 12, min);
                write::double(out, 13, max);
            }
        }
    }
}

/// A number of the type `sint32`.
fn zigzag(number: i32) -> u64 {
    u64::from((number << 1 ^ number >> 31).cast_unsigned())
}
