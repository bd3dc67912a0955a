//! The exporters `otlp_http` and `zipkin`: HTTP/1.1 requests over kept connections.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::header::{PROXY_AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use hyper::{Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use telemetry::settings::{Compression, Encoding, Headers, OtlpHttp, Signal, Tls, Zipkin};
use tokio::sync::Semaphore;

use crate::causes::causes;
use crate::client::{Connections, HttpOptions};
use crate::clock::now_unix_ns;
use crate::cookies::Jar;
use crate::dial::Dial;
use crate::lock::lock;
use crate::proxy::{Kind, Proxy};
use crate::reply::{self, REPLY_BYTES_MAX};
use crate::request::Request;
use crate::sink::{Outcome, Prepared};
use crate::tls::{Secure, Version};
use crate::{compress, zipkin};
use otlp::json;

/// Our name in `User-Agent`.
pub(crate) const AGENT: &str = concat!("spangate/", env!("CARGO_PKG_VERSION"));
/// The header field with the version of Prometheus Remote-Write.
const WRITE_VERSION: &str = "x-prometheus-remote-write-version";
/// The time limit of a request to Zipkin, which has no option for it.
const ZIPKIN_TIMEOUT: Duration = Duration::from_secs(10);
/// An exporter over HTTP.
pub(crate) struct Http {
    client: Client<HttpsConnector<Dial>, Frames>,
    /// A permit for each connection, if their number is limited.
    room: Option<Arc<Semaphore>>,
    uri: Uri,
    headers: HeaderMap,
    /// The cookies, if they are kept.
    cookies: Option<Mutex<Jar>>,
    timeout: Duration,
    compression: Compression,
    level: Option<i32>,
    form: Form,
}

/// The form of a body.
enum Form {
    Protobuf,
    Json(Signal),
    Zipkin(Zipkin),
    /// The caller's, for Prometheus.
    RemoteWrite,
}

/// A version of Prometheus Remote-Write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteWrite {
    /// 1.0
    One,
    /// 2.0
    Two,
}

impl RemoteWrite {
    /// The content type, and the field `X-Prometheus-Remote-Write-Version`.
    fn fields(self) -> (&'static str, &'static str) {
        match self {
            RemoteWrite::One => ("application/x-protobuf", "0.1.0"),
            RemoteWrite::Two => (
                "application/x-protobuf;proto=io.prometheus.write.v2.Request",
                "2.0.0",
            ),
        }
    }
}

impl Http {
    pub(crate) fn otlp(
        settings: &OtlpHttp,
        signal: Signal,
        options: HttpOptions,
    ) -> Result<Http, String> {
        let (form, content) = match settings.encoding {
            Encoding::Protobuf => (Form::Protobuf, "application/x-protobuf"),
            Encoding::Json => (Form::Json(signal), "application/json"),
        };
        Http::with(settings, (form, content), options, &[])
    }

    pub(crate) fn remote_write(
        settings: &OtlpHttp,
        version: RemoteWrite,
        options: HttpOptions,
    ) -> Result<Http, String> {
        let (content, version) = version.fields();
        let own = [
            (CONTENT_TYPE, content),
            (HeaderName::from_static(WRITE_VERSION), version),
            (USER_AGENT, AGENT),
            (CONTENT_ENCODING, "snappy"),
        ];
        Http::with(settings, (Form::RemoteWrite, content), options, &own)
    }

