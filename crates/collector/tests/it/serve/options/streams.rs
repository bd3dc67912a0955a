//! Options of processors that remember streams of metrics, in virtual time.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use opentelemetry_proto::tonic::metrics::v1::{
    Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use serde_json::Value as Json;

use super::super::{metrics as page, start, within_a_proxy_by};
use super::*;

/// A sum and a histogram at a time, which have counted so much.
fn metrics(temporality: i32, time: u64, count: u64) -> Bytes {
    let sum = Data::Sum(Sum {
        data_points: vec![NumberDataPoint {
            start_time_unix_nano: 1,
            time_unix_nano: time,
            value: Some(NumberValue::AsInt(count.cast_signed())),
            ..NumberDataPoint::default()
        }],
        aggregation_temporality: temporality,
        is_monotonic: true,
    });
    let histogram = Data::Histogram(Histogram {
        data_points: vec![HistogramDataPoint {
            start_time_unix_nano: 1,
            time_unix_nano: time,
            count,
            ..HistogramDataPoint::default()
        }],
        aggregation_temporality: temporality,
    });
    let metric = |(name, data): (&str, Data)| Metric {
        name: name.into(),
        data: Some(data),
        ..Metric::default()
    };
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![ScopeMetrics {
                metrics: [("sum", sum), ("histogram", histogram)]
                    .map(metric)
                    .to_vec(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    };
    request.encode_to_vec().into()
}

/// The counts of the metrics that a processor passes on, request by request. Between the second and the
/// third request pass two hours.
async fn counts(processor: &str, temporality: i32, counts: [u64; 3]) -> Vec<Vec<(String, u64)>> {
    let id = processor.split(':').next().expect("an id");
    let file = TempFile::new();
    let collector = within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ {processor} }}\nexporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [proxy], processors: [{id}], exporters: [file] }} }} }}",
        file.0.display()
    ));
    for (time, count) in (10..).zip(counts) {
        if time == 12 {
            tokio::time::sleep(Duration::from_secs(7200)).await;
        }
        let body = metrics(temporality, time, count);
        let taken = collector.of_proxy().take(Signal::Metrics, body).await;
        taken.expect("it is taken");
    }
    let [_, metrics, _] = collector.end().await;
    assert_eq!(metrics.accepted, 6);
    assert_eq!(metrics.accepted, metrics.exported + metrics.dropped);
    let text = std::fs::read_to_string(&file.0).unwrap_or_default();
    text.lines().map(of_line).collect()
}

