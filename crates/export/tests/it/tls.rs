//! Exporters over TLS: whom they trust, and who they say they are.

use crate::support;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as Inbox, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use otlp::Signal;
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use spangate_export::Exporters;
use support::*;
use telemetry::settings::{Compression, Exporter, Headers, OtlpGrpc, Pem, Tls, TlsVersion};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// An authority, and what it has signed.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn pem(&self) -> Pem {
        Pem::Text(self.0.pem())
    }

    /// A certificate for a name, and its key.
    fn signed(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn server(&self, clients: bool) -> ServerConfig {
        let (certificate, key) = self.signed("localhost");
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        builder.with_single_cert(chain, key).unwrap()
    }
}

/// A receiver of HTTP/1.1 over TLS.
fn https(config: ServerConfig) -> (SocketAddr, Inbox<Got>) {
    let (listener, address) = listener();
    let (outbox, inbox) = channel();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    on_thread(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, outbox) = (acceptor.clone(), outbox.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, 0, outbox, Arc::new(Mutex::default())).await;
                }
            });
        }
    });
    (address, inbox)
}

fn exporters(address: SocketAddr, tls: Tls) -> Result<Exporters, String> {
    let mut settings = otlp_http(address);
    settings.endpoint = format!("https://localhost:{}/v1/traces", address.port());
    settings.tls = tls;
    let exporter = Exporter::OtlpHttp(Box::new(settings));
    let mut plan = plan(pipeline(Signal::Traces, exporter, processor(100)));
    plan.retry.elapsed_max = Some(Duration::ZERO);
    Exporters::start(plan)
}

/// Exports a span; gives the last error.
fn export(address: SocketAddr, tls: Tls) -> Result<(), String> {
    let exporters = exporters(address, tls)?;
    let pipeline = &exporters.pipelines()[0];
    offer_spans(&pipeline.queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    assert_balance(&pipeline.queue);
    match pipeline.queue.account.exported() {
        1 => Ok(()),
        _ => Err(pipeline.health.last_error()),
    }
}

#[test]
fn the_receiver_shows_its_certificate() {
    let authority = Authority::new();
    let (address, inbox) = https(authority.server(false));
    let trusting = |authority: &Authority| Tls {
        ca: Some(authority.pem()),
        ..Tls::default()
    };
    export(address, trusting(&authority)).unwrap();
    let got = inbox.recv_timeout(DEADLINE).unwrap();
    let request: ExportTraceServiceRequest = got.decoded();
    assert_eq!(request.resource_spans[0].scope_spans[0].spans[0].name, "a");
    for version in [TlsVersion::V12, TlsVersion::V13] {
        let tls = Tls {
            version_min: version,
            version_max: version,
            ..trusting(&authority)
        };
        export(address, tls).unwrap();
    }
    let error = export(address, trusting(&Authority::new())).unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let careless = Tls {
        verify: false,
        ..trusting(&Authority::new())
    };
    export(address, careless).unwrap();
}

#[test]
fn we_show_ours() {
    let authority = Authority::new();
    let (address, _inbox) = https(authority.server(true));
    let (certificate, key) = authority.signed("proxy");
    let nobody = Tls {
        ca: Some(authority.pem()),
        ..Tls::default()
    };
    let known = Tls {
        certificate: Some(Pem::Text(certificate)),
        key: Some(Pem::Text(key)),
        ..nobody.clone()
    };
    export(address, known.clone()).unwrap();
    assert!(export(address, nobody.clone()).is_err());
    let broken = [
        (
            Tls {
                ca: Some(Pem::Text("x".to_owned())),
                ..nobody.clone()
            },
            "no certificate",
        ),
        (
            Tls {
                ca: Some(Pem::Path("/none.pem".to_owned())),
                ..nobody
            },
            "/none.pem: ",
        ),
        (
            Tls {
                key: Some(Pem::Text("x".to_owned())),
                ..known
            },
            "the PEM in the settings: ",
        ),
    ];
    for (tls, said) in broken {
        let error = exporters(address, tls).unwrap_err();
        let begin = "exporter of traces otlp_http https://localhost:";
        assert!(error.starts_with(begin) && error.contains(said), "{error}");
    }
}

#[test]
fn grpc_over_tls() {
    let authority = Authority::new();
    let mut config = authority.server(false);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, address) = listener();
    let (outbox, inbox) = channel();
    on_thread(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, outbox) = (acceptor.clone(), outbox.clone());
            tokio::spawn(grpc_connection(acceptor, stream, outbox));
        }
    });
    let settings = OtlpGrpc {
        endpoint: format!("https://localhost:{}", address.port()),
        headers: Headers::default(),
        timeout_ms: DEADLINE.as_millis() as u32,
        requests_max: 4,
        compression: Compression::None,
        user_agent: None,
        tls: Tls {
            ca: Some(authority.pem()),
            ..Tls::default()
        },
    };
    let exporter = Exporter::OtlpGrpc(Box::new(settings));
    let exporters = start(pipeline(Signal::Traces, exporter, processor(100)));
    offer_spans(&exporters.pipelines()[0].queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    let message = inbox.recv_timeout(DEADLINE).unwrap();
    let request = ExportTraceServiceRequest::decode(&message[5..]).unwrap();
    assert_eq!(request.resource_spans[0].scope_spans[0].spans, [span("a")]);
    assert_eq!(
        counts(&exporters.pipelines()[0].queue.account),
        [1, 0, 0, 0, 0]
    );
}

/// Takes requests of gRPC, and answers each with an empty message.
async fn grpc_connection(
    acceptor: TlsAcceptor,
    stream: tokio::net::TcpStream,
    outbox: std::sync::mpsc::Sender<hyper::body::Bytes>,
) {
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Bytes, Incoming};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let stream = acceptor.accept(stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let outbox = outbox.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let _ = outbox.send(body);
            let mut trailers = hyper::HeaderMap::new();
            trailers.insert("grpc-status", 0.into());
            let body = Full::new(Bytes::from_static(&[0; 5]));
            let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
            let response = hyper::Response::builder().header("content-type", "application/grpc");
            Ok::<_, std::convert::Infallible>(response.body(body).unwrap())
        }
    });
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
