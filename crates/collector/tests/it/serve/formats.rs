//! Zipkin's and Jaeger's spans, and the load balancer, over real sockets.

use std::io::Write as _;

use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use otlp::write;

use super::*;

/// Fields of a request, by name.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// Sends a request over HTTP/1.1: the status, `Retry-After` and the body.
pub async fn post(
    address: &str,
    path: &str,
    fields: Fields<'_>,
    body: Vec<u8>,
) -> (StatusCode, Option<String>, String) {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP");
    tokio::spawn(connection);
    let mut request = Request::post(path).header("host", address);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::<Bytes>::from(body)).expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    let after = response.headers().get("retry-after");
    let after = after.map(|after| after.to_str().expect("a text").to_owned());
    let status = response.status();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, after, String::from_utf8_lossy(&body).into_owned())
}

/// A collector with this receiver, which writes what it gets to a file.
fn into_file(receiver: &str, file: &TempFile) -> spangate_collector::run::Collector {
    start(&format!(
        "receivers: {{ {receiver} }}\nexporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [{}], exporters: [file] }} }} }}",
        file.0.display(),
        receiver.split(':').next().expect("a name"),
    ))
}

const JSON: (&str, &str) = ("content-type", "application/json");

pub fn zipkin_span(id: &str, name: &str) -> String {
    format!(
        r#"[{{"traceId":"5af7183fb1d4cf5f","id":"{id}","name":"{name}","kind":"SERVER","timestamp":1000,"duration":5,"localEndpoint":{{"serviceName":"shop"}},"tags":{{"n":"1"}}}}]"#
    )
}

#[tokio::test]
async fn zipkin_is_taken_on_all_its_paths() {
    let file = TempFile::new();
    let zipkin = into_file(
        "zipkin: { endpoint: '127.0.0.1:0', parse_string_tags: true, response_headers: { x-a: b } }",
        &file,
    );
    let address = address(&zipkin, "zipkin http");
    let gzipped = {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(zipkin_span("2", "gzip").as_bytes())
            .expect("gzip");
        gzip.finish().expect("gzip")
    };
    let mut span = Vec::new();
    write::bytes(&mut span, 1, &[7; 16]);
    write::bytes(&mut span, 3, &[3; 8]);
    write::bytes(&mut span, 5, b"protobuf");
    let mut list = Vec::new();
    write::bytes(&mut list, 1, &span);
    let v1 = r#"[{"traceId":"1","id":"5","name":"v1","annotations":[{"timestamp":9,"value":"cs","endpoint":{"serviceName":"old"}}]}]"#;
    let requests: [(&str, Fields<'_>, Vec<u8>); 5] = [
        ("/api/v2/spans", &[JSON], zipkin_span("1", "json").into()),
        (
            "/api/v2/spans",
            &[JSON, ("content-encoding", "gzip")],
            gzipped,
        ),
        (
            "/api/v2/spans",
            &[("content-type", "application/x-protobuf")],
            list,
        ),
        ("/", &[], zipkin_span("4", "root").into()),
        ("/api/v1/spans", &[JSON], v1.into()),
    ];
    for (path, fields, body) in requests {
        let (status, _, body) = post(&address, path, fields, body).await;
        assert_eq!((status, &*body), (StatusCode::ACCEPTED, ""), "{path}");
    }
    let refusals: [(&str, Fields<'_>, &str, u16); 5] = [
        ("/api/v2/spans", &[JSON], "[{}]", 400),
        ("/api/v2/spans", &[("content-encoding", "br")], "[]", 415),
        (
            "/api/v1/spans",
            &[("content-type", "application/x-thrift")],
            "x",
            415,
        ),
        ("/other", &[JSON], "[]", 404),
        (
            "/api/v2/spans",
            &[("content-type", "application/x-protobuf")],
            "garbage",
            400,
        ),
    ];
    for (path, fields, body, expected) in refusals {
        let (status, _, body) = post(&address, path, fields, body.into()).await;
        assert_eq!(status, expected, "{path}: {body}");
        assert!(!body.is_empty());
    }
    let [balance, ..] = zipkin.end().await;
    assert_eq!(
        (balance.accepted, balance.exported, balance.malformed),
        (5, 5, 2)
    );
    let spans = file.spans();
    let names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["json", "gzip", "protobuf", "root", "v1"]);
    assert_eq!(spans[0]["traceId"], "00000000000000005af7183fb1d4cf5f");
    assert_eq!(spans[0]["kind"], 2);
    // Tags that look like numbers are numbers.
    let tag = |span: &serde_json::Value| {
        let mut attributes = span["attributes"].as_array().expect("attributes").iter();
        let own = attributes.find(|one| one["key"] == "n").expect("a tag");
        own["value"].clone()
    };
    assert!(tag(&spans[0])["intValue"].is_string(), "{}", spans[0]);
}

#[tokio::test]
async fn without_room_zipkin_is_told_when() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    let full = start(&format!(
        "receivers: {{ zipkin: {{ endpoint: '127.0.0.1:0' }} }}\nexporters: {{ otlphttp: {{ endpoint: 'http://{target}', timeout: 60s, sending_queue: {{ queue_size: 1, num_consumers: 1 }} }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [zipkin], exporters: [otlphttp] }} }} }}"
    ));
    let address = address(&full, "zipkin http");
    let mut taken = 0;
    let (status, after) = loop {
        let (status, after, _) = post(
            &address,
            "/api/v2/spans",
            &[JSON],
            zipkin_span("1", "a").into(),
        )
        .await;
        if status != StatusCode::ACCEPTED {
            break (status, after);
        }
        taken += 1;
        assert!(taken <= 2, "there is no bound");
        let sender = &full.view.senders[0].2;
        until("the first is on its way", || {
            sender.depth().0 < 1 || taken == 2
        })
        .await;
    };
    assert_eq!(
        (status, after.as_deref()),
        (StatusCode::TOO_MANY_REQUESTS, Some("1"))
    );
    let balance = traces(&full);
    assert_eq!((balance.accepted, balance.refused), (taken, 1));
}

