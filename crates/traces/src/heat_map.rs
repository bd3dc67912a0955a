//! The heat map: traces by their start and their duration.

use crate::answer::HeatMap;
use crate::filter::Filter;
use crate::query::{COLUMNS_MAX, HeatMapQuery, ROWS_MAX, TraceQuery};
use crate::store::Held;

/// Shorter durations count as this one.
const DURATION_MIN_MS: f64 = 0.01;
/// Longer durations count as this one: a day.
const DURATION_MAX_MS: f64 = 86_400_000.0;

/// A trace in the map.
pub(crate) struct Point {
    start_ms: u64,
    duration_ms: f64,
    is_error: bool,
}

/// The traces that a query matches.
pub(crate) fn points(held: &Held, query: &TraceQuery) -> Vec<Point> {
    let filter = Filter::new(query, held);
    let matching = held.all().filter(|(_, trace)| filter.matches(trace));
    let points = matching.map(|(_, trace)| Point {
        start_ms: trace.start_ns / 1_000_000,
        duration_ms: (trace.duration_ns() as f64 / 1e6).clamp(DURATION_MIN_MS, DURATION_MAX_MS),
        is_error: trace.is_error,
    });
    points.collect()
}

/// The map from `since` (the first start if absent) to `until` (now). The rows reach from a power
/// of ten below the shortest duration to one above the longest, so that the axes stay constant
/// while traces arrive.
pub(crate) fn heat_map(query: &HeatMapQuery, points: &[Point], now_ms: u64) -> HeatMap {
    let columns = query.columns.clamp(1, COLUMNS_MAX);
    let rows = query.rows.clamp(1, ROWS_MAX);
    let first = points.iter().map(|point| point.start_ms).min();
    let until = query.filter.until_ms.unwrap_or(now_ms);
    let since = query.filter.since_ms.or(first).unwrap_or(until);
    let since = since.min(until.saturating_sub(1));
    let (low, high) = decades(points);
    let step = (high / low).ln() / rows as f64;
    let mut map = HeatMap {
        since,
        until,
        bounds_ms: (0..=rows)
            .map(|at| low * (step * at as f64).exp())
            .collect(),
        columns: vec![vec![0; rows]; columns],
        errors: vec![vec![0; rows]; columns],
        matched: 0,
    };
    let width_ms = until.saturating_sub(since).max(1) as f64 / columns as f64;
    for point in points {
        // Clocks of other machines may be ahead.
        if point.start_ms < since || point.start_ms >= until {
            continue;
        }
        let column = ((point.start_ms - since) as f64 / width_ms) as usize;
        let row = ((point.duration_ms / low).ln() / step) as usize;
        let (column, row) = (column.min(columns - 1), row.min(rows - 1));
        map.matched += 1;
        map.columns[column][row] += 1;
        map.errors[column][row] += u32::from(point.is_error);
    }
    map
}

/// Powers of ten around all durations; at least one decade.
fn decades(points: &[Point]) -> (f64, f64) {
    let durations = || points.iter().map(|point| point.duration_ms);
    let low = durations().min_by(f64::total_cmp).unwrap_or(1.0);
    let high = durations().max_by(f64::total_cmp).unwrap_or(1.0);
    let low = 10_f64.powf(low.log10().floor());
    let high = 10_f64.powf(high.log10().ceil());
    (low, high.max(low * 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(start_ms: u64, duration_ms: f64) -> Point {
        Point {
            start_ms,
            duration_ms,
            is_error: duration_ms > 100.0,
        }
    }

    #[test]
    fn traces_are_counted_by_time_and_duration() {
        let query = HeatMapQuery {
            filter: TraceQuery {
                since_ms: Some(1000),
                until_ms: Some(2000),
                ..TraceQuery::default()
            },
            columns: 10,
            rows: 3,
        };
        let points = [
            point(1000, 2.0),
            point(1099, 20.0),
            point(1100, 200.0),
            point(1999, 3.0),
            point(2000, 3.0),
            point(999, 3.0),
        ];
        let map = heat_map(&query, &points, 9999);
        assert_eq!((map.since, map.until, map.matched), (1000, 2000, 4));
        assert_eq!(map.bounds_ms.len(), 4);
        for (bound, expected) in map.bounds_ms.iter().zip([1.0, 10.0, 100.0, 1000.0]) {
            assert!((bound - expected).abs() < 1e-6, "{bound}");
        }
        assert_eq!(map.columns[0], [1, 1, 0]);
        assert_eq!(map.columns[1], [0, 0, 1]);
        assert_eq!(map.columns[9], [1, 0, 0]);
        assert_eq!(map.errors[1], [0, 0, 1]);
        let all: u32 = map.columns.iter().flatten().sum();
        assert_eq!(u64::from(all), map.matched);
    }

    #[test]
    fn nothing_and_odd_bounds_give_a_map() {
        let empty = heat_map(&HeatMapQuery::default(), &[], 5000);
        assert_eq!((empty.since, empty.until), (4999, 5000));
        assert_eq!((empty.columns.len(), empty.columns[0].len()), (80, 24));
        let turned = HeatMapQuery {
            filter: TraceQuery {
                since_ms: Some(9000),
                until_ms: Some(10),
                ..TraceQuery::default()
            },
            ..HeatMapQuery::default()
        };
        assert_eq!(heat_map(&turned, &[point(9500, 1.0)], 0).matched, 0);
        let extremes = [
            point(0, DURATION_MIN_MS),
            point(u64::MAX - 1, DURATION_MAX_MS),
        ];
        let wide = heat_map(&HeatMapQuery::default(), &extremes, u64::MAX);
        assert_eq!(wide.matched, 2);
        assert!(wide.bounds_ms.iter().all(|bound| bound.is_finite()));
    }
}
