//! A processor that remembers streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use otlp::scan::{Malformed, Metric, MetricKind, Point};
use tokio::time::Instant;

use super::walk::convert;
use super::{Changes, Identity, Remembered, Shared, Streams, Sweeper, Undo};
use crate::run::consume::{Consumer, Pass, Refusal, Refused, Through, refused};
use crate::run::data::Batch;
use crate::run::part::Part;
use crate::run::process::ProcessorDeps;
use crate::run::process::edit::{Edited, Outcome, hand_on, room_for};

/// Conversion of metrics and their data points, without a place in a pipeline.
pub trait Convert: Send + Sync + 'static {
    /// The `aggregation_temporality` of metrics that were converted.
    const TEMPORALITY: u64;
    /// Value that is remembered of a stream.
    type Value: Remembered;
    /// Counts of data points by outcome.
    type Tally: Tally;

    /// The streams.
    fn streams(&self) -> &Shared<Self::Value>;

    /// Whether a metric is converted; others stay as they came.
    fn converts(&self, metric: &Metric<'_>) -> bool;

    /// Writes what a data point of a metric that is converted becomes. `stream` has what its
    /// resource, scope, metric and attributes say.
    fn point(
        &self,
        kind: MetricKind,
        stream: Identity,
        point: &Point<'_>,
        state: &mut State<'_, Self::Value, Self::Tally>,
        out: &mut Vec<u8>,
    ) -> Outcome;
}

/// Counts of data points by outcome.
pub trait Tally: Default + Send + 'static {
    /// Adds those of another request.
    fn add(&mut self, other: &Self);

    /// The number of data points that were dropped.
    fn dropped(&self) -> u64;
}

/// A request that is being converted.
pub struct State<'s, V, T> {
    /// The streams.
    pub streams: &'s mut Streams<V>,
    /// Changes of the streams by this request.
    pub changes: Changes<V>,
    /// Its data points.
    pub tally: T,
}

/// A request that was converted.
#[derive(Debug)]
pub struct Converted<V: Remembered, T> {
    /// The converted request.
    pub edited: Edited,
    /// Restores the streams unless the changes are kept.
    pub undo: Undo<V>,
    /// Counts of its data points by outcome.
    pub tally: T,
}

impl<V: Remembered, T> Converted<V, T> {
    /// The request, which is taken.
    pub fn keep(self) -> Edited {
        self.undo.keep();
        self.edited
    }
}

/// Converts a request. The streams are restored unless the changes are kept.
///
/// # Errors
/// The request is malformed.
pub fn edit<C: Convert>(
    converter: &C,
    request: &[u8],
) -> Result<Converted<C::Value, C::Tally>, Malformed> {
    let mut out = room_for(request);
    let mut streams = converter.streams().lock();
    let changes = streams.begin(Instant::now());
    let mut state = State {
        streams: &mut streams,
        changes,
        tally: C::Tally::default(),
    };
    let outcome = convert(request, &mut out, converter, &mut state);
    let State { changes, tally, .. } = state;
    drop(streams);
    let undo = converter.streams().undo(changes);
    let edited = Edited::new(outcome?, out, tally.dropped());
    Ok(Converted {
        edited,
        undo,
        tally,
    })
}

/// A conversion in its place in a pipeline.
pub struct Processor<C: Convert> {
    /// The conversion.
    pub converter: C,
    next: Arc<dyn Consumer>,
    tally: Arc<Mutex<C::Tally>>,
    _sweeper: Option<Sweeper>,
}

impl<C: Convert> Processor<C>
where
    Processor<C>: Part,
{
    /// Starts it before `next`. Streams that were not seen for `idle_max` are forgotten. Called within
    /// the runtime.
    pub fn start(
        converter: C,
        idle_max: Option<Duration>,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Arc<dyn Consumer> {
        let sweeper = idle_max.map(|idle_max| converter.streams().sweep(idle_max));
        let processor = Arc::new(Processor {
            converter,
            next,
            tally: Arc::default(),
            _sweeper: sweeper,
        });
        deps.register(Arc::clone(&processor) as Arc<dyn Part>);
        processor
    }
}

impl<C: Convert> Processor<C> {
    /// Counts of all requests that were taken.
    pub fn tally(&self) -> MutexGuard<'_, C::Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Convert> Through for Processor<C> {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let converted = match edit(&self.converter, &batch.bytes) {
            Ok(converted) => converted,
            Err(fault) => return refused(batch, Refusal::Malformed(fault.to_string())),
        };
        let Converted {
            edited,
            undo,
            tally,
        } = converted;
        // If the next component refuses the batch, dropping `undo` restores the streams.
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
