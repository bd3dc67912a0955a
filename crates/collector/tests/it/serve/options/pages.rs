//! Pages about a collector, and what it tells of itself.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::tls::{Authority, served};
use super::*;

async fn get(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), more: &str) -> String {
    let request = format!("GET /up HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer));
    read.await.expect("in time").expect("an answer");
    answer
}

#[tokio::test]
async fn probes_come_over_a_socket_and_say_who_they_are() {
    let socket = TempFile::new();
    let path = socket.0.display();
    let extensions = format!(
        "extensions: {{ bearertokenauth: {{ token: key }}, health_check: {{ endpoint: '{path}', transport: unix, path: /up, \
         response_headers: {{ x-own: here }}, response_body: {{ healthy: fine }}, auth: {{ authenticator: bearertokenauth }} }} }}"
    );
    let probed = keeper(
        &format!("grpc: {ANYWHERE}"),
        &extensions,
        "bearertokenauth, health_check",
    );
    for (fields, status, body) in [
        (
            "authorization: Bearer key\r\n",
            "HTTP/1.1 200",
            "\r\n\r\nfine",
        ),
        ("", "HTTP/1.1 401", ""),
        // A question of a browser is no way around.
        (
            "origin: x\r\naccess-control-request-method: GET\r\n",
            "HTTP/1.1 401",
            "",
        ),
    ] {
        let stream = tokio::net::UnixStream::connect(&socket.0).await;
        let answer = get(&mut stream.expect("a connection"), fields).await;
        assert!(
            answer.starts_with(status) && answer.ends_with(body),
            "{answer}"
        );
        assert_eq!(answer.contains("x-own: here"), status.ends_with("200"));
    }
    probed.end().await;
    // Nobody listens any more.
    assert!(tokio::net::UnixStream::connect(&socket.0).await.is_err());
}

#[tokio::test]
async fn pages_tell_what_the_settings_say_until_the_end() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = dead.local_addr().expect("an address");
    for name in ["health_check", "healthcheckv2"] {
        let probed = start(&format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\n\
             extensions: {{ {name}: {{ endpoint: '127.0.0.1:0', path: /up, response_body: {{ healthy: fine, unhealthy: unwell }} }} }}\n\
             exporters: {{ otlphttp: {{ endpoint: 'http://{target}', timeout: 2s, retry_on_failure: {{ enabled: false }} }} }}\n\
             service: {{ {NO_METRICS}, extensions: [{name}], pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}"
        ));
        let at = address(&probed, name);
        let ask = async || {
            let stream = tokio::net::TcpStream::connect(&at).await;
            get(&mut stream.expect("a page"), "").await
        };
        let answer = ask().await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nfine"),
            "{answer}"
        );
        // While the last request is sent, it says that it ends.
        taken(&grpc(&probed), request(0, 10)).await;
        let ending = tokio::spawn(probed.end());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = ask().await;
            if answer.starts_with("HTTP/1.1 503") && answer.ends_with("\r\n\r\nunwell") {
                break;
            }
            assert!(Instant::now() < deadline, "{answer}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ending.await.expect("it ends");
    }
}

