//! `deltatocumulative`: deltas of sums and of both kinds of histograms are added up
//! (OpenTelemetry metrics data model, "Sums: Delta-to-Cumulative").

#[cfg(test)]
mod tests;
mod total;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use otlp::scan::{Malformed, Metric, MetricKind, Point};
use tokio::time::Instant;

use super::edit::{Edited, Outcome, hand_on, room_for};
use super::streams::{
    Changes, Convert, Converted, Identity, NoRoom, STREAMS_MAX, Shared, Streams, Sweeper, convert,
};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::delta_to_cumulative::DeltaToCumulative as Settings;
use crate::run::consume::{Consumer, Pass, Refusal, Refused, Through, refused};
use crate::run::data::Batch;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::{Part, PartName};
use total::Total;

/// `AGGREGATION_TEMPORALITY_DELTA`, `AGGREGATION_TEMPORALITY_CUMULATIVE`
const DELTA: i32 = 1;
const CUMULATIVE: u64 = 2;

/// See the module.
pub struct DeltaToCumulative {
    editor: Editor,
    max_stale: Duration,
    next: Arc<dyn Consumer>,
    tally: Arc<Mutex<Tally>>,
    _sweeper: Sweeper,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let editor = Editor::new(self);
        let max_stale = Duration::from_nanos(self.max_stale_ns);
        let sweeper = editor.streams.sweep(max_stale);
        let processor = Arc::new(DeltaToCumulative {
            editor,
            max_stale,
            next,
            tally: Arc::default(),
            _sweeper: sweeper,
        });
        deps.register(Arc::clone(&processor) as Arc<dyn Part>);
        Ok(processor)
    }
}

impl Through for DeltaToCumulative {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let converted = match self.editor.edit(&batch.bytes) {
            Ok(converted) => converted,
            Err(fault) => return refused(batch, Refusal::Malformed(fault.to_string())),
        };
        let Converted {
            edited,
            undo,
            tally,
        } = converted;
        // If the next component refuses the batch, dropping `undo` takes the deltas out again.
        let taken = hand_on::<P>(&self.next, batch, Ok::<_, Malformed>(edited))?;
        let all = Arc::clone(&self.tally);
        Ok(P::then(taken, move || {
            undo.keep();
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(&tally);
        }))
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}

impl Part for DeltaToCumulative {
    /// As in the Collector.
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let [pipeline, processor] = name.labels();
        let labels = [pipeline, processor];
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let metric = "otelcol_deltatocumulative_datapoints";
        let help = "data points; with `error` those that could not be added";
        sheet.about(Kind::Counter, metric, "{datapoint}", help);
        sheet.point(&labels, tally.added);
        for (error, count) in ERRORS.iter().zip(tally.dropped) {
            sheet.point(&[pipeline, processor, ("error", error)], count);
        }
        let (streams, streams_max) = {
            let streams = self.editor.streams.lock();
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
                self.max_stale.as_secs(),
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
    /// There is no room for its stream.
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

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.added += other.added;
        for (mine, others) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += others;
        }
    }
}

/// The conversion without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    streams: Shared<Total>,
}

impl Editor {
    /// Without streams.
    #[must_use]
    pub fn new(settings: &Settings) -> Editor {
        Editor {
            streams: Shared::new(settings.streams_max.min(STREAMS_MAX)),
        }
    }

    /// Adds up a request. Its data points are taken out again unless the changes are kept.
    ///
    /// # Errors
    /// The request is malformed.
    pub fn edit(&self, request: &[u8]) -> Result<Converted<Total, Tally>, Malformed> {
        let mut out = room_for(request);
        let mut streams = self.streams.lock();
        let changes = streams.begin(Instant::now());
        let mut converter = Converter {
            streams: &mut streams,
            changes,
            tally: Tally::default(),
        };
        let outcome = convert(request, &mut out, &mut converter);
        let Converter { changes, tally, .. } = converter;
        drop(streams);
        let undo = self.streams.undo(changes);
        let edited = Edited::new(outcome?, out, tally.dropped.iter().sum());
        Ok(Converted {
            edited,
            undo,
            tally,
        })
    }
}

struct Converter<'e> {
    streams: &'e mut Streams<Total>,
    changes: Changes<Total>,
    tally: Tally,
}

impl Convert for Converter<'_> {
    const TEMPORALITY: u64 = CUMULATIVE;

    fn converts(&self, metric: &Metric<'_>) -> bool {
        let has_deltas = metric.kind.is_some_and(MetricKind::has_temporality);
        has_deltas && metric.temporality == DELTA
    }

    fn point(
        &mut self,
        _: MetricKind,
        stream: Identity,
        point: &Point<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let id = stream.id();
        let added = match self.streams.get(&id) {
            None => Ok(None),
            Some(total) => total.and(point).map(Some),
        };
        let total = match added {
            Ok(total) => total,
            Err(error) => return Ok(self.dropped(error)),
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
        if self.streams.set(id, total, &mut self.changes) == Err(NoRoom) {
            return Ok(self.dropped(Error::Limit));
        }
        self.tally.added += 1;
        Ok(outcome)
    }
}

impl Converter<'_> {
    fn dropped(&mut self, error: Error) -> Outcome {
        self.tally.dropped[error as usize] += 1;
        Outcome::Gone
    }
}
