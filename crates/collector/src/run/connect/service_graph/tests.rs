//! Requests between services, worked by hand as the Collector does it.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Message, Status};
use prost::Message as _;

use super::*;
use crate::config;
use crate::run::process::tests::{kv, text};

const SECOND_NS: u64 = 1_000_000_000;
const NOW_NS: u64 = 1_000_000 * SECOND_NS;

fn graph(options: &str) -> Graph {
    let connector = config::connector(&format!("servicegraph: {{ {options} }}"), Signal::Traces);
    Graph::new(connector.get().expect("servicegraph"))
}

/// A span of so many seconds, with one byte of its identifier and of its parent's; 0: none.
fn message(kind: i32, [id, parent]: [u8; 2], seconds: u64) -> Message {
    let bytes = |byte: u8| if byte == 0 { vec![] } else { vec![byte; 8] };
    Message {
        trace_id: vec![1; 16],
        span_id: bytes(id),
        parent_span_id: bytes(parent),
        kind,
        start_time_unix_nano: NOW_NS,
        end_time_unix_nano: NOW_NS + seconds * SECOND_NS,
        ..Message::default()
    }
}

fn with(mut message: Message, attributes: &[(&str, &str)]) -> Message {
    let attributes = attributes.iter();
    message.attributes = attributes
        .map(|(key, value)| kv(key, text(value)))
        .collect();
    message
}

fn failed(mut message: Message) -> Message {
    message.status = Some(Status {
        code: ERROR,
        ..Status::default()
    });
    message
}

/// Adds spans of a service.
fn add(graph: &mut Graph, service: &str, now: Instant, spans: Vec<Message>) {
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![kv("service.name", text(service)), kv("zone", text("z"))],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    let bytes = request.encode_to_vec();
    check(&bytes, false).unwrap();
    graph.add(&bytes, now, NOW_NS).unwrap();
}

fn metrics(graph: &mut Graph, now_ns: u64) -> Vec<Metric> {
    let mut requests = graph.requests(now_ns).into_iter();
    let Some((request, points)) = requests.next() else {
        return vec![];
    };
    assert_eq!(requests.next(), None);
    let records = otlp::count::records(Signal::Metrics, &request);
    assert_eq!(records, Ok(points));
    let request = ExportMetricsServiceRequest::decode(&request[..]).unwrap();
    let scope = &request.resource_metrics[0].scope_metrics[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, SCOPE);
    scope.metrics.clone()
}

fn labels(attributes: &[KeyValue]) -> String {
    let label = |one: &KeyValue| {
        let value = one.value.clone().and_then(|value| value.value);
        match value {
            Some(Value::StringValue(value)) => format!("{}={value}", one.key),
            Some(Value::BoolValue(value)) => format!("{}={value}", one.key),
            other => panic!("{other:?}"),
        }
    };
    attributes.iter().map(label).collect::<Vec<_>>().join(" ")
}

/// The data points of the metrics, each a line: counts, or a histogram's count and sum.
fn lines(metrics: &[Metric]) -> Vec<String> {
    let mut lines = Vec::new();
    for metric in metrics {
        let name = metric
            .name
            .trim_start_matches("traces_service_graph_request_");
        match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                for point in &sum.data_points {
                    let Some(number_data_point::Value::AsInt(value)) = point.value else {
                        panic!("{point:?}");
                    };
                    lines.push(format!("{name} {value} {}", labels(&point.attributes)));
                }
            }
            Data::Histogram(histogram) => {
                assert_eq!((&*metric.unit, histogram.aggregation_temporality), ("s", 2));
                for point in &histogram.data_points {
                    let (count, sum) = (point.count, point.sum.unwrap());
                    let labels = labels(&point.attributes);
                    lines.push(format!("{name} {count}/{sum} {labels}"));
                }
            }
            other => panic!("{other:?}"),
        }
    }
    lines.sort();
    lines
}

fn told(graph: &mut Graph) -> Vec<String> {
    lines(&metrics(graph, NOW_NS))
}

/// The counts of requests only.
fn totals(graph: &mut Graph) -> Vec<String> {
    let all = told(graph).into_iter();
    all.filter_map(|line| line.strip_prefix("total ").map(str::to_owned))
        .collect()
}

