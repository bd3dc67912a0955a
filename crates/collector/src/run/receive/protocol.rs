//! What listeners serve, and what their servers are set to.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HeaderMap;

use super::{Format, Probe};
use crate::config::components::receivers::otlp::OtlpHttpServer;
use crate::config::components::shared::grpc::GrpcServer;
use crate::config::components::shared::http::HttpServer;
use crate::run::auth::seen;

/// What a listener serves.
pub enum Protocol {
    /// OTLP over gRPC.
    Grpc(Box<GrpcServer>),
    /// OTLP over HTTP.
    Http(Box<OtlpHttpServer>),
    /// Jaeger's service over gRPC.
    JaegerGrpc(Box<GrpcServer>),
    /// Spans of another format over HTTP.
    Spans(Box<HttpServer>, Format),
    /// A page about ourselves.
    Page(Box<HttpServer>, Arc<Answer>),
    /// gRPC's health service.
    Health(Box<GrpcServer>, Arc<Probe>),
}

impl Protocol {
    /// Its server.
    pub(super) fn settings(&self) -> Settings<'_> {
        match self {
            Protocol::Grpc(grpc) | Protocol::JaegerGrpc(grpc) | Protocol::Health(grpc, _) => {
                Settings::Grpc(grpc)
            }
            Protocol::Http(http) => Settings::Http(&http.server),
            Protocol::Spans(http, _) | Protocol::Page(http, _) => Settings::Http(http),
        }
    }
}

/// What a protocol's server is set to.
pub(super) enum Settings<'a> {
    Grpc(&'a GrpcServer),
    Http(&'a HttpServer),
}

impl Settings<'_> {
    pub(super) fn include_metadata(&self) -> bool {
        match self {
            Settings::Grpc(grpc) => grpc.include_metadata,
            Settings::Http(http) => http.include_metadata,
        }
    }

    /// What an authenticator sees of a request.
    pub(super) fn seen<'a>(&self, request: &'a Request<Incoming>) -> Cow<'a, HeaderMap> {
        match self {
            Settings::Grpc(_) => Cow::Borrowed(request.headers()),
            Settings::Http(http) => seen(request.headers(), request.uri(), &http.auth_params),
        }
    }
}

/// What a page answers.
pub type Answer = dyn Fn(&Request<Incoming>) -> hyper::Response<Bytes> + Send + Sync;
