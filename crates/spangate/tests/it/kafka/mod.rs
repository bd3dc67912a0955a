//! The `kafka` receiver and exporter against a broker of Apache Kafka, which `tools/kafka/broker`
//! starts.
//!
//! One test has one broker: what is tested against it uses topics and groups of its own.
//! `SPANGATE_KAFKA_SECONDS=120` makes the load on the fleet last so long; a member is killed every
//! ten seconds.

mod broker;
mod fleet;
mod sink;

use std::fmt::Write as _;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use crate::common;
use broker::Broker;
use common::collector::Running;
use common::eventually;
use common::http::Client;
use common::otlp::value;
use sink::Sink;

/// Spans of a trace: two in each of its parts.
const SPANS: u8 = 6;
const PARTS: u8 = 3;

/// Part of the traces of these numbers. The last one of every fifth trace has failed.
fn request(traces: std::ops::Range<u64>, part: u8) -> Vec<u8> {
    let span = |trace: u64, number: u8| Span {
        trace_id: [&[7; 8][..], &trace.to_be_bytes()].concat(),
        span_id: [&[number + 1][..], &trace.to_be_bytes()[1..]].concat(),
        name: format!("span {number}"),
        start_time_unix_nano: 1,
        end_time_unix_nano: 2,
        status: (number + 1 == SPANS && trace.is_multiple_of(5)).then(|| Status {
            code: 2,
            message: String::new(),
        }),
        ..Span::default()
    };
    let numbers = part * (SPANS / PARTS)..(part + 1) * (SPANS / PARTS);
    let spans = traces.flat_map(|trace| numbers.clone().map(move |number| span(trace, number)));
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![ScopeSpans {
                spans: spans.collect(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

const NO_METRICS: &str = "telemetry: { metrics: { level: none } }";

/// Sends a request to a collector; whether it was taken.
fn post(client: &mut Client, fields: &str, body: &[u8]) -> bool {
    let length = body.len();
    let mut request = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n{fields}content-length: {length}\r\n\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    client.send(request);
    client
        .response()
        .is_some_and(|response| response.status == 200)
}

/// A collector that takes OTLP and writes it to a topic; a request is answered when the broker has
/// it.
fn front(at: &str, topic: &str, options: &str) -> (Running, Client) {
    let collector = Running::start(&format!(
        "
receivers:
  otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0', include_metadata: true }} }} }}
exporters:
  kafka:
    brokers: ['{at}']
    traces: {{ topic: {topic} }}
    partition_traces_by_id: true
    producer: {{ required_acks: all, compression: lz4 }}
    sending_queue: {{ enabled: false }}
{options}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [kafka] }} }}
"
    ));
    let address = collector.address("otlp http").parse().expect("an address");
    (collector, Client::connect(address))
}

/// The configuration of a member of a group named as the topic that it reads.
fn member(at: &str, topic: &str, options: &str, rest: &str) -> String {
    format!(
        "
receivers:
  kafka:
    brokers: ['{at}']
    traces: {{ topics: [{topic}] }}
    group_id: {topic}
    initial_offset: earliest
    session_timeout: 6s
    heartbeat_interval: 500ms
    metadata: {{ refresh_interval: 1s }}
{options}
{rest}
  {NO_METRICS}
"
    )
}

/// What follows where everything goes to a sink as it comes.
fn to_sink(sink: &Sink, exporter: &str) -> String {
    format!(
        "exporters: {{ otlphttp: {{ endpoint: 'http://{}', compression: none, {exporter} }} }}
service:
  pipelines: {{ traces: {{ receivers: [kafka], exporters: [otlphttp] }} }}",
        sink.at
    )
}

#[test]
fn spans_pass_a_broker_of_kafka() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    headers_go_along(&broker);
    what_is_given_up_is_read_again(&broker);
    users_are_known(&broker);
    an_end_decides_nothing(&broker);
    a_broker_may_die(&mut broker);
    fleet::members_may_die(&broker);
    an_end_does_not_wait_for_a_broker(&mut broker);
}

/// Metadata of a request become headers, and headers attributes.
fn headers_go_along(broker: &Broker) {
    let sink = Sink::start();
    let options = "    include_metadata_keys: [X-Tenant]\n    record_headers: { fixed: f }";
    let (_front, mut client) = front(&broker.at, "headers", options);
    let options = "    header_extraction: { extract_headers: true, headers: [x-tenant, fixed] }";
    let config = member(&broker.at, "headers", options, &to_sink(&sink, ""));
    assert!(post(&mut client, "x-tenant: t\r\n", &request(1..2, 0)));
    let _member = Running::start(&config);
    let resources = sink.until("a request", |all| {
        (!all.resources.is_empty()).then(|| all.resources.clone())
    });
    let mut told = String::new();
    for name in ["x-tenant", "fixed"] {
        let value = value(&resources[0].attributes, &format!("kafka.header.{name}"));
        write!(told, "{name}={} ", value.unwrap_or_default()).expect("text");
    }
    assert_eq!(told, "x-tenant=t fixed=f ");
}

