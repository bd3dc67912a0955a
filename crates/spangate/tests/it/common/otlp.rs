//! An OTLP/HTTP receiver, and the files of a filter that exports to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::http::Message;
use super::origin::{Origin, ok};
use super::{DEADLINE, Folder};

/// See the module.
pub struct Receiver {
    pub at: SocketAddr,
    requests: mpsc::Receiver<Message>,
    /// Spans with their service.
    pub spans: Vec<(String, Span)>,
    pub logs: Vec<LogRecord>,
    /// The last value of each series: name and attributes.
    pub sums: BTreeMap<String, i64>,
    /// The last metric of each name.
    pub metrics: BTreeMap<String, Metric>,
    pub resources: Vec<Resource>,
    /// Names of instrumentation scopes.
    pub scopes: Vec<String>,
}

impl Receiver {
    pub fn start() -> Receiver {
        Receiver::answering(|| {})
    }

    /// Calls a function before each answer.
    pub fn answering(before: impl Fn() + Send + Sync + 'static) -> Receiver {
        Receiver::answering_with(move || {
            before();
            None
        })
    }

    /// Answers with the result of `refuse`; such a request is not counted.
    pub fn answering_with(
        refuse: impl Fn() -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Receiver {
        let (sender, requests) = mpsc::channel();
        let origin = Origin::start(move |request| {
            refuse().unwrap_or_else(|| {
                let _ = sender.send(request.clone());
                ok("")
            })
        });
        Receiver {
            at: origin.at,
            requests,
            spans: Vec::new(),
            logs: Vec::new(),
            sums: BTreeMap::new(),
            metrics: BTreeMap::new(),
            resources: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Receives until `holds` returns true.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Receiver) -> bool) {
        while !holds(self) {
            match self.requests.recv_timeout(DEADLINE) {
                Ok(request) => self.take(&request),
                Err(error) => panic!("{what}: {error}; {:?}", self.spans),
            }
        }
    }

    /// Receives the rest, when nothing more can arrive.
    pub fn rest(&mut self) {
        loop {
            match self.requests.recv_timeout(Duration::ZERO) {
                Ok(request) => self.take(&request),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, request: &Message) {
        assert_eq!(
            request.field("content-type"),
            Some("application/x-protobuf")
        );
        let body = &request.body[..];
        match request.line.as_str() {
            "POST /v1/traces HTTP/1.1" => {
                let request = ExportTraceServiceRequest::decode(body).expect("spans");
                for of in request.resource_spans {
                    let service = service(of.resource.as_ref());
                    self.resources.extend(of.resource);
                    for scope in of.scope_spans {
                        self.scopes.extend(scope.scope.map(|scope| scope.name));
                        let spans = scope.spans.into_iter();
                        self.spans.extend(spans.map(|span| (service.clone(), span)));
                    }
                }
            }
            "POST /v1/logs HTTP/1.1" => {
                let request = ExportLogsServiceRequest::decode(body).expect("log records");
                let scopes = request
                    .resource_logs
                    .into_iter()
                    .flat_map(|of| of.scope_logs);
                self.logs.extend(scopes.flat_map(|scope| scope.log_records));
            }
            "POST /v1/metrics HTTP/1.1" => {
                let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
                let mut scopes = Vec::new();
                for of in request.resource_metrics {
                    self.resources.extend(of.resource);
                    scopes.extend(of.scope_metrics);
                }
                for metric in scopes.into_iter().flat_map(|scope| scope.metrics) {
                    let points = match &metric.data {
                        Some(Data::Sum(sum)) => &sum.data_points[..],
                        Some(Data::Gauge(gauge)) => &gauge.data_points,
                        Some(Data::Histogram(_)) => &[],
                        other => panic!("{other:?}"),
                    };
                    for point in points {
                        let name = format!("{} {}", metric.name, shown(&point.attributes));
                        if let Some(number_data_point::Value::AsInt(value)) = point.value {
                            self.sums.insert(name, value);
                        }
                    }
                    self.metrics.insert(metric.name.clone(), metric);
                }
            }
            other => panic!("{other}"),
        }
    }

    /// The only span with a name.
    pub fn span(&self, name: &str) -> &Span {
        let spans: Vec<&Span> = self
            .spans
            .iter()
            .map(|(_, span)| span)
            .filter(|span| span.name == name)
            .collect();
        assert_eq!(spans.len(), 1, "{name}: {:?}", self.spans);
        spans[0]
    }
}

fn service(resource: Option<&Resource>) -> String {
    let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
    value(attributes, "service.name").unwrap_or_default()
}

/// The value of an attribute as text.
pub fn value(attributes: &[KeyValue], key: &str) -> Option<String> {
    let pair = attributes.iter().find(|pair| pair.key == key)?;
    match pair.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(value) => Some(value.to_string()),
        other => Some(format!("{other:?}")),
    }
}

/// Attributes as `key=value`, in order.
pub fn shown(attributes: &[KeyValue]) -> String {
    let one = |pair: &KeyValue| {
        let value = value(attributes, &pair.key).unwrap_or_default();
        format!("{}={value}", pair.key)
    };
    attributes.iter().map(one).collect::<Vec<_>>().join(" ")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An `otel.yml` that exports each record separately to a receiver.
pub fn settings(at: SocketAddr, service: &str) -> String {
    format!(
        "exporters:
  t: {{ type: otlp_http, endpoint: \"http://{at}/v1/traces\", content_type: binary }}
  m: {{ type: otlp_http, endpoint: \"http://{at}/v1/metrics\", content_type: binary }}
  l: {{ type: otlp_http, endpoint: \"http://{at}/v1/logs\", content_type: binary }}
processors: {{ p: {{ type: single }} }}
readers: {{ r: {{ export_interval: 200, export_timeout: 100 }} }}
providers:
  p:
    resources:
      - service.name: \"{service}\"
      - deployment.environment.name: \"test\"
signals:
  traces: {{ default: {{ scope_name: Scope, exporters: t, processors: p, providers: p }} }}
  metrics: {{ default: {{ scope_name: Scope, exporters: m, readers: r, providers: p }} }}
  logs: {{ default: {{ scope_name: Scope, exporters: l, processors: p, providers: p }} }}
"
    )
}

/// Writes both files of a filter `f`. Returns the line that declares it. `{yml}` in its file is the
/// name of the other one.
pub fn filter(folder: &Folder, otel: &str, yml: &str) -> String {
    let yml = folder.write("otel.yml", yml);
    let otel = folder.write("otel.cfg", format!("[f]\n{}", otel.replace("{yml}", &yml)));
    format!(" filter opentelemetry id f config {otel}\n")
}
