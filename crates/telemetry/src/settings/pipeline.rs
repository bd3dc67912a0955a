//! Processors and readers: when records are sent to an exporter, and how many.

use super::Signal;
use super::exporter::{Exporter, kind};
use super::read::Options;

/// The default of `max_queue_size`, in records. HAProxy's filter has 2048, which a burst of a tenth
/// of a second fills; a queue here uses memory only for its content.
pub const QUEUE_RECORDS_DEFAULT: u32 = 65_536;
/// The default of `max_export_batch_size`, in records. HAProxy's filter has 512, which at high
/// rates causes hundreds of requests per second.
pub const BATCH_RECORDS_DEFAULT: u32 = 8_192;
/// The default delay until spans are sent.
pub(super) const TRACES_DELAY_DEFAULT_MS: u32 = 5_000;
/// The default delay until log records are sent.
pub(super) const LOGS_DELAY_DEFAULT_MS: u32 = 1_000;
/// The default timeout of an export.
const EXPORT_TIMEOUT_DEFAULT_MS: u32 = 30_000;
/// The default time between two collections of metrics.
const INTERVAL_DEFAULT_MS: u32 = 60_000;

/// The path of spans or of log records out of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// The destination.
    pub exporter: Exporter,
    /// When records are sent.
    pub processor: Processor,
}

/// When spans or log records are sent to their exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// `single`: at once.
    Single,
    /// `batch`: many at a time.
    Batch(BatchProcessor),
}

/// `batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchProcessor {
    /// The most records that wait; more are dropped and counted (`max_queue_size`;
    /// [`QUEUE_RECORDS_DEFAULT`]).
    pub queue_records_max: u32,
    /// The delay until a batch that is not full is sent (`schedule_delay`).
    pub delay_ms: u32,
    /// Timeout of an export (`export_timeout`); the exporter's own `timeout` takes precedence.
    pub export_timeout_ms: u32,
    /// The most records of one request (`max_export_batch_size`; [`BATCH_RECORDS_DEFAULT`]).
    pub batch_records_max: u32,
}

impl BatchProcessor {
    /// The defaults; the delay differs between signals.
    #[must_use]
    pub fn new(signal: Signal) -> BatchProcessor {
        BatchProcessor {
            queue_records_max: QUEUE_RECORDS_DEFAULT,
            delay_ms: match signal {
                Signal::Logs => LOGS_DELAY_DEFAULT_MS,
                Signal::Traces | Signal::Metrics => TRACES_DELAY_DEFAULT_MS,
            },
            export_timeout_ms: EXPORT_TIMEOUT_DEFAULT_MS,
            batch_records_max: BATCH_RECORDS_DEFAULT,
        }
    }
}

/// The path of metrics out of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPipeline {
    /// The destination.
    pub exporter: Exporter,
    /// When metrics are collected.
    pub reader: Reader,
}

/// When metrics are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The time between two collections (`export_interval`).
    pub interval_ms: u32,
    /// Timeout of one collection and its export (`export_timeout`); the exporter's own `timeout`
    /// takes precedence.
    pub timeout_ms: u32,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            interval_ms: INTERVAL_DEFAULT_MS,
            timeout_ms: EXPORT_TIMEOUT_DEFAULT_MS,
        }
    }
}

/// Reads a processor.
pub(super) fn processor(options: &Options<'_>, signal: Signal) -> Option<Processor> {
    let (kind, at) = kind(options)?;
    options.text("thread_name");
    options.int("cpu_id", -1..=4095);
    let processor = match kind.to_ascii_lowercase().as_str() {
        "single" => {
            options.ignore(&["max_queue_size", "schedule_delay"]);
            options.ignore(&["export_timeout", "max_export_batch_size"]);
            Processor::Single
        }
        "batch" => Processor::Batch(batch(options, signal)),
        _ => {
            let message = format!("unknown processor type '{kind}': one of batch, single");
            options.error(at, message);
            return None;
        }
    };
    options.end();
    Some(processor)
}

fn batch(options: &Options<'_>, signal: Signal) -> BatchProcessor {
    let default = BatchProcessor::new(signal);
    let queue = options.number("max_queue_size", 64..=65_536, default.queue_records_max);
    let size = "max_export_batch_size";
    let fits = default.batch_records_max.min(queue);
    let records = options.number(size, 1..=65_536, fits);
    if records > queue
        && let Some((_, at)) = options.text_at(size)
    {
        let message = format!("'{size}' is {records}, must not be above max_queue_size, {queue}");
        options.error(at, message);
    }
    BatchProcessor {
        queue_records_max: queue,
        delay_ms: options.number("schedule_delay", 1..=60_000, default.delay_ms),
        export_timeout_ms: options.number("export_timeout", 1..=60_000, default.export_timeout_ms),
        batch_records_max: records,
    }
}

/// Reads a reader.
pub(super) fn reader(options: &Options<'_>) -> Reader {
    // Some files contain a type, although there is only one.
    options.ignore(&["type", "thread_name"]);
    options.int("cpu_id", -1..=4095);
    let default = Reader::default();
    let interval = options.number("export_interval", 100..=3_600_000, default.interval_ms);
    let fits = default.timeout_ms.min(interval);
    let timeout = options.number("export_timeout", 100..=3_600_000, fits);
    if timeout > interval
        && let Some((_, at)) = options.text_at("export_timeout")
    {
        let message =
            format!("'export_timeout' is {timeout}, must not be above export_interval, {interval}");
        options.error(at, message);
    }
    options.end();
    Reader {
        interval_ms: interval,
        timeout_ms: timeout,
    }
}