/// A `Batch` in the binary protocol: a process and a span without anything else.
fn thrift(name: &str) -> Vec<u8> {
    let text = |id: u8, text: &str| {
        [
            &[11, 0, id][..],
            &(text.len() as u32).to_be_bytes(),
            text.as_bytes(),
        ]
        .concat()
    };
    let long = |id: u8, value: i64| [&[10, 0, id][..], &value.to_be_bytes()].concat();
    [
        &[12, 0, 1][..],
        &text(1, "shop"),
        &[0, 15, 0, 2, 12, 0, 0, 0, 1],
        &long(1, 9),
        &long(2, 7),
        &long(3, 3),
        &text(5, name),
        &long(8, 1000),
        &long(9, 5),
        &[0, 0],
    ]
    .concat()
}

#[tokio::test]
async fn jaeger_is_taken_over_all_its_protocols() {
    let file = TempFile::new();
    let jaeger = into_file(
        "jaeger: { protocols: { grpc: { endpoint: '127.0.0.1:0' }, thrift_http: { endpoint: '127.0.0.1:0' }, thrift_compact: { endpoint: '127.0.0.1:0', max_packet_size: 200 }, thrift_binary: { endpoint: '127.0.0.1:0', max_packet_size: 300, socket_buffer_size: 100000 } } }",
        &file,
    );
    // HTTP.
    let http = address(&jaeger, "jaeger thrift_http");
    let media = [("content-type", "application/x-thrift; charset=utf-8")];
    let (status, _, _) = post(
        &http,
        "/api/traces?format=jaeger.thrift",
        &media,
        thrift("http"),
    )
    .await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (status, _, why) = post(&http, "/api/traces", &[JSON], thrift("http")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
    let (status, _, _) = post(&http, "/api/traces", &media, b"garbage".to_vec()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // UDP: what is no batch, and what is too long, is counted.
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0")
        .await
        .expect("a socket");
    let binary = address(&jaeger, "jaeger thrift_binary");
    let head = [
        &[0x80, 1, 0, 4, 0, 0, 0, 9][..],
        b"emitBatch",
        &[0, 0, 0, 0, 12, 0, 1],
    ]
    .concat();
    let datagram = |name: &str| [&head[..], &thrift(name), &[0]].concat();
    socket.send_to(b"garbage", &binary).await.expect("sent");
    socket
        .send_to(&datagram(&"x".repeat(300)), &binary)
        .await
        .expect("sent");
    socket
        .send_to(&datagram("udp"), &binary)
        .await
        .expect("sent");
    // The compact protocol: a process, and one span of two fields.
    let compact = [
        &[0x82, 0x81, 0, 9][..],
        b"emitBatch",
        &[
            0x1c, 0x1c, 0x18, 1, b's', 0, 0x19, 0x1c, 0x16, 18, 0x48, 1, b'c', 0, 0, 0,
        ],
    ]
    .concat();
    let compact_at = address(&jaeger, "jaeger thrift_compact");
    // What follows a message is not looked at, but for its length.
    let long = [&compact[..], &[0; 200]].concat();
    for datagram in [&long, &compact] {
        let sent = socket.send_to(datagram, &compact_at).await;
        sent.expect("sent");
    }
    until("the datagrams", || {
        let balance = traces(&jaeger);
        (balance.accepted, balance.malformed) == (3, 4)
    })
    .await;
    // gRPC.
    let mut span = Vec::new();
    write::bytes(&mut span, 1, &[7; 16]);
    write::bytes(&mut span, 2, &[3; 8]);
    write::bytes(&mut span, 3, b"grpc");
    let mut batch = Vec::new();
    write::bytes(&mut batch, 1, &span);
    let mut request = Vec::new();
    write::bytes(&mut request, 1, &batch);
    let grpc = address(&jaeger, "jaeger grpc");
    let service = "/jaeger.api_v2.CollectorService/PostSpans";
    assert_eq!(call(&grpc, service, &request).await, "0");
    assert_eq!(call(&grpc, service, b"garbage").await, "3");
    assert_eq!(
        call(
            &grpc,
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            b""
        )
        .await,
        "12"
    );
    let [balance, ..] = jaeger.end().await;
    assert_eq!(
        (balance.accepted, balance.exported, balance.malformed),
        (4, 4, 5)
    );
    let spans = file.spans();
    let mut names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap_or_default())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["c", "grpc", "http", "udp"]);
}