    /// `own`: fields that the settings cannot change.
    fn with(
        settings: &OtlpHttp,
        (form, content): (Form, &'static str),
        options: HttpOptions,
        own: &[(HeaderName, &'static str)],
    ) -> Result<Http, String> {
        let timeout = Duration::from_millis(u64::from(settings.timeout_ms));
        let mut http = Http::new(
            &settings.endpoint,
            &settings.tls,
            options.connections,
            options.proxy.as_ref(),
            timeout,
            form,
            content,
        )?;
        http.compression = settings.compression;
        http.level = options.level;
        http.cookies = options
            .keeps_cookies
            .then(|| Mutex::new(Jar::new(&http.uri)));
        if let Some(name) = compress::name(settings.compression) {
            let coding = HeaderValue::from_static(name);
            http.headers.insert(CONTENT_ENCODING, coding);
        }
        for (name, value) in header_map(&settings.headers)?.iter() {
            http.headers.insert(name, value.clone());
        }
        for (name, value) in own {
            let value = HeaderValue::from_static(value);
            http.headers.insert(name, value);
        }
        Ok(http)
    }

    pub(crate) fn zipkin(settings: &Zipkin) -> Result<Http, String> {
        let form = Form::Zipkin(settings.clone());
        Http::new(
            &settings.endpoint,
            &Tls::default(),
            Connections::default(),
            None,
            ZIPKIN_TIMEOUT,
            form,
            "application/json",
        )
    }

    fn new(
        endpoint: &str,
        tls: &Tls,
        connections: Connections,
        proxy: Option<&Proxy>,
        timeout: Duration,
        form: Form,
        content: &'static str,
    ) -> Result<Http, String> {
        let uri: Uri = endpoint
            .parse()
            .map_err(|error| format!("{endpoint}: {error}"))?;
        let is_https = uri.scheme_str() == Some("https");
        let secure = Secure::new(tls, is_https || proxy.is_some_and(Proxy::is_https))?;
        let dial = match proxy {
            Some(proxy) => Dial::through(proxy, is_https, &secure, timeout),
            None => Dial::new(None, timeout),
        };
        let connector = secure.connector(Version::Http1, dial);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        // A tunnel has authenticated already.
        if let (Some(proxy), false) = (proxy, is_https)
            && let Kind::Http(Some(credential)) = &proxy.kind
        {
            headers.insert(PROXY_AUTHORIZATION, credential.clone());
        }
        if connections.idle_max == 0 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(connections.idle_timeout)
            .pool_max_idle_per_host(connections.idle_max)
            .build(connector);
        Ok(Http {
            client,
            room: connections.max.map(|max| Arc::new(Semaphore::new(max))),
            uri,
            headers,
            cookies: None,
            timeout,
            compression: Compression::None,
            level: None,
            form,
        })
    }

    /// Makes the body.
    pub(crate) fn prepare(&self, request: Request) -> Result<Prepared, String> {
        let frames = match &self.form {
            Form::Protobuf => request.frames,
            Form::Json(signal) => vec![json::encode(*signal, &request.flat()).into()],
            Form::Zipkin(settings) => vec![zipkin::encode(settings, &request.flat())?.into()],
            Form::RemoteWrite => return Err("requests are made elsewhere".into()),
        };
        self.pack(frames)
    }

    /// Makes a body in the encoding of the settings, compressed if they require it.
    pub(crate) fn pack(&self, frames: Vec<Bytes>) -> Result<Prepared, String> {
        compress::compress(self.compression, self.level, frames).map(Prepared)
    }

    /// The header fields of each request.
    pub(crate) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    pub(crate) async fn send(&self, request: &Prepared, headers: HeaderMap) -> Outcome {
        let mut post = hyper::Request::new(Frames::new(&request.0));
        *post.method_mut() = hyper::Method::POST;
        *post.uri_mut() = self.uri.clone();
        *post.headers_mut() = headers;
        self.add_cookies(post.headers_mut());
        let exchange = async {
            // The semaphore is never closed, so an error cannot occur.
            let _place = match &self.room {
                Some(room) => room.acquire().await.ok(),
                None => None,
            };
            match self.client.request(post).await {
                Ok(response) => {
                    self.keep_cookies(response.headers());
                    self.outcome(response).await
                }
                Err(error) => Outcome::busy(causes(&error)),
            }
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::busy(format!("no answer within {:?}", self.timeout)),
        }
    }

    /// Adds kept cookies to the configured ones.
    fn add_cookies(&self, headers: &mut HeaderMap) {
        let jar = self.cookies.as_ref().map(lock);
        if let Some(field) = jar.and_then(|jar| jar.field(now_s())) {
            let own = headers.get(COOKIE);
            let both = own.map(|own| [own.as_bytes(), b"; ", field.as_bytes()].concat());
            let both = both.and_then(|both| HeaderValue::try_from(both).ok());
            headers.insert(COOKIE, both.unwrap_or(field));
        }
    }

    fn keep_cookies(&self, headers: &HeaderMap) {
        if let Some(jar) = &self.cookies {
            lock(jar).keep(headers, now_s());
        }
    }

    /// Maps a response to an outcome (OTLP specification, "OTLP/HTTP Response").
    async fn outcome(&self, response: Response<Incoming>) -> Outcome {
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).cloned();
        let body = Limited::new(response.into_body(), REPLY_BYTES_MAX);
        // The body is always read, so that the connection can be reused.
        let body = body.collect().await.map(|body| body.to_bytes());
        if status.is_success() {
            let body = body.unwrap_or_default();
            return match self.form {
                Form::Protobuf => reply::protobuf(&body),
                Form::Json(_) => reply::json(&body),
                Form::Zipkin(_) | Form::RemoteWrite => Outcome::TAKEN,
            };
        }
        // Prometheus Remote-Write: receivers say by any 5xx that the request may succeed later.
        let may_succeed = matches!(self.form, Form::RemoteWrite) && status.is_server_error();
        let why = format!("status {status}");
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Outcome::Busy {
                after: after.and_then(|after| retry_after(&after)),
                why,
            },
            _ if may_succeed => Outcome::busy(why),
            _ => {
                let said = reply::error_text(&body.unwrap_or_default());
                Outcome::Refused(if said.is_empty() {
                    why
                } else {
                    format!("{why}: {said}")
                })
            }
        }
    }
}

fn now_s() -> i64 {
    (now_unix_ns() / 1_000_000_000).cast_signed()
}

/// The header fields of the settings.
pub(crate) fn header_map(headers: &Headers) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in &headers.0 {
        let wrong = || format!("'{}' cannot be a header field", name.escape_debug());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

/// `Retry-After`: seconds, or a date (RFC 9110 section 10.2.3).
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let now = Timestamp::from_nanosecond(i128::from(now_unix_ns())).ok()?;
    date.duration_since(now).try_into().ok()
}

/// A body of a known length, in pieces.
pub(crate) struct Frames {
    rest: VecDeque<Bytes>,
    len: u64,
}

impl Frames {
    fn new(frames: &[Bytes]) -> Frames {
        Frames {
            rest: frames.iter().cloned().collect(),
            len: frames.iter().map(|frame| frame.len() as u64).sum(),
        }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.rest.pop_front();
        self.len -= frame.as_ref().map_or(0, |frame| frame.len() as u64);
        Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len)
    }
}
