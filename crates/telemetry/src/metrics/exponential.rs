//! The exponential histogram (OpenTelemetry: Metrics data model, ExponentialHistogram; Metrics SDK,
//! base2 exponential bucket histogram aggregation).
//!
//! At scale `s` bucket `i` holds the values above `b^i` up to `b^(i+1)`, where `b = 2^(2^-s)`.
//! Reducing the scale by one merges two neighbouring buckets: `i` becomes `i >> 1`. Indices are
//! computed at the finest scale and shifted from there, so that a value lands in the same bucket
//! whatever scales were used before.

use super::point::Totals;

/// The finest scale (recommended by the SDK's specification).
pub(super) const SCALE_MAX: i32 = 20;
/// The coarsest scale: all 64-bit values fit in two buckets.
pub(super) const SCALE_MIN: i32 = -10;

#[derive(Clone, Debug)]
pub(super) struct Exponential {
    pub totals: Totals,
    pub scale: i32,
    pub zeros: u64,
    pub positive: Buckets,
    pub negative: Buckets,
}

/// Counts of neighbouring buckets; the first and the last count are not 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    /// The index of the first bucket.
    pub start: i32,
    pub counts: Vec<u64>,
}

impl Exponential {
    pub fn new(scale: i32) -> Exponential {
        Exponential {
            totals: Totals::NONE,
            scale,
            zeros: 0,
            positive: Buckets::default(),
            negative: Buckets::default(),
        }
    }

    pub fn record(&mut self, value: i64, max_size: i32) {
        self.totals.record(value);
        if value == 0 {
            self.zeros += 1;
            return;
        }
        let index = index(value.unsigned_abs()) >> (SCALE_MAX - self.scale);
        let by = self.side(value).reduction(Some((index, index)), max_size);
        self.reduce(by);
        self.side(value).add(index >> by, 1);
    }

    fn side(&mut self, value: i64) -> &mut Buckets {
        if value > 0 {
            &mut self.positive
        } else {
            &mut self.negative
        }
    }

    pub fn merge(&mut self, other: &Exponential, max_size: i32) {
        self.totals.merge(&other.totals);
        self.zeros += other.zeros;
        self.reduce((self.scale - other.scale).max(0));
        let shift = other.scale - self.scale;
        let more = self
            .positive
            .reduction(other.positive.span(shift), max_size)
            .max(
                self.negative
                    .reduction(other.negative.span(shift), max_size),
            );
        self.reduce(more);
        self.positive.merge(&other.positive, shift + more);
        self.negative.merge(&other.negative, shift + more);
    }

    /// Reduces the scale by this many steps.
    fn reduce(&mut self, by: i32) {
        if by > 0 {
            self.scale -= by;
            self.positive.reduce(by);
            self.negative.reduce(by);
        }
    }

    /// Empties the buckets, but keeps their memory.
    pub fn reset(&mut self, scale: i32) {
        self.totals = Totals::NONE;
        self.scale = scale;
        self.zeros = 0;
        self.positive.counts.clear();
        self.negative.counts.clear();
    }
}

impl Buckets {
    /// The first and the last index at a scale that is lower by `shift`.
    fn span(&self, shift: i32) -> Option<(i32, i32)> {
        let last = self.start + self.counts.len() as i32 - 1;
        (!self.counts.is_empty()).then_some((self.start >> shift, last >> shift))
    }

    /// How many steps to reduce the scale so that these buckets together with others fit into
    /// `max_size`, which is at least 2.
    fn reduction(&self, others: Option<(i32, i32)>, max_size: i32) -> i32 {
        let (Some((mut low, mut high)), Some((start, end))) = (self.span(0), others) else {
            return 0;
        };
        (low, high) = (low.min(start), high.max(end));
        let mut by = 0;
        // Ends at the latest with -1 and 0.
        while high - low >= max_size {
            (low, high) = (low >> 1, high >> 1);
            by += 1;
        }
        by
    }

    /// Adds to a bucket; the caller has made sure that it fits.
    fn add(&mut self, index: i32, count: u64) {
        if self.counts.is_empty() {
            self.start = index;
        }
        if index < self.start {
            let before = (self.start - index) as usize;
            let len = self.counts.len();
            self.counts.resize(len + before, 0);
            self.counts.rotate_right(before);
            self.start = index;
        }
        let place = (index - self.start) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += count;
    }

    /// Adds the buckets of a scale that is finer by `shift`.
    fn merge(&mut self, others: &Buckets, shift: i32) {
        for (index, count) in (others.start..).zip(&others.counts) {
            if *count > 0 {
                self.add(index >> shift, *count);
            }
        }
    }

