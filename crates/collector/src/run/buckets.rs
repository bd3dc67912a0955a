//! Numbers counted by their size, for histograms.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A histogram that any thread adds to. A bucket has what is not larger than its bound.
#[derive(Debug)]
pub struct Buckets {
    bounds: &'static [u64],
    /// By the bounds, and the rest.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Buckets {
    /// With these upper bounds, which rise.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Buckets {
        Buckets {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    /// One number more.
    pub fn add(&self, number: u64) {
        let place = self.bounds.partition_point(|bound| *bound < number);
        self.counts[place].fetch_add(1, Relaxed);
        self.sum.fetch_add(number, Relaxed);
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &'static [u64] {
        self.bounds
    }

    /// How many each bucket has, and the rest.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        self.counts
            .iter()
            .map(|count| count.load(Relaxed))
            .collect()
    }

    /// Of all numbers.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_within_its_bucket() {
        let buckets = Buckets::new(&[1, 5]);
        for number in [0, 1, 2, 5, 6, 100] {
            buckets.add(number);
        }
        assert_eq!((buckets.counts(), buckets.sum()), (vec![2, 2, 2], 114));
    }
}
