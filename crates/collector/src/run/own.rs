//! The collector's own metrics, sent to a receiver of OTLP every so often.

use std::sync::Arc;
use std::time::Duration;

use export::client::{Client, GrpcOptions, HttpOptions, Outcome, Proxies};
use export::clock::now_unix_ns;
use telemetry::settings::Encoding;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::Log;
use super::metrics::{self, Span};
use super::start::View;
use crate::config::Signal;
use crate::config::service::telemetry::{OtlpReader, Server};

/// A reader that sends until it is ended.
pub struct Own {
    task: tokio::task::JoinHandle<()>,
    end: watch::Sender<bool>,
}

impl Own {
    /// Starts to send. To be called within the runtime.
    ///
    /// # Errors
    /// What of the settings cannot be used.
    pub fn start(
        settings: &OtlpReader,
        proxies: &Proxies,
        view: Arc<View>,
        log: &Log,
    ) -> Result<Own, String> {
        let sending = Sending {
            client: client(&settings.to, proxies)?,
            is_json: matches!(&settings.to, Server::Http(http) if http.encoding == Encoding::Json),
            view,
            log: log.clone(),
        };
        let every = Duration::from_millis(settings.interval_ms);
        let (end, mut ended) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => sending.send().await,
                    _ = ended.changed() => return sending.send().await,
                }
            }
        });
        Ok(Own { task, end })
    }

    /// Sends a last time, until a moment.
    pub async fn end(self, until: Instant) {
        let _ = self.end.send(true);
        let abort = self.task.abort_handle();
        if tokio::time::timeout_at(until, self.task).await.is_err() {
            abort.abort();
        }
    }
}

struct Sending {
    client: Client,
    is_json: bool,
    view: Arc<View>,
    log: Log,
}

impl Sending {
    async fn send(&self) {
        let span = Span {
            begun_ns: self.view.begun_ns,
            now_ns: now_unix_ns(),
        };
        let protobuf = metrics::sheet(&self.view).request(&self.view.resource, span);
        let body = if self.is_json {
            otlp::json::encode(Signal::Metrics, &protobuf)
        } else {
            protobuf
        };
        let prepared = self.client.prepare(vec![body.into()]);
        let why = match prepared {
            Err(why) => why,
            // What was not taken is in the next ones: values are sums.
            Ok(prepared) => match self.client.send(&prepared).await {
                Outcome::Taken { rejected: 0, .. } => return,
                Outcome::Taken { rejected, message } => format!("{rejected} rejected: {message}"),
                Outcome::Busy { why, .. } | Outcome::Refused(why) => why,
            },
        };
        self.log.warn(&format!("own metrics: {why}"));
    }
}

fn client(to: &Server, proxies: &Proxies) -> Result<Client, String> {
    match to {
        Server::Http(http) => {
            let options = HttpOptions {
                proxy: proxies.to_url(&http.endpoint),
                ..HttpOptions::default()
            };
            Client::http_with(http, Signal::Metrics, options)
        }
        Server::Grpc(grpc) => {
            // Of gRPC every address asks as one with TLS does.
            let target = grpc.endpoint.split_once("://");
            let target = target.map_or(&*grpc.endpoint, |(_, target)| target);
            let options = GrpcOptions {
                proxy: proxies.to_grpc(target),
                ..GrpcOptions::default()
            };
            Client::grpc_with(grpc, Signal::Metrics, options)
        }
    }
}
