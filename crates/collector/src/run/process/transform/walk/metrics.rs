//! Metrics within their scope: data points, exemplars, and metrics that statements make.

use std::borrow::Cow;
use std::collections::VecDeque;

use otlp::scan::{Malformed, MetricKind, PointKind, metric_frame, point_frame};
use otlp::write;
use ottl::{Context, Edit, Failure, MetricEdit};

use super::super::super::edit::{
    Outcome, SECOND, edit_data, edit_fields, with_exemplars, with_points,
};
use super::Walk;
use super::held::Held;

/// Metrics that statements make of others, per request: a copy is a metric that the same statement
/// may copy again.
pub const METRICS_ADDED_MAX: usize = 1 << 16;
/// Bytes of these metrics.
const METRICS_ADDED_BYTES_MAX: usize = 64 << 20;

/// The metric whose data points are changed.
#[derive(Debug, Default)]
pub struct MetricState<'a> {
    /// With its data points, as it was before the statements.
    pub whole: Cow<'a, [u8]>,
    /// The kind of the data that the current data point belongs to.
    pub kind: Option<MetricKind>,
    /// Statements that have made another metric of it.
    pub made: Vec<usize>,
}

/// Metrics that statements made.
#[derive(Debug, Default)]
pub struct Added {
    /// Those of the current scope that no statement has seen yet.
    waiting: VecDeque<Vec<u8>>,
    count: usize,
    bytes: usize,
}

impl Added {
    /// Takes a metric; false if there are too many.
    fn push(&mut self, metric: &[u8]) -> bool {
        let bytes = self.bytes + metric.len();
        if self.count >= METRICS_ADDED_MAX || bytes > METRICS_ADDED_BYTES_MAX {
            return false;
        }
        (self.count, self.bytes) = (self.count + 1, bytes);
        self.waiting.push_back(metric.to_vec());
        true
    }
}

impl<'a> Walk<'_, 'a> {
    /// Runs the statements on the data points of a metric, each of which `hold` keeps.
    pub(super) fn points<'m>(
        &mut self,
        message: &'m [u8],
        hold: &dyn Fn(&'m [u8]) -> Cow<'a, [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let mut frame = Vec::new();
        metric_frame(message, &mut frame)?;
        self.record = Held::new(frame.into());
        self.metric.made.clear();
        let start = out.len();
        let outcome = edit_data(message, out, &mut |kind, point, out| {
            self.metric.kind = Some(kind);
            if self.group.context == Context::Exemplar {
                return self.exemplars(kind.point(), point, hold, out);
            }
            self.inner = Held::new(hold(point));
            self.run()?;
            Ok(self.inner.write(out))
        })?;
        if !self.record.changed {
            return Ok(outcome);
        }
        let written = out.split_off(start);
        let whole = match outcome {
            Outcome::Changed => &written,
            Outcome::Same | Outcome::Gone => message,
        };
        with_points(&self.record.bytes, whole, out);
        Ok(Outcome::Changed)
    }

    /// Runs the statements on the exemplars of a data point.
    fn exemplars<'m>(
        &mut self,
        kind: PointKind,
        message: &'m [u8],
        hold: &dyn Fn(&'m [u8]) -> Cow<'a, [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let Some(number) = kind.exemplars() else {
            return Ok(Outcome::Same);
        };
        let mut frame = Vec::new();
        point_frame(kind, message, &mut frame)?;
        self.inner = Held::new(frame.into());
        let start = out.len();
        let outcome = edit_fields(message, number << 3 | 2, out, &mut |exemplar, out| {
            self.exemplar = Held::new(hold(exemplar));
            self.run()?;
            Ok(self.exemplar.write(out))
        })?;
        if !self.inner.changed {
            return Ok(outcome);
        }
        let written = out.split_off(start);
        let whole = match outcome {
            Outcome::Changed => &written,
            Outcome::Same | Outcome::Gone => message,
        };
        with_exemplars(kind, &self.inner.bytes, whole, out);
        Ok(Outcome::Changed)
    }

    /// Writes the metrics that statements made behind those of the scope, after the statements have
    /// seen them, as in the Collector. `out` ends with what the scope became.
    pub(super) fn write_added(
        &mut self,
        outcome: Outcome,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        if self.added.waiting.is_empty() {
            return Ok(outcome);
        }
        while let Some(metric) = self.added.waiting.pop_front() {
            let mut ended = Ok(());
            write::message(out, SECOND >> 3, |out| ended = self.added(metric, out));
            ended?;
        }
        Ok(Outcome::Changed)
    }

    fn added(&mut self, message: Vec<u8>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.group.context == Context::DataPoint {
            self.metric.whole = Cow::Owned(message.clone());
            let start = out.len();
            let outcome = self.points(&message, &|point| Cow::Owned(point.to_vec()), out)?;
            if outcome != Outcome::Changed {
                out.truncate(start);
                out.extend_from_slice(&message);
            }
            return Ok(());
        }
        self.record = Held::new(message.into());
        self.run()?;
        out.extend_from_slice(&self.record.bytes);
        Ok(())
    }

    /// Keeps a metric that the statement at a place made.
    pub(super) fn add(&mut self, statement: usize, metric: &[u8]) -> Result<(), Malformed> {
        if self.group.context == Context::DataPoint {
            self.metric.made.push(statement);
        }
        if self.added.push(metric) {
            return Ok(());
        }
        let (text, _) = &self.group.statements[statement];
        let failed = self
            .failures
            .take(Failure::Size, text, self.group.error_mode);
        failed.map_err(|fault| {
            self.fault = Some(fault);
            Malformed::TooLarge
        })
    }

    /// Whether a statement makes a metric of all data points of another one, and has done so: it does
    /// that once, for whichever data point comes first. The Collector makes one for each data point.
    pub(super) fn was_made(&self, statement: usize, edit: &Edit) -> bool {
        self.group.context == Context::DataPoint
            && matches!(
                edit,
                Edit::Metric(MetricEdit::SummaryCount { .. } | MetricEdit::SummarySum { .. })
            )
            && self.metric.made.contains(&statement)
    }
}
