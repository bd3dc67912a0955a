//! Exporters that reach their receivers through a proxy.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::tls::{Authority, served};
use super::*;

/// A proxy, and the heads of what was asked of it.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = Arc::new(Mutex::default());
    let heads = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(pass(stream, Arc::clone(&heads)));
        }
    });
    (address, asked)
}

/// Connects a client with whom it asks for: by a tunnel, or with its request as it is.
async fn pass(mut client: TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    let text = String::from_utf8(head.clone()).expect("text");
    let target = text.split(' ').nth(1).expect("a target");
    let target = target.trim_start_matches("http://");
    let address = target.split('/').next().expect("an address").to_owned();
    let is_tunnel = text.starts_with("CONNECT ");
    heads.lock().expect("nobody panics").push(text);
    let mut server = TcpStream::connect(address).await.expect("the server");
    match is_tunnel {
        true => client.write_all(b"HTTP/1.1 200 x\r\n\r\n").await,
        false => server.write_all(&head).await,
    }
    .expect("both are there");
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test]
async fn a_proxy_is_asked_or_makes_a_tunnel() {
    let authority = Authority::new();
    let [certificate, key] = std::array::from_fn(|_| TempFile::new());
    authority.sign("127.0.0.1", &certificate, &key);
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
