//! A client of an OTLP receiver, for callers that have requests and queues of their own.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use telemetry::settings::{OtlpGrpc, OtlpHttp, Signal};

use crate::grpc::Grpc;
use crate::http::Http;
pub use crate::http::RemoteWrite;
pub use crate::proxy::{Proxies, Proxy};
pub use crate::sink::{Outcome, Prepared};

/// A client of one receiver. Connections are opened when needed, and kept.
pub struct Client(Kind);

/// Options of a client over gRPC besides its settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrpcOptions {
    /// The value of `:authority`, and the name that the certificate must have; by default the host
    /// and port of the endpoint.
    pub authority: Option<String>,
    /// Path of a Unix socket to use instead of the endpoint's host.
    pub unix: Option<String>,
    /// Pings.
    pub keepalive: Option<Keepalive>,
    /// A proxy through which connections are tunnelled.
    pub proxy: Option<Proxy>,
    /// Use all addresses of the endpoint's host in turn; otherwise one connection to the first
    /// address that accepts.
    pub is_balanced: bool,
}

/// Keep-alive pings of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// A silent receiver is pinged after this time.
    pub after: Duration,
    /// A connection without a reply within this time is given up.
    pub timeout: Duration,
    /// Ping even without a call in flight.
    pub while_idle: bool,
}

/// Options of a client over HTTP besides its settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpOptions {
    /// Compression level.
    pub level: Option<i32>,
    /// Connection limits.
    pub connections: Connections,
    /// The proxy, if any.
    pub proxy: Option<Proxy>,
    /// Cookies of responses are kept and sent back.
    pub keeps_cookies: bool,
}

/// Connection limits of a client over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The most connections at a time; none: no limit.
    pub max: Option<usize>,
    /// The most idle connections that are kept; 0: each request opens its own.
    pub idle_max: usize,
    /// An idle connection is closed after this time; none: never.
    pub idle_timeout: Option<Duration>,
}

impl Default for Connections {
    fn default() -> Connections {
        Connections {
            max: None,
            idle_max: usize::MAX,
            idle_timeout: Some(IDLE_MAX),
        }
    }
}

/// The default idle timeout of a kept connection.
const IDLE_MAX: Duration = Duration::from_secs(60);

enum Kind {
    Http(Box<Http>),
    Grpc(Box<Grpc>),
}

impl Client {
    /// A client over HTTP. Must be called within the runtime.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn http(settings: &OtlpHttp, signal: Signal) -> Result<Client, String> {
        Client::http_with(settings, signal, HttpOptions::default())
    }

    /// A client over HTTP with more options.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn http_with(
        settings: &OtlpHttp,
        signal: Signal,
        options: HttpOptions,
    ) -> Result<Client, String> {
        let http = Http::otlp(settings, signal, options)?;
        Ok(Client(Kind::Http(Box::new(http))))
    }

    /// A client of a receiver of Prometheus Remote-Write. Must be called within the runtime. Bodies are
    /// the caller's.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn remote_write(
        settings: &OtlpHttp,
        version: RemoteWrite,
        options: HttpOptions,
    ) -> Result<Client, String> {
        let http = Http::remote_write(settings, version, options)?;
        Ok(Client(Kind::Http(Box::new(http))))
    }

    /// A client over gRPC. Must be called within the runtime.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn grpc(settings: &OtlpGrpc, signal: Signal) -> Result<Client, String> {
        Client::grpc_with(settings, signal, GrpcOptions::default())
    }

    /// A client over gRPC with more options.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn grpc_with(
        settings: &OtlpGrpc,
        signal: Signal,
        options: GrpcOptions,
    ) -> Result<Client, String> {
        let grpc = Grpc::new(settings, signal, options)?;
        Ok(Client(Kind::Grpc(Box::new(grpc))))
    }

    /// Prepares a request for sending: in the encoding of the settings, compressed if they require
    /// it.
    ///
    /// # Errors
    /// Compression failed.
    pub fn prepare(&self, frames: Vec<Bytes>) -> Result<Prepared, String> {
        match &self.0 {
            Kind::Http(http) => http.pack(frames),
            // The gRPC library compresses.
            Kind::Grpc(_) => Ok(Prepared(frames)),
        }
    }

    /// Sends the request once.
    pub async fn send(&self, request: &Prepared) -> Outcome {
        self.send_with(request, self.headers()).await
    }

    /// The header fields of each request, from the settings.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        match &self.0 {
            Kind::Http(http) => http.headers(),
            Kind::Grpc(grpc) => grpc.headers(),
        }
    }

    /// Sends the request once with these header fields: those of [`Client::headers`], modified.
    pub async fn send_with(&self, request: &Prepared, headers: HeaderMap) -> Outcome {
        match &self.0 {
            Kind::Http(http) => http.send(request, headers).await,
            Kind::Grpc(grpc) => grpc.send(request, headers).await,
        }
    }
}
