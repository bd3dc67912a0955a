//! How many records were kept and dropped, by where their randomness came from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Origin;
use crate::config::Signal;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::PartName;

/// Counts of all threads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By origin: dropped and kept.
    counts: [[AtomicU64; 2]; ORIGINS.len()],
}

const ORIGINS: [Origin; 6] = [
    Origin::Missing,
    Origin::TraceId,
    Origin::Told,
    Origin::TraceIdHash,
    Origin::AttributeHash,
    Origin::Priority,
];

impl Tally {
    pub(super) fn add(&self, origin: Origin, is_kept: bool) {
        self.counts[origin as usize][usize::from(is_kept)].fetch_add(1, Relaxed);
    }

    /// Those that are not 0, by the names that the Collector gives them.
    pub(super) fn counts(&self, attribute: &[u8]) -> Vec<(String, bool, u64)> {
        let mut all = Vec::new();
        for origin in ORIGINS {
            for is_kept in [true, false] {
                let count = self.counts[origin as usize][usize::from(is_kept)].load(Relaxed);
                if count > 0 {
                    all.push((policy(origin, attribute), is_kept, count));
                }
            }
        }
        all
    }
}

fn policy(origin: Origin, attribute: &[u8]) -> String {
    match origin {
        Origin::Missing => "missing_randomness".to_owned(),
        Origin::TraceId => "trace_id_w3c".to_owned(),
        Origin::Told => "sampling_randomness".to_owned(),
        Origin::TraceIdHash => "trace_id_hash".to_owned(),
        Origin::AttributeHash => String::from_utf8_lossy(attribute).into_owned(),
        Origin::Priority => "sampling_priority".to_owned(),
    }
}

const PREFIX: &str = "otelcol_processor_probabilistic_sampler_count_";

/// Adds the metrics of a sampler of a signal, from [`Tally::counts`].
pub(super) fn describe(
    counts: &[(String, bool, u64)],
    signal: Signal,
    name: &PartName,
    sheet: &mut Sheet,
) {
    let metrics: &[(&str, &'static str)] = match signal {
        Signal::Traces => &[
            ("traces_sampled", "{traces}"),
            ("spans_processed_total", "{spans}"),
        ],
        Signal::Logs => &[("logs_sampled", "{logs}")],
        Signal::Metrics => &[],
    };
    let [pipeline, processor] = name.labels();
    for (metric, unit) in metrics {
        let metric = format!("{PREFIX}{metric}");
        sheet.about(Kind::Counter, &metric, unit, "as in the Collector");
        for (policy, is_kept, count) in counts {
            let labels = [
                pipeline,
                processor,
                ("policy", policy),
                ("sampled", if *is_kept { "true" } else { "false" }),
            ];
            sheet.point(&labels, *count);
        }
    }
}