/// With `message_marking::after` nothing is lost to a back end that is away for longer than an
/// exporter tries.
fn what_is_given_up_is_read_again(broker: &Broker) {
    let sink = Sink::start();
    sink.refuse(true);
    let (_front, mut client) = front(&broker.at, "again", "");
    for first in 0..5 {
        assert!(post(
            &mut client,
            "",
            &request(first * 10..(first + 1) * 10, 0)
        ));
    }
    let options = "    message_marking: { after: true }
    error_backoff: { enabled: true, initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0 }";
    let exporter = "retry_on_failure: { enabled: false }";
    let config = member(&broker.at, "again", options, &to_sink(&sink, exporter));
    let running = Running::start(&config);
    running.line("it is read again in");
    sink.refuse(false);
    sink.until("all of it", |all| (all.spans.len() == 50).then_some(()));
}

/// Users with passwords, over TLS and in the clear.
fn users_are_known(broker: &Broker) {
    let user = |mechanism: &str, name: &str| {
        format!(
            "    auth: {{ sasl: {{ mechanism: {mechanism}, username: {name}, password: secret }} }}\n"
        )
    };
    let mut ways = vec![("plain", broker.sasl.clone(), user("PLAIN", "plain"))];
    if cfg!(feature = "kafka-tls") {
        let tls = format!("    tls: {{ ca_file: '{}' }}\n", broker.authority);
        let scram = user("SCRAM-SHA-256", "scram");
        ways.push(("scram", broker.sasl.clone(), scram.clone()));
        ways.push(("tls", broker.tls.clone(), scram + &tls));
    }
    for (topic, at, options) in ways {
        let sink = Sink::start();
        let (_front, mut client) = front(&at, topic, &options);
        assert!(post(&mut client, "", &request(1..2, 0)), "{topic}");
        let config = member(&at, topic, &options, &to_sink(&sink, ""));
        let _member = Running::start(&config);
        sink.until(topic, |all| (all.spans.len() == 1).then_some(()));
    }
    let sink = Sink::start();
    let wrong = user("PLAIN", "nobody");
    let config = member(&broker.sasl, "plain", &wrong, &to_sink(&sink, ""));
    let stranger = Running::start(&config);
    stranger.line("uthentication");
}

/// A member that ends leaves the traces that wait to the next one, which decides on them as a
/// whole.
fn an_end_decides_nothing(broker: &Broker) {
    let sink = Sink::start();
    let (_front, mut client) = front(&broker.at, "ends", "");
    let config = |wait| member(&broker.at, "ends", "", &fleet::sampler(&sink, wait));
    assert!(post(&mut client, "", &request(5..6, 0)));
    let page = "telemetry: { metrics: { readers: [ { pull: { exporter: { prometheus: { host: 127.0.0.1, port: 0 } } } } ] } }";
    let mut first = Running::start(&config("60s").replace(NO_METRICS, page));
    let metrics = first.address("metrics").parse().expect("an address");
    let taken = "otelcol_receiver_accepted_spans{receiver=\"kafka\",transport=\"kafka\"} 2\n";
    eventually("the first part", || {
        let page = Client::connect(metrics).get("/metrics").text();
        page.contains(taken).then_some(())
    });
    let page = Client::connect(metrics).get("/metrics").text();
    for name in ["records", "current_offset", "bytes_uncompressed"] {
        let line =
            format!("otelcol_kafka_receiver_{name}{{receiver=\"kafka\",topic=\"ends\",partition=");
        assert!(page.contains(&line), "{line}\n{page}");
    }
    first.signal("TERM");
    assert!(first.child.wait().expect("its end").success());
    assert!(sink.all().spans.is_empty());
    assert!((1..PARTS).all(|part| post(&mut client, "", &request(5..6, part))));
    let _second = Running::start(&config("1s"));
    let whole = (1..=SPANS).map(|number| (number, 1)).collect();
    sink.until("a whole trace, once", |all| {
        (all.spans.get(&5) == Some(&whole)).then_some(())
    });
}

/// What was acknowledged is there after the broker was away, and producers and members go on.
fn a_broker_may_die(broker: &mut Broker) {
    let sink = Sink::start();
    let (_front, mut client) = front(&broker.at, "away", "");
    let config = member(&broker.at, "away", "", &to_sink(&sink, ""));
    assert!(post(&mut client, "", &request(0..10, 0)));
    let _member = Running::start(&config);
    sink.until("the first traces", |all| {
        (all.spans.len() == 10).then_some(())
    });
    broker.die();
    broker.come_back();
    assert!(post(&mut client, "", &request(10..20, 0)));
    sink.until("all traces", |all| (all.spans.len() == 20).then_some(()));
}

/// A member ends though its brokers are away.
fn an_end_does_not_wait_for_a_broker(broker: &mut Broker) {
    let sink = Sink::start();
    let (_front, mut client) = front(&broker.at, "gone", "");
    let config = member(&broker.at, "gone", "", &to_sink(&sink, ""));
    assert!(post(&mut client, "", &request(1..2, 0)));
    let mut running = Running::start(&config);
    sink.until("a trace", |all| (all.spans.len() == 1).then_some(()));
    broker.die();
    running.signal("TERM");
    let ended = eventually("the end", || running.child.try_wait().expect("a child"));
    assert!(ended.success());
}

/// How long the load on the fleet lasts.
fn duration() -> Duration {
    let seconds = std::env::var("SPANGATE_KAFKA_SECONDS");
    let seconds = seconds.ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(8))
}