#[tokio::test]
async fn own_metrics_are_sent_in_every_way() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let (grpc_at, http_at) = (address(&sink, "otlp grpc"), address(&sink, "otlp http"));
    let reader = |protocol: &str, endpoint: &str| {
        format!(
            "{{ periodic: {{ interval: 20, exporter: {{ otlp: {{ protocol: {protocol}, endpoint: '{endpoint}', insecure: true, compression: gzip }} }} }} }}"
        )
    };
    let readers = [
        reader("http/protobuf", &format!("http://{http_at}")),
        reader("http/json", &format!("http://{http_at}/v1/metrics")),
        reader("grpc", &grpc_at),
    ];
    for reader in readers {
        let told = collector(&format!(
            "processors: {{ probabilistic_sampler: {{ sampling_percentage: 100, mode: proportional }} }}\nexporters: {{ nop: }}\n\
             service: {{ telemetry: {{ resource: {{ service.name: told, service.version: }}, metrics: {{ readers: [ {reader} ] }} }}, \
             pipelines: {{ traces: {{ receivers: [otlp], processors: [probabilistic_sampler], exporters: [nop] }} }} }}"
        ));
        let _ = std::fs::write(&file.0, "");
        taken(&grpc(&told), request(1, 10)).await;
        let has_all = || {
            let text = std::fs::read_to_string(&file.0).unwrap_or_default();
            let sampled =
                r#""name":"otelcol_processor_probabilistic_sampler_count_traces_sampled""#;
            text.lines().any(|line| {
                line.contains(sampled)
                    && line.contains(r#""stringValue":"told""#)
                    && line.contains(r#""stringValue":"trace_id_w3c""#)
                    && !line.contains("service.version")
            })
        };
        until("they are told", has_all).await;
        told.end().await;
    }
}

#[tokio::test]
async fn the_status_of_a_pipeline_is_that_of_its_exporters() {
    let extensions = "extensions: { healthcheckv2: { use_v2: true, component_health: { include_recoverable_errors: true, recovery_duration: 1ns }, \
                      http: { endpoint: '127.0.0.1:0', status: { path: /up } } } }";
    // Nobody listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead_at = dead.local_addr().expect("an address");
    drop(dead);
    let probed = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\n{extensions}\nprocessors: {{ batch: }}\n\
         exporters: {{ nop: , otlphttp: {{ endpoint: 'http://{dead_at}' }} }}\n\
         service: {{ {NO_METRICS}, extensions: [healthcheckv2], pipelines: {{ \
         traces: {{ receivers: [otlp], exporters: [otlphttp] }}, logs: {{ receivers: [otlp], processors: [batch], exporters: [nop] }} }} }}"
    ));
    let page = address(&probed, "healthcheckv2");
    let ask = async |query: &str| -> (String, serde_json::Value) {
        let mut stream = tokio::net::TcpStream::connect(&page).await.expect("a page");
        let request = format!("GET /up{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let body = serde_json::from_str(body).unwrap_or_default();
        (head[..12].to_owned(), body)
    };
    let (head, body) = ask("").await;
    assert_eq!(
        (&*head, &body["status"]),
        ("HTTP/1.1 200", &"StatusOK".into())
    );
    assert!(body["components"].is_null());
    taken(&grpc(&probed), request(0, 10)).await;
    until("it fails", || {
        probed
            .view
            .senders
            .iter()
            .any(|(.., one)| one.failing().is_some())
    })
    .await;
    let (head, body) = ask("?verbose").await;
    assert_eq!(head, "HTTP/1.1 500");
    let failing = &body["components"]["pipeline:traces"]["components"]["exporter:otlphttp"];
    assert_eq!(failing["status"], "StatusRecoverableError");
    assert!(failing["error"].is_string() && body["healthy"] == false);
    let logs = &body["components"]["pipeline:logs"]["components"];
    assert_eq!(logs["processor:batch"]["status"], "StatusOK");
    assert_eq!(logs["receiver:otlp"]["healthy"], true);
    let (head, body) = ask("?pipeline=logs").await;
    assert_eq!(
        (&*head, &body["status"]),
        ("HTTP/1.1 200", &"StatusOK".into())
    );
    assert_eq!(ask("?pipeline=traces").await.0, "HTTP/1.1 500");
    assert_eq!(ask("?pipeline=other").await.0, "HTTP/1.1 404");
}

#[tokio::test]
async fn the_page_of_metrics_is_where_the_settings_say() {
    let pull = |more: &str| {
        format!(
            "metrics: {{ readers: [ {{ pull: {{ exporter: {{ prometheus: {{ host: 127.0.0.2, port: 0 {more} }} }} }} }} ] }}"
        )
    };
    for telemetry in [pull(""), "metrics: { address: '127.0.0.2:0' }".to_owned()] {
        let told = collector(&format!(
            "exporters: {{ nop: }}\nservice: {{ telemetry: {{ {telemetry} }}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
        ));
        let at = address(&told, "metrics");
        let port = at.strip_prefix("127.0.0.2:").expect(&at);
        assert!(port != "8888" && port != "0", "{at}");
    }
}

