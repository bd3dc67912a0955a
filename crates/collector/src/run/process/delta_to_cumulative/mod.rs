//! `deltatocumulative`: deltas of sums and of both kinds of histograms are added up
//! (OpenTelemetry metrics data model, "Sums: Delta-to-Cumulative").

#[cfg(test)]
mod tests;
mod total;

use std::sync::Arc;
use std::time::Duration;

use otlp::scan::{Malformed, Metric, MetricKind, Point};

use super::edit::Outcome;
use super::streams::{
    self, Convert, Converted, Identity, NoRoom, Processor, STREAMS_MAX, Shared, State,
};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::delta_to_cumulative::DeltaToCumulative as Settings;
use crate::run::consume::Consumer;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::{Part, PartName};
use total::Total;

/// `AGGREGATION_TEMPORALITY_DELTA`, `AGGREGATION_TEMPORALITY_CUMULATIVE`
const DELTA: i32 = 1;
const CUMULATIVE: u64 = 2;

/// See the module.
pub type DeltaToCumulative = Processor<Editor>;

impl StartProcessor for Settings {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let editor = Editor::new(self);
        let max_stale = editor.max_stale;
        Ok(Processor::start(editor, Some(max_stale), deps, next))
    }
}

impl Part for DeltaToCumulative {
    /// As in the Collector.
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let [pipeline, processor] = name.labels();
        let labels = [pipeline, processor];
        let tally = self.tally();
        let metric = "otelcol_deltatocumulative_datapoints";
        let help = "data points; with `error` those that could not be added";
        sheet.about(Kind::Counter, metric, "{datapoint}", help);
        sheet.point(&labels, tally.added);
        for (error, count) in ERRORS.iter().zip(tally.dropped) {
            sheet.point(&[pipeline, processor, ("error", error)], count);
        }
        let (streams, streams_max) = {
            let streams = self.converter.streams.lock();
            (streams.count(), streams.count_max())
        };
        for (metric, unit, help, value) in [
            (
                "otelcol_deltatocumulative_streams_tracked",
                "{dps}",
                "streams that are remembered",
                streams as u64,
            ),
            (
                "otelcol_deltatocumulative_streams_limit",
                "{stream}",
                "streams that are remembered at most",
                streams_max as u64,
            ),
            (
                "otelcol_deltatocumulative_streams_max_stale",
                "s",
                "time after which a stream without data points is forgotten",
                self.converter.max_stale.as_secs(),
            ),
        ] {
            sheet.about(Kind::Gauge, metric, unit, help);
            sheet.point(&labels, value);
        }
    }
}

/// Why data points are dropped, by [`Error`], as the Collector names it.
const ERRORS: [&str; 3] = ["limit", "delta.ErrOlderStart", "delta.ErrOutOfOrder"];

/// Why a data point is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Its stream has no room.
    Limit,
    /// A data point of an older stream of this name.
    OlderStart,
    /// A data point that is not later than the one before.
    OutOfOrder,
}

/// Counts of data points by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    added: u64,
    dropped: [u64; 3],
}

impl streams::Tally for Tally {
    fn add(&mut self, other: &Tally) {
        self.added += other.added;
        for (mine, others) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += others;
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

impl Tally {
    fn drop(&mut self, error: Error) -> Outcome {
        self.dropped[error as usize] += 1;
        Outcome::Gone
    }
}

/// The conversion without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    streams: Shared<Total>,
    /// Streams that were not seen for so long are forgotten.
    max_stale: Duration,
}

impl Editor {
    /// Without streams.
    #[must_use]
    pub fn new(settings: &Settings) -> Editor {
        Editor {
            streams: Shared::new(settings.streams_max.min(STREAMS_MAX)),
            max_stale: Duration::from_nanos(settings.max_stale_ns),
        }
    }

    /// Adds up a request. Its data points are taken out again unless the changes are kept.
    ///
    /// # Errors
    /// The request is malformed.
    pub fn edit(&self, request: &[u8]) -> Result<Converted<Total, Tally>, Malformed> {
        streams::edit(self, request)
    }
}

impl Convert for Editor {
    const TEMPORALITY: u64 = CUMULATIVE;
    type Value = Total;
    type Tally = Tally;

    fn streams(&self) -> &Shared<Total> {
        &self.streams
    }

    fn converts(&self, metric: &Metric<'_>) -> bool {
        let has_deltas = metric.kind.is_some_and(MetricKind::has_temporality);
        has_deltas && metric.temporality == DELTA
    }

    fn point(
        &self,
        _: MetricKind,
        stream: Identity,
        point: &Point<'_>,
        state: &mut State<'_, Total, Tally>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let id = stream.id();
        let added = match state.streams.get(&id) {
            None => Ok(None),
            Some(total) => total.and(point).map(Some),
        };
        let total = match added {
            Ok(total) => total,
            Err(error) => return state.tally.drop(error),
        };
        let outcome = match &total {
            // The first data point of a stream is its sum.
            None => Outcome::Same,
            Some(total) => {
                total.write(point, out);
                Outcome::Changed
            }
        };
        let total = total.unwrap_or_else(|| Total::of(point));
        if state.streams.set(id, total, &mut state.changes) == Err(NoRoom) {
            return state.tally.drop(Error::Limit);
        }
        state.tally.added += 1;
        outcome
    }
}
