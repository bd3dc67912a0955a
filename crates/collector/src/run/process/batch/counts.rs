//! Batches that were made, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::service::telemetry::MetricsLevel;
use crate::run::buckets::Buckets;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::PartName;

/// Upper bounds of the records of a batch, as the Collector has them.
const BOUNDS: &[u64] = &[
    10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000,
    10_000, 20_000, 30_000, 50_000, 100_000,
];

const PREFIX: &str = "otelcol_processor_batch_";

/// Why a batch was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// It was large enough, or there was no room for more.
    Size,
    /// It had waited for long enough, or the process ends.
    Timeout,
}

/// See the module.
#[derive(Debug)]
pub struct Counts {
    by_size: AtomicU64,
    by_timeout: AtomicU64,
    sizes: Buckets,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            by_size: AtomicU64::new(0),
            by_timeout: AtomicU64::new(0),
            sizes: Buckets::new(BOUNDS),
        }
    }
}

impl Counts {
    /// A batch of so many records.
    pub(super) fn add(&self, trigger: Trigger, records: u64) {
        let count = match trigger {
            Trigger::Size => &self.by_size,
            Trigger::Timeout => &self.by_timeout,
        };
        count.fetch_add(1, Relaxed);
        self.sizes.add(records);
    }

    /// Adds the metrics of a batcher that has so many combinations of metadata.
    pub(super) fn describe(&self, combinations: u64, name: &PartName, sheet: &mut Sheet) {
        if sheet.level <= MetricsLevel::Basic {
            return;
        }
        let (by_size, by_timeout) = (self.by_size.load(Relaxed), self.by_timeout.load(Relaxed));
        let numbers = [
            (
                "metadata_cardinality",
                Kind::Gauge,
                "{combination}",
                combinations,
            ),
            ("batch_size_trigger_send", Kind::Counter, "{time}", by_size),
            ("timeout_trigger_send", Kind::Counter, "{time}", by_timeout),
        ];
        for (metric, kind, unit, count) in numbers {
            let metric = format!("{PREFIX}{metric}");
            sheet.about(kind, &metric, unit, "as in the Collector");
            sheet.point(&name.labels(), count);
        }
        let metric = format!("{PREFIX}batch_send_size");
        let help = "records of each batch";
        sheet.about(Kind::Histogram, &metric, "{unit}", help);
        sheet.counted(&name.labels(), &self.sizes);
    }
}
