//! The exporter `prometheus_remote_write`: OTLP in, requests to a receiver of Prometheus'.

use std::collections::BTreeMap;
use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::prometheus::{every_kind, gauge, post, request_of, sum};
use super::storage::Folder;
use super::*;

/// Messages of version 1 (`prompb/types.proto`).
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<MetricMetadata>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "4")]
    histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(int64, tag = "3")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "3")]
    sum: f64,
    #[prost(sint32, tag = "4")]
    schema: i32,
    #[prost(double, tag = "5")]
    zero_threshold: f64,
    #[prost(uint64, tag = "6")]
    zero_count: u64,
    #[prost(message, repeated, tag = "11")]
    positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[derive(Clone, PartialEq, Message)]
struct MetricMetadata {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "4")]
    help: String,
    #[prost(string, tag = "5")]
    unit: String,
}

/// Messages of version 2 (`io/prometheus/write/v2/types.proto`).
#[derive(Clone, PartialEq, Message)]
struct RequestTwo {
    #[prost(string, repeated, tag = "4")]
    symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    timeseries: Vec<TimeSeriesTwo>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeriesTwo {
    #[prost(uint32, repeated, tag = "1")]
    labels: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    histograms: Vec<Histogram>,
    #[prost(message, repeated, tag = "4")]
    exemplars: Vec<ExemplarTwo>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<MetadataTwo>,
}

#[derive(Clone, PartialEq, Message)]
struct ExemplarTwo {
    #[prost(uint32, repeated, tag = "1")]
    labels: Vec<u32>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(int64, tag = "3")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataTwo {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(uint32, tag = "3")]
    help: u32,
    #[prost(uint32, tag = "4")]
    unit: u32,
}

impl RequestTwo {
    fn labels(&self, references: &[u32]) -> Vec<Label> {
        let text = |place: u32| self.symbols[place as usize].clone();
        let pairs = references.chunks_exact(2);
        let pairs = pairs.map(|pair| Label {
            name: text(pair[0]),
            value: text(pair[1]),
        });
        pairs.collect()
    }

    /// The same in version 1, and the metadata of each series.
    fn as_one(&self) -> (WriteRequest, Vec<String>) {
        let series = self.timeseries.iter().map(|one| TimeSeries {
            labels: self.labels(&one.labels),
            samples: one.samples.clone(),
            exemplars: { one.exemplars.iter() }
                .map(|exemplar| Exemplar {
                    labels: self.labels(&exemplar.labels),
                    value: exemplar.value,
                    timestamp: exemplar.timestamp,
                })
                .collect(),
            histograms: one.histograms.clone(),
        });
        let text = |place: u32| self.symbols[place as usize].as_str();
        let metadata = self.timeseries.iter().flat_map(|one| &one.metadata);
        let metadata =
            metadata.map(|one| format!("{} {} {}", one.kind, text(one.unit), text(one.help)));
        let request = WriteRequest {
            timeseries: series.collect(),
            metadata: Vec::new(),
        };
        (request, metadata.collect())
    }
}

/// A request that came: its fields, and its body as it was before compression.
#[derive(Clone)]
struct Came {
    fields: HeaderMap,
    body: Vec<u8>,
}

/// A receiver of pushed samples, which answers with these statuses, and with 204 after them.
struct Receiver {
    at: String,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Receiver {
    async fn answering(statuses: &'static [u16]) -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        Receiver::on(listener.expect("a listener"), statuses)
    }

    fn on(listener: tokio::net::TcpListener, statuses: &'static [u16]) -> Receiver {
        let at = listener.local_addr().expect("an address").to_string();
        let came = Arc::<Mutex<Vec<Came>>>::default();
        let all = Arc::clone(&came);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let came = Arc::clone(&all);
                let service = service_fn(move |request: Request<Incoming>| {
                    let came = Arc::clone(&came);
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.expect("a body").to_bytes();
                        let body = snap::raw::Decoder::new().decompress_vec(&body);
                        let mut came = came.lock().expect("no panic");
                        let status = statuses.get(came.len()).unwrap_or(&204);
                        came.push(Came {
                            fields: head.headers,
                            body: body.expect("snappy"),
                        });
                        let response = Response::builder().status(*status);
                        let response = response.body(Full::<Bytes>::from("it was that"));
                        Ok::<_, Infallible>(response.expect("it is one"))
                    }
                });
                let builder = hyper::server::conn::http1::Builder::new();
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
        Receiver { at, came }
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic").clone()
    }

