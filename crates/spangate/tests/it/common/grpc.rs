//! A gRPC service with calls of every kind, and messages without a format.

use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use prost::bytes::{Buf as _, BufMut as _};
use tokio::sync::mpsc::UnboundedSender;
use tokio_rustls::TlsAcceptor;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::codegen::tokio_stream::{self, Stream, StreamExt as _};
use tonic::codegen::{Pin, Service, http};
use tonic::metadata::MetadataValue;
use tonic::server::{
    ClientStreamingService, Grpc as Server, ServerStreamingService, StreamingService, UnaryService,
};
use tonic::{Code, Request, Response, Status};

pub type Message = Vec<u8>;
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub type Messages = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Messages without any encoding.
pub struct Plain;

impl Codec for Plain {
    type Encode = Message;
    type Decode = Message;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Message;
    type Error = Status;

    fn encode(&mut self, message: Message, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Message;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Message>, Status> {
        let mut message = vec![0; from.remaining()];
        from.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}

/// Reverses messages.
#[derive(Clone)]
pub struct Reverser {
    /// Reports cancelled calls.
    pub dropped: UnboundedSender<()>,
}

struct Guard(UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

pub fn reversed(mut message: Message) -> Message {
    message.reverse();
    message
}

/// One message in, one out. An empty message is refused, with details in the trailers; `hold` is
/// never answered.
impl UnaryService<Message> for Reverser {
    type Response = Message;
    type Future = Boxed<Result<Response<Message>, Status>>;

    fn call(&mut self, request: Request<Message>) -> Self::Future {
        let dropped = self.dropped.clone();
        Box::pin(async move {
            let message = request.into_inner();
            if message == b"hold" {
                let _guard = Guard(dropped);
                std::future::pending::<()>().await;
            }
            if message.is_empty() {
                let mut status =
                    Status::with_details(Code::InvalidArgument, "nöthing", vec![0, 1, 255].into());
                status
                    .metadata_mut()
                    .insert("x-why", MetadataValue::from_static("empty"));
                return Err(status);
            }
            let mut response = Response::new(reversed(message));
            response
                .metadata_mut()
                .insert("x-head", MetadataValue::from_static("1"));
            Ok(response)
        })
    }
}

/// Sends each byte of the message as a message, then a failure.
impl ServerStreamingService<Message> for Reverser {
    type Response = Message;
    type ResponseStream = Messages;
    type Future = Boxed<Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<Message>) -> Self::Future {
        Box::pin(async move {
            let each = request
                .into_inner()
                .into_iter()
                .map(|byte| Ok(vec![byte; 10_000]));
            let end = std::iter::once(Err(Status::data_loss("over")));
            let all: Messages = Box::pin(tokio_stream::iter(each.chain(end)));
            Ok(Response::new(all))
        })
    }
}

/// The number of bytes received.
impl ClientStreamingService<Message> for Reverser {
    type Response = Message;
    type Future = Boxed<Result<Response<Message>, Status>>;

    fn call(&mut self, request: Request<Streaming<Message>>) -> Self::Future {
        Box::pin(async move {
            let mut all = request.into_inner();
            let mut count = 0;
            while let Some(message) = all.message().await? {
                count += message.len();
            }
            Ok(Response::new(count.to_string().into_bytes()))
        })
    }
}

/// Answers each message when it arrives.
impl StreamingService<Message> for Reverser {
    type Response = Message;
    type ResponseStream = Messages;
    type Future = Boxed<Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<Streaming<Message>>) -> Self::Future {
        Box::pin(async move {
            let all = request.into_inner().map(|message| message.map(reversed));
            let all: Messages = Box::pin(all);
            Ok(Response::new(all))
        })
    }
}

impl Service<http::Request<Incoming>> for Reverser {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Boxed<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let mut server = Server::new(Plain);
            Ok(match request.uri().path() {
                "/t.Test/Unary" => server.unary(service, request).await,
                "/t.Test/Down" => server.server_streaming(service, request).await,
                "/t.Test/Up" => server.client_streaming(service, request).await,
                _ => server.streaming(service, request).await,
            })
        })
    }
}

/// Serves on a listener with a separate runtime.
pub fn serve(socket: std::net::TcpListener, tls: Option<TlsAcceptor>, service: Reverser) {
    socket.set_nonblocking(true).expect("a socket");
    let work = async move {
        let socket = tokio::net::TcpListener::from_std(socket).expect("a listener");
        while let Ok((stream, _)) = socket.accept().await {
            stream.set_nodelay(true).expect("an option");
            let (tls, service) = (tls.clone(), TowerToHyperService::new(service.clone()));
            tokio::spawn(async move {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = match tls {
                    None => {
                        builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await
                    }
                    Some(tls) => {
                        let stream = tls.accept(stream).await.expect("a handshake");
                        builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await
                    }
                };
            });
        }
    };
    super::spawn(move || runtime().block_on(work));
}

pub fn runtime() -> tokio::runtime::Runtime {
    let builder = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    builder.expect("a runtime")
}
