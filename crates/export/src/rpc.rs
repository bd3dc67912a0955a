//! gRPC errors as messages (`google/rpc/status.proto`, `google/rpc/error_details.proto`), which OTLP over HTTP uses too.

use std::time::Duration;

use prost::Message;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// A gRPC code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// A message for people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Details for programs.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// The type of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<Span>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// A detail that requests a retry after a time.
#[must_use]
pub fn retry_info(after: Duration) -> Any {
    let info = RetryInfo {
        delay: Some(Span {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanos: after.subsec_nanos() as i32,
        }),
    };
    Any {
        type_url: RETRY_INFO.into(),
        value: info.encode_to_vec(),
    }
}

/// The retry delay in an encoded [`Status`].
#[must_use]
pub fn retry_after(status: &[u8]) -> Option<Duration> {
    let status = Status::decode(status).ok()?;
    let info = status
        .details
        .iter()
        .find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(info.value.as_slice()).ok()?.delay?;
    let (seconds, nanos) = (u64::try_from(delay.seconds), u32::try_from(delay.nanos));
    Some(Duration::from_secs(seconds.ok()?) + Duration::from_nanos(nanos.ok()?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_back() {
        let after = Duration::from_millis(1_250);
        let mut status = Status {
            details: vec![Any::default(), retry_info(after)],
            ..Status::default()
        };
        assert_eq!(retry_after(&status.encode_to_vec()), Some(after));
        status.details.pop();
        assert_eq!(retry_after(&status.encode_to_vec()), None);
        assert_eq!(retry_after(b"\xff"), None);
    }
}