    fn requests(&self) -> Vec<WriteRequest> {
        let decode = |one: &Came| WriteRequest::decode(&*one.body).expect("a request");
        self.came().iter().map(decode).collect()
    }
}

/// A collector that pushes there with these options.
fn pushing(at: &str, options: &str) -> Collector {
    start(&yaml(at, options))
}

fn yaml(at: &str, options: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         exporters: {{ prometheusremotewrite: {{ endpoint: 'http://{at}/push', {options} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [otlp], exporters: [prometheusremotewrite] }} }} }}"
    )
}

fn labels(labels: &[Label]) -> String {
    let names: Vec<_> = labels.iter().map(|label| label.name.as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
    let labels = labels.iter();
    let labels = labels.map(|label| format!("{}={}", label.name, label.value));
    labels.collect::<Vec<_>>().join(",")
}

/// The series of requests, as texts.
fn series(requests: &[WriteRequest]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for one in requests.iter().flat_map(|request| &request.timeseries) {
        let mut text = String::new();
        for sample in &one.samples {
            text += &format!("{}@{} ", sample.value, sample.timestamp);
        }
        for one in &one.histograms {
            text += &format!(
                "{}/{} {}:{} {}@{} {:?} {:?}",
                one.sum,
                one.count,
                one.schema,
                one.zero_count,
                one.zero_threshold,
                one.timestamp,
                { one.positive_spans.iter() }
                    .map(|span| (span.offset, span.length))
                    .collect::<Vec<_>>(),
                one.positive_deltas,
            );
        }
        for exemplar in &one.exemplars {
            text += &format!(
                "# {}@{} {}",
                exemplar.value,
                exemplar.timestamp,
                labels(&exemplar.labels)
            );
        }
        let before = all.insert(labels(&one.labels), text.trim().to_owned());
        assert_eq!(before, None);
    }
    all
}

const OTHERS: &str = "instance=one,job=web/shop";
const SCOPE: &str =
    "otel_scope_name=lib,otel_scope_schema_url=,otel_scope_team=a,otel_scope_version=2";

fn wanted() -> BTreeMap<String, String> {
    let exemplar = "# 0.3@3000 span_id=0102030405060708,trace_id=0102030405060708090a0b0c0d0e0f10";
    let of = |name: &str| format!("__name__={name},{OTHERS},{SCOPE}");
    let bucket = |le: &str| format!("__name__=time_seconds_bucket,{OTHERS},le={le},{SCOPE}");
    let wanted = [
        (
            format!("__name__=memory_used_bytes,{OTHERS},k_a=x;y,{SCOPE}"),
            "7@2000".to_owned(),
        ),
        (of("requests_total"), format!("5@2000 {exemplar}")),
        (of("queue"), "-1.5@2000".to_owned()),
        (of("time_seconds_sum"), "2.5@2000".to_owned()),
        (of("time_seconds_count"), "4@2000".to_owned()),
        (bucket("0.25"), "1@2000".to_owned()),
        (bucket("1"), format!("3@2000 {exemplar}")),
        (bucket("+Inf"), "4@2000".to_owned()),
        (of("sizes"), format!("9/3 1:1 {}@2000 [(3, 1)] [2]", 1e-128)),
        (of("wait_sum"), "3@2000".to_owned()),
        (of("wait_count"), "2@2000".to_owned()),
        (format!("{},quantile=0.5", of("wait")), "1@2000".to_owned()),
        (
            format!("__name__=target_info,host_name=h1,{OTHERS}"),
            "1@2000".to_owned(),
        ),
    ];
    wanted.into()
}

#[tokio::test]
async fn every_kind_of_metric_is_pushed() {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(&receiver.at, "");
    post(&collector, every_kind()).await;
    assert_eq!(series(&receiver.requests()), wanted());
    let fields = &receiver.came()[0].fields;
    for (name, value) in [
        ("content-type", "application/x-protobuf"),
        ("content-encoding", "snappy"),
        ("x-prometheus-remote-write-version", "0.1.0"),
    ] {
        assert_eq!(fields[name], value);
    }
}

#[tokio::test]
async fn version_two_has_the_same_series_and_their_metadata() {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(
        &receiver.at,
        "protobuf_message: io.prometheus.write.v2.Request",
    );
    post(&collector, every_kind()).await;
    let came = receiver.came();
    let request = RequestTwo::decode(&*came[0].body).expect("a request");
    assert_eq!(request.symbols[0], "");
    let (one, metadata) = request.as_one();
    assert_eq!(series(&[one]), wanted());
    assert_eq!(metadata.len(), wanted().len());
    assert!(
        metadata.contains(&"2 bytes Bytes in use.".to_owned()),
        "{metadata:?}"
    );
    let fields = &came[0].fields;
    let content = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    assert_eq!(fields["content-type"], content);
    assert_eq!(fields["x-prometheus-remote-write-version"], "2.0.0");
}

#[tokio::test]
async fn metadata_is_pushed_where_it_is_asked_for() {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(&receiver.at, "send_metadata: true");
    post(&collector, every_kind()).await;
    let requests = receiver.requests();
    let metadata: Vec<_> = requests
        .iter()
        .flat_map(|request| &request.metadata)
        .collect();
    let texts: Vec<_> = { metadata.iter() }
        .map(|one| format!("{} {} {} {}", one.name, one.kind, one.unit, one.help))
        .collect();
    assert_eq!(
        texts,
        [
            "memory_used_bytes 2 bytes Bytes in use.",
            "queue 2  ",
            "requests_total 1  ",
            "sizes 3  ",
            "target_info 2  Target metadata",
            "time_seconds 3 seconds ",
            "wait 5  ",
        ]
    );
}

/// The pushed form of one gauge, without `target_info`.
async fn pushed(options: &str, point: Value) -> Vec<String> {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(&receiver.at, options);
    post(&collector, gauge("a.b", "By", point)).await;
    let series = if options.contains("v2.Request") {
        let came = receiver.came();
        let request = RequestTwo::decode(&*came[0].body).expect("a request");
        series(&[request.as_one().0])
    } else {
        series(&receiver.requests())
    };
    series.into_keys().collect()
}

#[tokio::test]
async fn options_change_what_is_pushed() {
    let two = "protobuf_message: io.prometheus.write.v2.Request";
    let scope = format!("{OTHERS},{SCOPE}");
    let target = format!("__name__=target_info,host_name=h1,{OTHERS}");
    let point = || json!({ "timeUnixNano": "1500000000", "asInt": "7" });
    for (options, wanted) in [
        ("".to_owned(), vec![format!("__name__=a_b_bytes,{scope}"), target.clone()]),
        (
            "target_info: { enabled: false }".to_owned(),
            vec![format!("__name__=a_b_bytes,{scope}")],
        ),
        (
            "target_info: { enabled: false }, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b_bytes,{OTHERS}")],
        ),
        (
            "namespace: app, disable_scope_info: true".to_owned(),
            vec![format!("__name__=app_a_b_bytes,{OTHERS}"), format!("__name__=app_target_info,host_name=h1,{OTHERS}")],
        ),
        (
            "external_labels: { zone: z, job: j }, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b_bytes,{OTHERS},zone=z"), format!("{target},zone=z")],
        ),
        (
            "add_metric_suffixes: false, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b,{OTHERS}"), target.clone()],
        ),
        (
            "translation_strategy: UnderscoreEscapingWithoutSuffixes, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b,{OTHERS}"), target.clone()],
        ),
        (
            format!("{two}, translation_strategy: NoTranslation, disable_scope_info: true"),
            vec![format!("__name__=a.b,{OTHERS}"), format!("__name__=target_info,host.name=h1,{OTHERS}")],
        ),
        (
            "resource_constant_labels: { included: ['host.*'] }, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b_bytes,host_name=h1,{OTHERS}"), target.clone()],
        ),
        (
            "resource_constant_labels: { excluded: ['service.*'] }, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b_bytes,host_name=h1,{OTHERS}"), target.clone()],
        ),
        (
            "resource_to_telemetry_conversion: { enabled: true, exclude_service_attributes: true }, disable_scope_info: true".to_owned(),
            vec![format!("__name__=a_b_bytes,host_name=h1,{OTHERS}"), target.clone()],
        ),
    ] {
        assert_eq!(pushed(&options, point()).await, wanted, "{options}");
    }
}

