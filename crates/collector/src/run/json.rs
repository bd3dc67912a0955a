//! OTLP's JSON (OTLP specification, "JSON Protobuf Encoding"): made protobuf as it comes in and JSON again as it goes out, so
//! that nothing between knows.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Signal;

/// The protobuf of a request in JSON; its fault.
pub fn decode(signal: Signal, body: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => to_protobuf::<ExportTraceServiceRequest>(body),
        Signal::Metrics => to_protobuf::<ExportMetricsServiceRequest>(body),
        Signal::Logs => to_protobuf::<ExportLogsServiceRequest>(body),
    }
}

/// The JSON of a request in protobuf; its fault.
pub fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => to_json::<ExportTraceServiceRequest>(request),
        Signal::Metrics => to_json::<ExportMetricsServiceRequest>(request),
        Signal::Logs => to_json::<ExportLogsServiceRequest>(request),
    }
}

fn to_protobuf<M: Message + DeserializeOwned + Default>(body: &[u8]) -> Result<Vec<u8>, String> {
    let message: Result<M, _> = serde_json::from_slice(body);
    message
        .map(|message| message.encode_to_vec())
        .map_err(|error| format!("the JSON is no request: {error}"))
}

fn to_json<M: Message + Serialize + Default>(request: &[u8]) -> Result<Vec<u8>, String> {
    let message = M::decode(request).map_err(|error| error.to_string())?;
    serde_json::to_vec(&message).map_err(|error| error.to_string())
}
