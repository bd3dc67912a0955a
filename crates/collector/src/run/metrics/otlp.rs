//! Metrics as a request of OTLP (`metrics.proto`).

use otlp::write::{bytes, double, fixed64, message, packed, text_value, uint};

use super::sheet::{Family, Kind, Number, Point, Sheet};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u64 = 2;

/// Since when values count, and when they were read: nanoseconds of the UNIX epoch.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Span {
    pub begun_ns: u64,
    pub now_ns: u64,
}

impl Sheet {
    /// An `ExportMetricsServiceRequest` with all of them, of a resource.
    pub(in crate::run) fn request(&self, resource: &[(String, String)], span: Span) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, 1, |out| {
            message(out, 1, |out| {
                { resource.iter() }.for_each(|(key, value)| text_value(out, 1, key, value));
            });
            message(out, 2, |out| {
                message(out, 1, |out| {
                    bytes(out, 1, env!("CARGO_PKG_NAME").as_bytes());
                    bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                for family in self
                    .families
                    .iter()
                    .filter(|family| !family.points.is_empty())
                {
                    message(out, 2, |out| metric(family, span, out));
                }
            });
        });
        out
    }
}

fn metric(family: &Family, span: Span, out: &mut Vec<u8>) {
    bytes(out, 1, family.name.as_bytes());
    bytes(out, 2, family.help.as_bytes());
    bytes(out, 3, family.unit.as_bytes());
    let data = match family.kind {
        Kind::Gauge => 5,
        Kind::Counter => 7,
        Kind::Histogram => 9,
    };
    message(out, data, |out| {
        for one in &family.points {
            message(out, 1, |out| point(one, span, out));
        }
        if family.kind != Kind::Gauge {
            uint(out, 2, CUMULATIVE);
        }
        if family.kind == Kind::Counter {
            // `Sum.is_monotonic`
            uint(out, 3, 1);
        }
    });
}

fn point(point: &Point, span: Span, out: &mut Vec<u8>) {
    fixed64(out, 2, span.begun_ns);
    fixed64(out, 3, span.now_ns);
    let attributes = match &point.value {
        Number::Real(value) => {
            double(out, 4, *value);
            7
        }
        Number::Whole(value) => {
            // `as_int`; the largest is that of the type.
            fixed64(out, 6, (*value).min(i64::MAX as u64));
            7
        }
        Number::Histogram {
            bounds,
            counts,
            sum,
        } => {
            fixed64(out, 4, counts.iter().sum());
            double(out, 5, *sum as f64);
            packed(out, 6, counts.iter().copied());
            packed(out, 7, bounds.iter().map(|bound| (*bound as f64).to_bits()));
            9
        }
    };
    for (label, value) in &point.labels {
        text_value(out, attributes, label, value);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    use prost::Message;

    use super::*;
    use crate::config::service::telemetry::{MetricsLevel, Naming};

    #[test]
    fn a_sheet_says_the_same_in_both_formats() {
        let mut sheet = Sheet::new(MetricsLevel::Normal);
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
        let request = ExportMetricsServiceRequest::decode(&*request).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        assert_eq!(sum.data_points[0].value, Some(Value::AsInt(3)));
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
