//! What becomes of a series when a data point comes.

use super::point::{Histogram, Incoming, Point, Temporality, Value};

/// The value of a series after a point; none: the point is dropped, as the Collector does with one
/// that is older than what is there.
pub(super) fn next(before: &Point, incoming: Incoming) -> Option<Point> {
    let Incoming { point, temporality } = incoming;
    let is_sum = matches!(point.value, Value::Int(_) | Value::Double(_));
    if temporality == Temporality::Cumulative {
        // A start time that changes is a reset: the new value stands alone.
        return (point.time_ns >= before.time_ns).then_some(point);
    }
    if point.start_ns != before.time_ns {
        // A gap before the point is a reset.
        let is_newer = if is_sum {
            point.time_ns >= before.time_ns
        } else {
            point.start_ns > before.time_ns
        };
        return is_newer.then_some(point);
    }
    if point.time_ns < before.time_ns {
        return None;
    }
    let value = match (&before.value, point.value) {
        (Value::Int(sum), Value::Int(more)) => match sum.checked_add(more) {
            Some(sum) => Value::Int(sum),
            None => Value::Double(*sum as f64 + more as f64),
        },
        (Value::Histogram(sum), Value::Histogram(more)) => Value::Histogram(sum.plus(more)),
        (Value::Native(sum), Value::Native(more)) => Value::Native(sum.plus(&more).unwrap_or(more)),
        (before, value) => match (before.number(), value.number()) {
            (Some(sum), Some(more)) => Value::Double(sum + more),
            // The series was of another kind.
            _ => value,
        },
    };
    Some(Point {
        start_ns: before.start_ns,
        value,
        ..point
    })
}

impl Histogram {
    /// Both together; only the newer one where their bounds differ.
    fn plus(&self, newer: Histogram) -> Histogram {
        if self.bounds != newer.bounds {
            return newer;
        }
        let counts = self.counts.iter().zip(&newer.counts);
        let counts = counts.map(|(one, other)| one.saturating_add(*other));
        Histogram {
            count: self.count.saturating_add(newer.count),
            sum: self.sum + newer.sum,
            counts: counts.collect(),
            bounds: newer.bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, Incoming, Point, Temporality, Value};
    use Temporality::{Cumulative, Delta};

    fn next(before: &Point, point: Point, temporality: Temporality) -> Option<Point> {
        super::next(before, Incoming { point, temporality })
    }

    fn point(start_ns: u64, time_ns: u64, value: Value) -> Point {
        Point {
            start_ns,
            time_ns,
            value,
            exemplars: Vec::new(),
        }
    }

    fn histogram(bounds: &[f64], counts: &[u64]) -> Value {
        Value::Histogram(Histogram {
            count: counts.iter().sum(),
            sum: 1.5,
            bounds: bounds.to_vec(),
            counts: counts.to_vec(),
        })
    }

    #[test]
    fn cumulative_points_replace_and_old_ones_are_dropped() {
        let before = point(1, 10, Value::Int(5));
        let later = point(1, 10, Value::Int(6));
        assert_eq!(next(&before, later.clone(), Cumulative), Some(later));
        let reset = point(11, 12, Value::Int(1));
        assert_eq!(next(&before, reset.clone(), Cumulative), Some(reset));
        assert_eq!(next(&before, point(1, 9, Value::Int(4)), Cumulative), None);
    }

    #[test]
    fn deltas_are_added_where_they_follow_and_start_again_after_a_gap() {
        let before = point(1, 10, Value::Int(5));
        let sum = next(&before, point(10, 20, Value::Int(6)), Delta);
        assert_eq!(sum, Some(point(1, 20, Value::Int(11))));
        let sum = next(&before, point(10, 20, Value::Double(0.5)), Delta);
        assert_eq!(sum, Some(point(1, 20, Value::Double(5.5))));
        let reset = point(15, 20, Value::Int(6));
        assert_eq!(next(&before, reset.clone(), Delta), Some(reset));
        assert_eq!(next(&before, point(5, 9, Value::Int(6)), Delta), None);
        let large = point(1, 10, Value::Int(i64::MAX));
        let sum = next(&large, point(10, 11, Value::Int(1)), Delta);
        assert_eq!(sum.map(|sum| sum.value), Some(Value::Double(2f64.powi(63))));
    }

    #[test]
    fn deltas_of_histograms_are_added_by_bucket() {
        let before = point(1, 10, histogram(&[1.0, 2.0], &[1, 2]));
        let more = point(10, 20, histogram(&[1.0, 2.0], &[3, 4]));
        let Some(Value::Histogram(sum)) = next(&before, more, Delta).map(|sum| sum.value) else {
            panic!("no histogram");
        };
        assert_eq!((sum.count, sum.sum, sum.counts), (10, 3.0, vec![4, 6]));
        let other = point(10, 20, histogram(&[1.0, 3.0], &[3, 4]));
        let replaced = next(&before, other.clone(), Delta);
        assert_eq!(replaced.map(|sum| sum.value), Some(other.value));
        // One that overlaps is dropped, one after a gap is a reset.
        let overlap = point(9, 20, histogram(&[1.0, 2.0], &[3, 4]));
        assert_eq!(next(&before, overlap, Delta), None);
        let reset = point(11, 20, histogram(&[1.0, 2.0], &[3, 4]));
        assert_eq!(next(&before, reset.clone(), Delta), Some(reset));
    }
}
