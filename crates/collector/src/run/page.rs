//! Pages for probes and for Prometheus.

mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use export::clock::now_unix_ms;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

use tail::store::Budget;

use super::auth::Authenticators;
use super::charge::Memory;
use super::metrics;
use super::receive::{Answer, Intake, Listening, Opening, Probe, Protocol, listen};
use super::start::View;
use crate::config::Config;
use crate::config::components::extensions::health_check::HealthCheck;
use crate::config::components::extensions::health_check_v2::HealthCheckV2;
use crate::config::components::shared::address::{Family, Listen};
use crate::config::components::shared::http::HttpServer;
use crate::config::service::telemetry::Naming;

use status::Status;

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
        self.since_ms.store(now_unix_ms(), Relaxed);
    }
}

/// `health_check`
///
/// # Errors
/// Why it cannot be served.
pub fn health(
    settings: &HealthCheck,
    health: Arc<Health>,
    opening: Opening<'_>,
) -> Result<Listening, String> {
    let server = settings.server.clone();
    let settings = settings.clone();
    let answer = move |request: &Request<Incoming>| {
        if request.uri().path() != settings.path {
            return text(StatusCode::NOT_FOUND, "text/plain", String::new());
        }
        let is_ready = health.is_ready.load(Relaxed);
        let (status, own) = if is_ready {
            (StatusCode::OK, &settings.healthy_body)
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, &settings.unhealthy_body)
        };
        match own {
            Some(body) => text(status, "text/plain", body.clone()),
            None => text(status, "application/json", told(&health, is_ready)),
        }
    };
    serve(server, Arc::new(answer), opening)
}

/// `healthcheckv2`: what listens, by what follows its id.
///
/// # Errors
/// Why it cannot be served.
pub fn status(
    settings: &HealthCheckV2,
    config: &Config,
    (view, health): (Arc<View>, Arc<Health>),
    opening: Opening<'_>,
) -> Result<Vec<(&'static str, Listening)>, String> {
    let status = Arc::new(Status::new(settings.recovery_ns, config, view, health));
    let mut all = Vec::new();
    if let Some(page) = &settings.http {
        let (status, path) = (Arc::clone(&status), page.status_path.clone());
        let answer = move |request: &Request<Incoming>| status.answer(request, &path);
        let listening = serve(page.server.clone(), Arc::new(answer), opening)?;
        all.push(("", listening));
    }
    if let Some(server) = &settings.grpc {
        let probe: Arc<Probe> = Arc::new(move |service: &str| status.serves(service));
        let protocol = Protocol::Health(Box::new(server.clone()), probe);
        all.push((" grpc", listen(protocol, nobody(), opening)?));
    }
    Ok(all)
}

/// The metrics, in Prometheus' text format.
///
/// # Errors
/// Why they cannot be served.
pub fn metrics(
    (host, port): (&str, u16),
    naming: Naming,
    view: Arc<View>,
    opening: Opening<'_>,
) -> Result<Listening, String> {
    let answer = move |request: &Request<Incoming>| match request.uri().path() {
        "/metrics" => text(
            StatusCode::OK,
            metrics::CONTENT,
            metrics::write(&view, naming),
        ),
        _ => text(StatusCode::NOT_FOUND, "text/plain", String::new()),
    };
    let server = HttpServer::plain(Listen::Tcp {
        host: host.to_owned(),
        port,
        family: Family::Any,
    });
    // Whoever scrapes is asked nothing.
    let opening = Opening {
        auth: &Authenticators::default(),
        wanted: None,
        ..opening
    };
    serve(server, Arc::new(answer), opening)
}

pub(super) fn serve(
    server: HttpServer,
    answer: Arc<Answer>,
    opening: Opening<'_>,
) -> Result<Listening, String> {
    listen(Protocol::Page(Box::new(server), answer), nobody(), opening)
}

/// Bytes of requests of those who take nothing, at a time.
const PAGES_BYTES_MAX: u64 = 1 << 20;

/// The intake of those who take nothing.
fn nobody() -> Arc<Intake> {
    let memory = Memory::new(&Arc::new(Budget::new(PAGES_BYTES_MAX)));
    Arc::new(Intake::new(Default::default(), Default::default(), &memory))
}

/// What the Collector's own page tells.
fn told(health: &Health, is_ready: bool) -> String {
    if !is_ready {
        return r#"{"status":"Server not available"}"#.to_owned();
    }
    let since_ms = health.since_ms.load(Relaxed);
    let since = jiff::Timestamp::from_millisecond(since_ms as i64).unwrap_or_default();
    let up = Duration::from_millis(now_unix_ms().saturating_sub(since_ms));
    format!(r#"{{"status":"Server available","upSince":"{since}","uptime":"{up:?}"}}"#)
}

pub(super) fn text(status: StatusCode, content: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}
