//! `count`: metrics that count the records of other pipelines.

use ottl::Context;
use tail::settings::ErrorMode;

use super::{Connector, ConnectorSettings, Pair};
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::statements::{self, Group};
use crate::config::components::{EVERY, Entry, Parse, Signal, name};
use crate::config::options::{Kind, Opt, Section, Table, opt, required};
use crate::config::service::context::Asked;
use crate::config::source::Value;

/// Kinds of records, each with the metrics that count it, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Spans.
    pub spans: Vec<Metric>,
    /// Events of spans.
    pub span_events: Vec<Metric>,
    /// Metrics.
    pub metrics: Vec<Metric>,
    /// Data points.
    pub data_points: Vec<Metric>,
    /// Log records.
    pub logs: Vec<Metric>,
}

/// A metric that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// One of these must be true of what is counted; none: everything is counted.
    pub conditions: Option<Group>,
    /// Each combination of values of these attributes has a data point.
    pub attributes: Vec<Attribute>,
}

/// An attribute by which counts are told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its key.
    pub key: String,
    /// The value of what has no such attribute; none: that is not counted.
    pub default: Option<AttributeValue>,
}

impl Count {
    fn all(&self) -> impl Iterator<Item = &Metric> {
        let kinds = [
            &self.spans,
            &self.span_events,
            &self.metrics,
            &self.data_points,
            &self.logs,
        ];
        kinds.into_iter().flatten()
    }
}

impl ConnectorSettings for Count {
    fn ask(&self, asked: &mut Asked) {
        for metric in self.all() {
            asked.add_groups(metric.conditions.as_slice());
        }
    }
}

/// What is counted of one kind: its option, the metric that counts it where nothing is written, its
/// signal, and the context of its conditions.
struct Kinds {
    option: &'static str,
    default: (&'static str, &'static str),
    signal: Signal,
    context: Context,
}

const SPANS: Kinds = Kinds {
    option: "spans",
    default: ("trace.span.count", "The number of spans observed."),
    signal: Signal::Traces,
    context: Context::Span,
};
const SPAN_EVENTS: Kinds = Kinds {
    option: "spanevents",
    default: (
        "trace.span.event.count",
        "The number of span events observed.",
    ),
    signal: Signal::Traces,
    context: Context::SpanEvent,
};
const METRICS: Kinds = Kinds {
    option: "metrics",
    default: ("metric.count", "The number of metrics observed."),
    signal: Signal::Metrics,
    context: Context::Metric,
};
const DATA_POINTS: Kinds = Kinds {
    option: "datapoints",
    default: (
        "metric.datapoint.count",
        "The number of data points observed.",
    ),
    signal: Signal::Metrics,
    context: Context::DataPoint,
};
const LOGS: Kinds = Kinds {
    option: "logs",
    default: ("log.record.count", "The number of log records observed."),
    signal: Signal::Logs,
    context: Context::Log,
};

#[rustfmt::skip]
const ATTRIBUTE: &[Opt] = &[
    required("key", Kind::Text, "an attribute of the record, of its scope or of its resource, whichever has it first"),
    opt("default_value", Kind::Any, "", "the value of records without it: a text or a number; without one they are not counted"),
    opt("any_depth", Kind::Flag, "false", "attributes within attributes too").refused("keys are looked up at the top only"),
];
/// Options of one metric.
#[rustfmt::skip]
pub(crate) const METRIC: Table = &[&[
    opt("description", Kind::Text, "", "of the metric"),
    opt("conditions", Kind::Texts, "", "OTTL: what any is true of is counted"),
    opt("attributes", Kind::Sections(&[ATTRIBUTE]), "", "a data point for each combination of their values"),
]];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("spans", Kind::Named(METRIC), "", "metrics that count spans, by their names; `trace.span.count` where it is not written"),
    opt("spanevents", Kind::Named(METRIC), "", "likewise events of spans; `trace.span.event.count`"),
    opt("metrics", Kind::Named(METRIC), "", "likewise metrics, without `attributes`; `metric.count`"),
    opt("datapoints", Kind::Named(METRIC), "", "likewise data points; `metric.datapoint.count`"),
    opt("logs", Kind::Named(METRIC), "", "likewise log records; `log.record.count`"),
    opt("profiles", Kind::Any, "", "likewise profiles").no_effect("profiles are not carried"),
];

const PAIRS: &[Pair] = &[
    (Signal::Traces, Signal::Metrics),
    (Signal::Metrics, Signal::Metrics),
    (Signal::Logs, Signal::Metrics),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("count")],
    doc: "counts spans, events, metrics, data points and log records",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Connector {
        pairs: PAIRS,
        parse,
    },
};

fn parse(section: &Section<'_>) -> Connector {
    let count = Count {
        spans: metrics(section, &SPANS),
        span_events: metrics(section, &SPAN_EVENTS),
        metrics: metrics(section, &METRICS),
        data_points: metrics(section, &DATA_POINTS),
        logs: metrics(section, &LOGS),
    };
    for (name, metric) in section.named(METRICS.option) {
        if !metric.sections("attributes").is_empty() {
            let message = format!("metrics attributes not supported: metric '{name}'");
            metric.error("attributes", &message);
        }
    }
    Connector::new(count)
}

/// The metrics that count one kind of record.
fn metrics(section: &Section<'_>, kind: &Kinds) -> Vec<Metric> {
    // As in the Collector, a key without a value counts nothing.
    if section.key_at(kind.option).is_none() {
        let (name, description) = kind.default;
        return vec![Metric {
            name: name.to_owned(),
            description: description.to_owned(),
            conditions: None,
            attributes: Vec::new(),
        }];
    }
    let named = section.named(kind.option).into_iter();
    let metrics = named.map(|(name, metric)| {
        if name.is_empty() {
            metric.fault("metric name missing");
        }
        let attributes = metric.sections("attributes");
        Metric {
            name,
            description: metric.text("description"),
            conditions: conditions(&metric, kind),
            attributes: attributes.iter().map(attribute).collect(),
        }
    });
    metrics.collect()
}

fn conditions(metric: &Section<'_>, kind: &Kinds) -> Option<Group> {
    let (signal, context) = (kind.signal, kind.context);
    statements::conditions(metric, "conditions", signal, context, ErrorMode::Propagate)
}

fn attribute(section: &Section<'_>) -> Attribute {
    let key = section.text("key");
    if key.is_empty() && section.written("key").is_some() {
        section.error("key", "attribute key missing");
    }
    let written = section.written("default_value");
    // As in the Collector, an empty text and 0 are no defaults.
    let default = written.and_then(|node| match &node.value {
        Value::Text(text) if text.is_empty() => None,
        Value::Text(text) => Some(AttributeValue::Text(text.clone())),
        Value::Int(0) => None,
        Value::Int(value) => i64::try_from(*value).ok().map(AttributeValue::Int),
        Value::Float(value) if *value == 0.0 => None,
        Value::Float(value) => Some(AttributeValue::Double(*value)),
        _ => None,
    });
    let is_scalar = written.is_none_or(|node| {
        let is_number = matches!(node.value, Value::Float(_));
        let is_text = matches!(node.value, Value::Text(_) | Value::Null);
        let is_int = matches!(node.value, Value::Int(value) if i64::try_from(value).is_ok());
        is_number || is_text || is_int
    });
    if !is_scalar {
        section.error("default_value", "must be a text or a number of 64 bits");
    }
    Attribute { key, default }
}
