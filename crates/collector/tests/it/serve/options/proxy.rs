//! Exporters that reach their receivers through a proxy.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::tls::{Authority, served};
use super::*;

/// What was asked of a proxy.
type Asked = Arc<Mutex<Vec<String>>>;

/// What a proxy is.
#[derive(Clone)]
enum Is {
    Http,
    Https(TlsAcceptor),
    Socks,
}

/// A proxy, and the heads of what was asked of it.
async fn proxy() -> (String, Asked) {
    proxy_to(Is::Http, None).await
}

/// One that connects to an address whatever is asked for.
async fn proxy_to(is: Is, address: Option<String>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let own = listener.local_addr().expect("an address").to_string();
    let asked = Asked::default();
    let heads = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (is, heads, address) = (is.clone(), Arc::clone(&heads), address.clone());
            tokio::spawn(async move {
                match is {
                    Is::Http => pass(stream, heads, address).await,
                    Is::Socks => pass_socks(stream, heads, address).await,
                    Is::Https(tls) => {
                        let stream = tls.accept(stream).await.expect("a handshake");
                        pass(stream, heads, address).await;
                    }
                }
            });
        }
    });
    (own, asked)
}

/// Connects a client with whom it asks for: by a tunnel, or with its request as it is.
async fn pass(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    heads: Asked,
    address: Option<String>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    let text = String::from_utf8(head.clone()).expect("text");
    let target = text.split(' ').nth(1).expect("a target");
    let target = target.trim_start_matches("http://");
    let named = target.split('/').next().expect("an address").to_owned();
    let is_tunnel = text.starts_with("CONNECT ");
    heads.lock().expect("nobody panics").push(text);
    let address = address.unwrap_or(named);
    let mut server = TcpStream::connect(address).await.expect("the server");
    if is_tunnel {
        client.write_all(b"HTTP/1.1 200 x\r\n\r\n").await
    } else {
        server.write_all(&head).await
    }
    .expect("both are there");
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// The same of SOCKS 5, for those who say who they are (RFC 1928, RFC 1929).
async fn pass_socks(mut client: TcpStream, asked: Asked, address: Option<String>) {
    let client = &mut client;
    async fn next(client: &mut TcpStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        client.read_exact(&mut bytes).await.expect("bytes");
        bytes
    }
    async fn text(client: &mut TcpStream) -> String {
        let count = client.read_u8().await.expect("a length");
        String::from_utf8(next(client, count.into()).await).expect("text")
    }
    assert_eq!(next(client, 3).await, [5, 1, 2]);
    client.write_all(&[5, 2]).await.expect("an answer");
    assert_eq!(next(client, 1).await, [1]);
    let (name, password) = (text(client).await, text(client).await);
    client.write_all(&[1, 0]).await.expect("an answer");
    let host = match next(client, 4).await[..] {
        [5, 1, 0, 1] => {
            let ip: [u8; 4] = next(client, 4).await.try_into().expect("four bytes");
            std::net::Ipv4Addr::from(ip).to_string()
        }
        [5, 1, 0, 3] => text(client).await,
        ref other => panic!("{other:?}"),
    };
    let port = client.read_u16().await.expect("a port");
    let named = format!("{host}:{port}");
    let told = format!("{name} {password} {named}");
    asked.lock().expect("nobody panics").push(told);
    let mut server = TcpStream::connect(address.unwrap_or(named)).await;
    let server = server.as_mut().expect("the server");
    let answer = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    client.write_all(&answer).await.expect("an answer");
    let _ = tokio::io::copy_bidirectional(client, server).await;
}

/// What answers with a certificate.
fn acceptor(certificate: &TempFile, key: &TempFile) -> TlsAcceptor {
    let pem = |file: &TempFile| settings::Pem::Path(file.0.display().to_string());
    let config = ServerConfig::builder_with_provider(export::tls::provider(&[], &[]).unwrap())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            export::tls::certificates(&pem(certificate)).expect("a certificate"),
            export::tls::private_key(&pem(key)).expect("a key"),
        );
    TlsAcceptor::from(Arc::new(config.expect("a server")))
}

