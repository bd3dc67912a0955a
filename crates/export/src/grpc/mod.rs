//! The exporter `otlp_grpc`: sends encoded requests over one connection, or over one to each
//! address of a name.

mod dialer;
mod lanes;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use hyper::Uri;
use hyper::header::HeaderMap;
use hyper::http::uri::PathAndQuery;
use telemetry::settings::{Compression, OtlpGrpc, Signal};
use tonic::client::Grpc as Client;
use tonic::codec::{
    BufferSettings, Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder,
};
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use crate::causes::causes;
use crate::client::{GrpcOptions, Keepalive};
use crate::dial::Dial;
use crate::http::{AGENT, header_map};
use crate::proxy::Proxy;
use crate::reply::{self, REPLY_BYTES_MAX};
use crate::rpc;
use crate::sink::{Outcome, Prepared};
use crate::tls::{Secure, Version};
use dialer::{Ask, Dialer};
use lanes::Lanes;

/// An exporter over gRPC.
pub(crate) struct Grpc {
    way: Way,
    path: PathAndQuery,
    metadata: MetadataMap,
    timeout: Duration,
}

/// Which connection a call uses.
enum Way {
    /// The connection to the first address that accepts.
    One(Client<Channel>),
    /// The next connection in turn.
    Each(Lanes<Dialer>),
}

/// The shortest ping interval of gRPC clients.
const PING_MIN: Duration = Duration::from_secs(10);

impl Grpc {
    /// A client that connects at its first call. Must be called within the runtime.
    pub(crate) fn new(
        settings: &OtlpGrpc,
        signal: Signal,
        options: GrpcOptions,
    ) -> Result<Grpc, String> {
        Grpc::asking(settings, signal, options, dialer::system)
    }

    /// The same with another lookup for the addresses of a host and port.
    fn asking(
        settings: &OtlpGrpc,
        signal: Signal,
        options: GrpcOptions,
        ask: impl FnOnce(&str, u16) -> Ask,
    ) -> Result<Grpc, String> {
        let wrong = |error: &dyn std::error::Error| format!("{}: {error}", settings.endpoint);
        let timeout = Duration::from_millis(u64::from(settings.timeout_ms));
        let client = client(settings.compression)?;
        let way = way(settings, &options, timeout, client, ask)?;
        let service = match signal {
            Signal::Traces => "trace.v1.TraceService",
            Signal::Metrics => "metrics.v1.MetricsService",
            Signal::Logs => "logs.v1.LogsService",
        };
        let path = format!("/opentelemetry.proto.collector.{service}/Export");
        Ok(Grpc {
            way,
            path: PathAndQuery::try_from(path).map_err(|error| wrong(&error))?,
            metadata: MetadataMap::from_headers(header_map(&settings.headers)?),
            timeout,
        })
    }

    /// The metadata of each call.
    pub(crate) fn headers(&self) -> HeaderMap {
        self.metadata.clone().into_headers()
    }

    pub(crate) async fn send(&self, request: &Prepared, headers: HeaderMap) -> Outcome {
        let exchange = self.exchange(request, MetadataMap::from_headers(headers));
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(reply)) => reply::protobuf(reply.get_ref()),
            Ok(Err(status)) => outcome(&status),
            Err(_) => Outcome::busy(format!("no answer within {:?}", self.timeout)),
        }
    }

    async fn exchange(
        &self,
        request: &Prepared,
        metadata: MetadataMap,
    ) -> Result<Response<Bytes>, Status> {
        let call = async |mut client: Client<Channel>| {
            let mut call = tonic::Request::new(request.0.clone());
            *call.metadata_mut() = metadata.clone();
            let ready = client.ready().await;
            ready.map_err(|error| Status::unavailable(causes(&error)))?;
            client.unary(call, self.path.clone(), Raw).await
        };
        let lanes = match &self.way {
            Way::One(client) => return call(client.clone()).await,
            Way::Each(lanes) => lanes,
        };
        let mut tries = 0;
        loop {
            let taken = lanes.take().await.map_err(Status::unavailable)?;
            tries += 1;
            match call(taken.connection.clone()).await {
                Err(status) if is_unsent(&status) => {
                    lanes.broken(&taken);
                    // Each connection may have been closed while it was idle.
                    if tries > lanes.count() {
                        return Err(status);
                    }
                }
                other => return other,
            }
        }
    }
}

