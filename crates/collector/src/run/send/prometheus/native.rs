//! Exponential histograms of OTLP, which Prometheus calls native.

use super::point::BUCKETS_MAX;

/// The scales that Prometheus has.
pub(super) const SCALE_MIN: i32 = -4;
pub(super) const SCALE_MAX: i32 = 8;
/// The largest scale of OTLP (OpenTelemetry specification, "Metrics Data Model").
const OTLP_SCALE_MAX: i32 = 20;

/// A histogram whose buckets are powers of `2^(2^-scale)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Native {
    pub count: u64,
    pub sum: f64,
    pub scale: i32,
    pub zero_count: u64,
    /// Values up to this size are in `zero_count`; 0: not known.
    pub zero_threshold: f64,
    pub positive: Buckets,
    pub negative: Buckets,
}

/// The buckets of one sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buckets {
    /// The place of the first one.
    pub offset: i32,
    /// [`BUCKETS_MAX`] at most.
    pub counts: Vec<u64>,
}

impl Native {
    /// The same with a scale that Prometheus has.
    ///
    /// # Errors
    /// Why Prometheus cannot have it.
    pub(super) fn checked(self) -> Result<Native, &'static str> {
        if !(SCALE_MIN..=OTLP_SCALE_MAX).contains(&self.scale) {
            return Err("the scale of an exponential histogram is not from -4 to 20");
        }
        let sides = [&self.positive, &self.negative];
        let counts = sides.into_iter().flat_map(|side| side.counts.iter());
        let sum = { counts.chain([&self.zero_count]) }
            .try_fold(0u64, |sum, count| sum.checked_add(*count));
        // Values that are no numbers have no bucket (client_golang, `validateCount`).
        let is_whole = match sum {
            Some(sum) if self.sum.is_nan() => sum <= self.count,
            sum => sum == Some(self.count),
        };
        if !is_whole {
            return Err("the buckets of an exponential histogram do not add up to its count");
        }
        let scale = self.scale.min(SCALE_MAX);
        Ok(self.at_scale(scale))
    }

    /// The same with a lower scale, which has wider buckets.
    fn at_scale(self, scale: i32) -> Native {
        let shift = self.scale.saturating_sub(scale).max(0).unsigned_abs();
        Native {
            positive: self.positive.wider(shift),
            negative: self.negative.wider(shift),
            scale: self.scale.min(scale),
            ..self
        }
    }

    /// The sum of two histograms. It has the lower of the two scales. If that gives too many buckets,
    /// it has a lower scale. None if no scale of Prometheus gives few enough buckets.
    pub(super) fn plus(&self, other: &Native) -> Option<Native> {
        let mut scale = self.scale.min(other.scale);
        let (mut one, mut two) = (self.clone().at_scale(scale), other.clone().at_scale(scale));
        while one.positive.span(&two.positive) > BUCKETS_MAX
            || one.negative.span(&two.negative) > BUCKETS_MAX
        {
            scale -= 1;
            if scale < SCALE_MIN {
                return None;
            }
            (one, two) = (one.at_scale(scale), two.at_scale(scale));
        }
        Some(Native {
            count: one.count.saturating_add(two.count),
            sum: one.sum + two.sum,
            scale,
            zero_count: one.zero_count.saturating_add(two.zero_count),
            zero_threshold: one.zero_threshold.max(two.zero_threshold),
            positive: one.positive.plus(&two.positive),
            negative: one.negative.plus(&two.negative),
        })
    }
}

impl Buckets {
    fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// One bucket in the place of `2^shift`.
    fn wider(self, shift: u32) -> Buckets {
        if shift == 0 || self.is_empty() {
            return self;
        }
        let place = |index: usize| (i64::from(self.offset) + index as i64) >> shift.min(62);
        let first = place(0);
        let mut counts = Vec::new();
        for (index, count) in self.counts.iter().enumerate() {
            let index = usize::try_from(place(index) - first).unwrap_or_default();
            if counts.len() <= index {
                counts.resize(index + 1, 0u64);
            }
            counts[index] = counts[index].saturating_add(*count);
        }
        Buckets {
            offset: i32::try_from(first).unwrap_or_default(),
            counts,
        }
    }

    /// Buckets from the first to the last of both.
    fn span(&self, other: &Buckets) -> usize {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self.counts.len(),
            (true, _) => other.counts.len(),
            _ => {
                let first = self.offset.min(other.offset);
                usize::try_from(self.end().max(other.end()) - i64::from(first)).unwrap_or_default()
            }
        }
    }

    /// The place after the last bucket.
    fn end(&self) -> i64 {
        i64::from(self.offset) + self.counts.len() as i64
    }

    fn plus(&self, other: &Buckets) -> Buckets {
        let offset = match (self.is_empty(), other.is_empty()) {
            (_, true) => self.offset,
            (true, _) => other.offset,
            _ => self.offset.min(other.offset),
        };
        let mut counts = vec![0u64; self.span(other)];
        for side in [self, other] {
            let begin = i64::from(side.offset) - i64::from(offset);
            let begin = usize::try_from(begin).unwrap_or_default();
            for (sum, count) in counts.iter_mut().skip(begin).zip(&side.counts) {
                *sum = sum.saturating_add(*count);
            }
        }
        Buckets { offset, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(scale: i32, offset: i32, counts: &[u64]) -> Native {
        Native {
            count: counts.iter().sum(),
            sum: 1.0,
            scale,
            zero_count: 0,
            zero_threshold: 0.0,
            positive: Buckets {
                offset,
                counts: counts.to_vec(),
            },
            negative: Buckets::default(),
        }
    }

    #[test]
    fn a_scale_that_prometheus_lacks_is_lowered_or_refused() {
        let fine = native(10, -5, &[1, 2, 3, 4, 5]).checked().expect("a scale");
        // Places -5, -4 to -1: -2 and -1 at the scale 8.
        let wanted = Buckets {
            offset: -2,
            counts: vec![1, 14],
        };
        assert_eq!((fine.scale, fine.positive), (8, wanted));
        assert!(native(-5, 0, &[1]).checked().is_err());
        assert!(native(21, 0, &[1]).checked().is_err());
        let short = Native {
            count: 9,
            ..native(0, 0, &[1])
        };
        assert!(short.checked().is_err());
    }

    #[test]
    fn sums_have_the_lower_scale() {
        let sum = native(1, 2, &[1, 1]).plus(&native(0, -1, &[5]));
        let sum = sum.expect("a sum");
        assert_eq!((sum.scale, sum.count, sum.sum), (0, 7, 2.0));
        let wanted = Buckets {
            offset: -1,
            counts: vec![5, 0, 2],
        };
        assert_eq!(sum.positive, wanted);
        // An empty side does not count, wherever it is.
        let empty = native(0, i32::MAX, &[]);
        let sum = native(0, 3, &[4]).plus(&empty).expect("a sum");
        assert_eq!(sum.positive, native(0, 3, &[4]).positive);
    }

    #[test]
    fn buckets_far_apart_take_no_memory() {
        let far = native(8, i32::MAX, &[1]);
        assert_eq!(native(8, i32::MIN, &[1]).plus(&far), None);
        let apart = native(8, 0, &[1]).plus(&native(8, 2 * BUCKETS_MAX as i32, &[1]));
        assert_eq!(apart.map(|sum| sum.scale), Some(6));
    }
}
