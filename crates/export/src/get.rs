//! GET requests whose responses are read piece by piece, for listing and watching objects over
//! HTTP/1.1.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use telemetry::settings::Tls;

use crate::causes::causes;
use crate::dial::Dial;
use crate::http::AGENT;
use crate::reply::{self, REPLY_BYTES_MAX};
use crate::tls::{Version, connector};

/// A client for GET requests. Connections are opened when needed; one is kept.
pub struct Getter(Client<HttpsConnector<Dial>, Empty<Bytes>>);

/// A response whose body is read piece by piece.
pub struct Answer {
    headers: HeaderMap,
    body: Incoming,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// A status other than success, and the body's text.
    Status(u16, String),
    /// There was no response.
    Failed(String),
}

impl Getter {
    /// A client of `https` and `http` servers with a time limit for connecting.
    ///
    /// # Errors
    /// Some settings cannot be used.
    pub fn new(tls: &Tls, connect_max: Duration) -> Result<Getter, String> {
        let dial = Dial::new(None, connect_max);
        let connector = connector(tls, true, Version::Http1, dial)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(Getter(client))
    }

    /// Sends a request. The caller limits the time.
    ///
    /// # Errors
    /// The request failed.
    pub async fn get(&self, url: &str, headers: HeaderMap) -> Result<Answer, NoAnswer> {
        let failed = |why: String| NoAnswer::Failed(format!("{url}: {why}"));
        let uri: Uri = { url.parse() }.map_err(|error| failed(format!("{error}")))?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let agent = HeaderValue::from_static(AGENT);
        request.headers_mut().insert(USER_AGENT, agent);
        let response = self.0.request(request).await;
        let response = response.map_err(|error| failed(causes(&error)))?;
        let status = response.status();
        if status.is_success() {
            let (head, body) = response.into_parts();
            let headers = head.headers;
            return Ok(Answer { headers, body });
        }
        let said = Limited::new(response.into_body(), REPLY_BYTES_MAX);
        let said = said.collect().await.map(|body| body.to_bytes());
        let said = reply::error_text(&said.unwrap_or_default());
        Err(NoAnswer::Status(status.as_u16(), said))
    }
}

impl Answer {
    /// The fields of its head.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(causes(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole body, at most `bytes_max` bytes.
    ///
    /// # Errors
    /// The connection failed, or the body is larger.
    pub async fn whole(self, bytes_max: usize) -> Result<Bytes, String> {
        let body = Limited::new(self.body, bytes_max).collect().await;
        let body = body.map_err(|error| causes(&*error))?;
        Ok(body.to_bytes())
    }
}
