//! Options of exporters, receivers and extensions, over real sockets.

mod authenticators;
mod balance;
mod cookies;
mod detection;
mod exporter;
mod files;
mod health;
mod host_metrics;
mod pages;
mod pings;
mod policies;
mod processors;
mod proxy;
mod receiver;
mod records;
mod redaction;
mod samplers;
mod scrapes;
mod shares;
mod streams;
mod tls;

use super::*;

/// A collector that keeps what comes, with more options of its receivers, and extensions.
fn keeper(protocols: &str, more: &str, extensions: &str) -> Collector {
    start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ {protocols} }} }} }}\n{more}\n\
         exporters: {{ nop: }}\n\
         service: {{ {NO_METRICS}, extensions: [{extensions}], pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }} }}"
    ))
}

/// A collector that sends on by exporters.
fn sender(exporters: &str, names: &str, more: &str, extensions: &str) -> Collector {
    collector(&format!(
        "exporters: {{ {exporters} }}\n{more}\n\
         service: {{ {NO_METRICS}, extensions: [{extensions}], pipelines: {{ traces: {{ receivers: [otlp], exporters: [{names}] }} }} }}"
    ))
}

const ANYWHERE: &str = "{ endpoint: '127.0.0.1:0' }";

#[tokio::test]
async fn what_exporters_compress_is_understood() {
    let sink = keeper(&format!("grpc: {ANYWHERE}, http: {ANYWHERE}"), "", "");
    let (grpc_at, http_at) = (address(&sink, "otlp grpc"), address(&sink, "otlp http"));
    let mut exporters = String::new();
    let mut names = Vec::new();
    const LEVELLED: [&str; 4] = ["gzip", "zstd", "zlib", "deflate"];
    for coding in LEVELLED
        .into_iter()
        .chain(["none", "snappy", "x-snappy-framed", "lz4"])
    {
        let options = "compression_params: { level: 3 }";
        let options = if LEVELLED.contains(&coding) {
            options
        } else {
            ""
        };
        exporters += &format!(
            "otlphttp/{coding}: {{ endpoint: 'http://{http_at}', compression: {coding}, {options} }}, "
        );
        names.push(format!("otlphttp/{coding}"));
    }
    for coding in ["none", "gzip", "zstd"] {
        exporters += &format!(
            "otlp/{coding}: {{ endpoint: 'dns:///{grpc_at}', compression: {coding}, tls: {{ insecure: true }} }}, "
        );
        names.push(format!("otlp/{coding}"));
    }
    let front = sender(&exporters, &names.join(", "), "", "");
    taken(&grpc(&front), request(0, 50)).await;
    until("all copies", || traces(&sink).accepted == 1100).await;
    until("the account", || traces(&front).exported == 100).await;
    assert_eq!(traces(&sink).malformed, 0);
}

#[tokio::test]
async fn a_connection_may_be_one_of_few_and_used_once() {
    let sink = keeper(&format!("http: {ANYWHERE}"), "", "");
    let to = format!("endpoint: 'http://{}'", address(&sink, "otlp http"));
    let exporters = format!(
        "otlphttp/one: {{ {to}, max_conns_per_host: 1 }}, otlphttp/once: {{ {to}, disable_keep_alives: true }}"
    );
    let front = sender(&exporters, "otlphttp/one, otlphttp/once", "", "");
    let client = grpc(&front);
    for number in 0..10 {
        taken(&client, request(number * 10, 10)).await;
    }
    until("all arrive", || traces(&sink).accepted == 400).await;
}

