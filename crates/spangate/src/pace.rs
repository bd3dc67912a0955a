//! How soon workers hand over what a filter records.

use telemetry::settings::{Pipeline, Processor, Settings};

/// A record waits no longer in a worker, in milliseconds; in its queue it may.
const WORKER_DELAY_MS_MAX: u64 = 1000;

/// Records that a worker hands over at once, and the milliseconds that it may keep one.
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
