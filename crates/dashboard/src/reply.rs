//! Answers, and the header fields of all answers.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// An answer.
pub type Reply = Response<Full<Bytes>>;

/// Scripts, styles and data come only from here. Other sites can neither embed the pages nor learn
/// their addresses.
const FIELDS: [(header::HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        header::HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        header::HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// An answer with this media type, which clients must not cache.
pub fn bytes(status: StatusCode, kind: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    let fields = reply.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in FIELDS {
        fields.insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// A JSON value.
pub fn json(value: &Value) -> Reply {
    with_status(StatusCode::OK, value)
}

/// A JSON value with a status.
pub fn with_status(status: StatusCode, value: &Value) -> Reply {
    bytes(status, "application/json", value.to_string().into())
}

/// A serializable value.
pub fn of(value: &impl serde::Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => bytes(StatusCode::OK, "application/json", body.into()),
        // A map with keys that are not texts.
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "an internal error"),
    }
}

/// An error message.
pub fn error(status: StatusCode, message: &str) -> Reply {
    with_status(status, &json!({ "error": message }))
}

/// Requests user and password.
pub fn unauthorized() -> Reply {
    let mut reply = error(StatusCode::UNAUTHORIZED, "user and password are needed");
    let scheme = HeaderValue::from_static("Basic realm=\"Spangate dashboard\", charset=\"UTF-8\"");
    reply.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    reply
}

/// The address requires another method.
pub fn method_not_allowed(allowed: &'static str) -> Reply {
    let mut reply = error(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("use {allowed} here"),
    );
    let allowed = HeaderValue::from_static(allowed);
    reply.headers_mut().insert(header::ALLOW, allowed);
    reply
}
