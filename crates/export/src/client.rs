//! A client of a receiver of OTLP: for whoever has requests and queues of its own.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use telemetry::settings::{OtlpGrpc, OtlpHttp, Signal};

use crate::grpc::Grpc;
use crate::http::Http;
pub use crate::proxy::{Proxies, Proxy};
pub use crate::sink::{Outcome, Prepared};

/// See the module. Connections are made when they are needed, and kept.
pub struct Client(Kind);

/// What a client over gRPC may be told besides its settings.
#[derive(Clone, Default)]
pub struct GrpcOptions {
    /// What `:authority` says, and whose certificate is asked for; else the host and port of the endpoint.
    pub authority: Option<String>,
    /// Path of the Unix socket that takes the place of the endpoint's host.
    pub unix: Option<String>,
    /// Pings.
    pub keepalive: Option<Keepalive>,
    /// Who stands in between, and is asked for a tunnel.
    pub proxy: Option<Proxy>,
    /// All addresses of the endpoint's host are used in turn; else one connection to the first that answers.
    pub is_balanced: bool,
}

/// Pings of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// A silent receiver is pinged after this time.
    pub after: Duration,
    /// And given up after this one.
    pub timeout: Duration,
    /// Also without a call in flight.
    pub while_idle: bool,
}

/// What a client over HTTP may be told besides its settings.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// Level of the compression.
    pub level: Option<i32>,
    /// Connections.
    pub connections: Connections,
    /// Who stands in between.
    pub proxy: Option<Proxy>,
    /// Cookies of answers are kept and sent back.
    pub keeps_cookies: bool,
}

/// Connections of a client over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// At a time; none: no bound.
    pub max: Option<usize>,
    /// Those that are kept while they are idle; 0: each request has one of its own.
    pub idle_max: usize,
    /// An idle one is closed after this time; none: never.
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

/// A kept connection that is not used for as long is closed, where nothing else is said.
const IDLE_MAX: Duration = Duration::from_secs(60);

enum Kind {
    Http(Box<Http>),
    Grpc(Box<Grpc>),
}

impl Client {
    /// Over HTTP. To be called within the runtime.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn http(settings: &OtlpHttp, signal: Signal) -> Result<Client, String> {
        Client::http_with(settings, signal, HttpOptions::default())
    }

    /// The same with more options.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn http_with(
        settings: &OtlpHttp,
        signal: Signal,
        options: HttpOptions,
    ) -> Result<Client, String> {
        let http = Http::otlp(settings, signal, options)?;
        Ok(Client(Kind::Http(Box::new(http))))
    }

    /// Over gRPC. To be called within the runtime.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn grpc(settings: &OtlpGrpc, signal: Signal) -> Result<Client, String> {
        Client::grpc_with(settings, signal, GrpcOptions::default())
    }

    /// The same with more options.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn grpc_with(
        settings: &OtlpGrpc,
        signal: Signal,
        options: GrpcOptions,
    ) -> Result<Client, String> {
        let grpc = Grpc::new(settings, signal, options)?;
        Ok(Client(Kind::Grpc(Box::new(grpc))))
    }

    /// A request as it goes out: its pieces, in the encoding of the settings, compressed where those say so.
    ///
    /// # Errors
    /// Why it cannot be compressed.
    pub fn prepare(&self, frames: Vec<Bytes>) -> Result<Prepared, String> {
        match &self.0 {
            Kind::Http(http) => http.pack(frames),
            // The library compresses.
            Kind::Grpc(_) => Ok(Prepared(frames)),
        }
    }

    /// Sends it once.
    pub async fn send(&self, request: &Prepared) -> Outcome {
        self.send_with(request, self.headers()).await
    }

    /// Fields of each request, as the settings have them.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        match &self.0 {
            Kind::Http(http) => http.headers(),
            Kind::Grpc(grpc) => grpc.headers(),
        }
    }

    /// Sends it once with these fields: those of [`Client::headers`], changed.
    pub async fn send_with(&self, request: &Prepared, headers: HeaderMap) -> Outcome {
        match &self.0 {
            Kind::Http(http) => http.send(request, headers).await,
            Kind::Grpc(grpc) => grpc.send(request, headers).await,
        }
    }
}
