//! OTLP over gRPC: content, metadata, answers.

use crate::support;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver as Inbox, Sender, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use otlp::Signal;
use support::*;
use telemetry::settings::{Compression, Exporter, Headers, OtlpGrpc, Tls};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 16;

type Answer = Result<ExportTraceServiceResponse, Status>;

struct Traces {
    got: Sender<(MetadataMap, ExportTraceServiceRequest)>,
    answers: Mutex<VecDeque<Answer>>,
}

#[tonic::async_trait]
impl TraceService for Traces {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let metadata = request.metadata().clone();
        let _ = self.got.send((metadata, request.into_inner()));
        let answer = self.answers.lock().unwrap().pop_front();
        answer
            .unwrap_or_else(|| Ok(ExportTraceServiceResponse::default()))
            .map(Response::new)
    }
}

struct Logs(Sender<ExportLogsServiceRequest>);

#[tonic::async_trait]
impl LogsService for Logs {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let _ = self.0.send(request.into_inner());
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

struct Receiver {
    address: SocketAddr,
    traces: Inbox<(MetadataMap, ExportTraceServiceRequest)>,
    logs: Inbox<ExportLogsServiceRequest>,
}

fn receiver(answers: Vec<Answer>) -> Receiver {
    let (listener, address) = listener();
    let (got, traces) = channel();
    let (log, logs) = channel();
    on_thread(async move {
        let incoming = TcpIncoming::from(TcpListener::from_std(listener).unwrap());
        let answers = Mutex::new(answers.into());
        let service = TraceServiceServer::new(Traces { got, answers });
        let service = service.accept_compressed(CompressionEncoding::Gzip);
        tonic::transport::Server::builder()
            .add_service(service)
            .add_service(LogsServiceServer::new(Logs(log)))
            .serve_with_incoming(incoming)
            .await
            .unwrap();
    });
    Receiver {
        address,
        traces,
        logs,
    }
}

fn grpc(address: SocketAddr) -> OtlpGrpc {
    OtlpGrpc {
        // A path means nothing in gRPC.
        endpoint: format!("http://{address}/v1/traces"),
        headers: Headers(vec![("x-tenant".to_owned(), "blue".to_owned())]),
        timeout_ms: DEADLINE.as_millis() as u32,
        requests_max: 4,
        compression: Compression::None,
        user_agent: Some("edge".to_owned()),
        tls: Tls::default(),
    }
}

fn exporter(settings: OtlpGrpc, signal: Signal) -> spangate_export::Exporters {
    start(pipeline(
        signal,
        Exporter::OtlpGrpc(Box::new(settings)),
        processor(100),
    ))
}

#[test]
fn spans_arrive_as_they_were_made() {
    let receiver = receiver(Vec::new());
    let exporters = exporter(grpc(receiver.address), Signal::Traces);
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a", "b"]);
    assert!(exporters.flush(DEADLINE));
    let (metadata, request) = receiver.traces.recv_timeout(DEADLINE).unwrap();
    assert_eq!(metadata.get("x-tenant").unwrap(), "blue");
    let agent = metadata.get("user-agent").unwrap().to_str().unwrap();
    assert!(agent.starts_with("edge spangate/"), "{agent}");
    let resource = &request.resource_spans[0];
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(*attributes, [text("service.name", "shop")]);
    assert_eq!(resource.scope_spans[0].spans, [span("a"), span("b")]);
    assert_eq!(counts(&queue.account), [2, 0, 0, 0, 0]);
    assert_balance(queue);
}

#[test]
fn compressed_logs_and_large_requests() {
    let receiver = receiver(Vec::new());
    let mut settings = grpc(receiver.address);
    settings.compression = Compression::Gzip;
    let exporters = exporter(settings, Signal::Traces);
    offer_spans(&exporters.pipelines()[0].queue, &["a"; 50]);
    exporters.shutdown(DEADLINE);
    let (metadata, request) = receiver.traces.recv_timeout(DEADLINE).unwrap();
    assert_eq!(metadata.get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(request.resource_spans[0].scope_spans[0].spans.len(), 50);

    let exporters = exporter(grpc(receiver.address), Signal::Logs);
    let record = LogRecord {
        severity_text: "x".repeat(100_000),
        ..LogRecord::default()
    };
    // Three and a half MiB a request: what receivers take unless told otherwise.
    let queue = &exporters.pipelines()[0].queue;
    offer(queue, &vec![record.clone(); 50]);
    assert!(exporters.flush(DEADLINE));
    let mut received = Vec::new();
    for _ in 0..2 {
        let request = receiver.logs.recv_timeout(DEADLINE).unwrap();
        let records = &request.resource_logs[0].scope_logs[0].log_records;
        assert!(records.iter().all(|it| *it == record));
        received.push(records.len());
    }
    received.sort_unstable();
    assert_eq!(received, [14, 36]);
    assert_eq!(counts(&queue.account), [50, 0, 0, 0, 0]);
}

/// `google.rpc.Status` with a `RetryInfo` of so many seconds.
fn retry_info(seconds: u8) -> Vec<u8> {
    let url = b"type.googleapis.com/google.rpc.RetryInfo";
    let mut any = vec![0x0a, url.len() as u8];
    any.extend_from_slice(url);
    any.extend_from_slice(&[0x12, 4, 0x0a, 2, 0x08, seconds]);
    let mut status = vec![0x08, 8, 0x1a, any.len() as u8];
    status.append(&mut any);
    status
}

#[test]
fn what_a_status_means() {
    let later = Status::with_details(Code::ResourceExhausted, "later", retry_info(1).into());
    let receiver = receiver(vec![
        Err(Status::unavailable("soon")),
        Err(later),
        Ok(ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 1,
                error_message: "one".to_owned(),
            }),
        }),
        Err(Status::invalid_argument("never")),
        Err(Status::resource_exhausted("quota")),
    ]);
    let exporters = exporter(grpc(receiver.address), Signal::Traces);
    let (queue, health) = (
        &exporters.pipelines()[0].queue,
        &exporters.pipelines()[0].health,
    );
    let begin = Instant::now();
    offer_spans(queue, &["a", "b"]);
    assert!(exporters.flush(DEADLINE));
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert_eq!(counts(&queue.account), [1, 0, 1, 0, 0]);
    assert_eq!((health.attempts_again(), health.requests_taken()), (2, 1));
    for (failed, error) in [
        (2, "InvalidArgument: never"),
        (4, "ResourceExhausted: quota"),
    ] {
        offer_spans(queue, &["a", "b"]);
        assert!(exporters.flush(DEADLINE));
        assert_eq!(counts(&queue.account), [1, failed, 1, 0, 0]);
        assert!(
            health.last_error().starts_with(error),
            "{}",
            health.last_error()
        );
    }
    assert_balance(queue);
}

