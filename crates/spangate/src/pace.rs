//! How soon workers hand over the records of a filter.

use telemetry::settings::{Pipeline, Processor, Settings};

/// Most milliseconds that a record waits in a worker. In its queue it may wait longer.
const WORKER_DELAY_MS_MAX: u64 = 1000;

/// The number of records that a worker hands over at once, and the most milliseconds that it keeps
/// one.
pub(crate) fn pace(settings: &Settings) -> (u32, u64) {
    let of = |pipelines: &[Pipeline]| {
        let paces = pipelines.iter().map(|pipeline| match pipeline.processor {
            Processor::Single => (1, 0),
            Processor::Batch(batch) => (batch.batch_records_max, u64::from(batch.delay_ms)),
        });
        paces.min().unwrap_or((u32::MAX, WORKER_DELAY_MS_MAX))
    };
    let spans = of(settings
        .traces
        .as_ref()
        .map_or(&[], |traces| &traces.pipelines));
    let logs = of(settings.logs.as_ref().map_or(&[], |logs| &logs.pipelines));
    let delay_ms = spans.1.min(logs.1).min(WORKER_DELAY_MS_MAX);
    (spans.0.min(logs.0), delay_ms)
}
