//! What receivers answer: which records they rejected, and why. Nothing in an answer can fail an export that was taken.

use prost::Message;
use serde_json::Value;

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

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<prost_duration::Duration>,
}

mod prost_duration {
    /// `google.protobuf.Duration`.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Duration {
        #[prost(int64, tag = "1")]
        pub seconds: i64,
        #[prost(int32, tag = "2")]
        pub nanos: i32,
    }
}

/// When a receiver asks to be tried again (`RetryInfo` among the details of its status).
pub(crate) fn retry_info(details: &[u8]) -> Option<std::time::Duration> {
    let status = Status::decode(details).ok()?;
    let info = status
        .details
        .iter()
        .find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(info.value.as_slice()).ok()?.delay?;
    let (seconds, nanos) = (u64::try_from(delay.seconds), u32::try_from(delay.nanos));
    let (seconds, nanos) = (seconds.ok()?, nanos.ok()?);
    Some(std::time::Duration::from_secs(seconds) + std::time::Duration::from_nanos(nanos.into()))
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
