//! Exponential histograms that are added to each other, or taken from each other (OpenTelemetry
//! metrics data model, "ExponentialHistogram").

use otlp::scan::{NEGATIVE, POSITIVE, Point};
use otlp::write;

/// An exponential histogram without its times, least and greatest value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exponential {
    count: u64,
    sum: Option<f64>,
    zero_count: u64,
    zero_threshold: f64,
    scale: i32,
    positive: Buckets,
    negative: Buckets,
}

/// Buckets of one sign. Indexes have 64 bits, so that none overflows.
#[derive(Clone, Debug, Default, PartialEq)]
struct Buckets {
    offset: i64,
    counts: Vec<u64>,
}

/// Buckets of one sign that a sum of two has at most, as in the Collector.
const BUCKETS_MAX: i64 = 160;
/// The numbers of its fields.
const FIELDS: [u32; 7] = [4, 5, 6, 7, POSITIVE, NEGATIVE, 14];

impl Exponential {
    /// The numbers of the fields that [`Exponential::write`] writes.
    pub const FIELDS: [u32; 7] = FIELDS;

    /// Of a data point.
    pub fn of(point: &Point<'_>) -> Exponential {
        let buckets = |buckets: otlp::scan::Buckets<'_>| Buckets {
            offset: i64::from(buckets.offset()),
            counts: buckets.counts(),
        };
        Exponential {
            count: point.count,
            sum: point.sum,
            zero_count: point.zero_count,
            zero_threshold: point.zero_threshold,
            scale: point.scale,
            positive: buckets(point.positive()),
            negative: buckets(point.negative()),
        }
    }

    /// Appends the fields of a data point.
    pub fn write(&self, out: &mut Vec<u8>) {
        write::fixed64(out, 4, self.count);
        if let Some(sum) = self.sum {
            write::double(out, 5, sum);
        }
        write::sint(out, 6, self.scale);
        write::fixed64(out, 7, self.zero_count);
        for (number, buckets) in [(POSITIVE, &self.positive), (NEGATIVE, &self.negative)] {
            if !buckets.counts.is_empty() {
                write::message(out, number, |out| buckets.write(out));
            }
        }
        if self.zero_threshold != 0.0 {
            write::double(out, 14, self.zero_threshold);
        }
    }

    /// Bytes of the buckets.
    pub fn bytes(&self) -> usize {
        (self.positive.counts.len() + self.negative.counts.len()) * size_of::<u64>()
    }

    /// The difference to an earlier histogram. None: a reset came between.
    pub fn since(&self, before: &Exponential) -> Option<Exponential> {
        // The count and the threshold only rise, and the scale only falls.
        if self.count < before.count
            || self.zero_threshold < before.zero_threshold
            || self.scale > before.scale
        {
            return None;
        }
        let mut before = before.clone();
        before.raise_zero(self.zero_threshold);
        before.coarsen(self.scale);
        Some(Exponential {
            count: self.count - before.count,
            sum: self.sum.map(|sum| sum - before.sum.unwrap_or_default()),
            zero_count: self.zero_count.checked_sub(before.zero_count)?,
            positive: self.positive.since(&before.positive)?,
            negative: self.negative.since(&before.negative)?,
            ..*self
        })
    }

    /// Adds another one. Both become as coarse as the coarser one, and as it takes for no more than
    /// [`BUCKETS_MAX`] buckets of a sign.
    pub fn add(&mut self, mut other: Exponential) {
        let scale = self.scale.min(other.scale);
        self.coarsen(scale);
        other.coarsen(scale);
        let bits = |mine: &Buckets, others: &Buckets| mine.bits_too_many(others);
        let bits = bits(&self.positive, &other.positive).max(bits(&self.negative, &other.negative));
        let scale = scale.saturating_sub(bits);
        self.coarsen(scale);
        other.coarsen(scale);
        if self.zero_threshold != other.zero_threshold {
            let threshold = self.zero_threshold.max(other.zero_threshold);
            let upper = self.upper_bound(threshold);
            self.raise_zero(upper);
            other.raise_zero(upper);
        }
        self.count = self.count.saturating_add(other.count);
        self.zero_count = self.zero_count.saturating_add(other.zero_count);
        self.sum = self.sum.zip(other.sum).map(|(mine, other)| mine + other);
        self.positive.add(&other.positive);
        self.negative.add(&other.negative);
    }

    /// The upper bound of the bucket that a value falls into.
    fn upper_bound(&self, value: f64) -> f64 {
        let buckets = f64::from(self.scale).exp2();
        ((value.log2() * buckets).ceil() / buckets)
            .exp2()
            .max(value)
    }

    /// Makes the zero bucket wider: buckets that are within it are counted there.
    fn raise_zero(&mut self, threshold: f64) {
        if threshold <= self.zero_threshold {
            return;
        }
        // The bucket that the threshold falls into: the greatest index whose lower bound is less.
        let last = (threshold.log2() * f64::from(self.scale).exp2()).ceil() as i64;
        let last = last.saturating_sub(1);
        let zeros = self
            .positive
            .trim(last)
            .saturating_add(self.negative.trim(last));
        self.zero_count = self.zero_count.saturating_add(zeros);
        self.zero_threshold = threshold;
    }

    /// Merges buckets until a scale, which is no greater, is reached.
    fn coarsen(&mut self, scale: i32) {
        let bits = i64::from(self.scale) - i64::from(scale);
        if bits > 0 {
            self.positive.coarsen(bits);
            self.negative.coarsen(bits);
            self.scale = scale;
        }
    }
}

