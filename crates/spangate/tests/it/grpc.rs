//! The filter `opentelemetry` with an OTLP/gRPC receiver: without TLS, and compressed over TLS.

use crate::common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Inbox, Sender, channel};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use common::http::Client;
use common::origin::Origin;
use common::otlp::filter;
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

const OTEL: &str = "
otel-instrumentation i
    config {yml}
    scopes request
otel-scope request
    instrument cnt_int \"requests\" value int(1)
    instrument update \"requests\"
    span \"request\" root
    log-record info id 1 event \"asked\" span \"request\" path
    finish \"request\"
    otel-event on-frontend-http-request
";

/// A received request, and its compression.
enum Got {
    Spans(ExportTraceServiceRequest, Option<String>),
    Logs(ExportLogsServiceRequest),
    Metrics(ExportMetricsServiceRequest),
}

#[derive(Clone)]
struct Services(Sender<Got>);

#[tonic::async_trait]
impl TraceService for Services {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let encoding = request.metadata().get("grpc-encoding");
        let encoding = encoding.and_then(|encoding| Some(encoding.to_str().ok()?.to_owned()));
        let _ = self.0.send(Got::Spans(request.into_inner(), encoding));
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Services {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let _ = self.0.send(Got::Logs(request.into_inner()));
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Services {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let _ = self.0.send(Got::Metrics(request.into_inner()));
        Ok(Response::new(Default::default()))
    }
}

/// A receiver with its own runtime and thread, which runs as long as the test.
fn receiver(tls: Option<ServerConfig>) -> (SocketAddr, Inbox<Got>) {
    let (outbox, inbox) = channel();
    let socket = listener();
    let at = address(&socket);
    socket.set_nonblocking(true).expect("a socket");
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let work = async move {
        let socket = tokio::net::TcpListener::from_std(socket).expect("a listener");
        while let Ok((stream, _)) = socket.accept().await {
            let (acceptor, services) = (acceptor.clone(), Services(outbox.clone()));
            tokio::spawn(async move {
                match acceptor {
                    None => serve(stream, services).await,
                    Some(acceptor) => {
                        let stream = acceptor.accept(stream).await.expect("a handshake");
                        serve(stream, services).await;
                    }
                }
            });
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    common::spawn(move || runtime.block_on(work));
    (at, inbox)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, services: Services) {
    let traces = TraceServiceServer::new(services.clone());
    let traces = traces.accept_compressed(CompressionEncoding::Gzip);
    let logs = LogsServiceServer::new(services.clone());
    let logs = logs.accept_compressed(CompressionEncoding::Gzip);
    let metrics = MetricsServiceServer::new(services);
    let metrics = metrics.accept_compressed(CompressionEncoding::Gzip);
    let routes = Routes::new(traces).add_service(logs).add_service(metrics);
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
}

/// An `otel.yml` with these options for every exporter.
fn settings(options: &str) -> String {
    let exporters: String = ["t", "m", "l"]
        .map(|name| format!("  {name}: {{ type: otlp_grpc, {options} }}\n"))
        .concat();
    format!(
        "exporters:\n{exporters}processors: {{ p: {{ type: single }} }}
readers: {{ r: {{ export_interval: 200, export_timeout: 100 }} }}
signals:
  traces: {{ default: {{ scope_name: s, exporters: t, processors: p }} }}
  metrics: {{ default: {{ scope_name: s, exporters: m, readers: r }} }}
  logs: {{ default: {{ scope_name: s, exporters: l, processors: p }} }}
"
    )
}

/// Sends one request through a proxy with such a filter. Returns the compression of its span.
fn export(inbox: &Inbox<Got>, options: &str) -> Option<String> {
    let (origin, front, folder) = (Origin::echo(), listener(), Folder::new());
    let line = filter(&folder, OTEL, &settings(options));
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n{line} server s {}\n",
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    assert_eq!(Client::connect(address(&front)).get("/a").status, 200);
    let (mut span, mut log, mut sum) = (None, None, None);
    while span.is_none() || log.is_none() || sum.is_none() {
        match inbox.recv_timeout(DEADLINE).expect("a request") {
            Got::Spans(request, encoding) => span = Some((request, encoding)),
            Got::Logs(request) => log = Some(request),
            Got::Metrics(request) => sum = Some(request),
        }
    }
    proxy.stop();
    let (span, encoding) = span?;
    let span = &span.resource_spans[0].scope_spans[0].spans[0];
    let log = log?;
    let log = &log.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!((&*span.name, &*log.event_name), ("request", "asked"));
    assert_eq!(
        (&log.trace_id, &log.span_id),
        (&span.trace_id, &span.span_id)
    );
    let metric = &sum?.resource_metrics[0].scope_metrics[0].metrics[0];
    assert_eq!(metric.name, "requests");
    encoding
}

#[test]
fn all_signals_arrive_in_the_clear() {
    let (at, inbox) = receiver(None);
    assert_eq!(export(&inbox, &format!("endpoint: \"http://{at}\"")), None);
}

#[test]
fn all_signals_arrive_compressed_over_tls() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (at, inbox) = receiver(Some(config));
    let folder = Folder::new();
    let ca = folder.write("ca.pem", authority.pem());
    let options = format!(
        "endpoint: \"https://localhost:{}\", compression: gzip, use_ssl_credentials: true, ssl_credentials_cacert_path: \"{ca}\"",
        at.port()
    );
    assert_eq!(export(&inbox, &options).as_deref(), Some("gzip"));
}
