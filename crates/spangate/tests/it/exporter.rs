//! The Prometheus and OpenMetrics exporter, and metrics over OTLP (`use-service
//! prometheus-exporter`, `stats otlp`).

use crate::common;

use std::time::Duration;

use common::origin::{Origin, ok};
use common::otlp::{Receiver, shown};
use common::{DEFAULTS, Folder, Proxy, listener};
use opentelemetry_proto::tonic::metrics::v1::{
    Metric, NumberDataPoint, metric::Data, number_data_point,
};

use crate::statistics::{send, until};

#[test]
fn what_prometheus_reads() {
    let front = listener();
    let config = format!(
        "{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    option socket-stats
    http-request use-service prometheus-exporter if {{ path /metrics }}
    default_backend be
backend be
    server s1 127.0.0.1:9
    server s2 127.0.0.1:9 disabled
"
    );
    let proxy = Proxy::start(&config, &[("FE", &front)]);
    let all = send(&front, "GET /metrics", "", "");
    assert_eq!(all.field("content-type"), Some("text/plain; version=0.0.4"));
    let all = all.text();
    for line in [
        "haproxy_frontend_status{proxy=\"fe\",state=\"UP\"} 1",
        "haproxy_listener_status{proxy=\"fe\",listener=\"sock-1\",state=\"WAITING\"} 0",
        "haproxy_backend_status{proxy=\"be\",state=\"UP\"} 1",
        "haproxy_backend_agg_server_status{proxy=\"be\",state=\"MAINT\"} 1",
        "haproxy_server_status{proxy=\"be\",server=\"s2\",state=\"MAINT\"} 1",
        "haproxy_server_limit_sessions{proxy=\"be\",server=\"s1\"} NaN",
        "haproxy_frontend_http_responses_total{proxy=\"fe\",code=\"4xx\"} 0",
    ] {
        assert!(all.lines().any(|known| known == line), "{line} in {all}");
    }
    assert!(
        all.contains("haproxy_process_build_info{version=\""),
        "{all}"
    );
    // The fields of HAProxy's modules come on request.
    assert!(!all.contains("mod=\""), "{all}");
    let extra = send(
        &front,
        "GET /metrics?extra-counters&scope=frontend&scope=server",
        "",
        "",
    );
    let extra = extra.text();
    for line in [
        "haproxy_frontend_h2_headers_rcvd{proxy=\"fe\",mod=\"h2\"} 0",
        "# TYPE haproxy_frontend_h1_open_streams gauge",
        "haproxy_frontend_h1_open_streams{proxy=\"fe\",mod=\"h1\"} 1",
        "haproxy_server_ssl_sess{proxy=\"be\",server=\"s1\",mod=\"ssl\"} 0",
    ] {
        assert!(
            extra.lines().any(|known| known == line),
            "{line} in {extra}"
        );
    }
    assert!(!extra.contains("haproxy_server_h1_"), "{extra}");
    // Each metric is described once, before its series, and its series are contiguous.
    let mut described: Vec<&str> = Vec::new();
    for line in all.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => {
                let name = rest.split(' ').next().unwrap_or_default();
                assert!(!described.contains(&name), "{name} twice");
                described.push(name);
            }
            None if line.starts_with('#') => {}
            None => {
                let name = line.split(['{', ' ']).next().unwrap_or_default();
                assert_eq!(described.last(), Some(&name), "{line}");
            }
        }
    }
    let only = |query: &str| send(&front, &format!("GET /metrics?{query}"), "", "");
    assert_eq!(only("scope=").body.len(), 0);
    assert_eq!(only("scope").status, 400);
    let servers = only("scope=server&no-maint").text();
    assert!(servers.contains("server=\"s1\"") && !servers.contains("server=\"s2\""));
    assert!(!servers.contains("haproxy_frontend"));
    let one = only("metrics=haproxy_server_weight").text();
    assert!(one.starts_with("# HELP haproxy_server_weight "), "{one}");
    assert_eq!(one.matches("# TYPE").count(), 1);
    proxy.stop();
}

