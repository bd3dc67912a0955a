//! Requests of metrics whose streams a processor remembers.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::{kv, text};

pub const DELTA: i32 = 1;
pub const CUMULATIVE: i32 = 2;

/// A request of one scope of a service.
pub fn request(service: &str, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![kv("service.name", text(service))],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "lib".into(),
                    ..InstrumentationScope::default()
                }),
                metrics,
                schema_url: "s".into(),
            }],
            schema_url: "r".into(),
        }],
    }
}

fn metric(name: &str, data: Data) -> Metric {
    Metric {
        name: name.into(),
        unit: "1".into(),
        data: Some(data),
        ..Metric::default()
    }
}

/// A data point with these times, of the series `series`.
pub fn number(series: &str, start: u64, time: u64, value: Value) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![kv("series", text(series))],
        start_time_unix_nano: start,
        time_unix_nano: time,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

/// A monotonic sum.
pub fn sum(name: &str, temporality: i32, points: Vec<NumberDataPoint>) -> Metric {
    let data = Sum {
        data_points: points,
        aggregation_temporality: temporality,
        is_monotonic: true,
    };
    metric(name, Data::Sum(data))
}

/// A data point with the bounds 1, 2 and so on.
pub fn buckets(start: u64, time: u64, sum: f64, counts: &[u64]) -> HistogramDataPoint {
    HistogramDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: time,
        count: counts.iter().sum(),
        sum: Some(sum),
        bucket_counts: counts.to_vec(),
        explicit_bounds: (1..counts.len()).map(|bound| bound as f64).collect(),
        ..HistogramDataPoint::default()
    }
}

/// A histogram.
pub fn histogram(name: &str, temporality: i32, points: Vec<HistogramDataPoint>) -> Metric {
    let data = Histogram {
        data_points: points,
        aggregation_temporality: temporality,
    };
    metric(name, Data::Histogram(data))
}

/// A data point with these buckets from `offset` on.
pub fn exponents(
    start: u64,
    time: u64,
    scale: i32,
    (offset, counts): (i32, &[u64]),
) -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: time,
        count: counts.iter().sum(),
        sum: Some(counts.iter().sum::<u64>() as f64),
        scale,
        positive: Some(Buckets {
            offset,
            bucket_counts: counts.to_vec(),
        }),
        ..ExponentialHistogramDataPoint::default()
    }
}

/// An exponential histogram.
pub fn exponential(
    name: &str,
    temporality: i32,
    points: Vec<ExponentialHistogramDataPoint>,
) -> Metric {
    let data = ExponentialHistogram {
        data_points: points,
        aggregation_temporality: temporality,
    };
    metric(name, Data::ExponentialHistogram(data))
}
