//! What an operator reads in the log.

use super::*;

/// The lines with a text in them.
fn with(lines: &Mutex<Vec<String>>, text: &str) -> Vec<String> {
    let lines = lines.lock().expect("no panic");
    lines
        .iter()
        .filter(|line| line.contains(text))
        .cloned()
        .collect()
}

fn logged(rest: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    start_logged(
        Level::Warn,
        &format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }}, http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n{rest}"
        ),
    )
}

#[tokio::test]
async fn refusals_are_told_with_their_reason_but_not_every_time() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let target = dead.local_addr().expect("an address");
    let (full, lines) = logged(&format!(
        "exporters: {{ otlphttp/dead: {{ endpoint: 'http://{target}', timeout: 60s, sending_queue: {{ queue_size: 1, num_consumers: 1 }} }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp/dead] }} }} }}"
    ));
    let client = grpc(&full);
    let mut refused = 0;
    for number in 0..50 {
        let outcome = send(&client, request(number, 1)).await;
        refused += u64::from(matches!(outcome, Outcome::Busy { .. }));
    }
    assert!(refused > 40, "{refused}");
    let said =
        "receiver 'otlp' (grpc): a request is refused: exporter 'otlphttp/dead': its queue is full";
    assert_eq!(with(&lines, "refused"), [said]);
    // Another reason is told by itself, and what came from outside stays on its line.
    let at = address(&full, "otlp http");
    let status = post_as(&at, "/v1/traces", "application/json", b"{\"a\\nb\":1}").await;
    let malformed = post_as(&at, "/v1/traces", "text/plain", b"x").await;
    assert_eq!((status, malformed), (200, 415));
    let status = post_as(
        &at,
        "/v1/traces",
        "application/json",
        b"{\"resourceSpans\":\"a\\u001b[2J\"}",
    );
    assert_eq!(status.await, 400);
    let told = with(&lines, "receiver 'otlp' (http)");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with("the content must be application/x-protobuf or application/json"));
    assert!(!told[1].contains('\u{1b}'), "{told:?}");
}

#[tokio::test]
async fn common_mistakes_of_exporters_are_told_with_their_cure() {
    let sink = collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ));
    let (grpc_at, http_at) = (address(&sink, "otlp grpc"), address(&sink, "otlp http"));
    let tls = "tls: { insecure_skip_verify: true }";
    let cases = [
        (
            format!("otlp/tls: {{ endpoint: '{grpc_at}', {tls} }}"),
            "does not speak TLS: is it on there? For plain text set `tls: {insecure: true}`",
        ),
        (
            format!("otlp/each: {{ endpoint: '{grpc_at}', balancer_name: pick_first, {tls} }}"),
            "does not speak TLS: is it on there?",
        ),
        (
            format!("otlphttp/tls: {{ endpoint: 'https://{http_at}', {tls} }}"),
            "does not speak TLS: is it on there?",
        ),
        (
            format!("otlphttp/grpc: {{ endpoint: 'http://{grpc_at}' }}"),
            "does not speak HTTP/1.1: is this a port of gRPC (4317)? OTLP over HTTP has 4318",
        ),
    ];
    for (exporter, said) in cases {
        let name = exporter.split(':').next().expect("a name");
        let (front, lines) = logged(&format!(
            "exporters: {{ {exporter} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [{name}] }} }} }}"
        ));
        let outcome = send(&grpc(&front), request(0, 1)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        until(&exporter, || !with(&lines, name).is_empty()).await;
        let told = with(&lines, name);
        assert!(told[0].contains(said), "{told:?}");
    }
}
