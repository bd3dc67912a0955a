//! gRPC errors as messages (`google/rpc/status.proto`, `google/rpc/error_details.proto`), which
//! OTLP over HTTP uses too.

use std::time::Duration;

use otlp::scan::Malformed;
use otlp::wire::{Fields, Value, fields, last_bytes};
use otlp::write::{bytes, message, uint};

/// `google.rpc.Status`, with the one detail that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// A gRPC code.
    pub code: i32,
    /// A message for people.
    pub message: String,
    /// `google.rpc.RetryInfo`: when to try again.
    pub retry_after: Option<Duration>,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
/// `Status.message`, `Any.value`
const SECOND: u32 = 2 << 3 | 2;
/// `Status.details`
const DETAILS: u32 = 3 << 3 | 2;
/// `Any.type_url`, `RetryInfo.delay`
const FIRST: u32 = 1 << 3 | 2;

impl Status {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.code != 0 {
            uint(&mut out, 1, self.code as u64);
        }
        if !self.message.is_empty() {
            bytes(&mut out, 2, self.message.as_bytes());
        }
        if let Some(after) = self.retry_after {
            message(&mut out, 3, |out| {
                bytes(out, 1, RETRY_INFO.as_bytes());
                message(out, 2, |out| message(out, 1, |out| duration(after, out)));
            });
        }
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    /// It is malformed, or its text is not UTF-8.
    pub fn decode(message: &[u8]) -> Result<Status, Malformed> {
        let mut status = Status::default();
        for field in Fields::new(message) {
            let field = field?;
            match (field.key, field.value) {
                (0x08, Value::Varint(code)) => status.code = code as i32,
                (SECOND, Value::Bytes(text)) => {
                    let text = String::from_utf8(text.to_vec());
                    status.message = text.map_err(|_| Malformed::WireType)?;
                }
                (DETAILS, Value::Bytes(detail)) => {
                    status.retry_after = status.retry_after.or_else(|| retry_info(detail));
                }
                (key, _) if key >> 3 <= 3 => return Err(Malformed::WireType),
                _ => {}
            }
        }
        Ok(status)
    }
}

/// Appends the fields of a `google.protobuf.Duration`.
fn duration(time: Duration, out: &mut Vec<u8>) {
    uint(out, 1, time.as_secs());
    uint(out, 2, time.subsec_nanos().into());
}

/// The delay of a detail that is a `RetryInfo`.
fn retry_info(detail: &[u8]) -> Option<Duration> {
    if !last_bytes(detail, FIRST).ends_with(b"/google.rpc.RetryInfo") {
        return None;
    }
    let info = last_bytes(detail, SECOND);
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(last_bytes(info, FIRST)) {
        match (field.key, field.value) {
            (0x08, Value::Varint(value)) => seconds = value.cast_signed(),
            (0x10, Value::Varint(value)) => nanos = value as i32,
            _ => {}
        }
    }
    let is_there = fields(info).any(|field| field.key == FIRST);
    let (seconds, nanos) = (u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    (is_there && nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

/// The retry delay in an encoded [`Status`].
#[must_use]
pub fn retry_after(status: &[u8]) -> Option<Duration> {
    Status::decode(status).ok()?.retry_after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_back() {
        let mut status = Status {
            code: 14,
            message: "later".to_owned(),
            retry_after: Some(Duration::from_millis(1_250)),
        };
        assert_eq!(Status::decode(&status.encode()), Ok(status.clone()));
        // Another detail before it.
        let bytes = [b"\x1a\x03\x0a\x01x", &*status.encode()].concat();
        assert_eq!(retry_after(&bytes), status.retry_after);
        status.retry_after = None;
        assert_eq!(retry_after(&status.encode()), None);
        assert_eq!(retry_after(b"\xff"), None);
        assert_eq!(Status::decode(b""), Ok(Status::default()));
    }
}