#[tokio::test]
async fn a_series_without_a_value_is_stale() {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(&receiver.at, "target_info: { enabled: false }");
    post(
        &collector,
        gauge("a", "", json!({ "timeUnixNano": "1500000000", "flags": 1 })),
    )
    .await;
    let requests = receiver.requests();
    let value = requests[0].timeseries[0].samples[0].value;
    assert_eq!(value.to_bits(), 0x7ff0_0000_0000_0002);
}

#[tokio::test]
async fn what_is_not_cumulative_is_rejected_and_the_rest_is_pushed() {
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(&receiver.at, "");
    let mut metrics = sum(
        1,
        true,
        json!({ "timeUnixNano": "1500000000", "asInt": "7" }),
    );
    let fine = gauge(
        "a",
        "",
        json!({ "timeUnixNano": "1500000000", "asInt": "7" }),
    );
    metrics
        .as_array_mut()
        .expect("a list")
        .extend(fine.as_array().expect("a list").clone());
    post(&collector, metrics).await;
    let balance = collector.view.accounts[Signal::Metrics as usize].balance();
    assert_eq!((balance.exported, balance.rejected), (1, 1));
    let pushed = series(&receiver.requests());
    assert!(
        pushed.keys().any(|key| key.starts_with("__name__=a,")),
        "{pushed:?}"
    );
}