#[test]
fn pairs_of_spans_are_requests() {
    let (mut graph, now) = (graph(""), Instant::now());
    add(&mut graph, "shop", now, vec![message(CLIENT, [2, 1], 3)]);
    assert_eq!(told(&mut graph), [""; 0]);
    add(&mut graph, "cart", now, vec![message(SERVER, [3, 2], 2)]);
    // The other way round, and one that failed.
    add(
        &mut graph,
        "cart",
        now,
        vec![failed(message(SERVER, [5, 4], 1))],
    );
    add(&mut graph, "shop", now, vec![message(CLIENT, [4, 1], 1)]);
    // A queue; and spans that are no requests.
    add(
        &mut graph,
        "cart",
        now,
        vec![message(PRODUCER, [6, 3], 0), message(1, [9, 3], 1)],
    );
    add(&mut graph, "mail", now, vec![message(CONSUMER, [7, 6], 4)]);
    let ok = "client=shop server=cart connection_type= failed=false";
    let failed = "client=shop server=cart connection_type= failed=true";
    let queue = "client=cart server=mail connection_type=messaging_system failed=false";
    let mut wanted = [
        format!("total 1 {ok}"),
        format!("total 1 {failed}"),
        format!("total 1 {queue}"),
        format!("failed_total 1 {failed}"),
        format!("server 1/2 {ok}"),
        format!("client 1/3 {ok}"),
        format!("server 1/1 {failed}"),
        format!("client 1/1 {failed}"),
        format!("server 1/4 {queue}"),
        format!("client 1/0 {queue}"),
    ];
    wanted.sort();
    assert_eq!(told(&mut graph), wanted);
    assert_eq!((graph.edges, graph.expired, graph.dropped_spans), (3, 0, 0));
    // The series are told again, and forgotten after a while.
    assert_eq!(told(&mut graph), wanted);
    assert_eq!(metrics(&mut graph, NOW_NS + SERIES_IDLE_NS), []);
}

#[test]
fn databases_have_no_spans_of_their_own() {
    let database = |name| with(message(CLIENT, [2, 1], 3), &[(name, "orders")]);
    for (options, attribute, is_database) in [
        ("", "db.name", true),
        ("", "db.namespace", false),
        (
            "database_name_attributes: [x, db.namespace]",
            "db.namespace",
            true,
        ),
        ("database_name_attributes: [x]", "db.name", false),
        (
            "database_name_attribute: db.namespace",
            "db.namespace",
            true,
        ),
    ] {
        let (mut graph, now) = (graph(options), Instant::now());
        add(&mut graph, "shop", now, vec![database(attribute)]);
        let wanted = [
            "client 1/3 client=shop server=orders connection_type=database failed=false",
            "server 1/3 client=shop server=orders connection_type=database failed=false",
            "total 1 client=shop server=orders connection_type=database failed=false",
        ];
        let wanted = if is_database { &wanted[..] } else { &[] };
        assert_eq!(told(&mut graph), wanted, "{options} {attribute}");
    }
}

#[test]
fn attributes_may_be_dimensions() {
    let (mut graph, now) = (graph("dimensions: [zone, path]"), Instant::now());
    let client = with(
        message(CLIENT, [2, 1], 1),
        &[("path", "/a"), ("zone", "other")],
    );
    add(&mut graph, "shop", now, vec![client]);
    let server = with(message(SERVER, [3, 2], 1), &[("other", "/a")]);
    add(&mut graph, "cart", now, vec![server]);
    assert_eq!(
        totals(&mut graph),
        [
            "1 client=shop server=cart connection_type= client_path=/a client_zone=z server_zone=z failed=false"
        ]
    );
}