/// Whether a call failed before anything was sent: there was no connection.
fn is_unsent(status: &Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(cause) = next {
        let hyper = cause.downcast_ref::<hyper::Error>();
        if cause.is::<tonic::ConnectError>() || hyper.is_some_and(hyper::Error::is_canceled) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// A function that makes a client from a connection.
fn client(compression: Compression) -> Result<fn(Channel) -> Client<Channel>, String> {
    fn plain(channel: Channel) -> Client<Channel> {
        Client::new(channel)
            .max_decoding_message_size(REPLY_BYTES_MAX)
            .accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Zstd)
    }
    match compression {
        Compression::None => Ok(plain),
        Compression::Gzip => Ok(|it| plain(it).send_compressed(CompressionEncoding::Gzip)),
        Compression::Zstd => Ok(|it| plain(it).send_compressed(CompressionEncoding::Zstd)),
        Compression::Deflate
        | Compression::Zlib
        | Compression::Snappy
        | Compression::SnappyFramed
        | Compression::Lz4 => Err("over gRPC only gzip and zstd compress".into()),
    }
}

/// The way to the endpoint; connects on first use.
fn way(
    settings: &OtlpGrpc,
    options: &GrpcOptions,
    timeout: Duration,
    client: fn(Channel) -> Client<Channel>,
    ask: impl FnOnce(&str, u16) -> Ask,
) -> Result<Way, String> {
    let wrong = |error: &dyn std::error::Error| format!("{}: {error}", settings.endpoint);
    let uri: Uri = settings.endpoint.parse().map_err(|error| wrong(&error))?;
    let is_https = uri.scheme_str() == Some("https");
    // gRPC ignores the path of the endpoint: the method has its own.
    let own = uri.authority().map_or("", |authority| authority.as_str());
    let scheme = if is_https { "https" } else { "http" };
    let mut tls = settings.tls.clone();
    let told = match (&options.authority, &tls.more.server_name) {
        (Some(authority), Some(name)) if authority != name => {
            return Err(format!(
                "the authority '{authority}' is not the server's name '{name}'"
            ));
        }
        (Some(authority), _) => Some(authority.clone()),
        (None, name) => name.clone(),
    };
    let authority = told.clone().unwrap_or(own.to_owned());
    let origin: Uri = format!("{scheme}://{authority}")
        .parse()
        .map_err(|error| format!("the authority '{}': {error}", authority.escape_debug()))?;
    if told.is_some() {
        // As in gRPC, the certificate must be valid for the authority without its port.
        tls.more.server_name = origin.host().map(str::to_owned);
    }
    let proxy = options.proxy.as_ref().filter(|_| options.unix.is_none());
    let secure = Secure::new(&tls, is_https || proxy.is_some_and(Proxy::is_https))?;
    let agent = match &settings.user_agent {
        Some(agent) => format!("{agent} {AGENT}"),
        None => AGENT.to_owned(),
    };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{own}"))
        .and_then(|endpoint| endpoint.user_agent(agent))
        .map_err(|error| wrong(&error))?
        .origin(origin);
    if let Some(Keepalive {
        after,
        timeout,
        while_idle,
    }) = options.keepalive
    {
        endpoint = endpoint
            .http2_keep_alive_interval(after.max(PING_MIN))
            .keep_alive_timeout(timeout)
            .keep_alive_while_idle(while_idle);
    }
    if options.is_balanced && options.unix.is_none() && proxy.is_none() {
        let host = uri.host().unwrap_or_default();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let port = if is_https { 443 } else { 80 };
        return Ok(Way::Each(Lanes::new(Dialer {
            ask: ask(bare.unwrap_or(host), uri.port_u16().unwrap_or(port)),
            secure,
            endpoint,
            connect_max: timeout,
            client,
        })));
    }
    let dial = match proxy {
        Some(proxy) => Dial::through(proxy, true, &secure, timeout),
        None => Dial::new(options.unix.as_deref(), timeout),
    };
    // Limits the wait for a server that accepts a connection and sends nothing.
    let endpoint = endpoint.connect_timeout(timeout);
    let connector = secure.connector(Version::Http2, dial);
    let channel = endpoint.connect_with_connector_lazy(connector);
    Ok(Way::One(client(channel)))
}

/// Maps a status to an outcome (OTLP specification, "OTLP/gRPC Response").
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
        // There was no response: the connection broke.
        Code::Unknown if std::error::Error::source(status).is_some() => Outcome::busy(why),
        _ => Outcome::Refused(why),
    }
}

/// A codec that passes messages unchanged.
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
        // The memory for a message is reserved when its size is known.
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
