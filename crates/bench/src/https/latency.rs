//! Measured times, stored exactly, and their percentiles.

use std::time::Duration;

/// Times in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds a time; times above 71 minutes count as 71 minutes.
    pub fn record(&mut self, time: Duration) {
        self.0
            .push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The percentiles `wanted`, in microseconds: each is the smallest time that so many of 100 do
    /// not exceed (nearest rank); 0 without times.
    pub fn percentiles<const N: usize>(&mut self, wanted: [u32; N]) -> [f64; N] {
        self.0.sort_unstable();
        let count = self.0.len() as u64;
        wanted.map(|percent| {
            let rank = (count * u64::from(percent)).div_ceil(100).max(1);
            let found = usize::try_from(rank - 1).ok().and_then(|at| self.0.get(at));
            f64::from(found.copied().unwrap_or(0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        let each = times.into_iter().map(Duration::from_micros);
        each.for_each(|time| latencies.record(time));
        latencies
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        assert_eq!(of([]).percentiles([50, 99]), [0.0, 0.0]);
        assert_eq!(of([7]).percentiles([0, 50, 100]), [7.0, 7.0, 7.0]);
        let hundred = [50.0, 95.0, 99.0, 100.0];
        assert_eq!(of((1..=100).rev()).percentiles([50, 95, 99, 100]), hundred);
        assert_eq!(of([4, 1, 3, 2]).percentiles([50, 51]), [2.0, 3.0]);
    }

    #[test]
    fn merging_loses_nothing() {
        let mut all = of([1, 3]);
        all.merge(of([2]));
        assert_eq!((all.count(), all.percentiles([50])), (3, [2.0]));
    }
}
