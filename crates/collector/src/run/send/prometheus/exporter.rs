//! The exporter from its settings: a queue, and a page.

use std::sync::Arc;

use export::client::Outcome;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::Exposition;
use crate::config::components::exporters::prometheus::PrometheusExporter;
use crate::run::data::Batch;
use crate::run::page;
use crate::run::receive::{Listening, Opening};
use crate::run::send::{ExporterDeps, Page, QueueSettings, StartExporter, Started, Target};

impl StartExporter for PrometheusExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let exposition = Exposition::new(self);
        let target = |_: &_, _| Ok(Arc::clone(&exposition));
        let mut started = deps.queues(|| QueueSettings::of(self), target)?;
        started.pages.push(exposition);
        Ok(started)
    }
}

impl Target for Arc<Exposition> {
    type Prepared = ();

    async fn send(&self, batch: &Batch, (): &mut ()) -> Outcome {
        self.take(batch)
    }
}

impl Page for Exposition {
    fn open(self: Arc<Self>, opening: Opening<'_>) -> Result<Listening, String> {
        let server = self.server.clone();
        let answer = move |request: &Request<Incoming>| {
            if request.uri().path() != "/metrics" {
                return page::text(StatusCode::NOT_FOUND, "text/plain", String::new());
            }
            // Several fields are one list (RFC 9110 section 5.3).
            let accept = request.headers().get_all(ACCEPT).iter();
            let accept: Vec<_> = accept.filter_map(|value| value.to_str().ok()).collect();
            let Some((content, body)) = self.page(&accept.join(",")) else {
                let why = "too many pages are being sent\n".to_owned();
                return page::text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", why);
            };
            let mut response = Response::new(body);
            if let Ok(content) = HeaderValue::from_str(&content) {
                response.headers_mut().insert(CONTENT_TYPE, content);
            }
            response
        };
        let opening = Opening {
            wanted: None,
            ..opening
        };
        page::serve(server, Arc::new(answer), opening)
    }
}