impl Buckets {
    fn write(&self, out: &mut Vec<u8>) {
        let offset = self.offset.clamp(i32::MIN.into(), i32::MAX.into());
        if offset != 0 {
            write::sint(out, 1, offset as i32);
        }
        write::message(out, 2, |out| {
            self.counts
                .iter()
                .for_each(|count| write::varint(out, *count));
        });
    }

    /// The count of a bucket.
    fn at(&self, index: i64) -> u64 {
        let place = usize::try_from(index - self.offset).ok();
        let count = place.and_then(|place| self.counts.get(place));
        count.copied().unwrap_or_default()
    }

    /// Removes the buckets up to an index; gives what they counted.
    fn trim(&mut self, last: i64) -> u64 {
        let trimmed = last.saturating_sub(self.offset).saturating_add(1);
        let trimmed = usize::try_from(trimmed).unwrap_or(0).min(self.counts.len());
        self.offset += trimmed as i64;
        let add = |sum: u64, count: u64| sum.saturating_add(count);
        self.counts.drain(..trimmed).fold(0, add)
    }

    /// Merges buckets so that `2^bits` become one.
    fn coarsen(&mut self, bits: i64) {
        let bits = bits.clamp(0, 63);
        let offset = self.offset >> bits;
        let mut counts: Vec<u64> = Vec::new();
        for (index, count) in (self.offset..).zip(&self.counts) {
            let place = usize::try_from((index >> bits) - offset).unwrap_or(0);
            if counts.len() <= place {
                counts.resize(place + 1, 0);
            }
            counts[place] = counts[place].saturating_add(*count);
        }
        *self = Buckets { offset, counts };
    }

    /// The first index with a count, and the one after the last.
    fn range(&self) -> Option<(i64, i64)> {
        let first = self.counts.iter().position(|count| *count > 0)?;
        let last = self.counts.iter().rposition(|count| *count > 0)?;
        Some((self.offset + first as i64, self.offset + last as i64 + 1))
    }

    /// The range of two.
    fn range_with(&self, other: &Buckets) -> Option<(i64, i64)> {
        match (self.range(), other.range()) {
            (Some(mine), Some(others)) => Some((mine.0.min(others.0), mine.1.max(others.1))),
            (range, None) | (None, range) => range,
        }
    }

    /// By how much the scale must fall for the sum of two not to have too many buckets.
    fn bits_too_many(&self, other: &Buckets) -> i32 {
        let Some((mut first, mut end)) = self.range_with(other) else {
            return 0;
        };
        let mut bits = 0;
        while end - first > BUCKETS_MAX {
            (first, end) = (first >> 1, end >> 1);
            bits += 1;
        }
        bits
    }

    /// Adds buckets of the same scale.
    fn add(&mut self, other: &Buckets) {
        let Some((first, end)) = self.range_with(other) else {
            return;
        };
        let counts = (first..end).map(|index| self.at(index).saturating_add(other.at(index)));
        *self = Buckets {
            counts: counts.collect(),
            offset: first,
        };
    }

