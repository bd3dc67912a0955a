//! `cumulativetodelta`: cumulative sums and histograms become deltas.
//!
//! The last data point of each stream is remembered. As in the Collector, sums that are not
//! monotonic, gauges and summaries stay as they are.

mod delta;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use export::clock::now_unix_ns;
use otlp::scan::{Malformed, Metric, MetricKind, Number, Point};
use regex_automata::meta::Regex;

use super::edit::Outcome;
use super::streams::{
    self, Convert, Converted, Identity, NoRoom, Processor, STREAMS_MAX, Shared, State,
};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::cumulative_to_delta::{
    CumulativeToDelta as Settings, InitialValue, MetricMatch,
};
use crate::config::pattern;
use crate::run::consume::Consumer;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::{Part, PartName};
use delta::{Delta, Last};

/// `AGGREGATION_TEMPORALITY_DELTA`, `AGGREGATION_TEMPORALITY_CUMULATIVE`
const DELTA: u64 = 1;
const CUMULATIVE: i32 = 2;
/// `DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK`
const NO_RECORDED_VALUE: u32 = 1;

/// See the module.
pub type CumulativeToDelta = Processor<Editor>;

impl StartProcessor for Settings {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let editor = Editor::new(self, now_unix_ns())?;
        let idle_max = Duration::from_nanos(self.max_staleness_ns);
        let idle_max = (!idle_max.is_zero()).then_some(idle_max);
        Ok(Processor::start(editor, idle_max, deps, next))
    }
}

impl Part for CumulativeToDelta {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let [pipeline, processor] = name.labels();
        let tally = self.tally();
        let metric = "otelcol_cumulativetodelta_datapoints";
        let help = "data points that became deltas";
        sheet.about(Kind::Counter, metric, "{datapoint}", help);
        for (kind, count) in KINDS.iter().zip(tally.converted) {
            sheet.point(&[pipeline, processor, ("metric_type", kind)], count);
        }
        let metric = "otelcol_cumulativetodelta_datapoints_dropped";
        let help = "data points that did not become deltas";
        sheet.about(Kind::Counter, metric, "{datapoint}", help);
        for (kind, counts) in KINDS.iter().zip(&tally.dropped) {
            for (reason, count) in REASONS.iter().zip(counts) {
                let labels = [("metric_type", *kind), ("reason", *reason)];
                sheet.point(&[&[pipeline, processor], &labels[..]].concat(), *count);
            }
        }
        let metric = "otelcol_cumulativetodelta_streams_tracked";
        sheet.about(
            Kind::Gauge,
            metric,
            "{stream}",
            "streams that are remembered",
        );
        let streams = self.converter.streams.lock().count();
        sheet.point(&[pipeline, processor], streams as u64);
    }
}

/// Kinds of metrics that are converted, as metrics name them.
const KINDS: [&str; 3] = ["sum", "histogram", "exponential_histogram"];
/// Why data points are dropped, by [`Reason`].
const REASONS: [&str; 5] = [
    "initial",
    "reset",
    "bucket_mismatch",
    "no_recorded_value",
    "limit",
];

/// Why a data point is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first data point of its stream.
    Initial,
    /// A value less than the one before.
    Reset,
    /// Other buckets than before.
    BucketMismatch,
    /// A data point without a value.
    NoRecordedValue,
    /// Its stream has no room.
    Limit,
}

/// Counts of data points by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    converted: [u64; 3],
    dropped: [[u64; 5]; 3],
}

impl streams::Tally for Tally {
    fn add(&mut self, other: &Tally) {
        for (mine, others) in self.converted.iter_mut().zip(other.converted) {
            *mine += others;
        }
        let dropped = self.dropped.iter_mut().flatten();
        for (mine, others) in dropped.zip(other.dropped.iter().flatten()) {
            *mine += others;
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.iter().flatten().sum()
    }
}

impl Tally {
    fn drop(&mut self, place: usize, reason: Reason) -> Outcome {
        self.dropped[place][reason as usize] += 1;
        Outcome::Gone
    }
}

/// Compiled form of a [`MetricMatch`].
#[derive(Debug)]
struct Matcher {
    /// None: any.
    names: Option<Names>,
    /// Empty: any.
    kinds: Vec<MetricKind>,
}

#[derive(Debug)]
enum Names {
    Strict(Vec<Vec<u8>>),
    Regex(Regex),
}

impl Matcher {
    fn new(settings: &MetricMatch) -> Result<Matcher, String> {
        let names = match (settings.names.is_empty(), settings.regex) {
            (true, _) => None,
            (false, true) => Some(Names::Regex(pattern::compile_any(&settings.names)?)),
            (false, false) => {
                let names = settings.names.iter().map(|name| name.as_bytes().to_vec());
                Some(Names::Strict(names.collect()))
            }
        };
        Ok(Matcher {
            names,
            kinds: settings.kinds.clone(),
        })
    }