    fn reduce(&mut self, by: i32) {
        let Some((first, last)) = self.span(by) else {
            return;
        };
        for place in 0..self.counts.len() {
            let count = std::mem::take(&mut self.counts[place]);
            // Never above `place`.
            let to = ((self.start + place as i32) >> by) - first;
            self.counts[to as usize] += count;
        }
        self.counts.truncate((last - first + 1) as usize);
        self.start = first;
    }
}

/// The bucket of a magnitude above 0, at [`SCALE_MAX`].
fn index(magnitude: u64) -> i32 {
    let zeros = magnitude.leading_zeros();
    let exponent = 63 - zeros as i32;
    let whole = exponent << SCALE_MAX;
    if magnitude.is_power_of_two() {
        // The value is exactly the upper end of its bucket.
        return whole - 1;
    }
    // The fraction is above 1 and below 2, apart from rounding.
    let fraction = (magnitude << zeros) as f64 / (1_u64 << 63) as f64;
    let part = (fraction.log2() * f64::from(1 << SCALE_MAX)).ceil() as i32 - 1;
    whole + part.clamp(0, (1 << SCALE_MAX) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: i32 = 160;

    fn of(values: &[i64], size: i32) -> Exponential {
        let mut histogram = Exponential::new(SCALE_MAX);
        values
            .iter()
            .for_each(|value| histogram.record(*value, size));
        histogram
    }

    #[test]
    fn indices_are_between_powers() {
        for value in (1..5000).chain([(1 << 52) + 1, (1 << 62) - 1, u64::MAX >> 1, 1 << 63]) {
            let index = index(value);
            // At scale 0 integers tell.
            let exponent = i64::from(index >> SCALE_MAX);
            assert!(
                exponent < 0 || 1_u128 << exponent < u128::from(value),
                "{value}"
            );
            assert!(u128::from(value) <= 1 << (exponent + 1), "{value}");
            let log = (value as f64).log2() * f64::from(1 << SCALE_MAX);
            assert!(
                f64::from(index) < log + 1e-6 && log <= f64::from(index) + 1.0 + 1e-6,
                "{value}"
            );
        }
        assert_eq!(
            (index(1), index(2), index(4)),
            (-1, (1 << 20) - 1, (2 << 20) - 1)
        );
        assert_eq!(index(3), (3f64.log2() * f64::from(1 << 20)) as i32);
    }

    #[test]
    fn the_scale_is_the_finest_that_fits() {
        assert_eq!(of(&[5], SIZE).scale, SCALE_MAX);
        assert_eq!(of(&[0, 0], SIZE).scale, SCALE_MAX);
        let two = of(&[1, 1 << 40], 2);
        assert_eq!(
            (two.scale, two.positive.start, &two.positive.counts[..]),
            (-6, -1, &[1, 1][..])
        );
        // 1 to 1024: 10 * 2^s + 1 buckets at scale s.
        assert_eq!(of(&[1, 1024], SIZE).scale, 3);
        assert_eq!(of(&[1, 1024], 81).scale, 3);
        assert_eq!(of(&[1, 1024], 80).scale, 2);
        assert_eq!(of(&[i64::MIN, -1, 0, 1, i64::MAX], 2).scale, -6);
    }

    #[test]
    fn buckets_hold_what_was_recorded() {
        let histogram = of(&[1, 2, 3, 4, 5, 6, 7, 8], 4);
        // (1/2, 1], (1, 2], (2, 4], (4, 8]
        assert_eq!((histogram.scale, histogram.positive.start), (0, -1));
        assert_eq!(histogram.positive.counts, [1, 1, 2, 4]);
        let falling = of(&[-8, -7, -6, -5, -4, -3, -2, -1, 0], 4);
        assert_eq!(falling.negative.counts, [1, 1, 2, 4]);
        assert_eq!(
            (falling.zeros, falling.totals.count, falling.totals.sum),
            (1, 9, -36)
        );
    }

    #[test]
    fn merged_is_as_recorded_together() {
        let mut ids = crate::Ids::new([2, 7, 1, 8]);
        for turn in 0..300 {
            let size = [2, 3, 20, SIZE][turn % 4];
            let values: Vec<i64> = (0..turn)
                .map(|_| (ids.next_u64() >> (ids.next_u64() % 64)) as i64)
                .collect();
            let cut = if turn == 0 {
                0
            } else {
                ids.next_u64() as usize % turn
            };
            let mut merged = of(&values[..cut], size);
            merged.merge(&of(&values[cut..], size), size);
            let whole = of(&values, size);
            assert_eq!(merged.scale, whole.scale, "{values:?}");
            assert_eq!(merged.totals.sum, whole.totals.sum);
            for (a, b) in [
                (&merged.positive, &whole.positive),
                (&merged.negative, &whole.negative),
            ] {
                assert_eq!(a.counts, b.counts);
                assert!(a.counts.len() <= size as usize);
                assert!(a.counts.is_empty() || a.start == b.start);
            }
        }
    }
}
