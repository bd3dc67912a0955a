//! Settings of telemetry: from `otel.yml`, or from the environment if there is no such file.
//!
//! The language is that of HAProxy's OpenTelemetry filter: it defines exporters, samplers,
//! processors, readers and providers by name, and says for each signal which of them it uses. Text
//! is read and immutable values are returned; only the exporters open files.
//!
//! Some options are checked but have no effect, because one thread serves all exporters, its HTTP
//! client needs no tuning, and its files are not buffered: `thread_name`, `cpu_id`, `max_threads`,
//! `background_thread_wait_for`, `max_requests_per_connection`, `debug`, `use_json_name`,
//! `flush_interval`, `flush_count`, `handle_map_shards`.

mod check;
mod environment;
mod exporter;
mod pipeline;
mod read;
mod resource;
mod sampler;
mod signal;
mod tls;

use std::cell::RefCell;
use std::fmt;

use syntax::yaml;

pub use crate::account::Signal;
pub use check::{check_url, collector_name};
pub use exporter::{
    Compression, Encoding, Exporter, Headers, InProcess, OtlpFile, OtlpGrpc, OtlpHttp, Target,
    Zipkin,
};
pub use pipeline::{
    BATCH_RECORDS_DEFAULT, BatchProcessor, MetricPipeline, Pipeline, Processor,
    QUEUE_RECORDS_DEFAULT, Reader,
};
pub use sampler::{Composable, Delegate, ParentBased, Sampler};
pub use tls::{Pem, Tls, TlsMore, TlsVersion};

/// What is recorded, how, and where it is sent. A signal that is `None` is not recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Spans.
    pub traces: Option<Traces>,
    /// Data points.
    pub metrics: Option<Metrics>,
    /// Log records.
    pub logs: Option<Logs>,
}

/// Settings that all signals have.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Name of the instrumentation scope.
    pub scope_name: String,
    /// Attributes of the resource, sorted by key, each key once.
    pub resource: Vec<(String, String)>,
    /// Time for the last export at the end (`flush_timeout`); 0: waiting records are dropped.
    pub flush_timeout_ms: u32,
}

/// How spans are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Scope and resource.
    pub provider: Provider,
    /// Which traces are kept (by default all).
    pub sampler: Sampler,
    /// Every span is sent to each of them; at least one.
    pub pipelines: Vec<Pipeline>,
}

/// How metrics are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Scope and resource.
    pub provider: Provider,
    /// The temporality of counters and histograms (our key `temporality`, else
    /// `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`).
    pub temporality: Temporality,
    /// The buckets of histograms without explicit bounds (our key `histogram_aggregation`, else
    /// `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION`).
    pub histogram: Histogram,
    /// Every data point is sent to each of them; at least one.
    pub pipelines: Vec<MetricPipeline>,
}

/// How log records are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Logs {
    /// Scope and resource.
    pub provider: Provider,
    /// Records below this severity are not evaluated: OTLP's `SeverityNumber`, 1 (trace) to 24
    /// (fatal4).
    pub min_severity: u8,
    /// Every record is sent to each of them; at least one.
    pub pipelines: Vec<Pipeline>,
}

/// The period that a counter's or histogram's value covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Temporality {
    /// Since the start of the process.
    #[default]
    Cumulative,
    /// Since the last collection.
    Delta,
}

/// The buckets of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Histogram {
    /// Explicit bounds.
    #[default]
    Explicit,
    /// Bounds at powers of two, divided as finely as fits.
    Exponential,
}

/// An error in a file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error {
            line,
            column,
            message,
        } = self;
        write!(out, "line {line}, column {column}: {message}")
    }
}

impl std::error::Error for Error {}

impl From<yaml::Error> for Error {
    fn from(error: yaml::Error) -> Error {
        Error {
            line: error.at.line,
            column: error.at.column,
            message: error.message,
        }
    }
}

/// The reading rules of `otel.yml`: an empty text counts as absent.
const RULES: yaml::Rules = yaml::Rules {
    bytes_max: 1 << 20,
    depth_max: 32,
    empty_is_absent: true,
};

/// Reads the `text` of an `otel.yml`; warnings name its path `file`.
///
/// `context` is the second word of `config` in `otel.cfg`: the entry to use under each signal. If
/// it is missing, the entry `default` is used, else the signal itself (the layout of the filter's
/// first versions); both cause a warning. `environment` returns variables. Returns the settings and
/// warnings, or all errors in the order of the file.
pub fn parse(
    text: &str,
    file: &str,
    context: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Settings, Vec<String>), Vec<Error>> {
    let mut errors = Vec::new();
    let document = yaml::parse(text, &RULES, &mut errors);
    let errors: Vec<Error> = errors.into_iter().map(Error::from).collect();
    let Some(yaml::Document { root, .. }) = document else {
        return Err(in_order(errors));
    };
    let notes = RefCell::new(read::Notes {
        errors,
        ..read::Notes::default()
    });
    let settings = signal::settings(&root, context, environment, &notes);
    let mut notes = notes.into_inner();
    if notes.errors.is_empty() {
        notes.warnings.sort_by_key(|(at, _)| (at.line, at.column));
        let warnings = notes.warnings.into_iter();
        let warnings = warnings.map(|(at, text)| format!("{file}:{}: {text}", at.line));
        return Ok((settings, warnings.collect()));
    }
    Err(in_order(notes.errors))
}

fn in_order(mut errors: Vec<Error>) -> Vec<Error> {
    errors.sort_by_key(|error| (error.line, error.column));
    errors
}

impl Settings {
    /// The collectors of this process that exporters name, each with the signal sent to it.
    pub fn collectors(&self) -> impl Iterator<Item = (Signal, &InProcess)> {
        let traces = self.traces.iter().flat_map(|traces| &traces.pipelines);
        let logs = self.logs.iter().flat_map(|logs| &logs.pipelines);
        let metrics = self.metrics.iter().flat_map(|metrics| &metrics.pipelines);
        let all = traces
            .map(|pipeline| (Signal::Traces, &pipeline.exporter))
            .chain(metrics.map(|pipeline| (Signal::Metrics, &pipeline.exporter)))
            .chain(logs.map(|pipeline| (Signal::Logs, &pipeline.exporter)));
        all.filter_map(|(signal, exporter)| match exporter {
            Exporter::Collector(collector) => Some((signal, collector)),
            _ => None,
        })
    }

    /// Settings without a file: OTLP to the receiver in OpenTelemetry's variables (specification,
    /// "Environment Variable Specification" and "OTLP Exporter Configuration"); by default HTTP
    /// with protobuf to `localhost:4318`.
    ///
    /// Also returns warnings: a variable with an invalid value is ignored.
    #[must_use]
    pub fn from_environment(
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> (Settings, Vec<String>) {
        environment::settings(environment)
    }
}
