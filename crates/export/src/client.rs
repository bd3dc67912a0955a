//! A client of a receiver of OTLP: for whoever has requests and queues of its own.

use bytes::Bytes;
use telemetry::settings::{OtlpGrpc, OtlpHttp, Signal};

use crate::grpc::Grpc;
use crate::http::Http;
pub use crate::sink::{Outcome, Prepared};

/// See the module. Connections are made when they are needed, and kept.
pub struct Client(Kind);

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
        let http = Http::otlp(settings, signal)?;
        Ok(Client(Kind::Http(Box::new(http))))
    }

    /// Over gRPC. To be called within the runtime.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn grpc(settings: &OtlpGrpc, signal: Signal) -> Result<Client, String> {
        let grpc = Grpc::new(settings, signal)?;
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
        match &self.0 {
            Kind::Http(http) => http.send(request).await,
            Kind::Grpc(grpc) => grpc.send(request).await,
        }
    }
}