#[tokio::test]
async fn a_proxy_is_asked_or_makes_a_tunnel() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("127.0.0.1");
    let plain = keeper(&format!("http: {ANYWHERE}"), "", "");
    let secret = keeper(&served("http", &certificate, &key, ""), "", "");
    let (address_of, asked) = proxy().await;
    let (plain_at, secret_at) = (address(&plain, "otlp http"), address(&secret, "otlp http"));
    let exporters = format!(
        "otlphttp/plain: {{ endpoint: 'http://{plain_at}', proxy_url: 'http://me:p%40ss@{address_of}' }}, \
         otlphttp/secret: {{ endpoint: 'https://{secret_at}', proxy_url: 'http://me:p%40ss@{address_of}', tls: {{ ca_file: '{}' }} }}",
        authority.file()
    );
    let front = sender(&exporters, "otlphttp/plain, otlphttp/secret", "", "");
    let client = grpc(&front);
    for number in 0..2 {
        taken(&client, request(number * 10, 10)).await;
    }
    until("both arrive", || {
        traces(&plain).accepted == 40 && traces(&secret).accepted == 40
    })
    .await;
    let asked = asked.lock().expect("nobody panics").clone();
    let of = |begin: &str| {
        let own = asked.iter().filter(|head| head.starts_with(begin));
        own.map(|head| head.to_lowercase()).collect::<Vec<_>>()
    };
    let requests = of(&format!("POST http://{plain_at}/v1/traces HTTP/1.1\r\n"));
    let tunnels = of(&format!("CONNECT {secret_at} HTTP/1.1\r\n"));
    assert!(!requests.is_empty() && !tunnels.is_empty(), "{asked:?}");
    let credential = "proxy-authorization: basic bwu6cebzcw==\r\n";
    assert!(
        requests
            .iter()
            .chain(&tunnels)
            .all(|head| head.contains(credential))
    );
}

#[tokio::test]
async fn what_no_proxy_is_there_for_fails() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let proxy = dead.local_addr().expect("an address");
    drop(dead);
    let sink = keeper(&format!("http: {ANYWHERE}"), "", "");
    let exporter = format!(
        "otlphttp: {{ endpoint: 'http://{}', proxy_url: 'http://{proxy}', retry_on_failure: {{ enabled: false }} }}",
        address(&sink, "otlp http")
    );
    let front = sender(&exporter, "otlphttp", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("it fails", || traces(&front).failed == 20).await;
    assert_eq!(traces(&sink).accepted, 0);
}

/// Sends once with the exporters `otlphttp/plain` and `otlphttp/secret`, until it is in both
/// places.
async fn reach_both(exporters: &str, plain: &Collector, secret: &Collector) {
    let front = sender(exporters, "otlphttp/plain, otlphttp/secret", "", "");
    taken(&grpc(&front), request(0, 10)).await;
    until("both arrive", || {
        traces(plain).accepted == 20 && traces(secret).accepted == 20
    })
    .await;
}

/// Its own certificate is asked for, whatever name the receiver's must have.
#[tokio::test]
async fn tls_may_lead_to_a_proxy_too() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("127.0.0.1");
    let [other, other_key] = authority.signed("other.example");
    let plain = keeper(&format!("http: {ANYWHERE}"), "", "");
    let secret = keeper(&served("http", &other, &other_key, ""), "", "");
    let (proxy_at, asked) = proxy_to(Is::Https(acceptor(&certificate, &key)), None).await;
    let (plain_at, secret_at) = (address(&plain, "otlp http"), address(&secret, "otlp http"));
    let exporters = format!(
        "otlphttp/plain: {{ endpoint: 'http://{plain_at}', proxy_url: 'https://{proxy_at}', tls: {{ ca_file: '{0}' }} }}, \
         otlphttp/secret: {{ endpoint: 'https://{secret_at}', proxy_url: 'https://{proxy_at}', tls: {{ ca_file: '{0}', server_name_override: other.example }} }}",
        authority.file()
    );
    reach_both(&exporters, &plain, &secret).await;
    let asked = asked.lock().expect("nobody panics").clone();
    for begin in [
        format!("POST http://{plain_at}/"),
        format!("CONNECT {secret_at} "),
    ] {
        assert!(
            asked.iter().any(|head| head.starts_with(&begin)),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn a_proxy_may_be_one_of_socks() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("127.0.0.1");
    let plain = keeper(&format!("http: {ANYWHERE}"), "", "");
    let secret = keeper(&served("http", &certificate, &key, ""), "", "");
    let (proxy_at, asked) = proxy_to(Is::Socks, None).await;
    let (plain_at, secret_at) = (address(&plain, "otlp http"), address(&secret, "otlp http"));
    let exporters = format!(
        "otlphttp/plain: {{ endpoint: 'http://{plain_at}', proxy_url: 'socks5://me:p%40ss@{proxy_at}' }}, \
         otlphttp/secret: {{ endpoint: 'https://{secret_at}', proxy_url: 'socks5h://me:p%40ss@{proxy_at}', tls: {{ ca_file: '{}' }} }}",
        authority.file()
    );
    reach_both(&exporters, &plain, &secret).await;
    let mut asked = asked.lock().expect("nobody panics").clone();
    asked.sort();
    let mut expected = [plain_at, secret_at].map(|at| format!("me p@ss {at}"));
    expected.sort();
    assert_eq!(asked, expected);
}

/// A collector that sends on where variables have values.
fn sender_in(environment: &[(&str, &str)], exporters: &str, names: &str) -> Collector {
    let yaml = format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {ANYWHERE} }} }} }}\n\
         exporters: {{ {exporters} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [{names}] }} }} }}"
    );
    let config = load_in(environment, &yaml);
    Collector::start(&config, setup()).unwrap_or_else(|error| panic!("{}", error.0))
}

