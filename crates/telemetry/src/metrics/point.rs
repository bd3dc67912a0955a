//! The aggregated values of one series.

use super::exponential::Exponential;
use super::instrument::Plan;

/// The aggregated values of a series. The form is that of the [`Plan`] from which it was made.
#[derive(Clone, Debug)]
pub(super) enum Point {
    Sum(i64),
    Last { value: i64, time: u64 },
    Explicit(Explicit),
    Exponential(Box<Exponential>),
}

/// Counts between bounds: one more than there are bounds.
#[derive(Clone, Debug)]
pub(super) struct Explicit {
    pub totals: Totals,
    pub counts: Box<[u64]>,
}

/// The totals that both kinds of histogram have besides their buckets. Sums are exact, so the order
/// of merges does not matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub count: u64,
    pub sum: i128,
    pub min: i64,
    pub max: i64,
}

impl Totals {
    pub const NONE: Totals = Totals {
        count: 0,
        sum: 0,
        min: i64::MAX,
        max: i64::MIN,
    };

    #[inline]
    pub fn record(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn merge(&mut self, other: &Totals) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Point {
    pub fn new(plan: &Plan) -> Point {
        match plan {
            Plan::Drop | Plan::Sum => Point::Sum(0),
            Plan::Last => Point::Last { value: 0, time: 0 },
            Plan::Explicit { limits, .. } => Point::Explicit(Explicit {
                totals: Totals::NONE,
                counts: vec![0; limits.len() + 1].into(),
            }),
            Plan::Exponential { max_scale, .. } => {
                Point::Exponential(Box::new(Exponential::new(*max_scale)))
            }
        }
    }

    /// Adds a value observed at `now`.
    #[inline]
    pub fn record(&mut self, plan: &Plan, value: i64, now: u64) {
        match (self, plan) {
            (Point::Sum(sum), _) => *sum = sum.saturating_add(value),
            (Point::Last { value: last, time }, _) => {
                if now >= *time {
                    (*last, *time) = (value, now);
                }
            }
            (Point::Explicit(Explicit { totals, counts }), Plan::Explicit { limits, .. }) => {
                totals.record(value);
                let bucket = limits.partition_point(|limit| *limit < value);
                counts[bucket] += 1;
            }
            (Point::Exponential(histogram), Plan::Exponential { max_size, .. }) => {
                histogram.record(value, *max_size);
            }
            (Point::Explicit(_) | Point::Exponential(_), _) => {}
        }
    }

    /// Adds the values of another point of the same plan.
    pub fn merge(&mut self, plan: &Plan, other: &Point) {
        match (self, other) {
            (Point::Sum(sum), Point::Sum(more)) => *sum = sum.saturating_add(*more),
            (
                Point::Last { value, time },
                Point::Last {
                    value: last,
                    time: seen,
                },
            ) if seen >= time => {
                (*value, *time) = (*last, *seen);
            }
            (Point::Explicit(into), Point::Explicit(from)) => {
                into.totals.merge(&from.totals);
                for (count, more) in into.counts.iter_mut().zip(&from.counts) {
                    *count += more;
                }
            }
            (Point::Exponential(into), Point::Exponential(from)) => {
                if let Plan::Exponential { max_size, .. } = plan {
                    into.merge(from, *max_size);
                }
            }
            _ => {}
        }
    }

    /// Empties the point, but keeps its memory.
    pub fn reset(&mut self, plan: &Plan) {
        match self {
            Point::Sum(sum) => *sum = 0,
            Point::Last { value, time } => (*value, *time) = (0, 0),
            Point::Explicit(Explicit { totals, counts }) => {
                *totals = Totals::NONE;
                counts.fill(0);
            }
            Point::Exponential(histogram) => {
                if let Plan::Exponential { max_scale, .. } = plan {
                    histogram.reset(*max_scale);
                }
            }
        }
    }
}