#[tokio::test]
async fn a_unix_socket_leads_from_exporter_to_receiver() {
    let socket = TempFile::new();
    let path = socket.0.display();
    let sink = keeper(
        &format!("grpc: {{ endpoint: '{path}', transport: unix }}"),
        "",
        "",
    );
    let exporter = format!(
        "otlp: {{ endpoint: 'unix://{path}', authority: sink.example, tls: {{ insecure: true }}, keepalive: {{ time: 10s }} }}"
    );
    let front = sender(&exporter, "otlp", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("it arrives", || traces(&sink).accepted == 20).await;
}

#[tokio::test]
async fn strangers_are_refused_and_the_known_come_in() {
    let passwords = TempFile::new();
    std::fs::write(&passwords.0, "file:$apr1$aB3.zY/1$cnSQOKAK05JKu6zcOq4L71\n").unwrap();
    let extensions = format!(
        "extensions: {{ basicauth: {{ htpasswd: {{ file: '{}', inline: 'inline:word' }} }}, bearertokenauth: {{ tokens: [one, two] }} }}",
        passwords.0.display()
    );
    let protocols = "http: { endpoint: '127.0.0.1:0', auth: { authenticator: basicauth } }, \
                     grpc: { endpoint: '127.0.0.1:0', auth: { authenticator: bearertokenauth } }";
    let sink = keeper(protocols, &extensions, "basicauth, bearertokenauth");
    for client in [grpc(&sink), http(&sink, settings::Compression::None)] {
        let outcome = send(&client, request(0, 10)).await;
        let Outcome::Refused(why) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            why.contains("401") || why.contains("Unauthenticated"),
            "{why}"
        );
    }
    // Two that know a password, one that has a token, and one that says it in a field of its own.
    let (http_at, grpc_at) = (address(&sink, "otlp http"), address(&sink, "otlp grpc"));
    let token = TempFile::new();
    std::fs::write(&token.0, "Bearer two\n").unwrap();
    let known = format!(
        "extensions: {{ basicauth/a: {{ client_auth: {{ username: file, password: secret }} }}, \
         basicauth/b: {{ client_auth: {{ username: inline, password: word }} }}, \
         headers_setter: {{ headers: [ {{ key: Authorization, value_file: '{}' }} ] }} }}",
        token.0.display()
    );
    let exporters = format!(
        "otlphttp/a: {{ endpoint: 'http://{http_at}', auth: {{ authenticator: basicauth/a }} }}, \
         otlphttp/b: {{ endpoint: 'http://{http_at}', auth: {{ authenticator: basicauth/b }} }}, \
         otlp: {{ endpoint: '{grpc_at}', tls: {{ insecure: true }}, auth: {{ authenticator: headers_setter }} }}"
    );
    let names = "otlphttp/a, otlphttp/b, otlp";
    let front = sender(
        &exporters,
        names,
        &known,
        "basicauth/a, basicauth/b, headers_setter",
    );
    taken(&grpc(&front), request(0, 10)).await;
    until("all arrive", || traces(&sink).accepted == 60).await;
    let balance = traces(&front);
    assert_eq!((balance.failed, balance.rejected), (0, 0));
}

#[tokio::test]
async fn a_token_may_be_a_parameter() {
    let token = "extensions: { bearertokenauth: { token: key } }";
    let auth = "auth: { authenticator: bearertokenauth, request_params: [authorization] }";
    let http = format!("http: {{ endpoint: '127.0.0.1:0', {auth} }}");
    let sink = keeper(&http, token, "bearertokenauth");
    let to = format!("http://{}/v1/traces", address(&sink, "otlp http"));
    let exporters = format!(
        "otlphttp/known: {{ traces_endpoint: '{to}?authorization=Bearer+key' }}, \
         otlphttp/wrong: {{ traces_endpoint: '{to}?authorization=Bearer+lock' }}"
    );
    let front = sender(&exporters, "otlphttp/known, otlphttp/wrong", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("one arrives", || traces(&sink).accepted == 20).await;
    until("one does not", || traces(&front).failed == 20).await;
}

#[tokio::test]
async fn a_queue_puts_requests_together() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let exporter = format!(
        "otlphttp: {{ endpoint: 'http://{}', sending_queue: {{ queue_size: 1000, sizer: items, batch: {{ flush_timeout: 300s, min_size: 60, max_size: 60 }} }} }}",
        address(&sink, "otlp http")
    );
    let front = sender(&exporter, "otlphttp", "", "");
    let client = grpc(&front);
    for number in 0..7 {
        taken(&client, request(number * 10, 10)).await;
    }
    until("two are full", || traces(&front).exported == 120).await;
    assert_eq!(traces(&front).held(), 20);
    // At the end the rest is sent.
    let [balance, ..] = front.end().await;
    assert_eq!((balance.exported, balance.held()), (140, 0));
    sink.end().await;
    let requests = std::fs::read_to_string(&file.0).expect("a file");
    assert_eq!((requests.lines().count(), file.spans().len()), (3, 140));
}

#[tokio::test]
async fn a_queue_may_count_the_bytes_that_it_puts_together() {
    let file = TempFile::new();
    let sink = collector(&format!(
        "exporters: {{ file: {{ path: '{}' }} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let bytes = request(0, 10).len();
    let exporter = format!(
        "otlphttp: {{ endpoint: 'http://{}', sending_queue: {{ batch: {{ flush_timeout: 300s, sizer: bytes, min_size: {}, max_size: {} }} }} }}",
        address(&sink, "otlp http"),
        2 * bytes,
        2 * bytes,
    );
    let front = sender(&exporter, "otlphttp", "", "");
    let client = grpc(&front);
    taken(&client, request(0, 10)).await;
    assert_eq!(traces(&front).held(), 20);
    taken(&client, request(0, 10)).await;
    until("it is full", || traces(&front).exported == 40).await;
    // One that is too large is cut.
    taken(&client, request(0, 50)).await;
    let [balance, ..] = front.end().await;
    assert_eq!((balance.exported, balance.held()), (140, 0));
    sink.end().await;
    let requests = std::fs::read_to_string(&file.0).expect("a file");
    assert_eq!((requests.lines().count(), file.spans().len()), (4, 140));
}
