//! The export plan: which pipelines there are, and their options.

use std::sync::Arc;
use std::time::Duration;

use telemetry::queue::Batch;
use telemetry::settings::{Exporter, Pipeline, Processor, Provider, Settings, Signal};

use crate::retry::Retry;
use crate::sink::Collectors;

/// The most bytes of encoded records that wait in one queue; also the most that are in flight from
/// it.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// A source of metric data points.
pub trait MetricSource: Send + Sync {
    /// The current `Metric` messages, each with the key and the length of field 2 of
    /// `ScopeMetrics`; `records` is the number of data points.
    ///
    /// `pipeline` is the index of the pipeline in
    /// [`Metrics::pipelines`](telemetry::settings::Metrics::pipelines): with delta temporality each
    /// has its own last time. `now_unix_ns` is the time of the collection. Called on the exporters'
    /// thread, so it must not block.
    fn collect(&self, pipeline: usize, now_unix_ns: u64) -> Batch;
}

/// Logs a line about a change: a pipeline starts to fail, or works again. At most a few lines per
/// pipeline in ten seconds; called on the exporters' thread.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// All pipelines of a process.
#[derive(Clone)]
pub struct Plan {
    /// In the order of [`Exporters`](crate::Exporters).
    pub pipelines: Vec<PipelinePlan>,
    /// When a request is retried.
    pub retry: Retry,
    /// Collectors of this process, which exporters refer to.
    pub collectors: Collectors,
    /// Logs changes of a pipeline's health.
    pub log: Log,
}

/// One pipeline: a queue and an exporter.
#[derive(Clone)]
pub struct PipelinePlan {
    /// Its signal.
    pub signal: Signal,
    /// Name of the instrumentation scope.
    pub scope_name: String,
    /// Its version; empty: none.
    pub scope_version: String,
    /// Attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Where records go.
    pub exporter: Exporter,
    /// When records are exported.
    pub schedule: Schedule,
    /// Time for the last export at the end; zero: waiting records are dropped.
    pub flush_timeout: Duration,
    /// The most bytes that wait, and also that are in flight ([`QUEUE_BYTES_MAX`]).
    pub bytes_max: usize,
}

/// When a pipeline exports.
#[derive(Clone)]
pub enum Schedule {
    /// When spans or log records are taken from the queue.
    Queue(Processor),
    /// When metrics are collected.
    Collect {
        /// The time between two collections.
        interval: Duration,
        /// The source of the metrics.
        source: Arc<dyn MetricSource>,
        /// The index of the pipeline for the source.
        pipeline: usize,
    },
}

/// The positions of some settings' pipelines in a [`Plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The pipelines for spans.
    pub traces: Vec<usize>,
    /// The pipelines for metrics.
    pub metrics: Vec<usize>,
    /// The pipelines for log records.
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

    /// Adds the pipelines of some settings, and returns their positions. Without a `source` no
    /// metrics are collected.
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
    /// A pipeline of a provider, with our version as the scope's version.
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
