//! The exporter `prometheus`: OTLP in, a page out.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const OPEN: &str = "application/openmetrics-text;version=1.0.0";

/// A collector whose exporter has these options besides its address.
fn exposing(options: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    start_logged(Level::Info, &yaml(options))
}

fn yaml(options: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         exporters: {{ prometheus: {{ endpoint: '127.0.0.1:0', {options} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [otlp], exporters: [prometheus] }} }} }}"
    )
}

/// The head and the body of an answer.
async fn get(collector: &Collector, path: &str, accept: &str) -> (String, String) {
    let at = address(collector, "prometheus");
    let mut stream = TcpStream::connect(at).await.expect("a page");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: {accept}\r\n\r\n");
    let written = stream.write_all(request.as_bytes()).await;
    written.expect("a request");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    read.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

/// The lines of the page that are samples.
async fn samples(collector: &Collector, accept: &str) -> Vec<String> {
    let (head, body) = get(collector, "/metrics", accept).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with('#'));
    samples.map(str::to_owned).collect()
}

fn attributes(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect()
}

/// A request of one resource and one scope.
pub(super) fn request_of(metrics: &Value) -> String {
    let resource = [
        ("service.name", "shop"),
        ("service.namespace", "web"),
        ("service.instance.id", "one"),
        ("host.name", "h1"),
    ];
    json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeMetrics": [{
            "scope": { "name": "lib", "version": "2", "attributes": attributes(&[("team", "a")]) },
            "metrics": metrics,
        }],
    }]})
    .to_string()
}

/// Sends metrics, and waits until the exporter has them.
pub(super) async fn post(collector: &Collector, metrics: Value) {
    let account = &collector.view.accounts[Signal::Metrics as usize];
    let settled = || {
        let balance = account.balance();
        balance.exported + balance.rejected
    };
    let before = settled();
    let at = address(collector, "otlp http");
    let body = request_of(&metrics);
    let status = post_as(&at, "/v1/metrics", "application/json", body.as_bytes()).await;
    assert_eq!(status, 200);
    until("it is settled", || settled() > before).await;
}

pub(super) fn gauge(name: &str, unit: &str, point: Value) -> Value {
    json!([{ "name": name, "unit": unit, "gauge": { "dataPoints": [point] } }])
}

pub(super) fn sum(temporality: u32, is_monotonic: bool, point: Value) -> Value {
    json!([{ "name": "requests", "sum": {
        "aggregationTemporality": temporality, "isMonotonic": is_monotonic, "dataPoints": [point],
    }}])
}

pub(super) fn every_kind() -> Value {
    let exemplar = json!({ "timeUnixNano": "3000000000", "asDouble": 0.3,
        "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708" });
    json!([
        { "name": "memory.used", "unit": "By", "description": "Bytes in use.", "gauge": { "dataPoints": [
            { "timeUnixNano": "2000000000", "asInt": "7", "attributes": attributes(&[("k.a", "x"), ("k_a", "y")]) },
        ]}},
        { "name": "requests", "unit": "1", "sum": { "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [
            { "timeUnixNano": "2000000000", "startTimeUnixNano": "1000000000", "asInt": "5", "exemplars": [exemplar] },
        ]}},
        { "name": "queue", "sum": { "aggregationTemporality": 2, "dataPoints": [
            { "timeUnixNano": "2000000000", "asDouble": -1.5 },
        ]}},
        { "name": "time", "unit": "s", "histogram": { "aggregationTemporality": 2, "dataPoints": [
            { "timeUnixNano": "2000000000", "count": "4", "sum": 2.5, "explicitBounds": [0.25, 1], "bucketCounts": ["1", "2", "1"],
              "exemplars": [exemplar] },
        ]}},
        { "name": "sizes", "exponentialHistogram": { "aggregationTemporality": 2, "dataPoints": [
            { "timeUnixNano": "2000000000", "count": "3", "sum": 9, "scale": 1, "zeroCount": "1",
              "positive": { "offset": 2, "bucketCounts": ["2"] } },
        ]}},
        { "name": "wait", "summary": { "dataPoints": [
            { "timeUnixNano": "2000000000", "count": "2", "sum": 3, "quantileValues": [{ "quantile": 0.5, "value": 1 }] },
        ]}},
        { "name": "nothing" },
    ])
}

const TARGET: &str = r#"job="web/shop",otel_scope_name="lib",otel_scope_schema_url="",otel_scope_team="a",otel_scope_version="2""#;

