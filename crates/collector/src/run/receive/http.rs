//! OTLP over HTTP (OTLP specification, "OTLP/HTTP").

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER,
};
use hyper::{Method, Request, Response, StatusCode};
use telemetry::settings::Compression;
use tokio::sync::mpsc;

use super::activity::Begun;
use super::body::{self, Bounds, ReadUntil, Whole};
use super::protocol::Answer;
use super::serve::origin_of;
use super::status::Fault;
use super::{Intake, cors};
use crate::config::Signal;
use crate::config::components::receivers::otlp::OtlpHttpServer;
use crate::config::components::shared::http::HttpServer;

/// What a request's body is, and so is what answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
}

/// Answers a request.
pub(super) async fn serve(
    intake: &Arc<Intake>,
    settings: &OtlpHttpServer,
    request: Request<Incoming>,
) -> Response<Reply> {
    let edge = match Edge::begin(&settings.server, &request) {
        Ok(edge) => edge,
        Err(response) => return *response,
    };
    let form = form(request.headers());
    edge.end(match export(intake, settings, request, form).await {
        Ok(()) => success(form.unwrap_or(Form::Protobuf)),
        Err(fault) => {
            intake.entrance.tell(&fault);
            failure(&fault, form.unwrap_or(Form::Protobuf))
        }
    })
}

/// What stands around each answer of a server: CORS, and the fields of its settings.
pub(super) struct Edge<'a> {
    server: &'a HttpServer,
    origin: Option<HeaderValue>,
    is_post: bool,
}

impl Edge<'_> {
    /// For a request; a preflight has its answer at once.
    pub(super) fn begin<'a>(
        server: &'a HttpServer,
        request: &Request<Incoming>,
    ) -> Result<Edge<'a>, Box<Response<Reply>>> {
        let cors = server.cors.as_ref();
        if let Some(response) = cors.and_then(|cors| cors::preflight(cors, request)) {
            return Err(Box::new(response));
        }
        Ok(Edge {
            server,
            origin: cors.and_then(|cors| cors::origin(cors, request.headers())),
            is_post: request.method() == Method::POST,
        })
    }

    /// The answer as it goes out.
    pub(super) fn end(self, mut response: Response<Reply>) -> Response<Reply> {
        if response.status() == StatusCode::NOT_FOUND && !self.is_post {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let post = HeaderValue::from_static("POST");
            response.headers_mut().insert(ALLOW, post);
        }
        self.marked(response)
    }

    /// The answer with the fields of the settings.
    fn marked(self, mut response: Response<Reply>) -> Response<Reply> {
        if let Some(cors) = &self.server.cors {
            cors::mark(cors, self.origin, response.headers_mut());
        }
        put_own(self.server, response.headers_mut());
        response
    }
}

/// The answer of a page to a request. A preflight does not see the page: nobody asked who sends it.
pub(super) fn page(
    settings: &HttpServer,
    answer: &Answer,
    request: &Request<Incoming>,
) -> Response<Reply> {
    match Edge::begin(settings, request) {
        Ok(edge) => edge.marked(answer(request).map(Reply::whole)),
        Err(response) => *response,
    }
}

/// `response_headers`
fn put_own(settings: &HttpServer, headers: &mut HeaderMap) {
    for (name, value) in &settings.response_headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
            headers.insert(name, value);
        }
    }
}

/// The body of a request, whole and decompressed.
pub(super) async fn whole(
    intake: &Arc<Intake>,
    server: &HttpServer,
    request: Request<Incoming>,
) -> Result<Whole, Fault> {
    let coding = coding(request.headers(), &server.codings)?;
    let bytes_max = server.body_bytes_max;
    let until = request.extensions().get().copied();
    let body = request.into_body();
    let mut bounds = Bounds::of(&body, bytes_max);
    bounds.until = until.map(|ReadUntil(until)| until);
    let whole = body::read(intake, body, bounds).await?;
    body::decode(whole, coding, bytes_max).await
}

async fn export(
    intake: &Arc<Intake>,
    settings: &OtlpHttpServer,
    mut request: Request<Incoming>,
    form: Option<Form>,
) -> Result<(), Fault> {
    let path = request.uri().path();
    let signal = signal(settings, path)
        .filter(|signal| intake.takes(*signal) && request.method() == Method::POST)
        .ok_or_else(|| Fault::NotThere(format!("{path} is not served")))?;
    let form = form.ok_or_else(|| {
        Fault::Encoding("the content must be application/x-protobuf or application/json".into())
    })?;
    let origin = origin_of(&mut request);
    let whole = whole(intake, &settings.server, request).await?;
    let request = match form {
        Form::Protobuf => whole.charged(),
        Form::Json => {
            let account = Arc::clone(&intake.accounts[signal as usize]);
            let bytes_max = usize::try_from(settings.server.body_bytes_max).unwrap_or(usize::MAX);
            let decode = move |json: &[u8]| {
                let decoded = otlp::json::decode(signal, json, bytes_max).map(Bytes::from);
                decoded.map_err(|why| {
                    account.add_malformed();
                    Fault::Invalid(format!("the JSON is no request: {why}"))
                })
            };
            whole.translated(decode).await?
        }
    };
    intake.take_of(signal, request, origin).await
}