/// A collector that sends its metrics by a reader with these options.
fn telling(options: &str) -> Collector {
    collector(&format!(
        "exporters: {{ nop: }}\nservice: {{ telemetry: {{ metrics: {{ readers: [ {{ periodic: {{ {options} }} }} ] }} }}, \
         pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ))
}

#[tokio::test]
async fn a_reader_sends_what_the_settings_say() {
    let (at, came) = super::exporter::back_end(200).await;
    let told = telling(&format!(
        "interval: 20, exporter: {{ otlp: {{ protocol: http/protobuf, endpoint: 'http://{at}', headers: {{ x-key: word }}, compression: gzip }} }}"
    ));
    until("they come", || !came.lock().expect("no panic").is_empty()).await;
    let (path, fields, _) = came.lock().expect("no panic")[0].clone();
    assert_eq!(path, "/v1/metrics");
    assert_eq!(fields["x-key"], "word");
    assert_eq!(fields["content-encoding"], "gzip");
    told.end().await;
    // One that does not answer is given up, and asked again.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let silent = silent.expect("a listener");
    let at = silent.local_addr().expect("an address");
    let _told = telling(&format!(
        "interval: 20, timeout: 100, exporter: {{ otlp: {{ protocol: http/protobuf, endpoint: 'http://{at}' }} }}"
    ));
    let mut connections = Vec::new();
    for _ in 0..3 {
        let next = tokio::time::timeout(PATIENCE, silent.accept()).await;
        connections.push(next.expect("in time").expect("a connection"));
    }
}

#[tokio::test]
async fn a_reader_has_a_certificate_and_trusts_an_authority() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let [certificate, key] = authority.signed("127.0.0.1");
    let [own, own_key] = clients.signed("client.example");
    let client_ca = format!("client_ca_file: '{}'", clients.file());
    let sink = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ {} }} }} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [otlp], exporters: [nop] }} }} }}",
        served("http", &certificate, &key, &client_ca)
    ));
    let _told = telling(&format!(
        "interval: 20, exporter: {{ otlp: {{ protocol: http/protobuf, endpoint: 'https://{}', certificate: '{}', client_certificate: '{}', client_key: '{}' }} }}",
        address(&sink, "otlp http"),
        authority.file(),
        own.0.display(),
        own_key.0.display()
    ));
    let metrics = &sink.view.accounts[Signal::Metrics as usize];
    until("they come", || metrics.balance().accepted > 0).await;
}

/// Sends traces through a load balancer to these backends. Returns its status page.
async fn balanced(backends: &str, failing: usize) -> (String, serde_json::Value) {
    let probed = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\n\
         extensions: {{ healthcheckv2: {{ use_v2: true, http: {ANYWHERE}, \
           component_health: {{ include_recoverable_errors: true, recovery_duration: 1ns }} }} }}\n\
         exporters: {{ loadbalancing: {{ protocol: {{ otlp: {{ tls: {{ insecure: true }} }} }}, resolver: {{ static: {{ hostnames: [{backends}] }} }} }} }}\n\
         service: {{ {NO_METRICS}, extensions: [healthcheckv2], pipelines: {{ traces: {{ receivers: [otlp], exporters: [loadbalancing] }} }} }}"
    ));
    taken(&grpc(&probed), request(0, 100)).await;
    let (_, balancer) = &probed.view.backends[0];
    until("attempts fail", || {
        let backends = balancer.view();
        let failing_now = backends.iter().filter(|one| one.sender.failing().is_some());
        failing_now.count() == failing
    })
    .await;
    let page = address(&probed, "healthcheckv2");
    let mut stream = tokio::net::TcpStream::connect(&page).await.expect("a page");
    let request = b"GET /status?verbose HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let exporter = &body["components"]["pipeline:traces"]["components"]["exporter:loadbalancing"];
    (head[..12].to_owned(), exporter.clone())
}

#[tokio::test]
async fn a_load_balancer_fails_when_all_of_its_backends_do() {
    // Nobody listens there.
    let (head, exporter) = balanced("'127.0.0.1:1'", 1).await;
    assert_eq!(head, "HTTP/1.1 500");
    assert_eq!(exporter["status"], "StatusRecoverableError");
    let error = exporter["error"].as_str().expect("an error");
    assert!(
        error.starts_with("1 of 1 backends fail, such as 127.0.0.1:1: "),
        "{error}"
    );
    let sink = keeper("grpc: { endpoint: '127.0.0.1:0' }", "", "");
    let good = address(&sink, "otlp grpc");
    let (head, exporter) = balanced(&format!("'127.0.0.1:1', '{good}'"), 1).await;
    assert_eq!(head, "HTTP/1.1 200");
    assert_eq!(exporter["status"], "StatusRecoverableError");
    assert_eq!(exporter["healthy"], true);
    let (head, exporter) = balanced(&format!("'{good}'"), 0).await;
    assert_eq!(
        (&*head, &exporter["status"]),
        ("HTTP/1.1 200", &"StatusOK".into())
    );
}
