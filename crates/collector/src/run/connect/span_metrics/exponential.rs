//! A histogram whose buckets are powers of a base (OpenTelemetry metrics data model,
//! ExponentialHistogram): the base becomes coarser when there are too many of them.

/// The finest scale: a base of 2^(1/2^20).
const SCALE_MAX: i32 = 20;

/// Values that are not negative.
#[derive(Clone, Debug)]
pub struct Exponential {
    size_max: usize,
    scale: i32,
    /// The index of the first bucket.
    offset: i32,
    counts: Vec<u64>,
    zeros: u64,
    min: f64,
    max: f64,
}

impl Exponential {
    /// An empty one of so many buckets at most, two at least.
    pub fn new(size_max: usize) -> Exponential {
        Exponential {
            size_max: size_max.max(2),
            scale: SCALE_MAX,
            offset: 0,
            counts: Vec::new(),
            zeros: 0,
            min: f64::INFINITY,
            max: 0.0,
        }
    }

    /// How many buckets there are at most.
    pub fn size_max(&self) -> usize {
        self.size_max
    }

    /// A value that counts `times`.
    pub fn add(&mut self, value: f64, times: u64) {
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        if value <= 0.0 {
            self.zeros = self.zeros.saturating_add(times);
            return;
        }
        let mut index = index_of(value, self.scale);
        let (mut first, mut last) = match self.counts.len() {
            0 => (index, index),
            len => (self.offset, self.offset + len as i32 - 1),
        };
        (first, last) = (first.min(index), last.max(index));
        let mut steps = 0;
        while i64::from(last >> steps) - i64::from(first >> steps) >= self.size_max as i64 {
            steps += 1;
        }
        self.coarsen(steps);
        index >>= steps;
        first >>= steps;
        if self.counts.is_empty() {
            self.offset = index;
        }
        // The first bucket moves down.
        let missing = (self.offset - first) as usize;
        self.counts.splice(0..0, std::iter::repeat_n(0, missing));
        self.offset = first;
        let place = (index - first) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(times);
    }

    /// Makes each bucket 2^`steps` times as wide.
    fn coarsen(&mut self, steps: u32) {
        if steps == 0 {
            return;
        }
        self.scale -= steps as i32;
        let offset = self.offset >> steps;
        let mut counts = Vec::new();
        for (place, count) in self.counts.iter().enumerate() {
            let place = (((self.offset + place as i32) >> steps) - offset) as usize;
            if place >= counts.len() {
                counts.resize(place + 1, 0);
            }
            counts[place] = count.saturating_add(counts[place]);
        }
        (self.offset, self.counts) = (offset, counts);
    }

    /// The scale, the values that are 0, the index of the first bucket, and the counts.
    pub fn buckets(&self) -> (i32, u64, i32, &[u64]) {
        (self.scale, self.zeros, self.offset, &self.counts)
    }

    /// The least and the largest value.
    pub fn range(&self) -> (f64, f64) {
        (self.min, self.max)
    }
}

/// The bucket of a positive value: above base^index, and not above base^(index + 1).
fn index_of(value: f64, scale: i32) -> i32 {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let is_power = bits & ((1 << 52) - 1) == 0;
    if scale <= 0 {
        // A power of two is the upper end of its bucket.
        return (exponent - i32::from(is_power)) >> -scale;
    }
    if is_power {
        return (exponent << scale) - 1;
    }
    let index = (value.log2() * f64::from(1 << scale)).floor() as i32;
    // The logarithm may be rounded to a power of two.
    index.clamp(exponent << scale, ((exponent + 1) << scale) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_upper_ends() {
        for (value, scale, index) in [
            (1.0, 0, -1),
            (1.5, 0, 0),
            (2.0, 0, 0),
            (2.1, 0, 1),
            (4.0, 1, 3),
            (4.1, 1, 4),
            (1.0, -1, -1),
            (4.0, -1, 0),
            (4.1, -1, 1),
            (0.5, 0, -2),
            (1.0, 20, -1),
        ] {
            assert_eq!(index_of(value, scale), index, "{value} at {scale}");
        }
    }

    #[test]
    fn a_wider_range_has_coarser_buckets() {
        let mut histogram = Exponential::new(4);
        histogram.add(0.0, 3);
        histogram.add(1.0, 1);
        assert_eq!(histogram.buckets(), (SCALE_MAX, 3, -1, &[1][..]));
        for value in [2.0, 4.0, 8.0] {
            histogram.add(value, 2);
        }
        assert_eq!(histogram.buckets(), (0, 3, -1, &[1, 2, 2, 2][..]));
        histogram.add(0.4, 1);
        let (scale, _, offset, counts) = histogram.buckets();
        assert_eq!((scale, offset, counts), (-1, -1, &[2, 4, 2][..]));
        assert_eq!(histogram.range(), (0.0, 8.0));
        histogram.add(1e300, 1);
        histogram.add(1e-300, 1);
        let (_, _, _, counts) = histogram.buckets();
        assert!(counts.len() <= 4 && counts.iter().sum::<u64>() == 10);
    }
}
