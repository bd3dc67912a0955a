//! Zipkin over HTTP (Zipkin's API, `POST /api/v2/spans`), and Jaeger's Thrift over HTTP (`POST
//! /api/traces`).

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

use super::Intake;
use super::http::{self, Edge, Reply};
use super::serve::origin_of;
use super::status::Fault;
use crate::config::Signal;
use crate::config::components::shared::http::HttpServer;
use crate::run::translate::zipkin::Form;
use crate::run::translate::{jaeger, zipkin};

/// What a server of spans takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Zipkin's.
    Zipkin {
        /// Tags that look like numbers and truth values become such.
        parse_tags: bool,
    },
    /// Jaeger's Thrift.
    Jaeger,
}

/// Answers a request: 202 where its spans were taken.
pub(super) async fn serve(
    intake: &Arc<Intake>,
    (server, format): (&HttpServer, Format),
    request: Request<Incoming>,
) -> Response<Reply> {
    let edge = match Edge::begin(server, &request) {
        Ok(edge) => edge,
        Err(response) => return *response,
    };
    edge.end(match take(intake, (server, format), request).await {
        Ok(()) => {
            let mut response = Response::new(Reply::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        }
        Err(fault) => {
            intake.entrance.tell(&fault);
            let message = fault.status().message.into_bytes();
            http::refusal(&fault, "text/plain; charset=utf-8", message)
        }
    })
}

async fn take(
    intake: &Arc<Intake>,
    (server, format): (&HttpServer, Format),
    mut request: Request<Incoming>,
) -> Result<(), Fault> {
    let path = request.uri().path();
    let content = http::content(request.headers()).unwrap_or_default();
    let is_post = request.method() == Method::POST && intake.takes(Signal::Traces);
    let body = body(format, path, content).filter(|_| is_post);
    let body = body.ok_or_else(|| Fault::NotThere(format!("{path} is not served")))??;
    let origin = origin_of(&mut request);
    let whole = http::whole(intake, server, request).await?;
    let own = Arc::clone(intake);
    let translate = move |bytes: &[u8]| {
        own.translated(match body {
            Body::Zipkin(form, parse_tags) => zipkin::to_otlp(form, bytes, parse_tags),
            Body::Jaeger => jaeger::from_http(bytes),
        })
    };
    let request = whole.translated(translate).await?;
    intake.take_of(Signal::Traces, request, origin).await
}

/// What a body is.
enum Body {
    Zipkin(Form, bool),
    Jaeger,
}

/// What a request's body is, by its path and its media type; none where the path is not served.
fn body(format: Format, path: &str, content: &str) -> Option<Result<Body, Fault>> {
    let is = |media: &str| content.eq_ignore_ascii_case(media);
    let path = match path.strip_suffix('/') {
        Some("") | None => path,
        Some(path) => path,
    };
    match (format, path) {
        (Format::Zipkin { parse_tags }, "/api/v2/spans" | "/") => {
            let form = if is("application/x-protobuf") {
                Form::V2Protobuf
            } else {
                Form::V2Json
            };
            Some(Ok(Body::Zipkin(form, parse_tags)))
        }
        (Format::Zipkin { .. }, "/api/v1/spans") if is("application/x-thrift") => {
            let why = "version 1 in Thrift is not taken: send JSON";
            Some(Err(Fault::Encoding(why.into())))
        }
        (Format::Zipkin { parse_tags }, "/api/v1/spans") => {
            Some(Ok(Body::Zipkin(Form::V1Json, parse_tags)))
        }
        (Format::Jaeger, "/api/traces") => {
            let taken = [
                "application/x-thrift",
                "application/vnd.apache.thrift.binary",
            ];
            Some(if taken.into_iter().any(is) {
                Ok(Body::Jaeger)
            } else {
                Err(Fault::Invalid(format!(
                    "the content must be {} or {}",
                    taken[0], taken[1]
                )))
            })
        }
        _ => None,
    }
}