#[test]
fn requests_that_wait_too_long_have_virtual_nodes() {
    let spans = || {
        vec![
            // From outside; to a server without spans; a server whose client is unknown.
            message(SERVER, [2, 0], 1),
            with(
                message(CLIENT, [3, 2], 1),
                &[("peer.service", "bank"), ("own", "mine")],
            ),
            message(CLIENT, [4, 2], 1),
            message(SERVER, [9, 8], 1),
        ]
    };
    let of = |client: &str, server: &str, more: &str| {
        format!("1 client={client} server={server} connection_type=virtual_node{more} failed=false")
    };
    for (options, wanted) in [
        (
            "",
            vec![
                of("shop", "bank", ""),
                of("shop", "unknown", ""),
                of("user", "shop", ""),
            ],
        ),
        (
            "virtual_node_peer_attributes: [own], virtual_node_extra_label: true",
            vec![
                of("shop", "mine", " virtual_node=server"),
                of("shop", "unknown", " virtual_node=server"),
                of("user", "shop", " virtual_node=client"),
            ],
        ),
        ("virtual_node_peer_attributes: []", vec![]),
        ("store: { ttl: 1h }", vec![]),
    ] {
        let (mut graph, now) = (graph(options), Instant::now());
        add(&mut graph, "shop", now, spans());
        add(&mut graph, "x", now + Duration::from_secs(1), vec![]);
        assert_eq!(graph.expired, 0);
        add(&mut graph, "x", now + Duration::from_secs(2), vec![]);
        assert_eq!(totals(&mut graph), wanted, "{options}");
        let expired = if options.contains("ttl") { 0 } else { 4 };
        assert_eq!(graph.expired, expired, "{options}");
    }
}

#[test]
fn requests_that_wait_have_a_bound() {
    let spans: Vec<_> = (1..=200).map(|id| message(CLIENT, [id, 0], 1)).collect();
    let now = Instant::now();
    for (options, dropped) in [("", 0), ("store: { max_items: 150 }", 50)] {
        let mut graph = graph(options);
        add(&mut graph, "shop", now, spans.clone());
        assert_eq!(graph.dropped_spans, dropped);
        assert_eq!(graph.edges, 200 - dropped);
        assert_eq!(graph.store.count() as u64, 200 - dropped);
    }
}

#[test]
fn durations_have_the_buckets_of_the_settings() {
    let one = |options: &str| {
        let (mut graph, now) = (graph(options), Instant::now());
        let spans = vec![with(message(CLIENT, [2, 1], 3), &[("db.name", "d")])];
        add(&mut graph, "shop", now, spans);
        let metrics = metrics(&mut graph, NOW_NS);
        metrics.last().and_then(|metric| metric.data.clone())
    };
    for (options, bounds, place, lower) in [
        ("", 16, 13, 2.0),
        ("latency_histogram_buckets: [1s, 2500ms, 3s]", 3, 2, 2.5),
    ] {
        let Some(Data::Histogram(histogram)) = one(options) else {
            panic!("{options}");
        };
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds.len(), bounds);
        assert_eq!(point.explicit_bounds[place - 1], lower);
        assert_eq!(point.bucket_counts[place], 1, "{options}");
    }
    let Some(Data::ExponentialHistogram(histogram)) = one("exponential_histogram_max_size: 20")
    else {
        panic!("an exponential histogram");
    };
    assert_eq!(histogram.data_points[0].count, 1);
}

#[test]
fn metrics_may_be_told_at_an_earlier_time() {
    for (options, offset_s) in [("", 0), ("metrics_timestamp_offset: 30s", 30)] {
        let (mut graph, now) = (graph(options), Instant::now());
        let spans = vec![with(message(CLIENT, [2, 1], 3), &[("db.name", "d")])];
        add(&mut graph, "shop", now, spans);
        let metrics = metrics(&mut graph, NOW_NS + 60 * SECOND_NS);
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        let point = &sum.data_points[0];
        assert_eq!(point.time_unix_nano, NOW_NS + (60 - offset_s) * SECOND_NS);
    }
}

#[test]
fn metrics_are_told_again_at_an_interval_only() {
    for (options, is_told) in [("", true), ("metrics_flush_interval: 0s", false)] {
        let (mut graph, now) = (graph(options), Instant::now());
        let spans = vec![with(message(CLIENT, [2, 1], 3), &[("db.name", "d")])];
        add(&mut graph, "shop", now, spans);
        assert_eq!(told(&mut graph).len(), 3);
        assert_eq!(!told(&mut graph).is_empty(), is_told, "{options}");
    }
}

#[test]
fn malformed_requests_are_refused() {
    assert!(check(b"\x0a\x05\x12\x03\x12\x09\x00", false).is_err());
}