#[test]
fn a_receiver_that_comes_late() {
    // A socket that is bound and does not listen keeps its port, and refuses.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let exporters = exporter(grpc(address), Signal::Traces);
    let pipeline = &exporters.pipelines()[0];
    offer_spans(&pipeline.queue, &["a"]);
    assert!(!exporters.flush(Duration::from_millis(50)));
    assert_eq!(pipeline.queue.account.in_flight(), 1);
    let error = pipeline.health.last_error();
    assert!(error.contains("refused"), "{error}");
    let (got, traces) = channel();
    on_thread(async move {
        let incoming = TcpIncoming::from(socket.listen(BACKLOG).unwrap());
        let answers = Mutex::default();
        let service = TraceServiceServer::new(Traces { got, answers });
        let server = tonic::transport::Server::builder().add_service(service);
        server.serve_with_incoming(incoming).await.unwrap();
    });
    assert!(exporters.flush(DEADLINE));
    assert!(traces.recv_timeout(DEADLINE).is_ok());
    assert_eq!(counts(&pipeline.queue.account), [1, 0, 0, 0, 0]);
}

#[test]
fn a_receiver_that_is_no_grpc() {
    let receiver = support::Receiver::start(Vec::new());
    let mut plan = plan(pipeline(
        Signal::Traces,
        Exporter::OtlpGrpc(Box::new(grpc(receiver.address))),
        processor(100),
    ));
    plan.retry.elapsed_max = Some(Duration::ZERO);
    let exporters = spangate_export::Exporters::start(plan).unwrap();
    let queue = &exporters.pipelines()[0].queue;
    offer_spans(queue, &["a"]);
    assert!(exporters.flush(DEADLINE));
    assert_eq!(counts(&queue.account), [0, 1, 0, 0, 0]);
    assert_balance(queue);
    // The text is the library's own: it says something at least.
    assert!(!exporters.pipelines()[0].health.last_error().is_empty());
}