/// The `grpc-status` of a call.
pub async fn call(address: &str, path: &str, message: &[u8]) -> String {
    call_with(address, path, &[], message).await
}

/// The same, with a message in some coding.
async fn call_in(coding: &str, address: &str, path: &str, message: &[u8]) -> String {
    call_with(address, path, &[("grpc-encoding", coding)], message).await
}

/// The same, with more fields.
pub async fn call_with(address: &str, path: &str, fields: Fields<'_>, message: &[u8]) -> String {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let flag = u8::from(fields.iter().any(|(name, _)| *name == "grpc-encoding"));
    let framed = [&[flag][..], &(message.len() as u32).to_be_bytes(), message].concat();
    let mut request = Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Full::<Bytes>::from(framed))
        .expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    let status = |fields: &hyper::HeaderMap| {
        let status = fields.get("grpc-status")?;
        Some(status.to_str().expect("a text").to_owned())
    };
    let head = status(response.headers());
    let body = response.into_body().collect().await.expect("a body");
    let tail = body.trailers().and_then(status);
    head.or(tail).expect("a status")
}

#[tokio::test]
async fn collectors_in_go_may_compress_with_snappy() {
    let sink = collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    let at = address(&sink, "otlp grpc");
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let framed = |message: &[u8]| {
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(message).expect("memory");
        encoder.into_inner().expect("memory")
    };
    assert_eq!(
        call_in("snappy", &at, path, &framed(&request(0, 10))).await,
        "0"
    );
    assert_eq!(call_in("snappy", &at, path, b"garbage").await, "3");
    assert_eq!(call_in("lz4", &at, path, &request(0, 10)).await, "12");
    // Zeros of 64 MiB, of which 4 are taken.
    assert_eq!(
        call_in("snappy", &at, path, &framed(&vec![0; 64 << 20])).await,
        "8"
    );
    let balance = traces(&sink);
    assert_eq!((balance.accepted, balance.exported), (20, 20));
}

