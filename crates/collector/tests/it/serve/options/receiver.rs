//! Options of receivers of OTLP that answers show.

use super::*;

use super::formats::{call, call_with};
use super::servers::{GRPC_SERVERS, RECEIVERS, http_servers};
use super::tls::Authority;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// All that is answered to some bytes, until the other side ends the connection.
async fn answer(collector: &Collector, name: &str, bytes: &[u8]) -> String {
    let stream = TcpStream::connect(address(collector, name)).await;
    let mut stream = stream.expect("a server");
    stream.write_all(bytes).await.expect("it reads");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("it ends").expect("no reset");
    String::from_utf8_lossy(&answer).to_lowercase()
}

/// A collector with a receiver of traces.
fn keeper_of(receiver: &str) -> Collector {
    let id = receiver.split(':').next().expect("an id");
    start(&format!(
        "receivers: {{ {receiver} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [{id}], exporters: [nop] }} }} }}"
    ))
}

#[tokio::test]
async fn what_is_larger_than_the_settings_say_is_refused() {
    let protocols = "grpc: { endpoint: '127.0.0.1:0', max_recv_msg_size_mib: 1 }, \
                     http: { endpoint: '127.0.0.1:0', max_request_body_size: 1048576 }";
    let sink = keeper(protocols, "", "");
    let large = request(0, 10_000);
    assert!((1 << 20..4 << 20).contains(&large.len()), "{}", large.len());
    for client in [grpc(&sink), http(&sink, settings::Compression::None)] {
        let outcome = send(&client, large.clone()).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        taken(&client, request(0, 1000)).await;
    }
}

#[tokio::test]
async fn signals_have_the_paths_of_the_settings() {
    let http = "http: { endpoint: '127.0.0.1:0', traces_url_path: /t, metrics_url_path: m, logs_url_path: /l }";
    let pipeline = "{ receivers: [otlp], exporters: [nop] }";
    let sink = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ {http} }} }} }}\nexporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {pipeline}, metrics: {pipeline}, logs: {pipeline} }} }}"
    ));
    let at = address(&sink, "otlp http");
    for (path, status) in [
        ("/t", 200),
        ("/m", 200),
        ("/l", 200),
        ("/v1/traces", 404),
        ("/v1/metrics", 404),
        ("/v1/logs", 404),
    ] {
        let answered = post_as(&at, path, "application/x-protobuf", b"").await;
        assert_eq!(answered, status, "{path}");
    }
}

#[tokio::test]
async fn servers_listen_where_they_are_told() {
    const DEFAULTS: [&str; 9] = [
        "4317", "4318", "9411", "14250", "14268", "6831", "6832", "13132", "13133",
    ];
    let everywhere = http_servers().map(|server| (server.name, server.start("")));
    let grpc = GRPC_SERVERS
        .iter()
        .map(|server| (server.name, server.start("")));
    for (name, collector) in everywhere.chain(grpc) {
        let at = address(&collector, name);
        let port = at.strip_prefix("127.0.0.1:").expect("its address");
        assert!(!DEFAULTS.contains(&port), "{name}");
    }
    let udp = keeper_of(
        "jaeger: { protocols: { thrift_compact: { endpoint: '127.0.0.1:0' }, thrift_binary: { endpoint: '127.0.0.1:0' } } }",
    );
    for name in ["jaeger thrift_compact", "jaeger thrift_binary"] {
        let at = address(&udp, name);
        let port = at.strip_prefix("127.0.0.1:").expect("its address");
        assert!(!DEFAULTS.contains(&port), "{name}");
    }
}

