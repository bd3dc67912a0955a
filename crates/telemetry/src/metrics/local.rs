//! The metrics recorded by one worker.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Instruments;
use super::instrument::Plan;
use super::table::Table;

/// The recording side of one worker. Once its series exist, recording neither allocates nor blocks.
#[derive(Debug)]
pub struct Local {
    pub(super) instruments: Arc<Instruments>,
    pub(super) tables: Box<[Table]>,
    pub(super) rejected: u64,
}

impl Local {
    /// An empty recorder.
    #[must_use]
    pub fn new(instruments: Arc<Instruments>) -> Local {
        let tables = instruments
            .streams
            .iter()
            .map(|_| Table::default())
            .collect();
        Local {
            instruments,
            tables,
            rejected: 0,
        }
    }

    /// Records a value observed at `now` (wall clock, nanoseconds; only gauges use it).
    /// `instrument` is its index in the list; `attributes` are encoded as the module describes. A
    /// negative value of a counter or a histogram is rejected and counted
    /// ([`super::Shared::rejected`]); an unknown instrument records nothing.
    #[inline]
    pub fn record(&mut self, instrument: usize, value: i64, attributes: &[u8], now: u64) {
        let (Some(stream), Some(table)) = (
            self.instruments.streams.get(instrument),
            self.tables.get_mut(instrument),
        ) else {
            return;
        };
        if value < 0 && stream.instrument.kind.is_monotonic() {
            self.rejected += 1;
            return;
        }
        if let Plan::Drop = stream.plan {
            return;
        }
        let hash = xxh3_64_with_seed(attributes, self.instruments.seed);
        let series = table.touch(hash, attributes, &stream.plan);
        series.point.record(&stream.plan, value, now);
    }
    /// Whether nothing was recorded since the last merge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rejected == 0 && !self.tables.iter().any(|table| table.touched)
    }
}