fn signal(settings: &OtlpHttpServer, path: &str) -> Option<Signal> {
    if path == settings.traces_path {
        Some(Signal::Traces)
    } else if path == settings.metrics_path {
        Some(Signal::Metrics)
    } else if path == settings.logs_path {
        Some(Signal::Logs)
    } else {
        None
    }
}

/// The media type of a body, without parameters.
pub(super) fn content(headers: &HeaderMap) -> Option<&str> {
    let content = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(content.split(';').next().unwrap_or_default().trim())
}

fn form(headers: &HeaderMap) -> Option<Form> {
    let content = content(headers)?;
    if content.eq_ignore_ascii_case("application/x-protobuf") {
        Some(Form::Protobuf)
    } else if content.eq_ignore_ascii_case("application/json") {
        Some(Form::Json)
    } else {
        None
    }
}

/// Codings that are taken where none is turned off.
const CODINGS: &str = "gzip, zstd, zlib, deflate, snappy, x-snappy-framed, lz4";

fn coding(headers: &HeaderMap, taken: &[Compression]) -> Result<Compression, Fault> {
    let coding = match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => return Ok(Compression::None),
        Some(b"gzip") => Compression::Gzip,
        Some(b"zstd") => Compression::Zstd,
        Some(b"zlib") => Compression::Zlib,
        Some(b"deflate") => Compression::Deflate,
        Some(b"snappy") => Compression::Snappy,
        Some(b"x-snappy-framed") => Compression::SnappyFramed,
        Some(b"lz4") => Compression::Lz4,
        Some(other) => {
            let name = String::from_utf8_lossy(other);
            return Err(Fault::Encoding(format!(
                "content-encoding '{name}' is not taken: {CODINGS} are"
            )));
        }
    };
    if taken.contains(&coding) {
        Ok(coding)
    } else {
        Err(Fault::Encoding(
            "this content-encoding is turned off".into(),
        ))
    }
}

fn success(form: Form) -> Response<Reply> {
    // A response without fields: everything was taken.
    let (content, body) = match form {
        Form::Protobuf => ("application/x-protobuf", Reply::empty()),
        Form::Json => ("application/json", Reply::whole(Bytes::from_static(b"{}"))),
    };
    let mut response = Response::new(body);
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

fn failure(fault: &Fault, form: Form) -> Response<Reply> {
    let status = fault.status();
    let (content, body) = match form {
        Form::Protobuf => ("application/x-protobuf", status.encode()),
        Form::Json => {
            let status = serde_json::json!({ "code": status.code, "message": status.message });
            ("application/json", status.to_string().into_bytes())
        }
    };
    refusal(fault, content, body)
}

/// An answer that tells a fault by its status, and in a body of this type.
pub(super) fn refusal(fault: &Fault, content: &'static str, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::whole(body.into()));
    *response.status_mut() =
        StatusCode::from_u16(fault.http_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    if let Some(after_s) = fault.retry_after_s() {
        headers.insert(RETRY_AFTER, HeaderValue::from(after_s));
    }
    if matches!(fault, Fault::Encoding(_)) {
        // RFC 9110 §12.5.3: what would have been taken.
        let codings = HeaderValue::from_static(CODINGS);
        headers.insert(ACCEPT_ENCODING, codings);
    }
    response
}

/// An answer to a request that nobody looks at.
pub(super) fn refuse(fault: &Fault, headers: &HeaderMap) -> Response<Reply> {
    failure(fault, form(headers).unwrap_or(Form::Protobuf))
}

/// A short body, perhaps with trailers; or frames as they come.
pub struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
    frames: Option<mpsc::Receiver<Frame<Bytes>>>,
    /// The request is not answered as long as this is there.
    _request: Option<Begun>,
}

impl Reply {
    /// The same as the answer to a request.
    pub(super) fn of(self, request: Begun) -> Reply {
        Reply {
            _request: Some(request),
            ..self
        }
    }

    pub(super) fn empty() -> Reply {
        Reply {
            data: None,
            trailers: None,
            frames: None,
            _request: None,
        }
    }

    pub(super) fn whole(data: Bytes) -> Reply {
        Reply {
            data: Some(data).filter(|data| !data.is_empty()),
            ..Reply::empty()
        }
    }

    pub(super) fn with_trailers(data: Bytes, trailers: HeaderMap) -> Reply {
        Reply {
            data: Some(data),
            trailers: Some(trailers),
            ..Reply::empty()
        }
    }

    /// It ends when nobody is left who could send more.
    pub(super) fn stream(frames: mpsc::Receiver<Frame<Bytes>>) -> Reply {
        Reply {
            frames: Some(frames),
            ..Reply::empty()
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(frames) = &mut self.frames {
            return frames.poll_recv(context).map(|frame| frame.map(Ok));
        }
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none() && self.frames.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.frames.is_some() {
            return SizeHint::default();
        }
        let len = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(len as u64)
    }
}