/// Names that nobody knows but the proxy.
#[tokio::test]
async fn the_environment_names_proxies_for_http_https_and_grpc() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("sink.example");
    let plain = keeper(&format!("http: {ANYWHERE}, grpc: {ANYWHERE}"), "", "");
    let secret = keeper(&served("http", &certificate, &key, ""), "", "");
    let [http_at, grpc_at] = ["otlp http", "otlp grpc"].map(|name| address(&plain, name));
    let (for_http, http_asked) = proxy_to(Is::Http, Some(http_at)).await;
    let (for_https, https_asked) = proxy_to(Is::Http, Some(address(&secret, "otlp http"))).await;
    let (for_grpc, grpc_asked) = proxy_to(Is::Http, Some(grpc_at)).await;
    let front = sender_in(
        &[("http_proxy", &for_http), ("HTTPS_PROXY", &for_https)],
        &format!(
            "otlphttp/plain: {{ endpoint: 'http://sink.example' }}, \
             otlphttp/secret: {{ endpoint: 'https://sink.example:4318', tls: {{ ca_file: '{}' }} }}",
            authority.file()
        ),
        "otlphttp/plain, otlphttp/secret",
    );
    taken(&grpc(&front), request(0, 10)).await;
    let second = sender_in(
        &[("HTTPS_PROXY", &format!("http://me:word@{for_grpc}"))],
        "otlp: { endpoint: 'sink.example:4317', tls: { insecure: true } }",
        "otlp",
    );
    taken(&grpc(&second), request(0, 10)).await;
    until("all arrive", || {
        traces(&plain).accepted == 40 && traces(&secret).accepted == 20
    })
    .await;
    for (asked, begin) in [
        (
            http_asked,
            "POST http://sink.example/v1/traces HTTP/1.1\r\n",
        ),
        (https_asked, "CONNECT sink.example:4318 HTTP/1.1\r\n"),
        (grpc_asked, "CONNECT sink.example:4317 HTTP/1.1\r\n"),
    ] {
        let asked = asked.lock().expect("nobody panics").clone();
        assert!(asked[0].starts_with(begin), "{asked:?}");
        let is_known = asked[0].contains("Proxy-Authorization: Basic bWU6d29yZA==\r\n");
        assert_eq!(is_known, begin.contains(":4317"));
    }
}

#[tokio::test]
async fn what_is_here_or_has_a_proxy_of_its_own_does_not_heed_the_environment() {
    let sink = keeper(&format!("http: {ANYWHERE}, grpc: {ANYWHERE}"), "", "");
    let [http_at, grpc_at] = ["otlp http", "otlp grpc"].map(|name| address(&sink, name));
    let (named, asked) = proxy_to(Is::Http, Some(http_at.clone())).await;
    // Nobody listens there.
    let front = sender_in(
        &[
            ("HTTP_PROXY", "127.0.0.1:1"),
            ("HTTPS_PROXY", "127.0.0.1:1"),
        ],
        &format!(
            "otlphttp/here: {{ endpoint: 'http://{http_at}' }}, otlp: {{ endpoint: '{grpc_at}', tls: {{ insecure: true }} }}, \
             otlphttp/own: {{ endpoint: 'http://sink.example', proxy_url: 'http://{named}' }}"
        ),
        "otlphttp/here, otlp, otlphttp/own",
    );
    taken(&grpc(&front), request(0, 10)).await;
    until("all arrive", || traces(&sink).accepted == 60).await;
    assert_eq!(asked.lock().expect("nobody panics").len(), 1);
    let wrong = load_in(
        &[("HTTPS_PROXY", "ftp://me:secret@a")],
        "{ receivers: { nop: }, exporters: { nop: }, service: { pipelines: { traces: { receivers: [nop], exporters: [nop] } } } }",
    );
    let told: Vec<_> = wrong.warnings.iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1
            && told[0].starts_with("HTTPS_PROXY must begin with")
            && !told[0].contains("secret"),
        "{told:?}"
    );
}
