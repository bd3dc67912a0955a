//! Percentiles from histograms.

use stats::latency::{BOUNDS_MS, Histogram};

/// The time in milliseconds below which this share of the streams was; None if there were no
/// streams. Times are assumed to be spread evenly within a bucket. For the last bucket, which has
/// no upper bound, the result is its lower bound.
pub fn percentile(histogram: &Histogram, share: f64) -> Option<f64> {
    let all = histogram.count();
    if all == 0 {
        return None;
    }
    let wanted = share * all as f64;
    let mut below = 0.0;
    for (place, count) in histogram.counts.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            let low = match place {
                0 => 0.0,
                _ => BOUNDS_MS[place - 1] as f64,
            };
            let Some(high) = BOUNDS_MS.get(place) else {
                return Some(low);
            };
            let part = ((wanted - below) / count).clamp(0.0, 1.0);
            return Some(low + (*high as f64 - low) * part);
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(usize, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (place, count) in counts {
            histogram.counts[*place] = *count;
        }
        histogram
    }

    #[test]
    fn percentiles_lie_within_their_bucket() {
        assert_eq!(percentile(&of(&[]), 0.5), None);
        // 10 streams of 5 to 10 ms, 10 of 50 to 100 ms.
        let two = of(&[(3, 10), (6, 10)]);
        assert_eq!(percentile(&two, 0.25), Some(7.5));
        assert_eq!(percentile(&two, 0.5), Some(10.0));
        assert_eq!(percentile(&two, 0.75), Some(75.0));
        assert_eq!(percentile(&two, 1.0), Some(100.0));
        assert_eq!(percentile(&of(&[(0, 4)]), 0.5), Some(0.5));
        assert_eq!(percentile(&of(&[(15, 1)]), 0.99), Some(60_000.0));
    }
}