/// Who has which traces.
fn traces_of(file: &TempFile) -> std::collections::BTreeSet<String> {
    let spans = file.spans().into_iter();
    spans
        .map(|span| span["traceId"].as_str().expect("an identifier").to_owned())
        .collect()
}

#[tokio::test]
async fn each_trace_goes_to_one_backend_whole() {
    all_to_their_backends("").await;
}

#[tokio::test]
async fn each_backend_has_requests_put_together_that_senders_may_wait_for() {
    let queue = "sending_queue: { wait_for_result: true, batch: { flush_timeout: 10ms, max_size: 10000 } },";
    all_to_their_backends(queue).await;
    all_to_their_backends("sending_queue: { enabled: false },").await;
}

/// Sends traces to three backends, each with this option of a queue.
async fn all_to_their_backends(queue: &str) {
    let files = [TempFile::new(), TempFile::new(), TempFile::new()];
    let sinks = [0, 1, 2].map(|number: usize| {
        collector(&format!(
            "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
            files[number].0.display()
        ))
    });
    let names = sinks.each_ref().map(|sink| address(sink, "otlp grpc"));
    let balancer = collector(&format!(
        "exporters: {{ loadbalancing: {{ protocol: {{ otlp: {{ {queue} tls: {{ insecure: true }}, compression: none }} }}, resolver: {{ static: {{ hostnames: {names:?} }} }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [loadbalancing] }} }} }}"
    ));
    let client = grpc(&balancer);
    for number in 0..4 {
        let outcome = send(&client, request(number * 50, 100)).await;
        assert!(
            matches!(outcome, Outcome::Taken { rejected: 0, .. }),
            "{outcome:?}"
        );
    }
    until("all is sent", || traces(&balancer).held() == 0).await;
    let view = balancer.view.backends[0].1.view();
    assert_eq!(view.len(), 3);
    assert!(view.iter().all(|backend| backend.attempts.failed() == 0));
    let [balance, ..] = balancer.end().await;
    assert_eq!((balance.accepted, balance.exported), (800, 800));
    for sink in sinks {
        sink.end().await;
    }
    let all = files.each_ref().map(traces_of);
    assert_eq!(all.iter().map(|traces| traces.len()).sum::<usize>(), 250);
    assert!(all.iter().all(|traces| !traces.is_empty()));
    assert!(
        all[0].is_disjoint(&all[1]) && all[1].is_disjoint(&all[2]) && all[0].is_disjoint(&all[2])
    );
    assert_eq!(
        files.iter().map(|file| file.spans().len()).sum::<usize>(),
        800
    );
    // Two spans of each trace, in each of the requests that had it.
    let one = ExportTraceServiceRequest::decode(request(0, 1)).expect("a request");
    assert_eq!(one.resource_spans[0].scope_spans[0].spans.len(), 2);
}

/// An address that no other test uses, where nobody listens yet.
fn nobody_yet() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.77:0").expect("a port");
    listener.local_addr().expect("an address")
}

/// What a backend does not take waits in the queue of the load balancer, and the others get what is
/// theirs, once.
#[tokio::test]
async fn a_queue_before_all_backends_tries_again() {
    retried("sending_queue: { enabled: false }, retry_on_failure: { enabled: false }, timeout: 1s")
        .await;
    // The queues of the backends are small, and fill.
    retried("sending_queue: { queue_size: 1, num_consumers: 1 }, timeout: 1s").await;
}

