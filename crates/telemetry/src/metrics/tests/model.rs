//! Random records through several workers, beside a model that keeps every value.

use super::*;

/// A point, reduced to what the model knows: its attributes, and all else.
pub(super) fn points(metric: &otlp::Metric) -> Vec<(Vec<KeyValue>, Summary)> {
    match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => sum.data_points.iter().map(number).collect(),
        Data::Gauge(gauge) => gauge.data_points.iter().map(number).collect(),
        Data::Histogram(histogram) => histogram.data_points.iter().map(explicit).collect(),
        Data::ExponentialHistogram(histogram) => {
            histogram.data_points.iter().map(exponential).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum Summary {
    Number(i64),
    Histogram {
        count: u64,
        sum: Option<f64>,
        extremes: (f64, f64),
        scale: i32,
        /// Those that are not 0, with what is theirs alone: their place or their index and sign.
        buckets: BTreeMap<(i8, i32), u64>,
    },
}

fn number(point: &otlp::NumberDataPoint) -> (Vec<KeyValue>, Summary) {
    match point.value {
        Some(Value::AsInt(value)) => (point.attributes.clone(), Summary::Number(value)),
        other => panic!("{other:?}"),
    }
}

fn explicit(point: &otlp::HistogramDataPoint) -> (Vec<KeyValue>, Summary) {
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    let buckets = filled(0, 0, &point.bucket_counts);
    let summary = Summary::Histogram {
        count: point.count,
        sum: point.sum,
        extremes: (point.min.unwrap(), point.max.unwrap()),
        scale: 0,
        buckets: buckets.collect(),
    };
    (point.attributes.clone(), summary)
}

fn exponential(point: &otlp::ExponentialHistogramDataPoint) -> (Vec<KeyValue>, Summary) {
    let side = |sign, buckets: &Option<otlp::exponential_histogram_data_point::Buckets>| {
        let buckets = buckets.clone().unwrap_or_default();
        assert!(buckets.bucket_counts.len() <= 160);
        filled(sign, buckets.offset, &buckets.bucket_counts).collect::<Vec<_>>()
    };
    let zeros = (point.zero_count > 0).then_some(((0, 0), point.zero_count));
    let buckets = side(1, &point.positive)
        .into_iter()
        .chain(side(-1, &point.negative))
        .chain(zeros);
    let summary = Summary::Histogram {
        count: point.count,
        sum: point.sum,
        extremes: (point.min.unwrap(), point.max.unwrap()),
        scale: point.scale,
        buckets: buckets.collect(),
    };
    (point.attributes.clone(), summary)
}

fn filled(sign: i8, start: i32, counts: &[u64]) -> impl Iterator<Item = ((i8, i32), u64)> {
    (start..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(move |(index, count)| ((sign, index), *count))
}

/// What a series with these values, in the order of their times, is to be.
fn summary(instrument: &Instrument, values: &[i64]) -> Summary {
    match (&instrument.aggregation, instrument.kind) {
        (Aggregation::Default, Kind::Gauge) => Summary::Number(*values.last().unwrap()),
        (Aggregation::Default, Kind::Histogram) => histogram(instrument, values, 0, |value| {
            let bucket = DEFAULT_BOUNDS
                .iter()
                .position(|bound| value as f64 <= *bound);
            (0, bucket.unwrap_or(DEFAULT_BOUNDS.len()) as i32)
        }),
        (Aggregation::ExponentialHistogram { .. }, _) => {
            // The finest scale at which both signs fit, tried from above.
            let fits = |scale: i32| {
                [1, -1].into_iter().all(|sign| {
                    let indices = || {
                        values
                            .iter()
                            .filter(|value| value.signum() == sign)
                            .map(|value| index(*value, scale))
                    };
                    indices()
                        .max()
                        .is_none_or(|max| max - indices().min().unwrap() < 160)
                })
            };
            let scale = (-10..=20).rev().find(|scale| fits(*scale)).unwrap();
            histogram(instrument, values, scale, |value| match value {
                0 => (0, 0),
                _ => (value.signum() as i8, index(value, scale)),
            })
        }
        _ => Summary::Number(values.iter().sum()),
    }
}

/// As the data model defines it.
fn index(value: i64, scale: i32) -> i32 {
    let log = (value.unsigned_abs() as f64).log2();
    (log * f64::from(scale).exp2()).ceil() as i32 - 1
}

fn histogram(
    instrument: &Instrument,
    values: &[i64],
    scale: i32,
    bucket: impl Fn(i64) -> (i8, i32),
) -> Summary {
    let mut buckets = BTreeMap::new();
    for value in values {
        *buckets.entry(bucket(*value)).or_insert(0) += 1;
    }
    let sum: i64 = values.iter().sum();
    Summary::Histogram {
        count: values.len() as u64,
        sum: instrument.kind.is_monotonic().then_some(sum as f64),
        extremes: (
            *values.iter().min().unwrap() as f64,
            *values.iter().max().unwrap() as f64,
        ),
        scale,
        buckets,
    }
}

#[test]
fn many_workers_together_know_what_one_would() {
    let exponential = Aggregation::ExponentialHistogram {
        max_size: 160,
        max_scale: 20,
    };
    let list = vec![
        instrument("counter", Kind::Counter, Aggregation::Default),
        instrument("up and down", Kind::UpDownCounter, Aggregation::Default),
        instrument("histogram", Kind::Histogram, Aggregation::Default),
        instrument("gauge", Kind::Gauge, Aggregation::Default),
        instrument("exponential", Kind::Histogram, exponential.clone()),
        instrument("signed", Kind::UpDownCounter, exponential),
        instrument("dropped", Kind::Counter, Aggregation::Drop),
    ];
    let sets = [
        vec![],
        vec![pair("a", "")],
        vec![pair("a", &"x".repeat(300)), pair("b", "y")],
    ];
    for seed in 0..60 {
        let mut ids = Ids::new([seed, 1, 2, 3]);
        let temporality = [Temporality::Cumulative, Temporality::Delta][seed as usize % 2];
        let instruments = of(list.clone());
        let shared = Shared::new(instruments.clone(), temporality, START);
        let mut locals = [(); 3].map(|()| Local::new(instruments.clone()));
        let mut model: BTreeMap<(usize, usize), Vec<i64>> = BTreeMap::new();
        let mut now = START;
        for _ in 0..4 {
            for _ in 0..ids.next_u64() % 200 {
                now += 1;
                let [at, set, worker] =
                    [list.len(), sets.len(), 3].map(|count| ids.next_u64() as usize % count);
                let magnitude = (ids.next_u64() >> 24 >> (ids.next_u64() % 41)) as i64;
                let negative = !list[at].kind.is_monotonic() && ids.next_u64().is_multiple_of(2);
                let value = if negative { -magnitude } else { magnitude };
                locals[worker].record(at, value, &encoded(&sets[set]), now);
                model.entry((at, set)).or_default().push(value);
                if ids.next_u64().is_multiple_of(16) {
                    shared.merge(&mut locals[worker]);
                }
            }
            locals.iter_mut().for_each(|local| shared.merge(local));
            let metrics = collected(&shared, now);
            check(&list, &sets, &model, &metrics);
            if temporality == Temporality::Delta {
                model.retain(|(at, _), _| list[*at].kind == Kind::UpDownCounter);
            }
        }
    }
}

fn check(
    list: &[Instrument],
    sets: &[Vec<KeyValue>],
    model: &BTreeMap<(usize, usize), Vec<i64>>,
    metrics: &[otlp::Metric],
) {
    let wanted = model
        .iter()
        .filter(|((at, _), _)| list[*at].aggregation != Aggregation::Drop);
    let mut left: usize = metrics.iter().map(|metric| points(metric).len()).sum();
    for ((at, set), values) in wanted {
        let instrument = &list[*at];
        let metric = metrics
            .iter()
            .find(|metric| metric.name == instrument.name)
            .unwrap();
        let points = points(metric);
        let (_, summary_of) = points
            .iter()
            .find(|(attributes, _)| *attributes == sets[*set])
            .unwrap();
        assert_eq!(
            *summary_of,
            summary(instrument, values),
            "{}",
            instrument.name
        );
        left -= 1;
    }
    assert_eq!(left, 0, "no other points");
}
