//! Paths of metrics (`metrics.proto`).

use super::Path;
use super::table::{Form, Message, Root};
use crate::eval::{Failure, Record, Subject};
use crate::value::Value;
use otlp::scan::{METADATA, Metric, MetricKind, POINTS};

/// The root of a path of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricRoot {
    Name,
    Description,
    Unit,
    Type,
    Temporality,
    IsMonotonic,
    DataPoints,
    Metadata,
}

pub const METRIC: &[(&str, Root)] = &[
    ("name", Root::Metric(MetricRoot::Name)),
    ("cache", Root::Cache),
    ("description", Root::Metric(MetricRoot::Description)),
    ("unit", Root::Metric(MetricRoot::Unit)),
    ("type", Root::Metric(MetricRoot::Type)),
    (
        "aggregation_temporality",
        Root::Metric(MetricRoot::Temporality),
    ),
    ("is_monotonic", Root::Metric(MetricRoot::IsMonotonic)),
    ("data_points", Root::Metric(MetricRoot::DataPoints)),
    ("metadata", Root::Metric(MetricRoot::Metadata)),
];

impl MetricRoot {
    /// The message that it is in, and how it is written for a subject. Some metrics have no such
    /// field: then nothing is written.
    pub fn written(self, record: Record<'_, '_>) -> (Message, Form) {
        let kind = record.metric().and_then(|metric| metric.kind);
        let form = match self {
            MetricRoot::Name => Form::Text(1),
            MetricRoot::Description => Form::Text(2),
            MetricRoot::Unit => Form::Text(3),
            // The Collector's setter does nothing.
            MetricRoot::Type => Form::Nothing,
            MetricRoot::Temporality => match kind {
                Some(kind) if kind.has_temporality() => Form::Temporality(kind.number()),
                _ => Form::Nothing,
            },
            MetricRoot::IsMonotonic => match kind {
                Some(MetricKind::Sum) => Form::Monotonic(MetricKind::Sum.number()),
                _ => Form::Nothing,
            },
            MetricRoot::DataPoints => Form::Fixed,
            MetricRoot::Metadata => Form::Attributes(METADATA),
        };
        (Message::Metric, form)
    }
}

impl Path {
    /// The value of the path in a metric.
    pub(super) fn of_metric<'a>(
        &'a self,
        root: MetricRoot,
        metric: &Metric<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        Ok(match root {
            MetricRoot::Name => Value::Text(metric.name.into()),
            MetricRoot::Description => Value::Text(metric.description.into()),
            MetricRoot::Unit => Value::Text(metric.unit.into()),
            MetricRoot::Type => Value::Int(metric.kind.map_or(0, |kind| kind as i64)),
            MetricRoot::Temporality => match metric.kind {
                Some(kind) if kind.has_temporality() => Value::Int(metric.temporality.into()),
                _ => Value::Nil,
            },
            MetricRoot::IsMonotonic => match metric.kind {
                Some(MetricKind::Sum) => Value::Bool(metric.is_monotonic),
                _ => Value::Nil,
            },
            MetricRoot::DataPoints => match metric.kind {
                Some(_) => Value::Messages(metric.data.into(), POINTS),
                None => Value::Nil,
            },
            MetricRoot::Metadata => return self.attribute(metric.message, METADATA, subject),
        })
    }
}
