//! Connections, from when they are accepted to when they end.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Begun, Over};
use super::body::ReadUntil;
use super::bounds::{Bounds, Late, at, spread};
use super::grpc::Service;
use super::listen::{Listener, Socket, Stage};
use super::protocol::{Protocol, Settings};
use super::status::Fault;
use super::watched::Watched;
use super::{Intake, cors, grpc, health, http, spans};
use crate::run::auth::Gate;
use crate::run::origin::{Came, Origin, TooMuch, Wanted};

/// Connections of one listener at a time; more wait until one ends.
const CONNECTIONS_MAX: usize = 16 * 1024;
/// A TLS handshake that takes longer is given up.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Frames of HTTP/2: large, for bodies are.
const FRAME_BYTES_MAX: u32 = 1 << 20;
/// What one call, and what one connection, may have on its way before it is read.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Calls of one connection at a time, where the settings say nothing.
const STREAMS_MAX: u32 = 100;
/// How long connections may take to end when the collector does.
const END_MAX: Duration = Duration::from_secs(5);
/// A connection of HTTP/1 without a request waits so long for one before it ends.
const DRAIN: Duration = Duration::from_secs(1);
/// After an error of accepting (too many open files), before the next attempt.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// gRPC's own default, two hours.
const PING_AFTER: Duration = Duration::from_secs(2 * 3600);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct Server {
    pub bounds: Bounds,
    pub builder: Builder<TokioExecutor>,
    pub protocol: Protocol,
    pub intake: Arc<Intake>,
    pub tls: Option<TlsAcceptor>,
    /// Who asks who sends.
    pub gate: Option<Arc<Gate>>,
    /// What is kept of requests.
    pub wanted: Option<Wanted>,
    /// Whether anybody listens.
    pub stage: watch::Receiver<Stage>,
}

/// Whether a connection has to end at this stage of its listener: one that drains waits.
fn asks_to_end(stage: Stage, drain: Option<Instant>) -> bool {
    match drain {
        None => stage != Stage::Open,
        Some(_) => stage == Stage::Over,
    }
}

fn duration(ns: u64, default: Duration) -> Duration {
    match ns {
        0 => default,
        ns => Duration::from_nanos(ns),
    }
}

pub(super) fn builder(protocol: &Protocol) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let (streams_max, ping, ping_timeout) = match protocol.settings() {
        Settings::Grpc(grpc) => {
            builder = builder.http2_only();
            let ping = duration(grpc.keepalive.ping_ns, PING_AFTER);
            let timeout = duration(grpc.keepalive.ping_timeout_ns, PING_TIMEOUT);
            let streams_max = match grpc.streams_max {
                0 => STREAMS_MAX,
                streams_max => streams_max,
            };
            (streams_max, ping, timeout)
        }
        Settings::Http(server) => {
            let mut http1 = builder.http1();
            // The time of a head is ours to watch: the library counts the time between requests to
            // it.
            http1
                .keep_alive(server.keep_alive)
                .header_read_timeout(None);
            (STREAMS_MAX, PING_AFTER, PING_TIMEOUT)
        }
    };
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_frame_size(FRAME_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(streams_max)
        .keep_alive_interval(ping)
        .keep_alive_timeout(ping_timeout);
    builder
}

pub(super) async fn run(server: Arc<Server>, socket: Socket, mut stages: watch::Receiver<Stage>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stages.changed() => break,
            accepted = accept(&socket, &room) => accepted,
        };
        let Ok((connection, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            server.serve(connection).await;
            drop(permit);
        });
    }
    drop(socket);
    // Each connection ends itself, at [`END_MAX`] at the latest.
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(END_MAX * 2, room.acquire_many(all)).await;
}

enum Connection {
    Tcp(tokio::net::TcpStream, IpAddr),
    Unix(tokio::net::UnixStream),
}