#[tokio::test]
async fn the_page_has_every_kind_of_metric() {
    let (collector, _) = exposing("");
    post(&collector, every_kind()).await;
    let (head, body) = get(&collector, "/metrics", "*/*").await;
    let content = "content-type: text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    assert!(head.contains(content), "{head}");
    let i = r#"instance="one","#;
    let wanted = format!(
        r#"# HELP memory_used_bytes Bytes in use.
# TYPE memory_used_bytes gauge
memory_used_bytes{{{i}{TARGET_HEAD}k_a="x;y",{SCOPE}}} 7
# HELP queue 
# TYPE queue gauge
queue{{{i}{TARGET}}} -1.5
# HELP requests_total 
# TYPE requests_total counter
requests_total{{{i}{TARGET}}} 5
# HELP sizes 
# TYPE sizes histogram
sizes_bucket{{{i}{TARGET},le="+Inf"}} 3
sizes_sum{{{i}{TARGET}}} 9
sizes_count{{{i}{TARGET}}} 3
# HELP target_info Target metadata
# TYPE target_info gauge
target_info{{host_name="h1",instance="one",job="web/shop"}} 1
# HELP time_seconds 
# TYPE time_seconds histogram
time_seconds_bucket{{{i}{TARGET},le="0.25"}} 1
time_seconds_bucket{{{i}{TARGET},le="1"}} 3
time_seconds_bucket{{{i}{TARGET},le="+Inf"}} 4
time_seconds_sum{{{i}{TARGET}}} 2.5
time_seconds_count{{{i}{TARGET}}} 4
# HELP wait 
# TYPE wait summary
wait{{{i}{TARGET},quantile="0.5"}} 1
wait_sum{{{i}{TARGET}}} 3
wait_count{{{i}{TARGET}}} 2
"#
    );
    assert_eq!(body, wanted);
    let (head, _) = get(&collector, "/other", "*/*").await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

const TARGET_HEAD: &str = r#"job="web/shop","#;
const SCOPE: &str =
    r#"otel_scope_name="lib",otel_scope_schema_url="",otel_scope_team="a",otel_scope_version="2""#;

#[tokio::test]
async fn clients_that_accept_openmetrics_get_it_where_it_is_on() {
    let (collector, _) = exposing("enable_open_metrics: true, without_scope_info: true");
    post(&collector, every_kind()).await;
    let (head, body) = get(&collector, "/metrics", OPEN).await;
    let content = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";
    assert!(head.contains(content), "{head}");
    let i = r#"instance="one",job="web/shop""#;
    let ids = r#"trace_id="0102030405060708090a0b0c0d0e0f10",span_id="0102030405060708""#;
    for wanted in [
        "# TYPE requests counter\n".to_owned(),
        format!("requests_total{{{i}}} 5.0 # {{{ids}}} 0.3 3.0\n"),
        "# TYPE time_seconds histogram\n# UNIT time_seconds seconds\n".to_owned(),
        format!("time_seconds_bucket{{{i},le=\"1.0\"}} 3 # {{{ids}}} 0.3 3.0\n"),
    ] {
        assert!(body.contains(&wanted), "{wanted}{body}");
    }
    assert!(body.ends_with("\n# EOF\n"), "{body}");
    let (collector, _) = exposing("");
    let (head, body) = get(&collector, "/metrics", OPEN).await;
    assert!(head.contains("content-type: text/plain"), "{head}");
    assert_eq!(body, "");
}

#[tokio::test]
async fn options_change_names_and_labels() {
    let instance = r#"instance="one","#;
    let service = r#"service_instance_id="one",service_name="shop",service_namespace="web""#;
    let point = json!({ "timeUnixNano": "1500000000", "asInt": "7" });
    for (options, wanted) in [
        (
            "namespace: my-app, without_scope_info: true",
            r#"my_app_a_b_bytes{instance="one",job="web/shop"} 7"#.to_owned(),
        ),
        (
            "const_labels: { zone: z, job: j }, without_scope_info: true",
            r#"a_b_bytes{instance="one",job="j",zone="z"} 7"#.to_owned(),
        ),
        (
            "send_timestamps: true",
            format!("a_b_bytes{{{instance}{TARGET}}} 7 1500"),
        ),
        (
            "add_metric_suffixes: false",
            format!("a_b{{{instance}{TARGET}}} 7"),
        ),
        (
            "translation_strategy: UnderscoreEscapingWithoutSuffixes",
            format!("a_b{{{instance}{TARGET}}} 7"),
        ),
        (
            "translation_strategy: UnderscoreEscapingWithSuffixes, add_metric_suffixes: false",
            format!("a_b_bytes{{{instance}{TARGET}}} 7"),
        ),
        (
            "translation_strategy: NoTranslation",
            format!("{{\"a.b\",{instance}{TARGET}}} 7"),
        ),
        (
            "translation_strategy: NoUTF8EscapingWithSuffixes",
            format!("{{\"a.b_bytes\",{instance}{TARGET}}} 7"),
        ),
        (
            "resource_constant_labels: { included: ['host.*', service.name], excluded: [service.name] }, without_scope_info: true",
            r#"a_b_bytes{host_name="h1",instance="one",job="web/shop"} 7"#.to_owned(),
        ),
        (
            "resource_constant_labels: { excluded: [host.name] }, without_scope_info: true",
            format!("a_b_bytes{{{instance}job=\"web/shop\",{service}}} 7"),
        ),
        (
            "resource_to_telemetry_conversion: { enabled: true }, without_scope_info: true",
            format!("a_b_bytes{{host_name=\"h1\",{instance}job=\"web/shop\",{service}}} 7"),
        ),
        (
            "resource_to_telemetry_conversion: { enabled: true, exclude_service_attributes: true }, without_scope_info: true",
            r#"a_b_bytes{host_name="h1",instance="one",job="web/shop"} 7"#.to_owned(),
        ),
    ] {
        let (collector, _) = exposing(options);
        post(&collector, gauge("a.b", "By", point.clone())).await;
        let samples = samples(&collector, "text/plain;escaping=allow-utf-8").await;
        let samples: Vec<_> = { samples.iter() }
            .filter(|line| !line.contains("target_info"))
            .collect();
        assert_eq!(samples, [&wanted], "{options}");
    }
}

#[tokio::test]
async fn deltas_are_added_up_and_series_end_when_they_are_told_to() {
    let (collector, lines) = exposing("without_scope_info: true");
    let delta = |start: &str, time: &str, value: &str| json!({ "startTimeUnixNano": start, "timeUnixNano": time, "asInt": value });
    for point in [delta("1", "10", "5"), delta("10", "20", "6")] {
        post(&collector, sum(1, true, point)).await;
    }
    let i = r#"instance="one",job="web/shop""#;
    let told = samples(&collector, "").await;
    assert_eq!(told[0], format!("requests_total{{{i}}} 11"));
    // A gap is a reset.
    post(&collector, sum(1, true, delta("25", "30", "2"))).await;
    let told = samples(&collector, "").await;
    assert_eq!(told[0], format!("requests_total{{{i}}} 2"));
    // The Collector has no sums of deltas that may fall.
    post(&collector, sum(1, false, delta("1", "10", "5"))).await;
    assert_eq!(samples(&collector, "").await, told);
    // The name is that of a counter.
    let point = json!({ "timeUnixNano": "40", "asInt": "1" });
    post(&collector, gauge("requests_total", "", point)).await;
    assert_eq!(samples(&collector, "").await, told);
    let said = lines.lock().expect("no panic").join("\n");
    let wanted = "1 records rejected: metric 'requests_total': there is a metric of this name and another type";
    assert!(said.contains(wanted), "{said}");
    let gone = json!({ "timeUnixNano": "50", "flags": 1 });
    post(&collector, sum(1, true, gone)).await;
    assert_eq!(samples(&collector, "").await, [""; 0]);
    let balance = collector.end().await[Signal::Metrics as usize];
    assert_eq!((balance.exported, balance.rejected), (5, 1));
}

#[tokio::test]
async fn a_series_that_is_not_told_of_again_expires() {
    let (collector, _) = exposing("metric_expiration: 50ms");
    let point = json!({ "timeUnixNano": "1", "asInt": "1" });
    post(&collector, gauge("a", "", point)).await;
    let deadline = Instant::now() + PATIENCE;
    while !samples(&collector, "").await.is_empty() {
        assert!(Instant::now() < deadline, "it stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_reload_takes_the_page_over() {
    let host = Host::default();
    let config = load(&yaml(""));
    let start = || {
        let started = Collector::start_in(&config, setup(), &host);
        started.unwrap_or_else(|error| panic!("{}", error.0))
    };
    let old = start();
    let point = |value: &str| json!({ "timeUnixNano": "1", "asInt": value });
    post(&old, gauge("old", "", point("1"))).await;
    let new = start();
    assert_eq!(address(&old, "prometheus"), address(&new, "prometheus"));
    old.stop_listening();
    old.end_for(&new.view).await;
    // Its exporter begins with nothing, as that of a Collector which reloads does.
    assert_eq!(samples(&new, "").await, [""; 0]);
    post(&new, gauge("new", "", point("2"))).await;
    let told = samples(&new, "").await;
    assert!(
        told[0].starts_with("new{") && told[0].ends_with(" 2"),
        "{told:?}"
    );
    new.end().await;
}

#[tokio::test]
async fn mistakes_in_its_options_are_told() {
    for (options, wanted) in [
        ("", "endpoint"),
        (
            "endpoint: ':1', const_labels: { __a: b }",
            "'__a' begins with '__'",
        ),
        (
            "endpoint: ':1', translation_strategy: Other",
            "translation_strategy",
        ),
    ] {
        let yaml = format!(
            "receivers: {{ nop: }}\nexporters: {{ prometheus: {{ {options} }} }}\n\
             service: {{ pipelines: {{ metrics: {{ receivers: [nop], exporters: [prometheus] }} }} }}"
        );
        let source = format!("yaml:{yaml}");
        let outside = Outside {
            variable: &|_| None,
            read_file: &|path| std::fs::read(path).map_err(|error| error.to_string()),
        };
        let loaded = config::load(&[&source], &config::Options::default(), outside);
        let faults = format!("{:?}", loaded.expect_err("a mistake"));
        assert!(faults.contains(wanted), "{faults}");
    }
}
