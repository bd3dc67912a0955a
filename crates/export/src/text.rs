//! The form of `ostream`: records as human-readable text. Untrusted text is quoted as in JSON, so
//! that it cannot forge a line.
//!
//! Spans and log records are written while their protobuf is read: no message is built, and only
//! the text is allocated. Metrics are few and are decoded with a library.

mod metrics;
mod records;
#[cfg(test)]
mod tests;
mod write;

use otlp::Signal;

/// An OTLP request as text.
pub(crate) fn encode(signal: Signal, request: &[u8]) -> Result<Vec<u8>, String> {
    match signal {
        Signal::Traces | Signal::Logs => {
            records::encode(signal, request).map_err(|_| "the request is not OTLP".to_owned())
        }
        Signal::Metrics => metrics::encode(request).map_err(|error| error.to_string()),
    }
}