async fn accept(
    socket: &Socket,
    room: &Arc<Semaphore>,
) -> io::Result<(Connection, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await;
    let permit = permit.map_err(io::Error::other)?;
    let connection = match &socket.listener {
        Listener::Tcp(listener) => {
            let (stream, from) = listener.accept().await?;
            // Answers are short, and awaited.
            stream.set_nodelay(true)?;
            Connection::Tcp(stream, from.ip())
        }
        Listener::Unix(listener) => Connection::Unix(listener.accept().await?.0),
    };
    Ok((connection, permit))
}

impl Server {
    async fn serve(self: Arc<Server>, connection: Connection) {
        match connection {
            Connection::Tcp(stream, from) => self.shake_hands(stream, Some(from)).await,
            Connection::Unix(stream) => self.shake_hands(stream, None).await,
        }
    }

    async fn shake_hands<S>(self: Arc<Server>, stream: S, from: Option<IpAddr>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Some(tls) = &self.tls else {
            return self.talk(stream, from).await;
        };
        let handshake = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await;
        if let Ok(Ok(stream)) = handshake {
            self.talk(stream, from).await;
        }
    }

    async fn talk<S>(self: Arc<Server>, stream: S, from: Option<IpAddr>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let is_grpc = matches!(self.protocol.settings(), Settings::Grpc(_));
        let activity = Activity::new(is_grpc);
        let stream = Watched::new(stream, &activity, self.bounds.pings);
        let (server, requests) = (Arc::clone(&self), Arc::clone(&activity));
        let service = service_fn(move |request: Request<Incoming>| {
            let (server, begun) = (Arc::clone(&server), requests.begin(request.version()));
            async move {
                let is_http1 = request.version() < Version::HTTP_2;
                let mut answer = server.answer_in_time(request, from, begun).await?;
                if is_http1 && *server.stage.borrow() != Stage::Open {
                    // The connection ends behind it, and the client knows.
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                }
                Ok::<_, Late>(answer)
            }
        });
        let connection = self
            .builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        self.watch(connection, &activity).await;
    }

    /// Serves a connection until it ends, or has to: when it is too old, when what it waits for
    /// takes too long, and when nobody listens any more. Its errors are the peer's: its requests
    /// have failed, and it knows.
    async fn watch(&self, connection: impl GracefulConnection, activity: &Activity) {
        let mut connection = std::pin::pin!(connection);
        let limits = &self.bounds.limits;
        let begin = Instant::now();
        let mut stages = self.stage.clone();
        // While the listener drains, the connection waits until then for one more request.
        let mut drain: Option<Instant> = None;
        let mut age = limits.age.map(|age| begin + spread(age));
        // When it is cut off, once it was asked to end.
        let mut cut: Option<Instant> = None;
        let mut is_ending = false;
        loop {
            // What begins after this moment is not due before the least limit is over.
            let least = limits.least().map(|least| Instant::now() + least);
            let due = activity.due(limits).map(|(due, _)| due);
            let [due, least] = [due, least].map(|time| time.filter(|_| !is_ending));
            let next = [due, least, age, cut].into_iter().flatten().min();
            tokio::select! {
                biased;
                _ = connection.as_mut() => return,
                _ = stages.wait_for(|stage| asks_to_end(*stage, drain)), if !is_ending || cut.is_none() => {
                    let now = Instant::now();
                    cut = Some(now + END_MAX);
                    let is_draining = *self.stage.borrow() == Stage::Draining;
                    if is_draining && !is_ending && activity.may_get_a_request() {
                        drain = Some(now + DRAIN);
                        continue;
                    }
                }
                // A request that came meanwhile was told that it was the last.
                () = at(drain), if !is_ending => {}
                () = at(next) => {
                    let now = Instant::now();
                    let is_over = |time: Option<Instant>| time.is_some_and(|time| time <= now);
                    let over = activity.due(limits).filter(|(due, _)| *due <= now);
                    match over {
                        _ if is_over(cut) => return,
                        Some((_, Over::Head)) => return,
                        Some((_, Over::Idle)) => cut = Some(now + END_MAX),
                        None if is_over(age) => cut = limits.grace.map(|grace| now + grace),
                        None => continue,
                    }
                }
            }
            (age, is_ending) = (None, true);
            connection.as_mut().graceful_shutdown();
        }
    }

