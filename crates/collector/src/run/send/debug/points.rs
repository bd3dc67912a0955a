//! Data points of metrics, however they are of.

use std::ops::Range;

use otlp::view::View;

/// What a metric is: the field of its data, and the Collector's name of it.
const KINDS: [(&str, &str); 5] = [
    ("gauge", "Gauge"),
    ("sum", "Sum"),
    ("histogram", "Histogram"),
    ("exponentialHistogram", "ExponentialHistogram"),
    ("summary", "Summary"),
];

/// The kind of a metric and its data, where it has some.
pub(super) fn data<'a>(metric: &View<'a>) -> Option<(&'static str, View<'a>)> {
    let of = |(field, kind): &(&'static str, &'static str)| Some((*kind, metric.one(field)?));
    KINDS.iter().find_map(of)
}

/// How many a metric has.
pub(super) fn count(metric: &View<'_>) -> usize {
    data(metric).map_or(0, |(_, data)| data.all("dataPoints").count())
}

/// The buckets of an exponential histogram on one side of zero, from the one next to it: their
/// bounds without a sign, and how many each has.
pub(super) fn buckets(
    point: &View<'_>,
    side: &str,
) -> impl DoubleEndedIterator<Item = (Range<f64>, u64)> + use<> {
    let factor = std::f64::consts::LN_2 * (-(point.signed("scale") as f64)).exp2();
    let side = point.one(side);
    let offset = side.map_or(0, |side| side.signed("offset")) as f64;
    let counts = side.map_or(Vec::new(), |side| side.numbers("bucketCounts"));
    counts.into_iter().enumerate().map(move |(place, count)| {
        let index = offset + place as f64;
        (
            (index * factor).exp()..((index + 1.0) * factor).exp(),
            count,
        )
    })
}
