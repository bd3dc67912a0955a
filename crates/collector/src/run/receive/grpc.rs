//! gRPC: unary calls of OTLP's three `Export` methods and of Jaeger's `PostSpans`, over HTTP/2 as
//! hyper serves it.
//!
//! A call is one message each way, so gRPC is five bytes before it (flag, length) and trailers
//! behind it ("gRPC over HTTP2"). Messages are not decoded here.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf, Bytes};
use export::rpc::Status;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use syntax::escape::escaped;
use telemetry::settings::Compression;

use super::Intake;
use super::body::{self, Bounds, Whole};
use super::http::Reply;
use super::serve::origin_of;
use super::status::Fault;
use crate::config::Signal;
use crate::run::translate::jaeger;

/// Flag and length.
const PREFIX_BYTES: usize = 5;
/// An answer: a message without fields.
const EMPTY_MESSAGE: &[u8] = &[0; PREFIX_BYTES];
/// Bytes that a message's prefix may add to its bound.
const PREFIX_ROOM_BYTES: u64 = 16;

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Otlp,
    Jaeger,
}

/// Answers a call.
pub(super) async fn serve(
    intake: &Arc<Intake>,
    service: Service,
    request: Request<Incoming>,
    message_bytes_max: u64,
) -> Response<Reply> {
    match export(intake, service, request, message_bytes_max).await {
        Ok(()) => ok(Bytes::from_static(EMPTY_MESSAGE)),
        Err(fault) => {
            intake.entrance.tell(&fault);
            failed(&fault.status())
        }
    }
}

async fn export(
    intake: &Arc<Intake>,
    service: Service,
    mut request: Request<Incoming>,
    message_bytes_max: u64,
) -> Result<(), Fault> {
    let signal = service
        .method(request.uri().path())
        .filter(|signal| intake.takes(*signal))
        .ok_or_else(|| Fault::NotThere(format!("{} is not served", request.uri().path())))?;
    let coding = coding(request.headers())?;
    let origin = origin_of(&mut request);
    let whole = message(intake, coding, request.into_body(), message_bytes_max).await?;
    let request = match service {
        Service::Otlp => whole.charged(),
        Service::Jaeger => {
            let own = Arc::clone(intake);
            let translate = move |bytes: &[u8]| own.translated(jaeger::from_grpc(bytes));
            whole.translated(translate).await?
        }
    };
    intake.take_of(signal, request, origin).await
}

/// The message of a call, decompressed.
pub(super) async fn message(
    intake: &Arc<Intake>,
    coding: Compression,
    body: Incoming,
    bytes_max: u64,
) -> Result<Whole, Fault> {
    let mut bounds = Bounds::of(&body, bytes_max + PREFIX_ROOM_BYTES);
    bounds.begins = framed_bytes;
    let mut whole = body::read(intake, body, bounds).await?;
    if unframe(&mut whole.bytes)? {
        body::decode(whole, coding, bytes_max).await
    } else {
        Ok(whole)
    }
}

impl Service {
    fn method(self, path: &str) -> Option<Signal> {
        match self {
            Service::Otlp => otlp(path),
            Service::Jaeger if path == "/jaeger.api_v2.CollectorService/PostSpans" => {
                Some(Signal::Traces)
            }
            Service::Jaeger => None,
        }
    }
}

fn otlp(path: &str) -> Option<Signal> {
    match path {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Some(Signal::Traces),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Some(Signal::Metrics),
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Some(Signal::Logs),
        _ => None,
    }
}

/// How a message is compressed, if it is.
pub(super) fn coding(headers: &HeaderMap) -> Result<Compression, Fault> {
    match headers.get("grpc-encoding").map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Compression::None),
        Some(b"gzip") => Ok(Compression::Gzip),
        Some(b"zstd") => Ok(Compression::Zstd),
        Some(b"deflate") => Ok(Compression::Deflate),
        // As those who speak gRPC in Go mean it: the framing format.
        Some(b"snappy") => Ok(Compression::SnappyFramed),
        Some(other) => Err(Fault::Encoding(format!(
            "grpc-encoding '{}' is not taken: gzip, zstd, deflate and snappy are",
            String::from_utf8_lossy(other)
        ))),
    }
}

/// The bytes of a message and its prefix.
fn framed_bytes(begin: &[u8]) -> Option<u64> {
    let [_, a, b, c, d] = *begin.first_chunk::<PREFIX_BYTES>()?;
    Some(u64::from(u32::from_be_bytes([a, b, c, d])) + PREFIX_BYTES as u64)
}

/// Takes the prefix off; whether the message is compressed.
fn unframe(bytes: &mut Bytes) -> Result<bool, Fault> {
    let wrong = |reason: &str| Fault::Invalid(reason.into());
    let Some(&[flag, a, b, c, d]) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Err(wrong("there is no message"));
    };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if flag > 1 {
        return Err(wrong("the message has a flag that cannot be"));
    }
    bytes.advance(PREFIX_BYTES);
    match bytes.len().cmp(&len) {
        std::cmp::Ordering::Equal => Ok(flag == 1),
        std::cmp::Ordering::Less => Err(wrong("the message broke off")),
        std::cmp::Ordering::Greater => Err(wrong("there is more than one message")),
    }
}

/// A message that answers, behind its prefix.
pub(super) fn ok(message: Bytes) -> Response<Reply> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    response(Reply::with_trailers(message, trailers))
}

/// An answer to a call that nobody looks at.
pub(super) fn refuse(fault: &Fault) -> Response<Reply> {
    failed(&fault.status())
}

/// A failure has no message: its trailers are its head.
pub(super) fn failed(status: &Status) -> Response<Reply> {
    let mut response = response(Reply::empty());
    response.headers_mut().extend(trailers(status));
    response
}

/// What tells a status.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", HeaderValue::from(status.code));
    if let Ok(message) = HeaderValue::from_str(&percent(&status.message)) {
        headers.insert("grpc-message", message);
    }
    if status.retry_after.is_some() {
        let details = STANDARD_NO_PAD.encode(status.encode());
        if let Ok(details) = HeaderValue::from_str(&details) {
            headers.insert("grpc-status-details-bin", details);
        }
    }
    headers
}

/// An answer of gRPC.
pub(super) fn response(body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    let content = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

/// `Percent-Encoded` of the protocol.
fn percent(text: &str) -> String {
    escaped(text, |byte| matches!(byte, b' '..=b'$' | b'&'..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_unframed() {
        let mut good = Bytes::from_static(b"\x00\x00\x00\x00\x02ab");
        assert_eq!(unframe(&mut good), Ok(false));
        assert_eq!(&good[..], b"ab");
        let mut packed = Bytes::from_static(b"\x01\x00\x00\x00\x00");
        assert_eq!(unframe(&mut packed), Ok(true));
        for wrong in [
            &b""[..],
            b"\x00\x00\x00\x00",
            b"\x02\x00\x00\x00\x00",
            b"\x00\x00\x00\x00\x03ab",
            b"\x00\x00\x00\x00\x01ab",
            b"\x00\xff\xff\xff\xffab",
        ] {
            assert!(
                unframe(&mut Bytes::from_static(wrong)).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent("a b%\né"), "a b%25%0A%C3%A9");
    }
}