    async fn answer_in_time(
        &self,
        request: Request<Incoming>,
        from: Option<IpAddr>,
        begun: Begun,
    ) -> Result<hyper::Response<http::Reply>, Late> {
        let answer = self.answer(request, from, begun.since);
        let answer = match self.bounds.write {
            None => answer.await,
            Some(max) => tokio::time::timeout(max, answer).await.map_err(|_| Late)?,
        };
        Ok(answer.map(|reply| reply.of(begun)))
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        from: Option<IpAddr>,
        since: Instant,
    ) -> hyper::Response<http::Reply> {
        let settings = self.protocol.settings();
        let has_cors = matches!(settings, Settings::Http(server) if server.cors.is_some());
        if let Some(gate) = &self.gate
            && !(has_cors && cors::is_preflight(&request))
            && let Err(denied) = gate.admit(&settings.seen(&request)).await
        {
            return self.refuse(&Fault::from(denied), &request);
        }
        if let Some(wanted) = &self.wanted {
            match self.origin(wanted, &request, from) {
                Ok(Some(origin)) => {
                    request.extensions_mut().insert(origin);
                }
                Ok(None) => {}
                Err(too_much) => return self.refuse(&too_much.into(), &request),
            }
        }
        if let Settings::Http(server) = self.protocol.settings()
            && server.read_timeout_ns > 0
        {
            let until = since + Duration::from_nanos(server.read_timeout_ns);
            request.extensions_mut().insert(ReadUntil(until));
        }
        match &self.protocol {
            Protocol::Grpc(settings) => {
                let bytes_max = settings.message_bytes_max;
                grpc::serve(&self.intake, Service::Otlp, request, bytes_max).await
            }
            Protocol::JaegerGrpc(settings) => {
                let bytes_max = settings.message_bytes_max;
                grpc::serve(&self.intake, Service::Jaeger, request, bytes_max).await
            }
            Protocol::Http(settings) => http::serve(&self.intake, settings, request).await,
            Protocol::Spans(server, format) => {
                spans::serve(&self.intake, (server, *format), request).await
            }
            Protocol::Health(settings, probe) => {
                let (bytes_max, ended) = (settings.message_bytes_max, self.stage.clone());
                health::serve(&self.intake, probe, request, bytes_max, ended).await
            }
            Protocol::Page(settings, answer) => http::page(settings, &**answer, &request),
        }
    }

    fn refuse(&self, fault: &Fault, request: &Request<Incoming>) -> hyper::Response<http::Reply> {
        self.intake.entrance.tell(fault);
        match self.protocol.settings() {
            Settings::Grpc(_) => grpc::refuse(fault),
            Settings::Http(_) => http::refuse(fault, request.headers()),
        }
    }

    fn origin(
        &self,
        wanted: &Wanted,
        request: &Request<Incoming>,
        from: Option<IpAddr>,
    ) -> Result<Option<Arc<Origin>>, TooMuch> {
        let came = Came {
            headers: request.headers(),
            authority: request.uri().authority().map(|host| host.as_str()),
            address: from,
        };
        let gate = self.gate.as_ref().filter(|_| wanted.identity);
        let identity = gate.and_then(|gate| gate.identity(&self.protocol.settings().seen(request)));
        wanted.origin(&came, identity)
    }
}

/// Where a request came from, if anybody asks: it goes along with the request as far as to its
/// body.
pub(super) fn origin_of(request: &mut Request<Incoming>) -> Option<Arc<Origin>> {
    request.extensions_mut().remove()
}
