//! OTLP's JSON (OTLP specification, "JSON Protobuf Encoding"): made protobuf as it comes in and JSON again as it goes out, so
//! that nothing between knows.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::de::DeserializeOwned;
use telemetry::settings;

use crate::config::Signal;

/// The protobuf of a request in JSON; its fault.
pub fn decode(signal: Signal, body: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => to_protobuf::<ExportTraceServiceRequest>(body),
        Signal::Metrics => to_protobuf::<ExportMetricsServiceRequest>(body),
        Signal::Logs => to_protobuf::<ExportLogsServiceRequest>(body),
    }
}

/// The JSON of a request in protobuf. Text that is not UTF-8 is replaced, so that it costs a character, not a request.
pub fn encode(signal: Signal, request: &[u8]) -> Vec<u8> {
    let signal = match signal {
        Signal::Traces => settings::Signal::Traces,
        Signal::Metrics => settings::Signal::Metrics,
        Signal::Logs => settings::Signal::Logs,
    };
    export::json::encode(signal, request)
}

fn to_protobuf<M: Message + DeserializeOwned + Default>(body: &[u8]) -> Result<Vec<u8>, String> {
    let message: Result<M, _> = serde_json::from_slice(body);
    message
        .map(|message| message.encode_to_vec())
        .map_err(|error| format!("the JSON is no request: {error}"))
}
