//! The status of `healthcheckv2`: of the collector, of its pipelines, and of their parts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use export::clock::now_unix_ns;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{Health, text};
use crate::config::{Config, Signal};
use crate::run::receive::SourceFailure;
use crate::run::send::Failing;
use crate::run::start::View;

/// What a page tells of.
pub(super) struct Status {
    recovery_ns: Option<u64>,
    pipelines: Vec<Parts>,
    extensions: Vec<String>,
    view: Arc<View>,
    health: Arc<Health>,
}

/// The parts of a pipeline, each by its role and id.
struct Parts {
    id: String,
    signal: Signal,
    /// By id.
    receivers: Vec<String>,
    others: Vec<String>,
    /// By id.
    exporters: Vec<String>,
}

/// How something is.
#[derive(Clone)]
struct State {
    is_healthy: bool,
    since_ns: u64,
    error: Option<String>,
}

impl State {
    /// What stands in a JSON of it.
    fn shown(&self) -> Map<String, Value> {
        let status = match &self.error {
            None => "StatusOK",
            Some(_) => "StatusRecoverableError",
        };
        let mut shown = Map::new();
        shown.insert("healthy".into(), self.is_healthy.into());
        shown.insert("status".into(), status.into());
        if let Some(error) = &self.error {
            shown.insert("error".into(), error.as_str().into());
        }
        shown.insert("status_time".into(), time(self.since_ns).into());
        shown
    }

    /// The graver of two.
    fn and(self, other: State) -> State {
        let grave = |state: &State| (!state.is_healthy, state.error.is_some(), state.since_ns);
        if grave(&other) > grave(&self) {
            other
        } else {
            self
        }
    }
}

fn time(ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    time.to_string()
}

impl Status {
    pub(super) fn new(
        recovery_ns: Option<u64>,
        config: &Config,
        view: Arc<View>,
        health: Arc<Health>,
    ) -> Status {
        let pipelines = config.pipelines.iter().map(|pipeline| {
            let ids = pipeline.exporters.iter();
            let (exporters, connectors): (Vec<_>, Vec<_>) =
                ids.partition(|id| config.exporter(id).is_some());
            let receivers = pipeline.receivers.iter().map(ToString::to_string);
            let processors = pipeline.processors.iter();
            let processors = processors.map(|id| format!("processor:{id}"));
            let connectors = connectors.iter().map(|id| format!("connector:{id}"));
            Parts {
                id: pipeline.id.to_string(),
                signal: pipeline.id.signal,
                receivers: receivers.collect(),
                others: processors.chain(connectors).collect(),
                exporters: exporters.iter().map(ToString::to_string).collect(),
            }
        });
        let extensions = { config.extensions.iter() }.map(|one| format!("extension:{}", one.id));
        Status {
            recovery_ns,
            pipelines: pipelines.collect(),
            extensions: extensions.collect(),
            view,
            health,
        }
    }

    /// Whether the collector serves, or the pipeline of a name; none where there is no such
    /// pipeline.
    pub(super) fn serves(&self, service: &str) -> Option<bool> {
        let state = match service {
            "" => self.whole(false).0,
            name => {
                let pipeline = self.pipelines.iter().find(|one| one.id == name)?;
                self.pipeline(pipeline, false).0
            }
        };
        Some(state.is_healthy && self.health.is_ready.load(Relaxed))
    }

