//! Buckets of histograms: exponential ones that become explicit, and explicit ones that are merged.

use otlp::scan::{Metric, MetricKind, POINTS, Point, PointKind, TEMPORALITY};
use otlp::write;
use ottl::{Distribution, Failure, Merge, Message, Outside};

use super::super::super::edit::{Outcome, replace_field};
use super::super::apply::Applied;
use super::super::number::packed;
use super::{METRIC_BYTES_MAX, build, points, with_data};

/// Bounds that differ by less are the same one.
const BOUND_EPSILON: f64 = 1e-12;

/// `convert_exponential_histogram_to_histogram`; nothing for other kinds of metrics.
///
/// # Errors
/// The new metric is too large: each data point gets all bounds. There are no random numbers here.
pub fn to_histogram(
    metric: &Metric<'_>,
    distribution: Distribution,
    bounds: &[f64],
    outside: Outside,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    if metric.kind != Some(MetricKind::Exponential) {
        return Ok(Applied::Nothing);
    }
    let mut data = Vec::new();
    for point in points(metric) {
        let counts = distribute(&point, distribution, bounds, outside)?;
        write::message(&mut data, POINTS >> 3, |out| {
            explicit_point(&point, bounds, &counts, out);
        });
        if data.len() > METRIC_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    if metric.temporality != 0 {
        write::uint(&mut data, TEMPORALITY >> 3, metric.temporality as u64);
    }
    with_data(metric, MetricKind::Histogram, out, |out| {
        out.extend_from_slice(&data);
    });
    Ok(Applied::Changed(Message::Metric))
}

/// Appends a `HistogramDataPoint` with what an exponential one has.
fn explicit_point(point: &Point<'_>, bounds: &[f64], counts: &[u64], out: &mut Vec<u8>) {
    build::times(point, out);
    if point.count != 0 {
        write::fixed64(out, 4, point.count);
    }
    for (number, value) in [(5, point.sum), (11, point.min), (12, point.max)] {
        if let Some(value) = value {
            write::double(out, number, value);
        }
    }
    packed(out, 6, counts);
    write::packed(out, 7, bounds.iter().map(|bound| bound.to_bits()));
    build::attributes(point, PointKind::Histogram, out);
    build::messages(point, 11, 8, out);
    if point.flags != 0 {
        write::uint(out, PointKind::Histogram.flags(), u64::from(point.flags));
    }
}

/// The counts of explicit buckets. Negative values are left out, and zeros where the first bound is
/// not zero, as the manual says.
fn distribute(
    point: &Point<'_>,
    distribution: Distribution,
    bounds: &[f64],
    outside: Outside,
) -> Result<Vec<u64>, Failure> {
    let mut counts = vec![0_u64; bounds.len() + 1];
    if bounds.first() == Some(&0.0) {
        counts[0] = point.zero_count;
    }
    let positive = point.positive();
    // The bound of a bucket is 2^(index * 2^-scale) (metrics data model, "Exponential Scale").
    let width = (-f64::from(point.scale)).exp2();
    for (at, count) in positive.counts().into_iter().enumerate() {
        let index = f64::from(positive.offset()) + at as f64;
        let (lower, upper) = ((index * width).exp2(), ((index + 1.0) * width).exp2());
        let bucket = |value: f64| bounds.partition_point(|bound| *bound < value);
        match distribution {
            Distribution::Upper => add(&mut counts, bucket(upper), count),
            Distribution::Midpoint => add(&mut counts, bucket((lower + upper) / 2.0), count),
            Distribution::Uniform | Distribution::Random => {
                let start = bucket(lower);
                let end = bucket(upper).min(bounds.len().saturating_sub(1));
                if end <= start {
                    add(&mut counts, start, count);
                } else if distribution == Distribution::Uniform {
                    evenly(&mut counts[start..=end], count);
                } else {
                    let parts = shares(&bounds[start..=end], lower, upper);
                    at_random(&mut counts[start..=end], count, &parts, outside)?;
                }
            }
        }
    }
    Ok(counts)
}

fn add(counts: &mut [u64], at: usize, count: u64) {
    if let Some(place) = counts.get_mut(at) {
        *place = place.saturating_add(count);
    }
}

fn evenly(counts: &mut [u64], count: u64) {
    let buckets = counts.len() as u64;
    for at in 0..counts.len() {
        let extra = u64::from((at as u64) < count % buckets);
        add(counts, at, count / buckets + extra);
    }
}

/// The share of a range that lies up to each bound.
fn shares(bounds: &[f64], lower: f64, upper: f64) -> Vec<f64> {
    let mut from = lower;
    let share = |bound: &f64| {
        let to = bound.min(upper);
        let share = ((to - from) / (upper - lower)).clamp(0.0, 1.0);
        from = to;
        share
    };
    bounds.iter().map(share).collect()
}

/// Gives each bucket a random fraction of its share, and what is left to buckets at random.
fn at_random(
    counts: &mut [u64],
    count: u64,
    shares: &[f64],
    outside: Outside,
) -> Result<(), Failure> {
    // A number from 0 to 1.
    let random = || {
        let bits = (outside.random)().ok_or(Failure::Outside)?;
        Ok((bits >> 11) as f64 / (1_u64 << 53) as f64)
    };
    let mut left = count;
    for (at, share) in shares.iter().enumerate() {
        let part = ((count as f64 * share * random()?) as u64).min(left);
        add(counts, at, part);
        left -= part;
    }
    for at in 1..counts.len() {
        let part = ((left as f64 * random()?) as u64).min(left);
        add(counts, at, part);
        left -= part;
    }
    add(counts, 0, left);
    Ok(())
}

/// `merge_histogram_buckets` for one data point; what is no histogram, and what has not one bucket
/// more than bounds, stays.
pub fn merge(point: &Point<'_>, merge: Merge, out: &mut Vec<u8>) -> Outcome {
    if point.kind != PointKind::Histogram {
        return Outcome::Same;
    }
    let (bounds, counts) = (point.explicit_bounds(), point.bucket_counts());
    if bounds.len() + 1 != counts.len() || bounds.is_empty() {
        return Outcome::Same;
    }
    let merged = match merge {
        Merge::Bound(bound) => without_bound(bounds, counts, bound),
        Merge::Limit(limit) => limited(&bounds, &counts, limit),
    };
    let Some((bounds, counts)) = merged else {
        return Outcome::Same;
    };
    let mut with_counts = Vec::with_capacity(point.message.len());
    replace_field(point.message, 6, &mut with_counts, |out| {
        packed(out, 6, &counts)
    });
    replace_field(&with_counts, 7, out, |out| {
        let bits: Vec<u64> = bounds.iter().map(|bound| bound.to_bits()).collect();
        packed(out, 7, &bits);
    });
    Outcome::Changed
}

type Histogram = (Vec<f64>, Vec<u64>);

/// Without a bound: the bucket that ends there is merged with the next.
fn without_bound(mut bounds: Vec<f64>, mut counts: Vec<u64>, bound: f64) -> Option<Histogram> {
    let is_it = |other: &f64| (other - bound).abs() < BOUND_EPSILON;
    let at = bounds.iter().position(is_it)?;
    bounds.remove(at);
    let count = counts.remove(at);
    add(&mut counts, at, count);
    Some((bounds, counts))
}

/// With neighbours merged in groups of the smallest size that leaves no more buckets than `limit`.
fn limited(bounds: &[f64], counts: &[u64], limit: usize) -> Option<Histogram> {
    if counts.len() <= limit || !bounds.is_sorted_by(|left, right| left < right) {
        return None;
    }
    let size = counts.len().div_ceil(limit);
    let sum = |group: &[u64]| {
        group
            .iter()
            .fold(0_u64, |sum, count| sum.saturating_add(*count))
    };
    let merged: Vec<u64> = counts.chunks(size).map(sum).collect();
    // Each group but the last ends at a bound.
    let ends = bounds.iter().skip(size - 1).step_by(size);
    Some((ends.take(merged.len() - 1).copied().collect(), merged))
}
