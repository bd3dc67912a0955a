//! What the tests share: records as workers make them, plans, and a receiver of HTTP in the
//! process.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as Inbox, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use otlp::write;
use prost::Message;
use spangate_export::{Exporters, PipelinePlan, Plan, Retry, Schedule};
use telemetry::account::{Account, Loss};
use telemetry::queue::{Batch, Queue};
use telemetry::settings::{
    BatchProcessor, Compression, Encoding, Exporter, Headers, OtlpHttp, Processor, Provider,
    Signal, Tls,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Nothing here takes as long, on any machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

pub fn span(name: &str) -> Span {
    Span {
        trace_id: (1..=16).collect(),
        span_id: (0xa1..=0xa8).collect(),
        name: name.to_owned(),
        kind: 2,
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_000_001_234_567,
        attributes: vec![text("url.path", "/a\nb")],
        ..Span::default()
    }
}

/// Records as a worker hands them over.
pub fn batch<M: Message>(records: &[M]) -> Batch {
    let mut bytes = Vec::new();
    for record in records {
        write::bytes(&mut bytes, 2, &record.encode_to_vec());
    }
    Batch {
        bytes,
        records: records.len() as u32,
    }
}

/// Offers records as a worker does.
pub fn offer<M: Message>(queue: &Queue, records: &[M]) {
    queue.account.add_started(records.len() as u64);
    let spare = queue.offer(batch(records));
    assert!(spare.is_empty());
}

pub fn offer_spans(queue: &Queue, names: &[&str]) {
    let spans: Vec<_> = names.iter().map(|name| span(name)).collect();
    offer(queue, &spans);
}

/// Records that are exported only when asked for, or when a batch is full.
pub fn processor(batch_records_max: u32) -> Processor {
    Processor::Batch(BatchProcessor {
        queue_records_max: 1000,
        delay_ms: 3_600_000,
        export_timeout_ms: 30_000,
        batch_records_max,
    })
}

pub fn otlp_http(address: SocketAddr) -> OtlpHttp {
    OtlpHttp {
        endpoint: format!("http://{address}/v1/traces"),
        encoding: Encoding::Protobuf,
        headers: Headers::default(),
        timeout_ms: DEADLINE.as_millis() as u32,
        requests_max: 4,
        compression: Compression::None,
        tls: Tls::default(),
    }
}

pub fn provider() -> Provider {
    Provider {
        scope_name: "scope".to_owned(),
        resource: vec![("service.name".to_owned(), "shop".to_owned())],
        flush_timeout_ms: DEADLINE.as_millis() as u32,
    }
}

pub fn pipeline(signal: Signal, exporter: Exporter, processor: Processor) -> PipelinePlan {
    PipelinePlan::new(signal, &provider(), exporter, Schedule::Queue(processor))
}

/// A plan of one pipeline, which tries again at once.
pub fn plan(pipeline: PipelinePlan) -> Plan {
    let mut plan = Plan::new(Arc::new(|_| {}));
    plan.pipelines.push(pipeline);
    plan.retry = Retry {
        first: Duration::from_millis(1),
        elapsed_max: Some(DEADLINE),
        ..Retry::default()
    };
    plan
}

pub fn start(pipeline: PipelinePlan) -> Exporters {
    Exporters::start(plan(pipeline)).unwrap()
}

/// That every record is somewhere.
#[track_caller]
pub fn assert_balance(queue: &Queue) {
    let account = &queue.account;
    let (waiting, _) = queue.depth();
    let lost: u64 = Loss::ALL.iter().map(|why| account.lost(*why)).sum();
    let ended = account.exported() + lost;
    assert_eq!(
        account.started(),
        ended + account.in_flight() + waiting as u64,
        "{account:?}"
    );
}

/// Exported, failed, rejected, for want of room, at the end.
pub fn counts(account: &Account) -> [u64; 5] {
    let lost = |why| account.lost(why);
    [
        account.exported(),
        lost(Loss::ExportFailed),
        lost(Loss::Rejected),
        lost(Loss::QueueFull),
        lost(Loss::Shutdown),
    ]
}

/// Runs something on a runtime and a thread of its own, for as long as the test runs.
pub fn on_thread<F: Future<Output = ()> + Send + 'static>(future: F) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    std::thread::Builder::new()
        .spawn(move || runtime.block_on(future))
        .unwrap();
}

/// A listener on a free port of this machine, and its address.
pub fn listener() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// What a receiver got.
#[derive(Debug)]
pub struct Got {
    pub connection: usize,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn decoded<M: Message + Default>(&self) -> M {
        assert!(!self.headers.contains_key(CONTENT_ENCODING));
        M::decode(self.body.clone()).unwrap()
    }
}

/// An answer: status, header fields, body.
pub type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

pub fn ok() -> Answer {
    (200, Vec::new(), Vec::new())
}

/// A receiver of HTTP/1.1: gives these answers, then `200`.
pub struct Receiver {
    pub address: SocketAddr,
    inbox: Inbox<Got>,
}

impl Receiver {
    pub fn start(answers: Vec<Answer>) -> Receiver {
        let (listener, address) = listener();
        let (outbox, inbox) = channel();
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        on_thread(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let mut connections = 0;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(
                    stream,
                    connections,
                    outbox.clone(),
                    Arc::clone(&answers),
                ));
                connections += 1;
            }
        });
        Receiver { address, inbox }
    }

    #[track_caller]
    pub fn next(&self) -> Got {
        self.inbox.recv_timeout(DEADLINE).expect("a request")
    }

    /// What has come already.
    pub fn try_next(&self) -> Option<Got> {
        self.inbox.try_recv().ok()
    }

    /// What has come and was not asked for.
    pub fn rest(&self) -> usize {
        self.inbox.try_iter().count()
    }
}

/// Serves one connection.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    connection: usize,
    outbox: std::sync::mpsc::Sender<Got>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (outbox, answers) = (outbox.clone(), Arc::clone(&answers));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes());
            let got = Got {
                connection,
                path: head.uri.path().to_owned(),
                headers: head.headers,
                body: body.unwrap_or_default(),
            };
            let _ = outbox.send(got);
            let answer = answers.lock().unwrap().pop_front();
            let (status, headers, body) = answer.unwrap_or_else(ok);
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
        }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
