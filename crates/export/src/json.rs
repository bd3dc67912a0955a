//! OTLP in JSON: decoded and written again, for the receivers that want it.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use prost::Message;
use serde::Serialize;
use telemetry::settings::Signal;

/// An export request of a signal in JSON, from protobuf.
pub(crate) fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces => written::<Traces>(request),
        Signal::Metrics => written::<Metrics>(request),
        Signal::Logs => written::<Logs>(request),
    }
}

fn written<T: Message + Default + Serialize>(request: &[u8]) -> Result<Vec<u8>, String> {
    let request = T::decode(request).map_err(|error| error.to_string())?;
    serde_json::to_vec(&request).map_err(|error| error.to_string())
}