#[tokio::test]
async fn large_batches_are_several_requests() {
    for (options, requests) in [("", 1), ("max_batch_size_bytes: 1", wanted().len())] {
        let receiver = Receiver::answering(&[]).await;
        let collector = pushing(&receiver.at, options);
        post(&collector, every_kind()).await;
        assert_eq!(receiver.came().len(), requests);
        assert_eq!(series(&receiver.requests()), wanted());
    }
    // Of version 2, too: each has its own symbols.
    let receiver = Receiver::answering(&[]).await;
    let two = "max_batch_size_bytes: 400, protobuf_message: io.prometheus.write.v2.Request";
    let collector = pushing(&receiver.at, two);
    post(&collector, every_kind()).await;
    let came = receiver.came();
    let decoded = came
        .iter()
        .map(|one| RequestTwo::decode(&*one.body).expect("a request"));
    let ones: Vec<_> = decoded.map(|request| request.as_one().0).collect();
    assert!(ones.len() > 2, "{}", ones.len());
    assert_eq!(series(&ones), wanted());
}

#[tokio::test]
async fn failures_are_tried_again_and_refusals_are_not() {
    let receiver = Receiver::answering(&[500, 429, 503]).await;
    let options = "retry_on_failure: { initial_interval: 1ms, randomization_factor: 0 }";
    let collector = pushing(&receiver.at, options);
    post(&collector, every_kind()).await;
    assert_eq!(receiver.came().len(), 4);
    let balance = collector.view.accounts[Signal::Metrics as usize].balance();
    assert_eq!((balance.exported, balance.failed), (6, 0));
    // One request of several: its series are rejected, the others are taken.
    let receiver = Receiver::answering(&[400]).await;
    let options = "max_batch_size_bytes: 1, remote_write_queue: { num_consumers: 1 }, target_info: { enabled: false }";
    let collector = pushing(&receiver.at, options);
    post(&collector, every_kind()).await;
    assert_eq!(receiver.came().len(), wanted().len() - 1);
    let balance = collector.view.accounts[Signal::Metrics as usize].balance();
    assert_eq!((balance.exported, balance.rejected), (5, 1));
    let receiver = Receiver::answering(&[500]).await;
    let collector = pushing(&receiver.at, "retry_on_failure: { enabled: false }");
    let at = address(&collector, "otlp http");
    let body = request_of(&every_kind());
    post_as(&at, "/v1/metrics", "application/json", body.as_bytes()).await;
    let account = &collector.view.accounts[Signal::Metrics as usize];
    until("it is lost", || account.balance().failed == 6).await;
}