#[tokio::test]
async fn answers_have_the_fields_of_the_settings_and_connections_end_after_them() {
    for server in http_servers() {
        let collector =
            server.start("response_headers: { x-own: told }, keep_alives_enabled: false");
        let answer = answer(&collector, server.name, &server.request("")).await;
        assert!(answer.starts_with("http/1.1 20"), "{answer}");
        assert!(answer.contains("\r\nx-own: told\r\n"), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn codings_that_are_not_in_the_settings_are_refused() {
    let sink = keeper(
        "http: { endpoint: '127.0.0.1:0', compression_algorithms: [zstd] }",
        "",
        "",
    );
    taken(&http(&sink, settings::Compression::Zstd), request(0, 10)).await;
    for server in &RECEIVERS {
        let collector = server.start("compression_algorithms: [zstd]");
        let coded = server.request("connection: close\r\ncontent-encoding: gzip\r\n");
        let answer = answer(&collector, server.name, &coded).await;
        assert!(answer.starts_with("http/1.1 415"), "{answer}");
    }
}

#[tokio::test]
async fn zlib_and_deflate_are_two_codings_of_one_format() {
    for (coding, other) in [
        (settings::Compression::Zlib, settings::Compression::Deflate),
        (settings::Compression::Deflate, settings::Compression::Zlib),
    ] {
        let name = format!("{coding:?}").to_lowercase();
        let options =
            format!("http: {{ endpoint: '127.0.0.1:0', compression_algorithms: [{name}] }}");
        let sink = keeper(&options, "", "");
        taken(&http(&sink, coding), request(0, 10)).await;
        let refused = send(&http(&sink, other), request(0, 10)).await;
        assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_body_has_no_more_bytes_than_the_settings_say() {
    for server in &RECEIVERS {
        for (bytes, status) in [(8, "413"), (1000, "20")] {
            let collector = server.start(&format!("max_request_body_size: {bytes}"));
            let request = server.request("connection: close\r\n");
            let answer = answer(&collector, server.name, &request).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status}")),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn browsers_are_told_what_they_may_do() {
    let cors = "cors: { allowed_origins: ['http://*.example'], allowed_headers: [x-key], exposed_headers: [x-told], max_age: 77 }, \
                auth: { authenticator: bearertokenauth }";
    for server in http_servers() {
        let sink = server.start(cors);
        let (_, path) = server.line.split_once(' ').expect("a path");
        let ask = |origin: &str, header: &str| {
            format!(
                "OPTIONS {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: {origin}\r\n\
                 access-control-request-method: POST\r\naccess-control-request-headers: {header}\r\n\r\n"
            )
        };
        let good = ask("http://a.example", "x-key");
        let good = answer(&sink, server.name, good.as_bytes()).await;
        for field in [
            "http/1.1 204",
            "access-control-allow-origin: http://a.example",
            "access-control-allow-headers: x-key",
            "access-control-max-age: 77",
        ] {
            assert!(good.contains(field), "{} {good}", server.name);
        }
        // Who asks what is allowed sees nothing else.
        assert!(good.ends_with("\r\n\r\n"), "{} {good}", server.name);
        for (origin, header) in [("http://a.other", "x-key"), ("http://a.example", "x-other")] {
            let bad = answer(&sink, server.name, ask(origin, header).as_bytes()).await;
            assert!(!bad.contains("access-control-allow-headers: x-"), "{bad}");
        }
        let fields =
            "connection: close\r\norigin: http://a.example\r\nauthorization: Bearer key\r\n";
        let posted = answer(&sink, server.name, &server.request(fields)).await;
        assert!(posted.starts_with("http/1.1 20"), "{posted}");
        assert!(
            posted.contains("access-control-expose-headers: x-told"),
            "{posted}"
        );
    }
}

#[tokio::test]
async fn servers_ask_who_is_there() {
    let auth = "auth: { authenticator: bearertokenauth, request_params: [authorization] }";
    for server in http_servers() {
        let collector = server.start(auth);
        let with_token = format!("{}?authorization=Bearer+key", server.line);
        for (line, field, status) in [
            (server.line, "", "401"),
            (server.line, "authorization: Bearer lock\r\n", "401"),
            (server.line, "authorization: Bearer key\r\n", "20"),
            (&*with_token, "", "20"),
        ] {
            let request = server.request_of(line, &format!("connection: close\r\n{field}"));
            let answer = answer(&collector, server.name, &request).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status}")),
                "{} {line}: {answer}",
                server.name
            );
        }
    }
    for server in &GRPC_SERVERS {
        let collector = server.start("auth: { authenticator: bearertokenauth }");
        let at = address(&collector, server.name);
        assert_eq!(call(&at, server.method, b"").await, "16", "{}", server.name);
    }
}

#[tokio::test]
async fn servers_speak_tls_where_they_are_told() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("here.example");
    let tls = format!(
        "tls: {{ cert_file: '{}', key_file: '{}' }}",
        certificate.0.display(),
        key.0.display()
    );
    for server in http_servers() {
        let collector = server.start(&tls);
        let at = address(&collector, server.name);
        let mut stream = authority.connect(&at, "here.example", b"http/1.1").await;
        let request = server.request("connection: close\r\n");
        stream.write_all(&request).await.expect("it reads");
        let mut answer = [0; 11];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 20", "{}", server.name);
    }
    for server in &GRPC_SERVERS {
        let collector = server.start(&tls);
        let at = address(&collector, server.name);
        let mut stream = authority.connect(&at, "here.example", b"h2").await;
        stream.write_all(BEGIN).await.expect("it reads");
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        assert_eq!(head[3], 4, "settings come first (RFC 9113 section 3.4)");
    }
}

#[tokio::test]
async fn a_message_has_no_more_bytes_than_the_settings_say() {
    let large = vec![0; 2 << 20];
    for server in &GRPC_SERVERS {
        let collector = server.start("max_recv_msg_size_mib: 1");
        let at = address(&collector, server.name);
        assert_eq!(
            call(&at, server.method, &large).await,
            "8",
            "{}",
            server.name
        );
    }
}

/// What a client of HTTP/2 begins with: the preface and its settings.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn calls_at_a_time_are_those_of_the_settings() {
    for server in &GRPC_SERVERS {
        let sink = server.start("max_concurrent_streams: 7");
        let stream = TcpStream::connect(address(&sink, server.name)).await;
        let mut stream = stream.expect("a server");
        stream.write_all(BEGIN).await.expect("it reads");
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        assert_eq!(head[3], 4, "settings come first (RFC 9113 section 3.4)");
        let mut frame = vec![0; usize::from(head[2])];
        stream.read_exact(&mut frame).await.expect("the frame");
        // SETTINGS_MAX_CONCURRENT_STREAMS (section 6.5.2).
        let value = frame.chunks(6).find(|setting| setting[..2] == [0, 3]);
        assert_eq!(value.expect("it is set")[2..], [0, 0, 0, 7]);
    }
}

#[tokio::test]
async fn servers_listen_at_unix_sockets_too() {
    for server in http_servers() {
        let socket = TempFile::new();
        let options = format!("endpoint: '{}', transport: unix", socket.0.display());
        let _sink = server.start_with(&options, "nop:");
        let mut stream = UnixStream::connect(&socket.0).await.expect("a server");
        let request = server.request("");
        stream.write_all(&request).await.expect("it reads");
        let mut answer = [0; 11];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 20");
    }
    for server in &GRPC_SERVERS {
        let socket = TempFile::new();
        let options = format!("endpoint: '{}', transport: unix", socket.0.display());
        let _sink = server.start_with(&options);
        let mut stream = UnixStream::connect(&socket.0).await.expect("a server");
        stream.write_all(BEGIN).await.expect("it reads");
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        assert_eq!(head[3], 4);
    }
}

#[tokio::test]
async fn what_receivers_know_of_a_request_goes_along() {
    let file = TempFile::new();
    let server = "endpoint: '127.0.0.1:0', include_metadata: true";
    let sink = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ http: {{ {server} }} }} }}, zipkin: {{ {server} }}, \
         jaeger: {{ protocols: {{ grpc: {{ {server} }}, thrift_http: {{ {server} }} }} }} }}\n\
         processors: {{ attributes: {{ actions: [ {{ key: tenant, action: upsert, from_context: metadata.x-tenant }} ] }} }}\n\
         exporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp, zipkin, jaeger], processors: [attributes], exporters: [file] }} }} }}",
        file.0.display()
    ));
    for server in &RECEIVERS {
        let request = server.request(&format!(
            "connection: close\r\nx-tenant: {}\r\n",
            server.name
        ));
        let answer = answer(&sink, server.name, &request).await;
        assert!(answer.starts_with("http/1.1 20"), "{answer}");
    }
    // A span with identifiers alone, in a batch.
    let mut span = vec![0x0a, 16];
    span.extend([7; 16]);
    span.extend([0x12, 8]);
    span.extend([3; 8]);
    let batch = [b"\x0a\x1e\x0a\x1c", &span[..]].concat();
    let at = address(&sink, "jaeger grpc");
    let fields = [("x-tenant", "jaeger grpc")];
    let status = call_with(&at, GRPC_SERVERS[1].method, &fields, &batch).await;
    assert_eq!(status, "0");
    sink.end().await;
    let spans = file.spans();
    let mut tenants: Vec<_> = spans
        .iter()
        .filter_map(|span| {
            let attributes = span["attributes"].as_array()?;
            let own = attributes.iter().find(|one| one["key"] == "tenant")?;
            Some(own["value"]["stringValue"].as_str()?.to_owned())
        })
        .collect();
    tenants.sort_unstable();
    let names = [
        "jaeger grpc",
        "jaeger thrift_http",
        "otlp http",
        "zipkin http",
    ];
    assert_eq!(tenants, names);
}
