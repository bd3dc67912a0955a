//! Parses responses of receivers: how many records they rejected, and why. An invalid response does not make an accepted export
//! fail.

use prost::Message;
use serde_json::Value;

use crate::rpc::Status;
use crate::sink::Outcome;

/// The most bytes of a response that are read.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 10;

/// `Export*ServiceResponse`, which is the same for all signals.
#[derive(Clone, PartialEq, Message)]
struct Reply {
    #[prost(message, optional, tag = "1")]
    partial: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
struct Partial {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    message: String,
}

/// Parses a response in protobuf.
pub(crate) fn protobuf(body: &[u8]) -> Outcome {
    let reply = Reply::decode(body).unwrap_or_default();
    let partial = reply.partial.unwrap_or_default();
    Outcome::Taken {
        rejected: u64::try_from(partial.rejected).unwrap_or(0),
        message: partial.message,
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
