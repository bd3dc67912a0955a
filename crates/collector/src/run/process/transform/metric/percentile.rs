//! `extract_percentile_metric`

use otlp::scan::{Metric, MetricKind, Number, Point, PointKind};
use ottl::Failure;

use super::super::apply::Applied;
use super::{build, points};

/// Appends a gauge of a percentile of each data point; nothing for what is no histogram.
///
/// # Errors
/// The buckets of a point have fewer values than its count.
pub fn extract(
    metric: &Metric<'_>,
    percentile: f64,
    suffix: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    if !matches!(
        metric.kind,
        Some(MetricKind::Histogram | MetricKind::Exponential)
    ) {
        return Ok(Applied::Nothing);
    }
    let mut values = Vec::new();
    for point in points(metric) {
        let value = match point.kind {
            PointKind::Histogram => of_histogram(&point, percentile)?,
            _ => of_exponential(&point, percentile)?,
        };
        values.push((point, value));
    }
    if values.is_empty() {
        return Ok(Applied::Nothing);
    }
    let description = format!(" (p{percentile})").into_bytes();
    let described = Metric {
        description: &[metric.description, &description].concat(),
        ..*metric
    };
    build::metric(
        &described,
        suffix,
        metric.unit,
        MetricKind::Gauge,
        out,
        |out| {
            for (point, value) in &values {
                build::number(point, Number::Double(*value), out, |out| {
                    build::attributes(point, PointKind::Number, out);
                });
            }
        },
    );
    Ok(Applied::Added)
}

/// The place of the wanted value among all, from 1 on.
fn target(point: &Point<'_>, percentile: f64) -> u64 {
    (point.count as f64 * (percentile / 100.0)).ceil() as u64
}

/// How far a place lies within a bucket, from 0 to 1.
fn ratio(target: u64, before: u64, count: u64) -> f64 {
    target.saturating_sub(before) as f64 / count as f64
}

/// Values lie evenly within a bucket. The first bucket begins at the least value, the last ends at
/// the greatest, where the point has them.
fn of_histogram(point: &Point<'_>, percentile: f64) -> Result<f64, Failure> {
    let (counts, bounds) = (point.bucket_counts(), point.explicit_bounds());
    if point.count == 0 || counts.is_empty() || bounds.is_empty() {
        return Ok(f64::NAN);
    }
    let target = target(point, percentile);
    let mut before = 0_u64;
    for (at, count) in counts.iter().enumerate() {
        let to = before.saturating_add(*count);
        if to < target {
            before = to;
            continue;
        }
        let upper = bounds.get(at).copied();
        let lower = match (at.checked_sub(1).and_then(|at| bounds.get(at)), upper) {
            (Some(bound), _) => *bound,
            (None, Some(upper)) => point.min.unwrap_or(upper.min(0.0)),
            (None, None) => return Err(Failure::Math),
        };
        return Ok(match upper.or(point.max.filter(|max| *max > lower)) {
            Some(upper) => lower + ratio(target, before, *count) * (upper - lower),
            None => lower,
        });
    }
    Err(Failure::Math)
}

/// Values lie evenly on a logarithmic scale within a bucket.
fn of_exponential(point: &Point<'_>, percentile: f64) -> Result<f64, Failure> {
    let (negative, positive) = (point.negative(), point.positive());
    let (negatives, positives) = (negative.counts(), positive.counts());
    let is_empty = negatives.is_empty() && positives.is_empty() && point.zero_count == 0;
    if point.count == 0 || is_empty {
        return Ok(f64::NAN);
    }
    let target = target(point, percentile);
    let width = (-f64::from(point.scale)).exp2();
    // The logarithm to base 2 of a place within a bucket.
    let within = |offset: i32, at: usize, ratio: f64| {
        ((f64::from(offset) + at as f64 + ratio) * width).exp2()
    };
    let mut before = 0_u64;
    for (at, count) in negatives.iter().enumerate() {
        let to = before.saturating_add(*count);
        if to >= target {
            let ratio = 1.0 - ratio(target, before, *count);
            return Ok(-within(negative.offset(), at, ratio));
        }
        before = to;
    }
    let to = before.saturating_add(point.zero_count);
    if to >= target {
        let threshold = point.zero_threshold;
        let lower = if negatives.is_empty() && !positives.is_empty() {
            0.0
        } else {
            -threshold
        };
        let upper = if positives.is_empty() && !negatives.is_empty() {
            0.0
        } else {
            threshold
        };
        return Ok(lower + ratio(target, before, point.zero_count) * (upper - lower));
    }
    before = to;
    for (at, count) in positives.iter().enumerate() {
        let to = before.saturating_add(*count);
        if to >= target {
            return Ok(within(positive.offset(), at, ratio(target, before, *count)));
        }
        before = to;
    }
    Err(Failure::Math)
}