async fn retried(backends: &str) {
    let files = [TempFile::new(), TempFile::new()];
    let sink = |file: &TempFile, at: &str| {
        start(&format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '{at}' }} }} }} }}\n\
             exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
            file.0.display()
        ))
    };
    let away = nobody_yet().to_string();
    let first = sink(&files[0], "127.0.0.1:0");
    let names = [address(&first, "otlp grpc"), away.clone()];
    let retry = "enabled: true, initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s";
    let balancer = collector(&format!(
        "exporters: {{ loadbalancing: {{ sending_queue: {{ queue_size: 100 }}, retry_on_failure: {{ {retry} }}, \
         protocol: {{ otlp: {{ {backends}, tls: {{ insecure: true }}, compression: none }} }}, resolver: {{ static: {{ hostnames: {names:?} }} }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [loadbalancing] }} }} }}"
    ));
    let client = grpc(&balancer);
    for number in 0..5 {
        let outcome = send(&client, request(number * 50, 50)).await;
        let taken = matches!(outcome, Outcome::Taken { rejected: 0, .. });
        assert!(taken, "{outcome:?}");
    }
    // The one that lives has its part long before the other comes.
    until("one has its part", || {
        files[0].0.exists() && files[0].spans().len() > 100
    })
    .await;
    assert!(traces(&balancer).held() > 0);
    let second = sink(&files[1], &away);
    until("all is sent", || traces(&balancer).held() == 0).await;
    let [balance, ..] = balancer.end().await;
    assert_eq!((balance.accepted, balance.exported), (500, 500));
    first.end().await;
    second.end().await;
    let all = files.each_ref().map(traces_of);
    assert!(all.iter().all(|traces| traces.len() > 50));
    assert!(all[0].is_disjoint(&all[1]));
    let spans = files.each_ref().map(|file| file.spans().len());
    assert_eq!(spans.iter().sum::<usize>(), 500, "none twice: {spans:?}");
}

#[tokio::test]
async fn backends_have_so_much_time_to_take_a_batch() {
    // It takes connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let name = silent.local_addr().expect("an address").to_string();
    let balancer = collector(&format!(
        "exporters: {{ loadbalancing: {{ timeout: 200ms, \
         protocol: {{ otlp: {{ timeout: 1h, sending_queue: {{ enabled: false }}, tls: {{ insecure: true }} }} }}, resolver: {{ static: {{ hostnames: ['{name}'] }} }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [loadbalancing] }} }} }}"
    ));
    let outcome = send(&grpc(&balancer), request(0, 50)).await;
    assert!(!matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    let balance = traces(&balancer);
    assert_eq!((balance.failed, balance.held()), (100, 0));
}

#[tokio::test]
async fn the_addresses_of_a_host_are_backends() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let address = address(&sink, "otlp grpc");
    let (host, port) = address.rsplit_once(':').expect("a port");
    let balancer = collector(&format!(
        "exporters: {{ load_balancing: {{ routing_key: service, protocol: {{ otlp: {{ tls: {{ insecure: true }} }} }}, resolver: {{ dns: {{ hostname: '{host}', port: '{port}', timeout: 20s }} }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [load_balancing] }} }} }}"
    ));
    let client = grpc(&balancer);
    // Until the host is resolved senders are told to come again.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match send(&client, request(0, 10)).await {
            Outcome::Taken { .. } => break,
            Outcome::Busy { after, .. } => {
                tokio::time::sleep(after.unwrap_or(Duration::from_millis(50))).await
            }
            Outcome::Refused(why) => panic!("{why}"),
        }
        assert!(tokio::time::Instant::now() < deadline);
    }
    until("all is sent", || traces(&balancer).exported == 20).await;
    let (_, view) = &balancer.view.backends[0];
    assert_eq!(view.view()[0].endpoint, address);
    balancer.end().await;
    sink.end().await;
    assert_eq!(file.spans().len(), 20);
}
