//! Everything that waits is within one budget.

use super::*;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The budget of the collectors below: four fifths of 40 MiB.
const BUDGET_BYTES: u64 = 32 << 20;

/// A collector with that budget, whose memory is never said to be in use.
fn bounded(processors: &str, order: &str, exporters: &str, names: &str) -> Collector {
    let config = load(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }}, http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         processors: {{ memory_limiter: {{ check_interval: 1s, limit_mib: 40 }}, {processors} }}\n\
         exporters: {{ {exporters} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [memory_limiter {order}], exporters: [{names}] }} }} }}"
    ));
    let setup = Setup {
        memory_used_bytes: || 0,
        ..setup()
    };
    let collector = Collector::start(&config, setup);
    let collector = collector.unwrap_or_else(|error| panic!("{}", error.0));
    assert_eq!(collector.view.budget.bytes_max(), BUDGET_BYTES);
    collector
}

/// A request of about a MiB.
fn large(number: u64) -> Bytes {
    let body = request(number * 100_000, 8000);
    assert!((1 << 19..1 << 21).contains(&body.len()), "{}", body.len());
    body
}

#[tokio::test]
async fn what_waits_anywhere_is_within_the_budget() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    let otlp = |name: &str, queue: &str| {
        format!(
            "otlphttp/{name}: {{ endpoint: 'http://{target}', timeout: 1h, sending_queue: {{ queue_size: 100000, {queue} }} }}"
        )
    };
    let (a, b) = (otlp("a", ""), otlp("b", "block_on_overflow: true"));
    let batch = "batch: { timeout: 1h, send_batch_size: 100000000 }";
    let small = "batch: { timeout: 10ms, send_batch_size: 1 }";
    for (processors, order, exporters, names) in [
        ("", "", a.clone(), "otlphttp/a"),
        ("", "", format!("{a}, {b}"), "otlphttp/a, otlphttp/b"),
        (batch, ", batch", a.clone(), "otlphttp/a"),
        (
            small,
            ", batch",
            format!("{a}, {b}"),
            "otlphttp/a, otlphttp/b",
        ),
        (
            "groupbytrace: { wait_duration: 1h }",
            ", groupbytrace",
            a.clone(),
            "otlphttp/a",
        ),
    ] {
        let collector = bounded(processors, order, &exporters, names);
        let client = http(&collector, settings::Compression::None);
        let mut taken_bytes = 0;
        let mut number = 0;
        loop {
            let body = large(number);
            let len = body.len() as u64;
            let sent = tokio::time::timeout(Duration::from_secs(2), send(&client, body)).await;
            assert!(
                collector.view.budget.used_bytes() <= BUDGET_BYTES,
                "{exporters}"
            );
            match sent {
                Ok(Outcome::Taken { .. }) => taken_bytes += len,
                // Refused, or waiting for room that never comes.
                Ok(Outcome::Busy { .. }) | Err(_) => break,
                Ok(other) => panic!("{other:?}"),
            }
            number += 1;
            assert!(
                taken_bytes <= 2 * BUDGET_BYTES,
                "there is no bound: {processors} {exporters}"
            );
        }
        assert!(number > 2, "{number} {processors} {exporters}");
    }
}

#[tokio::test]
async fn bodies_are_within_the_budget_and_give_back_what_they_took() {
    let collector = bounded("", "", "nop: ", "nop");
    let at = address(&collector, "otlp http");
    let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 10000000\r\n\r\n";
    let body = vec![0; 9_000_000];
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&at).await.expect("a server");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        stream.write_all(&body).await.expect("it reads");
        slow.push(stream);
    }
    let used = || collector.view.budget.used_bytes();
    until("all have their room", || used() == 27_000_000).await;
    let mut late = TcpStream::connect(&at).await.expect("a server");
    late.write_all(head.as_bytes()).await.expect("it reads");
    // One byte more than there is room for.
    let rest = usize::try_from(BUDGET_BYTES - used() + 1).expect("a length");
    late.write_all(&body[..rest]).await.expect("it reads");
    let mut answer = [0; 12];
    late.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 429");
    drop((slow, late));
    until("it is given back", || used() == 0).await;
}

#[tokio::test]
async fn lengths_that_are_only_told_keep_nobody_out() {
    let collector = bounded("", "", "nop: ", "nop");
    let at = address(&collector, "otlp http");
    let mut idle = Vec::new();
    for coding in ["identity", "gzip", "snappy"].repeat(10) {
        let mut stream = TcpStream::connect(&at).await.expect("a server");
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-encoding: {coding}\r\n\
             content-length: 20000000\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut answer = [0; 12];
        // The collector says so when it begins to read the body.
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 100");
        idle.push(stream);
    }
    // One that sends little has memory for little.
    for stream in &mut idle {
        stream.write_all(&[0; 7]).await.expect("it reads");
    }
    let used = || collector.view.budget.used_bytes();
    let came = 7 * idle.len() as u64;
    until("what came is charged", || used() == came).await;
    let outcome = send(&http(&collector, settings::Compression::None), large(0)).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
}

/// A body that tells its length and sends only the prefix of a message of that length.
struct OnlyTold(Option<Bytes>);

/// Bytes of the message that is never sent.
const TOLD_BYTES: u32 = 4 << 20;

impl hyper::body::Body for OnlyTold {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(data) => std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(data)))),
            None => std::task::Poll::Pending,
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(u64::from(TOLD_BYTES) + 5)
    }
}

#[tokio::test]
async fn lengths_that_are_only_told_over_grpc_keep_nobody_out() {
    let collector = bounded("", "", "nop: ", "nop");
    let at = address(&collector, "otlp grpc");
    let stream = TcpStream::connect(&at).await.expect("a server");
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(stream);
    let handshake = hyper::client::conn::http2::handshake(executor, io);
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let prefix = [&[0][..], &TOLD_BYTES.to_be_bytes()].concat();
        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let request = hyper::Request::post(format!("http://{at}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(OnlyTold(Some(prefix.into())));
        let response = sender.send_request(request.expect("a request"));
        waiting.push(tokio::spawn(response));
    }
    let used = || collector.view.budget.used_bytes();
    until("the prefixes", || used() == 5 * 20).await;
    let outcome = send(&grpc(&collector), large(0)).await;
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_bomb_of_json_takes_no_more_than_its_two_forms() {
    let collector = bounded("", "", "nop: ", "nop");
    let at = address(&collector, "otlp http");
    let spans = "{},".repeat(6_000_000);
    let json = format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}{{}}]}}]}}]}}");
    let post = |json: String| {
        let at = at.clone();
        async move { post_as(&at, "/v1/traces", "application/json", json.as_bytes()).await }
    };
    // Of 18 MB there is room for one form only, of 12 for both; spans without identifiers are none
    // for the pipeline to mix.
    assert_eq!(post(json).await, 429);
    let spans = "{},".repeat(4_000_000);
    let json = format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}{{}}]}}]}}]}}");
    assert_eq!(post(json).await, 200);
    assert_eq!(traces(&collector).accepted, 4_000_001);
    until("it is given back", || {
        collector.view.budget.used_bytes() == 0
    })
    .await;
}