    /// The difference to earlier buckets of the same scale. None: a count is less.
    fn since(&self, before: &Buckets) -> Option<Buckets> {
        let end = self.offset + self.counts.len() as i64;
        for (index, count) in (before.offset..).zip(&before.counts) {
            if *count > 0 && !(self.offset..end).contains(&index) {
                return None;
            }
        }
        let mut since = Buckets::default();
        for (index, count) in (self.offset..).zip(&self.counts) {
            let more = count.checked_sub(before.at(index))?;
            if more == 0 {
                continue;
            }
            if since.counts.is_empty() {
                since.offset = index;
            }
            let place = usize::try_from(index - since.offset).unwrap_or(0);
            since.counts.resize(place, 0);
            since.counts.push(more);
        }
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(
        scale: i32,
        zeros: u64,
        positive: (i64, &[u64]),
        negative: (i64, &[u64]),
    ) -> Exponential {
        let buckets = |(offset, counts): (i64, &[u64])| Buckets {
            offset,
            counts: counts.to_vec(),
        };
        let (positive, negative) = (buckets(positive), buckets(negative));
        let counts = positive.counts.iter().chain(&negative.counts);
        Exponential {
            count: zeros + counts.sum::<u64>(),
            sum: Some(1.0),
            zero_count: zeros,
            zero_threshold: 0.0,
            scale,
            positive,
            negative,
        }
    }

    #[test]
    fn what_came_since_is_told_by_buckets() {
        let before = histogram(1, 1, (2, &[1, 0, 2]), (-1, &[1]));
        let after = histogram(1, 3, (1, &[4, 1, 0, 5, 0, 1]), (-1, &[1]));
        let since = after.since(&before).unwrap();
        let wanted = histogram(1, 2, (1, &[4, 0, 0, 3, 0, 1]), (0, &[]));
        assert_eq!(
            since,
            Exponential {
                sum: Some(0.0),
                ..wanted
            }
        );
        assert_eq!(before.since(&after), None, "the count fell");
        // As many in other buckets: it was reset.
        let other = histogram(1, 1, (2, &[0, 1, 2]), (-1, &[1]));
        assert_eq!(other.since(&before), None);
        let other = histogram(1, 1, (3, &[1, 2]), (-1, &[1]));
        assert_eq!(other.since(&before), None);
    }

    #[test]
    fn what_came_before_is_made_as_coarse() {
        let before = histogram(3, 0, (-3, &[1, 2, 4, 8]), (5, &[1]));
        let after = histogram(2, 0, (-2, &[1, 6, 9]), (2, &[2]));
        let since = after.since(&before).unwrap();
        let wanted = histogram(2, 0, (0, &[1]), (2, &[1]));
        assert_eq!(
            since,
            Exponential {
                sum: Some(0.0),
                ..wanted
            }
        );
        assert_eq!(before.since(&after), None, "the scale rose");
        let mut far = histogram(
            i32::MAX,
            0,
            (i64::from(i32::MIN), &[1, 1]),
            (i64::from(i32::MAX), &[3]),
        );
        far.coarsen(i32::MIN);
        assert_eq!(
            (far.positive.offset, &far.positive.counts[..]),
            (-1, &[2][..])
        );
        assert_eq!(
            (far.negative.offset, &far.negative.counts[..]),
            (0, &[3][..])
        );
    }

    #[test]
    fn sums_have_the_buckets_of_both() {
        let mut sum = histogram(1, 1, (2, &[1, 0, 2]), (0, &[]));
        sum.add(histogram(1, 2, (-1, &[0, 3, 0, 4, 0]), (7, &[1])));
        let wanted = histogram(1, 3, (0, &[3, 0, 5, 0, 2]), (7, &[1]));
        assert_eq!(
            sum,
            Exponential {
                sum: Some(2.0),
                ..wanted
            }
        );
        // The coarser scale counts.
        sum.add(histogram(0, 0, (-1, &[1]), (0, &[])));
        let wanted = histogram(0, 3, (-1, &[1, 3, 5, 2]), (3, &[1]));
        assert_eq!(
            sum,
            Exponential {
                sum: Some(3.0),
                ..wanted
            }
        );
        sum.add(Exponential {
            sum: None,
            ..Exponential::default()
        });
        assert_eq!((sum.sum, sum.count), (None, 15));
    }

    #[test]
    fn sums_have_no_more_than_so_many_buckets() {
        let mut sum = histogram(5, 0, (0, &[1]), (0, &[]));
        sum.add(histogram(5, 0, (159, &[1]), (0, &[])));
        assert_eq!((sum.scale, sum.positive.counts.len()), (5, 160));
        sum.add(histogram(5, 0, (160, &[1]), (0, &[])));
        assert_eq!((sum.scale, sum.positive.counts.len()), (4, 81));
        assert_eq!((sum.positive.counts[79], sum.positive.counts[80]), (1, 1));
        sum.add(histogram(
            4,
            0,
            (i64::from(i32::MIN), &[1]),
            (i64::from(i32::MAX), &[1]),
        ));
        assert_eq!(sum.count, 5);
        assert!(sum.positive.counts.len() <= 160, "{sum:?}");
        assert_eq!(sum.positive.counts.iter().sum::<u64>(), 4);
    }

    #[test]
    fn sums_have_the_wider_zero_bucket() {
        // At scale 0 a threshold of 3 falls into the bucket (2, 4].
        let mut sum = histogram(0, 1, (0, &[1, 2, 4]), (0, &[]));
        let mut other = histogram(0, 1, (2, &[1]), (1, &[1]));
        other.zero_threshold = 3.0;
        sum.add(other);
        let mut wanted = histogram(0, 6, (2, &[5]), (0, &[]));
        (wanted.zero_threshold, wanted.sum) = (4.0, Some(2.0));
        wanted.negative = sum.negative.clone();
        assert_eq!(sum, wanted);
        assert_eq!(sum.negative.range(), None);
    }

    #[test]
    fn buckets_below_the_zero_threshold_count_as_zeros() {
        // At scale 0, bucket 0 is (1, 2], bucket 1 (2, 4], bucket -1 (0.5, 1].
        let before = histogram(0, 1, (-1, &[1, 2, 4]), (-2, &[1]));
        let mut after = histogram(0, 6, (1, &[5]), (0, &[]));
        after.zero_threshold = 2.0;
        let since = after.since(&before).unwrap();
        let mut wanted = histogram(0, 1, (1, &[1]), (0, &[]));
        (wanted.zero_threshold, wanted.sum) = (2.0, Some(0.0));
        (wanted.count) = after.count - before.count;
        assert_eq!(since, wanted);
        let mut less = after.clone();
        (less.zero_threshold, less.count) = (1.0, 99);
        assert_eq!(less.since(&after), None, "the threshold fell");
    }
}
