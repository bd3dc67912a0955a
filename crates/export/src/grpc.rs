//! The exporter `otlp_grpc`: requests that are encoded already, over one connection.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use telemetry::settings::{Compression, OtlpGrpc, Signal};
use tonic::client::Grpc as Client;
use tonic::codec::{
    BufferSettings, Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder,
};
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::http::{AGENT, causes, header_map};
use crate::reply::{self, REPLY_BYTES_MAX};
use crate::rpc;
use crate::sink::{Outcome, Prepared};
use crate::tls::{Version, connector};

/// See the module.
pub(crate) struct Grpc {
    client: Client<Channel>,
    path: PathAndQuery,
    metadata: MetadataMap,
    timeout: Duration,
}

impl Grpc {
    /// A client that connects when it first sends. To be called within the runtime.
    pub(crate) fn new(settings: &OtlpGrpc, signal: Signal) -> Result<Grpc, String> {
        let wrong = |error: &dyn std::error::Error| format!("{}: {error}", settings.endpoint);
        let uri: Uri = settings.endpoint.parse().map_err(|error| wrong(&error))?;
        let is_https = uri.scheme_str() == Some("https");
        // The path of the endpoint says nothing in gRPC: the method has its own.
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let scheme = if is_https { "https" } else { "http" };
        let origin = format!("{scheme}://{authority}");
        let timeout = Duration::from_millis(u64::from(settings.timeout_ms));
        let connector = connector(&settings.tls, is_https, Version::Http2, timeout)?;
        let agent = match &settings.user_agent {
            Some(agent) => format!("{agent} {AGENT}"),
            None => AGENT.to_owned(),
        };
        let endpoint = Endpoint::from_shared(origin)
            .and_then(|endpoint| endpoint.user_agent(agent))
            .map_err(|error| wrong(&error))?;
        let mut client = Client::new(endpoint.connect_with_connector_lazy(connector))
            .max_decoding_message_size(REPLY_BYTES_MAX)
            .accept_compressed(CompressionEncoding::Gzip);
        if settings.compression == Compression::Gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let service = match signal {
            Signal::Traces => "trace.v1.TraceService",
            Signal::Metrics => "metrics.v1.MetricsService",
            Signal::Logs => "logs.v1.LogsService",
        };
        let path = format!("/opentelemetry.proto.collector.{service}/Export");
        Ok(Grpc {
            client,
            path: PathAndQuery::try_from(path).map_err(|error| wrong(&error))?,
            metadata: MetadataMap::from_headers(header_map(&settings.headers)?),
            timeout,
        })
    }

    pub(crate) async fn send(&self, request: &Prepared) -> Outcome {
        let mut call = tonic::Request::new(request.0.clone());
        *call.metadata_mut() = self.metadata.clone();
        let mut client = self.client.clone();
        let path = self.path.clone();
        let exchange = async {
            let ready = client.ready().await;
            ready.map_err(|error| Status::unavailable(causes(&error)))?;
            client.unary(call, path, Raw).await
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(reply)) => reply::protobuf(reply.get_ref()),
            Ok(Err(status)) => outcome(&status),
            Err(_) => Outcome::busy(format!("no answer within {:?}", self.timeout)),
        }
    }
}

/// What a status means (OTLP specification, "OTLP/gRPC Response").
fn outcome(status: &Status) -> Outcome {
    let why = match std::error::Error::source(status) {
        Some(cause) => format!(
            "{:?}: {}: {}",
            status.code(),
            status.message(),
            causes(cause)
        ),
        None => format!("{:?}: {}", status.code(), status.message()),
    };
    let after = rpc::retry_after(status.details());
    match status.code() {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Outcome::Busy { after, why },
        Code::ResourceExhausted if after.is_some() => Outcome::Busy { after, why },
        // No answer at all: the connection broke.
        Code::Unknown if std::error::Error::source(status).is_some() => Outcome::busy(why),
        _ => Outcome::Refused(why),
    }
}

/// Messages as they are.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<Bytes>;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<Bytes>;
    type Error = Status;

    fn encode(&mut self, frames: Vec<Bytes>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(frames.iter().map(Bytes::len).sum());
        for frame in frames {
            out.put(frame);
        }
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        // What a message needs is reserved when it is known.
        BufferSettings::new(1 << 10, 32 << 10)
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
