//! OTLP's JSON (OTLP specification, "JSON Protobuf Encoding"): made protobuf as it comes in and JSON again as it goes out, so
//! that nothing between knows.

use telemetry::settings;

use crate::config::Signal;

/// The protobuf of a request in JSON, of no more bytes than this; its fault.
pub fn decode(signal: Signal, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, String> {
    let decoded = export::json::decode(own(signal), body, bytes_max);
    decoded.map_err(|why| format!("the JSON is no request: {why}"))
}

/// The JSON of a request in protobuf. Text that is not UTF-8 is replaced, so that it costs a character, not a request.
pub fn encode(signal: Signal, request: &[u8]) -> Vec<u8> {
    export::json::encode(own(signal), request)
}

fn own(signal: Signal) -> settings::Signal {
    match signal {
        Signal::Traces => settings::Signal::Traces,
        Signal::Metrics => settings::Signal::Metrics,
        Signal::Logs => settings::Signal::Logs,
    }
}
