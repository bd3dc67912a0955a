//! Parses responses of receivers: how many records they rejected, and why. An invalid response does
//! not make an accepted export fail.

use otlp::wire::{Value as Wire, fields, last_bytes};
use serde_json::Value;

use crate::rpc::Status;
use crate::sink::Outcome;

/// The most bytes of a response that are read.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 10;

/// Parses a response in protobuf: `Export*ServiceResponse`, which is the same for all signals.
pub(crate) fn protobuf(body: &[u8]) -> Outcome {
    let (mut rejected, mut message) = (0, String::new());
    for field in fields(last_bytes(body, 1 << 3 | 2)) {
        match (field.key >> 3, field.value) {
            (1, Wire::Varint(records)) => rejected = records.cast_signed(),
            (2, Wire::Bytes(text)) => message = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    Outcome::Taken {
        rejected: u64::try_from(rejected).unwrap_or(0),
        message,
    }
}

/// Parses a response in JSON.
pub(crate) fn json(body: &[u8]) -> Outcome {
    let reply: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &reply["partialSuccess"];
    let names = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
    let rejected = names.iter().find_map(|name| match &partial[name] {
        Value::Number(number) => number.as_u64(),
        // In protobuf's JSON, 64-bit numbers are strings.
        Value::String(text) => text.parse().ok(),
        _ => None,
    });
    Outcome::Taken {
        rejected: rejected.unwrap_or(0),
        message: partial["errorMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// The message of a refusal: from a status in protobuf or JSON, else the text itself.
pub(crate) fn error_text(body: &[u8]) -> String {
    if let Ok(reply) = serde_json::from_slice::<Value>(body)
        && let Some(message) = reply["message"].as_str()
    {
        return message.to_owned();
    }
    if let Ok(text) = std::str::from_utf8(body)
        && !text
            .bytes()
            .any(|byte| byte < b' ' && !b"\r\n\t".contains(&byte))
    {
        return text.trim().to_owned();
    }
    match Status::decode(body) {
        Ok(status) => status.message,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}