#[tokio::test]
async fn the_client_is_what_the_settings_say() {
    let receiver = Receiver::answering(&[]).await;
    let at = &receiver.at;
    let nested = format!(
        "http: {{ endpoint: 'http://{at}/push', headers: {{ x-key: word, Content-Type: text/plain }}, disable_keep_alives: true }}"
    );
    // Where `http` is written, what stands beside it does not count.
    let collector = pushing(
        "127.0.0.1:1",
        &format!("headers: {{ x-key: other }}, {nested}"),
    );
    post(&collector, every_kind()).await;
    let fields = &receiver.came()[0].fields;
    assert_eq!(fields["x-key"], "word");
    assert_eq!(fields["connection"], "close");
    assert_eq!(fields["content-type"], "application/x-protobuf");
    let receiver = Receiver::answering(&[]).await;
    let collector = pushing(
        &receiver.at,
        "headers: { x-key: other }, disable_keep_alives: true",
    );
    post(&collector, every_kind()).await;
    let fields = &receiver.came()[0].fields;
    assert_eq!(
        (&fields["x-key"], &fields["connection"]),
        (
            &"other".parse().expect("a value"),
            &"close".parse().expect("a value")
        )
    );
}

#[tokio::test]
async fn requests_say_who_they_are_from() {
    for is_within in [false, true] {
        let receiver = Receiver::answering(&[]).await;
        let (at, auth) = (&receiver.at, "auth: { authenticator: headers_setter }");
        let options = if is_within {
            format!("http: {{ endpoint: 'http://{at}', {auth} }}")
        } else {
            auth.to_owned()
        };
        let yaml =
            yaml(at, &options).replace("service: {", "service: { extensions: [headers_setter],");
        let extension = "extensions: { headers_setter: { headers: [ { key: authorization, value: Bearer key } ] } }";
        let collector = start(&format!("{extension}\n{yaml}"));
        post(&collector, every_kind()).await;
        assert_eq!(receiver.came()[0].fields["authorization"], "Bearer key");
    }
}

#[tokio::test]
async fn a_write_ahead_log_outlives_the_collector() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let at = free.local_addr().expect("an address").to_string();
    drop(free);
    let with = |folder: &Folder| {
        let folder = folder.path().display();
        format!(
            "wal: {{ directory: '{folder}' }}, retry_on_failure: {{ initial_interval: 10ms, max_elapsed_time: 0 }}"
        )
    };
    let folder = Folder::new();
    let first = pushing(&at, &with(&folder));
    let to = address(&first, "otlp http");
    let body = request_of(&every_kind());
    let status = post_as(&to, "/v1/metrics", "application/json", body.as_bytes()).await;
    assert_eq!(status, 200);
    let killed = folder.snapshot();
    drop(first);
    let listener = tokio::net::TcpListener::bind(&at)
        .await
        .expect("the address");
    let receiver = Receiver::on(listener, &[]);
    let second = pushing(&at, &with(&killed));
    until("it comes", || !receiver.came().is_empty()).await;
    second.end().await;
    assert_eq!(series(&receiver.requests()[..1]), wanted());
}

/// What a configuration says with these options of the exporter.
#[test]
fn settings_that_cannot_be_are_told_of() {
    for (options, message) in [
        (
            "external_labels: { a: '' }",
            "a label must have a name and a value",
        ),
        ("compression: gzip", "compression"),
        (
            "translation_strategy: NoTranslation",
            "needs version 2 of the protocol",
        ),
        (
            "max_batch_request_parallelism: 0",
            "max_batch_request_parallelism",
        ),
        ("wal: { }", "must name a folder"),
        ("remote_write_queue: { queue_size: 0 }", "queue_size"),
        ("include_metadata_keys: [a]", "headers_setter"),
    ] {
        let found = crate::errors(&yaml("x", options)).join("\n");
        assert!(found.contains(message), "{options}: {found}");
    }
}
