//! Pages for probes and for Prometheus.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use export::clock::now_unix_ns;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::metrics;
use super::receive::{Sharing, bind};
use super::start::View;
use crate::config::components::extensions::health_check::HealthCheck;
use crate::config::components::shared::address::{Family, Listen};

/// Connections of a page at a time.
const CONNECTIONS_MAX: usize = 64;
/// The head of a request that takes longer is given up.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// After an error of accepting.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Whether all is well.
#[derive(Debug, Default)]
pub struct Health {
    is_ready: AtomicBool,
    /// Since then, in milliseconds of the UNIX epoch.
    since_ms: AtomicU64,
}

impl Health {
    /// Everything runs, or nothing is taken any more.
    pub fn ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Relaxed);
        self.since_ms.store(now_ms(), Relaxed);
    }
}

fn now_ms() -> u64 {
    now_unix_ns() / 1_000_000
}

/// A page that is served until the runtime ends.
pub struct Page {
    /// What it is.
    pub name: String,
    /// Where.
    pub address: SocketAddr,
    task: AbortHandle,
}

type Answer = dyn Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync;

impl Page {
    /// `health_check`
    ///
    /// # Errors
    /// Why it cannot be served.
    pub fn health(
        name: &str,
        settings: &HealthCheck,
        health: Arc<Health>,
        sharing: Sharing,
    ) -> Result<Page, String> {
        let Listen::Tcp { host, port, family } = &settings.server.listen else {
            return Err("Unix sockets are not listened on yet".into());
        };
        if settings.server.tls.is_some() {
            return Err("'tls' is not served yet".into());
        }
        let settings = settings.clone();
        let answer = move |request: &Request<Incoming>| {
            if request.uri().path() != settings.path {
                return text(StatusCode::NOT_FOUND, "text/plain", String::new());
            }
            let is_ready = health.is_ready.load(Relaxed);
            let (status, own) = match is_ready {
                true => (StatusCode::OK, &settings.healthy_body),
                false => (StatusCode::SERVICE_UNAVAILABLE, &settings.unhealthy_body),
            };
            match own {
                Some(body) => text(status, "text/plain", body.clone()),
                None => text(status, "application/json", told(&health, is_ready)),
            }
        };
        Page::start(name, (host, *port, *family), sharing, Arc::new(answer))
    }

    /// The metrics, in Prometheus' text format.
    ///
    /// # Errors
    /// Why they cannot be served.
    pub fn metrics(
        host: &str,
        port: u16,
        view: Arc<View>,
        sharing: Sharing,
    ) -> Result<Page, String> {
        let answer = move |request: &Request<Incoming>| match request.uri().path() {
            "/metrics" => text(StatusCode::OK, metrics::CONTENT, metrics::write(&view)),
            _ => text(StatusCode::NOT_FOUND, "text/plain", String::new()),
        };
        let at = (host, port, Family::Any);
        Page::start("metrics", at, sharing, Arc::new(answer))
    }

    fn start(
        name: &str,
        (host, port, family): (&str, u16, Family),
        sharing: Sharing,
        answer: Arc<Answer>,
    ) -> Result<Page, String> {
        let failed = |error: std::io::Error| format!("{host}:{port}: {error}");
        let listener = bind(host, port, family, sharing).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let task = tokio::spawn(serve(listener, answer)).abort_handle();
        Ok(Page {
            name: name.to_owned(),
            address,
            task,
        })
    }

    /// Takes no more connections.
    pub fn close(&self) {
        self.task.abort();
    }
}

/// What the Collector's own page tells.
fn told(health: &Health, is_ready: bool) -> String {
    if !is_ready {
        return r#"{"status":"Server not available"}"#.to_owned();
    }
    let since_ms = health.since_ms.load(Relaxed);
    let since = jiff::Timestamp::from_millisecond(since_ms as i64).unwrap_or_default();
    let up = Duration::from_millis(now_ms().saturating_sub(since_ms));
    format!(r#"{{"status":"Server available","upSince":"{since}","uptime":"{up:?}"}}"#)
}

fn text(status: StatusCode, content: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

async fn serve(listener: TcpListener, answer: Arc<Answer>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_MAX);
            // An error is one of the peer's.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}
