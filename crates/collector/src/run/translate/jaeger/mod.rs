//! Jaeger: its protobuf over gRPC (`api_v2/model.proto`), its Thrift over HTTP and UDP
//! (`jaeger.thrift`, `agent.thrift`), translated as the Collector's `pkg/translator/jaeger` does
//! it.

mod model;
mod proto;
mod status;
mod thrift;

#[cfg(test)]
mod tests;

use super::thrift::Protocol;

/// The `ExportTraceServiceRequest` of a `PostSpansRequest`.
///
/// # Errors
/// What is wrong with it.
pub fn from_grpc(message: &[u8]) -> Result<Vec<u8>, String> {
    proto::read(message)
}

/// The `ExportTraceServiceRequest` of a `Batch` in Thrift's binary protocol.
///
/// # Errors
/// What is wrong with it.
pub fn from_http(body: &[u8]) -> Result<Vec<u8>, String> {
    thrift::batch(body, Protocol::Binary).map_err(|fault| fault.to_string())
}

/// The `ExportTraceServiceRequest` of a message `emitBatch` of the agent, in the compact protocol
/// or the binary one.
///
/// # Errors
/// What is wrong with it.
pub fn from_datagram(datagram: &[u8], is_compact: bool) -> Result<Vec<u8>, String> {
    let protocol = if is_compact {
        Protocol::Compact
    } else {
        Protocol::Binary
    };
    thrift::message(datagram, protocol).map_err(|fault| fault.to_string())
}
