//! What is to be exported, and how.

use std::sync::Arc;
use std::time::Duration;

use telemetry::queue::Batch;
use telemetry::settings::{Exporter, Pipeline, Processor, Provider, Settings, Signal};

use crate::retry::Retry;
use crate::sink::Collectors;

/// Bytes of encoded records that wait in one queue, and again that are on their way from it.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Gives the data points of a moment.
pub trait MetricSource: Send + Sync {
    /// The `Metric` messages of now, each with the key and the length of field 2 of `ScopeMetrics`; `records` counts the
    /// data points.
    ///
    /// `pipeline` is the place of the pipeline in [`Metrics::pipelines`](telemetry::settings::Metrics::pipelines): with delta
    /// temporality each has its own last time. `now_unix_ns` is the time of the collection. Called on the exporters' thread:
    /// it must not wait.
    fn collect(&self, pipeline: usize, now_unix_ns: u64) -> Batch;
}

/// Takes one line about a change: a pipeline that begins to fail, or that works again. A few lines a pipeline in ten
/// seconds at most; called on the exporters' thread.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// All pipelines of a process.
#[derive(Clone)]
pub struct Plan {
    /// In the order in which [`Exporters`](crate::Exporters) has them.
    pub pipelines: Vec<PipelinePlan>,
    /// When a request is sent again.
    pub retry: Retry,
    /// Collectors of this process that exporters name.
    pub collectors: Collectors,
    /// Where changes are told.
    pub log: Log,
}

/// One pipeline: a queue and an exporter.
#[derive(Clone)]
pub struct PipelinePlan {
    /// What it carries.
    pub signal: Signal,
    /// Name of the instrumentation scope.
    pub scope_name: String,
    /// Its version; empty: none.
    pub scope_version: String,
    /// Attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Where records go.
    pub exporter: Exporter,
    /// When.
    pub schedule: Schedule,
    /// Time for the last export at the end; zero: what waits is dropped.
    pub flush_timeout: Duration,
    /// Bytes that wait at most, and again that are on their way ([`QUEUE_BYTES_MAX`]).
    pub bytes_max: usize,
}

/// When a pipeline exports.
#[derive(Clone)]
pub enum Schedule {
    /// Spans or log records that come out of the queue.
    Queue(Processor),
    /// Metrics that are collected.
    Collect {
        /// Between two collections.
        interval: Duration,
        /// Who has them.
        source: Arc<dyn MetricSource>,
        /// Which pipeline of the source it is.
        pipeline: usize,
    },
}

/// Where the pipelines of some settings stand in a [`Plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Of the spans.
    pub traces: Vec<usize>,
    /// Of the metrics.
    pub metrics: Vec<usize>,
    /// Of the log records.
    pub logs: Vec<usize>,
}

impl Plan {
    /// No pipelines yet.
    #[must_use]
    pub fn new(log: Log) -> Plan {
        Plan {
            pipelines: Vec::new(),
            retry: Retry::default(),
            collectors: Collectors::new(),
            log,
        }
    }

    /// Adds the pipelines of some settings, and gives their places. Without a `source` no metrics are collected.
    pub fn add(&mut self, settings: &Settings, source: Option<Arc<dyn MetricSource>>) -> Places {
        let mut places = Places::default();
        if let Some(traces) = &settings.traces {
            places.traces = self.add_queues(Signal::Traces, &traces.provider, &traces.pipelines);
        }
        if let Some(logs) = &settings.logs {
            places.logs = self.add_queues(Signal::Logs, &logs.provider, &logs.pipelines);
        }
        if let (Some(metrics), Some(source)) = (&settings.metrics, source) {
            for (at, pipeline) in metrics.pipelines.iter().enumerate() {
                places.metrics.push(self.pipelines.len());
                let schedule = Schedule::Collect {
                    interval: Duration::from_millis(u64::from(pipeline.reader.interval_ms)),
                    source: Arc::clone(&source),
                    pipeline: at,
                };
                let exporter = pipeline.exporter.clone();
                let (signal, provider) = (Signal::Metrics, &metrics.provider);
                let plan = PipelinePlan::new(signal, provider, exporter, schedule);
                self.pipelines.push(plan);
            }
        }
        places
    }

    fn add_queues(
        &mut self,
        signal: Signal,
        provider: &Provider,
        pipelines: &[Pipeline],
    ) -> Vec<usize> {
        let first = self.pipelines.len();
        self.pipelines.extend(pipelines.iter().map(|pipeline| {
            let schedule = Schedule::Queue(pipeline.processor);
            PipelinePlan::new(signal, provider, pipeline.exporter.clone(), schedule)
        }));
        (first..self.pipelines.len()).collect()
    }
}

impl PipelinePlan {
    /// A pipeline of some provider, with our version as that of its scope.
    #[must_use]
    pub fn new(
        signal: Signal,
        provider: &Provider,
        exporter: Exporter,
        schedule: Schedule,
    ) -> PipelinePlan {
        PipelinePlan {
            signal,
            scope_name: provider.scope_name.clone(),
            scope_version: env!("CARGO_PKG_VERSION").to_owned(),
            resource: provider.resource.clone(),
            exporter,
            schedule,
            flush_timeout: Duration::from_millis(u64::from(provider.flush_timeout_ms)),
            bytes_max: QUEUE_BYTES_MAX,
        }
    }
}
