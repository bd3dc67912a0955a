//! gRPC through the proxy, with tonic on both sides: calls of every kind, their trailers and their
//! ends.

use crate::common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tonic::client::Grpc as Client;
use tonic::codegen::tokio_stream::{self, Stream};
use tonic::codegen::{Pin, Service, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use common::grpc::{Boxed, Message, Plain, Reverser, reversed, runtime, serve};
use common::tls::Authority;
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// Connects over TLS to a fixed address, whatever the URI contains.
#[derive(Clone)]
struct Dialer {
    to: SocketAddr,
    tls: TlsConnector,
}

impl Service<http::Uri> for Dialer {
    type Response = TokioIo<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>;
    type Error = std::io::Error;
    type Future = Boxed<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let Dialer { to, tls } = self.clone();
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from("one.test").expect("a name");
            tls.connect(name, stream).await.map(TokioIo::new)
        })
    }
}

async fn unary(client: &mut Client<Channel>, message: &[u8]) -> Result<Response<Message>, Status> {
    client
        .ready()
        .await
        .map_err(|error| Status::unknown(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static("/t.Test/Unary");
    client
        .unary(Request::new(message.to_vec()), path, Plain)
        .await
}

/// Makes calls of all kinds.
async fn call(channel: Channel) {
    let mut client = Client::new(channel);
    for message in [&b"abc"[..], &[7; 1_000_000]] {
        let response = unary(&mut client, message).await.expect("an answer");
        assert_eq!(response.metadata().get("x-head").unwrap(), "1");
        assert!(response.into_inner() == reversed(message.to_vec()));
    }
    let status = unary(&mut client, b"").await.expect_err("a refusal");
    assert_eq!(
        (status.code(), status.message()),
        (Code::InvalidArgument, "nöthing")
    );
    assert_eq!(status.details(), [0, 1, 255]);
    assert_eq!(status.metadata().get("x-why").unwrap(), "empty");

    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/t.Test/Down");
    let request = Request::new((0..100).collect());
    let mut down = client
        .server_streaming(request, path, Plain)
        .await
        .unwrap()
        .into_inner();
    for byte in 0..100 {
        assert!(down.message().await.unwrap() == Some(vec![byte; 10_000]));
    }
    let status = down.message().await.expect_err("its end");
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "over"));

    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/t.Test/Up");
    let up = tokio_stream::iter((0..100).map(|byte| vec![byte; 10_000]));
    let sum = client
        .client_streaming(Request::new(up), path, Plain)
        .await
        .unwrap();
    assert_eq!(sum.into_inner(), b"1000000");

    // Each message waits for the answer to the previous one.
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/t.Test/Both");
    let (sender, inbox) = unbounded_channel();
    let inbox = Inbox(inbox);
    sender.send(vec![0, 1]).unwrap();
    let mut both = client
        .streaming(Request::new(inbox), path, Plain)
        .await
        .unwrap()
        .into_inner();
    for number in 0..50 {
        assert_eq!(
            both.message().await.unwrap(),
            Some(vec![number + 1, number])
        );
        sender.send(vec![number + 1, number + 2]).unwrap();
    }
    drop(sender);
    assert_eq!(both.message().await.unwrap(), Some(vec![51, 50]));
    assert_eq!(both.message().await.unwrap(), None);
    assert!(both.trailers().await.unwrap().is_some());
}

/// The messages from a channel, as a stream.
struct Inbox(UnboundedReceiver<Message>);

impl Stream for Inbox {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.0.poll_recv(cx)
    }
}

#[test]
fn calls_of_every_kind_pass() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let pem = authority.issue(&["one.test"]);
    let crt = folder.write("one.pem", &pem);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone());
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (dropped, mut gone) = unbounded_channel();
    let service = Reverser { dropped };
    let (plain, secure) = (listener(), listener());
    let (at_plain, at_secure) = (address(&plain), address(&secure));
    serve(plain, None, service.clone());
    serve(secure, Some(TlsAcceptor::from(Arc::new(config))), service);

    let (clear, tls) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend c\n bind \"fd@${{CLEAR}}\"\n default_backend plain\nfrontend t\n bind \"fd@${{TLS}}\" ssl crt {crt} alpn h2\n \
         default_backend secure\nbackend plain\n server s {at_plain} proto h2\nbackend secure\n server s {at_secure} ssl verify none alpn h2\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("CLEAR", &clear), ("TLS", &tls)]);

    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let dialer = Dialer {
        to: address(&tls),
        tls: TlsConnector::from(Arc::new(config)),
    };
    let at_clear = format!("http://{}", address(&clear));
    let work = async move {
        let clear = Endpoint::from_shared(at_clear).unwrap();
        let clear = clear.connect().await.expect("a connection");
        let tls = Endpoint::from_static("http://one.test");
        let tls = tls
            .connect_with_connector(dialer)
            .await
            .expect("a connection");
        for channel in [clear, tls] {
            call(channel.clone()).await;
            // After the timeout, the call is cancelled at the server.
            let mut client = Client::new(channel.clone());
            let held =
                tokio::time::timeout(Duration::from_millis(100), unary(&mut client, b"hold"));
            held.await.expect_err("no answer");
            let end = tokio::time::timeout(DEADLINE, gone.recv());
            end.await.expect("the end of the call");
            // Its connection stays usable.
            unary(&mut client, b"abc").await.expect("an answer");
        }
    };
    let done = common::spawn(move || runtime().block_on(work));
    common::join(&done, "the calls");
    proxy.stop();
}