    pub(super) fn answer(&self, request: &Request<Incoming>, path: &str) -> Response<Bytes> {
        const JSON: &str = "application/json";
        if request.uri().path() != path {
            return text(StatusCode::NOT_FOUND, "text/plain", String::new());
        }
        let query = request.uri().query().unwrap_or_default();
        let pairs = || {
            query
                .split('&')
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        };
        let is_verbose = pairs().any(|(key, value)| key == "verbose" && value != "false");
        let asked = pairs().find(|(key, _)| *key == "pipeline");
        if !self.health.is_ready.load(Relaxed) {
            let body = json!({ "healthy": false, "status": "StatusStopping" });
            return text(StatusCode::SERVICE_UNAVAILABLE, JSON, body.to_string());
        }
        let (state, body) = match asked {
            None => self.whole(is_verbose),
            Some((_, name)) => {
                let name = name.replace("%2F", "/").replace("%2f", "/");
                let found = self.pipelines.iter().find(|one| one.id == name);
                let Some(pipeline) = found else {
                    return text(StatusCode::NOT_FOUND, JSON, String::new());
                };
                let (state, shown) = self.pipeline(pipeline, is_verbose);
                (state, Value::Object(shown))
            }
        };
        let status = if state.is_healthy {
            StatusCode::OK
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        text(status, JSON, body.to_string())
    }

    fn fine(&self) -> State {
        State {
            is_healthy: true,
            since_ns: self.view.begun_ns,
            error: None,
        }
    }

    fn whole(&self, is_verbose: bool) -> (State, Value) {
        let mut state = self.fine();
        let mut parts = Map::new();
        let own = |name: &String| (name.clone(), Value::Object(self.fine().shown()));
        let mut extensions = self.fine().shown();
        let components: Map<_, _> = self.extensions.iter().map(own).collect();
        extensions.insert("components".into(), components.into());
        parts.insert("extensions".into(), extensions.into());
        for pipeline in &self.pipelines {
            let (its, shown) = self.pipeline(pipeline, true);
            state = state.and(its);
            parts.insert(format!("pipeline:{}", pipeline.id), shown.into());
        }
        let mut shown = Map::new();
        shown.insert("start_time".into(), time(self.view.begun_ns).into());
        shown.extend(state.shown());
        if is_verbose {
            shown.insert("components".into(), parts.into());
        }
        (state, shown.into())
    }

    fn pipeline(&self, pipeline: &Parts, is_verbose: bool) -> (State, Map<String, Value>) {
        let mut state = self.fine();
        let mut parts = Map::new();
        for id in &pipeline.receivers {
            let its = self.receiver(id);
            parts.insert(format!("receiver:{id}"), its.shown().into());
            state = state.and(its);
        }
        for part in &pipeline.others {
            parts.insert(part.clone(), self.fine().shown().into());
        }
        for id in &pipeline.exporters {
            let its = self.exporter(id, pipeline.signal);
            parts.insert(format!("exporter:{id}"), its.shown().into());
            state = state.and(its);
        }
        let mut shown = state.shown();
        if is_verbose {
            shown.insert("components".into(), parts.into());
        }
        (state, shown)
    }

    fn receiver(&self, id: &str) -> State {
        let mut sources = self.view.sources.iter();
        let source = sources.find(|(own, _)| own == id);
        let Some(SourceFailure { since_ns, why }) = source.and_then(|(_, state)| state.failing())
        else {
            return self.fine();
        };
        State {
            is_healthy: self.is_recovering(since_ns),
            since_ns,
            error: Some(why),
        }
    }

    fn exporter(&self, id: &str, signal: Signal) -> State {
        if let Some(backends) = self.view.backends_of(id) {
            return match backends.failing() {
                None => self.fine(),
                // While other backends accept data, the exporter is still healthy.
                Some(failing) => State {
                    is_healthy: !failing.are_all || self.is_recovering(failing.since_ns),
                    since_ns: failing.since_ns,
                    error: Some(failing.why),
                },
            };
        }
        let mut senders = self.view.senders.iter();
        let found = senders.find(|(own, of, _)| own == id && *of == signal);
        let Some(Failing { since_ns, why, .. }) = found.and_then(|(.., sender)| sender.failing())
        else {
            return self.fine();
        };
        State {
            is_healthy: self.is_recovering(since_ns),
            since_ns,
            error: Some(why),
        }
    }

    /// Whether a failure that began at `since_ns` is within the recovery duration, which is
    /// unlimited if none is set.
    fn is_recovering(&self, since_ns: u64) -> bool {
        let age_ns = now_unix_ns().saturating_sub(since_ns);
        self.recovery_ns.is_none_or(|recovery| age_ns < recovery)
    }
}