    /// Whether the name is among the names; none where there are none.
    fn has_name(&self, name: &[u8]) -> Option<bool> {
        self.names.as_ref().map(|names| match names {
            Names::Strict(names) => names.iter().any(|other| other == name),
            Names::Regex(regex) => regex.is_match(name),
        })
    }

    /// Whether the kind is among the kinds; none where there are none.
    fn has_kind(&self, kind: MetricKind) -> Option<bool> {
        (!self.kinds.is_empty()).then(|| self.kinds.contains(&kind))
    }
}

/// The conversion without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    include: Matcher,
    exclude: Matcher,
    initial_value: InitialValue,
    /// When the collector began, in nanoseconds of the UNIX epoch.
    begun_ns: u64,
    streams: Shared<Last>,
}

impl Editor {
    /// Compiles the settings.
    ///
    /// # Errors
    /// An expression cannot be compiled; the text names it.
    pub fn new(settings: &Settings, begun_ns: u64) -> Result<Editor, String> {
        Ok(Editor {
            include: Matcher::new(&settings.include)?,
            exclude: Matcher::new(&settings.exclude)?,
            initial_value: settings.initial_value,
            begun_ns,
            streams: Shared::new(STREAMS_MAX),
        })
    }

    /// Converts a request. Its data points are forgotten unless the changes are kept.
    ///
    /// # Errors
    /// The request is malformed.
    pub fn edit(&self, request: &[u8]) -> Result<Converted<Last, Tally>, Malformed> {
        streams::edit(self, request)
    }

    /// The start time that the first data point of a stream gets; none: it is dropped.
    fn first(&self, point: &Point<'_>) -> Option<u64> {
        match self.initial_value {
            InitialValue::Auto => {
                let is_new = point.start_ns >= self.begun_ns && point.start_ns != point.time_ns;
                is_new.then_some(point.start_ns)
            }
            // As in the Collector, it has none.
            InitialValue::Keep => Some(0),
            InitialValue::Drop => None,
        }
    }
}

impl Convert for Editor {
    const TEMPORALITY: u64 = DELTA;
    type Value = Last;
    type Tally = Tally;

    fn streams(&self) -> &Shared<Last> {
        &self.streams
    }

    fn converts(&self, metric: &Metric<'_>) -> bool {
        let Some(kind) = metric.kind.filter(|_| metric.temporality == CUMULATIVE) else {
            return false;
        };
        let is_known = match kind {
            MetricKind::Sum => metric.is_monotonic,
            MetricKind::Histogram | MetricKind::Exponential => true,
            MetricKind::Gauge | MetricKind::Summary => false,
        };
        let Editor {
            include, exclude, ..
        } = self;
        is_known
            && include.has_name(metric.name).unwrap_or(true)
            && include.has_kind(kind).unwrap_or(true)
            && !exclude.has_name(metric.name).unwrap_or(false)
            && !exclude.has_kind(kind).unwrap_or(false)
    }

    fn point(
        &self,
        kind: MetricKind,
        mut stream: Identity,
        point: &Point<'_>,
        state: &mut State<'_, Last, Tally>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let place = match kind {
            MetricKind::Histogram => 1,
            MetricKind::Exponential => 2,
            MetricKind::Sum | MetricKind::Gauge | MetricKind::Summary => 0,
        };
        if point.flags & NO_RECORDED_VALUE != 0 {
            return state.tally.drop(place, Reason::NoRecordedValue);
        }
        // NaN stands for a stale series; the Collector leaves it as it is.
        if matches!(point.value, Some(Number::Double(value)) if value.is_nan()) {
            return Outcome::Same;
        }
        stream.number(point.start_ns);
        stream.number(matches!(point.value, Some(Number::Double(_))).into());
        let id = stream.id();
        let mut last = Last::of(point);
        let (start_ns, delta) = match state.streams.get(&id) {
            Some(before) => {
                last.fill(before);
                (before.time_ns, last.since(before))
            }
            None => match self.first(point) {
                Some(start_ns) => (start_ns, Ok(Delta::whole(&last))),
                None => (0, Err(Reason::Initial)),
            },
        };
        if state.streams.set(id, last, &mut state.changes) == Err(NoRoom) {
            return state.tally.drop(place, Reason::Limit);
        }
        match delta {
            Ok(delta) => {
                state.tally.converted[place] += 1;
                delta.write(point, start_ns, out);
                Outcome::Changed
            }
            Err(reason) => state.tally.drop(place, reason),
        }
    }
}
