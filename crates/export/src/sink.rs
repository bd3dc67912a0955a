//! The destination of a pipeline: any kind of exporter.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use telemetry::settings::{Exporter, Signal, Target};

use crate::client::{GrpcOptions, HttpOptions};
use crate::grpc::Grpc;
use crate::http::Http;
use crate::lines::Lines;
use crate::memory::Memory;
use crate::request::Request;

/// A collector of the same process.
pub trait InProcess: Send + Sync {
    /// Accepts an `Export*ServiceRequest` whole, or not at all. Called on the exporters' thread.
    fn take(&self, signal: Signal, request: Bytes) -> Taking;
}

/// The outcome, once it is known.
pub type Taking = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Collectors by the names of their sections.
pub type Collectors = BTreeMap<String, Arc<dyn InProcess>>;

/// An exporter.
pub(crate) enum Sink {
    Http(Box<Http>),
    Grpc(Box<Grpc>),
    Lines(Lines),
    Memory(Arc<Memory>),
    Collector(Arc<dyn InProcess>, Signal),
}

/// A request in the form in which an exporter sends it, made once for all attempts.
#[derive(Clone, Debug)]
pub struct Prepared(pub(crate) Vec<Bytes>);

/// The outcome of one attempt.
#[derive(Debug)]
pub enum Outcome {
    /// The receiver accepted it, except for the rejected records.
    Taken {
        /// The number of rejected records.
        rejected: u64,
        /// The receiver's message about them, or for information.
        message: String,
    },
    /// The request may succeed later.
    Busy {
        /// The delay, if the receiver gives one.
        after: Option<Duration>,
        /// The reason.
        why: String,
    },
    /// The request can never succeed.
    Refused(String),
}

impl Outcome {
    pub(crate) const TAKEN: Outcome = Outcome::Taken {
        rejected: 0,
        message: String::new(),
    };

    pub(crate) fn busy(why: impl Into<String>) -> Outcome {
        let why = why.into();
        Outcome::Busy { after: None, why }
    }
}

impl Sink {
    /// Makes an exporter from its settings. Opens files, but no connections; must be called within
    /// the runtime.
    pub(crate) fn open(
        exporter: &Exporter,
        signal: Signal,
        collectors: &Collectors,
    ) -> Result<Sink, String> {
        Ok(match exporter {
            Exporter::OtlpHttp(settings) => Sink::Http(Box::new(Http::otlp(
                settings,
                signal,
                HttpOptions::default(),
            )?)),
            Exporter::Zipkin(settings) => Sink::Http(Box::new(Http::zipkin(settings)?)),
            Exporter::OtlpGrpc(settings) => Sink::Grpc(Box::new(Grpc::new(
                settings,
                signal,
                GrpcOptions::default(),
            )?)),
            Exporter::OtlpFile(settings) => Sink::Lines(Lines::file(settings, signal)?),
            Exporter::Ostream(target) => Sink::Lines(Lines::text(target, signal)?),
            Exporter::Memory { records_max } => {
                Sink::Memory(Arc::new(Memory::new(*records_max as usize)))
            }
            Exporter::Collector(named) => {
                let found = collectors.get(&named.name);
                let found = found.ok_or_else(|| format!("there is no collector '{}'", named.name));
                Sink::Collector(Arc::clone(found?), signal)
            }
        })
    }

    /// The most concurrent requests.
    pub(crate) fn requests_max(exporter: &Exporter) -> usize {
        match exporter {
            Exporter::OtlpHttp(settings) => settings.requests_max as usize,
            Exporter::OtlpGrpc(settings) => settings.requests_max as usize,
            Exporter::Zipkin(_) => ZIPKIN_REQUESTS_MAX,
            // These keep the order of their input.
            Exporter::OtlpFile(_) | Exporter::Ostream(_) | Exporter::Memory { .. } => 1,
            // A collector without room for one request has none for the next.
            Exporter::Collector(_) => 1,
        }
    }

    /// The exporter's name and its destination.
    pub(crate) fn name(exporter: &Exporter) -> String {
        match exporter {
            Exporter::OtlpHttp(settings) => format!("otlp_http {}", settings.endpoint),
            Exporter::OtlpGrpc(settings) => format!("otlp_grpc {}", settings.endpoint),
            Exporter::Zipkin(settings) => format!("zipkin {}", settings.endpoint),
            Exporter::OtlpFile(settings) => format!("otlp_file {}", settings.file_pattern),
            Exporter::Ostream(Target::Stdout) => "ostream stdout".to_owned(),
            Exporter::Ostream(Target::Stderr) => "ostream stderr".to_owned(),
            Exporter::Ostream(Target::File(name)) => format!("ostream {name}"),
            Exporter::Memory { .. } => "memory".to_owned(),
            Exporter::Collector(collector) => format!("collector {}", collector.name),
        }
    }

    pub(crate) fn prepare(&self, request: Request) -> Result<Prepared, String> {
        match self {
            Sink::Http(http) => http.prepare(request),
            Sink::Grpc(_) | Sink::Memory(_) => Ok(Prepared(request.frames)),
            Sink::Lines(lines) => lines.prepare(&request),
            Sink::Collector(..) => Ok(Prepared(vec![request.flat().into()])),
        }
    }

    pub(crate) async fn send(&self, request: &Prepared) -> Outcome {
        match self {
            Sink::Http(http) => http.send(request, http.headers()).await,
            Sink::Grpc(grpc) => grpc.send(request, grpc.headers()).await,
            Sink::Lines(lines) => lines.send(request).await,
            Sink::Memory(memory) => {
                // The first frame is the envelope.
                memory.keep(request.0.get(1..).unwrap_or_default());
                Outcome::TAKEN
            }
            Sink::Collector(collector, signal) => {
                let body = request.0.first().cloned().unwrap_or_default();
                collector.take(*signal, body).await
            }
        }
    }
}

/// The most concurrent requests to Zipkin, which has no option for it.
const ZIPKIN_REQUESTS_MAX: usize = 8;