fn of_line(line: &str) -> Vec<(String, u64)> {
    let json: Json = serde_json::from_str(line).expect("a line of JSON");
    let metrics = &json["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let metrics = metrics.as_array().into_iter().flatten();
    let count = |metric: &Json| {
        let value = match metric.get("sum") {
            Some(sum) => &sum["dataPoints"][0]["asInt"],
            None => &metric["histogram"]["dataPoints"][0]["count"],
        };
        let value = value.as_str().and_then(|value| value.parse().ok());
        let name = metric["name"].as_str().unwrap_or_default();
        (name.to_owned(), value.expect("a count"))
    };
    metrics.map(count).collect()
}

#[tokio::test(start_paused = true)]
async fn cumulative_metrics_become_deltas_as_the_options_say() {
    let of = |sum: u64, histogram: u64| {
        vec![("sum".to_owned(), sum), ("histogram".to_owned(), histogram)]
    };
    for (options, expected) in [
        // Streams of a start time before the collector's: the first points are dropped, and after
        // an hour those after it are first ones.
        ("", vec![of(2, 2)]),
        ("initial_value: keep", vec![of(5, 5), of(2, 2), of(10, 10)]),
        ("max_staleness: 3h", vec![of(2, 2), of(3, 3)]),
        ("max_staleness: 0", vec![of(2, 2), of(3, 3)]),
        (
            "initial_value: keep, include: { match_type: strict, metrics: [sum] }",
            vec![of(5, 5), of(2, 7), of(10, 10)],
        ),
        (
            "initial_value: keep, include: { match_type: regexp, metrics: ['^hist'] }",
            vec![of(5, 5), of(7, 2), of(10, 10)],
        ),
        (
            "initial_value: keep, include: { metric_types: [Sum] }",
            vec![of(5, 5), of(2, 7), of(10, 10)],
        ),
        (
            "initial_value: keep, exclude: { match_type: strict, metrics: [sum] }",
            vec![of(5, 5), of(7, 2), of(10, 10)],
        ),
        (
            "initial_value: keep, exclude: { match_type: regexp, metrics: ['^hist'] }",
            vec![of(5, 5), of(2, 7), of(10, 10)],
        ),
        (
            "initial_value: keep, exclude: { metric_types: [sum] }",
            vec![of(5, 5), of(7, 2), of(10, 10)],
        ),
    ] {
        let processor = format!("cumulativetodelta: {{ {options} }}");
        assert_eq!(
            counts(&processor, 2, [5, 7, 10]).await,
            expected,
            "{options}"
        );
    }
}

/// The lines of the page of metrics that begin with a name, without the labels of the place.
async fn lines(collector: &Collector, name: &str) -> Vec<String> {
    let page = page(collector).await;
    let own = page.lines().filter(|line| line.starts_with(name));
    let own = own.map(|line| {
        let (start, rest) = line.split_once('{').expect("labels");
        let (labels, value) = rest.split_once("} ").expect("a value");
        let labels = labels.split(',').filter(|label| {
            let (name, _) = label.split_once('=').unwrap_or_default();
            !matches!(name, "pipeline" | "processor")
        });
        let labels: Vec<_> = labels.collect();
        let start = start.trim_start_matches(name);
        format!("{start} {} {value}", labels.join(","))
    });
    own.filter(|line| !line.ends_with(" 0")).collect()
}

#[tokio::test]
async fn streams_and_their_data_points_are_on_the_page_of_metrics() {
    let collector = start(
        "receivers: { otlp: { protocols: { http: { endpoint: '127.0.0.1:0' } } } }
processors: { cumulativetodelta: , deltatocumulative: { max_streams: 2 } }
exporters: { nop: }
service:
  telemetry: { metrics: { readers: [ { pull: { exporter: { prometheus: { host: 127.0.0.1, port: 0 } } } } ] } }
  pipelines: { metrics: { receivers: [otlp], processors: [cumulativetodelta, deltatocumulative], exporters: [nop] } }",
    );
    for (time, count) in [(10, 5), (11, 7), (12, 6)] {
        let body = metrics(2, time, count);
        let taken = collector.of_proxy().take(Signal::Metrics, body).await;
        taken.expect("it is taken");
    }
    assert_eq!(
        lines(&collector, "otelcol_cumulativetodelta_").await,
        [
            "datapoints metric_type=\"sum\" 1",
            "datapoints metric_type=\"histogram\" 2",
            "datapoints_dropped metric_type=\"sum\",reason=\"initial\" 1",
            "datapoints_dropped metric_type=\"sum\",reason=\"reset\" 1",
            "datapoints_dropped metric_type=\"histogram\",reason=\"initial\" 1",
            "streams_tracked  2",
        ]
    );
    assert_eq!(
        lines(&collector, "otelcol_deltatocumulative_").await,
        [
            "datapoints  3",
            "streams_tracked  2",
            "streams_limit  2",
            "streams_max_stale  300",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn deltas_are_added_up_as_the_options_say() {
    let of = |sum: u64, histogram: u64| {
        vec![("sum".to_owned(), sum), ("histogram".to_owned(), histogram)]
    };
    for (options, expected) in [
        // After five minutes a stream begins again.
        ("", vec![of(5, 5), of(12, 12), of(10, 10)]),
        ("max_stale: 3h", vec![of(5, 5), of(12, 12), of(22, 22)]),
    ] {
        let processor = format!("deltatocumulative: {{ {options} }}");
        let counts = counts(&processor, 1, [5, 7, 10]).await;
        assert_eq!(counts, expected, "{options}");
    }
    let one = |count: u64| vec![("sum".to_owned(), count)];
    let processor = "deltatocumulative: { max_streams: 1, max_stale: 3h }";
    let counts = counts(processor, 1, [5, 7, 10]).await;
    assert_eq!(counts, [one(5), one(12), one(22)]);
}
