//! OTLP in JSON (OTLP specification, "JSON Protobuf Encoding"), made protobuf as it comes in: nothing behind it knows.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::de::DeserializeOwned;

use crate::config::Signal;

/// The protobuf of a body; its fault.
pub(super) fn to_protobuf(signal: Signal, body: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => convert::<ExportTraceServiceRequest>(body),
        Signal::Metrics => convert::<ExportMetricsServiceRequest>(body),
        Signal::Logs => convert::<ExportLogsServiceRequest>(body),
    }
}

fn convert<M: Message + DeserializeOwned + Default>(body: &[u8]) -> Result<Vec<u8>, String> {
    let message: Result<M, _> = serde_json::from_slice(body);
    message
        .map(|message| message.encode_to_vec())
        .map_err(|error| format!("the JSON is no request: {error}"))
}