/// The value of a series, by its full name including labels.
fn series(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let rest = line.and_then(|line| line.strip_prefix(' '));
    let value = rest.and_then(|rest| rest.split(' ').next());
    let value = value.unwrap_or_else(|| panic!("{name} in {text}"));
    value.parse().expect("a number")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the server is slow")]
fn histograms_of_times_have_the_traces_that_are_kept() {
    let (front, folder) = (listener(), Folder::new());
    let socket = folder.path("cli.sock");
    let slow = Origin::start(|request| {
        if request.line.contains("/slow") {
            std::thread::sleep(Duration::from_millis(1100));
        }
        ok("done")
    });
    let config = format!(
        "global
    stats socket {}
{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    option latency-histograms
    option tracing endpoint http://127.0.0.1:9 slower 900ms
    http-request use-service prometheus-exporter if {{ path /metrics }}
    http-request deny if {{ path /denied }}
    use_backend unmeasured if {{ path /unmeasured }}
    default_backend be
backend be
    option latency-histograms
    server s1 {at}
backend unmeasured
    server s1 {at}
",
        socket.display(),
        at = slow.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("traceparent: 00-{trace}-00f067aa0ba902b7-00\r\n");
    assert_eq!(send(&front, "GET /slow", &parent, "").status, 200);
    assert_eq!(send(&front, "GET /", "", "").status, 200);
    assert_eq!(send(&front, "GET /unmeasured", "", "").status, 200);
    assert_eq!(send(&front, "GET /denied", "", "").status, 403);
    let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    until(&socket, "fe/FRONTEND", "hrsp_2xx", "3");
    let all = send(&front, "GET /metrics", accept, "");
    assert_eq!(
        all.field("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let text = all.text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    for (name, wanted) in [
        (
            "haproxy_frontend_response_time_seconds_count{proxy=\"fe\"}",
            3.0,
        ),
        (
            "haproxy_backend_total_time_seconds_count{proxy=\"be\"}",
            2.0,
        ),
        (
            "haproxy_server_queue_time_seconds_count{proxy=\"be\",server=\"s1\"}",
            2.0,
        ),
        (
            "haproxy_server_response_time_seconds_bucket{proxy=\"be\",server=\"s1\",le=\"+Inf\"}",
            2.0,
        ),
    ] {
        assert_eq!(series(&text, name), wanted, "{name} in {text}");
    }
    let sum = "haproxy_server_response_time_seconds_sum{proxy=\"be\",server=\"s1\"}";
    assert!(series(&text, sum) >= 1.1, "{text}");
    assert!(
        !text.contains("time_seconds_bucket{proxy=\"unmeasured\""),
        "{text}"
    );
    // The trace of the slow request is kept, and it is the exemplar of its bucket in each metric.
    let kept = format!("# {{trace_id=\"{trace}\"}} ");
    for metric in ["frontend_total", "backend_response", "server_response"] {
        let begins = format!("haproxy_{metric}_time_seconds_bucket{{");
        let mut lines = text.lines().filter(|line| line.starts_with(&begins));
        assert_eq!(lines.clone().count(), 16, "{begins}");
        assert!(lines.any(|line| line.contains(&kept)), "{metric} in {text}");
    }
    let plain = send(&front, "GET /metrics", "", "").text();
    assert!(!plain.contains("trace_id") && !plain.contains("# EOF"));
    assert!(plain.contains("# TYPE haproxy_server_response_time_seconds histogram\n"));
    proxy.stop();
}

/// The numbers of a metric by attributes.
fn numbers(metric: &Metric) -> Vec<(String, f64)> {
    let points = match &metric.data {
        Some(Data::Sum(sum)) => &sum.data_points,
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        other => panic!("{other:?}"),
    };
    let value = |point: &NumberDataPoint| match point.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        other => panic!("{other:?}"),
    };
    let named = points.iter();
    named
        .map(|point| (shown(&point.attributes), value(point)))
        .collect()
}

/// A series of Prometheus, with its labels in the format of [`shown`].
fn as_attributes(series: &str) -> (&str, String) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}').replace('"', "");
    (name, labels.replace(',', " "))
}

#[test]
fn otlp_has_what_prometheus_reads() {
    let (front, folder) = (listener(), Folder::new());
    let origin = Origin::start(|_| ok("done"));
    let mut receiver = Receiver::start();
    let config = format!(
        "global
    setenv OTEL_BSP_SCHEDULE_DELAY 100
    stats otlp endpoint http://{} service edge interval 100ms
{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    option socket-stats
    option latency-histograms
    option tracing endpoint http://{} service edge
    http-request use-service prometheus-exporter if {{ path /metrics }}
    default_backend be
backend be
    server s1 {}
    server s2 {} disabled
",
        receiver.at, receiver.at, origin.at, origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    assert_eq!(send(&front, "GET /", "", "").status, 200);
    let page = send(&front, "GET /metrics", "", "").text();
    let of = |receiver: &Receiver, metric: &str, labels: &str| {
        let metric = receiver.metrics.get(metric)?;
        let numbers = numbers(metric);
        let found = numbers.iter().find(|(known, _)| known == labels);
        found.map(|(_, value)| *value)
    };
    receiver.until("the request is counted", |receiver| {
        of(
            receiver,
            "haproxy_frontend_http_responses_total",
            "proxy=fe code=2xx",
        ) == Some(2.0)
    });
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = as_attributes(series);
        let value: f64 = value.parse().expect("a number");
        if name.contains("_time_seconds_") {
            continue;
        }
        let told = of(&receiver, name, &labels);
        assert_eq!(told.is_none(), value.is_nan(), "{series} {value}: {told:?}");
    }
    let requests = "proxy=be server=s1";
    let sessions = &receiver.metrics["haproxy_server_sessions_total"];
    assert_eq!(of(&receiver, &sessions.name, requests), Some(1.0));
    let Some(Data::Sum(sum)) = &sessions.data else {
        panic!("{sessions:?}");
    };
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
    let point = &sum.data_points[0];
    assert!(0 < point.start_time_unix_nano && point.start_time_unix_nano < point.time_unix_nano);
    assert_eq!(receiver.metrics["haproxy_process_uptime_seconds"].unit, "s");
    let times = &receiver.metrics["haproxy_frontend_total_time_seconds"];
    let Some(Data::Histogram(histogram)) = &times.data else {
        panic!("{times:?}");
    };
    let point = &histogram.data_points[0];
    assert_eq!(shown(&point.attributes), "proxy=fe");
    assert_eq!(
        (point.explicit_bounds.len(), point.bucket_counts.len()),
        (15, 16)
    );
    assert_eq!(point.explicit_bounds[0], 0.001);
    assert_eq!((point.count, point.bucket_counts.iter().sum()), (2, 2));
    // The traces of its exemplars arrived too.
    assert!(!point.exemplars.is_empty());
    let traces: Vec<_> = point
        .exemplars
        .iter()
        .map(|one| one.trace_id.clone())
        .collect();
    receiver.until("the traces", |receiver| {
        let has = |trace: &Vec<u8>| {
            receiver
                .spans
                .iter()
                .any(|(_, span)| span.trace_id == *trace)
        };
        traces.iter().all(has)
    });
    // These are not measured.
    assert!(
        !receiver
            .metrics
            .contains_key("haproxy_backend_total_time_seconds")
    );
    let resource = receiver.resources.last().expect("a resource");
    let service = common::otlp::value(&resource.attributes, "service.name");
    assert_eq!(service.as_deref(), Some("edge"));
    proxy.stop();
}

/// The metrics in Grafana's dashboards 12693 and 367, except those of missing features.
const DASHBOARDS: &str = include_str!("dashboards.txt");

#[test]
fn dashboards_find_their_metrics() {
    let (front, folder) = (listener(), Folder::new());
    let socket = folder.path("cli.sock");
    let origin = Origin::start(|_| ok("done"));
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    option socket-stats
    maxconn 100
    rate-limit sessions 1000
    http-request use-service prometheus-exporter if {{ path /metrics }}
    default_backend be
backend be
    server s1 {} check inter 50ms maxconn 7 maxqueue 9 pool-max-conn 5 slowstart 1h
",
        socket.display(),
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    common::cli::until_any_holds(&socket, "show stat", |csv| csv.contains("L4OK"));
    assert_eq!(send(&front, "GET /", "", "").status, 200);
    until(&socket, "be/s1", "hrsp_2xx", "1");
    let page = send(&front, "GET /metrics", "", "").text();
    let mut asked = DASHBOARDS.lines().filter(|line| !line.starts_with('#'));
    let is_told = |name: &str| {
        let series = page.lines().filter_map(|line| line.strip_prefix(name));
        let mut series = series.filter(|rest| rest.starts_with(['{', ' ']));
        series.any(|rest| !rest.ends_with(" NaN"))
    };
    assert!(asked.clone().count() > 100);
    let missing: Vec<_> = asked.by_ref().filter(|name| !is_told(name)).collect();
    assert_eq!(missing, [""; 0], "{page}");
    proxy.stop();
}
