//! Data points of metrics, however they are of.

use std::ops::Range;

use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{ExponentialHistogramDataPoint, Metric};

/// How many a metric has.
pub(super) fn count(metric: &Metric) -> usize {
    match &metric.data {
        None => 0,
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
    }
}

/// The buckets of an exponential histogram on one side of zero, from the one next to it: their bounds without a sign, and how
/// many each has.
pub(super) fn buckets<'a>(
    point: &ExponentialHistogramDataPoint,
    side: Option<&'a Buckets>,
) -> impl DoubleEndedIterator<Item = (Range<f64>, u64)> + ExactSizeIterator + use<'a> {
    let factor = std::f64::consts::LN_2 * (-f64::from(point.scale)).exp2();
    let offset = side.map_or(0, |side| side.offset);
    let counts = side.map_or(&[][..], |side| &side.bucket_counts);
    counts.iter().enumerate().map(move |(place, count)| {
        let index = f64::from(offset) + place as f64;
        (
            (index * factor).exp()..((index + 1.0) * factor).exp(),
            *count,
        )
    })
}
