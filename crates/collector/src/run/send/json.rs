//! Requests as OTLP's JSON.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::Serialize;

use crate::config::Signal;

/// The JSON of a request in protobuf.
pub(super) fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => convert::<ExportTraceServiceRequest>(request),
        Signal::Metrics => convert::<ExportMetricsServiceRequest>(request),
        Signal::Logs => convert::<ExportLogsServiceRequest>(request),
    }
}

fn convert<M: Message + Serialize + Default>(request: &[u8]) -> Result<Vec<u8>, String> {
    let message = M::decode(request).map_err(|error| error.to_string())?;
    serde_json::to_vec(&message).map_err(|error| error.to_string())
}
