//! Metrics as a request of OTLP.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::sheet::{self, Family, Kind, Part, Point, Sheet};

/// Since when values count, and when they were read: nanoseconds of the UNIX epoch.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Span {
    pub begun_ns: u64,
    pub now_ns: u64,
}

impl Sheet {
    /// A request with all of them, of a resource.
    pub(in crate::run) fn request(
        &self,
        resource: &[(String, String)],
        span: Span,
    ) -> ExportMetricsServiceRequest {
        let families = self.0.iter().filter(|family| !family.points.is_empty());
        let metrics = families.map(|family| metric(family, span));
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(Resource {
                    attributes: attributes(resource),
                    ..Resource::default()
                }),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(InstrumentationScope {
                        name: env!("CARGO_PKG_NAME").to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    metrics: metrics.collect(),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        }
    }
}

fn attributes(pairs: &[(String, String)]) -> Vec<KeyValue> {
    let attribute = |(key, value): &(String, String)| KeyValue {
        key: key.clone(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.clone())),
        }),
        ..KeyValue::default()
    };
    pairs.iter().map(attribute).collect()
}

fn metric(family: &Family, span: Span) -> Metric {
    let numbers = || family.points.iter().map(|point| number(point, span));
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match family.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers().collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: numbers().collect(),
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: histograms(family, span),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: family.name.clone(),
        description: family.help.clone(),
        unit: family.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn number(point: &Point, span: Span) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(&point.labels),
        start_time_unix_nano: span.begun_ns,
        time_unix_nano: span.now_ns,
        value: Some(match point.value {
            sheet::Number::Whole(value) => Number::AsInt(i64::try_from(value).unwrap_or(i64::MAX)),
            sheet::Number::Real(value) => Number::AsDouble(value),
        }),
        ..NumberDataPoint::default()
    }
}

/// Each ends with its count: what came before is of the same.
fn histograms(family: &Family, span: Span) -> Vec<HistogramDataPoint> {
    let mut points = Vec::new();
    let mut point = HistogramDataPoint::default();
    let mut before = 0;
    for line in &family.points {
        let whole = match line.value {
            sheet::Number::Whole(value) => value,
            sheet::Number::Real(value) => value as u64,
        };
        match line.part {
            Part::Bucket => {
                // Prometheus counts what is below, OTLP what is within.
                point.bucket_counts.push(whole.saturating_sub(before));
                before = whole;
                let le = line.labels.iter().find(|(label, _)| label == "le");
                let bound = le.and_then(|(_, bound)| bound.parse::<f64>().ok());
                point
                    .explicit_bounds
                    .extend(bound.filter(|bound| bound.is_finite()));
            }
            Part::Sum => point.sum = Some(whole as f64),
            Part::Count => {
                point.count = whole;
                point.attributes = attributes(&line.labels);
                point.start_time_unix_nano = span.begun_ns;
                point.time_unix_nano = span.now_ns;
                points.push(std::mem::take(&mut point));
                before = 0;
            }
            Part::Value => {}
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::service::telemetry::Naming;

    #[test]
    fn a_sheet_says_the_same_in_both_formats() {
        let mut sheet = Sheet::default();
        sheet.about(Kind::Counter, "c", "{spans}", "counts");
        sheet.point(&[("a", "x\"y")], 3_u64);
        sheet.about(Kind::Gauge, "none", "", "of nothing");
        sheet.about(Kind::Histogram, "h", "s", "seconds");
        sheet.buckets(&[("p", "q")], (&[1, 5], &[2, 0, 5]), 40);
        let text = "# HELP c counts\n# TYPE c counter\nc{a=\"x\\\"y\"} 3\n\
                    # HELP h seconds\n# TYPE h histogram\nh_bucket{p=\"q\",le=\"1\"} 2\n\
                    h_bucket{p=\"q\",le=\"5\"} 2\nh_bucket{p=\"q\",le=\"+Inf\"} 7\n\
                    h_sum{p=\"q\"} 40\nh_count{p=\"q\"} 7\n";
        let plain = Naming::default();
        assert_eq!(sheet.prometheus(plain), text);
        let long = Naming {
            units: true,
            type_suffix: true,
        };
        let text = text.replace("h_", "h_seconds_");
        let text = text
            .replace(" h ", " h_seconds ")
            .replace(" c ", " c_total ");
        let text = text.replace("\nc{", "\nc_total{");
        assert_eq!(sheet.prometheus(long), text);
        let span = Span {
            begun_ns: 1,
            now_ns: 2,
        };
        let request = sheet.request(&[("service.name".into(), "s".into())], span);
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        assert_eq!(sum.data_points[0].value, Some(Number::AsInt(3)));
        let Some(Data::Histogram(histogram)) = &metrics[1].data else {
            panic!("{metrics:?}");
        };
        let point = &histogram.data_points[0];
        assert_eq!(point.bucket_counts, [2, 0, 5]);
        assert_eq!(point.explicit_bounds, [1.0, 5.0]);
        assert_eq!((point.count, point.sum), (7, Some(40.0)));
        assert_eq!(point.attributes.len(), 1);
    }
}
