//! What receivers answer: which records they rejected, and why. Nothing in an answer can fail an export that was taken.

use prost::Message;
use serde_json::Value;

use crate::rpc::Status;
use crate::sink::Outcome;

/// Bytes of an answer that are read.
pub(crate) const REPLY_BYTES_MAX: usize = 64 << 10;

/// `Export*ServiceResponse`, the same for all signals.
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

/// An answer in protobuf.
pub(crate) fn protobuf(body: &[u8]) -> Outcome {
    let reply = Reply::decode(body).unwrap_or_default();
    let partial = reply.partial.unwrap_or_default();
    Outcome::Taken {
        rejected: u64::try_from(partial.rejected).unwrap_or(0),
        message: partial.message,
    }
}

/// An answer in JSON.
pub(crate) fn json(body: &[u8]) -> Outcome {
    let reply: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &reply["partialSuccess"];
    let names = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
    let rejected = names.iter().find_map(|name| match &partial[name] {
        Value::Number(number) => number.as_u64(),
        // 64 bits are a string in the JSON of protobuf.
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

/// What a refusal says: a status in protobuf or JSON, else its text.
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
